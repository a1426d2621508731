"""HTTP/2 toward origins (RFC 9113): who is asked with it, what calls share, and that an origin which breaks a rule completes and
stores nothing."""

import signal
import struct
import threading
import time

from harness import http2_origin as h2
from harness.certificates import Authority
from harness.checks import contains, equal, lacks, one_of, same_bytes, true, until
from harness.groups import group
from harness.http2 import Http2, hpack, request_fields
from harness.http2_origin import Http2Origin, Stream, at_once, frame
from harness.raw_origin import RawOrigin, pattern, read_request
from harness.remote import Remote
from harness.retort import Retort
from harness.server import Server
from harness.suite import memcheck
from harness.tls_origin import TlsOrigin
from harness.wire import Truncated, chunked, request

OPEN = "origin_http2_connections_open"


def share(lab):
    root = Authority(lab)
    return {"leaf": root.leaf("127.0.0.1", "localhost"), "ca": {"ca_file": root.file}}


def behind(lab, peer, **options):
    """A proxy that asks the origin with HTTP/2."""
    return Retort(lab, reverse={"/": "far/"}, extra=peer.group("far"), **options)


def start(lab, answer=Stream.answer, proxy=None, **options):
    origin = Http2Origin(lab, answer, **options)
    return origin, behind(lab, origin, **(proxy or {}))


def status_of(proxy, path="/x", **options):
    return proxy.get(path, **options).status


# Which protocol

def test_the_handshake_decides(lab, shared):
    """auto: HTTP/2 where ALPN says so, and HTTP/1.1 where it does not."""
    origin = Http2Origin(lab, certificate=shared["leaf"])
    old = TlsOrigin(lab, shared["leaf"], protocols=["http/1.1"])
    silent = TlsOrigin(lab, shared["leaf"])
    clear = RawOrigin(lab)
    proxy = Retort(lab, reverse={"/": origin.url(), "/old/": old.url(), "/silent/": silent.url(), "/clear/": clear.url()},
                   origin=shared["ca"])
    for path in ("/", "/old/", "/silent/", "/clear/"):
        for _ in range(3):
            equal(proxy.get(path).text(), "the origin's answer\n", path)
    equal([peer.accepted for peer in (origin, old, silent, clear)], [1, 1, 1, 1], "connections")
    equal(dict(origin.streams[0].fields[:4]), {":method": "GET", ":scheme": "https", ":authority": origin.authority, ":path": "/"},
          "pseudo fields")
    equal(proxy.counter("origin_http2_requests"), 3, "requests by HTTP/2")
    equal(proxy.counter("origin_requests"), 12, "requests")


def test_off(lab, shared):
    origin = TlsOrigin(lab, shared["leaf"], protocols=["h2", "http/1.1"])
    proxy = Retort(lab, reverse={"/": origin.url()}, origin={**shared["ca"], "http2": "off"})
    equal(status_of(proxy), 200, "status")
    equal(origin.protocols, ["http/1.1"], "protocol")


