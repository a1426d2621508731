"""A little of a body for a client that waits, while a service that must see all of it has not decided."""

import threading

from harness.checks import contains, equal, raises, same_bytes, true, until
from harness.codings import encode
from harness.icap import IcapServer, append, echo
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.scanner import InsideScanner, Scanner, clean, dies, infected
from harness.suite import memcheck
from harness.wire import Head, Truncated, chunked, request

SIZE = 200000
SOON = {"trickle_after": "50ms", "trickle_every": "10ms", "trickle_bytes": "500"}


def repaired(_icap, transaction):
    transaction.send_200(transaction.response_head(), transaction.body[:100] + b"repaired" + transaction.body[108:])


def shortened(_icap, transaction):
    transaction.send_200(transaction.response_head(), transaction.body[:100])


def without_its_end(_icap, transaction):
    """The length of the original is left behind."""
    transaction.send_200(transaction.response_head(drop=()), transaction.body[:-1])


def emptied(_icap, transaction):
    transaction.send_head(transaction.response_head(), body=False)


def dies(_icap, _transaction):
    return True


def page(size=SIZE, fields=b"", length=True, status=b"200 OK"):
    body = pattern(size)

    def answer(connection, _seen):
        framed = b"Content-Length: %d\r\n" % size if length else b"Transfer-Encoding: chunked\r\n"
        connection.send(b"HTTP/1.1 " + status + b"\r\nETag: \"e\"\r\nContent-Type: text/plain\r\n" + framed + fields + b"\r\n"
                        + (body if length else chunked(body)))
    return answer


