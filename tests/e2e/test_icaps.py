"""ICAP over TLS: who is believed, what is said of those who are not, and that all else is as without."""

import socket
import ssl
import time

from harness import ports
from harness.certificates import CLIENT, Authority, self_signed
from harness.checks import contains, equal, lacks, same_bytes, true, until
from harness.cicap import Cicap, Module
from harness.icap import IcapServer, append, echo, unchanged
from harness.origin import Origin
from harness.retort import Retort, Service, run_check
from harness.server import Server
from harness.suite import memcheck
from harness.tls import HOSTS, TlsIcapServer, end_of_tls
from harness.wire import Silence, Truncated, chunked

SIZES = (0, 1, 1000, 1024, 1025, 16384, 100_000, 3_000_000)


def start(lab, uri, **options):
    return Origin(lab), Retort(lab, services=[Service("s", uri, **{"bypass": False, "failures_down": 1000000, **options})])


def fetch(proxy, origin, size=2000):
    return proxy.get(origin.url("/bytes", n=size, cc="no-store"))


def says(proxy, text):
    until(lambda: text in proxy.process.log(), 10 * proxy.lab.patience, f"{text!r} in the log")


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


@memcheck
def test_bodies_of_all_sizes(lab):
    ca = Authority(lab)
    server = TlsIcapServer(lab, append(b"!"), ca.leaf(*HOSTS))
    origin, proxy = start(lab, server.uri(), ca_file=ca.file)
    for size in SIZES:
        same_bytes(fetch(proxy, origin, size).body, origin.body(size) + b"!", f"{size} bytes, adapted")
    server.behave = unchanged
    for size in SIZES:
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"{size} bytes, left alone")
    equal(server.accepted, 2, "connections: for OPTIONS, and for all transactions")
    equal(server.names, [None, None], "names: an address is not one")


def test_with_cicap(lab):
    ca = Authority(lab)
    good, port = ca.leaf(*HOSTS), ports.take()
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")], extra=f"TlsPort 127.0.0.1:{port} cert={good.file} key={good.key}")
    origin, proxy = start(lab, f"icaps://localhost:{port}/echo", ca_file=ca.file)
    for size in SIZES:
        for _ in range(2):  # 200 and 204 in turn
            same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"{size} bytes")
    true(cicap.count() > len(SIZES), "c-icap was asked")


def test_certificates(lab):
    ca, other = Authority(lab), Authority(lab, "other")
    alone = self_signed(lab, *HOSTS)
    fallen = ca.leaf(*HOSTS)
    cases = [
        (fallen, {"ca_file": ca.file, "crl_file": ca.crl(fallen)}, "its certificate was revoked on "),
        (ca.leaf("icap.example.com"), {"ca_file": ca.file}, "is not for 127.0.0.1: use a name that the certificate is for (icap.example.com)"),
        (ca.leaf(*HOSTS, days=-1), {"ca_file": ca.file}, "its certificate expired on "),
        (other.leaf(*HOSTS), {"ca_file": ca.file}, "the issuer of its certificate (CN=other) is neither sent nor trusted"),
        (alone, {}, "its certificate is self-signed and not trusted: if it is the right one, set ca_file"),
        (alone, {"ca_file": alone.file}, None),
        (alone, {"verify": False}, None),
    ]
    for certificate, options, error in cases:
        server = TlsIcapServer(lab, echo, certificate)
        origin, proxy = start(lab, server.uri(), **options)
        answer = fetch(proxy, origin)
        equal(answer.status, 502 if error else 200, f"{error}: status")
        if error:
            says(proxy, error)
            contains(proxy.ctl("services"), error, "retortctl services")
            equal(server.count, 0, f"{error}: transactions")
        if options.get("verify") is False:
            contains(proxy.process.log(), "verify is false", "the log")
        proxy.stop()