def test_an_origin_that_does_not_speak_it(lab):
    """By prior knowledge only: the error says what to do."""
    origin = Server(lab, lambda connection, _number: connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    proxy = Retort(lab, reverse={"/": "far/"}, extra=f'origins far {{ servers = {{ "http://{origin.authority}" }}  http2 = on }}')
    answer = proxy.get("/x")
    equal(answer.status, 502, "status")
    contains(answer.text(), "does not speak HTTP/2", "the reason")


@memcheck
def test_what_is_sent(lab):
    origin, proxy = start(lab)
    proxy.fetch("GET", "/p?q=%41", {"TE": "trailers", "Connection": "TE, X-Hop", "X-Hop": "1", "Upper-Case": "Kept", "Cookie": "a=1",
                                    "Proxy-Authorization": "Basic YTpi"})
    fields = origin.streams[0].fields
    names = [name for name, _ in fields]
    equal(names[:4], [":method", ":scheme", ":authority", ":path"], "the pseudo fields come first")
    equal(origin.streams[0][":path"], "/p?q=A", "path")
    equal([name for name in names if name != name.lower()], [], "names in upper case")
    equal(origin.streams[0]["te"], "trailers", "TE")
    for name in ("host", "connection", "x-hop", "proxy-authorization", "transfer-encoding", "keep-alive"):
        lacks(names, name, "fields")
    equal(origin.streams[0]["upper-case"], "Kept", "a field")
    contains(origin.streams[0]["via"], "retort", "Via")
    true(origin.streams[0].ended.is_set(), "the request has ended with its head")


def test_secrets_stay_out_of_tables(lab):
    """RFC 7541 §6.2.3: what a client has sent as never indexed leaves so, whatever its name is; and so do fields of responses."""
    def answer(stream):
        stream.head([(":status", "200"), ("cache-control", "max-age=60"), ("x-key", "secret")])
        stream.data(b"hello", end=True)
    origin, proxy = start(lab, answer)
    for path in ("/miss", "/hit", "/hit"):
        with Http2(proxy.reverse) as client:
            seen, decode = [], client.decoder.decode
            client.decoder.decode = lambda *args, **how: seen.extend(fields := decode(*args, **how)) or fields
            stream = client.take_stream()
            client.headers(stream, request_fields("GET", path, [("x-api-key", "1"), ("user-agent", "me")]), first=0x10)
            equal(client.response(stream).body, b"hello", path)
        equal([field[0] for field in seen if field[0] == b"x-key" and isinstance(field, hpack.NeverIndexedHeaderTuple)], [b"x-key"], path)
    for stream in origin.streams:
        equal({"x-api-key", "user-agent", ":path"} - stream.never_indexed, set(), "indexable fields")


def test_requests_that_need_a_connection_of_their_own(lab, shared):
    """WebSocket, and credentials that count for a connection."""
    def answer(connection, seen):
        if seen.header("Upgrade"):
            connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello")
            return True
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        return False
    origin = TlsOrigin(lab, shared["leaf"], answer, protocols=["http/1.1"])
    proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
    with proxy.wire(reverse=True) as wire:
        wire.send(request("GET", "/ws", {"Host": "x", "Upgrade": "websocket", "Connection": "Upgrade"}))
        equal(wire.response().status, 101, "status")
    equal(proxy.get("/n", {"Authorization": "NTLM TlRMTVNTUAAB"}).status, 200, "status")
    equal(proxy.counter("origin_http2_requests"), 0, "requests by HTTP/2")


# What calls share

@memcheck
def test_many_requests_over_one_connection(lab, shared):
    """A hundred first requests do not open a hundred connections."""
    origin = Http2Origin(lab, lambda stream: (time.sleep(0.05), stream.answer()), certificate=shared["leaf"],
                         before=lambda: until(lambda: proxy.counter("origin_http2_waits") > 10, 60, "requests that wait"))
    proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
    equal(set(at_once(60, lambda index: status_of(proxy, f"/{index}"))), {200}, "statuses")
    equal(origin.accepted, 1, "connections")
    equal(len({stream.id for stream in origin.streams}), 60, "streams")
    equal(proxy.counter(OPEN), 1, "connections now")


def test_the_streams_that_the_origin_allows(lab):
    """No more at a time than it says; further connections, and then requests wait."""
    busy = {"now": {}, "most": 0}

    def answer(stream):
        link = stream.link.number
        with origin.lock:
            busy["now"][link] = busy["now"].get(link, 0) + 1
            busy["most"] = max(busy["most"], busy["now"][link])
        time.sleep(0.05)
        with origin.lock:
            busy["now"][link] -= 1
        stream.answer()
    origin = Http2Origin(lab, answer, settings={h2.MAX_CONCURRENT_STREAMS: 3})
    proxy = behind(lab, origin, origin={"http2_connections": 2})
    equal(status_of(proxy), 200, "the first one: now the origin's settings are known")
    equal(set(at_once(30, lambda index: status_of(proxy, f"/{index}"))), {200}, "statuses")
    equal(busy["most"], 3, "streams at a time on a connection")
    equal(origin.accepted, 2, "connections")


def test_no_more_streams_than_windows_have_room(lab):
    """The window of a connection is at most 2^31-1 bytes. Responses that nobody reads must not fill it, so fewer share a connection."""
    all_there = threading.Event()

    def answer(stream):
        if len(origin.streams) > 70:
            all_there.set()
        all_there.wait(60)
        stream.answer()
    origin = Http2Origin(lab, lambda stream: stream.answer() if stream[":path"] == "/first" else answer(stream))
    proxy = behind(lab, origin, origin={"http2_window": "16MB", "http2_streams": 1000})
    equal(status_of(proxy, "/first"), 200, "the first one: now the origin's settings are known")
    equal(set(at_once(70, lambda index: status_of(proxy, f"/{index}"))), {200}, "statuses")
    equal(origin.accepted, 2, "connections: 63 streams of 16 MB take half of the largest window")


def test_a_request_waits_for_a_stream_for_a_time(lab):
    hold = threading.Event()
    origin = Http2Origin(lab, lambda stream: (hold.wait(60), stream.answer()), settings={h2.MAX_CONCURRENT_STREAMS: 1})
    proxy = behind(lab, origin, origin={"http2_connections": 1, "connect_timeout": "1s"})
    first = threading.Thread(target=status_of, args=(proxy, "/first"))
    first.start()
    until(lambda: origin.streams, 30, "the first request")
    answer = proxy.get("/second")
    hold.set()
    first.join()
    equal(answer.status, 504, "status")
    contains(answer.text(), "http2_connections", "the reason")
    equal(proxy.counter("origin_http2_wait_timeouts"), 1, "counted")
    equal(len(origin.streams), 1, "requests at the origin")


def test_who_waits_for_a_connection_that_fails(lab, shared):
    """All fail at once, and none of them tries for itself: the origin is asked once."""
    origin = TlsOrigin(lab, shared["leaf"])  # not trusted
    proxy = Retort(lab, reverse={"/": origin.url()})
    equal(set(at_once(20, lambda index: status_of(proxy, f"/{index}"))), {502}, "statuses")
    true(origin.accepted <= 10, f"{origin.accepted} connections for 20 requests")  # few come later, on a busy machine


def test_an_idle_connection_is_closed(lab):
    origin, proxy = start(lab, proxy={"origin": {"idle_timeout": "200ms"}})
    equal(status_of(proxy), 200, "status")
    until(lambda: proxy.counter(OPEN) == 0, 30, "the connection is closed")
    equal(status_of(proxy), 200, "status")
    equal(origin.accepted, 2, "connections")
    equal(origin.links[0].goaway, h2.NO_ERROR, "GOAWAY")


# What may be sent again

def test_a_refused_request_is_sent_again(lab):
    """REFUSED_STREAM: "the request was not processed" (RFC 9113 §8.7). So even a POST is repeated, if its body was not begun."""
    def answer(stream):
        if len(origin.streams) == 1:
            stream.cut(h2.REFUSED_STREAM)
        else:
            stream.answer()
    origin = Http2Origin(lab, answer)
    proxy = behind(lab, origin)
    equal(proxy.fetch("POST", "/x", body=b"").status, 200, "status")
    equal(len(origin.streams), 2, "requests at the origin")
    equal(proxy.counter("origin_http2_refused"), 1, "counted")


def test_an_origin_that_refuses_all(lab):
    origin, proxy = start(lab, lambda stream: stream.cut(h2.REFUSED_STREAM))
    equal(status_of(proxy), 502, "status")
    equal(len(origin.streams), 4, "requests at the origin")


def test_streams_behind_the_last_of_a_goaway(lab):
    """Those up to the last one are answered; the others are sent again on another connection."""
    both = threading.Barrier(2)

    def answer(stream):
        if stream.link.number == 1 and stream[":path"] != "/first":
            both.wait(60)
            if stream.id == 3:
                stream.link.go_away(3)
                stream.answer(b"old")
            return
        stream.answer(b"new")
    origin = Http2Origin(lab, answer)
    proxy = behind(lab, origin)
    proxy.get("/first")
    seen = at_once(2, lambda index: (time.sleep(0.05 * index), proxy.fetch("POST", f"/{index}", body=b"").text())[1])
    equal(sorted(seen), ["new", "old"], "answers")
    equal(origin.accepted, 2, "connections")
    equal((proxy.counter("origin_http2_refused"), proxy.counter("origin_http2_goaways")), (1, 1), "counted")


def test_a_lost_connection(lab):
    """What may have been processed is repeated only if it is safe, and once."""
    def answer(stream):
        if stream[":path"] == "/first" or stream.link.number > 1:
            stream.answer()
        else:
            stream.link.close()
    for method, expected in (("GET", 200), ("POST", 502)):
        origin = Http2Origin(lab, answer)
        proxy = behind(lab, origin)
        proxy.get("/first")
        equal(proxy.fetch(method, "/x", body=b"" if method == "POST" else None).status, expected, method)
        equal(origin.accepted, 2 if expected == 200 else 1, "connections")


class Stalled:
    """A proxy whose one connection to the origin is stuck: behind an upload of which the origin reads nothing more. What is asked then
    has a stream there, and nothing of it has been sent. `other`: a server that is asked when this one fails."""

    def __init__(self, lab, act=lambda stream: None, other=None, times=None, **options):
        self.act, self.stopped, self.go, self.done = act, threading.Event(), threading.Event(), threading.Event()
        self.origin = Http2Origin(lab, self.answer, settings={h2.INITIAL_WINDOW_SIZE: 2**31 - 1}, **options)
        servers = group([self.origin] + ([other] if other else []), "far", ["weight=256"], http2="on")
        self.proxy = Retort(lab, reverse={"/": "far/"}, extra=servers, origin={"first_byte_timeout": "60s", **(times or {})})
        equal(status_of(self.proxy, "/first"), 200, "status: the origin's settings are known now")
        self.wire = self.proxy.wire(reverse=True)
        self.wire.send(request("POST", "/up", {"Host": "x", "Content-Length": str(1 << 30)}))
        true(self.stopped.wait(20), "the origin has stopped reading")
        self.wire.socket.setblocking(False)
        moved = time.monotonic()
        while time.monotonic() - moved < 1:
            try:
                self.wire.socket.send(bytes(1 << 20))
                moved = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        self.sent = self.proxy.counter("origin_bytes_out")

    def answer(self, stream):
        if stream[":path"] != "/up":
            stream.ended.wait(60)
            stream.answer(stream[":path"].encode() + b" " + stream.body)
            return
        stream.link.send(frame(h2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 1 - 65535)))
        with stream.link.lock:  # nothing is read while it is held
            self.stopped.set()
            self.go.wait(60)
            self.act(stream)
            self.done.wait(60)

    def ask(self, path, method="GET", body=None):
        """A request that waits behind the upload."""
        before = self.proxy.counter("origin_http2_requests")
        wire = self.proxy.wire(reverse=True)
        wire.send(request(method, path, {"Host": "x"}, body))
        until(lambda: self.proxy.counter("origin_http2_requests") == before + 1, 20, "the request has a stream")
        return wire

    def is_stuck(self):
        """Nothing at all has been sent meanwhile. The system may yet take a few bytes, now and then."""
        return self.proxy.counter("origin_bytes_out") == self.sent

    def end(self):
        self.go.set()
        self.done.set()
        self.wire.abort()


