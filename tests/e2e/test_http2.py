"""HTTP/2 with clients: where it is spoken, what requests and responses become, and what other programs say to it."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time

from harness import browser, http2, ports, wire
from harness.certificates import Authority
from harness.checks import Skip, contains, equal, lacks, one_of, raises, true, until
from harness.hello import Hello, records, server_flight
from harness.http2 import Gone, Http2, Reset
from harness.interception import Interception
from harness.metrics import scrape, value
from harness.nginx import Nginx
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort
from harness.services import Services
from harness.suite import heavy, memcheck, seconds
from test_takeover import Successor

NAMES = ("a.test", "localhost", "127.0.0.1")


class Site:
    """A proxy with all kinds of listeners before one origin. `reverse`, `forward`, `plain` and `weak` speak TLS, the last two without
    HTTP/2 and with an old cipher; `clear1` speaks HTTP/1.1 in clear text only."""

    def __init__(self, lab, answer=None, client=None, **options):
        self.lab = lab
        self.authority = Authority(lab)
        self.leaf = self.authority.leaf(*NAMES)
        self.other = self.authority.leaf("b.test", "*.wild.test")
        self.origin = RawOrigin(lab, answer) if answer else Origin(lab)
        self.reverse, self.forward, self.plain, self.weak, self.clear1 = (ports.take() for _ in range(5))
        certificates = f'certificates = {{ "{self.leaf.both}", "{self.other.both}" }}'
        self.proxy = Retort(lab, reverse={"/": self.origin.url()}, client=client, **options, extra=f"""
connect_ports = {{ {self.origin.port} }}
listen "127.0.0.1:{self.reverse}" {{ mode = reverse  {certificates} }}
listen "127.0.0.1:{self.forward}" {{ mode = forward  local_destinations = allow  {certificates} }}
listen "127.0.0.1:{self.plain}" {{ mode = reverse  http2 = off  {certificates} }}
listen "127.0.0.1:{self.weak}" {{ mode = reverse  {certificates}
    ciphers = "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256" }}
