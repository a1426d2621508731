"""System calls: of a hit no more than a server makes that does nothing but answer, of a miss under adaptation no more than there
are messages."""

import collections
import os
import re
import signal
import socket
import threading

from harness.checks import between, equal, same_bytes, true, until
from harness.icap import IcapServer
from harness.origin import Origin
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.suite import heavy
from harness.wire import chunked, request

TIMES = 40
WAITING = {"epoll_wait", "rt_sigtimedwait", "restart_syscall"}
HEAVY = "strace runs the program itself"


def hit(name, headers=None):
    return request("GET", f"/text?say={name}&cc=max-age%3D3600", headers, host="www.example.com")


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


class Alone(Retort):
    """Without an admin plane, whose sampler asks the worker now and then."""

    def text(self, **changes):
        # No access log: what is written for it is not the way of the request.
        return re.sub(r"^(access_log|admin) .*", "", super().text(**changes), flags=re.MULTILINE)

    def _answers(self):
        return self.process.log().count(" serving with ") > self.served


class Traced:
    """A proxy under strace that has some hits stored."""

    def __init__(self, lab, maps=None, **options):
        self.lab, self.rounds, self.lines = lab, 0, []
        self.origin = Origin(lab)
        self.path = lab.path("calls")
        # -D: the tracer stands aside, and the proxy is our own child.
        self.proxy = Alone(lab, reverse={"/": self.origin.url("/"), **(maps or {})}, start_seconds=60, stop_seconds=60, **options,
                           under=["strace", "-D", "-f", "-qq", "-o", self.path])
        self.marks = self.wire()
        for name in ("begin", "end", "hello"):
            self.ask(self.marks, name)

    def wire(self):
        return self.proxy.wire(reverse=True, timeout=60)

    def ask(self, wire, name, headers=None):
        wire.send(hit(name, headers))
        equal(wire.response().text(), name, "body")

    def stand_still(self):
        os.kill(self.proxy.pid, signal.SIGSTOP)
        until(lambda: state(self.proxy.pid) in "Tt", 30 * self.lab.patience, "a process that stands")

    def go_on(self):
        os.kill(self.proxy.pid, signal.SIGCONT)

    def count(self, work):
        """The calls that are made while `work` runs, those that wait left out."""
        self.ask(self.marks, "begin")
        work()
        self.ask(self.marks, "end")
        self.proxy.stop()
        with open(self.path, encoding="latin-1") as out:
            lines = out.read().split("\n")
        marks = [max(i for i, line in enumerate(lines) if 'recvfrom' in line and f'"GET /text?say={name}' in line)
                 for name in ("begin", "end")]
        # Threads that serve no clients may still be beginning.
        workers = {line.split(" ", 1)[0] for line in lines if 'PR_SET_NAME, "rt-worker-' in line}
        self.lines = [line for line in lines[marks[0] + 1:marks[1]] if line.split(" ", 1)[0] in workers]
        names = (re.match(r"\d+ +(\w+)\(", line) for line in self.lines)
        counts = collections.Counter(match.group(1) for match in names if match)
        counts["sendto"] -= 1  # the answer to the first mark
        self.rounds = counts["epoll_wait"]
        return {name: count for name, count in counts.items() if name not in WAITING}


@heavy(HEAVY)
def test_a_hit_on_a_kept_connection(lab):
    traced = Traced(lab)
    with traced.wire() as wire:
        traced.ask(wire, "hello")
        counts = traced.count(lambda: [traced.ask(wire, "hello") for _ in range(TIMES)])
    equal(counts, {"recvfrom": TIMES, "sendto": TIMES}, "calls")


@heavy(HEAVY)
def test_pipelined_hits_leave_together(lab):
    traced = Traced(lab)

    def work():
        wire.send(hit("hello") * TIMES)
        for _ in range(TIMES):
            equal(wire.response().text(), "hello", "body")

    with traced.wire() as wire:
        traced.ask(wire, "hello")
        counts = traced.count(work)
    equal(counts, {"recvfrom": 1, "sendto": 1}, "calls")


@heavy(HEAVY)
def test_a_long_pipeline_gives_way(lab):
    """Others that have asked meanwhile are not served behind all of it."""
    traced, many = Traced(lab), 1000

    def work():
        traced.stand_still()
        greedy.send(hit("hello") * many)
        other.send(hit("other"))
        traced.go_on()
        equal(other.response().text(), "other", "body")
        for _ in range(many):
            equal(greedy.response().text(), "hello", "body")

    with traced.wire() as greedy, traced.wire() as other:
        traced.ask(greedy, "hello")
        traced.ask(other, "other")
        traced.count(work)
    asked, = (re.search(r"recvfrom\((\d+), ", line)[1] for line in traced.lines if "GET /text?say=other" in line)
    answered, = (i for i, line in enumerate(traced.lines) if f"sendto({asked}, " in line)
    before, behind = (sum("sendto(" in line for line in lines) for lines in (traced.lines[:answered], traced.lines[answered + 1:]))
    true(before <= 3 < behind, f"{before} writes were before that to the other client, {behind} behind it")