def behind_stalled(lab, requests, **options):
    """A Stalled, and the wires of these requests, of which nothing has been sent."""
    for _ in range(5):
        stalled = Stalled(lab, **options)
        wires = [stalled.ask(*each) for each in requests]
        if stalled.is_stuck():
            return stalled, wires
        stalled.end()
    raise AssertionError("the connection goes on taking bytes")


def test_what_was_not_sent_is_sent_on_another_connection(lab):
    """Its connection is lost before the head was sent: so whatever the method is, and whoever ends the connection."""
    for act in (lambda stream: stream.link.close(),
                lambda stream: stream.link.connection.socket.sendall(frame(h2.GOAWAY, 0, 0, struct.pack(">II", stream.id, h2.NO_ERROR)))):
        requests = [("/empty", "POST", b""), ("/body", "POST", b"hello"), ("/patch", "PATCH", b"x"), ("/get",)]
        stalled, wires = behind_stalled(lab, requests, act=act)
        stalled.go.set()
        answers = [wire.response() for wire in wires]
        stalled.end()
        equal([answer.status for answer in answers], [200] * 4, "statuses")
        equal([answer.text() for answer in answers], ["/empty ", "/body hello", "/patch x", "/get "], "answers")
        equal(sorted(stream[":path"] for stream in stalled.origin.streams), ["/body", "/empty", "/first", "/get", "/patch", "/up"],
              "requests at the origin, each of them once")


