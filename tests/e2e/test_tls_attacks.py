"""TLS listeners and hostile clients: hellos in pieces, names that no host has, floods, tickets where they do not belong.

What goes for every test: the proxy lives, others are served meanwhile, and nothing stays behind.
"""

import os
import random
import shutil
import ssl
import struct
import threading
import time

from cryptography import x509

from harness import hello, ports, wire
from harness.certificates import CLIENT, Authority
from harness.checks import between, equal, lacks, one_of, true, until
from harness.hello import Hello, Native, record, records, say_hello, server_flight
from harness.origin import Origin
from harness.process import status_field
from harness.retort import Retort
from harness.suite import memcheck

FIRST, SECOND, WILD = "first.example.com", "second.example.com", "*.wild.example.com"


class Site:
    """`port`: three certificates, `members`: the same, but a client certificate is required."""

    def __init__(self, lab, client="", members="", workers=1, authority=None):
        self.lab = lab
        self.authority = authority or Authority(lab)
        self.first, self.second, self.wild = (self.authority.leaf(name) for name in (FIRST, SECOND, WILD))
        self.member = self.authority.leaf("member", usage=CLIENT)
        self.origin = Origin(lab)
        self.port, self.members = ports.take(), ports.take()
        files = ", ".join(f'"{each.both}"' for each in (self.first, self.second, self.wild))
        self.proxy = Retort(lab, reverse={"/": self.origin.url()}, workers=workers, extra=f"""
client {{ {client} }}
listen "127.0.0.1:{self.port}" {{ mode = reverse  certificates = {{ {files} }} }}
listen "127.0.0.1:{self.members}" {{
    mode = reverse  certificates = {{ {files} }}  client_ca = "{self.authority.file}"  client_certificate = required  {members}
}}""")

    def wire(self, port=None):
        return wire.Wire(("127.0.0.1", port or self.port), timeout=20 * self.lab.patience)

    def context(self, newest=ssl.TLSVersion.TLSv1_3, certificate=None):
        context = ssl.create_default_context(cafile=self.authority.file)
        context.maximum_version = newest
        if certificate:
            context.load_cert_chain(certificate.file, certificate.key)
        return context

    def tls(self, context=None, session=None, name=FIRST, port=None):
        inner = self.wire(port)
        inner.socket = (context or self.context()).wrap_socket(inner.socket, server_hostname=name, session=session)
        return inner

    def serves(self):
        """Seconds until a client that means no harm is served, with a handshake."""
        start = time.monotonic()
        with self.tls() as good:
            equal(get(good).status, 200, "a client that means no harm")
        return time.monotonic() - start

    def memory(self):
        return status_field(self.proxy.pid, "VmRSS") * 1024

    def settles(self, before, most, what):
        """Memory comes back to less than `most` bytes above what it was."""
        if self.lab.asan or self.lab.valgrind:
            return  # they keep what was freed
        until(lambda: self.memory() < before + most, 10, f"{what}: memory was {before}, is {self.memory()}")


def get(connection, path="/text?say=seen", name=FIRST):
    connection.send(wire.request("GET", path, {"Host": name}))
    return connection.response()


def share(lab):
    return Site(lab)


def shown(flight):
    """The certificate that the server showed."""
    true(flight.certificates, f"no certificate, but the alert {flight.alert}")
    return x509.load_der_x509_certificate(flight.certificates[0])


# ---- the ClientHello

@memcheck
def test_hello_in_pieces(_lab, site):
    """Byte by byte, in records of one byte, longer than a record; more than OpenSSL takes is refused."""
    message = Hello(SECOND.encode()).message()
    for data, piece in ((records(message), 1), (records(message, 1), 4096), (records(message, 7), 3)):
        with site.wire() as plain:
            plain.send_pieces(data, piece)
            equal(shown(server_flight(plain)), site.second.certificate, "the certificate by the name in the pieces")
    for padding in (2000, 20000, 60000):
        with site.wire() as plain:
            equal(shown(say_hello(plain, Hello(SECOND.encode(), padding=padding))), site.second.certificate, f"{padding} bytes of padding")
    with site.wire() as plain:
        plain.send(record(b"\1\xff\xff\xff" + bytes(16000)))
        true(server_flight(plain).alert, "a ClientHello of 16 MB")
    with site.wire() as plain:
        plain.send(struct.pack("!BHH", 22, 0x0301, 18000) + bytes(18000))
        flight = server_flight(plain)
        true(flight.alert or flight.ended, "a record of 18,000 bytes")
    site.serves()


NAMES = (b"a" * 255, b".".join([b"a" * 63] * 4)[:255], FIRST.encode() + b",DNS:" + SECOND.encode(), b"*", b"*.wild.example.com", b"*.example.com",
         FIRST.encode() + b"\0." + SECOND.encode(), b"\0", b"127.0.0.1", b"::1", b"[::1]", "bücher.example.com".encode(),
         b"xn--bcher-kva.example.com", b"", b".", b"..", b"-", b"a..b", b"%s%s%s", b"../../etc/passwd", b"a\r\nX-Forged: 1", b"\xff\xfe", b"a b", b"_dmarc.first")


