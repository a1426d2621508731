"""TLS on listeners: which certificate, which algorithms, whose tickets, which clients, and what a reload keeps."""

import hashlib
import json
import os
import re
import socket
import ssl
import subprocess
import time

from cryptography.hazmat.primitives.asymmetric import ec
from harness import ports
from harness.certificates import CLIENT, Authority, Certificate
from harness.checks import contains, equal, lacks, one_of, true, until
from harness.icap import IcapServer, unchanged
from harness.origin import Origin
from harness.retort import Retort, Service, measure
from harness.suite import memcheck


def section(port, mode, certificates, **options):
    files = ", ".join(f'"{each}"' for each in certificates)
    more = " ".join(f"{name} = {value}" for name, value in options.items())
    return f'listen "127.0.0.1:{port}" {{ mode = {mode} certificates = {{ {files} }} {more} }}\n'


class Site:
    """A proxy with TLS listeners in front of an origin."""

    def __init__(self, lab, *sections, **options):
        self.lab, self.origin = lab, Origin(lab)
        self.sections = sections  # each a tuple: mode, certificates, options
        self.ports = [ports.take() for _ in sections]
        self.proxy = Retort(lab, reverse={"/": self.origin.url()}, extra=self.text(), **options)

    def text(self, *sections):
        self.sections = sections or self.sections
        return "".join(section(port, mode, files, **options)
                       for port, (mode, files, options) in zip(self.ports, self.sections))

    def reload(self, *sections):
        """The answer to a reload with other sections."""
        self.proxy.write_config(self.proxy.text(extra=self.text(*sections)))
        return self.proxy.reload()

    def connect(self, name="a.test", listener=0, context=None, session=None):
        raw = socket.create_connection(("127.0.0.1", self.ports[listener]), timeout=10 * self.lab.patience)
        return (context or trusting()).wrap_socket(raw, server_hostname=name, session=session)

    def counter(self, name):
        return self.proxy.counter(name)


