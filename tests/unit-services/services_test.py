#!/usr/bin/env python3
"""The services as they run: c-icap with our modules, retort-helperd, its helpers, and an ICAP client.

    services_test.py [--builddir DIR] [--valgrind] [--keep] [NAME...]

Runs the functions test_* below (those whose name contains a NAME) against processes started in a
scratch directory, not as root if it need not be. With --valgrind all of them run under memcheck, and
an error or a definite leak in our code fails the run. Exit status 0 when all is well.
"""
import argparse
import base64
import contextlib
import ctypes
import fcntl
import glob
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(SOURCE, "tests", "e2e")]
sys.dont_write_bytecode = True
from harness.codings import DECODERS, decode  # noqa: E402
from icap import Broken, Connection, reqmod, respmod  # noqa: E402

REQUEST = "GET http://origin.example/a HTTP/1.1\nHost: origin.example\nAccept-Encoding: gzip\n"
PREVIEWS = (None, 0, 1, 100, 1024, 4096, 10**9)
VALGRIND = ["valgrind", "-q", "--trace-children=yes", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite", "--trace-children-skip=*pnm*,*ppm*,*/bmp*,*python*,*/sh,*/dash,*/head,*/upper-helper",
            "--num-callers=25", "--keep-debuginfo=yes"]


def head(kind, length=None, extra="", status="200 OK"):
    lines = ["HTTP/1.1 " + status, "Content-Type: " + kind, 'ETag: "tag"']
    if length is not None:
        lines.append("Content-Length: %d" % length)
    return "\n".join(lines) + "\n" + extra


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("waited %s s for %s" % (seconds, what))


class Lab:
    def __init__(self, options):
        self.options, self.build = options, os.path.abspath(options.builddir)
        self.dir = tempfile.mkdtemp(prefix="retort-services-")
        self.port, self.patience = free_port(), 10 if options.valgrind else 1
        self.stretch = 3 if options.valgrind else 1  # of deadlines
        self.socket = os.path.join(self.dir, "helperd.sock")
        self.processes = []
        self.write("rules.txt", "||ads.example^\n/banner/*\n@@||good.example^\n0.0.0.0 exact.example\n"
                   "||ads.example/named/$redirect-rule=noop.json\n||page.example^$removeparam=utm_id\n")
        self.write("texts.tsv", "10.0.0.0/8\t<b>ten %{ip}</b>\ndefault\t<b>%{ip}</b>\n")
        self.start_helperd()
        self.start_cicap()

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def spawn(self, name, command):
        log = open(self.path(name + ".log"), "ab")
        wrap = VALGRIND + ["--log-file=" + self.path("valgrind.%s.%%p" % name)] if self.options.valgrind else []
        process = subprocess.Popen(wrap + command, stdout=log, stderr=log, start_new_session=True)
        log.close()
        self.processes.append(process)
        return process

    def start_helperd(self):
        self.write("helperd.conf", """
            socket = "%s"
            pool gray { command = {"%s/icap-services/gray-helper"} processes = 2 nice = 10 queue = 4 deadline = "%ds" }
            pool text { command = {"%s/icap-services/text-helper", "--file", "%s"} nice = 1 deadline = "%ds" }
            pool slow { command = {"%s/icap-services/text-helper", "--delay", "200ms"} nice = 1 queue = 1 max_jobs = 1 deadline = "%ds" }
            pool broken { command = {"/nonexistent/helper"} deadline = "1s" }
            """ % (self.socket, self.build, 3 * self.stretch, self.build, self.path("texts.tsv"), 3 * self.stretch,
                   self.build, 3 * self.stretch))
        self.helperd = self.spawn("helperd", [self.build + "/icap-services/retort-helperd", "-f",
                                              self.path("helperd.conf")])
        until(lambda: os.path.exists(self.socket) and len(self.workers("gray", "idle")) == 2,
              10 * self.patience, "retort-helperd")

    def start_cicap(self):
        with open(os.path.join(SOURCE, "conf", "c-icap-build.conf.in"), encoding="utf-8") as file:
            text = file.read()
        for name, value in (("DIR", self.dir), ("BUILD", self.build), ("PORT", str(self.port))):
            text = text.replace("@%s@" % name, value)
        text += "\ngzip.SkipUrl http://secret.example/* */login?*"
        text += "\ngray.Deadline %ds\ngray.MaxSize 2M\ninject.Deadline %ds\n" % (4 * self.stretch, 2 * self.stretch)
        self.write("c-icap.conf", text)
        self.cicap = self.spawn("c-icap", ["c-icap", "-N", "-f", self.path("c-icap.conf")])
        until(self.answers, 20 * self.patience, "c-icap")

    def answers(self):
        try:
            return self.options_of("gzip").status == 200
        except (OSError, Broken):
            return False

    def options_of(self, service):
        connection = Connection(self.port)
        connection.socket.sendall(b"OPTIONS icap://127.0.0.1/%s ICAP/1.0\r\nHost: x\r\n\r\n" % service.encode())
        try:
            return connection.read_response()
        finally:
            connection.close()

    def command(self, **command):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            control.settimeout(5 * self.patience)
            control.connect(self.socket)
            control.send(json.dumps(command).encode())
            text = b""
            while not text.endswith(b"\n"):
                text += control.recv(1 << 16)
            return json.loads(text)

    def pool(self, name):
        return [pool for pool in self.command(call="helpers")["pools"] if pool["name"] == name][0]

    def workers(self, name, state=None):
        try:
            return [w["pid"] for w in self.pool(name)["workers"] if state in (None, w["state"])]
        except OSError:
            return []

    def stop(self, process, seconds=30):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(seconds * self.patience)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return False
        return True

    def close(self):
        stopped = [self.stop(process) for process in self.processes]
        findings = []
        for path in glob.glob(self.path("valgrind.*")):
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            # c-icap's own: blocks in which no frame is ours.
            for block in re.split(r"\n==\d+== \n", text):
                if re.search(r"srv_\w+\.so|retort-helperd|gray-helper|text-helper|/icap-services/|/common/", block):
                    findings.append(block)
        if not all(stopped):
            findings.append("a process did not stop when told to")
        if self.helperd.returncode != 0:
            findings.append("retort-helperd ended with %s" % self.helperd.returncode)
        if self.options.keep or findings:
            print("left behind:", self.dir)
        else:
            shutil.rmtree(self.dir)
        return findings


def picture(name):
    return open(os.path.join(PICTURES, name), "rb").read()


def netpbm(command, data):
    return subprocess.run(command, shell=True, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True).stdout


def every_way(lab, service, kind, body, check, length=True, request=REQUEST, **more):
    """Sends the body with every preview, with and without Allow: 204, with and without its length."""
    for preview in PREVIEWS:
        for allow in (False, True):
            for known in ((True, False) if length else (False,)):
                answer = respmod(lab.port, service, request=request,
                                 response=head(kind, len(body) if known else None), body=body, preview=preview,
                                 allow204=allow, **more)
                got = body if answer.status == 204 else answer.body
                try:
                    check(answer, got)
                except AssertionError as error:
                    raise AssertionError("%s of %d bytes, preview %s, allow 204 %s, length known %s: %s"
                                         % (kind, len(body), preview, allow, known, error)) from error


# ---- gzip ------------------------------------------------------------------------------------


