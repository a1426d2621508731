"""Streams of HTTP/2 and what else the proxy does: the cache's crowds and ranges, services, limits, users, reloads."""

import re
import struct
import threading
import time

from harness import http2
from harness.checks import between, contains, equal, one_of, raises, true, until
from harness.http2 import Gone, Http2, Reset
from harness.icap import IcapServer, append
from harness.origin import Origin
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.scanner import Scanner, clean
from harness.suite import memcheck
from test_identity import SECRET, basic, sha, staff, users_file

OK = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: %d\r\n\r\n"


def connect(lab, address, **options):
    options.setdefault("timeout", 20 * lab.patience)
    return Http2(address, **options)


def ended(client, stream):
    """What became of it: a status, or "reset"."""
    try:
        return client.response(stream).status
    except Reset:
        return "reset"


class Gate:
    """An origin that sends a part of a body, and the rest when it is told."""

    def __init__(self, lab, size=1000, more=b"", cut=False):
        self.go, self.size, self.cut = threading.Event(), size, cut
        self.head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n" % (size, more)
        self.wait = 60 * lab.patience
        self.origin = RawOrigin(lab, self.answer)

    def answer(self, connection, _request):
        body = pattern(self.size)
        connection.send(self.head + body[:self.size // 2])
        self.go.wait(self.wait)
        if not self.cut:
            connection.send(body[self.size // 2:])
        return self.cut


# ---- The cache

@memcheck
def test_a_crowd_on_one_connection(lab):
    """Streams that ask for the same share one request to the origin, and its end, whatever that is."""
    for cut in (False, True):
        gate = Gate(lab, more=b"Cache-Control: max-age=600\r\n", cut=cut)
        proxy = Retort(lab, reverse={"/": gate.origin.url()})
        with connect(lab, proxy.reverse) as client:
            streams = [client.request("GET", "/one") for _ in range(60)]
            client.read_until(lambda c=client, s=streams: all(c.answer(stream).length == 500 for stream in s))
            for stream in streams[:20]:
                client.reset_stream(stream)
            gate.go.set()
            equal({ended(client, stream) for stream in streams[20:]}, {"reset" if cut else 200}, "what became of them")
            equal(len(gate.origin.requests), 1, "requests at the origin")
            equal(client.is_open(), True, "the connection goes on")
        proxy.stop()


def test_the_first_of_a_crowd_leaves(lab):
    gate = Gate(lab, more=b"Cache-Control: max-age=600\r\n")
    proxy = Retort(lab, reverse={"/": gate.origin.url()})
    with connect(lab, proxy.reverse) as first, connect(lab, proxy.reverse) as other:
        leader = first.request("GET", "/one")
        first.read_until(lambda: first.answer(leader).length == 500)
        follower = other.request("GET", "/one")
        other.read_until(lambda: other.answer(follower).length == 500)
        first.reset_stream(leader)
        first.settle()
        gate.go.set()
        equal(other.response(follower).length, 1000, "the other gets all")
    equal(len(gate.origin.requests), 1, "requests at the origin")


@memcheck
def test_ranges_in_windows_of_any_size(lab):
    """A window may end anywhere in a multipart body: between its parts, in a boundary, in a part."""
    proxy = Retort(lab, reverse={"/": RawOrigin(lab, lambda connection, _: connection.send(OK % 2000 + pattern(2000))).url()})
    expected = proxy.get("/r").body
    with connect(lab, proxy.reverse, credit=False, initial_window_size=0) as client:
        client.give(0, 1 << 24)
        for window in range(1, 420):
            stream = client.request("GET", "/r", [("range", "bytes=0-9,500-599,1900-1909")])
            client.give(stream, window)
            answer = client.answer(stream)
            client.read_until(lambda a=answer, w=window: a.status is not None and a.length == min(w, int(a.header("content-length"))))
            client.give(stream, 1000)
            client.response(stream)
            equal((answer.status, answer.length), (206, int(answer.header("content-length"))), f"a window of {window}")
            parts = re.split(b"\r\n--[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n", b"\r\n" + answer.body)
            equal([part.split(b"\r\n--")[0] for part in parts[1:]], [expected[:10], expected[500:600], expected[1900:1910]], "parts")


def test_stale_answers_are_refreshed_behind_a_client(lab):
    """A client that leaves at once does not stop what is refreshed for others."""
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=1, stale-while-revalidate=600\r\nContent-Length: 1\r\n\r\n"
                        + str(len(origin.requests)).encode())
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, reverse={"/": origin.url()})
    equal(proxy.get("/page").body, b"1", "the first")
    time.sleep(2)
    with connect(lab, proxy.reverse) as client:
        equal(client.get("/page").body, b"1", "a stale one")
        client.abort()
    until(lambda: len(origin.requests) >= 2, 10, "it is refreshed")
    equal(proxy.counter("client_http2_protocol_errors"), 0, "errors")


# ---- Services

@memcheck
def test_services_see_whole_bodies(lab):
    """RESPMOD and REQMOD with previews, for many streams at a time; bodies shorter and longer than the preview."""
    def longer(_icap, transaction):
        body = transaction.finish_body()
        if not transaction.has_body:
            transaction.send_204()
        else:
            transaction.send_200(transaction.request_head(drop=("content-length", "transfer-encoding")), body + b"?")
    icap, origin = IcapServer(lab, append(b"!"), preview=1000), Origin(lab)
    requests = IcapServer(lab, longer, preview=1000, methods="REQMOD")
    proxy = Retort(lab, reverse={"/": origin.url()}, services=[Service("r", icap.uri(), bypass=False),
                                                             Service("q", requests.uri(), point="reqmod_precache", bypass=False)])
    with connect(lab, proxy.reverse) as client:
        sizes = (1, 999, 1000, 1001, 70000)
        streams = [(size, client.request("GET", f"/bytes?n={size}&cc=no-store")) for size in sizes]
        for size, stream in streams:
            equal(client.response(stream).length, size + 1, f"a response of {size} bytes")
        for size in sizes:
            stream = client.request("POST", "/echo", body=None)
            client.upload(stream, bytes(size))
            contains(client.response(stream).body, b'"length":%d,' % (size + 1), f"an upload of {size} bytes")
        equal(client.is_open(), True, "the connection goes on")


def test_a_service_that_breaks_off(lab):
    """What it has begun is reset, not ended; nothing of it is stored."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(transaction.response_head())
        transaction.send(b"5\r\nhello\r\n")
        return True
    icap, origin = IcapServer(lab, behave), Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()}, services=[Service("s", icap.uri(), bypass=False)])
    with connect(lab, proxy.reverse) as client:
        for _ in range(2):
            one_of(ended(client, client.request("GET", "/bytes?n=5000&cc=max-age%3D60")), ("reset", 500, 502, 503), "a response")
        equal(client.is_open(), True, "the connection goes on")
    equal(proxy.results("/bytes", 2).count("HIT"), 0, "hits")


def test_uploads_whose_client_leaves_a_service(lab):
    """A service that waits for the rest of a body learns that it will not come, and the origin is never asked."""
    ends = []

    def behave(_icap, transaction):
        try:
            transaction.finish_body()
        finally:
            ends.append(transaction.complete)
        transaction.send_204()
    icap, origin = IcapServer(lab, behave, preview=100, methods="REQMOD"), RawOrigin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()}, services=[Service("s", icap.uri(), point="reqmod_precache", bypass=False)])
    with connect(lab, proxy.reverse) as client:
        for i in range(5):
            stream = client.request("POST", "/up", [("content-length", "100000")], None)
            client.data(stream, bytes(5000))
            until(lambda n=i: len(icap.transactions) > n, 10, "the service is asked")
            client.reset_stream(stream)
            until(lambda n=i: len(ends) > n, 10, "its transaction ends")
        equal(client.is_open(), True, "the connection goes on")
    equal((ends, len(origin.requests)), ([False] * 5, 0), "whole bodies at the service, requests at the origin")
    until(lambda: proxy.counter("transactions_active") == 0, 10, "all transactions have ended")


def test_patience_pages(lab):
    """The page, its reloads and the download come on one connection."""
    scanner = Scanner()
    origin = RawOrigin(lab, lambda connection, _: connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: 50000\r\n\r\n" + pattern(50000)))
    service = Service("s", IcapServer(lab, scanner).uri(), bypass=False, timeout="60s")
    service.options["patience_after"] = "50ms"
    proxy = Retort(lab, services=[service], reverse={"/": origin.url()})
    browser = [("accept", "text/html,*/*;q=0.8")]
    with connect(lab, proxy.reverse) as client:
        page = client.get("/file.zip", browser)
        url = page.header("refresh").partition("url=")[2]
        equal(page.status, 200, "the page")
        equal(client.get(url, browser).header("refresh").partition("url=")[2], url, "the page again")
        scanner.decide(clean)
        answer = until(lambda: next((a for a in [client.get(url, browser)] if a.header("refresh") is None), None), 30, "the download")
        equal(answer.body, pattern(50000), "the download")


# ---- Users and limits

def test_users(lab):
    """407 and 401 are for a request, not for its connection, and uploads that they answer need not be sent."""
    origin = RawOrigin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()}, extra=staff(users_file(lab, sha("ann"))))
    for address, status, asks, gives in ((proxy.forward, 407, "proxy-authenticate", "proxy-authorization"),
                                         (proxy.reverse, 401, "www-authenticate", "authorization")):
        with connect(lab, address) as client:
            url = origin.url("/x")
            refused = client.get(url)
            equal(refused.status, status, "without a name")
            contains(refused.header(asks), "Basic", "how to say it")
            upload = client.request("POST", url, [("content-length", "1000000")], None)
            client.data(upload, bytes(20000))
            equal(client.response(upload).status, status, "an upload")
            equal(client.reset_of(upload), http2.NO_ERROR, "the rest is not wanted")
            named = [(gives, basic("ann", SECRET))]
            equal([client.get(url, named).status, client.get(url).status], [200, status], "with a name, and without it again")
            equal(client.get(url, [(gives, basic("ann", "wrong"))]).status, status, "a wrong password")
    equal({request.header("proxy-authorization") for request in origin.requests}, {None}, "at the origin")


def limited(lab, options, origin, **more):
    return Retort(lab, reverse={"/": origin.url()}, extra=f"limit all {{ {options} }}", **more)


@memcheck
def test_streams_count_as_requests(lab):
    """A client gets no more by HTTP/2 than by connections of HTTP/1.1."""
    origin = RawOrigin(lab)
    proxy = limited(lab, 'requests = "6/h"  burst = 3', origin)
    with connect(lab, proxy.reverse) as client:
        streams = [client.request("GET", f"/{i}") for i in range(10)]
        equal(sorted(ended(client, stream) for stream in streams), [200] * 3 + [429] * 7, "answers")
        equal(client.is_open(), True, "the connection goes on")
    equal(proxy.get("/other").status, 429, "and by HTTP/1.1")
    equal(len(origin.requests), 3, "requests at the origin")


def test_streams_at_a_time(lab):
    """`concurrent` counts streams, and each that ends, however it does, makes room."""
    gate = Gate(lab, more=b"Cache-Control: no-store\r\n")
    proxy = limited(lab, "concurrent = 2", gate.origin)
    with connect(lab, proxy.reverse) as client:
        held = [client.request("GET", f"/{i}") for i in range(2)]
        until(lambda: len(gate.origin.requests) == 2, 10 * lab.patience, "both are under way")
        equal(client.get("/third").status, 429, "a third")
        equal(proxy.get("/third").status, 429, "and by HTTP/1.1")
        client.reset_stream(held[0])
        client.settle()
        gate.go.set()
        equal(client.get("/fourth").status, 200, "one was reset")
        equal(client.response(held[1]).status, 200, "the other")
        for _ in range(20):
            client.reset_stream(client.request("GET", "/more"))
        client.settle()
        until(lambda: client.get("/after").status == 200, 10 * lab.patience, "all have made room")


def test_a_connection_counts_once(lab):
    origin = RawOrigin(lab)
    proxy = limited(lab, "connections = 1", origin)
    with connect(lab, proxy.reverse) as client, connect(lab, proxy.reverse) as other:
        streams = [client.request("GET", f"/{i}") for i in range(20)]
        equal({ended(client, stream) for stream in streams}, {200}, "streams of one connection")
        one_of(ended(other, other.request("GET", "/other")), (429,), "another connection")
        client.close()
        until(lambda: proxy.get("/later").status == 200, 10 * lab.patience, "the first is closed")


def test_limits_of_bytes(lab):
    """Bandwidth is shared by the streams; a response that is too large is cut, not ended; `close` answers nothing."""
    origin = Origin(lab)
    proxy = limited(lab, 'bandwidth = "1MB"', origin)
    with connect(lab, proxy.reverse) as client:
        began = time.monotonic()
        streams = [client.request("GET", f"/bytes?n=500000&cc=no-store&i={i}") for i in range(4)]
        client.reset_stream(streams.pop())
        equal([client.response(stream).length for stream in streams], [500000] * 3, "bodies")
        between(time.monotonic() - began, 0.4, 60 * lab.patience, "seconds")
    proxy = limited(lab, "max_response = 10000", origin)
    with connect(lab, proxy.reverse) as client:
        for target, end in (("/chunked?n=50000&cc=no-store", ("reset", 403)), ("/bytes?n=50000", ("reset", 403, 502)), ("/bytes?n=9000", (200,))):
            stream = client.request("GET", target)
            one_of(ended(client, stream), end, target)
            between(client.answer(stream).length, 0, 10001, f"{target}: bytes")
        equal(client.is_open(), True, "the connection goes on")
    proxy = limited(lab, 'requests = "1/h"  status = close', origin)
    with connect(lab, proxy.reverse) as client:
        equal(client.get("/bytes?n=1").status, 200, "the first")
        raises((Reset, Gone), lambda: client.get("/bytes?n=1"), "the second")


# ---- Reload and stop

def test_a_listener_that_a_reload_removes(lab):
    """Streams under way are completed, and the connection ends."""
    gate = Gate(lab)
    proxy = Retort(lab, reverse={"/": gate.origin.url()})
    with connect(lab, proxy.reverse) as client:
        slow = client.request("GET", "/slow")
        client.read_until(lambda: client.answer(slow).length == 500)
        text = re.sub(r'listen "127\.0\.0\.1:%d" \{[^}]*\}' % proxy.reverse[1], "", proxy.text())
        true(text != proxy.text(), "the listener was there")
        proxy.write_config(text)
        equal(proxy.reload().status, 200, "reload")
        gate.go.set()
        equal(client.response(slow).length, 1000, "the stream under way")
        later = client.request("GET", "/later")
        try:
            client.response(later)
        except (Reset, Gone):
            pass
        equal(client.goaway().error, http2.NO_ERROR, "GOAWAY")


def test_a_stop_ends_all_streams(lab):
    """A client learns which of its requests were not answered, and nothing waits."""
    gate = Gate(lab)
    proxy = Retort(lab, reverse={"/": gate.origin.url()}, drain_timeout="1s")
    with connect(lab, proxy.reverse) as client:
        streams = [client.request("GET", f"/{i}") for i in range(20)]
        client.read_until(lambda: all(client.answer(stream).length == 500 for stream in streams))
        client.frame(http2.PRIORITY_UPDATE, 0, 0, struct.pack(">I", streams[3]) + b"u=0")
        client.settle()
        stopping = threading.Thread(target=proxy.stop)
        stopping.start()
        gone = client.goaway(60)
        stopping.join()
        equal([client.answer(stream).ended for stream in streams], [False] * 20, "whole responses")
        true(gone is not None, "the connection ends")
    gate.go.set()