@memcheck
def test_what_was_sent_is_not_sent_again(lab):
    """Its connection is lost behind the head: the origin may have acted on it, whether it has seen the body or not. Unless it says that it has
    not, by REFUSED_STREAM or the last stream of GOAWAY; then nothing of the body may have been sent."""
    def lose(stream):
        stream.link.close()

    def refuse(stream):
        stream.cut(h2.REFUSED_STREAM)

    def leave(stream):
        stream.link.go_away(stream.id - 2)
    for act, sent, expected in ((lose, b"", 502), (lose, b"he", 502), (refuse, b"", 200), (leave, b"", 200), (refuse, b"he", 502),
                                (leave, b"he", 502)):
        def answer(stream, act=act, sent=sent):
            if stream[":path"] == "/x" and len([each for each in origin.streams if each[":path"] == "/x"]) == 1:
                stream.wait_body(len(sent))
                act(stream)
            else:
                stream.ended.wait(60)
                stream.answer(stream.body)
        origin = Http2Origin(lab, answer)
        proxy = behind(lab, origin)
        proxy.get("/first")
        what = f"{act.__name__} behind {len(sent)} bytes"
        with proxy.wire(reverse=True) as wire:
            wire.send(request("POST", "/x", {"Host": "x", "Content-Length": "5"}) + sent)
            if expected == 200:
                until(lambda origin=origin: len(origin.streams) == 3, 20, f"{what}: it is sent again")
                wire.send(b"hello"[len(sent):])
            response = wire.response()
        equal(response.status, expected, what)
        equal(len(origin.streams), 3 if expected == 200 else 2, f"{what}: requests at the origin")
        equal(response.body == b"hello", expected == 200, f"{what}: the body")


def test_what_was_not_sent_to_a_silent_host(lab):
    remote = Remote(lab)
    other = Http2Origin(lab, lambda stream: stream.answer(b"other " + stream.wait_body(5)))
    stalled, (wire,) = behind_stalled(lab, [("/x", "POST", b"hello")], other=other, times={"connect_timeout": "1s"}, remote=remote)
    with wire:
        stalled.wire.abort()
        remote.pull()
        response = wire.response(timeout=40 * lab.patience)
    stalled.go.set()
    stalled.done.set()
    equal((response.status, response.text()), (200, "other hello"), "the answer")


