"""Content codings undone in front of services that read none, and what a head says of a body that has changed."""

import random
import threading
import zlib

from harness.checks import contains, equal, one_of, raises, same_bytes, true, until
from harness.codings import decode, encode
from harness.icap import IcapServer, append, echo, unchanged
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.services import Services
from harness.suite import memcheck
from harness.wire import Truncated, chunked, request

BROKEN = "its body is not coded as its Content-Encoding says"
BREAKS_OFF = "its body ends in the middle of its content coding"
TOO_LARGE = "its body decodes to more than decode_size"
TOO_MUCH = "its body decodes to more than decode_ratio times its size"
ABOUT_BYTES = [("ETag", '"of-the-origin"'), ("Content-MD5", "bWQ1"), ("Digest", "md5=bWQ1"),
               ("Content-Digest", "sha-256=:YWJj:"), ("Repr-Digest", "sha-256=:YWJj:"), ("Accept-Ranges", "bytes")]


class Coded:
    """An origin that serves what it is given: (fields, body) for each path."""

    def __init__(self, lab, pages=None):
        self.pages = dict(pages or {})
        self.server = RawOrigin(lab, self._answer)

    def add(self, path, body, *fields, coding="gzip", status=b"200 OK", length=True):
        self.pages[path] = ([("Content-Encoding", coding)] * bool(coding) + list(fields), body, status, length)

    def _answer(self, connection, seen):
        fields, body, status, length = self.pages[seen.target]
        lines = [f"{name}: {value}\r\n" for name, value in fields]
        lines.append(f"Content-Length: {len(body)}\r\n" if length else "Transfer-Encoding: chunked\r\n")
        connection.send(b"HTTP/1.1 " + status + b"\r\n" + "".join(lines).encode() + b"\r\n")
        if seen.method != "HEAD" and status[:3] != b"204":
            connection.send(body if length else chunked(*[body[i:i + 700] for i in range(0, len(body), 700)]))

    def url(self, path):
        return self.server.url(path)


def start(lab, *behaviours, decode=True, bypass=True, **options):
    """An origin, a service for each behaviour, and a proxy; `decode` and `bypass` are of all, or one for each."""
    each = [(value if isinstance(value, list) else [value] * len(behaviours)) for value in (decode, bypass)]
    icaps = [IcapServer(lab, behave, preview=options.pop("server_preview", 1024)) for behave in behaviours]
    services = [Service(f"s{i}", icap.uri(), decode=each[0][i], bypass=each[1][i], **options)
                for i, icap in enumerate(icaps)]
    return Coded(lab), icaps, Retort(lab, services=services)


def reads_all(_icap, transaction):
    transaction.finish_body()
    transaction.send_204()


def streams(_icap, transaction):
    """Answers with the whole message, each piece as it comes."""
    transaction.send_100()
    transaction.send_head(transaction.response_head())
    transaction.send(chunked(transaction.preview, last=b""))
    transaction.connection._chunks(transaction.request, lambda piece: transaction.send(chunked(piece, last=b"")))
    transaction.send(b"0\r\n\r\n")


def verdicts(proxy, path):
    return [(v["verdict"], v.get("error")) for v in proxy.entries(path)[-1]["icap"]]


def zeros(size):
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece, out = bytes(1 << 20), []
    for _ in range(size >> 20):
        out.append(stream.compress(piece))
    return b"".join(out) + stream.flush()


# What services see, and clients get.

def test_every_coding(lab):
    origin, (icap,), proxy = start(lab, append(b"!"))
    ways = [("gzip", ["gzip"]), ("x-gzip", ["x-gzip"]), ("GZip", ["gzip"]), ("deflate", ["deflate"]),
            ("deflate", ["raw-deflate"]), ("br", ["br"]), ("zstd", ["zstd"]), ("identity, gzip", ["gzip"]),
            ("gzip, br", ["gzip", "br"]), ("zstd,gzip,deflate , br", ["zstd", "gzip", "deflate", "br"])]
    for field, codings in ways:
        for size in (1, 1023, 1024, 1025, 5000, 300000):
            coded = pattern(size)
            for coding in codings:
                coded = encode(coding, coded)
            origin.add("/page", coded, coding=field, length=size % 2 == 0)
            answer = proxy.get(origin.url("/page"))
            same_bytes(icap.transactions[-1].body, pattern(size), f"{field}, {size}: what the service saw")
            equal(icap.transactions[-1].http_response.header("Content-Encoding"), None, f"{field}: what the service was told")
            same_bytes(answer.body, pattern(size) + b"!", f"{field}, {size}: what the client got")
            equal(answer.header("Content-Encoding"), None, f"{field}: what the client was told")
    equal(proxy.counter("adapt_decoded"), 6 * len(ways), "decoded")


