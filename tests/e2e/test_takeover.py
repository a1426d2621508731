"""A new process takes the place of one that runs: no connection is refused or reset, and the volumes move with it.

RETORT_UPGRADES and RETORT_UPGRADE_REQUESTS make the first test larger: docs/OPERATIONS.md has the figures of the whole.
"""

import fcntl
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
from urllib.parse import quote

from harness import ports
from harness.checks import contains, equal, one_of, same_bytes, true, until
from harness.helperd import Helperd
from harness.origin import Origin
from harness.process import Process, gone, stand_still
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import heavy, seconds
from harness.wire import Wire, request

UPGRADES = int(os.environ.get("RETORT_UPGRADES", "4"))
REQUESTS = int(os.environ.get("RETORT_UPGRADE_REQUESTS", "1500"))
GONE = 20  # seconds for the old process


class Successor:
    """retort --take-over beside a proxy of the harness, in whose place it stands once it serves."""

    def __init__(self, lab, proxy, *, expected=0, serves=True, environment=None):
        self.lab = lab
        self.proxy = proxy
        self.earlier = proxy.process
        self.process = Process(lab, lab.unique(proxy.name), [proxy.program, "--take-over", "-f", proxy.config_path],
                               environment={**proxy.environment, **(environment or {})}, expected_status=expected, stop_seconds=20)
        lab.opens(self)
        if serves:
            self.process.wait_ready(lambda: "serving with" in self.process.log(), 20)
            proxy.pid = self.process.pid

    def wait_for_the_end_of_the_old_one(self):
        equal(self.earlier.wait(GONE), 0, "exit status of the old process")

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.process.findings()


def upgrade(lab, proxy):
    """Replaces the process; a proxy of the harness goes on to work."""
    successor = Successor(lab, proxy)
    successor.wait_for_the_end_of_the_old_one()
    proxy.process = successor.process
    return successor


class Load:
    """Clients without pause: half with connections of many requests, half with new ones."""

    def __init__(self, proxy, urls, clients=6):
        self.proxy, self.urls = proxy, urls
        self.count, self.errors, self.stopping = 0, [], False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(number % 2 == 0,)) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def _run(self, keeps):
        wire = None
        number = 0
        while not self.stopping:
            url, body = self.urls[number % len(self.urls)]
            number += 1
            try:
                wire = wire or self.proxy.wire()
                wire.send(request("GET", url))
                answer = wire.response()
                if answer.status != 200 or answer.body != body:
                    raise AssertionError(f"{answer.status}, {len(answer.body)} bytes")
                if not keeps or (answer.header("Connection") or "").lower() == "close":
                    wire.close()
                    wire = None
            except (OSError, AssertionError) as error:
                self.errors.append(f"{type(error).__name__}: {error}"[:200])
                wire = None
            with self.lock:
                self.count += 1

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def volume(lab, size="64MB"):
    return {"memory": "16MB", "disk": {lab.path("volume"): {"size": size}}}


