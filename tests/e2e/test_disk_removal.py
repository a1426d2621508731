"""What was removed, replaced or damaged on disk stays away, whatever happens meanwhile."""

import os
import threading

from harness import wire
from harness.checks import equal, true, until
from harness.disk import gauge, volume_of
from harness.disk_bench import Bench, FaultyBench, is_hit, names
from harness.origin import Origin
from harness.own import Own
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck

LARGE = 1_500_000


class Slow:
    """An origin that sends half of a body, and the rest when it is told."""

    def __init__(self, lab):
        self.halves, self.go_on = threading.Semaphore(0), threading.Event()
        self.raw = RawOrigin(lab, self.answer)

    def answer(self, connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: %d\r\n\r\n" % LARGE
                        + b"a" * (LARGE // 2))
        self.halves.release()
        self.go_on.wait(20)
        connection.send(b"b" * (LARGE - LARGE // 2))


@memcheck
def test_a_removal_reaches_what_passes_by(lab):
    """A body on its way to disk only, and a DELETE of it."""
    slow = Slow(lab)
    bench = Bench(lab, cache={"max_object": "100KB"})
    url = slow.raw.url("/large")
    got = []
    client = threading.Thread(target=lambda: got.append(bench.proxy.get(url)))
    client.start()
    slow.halves.acquire()
    until(lambda: bench.proxy.ctl("cache", "--json", "delete", url, expect=None), 10 * lab.patience,
          "the body to be on its way")
    slow.go_on.set()
    client.join()
    equal(len(got[0].body), LARGE, "bytes")
    bench.get("/own/other", 1000)
    until(lambda: gauge(bench.proxy, "writes") >= 1, 10 * lab.patience, "a write behind it")
    true(not is_hit(bench.proxy.get(url)), "gone")


def test_short_streams_share_segments(lab):
    """Removed before a kill, they stay so; and none takes a segment for itself."""
    bench = Bench(lab, cache={"max_object": "20KB"})
    versions = bench.fill(names("s", 200), 60_000)
    bench.on_disk(200)
    equal(gauge(bench.proxy, "segments_reclaimed"), 0, "segments reclaimed")
    for path in names("s", 200)[::2]:
        bench.cache("delete", bench.own.url(path, 60_000))
        del versions[path]
    bench.proxy.kill()
    bench.proxy.start()
    equal(gauge(bench.proxy, "objects"), 100, "objects")
    bench.expect_hits(versions, 60_000)


def test_a_damaged_body_is_not_met_again(lab):
    bench = Bench(lab)
    bench.get("/own/d", LARGE)
    bench.on_disk(1)
    bench.proxy.restart()
    at = bench.volume.find(b"/own/d - ")
    bench.volume.flip(at + LARGE - 100)
    url = bench.own.url("/own/d", LARGE)
    try:
        bench.proxy.get(url)
        true(False, "the damaged one was taken for whole")
    except (wire.Truncated, ConnectionError):
        pass
    equal(bench.proxy.get(url, {"Cache-Control": "only-if-cached"}).status, 504, "only-if-cached")
    equal(bench.cache("list")["objects"], [], "objects")
    true(not bench.get("/own/d", LARGE)[0], "a miss")
    true(bench.get("/own/d", LARGE)[0], "then a hit")


@memcheck
def test_a_response_without_a_body_is_written_once(lab):
    bench = Bench(lab, disk={"admission": "second"})
    url = bench.own.url("/own/empty", 0)
    bench.proxy.get(url)
    bench.fill(names("o", 2), 1000)
    bench.fill(names("o", 2), 1000, headers={"Cache-Control": "no-cache"})
    bench.on_disk(2)
    equal(gauge(bench.proxy, "writes"), 2, "writes")


@memcheck
def test_a_purge_of_odd_bytes_is_kept(lab):
    bench = Bench(lab)
    versions = bench.fill(names("o", 2), 2500)
    bench.on_disk(2)
    purge = "/cache/purge?tag=%FF%FE"
    equal(bench.proxy.admin("POST", purge).status, 200, "purge")
    bench.cache("purge", "--prefix", bench.origin.url("/own/o/1"))
    bench.proxy.restart()
    true(not bench.get("/own/o/1", 2500)[0], "gone")
    bench.expect_hits({"/own/o/0": versions["/own/o/0"]}, 2500)


def test_a_volume_that_is_added_hides_nothing_new(lab):
    """What moves to the new one is not found in its old state on the other."""
    origin = Origin(lab)
    own = Own(origin)
    paths = [lab.path("one"), lab.path("two")]
    for path in paths:
        os.makedirs(path)
    disks = {path: {"size": "32MB"} for path in paths}
    proxy = Retort(lab, cache={"memory": "1MB", "disk": {paths[0]: disks[paths[0]]}})
    urls = names("moved", 60)
    for path in urls:
        proxy.get(own.url(path, 9000))
    until(lambda: gauge(proxy, "objects") >= 60, 10 * lab.patience, "60 objects on disk")
    proxy.kill()
    proxy.write_config(proxy.text(cache={"memory": "1MB", "disk": disks}))
    proxy.start()
    again = {"Cache-Control": "no-cache"}
    versions = {path: own.check(path, 9000, proxy.get(own.url(path, 9000), again)) for path in urls}
    until(lambda: volume_of(paths[1]).find_all(b"/own/moved/"), 10 * lab.patience, "some have moved")
    proxy.restart()
    for path, version in versions.items():
        response = proxy.get(own.url(path, 9000))
        equal((is_hit(response), own.check(path, 9000, response)), (True, version), f"{path}: hit, version")


def test_a_crowd_writes_one_copy(lab):
    """Of a large body that many fetch at the same moment one stream goes to disk."""
    slow = Slow(lab)
    bench = Bench(lab, cache={"max_object": "100KB"}, workers=2)
    url, got = slow.raw.url("/large"), []
    clients = [bench.proxy.wire() for _ in range(5)]
    for client in clients:
        client.send(wire.request("GET", url))
    for client in clients:
        client.head()  # by now its body is on the way, wherever it goes
    slow.go_on.set()
    readers = [threading.Thread(target=lambda client=client: got.append(client.read_bytes(LARGE))) for client in clients]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    equal([len(body) for body in got], 5 * [LARGE], "bytes")
    bench.on_disk(1)
    bench.get("/own/other", 1000)
    bench.on_disk(2)
    true(gauge(bench.proxy, "bytes_written") < 1.5 * LARGE, f"{gauge(bench.proxy, 'bytes_written')} bytes written")
    true(is_hit(bench.proxy.get(url)), "a hit")


def test_variants_on_disk_are_limited(lab):
    bench = Bench(lab, cache={"max_variants": 4})
    for turn in range(2):
        for number in range(12):
            bench.get("/own/v", 2000, kind=f"{turn}-{number}", vary="X-Kind")
        bench.get(f"/own/other/{turn}", 1000)
        bench.on_disk(5 + turn)
        equal(gauge(bench.proxy, "objects"), 5 + turn, "objects on disk")
        bench.proxy.restart()
        equal(gauge(bench.proxy, "objects"), 5 + turn, "objects on disk after a restart")
    true(bench.get("/own/v", 2000, kind="1-11", vary="X-Kind")[0], "the newest is there")
    true(not bench.get("/own/v", 2000, kind="0-11", vary="X-Kind")[0], "an old one is not")


class Changing:
    """An origin whose page may be stored when it is asked for the first time, and never again."""

    def __init__(self, lab):
        self.raw = RawOrigin(lab, self.answer)
        self.asked = threading.Lock()

    def answer(self, connection, _request):
        first = self.asked.acquire(blocking=False)
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: %s\r\nETag: \"e\"\r\nContent-Length: 3\r\n\r\n%s"
                        % ((b"max-age=600", b"old") if first else (b"no-store", b"new")))


def test_what_is_dropped_is_not_brought_back_by_a_load(lab):
    """One client's reload shows that the page must not be stored any more, while another's is being read."""
    changing = Changing(lab)
    bench = FaultyBench(lab, workers=2)
    url = changing.raw.url("/page")
    equal(bench.proxy.get(url).body, b"old", "body")
    bench.on_disk(1)
    bench.proxy.restart()
    bench.faults.set(read_absent=1000, read_delay=1500 * lab.patience)
    reads = bench.faults.count("reads")
    reader = threading.Thread(target=lambda: bench.proxy.get(url))
    reader.start()
    until(lambda: bench.faults.count("reads") > reads + 1, 20 * lab.patience, "a read under way")
    bench.faults.clear()
    equal(bench.proxy.get(url, {"Cache-Control": "no-cache"}).body, b"new", "the reload's body")
    reader.join()
    true(not is_hit(bench.proxy.get(url)), "the old page is gone")
