"""What is no proxy: the limit (tests/bench/limit.c, with TLS tests/bench/tls_limit.c) and libmicrohttpd (tests/bench/canned.c), with canned responses."""

import signal

from harness import ports

from ..server import Server


def limit(bench, size, closes=False, **options):
    """The bare loop of epoll: one recv, one send."""
    port = ports.take()
    command = [bench.lab.built("tests/bench/limit"), port, size, *(["close"] if closes else [])]
    return bench.opened(Server(bench.lab, "limit", bench.lab.unique("limit"), command, port,
                               expected_status=-signal.SIGTERM, **options))


def tls_limit(bench, size, certificate):
    """The bare loop of epoll with a bare SSL on each socket."""
    port = ports.take()
    command = [bench.lab.built("tests/bench/tls_limit"), port, certificate, size]
    return bench.opened(Server(bench.lab, "limit", bench.lab.unique("tls_limit"), command, port,
                               expected_status=-signal.SIGTERM, secure=True))


def microhttpd(bench, **options):
    """libmicrohttpd: its own thread with epoll, responses made before.

    A path that ends in /N is answered with N bytes.
    """
    port = ports.take()
    return bench.opened(Server(bench.lab, "microhttpd", bench.lab.unique("microhttpd"),
                               [bench.lab.built("tests/bench/canned"), port], port, expected_status=-signal.SIGTERM,
                               **options))
