"""The ICAP client: against c-icap's own services, and against a server that misbehaves on demand."""

import os
import re
import threading
import time

from harness import ports
from harness.checks import between, contains, equal, lacks, one_of, same_bytes, true, until
from harness.cicap import Cicap, Module
from harness.icap import IcapServer, append, echo, unchanged, write_head
from harness.origin import Origin, echoed
from harness.raw_origin import PatternCheck, RawOrigin, pattern
from harness.retort import Retort, Service, measure
from harness.suite import heavy, memcheck, seconds
from harness.wire import Truncated, chunked, request

SIZES = [0, 1, 1023, 1024, 1025, 4096, 65536, 300000, 3000000]
QUICK = {"timeout": "700ms", "connect_timeout": "500ms", "down_min": "100ms", "down_max": "200ms"}


def start(lab, behave=unchanged, *, bypass=True, preview=1024, server=None, **options):
    """An origin, an ICAP server and a proxy between them."""
    icap = server or IcapServer(lab, behave, preview=preview)
    return Origin(lab), icap, Retort(lab, services=[Service("s", icap.uri(), bypass=bypass, **options)])


def fetch(proxy, origin, size, **more):
    return proxy.get(origin.url("/bytes", n=size, cc="no-store", **more))


def verdicts(proxy):
    proxy.log(1)
    return [entry["verdict"] for entry in proxy.last()["icap"]]


# c-icap's own services.

@memcheck
def test_srv_echo(lab):
    """It answers by 200 and 204 in turn."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=False)])
    for turn in range(2):
        for size in SIZES:
            for framing in ("/bytes", "/chunked"):
                same_bytes(proxy.get(origin.url(framing, n=size, cc="no-store", i=turn)).body, origin.body(size),
                           f"{framing} of {size}")
    until(lambda: cicap.count() >= 4 * len(SIZES), 5, "an ICAP transaction for each")
    equal({entry.status for entry in cicap.entries()}, {200, 204}, "c-icap's statuses")


@memcheck
def test_srv_ex206(lab):
    """It inserts a comment and refers to the rest of the original (206)."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("ex206", "srv_ex206.so")])
    proxy = Retort(lab, services=[Service("ex206", cicap.uri("ex206"), bypass=False)])
    page = "<html><head></head><body>text" + "x" * 5000 + "</body></html>"
    direct = RawOrigin(lab, lambda c, r: c.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"
                                                % (len(page), page.encode())))
    for _ in range(3):
        answer = proxy.get(direct.url())
        equal(answer.status, 200, "status")
        true(answer.body.endswith(b"x" * 5000 + b"</body></html>"), "the original's rest")
        contains(answer.body, b"ex206 C-ICAP service", "page")
        contains(answer.body, b"<head></head><body>", "page")
    for size in SIZES:
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"binary of {size}")


@memcheck
def test_chain_of_two_in_cicap(lab):
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so"), Module("ex206", "srv_ex206.so")])
    proxy = Retort(lab, services=[Service("one", cicap.uri("echo"), bypass=False),
                                  Service("two", cicap.uri("ex206"), bypass=False)])
    for size in SIZES:
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"body of {size}")
    entry = proxy.log(1)[0]
    equal([v["service"] for v in entry["icap"]], ["one", "two"], "services in the log")
    cicap.wait_entries(2, transaction=entry["id"])


@memcheck
def test_reqmod_through_srv_echo(lab):
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), point="reqmod_precache", bypass=False)])
    for size in SIZES[:-1]:
        seen = echoed(proxy.fetch("POST", origin.url("/echo"), body=pattern(size)))
        equal(seen["length"], size, "length at the origin")
        same_bytes(seen["body"], pattern(min(size, 65536)), "body at the origin")
    equal(echoed(proxy.get(origin.url("/echo", a="b")))["arguments"], [["a", "b"]], "GET through REQMOD")
    true(all(entry.method == "REQMOD" for entry in cicap.entries()), "methods")


# What a correct transaction looks like.

@memcheck
def test_options_first_and_once(lab):
    origin, icap, proxy = start(lab)
    for _ in range(3):
        fetch(proxy, origin, 100)
    equal((icap.options_count, icap.count), (1, 3), "OPTIONS and RESPMOD requests")


def test_options_again_after_its_ttl(lab):
    icap = IcapServer(lab, Options_TTL=1)
    origin, _, proxy = start(lab, server=icap)
    fetch(proxy, origin, 100)
    time.sleep(1.5)
    fetch(proxy, origin, 100)
    until(lambda: icap.options_count >= 2, 5 * lab.patience, "OPTIONS after the TTL")


def test_options_without_ttl_is_not_repeated(lab):
    icap = IcapServer(lab, Options_TTL=None)
    origin, _, proxy = start(lab, server=icap)
    fetch(proxy, origin, 100)
    time.sleep(1.2)
    fetch(proxy, origin, 100)
    equal(icap.options_count, 1, "OPTIONS requests")


