"""What was answered as done stays done: the process is killed right behind the answer, the disk fails, bits turn."""

import os
import threading
import time
from urllib.parse import quote

from harness import wire
from harness.checks import contains, equal, true, until
from harness.disk import gauge
from harness.disk_bench import FaultyBench, names
from harness.suite import memcheck

SMALL = 1500


def object_page(bench, path, **arguments):
    more = "".join(f"&{name}={value}" for name, value in arguments.items())
    return "/cache/object?url=" + quote(bench.own.url(path, SMALL), safe="") + more


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill(bench):
    bench.proxy.kill()
    bench.proxy.start()


def message(body):
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{body}".encode()


def test_what_is_answered_survives_a_kill(lab):
    """Twenty times, each kind of call in turn."""
    bench = FaultyBench(lab)
    for number in range(5):
        kept = [f"/own/{what}{number}" for what in ("injected", "deleted", "purged", "posted")]
        before = gauge(bench.proxy, "objects")
        versions = bench.fill(kept, SMALL)
        bench.on_disk(before + len(kept))
        injected, deleted, purged, posted = kept
        calls = [("PUT", object_page(bench, injected, lifetime=600), message(f"by hand {number}")),
                 ("DELETE", object_page(bench, deleted), None),
                 ("POST", "/cache/purge?prefix=" + quote(bench.origin.url(purged), safe=""), None),
                 ("POST", "/cache/lifetime?seconds=0&url=" + quote(bench.own.url(posted, SMALL), safe=""), None)]
        for method, page, body in calls:
            syncs = bench.faults.count("syncs")
            answer = bench.proxy.admin(method, page, body)
            true(bench.faults.count("syncs") > syncs, f"{method} {page}: on the device before the answer: {answer.status} {answer.text()}")
            kill(bench)
            equal(answer.status, 200, f"{method} {page}: {answer.text()}")
        equal(bench.proxy.get(bench.own.url(injected, SMALL)).text(), f"by hand {number}", "injected")
        for path in (deleted, purged, posted):
            hit, version = bench.get(path, SMALL)
            true(not hit and version > versions[path], f"{path}: hit {hit}, version {version} after {versions[path]}")


def test_inject_says_when_the_disk_has_not_got_it(lab):
    bench = FaultyBench(lab)
    version = bench.get("/own/x", SMALL)[1]
    bench.on_disk(1)
    for fault in ({"sync_error": 1000}, {"write_error": 1000}):
        bench.faults.set(**fault)
        answer = bench.proxy.admin("PUT", object_page(bench, "/own/x", lifetime=600), message("new"))
        equal(answer.status, 500, f"{fault}: status")
        contains(answer.text(), "restart", f"{fault}: the answer")
        equal(bench.proxy.get(bench.own.url("/own/x", SMALL)).text(), "new", f"{fault}: it counts")
        bench.faults.clear()
    until(lambda: bench.proxy.admin("PUT", object_page(bench, "/own/x", lifetime=600), message("newer")).status == 200,
          30 * lab.patience, f"an injection that is done; before it stood version {version}", pause=0.5)
    kill(bench)
    equal(bench.proxy.get(bench.own.url("/own/x", SMALL)).text(), "newer", "after a kill")


def test_inject_of_what_the_disk_does_not_take_says_so(lab):
    bench = FaultyBench(lab, disk={"max_object": "1KB", "admission": "second"})
    answer = bench.proxy.admin("PUT", object_page(bench, "/own/large", lifetime=600), message("x" * 2000))
    equal(answer.status, 500, "status")
    equal(bench.proxy.admin("PUT", object_page(bench, "/own/small", lifetime=600), message("small")).status, 200, "status")
    kill(bench)
    equal(bench.proxy.get(bench.own.url("/own/small", SMALL)).text(), "small", "what was injected once")


def test_what_can_not_be_read_is_removed_all_the_same(lab):
    """DELETE finds nothing, since the disk could not be read; a restart must not find it either."""
    bench = FaultyBench(lab)
    versions = bench.fill(names("gone", 3), SMALL)
    bench.on_disk(3)
    bench.proxy.restart()
    bench.faults.set(read_error=1000)
    for path in versions:
        equal(bench.proxy.admin("DELETE", object_page(bench, path)).status, 404, f"{path}: status")
    bench.faults.clear()
    kill(bench)
    for path, version in versions.items():
        hit, now = bench.get(path, SMALL)
        true(not hit and now > version, f"{path}: hit {hit}, version {now} after {version}")


