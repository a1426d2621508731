"""HAProxy: its cache, one thread, connections to the origin shared, splicing where it finds that useful."""

import signal

from harness import ports

from ..server import Server
from .programs import there

CONFIG = """
global
    nbthread 1
    maxconn 12000
    no strict-limits
defaults
    mode http
    timeout client 600s
    timeout server 600s
    timeout connect 5s
    option http-keep-alive
    option splice-auto
cache c
    total-max-size 64
    max-object-size 4000000
    max-age 86400
frontend f
    bind 127.0.0.1:{port} backlog 4096{secured}
    default_backend b
backend b
    http-request cache-use c
    http-response cache-store c
    http-reuse always
    server o 127.0.0.1:{origin}
"""


def start(bench, name="haproxy", *, certificate=None, http2=False):
    there("haproxy")
    name, port = bench.lab.unique(name), ports.take()
    path = bench.lab.write(name + ".conf", CONFIG.format(port=port, origin=bench.origin.port,
                                                           secured=f" ssl crt {certificate} alpn {'h2,' if http2 else ''}http/1.1" if certificate else ""))
    return bench.opened(Server(bench.lab, "haproxy", name, ["haproxy", "-db", "-f", path], port,
                               expected_status=-signal.SIGTERM, secure=certificate is not None))
