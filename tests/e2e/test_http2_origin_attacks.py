"""Origins that break rules of HTTP/2, or flood: they complete and store nothing, nobody gets what is another's, and one origin does
no harm to others."""

import struct
import threading
import time

from harness import http2_origin as h2
from harness.certificates import Authority
from harness.checks import contains, equal, lacks, true, until
from harness.http2_origin import Http2Origin, at_once, frame
from harness.interception import Interception
from harness.raw_origin import pattern
from harness.retort import Retort
from harness.wire import Truncated, request
from test_http2_origin import Stalled, behind, head_of, start, status_of

# Heads and bodies

BAD_HEADS = {
    "no status": [("content-type", "text/plain")],
    "two": [(":status", "200"), (":status", "200")],
    "late": [("x-a", "1"), (":status", "200")],
    "not a number": [(":status", "2OO")],
    "four digits": [(":status", "2000")],
    "switching": [(":status", "101")],
    "of a request": [(":status", "200"), (":path", "/")],
    "NUL": [(":status", "200"), ("x-evil", b"a\0b")],
    "CR": [(":status", "200"), ("x-evil", b"a\rInjected: 1")],
    "LF": [(":status", "200"), ("x-evil", b"a\nInjected: 1")],
    "CRLF": [(":status", "200"), ("x-evil", b"a\r\n\r\n<script>")],
    "name with LF": [(":status", "200"), (b"x-evil\ninjected", "1")],
    "name with a colon": [(":status", "200"), ("x-evil: a", "1")],
    "name with a space": [(":status", "200"), ("x evil", "1")],
    "no name": [(":status", "200"), ("", "1")],
    "upper case": [(":status", "200"), ("X-Evil", "1")],
    "connection": [(":status", "200"), ("connection", "x-evil")],
    "transfer-encoding": [(":status", "200"), ("transfer-encoding", "chunked")],
    "keep-alive": [(":status", "200"), ("keep-alive", "1")],
    "upgrade": [(":status", "200"), ("upgrade", "h2c")],
    "lengths": [(":status", "200"), ("content-length", "5"), ("content-length", "6")],
    "length of 65 bits": [(":status", "200"), ("content-length", "18446744073709551621")],
    "negative length": [(":status", "200"), ("content-length", "-5")],
}


def test_malformed_heads(lab):
    """"Malformed" responses (RFC 9113 §8.1.1): 502, and not a byte of them reaches client, cache or log."""
    def answer(stream):
        kind = list(BAD_HEADS)[int(stream[":path"][2:])]
        stream.head(BAD_HEADS[kind] + [("cache-control", "max-age=60"), ("x-mark", "evilmark")])
        stream.data(b"evilbody", end=True)
    origin, proxy = start(lab, answer)
    for index, kind in enumerate(BAD_HEADS):
        for _ in range(2):
            with proxy.wire(reverse=True) as wire:
                wire.send(request("GET", f"/b{index}", {"Host": "x", "Connection": "close"}))
                seen = wire.read_to_end()
            contains(seen[:20], b"HTTP/1.1 502 ", kind)
            for word in (b"evilmark", b"evilbody", b"Injected", b"<script>", b"\0"):
                lacks(seen, word, kind)
    equal(len(origin.streams), 2 * len(BAD_HEADS), "requests: nothing was stored")
    lacks("\n".join(proxy.log_lines()), "evil", "the access log")
    until(lambda: all(stream.reset == h2.PROTOCOL_ERROR for stream in origin.streams), 30, "each stream is reset")
    equal(origin.accepted, 1, "connections: only the streams are at fault")
    equal(proxy.counter("origin_http2_stream_errors"), 2 * len(BAD_HEADS), "counted")