listen "127.0.0.1:{self.clear1}" {{ mode = reverse  http2 = off }}
{options.get("more", "")}""")

    def context(self, *protocols, newest=None, ciphers=None):
        context = ssl.create_default_context(cafile=self.authority.file)
        context.set_alpn_protocols(list(protocols or ("h2", "http/1.1")))
        if newest:
            context.maximum_version = newest
        if ciphers:
            context.set_ciphers(ciphers)
        return context

    def agreed(self, port, *protocols, **options):
        raw = socket.create_connection(("127.0.0.1", port), timeout=20 * self.lab.patience)
        with self.context(*protocols, **options).wrap_socket(raw, server_hostname="a.test") as secure:
            return secure.selected_alpn_protocol()

    def clear(self, forward=False, **options):
        options.setdefault("timeout", 20 * self.lab.patience)
        return Http2(self.proxy.forward if forward else self.proxy.reverse, **options)

    def secure(self, port=None, name="a.test", **options):
        options.setdefault("timeout", 20 * self.lab.patience)
        return Http2(("127.0.0.1", port or self.reverse), self.context(), name, **options)

    def target(self, path, **arguments):
        return self.origin.target(path, **arguments)


def share(lab):
    return Site(lab)


# ---- Where it is spoken

def test_what_a_handshake_agrees_on(_lab, site):
    """RFC 9113 §9.2.2: a server may refuse HTTP/2 with the ciphers of appendix A."""
    equal(site.agreed(site.reverse), "h2", "with TLS 1.3")
    equal(site.agreed(site.reverse, "http/1.1", "h2"), "h2", "the server's order counts")
    equal(site.agreed(site.forward), "h2", "an HTTPS proxy")
    equal(site.agreed(site.reverse, "http/1.1"), "http/1.1", "a client that speaks HTTP/1.1 only")
    equal(site.agreed(site.plain), "http/1.1", "http2 = off")
    tls12 = {"newest": ssl.TLSVersion.TLSv1_2}
    equal(site.agreed(site.reverse, **tls12), "h2", "with TLS 1.2")
    equal(site.agreed(site.weak, **tls12, ciphers="ECDHE-ECDSA-AES128-SHA256"), "http/1.1", "with a cipher of appendix A")
    equal(site.agreed(site.weak, **tls12, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256"), "h2", "with another cipher")
    for port, ciphers in ((site.weak, "ECDHE-ECDSA-AES128-SHA256"), (site.plain, None)):
        error = raises(ssl.SSLError, lambda p=port, c=ciphers: site.agreed(p, "h2", **tls12, ciphers=c), "h2 only")
        contains(str(error).upper().replace(" ", "_"), "NO_APPLICATION_PROTOCOL", "the alert")


@memcheck
def test_preface_in_clear_text(_lab, site):
    """RFC 9113 §3.3: a client may begin with HTTP/2 if it knows that the server speaks it."""
    for forward in (False, True):
        url = site.origin.url("/text", say="clear")
        with site.clear(forward) as client:
            equal(client.get(url).body, b"clear", "body")
    with site.clear(preface=False) as client:
        head = http2.Http2.head_frames(1, http2.block(http2.request_fields("GET", "/text?say=pieces")))
        for byte in http2.PREFACE + http2.framed(http2.SETTINGS, 0, 0) + head:
            client.send(bytes([byte]))
        equal(client.response(1).body, b"pieces", "after a preface in pieces")


def test_preface_at_a_transparent_listener(lab):
    origin, port = RawOrigin(lab), ports.take()
    Retort(lab, extra=f"""listen "127.0.0.1:{port}" {{
    mode = transparent  local_destinations = allow  proxy_protocol = "127.0.0.0/8"  allow = "127.0.0.0/8" }}""")
    for size in (1000, 3):
        with wire.Wire(("127.0.0.1", port), timeout=20 * lab.patience) as redirected:
            redirected.send(b"PROXY TCP4 127.0.0.1 127.0.0.1 1234 %d\r\n" % origin.port)
            redirected.send_pieces(http2.PREFACE, size, 0.001)
            client = Http2.over(redirected.socket, 20 * lab.patience, preface=False)
            client.frame(http2.SETTINGS)
            equal(client.get(origin.url("/there")).status, 200, "status")
    equal([request.target for request in origin.requests], ["/there"] * 2, "at the origin")


@memcheck
def test_what_is_no_preface(_lab, site):
    preface = http2.PREFACE
    for address, sent, status in ((site.proxy.reverse, preface[:-8] + b"GET / HTTP/1.1\r\n\r\n", 505),
                                  (site.proxy.reverse, preface.replace(b"2.0", b"2.1"), 505),
                                  (site.proxy.reverse, b"\r\n" + preface, 505),
                                  (site.proxy.reverse, preface.replace(b"SM", b"GO"), 505),
                                  (("127.0.0.1", site.clear1), preface, 505),
                                  (("127.0.0.1", site.reverse), preface, 505)):
        with wire.Wire(address, timeout=20 * site.lab.patience) as client:
            client.send(sent)
            equal(client.response().status, status, f"answer to {sent!r}")
    with site.proxy.wire(reverse=True) as client:
        client.send(wire.request("GET", "/text?say=first") + preface)
        equal(client.response().body, b"first", "a request of HTTP/1.1")
        equal(client.response().status, 505, "and a preface behind it")
    with site.proxy.wire(reverse=True) as client:
        client.send(b"INVALID CONNECTION PREFACE\r\n\r\n")
        true(client.at_end(), "what is neither HTTP/1 nor HTTP/2 ends the connection")
    with wire.Wire(("127.0.0.1", site.clear1)) as client:
        client.send(b"INVALID CONNECTION PREFACE\r\n\r\n")
        equal(client.response().status, 400, "where HTTP/1.1 is spoken only")
    with site.proxy.wire(reverse=True) as client:
        client.send(preface[:20])
        true(client.quiet(0.3), "a part of it is waited for")


def test_upgrade_to_h2c_is_not_taken(_lab, site):
    """RFC 9113 §3.1 declares the upgrade obsolete; it would carry a request past HTTP/1.1's checks."""
    with site.proxy.wire(reverse=True) as client:
        client.send(wire.request("GET", "/echo", {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c",
                                                  "HTTP2-Settings": "AAMAAABkAAQAAP__"}))
        answer = client.response()
        equal(answer.status, 200, "status")
        equal([echoed(answer)["header"](name) for name in ("Upgrade", "HTTP2-Settings")], [None, None], "at the origin")


def test_settings_of_both_sides(_lab, site):
    with site.clear() as client:
        client.settle()
        said = client.settings
        equal(said[http2.MAX_CONCURRENT_STREAMS], 128, "SETTINGS_MAX_CONCURRENT_STREAMS")
        equal(said[http2.INITIAL_WINDOW_SIZE], 256 * 1024, "SETTINGS_INITIAL_WINDOW_SIZE")
        equal(said.get(http2.ENABLE_CONNECT_PROTOCOL), 1, "SETTINGS_ENABLE_CONNECT_PROTOCOL")
        equal(said.get(http2.MAX_HEADER_LIST_SIZE), 64 * 1024, "SETTINGS_MAX_HEADER_LIST_SIZE follows client.max_head")
        equal(said.get(http2.ENABLE_PUSH, 0), 0, "a server says nothing else")
        equal(client.acknowledged, 1, "our SETTINGS are acknowledged")
        equal(client.window(0), 1 << 20, "the connection's window")


