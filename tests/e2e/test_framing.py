"""Messages that could be read in two ways, and messages that can not be read at all.

Every request of the tables goes through the proxy to an origin that keeps each byte it gets. It must
end as exactly the requests that the sender meant, or as an error and a closed connection; never as
one request more.
"""

import re

from harness.checks import contains, equal, lacks, one_of, true
from harness.raw_origin import REQUEST_LINE, ByteOrigin, RawOrigin
from harness.retort import Retort
from harness.suite import memcheck, seconds
from harness.wire import Silence, Truncated, Wire

# The second request that an attacker would hide in the first one's body.
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: hidden\r\nX-Hidden: "

LENGTH = [
    ("two equal lengths", b"Content-Length: 5\r\nContent-Length: 5\r\n"),
    ("two lengths", b"Content-Length: 5\r\nContent-Length: 6\r\n"),
    ("a list of equal lengths", b"Content-Length: 5, 5\r\n"),
    ("a list of lengths", b"Content-Length: 5, 6\r\n"),
    ("plus sign", b"Content-Length: +5\r\n"),
    ("minus sign", b"Content-Length: -5\r\n"),
    ("hexadecimal", b"Content-Length: 0x5\r\n"),
    ("spaces inside", b"Content-Length: 5 5\r\n"),
    ("fraction", b"Content-Length: 5.0\r\n"),
    ("empty", b"Content-Length: \r\n"),
    ("letters", b"Content-Length: five\r\n"),
    ("too large for 64 bits", b"Content-Length: 18446744073709551621\r\n"),
    ("largest of 63 bits and one", b"Content-Length: 9223372036854775808\r\n"),
    ("space before the colon", b"Content-Length : 5\r\n"),
    ("tab before the colon", b"Content-Length\t: 5\r\n"),
    ("space before the name", b"X: y\r\n Content-Length: 5\r\n"),
    ("vertical tab", b"Content-Length: \x0b5\r\n"),
    ("form feed", b"Content-Length: 5\x0c\r\n"),
    ("NUL behind", b"Content-Length: 5\0\r\n"),
    ("semicolon", b"Content-Length: 5;x\r\n"),
    ("underscored", b"Content-Length: 1_0\r\n"),
]