@seconds(1200)
def test_upgrades_under_load(lab):
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, cache=volume(lab), drain_timeout="4s")
    small, large = origin.url("/bytes", n=2000, cc="max-age=600"), origin.url("/bytes", n=200000, cc="no-store")
    load = Load(proxy, [(small, origin.body(2000))] * 19 + [(large, origin.body(200000))])
    try:
        for number in range(UPGRADES):
            until(lambda n=number: load.count >= REQUESTS * n // UPGRADES, 1000 * lab.patience, "requests")
            upgrade(lab, proxy)
            equal(proxy.status()["pid"], proxy.pid, "who answers at the admin socket")
        until(lambda: load.count >= REQUESTS, 1000 * lab.patience, "requests")
    finally:
        load.stop()
    equal(load.errors[:5], [], f"errors of {load.count} requests")
    print(f"{load.count} requests over {UPGRADES} upgrades, {len(load.errors)} errors", flush=True)


def test_idle_connections(lab):
    """A close at the moment of the takeover would meet a request that is on its way."""
    origin = Origin(lab)
    proxy = Retort(lab, drain_timeout="30s")
    idle = proxy.wire()
    idle.send(request("GET", origin.url("/text", say="one")))
    equal(idle.response().text(), "one", "before")
    successor = Successor(lab, proxy)
    idle.send(request("GET", origin.url("/text", say="two")))
    answer = idle.response()
    equal((answer.text(), answer.header("Connection")), ("two", "close"), "after")
    true(idle.at_end(), "the old process closes it then")
    successor.wait_for_the_end_of_the_old_one()
    contains(successor.earlier.log(), f"process {successor.process.pid} has taken over", "log of the old one")


def test_the_volume_moves(lab):
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    first, second = (origin.url("/bytes", n=n, cc="max-age=600") for n in (5000, 6000))
    proxy.get(first)
    upgrade(lab, proxy)
    same_bytes(proxy.get(first).body, origin.body(5000), "what the old one had written")
    equal(proxy.results("n=5000", 2)[-1], "HIT", "result")
    proxy.get(second)
    upgrade(lab, proxy)
    same_bytes(proxy.get(second).body, origin.body(6000), "what the second one had written")
    equal(proxy.results("n=6000", 2)[-1], "HIT", "result")


def test_sending_is_undisturbed(lab):
    """The old process sends from the volume while the new one fills it more than once."""
    origin = Origin(lab)
    size = 9 << 20
    proxy = Retort(lab, cache={"memory": "4MB", "max_object": "1MB", "disk": {lab.path("volume"): {"size": "48MB"}}}, drain_timeout="60s")
    url = origin.url("/bytes", n=size, cc="max-age=600")
    equal(len(proxy.get(url).body), size, "the first time")
    until(lambda: proxy.status()["disk"]["disk_objects"] > 0, 10 * lab.patience, "the object to be on disk")
    slow = proxy.wire()
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    slow.send(request("GET", url))
    slow.head()
    begun = slow.read_bytes(100000)
    Successor(lab, proxy)
    for number in range(14):
        proxy.get(origin.url("/bytes", n=(5 << 20) + number, cc="max-age=600"))
    same_bytes(begun + slow.read_bytes(size - 100000), origin.body(size), "what the old one sent")
    slow.close()


def test_an_order_to_the_old_one_is_no_success(lab):
    """PURGE by a client that is still connected to it: the new one may have stored the response, so the client has to ask that one."""
    origin = Origin(lab)
    proxy = Retort(lab, extra="url_class purgers { method = { PURGE, BAN } }\naccess purgers { action = allow }\naccess all { action = allow }\n")
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    wires = [proxy.wire() for _ in range(2)]
    for wire in wires:
        wire.send(request("GET", url))
        wire.response()
    successor = Successor(lab, proxy)
    proxy.get(url)
    for wire, method in zip(wires, ("PURGE", "BAN")):
        wire.send(request(method, url))
        answer = wire.response()
        equal((answer.status, answer.header("Retry-After")), (503, "1"), method)
        contains(answer.text(), "on a new one", "what is said")
    equal(proxy.get(url, {"Cache-Control": "only-if-cached"}).status, 200, "the new one has it")
    equal(proxy.fetch("PURGE", url).status, 200, "the same to the new one")
    successor.wait_for_the_end_of_the_old_one()
    equal(proxy.get(url, {"Cache-Control": "only-if-cached"}).status, 504, "it is gone")


def stored(proxy, url):
    return proxy.get(url, {"Cache-Control": "only-if-cached"}).status == 200


def test_removal_by_a_client_of_the_old_one(lab):
    """RFC 9111, 4.4: "A cache MUST invalidate the target URI (Section 7.1 of [URI]) when it receives a non-error status code in
    response to an unsafe request method". When the client of the old process learns that its POST is done, the new process has
    removed what it had read from the disk and what it had stored; also when the origin is asked before the takeover and answers
    behind it. Three processes in a row pass it on."""
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, cache=volume(lab), drain_timeout="60s")
    urls = [origin.url("/bytes", n=n, cc="max-age=600") for n in (3000, 4000, 5000)]
    slow = origin.url("/text", say="slow", ms=1500, cc="max-age=600")
    wires = [proxy.wire() for _ in range(len(urls) + 1)]
    for wire, url in zip(wires, [*urls, urls[0]]):
        wire.send(request("GET", url))
        wire.response()
    proxy.get(slow)
    late = proxy.wire()
    late.send(request("POST", slow, {"Content-Length": "1"}, b"x"))
    until(lambda: origin.count("/text") == 2, 10 * lab.patience, "the request at the origin")
    first = proxy.process
    second = Successor(lab, proxy)
    until(lambda: stored(proxy, urls[0]), 10 * lab.patience, "what the new one has read from the disk")
    equal(late.response().status, 200, "an answer from behind the takeover")
    true(not stored(proxy, slow), "the answer was there, and the new one still has what it removes")
    proxy.get(urls[1])
    for wire, url in zip(wires, urls[:2]):
        true(stored(proxy, url), "it is stored")
        wire.send(request("POST", url, {"Content-Length": "1"}, b"x"))
        answer = wire.response()
        equal((answer.status, answer.header("Connection")), (200, "close"), "a POST by the old one")
        true(not stored(proxy, url), "the new one still has what a POST by the old one removes")
    third = Successor(lab, proxy)
    proxy.get(urls[2])
    true(stored(proxy, urls[2]), "it is stored by the third one")
    wires[2].send(request("POST", urls[2], {"Content-Length": "1"}, b"x"))
    equal(wires[2].response().status, 200, "a POST by the first of three")
    true(not stored(proxy, urls[2]), "the third one still has what a POST by the first one removes")
    stand_still(third.process.pid)
    try:
        wires[3].send(request("POST", urls[0], {"Content-Length": "1"}, b"x"))
        equal(wires[3].response().status, 200, "when the one that serves hangs")
        until(lambda: "does not hear" in first.log(), 10 * lab.patience, "the line of the log")
    finally:
        os.kill(third.process.pid, signal.SIGCONT)
    for wire in [*wires, late]:
        wire.close()
    equal(first.wait(GONE), 0, "exit status of the first process")
    equal(second.process.wait(GONE), 0, "exit status of the second one")
    proxy.process = third.process


