"""examples/hello-service: built against what `make install` puts down, and run in c-icap behind the proxy."""

import os
import shutil
import subprocess

from harness.checks import contains, equal, one_of, same_bytes, true, until
from harness.cicap import Cicap, Module
from harness.lab import SOURCE
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service

OPTIONS = 'hello.Greeting "Good day"'


def run(command, where, **environment):
    done = subprocess.run(command, cwd=where, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    true(done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-3000:]}")
    return done.stdout


def find(top, name):
    found = [os.path.join(directory, name) for directory, _, names in os.walk(top) if name in names]
    equal(len(found), 1, f"files named {name} below {top}")
    return found[0]


def installed_module(lab, checked=False):
    """The module, made from a copy of the example: nothing of the source tree is at hand."""
    root = lab.path("root")
    run(["make", "install", f"DESTDIR={root}"], lab.builddir, MAKEFLAGS="")
    example = shutil.copytree(os.path.join(SOURCE, "examples/hello-service"), lab.path("hello"))
    settings = {"PKG_CONFIG": "pkg-config --define-prefix",
                "PKG_CONFIG_PATH": os.path.dirname(find(root, "retort-service.pc"))}
    run(["make", "CFLAGS=-O1 -g -Wall -Wextra -Werror"], example, MAKEFLAGS="", **settings)
    if checked:
        check_headers(root)
        check_docdir(root, settings)
        check_template(lab, root, settings)
        report = shutil.copytree(os.path.join(SOURCE, "examples/report-service"), lab.path("report"))
        run(["make", "-f", "../hello/Makefile", "NAME=report", "CFLAGS=-O1 -g -Wall -Wextra -Werror", "report.so"], report, MAKEFLAGS="", **settings)
        manager = shutil.copytree(os.path.join(SOURCE, "examples/content-manager"), lab.path("manager"))
        run(["make", "CFLAGS=-O1 -g -Wall -Wextra -Werror"], manager, MAKEFLAGS="", **settings)
    return os.path.join(example, "srv_hello.so")


def check_headers(root):
    """Each header can be included alone, with what is installed and no more."""
    top = os.path.dirname(os.path.dirname(find(root, "service.h")))
    headers = [os.path.join(directory, name) for directory, _, names in os.walk(top) for name in names if name.endswith(".h")]
    true(len(headers) > 20, f"headers below {top}")
    run(["cc", "-x", "c", "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-pragma-once-outside-header",
         f"-I{top}", *headers], root)


def check_docdir(root, settings):
    """pkg-config says where the guides are."""
    command = f"{settings['PKG_CONFIG']} --variable=docdir retort-service"
    said = run(command.split(), root, PKG_CONFIG_PATH=settings["PKG_CONFIG_PATH"]).strip()
    true(os.path.exists(os.path.join(said, "SERVICES.md")), f"SERVICES.md in {said}")


def check_template(lab, root, settings):
    """What is installed to begin with builds under another name, and its own tests run with the installed program."""
    template = os.path.dirname(os.path.dirname(find(root, "no-length.http")))
    mine = shutil.copytree(template, lab.path("mine"))
    with open(os.path.join(mine, "README.md"), encoding="utf-8") as readme:
        commands = [line.strip() for line in readme if line.startswith(("    sed -i", "    cd mine && mv"))]
    equal(len(commands), 3, "what the README says to do with a copy")
    for command in commands:
        run(["sh", "-c", command.replace("cd mine && ", "")], mine)
    tester = os.path.join(os.path.dirname(find(root, "retortctl.1")), "../../../bin/retort-service-test")
    said = run(["make", "check", f"TESTER={tester}"], mine, MAKEFLAGS="", **settings, **lab.environment())
    contains(said, "messages/text.http: adapted, 27 bytes in, 41 out", "a text that is greeted")
    contains(said, "messages/page.http: unchanged", "a page that is not")
    contains(said, "mine: 4 messages, ", "what was tested")
    contains(said, "all promises were kept", "the verdict")


class Text:
    """An origin whose texts say their length or do not, and those that nobody shall greet."""

    def __init__(self, lab):
        self.bodies = {"/short": b"One line.\n", "/long": b"many lines\n" * 50_000, "/empty": b""}
        self.origin = RawOrigin(lab, self.answer)

    def answer(self, connection, seen):
        path, _, how = seen.target.partition("?")
        body = self.bodies[path]
        kind = b"text/html" if "html" in how else b"text/plain"
        cached = b"Cache-Control: max-age=60" + (b", no-transform" if "keep" in how else b"") + b"\r\n"
        framing = b"Content-Length: %d" % len(body)
        if "chunked" in how:
            framing, body = b"Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        connection.send(b'HTTP/1.1 200 OK\r\nETag: "one"\r\nContent-Type: ' + kind + b"\r\n" + cached + framing
                        + b"\r\n\r\n" + body)


def check_greeted(text, proxy, greeting):
    for path, body in text.bodies.items():
        for how in ("", "?chunked"):
            seen = proxy.get(text.origin.url(path + how))
            if not body:
                equal((seen.status, seen.body), (200, b""), "an empty text")
                continue
            same_bytes(seen.body, greeting + body, path + how)
            equal(seen.header("ETag"), 'W/"one"', "the ETag of what is not the origin's text any more")
            one_of(seen.header("Content-Length"), (None, str(len(greeting + body))), f"{path}: Content-Length")


def test_hello_service(lab):
    module = installed_module(lab, checked=True)
    cicap = Cicap(lab, [Module("hello", module, OPTIONS)])
    text = Text(lab)
    proxy = Retort(lab, services=[Service("hello", cicap.uri("hello"), bypass=False)])
    check_greeted(text, proxy, b"Good day, world!\n")
    for left_alone in ("/short?html", "/short?keep"):
        same_bytes(proxy.get(text.origin.url(left_alone)).body, text.bodies["/short"], left_alone)
    same_bytes(proxy.get(text.origin.url("/short")).body, b"Good day, world!\n" + text.bodies["/short"], "the hit")
    proxy.log(9)
    equal(proxy.last()["result"], "HIT", "asked for again")

    named = Retort(lab, services=[Service("hello", cicap.uri("hello") + "?name=reader", bypass=False)])
    check_greeted(text, named, b"Good day, reader!\n")
    equal(named.get(Origin(lab).url("/bytes", n=10, type="text/plain", status=404)).status, 404, "another status")


def test_hello_service_says_what_is_wrong(lab):
    """A setting that it refuses stops it, with a sentence, and c-icap goes on."""
    module = installed_module(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")], extra=f'Service hello {module}\nhello.Greeting ""')
    until(lambda: "hello.Greeting" in cicap.server_log(), 10, "what is wrong, in c-icap's log")
    contains(cicap.server_log(), "say something", "what to do about it")
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=False)])
    equal(proxy.get(Origin(lab).url("/bytes", n=10)).status, 200, "a response that another service of the same c-icap has read")