def test_several_lines_are_one_list(lab):
    origin, _, proxy = start(lab, append(b"!"))
    origin.add("/page", encode("br", encode("gzip", pattern(3000))), ("Content-Encoding", "br"))
    same_bytes(proxy.get(origin.url("/page")).body, pattern(3000) + b"!", "body")


def test_the_original_when_nobody_changes_it(lab):
    """Byte for byte, with its own head; whether the service decides on the preview or on all of it."""
    for behave in ([unchanged], [reads_all], [reads_all, unchanged], [unchanged, reads_all, reads_all]):
        origin, icaps, proxy = start(lab, *behave, keep="8KB")
        for size in (1, 1024, 5000, 2000000):
            for length in (True, False):
                coded = encode("gzip", pattern(size))
                origin.add("/page", coded, *ABOUT_BYTES, ("Vary", "Accept-Encoding"), length=length)
                answer = proxy.get(origin.url("/page"))
                same_bytes(answer.body, coded, f"{size}: the coded bytes")
                for name, value in ABOUT_BYTES + [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]:
                    equal(answer.header(name), value, name)
                if length:
                    equal(answer.header("Content-Length"), str(len(coded)), "Content-Length")
                for icap in icaps:
                    seen = icap.transactions[-1]
                    same_bytes(seen.body, pattern(size)[:len(seen.body)], "what the service saw")
        equal(proxy.counter("adapt_decode_restored"), 8, "restored")


@memcheck
def test_the_original_is_past_what_is_kept(lab):
    """Then what there is goes on, and its head is true of it."""
    body = random.Random(1).randbytes(65536)
    origin, _, proxy = start(lab, reads_all, keep="64KB", keep_on_disk="0KB", preview="1KB")
    origin.add("/page", encode("gzip", body), *ABOUT_BYTES)
    answer = proxy.get(origin.url("/page"))
    same_bytes(answer.body, body, "body")
    equal(answer.header("Content-Encoding"), None, "Content-Encoding")
    equal(answer.header("ETag"), 'W/"of-the-origin"', "ETag")
    equal(answer.header("Repr-Digest"), None, "Repr-Digest")


