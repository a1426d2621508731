"""Bodies through services: of any size, kept in case they are needed again, both ways at once."""

import itertools
import threading
import time

from harness.adaptation import HEAD, NUMBERS, QUICK, STEADY, account, fetch, start, swallow, verdicts, whole_or_cut
from harness.checks import contains, equal, same_bytes, true, until
from harness.icap import IcapServer, append, echo, unchanged
from harness.origin import Origin
from harness.raw_origin import PatternCheck, RawOrigin, pattern
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import Truncated, chunked, request

# What is kept of a body.

LARGE = 24 << 20  # as large as is worth the time; docs/ICAP.md says what was tried by hand


def large_through(lab, behave, verdict, framing="/chunked", **options):
    """A large body of unknown length comes through unchanged; the memory that took, in kB."""
    origin, icap, proxy = start(lab, behave, keep="64KB", **options)
    check = PatternCheck()
    with proxy.wire(timeout=60 * lab.patience) as wire:
        wire.send(request("GET", origin.url(framing, n=LARGE, cc="no-store")))
        equal(wire.response(sink=check).status, 200, "status")
    equal(check.length, LARGE, "length")
    equal(verdicts(proxy, 1), [[verdict]], "verdict")
    equal(account(proxy)["account"]["kept_on_disk"], 1, "bodies kept on disk")
    return icap, proxy.memory_peak_kb()


@memcheck
def test_204_to_a_body_of_any_size(lab):
    """Of unknown length and far larger than what is kept in memory; the service reads it all first."""
    def behave(_icap, transaction):
        equal(swallow(transaction), LARGE, "bytes at the service")
        transaction.send_204()
    for preview in (1024, None):
        server = IcapServer(lab, behave, preview=preview)
        icap, peak = large_through(lab, behave, "UNMODIFIED", server=server, bypass=False)
        true(icap.transactions[0].allows(204), "Allow: 204")
        if not lab.valgrind and not lab.asan:
            true(peak < 32 << 10, f"peak memory {peak} kB")


def test_bypass_of_a_body_of_any_size(lab):
    """The service has read it all when it dies: the client gets the original."""
    def behave(_icap, transaction):
        swallow(transaction)
        return True
    large_through(lab, behave, "BYPASSED", bypass=True)


def test_bypass_where_204_is_not_known(lab):
    """A service that never says 204 can fail all the same."""
    def behave(_icap, transaction):
        swallow(transaction)
        true(not transaction.allows(204), "no Allow: 204 for a service that does not list it")
        return True
    large_through(lab, behave, "BYPASSED", server=IcapServer(lab, behave, Allow=None), bypass=True)


def test_a_service_that_streams_costs_no_file(lab):
    """Where the answer comes while the body goes, nothing is kept that can't be needed any more."""
    def behave(_icap, transaction):
        connection = transaction.connection
        transaction.send_100()
        transaction.send_head(transaction.response_head())
        transaction.send(chunked(transaction.body, last=b""))
        connection._chunks(transaction.request, lambda piece: transaction.send(chunked(piece, last=b"")))
        transaction.send(b"0\r\n\r\n")
    for bypass in (False, True):
        origin, _, proxy = start(lab, behave, bypass=bypass, keep="12MB")  # more than sockets hold
        check = PatternCheck()
        with proxy.wire(timeout=60 * lab.patience) as wire:
            wire.send(request("GET", origin.url("/chunked", n=LARGE, cc="no-store")))
            wire.response(sink=check)
        equal(check.length, LARGE, "length")
        equal(account(proxy)["account"]["kept_on_disk"], 0, f"bypass {bypass}: bodies kept on disk")


def test_body_beyond_all_limits(lab):
    """Past keep and keep_on_disk a 204 can't be made good: an error or a cut, never a wrong whole."""
    def behave(_icap, transaction):
        swallow(transaction)
        transaction.send_204()
    origin, icap, proxy = start(lab, behave, bypass=False, keep="16KB", keep_on_disk="64KB")
    equal(proxy.get(origin.url("/chunked", n=1000000, cc="no-store")).status, 502, "status for an unknown length")
    true(icap.transactions[-1].allows(204), "Allow: 204 for a length that is not known")
    equal(account(proxy)["account"]["unkept"], 1, "bodies that were not kept")
    fetch(proxy, origin, 1000000)
    true(not icap.transactions[-1].allows(204), "no Allow: 204 for a length that is too large")


def test_body_bigger_than_the_204_limit(lab):
    """Without Allow: 204 the service has to send it all back."""
    def behave(icap, transaction):
        body = transaction.finish_body()
        if transaction.allows(204):
            transaction.send_204()
        else:
            transaction.send_200(transaction.response_head(), body)
    origin, icap, proxy = start(lab, behave, bypass=False, keep="64KB", preview=1024)
    for size in (1000, 65536, 300000, 5000000):
        for framing in ("/bytes", "/chunked"):
            same_bytes(proxy.get(origin.url(framing, n=size, cc="no-store")).body, origin.body(size), f"{framing} {size}")


