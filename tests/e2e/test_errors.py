"""Origins that are away, silent, or die: clear errors, bounded waits, and nothing partial taken for whole."""

import threading
import time

from harness import ports
from harness.checks import between, contains, equal, lacks, one_of, raises, same_bytes, true
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort, measure
from harness.server import Server
from harness.suite import memcheck
from harness.wire import Silence, Truncated, request


def check_page(lab, response, status):
    equal(response.status, status, "status")
    kind, words = ("text/html", "<html") if lab.has_part("pages") else ("text/plain", f"{status} ")
    equal((response.header("Content-Type") or "").split(";")[0], kind, "Content-Type")
    contains(response.text().lower(), words, "page")
    contains((response.header("Cache-Control") or "").lower(), "no-store", "Cache-Control of an error page")


@memcheck
def test_origin_is_down(lab):
    proxy = Retort(lab)
    url = f"http://127.0.0.1:{ports.take()}/x"
    check_page(lab, proxy.get(url), 502)
    entry = proxy.log(1)[0]
    equal((entry["status"], entry["result"]), (502, "ERROR"), "log entry")


@memcheck
def test_error_keeps_the_connection_usable(lab):
    origin, proxy = Origin(lab), Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", f"http://127.0.0.1:{ports.take()}/"))
        equal(wire.response().status, 502, "status")
        wire.send(request("GET", origin.url("/text", say="fine")))
        equal(wire.response().text(), "fine", "body")


def test_a_reason_is_one_sentence(lab):
    """The page writes the full stop behind the reason."""
    origin, proxy = RawOrigin(lab, lambda connection, asked: connection.send(b"HTTP/1.1 200 OK\r\n: x\r\n\r\n")), Retort(lab)
    fields = "".join(f"X-{number}: x\r\n" for number in range(2000))
    for sent, status in ((f"GET {origin.url('/')} HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", 400), ("GET http://h/ HTTP/3.7\r\nHost: h\r\n\r\n", 505),
                         (f"GET http://h/ HTTP/1.1\r\nHost: h\r\n{fields}\r\n", 431), (f"GET {origin.url('/')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n", 502)):
        with proxy.wire() as wire:
            wire.send(sent.encode())
            answer = wire.response()
        equal(answer.status, status, "status")
        lacks(answer.text(), "..", "the page")


def test_page_does_not_echo_markup(lab):
    proxy = Retort(lab)
    response = proxy.get(f"http://127.0.0.1:{ports.take()}/<script>alert(1)</script>")
    lacks(response.text(), "<script>alert", "page")


@memcheck
def test_silent_origin(lab):
    stop = threading.Event()
    origin = Server(lab, lambda connection, _: stop.wait(30))
    proxy = Retort(lab, origin={"first_byte_timeout": "600ms"})
    response, took = measure(lambda: proxy.get(f"http://{origin.authority}/"))
    stop.set()
    check_page(lab, response, 504)
    between(took, 0.5, 3 * lab.patience, "seconds")


def test_origin_that_does_not_accept(lab):
    """A full backlog looks like a host that drops packets."""
    import socket
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        time.sleep(0.2)
        proxy = Retort(lab, origin={"connect_timeout": "700ms"})
        response, took = measure(lambda: proxy.get(f"http://127.0.0.1:{port}/"))
        one_of(response.status, (502, 504), "status")
        between(took, 0.4, 4 * lab.patience, "seconds")
        for filler in fillers:
            filler.close()


def test_origin_closes_without_a_word(lab):
    origin = RawOrigin(lab, lambda connection, _: True)
    proxy = Retort(lab)
    check_page(lab, proxy.get(origin.url()), 502)


def test_origin_dies_inside_the_head(lab):
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Len")
        return True
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    check_page(lab, proxy.get(origin.url()), 502)


def test_head_dripped_by_the_origin_has_a_deadline(lab):
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(200):
            connection.send(b"a")
            time.sleep(0.05)
        return True
    origin, proxy = RawOrigin(lab, answer), Retort(lab, origin={"first_byte_timeout": "700ms"})
    response, took = measure(lambda: proxy.get(origin.url()))
    check_page(lab, response, 504)
    between(took, 0.4, 4 * lab.patience, "seconds")


DEATHS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nCache-Control: max-age=60\r\n\r\n" + b"x" * 5000,
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\n1388\r\n" + b"x" * 5000 + b"\r\n",
    "inside a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\nffff\r\n" + b"x" * 5000,
    "before the last chunk's end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\n5\r\nhello\r\n0\r\n",
}


