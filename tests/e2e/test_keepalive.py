"""Persistent connections, pipelining and HTTP/1.0, on both sides."""

import threading
import time

from harness.checks import between, equal, one_of, same_bytes, true, until
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import chunked, request


def test_many_requests_on_one_connection(lab):
    origin = RawOrigin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        for number in range(50):
            wire.send(request("GET", origin.url(f"/{number}")))
            equal(wire.response().status, 200, "status")
    equal([r.target for r in origin.requests], [f"/{n}" for n in range(50)], "requests at the origin")
    equal(origin.accepted, 1, "connections to the origin")


@memcheck
def test_pipelined_requests_are_answered_in_order(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        # The slow one comes first: what follows must wait for it.
        wire.send(b"".join(request("GET", origin.url("/text", say=f"p{n}", ms=200 if n == 0 else 0))
                           for n in range(20)))
        equal([wire.response().text() for _ in range(20)], [f"p{n}" for n in range(20)], "bodies")


def test_pipelined_posts(lab):
    origin = RawOrigin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("POST", origin.url("/a"), body=b"x" * 3000)
                  + request("POST", origin.url("/b"), {"Transfer-Encoding": "chunked"}, chunked(b"yy" * 700, b"z"))
                  + request("GET", origin.url("/c")))
        for _ in range(3):
            equal(wire.response().status, 200, "status")
    equal([(r.target, len(r.body)) for r in origin.requests], [("/a", 3000), ("/b", 1401), ("/c", 0)], "requests")


