"""Previews, and the answers that need no more than one: 204, 206, 100."""

import itertools
import threading

from harness.adaptation import HEAD, NUMBERS, QUICK, STEADY, account, fetch, start, swallow, verdicts, whole_or_cut
from harness.checks import between, equal, same_bytes, true
from harness.icap import IcapServer, append, unchanged
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service, measure
from harness.suite import memcheck
from harness.wire import Truncated, Wire, chunked, request


def test_preview_sizes(lab):
    """Never more than the service's Preview; ieof exactly when the body fits."""
    for limit in (0, 1, 1024, 4096):
        icap = IcapServer(lab, append(b"!"), preview=limit)
        origin, _, proxy = start(lab, server=icap, bypass=False)
        for size in (0, 1, limit - 1, limit, limit + 1, limit + 5000):
            if size < 0:
                continue
            for framing in ("/bytes", "/chunked"):
                body = proxy.get(origin.url(framing, n=size, cc="no-store")).body
                seen = icap.transactions[-1]
                if not seen.has_body:
                    equal(size, 0, "size of a message without body")
                    continue
                true(len(seen.preview) <= limit, f"preview {limit}, body {size}: {len(seen.preview)} bytes sent")
                between(seen.preview_limit, min(size, limit), limit, f"preview {limit}, body {size}: Preview in the request")
                if size <= limit:
                    equal(seen.preview, origin.body(size), f"preview {limit}, {framing} {size}: preview")
                if size > limit:
                    equal((len(seen.preview), seen.ieof), (limit, False), f"preview {limit}, {framing} {size}: length, ieof")
                elif size < limit:
                    true(seen.ieof, f"preview {limit}, {framing} {size}: ieof")
                same_bytes(seen.body, origin.body(size), f"preview {limit}, {framing} {size}: body at the service")
                same_bytes(body, origin.body(size) + b"!", f"preview {limit}, {framing} {size}: body at the client")


def stream_through(_icap, transaction):
    """Sends the body back as it comes."""
    transaction.send_100()
    transaction.send_head(transaction.response_head())
    transaction.send(chunked(transaction.preview, last=b"") if transaction.preview else b"")
    transaction.connection._chunks(transaction.request, lambda piece: transaction.send(chunked(piece, last=b"")))
    transaction.send(b"0\r\n\r\n")


class Dripping:
    """A response that pauses behind its first bytes until somebody says go."""

    def __init__(self, lab, first):
        self.first, self.go = first, threading.Event()
        self.origin = RawOrigin(lab, lambda connection, _request: self.answer(lab, connection))

    def answer(self, lab, connection):
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        + chunked(*([self.first] if self.first else []), last=b""))
        self.go.wait(20 * lab.patience)
        connection.send(chunked(b" and the rest"))


def test_a_preview_need_not_wait_for_a_body_that_pauses(lab):
    """What the origin has sent of a page is with the client before it sends more, be it the head alone."""
    for behave, first in itertools.product((unchanged, stream_through), (b"one event", b"")):
        drip, icap = Dripping(lab, first), IcapServer(lab, behave)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False, preview_wait="20ms")])
        with Wire(proxy.forward, 20 * lab.patience) as client:
            client.send(request("GET", drip.origin.url()))
            seen = b""
            while not (b"\r\n\r\n" in seen and first in seen):
                seen += client.read_some()
            drip.go.set()
            client.buffer = seen
            equal(client.response("GET").body, first + b" and the rest", f"{behave.__name__}: body")
        transaction = icap.transactions[-1]
        equal((transaction.preview, transaction.ieof), (first, False), f"{behave.__name__}: preview, ieof")
        equal(account(proxy)["account"]["previews_cut"], 1, f"{behave.__name__}: previews that were cut")
        proxy.stop()


def test_a_preview_that_must_be_full_waits(lab):
    drip, icap = Dripping(lab, b"the beginning"), IcapServer(lab, append(b"!"))
    proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False, timeout="50ms")])
    threading.Timer(0.2, drip.go.set).start()
    equal(proxy.get(drip.origin.url()).body, b"the beginning and the rest!", "body")
    equal((icap.transactions[-1].preview, icap.transactions[-1].ieof), (b"the beginning and the rest", True), "preview, ieof")


