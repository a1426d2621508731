"""Hits among few objects and among millions."""

import signal
import time

from .. import machine, peers, table
from ..requests import measure
from ..rounds import Point
from .growth import Growth

COUNTS, QUICK = (10, 1000, 100_000, 3_000_000), (10, 1000, 100_000)
SIZE, EACH, CONNECTIONS = 100, 700, 20
FILLERS, FILL_SECONDS = 64, 110

PATH = "/o/%d/{size}"
FILL = """
local number = -1
function request()
    number = number + 1
    return string.format("GET {path} HTTP/1.1\\r\\nHost: bench\\r\\n\\r\\n", number % {count})
end
"""
ANY = """
function request() return string.format("GET {path} HTTP/1.1\\r\\nHost: bench\\r\\n\\r\\n", math.random(0, {count} - 1)) end
"""


class Objects(Growth):
    name, title, axis = "objects", "Hits by the number of objects", "objects"
    about = f"Objects of {SIZE} bytes, any of them asked for, each as often as another, on {CONNECTIONS} connections."

    def open(self):
        self.source = peers.plain.microhttpd(self.bench, core=machine.LOAD_CORE)
        self.servers = {}
        for count in QUICK if self.bench.quick else COUNTS:
            need, there = count * EACH >> 20, machine.free_mb()
            if need > there // 2:
                self.notes.append(f"not with {count} objects, which may take {need} MB: there are {there}")
                continue
            server = peers.retort.start(self.bench, f"retort-{count}", memory=f"{need + 64}MB", origin=self.source.port)
            self.servers[self.fill(server, count)] = server

    def script(self, name, text, count):
        return self.bench.lab.write(f"{name}-{count}.lua", text.format(path=PATH.format(size=SIZE), count=count)
                                    + self.bench.wrk.REPORT)

    def fill(self, server, count):
        """Asks for one after the other until all are stored, or it takes too long; how many there are then."""
        begin = time.monotonic()
        filler = self.bench.wrk.start(server, "/", FILLERS, FILL_SECONDS, script=self.script("fill", FILL, count))
        while (stored := peers.retort.counters(server)["cache_stores"]) < count and filler.poll() is None:
            time.sleep(0.05)
        filler.send_signal(signal.SIGINT)
        self.bench.wrk.finish(server, filler)
        if stored < count:
            self.notes.append(f"{stored} objects instead of {count}: filling was given up after {time.monotonic() - begin:.0f} s")
        return min(stored, count)

    def points(self):
        return [Point(str(count), "retort", lambda count=count: self.measured(count)) for count in self.servers]

    def measured(self, count):
        server = self.servers[count]
        asked = peers.retort.counters(server)["origin_requests"]
        sample = measure(self, server, "/", CONNECTIONS, script=self.script("any", ANY, count))
        asked = peers.retort.counters(server)["origin_requests"] - asked
        if asked > sample["requests"] * 0.01:
            raise AssertionError(f"no hits: {asked} requests at the origin for {sample['requests']}")
        return {**sample, "asked": asked, "memory_mb": server.memory_kb() / 1024}

    @classmethod
    def show(cls, figures):
        memory = table.by_row(figures, {"MB of memory in all": ("memory_mb", 0)}, "retort", "objects")
        return super().show(figures) + "\n" + memory