# ---- Requests and responses

@memcheck
def test_what_the_origin_sees(_lab, site):
    with site.secure() as client:
        answer = client.get("https://a.test/echo", [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-own", "kept")], "POST",
                            b"the body")
    seen = echoed(answer)
    equal(answer.status, 200, "status")
    equal(seen["method"], "POST", "method")
    equal(seen["body"], b"the body", "body")
    equal(seen["header"]("cookie"), "a=1; b=2", "Cookie (RFC 9113 §8.2.3)")
    equal(seen["header"]("via"), "2.0 retort", "Via")
    equal(seen["header"]("x-own"), "kept", "another field")
    contains(answer.header("via") or "", "retort", "Via of the response")


def test_bodies(_lab, site):
    with site.secure() as client:
        for path in ("/bytes", "/chunked"):
            answer = client.get(f"https://a.test{path}?n=300000")
            equal(answer.body, pattern(300000), path)
        head = client.get("https://a.test/bytes?n=4000", method="HEAD")
        equal((head.status, head.header("content-length"), head.length), (200, "4000", 0), "HEAD")
        part = client.get("https://a.test/bytes?n=4000&cc=max-age%3D60", [("range", "bytes=10-19")])
        equal((part.status, part.body), (206, pattern(4000)[10:20]), "a range")
        stream = client.request("POST", "https://a.test/echo", body=None)
        client.upload(stream, pattern(1500000)[:1500000])
        equal(json.loads(client.response(stream).body)["length"], 1500000, "a large upload")


def test_many_streams(_lab, site):
    with site.secure() as client:
        streams = [client.request("GET", f"https://a.test/bytes?n={i * 1000}") for i in range(1, 101)]
        for i, stream in enumerate(streams, 1):
            equal(client.response(stream).length, i * 1000, f"stream {stream}")
        client.settle()
    equal(site.proxy.counter("client_http2_streams_refused"), 0, "refused")


@memcheck
def test_log_via_and_metrics(lab):
    log = {name: lab.path(f"{name}.log") for name in ("squid", "combined", "own")}
    extra = f"""access_log "{log['combined']}" {{ format = combined }}
access_log "{log['own']}" {{ format = "%rv %rm %>Hs" }}"""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()}, extra=extra)
    with Http2(proxy.reverse) as client:
        equal([client.get("/bytes?n=5&cc=max-age%3D60").status for _ in range(2)], [200, 200], "status")
    equal([entry["http_version"] for entry in proxy.log(2)], ["2.0", "2.0"], "json log")
    for name, expected in (("combined", ' HTTP/2.0"'), ("own", "2.0 GET 200")):
        until(lambda n=name: os.path.exists(log[n]) and open(log[n], encoding="utf-8").read().count("\n") >= 2, 5, f"{name} log")
        contains(open(log[name], encoding="utf-8").read(), expected, f"{name} log")
    text = scrape(proxy)
    equal(value(text, "retort_requests_total", protocol="HTTP/2"), 2, "requests by protocol")
    equal([proxy.counter(f"client_http2_{name}") for name in ("connections", "streams", "protocol_errors", "calmed")], [1, 2, 0, 0],
          "counters")
    until(lambda: proxy.counter("client_http2_connections_open") == 0, 5, "no connection is open any more")
    equal(proxy.counter("client_http2_streams_open"), 0, "open streams")


def test_hits_are_shared_between_protocols(lab):
    def answer(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=600\r\nETag: \"e\"\r\n"
                        b"Connection: X-Hop\r\nX-Hop: secret\r\nX-Kept: yes\r\n\r\nbody")
    site = Site(lab, answer)
    with site.clear() as client:
        first = client.get("/one")
        equal((first.status, first.body, first.header("x-hop"), first.header("x-kept")), (200, b"body", None, "yes"), "a miss")
        again = client.get("/one")
        equal((again.body, again.header("x-hop")), (b"body", None), "a hit")
        true(again.header("age") is not None, "Age")
        equal(client.get("/one", [("if-none-match", '"e"')]).status, 304, "a condition")
    equal(site.proxy.get("/one").body, b"body", "a hit by HTTP/1.1")
    with site.secure() as client:
        equal(client.get("https://a.test/one").status, 200, "by TLS")
    equal(site.proxy.results("/one", 4)[1:4], ["HIT", "HIT", "HIT"], "results")