def test_removals_while_the_new_one_reads(lab):
    """What is removed after the new one has begun to read the disks is told before it serves. A new process that does not hear
    does not take over then."""
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    urls = [origin.url("/bytes", n=n, cc="max-age=600") for n in range(3000, 3020)]
    for url in urls:
        proxy.get(url)
    pretender = Pretender(proxy.admin_path + ".take-over")
    go(pretender, READY, GIVEN)
    for url in urls[:10]:
        equal(proxy.fetch("DELETE", url).status // 100, 2, "an unsafe request")
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(pretender.socket, [b"prepared"], [there.fileno()])
    told = set()
    for _ in range(10):
        told.add(here.recv(70000).decode())
        here.send(b"r")
    equal(told, set(urls[:10]), "what it is told")
    equal(pretender.receive_until("serve"), "serve", "what follows")
    pretender.die()
    here.close()
    there.close()
    until(lambda: proxy.process.log().count("objects recovered") >= 2, 10 * lab.patience, "the volume to be read again")
    until(lambda: proxy.admin("POST", "/reload").status == 200, 10 * lab.patience, "reloads to be taken again")
    pretender = Pretender(proxy.admin_path + ".take-over")
    go(pretender, READY, GIVEN)
    proxy.fetch("DELETE", urls[15])
    pretender.send("prepared")
    equal(pretender.receive_until("serve"), "", "to one that does not hear")
    pretender.die()
    proxy.process.wait_ready(lambda: "could not be told" in proxy.process.log(), 10)


# One that plays the other side.

class Pretender:
    """What asks to take over, step by step."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        until(lambda: os.path.exists(path), 10, "the socket")
        self.socket.connect(path)
        self.sockets = []

    def send(self, text):
        self.socket.send(text.encode())

    def receive(self):
        data, fds, _, _ = socket.recv_fds(self.socket, 65536, 64)
        self.sockets += fds
        return data.split(b"\0")[0].decode()

    def receive_until(self, last):
        while True:
            message = self.receive()
            if message == last or not message or message.startswith("refused"):
                return message

    def die(self):
        self.socket.close()
        for fd in self.sockets:
            os.close(fd)


READY, GIVEN, SERVE = ("take-over 3", "ready"), ("give", "given"), ("prepared", "serve")
STEPS = (("silence", []), ("nonsense", [("give", None)]), ("hello", [("take-over 3", None)]), ("sockets", [READY]),
         ("order", [READY, ("serving", None)]), ("give", [READY, ("give", None)]), ("given", [READY, GIVEN]),
         ("prepared", [READY, GIVEN, ("prepared", None)]), ("serve", [READY, GIVEN, SERVE]))


def go(pretender, *steps):
    for said, awaited in steps:
        pretender.send(said)
        equal(pretender.receive_until(awaited), awaited, f"answer to {said}")


def test_new_one_dies(lab):
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, cache=volume(lab))
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    proxy.get(url)
    for name, steps in STEPS:
        pretender = Pretender(proxy.admin_path + ".take-over")
        for said, awaited in steps:
            pretender.send(said)
            if awaited:
                equal(pretender.receive_until(awaited), awaited, f"{name}: answer to {said}")
        same_bytes(proxy.get(url).body, origin.body(3000), f"{name}: meanwhile")
        pretender.die()
    # What is on disk is there again, and what is new is written.
    until(lambda: proxy.process.log().count("objects recovered") >= 2, 10 * lab.patience, "the volume to be read again")
    until(lambda: proxy.admin("POST", "/reload").status == 200, 10 * lab.patience, "reloads to be taken again")
    other = origin.url("/bytes", n=4000, cc="max-age=600")
    proxy.get(other)
    proxy.restart()
    for n, target in ((3000, url), (4000, other)):
        seen = len(proxy.entries(f"n={n}"))
        same_bytes(proxy.get(target).body, origin.body(n), f"{n} bytes after a restart")
        equal(proxy.results(f"n={n}", seen + 1)[-1], "HIT", "result after a restart")


def test_removal_while_lent(lab):
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    url, other = (origin.url("/bytes", n=n, cc="max-age=600") for n in (3000, 4000))
    proxy.get(url)
    proxy.get(other)
    pretender = Pretender(proxy.admin_path + ".take-over")
    go(pretender, READY, GIVEN)
    contains(proxy.admin("POST", "/reload").text(), "taking over", "a reload meanwhile")
    answer = proxy.admin("DELETE", "/cache/object?url=" + quote(url, safe=""))
    equal(proxy.admin("GET", "/cache/object?url=" + quote(url, safe="")).status, 404, "what the order was about")
    equal(proxy.fetch("POST", other, body=b"x").status // 100, 2, "an unsafe request, which removes the other one")
    true(answer.status != 200, f"an order that the other process does not get was answered with {answer.status} {answer.text()}")
    pretender.die()
    until(lambda: proxy.process.log().count("objects recovered") >= 2, 10 * lab.patience, "the volume to be read again")
    proxy.restart()
    proxy.get(url)
    equal(proxy.results("n=3000", 2), ["MISS", "MISS"], "results, the second after a restart")
    proxy.get(other)
    equal(proxy.results("n=4000", 3)[-1], "MISS", "after a restart")


def test_volume_in_use_after_a_failure(lab):
    """The old process takes its volume back as soon as nobody has it, and says meanwhile why it can't."""
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    proxy.get(url)
    pretender = Pretender(proxy.admin_path + ".take-over")
    go(pretender, READY, GIVEN)
    with open(lab.path("volume"), "rb") as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)
        pretender.die()
        until(lambda: f"end process {os.getpid()} if it still runs" in proxy.process.log(), 10 * lab.patience, "the reason in the log")
        same_bytes(proxy.get(url).body, origin.body(3000), "meanwhile")
    until(lambda: proxy.process.log().count("objects recovered") >= 2, 10 * lab.patience, "the volume to be read again")


def test_new_one_dies_after_all(lab):
    """The old process has closed its sockets. Its log says what that means."""
    proxy = Retort(lab, drain_timeout="20s")
    idle = proxy.wire()
    idle.send(b"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\n\r\n")
    idle.response()
    pretender = Pretender(proxy.admin_path + ".take-over")
    go(pretender, READY, GIVEN, SERVE, ("serving", "retired"))
    true(proxy.process.running(), "it finishes what is under way")
    pretender.die()
    until(lambda: "has died: nobody accepts connections now" in proxy.process.log(), 10 * lab.patience, "the log")
    idle.close()
    proxy.process.expected_status = 1
    equal(proxy.process.wait(GONE), 1, "exit status")


