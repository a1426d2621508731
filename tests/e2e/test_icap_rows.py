"""The ICAP client, row by row of the table in docs/ICAP.md: what test_icap.py does not show already.

The server is the harness's, which misbehaves as told: early, partial, dripping, cut at any byte,
wrong in its offsets, its sizes and its promises, overloaded for a while, changing its mind.
"""

import base64
import itertools
import json
import select
import threading
import time

from harness.checks import between, contains, equal, lacks, one_of, same_bytes, true, until
from harness.icap import IcapServer, append, echo, unchanged
from harness.origin import Origin, echoed
from harness.raw_origin import PatternCheck, RawOrigin, pattern
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import Truncated, chunked, request

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
QUICK = {"timeout": "700ms", "connect_timeout": "500ms", "down_min": "100ms", "down_max": "200ms"}
STEADY = {"failures_down": 1000000}  # nothing takes it down


def start(lab, behave=unchanged, *, bypass=True, preview=1024, server=None, **options):
    """An origin, an ICAP server and a proxy between them."""
    icap = server or IcapServer(lab, behave, preview=preview)
    return Origin(lab), icap, Retort(lab, services=[Service("s", icap.uri(), bypass=bypass, **options)])


NUMBERS = itertools.count()


def fetch(proxy, origin, size, **more):
    """Each with a URL of its own, so that none waits for another's."""
    return proxy.get(origin.url("/bytes", n=size, cc="no-store", i=next(NUMBERS), **more))


def in_parallel(count, call):
    """What `count` calls at a time returned."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(call())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def verdicts(proxy, count):
    return [[v["verdict"] for v in entry["icap"]] for entry in proxy.log(count)]


def account(proxy, name="s"):
    """What /services says of a service."""
    services = json.loads(proxy.admin("GET", "/services").body)["services"]
    return next(service for service in services if service["name"] == name)


def whole_or_cut(proxy, url):
    """The answer, or None where the client saw that it is not whole."""
    try:
        return proxy.get(url)
    except (Truncated, ConnectionError):
        return None


class Busy:
    """Counts how many are inside at a time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1


# 1: one request at a time on a connection.

@memcheck
def test_one_request_at_a_time(lab):
    pipelined = []

    def behave(_icap, transaction):
        transaction.finish_body()
        ready, _, _ = select.select([transaction.connection.socket], [], [], 0.02)
        if ready or transaction.connection.buffer:
            pipelined.append(transaction.request.start)
        transaction.send_200(HEAD, b"answer")
    origin, icap, proxy = start(lab, behave, bypass=False, max_connections=2)
    equal([answer.body for answer in in_parallel(8, lambda: fetch(proxy, origin, 3000))], [b"answer"] * 8, "bodies")
    equal(pipelined, [], "requests that were sent before the answer to the one before")
    between(icap.accepted, 1, 3, "connections")


# 3: offsets.

def with_encapsulated(*values):
    """A 200 with these Encapsulated fields, whatever they say."""
    def behave(_icap, transaction):
        fields = b"".join(b"Encapsulated: " + value + b"\r\n" for value in values)
        transaction.send(b'ICAP/1.0 200 OK\r\nISTag: "x"\r\n' + fields + b"\r\n" + HEAD + chunked(b"evil body"))
        return True
    return behave


@memcheck
def test_offsets_are_obeyed(lab):
    """What does not describe the bytes that follow is not believed: no byte of it reaches the client."""
    n = len(HEAD)
    wrong = [
        (b"res-hdr=0, res-body=%d" % (n - 2),), (b"res-hdr=0, res-body=%d" % (n + 2),), (b"res-hdr=0, res-body=4",),
        (b"res-hdr=2, res-body=%d" % n,), (b"res-hdr=0, res-hdr=%d, res-body=%d" % (n, n),),
        (b"req-hdr=0, res-hdr=%d, res-body=10" % n,), (b"res-hdr=%d, req-hdr=0, res-body=%d" % (n, n),),
        (b"res-body=0, res-hdr=0",), (b"res-hdr=0, res-body=%d, null-body=%d" % (n, n + 1),),
        (b"res-hdr=0x0, res-body=%d" % n,), (b"res-hdr=+0, res-body=%d" % n,), (b"res-hdr=0; res-body=%d" % n,),
        (b"res-hdr=0, res-body=%d" % n, b"res-hdr=0, res-body=%d" % n), (b"req-hdr=0, req-body=%d" % n,),
        (b"null-body=0",), (b"opt-body=0",), (b"res-hdr=0, res-body=18446744073709551616",), (b"",),
    ]
    holder = {}
    icap = IcapServer(lab, lambda i, t: holder["behave"](i, t))
    origin, _, proxy = start(lab, server=icap, bypass=False, **STEADY)
    for values in wrong:
        holder["behave"] = with_encapsulated(*values)
        answer = fetch(proxy, origin, 2000)
        equal(answer.status, 502, f"{values}: status")
        lacks(answer.body, b"evil", f"{values}: body")
    holder["behave"] = with_encapsulated(b"res-hdr=0, res-body=%d" % n)
    equal(fetch(proxy, origin, 2000).body, b"evil body", "the right one")


# 4: messages without a head.

