"""Interception and those who mean harm: clients that want leaves for others, to poison the cache, to be spliced, or to wear the
proxy out; origins that change or are cut off; services that would widen what rules allow."""

import ssl
import threading
import time

from cryptography import x509

from harness import ports, wire
from harness.certificates import Authority, self_signed
from harness.checks import between, contains, equal, lacks, one_of, true, until
from harness.hello import Hello, extension, record, records, say_hello, server_flight, vector
from harness.icap import IcapServer
from harness.interception import BUMP, Interception, Refused
from harness.process import status_field
from harness.raw_origin import ok
from harness.retort import Service
from harness.suite import memcheck
from harness.tls_origin import TlsOrigin, end_of_tls

NAME, OTHER, VICTIM = "www.example.com", "other.example.com", "victim.test"


def answer(connection, request):
    """/stored may be stored, /cut is cut off without close_notify, /whole ends with it; all else is no-store."""
    path = request.target.split("?")[0]
    if path == "/stored":
        body = b"from the origin\n"
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    elif path in ("/cut", "/whole"):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nConnection: close\r\n\r\nunframed")
        if path == "/whole":
            end_of_tls(connection)
        return True
    else:
        ok(connection, request)
    return None


def share(lab):
    return Interception(lab, NAME, OTHER, "*.flood.example.com", "127.0.0.1", answer=answer, interception='hello_timeout = "2s"  refusals = 0')


def leaf_for(site, name, **options):
    """The leaf that a hand-made hello with this SNI is shown, or None and the alert."""
    with site.tunnel() as plain:
        flight = say_hello(plain, Hello(name, **options))
    if not flight.certificates:
        return None, flight.alert
    return x509.load_der_x509_certificate(flight.certificates[0]), None


def names_of(leaf):
    """All names that a client could take from it: SAN and CN."""
    san = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    texts = [str(each.value) for each in san]
    return texts, [each.value for each in leaf.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]


# ---- which names leaves are for

NAMES = (b"www.example.com,DNS:victim.test", b"*", b"*.example.com", b"*.test", b"www.example.com\0.victim.test", b"a" * 255,
         b".".join([b"a" * 63] * 4)[:255], b"", b".", b"victim.test ", b" victim.test", b"DNS:victim.test", b"victim.test\r\nX: y", b"\xff\xfe", b"127.0.0.2",
         b"[::1]", b"::1", "bücher.example.com".encode(), b"a..b", b"%s%n", b"victim.test/../", b"user@victim.test")


@memcheck
def test_names_in_leaves(_lab, site):
    """What is no host name never gets into a leaf; the leaf is for the CONNECT's host then, or there is none."""
    for name in NAMES:
        leaf, alert = leaf_for(site, name)
        if leaf is None:  # refused
            continue
        san, common = names_of(leaf)
        equal(san, ["127.0.0.1"], f"SAN of the leaf for {name!r}")
        lacks(" ".join(common), "victim", f"CN of the leaf for {name!r}")
    for name, expected in ((NAME.encode(), NAME), (NAME.upper().encode(), NAME), (None, "127.0.0.1"), (b"a.flood.example.com", "a.flood.example.com")):
        leaf, alert = leaf_for(site, name)
        true(leaf, f"a leaf for {name!r}; the alert is {alert}")
        equal(names_of(leaf)[0], [expected], f"SAN of the leaf for {name!r}")
        equal(leaf.issuer, site.authority.certificate.subject, "its issuer")


@memcheck
def test_hello_in_pieces(_lab, site):
    """Byte by byte, in records of one byte, longer than a record."""
    for padding, size, piece in ((0, 16384, 1), (0, 1, 4096), (0, 7, 3), (2000, 16384, 1400), (20000, 16384, 16384)):
        with site.tunnel() as plain:
            plain.send_pieces(records(Hello(NAME.encode(), padding=padding).message(), size), piece)
            flight = server_flight(plain)
        true(flight.certificates, f"{padding} bytes of padding, records of {size}, pieces of {piece}: the alert is {flight.alert}")
        equal(names_of(x509.load_der_x509_certificate(flight.certificates[0]))[0], [NAME], "its leaf")


def test_origins_that_are_not_who_they_say(_lab, site):
    """The leaf for a name that the origin has no certificate for is only there to show the reason."""
    answered = site.get(VICTIM)
    equal(answered.status, 502, "status")
    contains(answered.text(), VICTIM, "the page")
    lacks(answered.text(), "the origin's answer", "the page")


# ---- Host and SNI

