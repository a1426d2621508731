"""What a service costs inside the proxy and by ICAP: the same services, with the same settings and bytes, in either place.

Beside two of them stands what their work alone takes, in a program that does nothing else.
"""

import itertools
import re
import subprocess

from harness.checks import contains, equal
from harness.services import module_path

from .. import origin, peers, plots, table
from ..icap_server import INJECTED, IcapServer
from ..load import Pace
from ..machine import SERVER_CORE, cpu_seconds, pinned
from ..requests import MISSES_ONLY, measure, observed
from ..rounds import Case, Point
from .adaptation import page

SIZE = 10_000
NONE = "none"
UNMATCHED, JUDGED, NOTHING, HEADER, REWRITTEN, SMALLER = (
    "configured, not matched", "request judged (adremover)", "left alone after the preview", "header added", "body rewritten (inject)",
    "body compressed (gzip)")
# what is done: (service, file name, fields of the request)
DONE = {UNMATCHED: ("gzip", "10000.txt", ()), JUDGED: ("adremover", "10000.txt", ()), NOTHING: ("gzip", "10000.bin", ()), HEADER: ("gzip", "10000.txt", ()),
        REWRITTEN: ("inject", "10000.html", ()), SMALLER: ("gzip", "10000.txt", ("Accept-Encoding: gzip",))}
INSIDE, ICAP = "inside", "by ICAP"
CLASS = "url_class c {{ path_regex = '{regex}' }}\nadapt c {{ services = {{ s }} }}\n"
MISS, SINGLE = "miss, 20 connections", "miss, 1 connection"
ROWS = {MISS: 20, SINGLE: 1}
FOLDER = "/miss/i/"
# The work alone: what does it, and the goal for what the proxy adds to it, in microseconds.
ALONE, ALONE_ROW = {SMALLER: ("zlib, called directly", 3), JUDGED: ("the rules of EasyList, asked for the same URL", 1)}, "alone"
QUESTIONS = 20_000
# Beside it, requests at one rate, a server with a service and one without: so both wake the others as often.
# How fast zlib is depends on where its tables lie, which is another place in each process: so each round asks another one.
PACED, RATE, PACED_CONNECTIONS, PACED_SECONDS, PACED_PROCESSES = "miss, at one rate", 12_000, 100, 3, 5