def test_previews_of_any_size(lab):
    for limit in (4096, 65536, 150000):
        icap, origin = IcapServer(lab, append(b"!"), preview=limit), Origin(lab)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False, preview="1MB", keep="1MB")])
        for size in (limit - 1, limit, limit + 1, limit + 70000):
            same_bytes(fetch(proxy, origin, size).body, origin.body(size) + b"!", f"preview {limit}, body {size}")
            seen = icap.transactions[-1]
            equal((len(seen.preview), seen.preview_limit), (min(size, limit), limit), f"{limit}, {size}: preview")
            equal(seen.ieof, size <= limit, f"{limit}, {size}: ieof")


def test_no_preview_where_none_is_wanted(lab):
    icap = IcapServer(lab, append(b"!"), preview=None, Transfer_Preview=None)
    origin, _, proxy = start(lab, server=icap, bypass=False)
    same_bytes(fetch(proxy, origin, 5000).body, origin.body(5000) + b"!", "body")
    equal(icap.transactions[0].preview, None, "preview")
    proxy.stop()
    icap = IcapServer(lab, append(b"!"))
    proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False, preview="0")])
    same_bytes(fetch(proxy, origin, 5000).body, origin.body(5000) + b"!", "body")
    equal(icap.transactions[0].preview, None, "preview where the settings want none")


@memcheck
def test_nothing_follows_a_verdict_on_the_preview(lab):
    """After 200 or 204 on a preview the next bytes on the connection are the next request's."""
    turn = [0]

    def behave(_icap, transaction):
        turn[0] += 1
        if turn[0] % 2:
            transaction.send_204()
        else:
            transaction.send_200(HEAD, b"instead")
    origin, icap, proxy = start(lab, behave, bypass=False)
    for number in range(6):
        expected = origin.body(100000) if number % 2 == 0 else b"instead"
        same_bytes(fetch(proxy, origin, 100000).body, expected, f"body {number}")
    between(icap.accepted, 1, 2, "connections (one of them for OPTIONS)")
    equal([len(t.preview) for t in icap.transactions], [1024] * 6, "previews")


def test_100_after_ieof(lab):
    """c-icap and others say 100 though there is nothing more to come."""
    def behave(_icap, transaction):
        transaction.send_100()
        transaction.send_200(HEAD, transaction.body + b"!")
    origin, _, proxy = start(lab, behave)
    for size in (1, 100, 1000):
        same_bytes(fetch(proxy, origin, size).body, origin.body(size) + b"!", f"body of {size}")


def continues_twice(_icap, transaction):
    transaction.send_100()
    transaction.send_100()
    transaction.send(b"ICAP/1.0 100 Continue\r\n\r\n" * 20)
    return True


def test_continues_without_end(lab):
    origin, _, proxy = start(lab, continues_twice, bypass=False, **QUICK)
    answer, took = measure(lambda: fetch(proxy, origin, 5000))
    true(answer.status >= 500, f"status {answer.status}")
    between(took, 0, 4 * lab.patience, "seconds")


# 204: the message as it was.

@memcheck
def test_204_in_and_outside_the_preview(lab):
    def behave(_icap, transaction):
        if transaction.preview is None:
            transaction.finish_body()
        transaction.send_204()
    for preview in (1024, None):
        icap = IcapServer(lab, behave, preview=preview)
        origin, _, proxy = start(lab, server=icap, bypass=False)
        for size in (100, 5000, 60000):
            same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"Preview {preview}, body of {size}")
        if preview is None:
            true(all(t.allows(204) for t in icap.transactions), "Allow: 204 for bodies that fit the limit")
        equal(verdicts(proxy, 3), [["UNMODIFIED"]] * 3, "verdicts")