def test_a_refused_request_without_a_stream(lab):
    """It waits for a stream until connect_timeout. Nobody has acted on it."""
    hold = threading.Event()

    def answer(stream):
        if stream[":path"] == "/post":
            until(lambda: proxy.counter("origin_http2_waits") == 1, 20, "another request waits for the stream")
            stream.cut(h2.REFUSED_STREAM)
        elif stream[":path"] == "/held":
            hold.wait(60)
            stream.answer(b"held")
        else:
            stream.answer()
    origin, other = Http2Origin(lab, answer, settings={h2.MAX_CONCURRENT_STREAMS: 1}), Http2Origin(lab, lambda stream: stream.answer(b"other"))
    proxy = Retort(lab, reverse={"/": "far/"}, extra=group([origin, other], "far", ["weight=256"], http2="on"),
                   origin={"http2_connections": 1, "connect_timeout": "2s"})
    proxy.get("/first")
    answers = {}

    def ask(method, path):
        answers[path] = proxy.fetch(method, path, body=b"" if method == "POST" else None, timeout=60).text()
    threads = [threading.Thread(target=ask, args=each) for each in (("POST", "/post"), ("GET", "/held"))]
    threads[0].start()
    until(lambda: len(origin.streams) == 2, 20, "the request that is refused")
    threads[1].start()
    threads[0].join()
    hold.set()
    threads[1].join()
    equal(answers, {"/post": "other", "/held": "held"}, "answers")


def test_http_1_1_required(lab, shared):
    """RFC 9113 §7: "The endpoint requires that HTTP/1.1 be used instead of HTTP/2." Also by GOAWAY, and for a POST whose body was
    not begun."""
    for how in (lambda stream: stream.cut(h2.HTTP_1_1_REQUIRED), lambda stream: stream.link.go_away(0, h2.HTTP_1_1_REQUIRED)):
        origin = Either(lab, how, shared["leaf"])
        proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
        for method in ("GET", "POST"):
            equal(proxy.fetch(method, "/x", body=b"" if method == "POST" else None).text(), f"{method} by HTTP/1.1", "answer")
        equal(len(origin.streams), 2, "requests by HTTP/2")
        equal(proxy.counter("origin_http2_http1_demanded"), 2, "counted")


def test_http_1_1_required_in_the_middle(lab):
    """What was begun is not repeated."""
    def answer(stream):
        stream.wait_body(5)
        stream.cut(h2.HTTP_1_1_REQUIRED)
    origin, proxy = start(lab, answer)
    answer = proxy.fetch("POST", "/x", body=b"hello")
    equal(answer.status, 502, "status")
    contains(answer.text(), "http2 = off", "the reason")
    equal(len(origin.streams), 1, "requests")


class Either(Http2Origin):
    """HTTP/2 where the handshake agrees on it, else HTTP/1.1."""

    def __init__(self, lab, answer, certificate):
        super().__init__(lab, answer, certificate=certificate, protocols=("h2", "http/1.1"))

    def _serve(self, connection, number):
        connection.socket = self.context.wrap_socket(connection.socket, server_side=True)
        if connection.socket.selected_alpn_protocol() == "h2":
            self.speak(connection, number)
            return
        while seen := read_request(connection):
            body = f"{seen.method} by HTTP/1.1".encode()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: no-store\r\n\r\n" % len(body) + body)


# Bodies

@memcheck
def test_bodies_of_all_sizes(lab):
    origin, proxy = start(lab, lambda stream: sized_answer(stream, int(stream[":path"].rpartition("=")[2])))
    for size in (0, 1, 16383, 16384, 16385, 100_000, 2_000_000):
        for _ in range(2):
            same_bytes(proxy.get(f"/x?n={size}").body, pattern(size), f"{size} bytes")
    equal(len(origin.streams), 7, "requests: the others are hits")


def sized_answer(stream, size, end=True):
    stream.head({":status": "200", "content-length": str(size), "cache-control": "max-age=60"})
    stream.flow(pattern(size), end=end)


def test_uploads(lab):
    origin, proxy = start(lab, lambda stream: (stream.ended.wait(60), stream.answer()))
    body = pattern(3_000_000)
    equal(proxy.fetch("POST", "/up", body=body).status, 200, "status")
    same_bytes(origin.streams[0].body, body, "the body at the origin")
    equal(origin.streams[0]["content-length"], str(len(body)), "length")
    with proxy.wire(reverse=True) as wire:
        wire.send(request("POST", "/chunked", {"Host": "x", "Transfer-Encoding": "chunked"}) + chunked(b"hello", b"world"))
        equal(wire.response().status, 200, "status")
    equal((origin.streams[1].body, origin.streams[1]["content-length"]), (b"helloworld", None), "without a length")