def test_204_outside_the_preview_that_was_not_allowed(lab):
    """After 100 and the whole body a 204 needs Allow: 204; a client that has lost the body can't take it."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_204()
    origin, icap, proxy = start(lab, behave, bypass=False, keep="16KB", preview=1024, **QUICK)
    for size in (2000, 1000000):
        url = origin.url("/bytes", n=size, cc="no-store")
        try:
            answer = proxy.get(url)
        except Truncated:
            continue
        if answer.status == 200:
            same_bytes(answer.body, origin.body(size), f"body of {size}")


# Both ways at once.

def test_each_byte_is_passed_on_at_once(lab):
    """The service sends the next byte only when the client has the one before, the body still going up; also
    when there is much more to come, as the length that it announces says."""
    seen, unread, head, rest = threading.Semaphore(0), [], [], [0]

    def behave(_icap, transaction):
        more = rest[0]  # now: it is another one when the next proxy has begun
        transaction.send_100()
        transaction.send_head(head[0])
        for byte in b"abcdef":
            transaction.send(chunked(bytes([byte]), last=b""))
            if not seen.acquire(timeout=20 * lab.patience):
                unread.append(byte)
                return True
        transaction.send(chunked(b"g" * more) if more else b"0\r\n\r\n")
        for _ in range(more):  # to close earlier would reset what is on its way
            seen.acquire(timeout=20 * lab.patience)
        return True
    much = HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 100000\r\n\r\n")
    for bypass, head[:], rest[:] in ((True, [HEAD], [0]), (False, [HEAD], [0]), (True, [much], [99994]), (False, [much], [99994])):
        origin, _, proxy = start(lab, behave, bypass=bypass)
        got = []

        def sink(piece, got=got):
            got.append(piece)
            for _ in piece:
                seen.release()
        with proxy.wire() as wire:
            wire.send(request("GET", origin.url("/bytes", n=5000000, cc="no-store")))
            wire.response(sink=sink)
        equal((b"".join(got), unread), (b"abcdef" + b"g" * rest[0], []), f"bypass {bypass}: body")


def test_early_answer_while_the_body_is_being_sent(lab):
    """The answer comes when the service has had enough; the rest of the body need not be taken."""
    def behave(_icap, transaction):
        transaction.send_100()
        transaction.read_some_body(30000)
        transaction.send_200(HEAD, b"enough")
        time.sleep(0.2)
        return True
    origin, _, proxy = start(lab, behave, bypass=False)
    for size in (100000, 3000000):
        equal(fetch(proxy, origin, size).body, b"enough", f"body of {size}")


def test_early_answer_that_goes_on_beside_the_upload(lab):
    """Full duplex: a streaming service sends as it reads; a client that only writes would deadlock."""
    def behave(_icap, transaction):
        transaction.send_100()
        transaction.send_head(transaction.response_head())
        connection, total = transaction.connection, 0
        while True:
            line = connection._line()
            size = int(line.split(";")[0], 16)
            data = connection.read_bytes(size) if size else b""
            connection._line()
            if total == 0:
                data = transaction.body + data
            total += len(data)
            if data:
                transaction.send(chunked(data, last=b""))
            if not size:
                break
        transaction.send(b"0\r\n\r\n")
    origin, _, proxy = start(lab, behave, bypass=False)
    same_bytes(fetch(proxy, origin, 20000000).body, origin.body(20000000), "20 MB")


def test_dripping_body_is_passed_on(lab):
    def behave(_icap, transaction):
        transaction.send_head(HEAD)
        for byte in chunked(b"drip", b"drop"):
            transaction.send(bytes([byte]))
            time.sleep(0.02)
    origin, _, proxy = start(lab, behave, **QUICK)
    equal(fetch(proxy, origin, 5000).body, b"dripdrop", "body")


def test_parallel_transactions_do_not_mix(lab):
    """Each client gets its own adapted body."""
    def behave(_icap, transaction):
        body = transaction.finish_body()
        time.sleep(len(body) % 7 * 0.003)
        transaction.send_200(transaction.response_head(), body[::-1])
    icap = IcapServer(lab, behave)
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, services=[Service("s", icap.uri(), bypass=False)])
    wrong = []

    def run(number):
        for turn in range(12):
            size = 500 + number * 997 + turn * 131
            if fetch(proxy, origin, size).body != origin.body(size)[::-1]:
                wrong.append(size)
    threads = [threading.Thread(target=run, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(wrong, [], "sizes with wrong bodies")


# Origins and clients that fail while a service is at work.

def test_origin_dies_inside_a_body_under_adaptation(lab):
    """The service must not be told that the body was complete, nor the client, nor the cache."""
    ended = []

    def behave(_icap, transaction):
        try:
            transaction.finish_body()
            ended.append("complete")
            transaction.send_200(HEAD, b"adapted from a part")
        except (Truncated, ConnectionError):
            ended.append("cut")
            raise
    icap = IcapServer(lab, behave)
    origin, _, proxy = start(lab, server=icap)
    for size, after in ((5000, 3000), (500000, 300000)):
        try:
            answer = proxy.get(origin.url("/abort", n=size, after=after, cc="max-age=60"))
            true(answer.status >= 500, f"a complete {answer.status} of {len(answer.body)} bytes")
        except Truncated:
            pass
    until(lambda: len(ended) == 2, 5 * lab.patience, "the service to see the end")
    equal(ended, ["cut", "cut"], "what the service saw")


def test_client_leaves_under_adaptation(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    for size in (100000, 5000000):
        with proxy.wire() as wire:
            wire.send(request("GET", origin.url("/bytes", n=size, cc="no-store")))
            time.sleep(0.02)
        same_bytes(fetch(proxy, origin, 3000).body, origin.body(3000) + b"!", "the next body")
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "transactions to end")


def states(length, data, part=200000):
    """A service that gives these bytes and says that there are so many."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(transaction.response_head(add=[("Content-Length", str(length))] if length is not None else ()))
        transaction.send(chunked(data[:part], last=b""))
        time.sleep(0.02)  # so that the head is gone before the body is whole
        transaction.send(chunked(data[part:]) if len(data) > part else b"0\r\n\r\n")
    return behave