@memcheck
def test_names(lab, site):
    """None of them is anybody's: the first certificate is shown, or an alert. None gets into a log or a field as more than text."""
    for name in NAMES:
        with site.wire() as plain:
            flight = say_hello(plain, Hello(name))
        if flight.alert:
            one_of(flight.alert, ("unrecognized_name", "illegal_parameter", "decode_error"), f"the alert for {name!r}")
        else:
            equal(shown(flight), site.first.certificate, f"the certificate for {name!r}")
    with site.wire() as plain:
        equal(shown(say_hello(plain, Hello(None))), site.first.certificate, "no name: the first of the list")
    for name, expected in ((b"a.wild.example.com", site.wild), (b"A.WILD.Example.Com", site.wild), (b"a.b.wild.example.com", site.first),
                           (b"wild.example.com", site.first), (SECOND.upper().encode(), site.second)):
        with site.wire() as plain:
            equal(shown(say_hello(plain, Hello(name))), expected.certificate, f"the certificate for {name!r}")
    for name in (b"a\r\nX-Forged: 1", b"%s%n\xff,DNS:b"):  # a whole handshake, and a request
        client = Native(site.wire(), name)
        if client.connected:
            client.write(wire.request("GET", "/echo", {"Host": FIRST, "Connection": "close"}))
            answer = b"".join(iter(client.read, b""))
            lacks(answer, b"X-Forged", "what the origin was sent")
        client.close()
    for line in site.proxy.log_lines():
        lacks(line, "\\r\\nX-Forged", "a log line")
    site.serves()


def test_two_names(_lab, site):
    """Two SNI extensions, two names in one, a name of another kind: RFC 6066 has one host name."""
    inner = hello.vector(b"\0" + hello.vector(FIRST.encode(), 2) + b"\0" + hello.vector(SECOND.encode(), 2), 2)
    twice = hello.extension(0, hello.vector(b"\0" + hello.vector(SECOND.encode(), 2), 2))
    for more in (Hello(FIRST.encode(), more=twice), Hello(None, more=hello.extension(0, inner)), Hello(None, more=hello.extension(0, b"\0\1\7"))):
        with site.wire() as plain:
            flight = say_hello(plain, more)
        true(flight.alert or flight.ended, "a hello with two names, or with half of one")


@memcheck
def test_mangled(_lab, site):
    """Hellos with bytes changed, cut, repeated."""
    shuffled = random.Random(5)
    for _ in range(100):
        data = bytearray(records(Hello(FIRST.encode(), alpn=(b"http/1.1",), versions=(hello.TLS13, hello.TLS12)).message()))
        for _ in range(shuffled.choice((1, 1, 2, 8))):
            data[shuffled.randrange(3, len(data))] = shuffled.randrange(256)
        with site.wire() as plain:
            plain.send(bytes(data[:shuffled.choice((len(data), len(data), shuffled.randrange(len(data))))]))
            plain.finish_sending()
            plain.read_to_end()
    site.serves()


# ---- floods

def test_key_updates(_lab, site):
    """Thousands of KeyUpdates that each want one back: others are served, and they can be stopped by nobody reading."""
    before = site.memory()
    polite = Native(site.wire(), FIRST.encode())
    for _ in range(2000):
        if not polite.key_update():
            break
    if polite.write(wire.request("GET", "/text?say=seen", {"Host": FIRST, "Connection": "close"})) > 0:
        one_of(polite.read()[9:12], (b"200", b""), "an answer behind two thousand of them")
    polite.close()
    rude = Native(site.wire(), FIRST.encode())
    stop = time.monotonic() + 3

    def flood():
        rude.wire.socket.settimeout(0.5)
        rude.wire.socket.setblocking(False)
        while time.monotonic() < stop and rude.key_update():
            pass
    thread = threading.Thread(target=flood)
    thread.start()
    slowest = max(site.serves() for _ in range(20))
    thread.join()
    grown = site.memory() - before
    rude.close()
    between(slowest, 0, 5 * site.lab.patience, "seconds that another client waited")
    if not site.lab.asan:
        between(grown, -1 << 40, 16 << 20, "bytes that the flood took")
    site.settles(before, 8 << 20, "a flood of KeyUpdates")


