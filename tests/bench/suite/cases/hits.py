"""Hits in memory, from 160 bytes to 10 KB, from 10 connections to 1000, and with a connection each."""

from .. import peers, plots, table
from ..requests import HITS_ONLY, measure
from ..rounds import Case, Point

CLOSE = ("Connection: close",)
# row: (bytes, connections, header fields)
ROWS = {"160 B, 10 connections": (160, 10, ()), "1 KB, 20 connections": (1000, 20, ()),
        "1 KB, 1000 connections": (1000, 1000, ()), "10 KB, 100 connections": (10_000, 100, ()),
        "1 KB, 20 connections, closed after each": (1000, 20, CLOSE)}


class Hits(Case):
    name, title = "hits", "Hits in memory"
    most_seconds = 100

    def open(self):
        bench = self.bench
        self.limits = {(size, headers): peers.plain.limit(bench, size, closes=headers == CLOSE)
                       for size, _, headers in ROWS.values()}
        self.servers = {"retort": peers.retort.start(bench),
                        "retort+log": peers.retort.start(bench, kind="retort+log", log=True),
                        **bench.start_peers(peers.CACHES), "microhttpd": peers.plain.microhttpd(bench)}
        for size in {size for size, _, _ in ROWS.values()}:
            bench.origin.has(f"/hit/{size}")
            for server in self.servers.values():
                bench.warm(server, f"/hit/{size}", size)

    def points(self):
        return [self.point(row, name, server, *ROWS[row]) for row in ROWS
                for name, server in [("limit", self.limits[ROWS[row][0], ROWS[row][2]]), *self.servers.items()]]

    def point(self, row, name, server, size, connections, headers):
        return Point(row, name, lambda: measure(self, server, f"/hit/{size}", connections, headers=headers,
                                                expect=HITS_ONLY))

    @staticmethod
    def show(figures):
        return (table.usual(figures, "`w`: the server waited for wrk, so its CPU time decides.") + "\n"
                + table.standing(figures, list(peers.CACHES)) + "\n" + log_cost(figures))

    @staticmethod
    def plots(figures):
        return [plots.of_figures(figures, "hits", "Hits in memory", servers=["limit", "retort", *peers.CACHES, "microhttpd"])]


def log_cost(figures):
    rows = [[row, table.ratio(figures.ratio(row, "retort+log", "retort", "rate")),
             table.ratio(figures.ratio(row, "retort+log", "retort", "cpu_us"))]
            for row in figures.rows() if figures.there(row, "retort+log")]
    return table.markdown(["Retort with its access log, by without", "requests/s", "CPU time"], rows)