def test_a_stated_length_is_told_and_checked(lab):
    """RFC 9112 6.3: "If the sender closes the connection or the recipient times out before the indicated number of octets are received, the
    recipient MUST consider the message to be incomplete": so a length is told only if the service has set it, and must be true."""
    made = pattern(300000)
    for point, more in (("respmod_precache", {}), ("respmod_postcache", {}), ("respmod_postcache", {"remember": True})):
        origin, icap, proxy = start(lab, bypass=False, point=point, **more, **STEADY)
        for name, length, told in (("right", 300000, "300000"), ("forgotten", 5000, None), ("silent", None, None)):
            icap.behave = states(length, made)
            url = origin.url(f"/bytes/{name}", n=5000, cc="max-age=60")
            first, second = proxy.get(url), proxy.get(url)
            equal(first.header("Content-Length"), told, f"{point}: {name}: Content-Length of a miss")
            same_bytes(first.body, made, f"{point}: {name}: body")
            same_bytes(second.body, made, f"{point}: {name}: body again")
        # The length of the original, left behind: nobody can tell a shorter body from an original that has lost a part.
        for name, length, size in (("longer", 250000, 5000), ("shorter", 350000, 5000), ("left behind", 300001, 300001)):
            url = origin.url(f"/bytes/{name.replace(' ', '-')}", n=size, cc="max-age=60")
            icap.behave = states(length, made)
            equal(whole_or_cut(proxy, url), None, f"{point}: {name} than stated")
            icap.behave = states(300000, made)
            same_bytes(proxy.get(url).body, made, f"{point}: {name}: nothing of it was stored")
        equal(account(proxy)["account"]["error_protocol"], 3, f"{point}: failures")
        proxy.stop()


