"""Parent proxies: requests that go on to another proxy, and when they do not."""

import base64
import shutil

from harness import ports
from harness.checks import Skip, contains, equal, one_of, true, until
from harness.groups import gone, group, named, state
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.squid import Squid
from harness.suite import memcheck, seconds
from harness.wire import request


def child(lab, parents, rule="parent all { origins = up }", extra="", **options):
    """A forward proxy whose parents are at these addresses."""
    urls = [f"http://{host}:{port}" for host, port in parents]
    return Retort(lab, extra=f'name = "child"\n{group(urls, "up", **options)}{rule}\n{extra}')


def connect(proxy, authority):
    wire = proxy.wire()
    wire.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    return wire, wire.response("CONNECT")


@memcheck
def test_requests_go_to_the_parent(lab):
    origin = Origin(lab)
    parent = Retort(lab, name="parent", extra='name = "parent"')
    proxy = child(lab, [parent.forward])
    seen = echoed(proxy.get(origin.url("/echo", x="1")))
    equal(seen["header"]("Via"), "1.1 child, 1.1 parent", "Via at the origin")
    equal(seen["header"]("Host"), origin.authority, "Host at the origin")
    equal(proxy.last(1)["origin"], "%s:%d" % parent.forward, "origin in the child's log")
    equal(parent.last(1)["origin"], origin.authority, "origin in the parent's log")
    equal(proxy.fetch("POST", origin.url("/echo"), body=b"abc").status, 200, "a POST")


def test_what_the_parent_is_sent(lab):
    parent = RawOrigin(lab, named(b"parent"))
    proxy = child(lab, [parent.address])
    proxy.get("http://one.example/a?b")
    proxy.get("http://one.example:8080/")
    equal([(seen.target, seen.header("Host")) for seen in parent.requests],
          [("http://one.example/a?b", "one.example"), ("http://one.example:8080/", "one.example:8080")], "targets and hosts")


def test_connect_through_the_parent(lab):
    origin = Origin(lab)
    allow = f"connect_ports = {{ {origin.port} }}\n"
    parent = Retort(lab, name="parent", extra='name = "parent"\n' + allow)
    proxy = child(lab, [parent.forward], extra=allow)
    wire, answer = connect(proxy, origin.authority)
    equal(answer.status, 200, "status")
    wire.send(request("GET", "/text?say=tunnelled", host="x"))
    equal(wire.response().text(), "tunnelled", "through both")
    equal(state(proxy, "up")["http://%s:%d" % parent.forward]["active"], 1, "active while the tunnel is open")
    wire.close()
    equal(parent.entries(origin.authority)[0]["method"], "CONNECT", "method in the parent's log")
    until(lambda: state(proxy, "up")["http://%s:%d" % parent.forward]["active"] == 0, 5 * lab.patience, "it is let go")


def test_the_parent_refuses_a_tunnel(lab):
    origin = Origin(lab)
    parent = Retort(lab, name="parent", extra='name = "parent"')
    proxy = child(lab, [parent.forward], extra=f"connect_ports = {{ {origin.port} }}\n")
    _, answer = connect(proxy, origin.authority)
    equal(answer.status, 502, "status: the parent does not allow that port")
    contains(answer.text(), "the parent proxy did not open the tunnel", "page")


@seconds(90)
def test_squid_as_parent(lab):
    if shutil.which("squid") is None:
        raise Skip("squid")
    origin = Origin(lab)
    squid = Squid(lab, [])
    proxy = child(lab, [squid.address], extra=f"connect_ports = {{ {origin.port} }}\n")
    seen = echoed(proxy.get(origin.url("/echo")))
    contains(seen["header"]("Via"), "squid.test", "Via at the origin")
    equal(proxy.fetch("POST", origin.url("/echo"), body=b"x" * 100000).status, 200, "a POST")
    wire, answer = connect(proxy, origin.authority)
    equal(answer.status, 200, "CONNECT")
    wire.send(request("GET", "/text?say=tunnelled", host="x"))
    equal(wire.response().text(), "tunnelled", "through both")
    wire.close()