@memcheck
def test_answers_without_a_head(lab):
    """`res-body=0`: the head is the virgin one, the body is new."""
    def respmod(_icap, transaction):
        transaction.finish_body()
        transaction.send(b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: res-body=0\r\n\r\n' + chunked(b"new"))

    def reqmod(_icap, transaction):
        transaction.finish_body()
        transaction.send(b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: req-body=0\r\n\r\n' + chunked(b"new one"))
    origin, _, proxy = start(lab, respmod, bypass=False)
    answer = fetch(proxy, origin, 3000, h=["X-From-Origin: 1"])
    equal((answer.status, answer.header("X-From-Origin"), answer.body), (200, "1", b"new"), "response")
    icap = IcapServer(lab, reqmod, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    seen = echoed(proxy.fetch("POST", origin.url("/echo"), {"X-From-Client": "1"}, b"old"))
    equal((seen["header"]("x-from-client"), seen["body"]), ("1", b"new one"), "request at the origin")


def test_a_message_of_nothing_is_refused(lab):
    """A 200 that has neither head nor body says nothing: a request must not lose its body by it."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send(b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: null-body=0\r\n\r\n')
    icap = IcapServer(lab, behave, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=True)
    seen = echoed(proxy.fetch("POST", origin.url("/echo"), body=b"all of it"))
    equal(seen["body"], b"all of it", "body at the origin")


# 5: proxy credentials.

CREDENTIALS = "Basic " + base64.b64encode(b"user:word").decode()


@memcheck
def test_proxy_credentials_as_icap_fields(lab):
    """Only a service that is configured to see them gets them, and not in the encapsulated head."""
    for options, expected in (({}, None), ({"proxy_credentials": True}, CREDENTIALS)):
        icap = IcapServer(lab, methods="REQMOD")
        origin, _, proxy = start(lab, server=icap, point="reqmod_precache", **options)
        proxy.get(origin.url("/text", say="x"), {"Proxy-Authorization": CREDENTIALS})
        seen = icap.transactions[0]
        equal(seen.http_request.header("Proxy-Authorization"), None, "in the encapsulated head")
        equal(seen.request.header("Proxy-Authorization"), expected, f"{options}: in the ICAP head")


def test_proxy_credentials_at_each_point(lab):
    """A service that has seen a request does not keep them from the next one."""
    icaps = {point: IcapServer(lab, methods=point.split("_")[0].upper()) for point in
             ("reqmod_precache", "reqmod_postcache", "respmod_precache", "respmod_postcache")}
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service(point, icap.uri(), point=point, bypass=False, proxy_credentials=True)
                                  for point, icap in icaps.items()])
    proxy.get(origin.url("/text", say="x"), {"Proxy-Authorization": CREDENTIALS})
    for point, icap in icaps.items():
        equal(icap.transactions[0].request.header("Proxy-Authorization"), CREDENTIALS, point)


def test_proxy_challenge_as_icap_field(lab):
    """Proxy-Authenticate of a response goes past the services to the client."""
    def answer(connection, _request):
        connection.send(b'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="a"\r\nContent-Length: 2\r\n\r\nno')
    origin = RawOrigin(lab, answer)
    for options, expected in (({}, None), ({"proxy_credentials": True}, 'Basic realm="a"')):
        icap = IcapServer(lab, append(b"!"))
        points = ("respmod_precache", "respmod_postcache")
        proxy = Retort(lab, services=[Service(point, icap.uri(), point=point, bypass=False, **options) for point in points])
        got = proxy.get(origin.url())
        equal((got.status, got.header("Proxy-Authenticate"), got.body), (407, 'Basic realm="a"', b"no!!"), "answer")
        equal(icap.count, 2, "ICAP transactions")
        for seen in icap.transactions:
            equal(seen.http_response.header("Proxy-Authenticate"), None, "in the encapsulated head")
            equal(seen.request.header("Proxy-Authenticate"), expected, f"{options}: in the ICAP head")


# 6: chunks.

BAD_CHUNKS = [b"-5\r\nhello\r\n0\r\n\r\n", b"+5\r\nhello\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n",
              b" 5\r\nhello\r\n0\r\n\r\n", b"5 5\r\nhello\r\n0\r\n\r\n", b"\r\nhello\r\n0\r\n\r\n", b"5\nhello\r\n0\r\n\r\n",
              b"5\r\nhelloo\r\n0\r\n\r\n", b"5\r\nhello0\r\n\r\n", b"ffffffffffffffff\r\nhello",
              b"8000000000000000\r\nhello", b"00000000000000005\r\nhello\r\n0\r\n\r\n", b"g\r\nhello\r\n0\r\n\r\n",
              b"5;" + b"e" * 5000 + b"\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n" + b"T: " + b"t" * 20000 + b"\r\n\r\n",
              b"5\r\nhello\r\n0\r\nbad trailer\r\n\r\n", b"5\r\nhello\r\n0; use-original-body=0\r\n\r\n",
              b"5\r\nhello\r\n0;ieof; use-original-body=x\r\n\r\n", b"5\r\nhello\r\n0\r\nX: \0\r\n\r\n"]


@memcheck
def test_chunks_are_read_strictly(lab):
    """A body that is not of the grammar is never taken for a whole one."""
    holder = {}

    def behave(_icap, transaction):
        transaction.send_head(HEAD)
        transaction.send(holder["chunks"])
        return True
    origin, _, proxy = start(lab, behave, bypass=False, **STEADY, **QUICK)
    for chunks in BAD_CHUNKS:
        holder["chunks"] = chunks
        answer = whole_or_cut(proxy, origin.url("/bytes", n=3000, cc="no-store"))
        true(answer is None or answer.status == 502, f"{chunks[:40]!r}: a complete {answer and answer.body!r}")
    holder["chunks"] = b"5 \r\nhello\r\n00; ext=\"a\"\r\nT: x\r\n\r\n"
    equal(fetch(proxy, origin, 3000).body, b"hello", "one that is right")


# 7: previews.

@memcheck
def test_previews_of_any_size(lab):
    for limit in (4096, 65536, 150000):
        icap, origin = IcapServer(lab, append(b"!"), preview=limit), Origin(lab)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False, preview="1MB", keep="1MB")])
        for size in (limit - 1, limit, limit + 1, limit + 70000):
            same_bytes(fetch(proxy, origin, size).body, origin.body(size) + b"!", f"preview {limit}, body {size}")
            seen = icap.transactions[-1]
            equal((len(seen.preview), seen.preview_limit), (min(size, limit), limit), f"{limit}, {size}: preview")
            equal(seen.ieof, size <= limit, f"{limit}, {size}: ieof")


# 8: what follows a verdict.

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


# 10: virgin bodies of any size.

def swallow(transaction):
    """Reads the whole virgin body without keeping it; its length."""
    total = [len(transaction.preview or b"")]
    if transaction.complete:
        return total[0]
    if transaction.preview is not None:
        transaction.send_100()
    transaction.connection._chunks(transaction.request, lambda piece: total.__setitem__(0, total[0] + len(piece)))
    transaction.complete = True
    return total[0]


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


# 11: full duplex.

@memcheck
def test_each_byte_is_passed_on_at_once(lab):
    """The service sends the next byte only when the client has the one before, the body still going up; also
    when there is much more to come, as the length that it announces says."""
    seen, unread, head = threading.Semaphore(0), [], []

    def behave(_icap, transaction):
        transaction.send_100()
        transaction.send_head(head[0])
        for byte in b"abcdef":
            transaction.send(chunked(bytes([byte]), last=b""))
            if not seen.acquire(timeout=20 * lab.patience):
                unread.append(byte)
                return True
        transaction.send(b"0\r\n\r\n")
        return True
    much = HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 1000000\r\n\r\n")
    for bypass, head[:] in ((True, [HEAD]), (False, [HEAD]), (True, [much]), (False, [much])):
        origin, _, proxy = start(lab, behave, bypass=bypass)
        got = []

        def sink(piece, got=got):
            got.append(piece)
            for _ in piece:
                seen.release()
        with proxy.wire() as wire:
            wire.send(request("GET", origin.url("/bytes", n=5000000, cc="no-store")))
            wire.response(sink=sink)
        equal((b"".join(got), unread), (b"abcdef", []), f"bypass {bypass}: body")


# 13 and 14: OPTIONS.

def test_options_as_large_as_they_come(lab):
    """In one burst, of about as many bytes as are read at a time, and more."""
    for size in (4000, 15900, 16000, 16383, 16384, 16385, 17000, 40000):
        icap = IcapServer(lab, append(b"!"))
        filler = size - len("ICAP/1.0 200 OK\r\n\r\n") - sum(
            len(f"{name}: {value}\r\n") for name, value in icap.options.items() if value is not None)
        lines = [f"X-{n}: " for n in range(-(-filler // 7000))]
        each = filler // len(lines)
        for n, line in enumerate(lines):
            more = filler - each * (len(lines) - 1) if n == 0 else each
            icap.options[line[:-2]] = "f" * (more - len(line) - 2)
        origin, _, proxy = start(lab, server=icap, bypass=False)
        equal(fetch(proxy, origin, 10).body, origin.body(10) + b"!", f"body with OPTIONS of {size}")
        equal(icap.options_count, 1, "OPTIONS requests")
        proxy.stop()
        icap.stop()


def test_options_beyond_reason(lab):
    icap = IcapServer(lab, append(b"!"))
    for n in range(12):
        icap.options[f"X-{n}"] = "f" * 7000
    origin, _, proxy = start(lab, server=icap, bypass=True, **QUICK)
    equal(fetch(proxy, origin, 10).body, origin.body(10), "body")


def test_transfer_complete(lab):
    """Types that the service wants whole are sent without a preview."""
    icap = IcapServer(lab, append(b"!"), Transfer_Complete="zip", Transfer_Preview="*")
    origin, _, proxy = start(lab, server=icap, bypass=False)
    for path, expected in (("/bytes/a.zip", None), ("/bytes/a.ZIP", None), ("/bytes/a.txt", 1024), ("/bytes/a", 1024)):
        proxy.get(origin.url(path, n=3000, cc="no-store"))
        equal(icap.transactions[-1].preview_limit, expected, f"Preview for {path}")


# 15 and 16: what OPTIONS say of the service.

def test_options_that_change(lab):
    """Its TTL has passed, and it does responses no more: no RESPMOD is sent to it."""
    icap = IcapServer(lab, append(b"!"), Options_TTL=0)
    origin, _, proxy = start(lab, server=icap, **QUICK)
    equal(fetch(proxy, origin, 10).body, origin.body(10) + b"!", "body")
    icap.options["Methods"] = "REQMOD"
    until(lambda: fetch(proxy, origin, 10).body == origin.body(10), 10 * lab.patience, "the service to be left alone")
    count = icap.count
    fetch(proxy, origin, 10)
    equal(icap.count, count, "RESPMOD requests after that")
    icap.options["Methods"] = "RESPMOD"
    until(lambda: fetch(proxy, origin, 10).body.endswith(b"!"), 10 * lab.patience, "the service to be asked again")


def test_what_the_service_says_of_itself(lab):
    icap = IcapServer(lab, Service="Tester 1.0", ISTag='"abc"')
    origin, _, proxy = start(lab, server=icap)
    fetch(proxy, origin, 10)
    seen = account(proxy)
    equal((seen["service"], seen["istag"], seen["state"]), ("Tester 1.0", '"test-1"', "up"), "Service, ISTag, state")
    contains(proxy.ctl("services"), "Tester 1.0", "retortctl services")


def test_notice_to_operators(lab):
    """A service's own words: bounded, without control characters, of the latest OPTIONS, and of each endpoint."""
    icap = IcapServer(lab, Options_TTL=0, X_Operator_Notice="a \x1b[2J\t\x9b\xff\u202e\"<b> %s \\n " + "f" * 3000)
    quiet = IcapServer(lab, Options_TTL=0)
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri()), Service("q", [quiet.uri(), icap.uri("other")])])

    def notices(name="s"):
        return [endpoint.get("notice") for endpoint in account(proxy, name)["endpoints"]]
    equal(notices(), [None], "before the first OPTIONS")
    fetch(proxy, origin, 10)
    seen = notices()[0]
    # The parser of heads takes no control characters, so the OPTIONS fail as a whole.
    equal(seen, None, "of a head with an escape character")
    icap.options["X-Operator-Notice"] = "a \t\x9b\xff\u202e\"<b> %s \\n " + "f" * 3000
    until(lambda: fetch(proxy, origin, 10) and notices()[0], 20 * lab.patience, "the notice")
    seen = notices()[0]
    true(seen.startswith('a ?') and '"<b> %s \\n fff' in seen and seen.endswith("f..."), f"notice: {seen}")
    equal(len(seen), 511, "length")
    text = proxy.ctl("services")
    contains(text, "notice: a ?", "retortctl services")
    for output in (text, proxy.ctl("--json", "services")):
        true(all(c == "\n" or " " <= c <= "~" for c in output), "visible characters only")
    until(lambda: fetch(proxy, origin, 10) and notices("q")[1], 20 * lab.patience, "the notice of the second endpoint")
    equal(notices("q")[0], None, "of the first endpoint")
    icap.options["X-Operator-Notice"] = "another"
    until(lambda: fetch(proxy, origin, 10) and notices() == ["another"], 20 * lab.patience, "the next OPTIONS")
    icap.options["X-Operator-Notice"] = None
    until(lambda: fetch(proxy, origin, 10) and notices() == [None], 20 * lab.patience, "OPTIONS without a notice")


