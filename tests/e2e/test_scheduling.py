"""Workers ask the kernel for short time slices, so that they run soon where somebody else computes on their core."""

import ctypes
import os
import struct

from harness.checks import Skip, true, until
from harness.retort import Retort

SYS_SCHED_GETATTR = 315  # x86_64
ATTR = struct.Struct("=IIQiIQQQ")  # struct sched_attr of sched_setattr(2), its first 48 bytes
SLICE = 100_000  # nanoseconds


def slice_of(thread):
    """In nanoseconds."""
    room = ctypes.create_string_buffer(ATTR.size)
    if ctypes.CDLL(None, use_errno=True).syscall(SYS_SCHED_GETATTR, thread, room, ATTR.size, 0) != 0:
        raise Skip(f"sched_getattr: {os.strerror(ctypes.get_errno())}")
    return ATTR.unpack(room.raw)[5]


def test_workers_have_short_slices(lab):
    usual = slice_of(0)
    if os.uname().machine != "x86_64" or usual == 0:
        raise Skip("this kernel knows no time slices of threads (Linux 6.12 does)")
    proxy = Retort(lab, workers=2, reverse={"/": "http://127.0.0.1:1/"})

    def slices():
        return [slice_of(int(thread)) for thread in os.listdir(f"/proc/{proxy.process.pid}/task")]
    until(lambda: slices().count(SLICE) == 2, 10 * lab.patience, "both workers have short slices")
    true(usual in slices(), f"the main thread has the usual slice: {sorted(slices())}")
