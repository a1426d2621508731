"""What idle connections cost: memory before and after so many clients have asked once and stay."""

import ssl
import time

from .. import machine, peers, table
from ..rounds import Case, Point

CONNECTIONS, SIZE = 10_000, 1000
AT_ONCE = 100


class Idle(Case):
    name, title = "idle", "Idle keepalive connections"
    most_rounds = 1

    def open(self):
        self.count = min(CONNECTIONS, machine.descriptors() - 500)
        if self.count < CONNECTIONS:
            self.notes.append(f"{self.count} connections, for want of descriptors (ulimit -n)")
        self.path = self.bench.origin.has(f"/hit/{SIZE}")
        self.servers = {"retort": peers.retort.start(self.bench), **self.bench.start_peers(peers.CACHES)}
        for server in self.servers.values():
            self.bench.warm(server, self.path, SIZE)

    def points(self):
        return [Point(f"{self.count} connections", name, lambda server=server: self.weigh(server))
                for name, server in self.servers.items()]

    def weigh(self, server):
        return weigh(server, self.path, self.count)

    @staticmethod
    def show(figures):
        about = (f"{CONNECTIONS} connections with one hit of {SIZE} bytes each, then idle; memory of the processes, shared pages "
                 "counted in part.\n\n")
        return about + table.by_server(figures, {"MB before": ("before_mb", 1), "MB more": ("memory_mb", 1),
                                                 "KB a connection": ("each_kb", 1)})


def weigh(server, path, count, ask=None):
    """What so many connections that have had one response cost. `ask`: gives some of them, in place of HTTP/1.1."""
    before = server.memory_kb()
    connections = []
    try:
        while len(connections) < count:
            connections += (ask or asked)(server, path, min(AT_ONCE, count - len(connections)))
        time.sleep(1)  # what is freed late is freed
        after = server.memory_kb()
        alive = sum(is_open(connection) for connection in connections)
    finally:
        for connection in connections:
            connection.close()
    if alive < count:
        raise AssertionError(f"{alive} of {count} connections are open")
    return {"memory_mb": (after - before) / 1024, "each_kb": (after - before) / count, "before_mb": before / 1024}


def asked(server, path, count):
    """So many connections that have had their response."""
    connections = [server.connect() for _ in range(count)]
    for connection in connections:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
    for connection in connections:
        got = connection.recv(SIZE)
        if not got.startswith(b"HTTP/1.1 200 "):
            raise AssertionError(f"{server.name} {path}: {got[:100]!r}")
    return connections


def is_open(connection):
    """Reads what is there; False at the end of the stream."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
        return False
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False