CODING = [
    ("with a length", b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
    ("with a length before", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
    ("with a zero length", b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
    ("with a bad length", b"Content-Length: x\r\nTransfer-Encoding: chunked\r\n"),
    ("twice in one field", b"Transfer-Encoding: chunked, chunked\r\n"),
    ("twice in two fields", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    ("identity", b"Transfer-Encoding: identity\r\n"),
    ("identity behind", b"Transfer-Encoding: chunked, identity\r\n"),
    ("identity in a field behind", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
    ("unknown", b"Transfer-Encoding: x\r\n"),
    ("unknown behind", b"Transfer-Encoding: chunked, x\r\n"),
    ("prefix x", b"Transfer-Encoding: xchunked\r\n"),
    ("suffix x", b"Transfer-Encoding: chunkedx\r\n"),
    ("quoted", b'Transfer-Encoding: "chunked"\r\n'),
    ("space before the colon", b"Transfer-Encoding : chunked\r\n"),
    ("tab before the colon", b"Transfer-Encoding\t: chunked\r\n"),
    ("line folded", b"Transfer-Encoding:\r\n chunked\r\n"),
    ("line folded with a tab", b"Transfer-Encoding:\r\n\tchunked\r\n"),
    ("folded field before", b"X: y\r\n Transfer-Encoding: chunked\r\n"),
    ("bare LF before", b"X: y\nTransfer-Encoding: chunked\r\n"),
    ("bare LF behind", b"Transfer-Encoding: chunked\nX: y\r\n"),
    ("bare CR before", b"X: y\rTransfer-Encoding: chunked\r\n"),
    ("bare CR inside", b"Transfer-Encoding: chun\rked\r\n"),
    ("NUL before", b"Transfer-Encoding: \0chunked\r\n"),
    ("NUL behind", b"Transfer-Encoding: chunked\0\r\n"),
    ("vertical tab", b"Transfer-Encoding: \x0bchunked\r\n"),
    ("empty", b"Transfer-Encoding: \r\n"),
    ("comma", b"Transfer-Encoding: ,\r\n"),
    ("comma behind", b"Transfer-Encoding: chunked,\r\n"),
    ("comma before", b"Transfer-Encoding: , chunked\r\n"),
    ("parameter", b"Transfer-Encoding: chunked;a=b\r\n"),
    ("underscore in the name", b"Transfer_Encoding: chunked\r\n"),
    ("named in Connection", b"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n"),
    ("gzip, chunked", b"Transfer-Encoding: gzip, chunked\r\n"),
    ("empty field name", b": chunked\r\nTransfer-Encoding: chunked\r\n"),
]

# What may be accepted as one request, too; all else must be refused.
TOLERABLE = {"two equal lengths", "a list of equal lengths", "underscore in the name", "named in Connection",
             "comma behind", "comma before"}

# Chunked bodies that are not of the grammar. "%s" stands for the origin's authority.
BAD_CHUNKS = [
    ("minus sign", b"-1\r\n"), ("plus sign", b"+5\r\nhello\r\n0\r\n\r\n"), ("0x", b"0x5\r\nhello\r\n0\r\n\r\n"),
    ("overflow", b"10000000000000005\r\nhello\r\n0\r\n\r\n"), ("63 bits and one", b"8000000000000000\r\nhello"),
    ("17 digits", b"00000000000000005\r\nhello\r\n0\r\n\r\n"), ("empty size", b"\r\nhello\r\n0\r\n\r\n"),
    ("space before", b" 5\r\nhello\r\n0\r\n\r\n"), ("bare LF behind the size", b"5\nhello\r\n0\r\n\r\n"),
    ("bare CR behind the size", b"5\rhello\r\n0\r\n\r\n"), ("bare LF behind the data", b"5\r\nhello\n0\r\n\r\n"),
    ("no CRLF behind the data", b"5\r\nhello0\r\n\r\n"), ("data longer than its size", b"5\r\nhellohello\r\n0\r\n\r\n"),
    ("bare LF in an extension", b"5;a\nb\r\nhello\r\n0\r\n\r\n"), ("letters", b"xyz\r\n"),
    ("underscore", b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n"), ("comma", b"5,\r\nhello\r\n0\r\n\r\n"),
    ("bare LF at the end", b"5\r\nhello\r\n0\r\n\n"), ("NUL in an extension", b"5;\0\r\nhello\r\n0\r\n\r\n"),
    ("endless extension", b"5;" + b"a" * 70000),
]

HEADS = [
    ("no version", b"GET http://%s/\r\nHost: h\r\n\r\n", (400, 505)),
    ("HTTP/0.9 line", b"GET http://%s/\r\n\r\n", (400, 505)),
    ("HTTP/2.0", b"GET http://%s/ HTTP/2.0\r\nHost: h\r\n\r\n", (505,)),
    ("HTTP/3", b"GET http://%s/ HTTP/3\r\nHost: h\r\n\r\n", (400, 505)),
    ("lower case version", b"GET http://%s/ http/1.1\r\nHost: h\r\n\r\n", (400, 505)),
    ("two spaces", b"GET  http://%s/ HTTP/1.1\r\nHost: h\r\n\r\n", (400,)),
    ("tab", b"GET\thttp://%s/ HTTP/1.1\r\nHost: h\r\n\r\n", (400,)),
    ("space at the end", b"GET http://%s/ HTTP/1.1 \r\nHost: h\r\n\r\n", (400,)),
    ("space in the target", b"GET http://%s/a b HTTP/1.1\r\nHost: h\r\n\r\n", (400,)),
    ("control byte in the target", b"GET http://%s/a\x01b HTTP/1.1\r\nHost: h\r\n\r\n", (400,)),
    ("no method", b" http://%s/ HTTP/1.1\r\nHost: h\r\n\r\n", (400,)),
    ("method is no token", b"G@T http://%s/ HTTP/1.1\r\nHost: h\r\n\r\n", (400, 501)),
    ("bare LF lines", b"GET http://%s/ HTTP/1.1\nHost: h\n\n", (400,)),
    ("bare CR in the line", b"GET http://%s/ HTTP/1.1\rHost: h\r\n\r\n", (400,)),
    ("NUL in a value", b"GET http://%s/ HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", (400,)),
    ("NUL in the line", b"GET http://%s/\0 HTTP/1.1\r\nHost: h\r\n\r\n", (400,)),
    ("field without a colon", b"GET http://%s/ HTTP/1.1\r\nHost: h\r\nbroken\r\n\r\n", (400,)),
    ("empty field name", b"GET http://%s/ HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", (400,)),
    ("space in a name", b"GET http://%s/ HTTP/1.1\r\nHost: h\r\nX Y: x\r\n\r\n", (400,)),
    ("folded line", b"GET http://%s/ HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", (400,)),
    ("first field folded", b"GET http://%s/ HTTP/1.1\r\n Host: h\r\n\r\n", (400,)),
    ("two Hosts", b"GET http://%s/ HTTP/1.1\r\nHost: h\r\nHost: g\r\n\r\n", (400,)),
    ("no Host", b"GET http://%s/ HTTP/1.1\r\n\r\n", (400,)),
    ("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 100 + b"\r\n\r\n", (400,)),
    ("binary", bytes(range(1, 256)) * 4 + b"\r\n\r\n", (400,)),
]


def exchange(proxy, data, answers=1):
    """Sends bytes, then a request that shows whether the connection is still in step; returns the
    statuses that came back, and whether the connection was closed."""
    statuses = []
    with Wire(proxy.forward, timeout=3 * proxy.lab.patience) as wire:
        try:
            wire.send(data)
            for _ in range(answers):
                statuses.append(wire.response().status)
            return statuses, wire.at_end(0.5)
        except (Truncated, ConnectionError):
            return statuses, True
        except Silence:
            return statuses, False


def check_one_request(origin, proxy, what, head, body, tolerable=TOLERABLE):
    """Either the origin saw one request, the outer one, or the client got an error and a close."""
    origin.received.clear()
    statuses, closed = exchange(proxy, head + body)
    lines = origin.request_lines()
    for line in lines:
        lacks(line, b"/hidden", f"{what}: request lines at the origin {lines}")
    true(len(lines) <= 1, f"{what}: the origin saw {lines}")
    if statuses and statuses[0] >= 400:
        true(closed, f"{what}: refused with {statuses[0]}, but the connection stayed open")
        one_of(statuses[0], (400, 408, 411, 413, 501, 502, 505), f"{what}: status")
    elif statuses:
        contains(tolerable, what.split(": ")[1], f"{what}: {statuses[0]}, what may be accepted")
    else:
        true(closed or not lines, f"{what}: no answer, connection open, origin saw {lines}")
    for raw in origin.received.values():
        check_framing_at_origin(what, raw)


def check_framing_at_origin(what, raw):
    """What the proxy wrote must have one meaning."""
    for match in REQUEST_LINE.finditer(raw):
        end = raw.find(b"\r\n\r\n", match.start())
        head = raw[match.start():end] if end >= 0 else raw[match.start():]
        lengths = re.findall(rb"(?im)^content-length[ \t]*:", head)
        codings = re.findall(rb"(?im)^transfer-encoding[ \t]*:", head)
        true(len(lengths) + len(codings) <= 1, f"{what}: the origin was sent {head!r}")
        lacks(head.replace(b"\r\n", b""), b"\n", f"{what}: head at the origin")
        lacks(head.replace(b"\r\n", b""), b"\r", f"{what}: head at the origin")
        lacks(head, b"\0", f"{what}: head at the origin")


def start(lab):
    return ByteOrigin(lab), Retort(lab, client={"body_timeout": "700ms", "header_timeout": "2s"},
                                   origin={"first_byte_timeout": "2s"})


@memcheck
def test_length_matrix(lab):
    origin, proxy = start(lab)
    for what, fields in LENGTH:
        head = f"POST {origin.url('/outer')} HTTP/1.1\r\nHost: {origin.authority}\r\n".encode() + fields + b"\r\n"
        check_one_request(origin, proxy, f"length: {what}", head, b"12345" + HIDDEN + b"\r\n\r\n")


def test_coding_matrix(lab):
    origin, proxy = start(lab)
    for what, fields in CODING:
        head = f"POST {origin.url('/outer')} HTTP/1.1\r\nHost: {origin.authority}\r\n".encode() + fields + b"\r\n"
        check_one_request(origin, proxy, f"coding: {what}", head, b"0\r\n\r\n" + HIDDEN + b"\r\n\r\n")


def test_coding_matrix_in_http_1_0(lab):
    """RFC 9112 §6.1: Transfer-Encoding in a message of HTTP/1.0 is faulty framing."""
    origin, proxy = start(lab)
    for what, fields in CODING + [("as it would be right in 1.1", b"Transfer-Encoding: chunked\r\n")]:
        head = f"POST {origin.url('/outer')} HTTP/1.0\r\nHost: {origin.authority}\r\n".encode() + fields + b"\r\n"
        check_one_request(origin, proxy, f"1.0 coding: {what}", head, b"0\r\n\r\n" + HIDDEN + b"\r\n\r\n",
                          {"underscore in the name"})


# The matrix: every way to say a length, with every way to say a coding, in either order, and with every
# way to hide one of them from one of two readers. The body has the same end by both readings.
LENGTHS = {
    "none": [], "one": [b"Content-Length: 5"], "two equal": [b"Content-Length: 5", b"Content-Length: 5"],
    "two": [b"Content-Length: 5", b"Content-Length: 50"], "list of equals": [b"Content-Length: 5, 5"],
    "list": [b"Content-Length: 5,50"], "plus": [b"Content-Length: +5"], "minus": [b"Content-Length: -5"],
    "spaced": [b"Content-Length: 5 0"], "empty": [b"Content-Length:"], "empty and one": [b"Content-Length:", b"Content-Length: 5"],
    "hexadecimal": [b"Content-Length: 0x5"], "zero": [b"Content-Length: 0"], "tab inside": [b"Content-Length: 5\t0"],
    "too large": [b"Content-Length: 18446744073709551621"],
}
CODINGS = {
    "none": [], "chunked": [b"Transfer-Encoding: chunked"], "capitals": [b"TRANSFER-ENCODING: CHUNKED"],
    "twice": [b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"], "twice in one": [b"Transfer-Encoding: chunked, chunked"],
    "identity": [b"Transfer-Encoding: identity"], "identity behind": [b"Transfer-Encoding: chunked, identity"],
    "identity apart": [b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"], "gzip": [b"Transfer-Encoding: gzip, chunked"],
    "unknown": [b"Transfer-Encoding: cow"], "x": [b"Transfer-Encoding: xchunked"], "quoted": [b'Transfer-Encoding: "chunked"'],
    "empty": [b"Transfer-Encoding:"], "parameter": [b"Transfer-Encoding: chunked;q=1"], "tabs": [b"Transfer-Encoding:\tchunked\t"],
    "vertical tab": [b"Transfer-Encoding: \x0bchunked"],
}
DISGUISES = {
    "plain": lambda lines: b"".join(line + b"\r\n" for line in lines),
    "folded": lambda lines: b"".join(line.replace(b":", b":\r\n ", 1) + b"\r\n" for line in lines),
    "folded behind another": lambda lines: b"X: y\r\n " + b"\r\n ".join(lines) + b"\r\n",
    "bare LF between": lambda lines: b"X: y\n" + b"\n".join(lines) + b"\r\n",
    "bare LF behind": lambda lines: b"\r\n".join(lines) + b"\n" + b"X: y\r\n",
    "bare CR between": lambda lines: b"X: y\r" + b"\r".join(lines) + b"\r\n",
    "NUL behind": lambda lines: b"".join(line + b"\0\r\n" for line in lines),
    "NUL in the name": lambda lines: b"".join(b"\0" + line + b"\r\n" for line in lines),
    "space before the colon": lambda lines: b"".join(line.replace(b":", b" :", 1) + b"\r\n" for line in lines),
}
# What has one meaning only, and so may be served.
CLEAR = ({(length, "none") for length in ("none", "one", "two equal", "list of equals", "zero")}
         | {("none", coding) for coding in ("chunked", "capitals", "tabs")})


def matrix():
    """(what, is it clear?, lines of the head)"""
    for length, length_lines in LENGTHS.items():
        for coding, coding_lines in CODINGS.items():
            for turn, lines in (("", length_lines + coding_lines), (", coding first", coding_lines + length_lines)):
                if turn and (not length_lines or not coding_lines):
                    continue
                for disguise, put in DISGUISES.items():
                    if lines or disguise == "plain":
                        clear = (length, coding) in CLEAR and disguise == "plain"
                        yield f"length {length}, coding {coding}{turn}, {disguise}", clear, put(lines)


def check_matrix(lab, reverse):
    """Raw bytes to an origin that counts: one request as it was meant, or a refusal and none."""
    origin = ByteOrigin(lab)
    proxy = Retort(lab, client={"body_timeout": "700ms", "header_timeout": "2s"}, reverse={"/": f"http://{origin.authority}/"})
    target = "/outer" if reverse else origin.url("/outer")
    before = f"POST {target} HTTP/1.1\r\nHost: {origin.authority}\r\nConnection: close\r\n".encode()
    cells = served = 0
    for what, clear, lines in matrix():
        origin.received.clear()
        with proxy.wire(reverse=reverse, timeout=5 * lab.patience) as wire:
            wire.send(before + lines + b"\r\n0\r\n\r\n" + HIDDEN + b"\r\n\r\n")
            answer = wire.response()
            true(wire.at_end(5 * lab.patience), f"{what}: a second answer, or an open connection, behind {answer.status}")
        seen = origin.request_lines()
        if clear:
            equal((answer.status, len(seen)), (200, 1), f"{what}: status, requests at the origin")
            true(b"/outer" in seen[0], f"{what}: the origin saw {seen}")
            for raw in list(origin.received.values()):
                check_framing_at_origin(what, raw)
            served += 1
        else:
            one_of(answer.status, (400, 501), f"{what}: status")
            equal(seen, [], f"{what}: requests at the origin")
        cells += 1
    equal(served, len(CLEAR), "cells of one meaning")
    true(cells > 2000, f"{cells} cells")


@seconds(240)
def test_matrix_forward(lab):
    check_matrix(lab, False)


@seconds(240)
def test_matrix_reverse(lab):
    check_matrix(lab, True)


@memcheck
def test_bad_chunks(lab):
    origin, proxy = start(lab)
    for what, body in BAD_CHUNKS:
        head = (f"POST {origin.url('/outer')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                "Transfer-Encoding: chunked\r\n\r\n").encode()
        origin.received.clear()
        statuses, closed = exchange(proxy, head + body + HIDDEN)
        lines = origin.request_lines()
        true(len(lines) <= 1 and b"/hidden" not in b"".join(lines), f"{what}: the origin saw {lines}")
        one_of(statuses[:1], ([], [400], [408], [413], [502]), f"{what}: status")
        true(closed, f"{what}: the connection should be closed")
        for raw in origin.received.values():
            true(not raw.rstrip().endswith(b"\r\n0") and b"\r\n0\r\n\r\n" not in raw,
                 f"{what}: the origin was sent a complete body: {raw!r}")


def test_good_chunks_of_every_form(lab):
    origin = RawOrigin(lab)
    proxy = Retort(lab)
    for body in (b"5\r\nhello\r\n0\r\n\r\n", b"5;a=b\r\nhello\r\n0;c\r\n\r\n", b"000005\r\nhello\r\n000\r\n\r\n",
                 b"5\r\nhello\r\n0\r\nX-Trailer: y\r\n\r\n", b"1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
                 b'5;a="q\\"x"\r\nhello\r\n0\r\n\r\n', b"5 ;a\r\nhello\r\n0\r\n\r\n"):
        head = f"POST {origin.url('/')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n".encode()
        with proxy.wire() as wire:
            wire.send(head + body)
            equal(wire.response().status, 200, f"status for {body!r}")
        equal(origin.requests[-1].body, b"hello", f"body at the origin for {body!r}")


@memcheck
def test_bad_heads(lab):
    origin, proxy = start(lab)
    for what, head, allowed in HEADS:
        origin.received.clear()
        data = head.replace(b"%s", origin.authority.encode())
        statuses, closed = exchange(proxy, data)
        equal(len(statuses), 1, f"{what}: number of answers")
        one_of(statuses[0], allowed, f"{what}: status")
        true(closed, f"{what}: the connection should be closed")
        equal(origin.request_lines(), [], f"{what}: requests at the origin")


def test_error_page_names_the_reason(lab):
    _, proxy = start(lab)
    with proxy.wire() as wire:
        wire.send(b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: h\r\nX Y: z\r\n\r\n")
        response = wire.response()
    equal(response.status, 400, "status")
    equal((response.header("Content-Type") or "").split(";")[0], "text/html" if lab.has_part("pages") else "text/plain", "Content-Type")
    true(len(response.body) > 50, f"page {response.text()!r}")
    equal((response.header("Connection") or "").lower(), "close", "Connection")
    entry = proxy.log(1)[0]
    equal((entry["status"], entry["result"]), (400, "ERROR"), "log entry")


@memcheck
def test_oversized_heads(lab):
    origin, proxy = start(lab)
    cases = [("one field", b"X: " + b"a" * 70000 + b"\r\n"), ("many fields", b"X: y\r\n" * 200),
             ("fields of 64 KB", b"".join(b"X-%d: %s\r\n" % (n, b"a" * 2000) for n in range(40)))]
    for what, fields in cases:
        statuses, closed = exchange(proxy, f"GET {origin.url()} HTTP/1.1\r\nHost: h\r\n".encode() + fields + b"\r\n")
        one_of(statuses, ([431], []), f"{what}: statuses")
        true(closed, f"{what}: the connection should be closed")
    statuses, closed = exchange(proxy, b"GET http://h/" + b"a" * 70000 + b" HTTP/1.1\r\nHost: h\r\n\r\n")
    one_of(statuses, ([414], [431], [400]), "long target: statuses")
    equal(origin.request_lines(), [], "requests at the origin")


def test_431_is_seen_by_a_client_that_keeps_sending(lab):
    """The error must not be lost in a reset because the rest of the head was not read."""
    _, proxy = start(lab)
    seen = 0
    for _ in range(5):
        statuses, _ = exchange(proxy, b"GET http://h/ HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 300000 + b"\r\n\r\n")
        seen += statuses == [431]
    equal(seen, 5, "clients that saw the 431")


def test_head_limit_is_a_setting(lab):
    origin = RawOrigin(lab)
    proxy = Retort(lab, client={"max_head": "4KB"})
    equal(proxy.get(origin.url(), {"X": "a" * 3000}).status, 200, "status below the limit")
    equal(proxy.get(origin.url(), {"X": "a" * 5000}).status, 431, "status above the limit")


def test_empty_lines_before_a_request(lab):
    """RFC 9112 §2.2: at least one is to be ignored."""
    origin = RawOrigin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(b"\r\n" + f"GET {origin.url()} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        equal(wire.response().status, 200, "status")


BAD_RESPONSES = [
    ("no status line", b"hello\r\n\r\n"),
    ("HTTP/2", b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("status of two digits", b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"),
    ("status of four digits", b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"),
    ("status 099", b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n"),
    ("two lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    ("length and coding", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    ("bad length", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
    ("NUL", b"HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length: 0\r\n\r\n"),
    ("two lengths, one with a space before the colon", b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\nContent-Length: 6\r\n\r\nhello!"),
    ("length and coding, with a space before the colon",
     b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    ("no name before the space", b"HTTP/1.1 200 OK\r\n : 0\r\nContent-Length: 0\r\n\r\n"),
    ("line end before the colon", b"HTTP/1.1 200 OK\r\nContent-Length\r\n : 0\r\n\r\n"),
    ("head too large", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70000 + b"\r\nContent-Length: 0\r\n\r\n"),
    ("chunked twice", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
]


@memcheck
def test_bad_responses(lab):
    """What the origin says can not be understood: 502, nothing of it is passed on."""
    answers = {}

    def answer(connection, request):
        connection.send(answers[request.target])
        return True
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    for number, (what, data) in enumerate(BAD_RESPONSES):
        answers[f"/{number}"] = data
        response = proxy.get(origin.url(f"/{number}"))
        equal(response.status, 502, f"{what}: status")


@memcheck
def test_blanks_before_the_colon_of_a_response(lab):
    """"A proxy MUST remove any such whitespace from a response message before forwarding the message downstream" (RFC 9112 §5.1). The
    field means what it means without: for framing, for the cache, and for who looks it up. Requests are refused, see LENGTH."""
    answers = {"/length": b"Content-Length : 5\r\nCache-Control\t: max-age=60\r\nX-Own \t : a\r\n\r\nhello",
               "/coding": b"Transfer-Encoding : chunked\r\nConnection : X-Hop\r\nX-Hop : 1\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
               "/secret": b"Content-Length : 5\r\nCache-Control : no-store\r\nSet-Cookie : a=b\r\n\r\nhello"}

    def answer(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\n" + answers[request.target])
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    for path in answers:
        for _ in range(2):
            with proxy.wire() as wire:
                wire.send(f"GET {origin.url(path)} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
                seen = wire.read_to_end()
            contains(seen, b"HTTP/1.1 200 OK", path)
            contains(seen, b"hello", path)
            lacks(seen.partition(b"\r\n\r\n")[0].replace(b"\t", b" "), b" :", f"{path}: head")
            lacks(seen, b"X-Hop", path)
    contains(proxy.get(origin.url("/secret")).header("Set-Cookie"), "a=b", "a field of the response")
    equal([request.target for request in origin.requests], ["/length"] + ["/coding"] * 2 + ["/secret"] * 3, "requests: one is stored")
    equal(origin.accepted, 1, "connections: each response ended where its framing says")


def test_bad_chunks_from_the_origin(lab):
    """The head has gone out already: the client must see a broken message, not a complete one."""
    answers = {}

    def answer(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\n"
                        + answers[request.target])
        return True
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    for number, (what, data) in enumerate(BAD_CHUNKS):
        answers[f"/{number}"] = b"3\r\nabc\r\n" + data
        for attempt in ("first", "second"):
            try:
                response = proxy.get(origin.url(f"/{number}"))
            except Truncated:
                continue
            equal(response.status, 502, f"{what}: status at the {attempt} attempt (and not a complete 200)")


def test_response_splitting_by_extra_bytes(lab):
    """Bytes behind a complete response belong to nobody: the next request must not get them."""
    def answer(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok"
                        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        for path in ("/1", "/2", "/3"):
            wire.send(f"GET {origin.url(path)} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            equal(wire.response().body, b"ok", f"body of {path}")