def test_files_that_are_none(lab):
    bad = lab.write("bad.pem", "nothing\n")
    ca = Authority(lab)
    good = ca.leaf(*HOSTS)
    for options, error in (({"ca_file": bad}, f"ca_file: {bad}: it must contain certificates in PEM, and has none"),
                           ({"crl_file": good.file}, f"crl_file: {good.file}: it must contain revocation lists in PEM"),
                           ({"certificate": bad, "certificate_key": good.key}, f"certificate: {bad}: it must contain certificates"),
                           ({"certificate": good.file, "certificate_key": bad}, f"certificate_key: {bad}: it must contain a private key"),
                           ({"certificate": good.file, "certificate_key": ca.key}, f"certificate_key: {ca.key}: it is not the key")):
        lines = "".join(f'  {name} = "{value}"\n' for name, value in options.items())
        status, text = run_check(lab, lab.write("bad.conf", 'listen "127.0.0.1:1" { mode = forward }\nicap_service s {\n'
                                          f'  uri = "icaps://127.0.0.1:1/s"\n  point = respmod_precache\n{lines}}}\n'))
        equal(status, 1, f"{options}: status")
        contains(text, error, "the error")


def test_name_and_resumption(lab):
    """The server is told the name; a second connection is spared the certificate."""
    for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        def behave(_icap, transaction):
            transaction.finish_body()
            transaction.send_204(b"Connection: close\r\n")
            return True
        ca = Authority(lab, f"ca{newest}")
        server = TlsIcapServer(lab, behave, ca.leaf(*HOSTS), newest=newest)
        origin, proxy = start(lab, server.uri().replace("127.0.0.1", "localhost"), ca_file=ca.file)
        for size in (100, 3000, 100):
            same_bytes(fetch(proxy, origin, size).body, origin.body(size), "body")
        equal(set(server.names), {"localhost"}, f"{newest}: names")
        true(any(server.reused[1:]), f"{newest}: no handshake was a resumed one of {server.reused}")
        proxy.stop()


def test_client_certificate(lab):
    ca = Authority(lab)
    good, ours = ca.leaf(*HOSTS), ca.leaf("proxy", usage=CLIENT)
    for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        server = TlsIcapServer(lab, echo, good, clients=ca.file, newest=newest)
        origin, proxy = start(lab, server.uri(), ca_file=ca.file)
        equal(fetch(proxy, origin).status, 502, "without one")
        says(proxy, "demands a certificate")
        proxy.stop()
        origin, proxy = start(lab, server.uri(), ca_file=ca.file, certificate=ours.file, certificate_key=ours.key)
        same_bytes(fetch(proxy, origin).body, origin.body(2000), "with one")
        proxy.stop()


def test_client_certificates_with_cicap(lab):
    """c-icap lets in only those who have one, takes it on each connection, and who lacks it is told so."""
    ca, other, port = Authority(lab), Authority(lab, "other"), ports.take()
    good, ours, foreign = ca.leaf(*HOSTS), ca.leaf("proxy", usage=CLIENT), other.leaf("foreign", usage=CLIENT)
    # client_ca names whom clients are asked for, cafile whom they are believed to be of.
    Cicap(lab, [Module("echo", "srv_echo.so")],
          extra=f"TlsPort 127.0.0.1:{port} cert={good.file} key={good.key} client_ca={ca.file} cafile={ca.file}")
    uri = f"icaps://localhost:{port}/echo"
    until(lambda: listens(port), 10 * lab.patience, "c-icap's port for TLS")
    origin, proxy = start(lab, uri, ca_file=ca.file, certificate=ours.file, certificate_key=ours.key, idle_timeout="1ms")
    for number in range(6):
        time.sleep(0.005)  # so that each has a connection of its own
        same_bytes(fetch(proxy, origin).body, origin.body(2000), f"request {number}")
    true(proxy.counter("icap_connections") >= 6, "connections")
    equal(proxy.counter("icap_failures"), 0, "failures")
    for options, error in (({}, "it demands a certificate: set certificate and certificate_key"),
                           ({"certificate": foreign.file, "certificate_key": foreign.key}, "it does not accept our certificate")):
        origin, proxy = start(lab, uri, ca_file=ca.file, **options)
        equal(fetch(proxy, origin).status, 502, f"{error}: status")
        says(proxy, error)

