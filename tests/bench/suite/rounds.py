"""Measures the points of a case in interleaved rounds.

A point is one figure to be taken: in which row of the table, of which server, and the call that takes
it. Each round takes every point once, every other round backwards, so that what disturbs the machine,
and what a point leaves behind, disturbs all of them. A point that fails is tried no more and keeps its
reason; the others go on.
"""

import collections
import sys
import time

Point = collections.namedtuple("Point", "row server measure")


class Case:
    """What all cases share. Where less tells enough, a case has fewer and shorter rounds than asked for; where a small
    difference is to be told, several times as many."""

    name = title = None
    times, most_rounds, most_seconds = 1, 100, 1

    def __init__(self, bench):
        self.bench = bench
        self.seconds = min(bench.seconds, self.most_seconds)
        self.notes = []

    def open(self):
        """Starts what is needed, and sees that it answers rightly."""

    def points(self):
        raise NotImplementedError

    @staticmethod
    def show(figures):
        """What the document says of the case's figures, below its title."""
        raise NotImplementedError

    @staticmethod
    def plots(figures):
        """Plots of them."""
        return []

    def close(self):
        self.bench.stop_servers()


def measured(case, rounds):
    """{"title", "notes", "failure" of the whole, "points": [{"row", "server", "samples", "failure"}], "seconds"}"""
    begin = time.monotonic()
    points, samples, failures, failure = [], collections.defaultdict(list), {}, None
    try:
        case.open()
        case.notes += case.bench.left_out
        points = case.points()
        for number in range(min(rounds * case.times, case.most_rounds)):
            for point in points[::-1 if number % 2 else 1]:
                take(point, samples, failures)
            print(f"{case.name}: round {number + 1} after {time.monotonic() - begin:.0f} s", file=sys.stderr)
    except Exception as error:  # the other cases go on
        failure = str(error)
        print(f"{case.name}: {error}", file=sys.stderr)
    finally:
        case.close()
    return {"title": case.title, "notes": case.notes, "failure": failure, "seconds": round(time.monotonic() - begin, 1),
            "points": [{"row": row, "server": server, "samples": samples[row, server],
                        "failure": failures.get((row, server))} for row, server, _ in points]}


def take(point, samples, failures):
    at = point.row, point.server
    if at in failures:
        return
    try:
        samples[at].append(rounded(point.measure()))
    except Exception as error:  # a peer that gives up loses its row, and only that
        failures[at] = str(error)
        print(f"{point.row}, {point.server}: {error}", file=sys.stderr)


def rounded(sample):
    """More digits than six mean nothing, and are a pain to read."""
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in sample.items()}