@memcheck
def test_what_is_sent(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    fetch(proxy, origin, 3000, h=["X-From-Origin: 1", "Connection: X-Hop", "X-Hop: 1"])
    seen = icap.transactions[0]
    equal(seen.request.uri, icap.uri(), "URI")
    equal(seen.request.header("Host"), icap.authority, "Host")
    equal(seen.http_request.start, f"GET {origin.url('/bytes', n=3000, cc='no-store', h=['X-From-Origin: 1', 'Connection: X-Hop', 'X-Hop: 1'])} HTTP/1.1",
          "encapsulated request line")
    equal(seen.http_response.start.split(" ")[1], "200", "encapsulated status")
    equal(seen.http_response.header("X-From-Origin"), "1", "origin's field")
    equal(seen.http_response.header("X-Hop"), None, "hop-by-hop field (RFC 3507 §4.4.2)")
    equal(seen.http_response.header("Transfer-Encoding"), None, "Transfer-Encoding")
    true(seen.request.header("X-Transaction-ID"), "X-Transaction-ID")


def test_client_ip_where_it_is_wanted(lab):
    for wanted, expected in (("X-Client-IP", "127.0.0.1"), (None, None)):
        icap = IcapServer(lab, X_Include=wanted)
        origin, _, proxy = start(lab, server=icap)
        fetch(proxy, origin, 100)
        if wanted:
            equal(icap.transactions[0].request.header("X-Client-IP"), expected, "X-Client-IP")


def test_proxy_credentials_are_not_encapsulated(lab):
    icap = IcapServer(lab, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache")
    proxy.get(origin.url("/text", say="x"), {"Proxy-Authorization": "Basic eDp5", "Connection": "X-Hop", "X-Hop": "1"})
    seen = icap.transactions[0].http_request
    equal((seen.header("Proxy-Authorization"), seen.header("X-Hop")), (None, None), "hop-by-hop fields")


@memcheck
def test_preview_sizes(lab):
    """Never more than the service's Preview; ieof exactly when the body fits."""
    for limit in (0, 1, 1024, 4096):
        icap = IcapServer(lab, append(b"!"), preview=limit)
        origin, _, proxy = start(lab, server=icap, bypass=False)
        for size in (0, 1, limit - 1, limit, limit + 1, limit + 5000):
            if size < 0:
                continue
            for framing in ("/bytes", "/chunked"):
                body = proxy.get(origin.url(framing, n=size, cc="no-store")).body
                seen = icap.transactions[-1]
                if not seen.has_body:
                    equal(size, 0, "size of a message without body")
                    continue
                true(len(seen.preview) <= limit, f"preview {limit}, body {size}: {len(seen.preview)} bytes sent")
                between(seen.preview_limit, min(size, limit), limit, f"preview {limit}, body {size}: Preview in the request")
                if size <= limit:
                    equal(seen.preview, origin.body(size), f"preview {limit}, {framing} {size}: preview")
                if size > limit:
                    equal((len(seen.preview), seen.ieof), (limit, False), f"preview {limit}, {framing} {size}: length, ieof")
                elif size < limit:
                    true(seen.ieof, f"preview {limit}, {framing} {size}: ieof")
                same_bytes(seen.body, origin.body(size), f"preview {limit}, {framing} {size}: body at the service")
                same_bytes(body, origin.body(size) + b"!", f"preview {limit}, {framing} {size}: body at the client")


def test_no_preview_where_none_is_wanted(lab):
    icap = IcapServer(lab, append(b"!"), preview=None, Transfer_Preview=None)
    origin, _, proxy = start(lab, server=icap, bypass=False)
    same_bytes(fetch(proxy, origin, 5000).body, origin.body(5000) + b"!", "body")
    equal(icap.transactions[0].preview, None, "preview")


def test_transfer_ignore(lab):
    """Types that the service does not want are not sent to it; the query does not count."""
    icap = IcapServer(lab, append(b"!"), Transfer_Ignore="zip, JPG", Transfer_Preview="*")
    origin, _, proxy = start(lab, server=icap)
    for path, asked in (("/text/a.zip", 0), ("/text/a.ZIP", 0), ("/text/a.jpg", 0), ("/text/a.html", 1), ("/text/a.txt?f=.zip", 1)):
        before = icap.count
        proxy.get(origin.url(path) + ("&" if "?" in path else "?") + "say=abc&cc=no-store")
        equal(icap.count - before, asked, f"ICAP transactions for {path}")


@memcheck
def test_204_in_and_outside_the_preview(lab):
    def behave(_icap, transaction):
        if transaction.preview is None:
            transaction.finish_body()
        transaction.send_204()
    for preview in (1024, None):
        icap = IcapServer(lab, behave, preview=preview)
        origin, _, proxy = start(lab, server=icap, bypass=False)
        for size in (100, 5000, 60000):
            same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"Preview {preview}, body of {size}")
        if preview is None:
            true(all(t.allows(204) for t in icap.transactions), "Allow: 204 for bodies that fit the limit")
        equal(verdicts(proxy), ["UNMODIFIED"], "verdicts")


def test_204_after_100(lab):
    """The service reads all of it and then says: unchanged."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_204()
    origin, icap, proxy = start(lab, behave, bypass=False)
    for size in (2000, 60000, 500000):
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"body of {size}")
        true(icap.transactions[-1].allows(204), f"Allow: 204 for {size}")


def test_body_bigger_than_the_204_limit(lab):
    """Without Allow: 204 the service has to send it all back."""
    def behave(icap, transaction):
        body = transaction.finish_body()
        if transaction.allows(204):
            transaction.send_204()
        else:
            transaction.send_200(transaction.response_head(), body)
    origin, icap, proxy = start(lab, behave, bypass=False, keep="64KB", preview=1024)
    for size in (1000, 65536, 300000, 5000000):
        for framing in ("/bytes", "/chunked"):
            same_bytes(proxy.get(origin.url(framing, n=size, cc="no-store")).body, origin.body(size), f"{framing} {size}")


@memcheck
def test_modified_head_and_body(lab):
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(b"HTTP/1.1 203 Changed\r\nX-New: 1\r\nContent-Type: text/x\r\n\r\n", b"all new")
    origin, _, proxy = start(lab, behave)
    url = origin.url("/bytes", n=5000, cc="max-age=60")
    answer = proxy.get(url)
    equal((answer.status, answer.header("X-New"), answer.header("Content-Type"), answer.body),
          (203, "1", "text/x", b"all new"), "answer")
    equal(answer.header("Cache-Control"), None, "a field the service left out")


@memcheck
def test_adapted_response_is_what_the_cache_stores(lab):
    origin, icap, proxy = start(lab, append(b" adapted"))
    url = origin.url("/text", say="page", cc="max-age=60")
    for _ in range(3):
        equal(proxy.get(url).text(), "page adapted", "body")
    equal((origin.count("/text"), icap.count), (1, 1), "origin requests, ICAP transactions")
    equal(proxy.results("/text", 3), ["MISS", "HIT", "HIT"], "results")


def test_revalidated_objects_stay_adapted(lab):
    origin, icap, proxy = start(lab, append(b" adapted"))
    url = origin.url("/text", say="page", cc="max-age=0", etag='"v"')
    for _ in range(3):
        equal(proxy.get(url).text(), "page adapted", "body")
    lacks([t.http_response.start.split()[1] for t in icap.transactions], "304", "statuses that were adapted")


@memcheck
def test_chain_order(lab):
    one, two = IcapServer(lab, append(b"1")), IcapServer(lab, append(b"2"))
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("one", one.uri()), Service("two", two.uri())], adapt={"all": ["two", "one"]})
    equal(proxy.get(origin.url("/text", say="x")).text(), "x21", "body")


def test_classes_choose_services(lab):
    one, two = IcapServer(lab, append(b"1")), IcapServer(lab, append(b"2"))
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("one", one.uri()), Service("two", two.uri())],
                   url_classes={"pages": {"path_regex": r"\.html$"}, "texts": {"content_type": "text/x"}},
                   adapt={"pages": ["one"], "texts": ["two"]})
    for path, kind, expected in (("/text/a.html", "a/b", "x1"), ("/text/b", "a/b", "x"), ("/text/c", "text/x", "x2"),
                                 ("/text/d.html", "text/x", "x12")):
        equal(proxy.get(origin.url(path, say="x", type=kind)).text(), expected, f"body of {path} as {kind}")


def test_head_and_bodyless_responses(lab):
    origin, icap, proxy = start(lab, echo, bypass=False)
    answer = proxy.fetch("HEAD", origin.url("/bytes", n=100))
    equal((answer.status, answer.body), (200, b""), "HEAD")
    for status in (204, 304):
        equal(proxy.get(origin.url("/text", status=status, say="")).status, status, "status")


@memcheck
def test_connections_are_reused(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    for _ in range(20):
        fetch(proxy, origin, 3000)
    true(icap.accepted <= 3, f"{icap.accepted} connections for 20 transactions and OPTIONS")


def test_connections_are_capped(lab):
    """max_connections holds; those that wait are served in turn."""
    busy, most, lock = [0], [0], threading.Lock()

    def behave(icap, transaction):
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.05)
        with lock:
            busy[0] -= 1
        transaction.send_204()
    origin, icap, proxy = start(lab, behave, max_connections=3, bypass=False)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(fetch(proxy, origin, 100).status)) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(answers, [200] * 24, "statuses")
    true(most[0] <= 3, f"{most[0]} transactions at a time")


def test_max_connections_of_the_server(lab):
    icap = IcapServer(lab, lambda i, t: (time.sleep(0.05), t.send_204())[1], Max_Connections=2)
    origin, _, proxy = start(lab, server=icap)
    threads = [threading.Thread(target=lambda: fetch(proxy, origin, 100)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    true(icap.accepted <= 3, f"{icap.accepted} connections, the server wants 2 (and one may carry OPTIONS)")


# 206: a part of its own, then the original from an offset on (draft-icap-ext-partial-content-07).

def partial(own, original, add=b""):
    def behave(_icap, transaction):
        head = transaction.response_head()
        transaction.send_head(head, status=b"206 Partial Content")
        transaction.send(chunked(own, last=b"") + b"0; use-original-body=%d%s\r\n\r\n" % (original, add))
    return behave


@memcheck
def test_206_within_the_preview(lab):
    for own, original in ((b"new beginning ", 0), (b"new beginning ", 100), (b"new ", 1023), (b"new ", 1024), (b"x" * 5000, 500)):
        icap = IcapServer(lab, partial(own, original), Allow="204, 206")
        origin, _, proxy = start(lab, server=icap, bypass=False)
        for size in (1024, 1025, 5000, 300000):
            for framing in ("/bytes", "/chunked"):
                same_bytes(proxy.get(origin.url(framing, n=size, cc="no-store")).body, own + origin.body(size)[original:],
                           f"{framing} of {size}, original from {original}")
        true(all(t.allows(206) for t in icap.transactions), "Allow: 206")
        proxy.stop()


def test_206_is_allowed_only_to_those_who_know_it(lab):
    for allow, expected in (("204", False), ("204, 206", True)):
        icap = IcapServer(lab, Allow=allow)
        origin, _, proxy = start(lab, server=icap)
        fetch(proxy, origin, 5000)
        equal(icap.transactions[0].allows(206), expected, f"Allow: 206 for a service that says {allow}")


def test_206_from_behind_the_end(lab):
    """An offset that the original does not reach: an error or a cut, never a wrong whole."""
    icap = IcapServer(lab, partial(b"own", 100000), Allow="204, 206")
    origin, _, proxy = start(lab, server=icap, bypass=False, **QUICK)
    for size in (100, 5000):
        try:
            answer = fetch(proxy, origin, size)
        except Truncated:
            continue
        true(answer.status >= 500 or size == 100000, f"{size}: a complete {answer.status} of {len(answer.body)} bytes")


# REQMOD.

@memcheck
def test_reqmod_changes_the_request(lab):
    def behave(_icap, transaction):
        body = transaction.finish_body() if transaction.has_body else b""
        head = transaction.request_head(drop=("content-length",), add=[("X-Added", "1")])
        if transaction.has_body:
            transaction.send_200(head, body + b" more")
        else:
            transaction.send_head(head, body=False)
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    equal(echoed(proxy.get(origin.url("/echo")))["header"]("x-added"), "1", "X-Added of a GET")
    for body in (b"short", pattern(200000)):
        for headers, data in (({}, body), ({"Transfer-Encoding": "chunked"}, chunked(body))):
            seen = echoed(proxy.fetch("POST", origin.url("/echo"), headers, data))
            equal((seen["header"]("x-added"), seen["length"]), ("1", len(body) + 5), "X-Added and length at the origin")


@memcheck
def test_reqmod_rewrites_the_url(lab):
    """The rewritten URL decides where the request goes and what the cache looks up."""
    other = Origin(lab)

    def behave(_icap, transaction):
        transaction.send_head(transaction.request_head(
            drop=("host",), add=[("Host", other.authority)],
            start=f"GET {other.url('/text', say='instead', cc='max-age=60')} HTTP/1.1"), body=False)
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache")
    for number in range(3):
        equal(proxy.get(origin.url(f"/ad{number}")).text(), "instead", "body")
    equal((origin.count("/ad0"), other.count("/text")), (0, 1), "requests at both origins")
    equal(proxy.results("", 3)[1:], ["HIT", "HIT"], "results")


def test_reqmod_204(lab):
    icap = IcapServer(lab, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    for size in (0, 10, 1024, 5000, 100000):
        seen = echoed(proxy.fetch("POST", origin.url("/echo"), body=pattern(size)))
        equal(seen["length"], size, "length at the origin")


@memcheck
def test_request_satisfaction(lab):
    """The service answers itself: nobody asks the origin, nobody stores it as the origin's."""
    def behave(_icap, transaction):
        transaction.send_200(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\r\n", b"blocked by policy")
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    for method in ("GET", "POST"):
        answer = proxy.fetch(method, origin.url("/x"), body=b"12345" if method == "POST" else None)
        equal((answer.status, answer.text()), (403, "blocked by policy"), method)
    equal(origin.count("/x"), 0, "requests at the origin")
    equal(verdicts(proxy), ["SATISFIED"], "verdicts")


def test_request_satisfaction_of_a_long_upload(lab):
    """The service refuses after the preview: the client gets the answer though its body is not read."""
    def behave(_icap, transaction):
        transaction.send_200(b"HTTP/1.1 413 No\r\n\r\n", b"too big")
        return True
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    with proxy.wire(timeout=10 * lab.patience) as wire:
        wire.send(request("POST", origin.url("/x"), {"Content-Length": "50000000"}))

        def upload():
            try:
                for _ in range(800):
                    wire.send(b"u" * 65536)
            except OSError:
                pass
        threading.Thread(target=upload, daemon=True).start()
        equal(wire.response().status, 413, "status")
    equal(origin.count("/x"), 0, "requests at the origin")


def test_reqmod_on_hits_too(lab):
    """The precache request point comes before the lookup."""
    icap = IcapServer(lab, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache")
    url = origin.url("/text", say="x", cc="max-age=60")
    for _ in range(3):
        proxy.get(url)
    equal((origin.count("/text"), icap.count), (1, 3), "origin requests, ICAP transactions")


# A server that misbehaves: with bypass the client gets the original, without it an error.

def late(_icap, transaction):
    time.sleep(3)
    transaction.send_204()


def silent(_icap, _transaction):
    time.sleep(6)


def closes(_icap, _transaction):
    return True


def resets(_icap, transaction):
    transaction.connection.abort()
    return True


def garbage(_icap, transaction):
    transaction.send(b"\x16\x03\x01 what is this\r\n\r\n")


def http_instead(_icap, transaction):
    transaction.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def half_a_head(_icap, transaction):
    transaction.send(b"ICAP/1.0 200 OK\r\nISTag: ")
    return True


def status(code):
    def behave(_icap, transaction):
        transaction.send(b"ICAP/1.0 %d Something\r\nConnection: close\r\n\r\n" % code)
        return True
    behave.__name__ = f"status_{code}"
    return behave


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"


def encapsulated(value):
    """A 200 whose Encapsulated header does not describe what follows."""
    def behave(_icap, transaction):
        transaction.send_head(HEAD, encapsulated=value)
        transaction.send(chunked(b"evil body"))
        return True
    behave.__name__ = "encapsulated " + (value.decode() or "empty")
    return behave


def no_encapsulated(_icap, transaction):
    transaction.send(b'ICAP/1.0 200 OK\r\nISTag: "x"\r\n\r\n' + HEAD + chunked(b"evil body"))
    return True


def bad_http_head(_icap, transaction):
    head = b"HTTP/1.1 two hundred\r\n\r\n"
    transaction.send_head(head)
    transaction.send(chunked(b"evil"))
    return True


def conflicting_http_head(_icap, transaction):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"
    transaction.send_head(head)
    transaction.send(chunked(b"evil"))
    return True


def request_for_a_response(_icap, transaction):
    transaction.send_head(b"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", body=False)
    return True


def bad_first_chunk(_icap, transaction):
    transaction.send_head(HEAD)
    transaction.send(b"-5\r\nhello\r\n0\r\n\r\n")
    return True


def endless_head(_icap, transaction):
    transaction.send(b"ICAP/1.0 200 OK\r\n")
    for _ in range(200):
        transaction.send(b"X: " + b"a" * 1000 + b"\r\n")
    return True


def continues_twice(_icap, transaction):
    transaction.send_100()
    transaction.send_100()
    transaction.send(b"ICAP/1.0 100 Continue\r\n\r\n" * 20)
    return True


def drips_its_head(_icap, transaction):
    for byte in b"ICAP/1.0 204 No Content\r\n" * 4:
        transaction.send(bytes([byte]))
        time.sleep(0.1)


# What fails before a byte of an answer could be used.
BEFORE_THE_VERDICT = [
    late, silent, closes, resets, garbage, http_instead, half_a_head, status(400), status(404), status(405), status(408),
    status(500), status(503), status(505), status(299), encapsulated(b"res-hdr=0, res-body=9999"),
    encapsulated(b"res-hdr=5, res-body=44"), encapsulated(b"res-body=44, res-hdr=0"),
    encapsulated(b"res-hdr=0, res-body=-1"), encapsulated(b"res-hdr=0, res-body=99999999999999999999"),
    encapsulated(b"res-hdr=0"), encapsulated(b"res-hdr=0, res-hdr=10, res-body=44"), encapsulated(b""),
    encapsulated(b"nonsense"), no_encapsulated, bad_http_head, request_for_a_response,
    endless_head, drips_its_head,
]


@seconds(150)
def test_failures_before_the_verdict_with_bypass(lab):
    origin = Origin(lab)
    for behave in BEFORE_THE_VERDICT:
        icap = IcapServer(lab, behave)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=True, **QUICK)])
        for size in (0, 100, 5000, 200000):
            answer, took = measure(lambda: fetch(proxy, origin, size))
            equal(answer.status, 200, f"{behave.__name__}, {size}: status")
            same_bytes(answer.body, origin.body(size), f"{behave.__name__}, {size}: body")
            between(took, 0, 4 * lab.patience, f"{behave.__name__}, {size}: seconds")
        proxy.log(4)
        for entry in proxy.log():
            one_of([v["verdict"] for v in entry["icap"]], (["FAILED"], ["BYPASSED"]), f"{behave.__name__}: verdicts")
        proxy.stop()
        icap.stop()