def test_the_head_is_put_right(lab):
    """Decoded or not: what the head says of the origin's bytes is not said of others."""
    origin, (icap,), proxy = start(lab, append(b"!"))
    plain, _, other = start(lab, append(b"!"), decode=False)
    fields = ABOUT_BYTES + [("Warning", '199 - "old"'), ("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT"),
                            ("Content-Type", "text/plain")]
    for vary, after in (("Accept-Encoding", None), ("Cookie,accept-encoding,Origin", "Cookie, Origin"), ("Cookie", "Cookie")):
        origin.add("/" + vary, encode("gzip", pattern(5000)), *fields, ("Vary", vary))
        answer = proxy.get(origin.url("/" + vary))
        equal(answer.header("Vary"), after, "Vary: nothing is chosen by Accept-Encoding any more")
    plain.add("/page", pattern(5000), *fields, ("Vary", "Accept-Encoding"), coding=None)
    for head in (answer, icap.transactions[-1].http_response, other.get(plain.url("/page"))):
        for name in ("Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "Accept-Ranges", "Content-Encoding"):
            equal(head.header(name), None, name)
        one_of(head.header("Content-Length"), [None, "5001"], "Content-Length")
        equal(head.header("ETag"), 'W/"of-the-origin"', "ETag")
        equal(head.header("Warning"), '199 - "old"', "Warning passes, and none is added (RFC 9111 5.5)")
        equal(head.header("Last-Modified"), "Sat, 21 Nov 2026 10:00:00 GMT", "Last-Modified")
    equal(answer.status, 200, "status")


def test_what_services_write_is_theirs(lab):
    drop = ("content-length", "etag", "repr-digest", "digest", "content-digest", "content-md5")
    own = [("ETag", '"of-the-service"'), ("Repr-Digest", "sha-256=:eHl6:"), ("Content-Encoding", "x-own"), ("Vary", "Cookie")]

    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(transaction.response_head(drop=drop, add=own), b"other")
    for decoded in (True, False):
        origin, _, proxy = start(lab, behave, decode=decoded)
        origin.add("/page", encode("gzip", pattern(5000)) if decoded else pattern(5000), *ABOUT_BYTES,
                   coding="gzip" if decoded else None)
        answer = proxy.get(origin.url("/page"))
        equal(answer.header("ETag"), '"of-the-service"', "ETag")
        equal(answer.header("Repr-Digest"), "sha-256=:eHl6:", "Repr-Digest")
        equal(answer.header("Digest"), None, "Digest")
        equal(answer.header("Vary"), "Cookie, Accept-Encoding", "a coding of the service depends on what the client accepts")


def test_the_first_bytes_are_there_before_the_last_were_sent(lab):
    """Toward the service, through it, and to the client."""
    seen = threading.Event()
    body = pattern(100000)

    def answer(connection, _seen):
        stream = zlib.compressobj(6, zlib.DEFLATED, 31)
        first = stream.compress(body[:50000]) + stream.flush(zlib.Z_SYNC_FLUSH)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(first, last=b""))
        seen.wait(20 * lab.patience)
        connection.send(chunked(stream.compress(body[50000:]) + stream.flush()))
    _, _, proxy = start(lab, streams)
    origin = RawOrigin(lab, answer)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/")))
        got = []

        def sink(piece):
            got.append(piece)
            if sum(map(len, got)) >= 50000:
                seen.set()
        wire.response(sink=sink)
    true(seen.is_set(), "the first half came while the origin still had the second")
    same_bytes(b"".join(got), body, "body")


# What is left as it is.

def test_what_is_not_decoded(lab):
    origin, (icap,), proxy = start(lab, append(b"!"))
    coded = encode("gzip", pattern(3000))
    cases = [("/response", coded, [("Cache-Control", "max-age=0, no-transform")], "gzip", None),
             ("/request", coded, [], "gzip", {"Cache-Control": "no-transform"}),
             ("/unknown", pattern(3000), [], "x-own", None), ("/within", pattern(3000), [], "x-own, gzip", None),
             ("/outside", pattern(3000), [], "gzip, x-own", None), ("/many", coded, [], "gzip, gzip, gzip, gzip, gzip", None)]
    for path, body, fields, coding, headers in cases:
        origin.add(path, body, *fields, coding=coding)
        answer = proxy.get(origin.url(path), headers)
        same_bytes(icap.transactions[-1].body, body, f"{path}: what the service saw")
        equal(icap.transactions[-1].http_response.header("Content-Encoding"), coding, f"{path}: what it was told")
        same_bytes(answer.body, body + b"!", f"{path}: body")
    equal((proxy.counter("adapt_decoded"), proxy.counter("adapt_decode_unknown")), (0, 4), "decoded, unknown")


def test_messages_without_a_whole_body(lab):
    """206, 304 and empty bodies."""
    origin, (icap,), proxy = start(lab, append(b"!"))
    coded = encode("gzip", pattern(3000))
    origin.add("/part", coded[:100], ("Content-Range", f"bytes 0-99/{len(coded)}"), status=b"206 Partial Content")
    part = proxy.get(origin.url("/part"), {"Range": "bytes=0-99"})
    same_bytes(part.body, coded[:100], "a part of coded bytes")
    equal((part.status, part.header("Content-Encoding"), icap.count), (206, "gzip", 0), "a part")
    origin.add("/none", b"", status=b"204 No Content")
    equal(proxy.get(origin.url("/none")).status, 204, "status")
    for length in (True, False):
        origin.add("/empty", b"", length=length)
        same_bytes(proxy.get(origin.url("/empty")).body, b"!", "an empty body")
    equal(proxy.counter("adapt_decoded"), 1, "decoded")