def stop_half_way(lab, site, count):
    data = records(Hello(FIRST.encode(), versions=(hello.TLS13, hello.TLS12)).message())
    stopped = []
    for number in range(count):
        client = site.wire()
        client.send((data[:1], data[:len(data) // 2], data)[number % 3])
        stopped.append(client)
    until(lambda: site.proxy.counter("tls_handshakes_refused") > 0, 10, "clients above max_handshakes refused")
    for client in stopped:
        true(client.read_to_end(10 * lab.patience) is not None, "ended by the server")
        client.close()


def test_half_a_handshake(lab):
    """A thousand clients stop half-way: refused above the limit, ended after the timeout, and their memory comes back.

    The allocator keeps some of what the first thousands needed. The 200 handshakes of each round take some 5 MB together, so
    a round that adds less than 2 MB shows that they are given back."""
    site = Site(lab, 'handshake_timeout = "2s"  max_handshakes = 200')
    site.serves()
    grown = []
    while len(grown) < 2 or (grown[-1] > 2 << 20 and not lab.asan and not lab.valgrind):
        before = site.memory()
        stop_half_way(lab, site, 1000)
        site.serves()
        grown.append(site.memory() - before)
        true(len(grown) < 8, f"what each thousand handshakes added to the memory: {grown}")


def test_slow_handshake(lab):
    """A byte now and then does not make the time longer."""
    site = Site(lab, 'handshake_timeout = "1s"')
    data = records(Hello(FIRST.encode()).message())
    with site.wire() as slow:
        start = time.monotonic()
        try:
            for byte in data:
                slow.send(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            pass
        between(time.monotonic() - start, 0.5, 5 * lab.patience, "seconds until a client of a byte in 50 ms is ended")


# ---- tickets

def session_of(site, context, **options):
    with site.tls(context, **options) as first:
        equal(get(first).status, 200, "the first connection")
        return first.socket.session


def resumed(site, context, session, **options):
    """Was the session taken up again? An alert or a dead connection counts as no."""
    try:
        with site.tls(context, session, **options) as again:
            get(again)
            return again.socket.session_reused
    except (ssl.SSLError, OSError, wire.Truncated):
        return False


VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def test_tickets(lab):
    """Of two workers, over a reload; never under another name, at another listener, or past a certificate that is required."""
    site = Site(lab, workers=2)
    for newest in VERSIONS:
        context = site.context(newest)
        session = session_of(site, context)
        true(all(resumed(site, context, session) for _ in range(8)), f"{newest}: at either worker")
        true(not resumed(site, context, session, name=SECOND), f"{newest}: under another name")
        true(not resumed(site, context, session, name="a.wild.example.com"), f"{newest}: under a third name")
        true(not resumed(site, context, session, port=site.members), f"{newest}: where a client certificate is required")
        equal(site.proxy.reload().status, 200, "reload")
        true(all(resumed(site, context, session) for _ in range(4)), f"{newest}: after a reload")
        with_certificate = site.context(newest, site.member)
        session = session_of(site, with_certificate, port=site.members)
        true(resumed(site, with_certificate, session, port=site.members), f"{newest}: of a client with a certificate")
        true(not resumed(site, with_certificate, session, port=site.members, name=SECOND), f"{newest}: its ticket under another name")


def test_no_certificate(_lab, site):
    """Where a client certificate is required: none, and one of another authority."""
    stranger = Authority(site.lab, "stranger").leaf("member", usage=CLIENT)
    asked = site.origin.count("/members")
    for newest in VERSIONS:
        for certificate in (None, stranger):
            try:
                with site.tls(site.context(newest, certificate), port=site.members) as client:
                    answer = get(client, "/members")
                    raise AssertionError(f"{newest}: served with {answer.status}")
            except (ssl.SSLError, OSError, wire.Truncated):
                pass
        with site.tls(site.context(newest, site.member), port=site.members) as client:
            equal(get(client).status, 200, "a member")
    equal(site.origin.count("/members"), asked, "requests at the origin")


def test_revoked_member(lab):
    """A certificate that is revoked at a reload: not with a ticket from before either."""
    authority = Authority(lab)
    crl = lab.path("members.crl")
    shutil.copyfile(authority.crl(), crl)
    site = Site(lab, members=f'client_crl = "{crl}"', authority=authority)
    context = site.context(ssl.TLSVersion.TLSv1_2, site.member)
    session = session_of(site, context, port=site.members)
    true(resumed(site, context, session, port=site.members), "before")
    shutil.copyfile(authority.crl(site.member), crl)
    equal(site.proxy.reload().status, 200, "reload")
    for old in (session, None):
        try:
            with site.tls(context, old, port=site.members) as client:
                raise AssertionError(f"a revoked member is served with {get(client).status}, with a ticket: {old is not None}")
        except (ssl.SSLError, OSError, wire.Truncated):
            pass


def test_changed_tickets(_lab, site):
    """Tickets with changed bytes are as none."""
    context = site.context(ssl.TLSVersion.TLSv1_2)
    with site.tls(context) as first:
        get(first)
    for ticket in (b"", b"\0", os.urandom(16), os.urandom(192), os.urandom(60000)):
        with site.wire() as plain:
            equal(shown(say_hello(plain, Hello(FIRST.encode(), more=hello.extension(35, ticket)))), site.first.certificate, "a whole handshake")
    site.serves()