def test_a_volume_is_not_emptied(lab):
    """The old process may be sending from it, and would have lost it if the new one failed later."""
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    proxy.get(url)
    for size in ("80MB", "48MB"):
        proxy.write_config(proxy.text(cache=volume(lab, size)))
        successor = Successor(lab, proxy, expected=1, serves=False)
        equal(successor.process.wait(GONE), 1, "exit status")
        contains(successor.process.log(), "its size has changed from 67108864 to", "why")
        contains(successor.process.log(), "stop the other retort and start this one", "what to do")
        equal(os.stat(lab.path("volume")).st_size, 64 << 20, "size of the volume")
    until(lambda: proxy.process.log().count("objects recovered") >= 3, 10 * lab.patience, "the volume to be read again")
    proxy.write_config(proxy.text())
    proxy.restart()
    proxy.get(url)
    equal(proxy.results("n=3000", 2)[-1], "HIT", "result after a restart")


def test_new_one_fails(lab):
    """Its configuration is wrong, an address is taken, or there is no such disk: nothing happens to the old one."""
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    good = proxy.text()
    taken = socket.create_server(("127.0.0.1", 0))
    for bad in (good + "nonsense = 1\n", good + f'listen "127.0.0.1:{taken.getsockname()[1]}" {{ mode = forward }}\n',
                good.replace(lab.path("volume"), lab.path("nowhere/volume"))):
        proxy.write_config(bad)
        successor = Successor(lab, proxy, expected=1, serves=False)
        equal(successor.process.wait(GONE), 1, "exit status")
        equal(proxy.get(origin.url("/text", say="on")).text(), "on", "the old one serves")
        proxy.process.send_signal(signal.SIGUSR2)
        refused = proxy.process.log().count("instead of taking over")
        until(lambda r=refused: proxy.process.log().count("instead of taking over") > r or r > 0, 20 * lab.patience, "its end to be noticed")
    taken.close()
    proxy.write_config(good)
    upgrade(lab, proxy)
    equal(proxy.get(origin.url("/text", say="on")).text(), "on", "the new one serves")


def test_without_an_old_one(lab):
    proxy = Retort(lab)
    proxy.stop()
    successor = Successor(lab, proxy, expected=1, serves=False)
    equal(successor.process.wait(GONE), 1, "exit status")
    contains(successor.process.log(), "start without --take-over", "advice")


def test_a_stranger_gets_nothing(lab):
    """Another user may connect only where somebody has opened the directory and the socket for all, and is refused then."""
    if os.geteuid() != 0:
        return
    proxy = Retort(lab)
    path = proxy.admin_path + ".take-over"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:  # a connection that says nothing blocks nobody for long
        until(lambda: ours.connect_ex(path) == 0, 10 * lab.patience, "the socket")
    equal(os.stat(path).st_mode & 0o777, 0o600, "mode of the socket")
    directory = os.path.dirname(path)
    os.chmod(path, 0o777)
    modes = {}
    while directory != "/":
        modes[directory] = os.stat(directory).st_mode & 0o7777
        os.chmod(directory, modes[directory] | 0o011)
        directory = os.path.dirname(directory)
    code = ("import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
            " s.connect(sys.argv[1]); s.settimeout(10); s.send(b'take-over 3'); d, f, _, _ = socket.recv_fds(s, 4096, 64); print(d, f)")
    try:
        done = subprocess.run(["/usr/bin/python3", "-c", code, path], capture_output=True, text=True, check=False)
    finally:
        for each, mode in modes.items():
            os.chmod(each, mode)
    contains(done.stdout, "refused only a process of the same user", f"answer {done.stderr[-200:]}")
    contains(done.stdout, "[]", "descriptors")
    contains(proxy.process.log(), "of another user", "log")


# The new one, while the old one dies.

class Old:
    """What hands over, and closes the connection after so many messages of the new one; its process, which is another one, dies then
    or lives on."""

    def __init__(self, lab, proxy, answers, dies=True):
        self.path = proxy.admin_path + ".take-over"
        self.sockets = [socket.create_server(address, reuse_port=True) for address in (proxy.forward, proxy.reverse)]
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(self.path)
        self.socket.listen(1)
        self.answers, self.dies = answers, dies
        self.pretended = subprocess.Popen(["/bin/sleep", "60"])
        self.may_serve, self.prepared = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        lab.opens(self)

    def _pass(self, connection):
        process = os.pidfd_open(self.pretended.pid)
        socket.send_fds(connection, [b"process %d" % self.pretended.pid], [process])
        os.close(process)
        socket.send_fds(connection, [b"sockets"], [each.fileno() for each in [*self.sockets, self.socket]])

    def _run(self):
        connection, _ = self.socket.accept()
        for answer in self.answers:
            if answer != "late":
                connection.recv(65536)
            if answer == "ready":
                self._pass(connection)
            if answer == "serve":
                self.prepared.set()
                self.may_serve.wait(20)
            connection.send(answer.encode())
        if self.dies:
            self.stop()
        for each in [*self.sockets, self.socket, connection]:
            each.close()

    def stop(self):
        self.pretended.kill()
        self.pretended.wait()

    def findings(self):
        return []


def test_old_one_dies(lab):
    """At any moment: the new one serves those who connected before."""
    origin = Origin(lab)
    proxy = Retort(lab, workers=3, cache=volume(lab))
    for answers in (("ready",), ("ready", "given"), ("ready", "given", "serve"), ("ready", "given", "serve", "retired")):
        proxy.stop()
        old = Old(lab, proxy, answers)
        early = Wire(proxy.forward, timeout=20 * lab.patience)
        early.send(request("GET", origin.url("/text", say="early")))
        old.may_serve.set()
        successor = Successor(lab, proxy)
        equal(early.response().text(), "early", f"who connected before, with {answers}")
        for _ in range(6):
            equal(proxy.get(origin.url("/text", say="on")).text(), "on", f"after {answers}")
        proxy.process = successor.process
    proxy.stop()
    true(not os.path.exists(proxy.admin_path + ".take-over"), "the file is removed")


