"""retortctl tail: what it shows of the event stream, to whom, and that nothing in the stream steers a terminal."""

import json
import os
import signal
import socket
import subprocess
import threading
import time

from harness.checks import contains, equal, lacks, true, until
from harness.events import Events
from harness.icap import IcapServer, unchanged
from harness.origin import Origin
from harness.retort import Retort, Service
from test_admin_access import OPERATE, READ, audit, guarded, metric
from test_admin_tls import Plane, TOKEN
from test_takeover import upgrade


class Ctl:
    """retortctl beside a proxy, while it runs. Its two outputs are files."""

    def __init__(self, lab, where, *words, **environment):
        self.lab = lab
        self.paths = [lab.path(lab.unique(f"ctl.{name}")) for name in ("out", "err")]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen([lab.built("proxy/retortctl"), "-s", where, *words], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, env={**os.environ, **lab.environment(), "TZ": "UTC", **environment})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def text(self, which):
        with open(self.paths[which], encoding="utf-8") as file:
            return file.read()

    out = property(lambda self: self.text(0))
    err = property(lambda self: self.text(1))

    def ends(self, expected=0, seconds=20):
        equal(self.process.wait(seconds * self.lab.patience), expected, f"exit status; {self.err}")
        return self.out

    def says(self, part, which=1, seconds=20):
        until(lambda: part in self.text(which), seconds * self.lab.patience, lambda: f"{part!r} in {self.text(which)!r}")


def tail(lab, proxy, *words, **environment):
    """Comes back when it is connected."""
    before = metric(proxy, "retort_event_consumers")
    ctl = Ctl(lab, proxy.admin_listen(), "tail", *words, **environment)
    until(lambda: metric(proxy, "retort_event_consumers") > before or ctl.process.poll() is not None, 20 * lab.patience, "tail is connected")
    return ctl


class Hostile:
    """A Unix socket that answers each request with the next of the given bytes, and then closes it."""

    def __init__(self, lab, *answers):
        self.path = lab.path(lab.unique("hostile.sock"))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.asked = []
        self.thread = threading.Thread(target=self.run, args=(answers,), daemon=True)
        self.thread.start()

    def run(self, answers):
        for answer in answers:
            peer = self.listener.accept()[0]
            self.asked.append(peer.recv(65536))
            try:
                peer.sendall(answer)
            except OSError:  # it has read enough
                pass
            peer.close()
        self.listener.close()


def stream(*events, end=True):
    body = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n" + body + (b"0\r\n\r\n" if end else b"")


def event(**members):
    return b"data: " + json.dumps(members).encode() + b"\n\n"


def test_lines(lab):
    """A line for people, or the line of the JSON access log to the letter; --count ends it."""
    icap, origin = IcapServer(lab, unchanged), Origin(lab)
    proxy = Retort(lab, services=[Service("quiet", icap.uri("quiet"))])
    with tail(lab, proxy, "--count", "2") as people, tail(lab, proxy, "--json", "--count", "2") as program, \
            tail(lab, proxy, "status=404", "method=GET", "--count", "1") as chosen:
        proxy.get(origin.url("/text", say="one", cc="max-age=60"))
        proxy.get(origin.url("/text", say="gone", status=404))
        lines = people.ends().splitlines()
        equal(len(lines), 2, "lines")
        for part in ("200 MISS ", " ms 127.0.0.1", " GET http://", "say=one", " quiet:UNMODIFIED:"):
            contains(lines[0], part, "a line for people")
        lacks(people.out, "\033", "no colours in a file")
        log = {entry["id"]: entry for entry in proxy.log(2)}
        equal({entry["id"]: entry for entry in map(json.loads, program.ends().splitlines())}, log, "JSON")
        contains(chosen.ends(), "say=gone", "the chosen one")
        equal(len(chosen.out.splitlines()), 1, "chosen")
    equal([people.err, program.err, chosen.err], ["", "", ""], "standard error")


