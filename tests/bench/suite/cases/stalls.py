"""Does a read from the disk stall a hit in memory? The latency of hits, alone and beside such reads.

What the volume's file has in the page cache is dropped again and again meanwhile, so that reads go to
the device.
"""

import contextlib
import os
import threading

from .. import peers, table
from ..requests import HITS_ONLY, measure
from ..rounds import Case, Point

CONNECTIONS, DISK_CONNECTIONS = 20, 4
SIZE, PATH, COUNT, BYTES = 1000, "/hit/cold/{}", 2000, 65536
DROP_SECONDS = 0.02
ALONE, BESIDE = "alone", "beside reads from disk"


class Stalls(Case):
    name, title = "stalls", "Hits in memory beside reads from disk"

    def open(self):
        bench = self.bench
        for number in range(COUNT):
            bench.origin.has(PATH.format(number), os.urandom(16) * (BYTES // 16))
        self.server = peers.retort.start_on_disk(bench, memory=16 << 20)
        for number in range(COUNT):
            self.server.fetch(PATH.format(number))
        self.path = bench.origin.has(f"/hit/{SIZE}")
        bench.warm(self.server, self.path, SIZE)
        self.script = bench.wrk.any_of("cold", PATH, COUNT)

    def points(self):
        return [Point(ALONE, "retort", self.hits), Point(BESIDE, "retort", self.hits_beside)]

    def hits(self):
        return measure(self, self.server, self.path, CONNECTIONS, expect=HITS_ONLY)

    def hits_beside(self):
        read = device_bytes(self.server)
        with dropped(self.server.volume):
            disk = self.bench.wrk.start(self.server, "/", DISK_CONNECTIONS, self.seconds + 1, script=self.script)
            try:
                sample = self.hits()
            finally:
                from_disk = self.bench.wrk.finish(self.server, disk)
        read = device_bytes(self.server) - read
        if not read:
            raise AssertionError("nothing was read from the device")
        return {**sample, "cpu_us": None, "disk_rate": from_disk["rate"], "disk_mb_s": read / 1e6 / from_disk["seconds"]}

    @staticmethod
    def show(figures):
        about = (f"{SIZE} bytes from memory on {CONNECTIONS} connections; {DISK_CONNECTIONS} more ask for any of {COUNT} objects "
                 f"of {BYTES >> 10} KB that are in neither memory nor page cache. Both loads share a core.\n\n")
        return about + table.by_row(figures, {
            "requests/s": ("rate", None), "median ms": ("p50_ms", 2), "99 % ms": ("p99_ms", 2),
            "disk hits/s": ("disk_rate", None), "MB/s read from the device": ("disk_mb_s", None)}, "retort", "hits in memory")


@contextlib.contextmanager
def dropped(path):
    """The file leaves the page cache every few milliseconds."""
    over = threading.Event()

    def drop():
        with open(path, "rb") as file:
            while not over.wait(DROP_SECONDS):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    thread = threading.Thread(target=drop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def device_bytes(server):
    with open(f"/proc/{server.process.pid}/io", encoding="ascii") as io:
        return int(dict(line.split(": ") for line in io.read().splitlines())["read_bytes"])
