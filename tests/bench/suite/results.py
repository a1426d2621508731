"""What was measured, as JSON, and the figures made of it.

    {"machine": {...}, "settings": {"rounds", "seconds"}, "cases": {NAME: {"title", "notes", "points", ...}}}

A point's figure is the median of its samples. A case that is measured again replaces its earlier self.
"""

import json
import os
import statistics

# A server that used less than this of its core was waiting: for the load generator, mostly.
BUSY = 0.93


def read(path):
    if not os.path.exists(path):
        return {"cases": {}}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, results):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as out:
        json.dump(results, out, indent=1, sort_keys=True)
        out.write("\n")
    os.rename(path + ".new", path)


def cases(known, names):
    """(name, case) of those known, in the order of the names."""
    return [(name, known["cases"][name]) for name in names if name in known["cases"]]


class Figures:
    """One case's points, asked by row and server."""

    def __init__(self, case):
        self.case = case
        self.points = {(point["row"], point["server"]): point for point in case["points"]}

    def rows(self):
        return list(dict.fromkeys(row for row, _ in self.points))

    def servers(self, row=None):
        return list(dict.fromkeys(server for at, server in self.points if row in (None, at)))

    def there(self, row, server):
        return bool(self.points.get((row, server), {}).get("samples"))

    def known(self):
        """(row, server) of all points that have samples."""
        return [at for at in self.points if self.there(*at)]

    def values(self, row, server, name):
        samples = self.points.get((row, server), {}).get("samples", [])
        return [sample[name] for sample in samples if sample.get(name) is not None]

    def median(self, row, server, name):
        values = self.values(row, server, name)
        return statistics.median(values) if values else None

    def ratio(self, row, server, other, name, others_name=None):
        """server's figure by other's, round by round: what disturbed one round disturbed both."""
        pairs = [(a, b) for a, b in zip(self.values(row, server, name), self.values(row, other, others_name or name)) if b]
        return statistics.median(a / b for a, b in pairs) if pairs else None

    def differences(self, row, server, other, name):
        """How much more than other's server's figure is, round by round."""
        return [a - b for a, b in zip(self.values(row, server, name), self.values(row, other, name))]

    def difference(self, row, server, other, name):
        """The median of the rounds' differences, and whether all rounds agree on what is more; None: not known."""
        rounds = self.differences(row, server, other, name)
        if not rounds:
            return None, False
        return statistics.median(rounds), min(rounds) > 0 or max(rounds) < 0

    def best(self, row, name, among, least):
        """Of `among`, the server with the least or the most."""
        known = [(self.median(row, server, name), server) for server in among if self.there(row, server)]
        return (min(known) if least else max(known))[1] if known else None

    def errors(self, row, server):
        return sum(sum(counts.values()) for counts in self.values(row, server, "errors"))

    def is_waiting(self, row, server):
        busy = self.median(row, server, "busy")
        return busy is not None and busy < BUSY

    def failures(self):
        return {at: point["failure"] for at, point in self.points.items() if point["failure"]}