def test_a_head_says_nothing_untrue(lab):
    """Whether the services will change a body is known only when there is one: what they would make untrue is left out."""
    about = ABOUT_BYTES + [("Vary", "Accept-Encoding"), ("Cache-Control", "max-age=0")]
    for point in ("respmod_precache", "respmod_postcache"):
        origin, _, proxy = start(lab, unchanged, append(b"!"), decode=[False, True], point=point)
        origin.add("/page", encode("gzip", pattern(3000)), *about)
        origin.add("/own", pattern(3000), *about, coding="x-own")
        origin.add("/kept", encode("gzip", pattern(3000)), *about, ("Cache-Control", "no-transform"))
        for path, coding in (("/page", None), ("/own", "x-own"), ("/kept", "gzip")):
            got, head = proxy.get(origin.url(path)), proxy.fetch("HEAD", origin.url(path))
            for name, _ in ABOUT_BYTES + [("Content-Encoding", None)]:
                equal(head.header(name), got.header(name), f"{name} of HEAD {path} at {point}")
            equal((head.header("Content-Encoding"), head.header("Content-Length")), (coding, None), f"{path} at {point}")
            equal(head.header("Vary"), "Accept-Encoding", "Vary")
        etag = 'W/"of-the-origin"' if point == "respmod_precache" else None
        equal(head.header("ETag"), etag, "ETag")
    # Services that do not want the response have nothing to say of it.
    origin, (icap,), proxy = start(lab, append(b"!"))
    proxy.write_config(proxy.text(url_classes={"pages": {"content_type": "text/html"}}, adapt={"pages": ["s0"]}))
    equal(proxy.reload().status, 200, "reload")
    coded = encode("gzip", pattern(3000))
    origin.add("/page", coded, *ABOUT_BYTES, ("Content-Type", "text/plain"))
    head = proxy.fetch("HEAD", origin.url("/page"))
    for name, value in ABOUT_BYTES + [("Content-Encoding", "gzip"), ("Content-Length", str(len(coded)))]:
        equal(head.header(name), value, name)
    equal(icap.count, 0, "ICAP transactions")


@memcheck
def test_members_and_what_follows_them(lab):
    origin, _, proxy = start(lab, append(b"!"))
    gzips = [encode("gzip", pattern(2000)), encode("gzip", b""), encode("gzip", pattern(70000, 2000))]
    zstds = [encode("zstd", pattern(2000)), b"\x50\x2a\x4d\x18\x05\0\0\0skips", encode("zstd", pattern(70000, 2000))]
    for coding, members in (("gzip", gzips), ("zstd", zstds)):
        for behind in (b"", b"\0" * 300, b"garbage", b"\x1f"):
            origin.add("/page", b"".join(members) + behind, coding=coding)
            same_bytes(proxy.get(origin.url("/page")).body, pattern(72000) + b"!", f"{coding} with {behind[:9]!r} behind it")
    for coding in ("deflate", "br"):
        origin.add("/page", encode(coding, pattern(72000)) + b"garbage", coding=coding)
        same_bytes(proxy.get(origin.url("/page")).body, pattern(72000) + b"!", f"{coding} with garbage behind it")


def test_services_in_front_see_the_coded_body(lab):
    """It is decoded in front of the first that wants it."""
    coded = encode("gzip", pattern(30000))
    origin, icaps, proxy = start(lab, reads_all, reads_all, reads_all, decode=[False, True, False])
    origin.add("/page", coded, *ABOUT_BYTES)
    answer = proxy.get(origin.url("/page"))
    same_bytes(answer.body, coded, "body")
    for icap, body in zip(icaps, (coded, pattern(30000), pattern(30000))):
        same_bytes(icap.transactions[0].body, body, "what a service saw")
    origin, icaps, proxy = start(lab, echo, reads_all, decode=[False, True])
    origin.add("/page", coded, *ABOUT_BYTES)
    answer = proxy.get(origin.url("/page"))
    same_bytes(answer.body, coded, "what the first made, which is the same")
    equal(answer.header("ETag"), 'W/"of-the-origin"', "the first may have changed it")
    equal(answer.header("Content-Encoding"), "gzip", "Content-Encoding")


# What can't be decoded.