def digits(chance, size):
    """Text that shrinks by half at most."""
    return chance.randbytes((size + 1) // 2).hex().encode()[:size]


def accepting(value):
    return REQUEST.replace("Accept-Encoding: gzip", "Accept-Encoding: " + value)


def test_gzip_every_way(lab):
    def check(answer, got):
        assert answer.status == 200, answer.status
        assert decode(coding, got) == body, "not the original"
        assert answer.header("content-encoding") == coding and answer.header("content-length") is None
        assert answer.header("vary") == "Accept-Encoding" and answer.header("etag") == 'W/"tag"'
        assert answer.header("accept-ranges") is None

    for coding in DECODERS:
        request = accepting(coding)
        for size in (256, 1024, 5000, 100000):
            body = (b"some text, again and again; " * (size // 28 + 1))[:size]
            every_way(lab, "gzip", "text/plain; charset=utf-8", body, check, request=request)
    body, coding = digits(random.Random(1), 300000), "gzip"
    every_way(lab, "gzip", "text/plain", body, check)


def test_gzip_chooses(lab):
    body = b"some text, again and again; " * 100
    for value, coding in (("gzip, deflate, br, zstd", "br"), ("gzip, zstd", "zstd"), ("gzip", "gzip"), ("*", "gzip"),
                          ("br;q=0.5, gzip", "gzip"), ("br;q=0, zstd;q=0.1, gzip;q=0.2", "gzip"), ("BR", "br"),
                          ("deflate", None), ("br;q=0", None), ("*;q=0, zstd", "zstd"), ("x-gzip", "gzip"),
                          ("gzip;q=0.9, br;q=0.9, zstd;q=0.8", "br")):
        answer = respmod(lab.port, "gzip", request=accepting(value), response=head("text/html", len(body)), body=body)
        assert answer.header("content-encoding") == coding, (value, answer.header("content-encoding"))
        assert decode(coding, answer.body) == body and answer.header("vary") == "Accept-Encoding", value


def test_gzip_levels_by_arguments(lab):
    chance = random.Random(4)
    words = [digits(chance, 2 + number % 9) for number in range(3000)]
    body = b" ".join(chance.choice(words) for _ in range(30000))
    for coding, low, high in (("gzip", "1", "9"), ("br", "0", "11"), ("zstd", "1", "19")):
        sizes = []
        for level in (low, high, "99"):  # what is no level changes nothing
            answer = respmod(lab.port, "gzip?%s=%s" % (coding, level), request=accepting(coding),
                             response=head("text/plain", len(body)), body=body, preview=1024)
            assert decode(coding, answer.body) == body
            sizes.append(len(answer.body))
        assert sizes[1] < sizes[0], (coding, sizes)


def test_gzip_leaves_alone(lab):
    body = b"x" * 2000
    cases = [
        (REQUEST.replace("GET", "POST"), head("text/html", 2000)),
        (REQUEST, head("text/html", 2000, status="404 Not Found")),
        (REQUEST, head("text/html", 2000, "Content-Encoding: br\n")),
        (REQUEST, head("text/html", 2000, "Vary: Cookie, accept-encoding\n")),
        (REQUEST, head("text/html", 2000, "Vary: *\n")),
        (REQUEST, head("text/html", 2000, "Cache-Control: max-age=1, no-transform\n")),
        (REQUEST, head("text/event-stream", 2000)),
        (REQUEST, head("image/jpeg", 2000)),
        (REQUEST, head("text/html", 100)),
        (REQUEST, "HTTP/1.1 200 OK\n"),
        (REQUEST.replace("origin.example/a", "secret.example/a"), head("text/html", 2000)),
        (REQUEST.replace("http://origin.example/a", "/login?next=/").replace("Host: origin", "Host: any"),
         head("text/html", 2000)),
    ]
    for request, response in cases:
        for preview in (None, 1024):
            for allow in (False, True):
                answer = respmod(lab.port, "gzip", request=request, response=response, body=body, preview=preview,
                                 allow204=allow)
                assert answer.status == 204 or answer.body == body, (request, response)
                if answer.status == 200:
                    assert answer.header("content-encoding") in (None, "br"), response
    answer = respmod(lab.port, "gzip", request=REQUEST, response=head("text/html"), body=b"short", preview=1024)
    assert answer.status == 204


def test_gzip_leaves_alone_what_does_not_shrink(lab):
    """Whether the client accepts it or not: everybody gets the same, so there is nothing to vary."""
    for size in (300, 1000, 1024, 100000):
        body = random.Random(size).randbytes(size)
        for request in (REQUEST, accepting("identity")):
            answer = respmod(lab.port, "gzip", request=request, response=head("text/html", size), body=body, preview=1024)
            assert answer.status == 204, (size, answer.status)


def test_gzip_not_accepted(lab):
    """The body stays, but caches must know that others may get another."""
    def check(answer, got):
        assert answer.status == 200 and got == body
        assert answer.header("vary") == "Accept-Encoding" and answer.header("content-encoding") is None
        assert answer.header("etag") == '"tag"' and answer.header("content-length") in (None, str(len(body)))

    for request in (accepting("gzip;q=0"), REQUEST.replace("Accept-Encoding: gzip\n", "")):
        for size in (300, 1024, 100000):
            body = digits(random.Random(size), size)
            every_way(lab, "gzip", "text/html", body, check, request=request)
            for preview in (0, 1024, 200000):
                connection = Connection(lab.port)
                for _ in range(3):
                    answer = connection.call("RESPMOD", "gzip", request=request, response=head("text/html", size),
                                             body=body, preview=preview, allow206=True)
                    assert answer.status == 206 and answer.body == b"" and answer.original == 0, answer.status
                    assert answer.header("vary") == "Accept-Encoding"
                    assert answer.header("content-length") == str(size)
                connection.close()


def test_gzip_streams(lab):
    """Output has to come while input is still to come, and little is kept inside."""
    for coding in DECODERS:
        arrived, chance = threading.Event(), random.Random(2)

        def pieces():
            for _ in range(100):
                yield digits(chance, 16384)
            assert arrived.wait(20 * lab.patience), "nothing came out of a megabyte"
            for _ in range(20):
                yield digits(chance, 16384)

        answer = respmod(lab.port, "gzip", request=accepting(coding), response=head("text/plain"), pieces=pieces(),
                         on_data=lambda data: arrived.set())
        again = random.Random(2)
        assert decode(coding, answer.body) == b"".join(digits(again, 16384) for _ in range(120)), coding


def test_gzip_lets_out_what_is_inside_when_the_sender_pauses(lab):
    """A page that drips: what was sent can be read before more is sent."""
    for coding in DECODERS:
        sent, seen, more = [], b"", threading.Event()

        def pieces():
            for number in range(8):
                sent.append(b"<p>line %d</p>" % number)
                more.clear()
                yield sent[-1]
                assert more.wait(20 * lab.patience), "%s: line %d did not come out" % (coding, number)
                time.sleep(0.03)  # the credit of a flush, at least

        def on_data(data):
            nonlocal seen
            seen += data
            if decode(coding, seen, whole=False) == b"".join(sent):
                more.set()

        answer = respmod(lab.port, "gzip", request=accepting(coding), response=head("text/html"), pieces=pieces(),
                         on_data=on_data)
        assert decode(coding, answer.body) == b"".join(sent), coding


# ---- adremover -------------------------------------------------------------------------------


def test_adremover(lab):
    def ask(line, fields="", **more):
        return reqmod(lab.port, "adremover", request=line + " HTTP/1.1\n" + fields, **more)

    for more in ({"preview": 0}, {"allow204": True}, {}):
        answer = ask("GET http://x.ads.example/a.gif?q=1", "Host: x.ads.example\nCookie: a=b\nIf-None-Match: x\n"
                     "Range: bytes=0-1\nAuthorization: Basic x\nAccept: */*\n", **more)
        assert answer.status == 200
        assert answer.http == "GET http://retort.internal/blank.gif HTTP/1.1", answer.http
        assert answer.header("host") == "retort.internal" and answer.header("accept") == "*/*"
        for name in ("cookie", "if-none-match", "range", "authorization"):
            assert answer.header(name) is None, name
        # Reverse and intercepted: the host stands in its field.
        answer = ask("GET /banner/x.gif", "Host: any.example:8080\n", **more)
        assert answer.http == "GET /blank.gif HTTP/1.1" and answer.header("host") == "retort.internal"
    for line, fields in (("GET http://good.example/banner/x", ""), ("GET http://other.example/", ""),
                         ("GET http://sub.exact.example/", ""),
                         ("OPTIONS *", "Host: ads.example\n"), ("CONNECT ads.example:443", "Host: ads.example:443\n")):
        answer = ask(line, fields, preview=0)
        assert answer.status == 204, (line, answer.status, answer.http)
    answer = ask("GET http://other.example/x", "Host: other.example\n")
    assert answer.status == 200 and answer.http == "GET http://other.example/x HTTP/1.1"
    answer = ask("POST http://other.example/x", "Content-Length: 100000\n", body=b"p" * 100000)
    assert answer.status == 200 and answer.body == b"p" * 100000
    assert ask("GET http://exact.example/", preview=0).status == 200
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):  # what brings a body is answered at once, and goes nowhere
        for body in (None, b"p" * 100000):
            for preview in (None, 0, 1024)[: 3 if body else 1]:
                answer = ask(method + " http://ads.example/beacon", "Content-Length: 100000\n" if body else "", body=body, preview=preview)
                assert answer.http == "HTTP/1.1 200 OK" and answer.header("cache-control") == "no-store", (method, answer.http)
                assert not answer.body, answer.body[:20]


def test_adremover_kinds(lab):
    """Each kind of request gets the neutral resource of its kind, or the one that a rule names."""
    def target(line, fields=""):
        return reqmod(lab.port, "adremover", request="GET %s HTTP/1.1\n%s" % (line, fields), preview=0).http

    for path, fields, name in (("x.js", "", "empty.js"), ("x.css?1", "", "empty.css"), ("x.mp4", "", "empty.mp4"),
                               ("x", "Sec-Fetch-Dest: iframe\n", "empty.html"),
                               ("x", "Accept: image/webp,*/*\n", "blank.gif"), ("x", "Accept: */*\n", "empty.txt"),
                               ("named/x.js", "", "empty.json")):
        got = target("http://ads.example/" + path, fields)
        assert got == "GET http://retort.internal/%s HTTP/1.1" % name, (path, fields, got)
    assert target("/x.js", "Host: ads.example\n") == "GET /empty.js HTTP/1.1"
    # What it asked for itself is let through.
    answer = reqmod(lab.port, "adremover", request="GET http://retort.internal/banner/empty.js HTTP/1.1\n", preview=0)
    assert answer.status == 204, answer.http


def test_adremover_strips(lab):
    """Parameters for tracking go, and the rest of the request stays."""
    for line, fields, wanted in (
            ("http://page.example/a?utm_id=1&b=2", "Host: page.example\n", "http://page.example/a?b=2"),
            ("/a?b=2&utm_id=1", "Host: page.example\n", "/a?b=2"),
            ("/?utm_id=1", "Host: page.example\n", "/")):
        request = "GET %s HTTP/1.1\n%sCookie: a=b\nSec-Fetch-Dest: document\n" % (line, fields)
        answer = reqmod(lab.port, "adremover", request=request, preview=0)
        assert answer.http == "GET %s HTTP/1.1" % wanted, (answer.status, answer.http)
        assert answer.header("cookie") == "a=b" and answer.header("host") == "page.example"
    answer = reqmod(lab.port, "adremover", preview=0, request="GET http://page.example/a?utm_id=1 HTTP/1.1\n"
                    "Sec-Fetch-Dest: image\n")
    assert answer.status == 204, answer.http


def test_adremover_answers(lab):
    """With target=answer nobody has to be asked: the response is there at once, on a connection that lives on."""
    connection = Connection(lab.port)
    for path, kind, start in (("x.gif", "image/gif", b"GIF89a"), ("x.js", "text/javascript", b""),
                              ("y.html?named", "text/html", b"<!DOCTYPE"), ("x.mp4", "video/mp4", b"\0\0\0")):
        for method in ("GET", "HEAD"):
            for more in ({}, {"preview": 0}, {"allow204": True}, {"body": b"p" * 70000}, {"body": b"pp", "preview": 1}):
                request = "%s http://ads.example/%s HTTP/1.1\nHost: ads.example\n%s" % (
                    method, path, "Sec-Fetch-Dest: iframe\n" if "html" in path else "")
                if "body" in more:
                    request += "Content-Length: %d\n" % len(more["body"])
                answer = connection.call("REQMOD", "adremover?target=answer", request=request, **more)
                assert answer.status == 200 and answer.http == "HTTP/1.1 200 OK", (answer.status, answer.http, more)
                assert answer.header("content-type") == kind and answer.header("cache-control") == "no-store"
                length = int(answer.header("content-length"))
                if method == "HEAD" or length == 0:
                    assert answer.body == (b"" if "body" in more else None), answer.body
                else:
                    assert len(answer.body) == length and answer.body.startswith(start), answer.body
    assert connection.call("REQMOD", "adremover?target=answer", request="GET http://fine.example/ HTTP/1.1\n",
                           preview=0).status == 204
    connection.close()


def test_adremover_reload(lab):
    """New lists come into force at once, with a new ISTag and without a request that fails."""
    stop, wrong, seen = threading.Event(), [], {}
    with open(lab.path("rules.txt"), encoding="utf-8") as file:
        before = file.read()

    def ask(connection):
        """A connection that ends between two requests is taken anew, as every ICAP client does."""
        for _ in range(3):
            try:
                return connection, connection.call("REQMOD", "adremover", preview=0,
                                                   request="GET http://reloaded.example/x.gif HTTP/1.1\n")
            except (OSError, Broken):
                assert connection.buffer == b"", "broken off within a response"
                connection.close()
                connection = Connection(lab.port)
        raise AssertionError("three connections ended without an answer")

    def run():
        try:
            connection = Connection(lab.port)
            while not stop.is_set():
                connection, answer = ask(connection)
                seen[answer.status, answer.headers["istag"][0]] = True
            connection.close()
        except Exception as error:  # pylint: disable=broad-except
            wrong.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: seen or wrong, 10 * lab.patience, "requests")
        lab.write("rules.txt", before + "||reloaded.example^\n")
        with open(lab.path("c-icap.ctl"), "w", encoding="ascii") as control:
            control.write("reconfigure")
        until(lambda: any(status == 200 for status, _ in list(seen)) or wrong, 30 * lab.patience, "the new list")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        lab.write("rules.txt", before)
    assert not wrong, wrong
    statuses = {}
    for status, tag in seen:
        statuses.setdefault(tag, set()).add(status)
    assert sorted(map(sorted, statuses.values())) == [[200], [204]], statuses


# ---- gray ------------------------------------------------------------------------------------


def check_gray(kind, original, luma, shape=None, off_by=0):
    """A check for every_way: decoded, the result has to be gray and of the same luminance."""
    def check(answer, got):
        assert answer.status == 200, answer.status
        assert got != original and answer.header("content-length") == str(len(got))
        assert answer.header("etag") == 'W/"tag"'
        pixels = netpbm(luma, got)
        assert pixels[:2] == b"P5", pixels[:20]
        assert len(pixels) == len(expected), "another size"
        assert pixels == expected or max(abs(a - b) for a, b in zip(pixels, expected)) <= off_by, "other pixels"
    expected = netpbm(shape or luma + " | ppmtopgm", original)
    return check


def test_gray_jpeg(lab):
    for name in ("photo.jpg", "progressive.jpg", "small.jpg"):
        body = picture(name)
        every_way(lab, "gray", "image/jpeg", body, check_gray("jpeg", body, "djpeg", "djpeg -grayscale"))


def test_gray_gif(lab):
    body = picture("animated.gif")

    def check(answer, got):
        assert answer.status == 200 and len(got) == len(body) and got != body
        assert answer.header("content-length") == str(len(body))
        different = [i for i in range(len(body)) if got[i] != body[i]]
        assert len(different) <= 768 * 4 and min(different) >= 13
        assert netpbm("giftopnm -image=2", got)[:2] == b"P5"

    every_way(lab, "gray", "image/gif", body, check)


def test_gray_png(lab):
    body = picture("photo.png")
    every_way(lab, "gray", "image/png", body, check_gray("png", body, "pngtopnm", off_by=1))
    body = picture("alpha.png")

    def check(answer, got):
        assert answer.status == 200 and got != body
        assert netpbm("pngtopnm -alpha", got) == netpbm("pngtopnm -alpha", body), "other transparency"
        pixels, expected = netpbm("pngtopnm", got), netpbm("pngtopnm | ppmtopgm", body)
        assert len(pixels) == len(expected) and max(abs(a - b) for a, b in zip(pixels, expected)) <= 1, "other pixels"

    every_way(lab, "gray", "image/png", body, check)
    body = picture("photo.bmp")
    every_way(lab, "gray", "image/bmp", body, check_gray("bmp", body, "bmptopnm | ppmtopgm"))


def by_hand(lab, data, *options, arguments=""):
    """gray-helper --once: its exit status and what it wrote."""
    done = subprocess.run([lab.build + "/icap-services/gray-helper", *options, "--once", arguments], input=data,
                          env={**os.environ, "TMPDIR": lab.dir}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60 * lab.patience, check=False)
    return done.returncode, done.stdout


def test_gray_by_hand(lab):
    photo = picture("photo.jpg")
    status, gray = by_hand(lab, photo)
    assert status == 0 and netpbm("djpeg", gray) == netpbm("djpeg -grayscale", photo)
    assert by_hand(lab, gray) == (0, gray), "what is gray stays"
    assert by_hand(lab, b"no picture") == (1, b"")
    assert by_hand(lab, picture("photo.bmp"))[0] == 0
    text = subprocess.run([lab.build + "/icap-services/text-helper", "--file", lab.path("texts.tsv"), "--once", "10.1.2.3"],
                          stdout=subprocess.PIPE, check=True).stdout
    assert text == b"<b>ten 10.1.2.3</b>", text


def test_gray_as_the_uri_says(lab):
    for name, kind, decoder in (("photo.jpg", "jpeg", "djpeg"), ("photo.png", "png", "pngtopnm")):
        body = picture(name)
        answer = respmod(lab.port, "gray?width=100&quality=50&strip", request=REQUEST,
                         response=head("image/" + kind, len(body)), body=body, preview=1024)
        magic, width, _ = netpbm(decoder, answer.body).split(None, 2)
        assert (magic, width) == (b"P5", b"100") and len(answer.body) < len(body) / 10, (magic, width)


def test_gray_is_never_larger(lab):
    """Unless that is wanted: nobody gains by an image that takes longer."""
    photo = picture("coarse.jpg")
    for service, wanted in (("gray?quality=100", False), ("gray?quality=100&larger", True)):
        answer = respmod(lab.port, service, request=REQUEST, response=head("image/jpeg", len(photo)), body=photo, preview=1024)
        assert (answer.body != photo) == wanted, (service, len(answer.body))


def test_gray_recipes(lab):
    """Programs without a shell, which may not write, nor reach others over the network."""
    bmp, mark = picture("photo.bmp"), lab.path("mark")
    status, gray = by_hand(lab, bmp, "--recipe", "image/bmp=bmptopnm | pamscale 0.5 | ppmtopgm | ppmtobmp")
    assert status == 0 and netpbm("bmptopnm", gray).split()[1] == b"30"
    assert by_hand(lab, bmp, "--recipe", "image/bmp=cat | no-such-program") == (1, b"")
    assert by_hand(lab, bmp, "--recipe", "image/bmp=false") == (1, b"")
    status, text = by_hand(lab, bmp, "--recipe", "image/bmp=echo $HOME;ls `ls` *")
    assert (status, text) == (0, b"$HOME;ls `ls` *\n"), text
    assert by_hand(lab, bmp, "--recipe", "image/bmp=")[0] == 1
    if lab.options.valgrind or sandbox_of(lab) != "2":
        return
    assert by_hand(lab, bmp, "--recipe", "image/bmp=touch " + mark)[0] == 1 and not os.path.exists(mark)
    for code, allowed in (("print()", True), ("__import__('socket').socket()", False)):
        status, _ = by_hand(lab, bmp, "--recipe", "image/bmp=/usr/bin/python3 -c " + code)
        assert (status == 0) == allowed, code
    assert by_hand(lab, bmp, "--programs-write", "--recipe", "image/bmp=touch " + mark)[0] == 0 and os.path.exists(mark)


def has_landlock():
    LANDLOCK_CREATE_RULESET, VERSION = 444, 1
    return ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, VERSION) > 0