class Inside(Case):
    name, title = "inside", "Services inside the proxy, and by ICAP"

    def open(self):
        bench = self.bench
        self.icap = bench.opened(IcapServer(bench.lab))
        self.servers = {NONE: peers.retort.start(bench, "retort-none")}
        self.paced_servers = {NONE: self.several("")}
        for done, (service, file, _) in DONE.items():
            bench.origin.has(FOLDER + file, page() if file.endswith("html") else origin.body(SIZE))
            for place in (INSIDE, ICAP):
                more = self.section(place, service) + CLASS.format(regex=r"\.none$" if done == UNMATCHED else "^" + FOLDER)
                self.servers[column(done, place)] = peers.retort.start(bench, f"retort-{place.split()[-1].lower()}", more=more)
                if place == INSIDE and done in ALONE:
                    self.paced_servers[column(done, place)] = self.several(more)
            check(done, *(self.fetched(done, place) for place in (INSIDE, ICAP)))

    def several(self, more):
        return itertools.cycle([peers.retort.start(self.bench, "retort-paced", more=more) for _ in range(PACED_PROCESSES)])

    def section(self, place, service):
        point = "reqmod_precache" if service == "adremover" else "respmod_precache"
        if place == ICAP:
            return self.icap.section(service, point)
        more = {"inject": f'helpers = "{self.icap.helperd.socket}"  settings = {{ Scope = "shared" }}  ',
                "adremover": f'settings = {{ List = "{self.bench.lab.data("lists/easylist.txt")}" }}  '}.get(service, "")
        return (f'service s {{ module = "{module_path(self.bench.lab, service, "")}"  point = {point}  bypass = false  '
                f'timeout = "5s"  preview = "1KB"  {more}}}\n')

    def fetched(self, done, place):
        _, file, fields = DONE[done]
        return self.servers[column(done, place)].fetch(FOLDER + file, dict(field.split(": ") for field in fields))

    def points(self):
        columns = [(NONE, "10000.txt", ()), *((column(done, place), file, fields) for done, (_, file, fields) in DONE.items()
                                              for place in (INSIDE, ICAP))]
        alone = [Point(ALONE_ROW, SMALLER, self.zlib_alone), Point(ALONE_ROW, JUDGED, self.rules_alone)]
        paced = [Point(PACED, name, self.paced(name, file, fields)) for name, file, fields in columns if name in self.paced_servers]
        return alone + paced + [Point(row, name, self.measured(name, file, fields, connections))
                                for row, connections in ROWS.items() for name, file, fields in columns]

    def zlib_alone(self):
        text = self.bench.lab.write("10000.txt", origin.body(SIZE))
        seen = self.said_by([self.bench.lab.built("tests/bench/compress"), text])
        return {"us": float(re.search(r"^10000\.txt +gzip +([\d.]+)", seen, re.M).group(1))}

    def rules_alone(self):
        lab = self.bench.lab
        urls = self.servers[NONE].url(DONE[JUDGED][1].join((FOLDER, "\n"))) * QUESTIONS
        seen = self.said_by([lab.built("icap-services/retort-adlist"), "test", lab.data("lists/easylist.txt"), "--time"], urls)
        return {"us": int(re.search(r", (\d+) ns each", seen).group(1)) / 1000}

    @staticmethod
    def said_by(command, given=""):
        """On the core of the servers, as these work there."""
        return subprocess.run(pinned(SERVER_CORE, command), input=given, check=True, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT).stdout

    def measured(self, name, file, fields, connections):
        return lambda: self.with_helpers(lambda: measure(self, self.servers[name], FOLDER + file, connections, headers=fields,
                                                         expect=MISSES_ONLY))

    def paced(self, name, file, fields):
        def ask():
            server = next(self.paced_servers[name])
            return observed(self.bench, server, lambda: Pace(
                self.bench.lab, server, rate=RATE, seconds=PACED_SECONDS * self.seconds, connections=PACED_CONNECTIONS,
                miss=FOLDER + file, field="".join(fields)).finish())
        return ask

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
        return (about + table.markdown(["the service", *heads], [[cpu[0], *cpu[1:], *both[1:], *time[1:]] for cpu, both, time in lines])
                + ABOUT_ALONE + beyond(figures))

    @staticmethod
    def plots(figures):
        series = {place: [(done, figures.median(MISS, column(done, place), "all_us")) for done in (NONE, *DONE)] for place in (INSIDE, ICAP)}
        return [plots.Plot("inside", "A service inside the proxy, and by ICAP: a miss of 10 KB", "CPU time of all processes, µs", series)]


ABOUT_ALONE = ("\nWhat the proxy adds to the work itself, in microseconds of CPU time: how much more a request takes with the service inside than "
               "without, and how much of that the same work takes in a program that does nothing else, over and over. "
               f"Once both servers get {RATE} requests a second, once as many as they can answer. At full load the slower one wakes the "
               "origin and wrk out of their sleep more often, which costs it some microseconds a request on a virtual machine. At the "
               "rate both wake them as often, but the data of a service is in no cache of the processor when a request comes.\n\n")


def beyond(figures):
    rows = []
    for done, (what, goal) in ALONE.items():
        alone, cells = figures.median(ALONE_ROW, done, "us"), []
        for row in (PACED, MISS):
            more, _ = figures.difference(row, column(done, INSIDE), NONE, "cpu_us")
            rest = None if more is None or alone is None else more - alone
            cells += [table.number(more, 1), table.number(rest, 1)]
        rows.append([done, what, table.number(alone, 1), *cells, str(goal)])
    return table.markdown(["the service", "the work alone", "alone", f"more, at {RATE}/s", "beyond the work", "more, at full load", "beyond the work",
                           "goal"], rows, texts=2)


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