def trusting(version=None, ciphers=None, alpn=None, certificate=None, groups=None):
    """A client that believes everything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version:
        context.minimum_version = context.maximum_version = version
    if ciphers:
        context.set_ciphers(ciphers)
    if alpn:
        context.set_alpn_protocols(alpn)
    if groups:
        context.set_ecdh_curve(groups)
    if certificate:
        context.load_cert_chain(certificate.file, certificate.key)
    return context


def get(connection, path="/text?say=hello", host="a.test", more=""):
    """Sends a request, and returns the head and the body that came within one connection."""
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())
    head, body = b"", b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(65536)
        true(part, f"the connection ended after {head!r}")
        head += part
    head, body = head.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
    while len(body) < length:
        body += connection.recv(65536)
    return head.decode(), body


def shown(site, name, **options):
    """The certificate that a client gets."""
    with site.connect(name, **options) as connection:
        return connection.getpeercert(True)


def alert(call):
    """The reason of the failure that a call ends with."""
    try:
        call()
    except ssl.SSLError as error:
        return error.reason or str(error)
    except OSError as error:
        return str(error)
    return "no failure"


def test_names_choose_the_certificate(lab):
    root = Authority(lab)
    a, b = root.leaf("a.test", "*.a.test"), root.leaf("b.test")
    rsa, other = root.leaf("b.test", rsa=2048), root.leaf("x.a.test", "c.test")
    true(b.key, "the key beside its certificate")
    site = Site(lab, ("reverse", [a.both, b.file, rsa.both, other.both], {}),
                ("reverse", [b.both], {"unknown_name": "refuse"}))
    for name, expected in (("a.test", a), ("www.a.test", a), ("WWW.A.TEST", a), ("x.a.test", other),
                           ("b.test", b), ("c.test", other), ("d.c.test", a), ("two.labels.a.test", a), (None, a),
                           ("unknown.test", a)):
        equal(shown(site, name) == expected.der, True, f"the certificate for {name}")
    old = trusting(ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES128-GCM-SHA256")
    equal(shown(site, "b.test", context=old), rsa.der, "the certificate for a client that knows only RSA")
    contains(alert(lambda: shown(site, "c.test", context=old)), "HANDSHAKE_FAILURE",
             "a name without RSA: not the RSA of another name")
    with site.connect("b.test", context=strict(root)) as connection:
        head, body = get(connection, host="b.test")
    contains(head, "200 OK", "the answer to a client that verifies the chain")
    equal(body, b"hello", "body")
    equal(alert(lambda: shown(site, "a.test", listener=1)), "TLSV1_UNRECOGNIZED_NAME", "a strict listener")
    equal(shown(site, None, listener=1), b.der, "a strict listener, and no name")


def strict(root):
    context = ssl.create_default_context(cafile=root.file)
    return context


def test_algorithms(lab):
    lab.needs("http2")
    leaf = Authority(lab).leaf("a.test", rsa=2048)
    site = Site(lab, ("reverse", [leaf.both], {}), ("reverse", [leaf.both], {"min_version": "tls1.3"}),
                ("forward", [leaf.both], {"ciphers": '"ECDHE+AESGCM"', "groups": '"P-384"'}))

    def s_client(*words, listener=0, stdin="Q\n"):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{site.ports[listener]}", *words],
                              input=stdin, capture_output=True, text=True, errors="replace", timeout=20 * lab.patience, check=False)
        return done.stdout + done.stderr

    for words in (("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), ("-tls1_2", "-cipher", "AES128-GCM-SHA256"),
                  ("-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256"), ("-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256")):
        contains(s_client(*words), "Cipher is (NONE)", f"openssl s_client {' '.join(words)}")
    one = s_client("-tls1_2", stdin="R\n")
    contains(one, "Cipher is ECDHE-RSA-AES128-GCM-SHA256", "TLS 1.2")
    contains(one, "Compression: NONE", "compression")
    contains(one, "no renegotiation", "a renegotiation")
    contains(s_client("-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"),
             "Cipher is TLS_AES_128_GCM_SHA256", "the server's order of ciphers")
    contains(s_client("-tls1_2", listener=1), "Cipher is (NONE)", "TLS 1.2 where 1.3 is wanted")
    contains(s_client("-groups", "X25519:P-384", listener=2), "ECDH, secp384r1", "the group of the third listener")
    contains(s_client("-alpn", "h3,spdy/3"), "no application protocol", "unknown protocols of ALPN")
    contains(s_client("-alpn", "http/1.1,h2"), "ALPN protocol: h2", "ALPN")
    equal(one.count("New, TLSv1.2"), 1, "handshakes")
    true(site.counter("tls_failures_mismatch") >= 6, f"mismatches: {site.counter('tls_failures_mismatch')}")


def test_each_connection_gets_a_ticket(lab):
    """Clients use a ticket of TLS 1.3 only once, so a resumed connection needs another."""
    leaf = Authority(lab).leaf("a.test")
    site = Site(lab, ("reverse", [leaf.both], {}))
    context = trusting(ssl.TLSVersion.TLSv1_3)
    session, seen = None, set()
    for number in range(4):
        with site.connect("a.test", context=context, session=session) as connection:
            get(connection)
            equal(connection.session_reused, number > 0, f"connection {number} goes on")
            session = connection.session
            true(session.id not in seen, f"connection {number}: a new ticket")
            seen.add(session.id)


def session_of(site, name, context, listener=0):
    with site.connect(name, listener, context) as connection:
        get(connection, host=name)
        return connection.session


def resumes(site, name, context, session, listener=0):
    with site.connect(name, listener, context, session) as connection:
        get(connection, host=name)
        return connection.session_reused


def test_tickets(lab):
    root = Authority(lab)
    ca = Authority(lab, "clients")
    leaf, second = root.leaf("a.test", "b.test"), root.leaf("c.test")
    alice = ca.sign("alice", usage=CLIENT)
    demanding = {"client_certificate": "required", "client_ca": f'"{ca.file}"'}
    plain = (("reverse", [leaf.both, second.both], {}), ("reverse", [leaf.both], {}),
             ("reverse", [leaf.both], {"session_tickets": "false"}))
    site = Site(lab, *plain, workers=2)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = trusting(version)
        session = session_of(site, "a.test", context)
        true(session is not None and session.has_ticket, f"{version}: a ticket")
        for _ in range(8):  # of both workers
            equal(resumes(site, "a.test", context, session), True, f"{version}: the same name")
        for name, listener in (("b.test", 0), ("c.test", 0), ("unknown.test", 0), (None, 0), ("a.test", 1)):
            equal(resumes(site, name, context, session, listener), False, f"{version}: {name} at listener {listener}")
        equal(site.reload().status, 200, "reload")
        equal(resumes(site, "a.test", context, session), True, f"{version}: after a reload")
        none = session_of(site, "a.test", context, 2)
        true(none is None or not none.has_ticket, f"{version}: session_tickets = false")
    with_alice = trusting(ssl.TLSVersion.TLSv1_3)
    session = session_of(site, "a.test", with_alice)
    demands = (("reverse", [leaf.both, second.both], demanding), *plain[1:])
    equal(site.reload(*demands).status, 200, "reload with client certificates")
    contains(alert(lambda: resumes(site, "a.test", with_alice, session)), "CERTIFICATE_REQUIRED",
             "a session from before certificates were required")
    with_alice.load_cert_chain(alice.file, alice.key)
    equal(resumes(site, "a.test", with_alice, session), False, "the same, with a certificate")
    session = session_of(site, "a.test", with_alice)
    equal(resumes(site, "a.test", with_alice, session), True, "the session of a client with a certificate")
    equal(site.reload(("reverse", [leaf.both, second.both], {**demanding, "client_crl": f'"{ca.crl(alice)}"'}), *plain[1:]).status,
          200, "reload with a CRL")
    contains(alert(lambda: resumes(site, "a.test", with_alice, session)), "CERTIFICATE_REVOKED",
             "a session of a certificate that was revoked since")


def test_client_certificates(lab):
    root, ca, strangers = Authority(lab), Authority(lab, "clients"), Authority(lab, "strangers")
    leaf = root.leaf("a.test")
    alice, bob, eve = ca.sign("alice", usage=CLIENT), ca.sign("bob", usage=CLIENT), strangers.sign("eve", usage=CLIENT)
    late, server = ca.sign("late", usage=CLIENT, days=-1), ca.leaf("server")
    icap = IcapServer(lab, unchanged, methods="REQMOD")
    rules = {"client_ca": f'"{ca.file}"', "client_crl": f'"{ca.crl(bob)}"', "client_certificate_fields": "true"}
    site = Site(lab, ("reverse", [leaf.both], {**rules, "client_certificate": "required"}),
                ("reverse", [leaf.both], {**rules, "client_certificate": "optional"}),
                services=[Service("s", icap.uri(), point="reqmod_precache",
                                  include=["X-TLS-Client-Subject", "X-TLS-Client-Issuer", "X-TLS-Version"])])

    def answers(certificate, listener=0, version=None, more=""):
        with site.connect("a.test", listener, trusting(version, certificate=certificate)) as connection:
            return json.loads(get(connection, "/echo", more=more)[1])["headers"]

    seen = answers(alice, more="X-SSL-Client-Subject: CN=root\r\nx-ssl-client-other: 1\r\n")
    for field in (["X-SSL-Client-Subject", "CN=alice"], ["X-SSL-Client-Issuer", "CN=clients"],
                  ["X-SSL-Client-Verify", "SUCCESS"], ["X-Forwarded-Proto", "https"],
                  ["X-SSL-Client-Fingerprint", hashlib.sha256(alice.der).hexdigest()]):
        contains(seen, field, "what the origin sees")
    equal([name for name, _ in seen if name.lower().startswith("x-ssl")].count("X-SSL-Client-Subject"), 1, "subjects")
    lacks([name for name, _ in seen], "x-ssl-client-other", "what the origin sees")
    entry = site.proxy.last(1)
    equal((entry["tls_client_subject"], entry["tls_version"]), ("CN=alice", "TLSv1.3"), "the access log")
    told = icap.transactions[-1].request.header
    equal((told("X-TLS-Client-Subject"), told("X-TLS-Client-Issuer"), told("X-TLS-Version")),
          ("CN=alice", "CN=clients", "TLSv1.3"), "what the service is told")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for certificate, why in ((None, "nobody"), (bob, "revoked"), (eve, "a stranger"), (late, "expired"),
                                 (server, "no certificate for clients")):
            reason = alert(lambda certificate=certificate, version=version: answers(certificate, 0, version))
            one_of(reason, ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE", "SSLV3_ALERT_CERTIFICATE_REVOKED",
                            "TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_CERTIFICATE_EXPIRED", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
                            "SSLV3_ALERT_BAD_CERTIFICATE"), f"{why}, {version}")
    equal(site.counter("tls_failures_certificate"), 10, "refused certificates")
    seen = answers(None, 1, more="X-SSL-Client-Verify: SUCCESS\r\n")
    equal([value for name, value in seen if name == "X-SSL-Client-Verify"], ["NONE"], "optional, and none is shown")
    contains(answers(alice, 1), ["X-SSL-Client-Subject", "CN=alice"], "optional, and a good one")
    contains(alert(lambda: answers(eve, 1)), "UNKNOWN_CA", "optional, and a bad one")
    with site.connect("a.test", 1, trusting(certificate=alice)) as connection:
        for _ in range(2):
            get(connection, "/text?say=mine&cc=max-age%3D60")
    with site.connect("a.test", 1) as connection:
        get(connection, "/text?say=mine&cc=max-age%3D60")
    equal(site.proxy.results("say=mine", 3), ["PASS", "PASS", "MISS"], "what the cache does for them")


def test_handshakes_are_bounded(lab):
    leaf = Authority(lab).leaf("a.test")
    limit = 2 if lab.patience == 1 else 6
    site = Site(lab, ("reverse", [leaf.both], {}), client={"handshake_timeout": f"{limit}s", "max_handshakes": 2})

    def silent(first=b""):
        raw = socket.create_connection(("127.0.0.1", site.ports[0]), timeout=10 * lab.patience)
        raw.sendall(first)
        return raw

    def ends(raw):
        try:
            while raw.recv(1000):
                pass
        except ConnectionResetError:
            pass

    with silent() as raw:
        seconds = measure(lambda: ends(raw))[1]
        true(seconds < limit + 0.5 * lab.patience, f"a silent connection lived for {seconds:.1f} s")
    with silent(b"\x16\x03\x01\x02\x00\x01") as raw:
        seconds = measure(lambda: ends(raw))[1]
        true(limit - 0.5 < seconds < limit + 0.5 * lab.patience, f"half a ClientHello lived for {seconds:.1f} s")
    equal(site.counter("tls_handshake_timeouts"), 2, "timeouts")
    with silent(b"\x16") as one, silent(b"\x16") as two:
        until(lambda: site.counter("tls_handshakes_open") == 2, 5 * lab.patience, "both handshakes")
        raw = silent(b"\x16")
        ends(raw)
        raw.close()
        equal(site.counter("tls_handshakes_refused"), 1, "refused: the others are young")
        time.sleep(1.1)
        with site.connect() as connection:
            contains(get(connection)[0], "200 OK", "a good client takes the place of the oldest")
        ends(one)
        equal(site.counter("tls_handshakes_open"), 1, "the second one stays")
        two.close()
    until(lambda: site.counter("tls_handshakes_open") == 0, 5 * lab.patience, "the end of all handshakes")
    equal(site.counter("tls_failures_closed"), 1, "the client that left")


@memcheck
def test_clear_text_where_tls_is_spoken_and_the_reverse(lab):
    leaf = Authority(lab).leaf("a.test")
    site = Site(lab, ("reverse", [leaf.both], {}))
    with socket.create_connection(("127.0.0.1", site.ports[0]), timeout=10 * lab.patience) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        text = b""
        while part := raw.recv(65536):
            text += part
    contains(text, b"HTTP/1.1 400", "clear text at the port of TLS")
    contains(text, b"this port speaks HTTPS", "the page")
    equal(site.proxy.last(1)["status"], 400, "logged status")
    equal(site.counter("tls_plain_requests"), 1, "counted")
    raw = socket.create_connection(site.proxy.reverse, timeout=10 * lab.patience)
    # Its library has read our page, or finds the connection closed before it has.
    reason = alert(lambda: trusting().wrap_socket(raw, server_hostname="a.test"))
    true(any(word in reason for word in ("WRONG_VERSION_NUMBER", "[Errno 0] Error", "EOF")), f"TLS at a port of clear text: {reason}")
    raw.close()


@memcheck
def test_reload(lab):
    lab.needs("admin")
    root = Authority(lab)
    old, new = root.leaf("a.test"), root.leaf("a.test", "b.test")
    path, key = lab.path("www.pem"), lab.path("www.pem.key")

    def install(certificate, private=None, mode=0o600):
        for target, source in ((path, certificate.file), (key, (private or certificate).key)):
            with open(source, "rb") as file, open(target + ".new", "wb") as copy:
                copy.write(file.read())
            os.chmod(target + ".new", mode)
            os.rename(target + ".new", target)

    install(old)
    site = Site(lab, ("reverse", [path], {}))
    with site.connect() as kept:
        contains(get(kept)[0], "200 OK", "before")
        for spoil, why in ((lambda: install(new, old), "do not belong together"),
                           (lambda: install(new, mode=0o644), "chmod 600"),
                           (lambda: lab.write("www.pem", "-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n"),
                            "can't be read"),
                           (lambda: os.unlink(path), "No such file")):
            spoil()
            answer = site.reload()
            equal(answer.status >= 400, True, f"the status of a reload ({why})")
            contains(answer.text(), why, "the answer to a reload")
            contains(answer.text(), path, "the answer to a reload")
            equal(shown(site, "a.test"), old.der, f"the certificate after a reload that was refused ({why})")
        install(new)
        equal(site.reload().status, 200, "a reload with a renewed certificate")
        equal(shown(site, "a.test"), new.der, "the renewed certificate")
        contains(get(kept)[0], "200 OK", "the connection from before")
    site.proxy.terminate()
    equal(site.proxy.wait_exit(), 0, "exit status")


def test_redirect_and_hsts(lab):
    leaf = Authority(lab).leaf("a.test")
    port = ports.take()
    site = Site(lab, ("reverse", [leaf.both], {"hsts": '"max-age=31536000"'}), ("reverse", [leaf.both], {}))
    extra = site.text() + f'listen "127.0.0.1:{port}" {{ mode = reverse redirect_to_https = 8443 }}\n'
    site.proxy.write_config(site.proxy.text(extra=extra))
    equal(site.proxy.reload().status, 200, "reload")

    def plain(method, target):
        with socket.create_connection(("127.0.0.1", port), timeout=10 * lab.patience) as raw:
            raw.sendall(f"{method} {target} HTTP/1.1\r\nHost: a.test:80\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: raw.recv(65536), b"")).decode()

    answer = plain("GET", "/a%20b/c?d=e%2Ff&g")
    contains(answer, "HTTP/1.1 301 ", "GET")
    contains(answer, "Location: https://a.test:8443/a%20b/c?d=e%2Ff&g\r\n", "GET")
    contains(plain("POST", "/form"), "HTTP/1.1 308 ", "POST")
    lacks(answer.lower(), "strict-transport", "clear text")
    contains(plain("GET", "/.well-known/acme-challenge/x"), "HTTP/1.1 200", "a challenge of ACME")
    field = "Strict-Transport-Security: max-age=31536000"
    for path in ("/text?say=a&cc=max-age%3D60&h=Strict-Transport-Security:max-age%3D5", "/text?say=b&h=strict-transport-security:c", "/text?status=404"):
        for _ in range(2):
            with site.connect() as connection:
                head, _body = get(connection, path)
            contains(head, field, f"{path} with hsts")
            equal(head.lower().count("strict-transport-security"), 1, f"fields of {path}")
    with site.connect(listener=1) as connection:
        lacks(get(connection)[0].lower(), "strict-transport", "a listener without hsts")


def test_a_forward_proxy_over_tls(lab):
    root = Authority(lab)
    leaf = root.leaf("proxy.test")
    site = Site(lab, ("forward", [leaf.both], {"local_destinations": "allow"}))
    equal(site.origin.body(10) is not None, True, "the origin's body")

    def curl(*words):
        done = subprocess.run(["curl", "-sS", "--max-time", "20", "--proxy-cacert", root.file, "--proxy",
                               f"https://proxy.test:{site.ports[0]}", "--resolve", f"proxy.test:{site.ports[0]}:127.0.0.1",
                               *words], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    equal(curl(site.origin.url("/text", say="through")), "through", "a request with an absolute URL")
    contains(site.proxy.last(1)["url"], "http://127.0.0.1", "the URL in the log")
    contains(curl("--proxytunnel", site.origin.url("/text", say="tunnel")), "403", "CONNECT to a port that is not allowed")


def test_refusals_at_load(lab):
    root = Authority(lab)
    good, expired, short = root.leaf("a.test"), root.leaf("a.test", days=-1), root.leaf("a.test", rsa=1024)
    other = root.leaf("a.test")
    wrong = Certificate(lab, "wrong", other.private, good.certificate, root)
    readable = root.leaf("a.test")
    os.chmod(readable.both, 0o604)
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()})
    ca = f'"{root.file}"'
    for mode, files, options, why in (
            ("reverse", [expired.both], {}, "expired on"),
            ("reverse", [short.both], {}, "2048 bits"),
            ("reverse", [wrong.both], {}, "do not belong together"),
            ("reverse", [readable.both], {}, "every user of this machine can open it"),
            ("reverse", [good.alone], {}, "without its private key"),
            ("reverse", ["/no/such/file"], {}, "No such file"),
            ("reverse", [good.both], {"ciphers": '"NONSENSE"'}, "ciphers: OpenSSL does not accept"),
            ("reverse", [good.both], {"groups": '"P-999"'}, "groups: OpenSSL does not accept"),
            ("reverse", [good.both], {"client_ca": ca}, "write: client_certificate = required"),
            ("reverse", [good.both], {"client_certificate": "required"}, "set client_ca"),
            ("reverse", [good.both], {"client_certificate": "required", "client_ca": '"/no/such/ca"'}, "No such file"),
            ("reverse", [good.both], {"client_certificate": "optional", "client_ca": ca, "client_crl": ca}, "no revocation list"),
            ("reverse", [good.both], {"hsts": '"yes"'}, "no max-age"),
            ("forward", [good.both], {"hsts": '"max-age=1"'}, "only reverse listeners"),
            ("reverse", [good.both], {"redirect_to_https": 443}, "speaks TLS itself")):
        text = proxy.text(extra=section(ports.take(), mode, files, **options))
        status, said = proxy.check_config(text)
        equal(status != 0, True, f"exit status ({why})")
        contains(said, why, "what -t says")
        contains(said, ".conf:", "what -t says")
    status, said = proxy.check_config(proxy.text(extra='listen "127.0.0.1:1" { mode = reverse hsts = "max-age=1" }'))
    contains(said, "has no certificates", "hsts without certificates")


def test_a_curve_that_few_take_is_told(lab):
    """RFC 8422, 5.3: "If the client has used a Supported Elliptic Curves Extension, the public key in the server's
    certificate MUST respect the client's choice of elliptic curves". """
    root = Authority(lab)
    odd, good = root.leaf("odd.test", curve=ec.SECP521R1()), root.leaf("good.test", curve=ec.SECP384R1())
    site = Site(lab, ("reverse", [odd.both, good.both], {}))
    status, said = site.proxy.check_config(site.proxy.text())
    equal(status, 0, f"exit status ({said})")
    contains(said, f"{odd.both} (odd.test) has a key of the curve secp521r1", "what -t says")
    lacks(said, f"{good.both} (good.test) has a key", "what -t says")


def test_expiry_is_told(lab):
    root = Authority(lab)
    good, soon = root.leaf("a.test", "b.test", days=90.5), root.leaf("soon.test", days=10.5)
    site = Site(lab, ("reverse", [good.both, soon.both], {}))
    proxy = site.proxy
    told = {each["name"]: each["days"] for each in proxy.status()["certificates"]}
    equal(told, {"a.test": 90, "soon.test": 10}, "days in the status")
    contains(proxy.ctl("status"), "soon.test", "retortctl status")
    metrics = proxy.admin("GET", "/metrics").text()
    left = re.search(r'retort_certificate_expiry_seconds\{listen="127.0.0.1:%d",file="%s",name="soon.test"\} (\d+)'
                     % (site.ports[0], re.escape(soon.both)), metrics)
    true(left and 10.4 * 86400 < int(left.group(1)) <= 10.5 * 86400, f"the metric: {left}")
    equal(metrics.count("# TYPE retort_certificate_expiry_seconds"), 1, "TYPE lines")
    contains(proxy.process.log(), soon.both + " (soon.test) expires in 10 days", "the log")
    lacks(proxy.process.log(), good.both, "the log")
