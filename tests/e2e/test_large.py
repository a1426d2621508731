"""Large objects: many who read one at the same time, in a bounded memory; those who wait for nothing
large are not held up by them, nor by a disk that is slow to bring it."""

import socket
import subprocess
import threading
import time
from urllib.parse import quote

from harness import ports, wire
from harness.checks import equal, raises, same_bytes, true, until
from harness.disk_bench import Bench, FaultyBench, in_threads
from harness.process import status_field
from harness.suite import heavy, seconds

MB = 1 << 20


def large_bench(lab, n, **options):
    """A bench whose volume has one object of n bytes, which is not in memory: (bench, version)."""
    bench = Bench(lab, disk={"size": "128MB"}, **options)
    _, version = bench.get("/own/large", n)
    bench.on_disk(1)
    bench.proxy.restart()
    return bench, version


def read_all(bench, path, n, body):
    """Reads a body as fast as it can and compares it on the way."""
    with bench.proxy.wire() as connection:
        connection.send(wire.request("GET", bench.own.url(path, n)))
        connection.head()
        at = 0
        while at < n:
            piece = connection.read_bytes(min(MB, n - at))
            if piece != body[at:at + len(piece)]:
                bench.own.check_bytes(path, body[at:at + len(piece)], piece)
            at += len(piece)


@heavy("RSS of sanitizers says nothing, and it is much to compare")
@seconds(180)
def test_a_hundred_read_the_same_one(lab):
    """The right bytes, from one body, and little memory for it."""
    n = 20 * MB
    bench, version = large_bench(lab, n, memory="8MB", workers=2)
    body = bench.own.body("/own/large", n, version)
    bench.volume.forget_pages()
    in_threads(100, lambda _: read_all(bench, "/own/large", n, body))
    true(bench.proxy.memory_peak_kb() < 96 << 10, f"{bench.proxy.memory_peak_kb()} KB resident at most")
    equal(bench.own.version(), version, "the origin's newest version")


def discard(bench, n, over):
    """Takes a body as fast as the kernel can throw it away, again and again: the socket always has room."""
    with bench.proxy.wire(receive_buffer=4 * MB) as connection:
        while not over.is_set():
            connection.send(wire.request("GET", bench.own.url("/own/large", n)))
            connection.head()
            left = n - len(connection.buffer)
            connection.buffer = b""
            while left > 0:
                got = len(connection.socket.recv(min(left, MB), socket.MSG_TRUNC))
                true(got > 0, "the connection ended early")
                left -= got


