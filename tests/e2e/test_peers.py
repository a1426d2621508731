"""Peers that leave, stall, lie or take more than their share, each at the worst moment."""

import threading
import time

from harness import wire
from harness.checks import between, equal, lacks, same_bytes, true, until
from harness.icap import IcapServer
from harness.raw_origin import ByteOrigin, RawOrigin, ok, pattern
from harness.retort import Retort, Service, measure
from harness.server import Server
from harness.suite import seconds
from harness.wire import Truncated, request


def serves(proxy, origin, what="a request afterwards"):
    equal(proxy.get(origin.url("/after")).status, 200, what)


# Clients.

def test_client_leaves_while_it_waits_for_100(lab):
    """The 100 can't be sent: the request fails and is logged without a response; the proxy lives."""
    def late(_icap, transaction):
        if "/upload" in transaction.http_request.start:
            time.sleep(0.3)
        transaction.send_204()

    def answer(connection, _):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/somebody-else\r\nContent-Length: 2\r\n"
                        b"Cache-Control: no-store\r\n\r\nok")
    origin = RawOrigin(lab, answer)
    icap = IcapServer(lab, late, methods="REQMOD", preview=0)
    proxy = Retort(lab, services=[Service("late", icap.uri(), point="reqmod_precache")])
    for i in range(4):
        serves(proxy, origin, "a request before")
        with proxy.wire() as client:
            client.send(request("POST", origin.url("/upload"), {"Expect": "100-continue", "Content-Length": "100000"}))
            time.sleep(0.1)
            client.abort()
        equal(proxy.entries("/upload", i + 1)[-1]["content_type"], "", "the content type in the log")
    serves(proxy, origin)


def test_client_resets_while_the_origin_thinks(lab):
    """The origin is let go at once, not when it answers somebody who is not there."""
    asked, let_go = threading.Event(), threading.Event()

    def think(connection, request):
        if request.target == "/after":
            return ok(connection, request)
        asked.set()
        if connection.read_some() == b"":  # there is nothing to read until the proxy closes
            let_go.set()
        return True
    origin = RawOrigin(lab, think)
    proxy = Retort(lab)
    for number, (method, body) in enumerate((("GET", b""), ("POST", b"all of it"))):
        asked.clear()
        let_go.clear()
        with proxy.wire() as client:
            client.send(request(method, origin.url("/thinks"), {"Content-Length": str(len(body))} if body else {}, body or None))
            true(asked.wait(10), "the origin was asked")
            client.abort()
        true(let_go.wait(10), f"{method}: the connection to the origin was closed")
        equal(proxy.entries("/thinks", number + 1)[-1]["bytes"], 0, "bytes in the log")
    serves(proxy, origin)


def test_client_leaves_an_object_that_outgrows_the_cache(lab):
    """What can't be stored after all is not fetched for nobody, and holds no connection."""
    left = threading.Event()
    went = threading.Event()

    def answer(connection, _):
        if _.target == "/after":
            ok(connection, _)
            return
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.send(wire.chunked(pattern(20000), last=b""))
        left.wait(10)
        connection.send(wire.chunked(pattern(20000), last=b""))
        time.sleep(0.3)  # the client's absence is noticed while the object is still small enough
        try:
            for _ in range(400):
                connection.send(wire.chunked(pattern(60000), last=b""))
        except OSError:
            went.set()
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, cache={"memory": "32MB", "max_object": "100KB"})
    with proxy.wire() as client:
        client.send(request("GET", origin.url("/large")))
        client.head()
        client.abort()
    time.sleep(0.2)
    left.set()
    true(went.wait(10 * lab.patience), "the origin's connection stays open for a body that nobody reads")
    until(lambda: proxy.counter("transactions_active") == 0, 5, "no transaction left")
    serves(proxy, origin)


