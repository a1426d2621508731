"""Parts of what is stored (RFC 9110 §14): one range, several, too many, of a body that still arrives."""

import re
import subprocess
import threading
import time

from harness.checks import contains, equal, same_bytes, true, until
from harness.origin import Origin
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import request

SIZE = 300000


def start(lab, **options):
    """An origin, a proxy, and the URL of a page that is stored."""
    origin, proxy = Origin(lab), Retort(lab, **options)
    url = origin.url("/bytes", n=SIZE, cc="max-age=60", etag='"v1"', type="text/x-part")
    proxy.get(url)
    return origin, proxy, url


def parts_of(answer):
    """[(Content-Type, Content-Range, bytes)] of a multipart/byteranges body, read strictly."""
    boundary = re.fullmatch(r"multipart/byteranges; boundary=(\S+)", answer.header("Content-Type")).group(1)
    pieces = answer.body.split(b"--" + boundary.encode())
    equal((pieces[0], pieces[-1]), (b"", b"--\r\n"), "what stands before and behind the parts")
    parts = []
    for piece in pieces[1:-1]:
        head, _, rest = piece.partition(b"\r\n\r\n")
        true(head.startswith(b"\r\n") and rest.endswith(b"\r\n"), f"a part's line ends: {head!r}")
        fields = dict(line.split(": ", 1) for line in head.decode().strip().split("\r\n"))
        parts.append((fields.get("Content-Type"), fields["Content-Range"], rest[:-2]))
    return parts


def check_parts(answer, expected, size=SIZE):
    """`expected` are pairs of first and last."""
    equal(answer.status, 206, "status")
    parts = parts_of(answer)
    equal([place for _, place, _ in parts], [f"bytes {a}-{b}/{size}" for a, b in expected], "places")
    for (_, _, data), (first, last) in zip(parts, expected):
        same_bytes(data, pattern(size)[first:last + 1], f"bytes {first}-{last}")


SEVERAL = [
    # Range, parts
    ("bytes=0-9,1000-1009", [(0, 9), (1000, 1009)]),
    ("bytes=1000-1009, 0-9", [(1000, 1009), (0, 9)]),
    ("bytes=0-9,-10", [(0, 9), (SIZE - 10, SIZE - 1)]),
    ("bytes=299990-,0-0", [(299990, SIZE - 1), (0, 0)]),
    ("bytes=0-9,20000-29999,5000-5009", [(0, 9), (20000, 29999), (5000, 5009)]),
    ("bytes=0-199999,250000-299999", [(0, 199999), (250000, 299999)]),
    ("bytes=0-9,400000-,1000-1009", [(0, 9), (1000, 1009)]),
    ("bytes=0-9,,1000-1009", [(0, 9), (1000, 1009)]),
    ("bytes=1000-1999,5000-5999,1500-2500", [(1000, 2500), (5000, 5999)]),
    ("bytes=0-9,5000-5009,9000-9009,5-8999", [(0, 9009)]),
    ("bytes=5000-5009,0-9,200-209,5-230", [(5000, 5009), (0, 230)]),
    ("bytes=0-9,50-59", [(0, 59)]),
    ("bytes=0-99,100-199", [(0, 199)]),
    ("bytes=500-,0-499", [(0, SIZE - 1)]),
]


def test_several_ranges(lab):
    origin, proxy, url = start(lab)
    for wanted, expected in SEVERAL:
        answer = proxy.get(url, {"Range": wanted})
        if len(expected) > 1:
            check_parts(answer, expected)
            equal({kind for kind, _, _ in parts_of(answer)}, {"text/x-part"}, f"{wanted}: Content-Type of the parts")
            equal(answer.header("Content-Range"), None, f"{wanted}: Content-Range of the whole")
        else:
            first, last = expected[0]
            equal((answer.status, answer.header("Content-Range"), answer.header("Content-Type")),
                  (206, f"bytes {first}-{last}/{SIZE}", "text/x-part"), wanted)
            same_bytes(answer.body, pattern(SIZE)[first:last + 1], wanted)
        equal(answer.header("ETag"), '"v1"', f"{wanted}: ETag")
    equal(origin.count("/bytes"), 1, "requests at the origin")
    equal(proxy.counter("cache_multipart"), sum(len(parts) > 1 for _, parts in SEVERAL), "counted")


