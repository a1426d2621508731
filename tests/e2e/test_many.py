"""Thousands of connections at a time: what they cost while nothing happens, and that each gets its own bytes."""

import resource
import selectors
import socket

from harness.checks import equal, true
from harness.origin import Origin
from harness.process import status_field
from harness.retort import Retort
from harness.suite import heavy, seconds
from harness.wire import request

MOST, SPARE = 10000, 500
BYTES_EACH = 1500  # of memory, for a connection that waits for its next request


def raise_limit():
    """How many connections both sides may have open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(MOST, hard - SPARE) if hard != resource.RLIM_INFINITY else MOST


class Crowd:
    """Clients that ask together, each for an object of a length of its own."""

    def __init__(self, proxy, origin, sizes, count):
        self.proxy, self.origin, self.sizes = proxy, origin, sizes
        self.sockets = []
        for _ in range(count):
            self.sockets.append(socket.create_connection(proxy.forward, timeout=60))
            self.ask(len(self.sockets) - 1)

    def size(self, number):
        return self.sizes[number % len(self.sizes)]

    def ask(self, number):
        self.sockets[number].sendall(request("GET", self.origin.url("/bytes", n=self.size(number), cc="max-age=3600")))

    def collect(self):
        """Reads all answers; each must have as many bytes as its client asked for."""
        selector = selectors.DefaultSelector()
        waiting = {}
        for number, one in enumerate(self.sockets):
            waiting[number] = b""
            selector.register(one, selectors.EVENT_READ, number)
        while waiting:
            ready = selector.select(60)
            true(ready, f"{len(waiting)} clients got no whole answer")
            for key, _ in ready:
                piece = key.fileobj.recv(65536)
                true(piece, "a connection was closed")
                waiting[key.data] += piece
                head, end, body = waiting[key.data].partition(b"\r\n\r\n")
                if end and len(body) >= self.size(key.data):
                    equal(head.split(b"\r\n")[0], b"HTTP/1.1 200 OK", "status line")
                    equal(body == self.origin.body(self.size(key.data)), True, "the right bytes")
                    selector.unregister(key.fileobj)
                    del waiting[key.data]
        selector.close()

    def close(self):
        for one in self.sockets:
            one.close()


@seconds(180)
@heavy("ten thousand connections")
def test_ten_thousand_connections(lab):
    count = raise_limit()
    origin = Origin(lab)
    proxy = Retort(lab, client={"max_connections": count + SPARE})
    sizes = [160, 1024, 3000, 10240]
    for size in sizes:
        proxy.get(origin.url("/bytes", n=size, cc="max-age=3600"))
    before = status_field(proxy.pid, "VmRSS")
    crowd = Crowd(proxy, origin, sizes, count)
    try:
        crowd.collect()
        equal(proxy.counter("client_connections_open") >= count, True, "all of them are open")
        grown = (status_field(proxy.pid, "VmRSS") - before) * 1024
        true(grown <= count * BYTES_EACH, f"{count} idle connections take {grown} bytes")
        for number in range(count):
            crowd.ask(number)
        crowd.collect()
    finally:
        crowd.close()