def test_request_with_as_many_fields_as_fit(lab):
    """Fields that Retort adds never push out the one that says where the body ends."""
    origin = ByteOrigin(lab)
    proxy = Retort(lab)
    fields = [("Host", origin.authority), ("Transfer-Encoding", "chunked")] + [(f"F{i}", "v") for i in range(126)]
    with proxy.wire() as client:
        client.send(request("POST", origin.url("/full"), fields) + wire.chunked(b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"))
        answer = client.response("POST")
    time.sleep(0.2)
    head = b"".join(origin.received.values()).split(b"\r\n\r\n")[0].lower()
    if answer.status == 200:
        true(b"\r\ntransfer-encoding: chunked" in head or b"\r\ncontent-length:" in head,
             "a request with a body was sent without framing")
        true(b"\r\nvia:" in head, "no Via")
    else:
        equal(answer.status, 431, "status")


@seconds(60)
def test_client_that_pauses_does_not_cost_the_origin_its_time(lab):
    """first_byte_timeout runs from the end of the request, and runs then."""
    def answer(connection, read):
        if read.body.endswith(b"?"):
            time.sleep(4)
        ok(connection, read)
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, origin={"first_byte_timeout": "1s"})
    for framing, pieces in (({"Content-Length": "6"}, (b"abc", b"def")),
                            ({"Transfer-Encoding": "chunked"}, (b"3\r\nabc\r\n", b"3\r\ndef\r\n0\r\n\r\n"))):
        with proxy.wire() as client:
            client.send(request("POST", origin.url("/upload"), framing) + pieces[0])
            time.sleep(2.2)
            client.send(pieces[1])
            equal(client.response("POST").status, 200, "a client that pauses")
    with proxy.wire() as client:
        client.send(request("POST", origin.url("/upload"), {"Content-Length": "4"}) + b"abc")
        time.sleep(0.2)
        client.send(b"?")
        equal(client.response("POST").status, 504, "an origin that does")


@seconds(60)
def test_client_asks_for_variants_without_end(lab):
    """One URL does not collect so many variants that looking for one takes long."""
    def answer(connection, _):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\nVary: X-Kind\r\n\r\nok")
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    for kind in range(300):
        equal(proxy.get(origin.url("/v"), {"X-Kind": str(kind)}).status, 200, "status")
    between(proxy.status()["cache"]["objects"], 10, 100, "objects")
    proxy.get(origin.url("/v"), {"X-Kind": "299"})
    equal(len(origin.requests), 300, "requests at the origin: the newest variant is still stored")


# Origins.

def test_origin_says_close_and_lingers(lab):
    """A connection that the origin said it would close is not used again, though it is still open."""
    def answer(connection, _):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\nConnection: close\r\n\r\nok")
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    for _ in range(3):
        equal(proxy.get(origin.url("/")).status, 200, "status")
    equal([r.connection_number for r in origin.requests], sorted({r.connection_number for r in origin.requests}),
          "a connection for each request")


def test_old_origin_keeps_its_connection(lab):
    """HTTP/1.0 with Connection: keep-alive: the next request goes over the same one."""
    def answer(connection, _):
        connection.send(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\nConnection: keep-alive\r\n\r\nok")
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    for _ in range(3):
        equal(proxy.get(origin.url("/")).status, 200, "status")
    equal(len({r.connection_number for r in origin.requests}), 1, "connections")


@seconds(60)
def test_origin_sends_interim_responses_without_end(lab):
    """It is given up, and nobody else has to wait meanwhile."""
    def answer(connection, read):
        if read.target != "/flood":
            ok(connection, read)
            return False
        flood = b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" * 4000
        try:
            while True:
                connection.send(flood)
        except OSError:
            return True
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, origin={"first_byte_timeout": "20s"})
    answers = []
    flooded = threading.Thread(target=lambda: answers.append(proxy.get(origin.url("/flood")).status))
    flooded.start()
    time.sleep(0.3)
    serves(proxy, origin)
    flooded.join(10)
    equal(answers, [502], "the answer to the client")


def test_range_does_not_vouch_for_what_is_stored(lab):
    """A 304 to the client's own condition says nothing of the stored response."""
    version = [b"one"]

    def answer(connection, read):
        etag = b'"%s"' % version[0]
        if (read.header("If-None-Match") or "").encode() == etag:
            connection.send(b"HTTP/1.1 304 Not Modified\r\nETag: " + etag + b"\r\nCache-Control: max-age=60\r\n\r\n")
            return
        connection.send(b"HTTP/1.1 200 OK\r\nETag: " + etag + b"\r\nContent-Length: 3\r\nCache-Control: max-age=1\r\n\r\n"
                        + version[0])
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    equal(proxy.get(origin.url("/v")).body, b"one", "first")
    version[0] = b"two"
    time.sleep(2.1)
    proxy.get(origin.url("/v"), {"Range": "bytes=0-1", "If-None-Match": '"two"'})
    equal(proxy.get(origin.url("/v")).body, b"two", "the body afterwards")


def test_what_followers_wait_for_vanishes(lab):
    """Requests that wait for a revalidation after which nothing is stored any more fetch for themselves."""
    def answer(connection, read):
        if read.header("If-None-Match"):
            time.sleep(0.5)
            connection.send(b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nCache-Control: no-store\r\n\r\n')
            return
        connection.send(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: 3\r\nCache-Control: max-age=1\r\n\r\none')
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    url = origin.url("/v")
    equal(proxy.get(url).body, b"one", "first")
    time.sleep(2.1)
    clients = [proxy.wire() for _ in range(3)]
    for client in clients:
        client.send(request("GET", url))
        time.sleep(0.1)
    for client in clients:
        equal(client.response().body, b"one", "afterwards")


# ICAP servers.

def stalls_behind_the_last_byte(stall):
    def behave(_icap, transaction):
        transaction.send_head(transaction.response_head())
        transaction.send(wire.chunked(b"beginning", last=b""))
        transaction._chunks()
        stall.wait(15)
        return True
    return behave


@seconds(60)
def test_service_stalls_in_its_answer(lab):
    """Its clock runs once all of the virgin body is with it, though it had to wait for that before."""
    stall = threading.Event()
    icap = IcapServer(lab, stalls_behind_the_last_byte(stall), preview=None)

    def answer(connection, _):
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n")
        connection.send(wire.chunked(b"first", last=b""))
        time.sleep(0.7)
        connection.send(wire.chunked(b"second"))
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, services=[Service("stalls", icap.uri(), timeout="1s")])
    began = time.monotonic()
    try:
        with proxy.wire(timeout=8) as client:
            client.send(request("GET", origin.url("/")))
            client.response()
        raise AssertionError("a whole response")
    except Truncated:
        pass
    finally:
        stall.set()
    true(time.monotonic() - began < 6, "it took too long")


@seconds(60)
def test_slow_origin_is_not_the_service_s_fault(lab):
    """While the origin pauses in the middle of a body the service's clock stands still."""
    def behave(_icap, transaction):
        transaction.send_head(transaction.response_head())
        transaction.send(wire.chunked(b"beginning", last=b""))
        transaction._chunks()
        transaction.send(wire.chunked(transaction.body))
    icap = IcapServer(lab, behave, preview=None)

    def answer(connection, _):
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n")
        for piece in (b"a", b"b", b"c"):
            connection.send(wire.chunked(piece, last=b""))
            time.sleep(1.6)
        connection.send(wire.chunked(b"d"))
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, services=[Service("echo", icap.uri(), timeout="1s")])
    equal(proxy.get(origin.url("/")).body, b"beginningabcd", "body")


@seconds(60)
def test_waiting_for_a_service_passes_on(lab):
    """One whose time is up in the moment when its turn has come does not keep the turn."""
    stalled = threading.Event()

    def behave(_icap, transaction):
        if "hold" in transaction.http_request.start and not stalled.is_set():
            stalled.set()
            time.sleep(4)
            return True
        transaction.send_204()
        return False
    icap = IcapServer(lab, behave, methods="REQMOD", preview=0)
    origin = RawOrigin(lab)
    proxy = Retort(lab, services=[Service("narrow", icap.uri(), point="reqmod_precache", max_connections=1,
                                          bypass=False, timeout="1s")])
    serves(proxy, origin, "first")
    impatient = [proxy.wire() for _ in range(6)]
    for i, client in enumerate(impatient):
        client.send(request("GET", origin.url(f"/hold{i}")))
    time.sleep(0.5)
    equal(proxy.get(origin.url("/patient")).status, 200, "one whose time is not up")


@seconds(90)
def test_pooled_service_dies_and_the_next_answers_early(lab):
    """The repetition sends the kept beginning again, all of it, though the answer begins before."""
    size = 12000000
    first = threading.Event()

    def behave(icap, transaction):
        if transaction.http_request.start.find("/warm") >= 0:
            transaction._chunks()
            transaction.send_200(transaction.response_head(), transaction.body)
            return False
        if not first.is_set():
            first.set()
            transaction.read_some_body(7000000)
            time.sleep(0.3)
            return True
        transaction.send_head(transaction.response_head())
        transaction.send(wire.chunked(b"<", last=b""))
        time.sleep(0.5)
        transaction._chunks()
        transaction.send(wire.chunked(transaction.body))
        return False
    icap = IcapServer(lab, behave, preview=None, receive_buffer=8192)
    sent = threading.Event()

    def answer(connection, read):
        if read.target == "/warm":
            ok(connection, read)
            return
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n")
        for start in range(0, size, 50000):
            connection.send(wire.chunked(pattern(50000, start), last=b""))
        connection.send(b"0\r\n\r\n")
        sent.set()
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, services=[Service("dies", icap.uri(), keep="16MB", timeout="10s")])
    equal(proxy.get(origin.url("/warm")).status, 200, "warm")
    answer_ = proxy.get(origin.url("/body"))
    equal(proxy.counter("icap_retries"), 1, "repetitions")
    same_bytes(answer_.body, b"<" + pattern(size), "body")