def test_gray_tiff(lab):
    """Its program needs a file for a moment; it can make one in a place of its own, and nowhere else."""
    body, mark = netpbm("bmptopnm | pamtotiff -lzw -truecolor", picture("photo.bmp")), lab.path("tiff-mark")
    answer = respmod(lab.port, "gray", request=REQUEST, response=head("image/tiff", len(body)), body=body, preview=1024)
    if not lab.options.valgrind and sandbox_of(lab) == "2" and not has_landlock():
        assert answer.body == body
        return
    assert netpbm("tifftopnm", answer.body)[:2] == b"P5" and len(answer.body) < len(body)
    assert netpbm("tifftopnm", answer.body) == netpbm("tifftopnm | ppmtopgm", body)
    if lab.options.valgrind or sandbox_of(lab) != "2":
        return
    lab.write("kept", "kept")
    for words in ("rm " + lab.path("kept"), "cp /etc/hostname " + mark, "cp /etc/hostname " + lab.path("kept"), "mkdir " + mark,
                  "ln -s /etc " + mark, "mkfifo " + mark, "truncate -s 0 " + lab.path("kept"), "mv %s %s" % (lab.path("kept"), mark)):
        assert by_hand(lab, body, "--recipe", "image/tiff=" + words)[0] == 1, words
    assert not os.path.lexists(mark) and open(lab.path("kept"), encoding="ascii").read() == "kept"
    assert by_hand(lab, body, "--recipe", "image/tiff=mktemp")[0] == 0