CREDENTIALS = "proxy:seekrit pass:word"
BASIC = "Basic " + base64.b64encode(CREDENTIALS.encode()).decode()


@seconds(90)
def test_squid_as_parent_wants_credentials(lab):
    if shutil.which("squid") is None:
        raise Skip("squid")
    origin = Origin(lab)
    squid = Squid(lab, [], credentials=CREDENTIALS)
    ports_allowed = f"connect_ports = {{ {origin.port} }}\n"
    proxy = child(lab, [squid.address], extra=ports_allowed, credentials=CREDENTIALS)
    seen = echoed(proxy.get(origin.url("/echo"), {"Proxy-Authorization": "Basic b3RoZXI6b3RoZXI="}))
    contains(seen["header"]("Via"), "squid.test", "Via at the origin")
    equal(seen["header"]("Proxy-Authorization"), None, "Proxy-Authorization at the origin")
    equal(proxy.fetch("POST", origin.url("/echo"), body=b"x" * 100000).status, 200, "a POST")
    wire, answer = connect(proxy, origin.authority)
    equal(answer.status, 200, "CONNECT")
    wire.send(request("GET", "/text?say=tunnelled", host="x"))
    equal(wire.response().text(), "tunnelled", "through both")
    wire.close()
    for options, why in (({}, "demands credentials"), ({"credentials": "proxy:wrong"}, "does not accept the credentials")):
        refused = child(lab, [squid.address], extra=ports_allowed, **options)
        for answer in (refused.get(origin.url("/echo")), connect(refused, origin.authority)[1]):
            equal(answer.status, 502, "status")
            contains(answer.text(), why, "page")
            equal(answer.header("Proxy-Authenticate"), None, "Proxy-Authenticate")


@memcheck
def test_credentials_are_for_the_parent_alone(lab):
    """With each request that it is asked, through maps too; not directly, and nowhere to be read."""
    origin, parent = Origin(lab), RawOrigin(lab, named(b"parent"))
    proxy = Retort(lab, reverse={"/app/": {"origin": "http://app.internal/", "parent": "up"}, "/own/": "up"},
                   extra=group([parent], "up", credentials=CREDENTIALS)
                   + "url_class local { path_regex = '^/echo' }\nparent local { direct = always }\nparent all { origins = up }\n")
    proxy.get("http://one.example/a", {"Proxy-Authorization": "Basic b3RoZXI6b3RoZXI="})
    proxy.get("/app/x")
    equal([seen.header("Proxy-Authorization") for seen in parent.requests], [BASIC] * 2, "at the parent")
    proxy.get("/own/x")
    equal(parent.requests[2].header("Proxy-Authorization"), None, "where it is asked as an origin")
    equal(echoed(proxy.get(origin.url("/echo")))["header"]("Proxy-Authorization"), None, "at an origin")
    settings = proxy.admin("GET", "/settings").text()
    contains(settings, '"credentials": "(not shown)"', "/settings")
    for where, text in (("/settings", settings), ("the log", proxy.process.log()), ("the access log", str(proxy.log(4)))):
        true("seekrit" not in text and BASIC[6:] not in text, f"no secret in {where}")


def test_a_parents_407_is_not_the_clients(lab):
    """It could not answer it, as what it shows goes on to nobody."""
    def answer(connection, _):
        connection.send(b'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="a"\r\nContent-Length: 2\r\n\r\nno')
        return False
    proxy = child(lab, [RawOrigin(lab, answer).address])
    got = proxy.get("http://one.example/")
    equal((got.status, got.header("Proxy-Authenticate")), (502, None), "answer")
    contains(got.text(), "demands credentials", "page")