def test_ranges_that_do_not_count(lab):
    _, proxy, url = start(lab)
    for wanted in ("bytes=", "bytes=x", "bytes=0-9,x", "bytes=9-0", "bytes=--1", "lines=0-9", "bytes=0-9;1-2", "0-9",
                   "bytes=0-18446744073709551616", "bytes=+1-2"):
        answer = proxy.get(url, {"Range": wanted})
        equal((answer.status, len(answer.body)), (200, SIZE), wanted)
    answer = proxy.get(url, [("Range", "bytes=0-9"), ("Range", "bytes=5-6")])
    equal((answer.status, len(answer.body)), (200, SIZE), "two fields")
    for wanted in (f"bytes={SIZE}-", "bytes=-0", "bytes=400000-400001, 500000-"):
        answer = proxy.get(url, {"Range": wanted})
        equal((answer.status, answer.header("Content-Range"), answer.body), (416, f"bytes */{SIZE}", b""), wanted)


@memcheck
def test_head_has_no_ranges(lab):
    """RFC 9110 §14.2: Range is defined for GET."""
    _, proxy, url = start(lab)
    for wanted in ("bytes=0-9", "bytes=0-9,1000-1009"):
        with proxy.wire() as wire:
            for _ in range(2):
                wire.send(request("HEAD", url, {"Range": wanted}))
                answer = wire.response("HEAD")
                equal((answer.status, answer.header("Content-Length")), (200, str(SIZE)), wanted)


def test_if_range(lab):
    origin, proxy, url = start(lab)
    several = "bytes=0-9,1000-1009"
    check_parts(proxy.get(url, {"Range": several, "If-Range": '"v1"'}), [(0, 9), (1000, 1009)])
    for condition in ('"v2"', 'W/"v1"', "Sat, 08 Sep 2001 01:46:40 GMT", "v1"):
        equal(proxy.get(url, {"Range": several, "If-Range": condition}).status, 200, condition)
    dated = origin.url("/dated", lm=1000000000, cc="max-age=60")
    date = proxy.get(dated).header("Last-Modified")
    equal(proxy.get(dated, {"Range": "bytes=0-2", "If-Range": date}).status, 206, "a strong date")


def test_a_date_that_is_not_strong_does_not_hold(lab):
    """RFC 9110 §8.8.2.2: within the second of its Date a response may have changed again."""
    def answer(connection, _request):
        now = b"Fri, 20 Nov 2026 10:00:00 GMT"
        connection.send(b"HTTP/1.1 200 OK\r\nDate: %s\r\nLast-Modified: %s\r\nCache-Control: max-age=99999999\r\n"
                        b"Content-Length: 10\r\n\r\n0123456789" % (now, now))
        return False
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    date = proxy.get(origin.url("/d")).header("Last-Modified")
    equal(proxy.get(origin.url("/d"), {"Range": "bytes=0-2", "If-Range": date}).status, 200, "status")
    equal(proxy.get(origin.url("/d"), {"Range": "bytes=0-2"}).status, 206, "without a condition")