def deaths(lab, end):
    """Every kind of truncated body, ended by `end`, must look truncated and not be stored."""
    def answer(connection, seen):
        connection.send(DEATHS[seen.target[1:].replace("%20", " ").replace("%27", "'")])
        time.sleep(0.05)
        end(connection)
        return True
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    for kind in DEATHS:
        path = "/" + kind.replace(" ", "%20").replace("'", "%27")
        for version in ("1.1", "1.1", "1.0"):
            with proxy.wire(timeout=5 * lab.patience) as wire:
                wire.send(request("GET", origin.url(path), version=version))
                check_truncated(wire, kind, version)
        equal(len([r for r in origin.requests if r.target == path]), 3, f"{kind}: requests at the origin (none from cache)")


def check_truncated(wire, kind, version):
    try:
        response = wire.response()
    except Truncated:
        return
    if response.status in (502, 504):
        return
    # An HTTP/1.0 client without Content-Length learns of it only by a reset.
    raise AssertionError(f"{kind}, HTTP/{version}: a truncated body came as a complete {response.framing} "
                         f"response of {len(response.body)} bytes")


@memcheck
def test_origin_closes_inside_the_body(lab):
    deaths(lab, lambda connection: None)


def test_origin_resets_inside_the_body(lab):
    deaths(lab, lambda connection: connection.abort())


def test_body_until_close_that_is_reset(lab):
    """A reset is not the end of a body that goes until close."""
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\n" + b"x" * 5000)
        time.sleep(0.05)
        connection.abort()
        return True
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    for _ in range(2):
        raises((Truncated,), lambda: proxy.get(origin.url()), "a response cut off by a reset")
    equal(len(origin.requests), 2, "requests at the origin (none from cache)")


def test_body_pauses_too_long(lab):
    stop = threading.Event()

    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n01234")
        stop.wait(30)
        return True
    origin, proxy = RawOrigin(lab, answer), Retort(lab, origin={"read_timeout": "600ms"})
    error, took = measure(lambda: raises((Truncated, Silence), lambda: proxy.get(origin.url()), "a body that stops"))
    stop.set()
    true(isinstance(error, Truncated), f"expected a cut connection, got {error}")
    between(took, 0.4, 4 * lab.patience, "seconds")


def test_nothing_partial_is_served_later(lab):
    """The first attempt dies, the second is whole: nobody ever gets the first's bytes as a whole."""
    state = {"n": 0}

    def answer(connection, _request):
        state["n"] += 1
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n")
        connection.send(b"01234" if state["n"] == 1 else b"abcdefghij")
        return state["n"] == 1
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    raises((Truncated,), lambda: proxy.get(origin.url()), "the first response")
    for _ in range(3):
        equal(proxy.get(origin.url()).body, b"abcdefghij", "body")
    equal(state["n"], 2, "requests at the origin")


def test_client_leaves_in_the_middle_of_a_storable_body(lab):
    origin, proxy = Origin(lab), Retort(lab)
    url = origin.url("/drip", n=100000, piece=10000, delay=30, cc="max-age=60")
    with proxy.wire() as wire:
        wire.send(request("GET", url))
        wire.head()
        wire.read_bytes(5000)
    same_bytes(proxy.get(url).body, origin.body(100000), "body for the next client")


def test_client_dies_inside_its_request_body(lab):
    """The origin must not get a complete request."""
    origin = RawOrigin(lab)
    proxy = Retort(lab)
    for framing, data in (({"Content-Length": "100"}, b"only this"),
                          ({"Transfer-Encoding": "chunked"}, b"9\r\nonly this\r\n")):
        with proxy.wire() as wire:
            wire.send(request("POST", origin.url("/upload"), framing) + data)
            time.sleep(0.2)
    time.sleep(0.3 * lab.patience)
    equal(len(origin.requests), 0, "complete requests at the origin")


def test_client_that_stalls_inside_its_request_body(lab):
    origin = RawOrigin(lab)
    proxy = Retort(lab, client={"body_timeout": "600ms"})
    with proxy.wire() as wire:
        wire.send(request("POST", origin.url("/upload"), {"Content-Length": "100"}) + b"only this")
        start = time.monotonic()
        data = wire.read_to_end(6 * lab.patience)
        between(time.monotonic() - start, 0.3, 5 * lab.patience, "seconds")
        true(data == b"" or b" 408 " in data, f"what came: {data[:200]!r}")
    equal(len(origin.requests), 0, "complete requests at the origin")


def test_loop_is_noticed(lab):
    """A reverse listener mapped to itself must not spin."""
    port = ports.take()
    proxy = Retort(lab, reverse={"/": f"http://127.0.0.1:{port}/"},
                   extra=f'listen "127.0.0.1:{port}" {{ mode = reverse }}')
    response, took = measure(lambda: proxy.get("/x", host="h", timeout=10 * lab.patience))
    true(400 <= response.status < 600, f"status {response.status}")
    between(took, 0, 5 * lab.patience, "seconds")
    true(proxy.counter("client_requests") < 100, f"requests made by one: {proxy.counter('client_requests')}")