@seconds(120)
def test_others_get_their_turn(lab):
    """Those who take whatever is sent to them at once leave room for others, in the same thread."""
    n = 24 * MB
    bench, _ = large_bench(lab, n, workers=1)
    bench.get("/own/quick", 1000)
    over = threading.Event()
    threads = [threading.Thread(target=discard, args=(bench, n, over)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            true(bench.get("/own/quick", 1000)[0], "a hit meanwhile")
    finally:
        over.set()
        for thread in threads:
            thread.join()


def stalled(bench):
    """Waits until nothing more is sent from the disk."""
    seen = [-1, 0.0]

    def still():
        count = bench.faults.count("sends")
        if count != seen[0]:
            seen[:] = [count, time.monotonic()]
        return count > 0 and time.monotonic() - seen[1] > 0.5 * bench.lab.patience
    until(still, 20 * bench.lab.patience, "a client that takes no more")


def test_what_has_left_memory_meanwhile_is_read_again(lab):
    """While a client takes nothing, the kernel may let go what was ready for it: sending that would wait for the
    device, and everybody with it."""
    n = 12_000_000
    bench = FaultyBench(lab, workers=1)
    _, version = bench.get("/own/slow", n)
    bench.on_disk(1)
    bench.proxy.restart()
    bench.get("/own/slow", n)
    with bench.proxy.wire(receive_buffer=8192) as connection:
        connection.send(wire.request("GET", bench.own.url("/own/slow", n)))
        connection.head()
        stalled(bench)
        bench.faults.set(read_absent=1000, read_delay=2000 * lab.patience)
        reads, sends = bench.faults.count("reads"), bench.faults.count("sends")
        got = []
        taker = threading.Thread(target=lambda: got.append(connection.read_bytes(n)))
        taker.start()
        until(lambda: bench.faults.count("reads") > reads, 20 * lab.patience, "a read of what is gone")
        equal(bench.faults.count("sends"), sends, "sendfile before that")
        bench.faults.clear()
        taker.join()
    bench.own.check_bytes("/own/slow", bench.own.body("/own/slow", n, version), b"".join(got))


def test_a_slow_disk_holds_up_only_who_reads_it(lab):
    bench = FaultyBench(lab, workers=1)
    bench.get("/own/large", 900_000)
    bench.on_disk(1)
    bench.proxy.restart()
    bench.get("/own/quick", 1000)
    bench.faults.set(read_absent=1000, read_delay=1000 * lab.patience)
    reads = bench.faults.count("reads")
    waiting = threading.Thread(target=lambda: bench.get("/own/large", 900_000))
    waiting.start()
    until(lambda: bench.faults.count("reads") > reads, 10 * lab.patience, "a read that waits")
    for _ in range(10):
        bench.get("/own/quick", 1000)
    true(waiting.is_alive(), "the large one is still waited for")
    bench.faults.clear()
    waiting.join()


@heavy("RSS of sanitizers says nothing")
@seconds(120)
def test_operators_read_it(lab):
    """The content is not copied into memory, however slowly somebody reads it."""
    size, count = 20 * MB, 8
    bench, version = large_bench(lab, size)
    url, seen = bench.own.url("/own/large", size), []
    equal(bench.proxy.status()["state"], "running", "state")
    before = status_field(bench.proxy.pid, "VmRSS")
    readers = [wire.Wire(bench.proxy.admin_path, timeout=20 * lab.patience) for _ in range(count)]
    for reader in readers:
        reader.send(f"GET /v1/cache/content?url={quote(url, safe='')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        seen.append(reader.head())
        equal(seen[-1].status, 200, "status of the content")
    equal(bench.proxy.status()["state"], "running", "state meanwhile")
    grown = status_field(bench.proxy.pid, "VmRSS") - before
    true(grown < 20 << 10, f"memory has grown by {grown} kB")
    for reader in readers[1:]:
        reader.close()
    message = readers[0].read_bytes(int(seen[0].header("Content-Length")))
    same_bytes(message[-size - 4:], b"\r\n\r\n" + bench.own.body("/own/large", size, version), "what one of them reads")
    equal(bench.proxy.status()["state"], "running", "state at the end")


def content_reader(bench, url, token=None):
    """A connection that has the head of the content: (connection, the length of the content)."""
    reader = wire.Wire(bench.proxy.admin_path, timeout=20 * bench.lab.patience)
    fields = f"Authorization: Bearer {token}\r\n" if token else ""
    reader.send(f"GET /v1/cache/content?url={quote(url, safe='')} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
    head = reader.head()
    equal(head.status, 200, "status of the content")
    return reader, int(head.header("Content-Length"))


@seconds(120)
def test_operators_may_pause(lab):
    """For longer than the head of a request may take."""
    size = 20 * MB
    bench, version = large_bench(lab, size)
    reader, length = content_reader(bench, bench.own.url("/own/large", size))
    time.sleep(17)
    same_bytes(reader.read_bytes(length)[-size:], bench.own.body("/own/large", size, version), "what is read after the pause")
    reader.close()


@seconds(120)
def test_content_ends_with_the_right_to_it(lab):
    """Who loses the token gets no more of an answer than what was on its way."""
    size, token = 20 * MB, "fedcba9876543210" * 4
    bench, _ = large_bench(lab, size, admin=("127.0.0.1", ports.take()))
    both = f"lab admin {bench.proxy.token}\n"
    bench.proxy.write_tokens(both + f"anna operate {token}\n")
    equal(bench.proxy.reload().status, 200, "reload")
    (removed, length), (kept, _) = (content_reader(bench, bench.own.url("/own/large", size), one) for one in (token, bench.proxy.token))
    bench.proxy.write_tokens(both)
    equal(bench.proxy.reload().status, 200, "reload without the token")
    time.sleep(2.1)
    raises(wire.Truncated, lambda: removed.read_bytes(length), "the answer without the right to it")
    equal(len(kept.read_bytes(length)), length, "the other answer")


@seconds(120)
def test_retortctl_gets_it(lab):
    """It keeps 64 MB of other answers."""
    size = 70 * MB
    bench = Bench(lab, memory="256MB", cache={"max_object": "128MB"})
    url = bench.origin.url("/bytes", n=size, cc="max-age=600")
    body = bench.proxy.get(url).body
    got = subprocess.run([lab.built("proxy/retortctl"), "-s", bench.proxy.admin_path, "cache", "get", url], capture_output=True,
                         timeout=60 * lab.patience, check=False)
    equal((got.returncode, got.stderr), (0, b""), "retortctl")
    same_bytes(got.stdout[-size - 4:], b"\r\n\r\n" + body, "what it writes")
    with open("/dev/full", "wb") as full:
        got = subprocess.run([lab.built("proxy/retortctl"), "-s", bench.proxy.admin_path, "cache", "get", url], stdout=full,
                             stderr=subprocess.PIPE, timeout=60 * lab.patience, check=False)
    equal((got.returncode, b"No space left" in got.stderr), (1, True), f"on a full disk: {got.stderr}")