def sandbox_of(lab):
    """The kind of seccomp that a helper runs under, as the kernel tells: "2" is a filter."""
    with open("/proc/%d/status" % lab.workers("gray")[0], encoding="ascii") as status:
        return re.search(r"^Seccomp:\s*(\d)", status.read(), re.M).group(1)


def test_bombs(lab):
    """Small files that want a lot: the original goes out, and other images go on."""
    chance = random.Random(6)
    photo = bytearray(picture("photo.jpg"))
    frame = photo.index(b"\xff\xc0")
    photo[frame + 5:frame + 9] = struct.pack(">HH", 65500, 65500)
    png = bytearray(picture("photo.png"))
    png[16:24] = struct.pack(">II", 65500, 65500)
    png[29:33] = struct.pack(">I", zlib.crc32(png[12:29]))
    progressive = picture("progressive.jpg")
    scan = progressive.index(b"\xff\xda")
    end = progressive.index(b"\xff\xc4", scan)
    scans = progressive[:end] + progressive[scan:end] * min(5000, (1 << 20) // (end - scan)) + progressive[end:]
    small = bytearray(picture("small.jpg"))
    bombs = [("image/jpeg", bytes(photo)), ("image/png", bytes(png)), ("image/jpeg", scans)]
    for _ in range(20):
        damaged = bytearray(small)
        for _ in range(8):
            damaged[chance.randrange(2, len(damaged))] = chance.randrange(256)
        bombs.append(("image/jpeg", bytes(damaged)))
    for number, (kind, body) in enumerate(bombs):
        answer = respmod(lab.port, "gray", request=REQUEST, response=head(kind, len(body)), body=body, preview=1024)
        got = body if answer.status == 204 else answer.body
        assert number > 2 or got == body, "bomb %d of %s was changed" % (number, kind)
    frame = b"!\xf9\x04\x04\x01\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0"
    body = b"GIF89a\x01\0\x01\0\x80\0\0\xff\0\0\0\xff\0" + frame * 10000 + b";"
    answer = respmod(lab.port, "gray", request=REQUEST, response=head("image/gif", len(body)), body=body)
    assert answer.status == 200 and answer.body == body[:13] + b"LLL\x96\x96\x96" + body[19:], answer.body[:40]
    assert send_photo(lab).status == 200


def test_gray_leaves_alone(lab):
    def check(answer, got):
        assert got == body, "changed"
        assert answer.status == 204 or answer.header("etag") == '"tag"'

    gray = netpbm("djpeg -grayscale | cjpeg", picture("photo.jpg"))

    def half(name):
        return picture(name)[:len(picture(name)) // 2]

    for kind, body in (("image/jpeg", gray), ("image/jpeg", half("photo.jpg")), ("image/gif", half("animated.gif")),
                       ("image/png", half("photo.png")), ("image/jpeg", b"<html>" * 500),
                       ("image/jpeg", b"\xff"), ("image/gif", b"GIF8"), ("image/svg+xml", b"<svg/>"),
                       ("text/html", picture("small.jpg"))):
        every_way(lab, "gray", kind, body, check)


def test_gray_too_large(lab):
    def check(answer, got):
        assert got == body, "changed or cut: %d of %d bytes" % (len(got), len(body))

    body = picture("small.jpg") + random.Random(3).randbytes(3 << 20)
    every_way(lab, "gray", "image/jpeg", body, check)
    body = body[:(2 << 20) + 1]
    every_way(lab, "gray", "image/jpeg", body, check)


# ---- inject ----------------------------------------------------------------------------------

PAGE = (b"<!doctype html><html><head><!-- </head> --><title></head></title><script>'</head>'</script>"
        b"<meta content='</head>'>@</HEAD><body>" + b"text " * 20000 + b"</body></html>")


def test_inject_every_way(lab):
    def check(answer, got):
        assert answer.status == 200 and got == PAGE.replace(b"@", text), got[:300]
        assert answer.header("cache-control") == "private" and answer.header("content-length") is None

    for address, text in (("10.1.2.3", b"<b>ten 10.1.2.3</b>"), ("2001:db8::1", b"<b>2001:db8::1</b>"),
                          (None, b"<b>unknown</b>")):
        every_way(lab, "inject", "text/html; charset=utf-8", PAGE.replace(b"@", b""), check, client_ip=address)


def test_inject_any_split(lab):
    page = b"<html><head><title>t</title></head><body>b</body></html>"
    connection = Connection(lab.port)
    for cut in range(1, len(page)):
        answer = connection.call("RESPMOD", "inject", request=REQUEST, response=head("text/html"),
                                 pieces=[page[:cut], page[cut:]], client_ip="192.0.2.1")
        assert answer.body == page.replace(b"</head>", b"<b>192.0.2.1</b></head>"), (cut, answer.body)
    connection.close()


def test_inject_passes_on_while_it_scans(lab):
    arrived = threading.Event()

    def pieces():
        yield b"<html><head>" + b"<!-- early -->" * 1000
        assert arrived.wait(20 * lab.patience), "nothing passed on before the end of the head"
        yield b"</head><body>" + b"x" * 100000

    answer = respmod(lab.port, "inject", request=REQUEST, response=head("text/html"), pieces=pieces(),
                     client_ip="192.0.2.1", on_data=lambda data: arrived.set())
    assert b"--><b>192.0.2.1</b></head>" in answer.body and len(answer.body) == 114025 + len("<b>192.0.2.1</b>")


def test_inject_leaves_alone(lab):
    page = PAGE.replace(b"@", b"")
    for kind, extra in (("text/plain", ""), ("text/html; charset=UTF-16", ""), ("text/html", "Content-Encoding: gzip\n"),
                        ("text/html", "Cache-Control: no-transform\n")):
        answer = respmod(lab.port, "inject", request=REQUEST, response=head(kind, len(page), extra), body=page,
                         preview=1024)
        assert answer.status == 204, (kind, extra)
    page = b"<p>no head at all" * 10000
    answer = respmod(lab.port, "inject", request=REQUEST, response=head("text/html"), body=page)
    assert answer.body == page


def injected(lab, arguments, page, extra="", ip="192.0.2.1", **more):
    answer = respmod(lab.port, "inject" + arguments, request=REQUEST, response=head("text/html", len(page), extra),
                     body=page, preview=1024, client_ip=ip, **more)
    return page if answer.status == 204 else answer.body


def test_inject_places(lab):
    page = b"<html><head><template></head></template></head><body class='>'><p>x</p></body></html>"
    text = b"<b>192.0.2.1</b>"
    for place, at in (("head-end", page.index(b"</head><body")), ("body-start", page.index(b"<p>")), ("body-end", page.index(b"</body>"))):
        assert injected(lab, "?position=" + place, page) == page[:at] + text + page[at:], place


def test_inject_tells_the_page(lab):
    """URL and name go to the helper if that is wanted, and are escaped; time is."""
    with open(lab.path("texts.tsv"), encoding="utf-8") as file:
        before = file.read()
    lab.write("texts.tsv", "default\t[%{url}|%{user}|%{time}]\n")
    try:
        page, request = b"<head></head>", REQUEST.replace("/a HTTP", "/a?b='&c HTTP")
        answer = respmod(lab.port, "inject?url", request=request, response=head("text/html"), body=page,
                         client_ip="192.0.2.1", extra=("X-Client-Username: <jo>",))
        assert re.fullmatch(rb"<head>\[http://origin.example/a\?b=&#39;&amp;c\|&lt;jo&gt;\|20\d\d-\d\d-\d\dT[\d:]+Z\]</head>",
                            answer.body), answer.body
    finally:
        lab.write("texts.tsv", before)


def test_inject_keeps_answers(lab):
    """Each of c-icap's processes asks once for a client; other clients have other texts."""
    served = lab.pool("text")["served"]
    for _ in range(30):
        for ip in ("192.0.2.77", "10.0.0.77"):
            assert ip.encode() in injected(lab, "?ttl=10m", b"<head></head>", ip=ip)
    children = 2
    assert lab.pool("text")["served"] <= served + 2 * children, "the helper was asked too often"
    assert b"192.0.2.77" in injected(lab, "", b"<head></head>", ip="192.0.2.77")
    assert lab.pool("text")["served"] > served


@contextlib.contextmanager
def texts(lab, text):
    """All clients get this text meanwhile."""
    with open(lab.path("texts.tsv"), encoding="utf-8") as file:
        before = file.read()
    lab.write("texts.tsv", "default\t" + text + "\n")
    try:
        yield
    finally:
        lab.write("texts.tsv", before)


def test_inject_and_policies(lab):
    page = b"<head></head>"
    strict, free = "Content-Security-Policy: default-src 'self'\n", ""
    nonce = "Content-Security-Policy: script-src 'nonce-abc'\n"
    with texts(lab, "<b>x</b>"):
        assert b"<b>x</b>" in injected(lab, "", page, strict)
    with texts(lab, "<script nonce=\"%{nonce}\">x</script>"):
        for arguments, extra, expected in (("", strict, None), ("", nonce, None), ("?csp=insert", strict, b""), ("", free, b""),
                                           ("?csp=nonce", nonce, b"abc"), ("?csp=nonce", strict, None),
                                           ("?csp=hash", nonce, b"abc"), ("?csp=nonce", nonce + strict, None)):
            body = injected(lab, arguments, page, extra)
            assert body == (page if expected is None else b"<head><script nonce=\"%s\">x</script></head>" % expected), \
                (arguments, extra, body)


META = b"<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">"


def hash_of(script):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def test_inject_adds_hashes_to_the_head(lab):
    """Where the policy of the head needs them and no other; with every preview, known or not yet."""
    ours = hash_of("x()")
    cases = (("script-src 'self'", "script-src 'self' " + ours), ("default-src 'none'", "default-src 'none'; script-src " + ours),
             ("img-src a, script-src b, script-src 'unsafe-inline'", "img-src a, script-src b %s, script-src 'unsafe-inline'" % ours),
             ("script-src 'unsafe-inline'", "script-src 'unsafe-inline'"), ("sandbox", None),
             ("script-src 'self'\nContent-Security-Policy: default-src c", "script-src 'self' " + ours + "|default-src c; script-src c " + ours))
    page = b"<html><head></head>" + b"x" * 70000
    with texts(lab, "<script>x()</script>"):
        for policy, expected in cases:
            for arguments in ("?csp=hash", "?csp=hash&ttl=10m", "?csp=hash&ttl=10m"):
                for preview in (0, 16, 1024, 10**6, None):
                    answer = respmod(lab.port, "inject" + arguments, request=REQUEST, body=page, preview=preview, allow204=True,
                                     response=head("text/html", len(page), "Content-Security-Policy: %s\n" % policy))
                    if expected is None:
                        assert answer.status == 204 or answer.body == page, (policy, preview, answer.status)
                        continue
                    assert answer.body == page.replace(b"</head>", b"<script>x()</script></head>"), (policy, answer.body[:200])
                    got = answer.http_headers["content-security-policy"]
                    assert "|".join(got) == expected, (policy, preview, got)
    with texts(lab, "<a onclick=x()>"):
        assert injected(lab, "?csp=hash", page, "Content-Security-Policy: script-src 'self'\n") == page


def test_inject_and_policies_of_the_page(lab):
    """Those of <meta> count as well, wherever the page is cut; what stands behind the place does not."""
    script = b"<script>x()</script>"
    ours = hash_of("x()").encode()
    with texts(lab, script.decode()):
        for arguments, policy, expected in (("", b"script-src 'self'", None), ("", b"img-src 'none'", b"img-src 'none'"),
                                            ("?csp=hash", b"script-src 'self'", b"script-src 'self' " + ours),
                                            ("?csp=hash", b"script-src 'unsafe-inline'", b"script-src 'unsafe-inline'"),
                                            ("?csp=hash", b"a; sandbox", None), ("?csp=hash", b"&Tab;", None)):
            page = b"<html><head>" + META % policy + b"@</head><body>" + META % b"default-src 'none'" + b"</body>"
            wanted = page.replace(policy, expected or policy, 1).replace(b"@", script if expected else b"")
            got = injected(lab, arguments, page.replace(b"@", b""))
            assert got == wanted, (arguments, policy, got)
        page = b"<!doctype html>" + META % b"script-src a" + META % b"img-src b" + META % b"default-src c" + b"<p>"
        wanted = page.replace(b"-src a", b"-src a " + ours).replace(b"-src c", b"-src c; script-src c " + ours)
        wanted = wanted.replace(b"<p>", script + b"<p>")
        connection = Connection(lab.port)
        for cut in range(1, len(page)):
            answer = connection.call("RESPMOD", "inject?csp=hash", request=REQUEST, response=head("text/html"),
                                     pieces=[page[:cut], page[cut:]])
            assert answer.body == wanted, (cut, answer.body)
        connection.close()
        for cut in (META % b"script-src a")[:-1], META % b"script-src a":  # the end of a page in a tag, and behind it
            answer = respmod(lab.port, "inject?csp=hash", request=REQUEST, response=head("text/html"), body=cut)
            assert answer.body == cut.replace(b"-src a\">", b"-src a " + ours + b"\">"), answer.body
    with texts(lab, "<script nonce='%{nonce}'>x()</script>"):
        page = b"<head>" + META % b"script-src 'nonce-abc'" + b"</head>"
        assert b"nonce='abc'" in injected(lab, "?csp=nonce", page) and injected(lab, "", page) == page
    with texts(lab, "<script>'\u00e4'</script>"):  # its hash is known in UTF-8 only
        for kind, known in (("text/html", False), ("text/html; charset=UTF-8", True)):
            answer = respmod(lab.port, "inject?csp=hash", request=REQUEST, response=head(kind), body=META % b"script-src a" + b"</head>")
            assert (hash_of("'\u00e4'").encode() in answer.body) == known, kind


def pages_of_all_sorts():
    """Ours, and some that packages have installed."""
    foreign = [path for path in sorted(glob.glob("/usr/share/doc/*/*.html") + glob.glob("/usr/share/doc/*/html/*.html"))
               if os.path.isfile(path) and os.path.getsize(path) < 20000]
    return sorted(glob.glob(os.path.join(HERE, "pages", "*.html"))) + foreign[:: max(1, len(foreign) // 8)]


def parsed_places(data):
    """As a browser reads the page: its elements in order, where the marker is among them, and text on either side."""
    sys.path.append("/usr/lib/python3/dist-packages")  # Debian's python3-html5lib, whatever Python this is
    import html5lib  # pylint: disable=import-outside-toplevel
    data = re.sub(rb"<template.*?</template>", b"", data, flags=re.S)  # which html5lib does not know
    root = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False).parse(data, scripting=True)
    parts = {name: root.find(name) for name in ("head", "body")}
    return root, parts["head"], parts["body"]


def text_after(part, marker):
    """Of the text in `part`, what stands behind the marker, and the elements there."""
    behind, texts_behind, elements = False, "", 0

    def visit(element):
        nonlocal behind, texts_behind, elements
        if element is marker:
            behind = True
        elif behind:
            elements += isinstance(element.tag, str)
        if behind and element is not marker:
            texts_behind += element.text or "" if isinstance(element.tag, str) else ""
        for child in element:
            visit(child)
            texts_behind += (child.tail or "") if behind else ""
    visit(part)
    return texts_behind.strip(), elements


def test_inject_is_where_a_browser_finds_it(lab):
    """html5lib follows the HTML standard to the letter."""
    for place, text in (("head-end", b"<meta id=marker>"), ("body-start", b"<i id=marker></i>"), ("body-end", b"<i id=marker></i>")):
        with texts(lab, text.decode()):
            for path in pages_of_all_sorts():
                with open(path, "rb") as file:
                    page = file.read()
                got = injected(lab, "?position=%s&csp=insert" % place, page)
                if got == page:
                    assert place == "body-end" and b"</body" not in page.lower(), (path, place)
                    continue
                assert got.replace(text, b"") == page, (path, place)
                expect_marker(place, *parsed_places(got), (path, place))


def expect_marker(place, root, page_head, body, what):
    marker = root.find(".//*[@id='marker']")
    assert marker is not None, what
    if place == "head-end":
        assert marker in list(page_head) and text_after(page_head, marker) == ("", 0), what
    elif place == "body-end":
        assert text_after(body, marker) == ("", 0), what
    else:
        assert list(body)[0] is marker and not (body.text or "").strip(), what


def test_inject_costs_no_time(lab):
    """The first byte of a page comes within a millisecond of what a service costs that only looks at it, and the page
    streams. The best of many: what else the machine does must not decide."""
    page = b"<html><head><title>t</title></head><body>" + b"x" * 30000

    def first_byte(service, kind):
        connection, times = Connection(lab.port), []
        for _ in range(150):
            seen = []
            begin = time.perf_counter()
            connection.call("RESPMOD", service, request=REQUEST, response=head(kind), pieces=[page], client_ip="192.0.2.1",
                            on_data=lambda data, seen=seen: seen.append(time.perf_counter()))
            times.append(seen[0] - begin)
        connection.close()
        return min(times)
    plain, adapted = first_byte("inject", "text/plain"), first_byte("inject", "text/html")
    if not lab.options.valgrind:
        assert adapted - plain <= 0.001, "%.3f ms instead of %.3f ms" % (1000 * adapted, 1000 * plain)


# ---- helpers ---------------------------------------------------------------------------------


def in_background(function):
    result = []

    def run():
        try:
            result.append(function())
        except Exception as error:  # pylint: disable=broad-except
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return lambda: (thread.join(), result[0])[1]


def send_photo(lab):
    body = picture("photo.jpg")
    return respmod(lab.port, "gray", request=REQUEST, response=head("image/jpeg", len(body)), body=body, preview=1024)


def stopped(lab, pool):
    """Stops the pool's helpers in their tracks."""
    pids = lab.workers(pool, "idle")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return pids


def test_helper_killed_at_work(lab):
    body, before = picture("photo.jpg"), lab.pool("gray")
    pids = stopped(lab, "gray")
    answer = in_background(lambda: send_photo(lab))
    busy = until(lambda: lab.workers("gray", "busy"), 5 * lab.patience, "a busy helper")
    os.kill(busy[0], signal.SIGKILL)
    got = answer()
    assert got.status == 200 and got.body == body and got.header("content-length") == str(len(body)), got
    for pid in set(pids) - set(busy):
        os.kill(pid, signal.SIGCONT)
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "a new helper")
    after = lab.pool("gray")
    assert after["failed"] == before["failed"] + 1 and after["restarts"] == before["restarts"] + 1
    assert send_photo(lab).body != body


def test_helper_hangs(lab):
    body, before = picture("photo.jpg"), lab.pool("gray")
    stopped(lab, "gray")
    begun = time.monotonic()
    got = send_photo(lab)
    assert got.body == body and time.monotonic() - begun < 5 * lab.stretch
    assert lab.pool("gray")["timeouts"] == before["timeouts"] + 1
    for pid in lab.workers("gray"):
        if pid:
            os.kill(pid, signal.SIGCONT)
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "new helpers")
    assert send_photo(lab).body != body


def test_queue_full(lab):
    body, before = picture("photo.jpg"), lab.pool("gray")
    pids = stopped(lab, "gray")
    answers = [in_background(lambda: send_photo(lab)) for _ in range(9)]
    until(lambda: lab.pool("gray")["refused"] == before["refused"] + 3, 5 * lab.patience, "refusals")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    bodies = [answer().body for answer in answers]
    assert sorted(b == body for b in bodies) == [False] * 6 + [True] * 3, [b == body for b in bodies]


def test_client_gone(lab):
    """Waiting jobs of clients that hang up are cancelled."""
    before, pids = lab.pool("gray"), stopped(lab, "gray")
    connections = []
    for _ in range(5):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(lab.socket)
        connection.send(struct.pack("=IHHQQIIII24s", 0x52744a31, 1, 1, 7, 0, 0, 1000, 0, 0, b"gray"))
        connections.append(connection)
    until(lambda: lab.pool("gray")["queued"] == 3, 5 * lab.patience, "a queue")
    for connection in connections:
        connection.close()
    until(lambda: lab.pool("gray")["queued"] == 0, 5 * lab.patience, "an empty queue")
    assert lab.pool("gray")["cancelled"] == before["cancelled"] + 5
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "idle helpers")
    assert send_photo(lab).body != picture("photo.jpg")