@seconds(150)
def test_failures_before_the_verdict_without_bypass(lab):
    origin = Origin(lab)
    for behave in BEFORE_THE_VERDICT:
        icap = IcapServer(lab, behave)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False, **QUICK)])
        for size in (100, 200000):
            url = origin.url("/bytes", n=size, cc="max-age=60")
            answer, took = measure(lambda: proxy.get(url))
            true(500 <= answer.status < 600, f"{behave.__name__}, {size}: status {answer.status}")
            lacks(answer.body, b"evil", f"{behave.__name__}: body")
            between(took, 0, 4 * lab.patience, f"{behave.__name__}, {size}: seconds")
        proxy.stop()
        icap.stop()


def test_service_that_states_two_lengths(lab):
    """Chunks frame an encapsulated body: the stated lengths are refused, or left out; never passed on."""
    origin, _, proxy = start(lab, conflicting_http_head, bypass=False, **QUICK)
    answer = fetch(proxy, origin, 5000)
    true(answer.status >= 500 or answer.body == b"evil", f"{answer.status} {answer.body[:20]!r}")


def cut(end):
    """A 200 whose body ends before it is complete."""
    def behave(_icap, transaction):
        transaction.send_head(HEAD)
        transaction.send(chunked(b"adapted part", last=b""))
        time.sleep(0.1)
        if end == "reset":
            transaction.connection.abort()
        elif end == "bad chunk":
            transaction.send(b"zz\r\n")
        elif end == "silence":
            time.sleep(3)
        return True
    return behave