@memcheck
def test_a_parent_is_gone(lab):
    origin = Origin(lab)
    parents = [RawOrigin(lab, named(b"p%d" % number)) for number in range(2)]
    proxy = child(lab, [parent.address for parent in parents], max_failures=1, balance="consistent_hash")
    seen = {proxy.get(f"http://one.example/{number}").text() for number in range(30)}
    equal(seen, {"p0", "p1"}, "both are asked")
    gone(parents[0])
    seen = {proxy.get(f"http://one.example/{number}").text() for number in range(30)}
    equal(seen, {"p1"}, "the other one takes all")
    gone(parents[1])
    equal(proxy.get(origin.url("/text", say="direct")).status, 502, "direct = never")
    equal(origin.count("/text"), 0, "requests at the origin")


def test_fallback(lab):
    origin = Origin(lab)
    dead = ("127.0.0.1", ports.take())
    proxy = child(lab, [dead], rule="parent all { origins = up  direct = fallback }", max_failures=1,
                  extra=f"connect_ports = {{ {origin.port} }}\n")
    for number in range(3):
        equal(proxy.get(origin.url("/text", say="direct", n=number)).text(), "direct", "answer")
    equal(proxy.fetch("POST", origin.url("/echo"), body=b"abc").status, 200, "a POST that was not sent before")
    wire, answer = connect(proxy, origin.authority)
    equal(answer.status, 200, "CONNECT")
    wire.send(request("GET", "/text?say=tunnelled", host="x"))
    equal(wire.response().text(), "tunnelled", "tunnel")
    wire.close()


def test_exceptions_by_class(lab):
    origin, parent = Origin(lab), RawOrigin(lab, named(b"parent"))
    rules = ("url_class local { path_regex = '^/local/' }\nparent local { direct = always }\n"
             "url_class images { path_regex = 'png$' }\nparent images { origins = up }\n")
    proxy = child(lab, [parent.address], rule=rules)
    proxy.get(origin.url("/local/a.png"))
    equal(proxy.get(origin.url("/a.png")).text(), "parent", "images go to the parent")
    proxy.get(origin.url("/page"))
    equal((origin.count("/local/a.png"), origin.count("/a.png"), origin.count("/page")), (1, 0, 1), "requests at the origin")
    equal(len(parent.requests), 1, "requests at the parent")


def test_errors_of_origins_are_not_the_parents(lab):
    parent = RawOrigin(lab, named(b"no", status=b"504 Gateway Timeout"))
    proxy = child(lab, [parent.address], max_failures=1)
    for number in range(3):
        equal(proxy.get(f"http://one.example/{number}").status, 504, "status")
    equal(state(proxy, "up")[parent.url("")]["state"], "up", "the parent's state")


def test_a_map_through_a_parent(lab):
    parent = RawOrigin(lab, named(b"parent"))
    proxy = Retort(lab, reverse={"/app/": {"origin": "http://app.internal/base/", "parent": "up"}},
                   extra=group([parent], "up"))
    equal(proxy.get("/app/x?y", host="www.example.com").text(), "parent", "answer")
    equal((parent.requests[0].target, parent.requests[0].header("Host")), ("http://app.internal/base/x?y", "app.internal"),
          "what the parent is asked")


def test_hits_do_not_ask_the_parent(lab):
    origin = Origin(lab)
    parent = Retort(lab, name="parent", extra='name = "parent"')
    proxy = child(lab, [parent.forward])
    url = origin.url("/text", say="kept", cc="max-age=60")
    for _ in range(3):
        equal(proxy.get(url).text(), "kept", "answer")
    equal([entry["result"] for entry in proxy.log(3)], ["MISS", "HIT", "HIT"], "results")
    equal(len(parent.log(1)), 1, "requests at the parent")
    one_of(state(proxy, "up")["http://%s:%d" % parent.forward]["requests"], (1,), "requests counted")
    true(proxy.counter("origin_failures") == 0, "failures")