def test_late_text(lab):
    """The page goes on without its text when the helper is late."""
    page = PAGE.replace(b"@", b"")
    pids = stopped(lab, "text")
    begun = time.monotonic()
    answer = respmod(lab.port, "inject", request=REQUEST, response=head("text/html"), body=page, client_ip="10.1.2.3")
    assert answer.body == page and time.monotonic() - begun < 4 * lab.stretch
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
    until(lambda: lab.workers("text", "idle"), 10 * lab.patience, "a text helper")


def test_texts_are_read_again(lab):
    page = b"<html><head></head>"
    old = open(lab.path("texts.tsv"), encoding="utf-8").read()
    for text, expected in (("default\tnew text\n", b"new text"), ("broken\n", b"new text"), (old, b"<b>192.0.2.1</b>")):
        lab.write("texts.tsv", text)
        answer = respmod(lab.port, "inject", request=REQUEST, response=head("text/html"), body=page,
                         client_ip="192.0.2.1")
        assert answer.body == b"<html><head>" + expected + b"</head>", answer.body


def test_nonsense_to_helperd(lab):
    for packet in (b"x", b"\0" * 64, b"\xff" * 5000, struct.pack("=IHHQQIIII24s", 0x52744a31, 9, 1, 7, 0, 0, 1, 0, 0, b"gray")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(5 * lab.patience)
            connection.connect(lab.socket)
            connection.send(packet)
            assert connection.recv(100) == b"", packet[:10]
    for command in ({}, {"call": 3}, {"call": "fly"}, {"call": "renice"}, {"call": "renice", "pool": "none", "nice": 3},
                    {"call": "renice", "pool": "gray", "nice": 99}, {"call": "resize", "pool": "gray", "processes": 0}):
        answer = lab.command(**command)
        assert not answer["ok"] and len(answer["error"]) > 10, command
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(lab.socket)
        connection.send(b"{nonsense")
        assert b"no JSON" in connection.recv(1000)


def nice_of(pid):
    """Within its session, and of the session where the kernel has that."""
    try:
        with open("/proc/%d/autogroup" % pid, encoding="ascii") as group:
            of_group = int(group.read().split()[-1])
    except FileNotFoundError:
        of_group = os.getpriority(os.PRIO_PROCESS, pid)
    return os.getpriority(os.PRIO_PROCESS, pid), of_group


def test_renice_and_resize(lab):
    until(lambda: [nice_of(p) for p in lab.workers("gray", "idle")] == [(10, 10)] * 2, 10 * lab.patience, "helpers at nice 10")
    for nice in (15, 10):
        assert lab.command(call="renice", pool="gray", nice=nice)["ok"]
        until(lambda nice=nice: [nice_of(p) for p in lab.workers("gray", "idle")] == [(nice, nice)] * 2,
              10 * lab.patience, "helpers at nice %d" % nice)
    assert lab.command(call="resize", pool="gray", processes=4)["ok"]
    until(lambda: len(lab.workers("gray", "idle")) == 4, 10 * lab.patience, "four helpers")
    assert lab.command(call="resize", pool="gray", processes=2)["ok"]
    until(lambda: len(lab.workers("gray")) == 2, 10 * lab.patience, "two helpers")
    assert send_photo(lab).body != picture("photo.jpg")


def test_a_job_is_cheap_to_hand_over(lab):
    """System calls of retort-helperd for each: what takes time is mostly who wakes whom, and these are what it adds."""
    if lab.options.valgrind:
        return
    jobs = 200
    program = os.path.join(lab.build, "tests/bench/handover")
    assert os.path.exists(program), "make check TESTS= builds it"
    trace = subprocess.Popen(["strace", "-c", "-p", str(lab.helperd.pid)], stderr=subprocess.PIPE, text=True)
    try:
        assert "attached" in trace.stderr.readline()
        subprocess.run([program, lab.socket, "text", str(jobs)], stdout=subprocess.DEVNULL, check=True)
    finally:
        trace.send_signal(signal.SIGINT)
        said = trace.communicate()[1]
    total = [line.split() for line in said.splitlines() if line.endswith(" total")]  # %, seconds, each, calls, (errors)
    calls = int(total[0][3]) / jobs
    assert 4 < calls < 11, said


def test_reload_of_helperd(lab):
    good = open(lab.path("helperd.conf"), encoding="utf-8").read()
    lab.write("helperd.conf", "pool gray { nice = 77 }")
    answer = lab.command(call="reload")
    assert not answer["ok"], answer
    lab.write("helperd.conf", good.replace("nice = 10", "nice = 12").replace("processes = 2", "processes = 3"))
    lab.helperd.send_signal(signal.SIGHUP)
    until(lambda: len(lab.workers("gray", "idle")) == 3 and lab.pool("gray")["nice"] == 12, 10 * lab.patience, "reload")
    lab.write("helperd.conf", good)
    assert lab.command(call="reload")["ok"]
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "reload")


