"""HTTP/2 over TLS: hits on streams of few connections and of many, a large body, urgent responses, and the memory of idle connections.

h2o and "nginx, file" serve files; nghttpx has no cache and asks the origin each time. "Retort, HTTP/1.1" is the same listener asked by HTTP/1.1.
"""

import functools
import os

from harness.certificates import Authority
from harness.http2 import Http2 as Client

from .. import load, machine, origin, peers, table
from ..requests import HITS_ONLY, check_origin, observed
from ..results import Figures
from ..rounds import Case, Point
from ..server import NAME
from . import idle, urgency

CACHED = ("haproxy", "nginx", "trafficserver")
# row: (bytes, connections, streams)
ROWS = {"1 KB, 20 connections with 100 streams": (1000, 20, 100), "1 KB, 20 connections with 1 stream": (1000, 20, 1),
        "100 KB, 20 connections with 100 streams": (100_000, 20, 100), "1 KB, 1000 connections with 10 streams": (1000, 1000, 10)}
ONE_AT_A_TIME = "1 KB, 20 connections with 1 stream"
MANY = "1 KB, 1000 connections with 10 streams"  # too many for nghttpx, which then asks on when nobody waits
WEIGHED, IDLE, WEIGHED_SIZE = "idle connections", 1000, 1000
URGENT = "urgent responses"
MOST_KB = 30  # that Retort may take for each of them
LARGE = "100 KB, 20 connections with 100 streams"
BEST = None  # whichever of them all is the fastest in that row
# what it was built for: (row, server, least ratio of requests/s)
GOALS = (("1 KB, 20 connections with 100 streams", "nginx", 4), ("1 KB, 20 connections with 100 streams", "h2o", 0.9),
         (ONE_AT_A_TIME, BEST, 1), (LARGE, BEST, 1), (ONE_AT_A_TIME, "retort-http1", 0.9))
DIFFERENCE = 0.2  # what is under way when the time is over, of the bytes of all responses


