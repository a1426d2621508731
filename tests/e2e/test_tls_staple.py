"""OCSP responses that listeners staple to their certificates: from files, and fetched by the proxy itself."""

import re
import subprocess

from harness import ports
from harness.certificates import Authority
from harness.checks import contains, equal, lacks, true, until
from harness.raw_origin import RawOrigin
from harness.retort import Retort, run_check
from harness.suite import memcheck


class Responder:
    """An OCSP responder. `answer`: the bytes that it sends; None: an error."""

    def __init__(self, lab):
        self.answer, self.asked = None, []
        self.origin = RawOrigin(lab, self._answer)
        self.url = f"http://{self.origin.authority}/ocsp"

    def _answer(self, connection, request):
        self.asked.append((request.method, request.target, request.header("Content-Type"), request.body))
        status, body = (b"200 OK", self.answer) if self.answer else (b"500 Internal Server Error", b"")
        connection.send(b"HTTP/1.1 %s\r\nContent-Type: application/ocsp-response\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)


def start(lab, certificates, ocsp, **options):
    port = ports.take()
    files = ", ".join(f'"{each}"' for each in certificates)
    text = f'listen "127.0.0.1:{port}" {{ mode = reverse  certificates = {{ {files} }}  ocsp = {ocsp} }}\nmap "/" {{ origin = "http://127.0.0.1:1/" }}'
    proxy = Retort(lab, extra=text, **options)
    proxy.tls_port = port
    return proxy


def stapled(proxy, root, name="www.example.com", version="-tls1_3"):
    """What a client gets: "good", "revoked", or None."""
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{proxy.tls_port}", "-servername", name, "-status",
                           "-CAfile", root.file, version], input="", capture_output=True, text=True, timeout=20, check=False)
    contains(done.stdout, "Verify return code: 0", f"openssl s_client: {done.stderr}")
    found = re.search(r"Cert Status: (\w+)", done.stdout)
    if not found:
        contains(done.stdout, "OCSP response: no response sent", "openssl s_client")
    return found and found[1]


def put(certificate, response, name=".ocsp"):
    with open(certificate.both + name, "wb") as file:
        file.write(response)


def test_from_a_file(lab):
    root = Authority(lab)
    middle = root.intermediate("middle")
    www, other, bare = (middle.leaf(f"{name}.example.com") for name in ("www", "other", "bare"))
    put(www, middle.ocsp(www))
    put(other, middle.ocsp(other, revoked=True))
    files = [each.both for each in (bare, www, other)]
    proxy = start(lab, files, "file")
    for version in ("-tls1_2", "-tls1_3"):
        equal(stapled(proxy, root, version=version), "good", version)
        equal(stapled(proxy, root, "other.example.com", version), "revoked", version)
        equal(stapled(proxy, root, "bare.example.com", version), None, version)
        equal(stapled(proxy, root, "unknown.example", version), None, version)
    put(bare, middle.ocsp(bare))
    equal(stapled(proxy, root, "bare.example.com"), None, "before the reload")
    proxy.reload()
    equal(stapled(proxy, root, "bare.example.com"), "good", "after the reload")
    contains(proxy.ctl("status"), "good until 20", "retortctl status")
    off = start(lab, files, "off")
    equal(stapled(off, root), None, "ocsp = off")


def test_files_that_are_of_no_use(lab):
    root = Authority(lab)
    www = root.leaf("www.example.com")
    cases = [(b"nothing", "it is not a well-formed OCSP response"),
             (Authority(lab, "stranger").ocsp(www), "it is not signed by the issuer"),
             (root.ocsp(www, days=-1), "it has expired")]
    with open(www.both, "ab") as file:
        file.write(root.pem())
    for response, words in cases:
        put(www, response)
        proxy = start(lab, [www.both], "file")
        contains(proxy.process.log(), f"{www.both}.ocsp is not used: {words}", "warning")
        equal(stapled(proxy, root), None, words)
        proxy.stop()
    status, text = run_check(lab, proxy.config_path)
    true(status == 0 and "it has expired" in text, f"-t: {text}")


@memcheck
def test_fetched(lab):
    """At the start, again after a failure, and kept over a reload."""
    root, responder = Authority(lab), Responder(lab)
    middle = root.intermediate("middle")
    www = middle.leaf("www.example.com", ocsp=responder.url)
    responder.answer = Authority(lab, "stranger").ocsp(www)
    proxy = start(lab, [www.both], "fetch", workers=2)
    until(lambda: responder.asked, 10 * lab.patience, "a request")
    method, target, kind, body = responder.asked[0]
    equal((method, target, kind), ("POST", "/ocsp", "application/ocsp-request"), "the request")
    true(len(body) > 50, "the body of the request")
    until(lambda: "its OCSP response can't be fetched" in proxy.process.log(), 10 * lab.patience, "a warning")
    contains(proxy.process.log(), "it is not signed by the issuer", "the warning")
    equal(stapled(proxy, root), None, "before a response is there")
    contains(proxy.ctl("status"), "none: it is not signed by the issuer", "retortctl status")
    responder.answer = middle.ocsp(www)
    until(lambda: stapled(proxy, root) == "good", 20 * lab.patience, "a good response")
    equal(proxy.counter("staples_fetched"), 1, "fetched")
    asked = len(responder.asked)
    proxy.reload()
    equal(stapled(proxy, root), "good", "after a reload")
    equal(len(responder.asked), asked, "requests: the response is kept")
    proxy.reload()
    equal(stapled(proxy, root, version="-tls1_2"), "good", "after another one")


def test_revoked_and_without_a_responder(lab):
    root, responder = Authority(lab), Responder(lab)
    www, bare = root.intermediate("middle").leaf("www.example.com", ocsp=responder.url), root.leaf("bare.example.com")
    responder.answer = www.issuer.ocsp(www, revoked=True)
    proxy = start(lab, [www.both, bare.both], "fetch")
    until(lambda: stapled(proxy, root) == "revoked", 10 * lab.patience, "a response")
    contains(proxy.process.log(), "certificate www.example.com is revoked, says " + responder.url, "the log")
    until(lambda: "certificate bare.example.com: " in proxy.process.log(), 10 * lab.patience, "a warning")
    contains(proxy.process.log(), "names no OCSP responder", "the log")
    true(proxy.counter("staples_failed") >= 1, "failures")
    equal(stapled(proxy, root, "bare.example.com"), None, "without a responder")
    lacks(proxy.process.log(), "Unknown", "the log")
