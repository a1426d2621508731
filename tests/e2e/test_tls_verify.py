"""Which servers are believed: a set of bad certificates, as of badssl.com, with openssl s_server and through real hosts for AIA."""

import itertools
import signal
import subprocess
import threading

from harness import ports
from harness.certificates import OCSP_SIGNING, Authority, self_signed
from harness.checks import contains, equal, lacks, true, until
from harness.network import Network
from harness.process import Process
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck

PUBLIC = "203.0.113.80"  # of the host with the authority's files
GOOD = 200


class Server:
    """`openssl s_server`, which answers each request with a page."""

    def __init__(self, lab, certificate, *words, chain=True, staple=None):
        self.port = ports.take()
        files = ["-cert", certificate.alone, "-key", certificate.key]
        if chain and certificate.issuer and certificate.issuer.issuer:
            files += ["-cert_chain", certificate.issuer.file]
        if staple:
            path = lab.path(f"{certificate.label}-{self.port}.ocsp")
            with open(path, "wb") as file:
                file.write(staple)
            files += ["-status_file", path]
        command = ["openssl", "s_server", "-accept", f"127.0.0.1:{self.port}", "-www", "-quiet", *files, *words]
        self.process = Process(lab, lab.unique("s_server"), command, stop_signal=signal.SIGKILL, expected_status=-signal.SIGKILL)
        lab.opens(self.process)
        self.process.wait_listening(("127.0.0.1", self.port))


class Scene:
    """The authorities, and one proxy that trusts the root."""

    def __init__(self, lab):
        self.root = Authority(lab)
        self.middle = self.root.intermediate("middle")
        self.weak = Authority(lab, "weak", rsa=2048)
        self.both = lab.write("both.pem", self.root.pem().decode() + self.weak.pem().decode())
        self.proxy = Retort(lab, origin={"ca_file": self.both})


def share(lab):
    return Scene(lab)


numbers = itertools.count()
expected = []  # proxy, a part of the URL, and words in the log


def check(proxy, server, words, host="localhost", what=""):
    """`words`: what the page and the log say; None: the server is believed."""
    path = f"/number-{next(numbers)}-"
    answer = proxy.get(f"https://{host}:{server.port}{path}", timeout=20)
    equal(answer.status, 502 if words else GOOD, f"{what} {words}: status of {answer.text()[:300]}")
    if words:
        contains(answer.text().replace("&#39;", "'"), words, f"{what}: the page")
        expected.append((proxy, path, words))


def check_logs():
    """Of all that was checked since the last call: the lines are written a little later."""
    for proxy, path, words in expected:
        contains(proxy.entries(path)[0]["error"], words, f"the log about {path}")
    expected.clear()


def test_names(lab, scene):
    """RFC 9525: only what the subjectAltName has counts, and wildcards for one whole label."""
    cases = [
        (("localhost",), {}, "localhost", None),
        (("127.0.0.1",), {}, "127.0.0.1", None),
        (("*.test.localhost",), {}, "a.test.localhost", None),
        (("*.test.localhost",), {}, "a.b.test.localhost", "is not for a.b.test.localhost"),
        (("*.test.localhost",), {}, "test.localhost", "is not for test.localhost"),
        (("*.localhost",), {}, "a.localhost", "is not for a.localhost"),
        (("a*.test.localhost",), {}, "ab.test.localhost", "is not for ab.test.localhost"),
        (("other.example", "*.third.example"), {}, "localhost", "(other.example, *.third.example)"),
        ((), {"cn": "localhost"}, "localhost", "the common name does not count"),
        (("other.example",), {"cn": "localhost"}, "localhost", "is not for localhost"),
        ((), {"cn": "127.0.0.1"}, "127.0.0.1", "is not for 127.0.0.1"),
    ]
    for names, options, host, words in cases:
        check(scene.proxy, Server(lab, scene.middle.leaf(*names, **options)), words, host, f"{names} for {host}")
    check_logs()


def test_an_address_is_no_name(lab, scene):
    from cryptography.x509 import DNSName
    check(scene.proxy, Server(lab, scene.middle.leaf(DNSName("127.0.0.1"), cn="x")), "is not for 127.0.0.1", "127.0.0.1")
    check_logs()


