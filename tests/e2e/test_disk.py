"""The cache on disk: what outlives a restart, what is larger than memory, what operators do with it."""

import json
import os
import signal
import subprocess
import threading
import time
from urllib.parse import quote

from harness import ports, wire
from harness.checks import between, contains, equal, lacks, same_bytes, true, until
from harness.disk import gauge, volume_of
from harness.origin import Origin
from harness.own import Own
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort
from harness.suite import heavy, memcheck, seconds


class Bench:
    """An origin, a proxy with one volume, and the names that were asked for."""

    def __init__(self, lab, memory="8MB", disk=None, cache=None, directory=None, **options):
        self.lab = lab
        self.origin = Origin(lab)
        self.own = Own(self.origin, 24 << 20)
        self.directory = directory or lab.path("volume")
        os.makedirs(self.directory, exist_ok=True)
        self.volume = volume_of(self.directory)
        self.proxy = Retort(lab, cache={"memory": memory, **(cache or {}),
                                        "disk": {self.directory: {"size": "64MB", **(disk or {})}}}, **options)

    def get(self, path, n, headers=None, kind=None, **arguments):
        """A GET that is checked byte by byte: (was it a hit?, version)."""
        headers = {**(headers or {}), **({"X-Kind": kind} if kind else {})}
        response = self.proxy.get(self.own.url(path, n, **arguments), headers)
        return is_hit(response), self.own.check(path, n, response, kind or "-")

    def fill(self, paths, n, **arguments):
        """Asks for each; returns their versions."""
        return {path: self.get(path, n, **arguments)[1] for path in paths}

    def on_disk(self, count):
        """Waits until so many objects are on disk."""
        until(lambda: gauge(self.proxy, "objects") >= count, 10 * self.lab.patience,
              f"{count} objects on disk, there are {gauge(self.proxy, 'objects')}")

    def expect_hits(self, versions, n, **arguments):
        for path, version in versions.items():
            equal(self.get(path, n, **arguments), (True, version), f"{path}: hit, version")

    def cache(self, *arguments, expect=0):
        text = self.proxy.ctl("cache", "--json", *arguments, expect=expect)
        return json.loads(text) if text.strip() else None

    def listed(self, *arguments):
        return sorted(entry["url"] for entry in self.cache("list", *arguments)["objects"])


def is_hit(response):
    return "hit" in response.header("Cache-Status").split(";")[1].strip()


def names(what, count):
    return [f"/own/{what}/{number}" for number in range(count)]


# Restarts.

@memcheck
def test_a_restart_serves_from_disk(lab):
    bench = Bench(lab)
    versions = bench.fill(names("r", 20), 3000)
    bench.on_disk(20)
    newest = bench.own.version()
    bench.proxy.restart()
    bench.expect_hits(versions, 3000)
    bench.expect_hits(versions, 3000)
    equal(bench.own.version(), newest, "the origin's newest version")
    equal((bench.proxy.counter("cache_hits"), bench.proxy.counter("cache_disk_hits")), (40, 20), "hits, from disk")
    equal(bench.proxy.results("/own/r/0", 3), ["MISS", "HIT", "HIT"], "results")


@memcheck
def test_a_kill_loses_nothing_that_was_written(lab):
    bench = Bench(lab)
    versions = bench.fill(names("k", 20), 3000)
    bench.on_disk(20)
    bench.proxy.kill()
    bench.proxy.start()
    bench.expect_hits(versions, 3000)


def test_many_restarts(lab):
    bench = Bench(lab)
    versions = {}
    for turn in range(6):
        versions.update(bench.fill(names(f"turn{turn}", 20), 2000 + turn))
        bench.on_disk(len(versions))
        (bench.proxy.restart if turn % 2 else lambda: (bench.proxy.kill(), bench.proxy.start()))()
        equal(gauge(bench.proxy, "objects"), len(versions), "objects on disk")
    for path, version in versions.items():
        n = 2000 + int(path.split("/")[2].removeprefix("turn"))
        equal(bench.get(path, n), (True, version), f"{path}: hit, version")


@memcheck
def test_heads_and_ages_outlive_a_restart(lab):
    bench = Bench(lab)
    url = bench.own.url("/own/head", 100, cc="max-age=600", type="text/x-odd", h=["X-One: 1", "X-Two: a, b", "Age: 100"])
    first = bench.proxy.get(url)
    short = bench.own.url("/own/short", 100, cc="max-age=3")
    bench.proxy.get(short)
    bench.on_disk(2)
    time.sleep(2)
    bench.proxy.restart()
    second = bench.proxy.get(url)
    true(is_hit(second), second.header("Cache-Status"))
    passing = ("age", "cache-status", "date", "connection", "via", "content-length")
    for name, value in first.fields:
        if name.lower() not in passing:
            equal(second.headers(name), first.headers(name), name)
    equal(second.header("Date"), first.header("Date"), "Date")
    between(int(second.header("Age")), 102, 115 * lab.patience, "Age")
    time.sleep(2)
    bench.proxy.get(short)
    equal(bench.proxy.results("/own/short", 2)[1] != "HIT", True, "stale at its time")


