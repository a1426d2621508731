#!/usr/bin/env python3
"""Is what measures right? In a second or two: the reader against right and wrong bytes, medians and ratios,
tables, plots' scripts and the generated part of a document, on results made up here.

    check.py        in a build tree, as make check runs it
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]
sys.dont_write_bytecode = True

from harness.checks import contains, equal, lacks, true  # noqa: E402
from harness.lab import Lab  # noqa: E402
from harness.raw_origin import RawOrigin  # noqa: E402
from suite import document, load, plots, table  # noqa: E402
from suite.cases import CASES, table5  # noqa: E402
from suite.origin import Digits, body  # noqa: E402
from suite.peers import plain  # noqa: E402
from suite.results import Figures  # noqa: E402


class Bench:
    """As much of one as servers need."""

    def __init__(self, lab):
        self.lab = lab

    @staticmethod
    def opened(server):
        return server


def sample(rate, cpu, busy=1.0, errors=0):
    return {"rate": rate, "cpu_us": cpu, "p50_ms": 1.0, "p99_ms": cpu, "busy": busy, "errors": {"timeout": errors}}


def point(row, server, *samples, failure=None):
    return {"row": row, "server": server, "samples": list(samples), "failure": failure}


MADE_UP = {
    "title": "Made up", "notes": ["a note"], "failure": None, "seconds": 60,
    "points": [point("1 KB", "limit", sample(200, 4), sample(100, 8), sample(210, 4)),
               point("1 KB", "retort", sample(180, 5, 0.5), sample(90, 10, 0.5), sample(189, 5, 0.5)),
               point("1 KB", "haproxy", sample(150, 6, errors=2), sample(80, 12), sample(150, 6)),
               point("1 KB", "squid", failure="it gave up")]}


def test_figures():
    figures = Figures(MADE_UP)
    equal(figures.median("1 KB", "retort", "rate"), 180, "a median")
    equal(round(figures.ratio("1 KB", "retort", "limit", "rate"), 6), 0.9, "a ratio, round by round")
    equal(figures.best("1 KB", "cpu_us", ["haproxy", "nginx", "squid"], least=True), "haproxy", "the best that is there")
    equal(figures.errors("1 KB", "haproxy"), 2, "errors")
    true(figures.is_waiting("1 KB", "retort") and not figures.is_waiting("1 KB", "limit"), "who waits")


def test_tables():
    figures = Figures(MADE_UP)
    contains(table.matrix(figures), "| 200; 4.00 | 180; 5.00 w | 150; 6.00 (2 errors) | failed |", "the matrix")
    contains(table.standing(figures, ["haproxy"]), "0.90", "of the limit")
    equal(table.failures(figures), ["1 KB, Squid: it gave up"], "failures")


def test_every_case_shows_nothing():
    """A case that failed before its first figure is shown all the same."""
    for name in CASES:
        contains(document.section(name, {**MADE_UP, "points": [], "failure": "nothing starts"}), "failed: nothing starts", name)


def test_plot():
    plot = plots.of_figures(Figures(MADE_UP), "made-up", "Made up")
    contains(plot.script("made-up.png"), '"1 KB" 5', "Retort's bar")
    lacks(plot.script("made-up.png"), "Squid", "the script")


def test_document():
    for name, marks in (("PERFORMANCE.md", (document.BEGIN, document.END)),
                        ("SERVICES.md", (document.PLACES_BEGIN, document.PLACES_END))):
        with open(os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", name), encoding="utf-8") as file:
            text = file.read()
        equal([text.count(mark) for mark in marks], [1, 1], f"marks in {name}")


def test_places():
    row, near, far = table5.row_of("miss", table5.USUAL), table5.WORKER, table5.ICAP
    costs = {table5.NONE: 20, table5.column_of(table5.SEEN, near): 21, table5.column_of(table5.SEEN, far): 60,
             table5.column_of(table5.READ, far): 90}
    case = {**MADE_UP, "points": [point(row, column, {"all_us": cost}) for column, cost in costs.items()]}
    text = table5.choice(Figures(case))
    contains(text, "1.0 |    40.0 |", "head read")
    contains(text, "– |    70.0 |", "body read, in one place only")
    contains(text, "9 |     360 |", "where the place is a tenth")
    equal(table5.choice(Figures(MADE_UP)), None, "without figures")


def read(lab, server, paths, closes=False, rate=None):
    """What the reader sees, for longer where the machine is too busy to answer at all."""
    for seconds in (0.2, 1, 5, 20):
        seen = load.reader(lab, server, paths, 4, seconds, closes, rate)
        if seen["requests"] or sum(seen["errors"].values()):
            break
    return seen


class Wrong(RawOrigin):
    """A server of wrong bytes, and where it is asked for one of 1 byte, of a wrong status."""

    kind = name = "wrong"

    def __init__(self, lab):
        super().__init__(lab, self.say)

    @staticmethod
    def say(connection, request):
        status = b"404" if request.target == "/1" else b"200"
        connection.send(b"HTTP/1.1 %s Said\r\nContent-Length: 5000\r\n\r\n" % status + b"x" * 5000)


def test_reader():
    lab = Lab(os.getcwd(), name="bench-check")
    try:
        right, limit, wrong = plain.microhttpd(Bench(lab)), plain.limit(Bench(lab), 5000), Wrong(lab)
        for closes in (False, True):
            seen = read(lab, right, ["/1024", "/5000"], closes)
            true(seen["requests"] > 0 and not sum(seen["errors"].values()), f"right bytes: {seen}")
        seen = read(lab, right, ["/1024", "/5000"], rate=100)
        true(0 < seen["requests"] <= 100 * seen["seconds"] and not sum(seen["errors"].values()), f"at a rate: {seen}")
        seen = read(lab, limit, ["/5000"])
        true(seen["requests"] > 0 and not sum(seen["errors"].values()), f"the limit's bytes: {seen}")
        true(read(lab, wrong, ["/5000"])["errors"]["contents"] > 0, "wrong bytes are noticed")
        true(read(lab, wrong, ["/4999"])["errors"]["lengths"] > 0, "a wrong length is noticed")
        true(load.response_length(right, "/1024") > 1024, "a response's length")
    finally:
        equal(lab.close(), [], "findings")


def test_pace():
    lab = Lab(os.getcwd(), name="bench-check")
    try:
        server = plain.microhttpd(Bench(lab))
        asks = {"rate": 200, "seconds": 1, "connections": 4, "share": 50, "hits": 1, "hit": "/1024?%u", "miss": "/5000"}
        seen = load.Pace(lab, server, **asks, length=5000).finish()
        true(0 < seen["requests"] < 400 and not sum(seen["errors"].values()), f"as many as asked for: {seen}")
        true(0 < seen["hit_ms"] and 0 < seen["miss_p99_ms"], f"times: {seen}")
        true(load.Pace(lab, server, **asks, length=4999).finish()["errors"]["lengths"] > 0, "a wrong length is noticed")
        seen = load.Pace(lab, Wrong(lab), **{**asks, "share": 0, "miss": "/1"}).finish()
        true(seen["errors"]["status"] > 0 and not seen["requests"], f"a wrong status is noticed, and counts as no answer: {seen}")
        seen = load.Pace(lab, server, **{**asks, "rate": 0, "share": 0}, length=5000).finish()
        true(seen["requests"] > 0 and "hit_ms" not in seen, f"as fast as it can: {seen}")
    finally:
        equal(lab.close(), [], "findings")


def test_digits():
    digits = Digits()
    digits.take(body(7))
    digits.take(body(20)[7:])
    try:
        digits.take(b"1")
    except AssertionError:
        return
    raise AssertionError("a wrong byte was not noticed")


def main():
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
