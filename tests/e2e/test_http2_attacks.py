"""What a client could gain by HTTP/2: work for nothing, memory for nothing, a second meaning of a message. Raw frames, all bounded."""

import multiprocessing
import struct
import threading
import time

from harness import http2, wire
from harness.checks import between, contains, equal, lacks, one_of, raises, true, until
from harness.http2 import (CALM, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, LARGEST_WINDOW, PADDED, PING,
                           PRIORITY, PRIORITY_UPDATE, RST_STREAM, SETTINGS, WINDOW_UPDATE, WITH_PRIORITY, Gone, Http2, Reset, block,
                           framed, integer, literal, request_fields, settings, string)
from harness.process import status_field
from harness.icap import IcapServer, unchanged
from harness.raw_origin import RawOrigin, read_body
from harness.retort import Retort, Service
from harness.suite import heavy, memcheck, seconds
from harness.wire import Silence

FLOOD = 5000  # frames; the budget is 1,000, and time and use bring some of it back
MB = 1 << 20


class Site:
    """An origin whose answers wait until they are released, unless the path says otherwise."""

    def __init__(self, lab, **options):
        self.lab = lab
        self.release = threading.Event()
        self.now = self.most = 0  # requests that wait at the origin
        self.lock = threading.Lock()
        self.origin = RawOrigin(lab, self.answer, read_body=False, receive_buffer=options.pop("receive_buffer", None))
        times = dict.fromkeys(("send_timeout", "body_timeout", "header_timeout"), f"{2 * lab.patience}s")
        client = {**times, **options.pop("client", {})}
        self.proxy = Retort(lab, reverse={"/": self.origin.url()}, client=client, cache={"memory": "64MB"}, **options)
        self.patience = 20 * lab.patience
        lab.opens(self)

    def answer(self, connection, request):
        path = request.target.split("?")[0]
        if path == "/slow":
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            self.release.wait(60)
            with self.lock:
                self.now -= 1
        length = int(request.header("Content-Length") or 0)
        if path == "/upload":
            while length > 0:
                if not (piece := connection.read_some()):
                    self.ended = time.monotonic()
                    return True
                length -= len(piece)
        else:
            try:
                read_body(connection, request)
            except wire.Truncated:
                return True
        size = 10 * MB if path == "/big" else 100
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: %s\r\n\r\n%s" %
                        (size, b"no-store" if path in ("/slow", "/upload", "/miss") else b"max-age=600", b"x" * size))
        return False

    def client(self, **options):
        options.setdefault("timeout", self.patience)
        return Http2(self.proxy.reverse, **options)

    def memory(self):
        return status_field(self.proxy.pid, "VmRSS") * 1024

    def counter(self, name):
        return self.proxy.counter(name)

    def works(self):
        """Does another client get its answer?"""
        equal(self.proxy.get("/fast").status, 200, "another client's request")

    def stop(self):
        self.release.set()

    def findings(self):
        return []


def share(lab):
    site = Site(lab)
    site.works()
    return site


def calmed(site, client, before):
    """The connection ends with ENHANCE_YOUR_CALM, which is counted, and nobody else suffers."""
    gone = client.goaway()
    true(gone is not None, "the connection ends")
    equal(gone.error, CALM, f"GOAWAY ({gone.text})")
    equal(site.counter("client_http2_calmed"), before + 1, "counted")
    site.works()


# ---- Work for nothing

@memcheck
def test_rapid_reset(_lab, site):
    """CVE-2023-44487: requests that are reset at once, and requests that wait at the origin first."""
    for path, error in (("/slow", CANCEL), ("/fast", CANCEL), ("/miss", http2.NO_ERROR), ("/miss", http2.REFUSED_STREAM)):
        before, asked = site.counter("client_http2_calmed"), len(site.origin.requests)
        with site.client() as client:
            head = block(request_fields("GET", path))
            client.send(b"".join(Http2.head_frames(stream, head) + framed(RST_STREAM, 0, stream, struct.pack(">I", error))
                                 for stream in range(1, 2 * 2000, 2)))
            calmed(site, client, before)
        between(len(site.origin.requests) - asked, 0, 600, "requests at the origin")
        until(lambda: site.counter("transactions_active") <= 1, 10, "all transactions have ended")
    between(site.most, 0, 256, "requests that waited at the origin at a time")


def test_resets_between_hits(_lab, site):
    """Requests that are answered from the cache do not pay for those that start and break off one at the origin."""
    for hits in (1, 3):
        before, asked = site.counter("client_http2_calmed"), len(site.origin.requests)
        hit, miss = block(request_fields("GET", "/fast")), block(request_fields("GET", "/slow"))
        with site.client(initial_window_size=LARGEST_WINDOW) as client:
            client.give(0, LARGEST_WINDOW - 65535)
            for first in range(1, 20000, 200):
                for stream in range(first, first + 200, 2 * hits + 2):
                    client.send(b"".join(Http2.head_frames(s, hit) for s in range(stream, stream + 2 * hits, 2))
                                + Http2.head_frames(stream + 2 * hits, miss) + framed(RST_STREAM, 0, stream + 2 * hits, struct.pack(">I", CANCEL)))
                if client.was_reset:
                    break
                try:
                    client.settle()
                except Gone:
                    break
            calmed(site, client, before)
            between(client.gone("").last, 0, 2 * 2000 * hits, "the last stream")
        between(len(site.origin.requests) - asked, 0, 1000, "requests at the origin")
        until(lambda: site.counter("transactions_active") <= 1, 10, "all transactions have ended")


@memcheck
def test_resets_that_we_are_made_to_send(_lab, site):
    """CVE-2025-8671: frames that make the server reset streams whose work goes on elsewhere."""
    get, length = block(request_fields("GET", "/slow")), struct.pack(">I", 0)
    broken = {
        "WINDOW_UPDATE of 0": lambda s: Http2.head_frames(s, get) + framed(WINDOW_UPDATE, 0, s, length),
        "a window that overflows": lambda s: Http2.head_frames(s, get) + framed(WINDOW_UPDATE, 0, s, struct.pack(">I", LARGEST_WINDOW)),
        "DATA after END_STREAM": lambda s: Http2.head_frames(s, get) + framed(DATA, 0, s, b"x"),
        "PRIORITY of another length": lambda s: Http2.head_frames(s, get) + framed(PRIORITY, 0, s, b"abcd"),
        "PRIORITY on itself": lambda s: Http2.head_frames(s, get) + framed(PRIORITY, 0, s, struct.pack(">IB", s, 1)),
        "a malformed head": lambda s: Http2.head_frames(s, block([("x", "y")])),
        "more than Content-Length": lambda s: Http2.head_frames(s, block(request_fields("POST", "/slow", [("content-length", "1")])),
                                                                False) + framed(DATA, 0, s, b"xx"),
    }
    for name, make in broken.items():
        with site.client() as client:
            client.send(b"".join(make(stream) for stream in range(1, 2 * 2000, 2)))
            gone = client.goaway()
            true(gone is not None, f"{name}: the connection ends")
            one_of(gone.error, (CALM, http2.PROTOCOL_ERROR, http2.STREAM_CLOSED, http2.FRAME_SIZE_ERROR, http2.FLOW_CONTROL_ERROR),
                   f"{name}: GOAWAY")
        until(lambda: site.counter("transactions_active") <= 1, 10, f"{name}: all transactions have ended")
    between(site.most, 0, 256, "requests that waited at the origin at a time")
    site.works()


