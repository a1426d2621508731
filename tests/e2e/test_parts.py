"""Partial responses in the cache: stored, used for smaller ranges, combined, made whole (RFC 9111 §3.3, §3.4)."""

import re
import time

from harness.checks import contains, equal, same_bytes, true, until
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import request

SIZE = 100000


class RangeOrigin(RawOrigin):
    """Serves a page in ranges, If-Range and If-None-Match respected; `etag`, `control` and `page` may be changed."""

    def __init__(self, lab, size=SIZE, etag='"v1"', control="max-age=60"):
        self.page, self.etag, self.control = pattern(size), etag, control
        self.extra = ""
        self.honest = True
        super().__init__(lab, self.respond)

    def respond(self, connection, seen):
        data, status, extra = self.page, "200 OK", self.extra
        if self.etag and seen.header("If-None-Match") == self.etag:
            status, data = "304 Not Modified", b""
        elif self.applies(seen):
            first, last = self.interval(seen.header("Range"))
            if first >= len(self.page):
                status, data = "416 Range Not Satisfiable", b""
                extra += f"Content-Range: bytes */{len(self.page)}\r\n"
            else:
                status, data = "206 Partial Content", self.page[first:last + 1]
                extra += f"Content-Range: bytes {first}-{last}/{len(self.page)}\r\n"
        head = f"HTTP/1.1 {status}\r\nCache-Control: {self.control}\r\n{extra}Content-Type: text/x-page\r\n"
        if self.etag:
            head += f"ETag: {self.etag}\r\n"
        if not status.startswith("304"):
            head += f"Content-Length: {len(data)}\r\n"
        connection.send(head.encode() + b"\r\n" + (b"" if seen.method == "HEAD" else data))
        return False

    def applies(self, seen):
        condition = seen.header("If-Range")
        return seen.header("Range") and (condition is None or condition == self.etag or not self.honest)

    def interval(self, wanted):
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted).groups()
        if not first:
            return max(0, len(self.page) - int(last)), len(self.page) - 1
        return int(first), min(int(last or len(self.page)), len(self.page) - 1)

    def asked(self):
        return [seen.header("Range") for seen in self.requests]


def get(proxy, url, first=None, last=None, size=SIZE, data=None, headers=None):
    """Asks for a range (or the whole) and checks what comes."""
    page = data if data is not None else pattern(size)
    wanted = {} if first is None else {"Range": f"bytes={first}-{'' if last is None else last}"}
    answer = proxy.get(url, {**wanted, **(headers or {})})
    if first is None:
        equal((answer.status, answer.header("Content-Range")), (200, None), "status of the whole")
        same_bytes(answer.body, page, "the whole")
    else:
        end = len(page) - 1 if last is None else min(last, len(page) - 1)
        equal((answer.status, answer.header("Content-Range")), (206, f"bytes {first}-{end}/{len(page)}"),
              f"status and place of {first}-{last}")
        same_bytes(answer.body, page[first:end + 1], f"{first}-{last}")
    return answer


@memcheck
def test_smaller_ranges_of_a_stored_part(lab):
    origin, proxy = RangeOrigin(lab), Retort(lab)
    url = origin.url("/p")
    get(proxy, url, 10000, 19999)
    for first, last in ((10000, 19999), (10000, 10000), (12000, 12345), (19999, 19999)):
        answer = get(proxy, url, first, last)
        contains(answer.header("Cache-Status"), "hit", f"{first}-{last}")
        equal(answer.header("Content-Type"), "text/x-page", "Content-Type")
    several = proxy.get(url, {"Range": "bytes=10000-10009,15000-15009"})
    equal(several.status, 206, "several ranges of a part")
    contains(several.body, pattern(SIZE)[15000:15010], "several ranges of a part")
    equal(proxy.get(url, {"Range": f"bytes={SIZE}-"}).status, 416, "behind the end")
    equal(origin.asked(), ["bytes=10000-19999"], "asked of the origin")