def gives(head, *chunks):
    """A service with this head of its own; without chunks there is no body."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(head, body=bool(chunks))
        if chunks:
            transaction.send(b"".join(chunked(chunk, last=b"") for chunk in chunks if chunk) + b"0\r\n\r\n")
    return behave


def told(length, status=b"200 OK"):
    return b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % (status, length)


SIZE = 5000
# With an original of SIZE bytes: the head, its body, what the client gets.
SHORT, LONG = b"x" * 100, b"x" * 9000
AT_ONCE = [("no bytes stated, and some there", told(0), (b"x",)), ("no bytes stated, and many there", told(0), (LONG,)),
           ("bytes stated, and no body", told(7), ()), ("the original's length, and no body", told(SIZE), ())]
LATE = [("fewer than stated", told(101), (SHORT,)), ("more than stated", told(99), (SHORT,)), ("fewer than the original", told(SIZE), (SHORT,)),
        ("no bytes where some are stated", told(7), (b"",)), ("the original without its last byte", told(SIZE), (b"x" * (SIZE - 1),))]
GOOD = [("the original's length, and more bytes", told(SIZE), (LONG,), 200, LONG), ("nothing", told(0), (b"",), 200, b""),
        ("nothing, without a body", told(0), (), 200, b""), ("another status, and the original's length", told(SIZE, b"403 No"), (SHORT,), 403, SHORT),
        ("a redirection, and the original's length", told(SIZE, b"302 Found"), (), 302, b""), ("as stated", told(100), (SHORT,), 200, SHORT)]


def test_a_stated_length_that_is_not_true(lab):
    """RFC 9112 8: "A message body that uses a valid Content-Length is incomplete if the size of the message body received (in octets) is less
    than the value given by Content-Length." RFC 9110 8.6: a sender must not forward a length "that is known to be incorrect". Where that shows
    in front of the first byte, a service with bypass is bypassed; else the client sees that the body is not whole. Nothing is stored."""
    for point, bypass in itertools.product(("respmod_precache", "respmod_postcache"), (False, True)):
        origin, icap, proxy = start(lab, bypass=bypass, point=point, **STEADY)
        failures = 0
        for name, head, chunks in AT_ONCE + LATE:
            icap.behave, url, before = gives(head, *chunks), origin.url("/bytes", n=SIZE, cc="max-age=60", i=next(NUMBERS)), (name, head, chunks) in AT_ONCE
            for attempt in (1, 2):
                seen, what = whole_or_cut(proxy, url), f"{point}, bypass {bypass}: {name}, {attempt}"
                if bypass and before:
                    equal(seen.status, 200, what)
                    same_bytes(seen.body, origin.body(SIZE), what)
                elif before:
                    equal(seen.status, 502, what)
                else:
                    true(seen is None or seen.status == 502, f"{what}: {seen and (seen.status, len(seen.body))}")
                failures += 1
                contains(str(proxy.log(1)[0]["icap"]), "stated", f"{what}: the log")
            equal(account(proxy)["account"]["error_protocol"], failures, f"{what}: failures")
        for name, head, chunks, status, body in GOOD:
            icap.behave = gives(head, *chunks)
            seen = fetch(proxy, origin, SIZE)
            equal((seen.status, seen.body), (status, body), f"{point}, bypass {bypass}: {name}")
        proxy.stop()


def test_a_stated_length_that_is_not_true_in_a_chain(lab):
    """The next service has the body already, and the client nothing: the original goes on."""
    origin = Origin(lab)
    first, second = IcapServer(lab), IcapServer(lab, echo)
    proxy = Retort(lab, services=[Service("s", first.uri(), **STEADY), Service("t", second.uri(), bypass=False, **STEADY)])
    for name, head, chunks in AT_ONCE + LATE:
        first.behave = gives(head, *chunks)
        same_bytes(fetch(proxy, origin, SIZE).body, origin.body(SIZE), name)
        equal(proxy.log(1)[0]["icap"][0]["verdict"], "BYPASSED", name)


def test_an_answer_that_states_another_length(lab):
    """Answers to requests, and requests with a body: no original could have left its length behind."""
    icap, origin = IcapServer(lab, methods="REQMOD"), RawOrigin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri(), point="reqmod_precache", bypass=False, **STEADY)])
    for method, body in (("GET", None), ("POST", b"12345")):
        for name, head, chunks in AT_ONCE + LATE:
            icap.behave = gives(head, *chunks)
            try:
                seen = proxy.fetch(method, origin.url(), body=body)
            except (Truncated, ConnectionError):
                seen = None
            true(seen is None or seen.status == 502, f"{method}: {name}: {seen and (seen.status, len(seen.body))}")
        icap.behave = gives(told(100, b"403 No"), SHORT)
        seen = proxy.fetch(method, origin.url(), body=body)
        equal((seen.status, seen.header("Content-Length"), seen.body), (403, "100", SHORT), f"{method}: as stated")
    icap.behave = gives(told(100, b"403 No"))
    equal(proxy.fetch("HEAD", origin.url()).status, 403, "HEAD: a length without a body")
    for body in ((), (b"12345",)):
        icap.behave = lambda icap, transaction, body=body: gives(transaction.request_head(drop=("content-length",), add=[("Content-Length", "7")]), *body)(icap, transaction)
        equal(proxy.fetch("POST", origin.url(), body=b"12345").status, 502, f"a request with {body} that states 7 bytes")
    equal(origin.requests, [], "requests at the origin")


@memcheck
def test_the_length_of_a_chain(lab):
    """That of the last service that has changed the response."""
    made = pattern(300000)
    first, second = IcapServer(lab, states(300000, made)), IcapServer(lab, unchanged)
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", first.uri(), bypass=False), Service("t", second.uri(), bypass=False)])
    equal(fetch(proxy, origin, 5000).header("Content-Length"), "300000", "the second leaves it alone")
    second.behave = states(None, made[:250000])
    answer = fetch(proxy, origin, 5000)
    equal((answer.header("Content-Length"), len(answer.body)), (None, 250000), "the second changes it")
    second.behave = states(250000, made[:250000])
    answer = fetch(proxy, origin, 5000)
    equal((answer.header("Content-Length"), len(answer.body)), ("250000", 250000), "and says so")
