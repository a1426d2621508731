"""TLS listeners as real clients see them: testssl.sh, gnutls-cli, openssl s_client, Python's ssl, curl, wrk."""

import json
import re
import shutil
import socket
import ssl
import subprocess

from harness import hello, ports, wire
from harness.certificates import Authority
from harness.checks import Skip, contains, equal, lacks, one_of, true
from harness.hello import Hello, Native, say_hello
from harness.origin import Origin, echoed
from harness.retort import Retort
from harness.suite import heavy, seconds
from harness.tls_origin import TlsOrigin

NAME = "www.example.com"


class Site:
    """An origin, and a proxy that stands before it with TLS: `reverse` and `forward` are ports."""

    def __init__(self, lab):
        self.authority = Authority(lab)
        urls = {"ocsp": "http://ocsp.example.com/", "crl": "http://crl.example.com/"}  # nobody asks there
        self.ecdsa = self.authority.leaf(NAME, "localhost", "127.0.0.1", days=89, **urls)
        self.rsa = self.authority.leaf(NAME, "localhost", "127.0.0.1", days=89, rsa=2048, **urls)
        self.origin = Origin(lab)
        self.secure = TlsOrigin(lab, self.ecdsa)
        self.reverse, self.forward = ports.take(), ports.take()
        certificates = f'certificates = {{ "{self.ecdsa.both}", "{self.rsa.both}" }}'
        self.proxy = Retort(lab, reverse={"/": self.origin.url()}, extra=f"""
connect_ports = {{ {self.origin.port}, {self.secure.port} }}
listen "127.0.0.1:{self.reverse}" {{ mode = reverse  {certificates} }}
listen "127.0.0.1:{self.forward}" {{ mode = forward  local_destinations = allow  {certificates} }}""")

    def wire(self):
        return wire.Wire(("127.0.0.1", self.reverse), timeout=20 * self.proxy.lab.patience)

    def url(self, path="/", **arguments):
        return f"https://{NAME}:{self.reverse}{self.origin.target(path, **arguments)}"

    def tls(self, context=None, session=None, name=NAME):
        """A wire of the harness over Python's ssl."""
        context = context or self.context()
        inner = self.wire()
        inner.socket = context.wrap_socket(inner.socket, server_hostname=name, session=session)
        return inner

    def context(self, newest=None):
        context = ssl.create_default_context(cafile=self.authority.file)
        if newest:
            context.maximum_version = newest
        return context


def share(lab):
    return Site(lab)


def run(lab, *words, expect=0, given=None, limit=30):
    if shutil.which(words[0]) is None:
        raise Skip(f"needs {words[0]}: tests/install.sh test")
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False, timeout=limit * lab.patience, input=given)
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    if expect is not None:
        equal(done.returncode, expect, f"{words[0]}: exit status; it said: {said[-1500:]}")
    return said


REQUEST = f"GET /text?say=seen HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode()


# ---- testssl.sh

ALLOWED = ("OK", "INFO", "LOW", "WARN", "DEBUG")  # WARN: what testssl.sh can't do on this machine


@heavy("thousands of handshakes")
@seconds(240)
def test_testssl(lab, site):
    """Protocols, suites and all vulnerabilities that it knows. docs/TESTING.md says how to run the rest."""
    report = lab.path("testssl.json")
    run(lab, "testssl", "--quiet", "--color", "0", "--warnings", "batch", "--ip", "127.0.0.1", "-n", "none", "--add-ca",
        site.authority.file, "--jsonfile", report, "-p", "-s", "-U", f"{NAME}:{site.reverse}", expect=None, limit=200)
    with open(report, encoding="utf-8") as file:
        findings = {entry["id"]: entry for entry in json.load(file)}
    bad = [f"{entry['id']}: {entry['severity']}: {entry['finding']}" for entry in findings.values() if entry["severity"] not in ALLOWED]
    equal(bad, [], "findings above LOW")
    contains(findings["TLS1_3"]["finding"], "offered", "TLS 1.3")
    weak = "cipherlist_OBSOLETED" if "cipherlist_OBSOLETED" in findings else "cipherlist_AVERAGE"  # as testssl.sh 3.2 calls it, and as before
    for name in ("TLS1", "TLS1_1", "SSLv3", weak):
        equal(findings[name]["finding"], "not offered", name)
    contains(findings["secure_client_renego"]["finding"], "not vulnerable", "renegotiation")