def test_too_many_ranges(lab):
    """RFC 9110 §14.2: an attack costs no more than the whole."""
    origin, proxy, url = start(lab)
    def many(count):
        return "bytes=" + ",".join(f"{n * 1000}-{n * 1000 + 1}" for n in range(count))
    equal(len(parts_of(proxy.get(url, {"Range": many(16)}))), 16, "parts up to the limit")
    answer = proxy.get(url, {"Range": many(17)})
    equal((answer.status, len(answer.body)), (200, SIZE), "one more")
    overlapping = "bytes=" + ",".join(f"{n}-" for n in range(16))
    answer = proxy.get(url, {"Range": overlapping})
    equal((answer.status, answer.header("Content-Range")), (206, f"bytes 0-{SIZE - 1}/{SIZE}"), "overlapping ranges")
    equal(proxy.counter("cache_ranges_refused"), 1, "counted")
    strict = Retort(lab, cache={"memory": "32MB", "max_ranges": 1})
    strict.get(url)
    equal(strict.get(url, {"Range": "bytes=0-1"}).status, 206, "one range of one")
    equal(strict.get(url, {"Range": "bytes=0-1,1000-1001"}).status, 200, "two of one")
    equal(origin.count("/bytes"), 2, "requests at the origin")


def test_connections_stay_in_step(lab):
    """What is sent has the length that was said, whatever the parts."""
    _, proxy, url = start(lab)
    with proxy.wire() as wire:
        for wanted, _ in SEVERAL * 3:
            wire.send(request("GET", url, {"Range": wanted}))
        for wanted, expected in SEVERAL * 3:
            answer = wire.response()
            equal((answer.status, answer.framing), (206, "length"), wanted)
            if len(expected) > 1:
                check_parts(answer, expected)


def test_old_clients_get_parts_too(lab):
    _, proxy, url = start(lab)
    answer = proxy.get(url, {"Range": "bytes=0-9,1000-1009"}, version="1.0")
    check_parts(answer, [(0, 9), (1000, 1009)])


def test_curl_reads_several_ranges(lab):
    _, proxy, url = start(lab)
    done = subprocess.run(["curl", "-sS", "-x", f"http://127.0.0.1:{proxy.forward[1]}", "-r", "0-9,1000-1009", "-D", "-", url],
                          capture_output=True, timeout=20, check=True)
    contains(done.stdout, b"206 Partial Content", "head")
    contains(done.stdout, pattern(SIZE)[1000:1010], "second part")


@memcheck
def test_ranges_of_a_body_that_is_still_arriving(lab):
    origin, proxy = Origin(lab), Retort(lab, workers=2)
    size = 200000
    url = origin.url("/drip", n=size, piece=10000, delay=40, cc="max-age=60")
    reader = threading.Thread(target=lambda: proxy.get(url))
    reader.start()
    until(lambda: origin.count("/drip") >= 1, 5, "the request at the origin")
    time.sleep(0.15)
    answers = {}
    def ask(wanted):
        answers[wanted] = proxy.get(url, {"Range": wanted})
    ranges = {"bytes=0-9,150000-150009": [(0, 9), (150000, 150009)],
              "bytes=199990-,100-109": [(199990, 199999), (100, 109)]}
    threads = [threading.Thread(target=ask, args=(wanted,)) for wanted in ranges]
    for thread in threads:
        thread.start()
    for thread in threads + [reader]:
        thread.join()
    for wanted, expected in ranges.items():
        check_parts(answers[wanted], expected, size)
    equal(origin.count("/drip"), 1, "requests at the origin")


def test_parts_of_a_body_that_breaks_off(lab):
    """A part that never comes makes no complete message."""
    origin, proxy = Origin(lab), Retort(lab)
    url = origin.url("/abort", n=200000, after=50000, delay=100, cc="max-age=60")
    reader = threading.Thread(target=lambda: proxy.wire().send(request("GET", url)))
    reader.start()
    reader.join()
    with proxy.wire() as wire:
        wire.send(request("GET", url, {"Range": "bytes=0-9,150000-150009"}))
        data = wire.read_to_end()
    true(b"--\r\n" not in data[-6:], "the end of a multipart body that is not there")


def test_slow_reader_of_parts(lab):
    _, proxy, url = start(lab)
    with proxy.wire(receive_buffer=4096) as wire:
        wire.send(request("GET", url, {"Range": "bytes=0-149999,150200-299999"}))
        time.sleep(0.3)
        check_parts(wire.response(), [(0, 149999), (150200, 299999)])