def test_trailers_and_interim_responses(lab):
    def answer(connection, request):
        connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        time.sleep(0.05)
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nCache-Control: no-store\r\n\r\n"
                        b"5\r\nhello\r\n0\r\nX-Sum: 1234\r\n\r\n")
    site = Site(lab, answer)
    with site.clear() as client:
        for fields, trailers in (((), []), ([("te", "trailers")], [("x-sum", "1234")])):
            answer = client.get("/", fields)
            equal([status for status, _ in answer.interim], [103], "interim responses")
            contains(dict(answer.interim[0][1]), "link", "fields of 103")
            equal((answer.body, answer.trailers), (b"hello", trailers), f"with {fields}")


def test_an_upload_that_is_answered_early(lab):
    """RFC 9113 §8.1: a response may be complete before the request is, and the server then resets the rest of it with NO_ERROR."""
    def answer(connection, request):
        connection.send(b"HTTP/1.1 403 No\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly")
        return True
    origin = RawOrigin(lab, answer, read_body=False)
    proxy = Retort(lab, reverse={"/": origin.url()})
    with Http2(proxy.reverse) as client:
        stream = client.request("POST", "/", [("content-length", "1000000")], body=None)
        client.data(stream, b"x" * 1000)
        answer = client.response(stream)
        equal((answer.status, answer.body), (403, b"early"), "answer")
        equal(client.reset_of(stream), http2.NO_ERROR, "RST_STREAM")
        client.data(stream, b"x" * 1000)
        equal(client.get("/", method="DELETE").status, 403, "the connection goes on")


def test_urgency(lab):
    """RFC 9218 §4.1: the server sends what is more urgent first, by the field and by PRIORITY_UPDATE."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()})
    target = "/bytes?n=400000&cc=max-age%3D60"
    equal(proxy.get(target).status, 200, "into the cache")
    for update in (False, True):
        with Http2(proxy.reverse, initial_window_size=1 << 20, credit=False) as client:
            lazy = [client.request("GET", target, [("priority", "u=6")]) for _ in range(3)]
            urgent = client.request("GET", target, [] if update else [("priority", "u=1")])
            if update:
                client.frame(http2.PRIORITY_UPDATE, 0, 0, urgent.to_bytes(4, "big") + b"u=1")
            client.settle()
            client.give(0, 300000)
            client.read_until(lambda: sum(client.answer(stream).length for stream in (*lazy, urgent)) >= 365535)
            rest = [client.answer(stream).length for stream in lazy]
            true(client.answer(urgent).length >= 300000, f"the urgent one has {client.answer(urgent).length} bytes, others {rest}")
            client.give(0, 1 << 22)
            equal([client.response(stream).length for stream in (*lazy, urgent)], [400000] * 4, "all")


def test_urgency_that_comes_before_its_request(lab):
    """RFC 9218 §7.1: a server keeps the most recent PRIORITY_UPDATE for a stream that is not open yet. It counts more than the field
    of the request. What is kept has a bound, and is kept only for streams that the client may open."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()})
    target = "/bytes?n=400000&cc=max-age%3D60"
    equal(proxy.get(target).status, 200, "into the cache")

    def first(streams, updates, fields=()):
        """The stream whose response is sent before those of the others, all of which are asked for at the same time."""
        with Http2(proxy.reverse, initial_window_size=1 << 20, credit=False) as client:
            client.settle()
            for stream, value in updates:
                client.frame(http2.PRIORITY_UPDATE, 0, 0, stream.to_bytes(4, "big") + value)
            asked = [client.request("GET", target, fields) for _ in range(streams)]
            client.settle()
            before = [client.answer(stream).length for stream in asked]
            client.give(0, 300000)
            client.read_until(lambda: sum(client.answer(stream).length for stream in asked) >= 365535)
            grown = [client.answer(stream).length - length for stream, length in zip(asked, before)]
            client.give(0, 1 << 24)
            equal([client.response(stream).length for stream in asked], [400000] * streams, "all")
            return asked[grown.index(max(grown))] if max(grown) >= 250000 else None
    equal(first(4, []), None, "without an update")
    equal(first(4, [(7, b"u=1")]), 7, "an update")
    equal(first(4, [(7, b"u=1"), (7, b"u=5"), (5, b"u=1")]), 5, "the most recent one")
    equal(first(4, [(5, b"u=1")], [("priority", "u=4")]), 5, "fields that say something else")
    equal(first(4, [(5, b"u=1")] + [(1001, b"u=2"), (8, b"u=2")] * 20), 5, "behind it, updates of streams that can't be opened")
    equal(first(4, [(5, b"u=1")] + [(stream, b"u=3") for stream in range(21, 121, 2)]), None, "behind it, updates of too many")