def test_pipeline_in_single_bytes(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send_pieces(b"".join(request("GET", origin.url("/text", say=f"b{n}")) for n in range(3)), 1)
        equal([wire.response().text() for _ in range(3)], ["b0", "b1", "b2"], "bodies")


def fresh(origin, n):
    return origin.url("/bytes", n=n, cc="max-age=3600")


@memcheck
def test_pipelined_hits_of_all_sizes(lab):
    """Answers that are held back for those behind them, with others between that can't be held."""
    origin = Origin(lab)
    proxy = Retort(lab)
    sizes = [0, 1, 3000, 70000, 20, 31000, 31000, 5, 200000, 1]
    for n in sizes:
        proxy.get(fresh(origin, n))
    with proxy.wire() as wire:
        wire.send(b"".join(request("GET", fresh(origin, n)) for n in sizes)
                  + request("HEAD", fresh(origin, 3000))
                  + request("GET", origin.url("/bytes", n=5000, cc="no-store"))
                  + request("POST", origin.url("/text", say="post"), {"Expect": "100-continue"}, b"abc")
                  + request("GET", fresh(origin, 3000), {"Range": "bytes=10-19, 30-39"})
                  + request("GET", fresh(origin, 3000), {"Connection": "close"}) + b"too late")
        for n in sizes:
            same_bytes(wire.response().body, origin.body(n))
        equal(wire.response(method="HEAD").status, 200, "HEAD")
        same_bytes(wire.response().body, origin.body(5000))
        equal(wire.response(method="POST").status, 200, "POST")
        equal(wire.response().status, 206, "two ranges")
        same_bytes(wire.response().body, origin.body(3000))
        true(wire.at_end(), "the connection should close")


def ask_and_finish(wire, requests):
    wire.send(requests)
    wire.finish_sending()


def test_pipelined_hits_to_a_client_that_reads_late(lab):
    """The socket does not take what was held back: it waits, and nothing is lost or mixed up."""
    origin = Origin(lab)
    proxy = Retort(lab)
    sizes = [(17 * i) % 3000 for i in range(100)]
    for n in sizes:
        proxy.get(fresh(origin, n))
    for last in ({}, {"Connection": "close"}):
        with proxy.wire(receive_buffer=4096) as wire:
            requests = [request("GET", fresh(origin, n)) for n in sizes * 60]
            requests.append(request("GET", fresh(origin, 17), last))
            asking = threading.Thread(target=ask_and_finish, args=(wire, b"".join(requests)))
            asking.start()
            # It asks for no more when it can't send: both directions are full.
            until(lambda: proxy.counter("client_bytes_out") > 0, 10 * lab.patience, "answers")
            for n in sizes * 60 + [17]:
                same_bytes(wire.response().body, origin.body(n))
            asking.join()
            true(wire.at_end(), "the connection should close")


def test_client_that_leaves_a_pipeline(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    proxy.get(fresh(origin, 3000))
    for taken in (0, 5000):
        with proxy.wire(receive_buffer=4096) as wire:
            asking = request("GET", fresh(origin, 3000)) * 400
            wire.socket.setblocking(False)
            wire.socket.send(asking)
            wire.socket.settimeout(20)
            wire.read_bytes(taken)
            wire.abort()
    same_bytes(proxy.get(fresh(origin, 3000)).body, origin.body(3000))


def test_http_1_0_closes(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/bytes", n=2000), version="1.0"))
        same_bytes(wire.response().body, origin.body(2000))
        true(wire.at_end(), "the connection should close after an HTTP/1.0 request")


def test_http_1_0_never_gets_chunks(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/chunked", n=100000, piece=1000), version="1.0"))
        response = wire.response()
        one_of(response.framing, ("close", "length"), "framing")
        same_bytes(response.body, origin.body(100000))


def test_http_1_0_keep_alive(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        for _ in range(2):
            wire.send(request("GET", origin.url("/text", say="again"), {"Connection": "keep-alive"}, version="1.0"))
            response = wire.response()
            equal(response.text(), "again", "body")
            if "keep-alive" not in (response.header("Connection") or "").lower():
                true(wire.at_end(), "neither keep-alive nor a close")
                return


def test_connection_close_is_obeyed(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/text", say="x"), {"Connection": "close"}))
        response = wire.response()
        equal((response.text(), (response.header("Connection") or "").lower()), ("x", "close"), "body, Connection")
        true(wire.at_end(), "the connection should close")


def test_http_1_0_origin(lab):
    def answer(connection, _request):
        connection.send(b"HTTP/1.0 200 OK\r\nCache-Control: no-store\r\n\r\nold but good")
        return True
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        for _ in range(3):
            wire.send(request("GET", origin.url()))
            equal(wire.response().text(), "old but good", "body")
    equal(origin.accepted, 3, "connections to the origin")


def test_origin_connection_close_is_obeyed(lab):
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\nCache-Control: no-store\r\n\r\nok")
        time.sleep(0.5)  # a proxy that sends the next request here loses it
        return True
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        for _ in range(3):
            wire.send(request("GET", origin.url()))
            equal(wire.response().text(), "ok", "body")
    equal(origin.accepted, 3, "connections to the origin")


@memcheck
def test_pooled_connection_that_died_is_replaced(lab):
    """The origin closes an idle connection just as the next request comes: the client must not see it."""
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok")
        return True  # closes without having said so
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        for number in range(10):
            wire.send(request("GET", origin.url(f"/{number}")))
            equal(wire.response().text(), "ok", "body")
            time.sleep(0.02)


def test_request_on_a_dying_pooled_connection_is_repeated(lab):
    """The pooled connection dies after it has taken the request and before the answer's first byte."""
    def answer(connection, request_seen):
        if request_seen.target == "/second" and request_seen.connection_number == 1:
            connection.abort()
            return True
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok")
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        for path in ("/first", "/second"):
            wire.send(request("GET", origin.url(path)))
            equal(wire.response().status, 200, "status of " + path)
    equal(origin.accepted, 2, "connections to the origin")


def test_post_is_not_sent_twice(lab):
    """RFC 9110 §9.2.2: a request that is not idempotent is not repeated once it may have been seen."""
    def answer(connection, request_seen):
        if request_seen.method == "POST":
            connection.abort()
            return True
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok")
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/first")))
        wire.response()
        wire.send(request("POST", origin.url("/pay"), body=b"100"))
        one_of(wire.response().status, (502, 503, 504), "status")
    equal(sum(1 for r in origin.requests if r.method == "POST"), 1, "POST requests at the origin")


def test_idle_connection_is_closed(lab):
    proxy = Retort(lab, client={"idle_timeout": "500ms"})
    with proxy.wire() as wire:
        start = time.monotonic()
        true(wire.at_end(timeout=5 * lab.patience), "an idle connection should be closed")
        between(time.monotonic() - start, 0.3, 3 * lab.patience, "seconds until the close")


def test_head_that_never_ends_is_given_up(lab):
    proxy = Retort(lab, client={"header_timeout": "700ms"})
    with proxy.wire() as wire:
        wire.send(b"GET http://127.0.0.1/ HTTP/1.1\r\nHost:")
        start = time.monotonic()
        data = wire.read_to_end(5 * lab.patience)
        between(time.monotonic() - start, 0.4, 4 * lab.patience, "seconds until the end")
        true(data == b"" or b" 408 " in data, f"what came: {data[:100]!r}")


def test_dripped_head_has_one_deadline(lab):
    proxy = Retort(lab, client={"header_timeout": "1s"})
    with proxy.wire() as wire:
        def drip():
            try:
                for _ in range(100):
                    wire.send(b"X")
                    time.sleep(0.1)
            except OSError:
                pass
        wire.send(b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nA: ")
        threading.Thread(target=drip, daemon=True).start()
        start = time.monotonic()
        wire.read_to_end(8 * lab.patience)
        between(time.monotonic() - start, 0.5, 4 * lab.patience, "seconds until the end")


def test_max_requests_on_a_connection(lab):
    origin = Origin(lab)
    proxy = Retort(lab, client={"max_requests": 2})
    with proxy.wire() as wire:
        for _ in range(2):
            wire.send(request("GET", origin.url("/text", say="x")))
            response = wire.response()
        equal((response.header("Connection") or "").lower(), "close", "Connection of the last response")
        true(wire.at_end(), "the connection should close")


def test_max_connections(lab):
    origin = Origin(lab)
    proxy = Retort(lab, client={"max_connections": 5})
    until(lambda: proxy.counter("client_connections_open") == 0, 5 * lab.patience, "the harness's probe to be gone")
    wires = [proxy.wire() for _ in range(5)]
    for wire in wires:
        wire.send(request("GET", origin.url("/text", say="in")))
        equal(wire.response().text(), "in", "body")
    extra = proxy.wire()
    true(extra.at_end(), "a connection above the limit should be closed at once")
    for wire in wires:
        wire.close()
    true(proxy.counter("client_connections_rejected") >= 1, "client_connections_rejected")


def test_max_connections_of_all_workers(lab):
    """The limit is the proxy's: the kernel does not deal connections out evenly, and a worker may have most of them."""
    most = 12
    origin, proxy = Origin(lab), Retort(lab, workers=4, client={"max_connections": most})
    for turn in range(3):
        until(lambda: proxy.counter("client_connections_open") == 0, 5 * lab.patience, "all connections to be closed")
        wires = [proxy.wire() for _ in range(most)]
        for wire in wires:
            wire.send(request("GET", origin.url("/text", say="in")))
            equal(wire.response().text(), "in", f"body, turn {turn}")
        with proxy.wire() as extra:
            true(extra.at_end(), "a connection above the limit should be closed at once")
        for wire in wires:
            wire.close()
    equal(proxy.counter("client_connections_rejected"), 3, "client_connections_rejected")