def test_old_one_refuses(lab):
    """Or it closes the connection and runs on: two processes never serve without knowing of each other."""
    proxy = Retort(lab, cache=volume(lab))
    proxy.stop()
    for answers, words in ((("refused it is stopping",), "it is stopping"), (("ready", "given"), "goes on to serve")):
        Old(lab, proxy, answers, dies=False)
        successor = Successor(lab, proxy, expected=1, serves=False)
        equal(successor.process.wait(GONE), 1, "exit status")
        contains(successor.process.log(), words, "message")
        true("serving with" not in successor.process.log(), "it does not serve")
        os.unlink(proxy.admin_path + ".take-over")


def test_one_of_both_accepts(lab):
    """The new process accepts nothing before the old one knows of it, and keeps what the old one may send until that one has ended."""
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    proxy.stop()
    old = Old(lab, proxy, ("ready", "given", "serve", "retired", "late"), dies=False)
    successor = Successor(lab, proxy, serves=False)
    early = Wire(proxy.forward, timeout=20 * lab.patience)
    early.send(request("GET", origin.url("/text", say="early")))
    true(old.prepared.wait(20 * lab.patience), "it is prepared")
    equal(select.select([early.socket], [], [], 0.2)[0], [], "an answer before it may serve")
    old.may_serve.set()
    equal(early.response().text(), "early", "after it may serve")
    until(lambda: "taken over from" in successor.process.log(), 10 * lab.patience, "the takeover")
    true("has ended" not in successor.process.log(), "the old process runs")
    old.stop()
    until(lambda: f"process {old.pretended.pid} has ended" in successor.process.log(), 10 * lab.patience, "the end of the old one")


ENDS = re.compile("has taken over|did not take over")


def test_kill_in_the_middle(lab):
    """kill -9 of either process at any moment: who is left serves, with the volume."""
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    proxy.get(url)
    taken = 0
    for pause in (0.0, 0.01, 0.02, 0.04, 0.08):
        successor = Successor(lab, proxy, serves=False)
        time.sleep(pause)
        successor.process.kill()
        successor.process.stopped, successor.process.overdue = True, False
        until(lambda: proxy.process.log().count("about to take over") == len(ENDS.findall(proxy.process.log())), 10 * lab.patience,
              "the old one to notice")
        if proxy.process.log().count("has taken over") > taken:
            taken += 1
            # 1 when it saw the death of the new one before its own end.
            proxy.process.expected_status = proxy.process.wait(GONE)
            one_of(proxy.process.expected_status, (0, 1), "exit status of the old one")
            proxy.start()
        same_bytes(proxy.get(url).body, origin.body(3000), f"after kill -9 of the new one after {pause} s")
    for pause in (0.0, 0.02, 0.05):
        successor = Successor(lab, proxy, serves=False)
        successor.process.expected_status = None
        time.sleep(pause)
        proxy.kill()
        until(lambda s=successor: "serving with" in s.process.log() or not s.process.running(), 20 * lab.patience, "the new one")
        if not successor.process.running():
            # It had not connected yet.
            contains(successor.process.log(), "cannot take over", "why")
            successor.process.expected_status = 1
            proxy.start()
        else:
            successor.process.expected_status = 0
            proxy.process = successor.process
        same_bytes(proxy.get(url).body, origin.body(3000), f"after kill -9 of the old one after {pause} s")


class Knocker:
    """Connects again and again. A connection that a killed process had accepted breaks off; none is refused."""

    def __init__(self, proxy, url):
        self.proxy, self.url = proxy, url
        self.served, self.refused, self.stopping = 0, 0, False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopping:
            try:
                with self.proxy.wire() as wire:
                    wire.send(request("GET", self.url))
                    self.served += wire.response().status == 200
            except ConnectionRefusedError:
                self.refused += 1
            except (OSError, AssertionError):
                pass

    def stop(self):
        self.stopping = True
        self.thread.join()

    def goes_on(self, lab, what):
        before = self.served
        until(lambda: self.served >= before + 3, 10 * lab.patience, f"{what}: clients are served")
        equal(self.refused, 0, f"{what}: refused connections")


def dies(lab, moment):
    return {"LD_PRELOAD": lab.built("tests/e2e/faults/.libs/takeover_faults.so"), "RETORT_DIES_AT": moment}


def moments(*words):
    return [f"{when} {word}" for word in words for when in ("before", "after")]


@heavy("a library is loaded before those of sanitizers")
def test_kill_of_the_new_one_at_each_message(lab):
    """kill -9 of its own process: the old one goes on, with its volume."""
    origin = Origin(lab)
    proxy = Retort(lab, cache=volume(lab))
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    knocker = Knocker(proxy, url)
    knocker.goes_on(lab, "before")
    try:
        for moment in moments("take-over", "give", "prepared") + ["before serving"]:
            successor = Successor(lab, proxy, expected=-signal.SIGKILL, serves=False, environment=dies(lab, moment))
            equal(successor.process.wait(GONE), -signal.SIGKILL, moment)
            until(lambda: proxy.process.log().count("about to take over") == len(ENDS.findall(proxy.process.log())), 10 * lab.patience,
                  f"{moment}: the old one to notice")
            knocker.goes_on(lab, moment)
            equal(proxy.status()["pid"], proxy.pid, f"{moment}: who serves")
        upgrade(lab, proxy)
        knocker.goes_on(lab, "after a whole takeover")
    finally:
        knocker.stop()


