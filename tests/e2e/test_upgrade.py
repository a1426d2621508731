"""Upgrades to another protocol, and interim responses: what comes before or instead of an ordinary answer."""

import time

from harness.checks import contains, equal, true
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import request

SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


def echo(connection, request):
    """Accepts the upgrade, says hello at once, and then sends back what comes."""
    if request.header("Upgrade") is None:
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
        return False
    connection.send(SWITCH + b"hello")
    while True:
        data = connection.read_some()
        if not data:
            return True
        connection.send(data.upper())


def ask(origin, path="/ws", protocol="websocket", more=b""):
    return (f"GET {origin.url(path)} HTTP/1.1\r\nHost: {origin.authority}\r\nConnection: Upgrade\r\n"
            f"Upgrade: {protocol}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n").encode() + more


@memcheck
def test_websocket(lab):
    origin = RawOrigin(lab, echo)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(ask(origin, more=b"early "))
        answer = wire.head()
        equal((answer.status, answer.header("Upgrade")), (101, "websocket"), "answer")
        contains(answer.header("Connection").lower(), "upgrade", "Connection")
        equal(wire.read_bytes(11), b"helloEARLY ", "what was sent with the heads, both ways")
        for word in (b"one", b"two", b"x" * 100000):
            wire.send(word)
            equal(wire.read_bytes(len(word)), word.upper(), "echo")
    seen = origin.requests[0]
    equal((seen.header("Upgrade"), seen.header("Connection")), ("websocket", "Upgrade"), "at the origin")
    equal(proxy.results("/ws", 1), ["TUNNEL"], "result")


def test_a_protocol_that_was_not_offered(lab):
    """RFC 9110, 7.8: "a server MUST NOT switch to a protocol that was not indicated by the client", and a 101 "MUST generate an Upgrade
    header field". Anything else would be bytes that nobody looks at."""
    said = []

    def answer(connection, _request):
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" + said[-1] + b"\r\nHTTP/1.1 200 OK\r\n\r\nevil")
        return True
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    for fields in (b"Upgrade: h2c\r\n", b"", b"Upgrade:\r\n", b"Upgrade: websocket, h2c\r\n", b"Upgrade: websocket\r\nUpgrade: x\r\n",
                   b"Upgrade: websocket/14\r\n"):
        said.append(fields)
        with proxy.wire() as wire:
            wire.send(ask(origin))
            answer = wire.response()
            equal((answer.status, b"evil" in answer.body), (502, False), f"{fields}")
    said.append(b"Upgrade : WebSocket \r\n")
    with proxy.wire() as wire:
        wire.send(ask(origin))
        equal(wire.head().status, 101, "the one that was offered")


def test_via_in_what_comes_before_an_answer(lab):
    """RFC 9110, 7.6.3: "A proxy MUST send an appropriate Via header field ... in each message that it forwards", 1xx and 101 included."""
    def answer(connection, seen):
        connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nVia: 1.0 inner\r\n\r\n")
        if seen.header("Upgrade"):
            connection.send(SWITCH)
            return True
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        return False
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    for message, last in ((request("GET", origin.url("/plain")), 200), (ask(origin), 101)):
        with proxy.wire() as wire:
            wire.send(message)
            early, final = wire.head(), wire.head()
            equal((early.status, early.header("Via"), early.header("Link")), (103, "1.0 inner, 1.1 retort", "</a>"), "the hint")
            equal((final.status, final.header("Via")), (last, "1.1 retort"), "what follows")


def test_origin_that_does_not_want_to(lab):
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nno")
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(ask(origin))
        equal(wire.response().body, b"no", "body")
        wire.send(ask(origin))
        equal(wire.response().body, b"no", "body on the same connection")
    equal(len(origin.requests), 2, "requests: an upgrade is no matter for the cache")


def test_http2_is_not_let_through(lab):
    origin = RawOrigin(lab, echo)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(ask(origin, protocol="h2c"))
        equal(wire.response().body, b"plain", "body")
    equal(origin.requests[0].header("Upgrade"), None, "Upgrade at the origin")


@memcheck
def test_bytes_behind_a_refused_upgrade_are_no_request(lab):
    """RFC 9110, 7.8: a client that speaks the other protocol already has guessed wrong; one that has waited goes on."""
    origin = RawOrigin(lab)
    proxy = Retort(lab)
    behind = request("GET", origin.url("/smuggled"))
    for protocol in ("websocket", "h2c", "foo/1"):
        with proxy.wire() as wire:
            wire.send(ask(origin, protocol=protocol, more=behind))
            answer = wire.response()
            equal((answer.status, answer.header("Connection"), wire.at_end()), (200, "close", True), f"{protocol}, and more")
        with proxy.wire() as wire:
            for _ in range(2):
                wire.send(ask(origin, protocol=protocol))
                answer = wire.response()
                equal((answer.status, answer.header("Connection")), (200, None), f"{protocol} alone")
    equal({seen.target for seen in origin.requests}, {"/ws"}, "what the origin was asked for")


def test_the_answer_to_an_upgrade_frames_nothing(lab):
    """RFC 9110, 8.6: "A server MUST NOT send a Content-Length header field in any response with a status code of 1xx"."""
    def answer(connection, _request):
        connection.send(SWITCH.replace(b"Connection: Upgrade", b"Connection: Upgrade, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n"
                                                               b"Content-Length: 5\r\nTransfer-Encoding: chunked"))
        return True
    origin = RawOrigin(lab, answer)
    with Retort(lab).wire() as wire:
        wire.send(ask(origin))
        head = wire.head()
    equal((head.status, head.header("Upgrade"), head.header("Connection")), (101, "websocket", "Upgrade"), "what it needs")
    equal([head.header(name) for name in ("Content-Length", "Transfer-Encoding", "X-Hop", "Keep-Alive")], [None] * 4, "what it may not have")


def test_switch_that_nobody_asked_for(lab):
    def answer(connection, _request):
        connection.send(SWITCH)
        return True
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    equal(proxy.get(origin.url("/")).status, 502, "status")


def hints(connection, _request):
    connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nx-hop: 1\r\n"
                    b"Content-Length: 10\r\nTrailer: X\r\nKeep-Alive: 1\r\n\r\n")
    time.sleep(0.2)
    connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok")
    return False


@memcheck
def test_early_hints(lab):
    """RFC 8297: passed on before the answer, not stored with it."""
    origin = RawOrigin(lab, hints)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url('/h')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
        hint = wire.head()
        equal((hint.status, hint.header("Link")), (103, "</a.css>; rel=preload"), "hint")
        equal((hint.header("x-hop"), hint.header("Connection"), hint.header("Keep-Alive")), (None,) * 3, "hop-by-hop fields")
        # RFC 9110, 8.6: "A server MUST NOT send a Content-Length header field in any response with a status code of 1xx"
        equal((hint.header("Content-Length"), hint.header("Trailer")), (None, None), "framing")
        equal(wire.response().body, b"ok", "body")
        wire.send(f"GET {origin.url('/h')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
        equal(wire.response().status, 200, "the hit's first status")
    true(len(origin.requests) == 1, "stored")


def test_early_hints_for_an_old_client(lab):
    """RFC 9110 §15.2: HTTP/1.0 knows no interim responses."""
    origin = RawOrigin(lab, hints)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url('/h')} HTTP/1.0\r\n\r\n".encode())
        equal(wire.response().status, 200, "the first status")
