"""Table 5 of the DataReactor paper again: what each thing that a service does costs in each place where it may run.

The service is tests/bench/service.c, the same bytes in every place: a worker of the proxy, a thread beside it, a process
beside it, c-icap on the same host.
"""

from harness.checks import equal
from harness.cicap import Cicap, Module

from .. import origin, peers, plots, table
from ..machine import cpu_seconds
from ..requests import HITS_ONLY, MISSES_ONLY, measure
from ..rounds import Case, Point

WORKER, THREAD, PROCESS, ICAP = "in the worker", "in a thread", "in a process", "by ICAP"
PLACES = (WORKER, THREAD, PROCESS, ICAP)
RUNS = {WORKER: "worker", THREAD: "thread", PROCESS: "process"}
NONE = "none"
UNMATCHED, SEEN, HEADER, READ, REWRITTEN = ("registered, not matched", "head read", "header added", "body read", "body rewritten")
# what is done: the word that the service knows it by
WORKS = {UNMATCHED: "header", SEEN: "see", HEADER: "header", READ: "read", REWRITTEN: "rewrite"}
SIZES = {"1 KB": 1000, "10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000}
USUAL = "10 KB"
CONNECTIONS = 20
TURNED = bytes(byte ^ 1 for byte in range(256))
MORE = ('{section}url_class c {{ path_regex = "{regex}" }}\nadapt c {{ services = {{ s }} }}\n')
LIMITS = 'point = respmod_precache  bypass = false  timeout = "5s"  keep = "2MB"'


class Table5(Case):
    name, title = "table5", "What a service does, and where it runs"
    most_rounds = 3

    def open(self):
        bench = self.bench
        module = bench.lab.built("tests/bench/.libs/srv_bench.so")
        self.icap = Cicap(bench.lab, [Module("bench", module)], threads=80, access_log=False)
        bench.opened(self.icap)
        for size in SIZES.values():
            for folder in ("/hit/5/", "/miss/5/"):
                bench.origin.has(folder + str(size))
        self.servers = {NONE: peers.retort.start(bench, "retort-none")}
        for place in PLACES:
            self.start(place)
        for column, server in self.servers.items():
            for size in SIZES.values():
                for folder in ("/miss/5/", "/hit/5/", "/hit/5/"):
                    check(server, column, folder, size)

    def start(self, place):
        """All of a place, or none: a proxy that does not know the place says so at the first."""
        for work in WORKS:
            more = MORE.format(section=self.section(place, WORKS[work]), regex=r"[.]none$" if work == UNMATCHED else "^/(hit|miss)/5/")
            try:
                self.servers[column_of(work, place)] = peers.retort.start(self.bench, "retort-five", more=more)
            except AssertionError as error:
                self.notes.append(f"{place}: left out: {str(error).strip().splitlines()[-1][:200]}")
                return

    def section(self, place, work):
        if place == ICAP:
            return f'icap_service s {{ uri = "{self.icap.uri("bench")}?work={work}"  {LIMITS}  max_connections = 64 }}\n'
        runs = "" if place == WORKER else f"runs = {RUNS[place]}  "
        return (f'service s {{ module = "{self.bench.lab.built("tests/bench/.libs/bench.so")}"  {runs}{LIMITS}  '
                f'settings = {{ Work = "{work}" }} }}\n')

    def points(self):
        """Only what tells something: what is not matched costs the same in every place, and so does a hit, since what a
        service made is stored."""
        def points(kind, titles, columns, folder="/miss/5/", connections=CONNECTIONS, expect=MISSES_ONLY):
            return [Point(row_of(kind, title), column, self.measured(column, folder + str(SIZES[title]), connections, expect))
                    for title in titles for column in columns if column in self.servers]
        far = [column_of(UNMATCHED, place) for place in PLACES[1:]]
        near = [column for column in self.servers if column not in far]
        changed = [NONE, *(column_of(work, place) for place in PLACES for work in (HEADER, READ, REWRITTEN))]
        at_hits = [NONE, column_of(UNMATCHED, WORKER), column_of(HEADER, WORKER)]
        others = [*(column_of(work, WORKER) for work in (SEEN, READ, REWRITTEN)), *(column_of(HEADER, place) for place in PLACES[1:])]
        return (points("miss", SIZES, near) + points("miss", [USUAL], far) + points("single", [USUAL], changed, connections=1)
                + points("hit", SIZES, at_hits, "/hit/5/", expect=HITS_ONLY) + points("hit", [USUAL], others, "/hit/5/", expect=HITS_ONLY))

    def measured(self, column, path, connections, expect):
        def ask():
            before = self.icap_seconds()
            sample = measure(self, self.servers[column], path, connections, expect=expect)
            return {**sample, "all_us": sample["cpu_us"] + (self.icap_seconds() - before) / sample["requests"] * 1e6}
        return ask

    def icap_seconds(self):
        return sum(cpu_seconds(pid) for pid in [self.icap.process.pid, *self.icap.children()])

    @staticmethod
    def show(figures):
        return ABOUT + costs(figures, "miss") + ABOUT_GOALS + goals(figures) + ABOUT_HITS + costs(figures, "hit") + ABOUT_SINGLE + times(figures)

    @staticmethod
    def plots(figures):
        row = row_of("miss", USUAL)
        series = {place: [(work, figures.median(row, column_of(work, place), "all_us")) for work in WORKS] for place in places(figures)}
        return [plots.Plot("table5", f"What a service does, and where it runs: a miss of {USUAL}", "CPU time of all processes, µs", series)]


ABOUT = ("After Table 5 of the DataReactor paper, which measured its API inside the proxy; here beside it the other places where the same "
         "service may run. Microseconds of CPU time for a request, of the proxy, its processes and c-icap together, with "
         f"{CONNECTIONS} connections; behind the sign, how much more than without any service: the median of each round's difference. Where "
         "the rounds do not agree on the sign, a question mark stands in its place: the difference is smaller than what the machine adds "
         "by itself. A process and a thread share the core "
         "of the worker, c-icap that of the origin and wrk. A body that is read is held back until all of it is there.\n\n")
ABOUT_GOALS = f"\nWhat it was built for, on a miss of {USUAL} in the worker; a difference on which the rounds do not agree counts as none.\n\n"
# (what is done, its goal in words, the most that it may take more: in microseconds, in parts of a miss)
GOALS = ((UNMATCHED, "at most 0.5 % of the miss more", None, 0.005), (HEADER, "at most 1.5 µs more", 1.5, None))
ABOUT_HITS = "\nThe same for hits. What a service made is stored, so a hit costs the same wherever the service runs.\n\n"
ABOUT_SINGLE = f"\nThe median time of a miss of {USUAL} with 1 connection, in milliseconds.\n\n"


def choice(figures):
    """For docs/SERVICES.md: what a service costs in each place, and when the place hardly matters. None: not known."""
    row, there = row_of("miss", USUAL), places(figures)

    def more(work, place):
        cost, _ = figures.difference(row, column_of(work, place), NONE, "all_us")
        return None if cost is None else max(cost, 0)
    if more(SEEN, WORKER) is None:
        return None
    rows = [[work, *(table.number(more(work, place), 1) for place in there)] for work in (SEEN, HEADER, READ, REWRITTEN)]
    rows.append(["the place is a tenth of the cost of a service that computes for",
                 *(table.NOTHING if more(SEEN, place) is None else table.number(9 * more(SEEN, place), 0) for place in there)])
    return table.markdown(["the service", *there], rows)


def row_of(kind, title):
    return {"miss": f"miss, {title}", "hit": f"hit, {title}", "single": f"miss, {title}, 1 connection"}[kind]


def column_of(work, place):
    return f"{work}, {place}"


def places(figures):
    known = figures.servers()
    return [place for place in PLACES if any(server.endswith(place) for server in known)]


def costs(figures, kind):
    """A line for each work in each place, a column for each size."""
    def cell(column, title):
        row = row_of(kind, title)
        cost = figures.median(row, column, "all_us")
        more, sure = figures.difference(row, column, NONE, "all_us")
        if cost is None or more is None:
            return ""
        if column == NONE:
            return table.number(cost)
        return f"{table.number(cost)} {more:+.1f}" if sure else f"{table.number(cost)} ?{abs(more):.1f}"
    columns = [NONE] + [column_of(work, place) for place in places(figures) for work in WORKS
                        if figures.there(row_of(kind, USUAL), column_of(work, place))]
    return table.markdown([kind, *SIZES], [[column, *(cell(column, title) for title in SIZES)] for column in columns])


def goals(figures):
    row, rows = row_of("miss", USUAL), []
    none = figures.median(row, NONE, "all_us")
    for work, goal, most_us, most_part in GOALS:
        more, sure = figures.difference(row, column_of(work, WORKER), NONE, "all_us")
        if more is None:
            continue
        most = most_us if most_part is None else most_part * none
        rows.append([work, goal, f"{more:+.2f}" if sure else f"?{abs(more):.2f}", f"{abs(more) / none * 100:.1f} %",
                     "yes" if not sure or more <= most else "no"])
    return table.markdown(["what is done", "goal", "µs more", "of the miss", "met"], rows, texts=2)


def times(figures):
    row = row_of("single", USUAL)
    there = places(figures)
    none = table.number(figures.median(row, NONE, "p50_ms"), 3)
    rows = [[work, *(table.number(figures.median(row, column_of(work, place), "p50_ms"), 3) for place in there)]
            for work in (HEADER, READ, REWRITTEN)]
    return table.markdown([f"none: {none}", *there], rows)


def check(server, column, folder, size):
    """The service has done its work, and nothing else."""
    response, work = server.fetch(folder + str(size)), column.split(", ")
    done = "" if UNMATCHED in column or column == NONE else work[0]
    equal(response.status, 200, f"{column}: status")
    equal(response.header("X-Bench"), "1" if done == HEADER else None, f"{column}: X-Bench")
    expected = origin.body(size)
    if response.body != (expected.translate(TURNED) if done == REWRITTEN else expected):
        raise AssertionError(f"{column}: a body of {size} bytes is not what the service makes")
