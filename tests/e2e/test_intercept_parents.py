"""Intercepted connections to origins that only a parent proxy reaches."""

from harness import ports
from harness.checks import contains, equal, true
from harness.interception import BUMP, Interception, allow
from harness.retort import Retort


def stored(connection, request):
    body = request.target.encode()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: max-age=600\r\n\r\n" % len(body) + body)


def behind(lab, *addresses, direct="never", **options):
    servers = ", ".join('"http://%s:%d"' % address for address in addresses)
    return Interception(lab, "www.example.com", answer=stored, extra=f"""
origins up {{ servers = {{ {servers} }}  credentials = "proxy:seekrit" }}
parent all {{ origins = up  direct = {direct} }}""", **options)


def test_bumped_through_a_parent(lab):
    """The parent opens tunnels and sees nothing else; the origin is verified through it before the client gets a certificate."""
    parent = Retort(lab, name="parent", extra=allow(1))
    site = behind(lab, parent.forward)
    parent.write_config(parent.text().replace(allow(1), allow(site.origin.port)))
    equal(parent.reload().status, 200, "reload")
    for path in ("/a", "/a", "/b"):
        equal(site.get("www.example.com", path).body, path.encode(), "body")
    equal([seen.target for seen in site.origin.requests], ["/a", "/b"], "requests at the origin")
    equal({name for name in site.origin.names}, {"www.example.com"}, "names in the handshakes")
    true(site.proxy.counter("intercept_bumped") == 3, "bumped")
    site.proxy.stop()
    equal({entry["method"] for entry in parent.entries(f":{site.origin.port}")}, {"CONNECT"}, "what the parent was asked")


def test_a_parent_that_refuses(lab):
    """The client gets the reason, and the origin is not taken for one that can't be trusted."""
    parent = Retort(lab, name="parent", extra=allow(1))
    site = behind(lab, parent.forward)
    answer = site.get("www.example.com")
    equal(answer.status, 502, "status")
    contains(answer.text(), "did not open the tunnel", "page")
    equal(site.proxy.counter("intercept_untrusted"), 0, "origins that can't be trusted")
    equal(site.origin.accepted, 0, "connections to the origin")


def test_parents_that_are_down(lab):
    """Another parent is asked; without one the client gets a page; with `direct = fallback` the origin itself is asked."""
    nobody, parent = ("127.0.0.1", ports.take()), Retort(lab, name="parent", extra=allow(1))
    site = behind(lab, nobody, parent.forward)
    parent.write_config(parent.text().replace(allow(1), allow(site.origin.port)))
    equal(parent.reload().status, 200, "reload")
    for path in ("/a", "/b", "/c"):
        equal(site.get("www.example.com", path).body, path.encode(), "body")
    alone = behind(lab, nobody)
    answer = alone.get("www.example.com")
    equal(answer.status, 503, "status")
    contains(answer.text(), "none of the parent proxies", "page")
    direct = behind(lab, nobody, direct="fallback")
    equal(direct.get("www.example.com", "/d").body, b"/d", "body")


def test_a_server_that_is_not_trusted_behind_a_parent(lab):
    parent = Retort(lab, name="parent", extra=allow(1))
    site = behind(lab, parent.forward, origin={"ca_file": "system"}, rules=BUMP)
    parent.write_config(parent.text().replace(allow(1), allow(site.origin.port)))
    equal(parent.reload().status, 200, "reload")
    answer = site.get("www.example.com")
    equal(answer.status, 502, "status")
    equal(site.origin.requests, [], "requests at the origin")
    equal(site.proxy.counter("intercept_untrusted"), 1, "origins that can't be trusted")