# 17: connections.

def test_connections_are_capped_across_workers(lab):
    """Max-Connections is for all workers together; whoever waits is served in turn."""
    busy = Busy()

    def behave(_icap, transaction):
        with busy:
            time.sleep(0.01)
        transaction.send_204()
    icap = IcapServer(lab, behave, Max_Connections=3)
    origin = Origin(lab)
    proxy = Retort(lab, workers=4, services=[Service("s", icap.uri(), bypass=False, queue_timeout="30s")])
    for _ in range(3):
        equal([answer.status for answer in in_parallel(24, lambda: fetch(proxy, origin, 100))], [200] * 24, "statuses")
    between(busy.most, 1, 3, "transactions at a time")


def test_one_connection_is_enough_for_all_workers(lab):
    busy = Busy()

    def behave(_icap, transaction):
        with busy:
            time.sleep(0.002)
        transaction.send_204()
    icap = IcapServer(lab, behave)
    origin = Origin(lab)
    proxy = Retort(lab, workers=4, services=[Service("s", icap.uri(), bypass=False, max_connections=1,
                                                     queue_timeout="30s")])
    for _ in range(3):
        equal([answer.status for answer in in_parallel(16, lambda: fetch(proxy, origin, 100))], [200] * 16, "statuses")
    equal(busy.most, 1, "transactions at a time")