def test_what_is_urgent_takes_little_longer_than_alone(lab):
    """Until an urgent response is whole, the connection carries at most half as much again for others, whenever it was asked for."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()})
    large, urgent = "/bytes?n=6000000&cc=max-age%3D60", "/bytes?n=1000000&cc=max-age%3D60"
    for target in (large, urgent):
        equal(proxy.get(target).status, 200, "into the cache")
    with Http2(proxy.reverse, timeout=20 * lab.patience, receive_buffer=32768, initial_window_size=1 << 24, credit=False) as client:
        client.give(0, 1 << 30)
        for i in range(10):
            lazy = [client.request("GET", large, [("priority", value)]) for value in ("u=6", "u=5, i", "u=6, i")]
            client.read_until(lambda: sum(client.answer(stream).length for stream in lazy) > 300000 * i)
            before = sum(client.answer(stream).length for stream in lazy)
            equal(client.response(client.request("GET", urgent, [("priority", "u=1")])).length, 1000000, "the urgent one")
            true(sum(client.answer(stream).length for stream in lazy) - before < 600000,
                 f"{sum(client.answer(stream).length for stream in lazy) - before} bytes of others came before its end")
            for stream in lazy:
                client.reset_stream(stream)


@heavy("times")
@seconds(120)
def test_what_is_urgent_is_as_fast_as_alone(lab):
    """The 99th percentile of urgent responses beside a large one that is not is at most half as much again as alone."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()})
    large, urgent = "/bytes?n=20000000&cc=max-age%3D60", "/bytes?n=1000000&cc=max-age%3D60"
    for target in (large, urgent):
        equal(proxy.get(target).status, 200, "into the cache")

    def worst(client, beside):
        """Of 50 urgent responses, of which each begins in the middle of a large one. The second longest of them."""
        taken = []
        for _ in range(50):
            lazy = client.request("GET", large, [("priority", "u=6")]) if beside else None
            if beside:
                client.read_until(lambda stream=lazy: client.answer(stream).length > 100000)
            began = time.monotonic()
            answer = client.response(client.request("GET", urgent, [("priority", "u=1")]))
            taken.append(time.monotonic() - began)
            equal(answer.length, 1000000, "bytes of the urgent one")
            if beside:
                true(not client.answer(lazy).ended, "the large one is under way")
                client.reset_stream(lazy)
                client.settle()
        return sorted(taken)[-2]
    tries = []
    for _ in range(6):
        with Http2(proxy.reverse, timeout=20 * lab.patience, receive_buffer=32768, initial_window_size=1 << 27, credit=False) as client:
            client.give(0, 1 << 30)
            tries.append((worst(client, False), worst(client, True)))
        if tries[-1][1] <= 1.5 * tries[-1][0] + 0.001:
            return
    equal(tries, "alone and beside, at most 1.5 times as long", "seconds of urgent responses")