def test_resets_and_services(lab):
    """Services get no more transactions than the connection has streams, and all of them end."""
    seen = []

    def behave(icap, transaction):
        seen.append(transaction)
        time.sleep(0.02)
        unchanged(icap, transaction)
    icap, origin = IcapServer(lab, behave), RawOrigin(lab)
    icap.options["Methods"] = "REQMOD"
    proxy = Retort(lab, reverse={"/": origin.url()}, services=[Service("s", icap.uri(), point="reqmod_precache")])
    head = block(request_fields("GET", "/x"))
    with Http2(proxy.reverse) as client:
        client.send(b"".join(Http2.head_frames(s, head) + framed(RST_STREAM, 0, s, bytes(4)) for s in range(1, 4000, 2)))
        equal(client.goaway().error, CALM, "GOAWAY")
    until(lambda: proxy.counter("transactions_active") == 0, 10, "all transactions have ended")
    between(len(seen), 0, 700, "transactions that the service saw")
    equal(proxy.get("/after").status, 200, "another client's request")


FLOODS = {
    "PING": framed(PING, 0, 0, bytes(8)),
    "SETTINGS": framed(SETTINGS, 0, 0, settings(initial_window_size=70000)),
    "empty SETTINGS": framed(SETTINGS, 0, 0),
    "PRIORITY": framed(PRIORITY, 0, 1001, struct.pack(">IB", 3, 5)),
    "PRIORITY_UPDATE": framed(PRIORITY_UPDATE, 0, 0, struct.pack(">I", 1001) + b"u=1"),
    "empty DATA": framed(DATA, 0, 1),
    "padding only": framed(DATA, PADDED, 1, b"\xff" + bytes(255)),
    "WINDOW_UPDATE": framed(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
    "WINDOW_UPDATE of a stream": framed(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)),
    "unknown frames": framed(0xbb, 0, 0, b"what?"),
    "acknowledged PING": framed(PING, 1, 0, bytes(8)),
}


@memcheck
def test_floods(_lab, site):
    for name, frame in FLOODS.items():
        before = site.counter("client_http2_calmed")
        with site.client() as client:
            client.headers(1, request_fields("POST", "/upload", [("content-length", "1000000")]), end=False)
            client.send(frame * FLOOD)
            gone = client.goaway()
            true(gone is not None, f"{name}: the connection ends")
            equal(gone.error, CALM, f"{name}: GOAWAY")
        equal(site.counter("client_http2_calmed"), before + 1, f"{name}: counted")
    site.works()


def test_floods_that_nobody_reads(_lab, site):
    """What answers PING and SETTINGS is bounded, when the client never reads."""
    before = site.memory()
    clients = []
    for frame in (FLOODS["PING"], FLOODS["SETTINGS"], Http2.head_frames(1, block(request_fields("GET", "/fast")))):
        client = site.client(receive_buffer=4096, timeout=2)
        clients.append(client)
        try:
            for _ in range(20):
                client.socket.sendall(frame * 2000)
        except OSError:
            pass
    between(site.memory() - before, -100 * MB, 8 * MB, "memory")
    site.works()
    for client in clients:
        client.close()


def test_header_blocks_without_end(_lab, site):
    """CVE-2024-27316 and its like: CONTINUATION, also without a byte in it. Eight of them pass, and the ninth ends the connection."""
    piece = literal("x-some", "y" * 100)
    for name, data in (("empty frames", b""), ("small frames", piece), ("large frames", piece * 150)):
        for count in (8, 9):
            with site.client() as client:
                client.settle()
                client.frame(HEADERS, END_STREAM, 1, block(request_fields("GET", "/fast")))
                client.send(framed(CONTINUATION, 0, 1, data) * (count - 1) + framed(CONTINUATION, END_HEADERS, 1, data))
                if count == 8:
                    equal(client.response(1).status, 431 if name == "large frames" else 200, f"{name}: status")
                    equal(client.is_open(), True, f"{name}: the connection goes on")
                    continue
                gone = client.goaway()
                equal((gone.error, gone.text), (CALM, b"a head of too many frames"), f"{name}: GOAWAY")
                equal(client.answer(1).status, None, f"{name}: an answer")
    with site.client() as client:
        client.settle()
        client.frame(HEADERS, END_STREAM, 1, block(request_fields("GET", "/fast")))
        gone = client.goaway()
        equal((gone.error, gone.text), (CALM, b"a frame or a head came too slowly"), "a head that is not complete after header_timeout")
    site.works()


@memcheck
def test_heads_that_grow(_lab, site):
    """A list of fields above client.max_head is answered with 431, whatever it takes on the wire, and is never held as a whole."""
    before = site.memory()
    with site.client() as client:
        # An entry of 4,000 bytes in the table, and then a byte for each use of it.
        first = block(request_fields("GET", "/fast")) + literal("x" * 8, "y" * 3950, 0x40)
        client.send(Http2.head_frames(1, first))
        equal(client.response(1).status, 200, "the entry")
        bomb = block(request_fields("GET", "/fast")) + integer(62, 7, 0x80) * 16000
        client.send(Http2.head_frames(3, bomb))
        equal(client.response(3).status, 431, "the bomb")
        client.next_stream = 5
        equal(client.get("/fast").status, 200, "the connection goes on, and so does its table")
        many = block(request_fields("GET", "/fast")) + literal("a", "") * 15000
        client.send(Http2.head_frames(7, many))
        equal(client.response(7).status, 431, "many small fields")
        client.send(Http2.head_frames(9, block(request_fields("GET", "/fast", [("cookie", "c" * 50)] * 1000))))
        equal(client.response(9).status, 431, "cookies")
        client.send(Http2.head_frames(11, block(request_fields("GET", "/fast", [("x-large", "v" * 120000)]))))
        equal(client.response(11).status, 431, "one large field")
        client.next_stream = 13
        equal(client.get("/fast").status, 200, "the connection goes on")
    lacks([request.header("x-large") is None for request in site.origin.requests], False, "what the origin saw")
    between(site.memory() - before, -100 * MB, 8 * MB, "memory")