@heavy("a library is loaded before those of sanitizers")
def test_kill_of_the_old_one_at_each_message(lab):
    """kill -9 of the process that is asked: the new one serves, with the sockets that it got and the volume. So each is the old one of
    the next step."""
    origin = Origin(lab)
    points = moments("accept", "process", "sockets", "ready", "given", "serve", "retired")
    proxy = Retort(lab, cache=volume(lab), environment=dies(lab, points[0]))
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    proxy.get(url)
    for number, moment in enumerate(points):
        proxy.process.expected_status = -signal.SIGKILL
        # Before the new one has the sockets, nobody can have them when the old one dies.
        knocker = Knocker(proxy, url) if number >= points.index("after ready") else None
        try:
            successor = Successor(lab, proxy, environment=dies(lab, points[number + 1] if number + 1 < len(points) else "never"))
            equal(successor.earlier.wait(GONE), -signal.SIGKILL, moment)
            if knocker is not None:
                knocker.goes_on(lab, moment)
        finally:
            if knocker is not None:
                knocker.stop()
        proxy.process = successor.process
        answer = proxy.get(url)
        same_bytes(answer.body, origin.body(3000), f"{moment}: what is on disk")
        true(answer.header("Age") is not None, f"{moment}: a hit")
        equal(proxy.status()["pid"], successor.process.pid, f"{moment}: who serves")


def who_answers(proxy, old):
    """The process that serves in the place of the old one; None: nobody does yet."""
    try:
        pid = proxy.status()["pid"]
    except (OSError, AssertionError):
        return None
    return pid if pid != old else None


def serves_alone(lab, proxy, url, what, ends=(-signal.SIGKILL,)):
    """The old one has been killed: the process that it has started serves, and ends when it is told to."""
    proxy.process.expected_status = proxy.process.wait(GONE)
    one_of(proxy.process.expected_status, ends, f"{what}: how the old one ended")
    until(lambda: who_answers(proxy, proxy.pid), GONE * lab.patience, f"{what}: somebody serves")
    pid = who_answers(proxy, proxy.pid)
    answer = proxy.get(url)
    equal((len(answer.body), answer.header("Age") is not None), (3000, True), f"{what}: a hit from disk")
    os.kill(pid, signal.SIGTERM)
    until(lambda: gone(pid), GONE * lab.patience, f"{what}: its end")
    true(not os.path.exists(proxy.admin_path + ".take-over"), f"{what}: the file is removed")


def start_to_be_orphaned(lab, proxy, url):
    """Starts the proxy, which writes a page to its disk."""
    proxy.process = None
    proxy.start()
    proxy.get(url)
    until(lambda: proxy.status()["disk"]["disk_objects"] > 0, 10 * lab.patience, "the object to be on disk")


@heavy("a library is loaded before those of sanitizers")
def test_left_alone_at_each_message(lab):
    """SIGUSR2, and kill -9 of the old one from before the new one has asked for anything on: the new one serves."""
    origin = Origin(lab)
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    points = moments("connect", "take-over", "give", "prepared", "serving")
    proxy = Retort(lab, cache=volume(lab))
    proxy.stop()
    for moment in points:
        proxy.environment.update(LD_PRELOAD=lab.built("tests/e2e/faults/.libs/takeover_faults.so"), RETORT_ORPHANED_AT=moment)
        start_to_be_orphaned(lab, proxy, url)
        proxy.process.send_signal(signal.SIGUSR2)
        # Told that the new one serves, the old one ends: perhaps before it is killed.
        serves_alone(lab, proxy, url, moment, (-signal.SIGKILL, 0) if moment == "after serving" else (-signal.SIGKILL,))


def test_left_alone_at_any_moment(lab):
    """SIGUSR2, and kill -9 some milliseconds after the new one was started."""
    origin = Origin(lab)
    url = origin.url("/bytes", n=3000, cc="max-age=600")
    proxy = Retort(lab, cache=volume(lab))
    proxy.stop()
    for milliseconds in (0, 5, 10, 15, 20, 30, 40):
        start_to_be_orphaned(lab, proxy, url)
        before = proxy.process.log().count("is started to take over")  # all processes write into one log
        proxy.process.send_signal(signal.SIGUSR2)
        until(lambda: proxy.process.log().count("is started to take over") > before, 10 * lab.patience, "the new one to be started")
        time.sleep(milliseconds / 1000)
        proxy.process.send_signal(signal.SIGKILL)
        serves_alone(lab, proxy, url, f"after {milliseconds} ms", (-signal.SIGKILL, 0))


def test_the_new_one_dies_while_the_old_one_sends(lab):
    """kill -9 after "serving": anybody can be started at once, and does not overwrite what the old one sends; the old one fails."""
    origin = Origin(lab)
    size = 9 << 20
    cache = {"memory": "4MB", "max_object": "1MB", "disk": {lab.path("volume"): {"size": "48MB"}}}
    proxy = Retort(lab, cache=cache, drain_timeout="60s")
    url = origin.url("/bytes", n=size, cc="max-age=600")
    proxy.get(url)
    until(lambda: proxy.status()["disk"]["disk_objects"] > 0, 10 * lab.patience, "the object to be on disk")
    slow = proxy.wire()
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    slow.send(request("GET", url))
    slow.head()
    begun = slow.read_bytes(100000)
    successor = Successor(lab, proxy, expected=-signal.SIGKILL)
    old = successor.earlier
    old.expected_status = 1
    successor.process.kill()
    until(lambda: "has died: nobody accepts connections now" in old.log(), 10 * lab.patience, "the log of the old one")
    # One that takes over finds nobody; one with another volume would empty that of the old one.
    equal(Successor(lab, proxy, expected=1, serves=False).process.wait(GONE), 1, "--take-over")
    proxy.write_config(proxy.text(cache={**cache, "disk": {lab.path("volume"): {"size": "32MB"}}}))
    third = Process(lab, "third", [proxy.program, "-f", proxy.config_path], environment=proxy.environment, expected_status=1)
    equal(third.wait(GONE), 1, "with another size")
    contains(third.log(), "another retort still sends from it", "what is said")
    proxy.write_config(proxy.text())
    proxy.process = None
    proxy.start()
    true(old.running(), "the old one still sends")
    for number in range(14):
        proxy.get(origin.url("/bytes", n=(5 << 20) + number, cc="max-age=600"))
    true(proxy.status()["disk"]["disk_objects"] > 0, "the new one writes")
    same_bytes(begun + slow.read_bytes(size - 100000), origin.body(size), "what the old one sent")
    slow.close()
    equal(old.wait(GONE), 1, "exit status of the old one")