def test_blanks_around_values(lab):
    """RFC 9113 §8.2.1 calls them malformed; browsers forgive them. They are removed, also from the lengths, from what is stored, and
    from trailers."""
    def answer(stream):
        stream.head([(":status", "200"), ("cache-control", "max-age=60 "), ("content-length", " 5"), ("x-own", "\t a b \t")])
        stream.data(b"hello")
        stream.head([("x-sum", " 1 ")], end=True)
    origin, proxy = start(lab, answer)
    for number in range(2):
        with proxy.wire(reverse=True) as wire:
            wire.send(request("GET", "/b", {"Host": "x", "Connection": "close"}))
            seen = wire.read_to_end()
        contains(seen, b"HTTP/1.1 200 ", f"answer {number}")
        contains(seen, b"\r\nx-own: a b\r\n", f"answer {number}")
        contains(seen, b"\r\ncache-control: max-age=60\r\n", f"answer {number}")
    equal(len(origin.streams), 1, "requests: the response is stored")
    # Nobody can say which of two lengths was meant.
    origin.answer = lambda stream: (stream.head([(":status", "200"), ("content-length", "5 "), ("content-length", "6")]),
                                    stream.data(b"hello!", end=True))
    equal(status_of(proxy, "/two"), 502, "two lengths")


BROKEN_ENDS = {
    "DATA is shorter": lambda stream: (head_of(stream, 10), stream.data(b"hello", end=True)),
    "DATA is longer": lambda stream: (head_of(stream, 3), stream.data(b"hello", end=True)),
    "no DATA": lambda stream: (head_of(stream, 10), stream.data(b"", end=True)),
    "reset in the middle": lambda stream: (head_of(stream, 10), stream.data(b"hello"), stream.cut()),
    "reset without a length": lambda stream: (head_of(stream), stream.data(b"hello"), stream.cut()),
    "reset without an error": lambda stream: (head_of(stream), stream.data(b"hello"), stream.cut(h2.NO_ERROR)),
    "the connection is lost": lambda stream: (head_of(stream), stream.data(b"hello"), stream.link.close()),
    "GOAWAY and closed": lambda stream: (head_of(stream), stream.data(b"hello"), stream.link.go_away(stream.id), stream.link.close()),
    "trailers without an end": lambda stream: (head_of(stream), stream.data(b"hello"), stream.head({"x-t": "1"})),
    "trailers with a pseudo field": lambda stream: (head_of(stream), stream.data(b"hello"), stream.head({":status": "200"}, end=True)),
    "trailers with LF": lambda stream: (head_of(stream), stream.data(b"hello"), stream.head([("x-t", b"a\nb")], end=True)),
    "trailers too early": lambda stream: (head_of(stream, 10), stream.data(b"hello"), stream.head({"x-t": "1"}, end=True)),
    "a window that overflows": lambda stream: (head_of(stream), stream.data(b"hello"), stream.grow(2**31 - 1, connection=False)),
    "a bad frame": lambda stream: (head_of(stream), stream.data(b"hello"), stream.link.send(frame(h2.PING, 0, 0, b"short"))),
    "a push": lambda stream: (head_of(stream), stream.data(b"hello"), stream.link.send(
        frame(h2.PUSH_PROMISE, h2.END_HEADERS, stream.id, struct.pack(">I", 2) + h2.block({":method": "GET", ":path": "/p"})))),
    # In one piece, or the window might grow in between.
    "too much data": lambda stream: (head_of(stream), stream.link.send(frame(h2.DATA, 0, stream.id, pattern(16384)) * 3)),
}


def test_responses_that_break_off(lab):
    """The client sees that bytes are missing, and nothing is stored."""
    names = list(BROKEN_ENDS)

    def answer(stream):
        if stream[":path"] == "/good":
            stream.answer()
        else:
            BROKEN_ENDS[names[int(stream[":path"][2:])]](stream)
    origin, proxy = start(lab, answer, proxy={"origin": {"http2_window": "16KB"}})
    for index, name in enumerate(names):
        for _ in range(2):
            equal(status_of(proxy, "/good"), 200, "status: there is a connection whose settings are known")
            try:
                with proxy.wire(reverse=True) as wire:
                    wire.send(request("GET", f"/e{index}", {"Host": "x"}))
                    status = wire.response().status
            except Truncated:
                continue
            equal(status, 502, f"{name}: neither cut off nor refused")
    true(len([stream for stream in origin.streams if stream[":path"] != "/good"]) >= 2 * len(names), "requests: nothing was stored")