def test_204_after_100(lab):
    """The service reads all of it and then says: unchanged."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_204()
    origin, icap, proxy = start(lab, behave, bypass=False)
    for size in (2000, 60000, 500000):
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"body of {size}")
        true(icap.transactions[-1].allows(204), f"Allow: 204 for {size}")


# 206: a part of its own, then the original from an offset on (draft-icap-ext-partial-content-07).

def partial(own, original, add=b""):
    def behave(_icap, transaction):
        head = transaction.response_head()
        transaction.send_head(head, status=b"206 Partial Content")
        transaction.send(chunked(own, last=b"") + b"0; use-original-body=%d%s\r\n\r\n" % (original, add))
    return behave


def test_206_within_the_preview(lab):
    for own, original in ((b"new beginning ", 0), (b"new beginning ", 100), (b"new ", 1023), (b"new ", 1024), (b"x" * 5000, 500)):
        icap = IcapServer(lab, partial(own, original), Allow="204, 206")
        origin, _, proxy = start(lab, server=icap, bypass=False)
        for size in (1024, 1025, 5000, 300000):
            for framing in ("/bytes", "/chunked"):
                same_bytes(proxy.get(origin.url(framing, n=size, cc="no-store")).body, own + origin.body(size)[original:],
                           f"{framing} of {size}, original from {original}")
        true(all(t.allows(206) for t in icap.transactions), "Allow: 206")
        proxy.stop()


def test_206_is_allowed_only_to_those_who_know_it(lab):
    for allow, expected in (("204", False), ("204, 206", True)):
        icap = IcapServer(lab, Allow=allow)
        origin, _, proxy = start(lab, server=icap)
        fetch(proxy, origin, 5000)
        equal(icap.transactions[0].allows(206), expected, f"Allow: 206 for a service that says {allow}")


def test_206_from_behind_the_end(lab):
    """An offset that the original does not reach: an error or a cut, never a wrong whole."""
    icap = IcapServer(lab, partial(b"own", 100000), Allow="204, 206")
    origin, _, proxy = start(lab, server=icap, bypass=False, **QUICK)
    for size in (100, 5000):
        try:
            answer = fetch(proxy, origin, size)
        except Truncated:
            continue
        true(answer.status >= 500 or size == 100000, f"{size}: a complete {answer.status} of {len(answer.body)} bytes")


def test_206_from_any_place(lab):
    """The original is taken up at any byte, behind the preview too, and after 100 KB of its own."""
    holder = {}

    def behave(_icap, transaction):
        transaction.send_head(transaction.response_head(), status=b"206 Partial Content")
        if holder["own"]:
            transaction.send(chunked(holder["own"], last=b""))
        transaction.send(b"0; use-original-body=%d\r\n\r\n" % holder["from"])
    icap = IcapServer(lab, behave, Allow="204, 206", preview=1024)
    for bypass in (False, True):
        origin, _, proxy = start(lab, server=icap, bypass=bypass, **STEADY)
        size = 300000
        for own, place in ((b"", 0), (b"", 1), (b"", 1024), (b"", 1025), (b"", 299999), (b"", 300000), (b"own", 0),
                           (b"own", 200000), (b"o" * 100000, 150000), (b"own", 300000)):
            holder.update({"own": own, "from": place})
            same_bytes(fetch(proxy, origin, size).body, own + origin.body(size)[place:],
                       f"bypass {bypass}, {len(own)} own bytes, original from {place}")
        for own in (b"", b"own"):
            holder.update({"own": own, "from": size + 1})
            answer = whole_or_cut(proxy, origin.url("/bytes", n=size, cc="no-store"))
            true(answer is None or answer.status == 502, f"from behind the end: a complete {answer and answer.status}")


def test_206_behind_the_preview(lab):
    """A service may say it, too, when it has read on, or all; its own part may go out before that. Past keep and keep_on_disk the
    original is not to be had: an error or a cut, never a wrong whole."""
    holder = {}

    def behave(_icap, transaction):
        if holder["early"]:
            transaction.send_100()
        else:
            swallow(transaction)
        transaction.send_head(transaction.response_head(), status=b"206 Partial Content")
        transaction.send(chunked(b"own ", last=b""))
        if holder["early"]:
            transaction.connection._chunks(transaction.request, lambda piece: None)
        transaction.send(b"0; use-original-body=%d\r\n\r\n" % holder["from"])
    size = 300000
    for allow in ("204, 206", "206"):
        for bypass in (False, True):
            icap = IcapServer(lab, behave, Allow=allow, preview=1024)
            origin, _, proxy = start(lab, server=icap, bypass=bypass, keep="64KB", **STEADY)
            for early, place, framing in itertools.product((False, True), (0, 500, 200000, size), ("/bytes", "/chunked")):
                holder.update({"early": early, "from": place})
                url = origin.url(framing, n=size, cc="no-store", i=next(NUMBERS))
                same_bytes(proxy.get(url).body, b"own " + origin.body(size)[place:], f"{allow}, bypass {bypass}, {holder}, {framing}")
            equal(proxy.counter("icap_failures"), 0, "failures")
            proxy.stop()
    origin, _, proxy = start(lab, server=icap, bypass=False, keep="16KB", keep_on_disk="64KB", **STEADY)
    for early in (False, True):
        holder.update({"early": early, "from": 500})
        answer = whole_or_cut(proxy, origin.url("/chunked", n=size, cc="no-store", i=next(NUMBERS)))
        true(answer is None or answer.status == 502, f"{holder}, past the limits: a complete {answer and answer.status}")