def test_a_head_that_is_too_large_ends_its_stream_alone(_lab, site):
    """Users whose requests share a connection are not concerned by the cookies of one of them. What the table of HPACK got from the
    large block is there for the heads behind it."""
    with site.client() as client:
        slow = client.request("GET", "/big")
        for size in (70000, 9 * 16384 - 400):  # up to nine frames
            stream = client.take_stream()
            large = block(request_fields("GET", "/fast")) + literal("x-kept", f"of {size}", 0x40) + literal("cookie", "c" * size)
            client.send(Http2.head_frames(stream, large + literal("x-kept", f"behind {size}", 0x40)))
            equal(client.response(stream).status, 431, f"a cookie of {size} bytes")
            stream = client.take_stream()
            client.send(Http2.head_frames(stream, block(request_fields("GET", f"/fast?{size}")) + integer(63, 7, 0x80) + integer(62, 7, 0x80)))
            equal(client.response(stream).status, 200, "the next head")
            equal(site.origin.requests[-1].headers("x-kept"), [f"of {size}", f"behind {size}"], "what came of the table")
        equal(client.response(slow).length, 10 * MB, "the other stream")
        stream = client.request("POST", "/upload", [("content-length", "10")], None)
        client.send(Http2.head_frames(stream, block([("x-large", "t" * 70000)])))
        equal(client.reset_of(stream), http2.PROTOCOL_ERROR, "trailers that are too large")
        equal(client.is_open(), True, "the connection goes on")


def test_heads_of_many_frames(lab):
    """Where client.max_head allows more than eight frames of 16 KB can hold, more may come."""
    site = Site(lab, client={"max_head": "256KB"})

    def frames(stream, count):
        fields = [(f"x-{index}", "v" * 50000) for index in range(count)]
        return Http2.head_frames(stream, block(request_fields("GET", "/miss", fields)))
    with site.client() as client:
        for count, status in ((5, 200), (6, 431), (9, 431)):
            stream = client.take_stream()
            client.send(frames(stream, count))
            equal(client.response(stream).status, status, f"{count} fields of 50,000 bytes")
        client.send(frames(client.take_stream(), 12))
        equal(client.goaway().error, CALM, "GOAWAY")
    equal(len(site.origin.requests[-1].header("x-4")), 50000, "at the origin")


def test_as_many_fields_as_with_http1(_lab, site):
    """128 fields, of which Host is one. The pieces of Cookie count as one field (RFC 9113 §8.2.3), the pseudo fields as none."""
    many = [(f"x-{i}", "v") for i in range(126)]
    for count, status in ((125, 200), (126, 431)):
        fields = [*many[:count], ("cookie", "a=1"), ("x-last", "v")]
        equal(wire.fetch(site.proxy.reverse, "GET", "/miss", fields).status, status, f"HTTP/1.1: {count + 3} fields")
        with site.client() as client:
            cookies = [("cookie", f"c{i}={i}") for i in range(200)]
            fields = [*cookies[:100], *many[:count], *cookies[100:], ("x-last", "v")]
            equal(client.get("/miss", fields).status, status, f"HTTP/2: {count + 3} fields")
            if status == 200:
                equal(site.origin.requests[-1].header("cookie"), "; ".join(value for _, value in cookies), "the cookie")
                equal(site.origin.requests[-1].header("x-last"), "v", "the last field")


BLOCKS = {
    "index 0": b"\x80",
    "index 62 with an empty table": integer(62, 7, 0x80),
    "an index far away": integer(1 << 40, 7, 0x80),
    "an integer that overflows": b"\xff" + b"\xff" * 20 + b"\x7f",
    "an integer without end": b"\xff\xff",
    "a table larger than allowed": integer(4097, 5, 0x20),
    "a huge table": integer(1 << 31, 5, 0x20),
    "a size update behind a field": block(request_fields("GET", "/fast")) + integer(0, 5, 0x20),
    "a size update between fields": literal(":method", "GET") + integer(100, 5, 0x20) + literal(":path", "/"),
    "a string that is cut": literal("x", "y")[:-1] + b"\x7fcut",
    "a name that is cut": b"\x00\x7f",
    "8 bits of Huffman padding": b"\x00\x01x\x82" + b"\x07\xff",  # "0", and a byte of ones
    "Huffman padding of zeros": b"\x00\x01x\x81\x00",
    "EOS in a string": b"\x00\x01x\x84" + b"\xff\xff\xff\xff",
}


@memcheck
def test_blocks_that_can_not_be_decoded(_lab, site):
    """RFC 9113 §4.3: COMPRESSION_ERROR for the connection."""
    for name, data in BLOCKS.items():
        before, asked = site.counter("client_http2_compression_errors"), len(site.origin.requests)
        with site.client() as client:
            prefix = b"" if name.startswith("a size") or "table" in name or "index" in name else block(request_fields("GET", "/miss"))
            client.send(Http2.head_frames(1, prefix + data))
            gone = client.goaway()
            equal(gone.error, http2.COMPRESSION_ERROR, f"{name}: GOAWAY")
        equal(site.counter("client_http2_compression_errors"), before + 1, f"{name}: counted")
        equal(len(site.origin.requests), asked, f"{name}: requests at the origin")


@memcheck
def test_table_sizes_that_change(_lab, site):
    """What evicts everything and fills the table again costs no more than a request does."""
    with site.client() as client:
        for i in range(200):
            stream = client.take_stream()
            data = integer(0, 5, 0x20) + integer(4096, 5, 0x20) + block(request_fields("GET", "/fast")) + literal(f"x{i}", "v" * 2000, 0x40)
            client.send(Http2.head_frames(stream, data))
            equal(client.response(stream).status, 200, f"request {i}")
        # The client's own limit of our table; we use none.
        client.send(framed(SETTINGS, 0, 0, settings(header_table_size=0)) + framed(SETTINGS, 0, 0, settings(header_table_size=LARGEST_WINDOW)))
        equal(client.get("/fast").status, 200, "after changes of SETTINGS_HEADER_TABLE_SIZE")


# ---- Memory for nothing