def test_chains(lab, scene):
    root, middle, other = scene.root, scene.middle, Authority(lab, "other")
    weak = "-cipher", "DEFAULT@SECLEVEL=0"
    cases = [
        (middle.leaf("localhost", days=-1), (), "its certificate expired on 20"),
        (middle.leaf("localhost", days=(2, 30)), (), "its certificate is not valid before 20"),
        (root.intermediate("old", days=-1).leaf("localhost"), (), "the certificate of its authority CN=old expired on 20"),
        (self_signed(lab, "localhost"), (), "its certificate is self-signed and not trusted"),
        (other.leaf("localhost"), (), "the issuer of its certificate (CN=other) is neither sent nor trusted"),
        (middle.leaf("localhost").leaf("localhost"), (), "is not that of an authority"),
        (middle.leaf("localhost", usage=OCSP_SIGNING), (), "is not for servers"),
        (root.leaf("localhost", rsa=1024), weak, "the key of its certificate is too weak (RSA, 1024 bits)"),
        (scene.weak.leaf("localhost", digest="sha1"), weak, "its certificate is signed with sha1"),
        (scene.weak.leaf("localhost", digest="md5"), weak, "its certificate is signed with md5"),
    ]
    for certificate, options, words in cases:
        check(scene.proxy, Server(lab, certificate, *options), words)
    check_logs()


def test_versions_and_key_exchange(lab, scene):
    good = scene.middle.leaf("localhost", rsa=2048)
    weak = lab.path("dh1024.pem")
    subprocess.run(["openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:modp_1536", "-out", weak],
                   check=True, capture_output=True)
    old = "-cipher", "ALL:@SECLEVEL=0"
    for options, words in ((("-tls1", *old), "does not speak TLS in a version that min_version allows"),
                           (("-tls1_1", *old), "does not speak TLS in a version that min_version allows"),
                           (("-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0", "-dhparam", weak),
                            "its key exchange is too weak"),
                           (("-tls1_2",), None), (("-tls1_3",), None)):
        check(scene.proxy, Server(lab, good, *options), words, what=str(options))
    proxy = Retort(lab, origin={"ca_file": scene.root.file, "min_version": "tls1.3"})
    check(proxy, Server(lab, good, "-tls1_2"), "in a version that min_version allows")
    check_logs()


def test_stapled_responses(lab, scene):
    middle = scene.middle
    plain, demanding = middle.leaf("localhost"), middle.leaf("localhost", must_staple=True)
    strict = Retort(lab, origin={"ca_file": scene.root.file, "check_staple": "strict"})
    off = Retort(lab, origin={"ca_file": scene.root.file, "check_staple": "off"})
    stranger = Authority(lab, "stranger")
    none = "demands a stapled OCSP response (must-staple), and it sent none"
    revoked, signer, old = "its certificate was revoked on 20", "it is not signed by the issuer", "it has expired"
    cases = [  # what is stapled; words for a plain certificate, for a strict proxy, for a certificate that demands it
        (None, None, None, none),
        (lambda it: middle.ocsp(it), None, None, None),
        (lambda it: middle.ocsp(it, signer=middle.leaf("ocsp", usage=OCSP_SIGNING)), None, None, None),
        (lambda it: middle.ocsp(it, revoked=True), revoked, revoked, revoked),
        (lambda it: middle.ocsp(it, revoked=True, days=-1), revoked, revoked, revoked),
        (lambda it: middle.ocsp(it, days=-1), None, old, old),
        (lambda it: middle.ocsp(it, unknown=True), None, "does not know the certificate", "does not know the certificate"),
        (lambda it: middle.ocsp(it, revoked=True, signer=stranger), None, signer, signer),
        (lambda it: middle.ocsp(it, signer=middle.leaf("not for ocsp")), None, signer, signer),
        (lambda it: middle.ocsp(middle.leaf("another")), None, "it is about another certificate", "it is about another certificate"),
    ]
    for number, (make, usual, stricter, demanded) in enumerate(cases):
        version = ("-tls1_2", "-tls1_3")[number % 2]
        for certificate, expected in ((plain, ((scene.proxy, usual), (strict, stricter))), (demanding, ((scene.proxy, demanded), (off, None)))):
            server = Server(lab, certificate, version, staple=make(certificate) if make else None)
            for proxy, words in expected:
                check(proxy, server, words, what=f"case {number} {version}")
    for version in ("-tls1_2", "-tls1_3"):
        check(scene.proxy, Server(lab, demanding, version), none)
        check(scene.proxy, Server(lab, plain, version, staple=middle.ocsp(plain, revoked=True)), revoked)
    check_logs()