def test_failure_inside_the_adapted_body(lab):
    """Its head is out: neither bypass nor an error can help; the client must see a cut, nothing is stored."""
    origin = Origin(lab)
    for bypass in (True, False):
        for end in ("close", "reset", "bad chunk", "silence"):
            icap = IcapServer(lab, cut(end))
            proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=bypass, **QUICK)])
            for _ in range(2):
                try:
                    answer = proxy.get(origin.url("/bytes", n=5000, cc="max-age=60"))
                except Truncated:
                    continue
                if bypass and answer.body == origin.body(5000):
                    continue  # it had kept the original, and nothing of the adapted one was out
                true(answer.status >= 500, f"{end}, bypass {bypass}: a complete {answer.status} of {answer.body[:30]!r}")
            proxy.stop()
            icap.stop()


def test_dripping_body_is_passed_on(lab):
    def behave(_icap, transaction):
        transaction.send_head(HEAD)
        for byte in chunked(b"drip", b"drop"):
            transaction.send(bytes([byte]))
            time.sleep(0.02)
    origin, _, proxy = start(lab, behave, **QUICK)
    equal(fetch(proxy, origin, 5000).body, b"dripdrop", "body")


def test_answer_that_never_ends_has_a_total_limit(lab):
    """However steadily it comes: before the verdict the message passes, after it the body is cut."""
    def head_without_end(_icap, transaction):
        while True:
            transaction.send(b"ICAP/1.0 200 OK\r\n" if not transaction.__dict__.setdefault("begun", False) else b"X: y\r\n")
            transaction.begun = True
            time.sleep(0.1)

    def body_without_end(_icap, transaction):
        transaction.send_head(HEAD)
        while True:
            transaction.send(chunked(b"more", last=b""))
            time.sleep(0.1)
    limit = {"timeout": "5s", "total_timeout": f"{800 * lab.patience}ms"}
    origin, _, proxy = start(lab, head_without_end, **limit)
    answer, took = measure(lambda: fetch(proxy, origin, 5000))
    same_bytes(answer.body, origin.body(5000), "the virgin body")
    between(took, 0.5 * lab.patience, 4 * lab.patience, "seconds")
    origin, _, proxy = start(lab, body_without_end, **limit)
    try:
        fetch(proxy, origin, 5000)
        raise AssertionError("a body that was cut looks complete")
    except Truncated:
        pass


