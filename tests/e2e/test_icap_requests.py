"""Services that are asked about requests: they change them, send them elsewhere, or answer them."""

import threading

from harness.adaptation import STEADY, start, verdicts
from harness.checks import contains, equal
from harness.icap import IcapServer
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import chunked, request


def test_reqmod_changes_the_request(lab):
    def behave(_icap, transaction):
        body = transaction.finish_body() if transaction.has_body else b""
        head = transaction.request_head(drop=("content-length",), add=[("X-Added", "1")])
        if transaction.has_body:
            transaction.send_200(head, body + b" more")
        else:
            transaction.send_head(head, body=False)
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    equal(echoed(proxy.get(origin.url("/echo")))["header"]("x-added"), "1", "X-Added of a GET")
    for body in (b"short", pattern(200000)):
        for headers, data in (({}, body), ({"Transfer-Encoding": "chunked"}, chunked(body))):
            seen = echoed(proxy.fetch("POST", origin.url("/echo"), headers, data))
            equal((seen["header"]("x-added"), seen["length"]), ("1", len(body) + 5), "X-Added and length at the origin")


@memcheck
def test_reqmod_rewrites_the_url(lab):
    """The rewritten URL decides where the request goes and what the cache looks up."""
    other = Origin(lab)

    def behave(_icap, transaction):
        transaction.send_head(transaction.request_head(
            drop=("host",), add=[("Host", other.authority)],
            start=f"GET {other.url('/text', say='instead', cc='max-age=60')} HTTP/1.1"), body=False)
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache")
    for number in range(3):
        equal(proxy.get(origin.url(f"/ad{number}")).text(), "instead", "body")
    equal((origin.count("/ad0"), other.count("/text")), (0, 1), "requests at both origins")
    equal(proxy.results("", 3)[1:], ["HIT", "HIT"], "results")


