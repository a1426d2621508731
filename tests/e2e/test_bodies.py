"""Bodies in every framing, both ways, large and slow."""

import threading
import time

from harness.checks import between, equal, one_of, same_bytes, true, until
from harness.origin import Origin, echoed
from harness.process import status_field
from harness.raw_origin import PatternCheck, RawOrigin, crc32, pattern
from harness.retort import Retort
from harness.suite import heavy, memcheck, seconds
from harness.wire import Wire, chunked, request

SIZES = [0, 1, 2, 1023, 4096, 16384, 65535, 65536, 65537, 300000, 1048577]


@memcheck
def test_length(lab):
    origin, proxy = Origin(lab), Retort(lab)
    with proxy.wire() as wire:
        for size in SIZES:
            wire.send(request("GET", origin.url("/bytes", n=size, cc="no-store")))
            response = wire.response()
            equal(response.header("Content-Length"), str(size), "Content-Length")
            same_bytes(response.body, origin.body(size), f"body of {size}")


@memcheck
def test_chunked(lab):
    origin, proxy = Origin(lab), Retort(lab)
    with proxy.wire() as wire:
        for size in SIZES:
            wire.send(request("GET", origin.url("/chunked", n=size, piece=max(1, size // 50), cc="no-store")))
            response = wire.response()
            one_of(response.framing, ("chunked", "length"), f"framing of {size}")
            same_bytes(response.body, origin.body(size), f"body of {size}")


@memcheck
def test_until_close(lab):
    def answer(connection, request_seen):
        size = int(request_seen.target[1:])
        connection.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n")
        connection.send(pattern(size))
        return True
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    with proxy.wire() as wire:
        for size in SIZES:
            wire.send(request("GET", origin.url(f"/{size}")))
            response = wire.response()
            one_of(response.framing, ("chunked", "length"), f"framing of {size}")
            same_bytes(response.body, pattern(size), f"body of {size}")


@memcheck
def test_request_bodies(lab):
    origin, proxy = Origin(lab), Retort(lab)
    with proxy.wire() as wire:
        for size in SIZES:
            data = pattern(size)
            wire.send(request("POST", origin.url("/echo"), body=data))
            seen = echoed(wire.response())
            equal((seen["length"], seen["crc32"]), (size, crc32(data)), f"length and CRC of {size}")
            pieces = [data[i:i + 7000] for i in range(0, size, 7000)]
            wire.send(request("POST", origin.url("/echo"), {"Transfer-Encoding": "chunked"}, chunked(*pieces)))
            seen = echoed(wire.response())
            equal((seen["length"], seen["crc32"]), (size, crc32(data)), f"length and CRC of {size} in chunks")


def test_slow_request_body_reaches_the_origin_as_it_comes(lab):
    got = []

    def answer(connection, _request):
        while sum(map(len, got)) < 6:
            got.append(connection.read_some())
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        return True
    origin = RawOrigin(lab, answer, read_body=False)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("POST", origin.url(), {"Content-Length": "6"}) + b"abc")
        until(lambda: b"".join(got) == b"abc", 3 * lab.patience, "the first half at the origin")
        wire.send(b"def")
        equal(wire.response().status, 200, "status")


def test_slow_response_reaches_the_client_as_it_comes(lab):
    ready = threading.Event()

    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nCache-Control: max-age=60\r\n\r\nabc")
        ready.wait(10)
        connection.send(b"def")
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url()))
        wire.head()
        equal(wire.read_bytes(3), b"abc", "first half")
        ready.set()
        equal(wire.read_bytes(3), b"def", "second half")


def test_early_response_to_a_long_upload(lab):
    """RFC 9112 §7.5: the origin answers before it has read the body, and closes."""
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
        time.sleep(0.3)
        return True
    origin = RawOrigin(lab, answer, read_body=False)
    proxy = Retort(lab)
    with proxy.wire(timeout=10 * lab.patience) as wire:
        wire.send(request("POST", origin.url(), {"Content-Length": str(64 << 20)}))

        def upload():
            try:
                for _ in range(1024):
                    wire.send(b"x" * 65536)
            except OSError:
                pass
        threading.Thread(target=upload, daemon=True).start()
        response = wire.response()
        equal((response.status, response.body), (413, b"big"), "early answer")


def test_tiny_chunks(lab):
    origin, proxy = Origin(lab), Retort(lab)
    response = proxy.get(origin.url("/chunked", n=5000, piece=1))
    same_bytes(response.body, origin.body(5000))


def test_trailers_do_not_break_the_body(lab):
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nCache-Control: no-store\r\n\r\n"
                        b"5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n")
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    with proxy.wire() as wire:
        for _ in range(2):
            wire.send(request("GET", origin.url()))
            equal(wire.response().body, b"hello", "body")