def test_revocation_lists(lab, scene):
    root, middle = scene.root, scene.middle
    good, bad = middle.leaf("localhost"), middle.leaf("localhost")
    fallen = root.intermediate("fallen")
    below = fallen.leaf("localhost")

    def lists(*files):
        return lab.write(f"lists{lists.number()}.pem", "".join(open(file, encoding="ascii").read() for file in files))
    lists.number = iter(range(100)).__next__
    cases = [
        (lists(middle.crl(bad)), good, None),
        (lists(middle.crl(bad)), bad, "its certificate was revoked on 20"),
        (lists(middle.crl(bad), root.crl()), good, None),
        (lists(middle.crl(), root.crl(fallen), fallen.crl()), below, "the certificate of its authority CN=fallen was revoked on 20"),
        (lists(root.crl()), good, "crl_file has no revocation list of CN=middle"),
        (lists(middle.crl(days=-1)), good, "the revocation list of CN=middle in crl_file expired on 20"),
    ]
    for path, certificate, words in cases:
        proxy = Retort(lab, origin={"ca_file": root.file, "crl_file": path})
        check(proxy, Server(lab, certificate), words)
        check_logs()
        proxy.stop()


class Library:
    """An HTTP server of an authority on a host of its own. `.seen`: the paths that were asked for."""

    def __init__(self, lab):
        self.answers, self.seen = {}, []
        self.origin = RawOrigin(lab, self._answer, PUBLIC)

    def url(self, path):
        return f"http://{PUBLIC}:{self.origin.port}{path}"

    def put(self, path, body, status="200 OK", more=b""):
        self.answers[path] = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status.encode(), len(body), more) + body
        return self.url(path)

    def redirect(self, path, target):
        return self.put(path, b"", "302 Found", b"Location: %s\r\n" % target.encode())

    def _answer(self, connection, request):
        self.seen.append(request.target)
        connection.send(self.answers.get(request.target, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))