def test_an_upload_waits_for_the_window(lab):
    """No byte more than the origin's window; and a client that leaves ends the stream."""
    origin, proxy = start(lab, lambda stream: stream.answer() if stream[":method"] == "GET" else None,
                          settings={h2.INITIAL_WINDOW_SIZE: 1000}, grows=False)
    equal(status_of(proxy), 200, "status: the origin's settings are known now")
    with proxy.wire(reverse=True) as wire:
        wire.send(request("POST", "/up", {"Host": "x", "Content-Length": "50000"}) + pattern(50000))
        until(lambda: len(origin.streams) == 2 and len(origin.streams[1].body) == 1000, 30, "the first 1000 bytes")
        upload = origin.streams[1]
        time.sleep(0.1)
        equal(len(upload.body), 1000, "bytes")
        upload.grow(500)
        until(lambda: len(upload.body) == 1500, 30, "500 more")
        wire.abort()
    until(lambda: upload.reset is not None, 30, "the stream is reset when the client has left")
    equal(upload.reset, h2.CANCEL, "error")
    true(not upload.ended.is_set(), "it was not ended as if it were complete")


def jam(lab, **options):
    """One connection whose window an upload has used up; the origin has taken its settings. Ends with the upload's wire."""
    hold = threading.Event()

    def answer(stream):
        if stream[":path"] == "/held":
            stream.head({":status": "200", "cache-control": "no-store"})
            hold.wait(60)
            stream.data(b"held", end=True)
        elif stream[":method"] == "GET" or stream.ended.wait(60):
            stream.answer()
    origin = Http2Origin(lab, answer, settings={h2.INITIAL_WINDOW_SIZE: 1_000_000}, grows=False)
    proxy = behind(lab, origin, origin={"http2_connections": 1, **options})
    equal(status_of(proxy, "/first"), 200, "status: the origin's settings are known now")
    held = []
    other = threading.Thread(target=lambda: held.append(proxy.get("/held", timeout=60).body))
    other.start()
    until(lambda: len(origin.streams) == 2, 20, "a download")
    wire = proxy.wire(reverse=True)
    wire.send(request("POST", "/up", {"Host": "x", "Content-Length": "100000"}) + pattern(100_000))
    until(lambda: len(origin.streams) == 3 and len(origin.streams[2].body) == 65535, 20, "the connection's window is used up")

    def release():
        hold.set()
        other.join()
        return held
    return origin, proxy, wire, release


def test_an_upload_that_waits_stops_no_others(lab):
    origin, proxy, wire, release = jam(lab)
    with wire, proxy.wire(reverse=True) as waiting:
        waiting.send(request("POST", "/second", {"Host": "x", "Content-Length": "10"}) + pattern(10))
        until(lambda: proxy.counter("origin_http2_waits") == 1, 20, "another upload waits")
        equal(status_of(proxy, "/other"), 200, "status of a download")
        equal([stream[":path"] for stream in origin.streams], ["/first", "/held", "/up", "/other"], "requests at the origin")
        origin.streams[2].grow(200_000)
        equal((wire.response().status, waiting.response().status), (200, 200), "statuses of both uploads")
    equal((release(), origin.accepted), ([b"held"], 1), "the download before, and connections")


def test_an_upload_that_is_never_taken_ends_alone(lab):
    """The connection's window does not grow: the upload fails, and the download beside it goes on."""
    origin, _proxy, wire, release = jam(lab, first_byte_timeout="2s")
    with wire:
        one_of(wire.response().status, (502, 504), "status of the upload")
    until(lambda: origin.streams[2].reset is not None, 20, "its stream is reset")
    equal((release(), origin.accepted), ([b"held"], 1), "the download, and connections")


def test_an_upload_that_breaks_off(lab):
    origin, proxy = start(lab, lambda stream: None)
    with proxy.wire(reverse=True) as wire:
        wire.send(request("POST", "/up", {"Host": "x", "Content-Length": "50000"}) + pattern(3000))
        until(lambda: origin.streams and len(origin.streams[0].body) == 3000, 30, "the first bytes")
    until(lambda: origin.streams[0].reset is not None, 30, "a reset")
    true(not origin.streams[0].ended.is_set(), "the request was not completed")