def test_queue_has_a_limit_and_a_deadline(lab):
    """Who finds it full is bypassed at once, who waits too long then."""
    inside, leave = threading.Event(), threading.Event()

    def behave(_icap, transaction):
        inside.set()
        leave.wait(30)
        transaction.send_204()
    origin, _, proxy = start(lab, behave, max_connections=1, queue_max=1, queue_timeout="300ms", timeout="30s")
    first = threading.Thread(target=lambda: fetch(proxy, origin, 100))
    first.start()
    true(inside.wait(20 * lab.patience), "the first one is with the service")
    equal([answer.status for answer in in_parallel(3, lambda: fetch(proxy, origin, 100))], [200] * 3, "statuses")
    leave.set()
    first.join()
    entries = proxy.log(4)
    errors = sorted(entry["icap"][0].get("error", "") for entry in entries)
    equal([error[:13] for error in errors], ["", "no connection", "too many wait", "too many wait"], "errors")
    seen = account(proxy)["account"]
    equal((seen["bypassed"], seen["error_queue"]), (3, 3), "bypassed, error_queue")
    equal(account(proxy)["state"], "up", "state: that it is busy is no fault")


# 19: results of services that answer requests.

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


# 21: statuses.

def only_once(answer):
    """The first transaction gets `answer` and a close, the others are adapted."""
    def behave(icap, transaction):
        if len(icap.transactions) == 1:
            transaction.finish_body()
            transaction.send(answer)
            return True
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(), body + b"!")
        return False
    return behave