@heavy(HEAVY)
def test_a_hit_on_a_connection_of_its_own(lab):
    """What has arrived before the connection is accepted is answered without watching it."""
    traced = Traced(lab)

    def work():
        traced.stand_still()
        wires = [traced.wire() for _ in range(TIMES)]
        for wire in wires:
            wire.send(hit("hello", {"Connection": "close"}))
        traced.go_on()
        for wire in wires:
            equal(wire.response().text(), "hello", "body")
            equal(wire.at_end(), True, "the connection's end")
            wire.close()

    work()  # memory for as many connections at a time
    counts = traced.count(work)
    # Now and then one more is accepted for than there are.
    between(counts.pop("accept4"), TIMES, TIMES * 1.3, "accept4")
    equal(counts, {"recvfrom": TIMES, "sendto": TIMES, "close": TIMES}, "calls")


@heavy(HEAVY)
def test_a_crowd_is_let_in(lab):
    """Of clients that all come at once, more are accepted each time that more wait."""
    traced = Traced(lab)
    crowd = 800

    def work():
        traced.stand_still()
        wires = [traced.wire() for _ in range(crowd)]
        for wire in wires:
            wire.send(hit("hello", {"Connection": "close"}))
        traced.go_on()
        for wire in wires:
            equal(wire.response().text(), "hello", "body")
            wire.close()

    counts = traced.count(work)
    between(counts["accept4"], crowd, crowd + 10, "accept4")
    between(traced.rounds, crowd // 64, 60, "waits for events")


def answer_of(transaction, body):
    """What a service says that sends the body back."""
    head = transaction.response_head()
    encapsulated = f"res-hdr=0, res-body={len(head)}"
    return (f'ICAP/1.0 200 OK\r\nISTag: "test-1"\r\nEncapsulated: {encapsulated}\r\n\r\n').encode() + head + chunked(body)


def calls_of_misses(lab, size, send, meanwhile=lambda: None):
    """(reads, writes) of a request whose response a service reads to its end; send(send_together, answer) sends it back.

    Whoever sends to the proxy has it stand still, so that what is sent together arrives together."""
    traced = None

    def together(sender, data):
        traced.stand_still()
        sender.send(data)
        traced.go_on()

    def body(connection, _request):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nContent-Length: {size}\r\n\r\n"
        together(connection, head.encode() + pattern(size))

    def behave(_icap, transaction):
        answer = answer_of(transaction, transaction.finish_body())
        if "/bytes" in transaction.http_request.start:
            send(lambda piece: together(transaction, piece), answer)
        else:
            transaction.send(answer)

    def misses(wire):
        for _ in range(TIMES):
            wire.send(request("GET", "/bytes", host="www.example.com"))
            wire.socket.recv(1, socket.MSG_PEEK)
            meanwhile()
            same_bytes(wire.response().body, pattern(size), "body")

    icap = IcapServer(lab, behave)
    traced = Traced(lab, {"/bytes": RawOrigin(lab, body).url("/bytes")}, services=[Service("s", icap.uri())])
    with traced.wire() as wire:
        counts = traced.count(lambda: misses(wire))
    return [sum(counts.get(name, 0) for name in names) / TIMES for names in (("recvfrom", "readv"), ("sendto", "sendmsg"))]


@heavy(HEAVY)
def test_a_miss_that_a_service_sends_back(lab):
    """Two reads of what the origin sends; what of it goes behind the preview is one write, and what comes back one read."""
    reads, writes = calls_of_misses(lab, 40000, lambda send, answer: send(answer))
    between(reads, 5, 5.6, "reads: of the client 1, of the origin 2, of the service 2")
    between(writes, 4, 4.6, "writes: to the client 1, to the origin 1, to the service 2")


@heavy(HEAVY)
def test_the_end_of_a_body_leaves_with_it(lab):
    """Of an answer that comes in two pieces."""
    has_some = threading.Semaphore(0)

    def send(send_together, answer):
        send_together(answer[:5000])
        has_some.acquire(timeout=60)
        send_together(answer[5000:])

    reads, writes = calls_of_misses(lab, 10000, send, has_some.release)
    between(reads, 5, 5.6, "reads: of the client 1, of the origin 1, of the service 3")
    between(writes, 5, 5.6, "writes: to the client 2, to the origin 1, to the service 2")
