"""What the ICAP client sends and what it takes: heads, the fields beside them, offsets, chunks."""

import base64
import json

from harness.adaptation import HEAD, QUICK, STEADY, account, fetch, start, whole_or_cut
from harness.checks import equal, lacks, one_of, same_bytes, true
from harness.icap import IcapServer, append, echo, write_head
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import chunked

# What is sent.

@memcheck
def test_what_is_sent(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    url = origin.url("/bytes", n=3000, cc="no-store", h=["X-From-Origin: 1", "Connection: X-Hop", "X-Hop: 1"])
    proxy.get(url)
    seen = icap.transactions[0]
    equal(seen.request.uri, icap.uri(), "URI")
    equal(seen.request.header("Host"), icap.authority, "Host")
    equal(seen.http_request.start, f"GET {url} HTTP/1.1", "encapsulated request line")
    equal(seen.http_response.start.split(" ")[1], "200", "encapsulated status")
    equal(seen.http_response.header("X-From-Origin"), "1", "origin's field")
    equal(seen.http_response.header("X-Hop"), None, "hop-by-hop field (RFC 3507 §4.4.2)")
    equal(seen.http_response.header("Transfer-Encoding"), None, "Transfer-Encoding")
    true(seen.request.header("X-Transaction-ID"), "X-Transaction-ID")


def test_proxy_credentials_are_not_encapsulated(lab):
    icap = IcapServer(lab, methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache")
    proxy.get(origin.url("/text", say="x"), {"Proxy-Authorization": "Basic eDp5", "Connection": "X-Hop", "X-Hop": "1"})
    seen = icap.transactions[0].http_request
    equal((seen.header("Proxy-Authorization"), seen.header("X-Hop")), (None, None), "hop-by-hop fields")


CREDENTIALS = "Basic " + base64.b64encode(b"user:word").decode()


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


def test_credentials_for_the_icap_server(lab):
    origin, icap, proxy = start(lab, credentials="proxy:pass word")
    fetch(proxy, origin, 100)
    expected = "Basic " + base64.b64encode(b"proxy:pass word").decode()
    equal(icap.transactions[0].request.header("Proxy-Authorization"), expected, "Proxy-Authorization")
    equal(icap.options_requests[0].header("Proxy-Authorization"), expected, "Proxy-Authorization of OPTIONS")
    equal(json.loads(proxy.admin("GET", "/settings").body)["icap_service"][0]["credentials"], "(not shown)", "in /settings")


def test_client_ip_where_it_is_wanted(lab):
    for wanted, expected in (("X-Client-IP", "127.0.0.1"), (None, None)):
        icap = IcapServer(lab, X_Include=wanted)
        origin, _, proxy = start(lab, server=icap)
        fetch(proxy, origin, 100)
        if wanted:
            equal(icap.transactions[0].request.header("X-Client-IP"), expected, "X-Client-IP")


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


def test_server_ip_over_a_connection_used_again(lab):
    """No access section asks about addresses, so nothing else needs that of an idle connection."""
    icap = IcapServer(lab, append(b"!"), X_Include="X-Server-IP")
    origin, _, proxy = start(lab, server=icap)
    for _ in range(3):
        fetch(proxy, origin, 100)
    equal(proxy.counter("origin_connections_reused"), 2, "connections used again")
    equal([seen.request.header("X-Server-IP") for seen in icap.transactions], ["127.0.0.1"] * 3, "X-Server-IP")


def test_allow_says_what_was_agreed_on(lab):
    for listed, expected in (("204", "204"), ("204, 206", "204, 206"), (None, None), ("206", "206"), ("trailers", None)):
        icap = IcapServer(lab, Allow=listed)
        origin, _, proxy = start(lab, server=icap)
        fetch(proxy, origin, 5000)
        equal(icap.transactions[0].request.header("Allow"), expected, f"Allow for a service that says {listed}")


# What is taken.

@memcheck
def test_modified_head_and_body(lab):
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(b"HTTP/1.1 203 Changed\r\nX-New: 1\r\nContent-Type: text/x\r\n\r\n", b"all new")
    origin, _, proxy = start(lab, behave)
    url = origin.url("/bytes", n=5000, cc="max-age=60")
    answer = proxy.get(url)
    equal((answer.status, answer.header("X-New"), answer.header("Content-Type"), answer.body),
          (203, "1", "text/x", b"all new"), "answer")
    equal(answer.header("Cache-Control"), None, "a field the service left out")


def test_folded_fields_of_an_answer(lab):
    """RFC 3507 4.3: messages have the generic form of RFC 2822, where a field may have several lines. c-icap's virus
    scanners send X-Violations-Found so. Nothing of such a field may become a field of its own."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send(b'ICAP/1.0 200 OK\r\nISTag: "x"\r\nX-Violations-Found: 1\r\n\tname.zip\r\n\tEicar\r\n\t0\r\n  0\r\n'
                         b"X-Infection-Found: Type=0;\r\n Resolution=2; Threat=Eicar;\r\n"
                         b"Encapsulated: res-hdr=0,\r\n res-body=%d\r\n\r\n" % len(HEAD) + HEAD + chunked(b"a page"))
    origin, _, proxy = start(lab, behave, bypass=False)
    answer = proxy.get(origin.url("/bytes", n=5000))
    equal((answer.status, answer.body), (200, b"a page"), "answer")


def test_blanks_before_the_colon_of_an_answer(lab):
    """"A proxy MUST remove any such whitespace from a response message" (RFC 9112 §5.1): a page of a service is one. A request is refused."""
    page = b"HTTP/1.1 403 No\r\nContent-Type : text/x\r\nCache-Control\t: no-store\r\n\r\n"
    ask = b"GET http://x/ HTTP/1.1\r\nHost : x\r\n\r\n"

    def says(head, data):
        def behave(_icap, transaction):
            transaction.finish_body()
            transaction.send(b'ICAP/1.0 200 OK\r\nISTag : "x"\r\nEncapsulated : ' + head + b"\r\n\r\n" + data)
        return behave
    blocked = says(b"res-hdr=0, res-body=%d" % len(page), page + chunked(b"a page"))
    for point in ("respmod_precache", "reqmod_precache"):
        icap = IcapServer(lab, blocked, methods=point.split("_")[0].upper())
        origin, _, proxy = start(lab, server=icap, point=point, bypass=True)
        answer = proxy.get(origin.url("/bytes", n=50))
        equal((answer.status, answer.header("Content-Type"), answer.header("Cache-Control"), answer.body),
              (403, "text/x", "no-store", b"a page"), point)
        proxy.stop()
    icap = IcapServer(lab, says(b"req-hdr=0, null-body=%d" % len(ask), ask), methods="REQMOD")
    origin, _, proxy = start(lab, server=icap, point="reqmod_precache", bypass=False)
    equal(proxy.get(origin.url("/bytes", n=50)).status, 502, "a request")


def test_bad_folds_of_an_answer(lab):
    for number, bad in enumerate((b"ICAP/1.0 200 OK\r\n Encapsulated: null-body=0\r\n\r\n", b"ICAP/1.0 200 OK\r\nA: b\n c\r\n\r\n",
                                  b"ICAP/1.0 200 OK\r\nA: b\r\r\n c\r\n\r\n", b"ICAP/1.0 200 OK\r\nA: b\r\n\tc\0\r\n\r\n")):
        def behave(_icap, transaction, bad=bad):
            transaction.finish_body()
            transaction.send(bad)
            return True
        origin, _, proxy = start(lab, behave, bypass=False)
        equal(proxy.get(origin.url("/bytes", n=50)).status, 502, f"answer {number}")


def test_head_and_bodyless_responses(lab):
    origin, icap, proxy = start(lab, echo, bypass=False)
    answer = proxy.fetch("HEAD", origin.url("/bytes", n=100))
    equal((answer.status, answer.body), (200, b""), "HEAD")
    for status in (204, 304):
        equal(proxy.get(origin.url("/text", status=status, say="")).status, status, "status")


def test_write_head_helper_keeps_the_virgin_head(lab):
    """The harness's own echo changes nothing: a check of these tests' foundation."""
    origin, icap, proxy = start(lab, echo, bypass=False)
    plain = Retort(lab)
    url = origin.url("/bytes", n=5000, cc="no-store", h=["X-A: 1", "X-B: 2"])
    adapted, direct = proxy.get(url), plain.get(url)
    same_bytes(adapted.body, direct.body)
    equal([adapted.header(n) for n in ("X-A", "X-B")], [direct.header(n) for n in ("X-A", "X-B")], "fields")
    true(write_head(icap.transactions[0].http_response), "a head")


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
        (b"null-body=0",), (b"opt-body=0",), (b"res-hdr=0, opt-body=%d" % n,), (b"res-hdr=0, res-body=18446744073709551616",), (b"",),
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


def test_parts_that_have_no_place(lab):
    """RFC 3507 4.4.1: "RESPMOD response encapsulated_list: [reshdr] resbody", and for REQMOD one message, of the one kind or the other; a
    204 has none (4.6). Such answers are counted as errors of the protocol."""
    ask = b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"
    both = ask + HEAD

    def says(status, parts, data):
        def behave(_icap, transaction):
            transaction.send(b"ICAP/1.0 %s\r\nISTag: \"x\"\r\nEncapsulated: %s\r\n\r\n" % (status, parts) + data + chunked(b"evil"))
            return True
        return behave
    for point, method, wrong in (
            ("respmod_precache", "RESPMOD", [says(b"200 OK", b"req-hdr=0, res-hdr=%d, res-body=%d" % (len(ask), len(both)), both),
                                             says(b"200 OK", b"opt-body=0", b""), says(b"204 No", b"res-body=0", b""),
                                             says(b"204 No", b"res-hdr=0, res-body=%d" % len(HEAD), HEAD), says(b"204 No", b"opt-body=0", b"")]),
            ("reqmod_precache", "REQMOD", [says(b"200 OK", b"req-hdr=0, res-hdr=%d, res-body=%d" % (len(ask), len(both)), both),
                                           says(b"200 OK", b"res-body=0", b""), says(b"200 OK", b"opt-body=0", b"")])):
        icap = IcapServer(lab, methods=method)
        origin, _, proxy = start(lab, server=icap, point=point, bypass=False, **STEADY)
        for number, behave in enumerate(wrong):
            icap.behave = behave
            answer = fetch(proxy, origin, 2000)
            equal(answer.status, 502, f"{method} {number}: status")
            lacks(answer.body, b"evil", f"{method} {number}: body")
        equal(account(proxy)["account"]["error_protocol"], len(wrong), f"{method}: errors of the protocol")
        proxy.stop()


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


def conflicting_http_head(_icap, transaction):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"
    transaction.send_head(head)
    transaction.send(chunked(b"evil"))
    return True


def test_service_that_states_two_lengths(lab):
    """Chunks frame an encapsulated body: the stated lengths are refused, or left out; never passed on."""
    origin, _, proxy = start(lab, conflicting_http_head, bypass=False, **QUICK)
    answer = fetch(proxy, origin, 5000)
    true(answer.status >= 500 or answer.body == b"evil", f"{answer.status} {answer.body[:20]!r}")