def test_refusals(lab):
    """What retort refuses ends it with 1, and what can't be meant with 2."""
    proxy = guarded(lab)
    for words, status, said in ((["status"], 2, '"status" is no filter: write NAME=VALUE'), (["--count", "0", "status=2xx"], 2, "--count"),
                                (["status=99"], 1, "write 404, 5xx or 400-499"), (["frob=1"], 1, "no parameter of that name"),
                                (["class=none"], 1, "there is no url_class"), (["status=200", "status=404"], 1, "twice"),
                                (["url=\x1b[31m&host=x", "host=\xff"], 0, "")):
        if status == 0:  # the value is encoded, so that it is one argument
            with Ctl(lab, proxy.admin_listen(), "tail", *words, RETORT_TOKEN=OPERATE) as ctl:
                until(lambda: metric(proxy, "retort_event_consumers") == 1, 20 * lab.patience, "a value with & and controls")
                ctl.process.send_signal(signal.SIGINT)
                ctl.ends(-signal.SIGINT)
            continue
        with Ctl(lab, proxy.admin_listen(), "tail", *words, RETORT_TOKEN=OPERATE) as ctl:
            ctl.ends(status)
            contains(ctl.err, said, words)
    with Ctl(lab, proxy.admin_listen(), "tail", RETORT_TOKEN=READ) as ctl:
        equal(ctl.ends(1), "", "a token that may not")
    with Ctl(lab, lab.path("none.sock"), "tail") as ctl:
        ctl.ends(1)
        contains(ctl.err, "is retort running", "without retort")


def test_controls_are_escaped(lab):
    """No byte of a client's, and none of a server that is not retort, steers the terminal."""
    origin, proxy = Origin(lab), Retort(lab)
    with tail(lab, proxy, "--count", "2") as people, tail(lab, proxy, "--count", "2", "--json") as program:
        with proxy.wire() as wire:
            wire.send(b"GET http://x/\x1b[2J\xc2\x9b HTTP/1.1\r\nHost: x\r\n\r\n")
            wire.head()
        proxy.get(origin.url("/text", say="a"), {"User-Agent": b"\x1b]0;owned\x07\xe2\x80\xae".decode("latin-1").replace("\x1b", "\xc2\x9b").replace("\x07", "x")})
        for text in (people.ends(), program.ends()):
            for bad in "\x1b\x07\x9b\u202e":
                lacks(text, bad, "what a terminal gets")
    bad = "\x1b]0;x\x07\u202e\x9b"
    raw = b'data: {"url":"raw\xc2\x9b31m","method":"\xe2\x80\xae"}\n\n'
    server = Hostile(lab, *[stream(event(url=bad, method=bad, result=bad, client=bad, error=bad, time=1e300, status=10**18, ms=-1,
                                         icap=[{"service": bad, "verdict": bad, "ms": 1}]), raw, event(url="a\0b"))] * 2)
    for words in ([], ["--json"]):
        with Ctl(lab, server.path, "tail", "--count", "3", *words) as ctl:
            out = ctl.ends()
            equal(len(out.splitlines()), 3, f"lines: {out!r}")
            for c in "\x1b\x07\x9b\u202e\0":
                lacks(out + ctl.err, c, words)
    contains(out, "\\u009b", "as an escape")