ENDS_BEHIND_THE_RESPONSE = {
    "a window that overflows": lambda stream: frame(h2.WINDOW_UPDATE, 0, stream.id, struct.pack(">I", 2**31 - 1)),
    "a head behind the end": lambda stream: frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream.id, h2.block({"x-t": "1"})),
    "DATA behind the end": lambda stream: frame(h2.DATA, 0, stream.id, b"more"),
    "RST_STREAM with an error": lambda stream: frame(h2.RST_STREAM, 0, stream.id, struct.pack(">I", h2.CANCEL)),
    "GOAWAY": lambda stream: frame(h2.GOAWAY, 0, 0, struct.pack(">II", 0, 0)),
}


def test_what_ends_a_stream_behind_its_response(lab):
    """Each byte of the response has come, with END_STREAM: it is whole, whatever becomes of the upload that goes on."""
    names, body = list(ENDS_BEHIND_THE_RESPONSE), pattern(10000)

    def answer(stream):
        stream.wait_body(100)
        stream.link.send(frame(h2.HEADERS, h2.END_HEADERS, stream.id, h2.block({":status": "200", "content-length": "10000"}))
                         + frame(h2.DATA, h2.END_STREAM, stream.id, body) + ENDS_BEHIND_THE_RESPONSE[names[int(stream[":path"][2:])]](stream))
    _, proxy = start(lab, answer)
    for index, name in enumerate(names):
        with proxy.wire(reverse=True) as wire:
            wire.send(request("POST", f"/e{index}", {"Host": "x", "Content-Length": "50000"}) + pattern(100))
            response = wire.response()
            equal((response.status, response.body == body), (200, True), name)


def test_an_answer_before_its_request(lab):
    """RFC 9113 §5.1: what comes for a stream that is idle as the origin sees it ends the connection; it is nobody's answer."""
    def forge(stream):
        forged = frame(h2.HEADERS, h2.END_HEADERS, stream.id + 2, h2.block({":status": "200", "content-length": "6"})) \
            + frame(h2.DATA, h2.END_STREAM, stream.id + 2, b"forged")
        stream.link.connection.socket.sendall(forged)
    stalled = Stalled(lab, forge)
    with stalled.ask("/next") as wire:
        stalled.go.set()
        response = wire.response()
    stalled.end()
    lacks(response.body, b"forged", "what the client got")
    equal(stalled.proxy.counter("origin_http2_protocol_errors"), 1, "counted")


def test_who_leaves_before_it_was_sent(lab):
    """RFC 9113 §6.4: "RST_STREAM frames MUST NOT be sent for a stream in the idle state": it would end the connection for others."""
    stalled = Stalled(lab, lambda stream: stalled.done.set())
    with stalled.ask("/next") as wire:
        wire.abort()
    until(lambda: stalled.proxy.counter("client_connections_open") <= 1, 20, "the client has left")
    stalled.go.set()
    until(lambda: len(stalled.origin.streams[1].body) > 1 << 20, 60, "the origin reads on")
    equal(status_of(stalled.proxy, "/after"), 200, "the next request")
    stalled.end()
    equal([stream[":path"] for stream in stalled.origin.streams], ["/first", "/up", "/after"], "requests at the origin")
    equal((stalled.origin.accepted, stalled.origin.links[0].idle_resets), (1, []), "connections, and resets of idle streams")


# Floods