def test_service_answers_with_an_interim_response(lab):
    """A 1xx is no answer: what follows it would be taken for the next response."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    icap = IcapServer(lab, behave)
    origin = RawOrigin(lab)
    proxy = Retort(lab, services=[Service("lies", icap.uri(), bypass=False)])
    with proxy.wire() as client:
        client.send(request("GET", origin.url("/")))
        got = client.read_some()
    true(got.startswith(b"HTTP/1.1 502 "), f"{got[:200]!r}")
    lacks(got, b"evil", "the response")


def test_service_answers_connect_with_a_page(lab):
    """A 200 would open a tunnel in the client's eyes: what it sends then must not be read as requests."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"blocked")
    icap = IcapServer(lab, behave, methods="REQMOD", preview=None)
    proxy = Retort(lab, services=[Service("blocks", icap.uri(), point="reqmod_precache")])
    with proxy.wire() as client:
        client.send(b"CONNECT www.example.com:443 HTTP/1.1\r\nHost: www.example.com:443\r\n\r\n")
        equal(client.response("CONNECT").status, 403, "status")


@seconds(30)
def test_origin_speaks_first(lab):
    """An overloaded origin says so before it is asked; nobody waits for it to say it again."""
    def speak(connection, _number):
        connection.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        time.sleep(1)
    origin = Server(lab, speak)
    proxy = Retort(lab)
    for _ in range(5):
        answer, took = measure(lambda: proxy.get(f"http://{origin.authority}/"))
        equal(answer.status, 503, "status")
        between(took, 0, 3 * lab.patience, "seconds")
