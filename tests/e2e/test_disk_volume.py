"""The volume: sets larger than memory, many readers at once, the ring, the file, how many objects."""

import base64
import os
import subprocess
import time

from harness import ports, wire
from harness.checks import between, contains, equal, same_bytes, true, until
from harness.disk import gauge, volume_of
from harness.disk_bench import Bench, in_threads, is_hit, names, refused
from harness.origin import Origin
from harness.own import Own
from harness.retort import Retort, run_check
from harness.suite import heavy, seconds

# Larger than memory.

def test_the_secret_of_a_volume(lab):
    """Found again with it after a restart; not written with it, it counts for nothing, and the log says so."""
    bench = Bench(lab)
    bench.fill(names("w", 3), 2000)
    bench.on_disk(3)
    bench.proxy.restart()
    equal(gauge(bench.proxy, "objects"), 3, "objects after a restart")
    equal(from_disk(bench, "/own/w/1", 2000), True, "whether the page is found on disk")
    volume = volume_of(bench.directory)
    secret = volume.read(48, 192)
    true(len(set(secret)) > 64, "the secret is random")
    shown = b"".join(bench.proxy.admin("GET", path).body for path in ("/status", "/settings", "/metrics", "/cache/objects"))
    for form in (secret[:16], secret[:8].hex().encode(), base64.b64encode(secret[:12])):
        true(form not in shown, "the secret is on no page")
    volume.write(16, (2).to_bytes(4, "little"))  # as one that was written before there were secrets
    os.chmod(volume.path, 0o644)
    bench.proxy.restart()
    equal(gauge(bench.proxy, "objects"), 0, "objects of another version")
    contains(bench.proxy.process.log(), "it was written by another version of retort: it starts empty", "the log")
    contains(bench.proxy.process.log(), "run chmod 600", "the log")


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


def test_bad_paths_are_refused(lab):
    missing = lab.path("missing/deeper")
    said = refused(lab, f'cache {{ disk "{missing}" {{ size = 16MB }} }}')
    contains(said, missing, "message")
    contains(said, "No such file or directory", "message")
    inside = lab.write("file", "x") + "/volume"
    contains(refused(lab, f'cache {{ disk "{inside}" {{ size = 16MB }} }}'), inside, "message")
    contains(refused(lab, 'cache { disk "/dev/null" { size = 16MB } }'), "/dev/null", "message")


def test_a_misspelt_directory_is_refused(lab):
    """No file as large as the disk is made in the directory above: neither by a start, nor is -t content."""
    misspelt = lab.path("cahce")
    text = f'cache {{ disk "{misspelt}" {{ size = 16MB }} }}'
    said = refused(lab, text)
    contains(said, f"disk {misspelt}: cannot open it: No such file or directory; correct the path, or make the directory", "message")
    status, checked = run_check(lab, lab.write("misspelt.conf", f'listen "127.0.0.1:{ports.take()}" {{ mode = forward }}\n{text}\n'))
    equal(status, 1, "status of -t")
    contains(checked, f"disk {misspelt}: cannot open it", "-t")
    equal(os.path.exists(misspelt), False, "a file was made")
    os.mkdir(misspelt)
    equal(run_check(lab, lab.write("spelt.conf", f'listen "127.0.0.1:{ports.take()}" {{ mode = forward }}\n{text}\n'))[0], 0, "with the directory")


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
    true(took < (0.5 + 4.5 * MANY / 1_000_000) * (3 if lab.tsan else lab.patience), f"{took:.2f} s")
    for number in range(0, MANY, MANY // 50):
        response = bench.proxy.get(f"http://fill.invalid/{number}")
        true(is_hit(response), f"{number} is a hit")
        equal(response.body, f"{number}\n".encode().ljust(300, b"."), f"body of {number}")