class Http2(Case):
    name, title = "http2", "HTTP/2 over TLS"
    most_seconds = 2

    def open(self):
        bench = self.bench
        certificate = Authority(bench.lab).leaf(NAME).both
        sizes = {size for size, _, _ in ROWS.values()}
        root = files(bench, sizes)
        self.starts = {"retort": functools.partial(peers.retort.start, bench, certificate=certificate),
                       **{name: functools.partial(peers.CACHES[name].start, bench, certificate=certificate, **how)
                          for name, how in {"haproxy": {"http2": True}, "nginx": {"http2": True, "root": root}, "trafficserver": {}}.items()}}
        self.cached = {"retort": self.starts["retort"](),
                       **bench.start_some({name: start for name, start in self.starts.items() if name != "retort"})}
        self.others = bench.start_some({"h2o": functools.partial(peers.h2o.start, bench, certificate=certificate, root=root),
                                        "nghttpx": functools.partial(peers.nghttpx.start, bench, certificate=certificate)})
        for size in sizes | {urgency.LARGE, urgency.URGENT}:
            bench.origin.has(f"/hit/{size}")
            for server in self.cached.values():
                bench.warm(server, f"/hit/{size}", size)

    def points(self):
        points = []
        for row, (size, connections, streams) in ROWS.items():
            asked = [(name, server, f"/hit/{size}", HITS_ONLY) for name, server in self.cached.items()]
            if "nginx" in self.cached:
                asked.append(("nginx-file", self.cached["nginx"], f"/file/{size}", None))
            asked += [(name, server, f"/file/{size}" if name == "h2o" else f"/hit/{size}", None) for name, server in self.others.items()]
            points += [Point(row, name, functools.partial(self.ask, server, path, size, connections, streams, expect=expect))
                       for name, server, path, expect in asked if name != "nghttpx" or row != MANY]
        size, connections, _ = ROWS[ONE_AT_A_TIME]
        points.append(Point(ONE_AT_A_TIME, "retort-http1", functools.partial(self.ask, self.cached["retort"], f"/hit/{size}", size,
                                                                             connections, 1, expect=HITS_ONLY, http1=True)))
        points += [Point(URGENT, name, functools.partial(urgency.compare, server, f"/hit/{urgency.LARGE}", f"/hit/{urgency.URGENT}"))
                   for name, server in self.cached.items()]
        points += [Point(WEIGHED, name, functools.partial(self.weigh, name)) for name in self.cached]
        return points

    def weigh(self, name):
        """Of a process that has not served anybody else: what it has had for them would not be new."""
        server, path = self.starts[name](), f"/hit/{WEIGHED_SIZE}"
        try:
            self.bench.warm(server, path, WEIGHED_SIZE)
            return idle.weigh(server, path, min(IDLE, machine.descriptors() - 500), answered)
        finally:
            server.stop()

    def ask(self, server, path, size, connections, streams, *, expect, http1=False):
        sample = observed(self.bench, server, lambda: load.h2load(server, path, connections, streams, self.seconds, http1=http1))
        if not sample["requests"]:
            raise AssertionError(f"{server.name} {path}: no request was answered: {sample['errors']}")
        if not size * (1 - DIFFERENCE) <= sample["bytes"] / sample["requests"] <= size * (1 + DIFFERENCE) + connections * streams * size:
            raise AssertionError(f"{server.name} {path}: {sample['bytes']} bytes for {sample['requests']} requests of {size}")
        check_origin(server, path, expect, sample["asked"], sample["requests"])
        return sample

    @staticmethod
    def show(figures):
        weight = [[table.LABELS.get(server, server), *table.medians(figures, WEIGHED, server, {"KB": ("each_kb", 1)})]
                  for row, server in figures.known() if row == WEIGHED]
        urgent = urgency.show(figures, URGENT)
        figures = Figures({**figures.case, "points": [point for point in figures.case["points"] if point["row"] not in (URGENT, WEIGHED)]})
        about = "`w`: the server waited for h2load, so its CPU time decides. Requests a second; microseconds of CPU time for each.\n\n"
        rows = [[row, *(against(figures, row, name) for name in (*CACHED, "nginx-file", "h2o", "nghttpx"))] for row in figures.rows()]
        ratios = table.markdown(["Retort's requests/s; its CPU time, by that of", *(peers.LABELS[name] for name in (*CACHED, "nginx-file", "h2o", "nghttpx"))],
                                rows)
        return (about + table.matrix(figures) + "\n" + ratios + ABOUT_GOALS + goals(figures)
                + (f"\n{urgent}" if urgent else "")
                + ("\n" + table.markdown([f"idle HTTP/2 connection with TLS (goal: {MOST_KB} KB)", "KB each"], weight) if weight else ""))


def answered(server, path, count):
    """So many connections over which HTTP/2 has answered one request."""
    sockets, context = [], urgency.context()
    for _ in range(count):
        client = Client(server.address, context=context)
        sockets.append(client.socket)
        response = client.get(server.url(path))
        if response.status != 200:
            raise AssertionError(f"{server.name} {path}: {response.status}")
    return sockets


ABOUT_GOALS = ("\nWhat it was built for. Requests a second say little where the server waited for h2load; there its CPU time is compared with the "
               "same goal.\n\n")


def goals(figures):
    rows = []
    for row, other, least in GOALS:
        others = [server for server in figures.servers(row) if server not in ("retort", "retort-http1")]
        other = other or figures.best(row, "rate", others, least=False)
        rate, cpu = (figures.ratio(row, "retort", other, name) if other else None for name in ("rate", "cpu_us"))
        if rate is None:
            continue
        met = "yes" if rate >= least else "by CPU time" if cpu <= 1 / least and figures.is_waiting(row, "retort") else "no"
        rows.append([f"{row}: {least} times {peers.LABELS.get(other, other)}", table.ratio(rate), table.ratio(cpu), met])
    return table.markdown(["goal, in requests/s", "requests/s", "CPU time", "met"], rows)


def against(figures, row, other):
    if not figures.there(row, "retort") or not figures.there(row, other):
        return table.NOTHING
    return "; ".join(table.ratio(figures.ratio(row, "retort", other, name)) for name in ("rate", "cpu_us"))


def files(bench, sizes):
    """A directory with what the origin serves, as files."""
    root = bench.in_memory("files")
    os.makedirs(os.path.join(root, "file"), exist_ok=True)
    for size in sizes:
        with open(os.path.join(root, "file", str(size)), "wb") as out:
            out.write(origin.body(size))
    return root