@memcheck
def test_head_and_conditions(lab):
    bench = Bench(lab)
    for n in (500, 700_000):
        path = f"/own/c{n}"
        url, (_, version) = bench.own.url(path, n), bench.get(path, n)
        for _ in range(2):
            bench.on_disk(1)
            bench.proxy.restart()
            head = bench.proxy.fetch("HEAD", url)
            equal((head.status, head.header("Content-Length"), is_hit(head)), (200, str(n), True), "HEAD")
            same = bench.proxy.get(url, {"If-None-Match": f'"v-{version}"'})
            equal((same.status, is_hit(same)), (304, True), "If-None-Match")
            other = bench.proxy.get(url, {"If-None-Match": '"other"'})
            equal(bench.own.check(path, n, other), version, "version")
    equal(bench.own.version(), version, "the origin's newest version")


def ranges_of(bench, path, n, version):
    url, body = bench.own.url(path, n), bench.own.body(path, n, version)
    for first, last in ((0, 0), (0, 99), (n // 2, n // 2 + 299), (n - 1, n - 1), (10, n - 10), (262_143, 262_145)):
        if last >= n:
            continue
        part = bench.proxy.get(url, {"Range": f"bytes={first}-{last}"})
        equal((part.status, part.header("Content-Range"), is_hit(part)),
              (206, f"bytes {first}-{last}/{n}", True), f"{first}-{last}")
        same_bytes(part.body, body[first:last + 1], f"{first}-{last}")
    tail = bench.proxy.get(url, {"Range": "bytes=-77"})
    same_bytes(tail.body, body[-77:], "the last 77 bytes")
    equal(bench.proxy.get(url, {"Range": f"bytes={n}-"}).status, 416, "behind the end")
    several = bench.proxy.get(url, {"Range": f"bytes=0-9,{n // 2}-{n // 2 + 9},{n - 10}-{n - 1}"})
    equal(several.status, 206, "several ranges")
    contains(several.header("Content-Type"), "multipart/byteranges", "Content-Type")
    for piece in (body[:10], body[n // 2:n // 2 + 10], body[-10:]):
        contains(several.body, b"\r\n\r\n" + piece + b"\r\n--", "parts")


@memcheck
def test_ranges_of_a_small_one(lab):
    bench = Bench(lab)
    _, version = bench.get("/own/small", 5000)
    bench.on_disk(1)
    bench.proxy.restart()
    ranges_of(bench, "/own/small", 5000, version)
    equal(bench.own.version(), version, "the origin's newest version")


@memcheck
def test_ranges_of_a_large_one(lab):
    bench = Bench(lab)
    _, version = bench.get("/own/large", 3_000_000)
    bench.on_disk(1)
    bench.proxy.restart()
    ranges_of(bench, "/own/large", 3_000_000, version)
    equal(bench.get("/own/large", 3_000_000), (True, version), "the whole")
    equal(bench.own.version(), version, "the origin's newest version")


@memcheck
def test_bodies_of_every_length(lab):
    """Around the sizes of blocks and chunks; with and without a Content-Length from the origin."""
    bench = Bench(lab)
    lengths = [0, 1, 511, 512, 513, 4095, 4096, 65_536, 262_143, 262_144, 262_145, 524_288, 1_000_001]
    versions = {}
    for n in lengths:
        for chunked in ({}, {"chunked": "1"}):
            if n == 0 and chunked:
                continue
            path = f"/own/n{n}{'c' if chunked else ''}"
            versions[path, n, bool(chunked)] = bench.get(path, n, **chunked)[1]
    bench.on_disk(len(versions))
    bench.proxy.restart()
    for (path, n, chunked), version in versions.items():
        equal(bench.get(path, n, **({"chunked": "1"} if chunked else {})), (True, version), f"{path}: hit, version")


@memcheck
def test_variants(lab):
    bench = Bench(lab)
    kinds = ("red", "green", "blue")
    versions = {kind: bench.get("/own/v", 900, kind=kind, vary="X-Kind")[1] for kind in kinds}
    bench.on_disk(3)
    bench.proxy.restart()
    for kind in kinds:
        equal(bench.get("/own/v", 900, kind=kind, vary="X-Kind"), (True, versions[kind]), f"{kind}: hit, version")
    hit, other = bench.get("/own/v", 900, kind="black", vary="X-Kind")
    true(not hit and other > max(versions.values()), "a variant that is not there")


@memcheck
def test_what_was_stored_again_is_the_newest(lab):
    bench = Bench(lab)
    url = bench.own.url("/own/again", 400)
    versions = [bench.own.check("/own/again", 400, bench.proxy.get(url, {"Cache-Control": "no-cache"})) for _ in range(5)]
    equal(versions, sorted(set(versions)), "versions")
    time.sleep(0.3)
    bench.proxy.restart()
    equal(bench.get("/own/again", 400), (True, versions[-1]), "hit, version")


@memcheck
def test_modes_stay_apart(lab):
    origin = Origin(lab)
    volume = lab.path("volume")
    os.makedirs(volume)
    proxy = Retort(lab, reverse={"/": origin.url("/reverse/")}, cache={"disk": {volume: {"size": "16MB"}}})
    host = origin.authority
    forward = proxy.get(origin.url("/x", cc="max-age=600"))
    reverse = proxy.get("/x?cc=max-age%3D600", host=host)
    until(lambda: gauge(proxy, "objects") >= 2, 5 * lab.patience, "two objects on disk")
    proxy.restart()
    equal(proxy.get(origin.url("/x", cc="max-age=600")).text(), forward.text(), "forward")
    equal(proxy.get("/x?cc=max-age%3D600", host=host).text(), reverse.text(), "reverse")
    true(forward.text() != reverse.text(), "both are one")


@memcheck
def test_errors_and_redirects_are_kept_too(lab):
    bench = Bench(lab)
    for status, more in ((404, {}), (301, {"h": ["Location: /y"]}), (410, {})):
        bench.proxy.get(bench.origin.url(f"/s{status}", status=status, cc="max-age=600", **more))
    bench.on_disk(3)
    bench.proxy.restart()
    for status, more in ((404, {}), (301, {"h": ["Location: /y"]}), (410, {})):
        answer = bench.proxy.get(bench.origin.url(f"/s{status}", status=status, cc="max-age=600", **more))
        equal((answer.status, is_hit(answer), bench.origin.count(f"/s{status}")), (status, True, 1), "status, hit, asked")


@memcheck
def test_a_stale_one_is_asked_again_with_its_validator(lab):
    bench = Bench(lab)
    url = bench.origin.url("/bytes", n=50_000, cc="max-age=1", etag='"e"')
    body = bench.proxy.get(url).body
    bench.on_disk(1)
    bench.proxy.restart()
    time.sleep(2.1)
    same_bytes(bench.proxy.get(url).body, body, "confirmed")
    equal(bench.proxy.results("/bytes", 2)[-1], "REVALIDATED", "result")


@memcheck
def test_a_confirmation_is_kept(lab):
    """A 304 renews what is on disk, not only what is in memory."""
    def answer(connection, request):
        head = b"HTTP/1.1 %s\r\nETag: \"e\"\r\nCache-Control: max-age=%d\r\nX-Turn: %d\r\n"
        if request.header("If-None-Match"):
            connection.send(head % (b"304 Not Modified", 600, 2) + b"\r\n")
        else:
            connection.send(head % (b"200 OK", 1, 1) + b"Content-Length: 300000\r\n\r\n" + pattern(300000))
    bench = Bench(lab)
    raw = RawOrigin(lab, answer)
    url = f"http://127.0.0.1:{raw.port}/kept"
    bench.proxy.get(url)
    time.sleep(2.1)
    equal(bench.proxy.get(url).header("X-Turn"), "2", "after the 304")
    time.sleep(0.5)
    bench.proxy.restart()
    seen = bench.proxy.get(url)
    equal((seen.header("X-Turn"), is_hit(seen), len(raw.requests)), ("2", True, 2), "turn, hit, requests at the origin")
    same_bytes(seen.body, pattern(300000), "body")


class Renewing:
    """An origin of one large page, stale at once: how often it was asked stands in X-Turn; a new version comes
    when `version` is set."""

    def __init__(self, lab, n):
        self.n, self.version, self.turn = n, b"1", 0
        self.raw = RawOrigin(lab, self.answer)
        self.url = self.raw.url("/renewed")

    def body(self):
        return self.version + pattern(self.n - 1)

    def answer(self, connection, request):
        self.turn += 1
        same = request.header("If-None-Match") == f'"{self.version.decode()}"'
        connection.send(b"HTTP/1.1 %s\r\nETag: \"%s\"\r\nCache-Control: max-age=%d\r\nX-Turn: %d\r\n" % (
            b"304 Not Modified" if same else b"200 OK", self.version, 600 if same else 0, self.turn)
            + (b"\r\n" if same else b"Content-Length: %d\r\n\r\n%s" % (self.n, self.body())))

    def expect(self, bench, turn, hit, what):
        seen = bench.proxy.get(self.url)
        equal((seen.header("X-Turn"), is_hit(seen)), (str(turn), hit), f"{what}: turn, hit")
        same_bytes(seen.body, self.body(), what)


def settle(bench):
    """Waits until what has been asked for is written."""
    bench.cache("delete", "http://nowhere/", expect=1)


def test_a_confirmation_of_what_stands_on_disk_is_kept(lab):
    """The body is not in memory; its new head outlives restarts and kills all the same."""
    for n in (300_000, 1_200_000):
        bench, origin = Bench(lab, directory=lab.path(f"volume{n}")), Renewing(lab, n)
        origin.expect(bench, 1, False, "stored")
        bench.on_disk(1)
        bench.proxy.restart()
        origin.expect(bench, 2, False, "confirmed")
        settle(bench)
        for stop in (bench.proxy.kill, bench.proxy.stop, bench.proxy.kill):
            stop()
            bench.proxy.start()
            equal(gauge(bench.proxy, "objects"), 1, "objects on disk")
            origin.expect(bench, 2, True, "after a restart")
        bench.cache("expire", origin.url, "0")
        settle(bench)
        bench.proxy.kill()
        bench.proxy.start()
        origin.version = b"2"
        origin.expect(bench, 3, False, "a new version")
        bench.get("/own/other", 1000)
        settle(bench)
        bench.proxy.restart()
        origin.expect(bench, 4, False, "that is not renewed by what renewed the old one")
        settle(bench)
        equal(bench.cache("delete", origin.url)["purged"], 1, "deleted")
        bench.proxy.restart()
        origin.expect(bench, 5, False, "deleted with all that renewed it")


@memcheck
def test_stale_ones_stand_in_for_a_dead_origin(lab):
    bench = Bench(lab)
    hit, version = bench.get("/own/e", 2000, cc="max-age=1, stale-if-error=600")
    bench.on_disk(1)
    time.sleep(2)
    bench.proxy.restart()
    bench.origin.stop()
    answer = bench.proxy.get(bench.own.url("/own/e", 2000, cc="max-age=1, stale-if-error=600"))
    equal(bench.own.check("/own/e", 2000, answer), version, "version")


@memcheck
def test_what_may_not_be_kept_is_not_on_disk(lab):
    bench = Bench(lab)
    for cc in ("no-store", "private", "max-age=0"):
        bench.proxy.get(bench.own.url("/own/" + cc[:4], 5000, cc=cc))
    bench.get("/own/yes", 5000)
    bench.on_disk(1)
    time.sleep(0.2)
    for name in (b"/own/no-s ", b"/own/priv "):
        equal(bench.volume.find_all(name), [], f"places of {name} on disk")
    true(bench.volume.find_all(b"/own/yes - "), "what may be kept is not there")


def test_what_breaks_off_is_not_on_disk(lab):
    bench = Bench(lab)
    for chunked in ({}, {"chunked": "1"}):
        try:
            bench.proxy.get(bench.origin.url("/abort", n=900_000, after=500_000, cc="max-age=600", **chunked))
        except wire.Truncated:
            pass
    bench.get("/own/whole", 1000)
    bench.on_disk(1)
    time.sleep(0.3)
    bench.proxy.restart()
    equal(gauge(bench.proxy, "objects"), 1, "objects")


@memcheck
def test_unsafe_methods_are_remembered(lab):
    bench = Bench(lab)
    _, version = bench.get("/own/p", 1000)
    kept = bench.fill(["/own/q"], 1000)
    bench.on_disk(2)
    equal(bench.proxy.fetch("POST", bench.own.url("/own/p", 1000), body=b"").status, 200, "POST")
    time.sleep(0.5)
    bench.proxy.kill()
    bench.proxy.start()
    hit, again = bench.get("/own/p", 1000)
    true(not hit and again > version, f"hit {hit}, version {again} after {version}")
    bench.expect_hits(kept, 1000)


# Larger than memory.

@seconds(120)
def test_a_working_set_larger_than_memory(lab):
    bench = Bench(lab, memory="1MB", workers=2)
    paths = names("w", 400)
    versions = bench.fill(paths, 50_000)
    bench.on_disk(400)
    newest = bench.own.version()
    for _ in range(2):
        bench.expect_hits(versions, 50_000)
    equal(bench.own.version(), newest, "the origin's newest version")
    true(bench.proxy.status()["cache"]["bytes"] <= 1 << 20, "memory in use")
    between(bench.proxy.counter("cache_disk_hits"), 700, 800, "hits from disk")


def from_disk(bench, path, n):
    """Is the hit one from disk?"""
    before = bench.proxy.counter("cache_disk_hits")
    true(bench.get(path, n)[0], f"{path} is a hit")
    return bench.proxy.counter("cache_disk_hits") > before


def test_a_crawl_through_the_disk_leaves_memory_alone(lab):
    """What is read from disk once does not take the place of what is asked for again and again."""
    bench = Bench(lab, memory="1MB")
    popular, crawled = names("popular", 5), names("crawled", 200)
    bench.fill(crawled + popular, 20_000)
    bench.on_disk(205)
    for path in popular * 3:
        bench.get(path, 20_000)
    for path in crawled[:150]:
        bench.get(path, 20_000)
    equal([path for path in popular if from_disk(bench, path, 20_000)], [], "popular ones that were read from disk")


def test_what_is_read_twice_goes_to_memory(lab):
    bench = Bench(lab, memory="1MB")
    bench.fill(names("w", 200), 20_000)
    bench.on_disk(200)
    equal([from_disk(bench, "/own/w/3", 20_000) for _ in range(4)], [True, True, False, False], "read from disk")
    bench.get("/own/w/4", 20_000)
    for number in range(10, 110):  # 2 MB
        bench.get(f"/own/w/{number}", 20_000)
    equal([from_disk(bench, "/own/w/4", 20_000) for _ in range(3)], [True, True, False], "read from disk, later")


def test_slow_readers_of_small_ones(lab):
    """What was read for one client is its own until it has taken it all."""
    bench = Bench(lab, memory="1MB", cache={"max_object": "500KB"})
    versions = bench.fill(names("slow", 40), 200_000)
    bench.on_disk(40)
    wires = []
    for path in versions:
        wires.append(wire.Wire(bench.proxy.forward, timeout=30, receive_buffer=4096))
        wires[-1].send(wire.request("GET", bench.own.url(path, 200_000)))
    bench.fill(names("other", 30), 100_000)
    for one, (path, version) in zip(wires, versions.items()):
        with one:
            equal(bench.own.check(path, 200_000, one.response()), version, f"{path}: version")


@seconds(120)
def test_large_ones_larger_than_memory(lab):
    bench = Bench(lab, memory="8MB", workers=2)
    paths = names("l", 12)
    versions = bench.fill(paths, 3_000_000)
    bench.on_disk(12)
    newest = bench.own.version()
    bench.volume.forget_pages()
    for _ in range(2):
        bench.expect_hits(versions, 3_000_000)
    bench.proxy.restart()
    bench.volume.forget_pages()
    bench.expect_hits(versions, 3_000_000)
    equal(bench.own.version(), newest, "the origin's newest version")


@heavy("RSS of sanitizers says nothing")
def test_reading_large_ones_takes_no_memory(lab):
    bench = Bench(lab, memory="24MB")
    versions = bench.fill(names("m", 2), 12_000_000)
    bench.on_disk(2)
    bench.proxy.restart()
    for _ in range(3):
        bench.expect_hits(versions, 12_000_000)
    true(bench.proxy.memory_peak_kb() < 64 << 10, f"{bench.proxy.memory_peak_kb()} KB resident at most")


def test_disk_max_object(lab):
    bench = Bench(lab, disk={"max_object": "100KB"})
    bench.get("/own/small", 99_000)
    bench.get("/own/large", 200_000)
    bench.on_disk(1)
    time.sleep(0.3)
    bench.proxy.restart()
    true(bench.get("/own/small", 99_000)[0], "the small one is a hit")
    true(not bench.get("/own/large", 200_000)[0], "the large one is a miss")


def in_threads(count, work):
    problems = []

    def run(number):
        try:
            work(number)
        except BaseException as error:  # pylint: disable=broad-except
            problems.append(f"{type(error).__name__}: {error}")
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    true(not problems, "\n".join(problems[:3]))


def test_many_ask_for_the_same_at_once(lab):
    """What is being read from disk is asked for by more: each gets it, the origin is not asked."""
    bench = Bench(lab, workers=2)
    versions = {n: bench.get(f"/own/s{n}", n)[1] for n in (3000, 900_000)}
    bench.on_disk(2)
    for n, version in versions.items():
        bench.proxy.restart()
        bench.volume.forget_pages()
        in_threads(24, lambda _, n=n, version=version: equal(bench.get(f"/own/s{n}", n), (True, version), "hit, version"))
    equal(bench.own.version(), max(versions.values()), "the origin's newest version")


def test_pipelined_hits_from_disk(lab):
    bench = Bench(lab)
    versions = bench.fill(names("p", 30), 4000)
    bench.on_disk(30)
    bench.proxy.restart()
    bench.volume.forget_pages()
    with bench.proxy.wire() as connection:
        connection.send(b"".join(wire.request("GET", bench.own.url(path, 4000)) for path in versions))
        for path, version in versions.items():
            equal(bench.own.check(path, 4000, connection.response()), version, f"{path}: version")


def test_clients_that_leave_do_no_harm(lab):
    bench = Bench(lab)
    _, version = bench.get("/own/left", 6_000_000)
    bench.on_disk(1)
    bench.proxy.restart()
    bench.volume.forget_pages()
    for taken in (0, 1000, 400_000):
        with bench.proxy.wire(receive_buffer=4096) as connection:
            connection.send(wire.request("GET", bench.own.url("/own/left", 6_000_000)))
            if taken:
                connection.head()
                connection.read_bytes(taken)
            connection.abort()
    equal(bench.get("/own/left", 6_000_000), (True, version), "hit, version")


# The ring.

@seconds(180)
@heavy("it writes the volume three times over")
def test_the_ring_turns(lab):
    """Old ones go, new ones are there; what is asked for again and again stays."""
    bench = Bench(lab, memory="1MB", disk={"size": "16MB"})
    hot = bench.fill(names("hot", 5), 20_000)
    last = {}
    for number in range(2400):
        path = f"/own/cold/{number}"
        last[path] = bench.get(path, 20_000)[1]
        if number % 50 == 49:
            for name, version in hot.items():
                seen = bench.get(name, 20_000)
                equal(seen, (True, version), f"{name} after {number}: hit, version")
    true(gauge(bench.proxy, "segments_reclaimed") > 10, "segments reclaimed")
    between(gauge(bench.proxy, "objects"), 300, 900, "objects")
    bench.proxy.restart()
    bench.expect_hits(hot, 20_000)
    newest = list(last.items())[-150:]
    bench.expect_hits(dict(newest), 20_000)
    true(not bench.get("/own/cold/0", 20_000)[0], "the oldest is gone")


@seconds(120)
@heavy("it turns the ring under a reader")
def test_a_slow_reader_while_the_ring_turns(lab):
    """Its bytes are right to the last one, or it sees the connection end."""
    bench = Bench(lab, memory="8MB", disk={"size": "16MB"})
    n = 3_500_000
    _, version = bench.get("/own/slow", n)
    body = bench.own.body("/own/slow", n, version)
    bench.on_disk(1)
    bench.proxy.restart()
    with bench.proxy.wire(receive_buffer=8192) as connection:
        connection.send(wire.request("GET", bench.own.url("/own/slow", n)))
        connection.head()
        start = connection.read_bytes(100_000)
        bench.fill(names("flood", 900), 30_000)
        try:
            rest = connection.read_bytes(n - 100_000)
            same_bytes(start + rest, body, "what the slow one was sent")
        except wire.Truncated:
            same_bytes(start, body[:100_000], "what the slow one was sent")
    hit, again = bench.get("/own/slow", n)
    true(again >= version and (hit is False or again == version), "afterwards")


def test_two_volumes(lab):
    origin = Origin(lab)
    own = Own(origin)
    paths = [lab.path("one"), lab.path("two")]
    for path in paths:
        os.makedirs(path)
    proxy = Retort(lab, cache={"memory": "1MB", "disk": {path: {"size": "32MB"} for path in paths}})
    versions = {path: own.check(path, 9000, proxy.get(own.url(path, 9000))) for path in names("two", 100)}
    until(lambda: gauge(proxy, "objects") >= 100, 10 * lab.patience, "100 objects on disk")
    proxy.restart()
    for path, version in versions.items():
        response = proxy.get(own.url(path, 9000))
        equal((is_hit(response), own.check(path, 9000, response)), (True, version), f"{path}: hit, version")
    counts = [len([path for path in versions if volume_of(directory).find_all(f"{path} - ".encode())])
              for directory in paths]
    true(min(counts) >= 20 and sum(counts) == 100, f"objects on each: {counts}")


def test_admission_of_the_second_request(lab):
    bench = Bench(lab, disk={"admission": "second"})
    once, twice = names("once", 10), names("twice", 10)
    again = {"headers": {"Cache-Control": "no-cache"}}
    bench.fill(once, 2000)
    bench.fill(twice, 2000)
    versions = bench.fill(twice, 2000, **again)
    bench.on_disk(10)
    time.sleep(0.3)
    equal(gauge(bench.proxy, "objects"), 10, "objects")
    bench.proxy.restart()
    bench.expect_hits(versions, 2000)
    true(not bench.get(once[0], 2000)[0], "what was asked for once is a miss")


# The file.

@memcheck
def test_the_path_may_be_a_file(lab):
    origin = Origin(lab)
    own = Own(origin)
    path = lab.write("volume.file", b"x" * 1000)
    proxy = Retort(lab, cache={"disk": {path: {"size": "16MB"}}})
    version = own.check("/own/f", 700, proxy.get(own.url("/own/f", 700)))
    until(lambda: gauge(proxy, "objects") >= 1, 5 * lab.patience, "an object on disk")
    proxy.restart()
    response = proxy.get(own.url("/own/f", 700))
    equal((is_hit(response), own.check("/own/f", 700, response)), (True, version), "hit, version")
    between(os.stat(path).st_size, 15 << 20, 16 << 20, "size of the file")


def test_another_size_at_the_next_start(lab):
    """The volume begins anew or goes on; either way it works, and says what it did."""
    bench = Bench(lab)
    bench.fill(names("z", 10), 2000)
    bench.on_disk(10)
    for size in ("32MB", "96MB"):
        bench.proxy.stop()
        bench.proxy.write_config(bench.proxy.text(cache={"memory": "8MB", "disk": {bench.directory: {"size": size}}}))
        bench.proxy.start()
        bench.fill(names("z", 10), 2000)
        true(bench.get("/own/z/1", 2000)[0], "a hit")
        bench.on_disk(10)
    contains(bench.proxy.process.log(), bench.directory, "the log")


def refused(lab, cache, environment=None):
    """What retort says when it does not start with this cache."""
    config = lab.write("refused.conf", f'listen "127.0.0.1:{ports.take()}" {{ mode = forward }}\n{cache}\n')
    done = subprocess.run([lab.built("proxy/retort"), "-f", config], capture_output=True, text=True, check=False,
                          timeout=20 * lab.patience, env={**os.environ, **lab.environment(), **(environment or {})})
    equal(done.returncode, 1, f"exit status; it said: {done.stdout}{done.stderr}")
    return done.stderr


def test_bad_paths_are_refused(lab):
    missing = lab.path("missing/deeper")
    said = refused(lab, f'cache {{ disk "{missing}" {{ size = 16MB }} }}')
    contains(said, missing, "message")
    contains(said, "No such file or directory", "message")
    inside = lab.write("file", "x") + "/volume"
    contains(refused(lab, f'cache {{ disk "{inside}" {{ size = 16MB }} }}'), inside, "message")
    contains(refused(lab, 'cache { disk "/dev/null" { size = 16MB } }'), "/dev/null", "message")


def test_an_unwritable_path_is_refused(lab):
    """Root may write everywhere, but not on what is mounted read-only, nor below /proc."""
    said = refused(lab, 'cache { disk "/proc" { size = 16MB } }')
    contains(said, "/proc", "message")


def test_a_volume_has_one_user(lab):
    bench = Bench(lab)
    said = refused(lab, f'cache {{ disk "{bench.directory}" {{ size = 64MB }} }}')
    contains(said, bench.directory, "message")
    contains(said, "in use", "message")
    true(not bench.get("/own/mine", 1000)[0] and bench.get("/own/mine", 1000)[0], "the first goes on")


# Operators.

def test_reloads(lab):
    bench = Bench(lab)
    versions = bench.fill(names("h", 10), 2000)
    bench.on_disk(10)
    bench.proxy.hang_up()
    until(lambda: "read again" in bench.proxy.process.log(), 5 * lab.patience, "the reload")
    lacks(bench.proxy.process.log(), "restart retort to apply", "the log")
    bench.expect_hits(versions, 2000)
    bench.proxy.write_config(bench.proxy.text(cache={"memory": "8MB", "disk": {bench.directory: {"size": "32MB"}}}))
    equal(bench.proxy.reload().status, 200, "reload")
    contains(bench.proxy.process.log(), "has changed: restart retort to apply it", "the log")
    versions.update(bench.fill(names("h2", 10), 2000))
    bench.on_disk(20)
    bench.proxy.write_config(bench.proxy.text(cache={"memory": "8MB"}))
    equal(bench.proxy.reload().status, 200, "reload")
    bench.expect_hits(versions, 2000)
    bench.proxy.write_config(bench.proxy.text())
    bench.proxy.restart()
    bench.expect_hits(versions, 2000)


def test_signals_at_any_moment(lab):
    """SIGTERM while it writes: what the proxy promised to write is there."""
    bench = Bench(lab)
    versions = bench.fill(names("t", 100), 20_000)
    bench.proxy.process.send_signal(signal.SIGTERM)
    bench.proxy.wait_exit(10)
    bench.proxy.start()
    bench.expect_hits(versions, 20_000)


def only_on_disk(lab, **arguments):
    """A bench whose objects are on disk and not in memory."""
    bench = Bench(lab)
    versions = bench.fill(names("o", 6), 2500, **arguments)
    bench.on_disk(6)
    bench.proxy.restart()
    return bench, versions


@memcheck
def test_show_and_get(lab):
    bench, versions = only_on_disk(lab, cc="max-age=600")
    url = bench.own.url("/own/o/1", 2500, cc="max-age=600")
    variants = bench.cache("show", url)["variants"]
    equal((len(variants), variants[0]["url"], variants[0]["state"], variants[0]["status"]), (1, url, "fresh", 200), "show")
    true(500 <= variants[0]["fresh_for"] <= 600, f"fresh for {variants[0]['fresh_for']}")
    message = bench.proxy.admin("GET", "/cache/content?url=" + quote(url, safe="")).body
    body = bench.own.body("/own/o/1", 2500, versions["/own/o/1"])
    same_bytes(message[-2504:], b"\r\n\r\n" + body, "the message's end")
    bench.proxy.ctl("cache", "show", bench.own.url("/own/none", 1), expect=1)


@memcheck
def test_list(lab):
    bench, _ = only_on_disk(lab)
    urls = sorted(bench.own.url(path, 2500) for path in names("o", 6))
    equal(bench.listed(), urls, "all")
    bench.get("/own/o/2", 2500)
    equal(bench.listed(), urls, "all, one of them in memory")
    equal(bench.listed("--prefix", bench.origin.url("/own/o/3")), [bench.own.url("/own/o/3", 2500)], "by prefix")
    equal(bench.listed("--regex", "/o/[45]"), urls[4:], "by regex")
    seen, after = [], "0"
    for _ in range(20):
        page = bench.cache("list", "--limit", "1", "--after", after)
        seen += [entry["url"] for entry in page["objects"]]
        if page["next"] is None:
            break
        after = str(page["next"])
    equal(sorted(set(seen)), urls, "page by page")


def gone_for_good(bench, versions, path, n=2500, **arguments):
    """Not there now, nor after a kill; the others are."""
    kept = {name: version for name, version in versions.items() if name != path}
    bench.proxy.kill()
    bench.proxy.start()
    bench.expect_hits(kept, n, **arguments)
    hit, version = bench.get(path, n, **arguments)
    true(not hit and version > versions[path], f"{path}: hit {hit}, version {version} after {versions[path]}")


@memcheck
def test_delete(lab):
    bench, versions = only_on_disk(lab)
    url = bench.own.url("/own/o/1", 2500)
    equal(bench.cache("delete", url)["purged"], 1, "purged")
    bench.proxy.ctl("cache", "delete", url, expect=1)
    lacks(bench.listed(), url, "objects")
    gone_for_good(bench, versions, "/own/o/1")


@memcheck
def test_delete_what_is_in_memory_too(lab):
    bench, versions = only_on_disk(lab)
    true(bench.get("/own/o/1", 2500)[0], "a hit")
    equal(bench.cache("delete", bench.own.url("/own/o/1", 2500))["purged"], 1, "purged")
    gone_for_good(bench, versions, "/own/o/1")


@memcheck
def test_purge_by_prefix(lab):
    bench, versions = only_on_disk(lab)
    bench.cache("purge", "--prefix", bench.origin.url("/own/o/3"))
    gone_for_good(bench, versions, "/own/o/3")


@memcheck
def test_purge_by_regex(lab):
    bench, versions = only_on_disk(lab)
    bench.cache("purge", "--regex", "/o/4[?]")
    gone_for_good(bench, versions, "/own/o/4")


@memcheck
def test_purge_by_tag(lab):
    bench = Bench(lab)
    versions = bench.fill(names("o", 2), 2500)
    tagged = {"h": ["Surrogate-Key: shop"]}
    versions["/own/t"] = bench.get("/own/t", 2500, **tagged)[1]
    bench.on_disk(3)
    bench.proxy.restart()
    bench.cache("purge", "--tag", "shop")
    bench.proxy.kill()
    bench.proxy.start()
    true(not bench.get("/own/t", 2500, **tagged)[0], "the tagged one is gone")
    bench.expect_hits({path: versions[path] for path in names("o", 2)}, 2500)


@memcheck
def test_purge_everything(lab):
    bench, _ = only_on_disk(lab)
    bench.cache("purge", "--all")
    equal(bench.listed(), [], "objects")
    bench.proxy.kill()
    bench.proxy.start()
    equal(bench.listed(), [], "objects after a kill")
    for path in names("o", 6):
        true(not bench.get(path, 2500)[0], "a miss")


@memcheck
def test_bans(lab):
    bench, versions = only_on_disk(lab)
    bench.proxy.ctl("cache", "ban", "/o/5[?]")
    gone_for_good(bench, versions, "/own/o/5")
    true(bench.get("/own/o/5", 2500)[0], "what came after the ban is a hit")
    bench.on_disk(6)
    bench.proxy.restart()
    true(bench.get("/own/o/5", 2500)[0], "after a restart, too")


@memcheck
def test_soft_purge(lab):
    bench, versions = only_on_disk(lab)
    url = bench.own.url("/own/o/1", 2500)
    equal(bench.cache("delete", url, "--soft")["purged"], 1, "purged")
    equal(bench.cache("show", url)["variants"][0]["state"], "stale", "state")
    time.sleep(0.3)
    gone_for_good(bench, versions, "/own/o/1")


@memcheck
def test_expire(lab):
    bench, versions = only_on_disk(lab)
    url = bench.own.url("/own/o/2", 2500)
    bench.cache("expire", url, "500")
    true(480 <= bench.cache("show", url)["variants"][0]["fresh_for"] <= 500, "fresh for 500 seconds")
    time.sleep(0.3)
    bench.proxy.kill()
    bench.proxy.start()
    true(480 - 20 * lab.patience <= bench.cache("show", url)["variants"][0]["fresh_for"] <= 500, "after a kill, too")
    bench.expect_hits(versions, 2500)


@memcheck
def test_pin(lab):
    bench, versions = only_on_disk(lab)
    url = bench.own.url("/own/o/2", 2500)
    bench.cache("pin", url)
    equal(bench.cache("show", url)["variants"][0]["pinned"], True, "pinned")
    bench.cache("unpin", url)
    equal(bench.cache("show", url)["variants"][0]["pinned"], False, "pinned")
    bench.expect_hits(versions, 2500)


@memcheck
def test_inject(lab):
    bench = Bench(lab)
    path = lab.write("made.txt", "made by hand\n")
    bench.proxy.ctl("cache", "inject", "http://nowhere.invalid/made", path, "--lifetime", "600")
    bench.on_disk(1)
    bench.proxy.restart()
    equal(bench.proxy.get("http://nowhere.invalid/made").text(), "made by hand\n", "body")


# Many.

MANY = int(os.environ.get("RETORT_DISK_OBJECTS", "100000"))


@seconds(60 + MANY // 2000)
@heavy("it is about speed")
def test_a_start_with_many_objects(lab):
    """Five seconds are enough for a million: RETORT_DISK_OBJECTS=1000000 run.py --filter many_objects"""
    bench = Bench(lab, disk={"size": f"{MANY // 500 + 64}MB"})
    bench.proxy.stop()
    started = time.monotonic()
    done = subprocess.run([lab.built("tests/e2e/volume/fill_volume"), bench.proxy.config_path, str(MANY), "300"],
                          capture_output=True, text=True, check=False)
    equal(done.returncode, 0, f"fill_volume: {done.stderr[-500:]}; exit status")
    filled = time.monotonic() - started
    started = time.monotonic()
    bench.proxy.start()
    took = time.monotonic() - started
    print(f"    {MANY} objects written in {filled:.1f} s, indexed in {took:.2f} s, "
          f"{bench.proxy.memory_peak_kb() >> 10} MB resident")
    equal(gauge(bench.proxy, "objects"), MANY, "objects")
    true(took < 0.5 + 4.5 * MANY / 1_000_000, f"{took:.2f} s")
    for number in range(0, MANY, MANY // 50):
        response = bench.proxy.get(f"http://fill.invalid/{number}")
        true(is_hit(response), f"{number} is a hit")
        equal(response.body, f"{number}\n".encode().ljust(300, b"."), f"body of {number}")
