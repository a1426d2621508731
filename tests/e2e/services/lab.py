"""The lab that all tests share: c-icap with our modules, retort-helperd with its pools, and what is sent through them."""

import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from services.icap import Broken, Connection
from services import SOURCE
from services.inside import InsideHost
from services.pictures import picture

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
    end = time.monotonic() + max(seconds, 20)  # a busy machine stands still for seconds
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
        self.host = CicapHost(self) if options.host == "icap" else InsideHost(self, "worker" if options.host == "inside" else options.host)

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

    def connect(self, timeout=60):
        return self.host.connect(timeout)

    def respmod(self, service, **arguments):
        return self.call("RESPMOD", service, arguments)

    def reqmod(self, service, **arguments):
        return self.call("REQMOD", service, arguments)

    def call(self, method, service, arguments):
        connection = self.connect()
        try:
            return connection.call(method, service, **arguments)
        finally:
            connection.close()

    def directives(self):
        """c-icap's configuration, of which the part about services holds for every host."""
        with open(os.path.join(SOURCE, "conf", "c-icap-build.conf.in"), encoding="utf-8") as file:
            text = file.read()
        for name, value in (("DIR", self.dir), ("BUILD", self.build), ("PORT", str(self.port))):
            text = text.replace("@%s@" % name, value)
        text += "\ngzip.SkipUrl http://secret.example/* */login?*"
        return text + "\ngray.Deadline %ds\ngray.MaxSize 2M\ninject.Deadline %ds\n" % (4 * self.stretch, 2 * self.stretch)

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
        findings = self.host.close()
        stopped = [self.stop(process) for process in self.processes]
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


class CicapHost:
    """c-icap with our modules, asked by an ICAP client."""

    is_icap = True

    def __init__(self, lab):
        self.lab = lab
        self.process = lab.spawn("c-icap", ["c-icap", "-N", "-f", lab.write("c-icap.conf", lab.directives())])
        until(self.answers, 20 * lab.patience, "c-icap")

    def answers(self):
        try:
            return self.options_of("gzip").status == 200
        except (OSError, Broken):
            return False

    def options_of(self, service):
        connection = self.connect()
        connection.socket.sendall(b"OPTIONS icap://127.0.0.1/%s ICAP/1.0\r\nHost: x\r\n\r\n" % service.encode())
        try:
            return connection.read_response()
        finally:
            connection.close()

    def connect(self, timeout=60):
        return Connection(self.lab.port, timeout)

    def close(self):
        return []


def icap_only(why):
    """A mark of tests that look at ICAP itself."""
    def mark(test):
        test.icap_only = why
        return test
    return mark


def helpers_only(test):
    """A mark of tests that ask retort-helperd or a helper by themselves: no service has a part in them, wherever it runs."""
    return icap_only("asks retort-helperd or a helper without a service")(test)


def every_way(lab, service, kind, body, check, length=True, request=REQUEST, **more):
    """Sends the body with every preview, with and without its length; by ICAP with and without Allow: 204."""
    for preview in PREVIEWS if lab.host.is_icap else PREVIEWS[1:]:
        for allow in (False, True) if lab.host.is_icap else (True,):
            for known in ((True, False) if length else (False,)):
                answer = lab.respmod(service, request=request,
                                 response=head(kind, len(body) if known else None), body=body, preview=preview,
                                 allow204=allow, **more)
                got = body if answer.status == 204 else answer.body
                try:
                    check(answer, got)
                except AssertionError as error:
                    raise AssertionError("%s of %d bytes, preview %s, allow 204 %s, length known %s: %s"
                                         % (kind, len(body), preview, allow, known, error)) from error


def digits(chance, size):
    """Text that shrinks by half at most."""
    return chance.randbytes((size + 1) // 2).hex().encode()[:size]


def accepting(value):
    return REQUEST.replace("Accept-Encoding: gzip", "Accept-Encoding: " + value)


PAGE = (b"<!doctype html><html><head><!-- </head> --><title></head></title><script>'</head>'</script>"
        b"<meta content='</head>'>@</HEAD><body>" + b"text " * 20000 + b"</body></html>")


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
    return lab.respmod("gray", request=REQUEST, response=head("image/jpeg", len(body)), body=body, preview=1024)
