"""Interception from CONNECT to the requests inside: which connections are spliced, bumped and blocked, and what is seen of them."""

from harness.checks import equal
from harness.interception import Interception


def stored(connection, request):
    body = f"{request.method} {request.target}\n".encode()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: max-age=600\r\nAlt-Svc: h3=\":443\"\r\n\r\n" % len(body) + body)


def test_a_hit_needs_no_connection_to_the_origin(lab):
    site = Interception(lab, "www.example.com", answer=stored)
    first = site.get("www.example.com", "/a")
    equal(first.status, 200, "status")
    equal(first.header("Alt-Svc"), None, "Alt-Svc")
    made = len(site.origin.names)
    equal(site.get("www.example.com", "/a").body, first.body, "the stored response")
    equal(len(site.origin.names), made, "handshakes with the origin")