def test_slow_but_steady_answer_is_not_a_failure(lab):
    """The timeout is for a pause, not for the whole."""
    def behave(_icap, transaction):
        transaction.send_head(HEAD)
        for _ in range(8):
            time.sleep(0.3)
            transaction.send(chunked(b"piece.", last=b""))
        transaction.send(b"0\r\n\r\n")
    origin, _, proxy = start(lab, behave, bypass=False, **{**QUICK, "timeout": "1s"})
    equal(fetch(proxy, origin, 5000).body, b"piece." * 8, "body")


def waits_of(pid):
    """How often its threads have gone to sleep."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as status:
            count += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M).group(1))
    return count


def test_answer_that_stops_in_its_body(lab):
    """A pause in it has its end, and is no work for the proxy."""
    over = threading.Event()

    def stops(drop, pieces, waits):
        def behave(_icap, transaction):
            transaction.finish_body()
            transaction.send_head(transaction.response_head(drop=drop))
            transaction.send(pieces)
            waits.append(waits_of(proxy.pid))
            over.wait(0.4)
            waits.append(waits_of(proxy.pid))
            over.wait(20 * lab.patience)
            return True
        return behave

    def ask():
        try:
            return fetch(proxy, origin, 5000).status
        except Truncated:
            return None

    some = chunked(b"x" * 100, last=b"")
    for drop, pieces, bypass, expected in (((), b"", True, 200), ((), some, False, None), (("content-length",), b"", False, None)):
        waits = []
        origin, _, proxy = start(lab, stops(drop, pieces, waits), bypass=bypass, **QUICK)
        status, took = measure(ask)
        equal(status, expected, "status")
        between(took, 0.5, 5 * lab.patience, "seconds")
        between(waits[1] - waits[0], 0, 100, "waits for events")
    over.set()


def test_100_after_ieof(lab):
    """c-icap and others say 100 though there is nothing more to come."""
    def behave(_icap, transaction):
        transaction.send_100()
        transaction.send_200(HEAD, transaction.body + b"!")
    origin, _, proxy = start(lab, behave)
    for size in (1, 100, 1000):
        same_bytes(fetch(proxy, origin, size).body, origin.body(size) + b"!", f"body of {size}")


def test_continues_without_end(lab):
    origin, _, proxy = start(lab, continues_twice, bypass=False, **QUICK)
    answer, took = measure(lambda: fetch(proxy, origin, 5000))
    true(answer.status >= 500, f"status {answer.status}")
    between(took, 0, 4 * lab.patience, "seconds")


def test_204_outside_the_preview_that_was_not_allowed(lab):
    """After 100 and the whole body a 204 needs Allow: 204; a client that has lost the body can't take it."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_204()
    origin, icap, proxy = start(lab, behave, bypass=False, keep="16KB", preview=1024, **QUICK)
    for size in (2000, 1000000):
        url = origin.url("/bytes", n=size, cc="no-store")
        try:
            answer = proxy.get(url)
        except Truncated:
            continue
        if answer.status == 200:
            same_bytes(answer.body, origin.body(size), f"body of {size}")