def test_helperd_gone(lab):
    body, page = picture("photo.jpg"), PAGE.replace(b"@", b"")
    assert lab.stop(lab.helperd)
    assert not os.path.exists(lab.socket)
    got = send_photo(lab)
    assert got.body == body
    answer = respmod(lab.port, "inject", request=REQUEST, response=head("text/html"), body=page, preview=1024)
    assert answer.status == 204
    lab.start_helperd()
    assert send_photo(lab).body != body


def test_helperd_killed(lab):
    """Its helpers go with it, and its successor takes the socket over."""
    helpers = lab.workers("gray") + lab.workers("text")
    lab.helperd.kill()
    lab.helperd.wait()
    until(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in helpers), 10 * lab.patience, "the helpers' end")
    body = picture("photo.jpg")
    assert send_photo(lab).body == body
    lab.start_helperd()
    assert send_photo(lab).body != body


def submit(lab, pool, milliseconds=60000, parameters=b""):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(20 * lab.patience)
    connection.connect(lab.socket)
    connection.send(struct.pack("=IHHQQIIII24s", 0x52744a31, 1, 1, 7, 0, 0, milliseconds, len(parameters), 0,
                                pool.encode()) + parameters)
    return connection


def result_of(connection):
    """Status and parameters."""
    packet = connection.recv(1 << 16)
    connection.close()
    _, _, kind, number, _, status, _, length, _, _ = struct.unpack("=IHHQQIIII24s", packet[:64])
    assert kind == 2 and number == 7 and length == len(packet) - 64
    return status, packet[64:]


