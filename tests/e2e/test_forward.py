"""Forward mode: what a proxy sends on, and what it adds and leaves out."""

from harness.checks import contains, equal, lacks, one_of, same_bytes, true
from harness.http2 import Http2
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import Wire, request


def start(lab, **options):
    return Origin(lab), Retort(lab, **options)


def test_get(lab):
    origin, proxy = start(lab)
    response = proxy.get(origin.url("/bytes", n=10000))
    equal(response.status, 200, "status")
    same_bytes(response.body, origin.body(10000))
    entry = proxy.log(1)[0]
    equal((entry["method"], entry["status"], entry["client"].rsplit(":", 1)[0] or entry["client"]),
          ("GET", 200, "127.0.0.1"), "log entry")
    equal(entry["origin"], origin.authority, "origin in the log")


def test_methods_and_bodies(lab):
    origin, proxy = start(lab)
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FROB"):
        seen = echoed(proxy.fetch(method, origin.url("/echo"), body=b"some body"))
        equal((seen["method"], seen["body"]), (method, b"some body"), f"what the origin saw of {method}")


def test_orders_for_caches_go_no_further(lab):
    """PURGE and BAN, which an origin's own cache may obey because it is the proxy that asks."""
    origin = RawOrigin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()})
    for method in ("PURGE", "BAN", "purge", "Purge", "ban"):
        for url in (origin.url("/x"), "/x"):
            answer = proxy.fetch(method, url)
            equal(answer.status, 405, f"status of {method}")
            lacks(answer.header("Allow"), "PURGE", "Allow")
            contains(answer.text(), "retortctl cache purge", "the page")
    equal((len(origin.requests), proxy.counter("client_purges_refused")), (0, 10), "requests at the origin, and those counted")
    equal(proxy.fetch("PURGES", origin.url("/x")).status, 200, "another method")


def test_max_forwards(lab):
    """RFC 9110, 7.6.2: OPTIONS go so many proxies far and no further; of other methods the field says nothing."""
    origin, proxy = RawOrigin(lab), Retort(lab)
    for stated, status, sent in (("0", 501, None), ("1", 200, "0"), ("10", 200, "9"), ("none", 501, None)):
        equal(proxy.fetch("OPTIONS", origin.url(), {"Max-Forwards": stated}).status, status, f"status for {stated}")
        equal([seen.header("Max-Forwards") for seen in origin.requests], [sent] if sent else [], f"what the origin saw of {stated}")
        origin.requests.clear()
    equal(proxy.get(origin.url(), {"Max-Forwards": "0"}).status, 200, "status of a GET")
    equal(origin.requests[0].header("Max-Forwards"), "0", "what the origin saw of a GET")


def test_head(lab):
    origin, proxy = start(lab)
    heads = {"/length": b"Content-Length: 5000", "/chunked": b"Transfer-Encoding: chunked", "/neither": b"X-Nothing: 1"}
    raw = RawOrigin(lab, lambda c, r: c.send(b"HTTP/1.1 200 OK\r\n" + heads[r.target] + b"\r\n\r\n"))
    with proxy.wire() as wire:
        for path in heads:
            wire.send(request("HEAD", raw.url(path)))
            response = wire.response("HEAD")
            equal((response.status, response.body), (200, b""), f"HEAD {path}")
        wire.send(request("GET", origin.url("/bytes", n=5000)))
        same_bytes(wire.response().body, origin.body(5000))


def test_origin_sees_origin_form_and_host(lab):
    origin, proxy = start(lab)
    seen = echoed(proxy.get(origin.url("/echo", a="b c", d="%2f")))
    equal(seen["path"], "/echo", "path")
    equal(seen["arguments"], [["a", "b c"], ["d", "%2f"]], "arguments")
    equal(seen["header"]("host"), origin.authority, "Host")


def test_host_is_that_of_the_url(lab):
    """RFC 9112 §3.2.2: in absolute form the URL's host counts, not the Host field."""
    origin, proxy = start(lab)
    seen = echoed(proxy.get(origin.url("/echo"), {"Host": "elsewhere.example"}))
    equal(seen["header"]("host"), origin.authority, "Host")


@memcheck
def test_hop_by_hop_fields_end_here(lab):
    origin, proxy = start(lab)
    seen = echoed(proxy.get(origin.url("/echo"), {
        "Connection": "X-Private, close", "X-Private": "1", "Keep-Alive": "timeout=5",
        "Proxy-Connection": "keep-alive", "Proxy-Authorization": "Basic eDp5", "TE": "trailers",
        "Upgrade": "h2c", "X-Public": "2"}))
    names = [name for name, _ in seen["headers"]]
    for gone in ("x-private", "keep-alive", "proxy-connection", "upgrade"):
        lacks(names, gone, "fields at the origin")
    equal(seen["header"]("x-public"), "2", "X-Public")
    contains(seen["header"]("via") or "", "1.1 ", "Via")


def test_response_hop_by_hop_fields_end_here(lab):
    origin, proxy = start(lab)
    response = proxy.get(origin.url("/text", say="x", h=["Connection: X-Secret", "X-Secret: 1", "X-Open: 2",
                                                         "Keep-Alive: timeout=7", "Proxy-Authenticate: Basic"]))
    equal(response.header("X-Secret"), None, "X-Secret")
    equal(response.header("X-Open"), "2", "X-Open")
    one_of((response.header("Keep-Alive") or "").find("7"), (-1,), "Keep-Alive of the origin")


@memcheck
def test_via_in_the_response(lab):
    origin, proxy = start(lab)
    contains(proxy.get(origin.url("/text", say="x")).header("Via") or "", "1.1", "Via")