def test_early_answer_while_the_body_is_being_sent(lab):
    """The answer comes when the service has had enough; the rest of the body need not be taken."""
    def behave(_icap, transaction):
        transaction.send_100()
        transaction.read_some_body(30000)
        transaction.send_200(HEAD, b"enough")
        time.sleep(0.2)
        return True
    origin, _, proxy = start(lab, behave, bypass=False)
    for size in (100000, 3000000):
        equal(fetch(proxy, origin, size).body, b"enough", f"body of {size}")


def test_early_answer_that_goes_on_beside_the_upload(lab):
    """Full duplex: a streaming service sends as it reads; a client that only writes would deadlock."""
    def behave(_icap, transaction):
        transaction.send_100()
        transaction.send_head(transaction.response_head())
        connection, total = transaction.connection, 0
        while True:
            line = connection._line()
            size = int(line.split(";")[0], 16)
            data = connection.read_bytes(size) if size else b""
            connection._line()
            if total == 0:
                data = transaction.body + data
            total += len(data)
            if data:
                transaction.send(chunked(data, last=b""))
            if not size:
                break
        transaction.send(b"0\r\n\r\n")
    origin, _, proxy = start(lab, behave, bypass=False)
    same_bytes(fetch(proxy, origin, 20000000).body, origin.body(20000000), "20 MB")


