"""What a service costs inside the proxy and by ICAP: the same services, with the same settings and bytes, in either place."""

from harness.checks import contains, equal
from harness.services import module_path

from .. import origin, peers, plots, table
from ..icap_server import INJECTED, IcapServer
from ..machine import cpu_seconds
from ..requests import MISSES_ONLY, measure
from ..rounds import Case, Point
from .adaptation import page

SIZE = 10_000
NONE = "none"
UNMATCHED, NOTHING, HEADER, REWRITTEN, SMALLER = ("configured, not matched", "left alone after the preview", "header added",
                                                  "body rewritten (inject)", "body compressed (gzip)")
# what is done: (service, file name, fields of the request)
DONE = {UNMATCHED: ("gzip", "10000.txt", ()), NOTHING: ("gzip", "10000.bin", ()), HEADER: ("gzip", "10000.txt", ()),
        REWRITTEN: ("inject", "10000.html", ()), SMALLER: ("gzip", "10000.txt", ("Accept-Encoding: gzip",))}
INSIDE, ICAP = "inside", "by ICAP"
CLASS = "url_class c {{ path_regex = '{regex}' }}\nadapt c {{ services = {{ s }} }}\n"
MISS, SINGLE = "miss, 20 connections", "miss, 1 connection"
ROWS = {MISS: 20, SINGLE: 1}
FOLDER = "/miss/i/"


class Inside(Case):
    name, title = "inside", "Services inside the proxy, and by ICAP"

    def open(self):
        bench = self.bench
        self.icap = bench.opened(IcapServer(bench.lab))
        self.servers = {NONE: peers.retort.start(bench, "retort-none")}
        for done, (service, file, _) in DONE.items():
            bench.origin.has(FOLDER + file, page() if file.endswith("html") else origin.body(SIZE))
            for place in (INSIDE, ICAP):
                more = self.section(place, service) + CLASS.format(regex=r"\.none$" if done == UNMATCHED else "^" + FOLDER)
                self.servers[column(done, place)] = peers.retort.start(bench, f"retort-{place.split()[-1].lower()}", more=more)
            check(done, *(self.fetched(done, place) for place in (INSIDE, ICAP)))

    def section(self, place, service):
        if place == ICAP:
            return self.icap.section(service)
        more = f'helpers = "{self.icap.helperd.socket}"  settings = {{ Scope = "shared" }}  ' if service == "inject" else ""
        return (f'service s {{ module = "{module_path(self.bench.lab, service, "")}"  point = respmod_precache  bypass = false  '
                f'timeout = "5s"  preview = "1KB"  {more}}}\n')

    def fetched(self, done, place):
        _, file, fields = DONE[done]
        return self.servers[column(done, place)].fetch(FOLDER + file, dict(field.split(": ") for field in fields))

    def points(self):
        columns = [(NONE, "10000.txt", ()), *((column(done, place), file, fields) for done, (_, file, fields) in DONE.items()
                                              for place in (INSIDE, ICAP))]
        return [Point(row, name, self.measured(name, file, fields, connections))
                for row, connections in ROWS.items() for name, file, fields in columns]

    def measured(self, name, file, fields, connections):
        return lambda: self.with_helpers(lambda: measure(self, self.servers[name], FOLDER + file, connections, headers=fields,
                                                         expect=MISSES_ONLY))

    def with_helpers(self, ask):
        """all_us: with what c-icap, helperd and its helpers took for each request."""
        before = self.others_seconds()
        sample = ask()
        others = self.others_seconds() - before
        return {**sample, "all_us": sample["cpu_us"] + others / sample["requests"] * 1e6}

    def others_seconds(self):
        pids = [process.pid for process in (self.icap.cicap.process, self.icap.helperd.process)]
        return sum(cpu_seconds(pid) for pid in [*pids, *self.icap.cicap.children(), *self.icap.helperd.helpers()])

    @staticmethod
    def show(figures):
        def cells(row, name, digits=None):
            return [[done, *(table.number(figures.median(row, column(done, place), name), digits) for place in (INSIDE, ICAP))]
                    for done in (NONE, *DONE)]
        heads = [f"{what}, {place}" for what in ("CPU us of the proxy", "CPU us of all", "median ms, 1 connection") for place in (INSIDE, ICAP)]
        lines = zip(cells(MISS, "cpu_us"), cells(MISS, "all_us"), cells(SINGLE, "p50_ms", 3), strict=True)
        about = ("The same services with the same settings on both sides, on a miss of 10 KB; what they make is the same. CPU time is that of "
                 "one request with 20 connections: of the proxy alone, and with c-icap, retort-helperd and its helpers. c-icap and the "
                 "helper share a core with the origin and wrk.\n\n")
        return about + table.markdown(["the service", *heads], [[cpu[0], *cpu[1:], *both[1:], *time[1:]] for cpu, both, time in lines])

    @staticmethod
    def plots(figures):
        series = {place: [(done, figures.median(MISS, column(done, place), "all_us")) for done in (NONE, *DONE)] for place in (INSIDE, ICAP)}
        return [plots.Plot("inside", "A service inside the proxy, and by ICAP: a miss of 10 KB", "CPU time of all processes, µs", series)]


def column(done, place):
    return NONE if done == NONE else f"{done}, {place}"


def check(done, inside, icap):
    """Both answer alike, and the service has done its work."""
    for response in (inside, icap):
        equal(response.status, 200, f"{done}: status")
        equal(response.header("Vary"), "Accept-Encoding" if done in (HEADER, SMALLER) else None, f"{done}: Vary")
        equal(response.header("Content-Encoding"), "gzip" if done == SMALLER else None, f"{done}: Content-Encoding")
    equal(inside.body, icap.body, f"{done}: the bodies of both")
    if done == REWRITTEN:
        contains(inside.text(), INJECTED, f"{done}: body")
    elif done != SMALLER:
        equal(inside.body, origin.body(SIZE), f"{done}: body")