@seconds(180)
@heavy("a gigabyte takes too long there")
def test_gigabyte_with_a_slow_reader(lab):
    """1 GiB with a reader that pauses: back-pressure holds it outside the process."""
    origin = Origin(lab)
    proxy = Retort(lab, cache={"memory": "16MB", "max_object": "1MB"})
    size, check = 1 << 30, PatternCheck()
    paused = []

    def sink(piece):
        check(piece)
        if check.length // (64 << 20) > len(paused):
            time.sleep(0.1)
            paused.append(check.length)
    with Wire(proxy.forward, timeout=60, receive_buffer=65536) as wire:
        wire.send(request("GET", origin.url("/bytes", n=size)))
        wire.response(sink=sink)
    equal(check.length, size, "length")
    true(proxy.memory_peak_kb() < 64 << 10, f"peak memory {proxy.memory_peak_kb()} kB")


@seconds(180)
@heavy("a gigabyte takes too long there")
def test_gigabyte_upload_to_a_slow_origin(lab):
    total = [0]

    def answer(connection, request_seen):
        left = int(request_seen.header("Content-Length"))
        while left:
            data = connection.read_some()
            if data != pattern(len(data), total[0]):
                connection.send(b"HTTP/1.1 400 Wrong\r\nContent-Length: 0\r\n\r\n")
                return True
            total[0] += len(data)
            left -= len(data)
            if total[0] % (64 << 20) < len(data):
                time.sleep(0.05)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        return True
    origin = RawOrigin(lab, answer, read_body=False, receive_buffer=65536)
    proxy = Retort(lab)
    size = 1 << 30
    with proxy.wire(timeout=60) as wire:
        wire.send(request("POST", origin.url(), {"Content-Length": str(size)}))
        block = pattern(65537 * 16)
        sent = 0
        while sent < size:
            piece = block[:size - sent]
            wire.send(piece)
            sent += len(piece)
        equal(wire.response().status, 200, "status")
    equal(total[0], size, "bytes at the origin")
    true(proxy.memory_peak_kb() < 64 << 10, f"peak memory {proxy.memory_peak_kb()} kB")


def test_stopped_reader_stops_the_origin(lab):
    """A client that takes nothing holds up only its own origin connection."""
    sent = [0]

    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: no-store\r\n\r\n" % (1 << 28))
        for _ in range(1 << 12):
            connection.send(b"y" * 65536)
            sent[0] += 65536
    origin, other = RawOrigin(lab, answer), Origin(lab)
    proxy = Retort(lab)
    with Wire(proxy.forward, receive_buffer=65536) as wire:
        wire.send(request("GET", origin.url()))
        until(lambda: sent[0] > 0, 5, "the origin to send")
        time.sleep(0.7)
        before = sent[0]
        time.sleep(0.7)
        equal(sent[0], before, "bytes the origin could send while the client took none")
        true(before < 32 << 20, f"{before} bytes were taken from the origin ahead of the client")
        equal(proxy.get(other.url("/text", say="alive")).text(), "alive", "another client's response")


def test_client_that_leaves_is_noticed(lab):
    """The origin connection of an abandoned, uncacheable download is closed soon."""
    gone = threading.Event()

    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\nCache-Control: no-store\r\n\r\n")
        try:
            while True:
                connection.send(b"z" * 1000)
                time.sleep(0.01)
        finally:
            gone.set()
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url()))
        wire.head()
    true(gone.wait(5 * lab.patience), "the origin should see the connection close")
    until(lambda: proxy.counter("transactions_active") == 0, 5 * lab.patience, "the transaction to end")


def test_send_timeout(lab):
    """A client that stops reading is given up after client.send_timeout."""
    origin = Origin(lab)
    proxy = Retort(lab, client={"send_timeout": "500ms"})
    with Wire(proxy.forward, receive_buffer=65536) as wire:
        wire.send(request("GET", origin.url("/bytes", n=1 << 28, cc="no-store")))
        until(lambda: proxy.counter("client_requests") >= 1, 5, "the transaction to begin")
        until(lambda: proxy.counter("transactions_active") == 0, 6 * lab.patience, "the transaction to be given up")


def test_threads_and_descriptors_do_not_leak(lab):
    origin, proxy = Origin(lab), Retort(lab)
    import os
    def descriptors():
        return len(os.listdir(f"/proc/{proxy.pid}/fd"))
    for _ in range(20):
        proxy.get(origin.url("/bytes", n=1000, cc="no-store"))
    before = descriptors()
    for number in range(200):
        with proxy.wire() as wire:
            wire.send(request("GET", origin.url("/bytes", n=100000, cc="no-store")))
            if number % 3 == 0:
                continue  # leaves in the middle
            wire.response()
    until(lambda: descriptors() <= before + 5, 5 * lab.patience, f"descriptors to be closed again ({descriptors()} open, {before} before)")
    between(status_field(proxy.pid, "Threads"), 1, 16, "threads")


def test_head_then_nothing_else_for_bodyless_answers(lab):
    """204 and 304 that wrongly carry a body or a length (RFC 9110 §15.3.5): none of it is passed on."""
    def answer(connection, request_seen):
        connection.send(b"HTTP/1.1 %s X\r\nContent-Length: 5\r\nCache-Control: no-store\r\n\r\n" % request_seen.target[1:].encode())
        return True
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    with proxy.wire() as wire:
        for status in (204, 304):
            wire.send(request("GET", origin.url(f"/{status}")))
            one_of(wire.response().status, (status, 502), "status")