def test_floods(lab):
    """Frames that bring nothing end the connection (ENHANCE_YOUR_CALM), and only that one."""
    floods = {
        "PING": lambda stream: frame(h2.PING, 0, 0, b"12345678"),
        "SETTINGS": lambda stream: frame(h2.SETTINGS),
        "empty DATA": lambda stream: frame(h2.DATA, 0, stream.id),
        "PRIORITY": lambda stream: frame(h2.PRIORITY, 0, stream.id + 2, bytes(5)),
        "WINDOW_UPDATE": lambda stream: frame(h2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
        "unknown frames": lambda stream: frame(0xBB, 0, 0, b"x"),
    }

    def answer(stream):
        kind = stream[":path"][1:].replace("%20", " ")
        if kind == "ok":
            stream.answer()
            return
        head_of(stream)
        for _ in range(60):
            stream.link.send(floods[kind](stream) * 100)
    origin = Http2Origin(lab, answer)
    good = Http2Origin(lab)
    proxy = Retort(lab, reverse={"/": "far/", "/good/": "near/"}, extra=origin.group("far") + good.group("near"),
                   origin={"http2_budget": 1000})
    equal(proxy.get("/good/").status, 200, "status")
    for count, kind in enumerate(floods, 1):
        try:
            proxy.get("/" + kind.replace(" ", "%20"))
        except Truncated:
            pass
        until(lambda n=count: proxy.counter("origin_http2_calmed") == n, 30, f"{kind}: the connection ends")
        equal(proxy.get("/ok").status, 200, f"after {kind}")
    equal((good.accepted, proxy.get("/good/x").status), (1, 200), "the other origin")


def test_heads_that_are_too_large(lab):
    """CONTINUATION without end, a list that grows when it is decoded, and a head above max_head."""
    def answer(stream):
        kind = stream[":path"]
        if kind == "/continuation":
            stream.link.send(frame(h2.HEADERS, 0, stream.id, h2.block({":status": "200"})))
            for _ in range(100):
                stream.link.send(frame(h2.CONTINUATION, 0, stream.id, h2.block({"x": "1"})))
        elif kind == "/bomb":  # a large entry of the table, named again and again
            entry = b"\x40" + h2.string("x") + h2.string("y" * 4000)
            stream.link.send(frame(h2.HEADERS, h2.END_HEADERS, stream.id, h2.block({":status": "200"}) + entry + b"\xbe" * 10_000))
        elif kind == "/large":
            stream.head({":status": "200", "x": "y" * 9000}, end=True)
        else:
            stream.answer()
    origin = Http2Origin(lab, answer)
    proxy = behind(lab, origin, origin={"max_head": "8KB"})
    for path in ("/continuation", "/bomb", "/large"):
        equal(status_of(proxy, path), 502, path)
        equal(status_of(proxy, "/ok"), 200, f"after {path}")


def test_many_clients_that_leave(lab):
    """What is under way when a stream is reset is nobody's fault: it takes nothing from the origin's budget. But an origin that
    goes on for ever uses it up."""
    def answer(stream):
        if stream[":path"] == "/slow":
            slow.wait(60)
            stream.answer()
            return
        head_of(stream)
        while stream.reset is None or stream[":path"] == "/endless":
            stream.flow(b"x" * 100) if stream.reset is None else stream.data(b"x" * 100)
    slow = threading.Event()
    origin, proxy = start(lab, answer, proxy={"origin": {"http2_budget": 200, "http2_window": "16KB"}})
    result = []
    other = threading.Thread(target=lambda: result.append(status_of(proxy, "/slow")))
    other.start()
    until(lambda: origin.streams, 30, "the other request")
    def leave(path):
        with proxy.wire(reverse=True) as wire:
            wire.send(request("GET", path, {"Host": "x", "Cache-Control": "no-store"}))
            wire.read_some()
    for index in range(100):
        leave(f"/{index}")
    slow.set()
    other.join()
    equal(result, [200], "the other request")
    equal((origin.accepted, proxy.counter("origin_http2_calmed")), (1, 0), "connections")
    leave("/endless")
    until(lambda: proxy.counter("origin_http2_calmed") == 1, 30, "the connection ends")


def test_interim_responses_without_end(lab):
    """A hundred 103 are many; what comes then is no answer. The client got them as they came."""
    def answer(stream):
        if stream[":path"] == "/ok":
            stream.answer()
        while stream[":path"] == "/endless" and stream.reset is None:
            stream.head({":status": "103", "link": "</a.css>; rel=preload"})
    origin, proxy = start(lab, answer)
    for _ in range(3):
        with proxy.wire(reverse=True) as wire:
            wire.send(request("GET", "/endless", {"Host": "x", "Connection": "close"}))
            seen = wire.read_to_end()
        contains(seen, b"HTTP/1.1 502 ", "the end")
        true(seen.count(b"HTTP/1.1 103 ") <= 100, "interim responses")
    equal(status_of(proxy, "/ok"), 200, "the next request")
    true(origin.accepted <= 4, f"{origin.accepted} connections")


# Frames

def at(stream, *frames):
    stream.link.send(b"".join(frames))


HEAD = h2.block({":status": "200", "cache-control": "max-age=60"})

# What ends the connection, wherever it comes.
BROKEN_FRAMES = {
    "HEADERS of no stream": lambda stream: frame(h2.HEADERS, h2.END_HEADERS, 0, HEAD),
    "HEADERS of a stream of its own": lambda stream: frame(h2.HEADERS, h2.END_HEADERS, 2, HEAD),
    "HEADERS of a stream that nobody has opened": lambda stream: frame(h2.HEADERS, h2.END_HEADERS, 99, HEAD),
    "DATA of no stream": lambda stream: frame(h2.DATA, 0, 0, b"x"),
    "DATA of a stream that nobody has opened": lambda stream: frame(h2.DATA, 0, 99, b"x"),
    "RST_STREAM of a stream that nobody has opened": lambda stream: frame(h2.RST_STREAM, 0, 99, bytes(4)),
    "RST_STREAM of 3 bytes": lambda stream: frame(h2.RST_STREAM, 0, stream.id, bytes(3)),
    "WINDOW_UPDATE of a stream that nobody has opened": lambda stream: frame(h2.WINDOW_UPDATE, 0, 99, struct.pack(">I", 1)),
    "WINDOW_UPDATE of 0": lambda stream: frame(h2.WINDOW_UPDATE, 0, 0, bytes(4)),
    "a window above 2^31-1": lambda stream: frame(h2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 1)),
    "SETTINGS of a stream": lambda stream: frame(h2.SETTINGS, 0, stream.id),
    "SETTINGS of 5 bytes": lambda stream: frame(h2.SETTINGS, 0, 0, bytes(5)),
    "an acknowledgement with settings": lambda stream: frame(h2.SETTINGS, h2.ACK, 0, bytes(6)),
    "pushes are enabled": lambda stream: frame(h2.SETTINGS, 0, 0, struct.pack(">HI", 2, 1)),
    "a window of 2^31": lambda stream: frame(h2.SETTINGS, 0, 0, struct.pack(">HI", 4, 2**31)),
    "frames of 100 bytes": lambda stream: frame(h2.SETTINGS, 0, 0, struct.pack(">HI", 5, 100)),
    "PING of 7 bytes": lambda stream: frame(h2.PING, 0, 0, bytes(7)),
    "PING of a stream": lambda stream: frame(h2.PING, 0, stream.id, bytes(8)),
    "GOAWAY of 7 bytes": lambda stream: frame(h2.GOAWAY, 0, 0, bytes(7)),
    "PUSH_PROMISE": lambda stream: frame(h2.PUSH_PROMISE, h2.END_HEADERS, stream.id, struct.pack(">I", 2) + HEAD),
    "CONTINUATION alone": lambda stream: frame(h2.CONTINUATION, h2.END_HEADERS, stream.id, HEAD),
    "a head that another frame interrupts": lambda stream: frame(h2.HEADERS, 0, stream.id, HEAD) + frame(h2.PING, 0, 0, bytes(8)),
    "a frame that is too long": lambda stream: frame(h2.DATA, 0, stream.id, bytes(16385)),
    "padding longer than its frame": lambda stream: frame(h2.DATA, h2.PADDED, stream.id, b"\xffabc"),
    "index 0": lambda stream: frame(h2.HEADERS, h2.END_HEADERS, stream.id, b"\x80"),
    "an index of an empty table": lambda stream: frame(h2.HEADERS, h2.END_HEADERS, stream.id, b"\xbe"),
    "a table larger than allowed": lambda stream: frame(h2.HEADERS, h2.END_HEADERS, stream.id, b"\x3f\xe1\xff\x03" + HEAD),
    "Huffman code with EOS": lambda stream: frame(h2.HEADERS, h2.END_HEADERS, stream.id, b"\x00\x84\xff\xff\xff\xff\x00"),
    "a string longer than its block": lambda stream: frame(h2.HEADERS, h2.END_HEADERS, stream.id, b"\x00\x7f\x00a"),
}