def test_what_a_part_is_not_good_for(lab):
    origin, proxy = RangeOrigin(lab), Retort(lab)
    url = origin.url("/n")
    get(proxy, url, 10000, 19999)
    get(proxy, url, 9999, 10005)
    equal(len(origin.requests), 2, "a byte before")
    equal(proxy.fetch("HEAD", url).header("Content-Length"), str(SIZE), "HEAD")
    equal(len(origin.requests), 3, "HEAD")
    get(proxy, url, 10000, 10009, headers={"If-Range": '"v1"'})
    equal(len(origin.requests), 3, "If-Range that holds")
    equal(proxy.get(url, {"Range": "bytes=10000-10009", "If-Range": '"v2"'}).status, 200, "If-Range that does not")
    equal(proxy.get(origin.url("/m"), {"Cache-Control": "only-if-cached", "Range": "bytes=0-1"}).status, 504, "nothing there")


def test_adjacent_and_overlapping_parts_are_combined(lab):
    origin, proxy = RangeOrigin(lab), Retort(lab)
    url = origin.url("/c")
    get(proxy, url, 10000, 19999)
    get(proxy, url, 20000, 29999)
    get(proxy, url, 5000, 12000)
    get(proxy, url, 29000, 39999)
    equal(proxy.counter("cache_combined"), 3, "combined")
    asked = len(origin.requests)
    for first, last in ((5000, 39999), (11000, 21000), (9999, 10000), (28999, 30001)):
        contains(get(proxy, url, first, last).header("Cache-Status"), "hit", f"{first}-{last}")
    equal(len(origin.requests), asked, "requests at the origin")
    get(proxy, url, 0, 6000)
    get(proxy, url, 30000)
    answer = get(proxy, url)
    contains(answer.header("Cache-Status"), "hit", "both ends have come: it is whole")
    equal(proxy.fetch("HEAD", url).header("Content-Length"), str(SIZE), "HEAD")
    equal(len(origin.requests), asked + 2, "requests at the origin")


def test_a_beginning_is_made_whole(lab):
    """A client that wants all gets what is stored and the rest, which alone is asked for."""
    origin, proxy = RangeOrigin(lab), Retort(lab)
    url = origin.url("/w")
    get(proxy, url, 0, 39999)
    answer = get(proxy, url)
    equal(origin.asked(), ["bytes=0-39999", "bytes=40000-"], "asked of the origin")
    equal(origin.requests[1].header("If-Range"), '"v1"', "If-Range")
    contains(answer.header("Cache-Status"), "fwd=partial; stored", "Cache-Status")
    contains(get(proxy, url).header("Cache-Status"), "hit", "afterwards")
    get(proxy, url, 39990, 40010)
    equal(len(origin.requests), 2, "requests at the origin")


def test_a_page_that_has_changed_is_not_combined(lab):
    origin, proxy = RangeOrigin(lab), Retort(lab)
    url = origin.url("/x")
    get(proxy, url, 0, 39999)
    origin.etag, origin.page = '"v2"', pattern(SIZE, 7)
    get(proxy, url, data=origin.page)
    get(proxy, url, 0, 9, data=origin.page)
    equal(len(origin.requests), 2, "requests at the origin")
    url = origin.url("/y")
    get(proxy, url, 0, 39999, data=origin.page)
    origin.etag, origin.page = '"v3"', pattern(SIZE, 9)
    get(proxy, url, 30000, 49999, data=origin.page)
    get(proxy, url, 0, 9, data=origin.page)
    equal(origin.asked()[-1], "bytes=0-9", "the old part is gone")
    equal(proxy.counter("cache_combined"), 0, "combined")


@memcheck
def test_parts_without_a_strong_validator(lab):
    """They are used, but not combined."""
    for etag in (None, 'W/"v1"'):
        origin, proxy = RangeOrigin(lab, etag=etag), Retort(lab)
        url = origin.url("/s")
        get(proxy, url, 0, 9999)
        contains(get(proxy, url, 10, 99).header("Cache-Status"), "hit", f"{etag}: within")
        get(proxy, url, 10000, 19999)
        get(proxy, url, 0, 9)
        equal(origin.asked(), ["bytes=0-9999", "bytes=10000-19999", "bytes=0-9"], f"{etag}: asked of the origin")
        get(proxy, url)
        equal(origin.asked()[-1], None, f"{etag}: the whole is asked for")


