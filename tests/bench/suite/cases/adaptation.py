"""What adaptation costs: the columns of Table 5 of the DataReactor paper, with ICAP in the place of its API."""

from harness.checks import contains, equal

from .. import origin, peers, plots, table
from ..icap_server import INJECTED, IcapServer
from ..requests import HITS_ONLY, MISSES_ONLY, measure
from ..rounds import Case, Point

SIZE = 10_000
NONE, UNMATCHED = "none", "configured, not matched"
ECHO, NOTHING, HEADER, BODY = "srv_echo", "204 in the preview", "header added", "body rewritten"
# column: (service, file name)
COLUMNS = {NONE: (None, "10000.txt"), UNMATCHED: ("echo", "10000.txt"), NOTHING: ("gzip", "10000.bin"),
           ECHO: ("echo", "10000.bin"), HEADER: ("gzip", "10000.txt"), BODY: ("inject", "10000.html")}
CONFIG = "{section}url_class c {{ path_regex = '{regex}' }}\nadapt c {{ services = {{ s }} }}\n"
HIT, MISS, SINGLE = "hit, 20 connections", "miss, 20 connections", "miss, 1 connection"
ROWS = {HIT: ("/hit/a/", 20, HITS_ONLY), MISS: ("/miss/a/", 20, MISSES_ONLY), SINGLE: ("/miss/a/", 1, MISSES_ONLY)}


class Adaptation(Case):
    name, title = "adaptation", "What adaptation costs"

    def open(self):
        bench, self.servers = self.bench, {}
        self.icap = bench.opened(IcapServer(bench.lab))
        for column, (service, file) in COLUMNS.items():
            for folder in ("/hit/a/", "/miss/a/"):
                bench.origin.has(folder + file, page() if file.endswith("html") else origin.body(SIZE))
            more = "" if service is None else CONFIG.format(section=self.icap.section(service),
                                                            regex=r"\.none$" if column == UNMATCHED else r"^/(hit|miss)/a/")
            self.servers[column] = peers.retort.start(bench, "retort-adapt", more=more)
            for folder in ("/hit/a/", "/miss/a/"):
                check(self.servers[column], folder + file, column)

    def points(self):
        return [Point(row, column, self.measured(row, column)) for row in ROWS for column in COLUMNS]

    def measured(self, row, column):
        folder, connections, expect = ROWS[row]
        return lambda: measure(self, self.servers[column], folder + COLUMNS[column][1], connections, expect=expect)

    @staticmethod
    def show(figures):
        def cells(row, name, digits=None):
            return [table.number(figures.median(row, column, name), digits) for column in COLUMNS]

        def ratios(row, name):
            return [table.ratio(figures.ratio(row, column, NONE, name)) for column in COLUMNS]
        rows = [["hit: requests/s", *cells(HIT, "rate")],
                ["hit: CPU us", *cells(HIT, "cpu_us")],
                ["hit: CPU, times none", *ratios(HIT, "cpu_us")],
                ["hit: median ms", *cells(HIT, "p50_ms", 3)],
                ["miss: requests/s", *cells(MISS, "rate")],
                ["miss: CPU us", *cells(MISS, "cpu_us")],
                ["miss: CPU, times none", *ratios(MISS, "cpu_us")],
                ["miss: median ms, 1 connection", *cells(SINGLE, "p50_ms", 3)]]
        about = ("After Table 5 of the DataReactor paper, which measured an API inside the proxy: with ICAP in its place, a hit "
                 "costs the same in each column, since what a service made is stored; on a miss the service is asked. "
                 f"{SIZE // 1000} KB, 20 connections; the origin, c-icap and wrk share a core.\n\n")
        return about + table.markdown(["adaptation", *COLUMNS], rows)

    @staticmethod
    def plots(figures):
        series = {label: [(column, figures.median(row, column, "cpu_us")) for column in COLUMNS]
                  for label, row in (("hit", HIT), ("miss", MISS))}
        return [plots.Plot("adaptation", "What adaptation costs: 10 KB", "CPU time a request, µs", series)]


def page():
    head = b"<!DOCTYPE html><html><head><title>bench</title></head><body>"
    return head + origin.body(SIZE - len(head))


def check(server, path, column):
    """Three times: srv_echo answers in turn, and a hit is what was stored."""
    for _ in range(3):
        response = server.fetch(path)
        equal(response.status, 200, f"{column}: status")
        if column == BODY:
            contains(response.text(), INJECTED, f"{column}: body")
        else:
            equal(response.body, origin.body(SIZE), f"{column}: body")
        equal(response.header("Vary"), "Accept-Encoding" if column == HEADER else None, f"{column}: Vary")
