"""IPv6 on both sides."""

import socket

from harness import ports
from harness.checks import Skip, equal, same_bytes
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import memcheck


def need_ipv6():
    if not ports.has_ipv6():
        raise Skip("this machine has no IPv6 loopback")


@memcheck
def test_listener_and_origin(lab):
    need_ipv6()
    origin = Origin(lab, "::1")
    proxy = Retort(lab, ipv6=True, reverse={"/": origin.url("/")})
    same_bytes(proxy.get(origin.url("/bytes", n=5000)).body, origin.body(5000), "forward")
    equal(proxy.get("/text?say=r", host="h").body, b"r", "reverse")
    equal(proxy.log(2)[0]["origin"], origin.authority, "origin in the log")


def test_name_with_both_families(lab):
    """localhost may be ::1 and 127.0.0.1; the origin has only one of them."""
    need_ipv6()
    if len({entry[4][0] for entry in socket.getaddrinfo("localhost", 80)}) < 2:
        raise Skip("localhost has only one address in /etc/hosts")
    for address in ("::1", "127.0.0.1"):
        origin = Origin(lab, address)
        proxy = Retort(lab)
        equal(proxy.get(f"http://localhost:{origin.port}/text?say=x").body, b"x", f"from {address}")


def test_connect_to_ipv6(lab):
    need_ipv6()
    origin = Origin(lab, "::1")
    proxy = Retort(lab, extra=f"connect_ports = {{ {origin.port} }}")
    with proxy.wire() as wire:
        wire.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
        equal(wire.response("CONNECT").status, 200, "status")
        wire.send(b"GET /text?say=tunnel HTTP/1.1\r\nHost: x\r\n\r\n")
        equal(wire.response().body, b"tunnel", "body")
