"""Interception: a CONNECT, a TLS handshake inside it with a certificate that the proxy makes, and one hit.

Each connection is a new one. The origin behind is an nginx with TLS on the load's core, which answers from its cache.
"""

import functools

from harness.certificates import Authority

from .. import load, peers, table
from ..requests import HITS_ONLY, check_origin, observed
from ..rounds import Case, Point
from ..server import NAME

CONNECTIONS, SIZE = 10, 1000
PATH = f"/hit/{SIZE}"
ROW = "CONNECT, TLS 1.3, one hit"


class Interception(Case):
    name, title = "interception", "Interception"
    most_seconds = 4

    def open(self):
        bench = self.bench
        root, authority = Authority(bench.lab, "origins"), Authority(bench.lab, "authority", path_length=0)
        bench.origin.has(PATH)
        self.origin = peers.CACHES["nginx"].start(bench, "tls-origin", certificate=root.leaf(NAME).both, beside=True)
        bench.warm(self.origin, PATH, SIZE)
        self.servers = {"retort": peers.retort.start_intercepting(bench, self.origin.port, authority, root.file),
                        **bench.start_some({"squid": functools.partial(
                            peers.CACHES["squid"].start_intercepting, bench, self.origin.port, authority, root.file)})}
        for server in self.servers.values():
            self.ask(server, 1)

    def ask(self, server, seconds):
        return load.tls_connect(self.bench.lab, server, PATH, CONNECTIONS, seconds, resumed=False, version="1.3",
                                tunnel=f"127.0.0.1:{self.origin.port}")

    def points(self):
        return [Point(ROW, name, functools.partial(self.measure, server)) for name, server in self.servers.items()]

    def measure(self, server):
        sample = observed(self.bench, server, lambda: self.ask(server, self.seconds))
        check_origin(server, PATH, HITS_ONLY, sample["asked"], sample["requests"])
        return sample

    @staticmethod
    def show(figures):
        about = (f"{CONNECTIONS} connections at a time, each with a CONNECT, a whole handshake with a certificate that the proxy "
                 f"made, and one hit of {SIZE} bytes. Squid opens a connection to the origin each time.")
        return table.usual(figures, about) + "\n" + table.standing(figures, ("squid",))