def test_an_origin_that_answers_the_completion_wrongly(lab):
    """The client asked for the whole, and never gets less."""
    origin, proxy = RangeOrigin(lab), Retort(lab)
    origin.honest = False
    get(proxy, origin.url("/a"), 0, 39999)
    origin.etag, origin.page = '"v2"', pattern(SIZE, 7)
    get(proxy, origin.url("/a"), data=origin.page)
    equal(origin.asked(), ["bytes=0-39999", "bytes=40000-", None], "another representation's end")
    get(proxy, origin.url("/b"), 0, 39999, data=origin.page)
    origin.page = origin.page[:30000]
    get(proxy, origin.url("/b"), data=origin.page)
    equal(origin.asked()[3:], ["bytes=0-39999", "bytes=40000-", None], "416")


def test_an_end_or_a_middle_is_not_waited_for(lab):
    origin, proxy = RangeOrigin(lab), Retort(lab)
    get(proxy, origin.url("/e"), 50000)
    get(proxy, origin.url("/e"))
    equal(origin.asked(), ["bytes=50000-", None], "asked of the origin")
    contains(get(proxy, origin.url("/e")).header("Cache-Status"), "hit", "afterwards")


@memcheck
def test_a_range_that_is_all_is_stored_as_the_whole(lab):
    origin, proxy = RangeOrigin(lab), Retort(lab)
    get(proxy, origin.url("/f"), 0)
    contains(get(proxy, origin.url("/f")).header("Cache-Status"), "hit", "the whole")
    equal(len(origin.requests), 1, "requests at the origin")


def test_the_larger_part_stays(lab):
    """A look at the end of a film does not cost its beginning."""
    origin, proxy = RangeOrigin(lab), Retort(lab)
    url = origin.url("/l")
    get(proxy, url, 0, 59999)
    get(proxy, url, 99000)
    contains(get(proxy, url, 0, 59999).header("Cache-Status"), "hit", "the beginning")
    get(proxy, url, 70000, 99999)
    contains(get(proxy, url, 0, 59999).header("Cache-Status"), "hit", "the beginning, still")


def test_a_stale_part_is_revalidated(lab):
    origin, proxy = RangeOrigin(lab, control="max-age=1, stale-while-revalidate=60"), Retort(lab)
    url = origin.url("/r")
    get(proxy, url, 1000, 1999)
    time.sleep(2.1)
    origin.control = "max-age=60"
    get(proxy, url, 1500, 1600)
    equal(origin.requests[-1].header("If-None-Match"), '"v1"', "validator")
    contains(get(proxy, url, 1000, 1999).header("Cache-Status"), "hit", "afterwards")
    equal(len(origin.requests), 2, "requests at the origin")


def test_a_stale_part_that_has_changed(lab):
    origin, proxy = RangeOrigin(lab, control="max-age=1"), Retort(lab)
    url = origin.url("/r")
    get(proxy, url, 1000, 1999)
    time.sleep(2.1)
    origin.etag, origin.page, origin.control = '"v2"', pattern(SIZE, 3), "max-age=60"
    get(proxy, url, 1500, 1600, data=origin.page)
    get(proxy, url, 1550, 1560, data=origin.page)
    equal(len(origin.requests), 2, "requests at the origin")


@memcheck
def test_conditional_requests_for_a_part(lab):
    origin, proxy = RangeOrigin(lab), Retort(lab)
    url = origin.url("/i")
    get(proxy, url, 0, 9)
    answer = proxy.get(url, {"Range": "bytes=0-4", "If-None-Match": '"v1"'})
    equal((answer.status, answer.header("ETag"), len(origin.requests)), (304, '"v1"', 1), "the client has it")


def test_parts_that_may_not_be_stored(lab):
    origin, proxy = RangeOrigin(lab), Retort(lab)
    for number, control in enumerate(("no-store", "private", "max-age=0")):
        origin.control = control
        for _ in range(2):
            get(proxy, origin.url(f"/{number}"), 0, 9)
        if control != "max-age=0":
            equal(origin.asked().count("bytes=0-9"), 2 * (number + 1), f"{control}: asked of the origin")


def test_parts_of_what_may_not_be_stored_whole(lab):
    """The rest is still asked for and joined, but stays out of the cache."""
    origin, proxy = RangeOrigin(lab), Retort(lab, cache={"memory": "32MB", "max_object": "64KB"})
    get(proxy, origin.url("/b"), 0, 39999)
    get(proxy, origin.url("/b"))
    equal(origin.asked(), ["bytes=0-39999", "bytes=40000-"], "asked of the origin")
    get(proxy, origin.url("/b"))
    equal(len(origin.requests), 3, "it was not stored")


