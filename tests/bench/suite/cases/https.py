"""TLS on the listener: hits on kept connections, a handshake for each request, whole and resumed, misses, idle connections.

The limit is a bare loop of OpenSSL that always has the same answer. "Retort, clear text" is the same without TLS.
"""

import functools

from harness.certificates import Authority

from .. import load, machine, peers, table
from ..requests import HITS_ONLY, MISSES_ONLY, check_origin, measure, observed
from ..results import Figures
from ..rounds import Case, Point
from ..server import NAME
from . import idle

KEPT, SHAKING, IDLE = 20, 10, 2000
# row: bytes
HITS = {"1 KB hit": 1000, "100 KB hit": 100_000}
MISS, MISS_SIZE = "10 KB miss", 10_000
# row: (version, resumed)
HANDSHAKES = {"new connection, TLS 1.3": ("1.3", False), "resumed, TLS 1.3": ("1.3", True),
              "new connection, TLS 1.2": ("1.2", False), "resumed, TLS 1.2": ("1.2", True)}
WEIGHED = "idle connections"
SHAKEN_SIZE = 1000


class Https(Case):
    name, title = "https", "TLS on the listener"
    most_seconds = 2

    def open(self):
        bench = self.bench
        certificate = Authority(bench.lab).leaf(NAME).both
        sizes = {*HITS.values(), SHAKEN_SIZE}
        self.limits = {size: peers.plain.tls_limit(bench, size, certificate) for size in sizes}
        self.servers = {"retort": peers.retort.start(bench, certificate=certificate),
                        **bench.start_peers(("haproxy", "nginx", "trafficserver", "squid"), certificate=certificate)}
        self.clear = peers.retort.start(bench, "retort-clear", kind="retort-clear")
        for path, size in [*((f"/hit/{size}", size) for size in sizes), (f"/miss/{MISS_SIZE}", MISS_SIZE)]:
            bench.origin.has(path)
            for server in [*self.servers.values(), self.clear]:
                bench.warm(server, path, size)

    def points(self):
        kept = [Point(row, name, functools.partial(measure, self, server, f"/hit/{size}", KEPT, expect=HITS_ONLY))
                for row, size in HITS.items()
                for name, server in [("limit", self.limits[size]), ("retort-clear", self.clear), *self.servers.items()]]
        missed = [Point(MISS, name, functools.partial(measure, self, server, f"/miss/{MISS_SIZE}", KEPT, expect=MISSES_ONLY))
                  for name, server in [("retort-clear", self.clear), *self.servers.items()]]
        shaken = [Point(row, name, functools.partial(self.shake, server, *how)) for row, how in HANDSHAKES.items()
                  for name, server in [("limit", self.limits[SHAKEN_SIZE]), *self.servers.items()]]
        weighed = [Point(WEIGHED, name, functools.partial(self.weigh, server)) for name, server in self.servers.items()]
        return kept + missed + shaken + weighed

    def shake(self, server, version, resumed):
        path = f"/hit/{SHAKEN_SIZE}"
        sample = observed(self.bench, server, lambda: load.tls_connect(self.bench.lab, server, path, SHAKING, self.seconds,
                                                                       resumed=resumed, version=version))
        check_origin(server, path, HITS_ONLY, sample["asked"], sample["requests"])
        return sample

    def weigh(self, server):
        return idle.weigh(server, f"/hit/{SHAKEN_SIZE}", min(IDLE, machine.descriptors() - 500))

    @staticmethod
    def show(figures):
        about = (f"Certificates with P-256. {KEPT} kept connections; handshakes: {SHAKING} connections at a time, one hit of "
                 f"{SHAKEN_SIZE} bytes each. `w`: the server waited for the load, so its CPU time decides.")
        timed = Figures({**figures.case, "points": [point for point in figures.case["points"] if point["row"] != WEIGHED]})
        weight = [[table.LABELS.get(server, server), *table.medians(figures, WEIGHED, server, {"KB": ("each_kb", 1)})]
                  for row, server in figures.known() if row == WEIGHED]
        return (table.usual(timed, about) + "\n" + table.standing(timed, ("haproxy", "nginx", "trafficserver", "squid")) + "\n"
                + table.markdown(["Retort", ""], own_ratios(figures)) + "\n"
                + table.markdown(["idle connection with TLS", "KB each"], weight))


def own_ratios(figures):
    """Retort by itself: what TLS costs, and what a resumed session saves."""
    rows = [[f"CPU of a {row} by that in clear text", table.ratio(figures.ratio(row, "retort", "retort-clear", "cpu_us"))]
            for row in (*HITS, MISS) if figures.there(row, "retort-clear")]
    for version in ("1.3", "1.2"):
        whole, resumed = (figures.median(f"{how}, TLS {version}", "retort", "cpu_us") for how in ("new connection", "resumed"))
        if whole and resumed:
            rows.append([f"CPU of a whole handshake by that of a resumed one, TLS {version}", table.ratio(whole / resumed)])
    return rows