DONE, UNCHANGED, REFUSED, FAILED, TIMEOUT = range(5)


def test_jobs_by_hand(lab):
    assert result_of(submit(lab, "text", parameters=b"10.0.0.1")) == (DONE, b"<b>ten 10.0.0.1</b>")
    status, why = result_of(submit(lab, "nothing"))
    assert status == REFUSED and b'no pool "nothing"' in why
    status, why = result_of(submit(lab, "gray"))
    assert status == FAILED and b"not an image" in why
    status, why = result_of(submit(lab, "slow", milliseconds=20))
    assert status == TIMEOUT and b"killed" in why
    until(lambda: lab.workers("slow", "idle"), 10 * lab.patience, "a slow helper")
    first, second = submit(lab, "slow"), None
    until(lambda: lab.workers("slow", "busy"), 10 * lab.patience, "a busy helper")
    second = submit(lab, "slow")
    until(lambda: lab.pool("slow")["queued"] == 1, 10 * lab.patience, "a queue")
    assert result_of(submit(lab, "slow"))[0] == REFUSED
    assert result_of(first)[0] == result_of(second)[0] == DONE


def test_helpers_are_replaced(lab):
    """After max_jobs, here one."""
    before = lab.pool("slow")["restarts"]
    pids = set()
    for _ in range(3):
        pids.update(until(lambda: lab.workers("slow", "idle"), 10 * lab.patience, "an idle helper"))
        assert result_of(submit(lab, "slow"))[0] == DONE
    until(lambda: lab.pool("slow")["restarts"] >= before + 3, 10 * lab.patience, "restarts")
    assert len(pids) == 3


def test_helper_that_does_not_start(lab):
    """It is tried again at growing intervals, and its jobs end at their deadline."""
    status, _ = result_of(submit(lab, "broken"))
    assert status in (FAILED, TIMEOUT), status
    assert lab.pool("broken")["restarts"] < 20