def test_a_purge_that_was_not_written_is_no_reason_to_say_404(lab):
    bench = FaultyBench(lab)
    version = bench.get("/own/once", SMALL)[1]
    bench.on_disk(1)
    bench.faults.set(write_error=1000)
    equal(bench.proxy.admin("POST", "/cache/purge?all=yes").status, 500, "status of the purge")
    bench.faults.clear()
    bench.proxy.admin("GET", object_page(bench, "/own/once"))  # it is read, and given up
    equal(bench.proxy.admin("DELETE", object_page(bench, "/own/once")).status, 404, "status")
    kill(bench)
    hit, now = bench.get("/own/once", SMALL)
    true(not hit and now > version, f"hit {hit}, version {now} after {version}")


@memcheck
def test_unsafe_methods_reach_the_device_soon(lab):
    """Within 0.2 s, which loaded machines get more of."""
    bench = FaultyBench(lab)
    path = "/own/form"
    bench.get(path, SMALL)
    bench.on_disk(1)
    syncs = bench.faults.count("syncs")
    bench.proxy.fetch("POST", bench.own.url(path, SMALL), body=b"x")
    until(lambda: bench.faults.count("syncs") > syncs, 2 * lab.patience, "fdatasync", pause=0.01)
    kill(bench)
    true(not bench.get(path, SMALL)[0], "a miss after a kill")


def test_without_sync_nothing_waits_for_the_device(lab):
    bench = FaultyBench(lab, disk={"sync": "false"})
    bench.get("/own/a", SMALL)
    bench.on_disk(1)
    for method, page in (("DELETE", object_page(bench, "/own/a")), ("POST", "/cache/purge?all=yes")):
        equal(bench.proxy.admin(method, page).status, 200, f"{method} {page}")
    equal(bench.faults.count("syncs"), 0, "syncs")
    equal(os.path.exists(bench.directory), True, "volume")


def test_a_turned_bit_in_the_list_of_purges_undoes_nothing(lab):
    """They stand there twice; where both are damaged, everything counts as purged, and the log says so."""
    bench = FaultyBench(lab)
    versions = bench.fill(["/own/purged", "/own/kept"], SMALL)
    bench.on_disk(2)
    for prefix in ("/none", "/own/purged"):
        page = "/cache/purge?prefix=" + quote(bench.origin.url(prefix), safe="")
        equal(bench.proxy.admin("POST", page).status, 200, "status")
    bench.proxy.stop()
    for place in bench.volume.purges()[::2]:
        bench.volume.flip(place + 100)
    bench.proxy.start()
    equal(bench.get("/own/kept", SMALL), (True, versions["/own/kept"]), "what was not purged: hit, version")
    hit, version = bench.get("/own/purged", SMALL)
    true(not hit and version > versions["/own/purged"], f"what was purged: hit {hit}, version {version}")
    contains(bench.log(), "the other copy is good", "the log")
    bench.proxy.stop()
    for place in bench.volume.purges():
        bench.volume.flip(place + 101)
    bench.proxy.start()
    for path in versions:
        true(not bench.get(path, SMALL)[0], f"{path}: a miss")
    contains(bench.log(), "count as purged", "the log")
    true(gauge(bench.proxy, "corrupt") > 0, "the damage is counted")


def test_purges_at_a_rate_survive_a_kill(lab):
    """Eight clients purge 3,200 different surrogate keys; the process is killed while they go on. What was answered counts
    after that, and nothing else is lost."""
    bench = FaultyBench(lab)
    versions = bench.fill(names("purged", 8) + names("kept", 8), SMALL)
    paths = list(versions)
    bench.on_disk(len(paths))
    done, stopped = [0] * 8, threading.Event()

    def purge(client):
        while not stopped.is_set():
            mine = done[client] == 200  # among others that concern nothing
            what = "prefix=" + quote(bench.own.url(paths[client], SMALL), safe="") if mine else f"tag=item-{client}-{done[client]}"
            try:
                equal(bench.proxy.admin("POST", "/cache/purge?" + what).status, 200, what)
            except (OSError, wire.Truncated):
                return
            done[client] += 1

    begun, used = time.monotonic(), cpu_seconds(bench.proxy.pid)
    threads = [threading.Thread(target=purge, args=(client,)) for client in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: sum(done) >= 3200 and min(done) > 201, 30 * lab.patience, "3,200 purges")
    took, used = time.monotonic() - begun, cpu_seconds(bench.proxy.pid) - used
    print(f"{sum(done) / took:.0f} purges a second, {used / sum(done) * 1e6:.0f} us of processor time each")
    kill(bench)
    stopped.set()
    for thread in threads:
        thread.join()
    for number, path in enumerate(paths):
        hit, version = bench.get(path, SMALL)
        if number < 8:
            true(not hit and version > versions[path], f"{path} was purged: hit {hit}, version {version}")
        else:
            equal((hit, version), (True, versions[path]), f"{path} was not purged: hit, version")
