"""CONNECT tunnels."""

import select
import threading
import time

from harness import ports
from harness.checks import equal, one_of, raises, same_bytes, true, until
from harness.http2 import Http2
from harness.icap import IcapServer
from harness.origin import Origin
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.server import Server
from harness.suite import memcheck
from harness.wire import Silence, Wire, request


def allow(*allowed):
    return f"connect_ports = {{ {', '.join(str(port) for port in allowed)} }}"


def connect(proxy, authority, early=b""):
    wire = proxy.wire()
    wire.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode() + early)
    return wire, wire.response("CONNECT")


@memcheck
def test_tunnel(lab):
    origin = Origin(lab)
    proxy = Retort(lab, extra=allow(origin.port))
    wire, response = connect(proxy, origin.authority)
    equal(response.status, 200, "status")
    equal((response.header("Content-Length"), response.header("Transfer-Encoding")), (None, None), "framing fields")
    for word in ("one", "two"):
        wire.send(request("GET", f"/text?say={word}", host="x"))
        equal(wire.response().text(), word, "body")
    wire.close()
    entry = proxy.entries(origin.authority)[0]
    equal((entry["method"], entry["result"]), ("CONNECT", "TUNNEL"), "log entry")
    true(entry["bytes"] > 100, f"bytes in the log: {entry['bytes']}")


def test_bytes_sent_with_the_request(lab):
    """A client may send its first bytes before it has seen the 200."""
    origin = Origin(lab)
    proxy = Retort(lab, extra=allow(origin.port))
    wire, response = connect(proxy, origin.authority, request("GET", "/text?say=early", host="x"))
    equal(response.status, 200, "status")
    equal(wire.response().text(), "early", "body")


def echo_back(connection, _number):
    while data := connection.read_some():
        connection.send(data)


def test_both_ways_at_once(lab):
    server = Server(lab, echo_back)
    proxy = Retort(lab, extra=allow(server.port))
    wire, _ = connect(proxy, server.authority)
    data = pattern(8 << 20)
    sender = threading.Thread(target=lambda: wire.send(data), daemon=True)
    sender.start()
    same_bytes(wire.read_bytes(len(data)), data, "echo")
    sender.join(5)


def test_half_close(lab):
    """The client's end of stream reaches the server, whose answer still comes back."""
    def answer_at_end(connection, _number):
        got = connection.read_to_end()
        connection.send(b"got %d" % len(got))
    server = Server(lab, answer_at_end)
    proxy = Retort(lab, extra=allow(server.port))
    wire, _ = connect(proxy, server.authority)
    wire.send(b"x" * 1000)
    wire.finish_sending()
    equal(wire.read_to_end(5), b"got 1000", "answer")


def leave(client, how):
    """The client goes, without the end of its direction that it may have sent before."""
    if isinstance(client, Http2) and how == "reset":
        client.reset_stream(1)
    else:
        client.abort()


def open_tunnel(proxy, server, version):
    """A client and what it sends bytes with, which returns when no more are taken."""
    if version == 1:
        wire, response = connect(proxy, server.authority)
        equal(response.status, 200, "CONNECT")
        return wire, wire.socket.sendall
    client = Http2(proxy.forward)
    stream = client.take_stream()
    client.headers(stream, [(":method", "CONNECT"), (":authority", server.authority)], end=False)
    client.read_until(lambda: client.answer(stream).status == 200)
    return client, lambda data: client.upload(stream, data, end=False)


WAYS_TO_LEAVE = ((1, "close"), (2, "reset"), (2, "close"))


@memcheck
def test_a_client_leaves_after_its_end(lab):
    """A tunnel whose client has ended its direction, and then is lost, is over, also if the server says nothing."""
    lab.needs("admin")
    ended, gone = threading.Semaphore(0), threading.Semaphore(0)

    def silent(connection, _number):
        connection.read_to_end()
        ended.release()
        until(lambda: reset_at(connection.socket), 20 * lab.patience, "the proxy to end the server's connection")
        gone.release()
    server = Server(lab, silent)
    proxy = Retort(lab, extra=allow(server.port))
    for version, how in WAYS_TO_LEAVE:
        client, _ = open_tunnel(proxy, server, version)
        if version == 1:
            client.finish_sending()
        else:
            client.data(1, b"", end=True)
        true(ended.acquire(timeout=10 * lab.patience), f"HTTP/{version}: the server sees the end")
        equal(proxy.counter("transactions_active"), 1, f"HTTP/{version}: the tunnel is open")
        leave(client, how)
        until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, f"HTTP/{version}, {how}: the tunnel is over")
        true(gone.acquire(timeout=10 * lab.patience), f"HTTP/{version}, {how}: the server's connection is reset")
        client.close()


def reset_at(connected):
    """Has the other side reset the connection?"""
    poll = select.poll()
    poll.register(connected, 0)
    return bool(poll.poll(0))


def test_a_client_leaves_a_server_that_reads_nothing(lab):
    """What the server has not taken does not keep the tunnel of a client that is lost."""
    lab.needs("admin")
    release = threading.Event()

    def deaf(_connection, _number):
        release.wait(60)
    server = Server(lab, deaf, receive_buffer=4096)
    proxy = Retort(lab, extra=allow(server.port))
    for version, how in WAYS_TO_LEAVE:
        client, send = open_tunnel(proxy, server, version)
        client.timeout = 1
        client.socket.settimeout(1)
        raises((TimeoutError, Silence), lambda s=send: [s(bytes(1 << 18)) for _ in range(200)], f"HTTP/{version}: nothing more is taken")
        equal(proxy.counter("transactions_active"), 1, f"HTTP/{version}: the tunnel is open")
        leave(client, how)
        until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, f"HTTP/{version}, {how}: the tunnel is over")
        client.close()
    release.set()


