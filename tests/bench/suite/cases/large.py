"""Large hits: 1 MB from memory; and one object of 1 GB that 100 connections read, every byte looked at."""

from harness import wire

from .. import load, peers, table
from ..origin import Digits
from ..requests import HITS_ONLY, measure, observed
from ..rounds import Case, Point

MEGABYTE, CONNECTIONS = 1_000_000, 20
GIGABYTE, QUICK, READERS, READ_SECONDS = 1_000_000_000, 50_000_000, 100, 6


class Large(Case):
    name, title = "large", "Large hits"

    def open(self):
        self.path = self.bench.origin.has(f"/hit/{MEGABYTE}")
        self.servers = {"retort": peers.retort.start(self.bench), **self.bench.start_peers(peers.CACHES)}
        for server in self.servers.values():
            self.bench.warm(server, self.path, MEGABYTE)

    def points(self):
        return [self.point(name, server) for name, server in self.servers.items()]

    def point(self, name, server):
        return Point("1 MB from memory", name, lambda: measure(self, server, self.path, CONNECTIONS, expect=HITS_ONLY))

    @staticmethod
    def show(figures):
        return table.usual(figures, f"{CONNECTIONS} connections.")


class Huge(Case):
    name, title = "huge", "One object of 1 GB"
    most_rounds = 1

    def open(self):
        self.size = QUICK if self.bench.quick else GIGABYTE
        self.path = self.bench.origin.has(f"/hit/{self.size}")
        self.servers = {"retort": peers.retort.start_on_disk(self.bench), **self.bench.start_peers(["nginx"], on_disk=True)}
        if self.bench.quick:
            self.notes.append(f"the object had {QUICK} bytes")

    def points(self):
        return [Point(f"{READERS} connections", name, lambda server=server: self.read(server))
                for name, server in self.servers.items()]

    def read(self, server):
        """Read twice to its end, to store it and to see it whole; then by all, until time is over."""
        for _ in range(2):
            digits = Digits()
            with wire.Wire(server.address) as connection:
                connection.send(wire.request("GET", self.path, host=f"127.0.0.1:{server.port}"))
                connection.response(sink=digits.take)
            if digits.size != self.size:
                raise AssertionError(f"{digits.size} bytes instead of {self.size}")
        seconds = self.seconds if self.bench.quick else READ_SECONDS
        seen = observed(self.bench, server, lambda: load.reader(self.bench.lab, server, [self.path], READERS, seconds))
        if sum(seen["errors"].values()) or not seen["least"] or seen["asked"] > 0:
            raise AssertionError(f"{seen['errors']}, least {seen['least']} bytes, {seen['asked']} requests at the origin")
        return {**seen, "gb_s": seen["bytes"] / seen["seconds"] / 1e9, "cpu_s_gb": seen["cpu_s"] / seen["bytes"] * 1e9,
                "memory_mb": server.memory_kb() / 1024}

    @staticmethod
    def show(figures):
        about = (f"From disk (page cache): {READERS} connections that begin at once and read for {READ_SECONDS} s. "
                 "Each byte was right.\n\n")
        return about + table.by_server(figures, {"GB/s": ("gb_s", 2), "CPU seconds a GB": ("cpu_s_gb", 2),
                                                 "memory, MB": ("memory_mb", 0)})