BROKEN = [
    ("longer than it says", b"Content-Range: bytes 0-3/10\r\nContent-Length: 5\r\n", b"01234"),
    ("shorter than it says", b"Content-Range: bytes 4-9/10\r\nContent-Length: 5\r\n", b"01234"),
    ("no place", b"Content-Length: 5\r\n", b"01234"),
    ("length not known", b"Content-Range: bytes 0-4/*\r\nContent-Length: 5\r\n", b"01234"),
    ("past the end", b"Content-Range: bytes 0-4/3\r\nContent-Length: 5\r\n", b"01234"),
    ("two places", b"Content-Range: bytes 0-4/10\r\nContent-Range: bytes 1-5/10\r\nContent-Length: 5\r\n", b"01234"),
    ("another unit", b"Content-Range: lines 0-4/10\r\nContent-Length: 5\r\n", b"01234"),
    ("several", b"Content-Type: multipart/byteranges; boundary=b\r\nContent-Length: 7\r\n", b"--b--\r\n"),
    ("another range", b"Content-Range: bytes 5-9/10\r\nContent-Length: 5\r\n", b"56789"),
]


def test_parts_that_are_not_understood_pass_by(lab):
    def answer(connection, seen):
        _, fields, body = BROKEN[int(seen.target[1:])]
        connection.send(b'HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nETag: "e"\r\n' + fields + b"\r\n" + body)
        return False
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    for number, (what, _, body) in enumerate(BROKEN):
        for turn in (1, 2):
            seen = proxy.get(origin.url(f"/{number}"), {"Range": "bytes=0-4"})
            equal((seen.status, seen.body), (206, body), what)
            equal(len(origin.requests), 2 * number + turn, f"{what}: requests at the origin")


def test_a_part_that_nobody_asked_for(lab):
    def answer(connection, _seen):
        connection.send(b'HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nETag: "e"\r\n'
                        b"Content-Range: bytes 0-4/10\r\nContent-Length: 5\r\n\r\n01234")
        return False
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    proxy.get(origin.url("/"))
    proxy.get(origin.url("/"), {"Range": "bytes=0-4"})
    equal(len(origin.requests), 2, "requests at the origin")


def test_a_completion_that_breaks_off(lab):
    """What is joined is never complete when its second half is not, and is not stored."""
    origin, proxy = RangeOrigin(lab), Retort(lab)
    url = origin.url("/k")
    get(proxy, url, 0, 39999)
    whole = origin.respond

    def broken(connection, seen):
        connection.send(b'HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nETag: "v1"\r\n'
                        b"Content-Range: bytes 40000-99999/100000\r\nContent-Length: 60000\r\n\r\n" + pattern(SIZE)[40000:50000])
        return True
    origin.answer = broken
    with proxy.wire() as wire:
        wire.send(request("GET", url))
        data = wire.read_to_end()
    true(len(data) < SIZE, f"{len(data)} bytes came")
    origin.answer = whole
    until(lambda: get(proxy, url), 1, "the whole")


def test_what_was_completed_goes_to_disk(lab):
    """And several ranges of it come from the file, after a restart."""
    size = 1500000
    origin = RangeOrigin(lab, size=size)
    cache = {"memory": "32MB", "disk": {lab.path("volume"): {"size": "64MB"}}}
    url = origin.url("/d")
    proxy = Retort(lab, cache=cache)
    get(proxy, url, 0, 999999, size=size)
    get(proxy, url, size=size)
    proxy.stop()
    proxy = Retort(lab, cache=cache)
    with proxy.wire() as wire:
        for _ in range(2):
            wire.send(request("GET", url, {"Range": "bytes=900000-1100000,100-199,-10"}))
            answer = wire.response()
            equal(answer.status, 206, "several ranges")
            for first, end in ((900000, 1100001), (100, 200), (size - 10, size)):
                contains(answer.body, b"\r\n\r\n" + pattern(size)[first:end] + b"\r\n--", f"{first} to {end}")
    get(proxy, url, 999999, 1000000, size=size)
    get(proxy, url, size=size)
    equal(origin.asked(), ["bytes=0-999999", "bytes=1000000-"], "asked of the origin")
