"""Hits on disk: a set many times larger than the memory given to the cache, any of it asked for.

What stands on the disk is in the kernel's page cache, where the server reads through it; Traffic
Server reads past it, and so from the device.
"""

from harness import wire

from .. import peers, table
from ..requests import HITS_ONLY, measure
from ..rounds import Case, Point

CONNECTIONS, MEMORY = 20, 8 << 20
# row: (path, how many, bytes of each)
ROWS = {"32 KB, any of 4000": ("/hit/disk/{}", 4000, 32 * 1024), "1 MB, any of 200": ("/hit/disk-large/{}", 200, 1 << 20)}


class Disk(Case):
    name, title = "disk", "Hits on disk"

    def open(self):
        bench = self.bench
        for path, count, size in ROWS.values():
            for number in range(count):
                bench.origin.has(path.format(number), body(number, size))
        self.servers = {"retort": peers.retort.start_on_disk(bench, memory=MEMORY),
                        **bench.start_peers(["nginx"], on_disk=True), **bench.start_peers(["trafficserver"], memory=MEMORY)}
        for server in self.servers.values():
            fill(server)

    def points(self):
        return [self.point(row, path, count, name, server) for row, (path, count, _) in ROWS.items()
                for name, server in self.servers.items()]

    def point(self, row, path, count, name, server):
        script = self.bench.wrk.any_of(row.split(",")[0].replace(" ", ""), path, count)
        return Point(row, name, lambda: measure(self, server, "/", CONNECTIONS, script=script, expect=HITS_ONLY))

    @staticmethod
    def show(figures):
        return table.usual(figures, f"{CONNECTIONS} connections, {MEMORY >> 20} MB of memory.")


def body(number, size):
    return (b"%011d\n" % number) * (size // 12) + b"x" * (size % 12)


def fill(server):
    """Every object is asked for, and was right; twice, as some store at the second time."""
    for path, count, size in list(ROWS.values()) * 2:
        with wire.Wire(server.address) as connection:
            for number in range(count):
                connection.send(wire.request("GET", path.format(number), host=f"127.0.0.1:{server.port}"))
                if connection.response().body != body(number, size):
                    raise AssertionError(f"{server.name}: {path.format(number)} is not what the origin has")