def test_streams_share_a_connection(lab):
    """A small response need not wait for a large one that came first."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()})
    for target in ("/bytes?n=3000000&cc=max-age%3D60", "/bytes?n=500&cc=max-age%3D60"):
        equal(proxy.get(target).status, 200, "into the cache")
    with Http2(proxy.reverse, receive_buffer=16384, initial_window_size=1 << 24) as client:
        client.give(0, 1 << 24)
        large = client.request("GET", "/bytes?n=3000000&cc=max-age%3D60", [("priority", "i")])
        client.read_until(lambda: client.answer(large).length > 0)
        small = client.response(client.request("GET", "/bytes?n=500&cc=max-age%3D60", [("priority", "i")]))
        equal(small.length, 500, "the small one")
        true(client.answer(large).length < 3000000, "the large one is still under way")
        equal(client.response(large).length, 3000000, "the large one")


def test_connect_and_websocket(lab):
    """RFC 9113 §8.5 and RFC 8441: tunnels beside requests on one connection."""
    def answer(connection, request):
        if request.header("Upgrade") is None:
            return connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: no-store\r\n\r\nplain")
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello")
        while data := connection.read_some():
            connection.send(data.upper())
        return True
    site = Site(lab, answer)
    origin = site.origin
    with site.clear(forward=True) as client:
        tunnel = client.take_stream()
        client.headers(tunnel, [(":method", "CONNECT"), (":authority", origin.authority)], end=False)
        client.data(tunnel, wire.request("GET", "/inside", host="inside"))
        answer = client.answer(tunnel)
        client.read_until(lambda: b"plain" in answer.body)
        equal(answer.status, 200, "CONNECT")
        socket_stream = client.take_stream()
        client.headers(socket_stream, [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"),
                                       (":authority", origin.authority), (":path", "/ws"), ("sec-websocket-version", "13")], end=False)
        socket_answer = client.answer(socket_stream)
        client.read_until(lambda: socket_answer.body == b"hello")
        equal(socket_answer.status, 200, "extended CONNECT")
        client.data(socket_stream, b"shout")
        client.read_until(lambda: socket_answer.body == b"helloSHOUT")
        equal(client.get(origin.url("/beside")).body, b"plain", "a request beside them")
        client.data(tunnel, b"", end=True)
        client.read_until(lambda: answer.ended)
        client.reset_stream(socket_stream)
        equal(client.is_open(), True, "the connection goes on")
    equal(origin.requests[-2].header("Upgrade") or origin.requests[-1].header("Upgrade"), "websocket", "at the origin")


# ---- Whose requests a connection is for

def test_names_that_the_certificate_does_not_cover(_lab, site):
    """RFC 9110 §15.5.20: 421 when the server is not able to produce an authoritative response for the target URI."""
    for name, asked, status in (("a.test", "a.test", 200), ("a.test", "A.TEST:8443", 200), ("a.test", "localhost", 200),
                                ("a.test", "127.0.0.1", 200), ("a.test", "b.test", 421), ("a.test", "c.test", 421),
                                ("x.wild.test", "y.wild.test", 200), ("x.wild.test", "y.y.wild.test", 421),
                                ("b.test", "a.test", 421)):
        with site.secure(name=name) as client:
            answer = client.get(f"https://{asked}/text?say=x")
            equal(answer.status, status, f"{asked} on a connection for {name}")
            equal(client.get(f"https://{name}/text?say=x").status, 200, "the connection goes on")
    equal(site.proxy.counter("client_misdirected"), 4, "counted")
    with wire.Wire(("127.0.0.1", site.reverse)) as client:
        client.socket = site.context("http/1.1").wrap_socket(client.socket, server_hostname="a.test")
        client.send(wire.request("GET", "/text?say=one", host="b.test"))
        equal(client.response().status, 200, "HTTP/1.1 clients use a connection for one name")


def test_inside_intercepted_connections(lab):
    def stored(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=600\r\n\r\nok")
    site = Interception(lab, "www.example.com", "*.example.com", answer=stored)

    def client_of(*protocols):
        context = site.context()
        context.set_alpn_protocols(list(protocols))
        bumped = site.bumped("www.example.com", context)
        return Http2.over(bumped.socket, 20 * lab.patience)
    for protocols in (("h2", "http/1.1"), ("h2",)):
        with client_of(*protocols) as client:
            equal(client.socket.selected_alpn_protocol(), "h2", f"agreed on, of {protocols}")
            answer = client.get(site.url("www.example.com", "/page"))
            equal((answer.status, answer.body), (200, b"ok"), "inside")
            equal(client.get(site.url("other.example.com", "/page")).status, 421, "another host than the CONNECT's")
            equal(client.get("http://www.example.com/page").status in (400, 421), True, "another scheme")
            equal(client.get(site.url("www.example.com", "/page")).status, 200, "and back")
    equal(site.proxy.results("/page", 4)[0], "MISS", "the first")
    contains(site.proxy.results("/page", 4), "HIT", "the others")
    equal(len(site.origin.requests), 1, "requests at the origin")
    with site.tunnel() as tunnel:
        tunnel.send(records(Hello(name=b"www.example.com", alpn=(b"h3",)).message()))
        true(server_flight(tunnel) is not None, "a client that speaks neither is spliced")
    equal(site.proxy.counter("intercept_not_tls"), 1, "counted")


# ---- The end of connections

def test_drain(lab):
    """RFC 9113 §6.8: requests under way are answered, and later ones may be sent to another server."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()}, drain_timeout="10s")
    with Http2(proxy.reverse) as client:
        slow = client.request("GET", "/drip?n=20&piece=1&delay=50")
        client.read_until(lambda: client.answer(slow).length > 0)
        proxy.ctl("drain")
        answer = client.response(slow)
        equal((answer.status, answer.length), (200, 20), "the request under way")
        end = client.goaway()
        equal(end.error, http2.NO_ERROR, "GOAWAY")
        true(end.last >= slow, f"its last stream {end.last}")