def test_both_directions_at_the_same_time(lab):
    """The head of the response, and bytes of it, before the request has ended; nothing is kept back."""
    def answer(stream):
        stream.head({":status": "200"})
        for count in range(1, 4):
            stream.wait_body(5 * count)
            stream.data(b"echo%d" % count)
        stream.ended.wait(60)
        stream.data(b"end", end=True)
    origin, proxy = start(lab, answer)
    with proxy.wire(reverse=True) as wire:
        wire.send(request("POST", "/talk", {"Host": "x", "Transfer-Encoding": "chunked"}))
        seen = b""
        for count in range(1, 4):
            wire.send(b"5\r\nhello\r\n")
            while b"echo%d" % count not in seen:
                seen += wire.read_some()
        wire.send(b"0\r\n\r\n")
        while b"end\r\n0\r\n" not in seen:
            seen += wire.read_some()
    equal(len(origin.streams), 1, "requests")


def test_a_client_that_leaves_ends_its_stream_only(lab):
    hold = threading.Event()

    def answer(stream):
        sized_answer(stream, 100_000, end=False) if stream[":path"] == "/gone" else (hold.wait(60), stream.answer())
    origin, proxy = start(lab, answer)
    other = threading.Thread(target=status_of, args=(proxy, "/other"))
    other.start()
    until(lambda: origin.streams, 30, "the other request")
    with proxy.wire(reverse=True) as wire:
        wire.send(request("GET", "/gone", {"Host": "x", "Cache-Control": "no-store"}))
        until(lambda: len(origin.streams) == 2, 30, "the request")
    until(lambda: origin.streams[1].reset is not None, 30, "a reset")
    hold.set()
    other.join()
    equal((origin.accepted, proxy.counter(OPEN)), (1, 1), "connections")
    equal(status_of(proxy, "/third"), 200, "status")


def test_slow_clients_stop_nobody(lab):
    """Clients that do not read keep their own streams waiting, and those of nobody else: the connection's window is never used
    up by bytes that wait."""
    def answer(stream):
        if stream[":path"].startswith("/big"):
            stream.head({":status": "200", "cache-control": "no-store"})
            stream.data(pattern(250_000))
        else:
            stream.answer(pattern(60_000))
    origin, proxy = start(lab, answer)
    wires = [proxy.wire(reverse=True) for _ in range(40)]
    for index, wire in enumerate(wires):
        wire.send(request("GET", f"/big{index}", {"Host": "x"}))
    until(lambda: len(origin.streams) == 40, 30, "the requests")
    for index in range(30):
        equal(len(proxy.get(f"/small{index}", timeout=60).body), 60_000, "bytes")
    equal(origin.accepted, 1, "connections")
    for wire in wires:
        wire.close()


# Heads, interim responses, trailers

def test_interim_responses(lab):
    def answer(stream):
        stream.head({":status": "103", "link": "</a.css>; rel=preload"})
        stream.head({":status": "100"})
        stream.answer()
    _origin, proxy = start(lab, answer)
    with proxy.wire(reverse=True) as wire:
        wire.send(request("GET", "/x", {"Host": "x"}))
        seen = b""
        while b"answer\n" not in seen:
            seen += wire.read_some()
    contains(seen, b"HTTP/1.1 103 Early Hints\r\n", "answer")
    contains(seen, b"rel=preload", "answer")
    equal(seen.count(b"HTTP/1.1 1"), 1, "interim responses")


def test_names_that_an_origin_claims(lab):
    """RFC 8336: an ORIGIN frame says for which other names its server is authoritative. It changes nothing."""
    claimed = []

    def answer(stream):
        if not claimed:
            claimed.append(True)
            for names in (["https://other.test"], [], ["http://a.test", "https://b.test:8443"]):
                payload = b"".join(struct.pack(">H", len(name)) + name.encode() for name in names)
                stream.link.send(frame(0xc, 0, 0, payload))
            stream.link.send(frame(0xc, 0, stream.id, b"on a stream") + frame(0xc, 0xff, 0, b"\xff\xffcut"))
        stream.answer()
    origin, proxy = start(lab, answer)
    for _ in range(3):
        equal(status_of(proxy), 200, "status")
    equal((origin.accepted, proxy.counter("origin_http2_protocol_errors"), proxy.counter("origin_http2_calmed")), (1, 0, 0),
          "connections, and those that ended")


def test_trailers(lab):
    def answer(stream):
        stream.head({":status": "200", "cache-control": "no-store"})
        stream.data(b"hello")
        stream.head({"grpc-status": "0", "content-length": "7", "set-cookie": "a=1"}, end=True)
    _origin, proxy = start(lab, answer)
    with proxy.wire(reverse=True) as wire:
        wire.send(request("GET", "/t", {"Host": "x", "TE": "trailers", "Connection": "TE"}))
        taken = wire.response()
    equal((taken.body, taken.trailers), (b"hello", [("grpc-status", "0")]), "with TE: those that may pass")
    equal(proxy.get("/t").body, b"hello", "without TE")