def test_connection_must_not_remove_what_frames(lab):
    """A client that names Content-Length or Host in Connection must not strip them."""
    origin, proxy = start(lab)
    seen = echoed(proxy.fetch("POST", origin.url("/echo"), {"Connection": "Content-Length, Host, Cache-Control",
                                                            "Cache-Control": "no-cache"}, b"12345"))
    equal((seen["body"], seen["header"]("host")), (b"12345", origin.authority), "what the origin saw")


def test_repeated_fields_stay_in_order(lab):
    origin, proxy = start(lab)
    response = proxy.get(origin.url("/text", h=["Set-Cookie: a=1", "Set-Cookie: b=2", "X-A: 1", "X-A: 2"]))
    equal(response.headers("Set-Cookie"), ["a=1", "b=2"], "Set-Cookie fields")
    equal(response.header("X-A"), "1, 2", "X-A")


def test_expect_100_continue(lab):
    origin, proxy = start(lab)
    with proxy.wire() as wire:
        wire.send(request("POST", origin.url("/echo"), {"Expect": "100-continue", "Content-Length": "5"}))
        interim = wire.head()
        equal(interim.status, 100, "first response")
        wire.send(b"later")
        equal(echoed(wire.response())["body"], b"later", "body at the origin")


def test_origin_form_without_host_is_refused(lab):
    """A forward listener that gets origin-form has no one to send it to."""
    _, proxy = start(lab)
    with proxy.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
        response = wire.response()
        true(400 <= response.status < 505, f"status {response.status}")


def test_https_and_other_schemes_are_refused(lab):
    _, proxy = start(lab)
    for url in ("https://127.0.0.1/", "ftp://127.0.0.1/x", "icap://127.0.0.1/x"):
        response = proxy.get(url)
        true(400 <= response.status < 600 and response.status != 500, f"{url}: status {response.status}")


def test_other_schemes_are_named(lab):
    """RFC 9110 §15.6.2: 501 where "the server does not support the functionality required". RFC 6455 §4.1 has clients ask for a WebSocket
    with "an absolute http/https URI"; ws and wss are none of these, and are not taken for them."""
    origin, proxy = start(lab)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for scheme in ("ws", "WSS", "ftp", "x+y-1.z"):
        for headers in ({}, upgrade):
            answer = proxy.get(f"{scheme}://{origin.authority}/text?say=x", headers)
            equal(answer.status, 501, f"{scheme}: status")
            contains(answer.text(), "only http:// and https:// URLs can be fetched", f"{scheme}: page")
            equal("CONNECT" in answer.text(), scheme.lower() in ("ws", "wss"), f"{scheme}: says how WebSockets are opened")
    if lab.has_part("http2"):
        with Http2(proxy.forward) as client:
            client.headers(1, [(":method", "GET"), (":scheme", "ws"), (":authority", origin.authority), (":path", "/text")])
            equal(client.response(1).status, 501, "by HTTP/2")
    for target in ("ws:/x/", "1ws://a/", "://a/", "w s://a/", "ws//a"):
        equal(proxy.get(target).status, 400, f"{target}: no URL")
    equal(origin.count("/text"), 0, "requests at the origin")


def test_user_info_in_url_is_refused(lab):
    origin, proxy = start(lab)
    equal(proxy.get(f"http://user:pw@{origin.authority}/", {"Host": "x"}).status, 400, "status")


def test_names_are_resolved(lab):
    origin, proxy = start(lab)
    equal(proxy.get(f"http://localhost:{origin.port}/text?say=named").body, b"named", "body")


def test_unknown_name_gives_an_error_page(lab):
    _, proxy = start(lab, origin={"dns_timeout": "2s"})
    response = proxy.get("http://no-such-host.invalid/")
    one_of(response.status, (502, 503, 504), "status")
    contains(response.text().lower(), "no-such-host.invalid", "page")


@memcheck
def test_long_url_and_big_head(lab):
    origin, proxy = start(lab)
    seen = echoed(proxy.get(origin.url("/echo", q="x" * 6000), {f"X-Field-{i}": "v" * 200 for i in range(60)}))
    equal(len(seen["arguments"][0][1]), 6000, "length of the argument")
    equal(sum(1 for name, _ in seen["headers"] if name.startswith("x-field-")), 60, "fields")


def test_default_port_and_fragments(lab):
    origin, proxy = start(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/text?say=x") + "#part"))
        one_of(wire.response().status, (200, 400), "status of a URL with a fragment")


def test_many_connections(lab):
    origin, proxy = start(lab, workers=2)
    wires = [Wire(proxy.forward) for _ in range(200)]
    for number, wire in enumerate(wires):
        wire.send(request("GET", origin.url("/text", say=f"n{number}")))
    for number, wire in enumerate(wires):
        equal(wire.response().text(), f"n{number}", "body")
        wire.close()


def test_responses_without_body(lab):
    origin, proxy = start(lab)
    with proxy.wire() as wire:
        for status in (204, 304):
            wire.send(request("GET", origin.url("/text", status=status, say="")))
            equal(wire.response().status, status, "status")


def test_status_codes_pass(lab):
    origin, proxy = start(lab)
    for status in (201, 202, 203, 206, 300, 301, 302, 307, 308, 400, 401, 403, 404, 410, 418, 429, 500, 502, 503, 599):
        response = proxy.get(origin.url("/text", status=status, say=f"s{status}"))
        equal((response.status, response.text()), (status, f"s{status}"), "status and body")
