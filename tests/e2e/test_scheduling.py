"""Workers ask the kernel for short time slices, so that they run soon where somebody else computes on their core. Processes that
are nice ask for long ones, so that their turns seldom come while a worker has something to do. Each thread has a name."""

import ctypes
import glob
import os
import re
import struct

from harness.checks import Skip, equal, true, until
from harness.events import Events
from harness.helperd import Helperd
from harness.origin import Origin
from harness.otlp import Collector
from harness.process import children_of
from harness.retort import Retort
from harness.suite import heavy
from harness.units import REFUSE, calls_of, confined
from test_inside import odd
from test_takeover import upgrade

SYS_SCHED_GETATTR = 315  # x86_64
ATTR = struct.Struct("=IIQiIQQQ")  # struct sched_attr of sched_setattr(2), its first 48 bytes
SLICE, LONG_SLICE = 500_000, 100_000_000  # nanoseconds


def slice_of(thread):
    """In nanoseconds."""
    room = ctypes.create_string_buffer(ATTR.size)
    if ctypes.CDLL(None, use_errno=True).syscall(SYS_SCHED_GETATTR, thread, room, ATTR.size, 0) != 0:
        raise Skip(f"sched_getattr: {os.strerror(ctypes.get_errno())}")
    return ATTR.unpack(room.raw)[5]


def usual_slice():
    usual = slice_of(0)
    if os.uname().machine != "x86_64" or usual == 0:
        raise Skip("this kernel knows no time slices of threads (Linux 6.12 does)")
    return usual


def slices(proxy):
    return [slice_of(int(thread)) for thread in os.listdir(f"/proc/{proxy.process.pid}/task")]


def test_workers_have_short_slices(lab):
    usual = usual_slice()
    proxy = Retort(lab, workers=2, reverse={"/": "http://127.0.0.1:1/"})
    until(lambda: slices(proxy).count(SLICE) == 2, 10 * lab.patience, "both workers have short slices")
    true(usual in slices(proxy), f"the main thread has the usual slice: {sorted(slices(proxy))}")


@heavy("sanitizers and valgrind need other system calls")
def test_the_unit_permits_short_slices(lab):
    """The unit for systemd filters system calls. Where it left this one out, workers would have the usual slices without a word."""
    calls = calls_of(lab, "retort")
    true("sched_setattr" in calls, "the unit permits it")
    usual_slice()
    origin = Origin(lab)
    for permitted, expected in ((calls, 1), (calls - {"sched_setattr"}, 0)):
        proxy = Retort(lab, workers=1, before_start=confined(permitted, REFUSE))
        equal(proxy.get(origin.url("/text", say="hello")).text(), "hello", "the worker has begun, and serves")
        equal(slices(proxy).count(SLICE), expected, "threads with short slices")


def long_slice():
    """Of who is nice. Kernels before 6.17 let a long slice end when it is over, so nobody takes one there."""
    usual = usual_slice()
    version = [int(number) for number in re.match(r"(\d+)\.(\d+)", os.uname().release).groups()]
    return LONG_SLICE if version >= [6, 17] else usual


POOLS = """
socket = "{{socket}}"
pool plain {{ command = {command}  nice = 0 }}
pool nicer {{ command = {command}  nice = 5 }}
pool batch {{ command = {command}  nice = 0  scheduler = "batch" }}
pool idle  {{ command = {command}  nice = 0  scheduler = "idle" }}
"""


@heavy("valgrind's own process has the slices")
def test_slices_of_helpers(lab):
    """Long for who is nice, from the start and by renice; the scheduler, the level and the policy stay what the pool says."""
    usual, long = usual_slice(), long_slice()
    program = lab.built("icap-services/text-helper")
    helperd = Helperd(lab, POOLS.format(command=f'{{ "{program}" }}'))
    pids = helperd.wait_helpers("text-helper", 4)

    def seen():
        return sorted((os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid), slice_of(pid)) for pid in pids)

    expected = sorted([(os.SCHED_OTHER, 0, usual), (os.SCHED_OTHER, 5, long), (os.SCHED_BATCH, 0, long), (os.SCHED_IDLE, 0, long)])
    until(lambda: seen() == expected, 10 * lab.patience, f"policies, levels and slices of helpers: {expected}")
    proxy = Retort(lab)
    for pool, nice in (("plain", 19), ("nicer", 0)):
        proxy.ctl("-H", helperd.socket, "helpers", "renice", pool, str(nice))
    expected = sorted([(os.SCHED_OTHER, 19, long), (os.SCHED_OTHER, 0, usual), (os.SCHED_BATCH, 0, long), (os.SCHED_IDLE, 0, long)])
    until(lambda: seen() == expected, 10 * lab.patience, f"after they were reniced: {expected}")


