"""Refused memory that comes and goes while the proxy runs; the other side is faults/memory_faults.c.

    faults = MemoryFaults(lab)
    proxy = Retort(lab, environment=faults.environment(), ...)
    faults.set(chance=100, least=4096)       thousandths; see the list in memory_faults.c
    faults.clear()
    true(faults.count("faults") > 0, ...)
"""

import mmap
import struct

SET = ["chance", "least", "maps", "seed"]
NAMES = SET + ["calls", "faults"]


class MemoryFaults:
    def __init__(self, lab):
        self.library = lab.built("tests/e2e/faults/.libs/memory_faults.so")
        self.path = lab.write(lab.unique("memory-faults"), bytes(8 * len(NAMES)))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 8 * len(NAMES))

    def environment(self):
        return {"LD_PRELOAD": self.library, "RETORT_MEMORY_FAULTS": self.path}

    def set(self, **values):
        for name, value in values.items():
            struct.pack_into("<Q", self.map, 8 * SET.index(name), value)

    def clear(self):
        self.set(chance=0, maps=0)

    def count(self, name):
        return struct.unpack_from("<Q", self.map, 8 * NAMES.index(name))[0]