def damaged(size=300000):
    """(name, body, error)"""
    whole = encode("gzip", pattern(size))
    middle = len(whole) // 2
    return [("never", pattern(size), BROKEN), ("sum", whole[:-8] + b"\0" * 8, BROKEN),
            ("middle", whole[:middle] + bytes(60) + whole[middle + 60:], BROKEN),
            ("short", whole[:middle], BREAKS_OFF), ("second", whole + whole[:20], BREAKS_OFF)]


def test_damaged_bodies(lab):
    """As if the service had failed: the original with bypass, which is not stored; an error without."""
    for behaviours in ([append(b"!")], [reads_all, append(b"!")], [append(b"!"), append(b"!")]):
        for bypass in (True, False):
            origin, _, proxy = start(lab, *behaviours, bypass=bypass)
            for name, body, error in damaged():
                origin.add("/" + name, body, *ABOUT_BYTES, ("Cache-Control", "max-age=600"))
                answer = proxy.get(origin.url("/" + name))
                if not bypass:
                    equal(answer.status, 502, f"{name}: status")
                    contains(answer.text(), error, f"{name}: page")
                    continue
                same_bytes(answer.body, body, f"{name}: the original")
                equal(answer.header("ETag"), '"of-the-origin"', f"{name}: ETag")
                equal(answer.header("Content-Encoding"), "gzip", f"{name}: Content-Encoding")
                proxy.get(origin.url("/" + name))
            for name, _, error in damaged():
                if bypass:
                    equal(verdicts(proxy, "/" + name), [("BYPASSED", error)] * len(behaviours), f"{name}: verdicts")
                    equal(proxy.results("/" + name, 2), ["MISS", "MISS"], f"{name}: not stored")
                else:
                    equal(verdicts(proxy, "/" + name)[-1], ("FAILED", error), f"{name}: verdict")
            equal(proxy.counter("adapt_decode_broken"), len(damaged()) * (2 if bypass else 1), "broken")


def test_a_later_service_has_the_original(lab):
    """One that wants no decoding is asked about a body that can't be decoded."""
    origin, icaps, proxy = start(lab, reads_all, reads_all, append(b"!"), decode=[True, False, True])
    body = encode("gzip", pattern(300000))[:-8] + b"\0" * 8
    origin.add("/page", body)
    same_bytes(proxy.get(origin.url("/page")).body, body, "body")
    same_bytes(icaps[1].transactions[-1].body, body, "what the second saw last")
    equal([v for v, _ in verdicts(proxy, "/page")], ["BYPASSED", "UNMODIFIED", "BYPASSED"], "verdicts")


@memcheck
def test_a_first_service_that_dies_when_another_was_passed_over(lab):
    """The chain goes back past the one that could not have the body decoded."""
    body = encode("gzip", pattern(300000))[:-8] + b"\0" * 8
    asked = threading.Event()

    def dies_inside(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(transaction.response_head())
        transaction.send(chunked(body, last=b""))
        asked.wait(20)
        return True

    def third(icap, transaction):
        asked.set()
        append(b"!")(icap, transaction)
    origin, _, proxy = start(lab, dies_inside, reads_all, third, decode=[False, True, False])
    origin.add("/page", body)
    same_bytes(proxy.get(origin.url("/page")).body, body + b"!", "body")
    equal([v for v, _ in verdicts(proxy, "/page")], ["BYPASSED", "BYPASSED", "MODIFIED"], "verdicts")


def test_more_comes_when_the_decoder_has_given_up(lab):
    """Of the original, which the client is slow to take: nobody who read it before is told."""
    whole = encode("gzip", random.Random(1).randbytes(9000000))
    body, more = whole[:8000000] + bytes(70000) + whole[8070000:], threading.Event()

    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.send(chunked(body[:300], last=b""))
        asked.wait(20)
        connection.send(chunked(body[300:8500000], last=b""))
        more.wait(20)
        connection.send(chunked(body[8500000:]))

    def leaves_a_preview(_icap, transaction):
        asked.set()
        transaction.send_204()
    asked = threading.Event()
    _, _, proxy = start(lab, leaves_a_preview, reads_all, decode=[False, True], server_preview=200)
    origin = RawOrigin(lab, answer)
    with proxy.wire(receive_buffer=4096) as wire:
        wire.send(request("GET", origin.url("/page")))
        until(lambda: proxy.counter("icap_bypassed") >= 1, 20 * lab.patience, "the body is not decoded")
        more.set()
        same_bytes(wire.response().body, body, "the original")


def test_damage_behind_what_the_client_has(lab):
    """The connection breaks off."""
    coded = encode("gzip", pattern(200000))
    for bypass in (True, False):
        seen = threading.Event()

        def answer(connection, _seen, seen=seen):
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
                            + chunked(coded[:100000], last=b""))
            seen.wait(20 * lab.patience)
            connection.send(chunked(b"\0" * 100000))
        _, _, proxy = start(lab, streams, bypass=bypass)
        got = []
        with proxy.wire() as wire:
            wire.send(request("GET", RawOrigin(lab, answer).url("/")))
            raises(Truncated, lambda: wire.response(sink=lambda piece: (got.append(piece), seen.set())), "a body that breaks off")
        body = b"".join(got)
        same_bytes(body, pattern(len(body)), "what came of it")


