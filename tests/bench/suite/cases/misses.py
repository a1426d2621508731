"""Misses: responses that may not be stored, each fetched from the origin on a kept connection."""

from .. import peers, plots, table
from ..requests import MISSES_ONLY, measure
from ..rounds import Case, Point

CONNECTIONS = 20
ROWS = {"10 KB, no-store": 10_000, "100 KB, no-store": 100_000}
PEERS = ("haproxy", "nginx", "trafficserver", "squid")


class Misses(Case):
    name, title = "misses", "Misses"
    most_seconds = 100

    def open(self):
        self.servers = {"retort": peers.retort.start(self.bench), **self.bench.start_peers(PEERS)}
        for size in ROWS.values():
            self.bench.origin.has(f"/miss/{size}")
            for server in self.servers.values():
                self.bench.warm(server, f"/miss/{size}", size)

    def points(self):
        return [self.point(row, size, name, server) for row, size in ROWS.items() for name, server in self.servers.items()]

    def point(self, row, size, name, server):
        return Point(row, name, lambda: measure(self, server, f"/miss/{size}", CONNECTIONS, expect=MISSES_ONLY))

    @staticmethod
    def show(figures):
        about = (f"{CONNECTIONS} connections. Origin and wrk share a core: with `w` the server waited for them, so its CPU "
                 "time decides.")
        rows = [[row, *table.medians(figures, row, "retort", {"": ("cpu_us", None)}),
                 table.against(figures, row, best, "retort", "cpu_us")]
                for row in figures.rows() if (best := figures.best(row, "cpu_us", PEERS, least=True))]
        return (table.usual(figures, about) + "\n"
                + table.markdown(["Retort", "CPU us a request", "best peer's by Retort's"], rows))

    @staticmethod
    def plots(figures):
        return [plots.of_figures(figures, "misses", "Misses")]