@memcheck
def test_missing_intermediates(lab, scene):
    network, root = Network(lab), scene.root
    network.server.address("eth0", f"{PUBLIC}/32")
    network.router.ip(f"route add {PUBLIC}/32 dev side2")
    with network.server:
        library = Library(lab)
    with network.router:
        proxy = Retort(lab, origin={"ca_file": root.file, "fetch_intermediates": True}, workers=2)
        private = RawOrigin(lab, lambda connection, request: True)

        def middle(name, at, **options):
            made = root.intermediate(name, **options)
            return made, library.put(at, made.der)

        def missing(authority, url):
            return Server(lab, authority.leaf("localhost", issuers=url), chain=False)

        der, at = middle("der", "/der")
        for _ in range(3):
            check(proxy, missing(der, at), None, what="DER")
        equal(library.seen.count("/der"), 1, "requests for a certificate that is remembered")
        pem = root.intermediate("pem")
        check(proxy, missing(pem, library.put("/pem", pem.pem())), None, what="PEM")
        bag, file = root.intermediate("bag"), lab.path("bag.p7c")
        subprocess.run(["openssl", "crl2pkcs7", "-nocrl", "-certfile", bag.alone, "-outform", "DER", "-out", file], check=True)
        with open(file, "rb") as bytes_of:
            check(proxy, missing(bag, library.put("/p7c", bytes_of.read())), None, what="PKCS #7")
        chunked = root.intermediate("chunked")
        library.answers["/chunked"] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (
            len(chunked.der), chunked.der)
        check(proxy, missing(chunked, library.url("/chunked")), None, what="chunked")

        # Several in a row: four requests are allowed, redirects included.
        def row(length, name):
            authority = root
            for number in range(length):
                url = library.put(f"/{name}{number}", authority.der)
                authority = authority.intermediate(f"{name}{number}", issuers=url if number else None)
            return missing(authority, library.put(f"/{name}", authority.der))
        check(proxy, row(4, "four"), None, what="four in a row")
        check(proxy, row(5, "five"), "too many certificates are missing", what="five in a row")
        for count in (3, 4, 11):
            moved, at = middle(f"moved{count}", f"/moved{count}-0")
            for number in range(count):
                library.redirect(f"/moved{count}-{number + 1}", library.url(f"/moved{count}-{number}") if number % 2 else f"/moved{count}-{number}")
            words = None if count <= 3 else "it redirects too often"
            check(proxy, missing(moved, library.url(f"/moved{count}-{count}")), words, what=f"{count} redirects")
        true(len([path for path in library.seen if path.startswith("/moved11")]) <= 4, "requests for eleven redirects")
        library.redirect("/loop", "/loop")
        large, stranger = root.intermediate("large"), Authority(lab, "stranger")
        chained = stranger.intermediate("chained")
        own = f"http://127.0.0.1:{private.port}/x"
        hidden = root.intermediate("hidden")
        cases = [
            (hidden, library.url("/nothing"), "the answer was 404"),
            (hidden, library.url("/loop"), "it redirects too often"),
            (hidden, library.put("/html", b"<html>none</html>"), "the answer contains no certificate"),
            (large, library.put("/large", large.pem() + b"\n" * 65536), "it is larger than 65536 bytes"),
            (hidden, own, "it leads to a private network or to the proxy's own machine"),
            (hidden, own.replace("127.0.0.1", "localhost"), "it leads to a private network or to the proxy's own machine"),
            (hidden, f"http://{network.server.v4}:{private.port}/x", "it leads to a private network"),
            (hidden, library.redirect("/inside", own), "it leads to a private network or to the proxy's own machine"),
            (hidden, library.redirect("/secure", "https://ca.example/x"), "it redirects to a URL that is not http"),
            (hidden, "https://ca.example/x", None),
            (hidden, "ldap://ca.example/x", None),
            (hidden, library.put("/wrong", der.der), "it is not what is there"),
            (chained, library.put("/chained", chained.der), "the issuer of its certificate (CN=stranger) is neither sent nor trusted"),
        ]
        for authority, url, words in cases:
            check(proxy, missing(authority, url), words or "the certificate names no http URL for it", what=url)
        equal(private.requests, [], "requests to private addresses")
        chunked_most = [path for path in library.seen if path == "/large"]
        equal(len(chunked_most), 1, "requests for what is too large")
        expired, at = middle("expired", "/expired", days=-1)
        check(proxy, missing(expired, at), "the certificate of its authority CN=expired expired on 20")
        true(proxy.counter("intermediates_fetched") >= 8 and proxy.counter("intermediates_failed") >= 8, "metrics")

        off = Retort(lab, origin={"ca_file": root.file, "fetch_intermediates": False})
        fresh, at = middle("fresh", "/fresh")
        check(off, missing(fresh, at), "the issuer of its certificate (CN=fresh) is neither sent nor trusted")
        lacks(library.seen, "/fresh", "requests when fetching is off")
        check_logs()


def test_a_client_that_leaves(lab, scene):
    """While a certificate is fetched: the fetch goes on, and serves the next client."""
    lab.needs("pki")
    network, root, ready = Network(lab), scene.root, threading.Event()
    network.server.address("eth0", f"{PUBLIC}/32")
    network.router.ip(f"route add {PUBLIC}/32 dev side2")
    slow = root.intermediate("slow")

    def answer(connection, _request):
        ready.wait(20)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(slow.der) + slow.der)
    with network.server:
        library = RawOrigin(lab, answer, PUBLIC)
    with network.router:
        proxy = Retort(lab, origin={"ca_file": root.file})
        server = Server(lab, slow.leaf("localhost", issuers=f"http://{PUBLIC}:{library.port}/x"), chain=False)
        wire = proxy.wire(timeout=20)
        wire.send(f"GET https://localhost:{server.port}/ HTTP/1.1\r\nHost: localhost:{server.port}\r\n\r\n".encode())
        until(lambda: library.requests, 20, "a request for the certificate")
        wire.close()
        threading.Timer(0.1, ready.set).start()
        check(proxy, server, None)
        equal(len(library.requests), 1, "one fetch serves both")
        check_logs()
