"""Little memory: requests go on without being stored, or are refused; the process lives."""

import re
import resource
import threading

from harness.checks import equal, true, until
from harness.memory_faults import MemoryFaults
from harness.origin import Origin
from harness.process import status_field
from harness.retort import Retort
from harness.suite import heavy
from harness.wire import request

LENGTHS = (10, 5000, 40000, 300000, 2000000)


def load(proxy, origin, seconds_of, wrong, whole):
    """Requests from four clients. What is complete must be right; what is not must not look complete."""
    def work(number):
        for turn in range(seconds_of):
            length = LENGTHS[(number + turn) % len(LENGTHS)]
            cacheable = "max-age=60" if turn % 3 else "no-store"
            try:
                answer = proxy.get(origin.url(f"/bytes/{number % 2}.{turn % 7}", n=length, cc=cacheable))
            except (OSError, AssertionError):
                continue  # closed, or broken off so that one sees it
            if answer.status == 200 and answer.body != origin.body(length):
                wrong.append(f"{length}: {len(answer.body)} bytes")
            elif answer.status == 200:
                whole[0] += 1
            elif answer.status not in (502, 503, 504):
                wrong.append(f"status {answer.status}")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def serves(proxy, origin):
    def good():
        try:
            return proxy.get(origin.url("/text", say="on")).text() == "on"
        except (OSError, AssertionError):
            return False
    return good


def slow_readers(proxy, origin, count):
    """Clients that ask for much and read nothing."""
    wires = []
    for number in range(count):
        wire = proxy.wire(receive_buffer=4096)
        try:
            wire.send(request("GET", origin.url(f"/bytes/slow{number}", n=50000000, cc="no-store")))
        except OSError:
            pass
        wires.append(wire)
    return wires


def test_slow_readers_hold_no_more_than_they_may(lab):
    """Each would hold a third of a megabyte. Those who come when all is taken are refused, the slowest are cut, and
    the others go on."""
    most = 8 << 20
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, client={"memory": "8MB"})
    true(proxy.get(origin.url("/text", say="on")).status == 200, "one")
    before = status_field(proxy.pid, "VmRSS")
    wires = slow_readers(proxy, origin, 100)
    while proxy.counter("client_memory_refused") == 0 and len(wires) < 600:
        wires += slow_readers(proxy, origin, 20)
    true(proxy.counter("client_memory_refused") > 0, "some are refused")
    held = proxy.counter("client_memory")  # what has begun takes some more: each a buffer of its origin and one that waits
    true(held <= most * 2, f"held: {held}")
    grown = status_field(proxy.pid, "VmRSS") - before
    true(lab.patience > 1 or grown < 4 * most // 1024, f"the process has grown by {grown} KB")

    def served():
        try:
            return proxy.get(origin.url("/text", say="on")).status == 200
        except (OSError, AssertionError):
            return False
    until(served, 20 * lab.patience, "a client that reads is served, while slow ones are cut")
    true(proxy.counter("client_memory_shed") > 0, "slow readers cut")
    for wire in wires:
        wire.close()
    until(lambda: proxy.counter("client_connections_open") == 0, 20 * lab.patience, "all to be gone")
    until(lambda: proxy.counter("client_memory") < 200000, 5 * lab.patience, "nothing held any more")


@heavy("sanitizers keep what is freed")
def test_what_connections_held_goes_back_to_the_system(lab):
    """malloc would keep it, though the connections have gone. What a reader holds is what OPERATIONS.md says."""
    count = 150
    origin = Origin(lab)
    proxy = Retort(lab, workers=2)
    true(proxy.get(origin.url("/text", say="on")).status == 200, "one")
    before = status_field(proxy.pid, "VmRSS")
    wires = slow_readers(proxy, origin, count)
    until(lambda: proxy.counter("client_memory") > count * 330_000, 30 * lab.patience, "readers that hold as much as they may")
    grown = status_field(proxy.pid, "VmRSS") - before
    true(grown < count * 400, f"a reader holds {grown // count} KB")
    for wire in wires:
        wire.close()
    until(lambda: proxy.counter("client_connections_open") == 0, 20 * lab.patience, "all to be gone")
    until(lambda: status_field(proxy.pid, "VmRSS") < before + grown // 3, 20 * lab.patience, f"most of {grown} KB to be given back")
    metrics = proxy.admin("GET", "/metrics").text()
    true(int(re.search(r"^retort_memory_returns_total (\d+)", metrics, re.M).group(1)) > 0, "it is counted")
    resident = int(re.search(r"^retort_memory_resident_bytes (\d+)", metrics, re.M).group(1)) // 1024
    true(resident < before + grown // 3 + 4096, f"the metric says {resident} KB")


@heavy("memory is asked of sanitizers")
def test_refused_memory(lab):
    """Of each call some in a thousand, of small ones and of large ones only, with a disk and without."""
    faults, origin = MemoryFaults(lab), Origin(lab)
    proxy = Retort(lab, environment=faults.environment(), workers=2,
                   cache={"memory": "16MB", "max_object": "4MB", "disk": {lab.directory: {"size": "64MB"}}})
    wrong, whole = [], [0]
    for seed, (chance, least, maps) in enumerate(((20, 0, 0), (300, 0, 0), (700, 16500, 1000), (500, 4096, 1000))):
        faults.set(seed=seed, chance=chance, least=least, maps=maps)
        load(proxy, origin, 12, wrong, whole)
        true(proxy.process.running(), f"it runs, with {chance} of 1000 from {least} bytes on: {proxy.process.tail()}")
        for path in ("/metrics", "/status", "/settings"):
            try:
                proxy.admin("GET", path)
            except (OSError, AssertionError):
                pass  # the library that speaks HTTP there closes
    faults.clear()
    equal(wrong[:3], [], "what was wrong")
    true(faults.count("faults") > 100 and whole[0] > 0, f"{faults.count('faults')} faults, {whole[0]} whole responses")
    until(serves(proxy, origin), 10 * lab.patience, "it serves again")


@heavy("sanitizers take more address space than that")
def test_little_address_space(lab):
    """`ulimit -v`: the cache may hold more than the process can have."""
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, cache={"memory": "2GB", "max_object": "8MB"})
    until(lambda: "serving with" in proxy.process.log(), 10 * lab.patience, "all threads to be there, whose stacks and heaps count")
    proxy.admin("GET", "/status")
    most = (status_field(proxy.pid, "VmSize") + 100 * 1024) * 1024
    resource.prlimit(proxy.pid, resource.RLIMIT_AS, (most, most))
    broken = []
    for number in range(120):
        try:
            answer = proxy.get(origin.url(f"/bytes/{number}", n=1500000, cc="max-age=600"))
            true(answer.body == origin.body(1500000) or answer.status in (502, 503), f"response {number}")
        except (OSError, AssertionError) as error:
            broken.append(error)
    equal(broken[:3], [], "requests that were not answered whole")
    true(proxy.process.running(), "it runs")
    until(serves(proxy, origin), 10 * lab.patience, "it serves again")
    true("memory is exhausted" in proxy.process.log(), "the log says so")
