"""The two loads of the Traffic Server reports: ab with keepalive, and files of three sizes with a connection each."""

from .. import load, peers, table
from ..requests import observed
from ..rounds import Case, Point


class Mixes(Case):
    def open(self):
        self.paths = [self.bench.origin.has(f"/hit/{size}") for size in self.SIZES]
        self.servers = {"retort": peers.retort.start(self.bench), **self.bench.start_peers(peers.CACHES)}
        for size, path in zip(self.SIZES, self.paths):
            for server in self.servers.values():
                self.bench.warm(server, path, size)

    def see(self, server, ask):
        sample = observed(self.bench, server, ask)
        if server.kind == "retort" and sum(sample["errors"].values()):
            raise AssertionError(f"{sample['errors']} of {sample['requests']}")
        return sample

    @classmethod
    def show(cls, figures):
        rows = [[row, table.LABELS[server], *(table.number(figures.median(row, server, name), digits) for name, digits in cls.COLUMNS.values()),
                 figures.errors(row, server)] for row in figures.rows() for server in figures.servers(row) if figures.there(row, server)]
        return cls.about() + "\n\n" + table.markdown(["", "server", *cls.COLUMNS, "errors"], rows, texts=2)


class Ab(Mixes):
    name, title, most_rounds = "ab", "ab -k -c 250 -n 1000000", 1
    SIZES, CONNECTIONS, REQUESTS, QUICK, PEERS, SECONDS = (1000,), 250, 1_000_000, 20_000, 200_000, 40
    COLUMNS = {"requests": ("requests", 0), "requests/s": ("rate", 0), "CPU us": ("cpu_us", 1), "median ms": ("p50_ms", 0), "99 % ms": ("p99_ms", 0)}

    def points(self):
        return [Point("1 KB", name, lambda server=server: self.ask(server)) for name, server in self.servers.items()]

    def ask(self, server):
        count = self.QUICK if self.bench.quick else self.REQUESTS if server.kind == "retort" else self.PEERS
        sample = self.see(server, lambda: load.ab(server, self.paths[0], self.CONNECTIONS, count, self.SECONDS))
        if server.kind == "retort" and sample["requests"] < count:
            self.notes.append(f"time was over after {sample['requests']} requests to Retort")
        return sample

    @classmethod
    def about(cls):
        return (f"{cls.SIZES[0]} bytes, HTTP/1.0 with keepalive; a million requests to Retort, {cls.PEERS // 1000}k to the others, "
                f"{cls.SECONDS} s at the most. ab is the bottleneck: CPU time decides.")


class Closed(Mixes):
    name, title, most_rounds = "closed", "Files of 1, 5 and 10 KB, a connection each", 2
    SIZES, PARALLEL = (1024, 5120, 10240), (20, 1000)
    COLUMNS = {"requests/s": ("rate", 0), "CPU us": ("cpu_us", 1), "median ms": ("p50_ms", 2), "99 % ms": ("p99_ms", 1)}

    def points(self):
        return [Point(f"{parallel} parallel", name, lambda server=server, parallel=parallel: self.ask(server, parallel))
                for parallel in self.PARALLEL for name, server in self.servers.items()]

    def ask(self, server, parallel):
        return self.see(server, lambda: load.reader(self.bench.lab, server, self.paths, parallel, self.seconds, closes=True))

    @classmethod
    def about(cls):
        return "Each response is read to its end and each byte looked at; errors are those of all rounds: refused, broken off, wrong lengths, wrong bytes."