def test_408_is_repeated_once(lab):
    origin, icap, proxy = start(lab, only_once(b"ICAP/1.0 408 Timeout\r\n\r\n"), bypass=False)
    equal(fetch(proxy, origin, 5000).body, origin.body(5000) + b"!", "body")
    equal((icap.count, account(proxy)["account"]["retries"]), (2, 1), "transactions, retries")


def test_404_has_options_asked_anew(lab):
    """The service was replaced: it is down until its OPTIONS say what it is now."""
    origin, icap, proxy = start(lab, only_once(b"ICAP/1.0 404 Gone\r\n\r\n"), **QUICK)
    equal(fetch(proxy, origin, 5000).body, origin.body(5000), "body that was bypassed")
    until(lambda: fetch(proxy, origin, 10).body.endswith(b"!"), 10 * lab.patience, "adapted bodies again")
    equal(icap.options_count, 2, "OPTIONS requests")


def test_503_lowers_the_number_of_connections(lab):
    """For a while it gets half of what was too much; it is not down."""
    busy, refusing, together = Busy(), threading.Event(), threading.Barrier(4)
    refusing.set()

    def behave(_icap, transaction):
        if refusing.is_set():
            together.wait(20 * lab.patience)
            transaction.send(b"ICAP/1.0 503 Overloaded\r\n\r\n")
            return True
        with busy:
            time.sleep(0.02)
        transaction.send_204()
        return False
    origin, icap, proxy = start(lab, behave, max_connections=4, queue_timeout="30s", **STEADY)
    in_parallel(4, lambda: fetch(proxy, origin, 100))
    refusing.clear()
    in_parallel(12, lambda: fetch(proxy, origin, 100))
    seen = account(proxy)
    equal((seen["state"], seen["account"]["error_overloaded"], icap.count), ("up", 4, 16), "state, 503s, transactions")
    between(busy.most, 1, 2, "transactions at a time after that")


# 22: credentials for the ICAP server.

def test_credentials_for_the_icap_server(lab):
    origin, icap, proxy = start(lab, credentials="proxy:pass word")
    fetch(proxy, origin, 100)
    expected = "Basic " + base64.b64encode(b"proxy:pass word").decode()
    equal(icap.transactions[0].request.header("Proxy-Authorization"), expected, "Proxy-Authorization")
    equal(icap.options_requests[0].header("Proxy-Authorization"), expected, "Proxy-Authorization of OPTIONS")
    equal(json.loads(proxy.admin("GET", "/settings").body)["icap_service"][0]["credentials"], "(not shown)", "in /settings")


# 24: 206 from any place.

@memcheck
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


# 25: the race of pooled connections.

def test_pooled_connection_that_dies_with_a_large_body(lab):
    """It has taken megabytes of a body of unknown length before it resets: all of it once more."""
    def behave(icap, transaction):
        if len(icap.transactions) == 2:
            transaction.read_some_body(2000000)
            transaction.connection.abort()
            return True
        equal(swallow(transaction), 0 if not transaction.has_body else 5000000, "bytes at the service")
        transaction.send_204()
        return False
    icap = IcapServer(lab, behave, preview=None)
    origin, _, proxy = start(lab, server=icap, bypass=False, keep="64KB")
    for turn in range(2):
        same_bytes(proxy.get(origin.url("/chunked", n=5000000, cc="no-store")).body, origin.body(5000000), f"body {turn}")
    equal((icap.count, proxy.counter("icap_retries")), (3, 1), "transactions, retries")


# 26: deadlines.

def test_first_byte_has_a_deadline_of_its_own(lab):
    """A scanner thinks longer than its answer may pause."""
    def slow(_icap, transaction):
        time.sleep(1)
        transaction.send_204()
    origin, _, proxy = start(lab, slow, bypass=False, timeout="300ms", first_byte_timeout="20s")
    equal(fetch(proxy, origin, 100).status, 200, "status with a long first_byte_timeout")
    origin, _, proxy = start(lab, slow, bypass=False, timeout="20s", first_byte_timeout="300ms")
    equal(fetch(proxy, origin, 100).status, 502, "status with a short one")
    equal(account(proxy)["account"]["error_timeout"], 1, "error_timeout")


# 27: fields that were agreed on.

def test_fields_that_services_asked_for(lab):
    names = ("X-Client-IP", "X-Client-Port", "X-Server-IP")
    for wanted, include, expected in (
            (None, None, (True, False, False)), ("X-Client-IP, X-Client-Port, X-Server-IP", "X-Client-IP", (True, True, True)),
            ("x-server-ip", "X-Client-Port", (False, True, True)), (None, "X-Server-IP", (False, False, True))):
        icap = IcapServer(lab, X_Include=wanted)
        origin, _, proxy = start(lab, server=icap, **({"include": include} if include else {}))
        fetch(proxy, origin, 100)
        head = icap.transactions[0].request
        equal(tuple(head.header(name) is not None for name in names), expected, f"X-Include {wanted}, include {include}")
        one_of(head.header("X-Server-IP"), ("127.0.0.1", None), "X-Server-IP")


def test_allow_says_what_was_agreed_on(lab):
    for listed, expected in (("204", "204"), ("204, 206", "204, 206"), (None, None), ("206", "206"), ("trailers", None)):
        icap = IcapServer(lab, Allow=listed)
        origin, _, proxy = start(lab, server=icap)
        fetch(proxy, origin, 5000)
        equal(icap.transactions[0].request.header("Allow"), expected, f"Allow for a service that says {listed}")