def test_answer_in_one_packet_with_the_next(lab):
    """Bytes behind the end of an answer are not the next one's."""
    def behave(_icap, transaction):
        transaction.send(b'ICAP/1.0 204 No Content\r\nISTag: "a"\r\n\r\nICAP/1.0 204 No Content\r\nISTag: "a"\r\n\r\n')
    origin, icap, proxy = start(lab, behave, bypass=True, **QUICK)
    for size in (100, 200, 300):
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"body of {size}")


@memcheck
def test_pooled_connections_that_die(lab):
    """The server closes after each answer without having said so: the client must not notice."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(HEAD, b"answered")
        return True
    origin, icap, proxy = start(lab, behave, bypass=False)
    for turn in range(10):
        equal(fetch(proxy, origin, 3000).body, b"answered", f"body of turn {turn}")
        time.sleep(0.03)


def test_pooled_connection_that_dies_under_the_request(lab):
    """It takes the request and resets before the first byte of an answer: once more on a fresh one."""
    def behave(_icap, transaction):
        if transaction.connection_number <= 2 and len(_icap.transactions) > 1:
            transaction.connection.abort()
            return True
        transaction.finish_body()
        transaction.send_200(HEAD, b"answered")
        return False
    origin, icap, proxy = start(lab, behave, bypass=False)
    for turn, size in enumerate((500, 5000, 60000)):
        equal(fetch(proxy, origin, size).body, b"answered", f"body of turn {turn}")


def test_connection_close_from_the_server(lab):
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(HEAD, b"bye", icap=b"Connection: close\r\n")
        time.sleep(0.3)
        return True
    origin, icap, proxy = start(lab, behave, bypass=False)
    for _ in range(3):
        equal(fetch(proxy, origin, 3000).body, b"bye", "body")


# Servers that are away, and OPTIONS that fail.

@memcheck
def test_nobody_listens(lab):
    origin = Origin(lab)
    for bypass, allowed in ((True, (200,)), (False, (500, 502, 503, 504))):
        proxy = Retort(lab, services=[Service("s", f"icap://127.0.0.1:{ports.take()}/s", bypass=bypass, **QUICK)])
        answer, took = measure(lambda: fetch(proxy, origin, 100))
        one_of(answer.status, allowed, f"bypass {bypass}: status")
        between(took, 0, 3 * lab.patience, "seconds")
        if not bypass:
            contains(answer.text().lower(), "adaptation service", "error page")


def test_service_that_is_away_costs_its_delay_once(lab):
    """While it is down nobody waits for it."""
    stop = threading.Event()
    icap = IcapServer(lab)
    icap.options_answer = lambda _i, _c: stop.wait(30)
    origin, _, proxy = start(lab, server=icap, **{**QUICK, "down_min": "20s", "down_max": "20s"})
    fetch(proxy, origin, 100)
    _, took = measure(lambda: [fetch(proxy, origin, 100) for _ in range(20)])
    stop.set()
    between(took, 0, 2 * lab.patience, "seconds for 20 requests")


@memcheck
def test_recovery_is_noticed(lab):
    origin, icap, proxy = start(lab, append(b"!"), **QUICK)
    icap.close_listener()
    equal(fetch(proxy, origin, 10).body, origin.body(10), "body while it is away")
    icap.listen_again()
    until(lambda: fetch(proxy, origin, 10).body.endswith(b"!"), 8 * lab.patience, "adapted bodies again", pause=0.1)


OPTIONS_FAILURES = [
    ("404", b"ICAP/1.0 404 Service not found\r\nConnection: close\r\n\r\n"),
    ("500", b"ICAP/1.0 500 Error\r\nConnection: close\r\n\r\n"),
    ("garbage", b"nonsense\r\n\r\n"),
    ("HTTP", b"HTTP/1.1 200 OK\r\n\r\n"),
    ("half", b"ICAP/1.0 200 OK\r\nMeth"),
    ("other method", b'ICAP/1.0 200 OK\r\nMethods: REQMOD\r\nISTag: "x"\r\nEncapsulated: null-body=0\r\n\r\n'),
    ("no methods", b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: null-body=0\r\n\r\n'),
]


def test_options_that_fail(lab):
    origin = Origin(lab)
    for what, data in OPTIONS_FAILURES:
        icap = IcapServer(lab)
        icap.options_answer = lambda _i, connection, data=data: connection.send(data) is None
        for bypass in (True, False):
            proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=bypass, **QUICK)])
            answer, took = measure(lambda: fetch(proxy, origin, 100))
            if what == "no methods":
                one_of(answer.status, (200, 500, 502, 503), f"{what}: status")
            else:
                equal(answer.status // 100, 2 if bypass else 5, f"{what}, bypass {bypass}: status class")
                equal(icap.count, 0, f"{what}: RESPMOD requests")
            between(took, 0, 4 * lab.patience, f"{what}: seconds")
            proxy.stop()
        icap.stop()


def test_strange_options_values(lab):
    """Numbers that are none, or are absurd, must not take the service down or the proxy with it."""
    origin = Origin(lab)
    for options in ({"Preview": "-1"}, {"Preview": "many"}, {"Preview": "99999999999999999999"},
                    {"Max-Connections": "0"}, {"Max-Connections": "-5"}, {"Options-TTL": "-1"}, {"Options-TTL": "soon"},
                    {"ISTag": None}, {"Transfer-Preview": None}, {"Transfer-Ignore": "*"}):
        icap = IcapServer(lab, append(b"!"))
        icap.options.update(options)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=True, **QUICK)])
        for _ in range(3):
            answer = fetch(proxy, origin, 3000)
            one_of(answer.body, (origin.body(3000), origin.body(3000) + b"!"), f"{options}: body")
        proxy.stop()
        icap.stop()


# Origins and clients that fail while a service is at work.

def test_origin_dies_inside_a_body_under_adaptation(lab):
    """The service must not be told that the body was complete, nor the client, nor the cache."""
    ended = []

    def behave(_icap, transaction):
        try:
            transaction.finish_body()
            ended.append("complete")
            transaction.send_200(HEAD, b"adapted from a part")
        except (Truncated, ConnectionError):
            ended.append("cut")
            raise
    icap = IcapServer(lab, behave)
    origin, _, proxy = start(lab, server=icap)
    for size, after in ((5000, 3000), (500000, 300000)):
        try:
            answer = proxy.get(origin.url("/abort", n=size, after=after, cc="max-age=60"))
            true(answer.status >= 500, f"a complete {answer.status} of {len(answer.body)} bytes")
        except Truncated:
            pass
    until(lambda: len(ended) == 2, 5 * lab.patience, "the service to see the end")
    equal(ended, ["cut", "cut"], "what the service saw")


def test_client_leaves_under_adaptation(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    for size in (100000, 5000000):
        with proxy.wire() as wire:
            wire.send(request("GET", origin.url("/bytes", n=size, cc="no-store")))
            time.sleep(0.02)
        same_bytes(fetch(proxy, origin, 3000).body, origin.body(3000) + b"!", "the next body")
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "transactions to end")


@heavy("moves 200 MB")
@seconds(120)
def test_large_body_through_a_streaming_service(lab):
    """c-icap's echo: 200 MB with a slow client, memory stays flat."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=False, keep="256KB", timeout="20s")])
    for turn in range(2):  # 200 and 204 in turn

        check = PatternCheck()
        with proxy.wire(timeout=30) as wire:
            wire.send(request("GET", origin.url("/bytes", n=100 << 20, cc="no-store", i=turn)))
            wire.response(sink=check)
        equal(check.length, 100 << 20, "length")
    true(proxy.memory_peak_kb() < 64 << 10, f"peak memory {proxy.memory_peak_kb()} kB")


