"""The cache on disk: what outlives a restart, a kill and a reload, and what is never written."""

import os
import signal
import time

from harness import wire
from harness.checks import between, contains, equal, lacks, same_bytes, true, until
from harness.disk import gauge
from harness.disk_bench import Bench, is_hit, names
from harness.origin import Origin
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort
from harness.suite import memcheck

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
    equal(bench.proxy.entries("/own/head", 2)[1]["content_type"], "text/x-odd", "type in the log")
    equal(second.header("Date"), first.header("Date"), "Date")
    between(int(second.header("Age")), 102, 115 * lab.patience, "Age")
    time.sleep(2)
    bench.proxy.get(short)
    equal(bench.proxy.results("/own/short", 2)[1] != "HIT", True, "stale at its time")


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


def test_ranges_of_a_small_one(lab):
    bench = Bench(lab)
    _, version = bench.get("/own/small", 5000)
    bench.on_disk(1)
    bench.proxy.restart()
    ranges_of(bench, "/own/small", 5000, version)
    equal(bench.own.version(), version, "the origin's newest version")


def test_ranges_of_a_large_one(lab):
    bench = Bench(lab)
    _, version = bench.get("/own/large", 3_000_000)
    bench.on_disk(1)
    bench.proxy.restart()
    ranges_of(bench, "/own/large", 3_000_000, version)
    equal(bench.get("/own/large", 3_000_000), (True, version), "the whole")
    equal(bench.own.version(), version, "the origin's newest version")


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


def test_what_was_stored_again_is_the_newest(lab):
    bench = Bench(lab)
    url = bench.own.url("/own/again", 400)
    versions = [bench.own.check("/own/again", 400, bench.proxy.get(url, {"Cache-Control": "no-cache"})) for _ in range(5)]
    equal(versions, sorted(set(versions)), "versions")
    time.sleep(0.3)
    bench.proxy.restart()
    equal(bench.get("/own/again", 400), (True, versions[-1]), "hit, version")


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


def test_errors_and_redirects_are_kept_too(lab):
    bench = Bench(lab)
    for status, more in ((404, {}), (301, {"h": ["Location: /y"]}), (410, {})):
        bench.proxy.get(bench.origin.url(f"/s{status}", status=status, cc="max-age=600", **more))
    bench.on_disk(3)
    bench.proxy.restart()
    for status, more in ((404, {}), (301, {"h": ["Location: /y"]}), (410, {})):
        answer = bench.proxy.get(bench.origin.url(f"/s{status}", status=status, cc="max-age=600", **more))
        equal((answer.status, is_hit(answer), bench.origin.count(f"/s{status}")), (status, True, 1), "status, hit, asked")


def test_a_stale_one_is_asked_again_with_its_validator(lab):
    bench = Bench(lab)
    url = bench.origin.url("/bytes", n=50_000, cc="max-age=1", etag='"e"')
    body = bench.proxy.get(url).body
    bench.on_disk(1)
    bench.proxy.restart()
    time.sleep(2.1)
    same_bytes(bench.proxy.get(url).body, body, "confirmed")
    equal(bench.proxy.results("/bytes", 2)[-1], "REVALIDATED", "result")


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


def test_stale_ones_stand_in_for_a_dead_origin(lab):
    bench = Bench(lab)
    hit, version = bench.get("/own/e", 2000, cc="max-age=1, stale-if-error=600")
    bench.on_disk(1)
    time.sleep(2)
    bench.proxy.restart()
    bench.origin.stop()
    answer = bench.proxy.get(bench.own.url("/own/e", 2000, cc="max-age=1, stale-if-error=600"))
    equal(bench.own.check("/own/e", 2000, answer), version, "version")


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
    contains(bench.proxy.process.log(), "restart retort to apply the change", "the log")
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


# What is not written.

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