def test_the_second_one_ends_before_the_first(lab):
    """It was stopped, or taken over itself: that is no failure for the first one."""
    for name, ends in (("upgraded", lambda successor, proxy: upgrade(lab, proxy)),
                       ("stopped", lambda successor, proxy: successor.process.stop())):
        proxy = Retort(lab, drain_timeout="20s", name=name)
        idle = proxy.wire()
        idle.send(b"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\n\r\n")
        idle.response()
        successor = Successor(lab, proxy)
        first, proxy.process = proxy.process, successor.process
        ends(successor, proxy)
        true(first.running(), "the first one has a connection")
        idle.close()
        equal(first.wait(GONE), 0, "its exit status")
        true("has died" not in first.log(), first.log())


# SIGUSR2 and the service manager.

def told(manager):
    """The next message that is not about sockets."""
    message = "FDSTORE"
    while message.startswith("FDSTORE"):
        message = manager.recv(1000).decode()
    return message


def test_signal(lab):
    origin = Origin(lab)
    path = lab.path("notify.sock")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(path)
    manager.settimeout(20 * lab.patience)
    proxy = Retort(lab, cache=volume(lab), environment={"NOTIFY_SOCKET": path})
    equal(told(manager).splitlines()[0], "READY=1", "the first one")
    proxy.process.send_signal(signal.SIGUSR2)
    pid = int(told(manager).removeprefix("MAINPID="))
    equal(told(manager).splitlines()[0], "READY=1", "the second one")
    equal(proxy.process.wait(GONE), 0, "exit status of the old one")
    equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body")
    equal(proxy.status()["pid"], pid, "who answers")
    with open(f"/proc/{pid}/cmdline", "rb") as command:
        equal(command.read().split(b"\0")[1:-1], [b"-f", proxy.config_path.encode(), b"--take-over"], "arguments")
    # And again, from the one that has taken over.
    os.kill(pid, signal.SIGUSR2)
    third = int(told(manager).removeprefix("MAINPID="))
    equal(told(manager).splitlines()[0], "READY=1", "the third one")
    os.kill(third, signal.SIGTERM)
    contains(told(manager), "STOPPING=1", "the end")
    until(lambda: gone(third) and gone(pid), GONE * lab.patience, "the end of all")
    true(not os.path.exists(proxy.admin_path) and not os.path.exists(proxy.admin_path + ".take-over"), "the files are removed")
    manager.close()


# Sockets from a service manager.

def start_with(lab, proxy, sockets):
    """As systemd does: descriptors from 3 on."""
    def place():
        for at, each in enumerate(fds):
            os.dup2(each, 500 + at)
        for at in range(len(fds)):
            os.dup2(500 + at, 3 + at)
    fds = [each.fileno() for each in sockets]
    command = f"export LISTEN_FDS={len(fds)} LISTEN_FDNAMES=retort LISTEN_PID=$$; exec '{proxy.program}' -f '{proxy.config_path}'"
    with open(lab.path("activated.out"), "ab") as out:
        return subprocess.Popen(["/bin/sh", "-c", command], stdout=out, stderr=out, preexec_fn=place,
                                pass_fds=range(3, 3 + len(fds)), cwd=lab.directory, env={**os.environ, **proxy.environment})


def test_sockets_from_systemd(lab):
    """They outlive the process: who connects while nobody runs waits and is served."""
    origin = Origin(lab)
    proxy = Retort(lab, workers=3)
    proxy.stop()
    listener = socket.create_server(proxy.forward)
    admin = socket.socket(socket.AF_UNIX)
    admin.bind(proxy.admin_path)
    admin.listen(8)
    stranger = socket.create_server(("127.0.0.1", 0))
    for _ in range(2):
        waiting = Wire(proxy.forward, timeout=20 * lab.patience)
        waiting.send(request("GET", origin.url("/text", say="waited"), {"Connection": "close"}))
        run = start_with(lab, proxy, [listener, stranger, admin])
        try:
            equal(waiting.response().text(), "waited", "who connected before the start")
            waiting.close()
            for _ in range(8):
                equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body")
            equal(proxy.status()["pid"], run.pid, "the admin socket")
        finally:
            run.terminate()
            equal(run.wait(20 * lab.patience), 0, "exit status")
    with open(lab.path("activated.out"), encoding="utf-8") as out:
        contains(out.read(), "has no listener: it is closed", "what is said about a socket that nobody wants")
    for each in (listener, admin, stranger):
        each.close()


class Keeper:
    """The socket store of a service manager."""

    def __init__(self, lab):
        self.path = lab.path("keeper.sock")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.kept, self.removed = {}, []

    def read(self):
        while select.select([self.socket], [], [], 0)[0]:
            data, fds, _, _ = socket.recv_fds(self.socket, 4096, 253)
            lines = data.decode().splitlines()
            name = next((line.removeprefix("FDNAME=") for line in lines if line.startswith("FDNAME=")), None)
            if "FDSTORE=1" in lines:
                for each in map(lambda fd: socket.socket(fileno=fd), fds):
                    cookies = [cookie_of(other) for other in self.kept.get(name, [])]
                    if cookie_of(each) in cookies:
                        each.close()
                    else:
                        self.kept.setdefault(name, []).append(each)
            elif "FDSTOREREMOVE=1" in lines:
                self.removed.append(name)
                for each in self.kept.pop(name, []):
                    each.close()

    def sockets(self):
        self.read()
        return [each for name in sorted(self.kept) for each in self.kept[name]]

    def has(self, address, count):
        self.read()
        return len(self.kept.get(name_of(address), [])) == count


