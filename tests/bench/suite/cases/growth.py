"""How the cost of a hit grows: with the objects stored, with connections, and with rules."""

import json
import os
import signal
import time

from harness import wire

from .. import machine, peers, plots, table
from ..requests import HITS_ONLY, measure
from ..rounds import Case, Point

SIZE, CONNECTIONS = 1000, 20


class Growth(Case):
    """Cases whose rows are numbers that a plot has on its horizontal axis."""

    most_rounds = 2
    axis = None

    @classmethod
    def show(cls, figures):
        return ("Requests a second; microseconds of CPU time for each.\n\n" + table.matrix(figures, cls.axis)
                + "\nLatency in milliseconds: median; 99 %.\n\n" + table.latencies(figures, cls.axis))

    @classmethod
    def plots(cls, figures):
        return [plots.of_figures(figures, cls.name, cls.title, xlabel=cls.axis, numbers=True)]


class Objects(Growth):
    """Objects of 100 bytes, any of them asked for, each as often as another."""

    name, title, axis = "objects", "Hits by the number of objects", "objects"
    COUNTS, QUICK = (10, 1000, 100_000, 3_000_000), (10, 1000, 100_000)
    OBJECT, EACH, FILLERS, FILL_SECONDS = 100, 700, 64, 110

    def open(self):
        self.source = peers.plain.microhttpd(self.bench, core=machine.LOAD_CORE)
        self.servers = {}
        for count in self.QUICK if self.bench.quick else self.COUNTS:
            need = count * self.EACH >> 20
            if need > machine.free_mb() // 2:
                self.notes.append(f"not with {count} objects, which may take {need} MB: there are {machine.free_mb()}")
                continue
            server = peers.retort.start(self.bench, f"retort-{count}", memory=f"{need + 64}MB", origin=self.source.port)
            self.fill(server, count)

    def path(self, number):
        return f"/o/{number}/{self.OBJECT}"

    def fill(self, server, count):
        """Asks for one after the other until all are stored, or it takes too long."""
        script = self.bench.lab.write(f"fill-{count}.lua", FILL.format(count=count, size=self.OBJECT) + self.bench.wrk.REPORT)
        begin = time.monotonic()
        filler = self.bench.wrk.start(server, "/", self.FILLERS, self.FILL_SECONDS, script=script)
        while (stored := counters(server)["cache_stores"]) < count and filler.poll() is None:
            time.sleep(0.05)
        filler.send_signal(signal.SIGINT)
        self.bench.wrk.finish(server, filler)
        if stored < count:
            self.notes.append(f"{stored} objects instead of {count}: filling was given up after {time.monotonic() - begin:.0f} s")
        self.servers[min(stored, count)] = server

    def points(self):
        return [Point(str(count), "retort", lambda count=count: self.measured(count)) for count in self.servers]

    def measured(self, count):
        server = self.servers[count]
        script = self.bench.lab.write(f"any-{count}.lua", ANY.format(count=count, size=self.OBJECT) + self.bench.wrk.REPORT)
        asked = counters(server)["origin_requests"]
        sample = measure(self, server, "/", CONNECTIONS, script=script)
        asked = counters(server)["origin_requests"] - asked
        if asked > sample["requests"] * 0.01:
            raise AssertionError(f"no hits: {asked} requests at the origin for {sample['requests']}")
        return {**sample, "asked": asked, "memory_mb": server.memory_kb() / 1024}

    @classmethod
    def show(cls, figures):
        rows = [[row, table.number(figures.median(row, "retort", "memory_mb"), 0)] for row in figures.rows() if figures.there(row, "retort")]
        return super().show(figures) + "\n" + table.markdown(["objects", "MB of memory in all"], rows)


class Connections(Growth):
    name, title, axis = "connections", "Hits by the number of connections", "connections"
    COUNTS, PEERS = (10, 100, 1000, 10_000), ("haproxy", "nginx")
    MANY, MANY_SECONDS = 10_000, 5  # to connect them takes a while, too

    def open(self):
        path = self.bench.origin.has(f"/hit/{SIZE}")
        self.path = path
        self.servers = {"limit": peers.plain.limit(self.bench, SIZE), "retort": peers.retort.start(self.bench), **self.bench.start_peers(self.PEERS)}
        for name, server in self.servers.items():
            if name != "limit":
                self.bench.warm(server, path, SIZE)

    def points(self):
        most = machine.descriptors() - 500
        return [Point(str(count), name, lambda count=count, server=server: self.measured(server, count))
                for count in self.COUNTS if count <= most for name, server in self.servers.items()]

    def measured(self, server, count):
        seconds = max(self.seconds, self.MANY_SECONDS if count >= self.MANY else 0)
        return measure(self, server, self.path, count, expect=HITS_ONLY, seconds=seconds)


class Rules(Growth):
    """None of the rules but the last fits what is asked for."""

    name, title, axis = "rules", "Hits by the number of rules", "rules"
    COUNTS = (1, 10, 100)

    def open(self):
        self.path = self.bench.origin.has(f"/hit/{SIZE}")
        self.servers = {(kind, count): peers.retort.start(self.bench, f"retort-{kind}-{count}", more=text(count - 1))
                        for kind, text in {"url_class": classes, "map": maps}.items() for count in self.COUNTS}
        for server in self.servers.values():
            self.bench.warm(server, self.path, SIZE)

    def points(self):
        return [Point(str(count), kind, lambda server=server: measure(self, server, self.path, CONNECTIONS, expect=HITS_ONLY))
                for (kind, count), server in self.servers.items()]


def classes(count):
    """A policy for each class, so that each is looked at for every request; and one that fits."""
    rules = [(f"c{i}", rf"^/section-{i}/.*\.(png|jpe?g)$") for i in range(count)] + [("last", "^/hit/")]
    return "".join(f"url_class {name} {{ path_regex = '{regex}' }}\npolicy {name} {{ query_drop = \"utm_*\" }}\n" for name, regex in rules)


def maps(count):
    """Beside the one of all configurations here, that of the path /."""
    return "".join(f'map "/section-{i}/" {{ origin = "http://127.0.0.1:9/{i}/" }}\n' for i in range(count))


def counters(server):
    server.process.wait_ready(lambda: os.path.exists(server.admin))
    status = wire.fetch(server.admin, "GET", "/status", host="localhost")
    return json.loads(status.body)["counters"]


FILL = """
local number = -1
function request()
    number = number + 1
    return "GET /o/" .. number % {count} .. "/{size} HTTP/1.1\\r\\nHost: bench\\r\\n\\r\\n"
end
"""

ANY = """
function request() return "GET /o/" .. math.random(0, {count} - 1) .. "/{size} HTTP/1.1\\r\\nHost: bench\\r\\n\\r\\n" end
"""
