"""Table 6 of the DataReactor paper again: what services cost those who do not use them.

A steady load of hits and misses on the proxy, and beside it each service at work, by ICAP or inside the proxy. Proxy,
c-icap, retort-helperd and its helpers share a core; what asks and the origin have the other.
"""

import contextlib
import os
import subprocess

from harness.checks import equal, true
from harness.cicap import Cicap, Module
from harness.helperd import Helperd
from harness.services import module_path

from .. import peers, table
from ..load import Pace
from ..machine import SERVER_CORE
from ..requests import observed
from ..rounds import Case, Point

RATE, CONNECTIONS, HIT_SHARE = 4000, 100, 58  # the paper's hit ratio
HITS, HIT, MISS, SIZE = 1000, "/hit/six/%u/10000", "/miss/six/10000", 10_000
PHOTO, PAGE = "/miss/photo/photo.jpg", "/miss/page/page.html"
GZIP = "Accept-Encoding: gzip"
ALL_IT_CAN, ASKERS = 0, 8
PAPER_CAPACITY = 110  # transcodes a second of the paper's machine, idle
PROCESSES = 2

HELPERD = """
socket = "{{socket}}"
pool gray {{ command = {{ "{gray}" }}  processes = {processes}  queue = 64  deadline = "30s"  {terms} }}
"""
MODULE = 'service {name} {{ module = "{module}"  point = {point}  bypass = false  timeout = "30s"{more} }}\n'
SECTION = 'icap_service {name} {{ uri = "{uri}"  point = {point}  bypass = false  timeout = "30s"  max_connections = 60 }}\n'
CLASSES = {"adremover": "adapt all { services = { adremover } }\n",
           "gray": "url_class photos { path_regex = '^/miss/photo/' }\nadapt photos { services = { gray } }\n",
           "gzip": "url_class pages { path_regex = '^/miss/page/' }\nadapt pages { services = { gzip } }\n"}
NICE_19, MOST = "all it can, nice 19", 1.05
GROUP = "/sys/fs/cgroup/retort-table6"

NONE = "none"
# column: (service, helpers' terms, the other load's rate on the paper's machine)
COLUMNS = {
    NONE: (None, "", None),
    "ad remover": ("adremover", "", None),
    "25 transcodes/s": ("gray", "nice = 0", 25),
    "all it can, nice 0": ("gray", "nice = 0", ALL_IT_CAN),
    NICE_19: ("gray", "nice = 19", ALL_IT_CAN),
    "all it can, SCHED_IDLE": ("gray", 'nice = 19  scheduler = "idle"', ALL_IT_CAN),
    "all it can, cgroup weight 1": ("gray", f'nice = 0  cgroup = "{GROUP}"  cgroup_weight = 1', ALL_IT_CAN),
    "75 compressions/s": ("gzip", "", 75),
    "95 compressions/s": ("gzip", "", 95),
}