def test_a_takeover_loses_no_request(lab):
    """Connections of the old process end with GOAWAY: what it names is answered, and the rest was not looked at."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()}, drain_timeout="6s")
    replaced, lost, answered, connections = threading.Event(), [], [0], [0]

    def visit():
        while not replaced.is_set() or connections[0] < 2:
            connections[0] += 1
            with Http2(proxy.reverse, timeout=20 * lab.patience) as client:
                streams = []
                while not (client.end or client.eof):
                    streams = [client.request("GET", "/text?say=x&ms=20") for _ in range(10)]
                    for stream in streams:
                        try:
                            equal(client.response(stream).body, b"x", "body")
                            answered[0] += 1
                        except (Gone, Reset) as error:
                            last = int.from_bytes(client.end.payload[:4], "big") if client.end else 1 << 31
                            if stream <= last:
                                lost.append((stream, str(error)))
                    if replaced.is_set() and connections[0] > 1:
                        break
    visitor = threading.Thread(target=visit)
    visitor.start()
    until(lambda: answered[0] > 50, 10, "requests")
    successor = Successor(lab, proxy)
    successor.wait_for_the_end_of_the_old_one()
    proxy.process = successor.process
    replaced.set()
    visitor.join(20 * lab.patience)
    equal(lost, [], "requests that were lost")
    true(connections[0] >= 2, f"{connections[0]} connections, {answered[0]} answers")


def test_reload(lab):
    """A connection goes on with the settings of the next request; http2 = off is for new connections."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()})
    with Http2(proxy.reverse) as client:
        slow = client.request("GET", "/drip?n=20&piece=1&delay=30")
        client.settle()  # a connection of which nothing has been read yet is a new one
        text = proxy.text().replace("{ mode = reverse }", "{ mode = reverse  http2 = off }")
        proxy.write_config(text)
        equal(proxy.reload().status, 200, "reload")
        equal(client.response(slow).length, 20, "the request under way")
        equal(client.get("/text?say=after").body, b"after", "a later one")
    with wire.Wire(proxy.reverse) as client:
        client.send(http2.PREFACE)
        equal(client.response().status, 505, "a new connection")


def test_client_max_requests(lab):
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url()}, client={"max_requests": 3})
    with Http2(proxy.reverse) as client:
        equal([client.get("/text?say=x").status for _ in range(3)], [200] * 3, "requests")
        equal(client.goaway().error, http2.NO_ERROR, "GOAWAY behind them")


# ---- What others say

def run(lab, *words, expect=0, limit=60, **options):
    if shutil.which(words[0]) is None:
        raise Skip(f"needs {words[0]}: tests/install.sh test")
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False, timeout=limit * lab.patience, **options)
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    equal(done.returncode, expect, f"{words[0]}: exit status; it said: {said[-1500:]}")
    return said


def test_curl(lab, site):
    common = ("curl", "-sS", "-m", 20 * lab.patience, "--noproxy", "", "--cacert", site.authority.file,
              "--resolve", f"a.test:{site.reverse}:127.0.0.1", "-w", "%{http_version} ")
    url = f"https://a.test:{site.reverse}"
    equal(run(lab, *common, "--http2", f"{url}/text?say=a-"), "a-2 ", "by ALPN")
    equal(run(lab, *common, "--http1.1", f"{url}/text?say=a-"), "a-1.1 ", "HTTP/1.1 is still there")
    equal(run(lab, *common, "--http2-prior-knowledge", f"http://127.0.0.1:{site.proxy.reverse[1]}/text?say=a-"), "a-2 ", "in clear text")
    equal(run(lab, *common, "--http2", f"http://127.0.0.1:{site.proxy.reverse[1]}/text?say=a-"), "a-1.1 ", "the upgrade is ignored")
    path = lab.write("upload", pattern(700000))
    said = run(lab, *common, "--http2", "-T", path, "-o", lab.path("echoed"), f"{url}/echo")
    equal(said, "2 ", "an upload")
    with open(lab.path("echoed"), encoding="utf-8") as seen:
        equal(json.load(seen)["length"], 700000, "at the origin")
    many = [word for i in range(50) for word in ("-o", "/dev/null", f"{url}/bytes?n={i * 100}")]
    equal(run(lab, *common, "--http2", "--no-progress-meter", "--parallel", *many), "2 " * 50, "fifty at a time")


def test_nghttp(lab, site):
    said = run(lab, "nghttp", "-nv", "--no-verify-peer", "-H:authority:a.test", f"https://127.0.0.1:{site.reverse}/bytes?n=100000",
               f"https://127.0.0.1:{site.reverse}/text?say=x")
    equal(said.count(":status: 200"), 2, "answers")
    equal(re.findall(r"RST_STREAM|(?<!NO_)ERROR\b", said), [], "what it says")
    run(lab, "nghttp", "-n", f"http://127.0.0.1:{site.proxy.reverse[1]}/bytes?n=100000")