@seconds(120)
def test_responses_that_nobody_takes(_lab, site):
    """100 responses of 10 MB from the cache at a time; the windows stay at nothing, at a byte, and the socket unread."""
    equal(len(site.proxy.get("/big").body), 10 * MB, "into the cache")
    before = site.memory()
    zero = site.client(initial_window_size=0)
    one = site.client(initial_window_size=1, credit=False)
    unread = site.client(receive_buffer=4096, initial_window_size=LARGEST_WINDOW)
    unread.give(0, LARGEST_WINDOW - 65535)
    began = time.monotonic()
    for client in (zero, one, unread):
        client.send(b"".join(Http2.head_frames(s, block(request_fields("GET", "/big"))) for s in range(1, 200, 2)))
    until(lambda: site.counter("client_http2_streams_open") >= 250, 5, "all requests are there")
    site.works()
    between(site.memory() - before, -100 * MB, 12 * MB, "memory of 300 responses that wait")
    until(lambda: site.counter("client_http2_streams_open") == 0, 15, "client.send_timeout ends them")
    between(time.monotonic() - began, 1, 12 * site.lab.patience, "seconds until they ended")
    for client in (zero, one, unread):
        client.close()


@seconds(120)
def test_windows_that_grow_by_a_byte(_lab, site):
    """A response that the client takes byte by byte costs more than it is worth."""
    equal(len(site.proxy.get("/big").body), 10 * MB, "into the cache")
    with site.client(initial_window_size=0, credit=False) as client:
        client.headers(1, request_fields("GET", "/big"))
        client.read_until(lambda: client.answer(1).status is not None)
        try:
            for _ in range(200):
                client.send(framed(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)) * 50)
                client.settle()
            client.goaway(timeout=5)
        except Gone as gone:
            equal(gone.error, CALM, "GOAWAY")
        true(client.answer(1).length < 20000, f"{client.answer(1).length} bytes came")
    site.works()


def test_uploads_that_pause(_lab, site):
    """client.body_timeout and the other limits of uploads are those of HTTP/1.1, for each stream."""
    before = site.memory()
    with site.client() as client:
        streams = [client.request("POST", "/upload", [("content-length", "100000")], None) for _ in range(50)]
        for stream in streams:
            client.data(stream, b"x" * 10)
        equal(client.get("/fast").status, 200, "a request beside them")
        for stream in streams:
            try:
                equal(client.response(stream).status, 408, f"stream {stream}")
            except Reset:
                pass
        equal(client.is_open(), True, "the connection goes on")
    between(site.memory() - before, -100 * MB, 8 * MB, "memory")


def test_uploads_byte_by_byte(lab):
    """client.min_rate is for each stream: a client can't keep an upload alive by a byte now and then, beside others that are fast."""
    site = Site(lab, client={"min_rate": 1000, "min_rate_after": "300ms"})
    with site.client() as client:
        slow = [client.request("POST", "/upload", [("content-length", "100000")], None) for _ in range(5)]
        end = time.monotonic() + site.patience
        while any(client.answer(stream).status is None for stream in slow) and time.monotonic() < end:
            for stream in slow:
                client.data(stream, b"x")
            equal(client.get("/fast").status, 200, "a request beside them")
            time.sleep(0.02)
        equal([client.answer(stream).status for stream in slow], [408] * 5, "slow uploads")
        equal(client.is_open(), True, "the connection goes on")
    equal(site.counter("client_too_slow"), 5, "counted")


def test_uploads_that_are_not_read(_lab, site):
    """The windows bound what one connection may leave with us: 1 MB, where the origin reads nothing."""
    before = site.memory()
    with site.client() as client:
        streams = [client.request("POST", "/slow", [("content-length", str(100 * MB))], None) for _ in range(20)]
        client.settle()
        stalled = time.monotonic()
        while time.monotonic() - stalled < 0.7:
            for stream in streams:
                while (room := min(client.window(0), client.window(stream), 16384)) > 0:
                    client.take_window(stream, room)
                    client.frame(DATA, 0, stream, bytes(room))
                    stalled = time.monotonic()
            try:
                client.read_until(lambda: False, 0.1)
            except Silence:
                pass
        between(site.memory() - before, -100 * MB, 16 * MB, "memory")
        asked = max(streams, key=client.window)
        client.data(asked, bytes(max(client.window(0), 0) + 1))
        gone = client.goaway()
        equal(gone.error, http2.FLOW_CONTROL_ERROR, "more than the windows allow")
    site.works()


@seconds(60)
def test_uploads_that_wait_stop_no_others(lab):
    """Uploads to an origin that reads nothing take most of the connection's window: the rest is for the others. When nothing is left, who
    can't send is not too slow."""
    site = Site(lab, receive_buffer=4096)
    with site.client() as client:
        def stall():
            stream = client.request("POST", "/slow", [("content-length", str(100 * MB))], None)
            client.timeout = 0.5 * lab.patience
            raises(Silence, lambda: [client.upload(stream, bytes(1 << 18), end=False) for _ in range(200)], "the origin takes nothing more")
            client.timeout = site.patience
            return stream

        def upload():
            stream = client.request("POST", "/upload", [("content-length", str(MB))], None)
            client.upload(stream, b"x" * MB)
            equal(client.response(stream).status, 200, "an upload beside them")
        stalled = [stall(), stall()]
        while client.window(0) > 256 * 1024:
            stalled.append(stall())
        upload()
        while client.window(0) > 0:
            stalled.append(stall())
        patient = client.request("POST", "/upload", [("content-length", str(MB))], None)
        raises(Silence, lambda: client.response(patient, 5 * lab.patience), "an answer to the one that can't send")
        for stream in stalled:
            client.reset_stream(stream)
        client.upload(patient, b"x" * MB)
        equal(client.response(patient).status, 200, "when they have ended")
        upload()
    site.release.set()


def test_an_upload_ends_with_its_client(_lab, site):
    """The origin learns at once that the rest of a body will not come."""
    for end in ("reset", "close"):
        site.ended = None
        client = site.client()
        stream = client.request("POST", "/upload", [("content-length", "100000")], None)
        client.data(stream, b"x" * 1000)
        until(lambda: site.origin.requests and site.origin.requests[-1].target == "/upload", 5, "the origin is asked")
        client.settle()
        left = time.monotonic()
        if end == "reset":
            client.reset_stream(stream)
        else:
            client.abort()
        until(lambda: site.ended is not None, 5, f"{end}: the origin's connection ends")
        between(site.ended - left, -1, 1 * site.lab.patience, f"{end}: seconds until then")
        client.close()