def test_handshakes_that_fail(lab):
    """One that stops, one that is cut off, a server that speaks no TLS."""
    def silent(connection, _number):
        while connection._fill():
            pass

    def cuts(connection, _number):
        connection._fill()

    def plain(connection, _number):
        connection._fill()
        connection.send(b"ICAP/1.0 400 Bad Request\r\n\r\n")
    for serve, error in ((silent, "did not finish the TLS handshake in time"),
                         (cuts, "closed the connection in the TLS handshake"), (plain, "it does not speak TLS at this port")):
        server = Server(lab, serve)
        origin, proxy = start(lab, f"icaps://{server.authority}/s", connect_timeout="300ms", bypass=True)
        same_bytes(fetch(proxy, origin).body, origin.body(2000), "bypassed")
        says(proxy, error)
        proxy.stop()
    ca = Authority(lab)
    server = TlsIcapServer(lab, echo, ca.leaf(*HOSTS), newest=ssl.TLSVersion.TLSv1_2)
    server.context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    origin, proxy = start(lab, f"icap://{server.authority}/s", connect_timeout="300ms", timeout="500ms")
    equal(fetch(proxy, origin).status, 502, "a server that speaks nothing but TLS")


def test_bodies_that_break_off(lab):
    """With or without the announced end: what has no last chunk is not complete."""
    def cut(orderly):
        def behave(_icap, transaction):
            transaction.finish_body()
            transaction.send_head(transaction.response_head())
            transaction.send(b"5\r\nhello\r\n")
            if orderly:
                end_of_tls(transaction.connection)
            return True
        return behave
    ca = Authority(lab)
    good = ca.leaf(*HOSTS)
    for orderly in (False, True):
        server = TlsIcapServer(lab, cut(orderly), good)
        origin, proxy = start(lab, server.uri(), ca_file=ca.file)
        try:
            answer = fetch(proxy, origin)
            equal(answer.status, 502, f"orderly {orderly}: status")
            lacks(answer.body, b"hello", "body")
        except (Truncated, Silence):
            pass
        equal(proxy.fetch("HEAD", origin.url("/text", say="x")).status, 200, "the proxy goes on")
        proxy.stop()


def test_retries_on_a_fresh_connection(lab):
    """A pooled connection that was closed while it was idle."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_204()
        return True  # and closes, without having said so
    ca = Authority(lab)
    server = TlsIcapServer(lab, behave, ca.leaf(*HOSTS))
    origin, proxy = start(lab, server.uri(), ca_file=ca.file)
    for size in (100, 3000, 200_000, 3000):
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"{size} bytes")


def test_second_answer_behind_the_first(lab):
    """In the same packet, and a record of its own, which is read, but not decrypted, with the first: it is nobody's."""
    evil = b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: res-body=0\r\n\r\n' + chunked(b"evil")

    def behave(_icap, transaction):
        body = transaction.finish_body()
        corked = transaction.connection.socket
        corked.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        if len(body) % 2:
            transaction.send_204()
        else:
            transaction.send_200(transaction.response_head(), body)
        transaction.send(evil)
        corked.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    ca = Authority(lab)
    good = ca.leaf(*HOSTS)
    for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        server = TlsIcapServer(lab, behave, good, newest=newest)
        origin, proxy = start(lab, server.uri(), ca_file=ca.file, max_connections=1)
        for size in (2000, 3000, 2001, 3001) * 2:
            same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"{newest}: {size} bytes")
        proxy.stop()


def test_idle_connections_stay(lab):
    """Tickets that come behind an answer are no answer."""
    ca = Authority(lab)
    server = TlsIcapServer(lab, unchanged, ca.leaf(*HOSTS))
    origin, proxy = start(lab, server.uri(), ca_file=ca.file)
    for _ in range(20):
        same_bytes(fetch(proxy, origin).body, origin.body(2000), "body")
    equal(server.accepted, 2, "connections")
    plain = IcapServer(lab, unchanged)
    origin, proxy = start(lab, plain.uri())
    same_bytes(fetch(proxy, origin).body, origin.body(2000), "without TLS")