@heavy("load")
def test_h2load(lab, site):
    for scheme, port in (("https", site.reverse), ("http", site.proxy.reverse[1])):
        said = run(lab, "h2load", "-n", 10000, "-c", 10, "-m", 50, f"{scheme}://127.0.0.1:{port}/bytes?n=1000&cc=max-age%3D600")
        contains(said, "10000 succeeded, 0 failed, 0 errored, 0 timeout", f"h2load by {scheme}")
        contains(said, "status codes: 10000 2xx", f"h2load by {scheme}")
    equal(site.proxy.counter("client_http2_calmed"), 0, "calmed")


def test_python_h2(lab, site):
    """Another implementation of the protocol that is strict about what it gets."""
    try:
        import h2.config
        import h2.connection
        import h2.events
    except ImportError:
        raise Skip("needs python3-h2: tests/install.sh test") from None
    raw = socket.create_connection(("127.0.0.1", site.reverse), timeout=20 * lab.patience)
    secure = site.context("h2").wrap_socket(raw, server_hostname="a.test")
    state = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    state.initiate_connection()
    for stream in (1, 3, 5):
        state.send_headers(stream, [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"),
                                    (":path", f"/bytes?n={stream * 70000}")], end_stream=True)
    secure.sendall(state.data_to_send())
    lengths, ended = {}, set()
    while len(ended) < 3:
        for event in state.receive_data(secure.recv(65536)):
            if isinstance(event, h2.events.DataReceived):
                lengths[event.stream_id] = lengths.get(event.stream_id, 0) + len(event.data)
                state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                ended.add(event.stream_id)
        secure.sendall(state.data_to_send())
    equal(lengths, {1: 70000, 3: 210000, 5: 350000}, "bodies")


PAGE = """<!doctype html><title>pictures</title><script>
for (let i = 0; i < 100; i++) {
    const image = new Image();
    image.src = "/picture.jpg?" + i;
    image.onload = () => { document.title = ++loaded; };
    document.documentElement.append(image);
}
let loaded = 0;
function coloured() {
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    let count = 0;
    for (const image of document.images) {
        context.drawImage(image, 0, 0, 30, 30);
        const data = context.getImageData(0, 0, 30, 30).data;
        for (let i = 0; i < data.length; i += 4)
            if (data[i] !== data[i + 1] || data[i] !== data[i + 2]) { count++; break; }
    }
    return count;
}
</script>"""


@heavy("a browser's own time limits")
@seconds(120)
def test_chromium(lab):
    """A page with a hundred pictures, which the gray service has changed before: all over one connection, and from the cache."""
    browser.program()
    services = Services(lab, names=("gray",))
    authority, port = Authority(lab), ports.take()
    leaf = authority.leaf("127.0.0.1")
    lab.write("site/index.html", PAGE)
    lab.write("site/picture.jpg", lab.read_data("jpeg/video-001.q50.410.jpeg"))
    nginx = Nginx(lab, lab.path("site"))
    proxy = Retort(lab, reverse={"/": nginx.url("/")}, services=services.for_proxy(),
                   extra=f'listen "127.0.0.1:{port}" {{ mode = reverse  certificates = {{ "{leaf.both}" }} }}')
    context = ssl.create_default_context(cafile=authority.file)
    context.set_alpn_protocols(["h2"])
    with Http2(("127.0.0.1", port), context, "127.0.0.1", timeout=20 * lab.patience) as client:
        for i in range(100):
            answer = client.get(f"https://127.0.0.1:{port}/picture.jpg?{i}")
            equal((answer.status, answer.header("content-type")), (200, "image/jpeg"), f"picture {i}")
    page = browser.Browser(lab, ("--ignore-certificate-errors",)).page(f"https://127.0.0.1:{port}/index.html")
    page.wait("document.title === '100'", 30)
    equal(page.run("coloured()"), 0, "pictures with colours")
    answers = [event["params"]["response"] for event in page.browser.events if event["method"] == "Network.responseReceived"]
    pictures = [answer for answer in answers if "picture" in answer["url"]]
    equal((len(pictures), {answer["protocol"] for answer in pictures}), (100, {"h2"}), "pictures by HTTP/2")
    equal(len({answer["connectionId"] for answer in pictures}), 1, "connections for the pictures")
    results = proxy.results("picture", 200)
    equal((results[:100], results[100:]), (["MISS"] * 100, ["HIT"] * 100), "results")
    equal(proxy.counter("client_http2_calmed"), 0, "calmed")