@heavy("memory")
def test_streams_that_stall(lab):
    """Many connections, each with as many requests as it may have, none of which goes on."""
    site = Site(lab, client={"send_timeout": "30s", "body_timeout": "30s", "header_timeout": "30s"})
    site.works()
    before, clients = site.memory(), []
    for _ in range(20):
        client = site.client(initial_window_size=0)
        clients.append(client)
        client.send(b"".join(Http2.head_frames(s, block(request_fields("GET", "/slow", [("x-pad", "p" * 500)]))) for s in range(1, 257, 2)))
    until(lambda: site.counter("client_http2_streams_open") >= 20 * 128, 20, "all streams are open")
    between((site.memory() - before) / (20 * 128), 0, 24 * 1024, "bytes a stream")
    site.works()
    for client in clients:
        client.abort()
    until(lambda: site.counter("transactions_active") <= 1, 20, "all transactions end with their clients")


@heavy("memory")
def test_cookie_bombs(lab):
    """A head of a few bytes on the wire may stand for 60 KB of cookies: as much as the largest head costs, and no more."""
    site = Site(lab)
    site.works()
    before = site.memory()
    with site.client() as client:
        equal(client.get("/fast").status, 200, "a request")
        cookie = literal("cookie", "c" * 3800, 0x40)
        client.send(Http2.head_frames(3, block(request_fields("GET", "/fast")) + cookie))
        equal(client.response(3).status, 200, "the cookie")
        bomb = block(request_fields("GET", "/slow")) + integer(62, 7, 0x80) * 15
        client.send(b"".join(Http2.head_frames(s, bomb) for s in range(5, 5 + 2 * 120, 2)))
        client.settle()
        between(site.memory() - before, 0, 120 * 200 * 1024, "bytes for 120 heads of 60 KB")
        client.send(b"".join(framed(RST_STREAM, 0, s, bytes(4)) for s in range(5, 5 + 2 * 120, 2)))
        client.settle()
    site.release.set()
    site.works()


@heavy("memory")
def test_idle_connections(lab):
    site = Site(lab)
    site.works()
    before, clients = site.memory(), []
    for _ in range(200):
        client = site.client()
        clients.append(client)
        equal(client.get("/fast").status, 200, "a request")
    between((site.memory() - before) / 200, 0, 30 * 1024, "bytes of an idle connection")
    for client in clients:
        client.close()


# ---- Everybody else