def test_broken_frames(lab):
    """In place of the answer, and in its middle. RFC 9113 §5.4.1: the connection ends. The next request has another one."""
    names = list(BROKEN_FRAMES)

    def answer(stream):
        kind, _, number = stream[":path"][1:].partition("/")
        if kind == "ok":
            stream.answer()
            return
        if kind == "middle":
            head_of(stream)
            stream.data(b"hello")
        at(stream, BROKEN_FRAMES[names[int(number)]](stream))
    origin, proxy = start(lab, answer)
    for number, name in enumerate(names):
        equal(status_of(proxy, f"/early/{number}"), 502, name)
        try:
            body = proxy.get(f"/middle/{number}").body
            true(False, f"{name}: the response was completed with {body!r}")
        except Truncated:
            pass
        equal(status_of(proxy, "/ok"), 200, f"after {name}")
    broken = proxy.counter("origin_http2_protocol_errors") + proxy.counter("origin_http2_calmed")
    true(broken >= 2 * len(names), f"counted: {broken}")
    true(origin.accepted <= 3 * len(names) + 1, f"{origin.accepted} connections: a GET is repeated on another one, once")


def test_before_the_settings(lab):
    """"A server connection preface consists of a potentially empty SETTINGS frame that MUST be the first frame" (RFC 9113 §3.4)."""
    for first in (frame(h2.PING, 0, 0, bytes(8)), frame(h2.SETTINGS, h2.ACK), frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, HEAD),
                  b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", bytes(9)):
        _origin, proxy = start(lab, lambda stream: None, first=first)
        equal(status_of(proxy), 502, f"{first[:12]!r}")
        proxy.stop()


