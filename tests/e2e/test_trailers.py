"""Trailer fields (RFC 9110 §6.5): forwarded to who takes them, else dropped, never made header fields."""

import time

from harness.checks import equal, one_of, true
from harness.icap import IcapServer, append
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import Truncated, chunked, request

TAKES = {"TE": "trailers", "Connection": "TE"}


def start(lab, trailers, control=b"no-store", pieces=(b"hello", b"world"), pause=0.0, fields=b"", **options):
    """An origin whose pages end with these lines, and a proxy."""
    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: %s\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n%s\r\n" %
                        (control, fields))
        for piece in pieces:
            time.sleep(pause)
            connection.send(chunked(piece, last=b""))
        time.sleep(pause)
        connection.send(b"0\r\n" + trailers + b"\r\n")
        return False
    origin = RawOrigin(lab, answer)
    return origin, Retort(lab, **options)


@memcheck
def test_trailers_go_to_who_takes_them(lab):
    for pause in (0, 0.05):
        origin, proxy = start(lab, b"X-Sum: 1234\r\nETag:\"v\"\r\nX-Empty:\r\n", pause=pause)
        with proxy.wire() as wire:
            for _ in range(2):
                wire.send(request("GET", origin.url("/t"), TAKES))
                answer = wire.response()
                equal((answer.status, answer.body, answer.framing), (200, b"helloworld", "chunked"), "answer")
                equal(answer.trailers, [("X-Sum", "1234"), ("ETag", '"v"'), ("X-Empty", "")], "trailers")
                equal((answer.header("X-Sum"), answer.header("Trailer")), (None, "X-Sum"), "header fields")
        seen = origin.requests[0]
        equal((seen.header("TE"), seen.header("Connection")), ("trailers", "TE"), "what the origin is told")
        proxy.stop()


@memcheck
def test_trailers_are_dropped_for_the_others(lab):
    origin, proxy = start(lab, b"X-Sum: 1234\r\n")
    for headers in ({}, {"TE": "trailers"}, {"TE": "gzip", "Connection": "TE"}, {"TE": "trailersx", "Connection": "TE"}):
        answer = proxy.get(origin.url("/d"), headers)
        equal((answer.body, answer.trailers), (b"helloworld", []), f"{headers}")
        equal((answer.header("X-Sum"), answer.header("Trailer")), (None, None), f"{headers}: header fields")
        equal(origin.requests[-1].header("TE"), None, f"{headers}: what the origin is told")
    answer = proxy.get(origin.url("/d"), TAKES, version="1.0")
    # A body that is there whole when its head is written has a length to be told.
    one_of(answer.framing, ("close", "length"), "HTTP/1.0: framing")
    equal((answer.body, answer.trailers), (b"helloworld", []), "HTTP/1.0")


FORBIDDEN = ["Content-Length: 3", "Transfer-Encoding: chunked", "Host: evil", "Set-Cookie: a=b", "cache-control: max-age=9",
             "Authorization: x", "Connection: close", "Trailer: x", "Content-Type: text/x", "Location: /", "Age: 1",
             "CONTENT-RANGE: bytes 0-1/2", "Via: 1.1 x", "Expires: 0", "Vary: *", "Keep-Alive: 1", "TE: x", "Date: now"]


@memcheck
def test_forbidden_fields_never_pass(lab):
    lines = "".join(f"{line}\r\nX-{number}: y\r\n" for number, line in enumerate(FORBIDDEN))
    origin, proxy = start(lab, lines.encode())
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/f"), TAKES))
        answer = wire.response()
        equal(answer.trailers, [(f"X-{number}", "y") for number in range(len(FORBIDDEN))], "trailers")
        wire.send(request("GET", origin.url("/f"), TAKES))
        equal(wire.response().status, 200, "the connection is in step")


def test_blanks_before_the_colon(lab):
    """RFC 9112 §5.1: the proxy removes them, and no field passes for having them."""
    lines = "".join(f"{line.replace(':', ' :', 1)}\r\nX-{number}\t: y\r\n" for number, line in enumerate(FORBIDDEN))
    origin, proxy = start(lab, lines.encode())
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/f"), TAKES))
        answer = wire.response()
        equal(answer.trailers, [(f"X-{number}", "y") for number in range(len(FORBIDDEN))], "trailers")