class Measured:
    """Two good clients: one asks by HTTP/1.1, one request at a time; one by HTTP/2, on many streams at a time."""

    STREAMS, TIMES = 20, 300

    def __init__(self, site):
        self.one, self.many = site.proxy.wire(reverse=True), site.client()

    def close(self):
        self.one.close()
        self.many.close()

    def ask_one(self):
        began = time.monotonic()
        self.one.send(wire.request("GET", "/fast"))
        self.one.response()
        return [time.monotonic() - began]

    def ask_many(self):
        began = time.monotonic()
        answers = [self.many.answer(self.many.request("GET", "/fast")) for _ in range(self.STREAMS)]
        self.many.read_until(lambda: all(answer.ended for answer in answers))
        return [answer.finished - began for answer in answers]

    @staticmethod
    def pause():
        """What this machine does to anybody who waits: how much longer a pause of a millisecond is."""
        began = time.monotonic()
        time.sleep(0.001)
        return [time.monotonic() - began - 0.001]

    def worst(self):
        """What 99 of 100 take, by client."""
        taken = {"one at a time": self.ask_one, "many streams": self.ask_many, "a pause": self.pause}
        times = {name: [] for name in taken}
        for _ in range(self.TIMES):
            for name, ask in taken.items():
                times[name] += ask()
        return {name: sorted(each)[len(each) * 99 // 100] for name, each in times.items()}


def attack(address, data, stop):
    """On one connection after the other, in a process of its own, so that it takes no time of the clients that are measured."""
    while not stop.is_set():
        try:
            with Http2(address, timeout=2) as client:
                client.send(data)
                client.goaway()
        except (AssertionError, OSError):
            pass
        stop.wait(0.05)


@heavy("times")
@seconds(180)
def test_others_are_not_slower(lab):
    """The 99th percentile of good clients during attacks is at most twice that alone, and what the machine itself does to everybody."""
    site = Site(lab)
    site.works()
    hit, miss = block(request_fields("GET", "/fast")), block(request_fields("GET", "/miss"))
    reset = framed(RST_STREAM, 0, 0, struct.pack(">I", CANCEL))
    streams = range(1, 3000, 2)

    def cancelled(stream, head_block):
        return Http2.head_frames(stream, head_block) + reset[:5] + struct.pack(">I", stream) + reset[9:]
    floods = (FLOODS["PING"] * 2000,
              b"".join(cancelled(s, hit) for s in streams),
              b"".join(cancelled(s, miss) if s % 4 == 1 else Http2.head_frames(s, hit) for s in streams),
              b"".join(Http2.head_frames(s, hit) + framed(WINDOW_UPDATE, 0, s, bytes(4)) for s in streams),
              framed(HEADERS, END_STREAM, 1, hit) + framed(CONTINUATION, 0, 1, b"") * 2000)
    processes, tries = multiprocessing.get_context("fork"), []
    for _ in range(6):
        measured, stop = Measured(site), processes.Event()
        alone = measured.worst()
        attackers = [processes.Process(target=attack, args=(site.proxy.reverse, data, stop), daemon=True) for data in floods]
        for attacker in attackers:
            attacker.start()
        try:
            beside = measured.worst()
        finally:
            stop.set()
            for attacker in attackers:
                attacker.join(10)
            measured.close()
        tries.append((alone, beside))
        floor = 0.005 + beside["a pause"]
        if all(beside[name] <= 2 * alone[name] + floor for name in ("one at a time", "many streams")):
            break
    else:
        equal(tries, "alone and beside attacks, at most twice as long", "seconds that 99 of 100 requests take, in each try")
    true(site.counter("client_http2_calmed") > 0, "attacks were ended")


# ---- A second meaning

GET = dict(request_fields("GET", "/page"))


def heads():
    """Heads that RFC 9113 §8.2, §8.3 or RFC 9110 forbid: a name, and the fields."""
    def with_field(name, value):
        return request_fields("GET", "/page") + [(name, value)]

    def without(name):
        return [(key, value) for key, value in request_fields("GET", "/page") if key != name]

    def other(name, value):
        return [(key, value if key == name else old) for key, old in request_fields("GET", "/page")]
    for bad in ("\r", "\n", "\0"):
        for value in (f"a{bad}b", f"{bad}a", f"a{bad}", f"a{bad}\nx-injected: 1"):
            yield f"{bad!r} in a value ({value!r})", with_field("x-value", value)
        for pseudo in (":method", ":path", ":authority", ":scheme"):
            yield f"{bad!r} in {pseudo}", other(pseudo, f"{GET[pseudo]}{bad}x")
        yield f"{bad!r} in a name", with_field(f"x{bad}y", "1")
    for value in (" a", "a ", "\ta", "a\t"):
        yield f"blanks around a value ({value!r})", with_field("x-value", value)
    for name in ("", " ", "x y", "x:y", "x-Upper", "X", "x\x7f", "x\xe9", "x\"", "x(", "x/", "x,", ":x", "x\x01"):
        yield f"the name {name!r}", with_field(name, "1")
    for name, value in (("connection", "close"), ("connection", "x-own"), ("keep-alive", "5"), ("proxy-connection", "close"),
                        ("transfer-encoding", "chunked"), ("upgrade", "h2c"), ("te", "gzip"), ("te", "trailers, gzip")):
        yield f"{name}: {value}", with_field(name, value)
    for name in (":method", ":path", ":scheme"):
        yield f"no {name}", without(name)
        yield f"{name} twice", [(name, GET[name])] + request_fields("GET", "/page")
        yield f"empty {name}", other(name, "")
    yield ":authority twice", [(":authority", "localhost")] + request_fields("GET", "/page")
    yield "neither :authority nor Host", without(":authority")
    yield "a late pseudo field", without(":path") + [("x-early", "1"), (":path", "/page")]
    yield "an unknown pseudo field", [(":unknown", "1")] + request_fields("GET", "/page")
    yield "a pseudo field of responses", [(":status", "200")] + request_fields("GET", "/page")
    yield "Host beside another :authority", with_field("host", "other.test")
    yield "two Host fields", without(":authority") + [("host", "localhost"), ("host", "localhost")]
    for authority in ("user@localhost", "user:pass@localhost", "localhost,other", "local host", "localhost/x", "localhost#x", "localhost?x",
                      "localhost:99999", "localhost:x", "[::1", "\x00", "local\x80host", "http://localhost"):
        yield f":authority {authority!r}", other(":authority", authority)
    for method in ("GE T", "GET /x HTTP/1.1", "G\x80T", "G:T", "GET\t"):
        yield f":method {method!r}", other(":method", method)
    for path in ("miss", "miss/", "?x", "*", "http://other.test/", "/a b", "/\x80\x01", "/a\x7f", "/a\tb"):
        yield f":path {path!r}", other(":path", path)
    for scheme in ("ftp", "ht tp", "http:", "javascript", "\x01"):
        yield f":scheme {scheme!r}", other(":scheme", scheme)
    yield "CONNECT with :path", [(":method", "CONNECT"), (":authority", "localhost:443"), (":path", "/")]
    yield "CONNECT with :scheme", [(":method", "CONNECT"), (":authority", "localhost:443"), (":scheme", "https")]
    yield "CONNECT without :authority", [(":method", "CONNECT")]
    yield ":protocol without CONNECT", [(":protocol", "websocket")] + request_fields("GET", "/page")
    for length in ("5", "18446744073709551621", "-1", "+0", "0x0", "0,0", "1, 2", "", "a"):
        yield f"Content-Length {length!r} without a body", with_field("content-length", length)
    yield "two lengths", request_fields("GET", "/page") + [("content-length", "0"), ("content-length", "1")]


@memcheck
def test_heads_with_a_second_meaning(lab):
    """Each is a stream error, or an answer of 400 and more; nothing of it reaches a service, the cache or the origin, or the log unescaped."""
    icap = {method: IcapServer(lab, methods=method) for method in ("REQMOD", "RESPMOD")}
    site = Site(lab, services=[Service("asks", icap["REQMOD"].uri(), point="reqmod_precache"),
                               Service("answers", icap["RESPMOD"].uri(), point="respmod_precache")])
    first, client = site.proxy.get("/page"), None
    equal(first.status, 200, "the page that all of them name")

    def reached():
        return {"the origin": len(site.origin.requests), **{method: server.count for method, server in icap.items()},
                "the cache": site.proxy.status()["cache"]["objects"]}
    before = reached()
    for name, fields in heads():
        client = client or site.client()
        stream = client.take_stream()
        client.headers(stream, fields)
        try:
            answer = client.response(stream)
            between(answer.status, 400, 599, f"{name}: status")
        except Reset as reset:
            one_of(reset.error, (http2.PROTOCOL_ERROR,), f"{name}: RST_STREAM")
        except Gone as gone:
            one_of(gone.error, (http2.PROTOCOL_ERROR, http2.COMPRESSION_ERROR), f"{name}: GOAWAY")
            client.close()
            client = None
        equal(reached(), before, f"{name}: what it has reached")
    client.close()
    for line in open(site.proxy.log_path, "rb").read().split(b"\n"):
        true(all(byte >= 0x20 and byte != 0x7f for byte in line), f"the access log: {line!r}")
    heads_seen = [*site.origin.requests, *(transaction.http_request for server in icap.values() for transaction in server.transactions)]
    lacks([head.header("x-injected") for head in heads_seen], "1", "a field that was injected")
    again = site.proxy.get("/page")
    equal((again.status, again.body), (200, first.body), "the page is still the one that was stored")
    equal(len(site.origin.requests), before["the origin"], "and is a hit")


@memcheck
def test_bodies_that_are_not_as_announced(_lab, site):
    """RFC 9113 §8.1.1: a length that is not the sum of the DATA frames makes a request malformed. A cut body is never a whole one."""
    for length, pieces, end in ((10, (b"x" * 5,), True), (10, (b"x" * 11,), True), (10, (b"x" * 10, b"x"), True), (0, (b"x",), True),
                                (10, (), True), (10, (b"x" * 20,), False)):
        with site.client() as client:
            stream = client.take_stream()
            head = http2.block(http2.request_fields("POST", "/upload", [("content-length", str(length))]))
            body = [(piece, 0) for piece in pieces] + ([(b"", END_STREAM)] if end else [])
            # All at once: a body that is whole by its length may be answered before more comes.
            client.send(client.head_frames(stream, head, False)
                        + b"".join(http2.framed(DATA, flags, stream, piece) for piece, flags in body))
            try:
                answer = client.response(stream)
                between(answer.status, 400, 599, f"{length} announced, {pieces} sent")
            except Reset as reset:
                equal(reset.error, http2.PROTOCOL_ERROR, f"{length} announced, {pieces} sent: RST_STREAM")
            equal(client.is_open(), True, "the connection goes on")
    for trailers in ([(":path", "/")], [("x\r", "1")], [("connection", "close")], [("X", "1")]):
        with site.client() as client:
            stream = client.request("POST", "/miss", (), None)
            client.data(stream, b"x")
            client.headers(stream, trailers)
            try:
                between(client.response(stream).status, 400, 599, f"trailers {trailers}")
            except Reset as reset:
                equal(reset.error, http2.PROTOCOL_ERROR, f"trailers {trailers}")


def test_a_body_of_a_get_poisons_nothing(lab):
    """RFC 9110 §9.3.1: content of a GET has no meaning; an answer that depends on it is for nobody else."""
    def answer(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: max-age=600\r\n\r\n%s" %
                        (len(request.body), request.body))
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, reverse={"/": origin.url()})
    with Http2(proxy.reverse) as client:
        client.get("/page", body=b"poison")
        equal(client.get("/page").body, b"", "what others get")
    equal(proxy.get("/page").body, b"", "and by HTTP/1.1")


def test_fragments_and_asterisks(_lab, site):
    """A fragment never reaches an origin; OPTIONS * is not turned into OPTIONS /."""
    with site.client() as client:
        try:
            one_of(client.get("/miss?a=1#fragment").status, (200, 400), "a fragment")
        except Reset as reset:
            equal(reset.error, http2.PROTOCOL_ERROR, "a fragment")
        try:
            one_of(client.get("*", method="OPTIONS", path="*").status, (400, 501), "OPTIONS *")
        except Reset as reset:
            equal(reset.error, http2.PROTOCOL_ERROR, "OPTIONS *")
    lacks([request.target for request in site.origin.requests], "/miss?a=1#fragment", "at the origin")
    equal([request for request in site.origin.requests if request.method == "OPTIONS"], [], "OPTIONS at the origin")


def test_connect_where_it_is_not_for(_lab, site):
    """A reverse proxy opens no tunnels, and a forward proxy none to ports that are not allowed."""
    for address, authority in ((site.proxy.reverse, "localhost:443"), (site.proxy.reverse, site.origin.authority),
                               (site.proxy.forward, site.origin.authority)):
        with Http2(address) as client:
            for fields in ([], [(":protocol", "websocket"), (":scheme", "http"), (":path", "/fast")] if authority[0] == "l" else []):
                stream = client.take_stream()
                client.headers(stream, [(":method", "CONNECT"), (":authority", authority), *fields], end=False)
                client.data(stream, b"GET /inside HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = client.answer(stream)
                client.read_until(lambda a=answer: a.status is not None or a.reset is not None)
                if fields:  # RFC 9110 §9.3.6: "Any 2xx (Successful) response" opens a tunnel, so what else a server says must be none
                    equal((answer.status, answer.reset), (None, http2.CONNECT_ERROR), "a page in place of a tunnel")
                else:
                    one_of(answer.status, (403, 405), f"CONNECT {authority} at {address}")
            equal(client.is_open(), True, "the connection goes on")
    asked = len(site.origin.requests)
    with site.client() as client:
        stream = client.take_stream()
        client.headers(stream, [(":method", "CONNECT"), (":protocol", "other"), (":scheme", "http"), (":authority", "localhost"),
                                (":path", "/fast")], end=False)
        equal(client.response(stream).status, 501, "another protocol (RFC 9220 §3)")
    equal(len(site.origin.requests), asked, "requests at the origin")
    lacks([request.target for request in site.origin.requests], "/inside", "at the origin")


def test_what_an_origin_breaks(lab):
    """A response that breaks off is reset, never ended; a malformed one is 502."""
    answers = {
        "/cut": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nCache-Control: max-age=60\r\n\r\nhalf", None),
        "/chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\n5\r\nhello\r\n", None),
        "/nul": (b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", 502),
        "/name": (b"HTTP/1.1 200 OK\r\nX y: 1\r\nContent-Length: 0\r\n\r\n", 502),
        "/twice": (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 502),
    }

    def answer(connection, request):
        connection.send(answers[request.target][0])
        return True
    proxy = Retort(lab, reverse={"/": RawOrigin(lab, answer).url()})
    with Http2(proxy.reverse) as client:
        for path, (_, status) in answers.items():
            for _ in range(2):
                try:
                    seen = client.get(path)
                    equal(seen.status, status or "a reset", path)
                except Reset as reset:
                    one_of((status, reset.error), ((None, http2.INTERNAL_ERROR), (None, CANCEL), (None, http2.PROTOCOL_ERROR)), path)
        equal(client.is_open(), True, "the connection goes on")


# ---- Frames where they do not belong

def head(stream, path="/fast", end=True, method="GET", fields=()):
    return Http2.head_frames(stream, block(request_fields(method, path, fields)), end)


P, F, S, C, W = http2.PROTOCOL_ERROR, http2.FRAME_SIZE_ERROR, http2.STREAM_CLOSED, http2.COMPRESSION_ERROR, http2.FLOW_CONTROL_ERROR
PREFACE, MINE = http2.PREFACE, framed(SETTINGS, 0, 0)
UPLOAD = head(1, "/upload", False, "POST", [("content-length", "100")])
WRONG = {
    # What comes before SETTINGS (RFC 9113 §3.4)
    "PING first": (PREFACE + framed(PING, 0, 0, bytes(8)), (P,)),
    "HEADERS first": (PREFACE + head(1), (P,)),
    "an acknowledgement first": (PREFACE + framed(SETTINGS, 1, 0), (P,)),
    "a wrong preface behind a good line": (PREFACE[:18] + b"XX\r\n\r\n" + MINE, None),
    # Streams (§5.1)
    "DATA on an idle stream": (PREFACE + MINE + framed(DATA, 0, 1, b"x"), (P, S)),
    "RST_STREAM on an idle stream": (PREFACE + MINE + framed(RST_STREAM, 0, 1, bytes(4)), (P,)),
    "WINDOW_UPDATE on an idle stream": (PREFACE + MINE + framed(WINDOW_UPDATE, 0, 1, struct.pack(">I", 5)), (P,)),
    "CONTINUATION on an idle stream": (PREFACE + MINE + framed(CONTINUATION, 4, 1), (P,)),
    "an even stream": (PREFACE + MINE + head(2), (P,)),
    "a lower stream": (PREFACE + MINE + head(5, "/miss") + head(3), (P, S)),
    "HEADERS on stream 0": (PREFACE + MINE + head(0), (P,)),
    "DATA on stream 0": (PREFACE + MINE + framed(DATA, 0, 0, b"x"), (P,)),
    "SETTINGS on a stream": (PREFACE + MINE + framed(SETTINGS, 0, 1), (P,)),
    "PING on a stream": (PREFACE + MINE + framed(PING, 0, 1, bytes(8)), (P,)),
    "GOAWAY on a stream": (PREFACE + MINE + framed(GOAWAY, 0, 1, bytes(8)), (P,)),
    "a promise": (PREFACE + MINE + framed(http2.PUSH_PROMISE, 4, 1, struct.pack(">I", 2) + block(request_fields("GET", "/x"))), (P,)),
    "PRIORITY_UPDATE on a stream": (PREFACE + MINE + framed(PRIORITY_UPDATE, 0, 1, struct.pack(">I", 1) + b"u=1"), (P,)),
    # Lengths (§4.2, §6)
    "a frame that is too large": (PREFACE + MINE + UPLOAD + framed(DATA, 0, 1, bytes(16385)), (F,)),
    "PING of 7 bytes": (PREFACE + MINE + framed(PING, 0, 0, bytes(7)), (F,)),
    "SETTINGS of 5 bytes": (PREFACE + MINE + framed(SETTINGS, 0, 0, bytes(5)), (F,)),
    "an acknowledgement with content": (PREFACE + MINE + framed(SETTINGS, 1, 0, bytes(6)), (F,)),
    "RST_STREAM of 3 bytes": (PREFACE + MINE + UPLOAD + framed(RST_STREAM, 0, 1, bytes(3)), (F,)),
    "WINDOW_UPDATE of 3 bytes": (PREFACE + MINE + framed(WINDOW_UPDATE, 0, 0, bytes(3)), (F,)),
    "GOAWAY of 7 bytes": (PREFACE + MINE + framed(GOAWAY, 0, 0, bytes(7)), (F,)),
    # Padding (§6.1, §6.2)
    "more padding than DATA": (PREFACE + MINE + UPLOAD + framed(DATA, PADDED, 1, b"\x05abcd"), (P,)),
    "padding without a length": (PREFACE + MINE + UPLOAD + framed(DATA, PADDED, 1), (P, F)),
    "more padding than a head": (PREFACE + MINE + framed(HEADERS, PADDED | END_HEADERS | END_STREAM, 1, b"\xff" + bytes(20)), (P,)),
    "a priority that is cut": (PREFACE + MINE + framed(HEADERS, WITH_PRIORITY | END_HEADERS | END_STREAM, 1, bytes(3)), (P, F)),
    # Heads in pieces (§6.10)
    "PING inside a head": (PREFACE + MINE + framed(HEADERS, END_STREAM, 1, b"\x82") + framed(PING, 0, 0, bytes(8)), (P,)),
    "another stream's CONTINUATION": (PREFACE + MINE + framed(HEADERS, END_STREAM, 1, b"\x82") + framed(CONTINUATION, 4, 3), (P,)),
    "an unknown frame inside a head": (PREFACE + MINE + framed(HEADERS, END_STREAM, 1, b"\x82") + framed(0xaa, 0, 1), (P,)),
    # Settings and windows (§6.5.2, §6.9)
    "ENABLE_PUSH of 2": (PREFACE + framed(SETTINGS, 0, 0, settings(enable_push=2)), (P,)),
    "a window of 2^31": (PREFACE + framed(SETTINGS, 0, 0, settings(initial_window_size=1 << 31)), (W,)),
    "frames of 16,383 bytes": (PREFACE + framed(SETTINGS, 0, 0, settings(max_frame_size=16383)), (P,)),
    "frames of 2^24 bytes": (PREFACE + framed(SETTINGS, 0, 0, settings(max_frame_size=1 << 24)), (P,)),
    "a connection's window that overflows": (PREFACE + MINE + framed(WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST_WINDOW)), (W,)),
    "WINDOW_UPDATE of 0 on the connection": (PREFACE + MINE + framed(WINDOW_UPDATE, 0, 0, bytes(4)), (P,)),
    "a stream's window that SETTINGS make overflow": (
        PREFACE + MINE + UPLOAD + framed(WINDOW_UPDATE, 0, 1, struct.pack(">I", LARGEST_WINDOW - 65535))
        + framed(SETTINGS, 0, 0, settings(initial_window_size=65536)), (W,)),
}


@memcheck
def test_frames_where_they_do_not_belong(_lab, site):
    for name, (sent, errors) in WRONG.items():
        with site.client(preface=False) as client:
            client.send(sent)
            if errors is None:
                data = b""
                try:
                    while piece := client.socket.recv(4096):
                        data += piece
                except OSError:
                    pass
                contains(data, b"505", f"{name}: answer")
                continue
            gone = client.goaway()
            true(gone is not None, f"{name}: the connection ends")
            one_of(gone.error, errors, f"{name}: GOAWAY")
    site.works()


@memcheck
def test_what_is_allowed(_lab, site):
    """Frames that look odd and are good: they must not end the connection."""
    with site.client() as client:
        client.send(framed(0xfe, 0xff, 0, b"unknown") + framed(0xfe, 0xff, 77, b"") + framed(PRIORITY, 0, 99, struct.pack(">IB", 5, 1))
                    + framed(SETTINGS, 0, 0, struct.pack(">HI", 0x7777, 5)))
        stream = client.take_stream()
        padded = b"\x03" + block(request_fields("GET", "/fast")) + bytes(3)
        client.frame(HEADERS, PADDED | END_HEADERS | END_STREAM, stream, padded)
        equal(client.response(stream).status, 200, "a padded head")
        stream = client.take_stream()
        client.frame(HEADERS, WITH_PRIORITY | END_HEADERS | END_STREAM, stream, struct.pack(">IB", 0x80000063, 200) + block(request_fields("GET", "/fast")))
        equal(client.response(stream).status, 200, "a head with a priority")
        stream = client.take_stream()
        data = block(request_fields("GET", "/fast"))
        client.send(b"".join([framed(HEADERS, END_STREAM, stream, data[:5]), framed(CONTINUATION, 0, stream, data[5:9]),
                              framed(CONTINUATION, END_HEADERS, stream, data[9:])]))
        equal(client.response(stream).status, 200, "a head in pieces")
        stream = client.request("POST", "/miss", body=None)
        client.frame(DATA, PADDED, stream, b"\x04body" + bytes(4))
        client.frame(DATA, END_STREAM, stream)
        equal(client.response(stream).status, 200, "a padded body")
        client.frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 5))
        client.reset_stream(stream)
        client.credit = False
        client.send(framed(SETTINGS, 0, 0, settings(initial_window_size=0)))
        stream = client.request("GET", "/fast")
        client.read_until(lambda: client.answer(stream).status is not None)
        client.send(framed(SETTINGS, 0, 0, settings(initial_window_size=50)))
        client.read_until(lambda: client.answer(stream).length == 50)
        client.send(framed(SETTINGS, 0, 0, settings(initial_window_size=10)))  # 40 bytes below nothing
        client.give(stream, 40)
        client.settle()
        equal(client.answer(stream).length, 50, "a window of nothing")
        client.give(stream, 50)
        equal(client.response(stream).length, 100, "a window that was below nothing")
