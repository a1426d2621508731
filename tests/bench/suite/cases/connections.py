"""Hits on few connections and on ten thousand."""

from .. import machine, peers
from ..requests import HITS_ONLY, measure
from ..rounds import Point
from .growth import Growth

COUNTS, SIZE, PEERS = (10, 100, 1000, 10_000), 1000, ("haproxy", "nginx")
MANY, MANY_SECONDS = 10_000, 5  # to connect them takes a while


class Connections(Growth):
    name, title, axis = "connections", "Hits by the number of connections", "connections"
    about = f"{SIZE} bytes; to connect is counted too."

    def open(self):
        self.path = self.bench.origin.has(f"/hit/{SIZE}")
        caches = {"retort": peers.retort.start(self.bench), **self.bench.start_peers(PEERS)}
        for server in caches.values():
            self.bench.warm(server, self.path, SIZE)
        self.servers = {"limit": peers.plain.limit(self.bench, SIZE), **caches}

    def points(self):
        most = machine.descriptors() - 500
        return [Point(str(count), name, lambda count=count, server=server: self.measured(server, count))
                for count in COUNTS if count <= most for name, server in self.servers.items()]

    def measured(self, server, count):
        seconds = MANY_SECONDS if count >= MANY else None
        return measure(self, server, self.path, count, expect=HITS_ONLY, seconds=seconds)