# 28: endpoints.

def endpoints(lab, *servers, **options):
    uris = "={ " + ", ".join(f'"{server.uri()}"' for server in servers) + " }"
    return Retort(lab, services=[Service("s", uris, **{"bypass": False, **options})])


def test_the_least_loaded_endpoint_is_asked(lab):
    """One of the two is slow: what comes meanwhile goes to the other."""
    inside, leave = threading.Event(), threading.Event()

    def behave(_icap, transaction):
        if "/first" in transaction.http_request.start:
            inside.set()
            leave.wait(30)
        transaction.send_204()
    servers = [IcapServer(lab, behave) for _ in range(2)]
    origin = Origin(lab)
    proxy = endpoints(lab, *servers, timeout="30s")
    fetch(proxy, origin, 10)
    until(lambda: all(server.options_count == 1 for server in servers), 10 * lab.patience, "OPTIONS of both")
    first = threading.Thread(target=lambda: proxy.get(origin.url("/text/first", say="x")))
    first.start()
    true(inside.wait(20 * lab.patience), "one is busy")
    idle = min(servers, key=lambda server: sum("/first" in t.http_request.start for t in server.transactions))
    before = idle.count
    for _ in range(6):
        fetch(proxy, origin, 10)
    leave.set()
    first.join()
    equal(idle.count - before, 6, "transactions at the idle one")
    equal([e["state"] for e in account(proxy)["endpoints"]], ["up", "up"], "states")


def test_another_endpoint_takes_over(lab):
    """However the first one fails before its verdict: the message goes to the second, once."""
    def refuses(_icap, transaction):
        transaction.send(b"ICAP/1.0 500 Error\r\n\r\n")
        return True

    def reads_and_closes(_icap, transaction):
        swallow(transaction)
        return True

    def silent(_icap, _transaction):
        time.sleep(3)
        return True
    for bad in (refuses, reads_and_closes, silent):
        servers = [IcapServer(lab, bad), IcapServer(lab, append(b"!"))]
        origin = Origin(lab)
        proxy = endpoints(lab, *servers, failures_down=2, **QUICK)
        def switched(proxy=proxy, bad=bad):
            equal(fetch(proxy, origin, 5000).body, origin.body(5000) + b"!", f"{bad.__name__}: body")
            return account(proxy)["account"]["switches"] > 0
        until(switched, 20 * lab.patience, f"{bad.__name__}: a message that goes on to the second endpoint")
        equal(account(proxy)["account"]["bypassed"], 0, "bypassed")
        proxy.stop()


def test_both_endpoints_fail(lab):
    def closes(_icap, _transaction):
        return True
    servers = [IcapServer(lab, closes), IcapServer(lab, closes)]
    origin = Origin(lab)
    proxy = endpoints(lab, *servers, bypass=True, **STEADY)
    same_bytes(fetch(proxy, origin, 5000).body, origin.body(5000), "the virgin body")
    until(lambda: sum(server.count for server in servers) >= 1, 5, "a transaction")
    between(sum(server.count for server in servers), 1, 2, "transactions")


@memcheck
def test_an_endpoint_that_is_down(lab):
    """After failures_down in a row it is left alone; then one transaction tries it."""
    failing = threading.Event()
    failing.set()

    def behave(_icap, transaction):
        if failing.is_set():
            return True
        transaction.send_204()
        return False
    origin, icap, proxy = start(lab, behave, failures_down=3, **QUICK)
    until(lambda: fetch(proxy, origin, 10) and icap.count >= 3, 10 * lab.patience, "three failures")
    until(lambda: account(proxy)["endpoints"][0]["state"] in ("down", "trial"), 10 * lab.patience, "it to be down")
    failing.clear()
    until(lambda: fetch(proxy, origin, 10) and account(proxy)["endpoints"][0]["state"] == "up", 20 * lab.patience,
          "it to be up again", pause=0.05)


def test_a_trial_is_one_transaction(lab):
    """What comes back after having been down gets one request, not all that waited; a failure ends it."""
    busy, mode, together = Busy(), {"now": "fail"}, []

    def behave(_icap, transaction):
        with busy:
            if mode["now"] == "fail":
                return True
            time.sleep(0.1)
            together.append(busy.now)
        transaction.send_204()
        return False
    origin, _, proxy = start(lab, behave, failures_down=1, **{**QUICK, "timeout": "20s"})
    fetch(proxy, origin, 10)
    until(lambda: account(proxy)["endpoints"][0]["state"] == "trial", 10 * lab.patience, "a trial")
    mode["now"] = "work"
    equal([answer.status for answer in in_parallel(6, lambda: fetch(proxy, origin, 10))], [200] * 6, "statuses")
    equal(together[0], 1, "transactions at a time while it was tried")
    equal(account(proxy)["endpoints"][0]["state"], "up", "state")


# 29: chains.

def reroutes(names, text):
    def behave(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(), body + text, icap=b"X-Next-Services: " + names + b"\r\n")
    return behave