def test_the_coded_body_breaks_off(lab):
    """That is not a matter of its coding: nobody is given the half."""
    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 100000\r\n\r\n"
                        + encode("gzip", random.Random(1).randbytes(80000))[:50000])
        return True
    for bypass in (True, False):
        _, _, proxy = start(lab, append(b"!"), bypass=bypass)
        equal(proxy.get(RawOrigin(lab, answer).url("/")).status, 502, "status")
        equal(proxy.counter("adapt_decode_broken"), 0, "broken")


def test_service_that_fails_on_a_decoded_body(lab):
    """Those behind it go on with the decoded one; the original comes out when they change nothing."""
    def dies(_icap, transaction):
        transaction.finish_body()
        return True

    def dies_in_its_body(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(transaction.response_head(drop=("content-length", "etag")))
        transaction.send(b"5\r\nhello\r\n")
        return True
    coded = encode("gzip", pattern(30000))
    for first in (dies, dies_in_its_body):
        for second, expected in ((reads_all, coded), (append(b"!"), pattern(30000) + b"!")):
            origin, icaps, proxy = start(lab, first, second)
            origin.add("/page", coded, *ABOUT_BYTES)
            answer = proxy.get(origin.url("/page"))
            same_bytes(answer.body, expected, "body")
            equal(answer.header("ETag"), '"of-the-origin"' if expected is coded else 'W/"of-the-origin"', "ETag")
            same_bytes(icaps[1].transactions[-1].body, pattern(30000), "what the second saw")


def test_service_in_front_that_dies_while_others_decode_its_body(lab):
    """The chain goes back to before it, and what it was that is decoded with it."""
    coded = encode("gzip", pattern(30000))

    def dies_late(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(transaction.response_head())
        transaction.send(chunked(encode("gzip", pattern(50000))[:9000], last=b""))
        return True
    origin, icaps, proxy = start(lab, dies_late, append(b"!"), decode=[False, True])
    origin.add("/page", coded, *ABOUT_BYTES)
    same_bytes(proxy.get(origin.url("/page")).body, pattern(30000) + b"!", "body")
    same_bytes(icaps[1].transactions[-1].body, pattern(30000), "what the second saw")
    equal([v for v, _ in verdicts(proxy, "/page")], ["BYPASSED", "MODIFIED"], "verdicts")


# Bombs.

def test_bombs(lab):
    """A limit is a failure of the service, at the byte where it is passed."""
    bomb, nested = zeros(40 << 20), encode("gzip", zeros(300 << 20))
    many = encode("br", encode("gzip", b"") * 2000000)
    random_bytes = encode("gzip", random.Random(1).randbytes(3 << 20))
    ratio = [("ratio", "gzip", bomb, TOO_MUCH), ("nested", "gzip, gzip", nested, TOO_MUCH), ("many", "gzip, br", many, TOO_MUCH)]
    for bypass, size, cases in ((True, 64, ratio), (False, 64, ratio), (True, 2, [("size", "gzip", random_bytes, TOO_LARGE)]),
                                (False, 2, [("size", "gzip", random_bytes, TOO_LARGE)])):
        origin, (icap,), proxy = start(lab, append(b"!"), bypass=bypass, decode_size=f"{size}MB", decode_ratio=500)
        for name, coding, body, error in cases:
            origin.add("/" + name, body, coding=coding)
            answer = proxy.get(origin.url("/" + name))
            equal(verdicts(proxy, "/" + name), [("BYPASSED" if bypass else "FAILED", error)], name)
            if bypass:
                same_bytes(answer.body, body, f"{name}: the original")
            else:
                equal(answer.status, 502, f"{name}: status")
            contains(proxy.process.log(), error, "log")
        equal(proxy.counter("adapt_decode_limited"), len(cases), "limited")
        true(all(len(seen.body) <= size << 20 for seen in icap.transactions), "what the service saw is within the limit")


def test_no_bombs(lab):
    """What is within the limits, or free of them."""
    origin, _, proxy = start(lab, append(b"!"), decode_ratio=0, decode_size="5MB")
    origin.add("/zeros", zeros(5 << 20))
    same_bytes(proxy.get(origin.url("/zeros")).body, bytes(5 << 20) + b"!", "no ratio")
    origin, _, proxy = start(lab, append(b"!"))
    origin.add("/small", encode("br", bytes(1 << 20)), coding="br")
    same_bytes(proxy.get(origin.url("/small")).body, bytes(1 << 20) + b"!", "a small body")


# With the cache, and with real services.

def test_an_adapted_body_is_confirmed_by_its_origin(lab):
    """A 304 is about the origin's bytes: what the stored ones are called stays."""
    coded = encode("gzip", pattern(5000))
    asked = []

    def answer(connection, seen):
        fields = "".join(f"{n}: {v}\r\n" for n, v in ABOUT_BYTES) + "Content-Encoding: gzip\r\nCache-Control: max-age=0\r\n"
        asked.append(seen.header("If-None-Match"))
        if asked[-1]:
            connection.send(b"HTTP/1.1 304 Not Modified\r\n" + fields.encode() + b"\r\n")
        else:
            connection.send(b"HTTP/1.1 200 OK\r\n" + fields.encode() + b"Content-Length: %d\r\n\r\n" % len(coded) + coded)
    _, icaps, proxy = start(lab, append(b"!"))
    origin = RawOrigin(lab, answer)
    for _ in range(3):
        response = proxy.get(origin.url("/"))
        same_bytes(response.body, pattern(5000) + b"!", "body")
        equal(response.header("ETag"), 'W/"of-the-origin"', "ETag")
        for name in ("Content-Encoding", "Repr-Digest", "Content-Digest", "Digest", "Content-MD5"):
            equal(response.header(name), None, name)
    equal(asked, [None, 'W/"of-the-origin"', 'W/"of-the-origin"'], "If-None-Match")
    equal((icaps[0].count, proxy.results("/", 3)), (1, ["MISS", "REVALIDATED", "REVALIDATED"]), "transactions, results")


@memcheck
def test_a_coded_body_stays_for_those_who_accept_it(lab):
    """What the origin says in a 304 of its own choice takes nothing away from that of the service."""
    def compress(_icap, transaction):
        if "gzip" not in (transaction.http_request.header("Accept-Encoding") or ""):
            return unchanged(_icap, transaction)
        body = encode("gzip", transaction.finish_body())
        return transaction.send_200(transaction.response_head(add=[("Content-Encoding", "gzip")]), body)

    def answer(connection, seen):
        fields = b'ETag: "e"\r\nCache-Control: max-age=0\r\nVary: Origin\r\n'
        if seen.header("If-None-Match"):
            connection.send(b"HTTP/1.1 304 Not Modified\r\n" + fields + b"\r\n")
        else:
            connection.send(b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: 5000\r\n\r\n" + pattern(5000))
    _, _, proxy = start(lab, compress)
    origin = RawOrigin(lab, answer)
    for _ in range(3):
        response = proxy.get(origin.url("/"), {"Accept-Encoding": "gzip"})
        same_bytes(decode(response.header("Content-Encoding"), response.body), pattern(5000), "body")
        equal((response.header("Content-Encoding"), response.header("Vary")), ("gzip", "Origin, Accept-Encoding"), "coding, Vary")
    response = proxy.get(origin.url("/"))
    equal(response.header("Content-Encoding"), None, "for one who accepts none")
    same_bytes(response.body, pattern(5000), "body")
    equal(proxy.results("/", 4), ["MISS", "REVALIDATED", "REVALIDATED", "MISS"], "results")


def test_inject_then_compress_again(lab):
    """The whole way with c-icap: decoded, a text put in, and coded as each client likes; stored once for each."""
    services = Services(lab, names=("inject", "gzip"))
    chain = services.for_proxy(bypass=False)
    chain[0].options["decode"] = True
    proxy = Retort(lab, services=chain)
    page = b"<!doctype html><html><head><title>t</title></head><body>" + b"<p>words and words</p>\n" * 3000 + b"</body></html>"
    text = b'<meta name="retort-test" content="127.0.0.1">'
    origin = Coded(lab)
    origin.add("/page", encode("gzip", page), ("Content-Type", "text/html"), ("Vary", "Accept-Encoding"),
               ("ETag", '"e"'), ("Cache-Control", "max-age=600"), length=False)
    origin.add("/data", encode("gzip", bytes(range(256)) * 40), ("Content-Type", "application/octet-stream"), ("ETag", '"e"'))
    for accept, coding in (("gzip", "gzip"), ("br", "br"), ("zstd", "zstd"), ("identity", None)):
        for result in ("MISS", "HIT"):
            before = len(proxy.log_lines())
            answer = proxy.get(origin.url("/page"), {"Accept-Encoding": accept})
            equal(answer.header("Content-Encoding"), coding, "Content-Encoding")
            body = decode(coding, answer.body)
            same_bytes(body, page.replace(b"</head>", text + b"</head>"), f"{accept}: the page with its text")
            equal(answer.header("ETag"), 'W/"e"', "ETag")
            equal(answer.header("Vary"), "Accept-Encoding", "Vary")
            entry = proxy.log(before + 1)[before]
            equal(entry["result"], result, f"{accept}: result")
            if result == "MISS":
                equal([v["verdict"] for v in entry["icap"]], ["MODIFIED", "MODIFIED"], "verdicts")
    answer = proxy.get(origin.url("/data"), {"Accept-Encoding": "gzip"})
    same_bytes(answer.body, origin.pages["/data"][1], "what neither is for")
    equal((answer.header("Content-Encoding"), answer.header("ETag")), ("gzip", '"e"'), "its head")


def test_behind_the_cache(lab):
    """What is stored is coded; who gets another text gets it decoded, who does not gets it as it is stored."""
    coded = encode("gzip", pattern(30000))
    origin, _, proxy = start(lab, append(b"!"), point="respmod_postcache")
    origin.add("/page", coded, *ABOUT_BYTES, ("Cache-Control", "max-age=600"))
    for _ in range(2):
        answer = proxy.get(origin.url("/page"))
        same_bytes(answer.body, pattern(30000) + b"!", "body")
        for name in ("ETag", "Repr-Digest", "Content-Encoding"):
            equal(answer.header(name), None, name)
    small = random.Random(1).randbytes(1024)  # larger coded than decoded, and then than what is kept
    for keep, sent, expected, coding in (("256KB", coded, coded, "gzip"), ("1KB", encode("gzip", small), small, None)):
        origin, (icap,), proxy = start(lab, reads_all, point="respmod_postcache", preview="1KB", keep=keep, keep_on_disk="0KB")
        for cached in ("max-age=600", "no-store"):
            origin.add("/" + cached, sent, *ABOUT_BYTES, ("Cache-Control", cached))
            for _ in range(2):
                answer = proxy.get(origin.url("/" + cached))
                same_bytes(answer.body, expected, f"{cached}: body")
                equal(answer.header("Content-Encoding"), coding, f"{cached}: Content-Encoding")
        equal(icap.count, 4, "transactions")


def test_decode_is_for_responses(lab):
    """A service of requests that is to see no codings is a mistake."""
    proxy = Retort(lab)
    status, said = proxy.check_config(
        'listen "127.0.0.1:1" { mode = forward }\n'
        'icap_service s { uri = "icap://127.0.0.1/x" point = reqmod_precache decode = true }\n')
    equal(status != 0, True, "refused")
    contains(said, "decode works only for responses", "message")
