#!/usr/bin/env python3
"""Measures Retort beside HAProxy, nginx, Traffic Server, Varnish, Squid and what no proxy can beat.

    bench.py BUILD [--only CASE]... [--rounds N] [--seconds S] [--quick] [--known] [--document]

The server under test runs on one core, alone; what asks (wrk and others), the origin (nginx) and
c-icap on the other. Rounds are interleaved: each takes every figure of a case once; medians are
shown, and ratios are medians of each round's ratio. CPU time is user and system time of all the
server's processes while it was asked, divided by the requests answered. The origin's own count tells
that hits are hits; the bytes of all responses are counted.

Results are kept in BUILD/bench/results.json (of --quick: quick.json); a case that is measured again
replaces its earlier self. --document makes the plots and the tables of docs/PERFORMANCE.md from them. Exit status 1 when Retort failed anywhere.
"""

import argparse
import concurrent.futures
import functools
import os
import shutil
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]
sys.dont_write_bytecode = True

from harness.lab import SOURCE, Lab  # noqa: E402
from suite import document, machine, origin, results, rounds  # noqa: E402
from suite.cases import CASES  # noqa: E402
from suite.load import Wrk  # noqa: E402
from suite.peers import CACHES  # noqa: E402
from suite.results import Figures  # noqa: E402
from suite.server import Missing  # noqa: E402


class Bench:
    """What cases work with: the laboratory, the origin, wrk, and the servers of the case that is on."""

    def __init__(self, lab, options):
        self.lab, self.quick = lab, options.quick
        self.seconds = options.seconds
        self.memory = tempfile.mkdtemp(prefix="retort-bench-", dir="/dev/shm")
        os.chmod(self.memory, 0o755)
        self.origin = origin.Origin(lab)
        self.wrk = Wrk(lab)
        self.servers, self.left_out = [], []

    def opened(self, server):
        self.servers.append(server)
        return server

    def stop_servers(self):
        """All at once: some take their time."""
        with concurrent.futures.ThreadPoolExecutor(max(len(self.servers), 1)) as pool:
            list(pool.map(lambda server: server.stop(), self.servers))
        self.servers, self.left_out = [], []

    def in_memory(self, name):
        """A directory of a file system in memory."""
        return os.path.join(self.memory, name)

    def start_peers(self, names, **options):
        """Those of the caches that are installed."""
        return self.start_some({name: functools.partial(CACHES[name].start, self, **options) for name in names})

    def start_some(self, starts):
        """Those of the programs that are installed: {name: what starts it}."""
        servers = {}
        for name, start in starts.items():
            try:
                servers[name] = start()
            except (Missing, AssertionError) as error:
                self.left_out.append(f"{name} is left out: {error}")
        return servers

    def warm(self, server, path, size, times=3, headers=None):
        """What is asked for is right, and then in the cache where it may be."""
        for _ in range(times):
            response = server.fetch(path, headers)
            if (response.status, response.body) != (200, origin.body(size)):
                raise AssertionError(f"{server.name} {path}: {response.status}, {len(response.body)} bytes")

    def close(self):
        shutil.rmtree(self.memory, ignore_errors=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the build tree")
    parser.add_argument("--only", action="append", choices=list(CASES), help="this case; may be given several times")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2, help="of each measurement of hits and misses; others take 1")
    parser.add_argument("--quick", action="store_true", help="one round of 1 s: to see that it works")
    parser.add_argument("--list", action="store_true", help="names the cases and measures none")
    parser.add_argument("--known", action="store_true", help="measures nothing: shows the results that are there")
    parser.add_argument("--document", action="store_true", help="writes the results into docs/")
    options = parser.parse_args()
    if options.quick:
        options.rounds = options.seconds = 1
    if options.quick and options.document:
        parser.error("figures of --quick are not for the document")
    return options


def show_known(path):
    for name, case in results.cases(results.read(path), CASES):
        print(document.section(name, case))
    return True


def is_good(case):
    """Peers may fail and make errors."""
    figures, peers = Figures(case), (*CACHES, "limit", "microhttpd")
    bad = [*figures.failures(), *(at for at in figures.known() if figures.errors(*at))]
    return not case["failure"] and all(server in peers for _, server in bad)


def measure(options, path):
    """True when Retort failed nowhere."""
    if len(machine.CORES) < 2:
        sys.exit("two cores are needed: one for the server under test, one for all else")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is stopped
    machine.raise_limits()
    os.sched_setaffinity(0, {int(machine.LOAD_CORE)})  # and of all that is started, but for the servers
    known, good = results.read(path), True
    lab = Lab(options.build, name="bench")
    bench = Bench(lab, options)
    try:
        known["machine"] = machine.description()
        known["settings"] = {"rounds": options.rounds, "seconds": options.seconds}
        for name in options.only or CASES:
            case = known["cases"][name] = rounds.measured(CASES[name](bench), options.rounds)
            case["taken"] = known["machine"]["taken"].split()[0]
            case["processor"] = known["machine"]["processor"]
            results.write(path, known)
            print(document.section(name, case), flush=True)
            good = good and is_good(case)
    finally:
        findings = lab.close()
        bench.close()
        for finding in findings:
            print(finding, file=sys.stderr)
    return good and not any("retort" in finding.split()[0] for finding in findings)


def main():
    options = parse_arguments()
    if options.list:
        print("\n".join(f"{name:14} {case.title}" for name, case in CASES.items()))
        return 0
    path = os.path.join(options.build, "bench", "quick.json" if options.quick else "results.json")
    good = show_known(path) if options.known else measure(options, path)
    if options.document:
        document.write(results.read(path), os.path.join(SOURCE, "docs"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