@memcheck
def test_next_services(lab):
    """A service that may do so names those that follow it."""
    origin = Origin(lab)
    others = [IcapServer(lab, append(text)) for text in (b"2", b"3")]
    for names, routing, expected in ((b"three", True, "x13"), (b"three, two", True, "x132"), (b"", True, "x1"),
                                     (b"three", False, "x12"), (b"nobody, three", True, "x13")):
        first = IcapServer(lab, reroutes(names, b"1"))
        proxy = Retort(lab, services=[Service("one", first.uri(), routing=routing), Service("two", others[0].uri()),
                                      Service("three", others[1].uri())], adapt={"all": ["one", "two"]})
        equal(proxy.get(origin.url("/text", say="x")).text(), expected, f"{names!r}, routing {routing}: body")
        proxy.stop()


def dies_after(length, text=b"half a body"):
    """Its verdict is there, and so many bytes of its body, when it dies."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(b"HTTP/1.1 203 Changed\r\nX-Evil: 1\r\n\r\n")
        if length:
            transaction.send(b"%x\r\n" % (length + 10) + (text * length)[:length])
        time.sleep(0.05)
        return True
    return behave


@memcheck
def test_failure_before_the_first_byte_of_the_body(lab):
    """The verdict alone binds to nothing: with bypass the message passes as it was."""
    origin, _, proxy = start(lab, dies_after(0), bypass=True, **STEADY)
    for size in (100, 5000, 500000):
        answer = fetch(proxy, origin, size, h=["X-From-Origin: 1"])
        equal((answer.status, answer.header("X-Evil"), answer.header("X-From-Origin")), (200, None, "1"), "head")
        same_bytes(answer.body, origin.body(size), f"body of {size}")
    equal(verdicts(proxy, 3), [["BYPASSED"]] * 3, "verdicts")
    origin, _, proxy = start(lab, dies_after(0), bypass=False, **STEADY)
    answer = whole_or_cut(proxy, origin.url("/bytes", n=5000, cc="no-store"))
    true(answer is None or answer.status == 502, "without bypass: an error, or a cut")


@memcheck
def test_chain_goes_back_before_a_service_that_died(lab):
    """The first dies inside its body, which the second was to have whole: it gets the original instead."""
    def whole_first(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(add=[("X-Two", "2")]), body + b" two")
    origin = Origin(lab)
    for length, size in ((100, 100), (5000, 5000), (30000, 300000)):
        one, two = IcapServer(lab, dies_after(length)), IcapServer(lab, whole_first)
        proxy = Retort(lab, services=[Service("one", one.uri(), bypass=True), Service("two", two.uri(), bypass=False)])
        answer = fetch(proxy, origin, size)
        equal((answer.status, answer.header("X-Evil"), answer.header("X-Two")), (200, None, "2"), f"{length}: head")
        same_bytes(answer.body, origin.body(size) + b" two", f"{length}: body")
        equal(verdicts(proxy, 1), [["BYPASSED", "MODIFIED"]], "verdicts")
        proxy.stop()


def test_chain_goes_back_past_services_that_changed_nothing(lab):
    """Those between the one that dies and the one that reads: one leaves the message alone, the other fails and is bypassed."""
    def whole_last(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(), body + b" last")

    def closes(_icap, _transaction):
        return True
    origin, last = Origin(lab), IcapServer(lab, whole_last)
    for between_them in ((unchanged,), (closes,), (unchanged, closes, unchanged)):
        one, *others = (IcapServer(lab, behave) for behave in (dies_after(5000), *between_them))
        services = [Service(f"s{i}", icap.uri(), bypass=True, **STEADY) for i, icap in enumerate([one, *others])]
        proxy = Retort(lab, services=[*services, Service("last", last.uri(), bypass=False)])
        answer = fetch(proxy, origin, 100)
        case = [behave.__name__ for behave in between_them]
        equal((answer.status, answer.header("X-Evil")), (200, None), f"{case}: head")
        same_bytes(answer.body, origin.body(100) + b" last", f"{case}: body")
        names = {"unchanged": "UNMODIFIED", "closes": "BYPASSED"}
        equal(verdicts(proxy, 1), [["BYPASSED", *(names[name] for name in case), "MODIFIED"]], "verdicts")
        proxy.stop()


def test_chain_does_not_go_back_without_bypass(lab):
    origin = Origin(lab)
    one, two = IcapServer(lab, dies_after(100)), IcapServer(lab, echo)
    proxy = Retort(lab, services=[Service("one", one.uri(), bypass=False), Service("two", two.uri(), bypass=True)])
    answer = whole_or_cut(proxy, origin.url("/bytes", n=5000, cc="no-store"))
    true(answer is None or answer.status == 502, "an error, or a cut")
    if answer is not None:
        lacks(answer.body, b"half a body", "error page")


# Whatever it does.

def test_reset_at_every_byte(lab):
    """A short exchange cut at each byte of its answer: the whole, the original, an error or a cut; no mixture."""
    answer = (b'ICAP/1.0 200 OK\r\nISTag: "t"\r\nEncapsulated: res-hdr=0, res-body=27\r\n\r\n'
              b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    equal(answer.index(b"5\r\nhello") - answer.index(b"HTTP/1.1"), 27, "the offset above")
    cut = {}

    def behave(_icap, transaction):
        transaction.send(answer[:cut["at"]])
        if cut["reset"]:
            transaction.connection.abort()
        return True
    for bypass in (True, False):
        origin, _, proxy = start(lab, behave, bypass=bypass, **STEADY)
        for reset in (False, True):
            for at in range(len(answer)):
                cut.update({"at": at, "reset": reset})
                got = whole_or_cut(proxy, origin.url("/bytes", n=3000, cc="no-store"))
                if got is None:
                    true(at > answer.index(b"hello") or not bypass, f"cut at {at}: nothing was out, yet it was cut")
                elif got.status == 200:
                    same_bytes(got.body, origin.body(3000), f"cut at {at}, bypass {bypass}: body")
                    true(bypass, f"cut at {at}: adapted to the original without bypass")
                else:
                    equal((got.status, bypass), (502, False), f"cut at {at}: status")
        cut.update({"at": len(answer), "reset": False})
        equal(fetch(proxy, origin, 3000).body, b"hello", "the whole answer")


def test_second_answer_behind_the_first(lab):
    """Bytes behind an answer, in its packet or a moment later, are nobody's: the connection goes."""
    evil = b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: res-hdr=0, res-body=%d\r\n\r\n' % len(HEAD) + HEAD + chunked(b"evil")

    def smuggle(first, later):
        def behave(_icap, transaction):
            transaction.finish_body()
            if later:
                transaction.send(first)
                time.sleep(0.02)
                transaction.send(evil)
            else:
                transaction.send(first + evil)
        return behave
    firsts = [
        (b'ICAP/1.0 204 No Content\r\nISTag: "x"\r\n\r\n', None),
        (b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: res-hdr=0, res-body=%d\r\n\r\n' % len(HEAD) + HEAD + chunked(b"good"), b"good"),
        (b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nEncapsulated: res-hdr=0, null-body=%d\r\n\r\n' % len(HEAD) + HEAD, b""),
    ]
    for first, body in firsts:
        for later in (False, True):
            origin, _, proxy = start(lab, smuggle(first, later), bypass=False, **STEADY)
            for size in (100, 2000, 3000):
                got = whole_or_cut(proxy, origin.url("/bytes", n=size, cc="no-store"))
                true(got is not None and got.status in (200, 502), "an answer")
                if got.status == 200:
                    same_bytes(got.body, origin.body(size) if body is None else body, f"body of {size}")
                lacks(got.body, b"evil", f"body of {size}")
                until(lambda: proxy.counter("icap_connections_open") == 0, 10 * lab.patience, "the connection to go")
            proxy.stop()


def test_account_of_a_service(lab):
    """What was answered, how often, how many bytes both ways, how long it took."""
    turn = [0]

    def behave(_icap, transaction):
        turn[0] += 1
        if turn[0] == 1:
            transaction.send_204()
        elif turn[0] == 2:
            transaction.send_200(HEAD, b"n" * 5000)
        else:
            transaction.send_head(HEAD, status=b"206 Partial Content")
            transaction.send(b"0; use-original-body=0\r\n\r\n")
    icap = IcapServer(lab, behave, Allow="204, 206")
    origin, _, proxy = start(lab, server=icap, bypass=False)
    for _ in range(3):
        fetch(proxy, origin, 3000)
    seen = account(proxy)
    numbers = seen["account"]
    equal([numbers[n] for n in ("requests", "unmodified", "modified", "partial", "satisfied", "bypassed")],
          [3, 1, 1, 1, 0, 0], "requests and verdicts")
    between(numbers["bytes_in"], 5000, 6000, "bytes_in")
    between(numbers["bytes_out"], 3 * 1024, 3 * 3000, "bytes_out")
    equal((seen["times"]["verdict_seconds"]["count"], seen["times"]["last_byte_seconds"]["count"]), (3, 3), "times")
    true(seen["times"]["verdict_seconds"]["p99"] > 0, "a quantile")
    metrics = proxy.ctl("metrics")
    contains(metrics, 'retort_icap_service_requests_total{service="s"} 3', "metrics")
    contains(metrics, 'retort_icap_service_verdict_seconds_count{service="s"} 3', "metrics")
    contains(metrics, 'retort_icap_service_verdict_seconds_bucket{service="s",le="+Inf"} 3', "metrics")


@memcheck
def test_account_over_reloads(lab):
    """It goes on under the same name, also with what began before; another name begins anew."""
    go_on = threading.Event()

    def behave(_icap, transaction):
        if "slow" in transaction.http_request.start:
            go_on.wait(20 * lab.patience)
        transaction.send_204()
    icap = IcapServer(lab, behave)
    origin, _, proxy = start(lab, server=icap, timeout="40s")
    for _ in range(3):
        fetch(proxy, origin, 3000)
    slow = threading.Thread(target=lambda: proxy.get(origin.url("/bytes", n=3000, slow=1)))
    slow.start()
    until(lambda: icap.count == 4, 10 * lab.patience, "the slow one")

    def counted(name="s"):
        numbers = account(proxy, name)
        return [numbers["account"]["requests"], numbers["account"]["unmodified"], numbers["times"]["verdict_seconds"]["count"]]
    for _ in range(2):
        equal(proxy.reload().status, 200, "reload")
    equal(counted(), [4, 3, 3], "numbers behind two reloads")
    fetch(proxy, origin, 3000)
    go_on.set()
    slow.join()
    until(lambda: counted() == [5, 5, 5], 10 * lab.patience, "numbers of the new and of the old")
    proxy.write_config(proxy.text(services=[Service("t", icap.uri())], adapt={"all": ["t"]}))
    equal(proxy.reload().status, 200, "reload")
    fetch(proxy, origin, 3000)
    equal(counted("t"), [1, 1, 1], "numbers of another name")
    proxy.write_config(proxy.text())
    equal(proxy.reload().status, 200, "reload")
    equal(counted(), [5, 5, 5], "numbers of a name that has come back")
