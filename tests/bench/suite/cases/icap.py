"""The ICAP client beside Squid's: RESPMOD of misses with a preview of 1024 bytes."""

from harness.checks import equal

from .. import origin, peers, plots, table
from ..icap_server import IcapServer
from ..requests import MISSES_ONLY, measure
from ..rounds import Case, Point

CONNECTIONS = 20
# service: which servers; None: the same without ICAP
SERVICES = {None: "no ICAP", "echo": "srv_echo", "gzip": "204 in the preview"}
SIZES = {"10 KB": 10_000, "100 KB": 100_000}


class Icap(Case):
    name, title = "icap", "RESPMOD beside Squid"

    def open(self):
        bench = self.bench
        self.icap = bench.opened(IcapServer(bench.lab))
        self.servers = {}
        for service in SERVICES:
            more = self.icap.section(service) + "adapt all { services = { s } }\n" if service else ""
            self.servers[service, "retort"] = peers.retort.start(bench, "retort-icap", more=more)
            uri = self.icap.uri(service) if service else None
            self.servers.update({(service, name): server for name, server in bench.start_peers(["squid"], icap=uri).items()})
        for size in SIZES.values():
            bench.origin.has(f"/miss/i/{size}.bin", origin.body(size))
            for server in self.servers.values():
                for _ in range(3):
                    equal(server.fetch(f"/miss/i/{size}.bin").body, origin.body(size), f"{server.name}: body")

    def points(self):
        return [Point(f"{title}, {SERVICES[service]}", name, self.measured(size, server))
                for title, size in SIZES.items() for (service, name), server in self.servers.items()]

    def measured(self, size, server):
        return lambda: measure(self, server, f"/miss/i/{size}.bin", CONNECTIONS, expect=MISSES_ONLY)

    @staticmethod
    def show(figures):
        rows = [[row, table.number(figures.median(row, "retort", "cpu_us")), table.number(figures.median(row, "squid", "cpu_us")),
                 table.ratio(figures.ratio(row, "squid", "retort", "cpu_us")),
                 table.ratio(figures.ratio(row, "retort", "squid", "rate"))] for row in figures.rows()]
        about = (f"{CONNECTIONS} connections; the origin, c-icap and wrk share a core, so CPU time decides. srv_echo answers "
                 "with 200 and 204 in turn.\n\n")
        return (about + table.markdown(["miss, no-store", "Retort: CPU us", "Squid: CPU us", "Squid's by Retort's",
                                        "Retort's requests/s by Squid's"], rows)
                + "\nRequests a second; microseconds of CPU time.\n\n" + table.matrix(figures))

    @staticmethod
    def plots(figures):
        return [plots.of_figures(figures, "icap", "RESPMOD of misses")]
