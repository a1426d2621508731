"""ICAP as others wrote it in Python: PyPI's pyicap as the server of the proxy, python-icap as the client of our services."""

import collections
import collections.abc
import os
import socketserver
import sys
import threading

from harness import ports
from harness.checks import Skip, contains, equal, true
from harness.lab import DATA
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.services import Services

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
PAGE = b"<html><head><title>t</title></head><body>" + b"<p>text</p>" * 500 + b"</body></html>"


def package(name):
    sys.path.insert(0, os.path.join(DATA, "python"))
    try:
        return __import__(name)
    except ImportError:
        raise Skip("run tests/data/fetch.sh") from None
    finally:
        del sys.path[0]


class Pyicap:
    """Services /mark, which puts a line in front of responses, and /leave, which leaves them alone."""

    MARK = b"marked by pyicap\n"

    def __init__(self):
        collections.Callable = collections.abc.Callable  # it is older than Python 3.10, which took that name away
        pyicap = package("pyicap")
        mark = self.MARK

        class Handler(pyicap.BaseICAPRequestHandler):
            def options(self):
                self.set_icap_response(200)
                for name, value in ((b"Methods", b"RESPMOD"), (b"Preview", b"16"), (b"Transfer-Preview", b"*"),
                                    (b"Allow", b"204")):
                    self.set_icap_header(name, value)
                self.send_headers(False)

            mark_OPTIONS = leave_OPTIONS = options

            def whole(self):
                body = b""
                while chunk := self.read_chunk():
                    body += chunk
                if self.preview and not self.ieof:
                    self.cont()
                    while chunk := self.read_chunk():
                        body += chunk
                return body

            def mark_RESPMOD(self):
                body = self.whole() if self.has_body else b""
                self.set_icap_response(200)
                self.set_enc_status(b" ".join(self.enc_res_status))
                for name, values in self.enc_res_headers.items():
                    for value in values:
                        if name != b"content-length":
                            self.set_enc_header(name, value)
                self.send_headers(True)
                self.write_chunk(mark + body)
                self.write_chunk(b"")

            def leave_RESPMOD(self):
                self.no_adaptation_required()

            def log_message(self, *_):
                """To nobody."""

        class Server(socketserver.ThreadingMixIn, pyicap.ICAPServer):
            daemon_threads = True

        self.port = ports.take()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def uri(self, service):
        return f"icap://127.0.0.1:{self.port}/{service}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def test_pyicap(lab):
    server, origin, plain = Pyicap(), Origin(lab), Retort(lab)
    try:
        for service, mark in (("mark", Pyicap.MARK), ("leave", b"")):
            proxy = Retort(lab, services=[Service(service, server.uri(service), "respmod_precache", max_connections=1)])
            for size in (0, 5, 16, 17, 100_000):
                path = origin.url(f"/bytes?n={size}&cc=no-store")
                equal(proxy.get(path).body, mark + plain.get(path).body, f"/{service}, {size} bytes")
            proxy.stop()
    finally:
        server.close()


def test_python_icap(lab):
    """It reads no further than the head of ICAP, which c-icap sends first: so it is asked for verdicts, once a connection."""
    icap, services = package("icap"), Services(lab, names=("adremover", "inject", "gzip"))

    def ask(call, *arguments, **options):
        with icap.IcapClient("127.0.0.1", services.cicap.port) as client:
            return getattr(client, call)(*arguments, **options)
    page = b"GET http://www.example.com/page.html HTTP/1.1\r\nHost: www.example.com\r\nAccept-Encoding: gzip\r\n\r\n"
    ad = b"GET http://ads.example/x.gif HTTP/1.1\r\nHost: ads.example\r\n\r\n"
    for service, method in (("gzip", "RESPMOD"), ("inject", "RESPMOD"), ("adremover", "REQMOD")):
        contains(ask("options", service).headers["Methods"], method, f"OPTIONS of {service}")
    answer = ask("respmod", "gzip", page, HEAD % len(PAGE) + PAGE)
    equal(answer.status_code, 200, "gzip: status")
    contains(answer.headers["Encapsulated"], "res-hdr=0, res-body=", "gzip: what it encapsulates")
    for preview in (None, 1, 100, 1024, 4096):
        equal(ask("respmod", "inject", page, HEAD % len(PAGE) + PAGE, preview=preview).status_code, 200, f"inject, preview {preview}")
    small = b"small"
    true(ask("respmod", "gzip", page, HEAD % len(small) + small).is_no_modification, "gzip: too small to gain")
    contains(ask("reqmod", "adremover", ad).headers["Encapsulated"], "req-hdr=0", "adremover: an ad")
    contains(ask("reqmod", "adremover?target=answer", ad).headers["Encapsulated"], "res-body=", "adremover: an ad, answered")
    true(ask("reqmod", "adremover", page).is_no_modification, "adremover: no ad")