def test_parallel_transactions_do_not_mix(lab):
    """Each client gets its own adapted body."""
    def behave(_icap, transaction):
        body = transaction.finish_body()
        time.sleep(len(body) % 7 * 0.003)
        transaction.send_200(transaction.response_head(), body[::-1])
    icap = IcapServer(lab, behave)
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, services=[Service("s", icap.uri(), bypass=False)])
    wrong = []

    def run(number):
        for turn in range(12):
            size = 500 + number * 997 + turn * 131
            if fetch(proxy, origin, size).body != origin.body(size)[::-1]:
                wrong.append(size)
    threads = [threading.Thread(target=run, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(wrong, [], "sizes with wrong bodies")


def test_write_head_helper_keeps_the_virgin_head(lab):
    """The harness's own echo changes nothing: a check of these tests' foundation."""
    origin, icap, proxy = start(lab, echo, bypass=False)
    plain = Retort(lab)
    url = origin.url("/bytes", n=5000, cc="no-store", h=["X-A: 1", "X-B: 2"])
    adapted, direct = proxy.get(url), plain.get(url)
    same_bytes(adapted.body, direct.body)
    equal([adapted.header(n) for n in ("X-A", "X-B")], [direct.header(n) for n in ("X-A", "X-B")], "fields")
    true(write_head(icap.transactions[0].http_response), "a head")


def test_what_was_bypassed_is_not_stored(lab):
    """Else the unadapted body would be served as long as it is fresh, with the service long back."""
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("gone", f"icap://127.0.0.1:{ports.take()}/s", bypass=True,
                                          connect_timeout="500ms")])
    for _ in range(2):
        same_bytes(proxy.get(origin.url("/b", cc="max-age=60")).body, b"/b 1\n" if _ == 0 else b"/b 2\n", "body")
    equal(proxy.results("/b", 2), ["MISS", "MISS"], "results")
