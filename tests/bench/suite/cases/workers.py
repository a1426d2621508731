"""One worker and two: what sharing a cache between threads costs each request."""

from .. import peers, table
from ..machine import CORES
from ..requests import HITS_ONLY, measure
from ..rounds import Case, Point

SIZE, CONNECTIONS, ROW = 1000, 100, "1 KB hit, 100 connections"
COUNTS = (1, 2)


class Workers(Case):
    name, title = "workers", "Two workers"
    times = 4

    def open(self):
        # With three cores the load has one of its own; with two it shares one, for one worker as for two.
        cores = ",".join(CORES[1:3] if len(CORES) > 2 else CORES)
        self.path = self.bench.origin.has(f"/hit/{SIZE}")
        self.servers = {count: peers.retort.start(self.bench, workers=count, core=cores) for count in COUNTS}
        for server in self.servers.values():
            self.bench.warm(server, self.path, SIZE)

    def points(self):
        return [Point(ROW, f"workers {count}", lambda server=server: self.measured(server))
                for count, server in self.servers.items()]

    def measured(self, server):
        return measure(self, server, self.path, CONNECTIONS, expect=HITS_ONLY)

    @staticmethod
    def show(figures):
        rows = [[server.split()[1], *table.medians(figures, row, server, {"rate": ("rate", None), "CPU": ("cpu_us", None)}),
                 table.ratio(figures.ratio(row, server, figures.servers()[0], "cpu_us"))] for row, server in figures.known()]
        return (f"{ROW}; the workers and wrk on the same two cores, or on three where there are so many.\n\n"
                + table.markdown(["workers", "requests/s", "CPU us a request", "times one worker's"], rows))