def test_server_closes(lab):
    def hello(connection, _number):
        connection.send(b"hello")
    server = Server(lab, hello)
    proxy = Retort(lab, extra=allow(server.port))
    wire, _ = connect(proxy, server.authority)
    equal(wire.read_to_end(5), b"hello", "data before the end")


def test_a_server_that_ends_first_gets_the_rest(lab):
    """Both ends of stream have come while bytes of the client still wait: that is no reset."""
    data, arrived = pattern(200000), []

    def ends_first(connection, _number):
        connection.send(b"hello")
        connection.finish_sending()
        while piece := connection.read_some():
            arrived.append(piece)
        arrived.append(b"reset" if connection.reset else b"end")
    server = Server(lab, ends_first)
    proxy = Retort(lab, extra=allow(server.port) + '\nlimit all { upload_bandwidth = "100KB" }')
    wire, _ = connect(proxy, server.authority)
    equal(wire.read_to_end(10), b"hello", "what the server sends")
    wire.send(data)
    wire.finish_sending()
    until(lambda: arrived and arrived[-1] in (b"reset", b"end"), 30 * lab.patience, "the server to read to the end")
    same_bytes(b"".join(arrived), data + b"end", "what the server reads")
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "the tunnel is over")


def test_a_server_that_closes_leaves_what_it_sent(lab):
    """A server that is reset behind its end does not take back what the client has not read yet."""
    data = pattern(64 << 10)

    def answer(connection, _number):
        connection.send(data)
    server = Server(lab, answer)
    proxy = Retort(lab, extra=allow(server.port))
    wire = Wire(proxy.forward, receive_buffer=4096)
    wire.send(f"CONNECT {server.authority} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    until(lambda: proxy.counter("tunnel_bytes") >= len(data), 10 * lab.patience, "the proxy to take all")
    for _ in range(20):
        wire.send(b"x")
        time.sleep(0.02)
    equal(wire.response("CONNECT").status, 200, "status")
    same_bytes(wire.read_to_end(20), data, "what the server sent")
    true(not wire.reset, "no reset")
    wire.finish_sending()
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "the tunnel is over")
    wire.close()


def test_slow_reader_does_not_fill_memory(lab):
    sent = []

    def pour(connection, _number):
        for _ in range(2048):
            connection.send(b"z" * 65536)
            sent.append(65536)
    server = Server(lab, pour)
    proxy = Retort(lab, extra=allow(server.port))
    wire, _ = connect(proxy, server.authority)
    until(lambda: sent, 5, "the server to send")
    time.sleep(1)
    true(sum(sent) < 32 << 20, f"{sum(sent)} bytes were taken from the server while the client took none")
    if not lab.asan:
        true(proxy.memory_peak_kb() < 64 << 10, f"peak memory {proxy.memory_peak_kb()} kB")
    wire.close()


@memcheck
def test_port_not_allowed(lab):
    origin = Origin(lab)
    proxy = Retort(lab, extra=allow(443))
    _, response = connect(proxy, origin.authority)
    equal(response.status, 403, "status")
    equal(proxy.log(1)[0]["result"], "DENIED", "result in the log")


def test_nobody_there(lab):
    port = ports.take()
    proxy = Retort(lab, extra=allow(port))
    _, response = connect(proxy, f"127.0.0.1:{port}")
    one_of(response.status, (502, 503), "status")


def test_bad_targets(lab):
    proxy = Retort(lab, extra=allow(443))
    for target in ("127.0.0.1", "http://127.0.0.1/", "/", "127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:44a"):
        wire = proxy.wire()
        wire.send(f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        one_of(wire.response("GET").status, (400, 403), f"status for {target}")
        wire.close()


@memcheck
def test_bytes_behind_a_refused_connect_are_no_request(lab):
    """RFC 9110, 9.3.6: they were meant for the tunnel, whatever they look like."""
    origin = RawOrigin(lab)
    port = ports.take()
    proxy = Retort(lab, reverse={"/": origin.url()}, extra=allow(port))
    behind = request("GET", origin.url("/smuggled"))
    for target in ("127.0.0.1:25", f"127.0.0.1:{port}", "127.0.0.1", f"127.0.0.1:{proxy.forward[1]}", "no.such.invalid:443"):
        for later in (False, True):
            with proxy.wire() as wire:
                wire.send(f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + (b"" if later else behind))
                answer = wire.response("CONNECT")
                true(answer.status >= 400, f"status {answer.status} for {target}")
                equal(answer.header("Connection"), "close", f"Connection for {target}")
                if later:
                    wire.send(behind)
                true(wire.at_end(), f"the connection is closed behind {target}")
    with proxy.wire(reverse=True) as wire:
        wire.send(b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n" + request("GET", "/smuggled"))
        equal((wire.response("CONNECT").status, wire.at_end()), (405, True), "to a reverse listener")
    equal(len(origin.requests), 0, "requests at the origin")


def test_a_connect_that_a_service_answers_closes_too(lab):
    def refuse(_icap, transaction):
        transaction.send_200(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\r\n", b"no")
    origin = RawOrigin(lab)
    icap = IcapServer(lab, refuse, methods="REQMOD")
    proxy = Retort(lab, services=[Service("s", icap.uri(), point="reqmod_precache", bypass=False)], extra=allow(origin.port))
    with proxy.wire() as wire:
        wire.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + request("GET", origin.url("/smuggled")))
        equal((wire.response("CONNECT").status, wire.at_end()), (403, True), "status, and the end")
    equal(len(origin.requests), 0, "requests at the origin")