# ---- gnutls-cli

def gnutls(lab, site, priority, *words):
    return run(lab, "gnutls-cli", "--x509cafile", site.authority.file, "--sni-hostname", NAME, "--verify-hostname", NAME,
               "--priority", priority, "-p", site.reverse, *words, "127.0.0.1", given=REQUEST)


def test_gnutls(lab, site):
    for version in ("TLS1.2", "TLS1.3"):
        said = gnutls(lab, site, f"NORMAL:-VERS-ALL:+VERS-{version}")
        contains(said, f"({version}-X.509)", "the version agreed on")
        contains(said, "The certificate is trusted", version)
        contains(said, "seen", version)
    said = gnutls(lab, site, "NORMAL:-VERS-ALL:+VERS-TLS1.2", "--resume", "--waitresumption")
    contains(said, "*** This is a resumed session", "a second connection")


# ---- openssl s_client

def s_client(lab, site, *words, expect=None, given=REQUEST):
    return run(lab, "openssl", "s_client", "-connect", f"127.0.0.1:{site.reverse}", "-servername", NAME, "-CAfile", site.authority.file,
               "-ign_eof", *words, expect=expect, given=given)


def test_s_client(lab, site):
    said = s_client(lab, site, "-verify_return_error", "-verify_hostname", NAME, expect=0)
    contains(said, "Verify return code: 0 (ok)", "openssl s_client")
    contains(said, "TLSv1.3", "version")
    contains(said, "seen", "answer")
    contains(said, "Compression: NONE", "compression")
    for more, alert in ((("-tls1", "-cipher", "ALL:@SECLEVEL=0"), "protocol version"),
                        (("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), "protocol version"),
                        (("-tls1_2", "-cipher", "AES128-GCM-SHA256"), "handshake failure"),             # RSA key exchange
                        (("-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"), "handshake failure"),     # finite-field DHE
                        (("-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256"), "handshake failure"),       # CBC
                        (("-tls1_3", "-groups", "ffdhe2048"), "handshake failure"),
                        (("-alpn", "nonsense"), "no application protocol")):
        contains(s_client(lab, site, *more), f"alert {alert}", f"{more}")
    said = s_client(lab, site, "-alpn", "nonsense,http/1.1", expect=0)
    contains(said, "ALPN protocol: http/1.1", "the one of two that it knows")


def test_renegotiation(_lab, site):
    """Refused; the server says so by an alert or leaves, and lives."""
    client = Native(site.wire(), NAME.encode(), hello.TLS12)
    true(client.connected, "a handshake of TLS 1.2")
    client.write(REQUEST.replace(b"close", b"keep-alive"))
    contains(client.read(), b"200", "before")
    true(not client.renegotiate(), "it went along with a renegotiation")
    client.close()
    equal(get(site.tls()).status, 200, "another connection")


def test_suites_by_key(_lab, site):
    """Who verifies RSA only gets the certificate with the RSA key, everybody else the ECDSA one."""
    from cryptography import x509  # pylint: disable=import-outside-toplevel
    for suites, schemes, expected in ((hello.RSA_SUITES, hello.RSA_SCHEMES, site.rsa),
                                      (hello.ECDSA_SUITES, hello.ECDSA_SCHEMES, site.ecdsa),
                                      (hello.RSA_SUITES + hello.ECDSA_SUITES, hello.RSA_SCHEMES + hello.ECDSA_SCHEMES, site.ecdsa)):
        with site.wire() as plain:
            flight = say_hello(plain, Hello(NAME.encode(), suites=suites, schemes=schemes))
        true(flight.certificates, f"an answer, the alert is {flight.alert}")
        equal(x509.load_der_x509_certificate(flight.certificates[0]), expected.certificate, "the certificate shown")


# ---- Python's ssl

def get(connection, path="/text?say=seen", **options):
    connection.send(wire.request("GET", path, {"Host": NAME, **options}))
    return connection.response()


def test_python(_lab, site):
    for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = site.context(newest)
        first = site.tls(context)
        for number in range(3):
            equal(get(first, f"/bytes?n={300000 + number}").body, site.origin.body(300000 + number), "a body of many records")
        session = first.socket.session
        first.send(wire.request("GET", "/text?say=last", {"Host": NAME, "Connection": "close"}))
        equal(first.response().text(), "last", "the last answer")
        equal(first.socket.recv(1), b"", "close_notify: Python raises without it")
        second = site.tls(context, session)
        true(second.socket.session_reused, f"{newest}: resumed")
        equal(get(second).text(), "seen", "an answer on a resumed session")
        second.close()


def test_upload_and_pipelining(_lab, site):
    with site.tls() as connection:
        body = site.origin.body(60000)
        connection.send(wire.request("POST", "/echo", {"Host": NAME}, body))
        equal(echoed(connection.response())["body"], body, "an upload of several records")
        connection.send(b"".join(wire.request("GET", f"/text?say={n}", {"Host": NAME}) for n in range(20)))
        equal([connection.response().text() for _ in range(20)], [str(n) for n in range(20)], "pipelined")


def test_client_that_says_it_is_done(_lab, site):
    """close_notify is answered with close_notify."""
    connection = site.tls()
    equal(get(connection, "/bytes?n=3000").body, site.origin.body(3000), "answer")
    raw = connection.socket.unwrap()  # raises without the answer
    raw.settimeout(20)
    equal(raw.recv(10), b"", "the connection ends")


# ---- curl

def curl(lab, site, *words, expect=0):
    return run(lab, "curl", "-sS", "-m", 20 * lab.patience, "--noproxy", "", "--cacert", site.authority.file,
               "--resolve", f"{NAME}:{site.reverse}:127.0.0.1", *words, expect=expect)


def test_curl(lab, site):
    for more in (("--tlsv1.3",), ("--tls-max", "1.2")):
        equal(curl(lab, site, *more, site.url("/text", say="curl")), "curl", f"{more}")
    equal(curl(lab, site, "--http2", site.url("/text", say="curl")), "curl", "a client that would rather have HTTP/2")
    said = curl(lab, site, "-w", "%{num_connects}.", site.url("/text", say="a"), site.url("/text", say="b"))
    equal(said, "a1.b0.", "the second request on the same connection")


def test_https_proxy(lab, site):
    """A forward proxy that is spoken to in TLS itself: plain requests, and CONNECT with TLS within."""
    through = ("-x", f"https://localhost:{site.forward}", "--proxy-cacert", site.authority.file)
    equal(curl(lab, site, *through, site.origin.url("/text", say="through")), "through", "http through it")
    equal(curl(lab, site, *through, "-p", site.origin.url("/text", say="through")), "through", "http in CONNECT through it")
    contains(curl(lab, site, *through, site.secure.url()), "the origin's answer", "TLS in TLS")


# ---- wrk

@heavy("as fast as it can")
def test_wrk(lab, site):
    get(site.tls(), "/text?say=stored&cc=max-age=3600")
    said = run(lab, "wrk", "-t", 1, "-c", 16, "-d", "2s", "-H", f"Host: {NAME}", f"https://127.0.0.1:{site.reverse}/text?say=stored&cc=max-age=3600")
    lacks(said, "Socket errors", "wrk")
    lacks(said, "Non-2xx", "wrk")
    true(int(re.search(r"(\d+) requests in", said)[1]) > 500, said)


# ---- what is no TLS

def test_no_tls(_lab, site):
    """Plain HTTP and garbage on a port for TLS: a quick end, and nothing of it reaches the origin."""
    asked = len(site.proxy.log())
    for data in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\0" * 100, b"\x80\x2e\x01\x00\x02" + b"\0" * 44):
        with site.wire() as plain:
            plain.send(data)
            plain.socket.settimeout(20)
            answer = plain.read_to_end()
            one_of(answer[:1], (b"", b"\x15", b"H"), f"what {data[:10]!r} is answered with")
            if answer.startswith(b"H"):
                contains(answer, b" 400 ", "an answer in plain HTTP")
    with socket.create_connection(("127.0.0.1", site.reverse)) as silent:
        silent.shutdown(socket.SHUT_WR)
        silent.settimeout(20)
        equal(silent.recv(1), b"", "a client that only connects")
    equal(get(site.tls()).status, 200, "a proper client afterwards")
    true(all(entry["status"] in (200, 400, 0) for entry in site.proxy.log()[asked:]), "the log")