@heavy("valgrind's own process has the slices")
def test_slices_of_services_in_processes(lab):
    usual, long = usual_slice(), long_slice()
    for nice, expected in ((0, usual), (10, long)):
        proxy = Retort(lab, services=[odd(lab, "shout", runs="process", nice=nice)])
        process = until(lambda proxy=proxy: children_of(proxy.process.pid), 10 * lab.patience, "the service's process")[0]
        until(lambda process=process, nice=nice: os.getpriority(os.PRIO_PROCESS, process) == nice, 10 * lab.patience, f"nice {nice}")
        until(lambda process=process, expected=expected: slice_of(process) == expected, 10 * lab.patience, f"slices at nice {nice}")


# Names.

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def named_threads():
    """The names in the table of OPERATIONS.md."""
    with open(f"{SOURCE}/docs/OPERATIONS.md", encoding="utf-8") as file:
        table = file.read().split("\n### Threads\n")[1].split("\n### ")[0]
    return re.findall(r"`([^`]+)`", "".join(line.split("|")[1] for line in table.split("\n") if line.startswith("| `")))


def names_of_threads(pid):
    """Of all but the main one."""
    names = set()
    for path in glob.glob(f"/proc/{pid}/task/*/comm"):
        try:
            with open(path, encoding="ascii") as file:
                names |= {file.read().strip()} if f"/task/{pid}/" not in path else set()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return names


def test_each_thread_has_a_name_of_the_table(lab):
    table = named_threads()
    pattern = re.compile("|".join(re.escape(name).replace("NAME", ".{1,9}").replace("N", r"\d+") for name in table))
    origin, collector = Origin(lab), Collector(lab)
    volume = {lab.path("volume"): {"size": "64MB"}}
    proxy = Retort(lab, workers=2, cache={"memory": "16MB", "disk": volume}, extra=collector.section(),
                   services=[odd(lab, "shout", runs="thread"), odd(lab, "count", name="second", runs="process")])
    with Events(proxy):
        equal(proxy.get(origin.url("/")).status, 200, "a request")
        expected = {"rt-worker-0", "rt-worker-1", "rt-sampler", "rt-reload", "rt-log", "rt-disk-write", "rt-disk-read", "rt-events",
                    "rt-spans", "rt-run-odd", "rt-watch-second", "rt-handover", "MHD-worker"}
        until(lambda: expected <= names_of_threads(proxy.pid), 10 * lab.patience, "the threads")
        equal(proxy.reload().status, 200, "a reload")
        equal([name for name in names_of_threads(proxy.pid) if not pattern.fullmatch(name)], [], "names that the table does not have")
        until(lambda: [names_of_threads(child) for child in children_of(proxy.pid)] == [{"rt-watch"}], 10 * lab.patience, "the process of a service")
    successor = upgrade(lab, proxy)
    names = until(lambda: names_of_threads(successor.process.pid), 10 * lab.patience, "the threads of the next process")
    true("rt-worker-1" in names, "workers of the next process")
    equal([name for name in names if not pattern.fullmatch(name)], [], "names that the table does not have")


def test_the_table_has_each_thread_of_the_source(lab):
    named = set()
    for folder, _, files in os.walk(f"{SOURCE}/proxy"):
        for name in files:
            if name.endswith(".c") and "/proxy/tools" not in folder:
                with open(f"{folder}/{name}", encoding="utf-8") as file:
                    named |= {word.replace("%u", "N").replace("%s", "NAME") for word in re.findall(r'"(rt-[-a-z]+(?:%[us])?)"', file.read())}
    equal(sorted(named), sorted(name for name in named_threads() if name.startswith("rt-")), "names in the source and in OPERATIONS.md")
    equal([name for name in named if len(name.replace("NAME", "x")) > 15], [], "names that would be cut")