# What belongs to whom

def test_everybody_gets_his_own(lab):
    """Many clients at a time over one connection, of which some leave, some responses are reset, and frames of all streams come
    mixed up."""
    def answer(stream):
        number = int(stream[":path"].rpartition("/")[2])
        body = pattern(20_000 + number * 7)
        stream.head({":status": "200", "cache-control": "no-store", "content-length": str(len(body)), "x-number": str(number)})
        for begin in range(0, len(body), 997):
            if number % 5 == 4 and begin > 9_000:
                stream.cut()
                return
            stream.flow(body[begin:begin + 997], end=begin + 997 >= len(body), seconds=60)
    origin, proxy = start(lab, answer)
    wrong = []

    def ask(number):
        if number % 5 == 3:
            with proxy.wire(reverse=True) as wire:
                wire.send(request("GET", f"/leaves/{number}", {"Host": "x"}))
                wire.read_some()
            return
        try:
            answer = proxy.get(f"/r/{number}", timeout=60)
        except Truncated:
            if number % 5 != 4:
                wrong.append(number)
            return
        if answer.body != pattern(20_000 + number * 7) or answer.header("x-number") != str(number):
            wrong.append(number)
    for _ in range(3):
        at_once(50, ask)
    equal(wrong, [], "clients with another's response, or none")
    equal(origin.accepted, 1, "connections")


def test_a_connection_serves_one_origin(lab):
    """Another name, other trust, or another group: another connection, though address and certificate are the same."""
    root = Authority(lab)
    origin = Http2Origin(lab, certificate=root.leaf("127.0.0.1", "localhost"))
    by_name = f"https://localhost:{origin.port}"
    proxy = Retort(lab, reverse={"/a/": origin.url(), "/b/": by_name + "/", "/c/": "group/"}, origin={"ca_file": root.file},
                   extra=f'origins group {{ servers = {{ "{by_name}" }}  verify = off }}')
    for _ in range(2):
        for path in ("/a/x", "/b/x", "/c/x"):
            equal(status_of(proxy, path), 200, path)
    equal(origin.accepted, 3, "connections")
    equal([stream[":authority"] for stream in origin.streams if stream.link.number == 1], [origin.authority] * 2, "of the first")


def test_under_interception(lab):
    """The connection that shows who the origin is serves the first request too; another name gets another one."""
    names = ("one.test", "two.test")
    house = Interception(lab, *names)
    origin = Http2Origin(lab, certificate=house.certificate)
    house.allow(origin.port)
    for name in names:
        for _ in range(2):
            with house.bumped(name, to=("127.0.0.1", origin.port)) as client:
                client.send(request("GET", "/x", {"Host": f"{name}:{origin.port}"}))
                equal(client.response().body, b"the origin's answer\n", name)
    equal([stream[":authority"] for stream in origin.streams], [f"{name}:{origin.port}" for name in names for _ in range(2)], "requests")
    equal(origin.accepted, 2, "connections")