class Trickling:
    """A client that has been answered before the verdict."""

    def __init__(self, lab, *, answer=None, bypass=False, version="1.1", before=(), server=None, **options):
        self.scanner = Scanner()
        self.origin = RawOrigin(lab, answer or page())
        icaps = [IcapServer(lab, behave) for behave in before] + [server or IcapServer(lab, self.scanner)]
        icaps[-1].behave = self.scanner
        services = [Service(f"s{i}", icap.uri(), bypass=bypass, timeout="30s", **({**SOON, **options} if i == len(before) else {}))
                    for i, icap in enumerate(icaps)]
        self.proxy = Retort(lab, services=services)
        self.wire = self.proxy.wire()
        self.version = version
        self.wire.send(request("GET", self.origin.url("/page"), version=version))

    def trickled(self, count=1000):
        """Until the client has that many bytes; all before the verdict."""
        true(self.scanner.read.wait(30), "the service has read all")
        until(lambda: self.proxy.counter("adapt_trickled_bytes") >= count, 30, f"{count} bytes")
        true(not self.scanner.decided.is_set(), "no verdict yet")

    def end(self, decision):
        self.scanner.decide(decision)
        with self.wire:
            return self.wire.response()

    def cut(self, decision):
        """What the client got of it."""
        self.scanner.decide(decision)
        with self.wire:
            response = raises(Truncated, self.wire.response, "a body that breaks off").response
        equal(response.status, 200, "status")
        same_bytes(response.body, pattern(len(response.body)), "the beginning")
        true(1000 <= len(response.body) <= SIZE // 2, f"{len(response.body)} bytes")
        equal(self.proxy.counter("adapt_trickle_cut"), 1, "cut")
        until(lambda: "its connection is cut" in self.proxy.process.log(), 5, "the log says so")
        return self.proxy.log(1)[0]


def test_clean(lab):
    """Head and some bytes come before the verdict, all of it behind that; with 204, and with the same as a 200."""
    for decision, verdict in ((clean, "UNMODIFIED"), (echo, "MODIFIED")):
        for options in ({}, {"answer": page(length=False)}, {"keep": "4KB"}, {"version": "1.0"}):
            client = Trickling(lab, **options)
            client.trickled()
            head = client.wire.head()
            equal(head.status, 200, "status")
            equal(head.header("Content-Length"), None, "Content-Length")
            equal(head.header("Content-Type"), "text/plain", "Content-Type")
            first = client.wire.read_some()
            true(not client.scanner.decided.is_set(), "before the verdict")
            true(first, "bytes before the verdict")
            client.scanner.decide(decision if decision is clean else lambda _icap, seen: seen.send_200(seen.response_head(), seen.body))
            whole = first + client.wire.read_to_end() if options.get("version") else unchunk(client.wire, first)
            same_bytes(whole, pattern(SIZE), "body")
            client.wire.close()
            entry = client.proxy.log(1)[0]
            equal([v["verdict"] for v in entry["icap"]], [verdict], "verdict")
            equal((client.proxy.counter("adapt_trickled"), client.proxy.counter("adapt_trickle_cut")), (1, 0), "trickled, cut")


def unchunk(wire, first):
    """The rest of a chunked body of which some raw bytes have been read."""
    pieces = []
    wire.buffer = first + wire.buffer
    wire._chunks(Head("", []), pieces.append)
    return b"".join(pieces)


def test_services_inside(lab):
    """In a worker, a thread and a process: some bytes before the verdict; behind it all others, or an end in the middle."""
    for runs in ("worker", "thread", "process"):
        scanner, origin = InsideScanner(lab, runs=runs, **SOON), RawOrigin(lab, page())
        proxy = Retort(lab, services=[scanner.service])
        for path, decision in (("/clean", "clean"), ("/infected", "infected")):
            before = proxy.counter("adapt_trickled_bytes")
            with proxy.wire() as wire:
                wire.send(request("GET", origin.url(path)))
                until(lambda proxy=proxy, before=before: proxy.counter("adapt_trickled_bytes") >= before + 1000, 30 * lab.patience, "bytes")
                equal(proxy.entries(path, 0), [], f"{runs}: still under way")
                scanner.decide(decision)
                if decision == "clean":
                    same_bytes(wire.response().body, pattern(SIZE), f"{runs}: body")
                    continue
                response = raises(Truncated, wire.response, f"{runs}: a body that breaks off").response
                same_bytes(response.body, pattern(len(response.body)), f"{runs}: the beginning")
                true(1000 <= len(response.body) <= SIZE // 2, f"{runs}: {len(response.body)} bytes")
        equal((proxy.counter("adapt_trickled"), proxy.counter("adapt_trickle_cut")), (2, 1), f"{runs}: trickled, cut")


def test_infected(lab):
    """The client sees that what it has is not whole."""
    for decision in (infected, repaired, shortened, emptied):
        client = Trickling(lab)
        client.trickled()
        entry = client.cut(decision)
        equal(entry["icap"][0]["verdict"], "MODIFIED", "verdict")
        true(entry["aborted"], "aborted")


def test_a_result_that_is_not_whole(lab):
    """It begins with the bytes that the client has, and states more than it has."""
    client = Trickling(lab)
    client.trickled()
    client.scanner.decide(without_its_end)
    with client.wire:
        response = raises(Truncated, client.wire.response, "a body that breaks off").response
    equal((response.status, len(response.body) < SIZE), (200, True), "status, length")
    contains(str(client.proxy.log(1)[0]["icap"]), "shorter than the length that it stated", "the log")


def test_infected_in_front_of_an_old_client(lab):
    """Without chunks the connection is reset."""
    client = Trickling(lab, version="1.0")
    client.trickled()
    client.cut(infected)


def test_a_service_that_fails(lab):
    client = Trickling(lab, bypass=True)
    client.trickled()
    same_bytes(client.end(dies).body, pattern(SIZE), "body")
    equal(client.proxy.log(1)[0]["icap"][0]["verdict"], "BYPASSED", "verdict")
    client = Trickling(lab, bypass=False)
    client.trickled()
    equal(client.cut(dies)["icap"][0]["verdict"], "FAILED", "verdict")


def test_never_more_than_half(lab):
    for size in (1, 2, 999, 5000):
        client = Trickling(lab, answer=page(size), trickle_bytes="1MB")
        if size > 1:
            client.trickled(size // 2)
        until(lambda: client.proxy.counter("adapt_trickled") >= 1, 30, "it has begun")
        true(client.wire.head(), "the head")
        equal(client.proxy.counter("adapt_trickled_bytes"), size // 2, "bytes")
        client.scanner.decide(clean)
        same_bytes(unchunk(client.wire, b""), pattern(size), "body")
        client.wire.close()


@memcheck
def test_a_service_that_knows_no_204(lab):
    client = Trickling(lab, server=IcapServer(lab, None, Allow=None))
    client.trickled()
    same_bytes(client.end(lambda _icap, seen: seen.send_200(seen.response_head(), seen.body)).body, pattern(SIZE), "body")


def test_the_head_is_not_of_certain_bytes(lab):
    client = Trickling(lab)
    client.trickled()
    answer = client.end(clean)
    equal(answer.header("ETag"), 'W/"e"', "ETag")
    same_bytes(answer.body, pattern(SIZE), "body")


def test_it_is_not_stored(lab):
    client = Trickling(lab, answer=page(fields=b"Cache-Control: max-age=600\r\n"))
    client.trickled()
    same_bytes(client.end(clean).body, pattern(SIZE), "body")
    same_bytes(client.proxy.get(client.origin.url("/page")).body, pattern(SIZE), "the second time")
    equal(client.proxy.results("/page", 2), ["MISS", "MISS"], "results")


def test_whoever_decides_in_time_trickles_nothing(lab):
    icap = IcapServer(lab, append(b"!"))
    origin = RawOrigin(lab, page())
    proxy = Retort(lab, services=[Service("s", icap.uri(), trickle_after="30s")])
    same_bytes(proxy.get(origin.url("/")).body, pattern(SIZE) + b"!", "body")
    equal(proxy.counter("adapt_trickled"), 0, "trickled")


@memcheck
def test_behind_other_services(lab):
    """What trickles is what they made."""
    client = Trickling(lab, before=[append(b"!")])
    client.trickled()
    same_bytes(client.end(clean).body, pattern(SIZE) + b"!", "body")


def test_in_front_of_other_services(lab):
    """Nobody knows yet what they will make of it."""
    scanner = Scanner()
    icaps = IcapServer(lab, scanner), IcapServer(lab, append(b"!"))
    origin = RawOrigin(lab, page())
    proxy = Retort(lab, services=[Service("a", icaps[0].uri(), **SOON), Service("b", icaps[1].uri())])
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/")))
        true(scanner.read.wait(30), "read")
        true(wire.quiet(0.3), "nothing comes")
        scanner.decide(clean)
        same_bytes(wire.response().body, pattern(SIZE) + b"!", "body")
    equal(proxy.counter("adapt_trickled"), 0, "trickled")


def test_a_decoded_body_does_not_trickle(lab):
    coded = encode("gzip", pattern(SIZE))
    scanner = Scanner()
    origin = RawOrigin(lab, lambda c, _r: c.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(coded) + coded))
    proxy = Retort(lab, services=[Service("s", IcapServer(lab, scanner).uri(), decode=True, **SOON)])
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/")))
        true(scanner.read.wait(30), "read")
        true(wire.quiet(0.3), "nothing comes")
        scanner.decide(clean)
        same_bytes(wire.response().body, coded, "body")


@memcheck
def test_the_client_leaves(lab):
    client = Trickling(lab)
    client.trickled()
    client.wire.abort()
    until(lambda: client.proxy.status()["counters"]["transactions_active"] == 0, 30, "the transaction ends")
    client.scanner.decide(clean)
    equal(client.proxy.counter("adapt_trickle_cut"), 0, "cut")


def test_the_origin_breaks_off(lab):
    going = threading.Event()

    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE + pattern(100000))
        going.wait(30)
        return True
    scanner = Scanner()
    origin = RawOrigin(lab, answer)
    for bypass in (True, False):
        going.clear()
        proxy = Retort(lab, services=[Service("s", IcapServer(lab, scanner).uri(), bypass=bypass, **SOON)])
        with proxy.wire() as wire:
            wire.send(request("GET", origin.url("/")))
            until(lambda: proxy.counter("adapt_trickled_bytes") > 1000, 30, "bytes")
            going.set()
            raises(Truncated, wire.response, "a body that breaks off")
        equal(proxy.counter("adapt_trickle_cut"), 1, "cut")


@memcheck
def test_behind_the_cache(lab):
    """What goes to the client trickles; what is stored stays."""
    client = Trickling(lab, answer=page(fields=b"Cache-Control: max-age=600\r\n"), point="respmod_postcache")
    client.trickled()
    same_bytes(client.end(clean).body, pattern(SIZE), "body")
    same_bytes(client.proxy.get(client.origin.url("/page")).body, pattern(SIZE), "what is stored")
    equal(client.proxy.results("/page", 2), ["MISS", "HIT"], "results")