def test_texts_are_escaped(lab):
    """A server that is not retort chooses what is printed."""
    answer = b"\x1b]0;owned\x07 1\n! \x1b[31m\n"
    server = Hostile(lab, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
    done = subprocess.run([lab.built("proxy/retortctl"), "-s", server.path, "status"], capture_output=True, text=True, check=False,
                          timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
    lacks(done.stdout + done.stderr, "\x1b", "what a terminal gets")
    contains(done.stdout, "\\u001b]0;owned", "as an escape")


def test_bad_streams(lab):
    """What is no event is left out or ends the connection, never the command; a refusal later ends it."""
    gone = b'HTTP/1.1 404 Not Found\r\nContent-Length: 26\r\n\r\n{"error": "no such class"}'
    good = event(url="http://good/", status=200)
    server = Hostile(
        lab, stream(b"data: {no json\n\n", b"data: [1]\n\ndata: 7\n\n", b": beat\n\nretry: 1\n\nfrob\n\n", good, end=False),
        stream(b"data: " + b"x" * (200 << 10)), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 99,
        b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\n{}", stream(b'event: lost\ndata: {"lost":17}\n\n', b'event: lost\ndata: {"lost":1}\n\n', good), gone)
    with Ctl(lab, server.path, "tail", "--json", "class=a b&c") as ctl:
        equal(ctl.ends(1).splitlines(), [good[6:-2].decode()] * 2, "what is shown")
    for part in ("is not JSON", "is cut off", "a line has more than 128 KB", "connected again after", "no such class",
                 "17 transactions were lost because this terminal read too slowly", "1 transaction was lost because"):
        contains(ctl.err, part, "standard error")
    equal({request.split(b" ")[1] for request in server.asked}, {b"/v1/events?class=a%20b%26c&"}, "what is asked for")


def test_losses(lab):
    """A reader that stands still loses events, is told how many, and goes on; other readers lose nothing."""
    origin, proxy, count = Origin(lab), Retort(lab), 300
    proxy.write_config(proxy.text().replace("admin { ", 'admin { event_queue = "256KB"  '))
    proxy.restart()
    url = origin.url("/text", say="x", cc="max-age=60")
    with tail(lab, proxy, "--json", "host=127.0.0.1") as slow, Events(proxy) as other:
        slow.process.send_signal(signal.SIGSTOP)
        for n in range(count):
            proxy.get(url, {"User-Agent": f"{n:04}" * 600, "Referer": "r" * 2400})
            if n % 20 == 19:
                equal([event.data["user_agent"][:4] for event in other.take(20)], [f"{m:04}" for m in range(n - 19, n + 1)], "the other one")
        true(metric(proxy, "retort_events_lost_total") > 0, "events are lost")
        slow.process.send_signal(signal.SIGCONT)
        sent = [count]

        def is_seen():  # the first of them may be lost, too
            proxy.get(url, {"User-Agent": "last"})
            sent[0] += 1
            time.sleep(0.05)
            return '"last"' in slow.out
        until(is_seen, 20 * lab.patience, "what comes later is seen")
        slow.says("lost because this terminal read too slowly")

        def known():
            return len(slow.out.splitlines()) + sum(int(line.split()[1]) for line in slow.err.splitlines())
        until(lambda: known() == sent[0], 20 * lab.patience, lambda: f"{known()} of {sent[0]} are shown or told as lost")
        slow.process.send_signal(signal.SIGINT)
        slow.ends(-signal.SIGINT)


def test_takeover_and_restart(lab):
    """It goes on with the new process and with the restarted one, and says what it could not see."""
    origin, proxy = Origin(lab), Retort(lab)
    with tail(lab, proxy, "--count", "3") as ctl:
        proxy.get(origin.url("/text", say="before"))
        ctl.says("say=before", which=0)
        upgrade(lab, proxy)
        ctl.says("retort has ended the stream")
        ctl.says("connected again after")
        proxy.get(origin.url("/text", say="after"))
        ctl.says("say=after", which=0)
        proxy.restart()
        until(lambda: ctl.err.count("connected again after") == 2, 20 * lab.patience, lambda: ctl.err)
        proxy.get(origin.url("/text", say="later"))
        contains(ctl.ends(), "say=later", "the third")


def test_tls(lab):
    """The stream comes by https:// with a token as well."""
    origin, plane = Origin(lab), Plane(lab)
    proxy = plane.proxy
    with Ctl(lab, "https://%s:%d" % plane.address, "tail", "--count", "1", RETORT_TOKEN=TOKEN, RETORT_CA_FILE=plane.root.file) as ctl:
        until(lambda: os.path.exists(proxy.audit_path) and "GET /events" in str(audit(proxy)), 20 * lab.patience, lambda: ctl.err)
        proxy.get(origin.url("/text", say="secret"))
        contains(ctl.ends(), "say=secret", "by TLS")
