"""Reverse mode: map rules."""

from harness.checks import equal, one_of
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import request


@memcheck
def test_map_any_host(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")})
    equal(proxy.get("/text?say=hello", host="www.example.com").body, b"hello", "body")
    equal(proxy.log(1)[0]["origin"], origin.authority, "origin in the log")


@memcheck
def test_map_by_host_and_longest_path(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={
        "/": origin.url("/any/"), "/deep/": origin.url("/any-deep/"),
        "http://one.example/": origin.url("/one/"), "http://one.example/sub/": origin.url("/one-sub/")})
    cases = [("other.example", "/x", "/any/x"), ("other.example", "/deep/x", "/any-deep/x"),
             ("one.example", "/x", "/one/x"), ("one.example", "/sub/x", "/one-sub/x"),
             ("ONE.example", "/sub/y", "/one-sub/y"), ("one.example", "/deep/x", "/one/deep/x"),
             ("one.example", "/subway", "/one/subway")]
    for host, path, expected in cases:
        body = proxy.get(path, host=host).text()
        equal(body.split()[0], expected, f"{host}{path} at the origin")


def test_no_rule_matches(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"http://one.example/": origin.url("/")})
    response = proxy.get("/", host="two.example")
    one_of(response.status, (404, 421), "status")
    equal(origin.count("/"), 0, "requests at the origin")


def test_host_at_the_origin(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/own/": origin.url("/echo"),
                                 "/kept/": {"origin": origin.url("/echo"), "preserve_host": True}})
    equal(echoed(proxy.get("/own/a", host="www.example.com"))["header"]("host"), origin.authority, "Host")
    equal(echoed(proxy.get("/kept/a", host="www.example.com"))["header"]("host"), "www.example.com", "kept Host")


def test_absolute_form_in_reverse_mode(lab):
    """RFC 9112 §3.2.2: a server must accept absolute-form."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"http://one.example/": origin.url("/one/")})
    with proxy.wire(reverse=True) as wire:
        wire.send(request("GET", "http://one.example/x", {"Host": "two.example"}))
        equal(wire.response().text().split()[0], "/one/x", "path at the origin")


def test_query_is_kept(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/echo/")})
    equal(echoed(proxy.get("/a?x=1&y=%20", host="h"))["arguments"], [["x", "1"], ["y", " "]], "arguments")


def test_hosts_do_not_share_cached_pages(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": {"origin": origin.url("/echo/"), "preserve_host": True}})
    for host in ("a.example", "b.example"):
        seen = echoed(proxy.get("/page?cc=max-age%3D60", host=host))
        equal(seen["header"]("host"), host, "Host")


def test_missing_host_is_refused(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")})
    for head in (b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n"):
        with proxy.wire(reverse=True) as wire:
            wire.send(head)
            equal(wire.response().status, 400, f"status for {head!r}")
    equal(origin.count("/"), 0, "requests at the origin")


def test_connect_is_refused(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")})
    with proxy.wire(reverse=True) as wire:
        wire.send(request("CONNECT", origin.authority, host=origin.authority))
        one_of(wire.response().status, (400, 403, 404, 405, 501), "status")


def test_paths_can_not_climb_out_of_a_map(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/public": origin.url("/pub")})
    for path in ("/public/../secret", "/public/%2e%2e/secret", "/public/.%2E/", "/public/.."):
        equal(proxy.get(path, host="www.example.com").status, 404, path)
    for path in ("/public../secret", "/public..", "/public/..%2fsecret", "/public%2f..%5csecret", "/public/..;/secret"):
        equal(proxy.get(path, host="www.example.com").status, 400, path)
    equal(proxy.get("/public/a..b", host="www.example.com").status, 200, "dots inside a name")


def says(body):
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        return False
    return answer


def test_forward_and_reverse_do_not_share_what_is_stored(lab):
    """The same URL: the map's origin in one mode, the named server in the other."""
    mapped, named = RawOrigin(lab, says(b"mapped")), RawOrigin(lab, says(b"named"))
    proxy = Retort(lab, reverse={"/": mapped.url("/")})
    for _ in range(2):
        equal(proxy.get("/page", host=named.authority).body, b"mapped", "by the map")
        equal(proxy.get(named.url("/page")).body, b"named", "by its name")
    equal((len(mapped.requests), len(named.requests)), (1, 1), "requests: each mode hits its own")


def test_lists_in_several_lines_are_kept_whole(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url('/echo')} HTTP/1.1\r\nHost: {origin.authority}\r\nVia: 1.1 one\r\nVia: 1.1 two\r\n"
                  "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\n\r\n".encode())
        seen = echoed(wire.response())
    equal(seen["header"]("Via"), "1.1 one, 1.1 two, 1.1 retort", "Via at the origin")
    equal(seen["header"]("X-Forwarded-For"), "192.0.2.1, 192.0.2.2, 127.0.0.1", "X-Forwarded-For at the origin")
