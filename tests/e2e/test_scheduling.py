"""Workers ask the kernel for short time slices, so that they run soon where somebody else computes on their core."""

import ctypes
import os
import struct

from harness.checks import Skip, equal, true, until
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import heavy
from harness.units import REFUSE, calls_of, confined

SYS_SCHED_GETATTR = 315  # x86_64
ATTR = struct.Struct("=IIQiIQQQ")  # struct sched_attr of sched_setattr(2), its first 48 bytes
SLICE = 100_000  # nanoseconds


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