@memcheck
def test_another_host(_lab, site):
    """421 (RFC 9110 15.5.20), nothing asked, nothing stored."""
    asked = len(site.origin.requests)
    with site.bumped(NAME) as client:
        for target, host in (("/stored", site.host(VICTIM)), ("/stored", site.host(OTHER)), (site.url(VICTIM, "/stored"), site.host(VICTIM)),
                             (f"http://{site.host(NAME)}/stored", site.host(NAME)), ("/stored", NAME)):
            client.send(wire.request("GET", target, {"Host": host}))
            equal(client.response().status, 421, f"{target} with Host: {host}")
    equal(len(site.origin.requests), asked, "requests at the origin")
    equal(site.get(NAME, "/stored?of=its-own").status, 200, "its own host")


def test_admin_plane(lab):
    """Neither by CONNECT nor from within a connection that is opened."""
    admin = ("127.0.0.1", ports.take())
    site = Interception(lab, NAME, "127.0.0.1", admin=admin, extra=f'listen "127.0.0.1:{(strict := ports.take())}" {{ mode = forward }}')
    site.allow(admin[1])
    for host in ("127.0.0.1", "localhost"):
        equal(status_at(site, (host, admin[1]), strict), 403, f"CONNECT to {host}, the admin plane")
    with site.bumped(NAME) as client:
        client.send(wire.request("GET", "/status", {"Host": f"127.0.0.1:{admin[1]}"}))
        equal(client.response().status, 421, "from within")
    one_of(status_at(site, admin), (403, 502), "the admin plane, where this machine's own places are allowed")


def status_at(site, to, listener=None):
    """Of a page at an address that CONNECT names: the CONNECT's own, or the one that is shown inside."""
    try:
        with site.bumped(to[0], to=to, listener=listener) as client:
            client.send(wire.request("GET", "/status", {"Host": f"{to[0]}:{to[1]}"}))
            return client.response().status
    except Refused as refused:
        return refused.response.status


def test_own_listener(lab):
    """CONNECT to the proxy itself: an error, not a loop."""
    site = Interception(lab, NAME, "127.0.0.1")
    site.allow(site.proxy.forward[1])
    before = site.proxy.counter("client_requests")
    one_of(status_at(site, site.proxy.forward), (403, 502, 508), "the proxy's own listener")
    between(site.proxy.counter("client_requests") - before, 0, 20, "requests that became of one")
    equal(site.get(NAME).status, 200, "afterwards")


# ---- floods

def rss(proxy):
    return status_field(proxy.pid, "VmRSS") * 1024