@memcheck
def test_responses_without_content(lab):
    def answer(stream):
        kind = stream[":path"][1:]
        if kind == "head":
            stream.head({":status": "200", "content-length": "1234"}, end=True)
        elif kind == "trailers-only":
            stream.head({":status": "200", "grpc-status": "12"}, end=True)
        else:
            stream.head({":status": kind[:3], "etag": '"1"'}, end="x" not in kind)
            if "x" in kind:
                stream.data(b"not content", end=True)
    origin, proxy = start(lab, answer)
    head = proxy.fetch("HEAD", "/head")
    equal((head.status, head.header("Content-Length")), (200, "1234"), "HEAD")
    equal((proxy.get("/204").status, proxy.get("/304", {"If-None-Match": '"1"'}).status), (204, 304), "statuses")
    equal(proxy.get("/trailers-only").header("grpc-status"), "12", "a response of a head alone")
    for path in ("/204x", "/304x"):
        with proxy.wire(reverse=True) as wire:
            for _ in range(2):
                wire.send(request("GET", path, {"Host": "x", "If-None-Match": '"1"'}))
                answer = wire.response()
                equal((answer.status, answer.body), (int(path[1:4]), b""), f"{path}: DATA is not passed on")
    true(len(origin.streams) >= 6, "requests")


def head_of(stream, length=None):
    stream.head([(":status", "200"), ("cache-control", "max-age=60")] + ([("content-length", str(length))] if length else []))


# Groups, reload, end

def test_servers_of_a_group(lab):
    """Health checks go by HTTP/2 too, over the connections of requests; a server that refuses requests is left for the others."""
    sick = threading.Event()

    def answer(stream):
        if stream[":path"] == "/healthz" and sick.is_set():
            stream.head({":status": "503"}, end=True)
        elif sick.is_set():
            stream.cut(h2.REFUSED_STREAM)
        else:
            stream.answer(b"first")
    first, second = Http2Origin(lab, answer), Http2Origin(lab, lambda stream: stream.answer(b"second"))
    proxy = Retort(lab, reverse={"/": "far/"}, extra=f"""
origins far {{ servers = {{ "{first.url("")}", "{second.url("")}" }}  http2 = on  max_failures = 2  health_check = "/healthz"
    check_interval = "100ms" }}""")

    def answers():
        return {proxy.get(f"/{number}").text() for number in range(6)}
    until(lambda: any(stream[":path"] == "/healthz" for stream in first.streams), 20, "a check")
    equal(answers(), {"first", "second"}, "both")
    sick.set()
    equal({proxy.fetch("POST", "/post", body=b"").text() for _ in range(4)}, {"second"},
          "every request gets an answer from the one that is well, also one that must not be repeated otherwise")
    equal(answers(), {"second"}, "others too")
    until(lambda: proxy.counter("origin_servers_down") > 0, 20, "it is down")
    sick.clear()
    until(lambda: "first" in answers(), 30, "it is up by its checks")
    equal(first.accepted, 1, "connections")


def test_reload_and_end(lab, shared):
    """What is under way goes on, with the connection that it has; new requests follow the new settings. A drain waits for it."""
    hold = threading.Event()

    def answer(stream):
        if stream[":path"] == "/slow":
            stream.head({":status": "200", "cache-control": "no-store"})
            hold.wait(60)
            stream.data(b"slow", end=True)
        else:
            stream.answer(b"by HTTP/2")
    origin = Either(lab, answer, shared["leaf"])
    proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
    seen = []
    slow = threading.Thread(target=lambda: seen.append(proxy.get("/slow", timeout=60).body))
    slow.start()
    until(lambda: origin.streams, 20, "the slow request")
    proxy.write_config(proxy.text(origin={**shared["ca"], "http2": "off"}))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get("/x").text(), "GET by HTTP/1.1", "a new request")
    proxy.process.send_signal(signal.SIGTERM)
    hold.set()
    slow.join()
    equal(seen, [b"slow"], "the one that was under way")


# Times

def test_silence(lab):
    """Timeouts are those of HTTP/1.1: the first byte, a pause of the body, and settings that never come."""
    def answer(stream):
        if stream[":path"] == "/pause":
            head_of(stream, 10)
            stream.data(b"hello")
    origin, proxy = start(lab, answer, proxy={"origin": {"first_byte_timeout": "1s", "read_timeout": "1s"}})
    equal(status_of(proxy, "/never"), 504, "status")
    try:
        proxy.get("/pause")
        true(False, "a response that was not complete")
    except Truncated:
        pass
    until(lambda: [stream.reset for stream in origin.streams] == [h2.CANCEL] * 2, 30, "the streams are reset")
    mute = Http2Origin(lab, lambda stream: None, first=b"", acknowledges=False)
    proxy = behind(lab, mute, origin={"first_byte_timeout": "1s"})
    equal(status_of(proxy), 504, "status of an origin that says nothing")
