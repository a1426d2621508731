"""Does a read from the disk stall a hit in memory? The latency of hits, alone and beside such reads.

What the volume's file has in the page cache is dropped again and again meanwhile, so that reads go to
the device. The load that asks for them takes its part of both cores, whoever answers it. What of the
latency is due to that alone is seen when another process on the same core, a second Retort, answers it.
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
ALONE, BESIDE, ELSEWHERE = "alone", "beside reads from disk", "beside those of another process"


class Stalls(Case):
    name, title = "stalls", "Hits in memory beside reads from disk"

    def open(self):
        bench = self.bench
        for number in range(COUNT):
            bench.origin.has(PATH.format(number), os.urandom(16) * (BYTES // 16))
        self.server = peers.retort.start_on_disk(bench, memory=16 << 20)
        self.other = peers.retort.start_on_disk(bench, "retort-other", memory=16 << 20, size="1GB")
        for server in (self.server, self.other):
            for number in range(COUNT):
                server.fetch(PATH.format(number))
        self.path = bench.origin.has(f"/hit/{SIZE}")
        bench.warm(self.server, self.path, SIZE)
        self.script = bench.wrk.any_of("cold", PATH, COUNT)

    def points(self):
        return [Point(ALONE, "retort", self.hits), Point(BESIDE, "retort", lambda: self.hits_beside(self.server)),
                Point(ELSEWHERE, "retort", lambda: self.hits_beside(self.other))]

    def hits(self):
        return measure(self, self.server, self.path, CONNECTIONS, expect=HITS_ONLY)

    def hits_beside(self, reader):
        """`reader` answers the load that makes it read."""
        read = device_bytes(reader)
        with dropped(reader.volume):
            disk = self.bench.wrk.start(reader, "/", DISK_CONNECTIONS, self.seconds + 1, script=self.script)
            try:
                sample = self.hits()
            finally:
                from_disk = self.bench.wrk.finish(reader, disk)
        read = device_bytes(reader) - read
        if not read:
            raise AssertionError("nothing was read from the device")
        return {**sample, "cpu_us": None, "disk_rate": from_disk["rate"], "disk_mb_s": read / 1e6 / from_disk["seconds"]}

    @staticmethod
    def show(figures):
        about = (f"{SIZE} bytes from memory on {CONNECTIONS} connections; {DISK_CONNECTIONS} more ask for any of {COUNT} objects "
                 f"of {BYTES >> 10} KB that are in neither memory nor page cache. Both loads share a core. In "
                 "the last row a second Retort, on the core of the first, answers the load that reads from disk.\n\n")
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