def cookie_of(listener):
    return listener.getsockopt(socket.SOL_SOCKET, 57, 8)  # SO_COOKIE


def name_of(address):
    return "listen-%s_%d" % address


def test_socket_store(lab):
    """systemd keeps the sockets of all workers: who connects while nobody runs, after a crash, waits and is served."""
    origin = Origin(lab)
    keeper = Keeper(lab)
    proxy = Retort(lab, workers=3, environment={"NOTIFY_SOCKET": keeper.path})
    for address in (proxy.forward, proxy.reverse):
        until(lambda a=address: keeper.has(a, 3), 10 * lab.patience, f"sockets of {address}")
    proxy.kill()
    early = [Wire(proxy.forward, timeout=20 * lab.patience) for _ in range(8)]
    for each in early:
        each.send(request("GET", origin.url("/text", say="early"), {"Connection": "close"}))
    run = start_with(lab, proxy, keeper.sockets())
    try:
        for each in early:
            equal(each.response().text(), "early", "who connected while nobody ran")
        until(lambda: proxy.status()["pid"] == run.pid, 10 * lab.patience, "the admin socket")
        equal((keeper.has(proxy.forward, 3), keeper.removed), (True, []), "the sockets afterwards, once each")
    finally:
        run.terminate()
        equal(run.wait(20 * lab.patience), 0, "exit status")
    equal((keeper.has(proxy.forward, 3), keeper.removed), (True, []), "the sockets after SIGTERM, as at a restart")

    # One address less, and workers that are fewer.
    proxy.write_config("\n".join(line for line in proxy.text(workers=2).splitlines() if f":{proxy.reverse[1]}" not in line))
    run = start_with(lab, proxy, keeper.sockets())
    try:
        until(lambda: name_of(proxy.reverse) in (keeper.read() or keeper.removed), 10 * lab.patience, "the other address to be removed")
        for _ in range(8):
            equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body")
        true(keeper.has(proxy.forward, 3), "the sockets of the first address")
        until(lambda: refuses(proxy.reverse), 10 * lab.patience, "the second address to refuse connections")
    finally:
        run.kill()
        run.wait()
    for each in keeper.sockets():
        each.close()


def refuses(address):
    try:
        socket.create_connection(address, timeout=5).close()
        return False
    except ConnectionRefusedError:
        return True


def test_socket_store_follows_the_configuration(lab):
    """A socket that stayed there while nobody accepts from it would let clients wait for nothing."""
    keeper = Keeper(lab)
    proxy = Retort(lab, workers=2, environment={"NOTIFY_SOCKET": keeper.path})
    until(lambda: keeper.has(proxy.forward, 2), 10 * lab.patience, "the sockets of the start")
    more = ("127.0.0.1", ports.take())
    proxy.write_config(proxy.text() + f'listen "127.0.0.1:{more[1]}" {{ mode = forward }}\n')
    equal(proxy.reload().status, 200, "reload")
    until(lambda: keeper.has(more, 2), 10 * lab.patience, "the sockets of the new address")
    proxy.write_config(proxy.text())
    equal(proxy.reload().status, 200, "reload")
    until(lambda: keeper.has(more, 0), 10 * lab.patience, "they are removed")
    true(refuses(more), "the address is free")
    true(keeper.has(proxy.forward, 2), "the others stay")
    proxy.admin("POST", "/drain")
    equal(proxy.wait_exit(10), 0, "exit status")
    equal(keeper.sockets(), [], "after retortctl drain")
    true(refuses(proxy.forward), "nobody waits for nothing")


def test_a_second_one_is_refused(lab):
    """On an address, and on each of the sockets that only one may have; the first one goes on."""
    proxy = Retort(lab)
    own = f"127.0.0.1:{ports.take()}"
    mine = lambda path: f'admin {{ listen = "{path}" }}\n'
    for lines, words in ((None, "another program listens there"),
                         (mine(proxy.admin_path), "admin.listen"),
                         (mine(lab.path("other.sock")) + f'take_over_socket = "{proxy.admin_path}.take-over"\n', "take_over_socket")):
        path = proxy.config_path if lines is None else lab.write("second.conf", f'listen "{own}" {{ mode = forward }}\n{lines}')
        done = subprocess.run([proxy.program, "-f", path], capture_output=True, text=True, check=False, timeout=20 * lab.patience)
        equal(done.returncode, 1, f"exit status with {lines}")
        contains(done.stderr, words, "reason")
        equal(proxy.status()["pid"], proxy.pid, "who answers at the admin socket")
        equal(os.path.exists(lab.path("other.sock")), False, "a socket that is left")
    upgrade(lab, proxy)


def test_a_second_helperd_is_refused(lab):
    helperd = Helperd(lab, 'socket = "{socket}"\npool text { command = {"%s"} }\n' % lab.built("icap-services/text-helper"))
    helpers = helperd.wait_helpers("text-helper", 1)
    before = os.stat(helperd.socket).st_ino
    done = subprocess.run([lab.built("icap-services/retort-helperd"), "-f", helperd.config], capture_output=True, text=True, check=False,
                          timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
    equal(done.returncode, 1, "exit status")
    contains(done.stderr, "is in use: another retort-helperd runs there; stop it or set another socket", "reason")
    equal((os.stat(helperd.socket).st_ino, helperd.helpers("text-helper")), (before, helpers), "the first one")
    helperd.kill()
    helperd.start()  # what a killed one leaves is in nobody's way
