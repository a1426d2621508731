"""The loads of old reports about Traffic Server: ab with keepalive, and files of three sizes with a connection each."""

from .. import load, peers, table
from ..requests import observed
from ..rounds import Case, Point

LATENCY = {"median ms": ("p50_ms", 2), "99 % ms": ("p99_ms", 1)}
USUAL = {"requests/s": ("rate", 0), "CPU us": ("cpu_us", 1), **LATENCY}


class Mix(Case):
    """Of files of some sizes; Retort may make no error at all."""

    sizes = columns = about = None

    def open(self):
        self.paths = [self.bench.origin.has(f"/hit/{size}") for size in self.sizes]
        self.servers = {"retort": peers.retort.start(self.bench), **self.bench.start_peers(peers.CACHES)}
        for size, path in zip(self.sizes, self.paths):
            for server in self.servers.values():
                self.bench.warm(server, path, size)

    def see(self, server, ask):
        sample = observed(self.bench, server, ask)
        if server.kind == "retort" and sum(sample["errors"].values()):
            raise AssertionError(f"{sample['errors']} of {sample['requests']}")
        return sample

    @classmethod
    def show(cls, figures):
        rows = [[row, table.LABELS[server], *table.medians(figures, row, server, cls.columns), figures.errors(row, server)]
                for row, server in figures.known()]
        return cls.about + "\n\n" + table.markdown(["", "server", *cls.columns, "errors"], rows, texts=2)


class Ab(Mix):
    name, title, most_rounds = "ab", "ab -k -c 250 -n 1000000", 1
    CONNECTIONS, REQUESTS, QUICK, OF_PEERS, SECONDS = 250, 1_000_000, 20_000, 100_000, 40
    sizes, columns = (1000,), {"requests": ("requests", 0), **USUAL}
    about = (f"1000 bytes, HTTP/1.0 with keepalive; a million requests to Retort, fewer to the others, {SECONDS} s at the most. "
             "ab is the bottleneck: CPU time decides.")

    def points(self):
        return [Point("1 KB", name, lambda server=server: self.ask(server)) for name, server in self.servers.items()]

    def ask(self, server):
        count = self.QUICK if self.bench.quick else self.REQUESTS if server.kind == "retort" else self.OF_PEERS
        sample = self.see(server, lambda: load.ab(server, self.paths[0], self.CONNECTIONS, count, self.SECONDS))
        if server.kind == "retort" and sample["requests"] < count:
            self.notes.append(f"time was over after {sample['requests']} requests to Retort")
        return sample


class Closed(Mix):
    name, title, most_rounds = "closed", "Files of 1, 5 and 10 KB, a connection each", 2
    PARALLEL = (20, 1000)
    sizes, columns = (1024, 5120, 10240), USUAL
    about = ("Each response is read to its end and each byte looked at; errors are those of all rounds: refused, broken off, "
             "wrong lengths, wrong bytes.")

    def points(self):
        return [Point(f"{parallel} parallel", name, lambda server=server, parallel=parallel: self.ask(server, parallel))
                for parallel in self.PARALLEL for name, server in self.servers.items()]

    def ask(self, server, parallel):
        return self.see(server, lambda: load.reader(self.bench.lab, server, self.paths, parallel, self.seconds, closes=True))