def test_fields_that_connection_names_never_pass(lab):
    """RFC 9110 §7.6.1: "remove any header or trailer field(s) from the message with the same name"."""
    for option, passed in ((b"keep-alive", [("X-Sum", "1"), ("X-Own", "2")]), (b"X-Own", []), (b"keep-alive, x-own", [])):
        origin, proxy = start(lab, b"X-Sum: 1\r\nX-Own: 2\r\n", fields=b"Connection: %s\r\nX-Own: 1\r\n" % option)
        answer = proxy.get(origin.url("/c"), TAKES)
        equal((answer.body, answer.trailers), (b"helloworld", passed), f"Connection: {option}")
        equal(answer.header("X-Own"), "1" if passed else None, f"Connection: {option}: header field")


@memcheck
def test_nothing_of_trailers_is_stored(lab):
    origin, proxy = start(lab, b"X-Sum: 1\r\nExpires: 0\r\n", control=b"max-age=60")
    equal(proxy.get(origin.url("/s"), TAKES).trailers, [("X-Sum", "1")], "the first has them")
    for headers in (TAKES, {}):
        answer = proxy.get(origin.url("/s"), headers)
        equal((answer.framing, answer.body, answer.trailers), ("length", b"helloworld", []), "a hit")
        equal((answer.header("X-Sum"), answer.header("Trailer"), answer.header("Expires")), (None, None, None), "its fields")
    equal(len(origin.requests), 1, "requests at the origin")


def test_trailers_of_an_empty_body(lab):
    origin, proxy = start(lab, b"X-Sum: 0\r\n", pieces=())
    answer = proxy.get(origin.url("/e"), TAKES)
    equal((answer.body, answer.trailers), (b"", [("X-Sum", "0")]), "answer")


def test_long_trailers(lab):
    """As long as the limit allows, to a client that reads slowly; longer ones break the message off."""
    value = "x" * 15000
    origin, proxy = start(lab, f"X-Long: {value}\r\n".encode())
    with proxy.wire(receive_buffer=2048) as wire:
        wire.send(request("GET", origin.url("/l"), TAKES))
        time.sleep(0.2)
        equal(wire.response().trailers, [("X-Long", value)], "trailers")
    origin, proxy = start(lab, f"X-Long: {value}\r\nX-Longer: {value}\r\n".encode())
    try:
        answer = proxy.get(origin.url("/l"), TAKES)
        true(False, f"a whole message: {answer.status}, {answer.body!r}")
    except Truncated:
        pass


def test_more_trailers_than_fields(lab):
    """As many as a head may have fields; of more none passes, and the message does."""
    for count, passed in ((128, 128), (129, 0)):
        origin, proxy = start(lab, b"".join(b"X-%d: 1\r\n" % i for i in range(count)))
        answer = proxy.get(origin.url("/m"), TAKES)
        equal((answer.body, len(answer.trailers)), (b"helloworld", passed), f"{count} trailers")


def test_trailers_of_requests_are_dropped(lab):
    origin, proxy = RawOrigin(lab), Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("POST", origin.url("/r"), {"Transfer-Encoding": "chunked", "Trailer": "X-Sum"},
                          chunked(b"abc", last=b"0\r\nX-Sum: 1\r\nContent-Length: 5\r\nHost: evil\r\n\r\n")))
        equal(wire.response().status, 200, "status")
    seen = origin.requests[0]
    equal((seen.body, seen.header("X-Sum"), seen.header("Trailer"), seen.headers("Host")),
          (b"abc", None, None, [origin.authority]), "what the origin got")


def test_adapted_responses_have_no_trailers(lab):
    icap = IcapServer(lab, append(b"!"))
    origin, proxy = start(lab, b"X-Sum: 1\r\n",
                          services=[Service("append", f"icap://127.0.0.1:{icap.port}/append")])
    answer = proxy.get(origin.url("/a"), TAKES)
    equal((answer.body, answer.trailers, answer.header("Trailer")), (b"helloworld!", [], None), "answer")
    equal(origin.requests[0].header("TE"), None, "what the origin is told")