class Table6(Case):
    name, title = "table6", "Services beside the proxy's own work"
    place = f"The proxy, c-icap, retort-helperd and {PROCESSES} helpers share a core, what asks and the origin the other."
    most_seconds = 10

    def open(self):
        bench = self.bench
        self.seconds = 1 if bench.quick else max(4, bench.seconds)
        self.columns = [name for name in COLUMNS if "cgroup" not in name or self.has_weights()]
        self.put_files()
        self.servers = {}
        for column in self.columns:
            service, terms, _ = COLUMNS[column]
            more = self.stack(service, terms) + CLASSES[service] if service else ""
            self.servers[column] = peers.retort.start(bench, "retort-six", more=more)
        self.gray_length = self.check(PHOTO, "all it can, nice 0", len(self.photo))
        self.check(PAGE, "75 compressions/s", len(self.page), GZIP)
        for server in self.servers.values():
            self.warm(server)
        idle = self.beside("all it can, nice 0", ALL_IT_CAN, self.seconds).finish()["rate"]
        self.scale = idle / PAPER_CAPACITY
        self.notes.append(f"This machine makes {idle:.0f} photos gray a second when nothing else goes on, the paper's made "
                          f"{PAPER_CAPACITY}: 25, 75 and 95 a second are {25 * self.scale:.0f}, {75 * self.scale:.0f} and "
                          f"{95 * self.scale:.0f} here. A photo has {len(self.photo) / 1000:.0f} KB, a page to be compressed "
                          f"{len(self.page) / 1000:.0f} KB.")

    def has_weights(self):
        """cgroup v2 with the CPU controller, ours to use."""
        try:
            with open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii") as controllers:
                known = "cpu" in controllers.read().split()
        except OSError:
            known = False
        if not known or not os.access("/sys/fs/cgroup", os.W_OK):
            self.notes.append("cgroup weights: no cgroup v2 with the CPU controller here")
            return False
        return True

    def put_files(self):
        bench = self.bench
        self.photo = subprocess.run("jpegtopnm | pamscale 0.5 | pnmtojpeg -quality=90", shell=True, check=True,
                                    input=bench.lab.read_data("photos/china.jpg"), stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL).stdout
        self.page = bench.lab.read_data("html/management.html")[:20_000]
        bench.origin.has(PHOTO, self.photo)
        bench.origin.has(PAGE, self.page)
        bench.origin.has(MISS)
        for number in range(HITS):
            bench.origin.has(HIT.replace("%u", str(number)))

    def stack(self, service, terms):
        """c-icap and the helpers on the proxy's core; gives the section of the proxy's configuration."""
        socket = self.helpers(terms) if service == "gray" else None
        return self.section(service, "reqmod_precache" if service == "adremover" else "respmod_precache", socket)

    def helpers(self, terms):
        lab = self.bench.lab
        with on_core(SERVER_CORE):
            helperd = Helperd(lab, HELPERD.format(gray=lab.built("icap-services/gray-helper"), processes=PROCESSES, terms=terms))
        return self.bench.opened(helperd).socket

    def section(self, service, point, socket):
        lab = self.bench.lab
        options = {"gray": f"gray.Helperd {socket}\ngray.Deadline 30s", "gzip": "",
                   "adremover": f"adremover.List {lab.data('lists/easylist.txt')}"}[service]
        with on_core(SERVER_CORE):
            cicap = Cicap(lab, [Module(service, module_path(lab, service), options)], threads=80, access_log=False)
        self.bench.opened(Killed(cicap))
        return SECTION.format(name=service, uri=cicap.uri(service), point=point)

    def check(self, path, column, original, field=""):
        """What comes is what the service makes; its length."""
        response = self.servers[column].fetch(path, dict([field.split(": ")] if field else []))
        equal(response.status, 200, path)
        true(0 < len(response.body) < original, f"{path}: {len(response.body)} bytes of {original}")
        return len(response.body)

    def warm(self, server):
        for number in range(HITS):
            equal(len(server.fetch(HIT.replace("%u", str(number))).body), SIZE, f"{server.name}: a hit")

    def points(self):
        return [Point("all", column, lambda column=column: self.measure(column)) for column in self.columns]

    def measure(self, column):
        """The background's figures, and the rate of what goes on beside it."""
        server, rate = self.servers[column], COLUMNS[column][2]
        other = None if rate is None else self.beside(column, rate * self.scale, self.seconds + 1)
        sample = observed(self.bench, server, lambda: Pace(
            self.bench.lab, server, rate=RATE, seconds=self.seconds, connections=CONNECTIONS, share=HIT_SHARE, hits=HITS,
            hit=HIT, miss=MISS, length=SIZE).finish())
        if other is not None:
            seen = other.finish()
            true(not sum(seen["errors"].values()), f"{column}: {seen['errors']}")
            sample["beside_rate"] = seen["rate"]
        return sample

    def beside(self, column, rate, seconds):
        """What a compressed page comes to depends on how its pieces came."""
        is_page = COLUMNS[column][0] == "gzip"
        return Pace(self.bench.lab, self.servers[column], rate=rate, seconds=seconds, miss=PAGE if is_page else PHOTO,
                    connections=ASKERS if rate == ALL_IT_CAN else CONNECTIONS // 2, length=0 if is_page else self.gray_length,
                    field=GZIP if is_page else "")

    @classmethod
    def show(cls, figures):
        columns = figures.servers()

        def cells(name, digits=None):
            return [table.number(figures.median("all", column, name), digits) for column in columns]

        def ratios(name):
            return [table.ratio(figures.ratio("all", column, NONE, name)) for column in columns]
        rows = [["requests/s", *cells("rate", 0)],
                ["hit: mean ms", *cells("hit_ms", 3)],
                ["hit: mean, times none", *ratios("hit_ms")],
                ["hit: median ms", *cells("hit_p50_ms", 3)],
                ["hit: median, times none", *ratios("hit_p50_ms")],
                ["hit: 99 % ms", *cells("hit_p99_ms", 3)],
                ["hit: 99 %, times none", *ratios("hit_p99_ms")],
                ["miss: mean ms", *cells("miss_ms", 3)],
                ["transcodes or compressions/s", *cells("beside_rate", 0)]]
        about = (f"After Table 6 of the DataReactor paper: {RATE} requests a second at random times, {HIT_SHARE} % of them hits, of "
                 f"{SIZE // 1000} KB; beside them photos are made gray, {ASKERS} at a time as fast as they come or so many a second, or "
                 f"pages are compressed. The ad remover looks at each request. {cls.place}\n\n")
        return about + table.markdown(["", *columns], rows) + cls.goal(figures)

    @staticmethod
    def goal(figures):
        median, mean = (figures.ratio("all", NICE_19, NONE, name) for name in ("hit_p50_ms", "hit_ms"))
        if median is None:
            return ""
        met = "met" if mean <= MOST else "met by the median, not by the mean" if median <= MOST else "not met"
        why = "" if mean <= MOST else " The mean is larger because one hit in a hundred waits for the core for about a millisecond."
        return (f"\nGoal: beside helpers at nice 19 a hit takes at most {MOST} times what it takes beside none. It is {met}: the median is "
                f"{median:.2f} times, the mean {mean:.2f} times.{why}\n")


class Inside(Table6):
    """The services run in the proxy; the helpers are those that c-icap's services have."""

    name, title = "table6-inside", "Services inside the proxy beside its own work"
    place = f"The services run in the proxy, which shares a core with retort-helperd and {PROCESSES} helpers; what asks and the origin have the other."

    def section(self, service, point, socket):
        lab = self.bench.lab
        more = {"gray": f'  helpers = "{socket}"  settings = {{ Deadline = "30s" }}', "gzip": "",
                "adremover": f'  settings = {{ List = "{lab.data("lists/easylist.txt")}" }}'}[service]
        return MODULE.format(name=service, module=module_path(lab, service, ""), point=point, more=more)


class Killed:
    """A c-icap that is not waited for."""

    def __init__(self, cicap):
        self.cicap = cicap

    def stop(self):
        self.cicap.kill()


@contextlib.contextmanager
def on_core(core):
    """What is started meanwhile runs there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {int(core)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
