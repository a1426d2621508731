"""How long hits take when no server has more to do than it can: all are asked at the same rate.

What else the machine does decides the slowest of them, so rounds are short and many.
"""

from .. import load, peers, table
from ..requests import HITS_ONLY, check_origin, observed
from ..rounds import Case, Point

CONNECTIONS, RATE = 20, 10_000
SIZES = (1000, 10_000)
COLUMNS = {"median ms": ("p50_ms", 3), "99 % ms": ("p99_ms", 3), "99.9 % ms": ("p999_ms", 3)}
SECONDS = 0.5


class Latency(Case):
    name, title = "latency", "Latency of hits at one rate"
    times, most_seconds = 4, SECONDS

    def open(self):
        self.paths = {size: self.bench.origin.has(f"/hit/{size}") for size in SIZES}
        self.limits = {size: peers.plain.limit(self.bench, size) for size in SIZES}
        self.servers = {"retort": peers.retort.start(self.bench), **self.bench.start_peers(peers.CACHES)}
        for size, path in self.paths.items():
            for server in self.servers.values():
                self.bench.warm(server, path, size)

    def points(self):
        return [self.point(size, name, server) for size in SIZES
                for name, server in [("limit", self.limits[size]), *self.servers.items()]]

    def point(self, size, name, server):
        return Point(f"{size} bytes", name, lambda: self.ask(server, self.paths[size]))

    def ask(self, server, path):
        sample = observed(self.bench, server,
                          lambda: load.reader(self.bench.lab, server, [path], CONNECTIONS, self.seconds, rate=RATE))
        check_origin(server, path, HITS_ONLY, sample["asked"], sample["requests"])
        return sample

    @staticmethod
    def show(figures):
        rows = [[row, table.LABELS.get(server, server), *table.medians(figures, row, server, COLUMNS)]
                for row, server in figures.known()]
        return (f"{RATE} requests a second on {CONNECTIONS} connections, evenly spread; a request counts from when it was due, "
                "whatever became of those before. Rounds of half a second.\n\n"
                + table.markdown(["", "server", *COLUMNS], rows, texts=2) + "\n" + standing(figures))


def standing(figures):
    rows = []
    for row in figures.rows():
        soonest = figures.best(row, "p99_ms", peers.CACHES, least=True)
        rows.append([row, table.ratio(figures.ratio(row, "retort", "limit", "p99_ms")),
                     table.against(figures, row, "retort", soonest, "p99_ms")])
    return table.markdown(["Retort's 99 %", "by the limit's", "by the best peer's"], rows)