def test_flood_of_names(lab):
    """A leaf for each of six hundred names, where a hundred are kept: memory has a bound, others are served meanwhile."""
    site = Interception(lab, NAME, "*.flood.example.com", interception="leaf_cache = 100  identity_entries = 100  refusals = 0",
                        origin={"max_idle_total": 15}, workers=2)
    plain = site.get(NAME)
    equal(plain.status, 200, "before")
    count = 600 if lab.patience == 1 else 60
    slowest = [0.0]
    done = threading.Event()

    def others():
        while not done.is_set():
            start = time.monotonic()
            equal(site.get(NAME).status, 200, "another client")
            slowest[0] = max(slowest[0], time.monotonic() - start)
            time.sleep(0.05)
    thread = threading.Thread(target=others)
    thread.start()
    sizes = []
    for number in range(count):
        leaf, alert = leaf_for(site, b"n%d.flood.example.com" % number)
        true(leaf, f"a leaf; the alert is {alert}")
        if number % (count // 3) == count // 3 - 1:
            sizes.append(rss(site.proxy))
    done.set()
    thread.join()
    between(slowest[0], 0, 5 * lab.patience, "seconds that another client waited")
    between(site.proxy.counter("origin_connections_idle"), 1, 30, "idle connections of two workers to the origin of many names")
    true(site.proxy.counter("idle_connections_dropped") > 0, "those above the limit are counted")
    if lab.patience == 1 and not lab.tsan:
        between(sizes[2] - sizes[1], -1 << 40, 4 << 20, "bytes that the last two hundred names took")


def test_half_a_hello(lab):
    """Clients that stop within the hello or behind it: ended after the timeout, and their memory comes back."""
    site = Interception(lab, NAME, interception='hello_timeout = "1s"  not_tls = refuse', client={"handshake_timeout": "2s"})
    equal(site.get(NAME).status, 200, "before")
    data = records(Hello(NAME.encode(), versions=(0x0304, 0x0303)).message())
    sizes = []
    for _ in range(2):
        stopped = []
        for number in range(300):
            client = site.tunnel()
            client.send(data[:(0, 1, len(data) // 2, len(data))[number % 4]])
            stopped.append(client)
        for client in stopped:
            client.read_to_end(20 * lab.patience)
            client.close()
        equal(site.get(NAME).status, 200, "afterwards")
        sizes.append(rss(site.proxy))
    if lab.patience == 1:
        between(sizes[1] - sizes[0], -1 << 40, 4 << 20, "bytes that a second round left behind")


# ---- origins that change

def test_origin_that_turns_bad(lab):
    """What was verified once is no licence: each new connection is verified, and nothing of a bad one is shown or stored."""
    site = Interception(lab, NAME, OTHER, answer=answer, interception='failure_time = "1s"')
    equal(site.get(NAME, "/stored").text(), "from the origin\n", "while it is good")
    handshakes = len(site.origin.names)
    equal(site.get(NAME, "/stored").text(), "from the origin\n", "a hit")
    equal(len(site.origin.names), handshakes, "handshakes with the origin for a hit")
    site.origin.show(self_signed(lab, NAME))
    site.origin.cut_connections()
    asked = len(site.origin.requests)
    for path in ("/stored?2", "/stored?3"):
        bad = site.get(NAME, path)
        equal(bad.status, 502, f"{path}, once it is bad")
        lacks(bad.text(), "from the origin", "the page")
    equal(len(site.origin.requests), asked, "requests at the bad origin")
    site.origin.show(site.certificate)
    until(lambda: site.get(NAME, "/stored?2").status == 200, 15, "good again")


@memcheck
def test_cut_bodies(_lab, site):
    """Without a length and without close_notify a body is cut: it does not look whole, and it is never stored."""
    for _ in range(2):
        with site.bumped(NAME) as client:
            client.send(wire.request("GET", "/cut", {"Host": site.host(NAME)}))
            try:
                client.response()
                raise AssertionError("a cut body looks whole")
            except (wire.Truncated, ssl.SSLError, OSError):
                pass
    equal([entry["result"] for entry in site.proxy.entries("/cut", 2)], ["MISS", "MISS"], "/cut")
    for _ in range(2):
        equal(site.get(NAME, "/whole").body, b"unframed", "a body that ends properly")
    equal(site.proxy.results("/whole", 2), ["MISS", "HIT"], "/whole")


# ---- clients that would be spliced

def refuse(site, name, source=None):
    """A client that does not trust the leaf."""
    stranger = site.context(trusts=site.root.file)
    try:
        site.bumped(name, context=stranger, source=source).close()
        return False
    except (ssl.SSLError, OSError):
        return True


def test_refusing_for_others(lab):
    """Who refuses leaves gets himself spliced, nobody else, and no other host."""
    site = Interception(lab, NAME, OTHER, interception="refusals = 2")
    for _ in range(10):
        if not refuse(site, NAME, source="127.0.0.2"):
            break
    true(not refuse(site, NAME, source="127.0.0.2"), "the client that refused is spliced, and trusts the origin itself")
    equal(site.get(NAME, source="127.0.0.1").status, 200, "another client is not spliced")
    true(refuse(site, OTHER, source="127.0.0.2"), "another host is not spliced for the one that refused")


def test_refusing_one_place(lab):
    """Nor does the name of a refused leaf open the way to other places."""
    site = Interception(lab, NAME, OTHER, interception="refusals = 2")
    elsewhere = TlsOrigin(lab, site.root.leaf(NAME))
    site.allow(elsewhere.port)
    for _ in range(10):
        if not refuse(site, NAME):
            break
    true(not refuse(site, NAME), "the client is spliced to the host that it refused leaves for")
    try:
        site.bumped(NAME, context=site.context(trusts=site.root.file), to=("localhost", elsewhere.port)).close()
        raise AssertionError("spliced to a place that no leaf was refused for")
    except ssl.SSLError:
        pass


def test_asking_elsewhere(lab):
    """A server that asks for client certificates and is not who it says has nobody else spliced."""
    site = Interception(lab, NAME)
    liar = TlsOrigin(lab, self_signed(lab, NAME), clients=site.root.file)
    site.allow(liar.port)
    for _ in range(3):
        try:
            site.bumped(NAME, to=(liar.host, liar.port)).close()
        except (ssl.SSLError, OSError):
            pass
    true(not spliced(site, NAME), "spliced because of another server's word")
    equal(site.get(NAME).status, 200, "the proper server")


def test_refusals_off(lab):
    site = Interception(lab, NAME, interception="refusals = 0")
    true(all(refuse(site, NAME) for _ in range(6)), "never spliced")


# ---- services

class Deciding:
    """A service that answers CONNECT with X-Intercept, and keeps what it was asked."""

    def __init__(self):
        self.word, self.seen = None, []

    def __call__(self, _icap, transaction):
        self.seen.append(transaction)
        transaction.finish_body()
        add = [("X-Intercept", self.word)] if self.word else []
        transaction.send_head(transaction.request_head(add=add), body=False)


def deciding(lab, rules):
    service = Deciding()
    icap = IcapServer(lab, service, methods="REQMOD", preview=None)
    site = Interception(lab, NAME, OTHER, rules=rules, services=[Service("decide", icap.uri(), "reqmod_precache")])
    return site, service


def is_spliced(site, name):
    """Does a client see the origin's own certificate?"""
    with site.bumped(name, context=site.context(trusts=site.root.file)):
        return True


def spliced(site, name):
    try:
        return is_spliced(site, name)
    except ssl.SSLError:
        return False


def test_services_do_not_widen(lab):
    """A service may say splice or block where the rules say bump; it can't open what they leave closed."""
    site, service = deciding(lab, f"url_class private {{ domain = {OTHER} }}\nintercept private {{ action = splice }}\n{BUMP}")
    for word, expected in (("bump", True), ("nonsense", True), (None, True), ("splice", True)):
        service.word = word
        equal(spliced(site, OTHER), expected, f"{word!r}, where the rules say splice")
    for word, expected in (("bump", False), ("nonsense", False), (None, False), ("splice", True)):
        service.word = word
        equal(spliced(site, NAME), expected, f"{word!r}, where the rules say bump")


def test_forged_fields(lab):
    """A client's own X-Intercept and X-TLS fields decide nothing, and services can tell them from the proxy's."""
    site, service = deciding(lab, BUMP)
    forged = {"X-Intercept": "splice", "X-TLS-SNI": VICTIM, "X-Client-Username": "admin"}
    try:
        site.bumped(NAME, context=site.context(trusts=site.root.file), headers=forged).close()
        raise AssertionError("a client spliced itself")
    except ssl.SSLError:
        pass
    with site.bumped(NAME, headers=forged) as client:
        client.send(wire.request("GET", "/", {"Host": site.host(NAME), **forged}))
        equal(client.response().status, 200, "a request inside")
    true(service.seen, "the service was asked")
    for transaction in (each for each in service.seen if each.http_request.start.startswith("CONNECT")):
        for name, value in transaction.request.fields:  # the ICAP head
            lacks(value, VICTIM, f"the ICAP field {name}")
            lacks(value, "admin", f"the ICAP field {name}")
        equal(transaction.http_request.header("X-Intercept"), None, "X-Intercept in the request that the service sees")


# ---- what is no TLS

def test_no_tls(lab):
    """Refused where that is said; a silent client too."""
    site = Interception(lab, NAME, interception='not_tls = refuse  hello_timeout = "1s"')
    asked = len(site.origin.names)
    for data in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"SSH-2.0-x\r\n", b"\x16\x03\x01\x00\x05hello", b"\x80\x2e\x01\x00\x02" + b"\0" * 44, b""):
        with site.tunnel() as plain:
            plain.send(data)
            plain.read_to_end(20 * lab.patience)
    equal(len(site.origin.names), asked, "connections to the origin")


@memcheck
def test_hellos_that_evade(_lab, site):
    """What begins like TLS and can't be read is no "other protocol": it is refused, else a client would pass by what the rules say."""
    asked = len(site.origin.names)
    message = Hello(NAME.encode()).message()
    twice = Hello(NAME.encode(), more=extension(0, vector(b"\0" + vector(OTHER.encode(), 2), 2))).message()
    for what, data in (("70 KB", records(Hello(NAME.encode(), padding=60000, more=extension(22222, bytes(5000))).message())),
                       ("an empty record", record(message[:50]) + record(b"") + record(message[50:])),
                       ("two names", records(twice)), ("an empty name", records(Hello(b"").message())), ("no name in the extension", records(Hello(None, more=extension(0, b"")).message())),
                       ("an unknown message", record(b"\x63" + message[1:])), ("an alert first", record(b"\1\0", 21) + records(message)),
                       ("SSLv2's form", b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10" + bytes(37))):
        with site.tunnel() as plain:
            plain.send(data)
            flight = server_flight(plain, 20 * site.lab.patience)
            true(not flight.certificates, f"{what}: a certificate of {flight.certificates and x509.load_der_x509_certificate(flight.certificates[0]).issuer}")
    equal(len(site.origin.names), asked, "handshakes at the origin")
