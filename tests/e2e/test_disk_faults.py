"""A disk that fails, is full, is slow, or brings other bytes than it was given: costs the objects
concerned and a log line, and no client ever gets a wrong byte."""

import os
import random
import subprocess
import threading
import time
from urllib.parse import quote

from harness import wire
from harness.checks import between, contains, equal, true, until
from harness.disk import ALIGN, HEADER, RECORDS_AT, SEAL_AT, gauge
from harness.disk_bench import Bench, FaultyBench, is_hit, names
from harness.disk_faults import DiskFaults
from harness.origin import Origin
from harness.own import Own
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import heavy, memcheck, seconds

SMALL, LARGE = 3000, 900_000


def stored(bench, count=10):
    """Small and large objects that are only on disk."""
    versions = {(path, n): bench.get(path, n)[1]
                for n in (SMALL, LARGE) for path in names(f"f{n}", count if n == SMALL else count // 2)}
    bench.on_disk(len(versions))
    bench.proxy.restart()
    return versions


def test_read_errors_are_misses(lab):
    bench = FaultyBench(lab)
    versions = stored(bench)
    bench.faults.set(read_error=1000)
    for (path, n), version in versions.items():
        hit, seen = bench.get(path, n)
        true(not hit and seen > version, f"{path}: hit {hit}, version {seen}")
    true(bench.faults.count("read_faults") > 0, "reads that failed")
    true(gauge(bench.proxy, "errors") > 0, "errors counted")
    contains(bench.log(), "Input/output error", "the log")
    contains(bench.log(), bench.directory, "the log")
    bench.faults.clear()
    for path, n in versions:
        true(bench.get(path, n)[0], f"{path} is a hit again")


def test_read_errors_in_the_middle(lab):
    """The head has been sent: the client sees the connection end, and the next one gets the whole."""
    bench = FaultyBench(lab)
    n = 6_000_000
    _, version = bench.get("/own/middle", n)
    bench.on_disk(1)
    bench.proxy.restart()
    with bench.proxy.wire(receive_buffer=8192) as connection:
        connection.send(wire.request("GET", bench.own.url("/own/middle", n)))
        connection.head()
        start = connection.read_bytes(300_000)
        bench.faults.set(read_error=1000, send_error=1000)
        try:
            body = start + connection.read_bytes(n - len(start))
            bench.own.check_bytes("/own/middle", bench.own.body("/own/middle", n, version), body)
            broke = False
        except wire.Truncated:
            broke = True
    true(broke, "the body should have ended early")
    bench.faults.clear()
    bench.get("/own/middle", n)
    true(bench.get("/own/middle", n)[0], "a hit afterwards")


def test_short_reads_are_continued(lab):
    bench = FaultyBench(lab)
    versions = stored(bench)
    bench.faults.set(read_short=600, send_short=600)
    for (path, n), version in versions.items():
        equal(bench.get(path, n), (True, version), f"{path}: hit, version")
    true(bench.faults.count("read_faults") > 0, "short reads")


@memcheck
def test_what_is_not_in_memory_is_read_by_threads(lab):
    bench = FaultyBench(lab, workers=2)
    versions = stored(bench)
    bench.faults.set(read_absent=1000)
    for (path, n), version in versions.items():
        equal(bench.get(path, n), (True, version), f"{path}: hit, version")
    true(bench.faults.count("read_faults") > 0, "reads that would have waited")


def test_wrong_bits_are_noticed(lab):
    bench = FaultyBench(lab)
    versions = stored(bench)
    bench.faults.set(read_flip=1000)
    for path, n in versions:
        bench.try_get(path, n)
    bench.faults.clear()
    true(gauge(bench.proxy, "corrupt") > 0, "corrupt records counted")
    contains(bench.log(), bench.directory, "the log")
    for path, n in versions:
        bench.get(path, n)
        true(bench.get(path, n)[0], f"{path} is a hit again")


def test_a_slow_disk_stops_nobody_else(lab):
    """Hits in memory and requests to the origin go on while a read waits."""
    bench = FaultyBench(lab, workers=1)
    stored(bench)
    bench.get("/own/quick", 1000)
    bench.faults.set(read_absent=1000, read_delay=1000 * lab.patience)
    waiting = threading.Thread(target=lambda: bench.get("/own/f3000/1", SMALL))
    waiting.start()
    time.sleep(0.1)
    started = time.monotonic()
    for _ in range(10):
        bench.get("/own/quick", 1000)
    bench.proxy.get(bench.own.url("/own/elsewhere", 100, cc="no-store"))
    took = time.monotonic() - started
    true(waiting.is_alive() and took < 0.9 * lab.patience, f"{took:.2f} s for others, while the read waits")
    waiting.join()


WRITE_FAULTS = {"errors": {"write_error": 1000}, "no space": {"write_full": 1000}}


def test_failed_writes_cost_the_objects(lab):
    bench = FaultyBench(lab)
    kept = bench.fill(names("kept", 5), SMALL)
    bench.on_disk(5)
    for what, faults in WRITE_FAULTS.items():
        bench.faults.set(**faults)
        lost = bench.fill(names(what.replace(" ", ""), 20), SMALL)
        until(lambda: bench.faults.count("write_faults") > 0, 5 * lab.patience, "a write that fails")
        for path in lost:
            true(bench.get(path, SMALL)[0], f"{what}: {path} is a hit in memory")
        bench.faults.clear()
    until(lambda: gauge(bench.proxy, "errors") > 0, 5 * lab.patience, "errors counted")
    contains(bench.log(), bench.directory, "the log")
    bench.proxy.kill()
    bench.proxy.start()
    for path, version in kept.items():
        equal(bench.get(path, SMALL), (True, version), f"{path}: hit, version")
    bench.get("/own/errors/3", SMALL)
    true(bench.get("/own/errors/3", SMALL)[0], "a hit afterwards")


def test_a_purge_that_cant_be_written_down_says_so(lab):
    """It counts until a restart; the operator is told, and purges again."""
    bench = FaultyBench(lab)
    bench.fill(names("old", 5), SMALL)
    bench.on_disk(5)
    for purge in ("purge?prefix=" + quote(bench.origin.url("/"), safe=""), "bans?regex=/own/"):
        bench.faults.set(write_error=1000)
        answer = bench.proxy.admin("POST", f"/cache/{purge}")
        equal(answer.status, 500, f"{purge}: status")
        contains(answer.text(), "restart", f"{purge}: the answer")
        bench.faults.clear()
        true(not bench.get("/own/old/0", SMALL)[0], "a miss after the purge")
        equal(bench.proxy.admin("POST", f"/cache/{purge}").status, 200, f"{purge} again: status")
        bench.proxy.kill()
        bench.proxy.start()
        true(not bench.get("/own/old/0", SMALL)[0], "a miss after a restart")


def test_a_removal_that_cant_be_written_down_says_so(lab):
    """Of one URL: neither the record of it nor what it is of can be written. Said again, it is written."""
    bench = FaultyBench(lab)
    removals = [(f"/own/{n}{soft}", n, soft) for n in (SMALL, LARGE, 3_000_000) for soft in ("", "&soft=yes")]
    for path, n, _ in removals:
        bench.get(path, n)
    bench.on_disk(len(removals))
    urls = {path: "/cache/object?url=" + quote(bench.own.url(path, n), safe="") + soft for path, n, soft in removals}
    bench.faults.set(write_error=1000)
    for path, url in urls.items():
        answer = bench.proxy.admin("DELETE", url)
        equal(answer.status, 500, f"{path}: status")
        contains(answer.text(), "restart", f"{path}: the answer")
    bench.faults.clear()
    for path, n, soft in removals:
        again = bench.proxy.admin("DELETE", urls[path]).status
        if soft and again == 500:  # objects are left out for some seconds yet: it says so, and removals are written
            again = bench.proxy.admin("DELETE", urls[path].removesuffix(soft)).status
        equal(again, 200 if soft else 404, f"{path} again: status")
    bench.proxy.kill()
    bench.proxy.start()
    for path, n, _ in removals:
        true(not bench.get(path, n)[0], f"{path}: a miss after a restart")


def test_a_bump_that_cant_be_written_down_says_so(lab):
    bench = FaultyBench(lab, services=[Service("s", "icap://127.0.0.1:1/s", bypass=True)], adapt={})
    for failing, status in ((1000, 500), (0, 200)):
        bench.faults.set(write_error=failing)
        answer = bench.proxy.admin("POST", "/services/bump?name=s")
        equal(answer.status, status, f"status with {failing} of 1000 writes failing")
        equal("restart" in answer.text(), status == 500, "it speaks of a restart")


def test_a_lifetime_that_cant_be_written_down_says_so(lab):
    bench = FaultyBench(lab)
    bench.get("/own/short", SMALL)
    bench.on_disk(1)
    url = "/cache/lifetime?seconds=0&url=" + quote(bench.own.url("/own/short", SMALL), safe="")
    bench.faults.set(write_error=1000)
    answer = bench.proxy.admin("POST", url)
    equal(answer.status, 500, "status")
    contains(answer.text(), "restart", "the answer")
    bench.faults.clear()
    true(not bench.get("/own/short", SMALL)[0], "a miss all the same")


def test_writing_goes_on_after_failures(lab):
    """Also when the clock is set back meanwhile; and what came in its future is asked for again."""
    bench = FaultyBench(lab)
    early = bench.get("/own/early", SMALL)[1]
    bench.faults.set(write_full=1000)
    bench.fill(names("lost", 10), SMALL)
    until(lambda: bench.faults.count("write_faults") > 2, 5 * lab.patience, "writes that fail")
    bench.faults.clear()
    bench.faults.set(wall_back=3600)
    hit, version = bench.get("/own/early", SMALL)
    true(not hit and version > early, f"from the future: hit {hit}, version {version} after {early}")
    numbers = iter(range(100_000))

    def written():
        bench.get(f"/own/next/{next(numbers)}", SMALL)
        return gauge(bench.proxy, "objects") >= 5
    until(written, 30 * lab.patience, "objects to be written again", pause=0.2)


@memcheck
def test_short_writes_are_continued(lab):
    bench = FaultyBench(lab)
    bench.faults.set(write_short=700)
    versions = stored(bench)
    true(bench.faults.count("write_faults") > 0, "short writes")
    for (path, n), version in versions.items():
        equal(bench.get(path, n), (True, version), f"{path}: hit, version")


def test_bits_that_turn_while_written(lab):
    bench = FaultyBench(lab)
    bench.faults.set(write_flip=300)
    versions = {(path, n): bench.get(path, n)[1] for n in (SMALL, LARGE) for path in names(f"w{n}", 40 if n == SMALL else 10)}
    bench.on_disk(len(versions))
    true(bench.faults.count("write_faults") > 0, "wrong bits")
    bench.faults.clear()
    bench.proxy.restart()
    for path, n in versions:
        bench.try_get(path, n)
    for path, n in versions:
        bench.get(path, n)
        true(bench.get(path, n)[0], f"{path} is a hit")


def test_sync_errors_are_borne(lab):
    bench = FaultyBench(lab)
    bench.faults.set(sync_error=1000)
    versions = stored(bench)
    for (path, n), version in versions.items():
        equal(bench.get(path, n), (True, version), f"{path}: hit, version")


def test_a_disk_that_fills_up(lab):
    """Of a volume whose space is not really there, what fits is kept; the rest costs a log line."""
    bench = FaultyBench(lab)
    bench.faults.set(write_room=(2 << 20) + 1)
    first = bench.fill(names("first", 20), 20_000)
    bench.on_disk(20)
    bench.fill(names("later", 200), 20_000)
    until(lambda: bench.faults.count("write_faults") > 0, 5 * lab.patience, "a write that fails")
    contains(bench.log(), "No space left", "the log")
    lines = [line for line in bench.log().splitlines() if "No space left" in line]
    true(len(lines) <= 30, f"{len(lines)} lines about it")
    bench.proxy.kill()
    bench.faults.clear()
    bench.proxy.start()
    for path, version in first.items():
        equal(bench.get(path, 20_000), (True, version), f"{path}: hit, version")


def test_no_room_for_the_volume(lab):
    """It is said at the start, with the path and what to do; what there is room for is kept."""
    directory = lab.path("volume")
    faults = DiskFaults(lab, os.path.join(directory, "retort.cache"))
    faults.set(allocate_error=1000)
    os.makedirs(directory)
    origin = Origin(lab)
    own = Own(origin)
    proxy = Retort(lab, cache={"disk": {directory: {"size": "64MB"}}}, environment=faults.environment())
    contains(proxy.process.log(), f"disk {directory}/retort.cache: its whole size can not be reserved", "the log")
    version = own.check("/own/a", LARGE, proxy.get(own.url("/own/a", LARGE)))
    until(lambda: gauge(proxy, "objects") >= 1, 5 * lab.patience, "an object on disk")
    proxy.restart()
    response = proxy.get(own.url("/own/a", LARGE))
    equal((is_hit(response), own.check("/own/a", LARGE, response)), (True, version), "hit, version")


def mounted(lab, size):
    """A small file system of its own; None where that is not permitted."""
    path = lab.path("small")
    os.makedirs(path)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, check=False)
    return path if done.returncode == 0 else None


class Mount:
    """Unmounts behind the test."""

    def __init__(self, lab, path):
        self.path = path
        lab.opened.insert(0, self)  # stopped last

    def stop(self):
        subprocess.run(["umount", "-l", self.path], capture_output=True, check=False)

    @staticmethod
    def findings():
        return []


@seconds(90)
def test_a_small_file_system(lab):
    """A volume larger than it costs objects and log lines; the other tests see to that by injection,
    where mounting is not permitted."""
    path = mounted(lab, "32m")
    if path is None:
        return
    Mount(lab, path)
    bench = Bench(lab, memory="8MB", directory=path)
    contains(bench.proxy.process.log(), "its whole size can not be reserved", "the log")
    system = os.statvfs(path)
    true(system.f_bavail > system.f_blocks // 2, "the attempt has left room for others")
    versions = bench.fill(names("m", 60), 1_900_000)
    contains(bench.proxy.process.log(), "No space left", "the log")
    true(gauge(bench.proxy, "errors") > 0, "errors counted")
    there = sum(bench.get(path, 1_900_000)[0] for path in versions)
    true(there >= 8, f"{there} of {len(versions)} were kept")
    bench.proxy.kill()
    bench.proxy.start()
    there = sum(bench.get(path, 1_900_000)[0] for path in versions)
    true(there >= 6, f"{there} of {len(versions)} were kept after a kill")


def test_more_than_can_be_written(lab):
    """Objects are left out and counted; nobody waits for the disk."""
    bench = FaultyBench(lab, disk={"write_queue": "1MB"})
    bench.faults.set(write_delay=200 * lab.patience)
    started = time.monotonic()
    bench.fill(names("many", 200), 50_000)
    took = time.monotonic() - started
    true(took < 10 * lab.patience, f"{took:.1f} s for 200 requests")
    true(gauge(bench.proxy, "writes_dropped") > 50, f"{gauge(bench.proxy, 'writes_dropped')} left out")
    bench.faults.clear()


def test_large_ones_wait_for_a_slow_disk(lab):
    """What is too large for memory comes no faster than it can be written; small ones still find room."""
    bench = FaultyBench(lab, memory="4MB", disk={"write_queue": "1MB"})
    bench.faults.set(write_delay=5)
    large = bench.get("/own/large", 12_000_000)[1]
    small = bench.get("/own/small", SMALL)[1]
    bench.on_disk(2)
    equal(bench.get("/own/large", 12_000_000), (True, large), "the large one: hit, version")
    equal(bench.get("/own/small", SMALL), (True, small), "the small one: hit, version")
    equal(gauge(bench.proxy, "writes_dropped"), 0, "left out")


def test_large_ones_leave_a_stuck_disk(lab):
    """It costs a client write_wait, once; the object is left out and counted."""
    bench = FaultyBench(lab, memory="4MB", disk={"write_queue": "1MB", "write_wait": "300ms"})
    bench.faults.set(write_delay=3000 * lab.patience)
    started = time.monotonic()
    bench.get("/own/large", 12_000_000)
    took = time.monotonic() - started
    between(took, 0.3, 2 * lab.patience, "seconds")
    bench.faults.clear()
    until(lambda: gauge(bench.proxy, "writes_dropped") == 1, 10 * lab.patience, "it counts as left out")
    true(not bench.get("/own/large", 12_000_000)[0], "the second is a miss")


def test_a_stuck_disk_is_not_the_origins_fault(lab):
    """What an origin has sent, but nobody has read because another body fills the queue: it has not stopped sending."""
    n, gate = 9_000_000, threading.Event()

    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: max-age=60\r\n\r\n" % n + bytes(1000))
        gate.wait(20)
        connection.send(bytes(n - 1000))
    origin = RawOrigin(lab, answer)
    bench = FaultyBench(lab, memory="4MB", disk={"write_queue": "1MB", "write_wait": "60s"},
                        origin={"read_timeout": f"{500 * lab.patience:.0f}ms"})
    bench.faults.set(write_delay=2500 * lab.patience)
    with bench.proxy.wire(timeout=60) as slow, bench.proxy.wire(timeout=60) as other:
        slow.send(wire.request("GET", origin.url("/slow")))
        slow.head()
        slow.read_bytes(1000)
        other.send(wire.request("GET", bench.own.url("/own/other", n)))
        other.head()
        other.read_bytes(200_000)
        gate.set()
        time.sleep(lab.patience)
        bench.faults.clear()
        slow.read_bytes(n - 1000)
        other.read_bytes(n - 200_000)


# Damage to the file.

def places(bench, path, n, version):
    """Where in the file what stands that this object needs."""
    file = bench.volume
    line = f"{path} - {version}\n".encode()
    body = file.find(line)
    url = file.find(bench.own.url(path, n).encode())
    return {"the URL in the front": url + 5, "the head in the front": file.find(f'ETag: "v-{version}"'.encode()) + 2,
            "the body's first byte": body, "the body's middle": body + n // 2, "the body's last byte": body + n - 1,
            "the front's beginning": (url // ALIGN) * ALIGN + 3}


DAMAGED = 7  # the number of the object that is damaged


def damage_one(bench, versions, place, running):
    """Damages one object at this place, and looks at it and at all others."""
    path = f"/own/d/{DAMAGED}"
    if not running:
        bench.proxy.stop()
    bench.volume.flip(places(bench, path, LARGE, versions[path])[place])
    bench.volume.forget_pages()
    if not running:
        bench.proxy.start()
    for other, version in versions.items():
        if other != path:
            equal(bench.get(other, LARGE), (True, version), f"{place}: {other}: hit, version")
    bench.try_get(path, LARGE)
    bench.get(path, LARGE)
    hit, version = bench.get(path, LARGE)
    true(hit, f"{place}: it is stored again")
    versions[path] = version


def damage_everywhere(lab, running):
    bench = FaultyBench(lab, disk={"size": "64MB"})
    versions = bench.fill(names("d", 12), LARGE)
    time.sleep(0.5)
    bench.proxy.restart()
    for place in places(bench, f"/own/d/{DAMAGED}", LARGE, versions[f"/own/d/{DAMAGED}"]):
        said = len(bench.log())
        corrupt = gauge(bench.proxy, "corrupt") if running else 0
        damage_one(bench, versions, place, running)
        true(gauge(bench.proxy, "corrupt") > corrupt or not running, f"{place}: counted")
        contains(bench.log()[said:], bench.directory, f"{place}: the log")
        time.sleep(0.3)
        bench.proxy.restart()


@seconds(90)
def test_damage_while_it_runs(lab):
    damage_everywhere(lab, True)


@seconds(90)
def test_damage_while_it_is_stopped(lab):
    damage_everywhere(lab, False)


def sealed_segments(file):
    return [at for at, _ in file.segments() if file.contents_at(at) is not None]


def full_of(bench, count=400, n=20_000):
    """Several sealed segments."""
    versions = bench.fill(names("s", count), n)
    bench.on_disk(count)
    return versions


def count_hits(bench, versions, n=20_000):
    """How many are there; all are right."""
    return sum(bench.get(path, n)[0] for path in versions)


SEGMENT_PLACES = {
    "segment header": lambda file, at: at + 9,
    "sequence of the segment": lambda file, at: at + 24,
    "seal": lambda file, at: at + SEAL_AT + 9,
    "where the contents stand": lambda file, at: at + SEAL_AT + 33,
    "table of contents": lambda file, at: file.contents_at(at) + 10,
    "first record": lambda file, at: at + RECORDS_AT + 9,
}


@seconds(120)
def test_damage_to_segments(lab):
    """A table of contents can be made anew from the records; the rest costs at most its segment."""
    bench = Bench(lab, memory="1MB")
    versions = full_of(bench)
    for what, place in SEGMENT_PLACES.items():
        bench.proxy.stop()
        victims = sealed_segments(bench.volume)
        true(len(victims) >= 2, f"sealed segments: {victims}")
        per_segment = len(versions) // len(victims) + 20
        bench.volume.flip(place(bench.volume, victims[0]))
        bench.proxy.start()
        hits = count_hits(bench, versions)
        true(hits >= len(versions) - per_segment, f"{what}: {hits} of {len(versions)} are left")
        contains(bench.proxy.process.log(), bench.directory, f"{what}: the log")
        time.sleep(0.3)


def test_damage_to_the_header(lab):
    """A volume that can't be read begins anew, says so, and works."""
    bench = Bench(lab)
    for at in (0, 9, 17, 24, 33):
        bench.fill(names("h", 5), SMALL)
        bench.on_disk(5)
        bench.proxy.stop()
        said = len(bench.proxy.process.log())
        bench.volume.flip(at)
        bench.proxy.start()
        contains(bench.proxy.process.log()[said:], bench.directory, "the log")
        bench.fill(names("h", 5), SMALL)
        true(bench.get("/own/h/1", SMALL)[0], "a hit")


def test_a_file_that_was_cut_off(lab):
    bench = Bench(lab)
    for size in (30 << 20, 5000, 100, 0):
        bench.fill(names("c", 50), 20_000)
        bench.on_disk(50)
        bench.proxy.stop()
        os.truncate(bench.volume.path, size)
        bench.proxy.start()
        count_hits(bench, names("c", 50))
        true(bench.get("/own/c/1", 20_000)[0], "a hit")


@seconds(120)
def test_random_damage(lab):
    """Bytes anywhere in what was written; whatever is served is right."""
    bench = Bench(lab, memory="1MB")
    versions = full_of(bench, 300)
    chance = random.Random(5)
    for turn in range(5):
        running = turn % 2 == 0
        if not running:
            bench.proxy.stop()
        used = max(at for at, _ in bench.volume.segments()) + bench.volume.segment_size()
        for _ in range(40):
            at = chance.randrange(HEADER, used)
            bench.volume.write(at, chance.randbytes(chance.choice((1, 8, 512, 5000))))
        bench.volume.forget_pages()
        if not running:
            bench.proxy.start()
        for path in versions:
            try:
                bench.get(path, 20_000)
            except wire.Truncated:
                pass
    true(count_hits(bench, versions) > 250, "most are hits again")


@seconds(120)
@heavy("it needs speed")
def test_everything_fails_now_and_then(lab):
    """Under load by several clients, with every fault there is and restarts between."""
    bench = FaultyBench(lab, memory="2MB", disk={"size": "16MB"}, workers=2)
    problems, over = [], []

    def load(number):
        chance = random.Random(number)
        while not over:
            which = int(200 * chance.random() ** 2)
            n = 400_000 if which % 20 == 0 else 100 + which * 97
            try:
                bench.try_get(f"/own/x/{which}", n)
            except OSError:
                time.sleep(0.02)  # between two starts
            except BaseException as error:  # pylint: disable=broad-except
                problems.append(f"{type(error).__name__}: {error}")
    threads = [threading.Thread(target=load, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(8):
        bench.faults.set(read_error=50, read_short=200, read_flip=20, read_absent=300, write_error=30, write_full=30,
                         write_short=200, write_flip=20, sync_error=100, send_error=20, send_short=300)
        time.sleep(1.5)
        bench.faults.clear()
        if turn % 2:
            bench.proxy.kill()
            bench.proxy.start()
    over.append(True)
    for thread in threads:
        thread.join(20)
    true(not problems, "\n".join(problems[:5]))
    true(bench.faults.count("read_faults") > 50 and bench.faults.count("write_faults") > 20, "faults there were")
