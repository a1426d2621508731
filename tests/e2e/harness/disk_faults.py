"""Faults of a disk that come and go while the proxy runs; the other side is faults/disk_faults.c.

    faults = DiskFaults(lab, volume)
    proxy = Retort(lab, environment=faults.environment(), ...)
    faults.set(read_error=1000)        thousandths; see the list in disk_faults.c
    faults.clear()
    true(faults.count("read_faults") > 0, ...)
"""

import mmap
import struct

SET = ["read_error", "read_short", "read_flip", "read_absent", "read_delay", "write_error", "write_full",
       "write_room", "write_short", "write_flip", "write_delay", "sync_error", "allocate_error", "send_error",
       "send_short", "wall_back"]
COUNTED = ["reads", "writes", "syncs", "sends", "written", "read_faults", "write_faults", "sync_faults",
           "allocate_faults", "send_faults"]
NAMES = SET + COUNTED


class DiskFaults:
    def __init__(self, lab, volume):
        self.volume = volume
        self.library = lab.built("tests/e2e/faults/.libs/disk_faults.so")
        self.path = lab.write(lab.unique("faults"), bytes(8 * len(NAMES)))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 8 * len(NAMES))

    def environment(self):
        return {"LD_PRELOAD": self.library, "RETORT_DISK_FAULTS": self.path, "RETORT_DISK_FILE": self.volume}

    def set(self, **values):
        for name, value in values.items():
            struct.pack_into("<Q", self.map, 8 * SET.index(name), value)

    def clear(self):
        self.set(**{name: 0 for name in SET})

    def count(self, name):
        return struct.unpack_from("<Q", self.map, 8 * NAMES.index(name))[0]