class OtherHelperd(Lab):
    """A retort-helperd beside the lab's, with pools of its own, for one test."""

    def __init__(self, lab, name, pools):  # pylint: disable=super-init-not-called
        self.options, self.build, self.dir = lab.options, lab.build, lab.dir
        self.patience, self.stretch, self.processes = lab.patience, lab.stretch, lab.processes
        self.name, self.socket = name, lab.path(name + ".sock")
        self.write(name + ".conf", 'socket = "%s"\n%s' % (self.socket, pools))
        self.process = self.spawn(name, [lab.build + "/icap-services/retort-helperd", "-f", lab.path(name + ".conf")])
        until(self.listens, 10 * self.patience, "retort-helperd")

    def listens(self):
        try:
            return self.command(call="helpers")["ok"]
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.stop(self.process)
        self.processes.remove(self.process)

    def log(self):
        with open(self.path(self.name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def retortctl(self, *words):
        return subprocess.run([self.build + "/proxy/retortctl", "-H", self.socket, "helpers", *words],
                              stdout=subprocess.PIPE, encoding="utf-8", timeout=60, check=True).stdout


def test_pools_grow_and_shrink(lab):
    """Processes come while jobs wait, up to the limit, and leave when there is nothing to do."""
    pool = """pool some { command = {"%s/icap-services/text-helper", "--delay", "300ms"} processes = 1 max_processes = 3
              idle = "200ms" queue = 8 deadline = "60s" nice = 0 }""" % lab.build
    with OtherHelperd(lab, "growing", pool) as other:
        jobs = [submit(other, "some") for _ in range(6)]
        until(lambda: len(other.workers("some", "busy")) == 3, 10 * lab.patience, "three at work")
        assert len(other.workers("some")) == 3 and other.pool("some")["queued"] <= 3
        assert [result_of(job)[0] for job in jobs] == [DONE] * 6
        until(lambda: len(other.workers("some")) == 1, 10 * lab.patience, "one alone")
        other.command(call="resize", pool="some", processes=2)
        assert len(other.workers("some")) == 2
        assert "some" in other.retortctl("top", "0.1", "2") and other.pool("some")["cpu_ms"] >= 0


def test_breaker(lab):
    """Helpers that die of every job: soon jobs are refused at once, and one in a while is tried."""
    flag = lab.path("cured")
    pool = """pool bad { command = {"/bin/sh", "-c", "test -e %s && exec %s/icap-services/text-helper; head -c1 >/dev/null; exit 3"}
              breaker = 3 breaker_time = "200ms" deadline = "60s" nice = 0 }""" % (flag, lab.build)
    with OtherHelperd(lab, "crashing", pool) as other:
        for _ in range(3):
            assert result_of(submit(other, "bad"))[0] == FAILED
        until(lambda: other.pool("bad")["breaker"] == "open", 10 * lab.patience, "the breaker to open")
        status, why = result_of(submit(other, "bad"))
        assert status in (REFUSED, FAILED), status  # FAILED: the time was over already
        assert status == FAILED or b"die" in why, why
        assert other.pool("bad")["broken"] == 1 and "are refused until" in other.retortctl()
        open(flag, "w", encoding="ascii").close()
        until(lambda: result_of(submit(other, "bad"))[0] == DONE, 30 * lab.patience, "a job that is tried")
        assert other.pool("bad")["breaker"] == "closed"
        assert result_of(submit(other, "bad"))[0] == DONE


def test_terms_of_helpers(lab):
    """Nice, I/O priority, scheduler, memory, cgroup and CPU time are what the configuration says."""
    group = lab.path("cgroup")
    os.mkdir(group)
    for name in ("cgroup.procs", "cpu.weight"):
        open(os.path.join(group, name), "w", encoding="ascii").close()
    pools = """pool kept { command = {"%s/icap-services/text-helper"} nice = 3 io = "idle" scheduler = "batch" memory = "%s"
               cgroup = "%s" cgroup_weight = 25 }
               pool spins { command = {"/bin/sh", "-c", "head -c1 >/dev/null; while :; do :; done"} cpu = "1s" deadline = "60s" nice = 0 }
               """ % (lab.build, "0" if lab.options.valgrind else "300M", group)
    with OtherHelperd(lab, "limited", pools) as other:
        pid = until(lambda: other.workers("kept", "idle"), 10 * lab.patience, "a helper")[0]
        executed = "memcheck" if lab.options.valgrind else "text-helper"
        until(lambda: executed in os.readlink("/proc/%d/exe" % pid), 10 * lab.patience, "the helper's program")
        assert os.getpriority(os.PRIO_PROCESS, pid) == 3 and os.sched_getscheduler(pid) == os.SCHED_BATCH
        assert subprocess.run(["ionice", "-p", str(pid)], stdout=subprocess.PIPE, check=True).stdout.strip() == b"idle"
        if not lab.options.valgrind:
            with open("/proc/%d/limits" % pid, encoding="ascii") as limits:
                assert re.search(r"Max address space\s+%d " % (300 << 20), limits.read())
        with open(os.path.join(group, "cpu.weight"), encoding="ascii") as weight:
            assert weight.read() == "25\n"
        with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as processes:
            assert processes.read() == "0", "it did not join"
        status, why = result_of(submit(other, "spins"))
        assert status == FAILED and b"died" in why, (status, why)
        until(lambda: "CPU time limit" in other.log(), 10 * lab.patience, "its end in the log")
        assert other.pool("spins")["cpu_ms"] >= 200  # the kernel's two clocks differ


def test_examples_of_helpers(lab):
    """Those of examples/helper: in C on its own, and in Python with bodies."""
    folder, program = os.path.join(SOURCE, "examples", "helper"), lab.path("upper-helper")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", program, os.path.join(folder, "upper.c")], check=True)
    pools = """pool upper { command = {"%s"} nice = 0 }
               pool reverse { command = {"/usr/bin/python3", "%s/reverse.py"} nice = 0 deadline = "60s" }""" % (program, folder)
    with OtherHelperd(lab, "examples", pools) as other:
        for _ in range(3):
            assert result_of(submit(other, "upper", parameters=b"some words")) == (DONE, b"SOME WORDS")
            status, why = result_of(submit(other, "reverse"))
            assert status == FAILED and b"body" in why, (status, why)
            assert reversed_by(other, b"a body to be turned round" * 1000) == (b"a body to be turned round" * 1000)[::-1]


def reversed_by(lab, data):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection, \
            os.fdopen(os.memfd_create("body", os.MFD_ALLOW_SEALING), "w+b") as body:
        connection.settimeout(20 * lab.patience)
        connection.connect(lab.socket)
        body.write(data)
        body.flush()
        fcntl.fcntl(body, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
        socket.send_fds(connection, [struct.pack("=IHHQQIIII24s", 0x52744a31, 1, 1, 7, len(data), 0, 60000, 0, 1,
                                                 b"reverse")], [body.fileno()])
        packet, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 1)
        assert struct.unpack("=IHHQQIIII24s", packet[:64])[5] == DONE, packet[64:]
        with open(descriptors[0], "rb") as result:
            return os.pread(result.fileno(), len(data), 0)


# ---- many at once, and clients that misbehave ------------------------------------------------


def test_many_at_once(lab):
    photo, page = picture("small.jpg"), PAGE.replace(b"@", b"")
    failures = []

    def worker(number):
        try:
            connection = Connection(lab.port, timeout=60 * lab.patience)
            for i in range(10):
                kind = (number + i) % 3
                if kind == 0:
                    answer = connection.call("RESPMOD", "gzip", request=REQUEST, response=head("text/html"), body=page)
                    assert gzip.decompress(answer.body) == page
                elif kind == 1:
                    answer = connection.call("RESPMOD", "inject", request=REQUEST, response=head("text/html"), body=page,
                                             preview=1024, client_ip="192.0.2.%d" % number)
                    assert b"<b>192.0.2.%d</b>" % number in answer.body
                else:
                    answer = connection.call("RESPMOD", "gray", request=REQUEST, response=head("image/jpeg", len(photo)),
                                             body=photo, preview=1024)
                    assert answer.status == 200 and len(answer.body) > 100
            connection.close()
        except Exception:  # pylint: disable=broad-except
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=worker, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_any_pieces(lab):
    """Bodies of any length in pieces of any length, on one connection, with any preview."""
    chance = random.Random(5)
    connection = Connection(lab.port)
    for turn in range(400):
        noise = chance.random() < 0.5
        size = chance.choice((0, 1, 300, 1023, 1024, 1025, 4064, 4096, 8128, chance.randrange(200000)))
        body = chance.randbytes(size) if noise else b"<p>text</p>" * (size // 11) + b"x" * (size % 11)
        service, kind = chance.choice((("gzip", "text/css"), ("inject", "text/html"), ("gray", "image/jpeg")))
        if service == "gray":
            body = b"\xff\xd8\xff" + body  # no picture: held to its end, then given back
        elif service == "inject":
            body = body.replace(b"<", b"[")
        answer = connection.call(
            "RESPMOD", service, request=REQUEST, response=head(kind, len(body) if chance.random() < 0.5 else None),
            body=body, preview=chance.choice((None, 0, 1, 1024, 4096)), allow204=chance.random() < 0.5,
            piece=chance.choice((1 + chance.randrange(5000), 4064, 4096, 65536)))
        got = body if answer.status == 204 else answer.body
        if answer.header("content-encoding") == "gzip":
            got = gzip.decompress(got)
        assert answer.status in (200, 204) and got == body, (turn, service, len(body), len(got))
    connection.close()


def test_clients_that_leave(lab):
    page = PAGE.replace(b"@", b"")
    for service, kind, body in (("gzip", "text/html", page), ("inject", "text/html", page),
                                ("gray", "image/jpeg", picture("photo.jpg"))):
        block = (REQUEST.replace("\n", "\r\n") + "\r\n").encode()
        response = (head(kind, len(body)).replace("\n", "\r\n") + "\r\n").encode()
        text = ("RESPMOD icap://x/%s ICAP/1.0\r\nHost: x\r\nEncapsulated: req-hdr=0, res-hdr=%d, res-body=%d\r\n\r\n"
                % (service, len(block), len(block) + len(response))).encode()
        whole = text + block + response + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        for cut in list(range(10, len(text) + len(block) + len(response), 37)) + [len(whole) - 50000, len(whole) - 3]:
            connection = socket.create_connection(("127.0.0.1", lab.port))
            connection.sendall(whole[:cut])
            connection.close()
    test_gzip_every_way(lab)
    assert send_photo(lab).body != picture("photo.jpg")


def test_istag(lab):
    """The same in every child, and another after a change of configuration."""
    tags = {service: {lab.options_of(service).headers["istag"][0] for _ in range(20)}
            for service in ("gzip", "gray", "inject", "adremover")}
    assert all(len(tag) == 1 for tag in tags.values()), tags
    lab.write("rules.txt", "||ads.example^\n/banner/*\n@@||good.example^\n0.0.0.0 exact.example\n||new.example^\n")
    with open(lab.path("c-icap.ctl"), "w", encoding="utf-8") as control:
        control.write("reconfigure")
    until(lambda: {lab.options_of("adremover").headers["istag"][0]} != tags["adremover"], 30 * lab.patience, "another ISTag")
    until(lambda: reqmod(lab.port, "adremover", request="GET http://new.example/ HTTP/1.1\n", preview=0).status == 200,
          10 * lab.patience, "the new rule")
    assert {lab.options_of("gzip").headers["istag"][0]} == tags["gzip"]


# ---- the run ---------------------------------------------------------------------------------


def make_pictures(directory):
    """Real pictures if there are any about, else made ones; always the same kinds."""
    photo = os.path.join(directory, "photo.ppm")
    found = glob.glob(os.path.join(SOURCE, "tests/data/cache/**/china.jpg"), recursive=True) or \
        glob.glob("/usr/lib/python3*/**/china.jpg", recursive=True)
    command = "djpeg %s" % found[0] if found else "ppmpat -camo -randomseed=1 400 300"
    with open(photo, "wb") as file:
        file.write(netpbm(command, b""))
    data = open(photo, "rb").read()
    small = netpbm("pnmscale -xysize 60 40", data)
    made = {
        "photo.jpg": netpbm("cjpeg -quality 85", data),
        "progressive.jpg": netpbm("cjpeg -progressive -sample 2x2", data),
        "small.jpg": netpbm("cjpeg", small),
        "coarse.jpg": netpbm("cjpeg -quality 20", data),
        "photo.png": netpbm("pnmtopng -interlace", data),
        "photo.bmp": netpbm("ppmtobmp -bpp=24", small),
    }
    with open(os.path.join(directory, "mask.pgm"), "wb") as file:
        file.write(netpbm("ppmtopgm", small))
    made["alpha.png"] = netpbm("pnmtopng -alpha=%s/mask.pgm" % directory, small)
    first = netpbm("pnmquant 32 2>/dev/null | ppmtogif", small)
    second = netpbm("pnmflip -lr | pnmquant 16 2>/dev/null | ppmtogif", small)
    made["animated.gif"] = animate(first, second)
    for name, contents in made.items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(contents)


def animate(first, second):
    """Two GIFs become one of two frames, the second with a local colour table."""
    def parts(data):
        size = 3 * (2 << (data[10] & 7)) if data[10] & 0x80 else 0
        return data[:13 + size], data[13:13 + size], data[13 + size:-1], data[10] & 7

    start, _, frame, _ = parts(first)
    _, table, other, bits = parts(second)
    at = other.index(b",")
    descriptor = bytearray(other[at:at + 10])
    descriptor[9] = 0x80 | bits
    return (start + b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0" + frame + b"!\xf9\x04\x04\x0a\0\0\0"
            + bytes(descriptor) + table + other[at + 10:] + b";")


def main():
    global PICTURES
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builddir", default=os.environ.get("RETORT_BUILDDIR", os.path.join(SOURCE, "build")))
    parser.add_argument("--valgrind", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    PICTURES = tempfile.mkdtemp(prefix="retort-pictures-")
    make_pictures(PICTURES)
    tests = [(name, function) for name, function in globals().items() if name.startswith("test_")
             and (not options.names or any(part in name for part in options.names))]
    lab, failed = Lab(options), 0
    for name, function in tests:
        begun = time.monotonic()
        try:
            function(lab)
            verdict = "ok"
        except Exception:  # pylint: disable=broad-except
            failed += 1
            verdict = "FAILED\n" + traceback.format_exc()
        print("%-44s %6.2f s  %s" % (name, time.monotonic() - begun, verdict), flush=True)
    findings = lab.close()
    shutil.rmtree(PICTURES)
    for finding in findings:
        print("FINDING:", finding)
    print("%d tests, %d failed, %d findings" % (len(tests), failed, len(findings)))
    return 1 if failed or findings else 0


if __name__ == "__main__":
    sys.exit(main())