def test_methods_that_frame_the_answer_stay(lab):
    """RFC 9112 6.3: "Any response to a HEAD request ... is always terminated by the first empty line after the header fields" and "Any 2xx
    response to a CONNECT request implies that the connection will become a tunnel": a client goes by the method that it has sent."""
    origin = RawOrigin(lab, lambda connection, request: connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n" + b"0123456789" * (request.method != "HEAD")))
    for point in ("reqmod_precache", "reqmod_postcache"):
        icap = IcapServer(lab, methods="REQMOD")
        _, _, strict = start(lab, server=icap, point=point, bypass=False, **STEADY)
        _, _, lenient = start(lab, server=icap, point=point, bypass=True, **STEADY)
        for before, after in (("GET", "HEAD"), ("HEAD", "GET"), ("GET", "CONNECT"), ("POST", "HEAD"), ("GET", "head")):
            icap.behave = lambda _icap, transaction, after=after: transaction.send_head(
                transaction.request_head(start=f"{after} {transaction.http_request.start.split(' ')[1]} HTTP/1.1"), body=False)
            count = len(origin.requests)
            for proxy, status, asked in ((strict, 502, 0), (lenient, 200, 1)):
                with proxy.wire() as wire:
                    for turn in range(2):  # on one connection: the second answer is not the first one's rest
                        wire.send(request(before, origin.url(f"/{before}{after}{turn}"), {}))
                        answer = wire.response(before)
                        equal((answer.status, answer.header("Content-Length") if status == 200 else None),
                              (status, "10" if status == 200 else None), f"{point}: {before} to {after}, turn {turn}")
                entry = proxy.log(1)[-1]
                contains(entry["icap"][-1]["error"], "it changed the method", "reason in the log")
                equal([r.method for r in origin.requests[count:]], [before] * 2 * asked, "methods at the origin")
                count = len(origin.requests)
        for proxy in (strict, lenient):
            proxy.stop()


@memcheck
def test_other_methods_may_change(lab):
    """What was asked by another method is not the answer to a GET, and is not stored as one."""
    def behave(_icap, transaction):
        target = transaction.http_request.start.split(" ")[1]
        transaction.send_200(transaction.request_head(start=f"POST {target} HTTP/1.1"), b"made")
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin = RawOrigin(lab, lambda connection, request: connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=60\r\n\r\n%4s" % request.method.encode()))
    _, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    for _ in range(2):
        equal(proxy.get(origin.url("/x")).body, b"POST", "body")
    icap.behave = lambda _icap, transaction: transaction.send_204()
    equal(proxy.get(origin.url("/x")).body, b" GET", "body of what was not changed")
    equal([(r.method, r.body) for r in origin.requests], [("POST", b"made")] * 2 + [("GET", b"")], "requests at the origin")


@memcheck
def test_the_version_is_the_clients(lab):
    """RFC 9112 6.1: "A server MUST NOT send a response containing Transfer-Encoding unless the corresponding request indicates HTTP/1.1",
    whatever version a service writes."""
    icap = IcapServer(lab, lambda _icap, transaction: transaction.send_head(transaction.request_head(
        start=transaction.http_request.start.replace("HTTP/1.0", "HTTP/1.1"), add=[("X", "y")]), body=False), methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url('/chunked', n=1000, cc='no-store')} HTTP/1.0\r\nHost: {origin.authority}\r\n\r\n".encode())
        answer = wire.response("GET")
    equal((answer.status, answer.header("Transfer-Encoding"), answer.body), (200, None, origin.body(1000)), "answer")


def test_reqmod_204(lab):
    icap = IcapServer(lab, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    for size in (0, 10, 1024, 5000, 100000):
        seen = echoed(proxy.fetch("POST", origin.url("/echo"), body=pattern(size)))
        equal(seen["length"], size, "length at the origin")


@memcheck
def test_request_satisfaction(lab):
    """The service answers itself: nobody asks the origin, nobody stores it as the origin's."""
    def behave(_icap, transaction):
        transaction.send_200(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\r\n", b"blocked by policy")
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    for method in ("GET", "POST"):
        answer = proxy.fetch(method, origin.url("/x"), body=b"12345" if method == "POST" else None)
        equal((answer.status, answer.text()), (403, "blocked by policy"), method)
    equal(origin.count("/x"), 0, "requests at the origin")
    equal(verdicts(proxy, 2), [["SATISFIED"]] * 2, "verdicts")


def test_request_satisfaction_of_a_long_upload(lab):
    """The service refuses after the preview: the client gets the answer though its body is not read."""
    def behave(_icap, transaction):
        transaction.send_200(b"HTTP/1.1 413 No\r\n\r\n", b"too big")
        return True
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    with proxy.wire(timeout=10 * lab.patience) as wire:
        wire.send(request("POST", origin.url("/x"), {"Content-Length": "50000000"}))

        def upload():
            try:
                for _ in range(800):
                    wire.send(b"u" * 65536)
            except OSError:
                pass
        threading.Thread(target=upload, daemon=True).start()
        equal(wire.response().status, 413, "status")
    equal(origin.count("/x"), 0, "requests at the origin")


def test_a_body_that_a_service_spoils(lab):
    """A service states another length than the body has, or breaks off in it: no origin takes that for whole, and the client is told whose
    fault it is."""
    for made, last in ((b"123", b"0\r\n\r\n"), (b"1234567", b"0\r\n\r\n"), (b"123", b"")):
        def behave(_icap, transaction, made=made, last=last):
            transaction.finish_body()
            transaction.send_head(transaction.request_head())
            transaction.send(chunked(made, last=last))
            return last == b""
        icap, origin = IcapServer(lab, behave, methods="REQMOD"), RawOrigin(lab)
        proxy = Retort(lab, services=[Service("s", icap.uri(), point="reqmod_precache", bypass=False)])
        answer = proxy.fetch("POST", origin.url(), body=b"12345")
        equal(answer.status, 502, "status")
        contains(answer.text(), ("<p>" if lab.has_part("pages") else "\n\n") + "an adaptation service", "error page")
        equal(origin.requests, [], "whole requests at the origin")
        equal(proxy.counter("client_aborts"), 0, "clients that left")
        proxy.stop()


def test_answers_to_requests_are_asked_for_each_time(lab):
    """Without a permission in its ICAP head, a service's own answer is for this request only."""
    count = [0]

    def behave(_icap, transaction):
        count[0] += 1
        transaction.send_200(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\n", b"answer %d" % count[0])
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    url = origin.url("/text", say="x", cc="max-age=60")
    equal([proxy.get(url).text() for _ in range(3)], ["answer 1", "answer 2", "answer 3"], "bodies")
