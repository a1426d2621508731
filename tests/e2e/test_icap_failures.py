"""Servers that misbehave: with bypass the client gets the original, without it an error; never a wrong whole."""

import itertools
import os
import re
import threading
import time

from harness.adaptation import HEAD, QUICK, STEADY, account, dies_after, fetch, start, verdicts, whole_or_cut
from harness.checks import between, contains, equal, lacks, one_of, same_bytes, true, until
from harness.icap import IcapServer
from harness.lab import SOURCE
from harness.origin import Origin
from harness.retort import Retort, Service, measure
from harness.suite import memcheck, seconds
from harness.wire import Truncated, chunked

# Before the verdict.

def late(_icap, transaction):
    time.sleep(3)
    transaction.send_204()


def silent(_icap, _transaction):
    time.sleep(6)


def closes(_icap, _transaction):
    return True


def resets(_icap, transaction):
    transaction.connection.abort()
    return True


def garbage(_icap, transaction):
    transaction.send(b"\x16\x03\x01 what is this\r\n\r\n")


def http_instead(_icap, transaction):
    transaction.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def half_a_head(_icap, transaction):
    transaction.send(b"ICAP/1.0 200 OK\r\nISTag: ")
    return True


def status(code):
    def behave(_icap, transaction):
        transaction.send(b"ICAP/1.0 %d Something\r\nConnection: close\r\n\r\n" % code)
        return True
    behave.__name__ = f"status_{code}"
    return behave


def encapsulated(value):
    """A 200 whose Encapsulated header does not describe what follows."""
    def behave(_icap, transaction):
        transaction.send_head(HEAD, encapsulated=value)
        transaction.send(chunked(b"evil body"))
        return True
    behave.__name__ = "encapsulated " + (value.decode() or "empty")
    return behave


def no_encapsulated(_icap, transaction):
    transaction.send(b'ICAP/1.0 200 OK\r\nISTag: "x"\r\n\r\n' + HEAD + chunked(b"evil body"))
    return True


def bad_http_head(_icap, transaction):
    head = b"HTTP/1.1 two hundred\r\n\r\n"
    transaction.send_head(head)
    transaction.send(chunked(b"evil"))
    return True


def request_for_a_response(_icap, transaction):
    transaction.send_head(b"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", body=False)
    return True


def endless_head(_icap, transaction):
    transaction.send(b"ICAP/1.0 200 OK\r\n")
    for _ in range(200):
        transaction.send(b"X: " + b"a" * 1000 + b"\r\n")
    return True


def drips_its_head(_icap, transaction):
    for byte in b"ICAP/1.0 204 No Content\r\n" * 4:
        transaction.send(bytes([byte]))
        time.sleep(0.1)


# What fails before a byte of an answer could be used.
BEFORE_THE_VERDICT = [
    late, silent, closes, resets, garbage, http_instead, half_a_head, status(400), status(404), status(405), status(408),
    status(500), status(503), status(505), status(299), encapsulated(b"res-hdr=0, res-body=9999"),
    encapsulated(b"res-hdr=5, res-body=44"), encapsulated(b"res-body=44, res-hdr=0"),
    encapsulated(b"res-hdr=0, res-body=-1"), encapsulated(b"res-hdr=0, res-body=99999999999999999999"),
    encapsulated(b"res-hdr=0"), encapsulated(b"res-hdr=0, res-hdr=10, res-body=44"), encapsulated(b""),
    encapsulated(b"nonsense"), no_encapsulated, bad_http_head, request_for_a_response,
    endless_head, drips_its_head,
]


@seconds(150)
def test_failures_before_the_verdict_with_bypass(lab):
    origin = Origin(lab)
    for behave in BEFORE_THE_VERDICT:
        icap = IcapServer(lab, behave)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=True, **QUICK)])
        for size in (0, 100, 5000, 200000):
            answer, took = measure(lambda: fetch(proxy, origin, size))
            equal(answer.status, 200, f"{behave.__name__}, {size}: status")
            same_bytes(answer.body, origin.body(size), f"{behave.__name__}, {size}: body")
            between(took, 0, 4 * lab.patience, f"{behave.__name__}, {size}: seconds")
        proxy.log(4)
        for entry in proxy.log():
            one_of([v["verdict"] for v in entry["icap"]], (["FAILED"], ["BYPASSED"]), f"{behave.__name__}: verdicts")
        proxy.stop()
        icap.stop()


@seconds(150)
def test_failures_before_the_verdict_without_bypass(lab):
    origin = Origin(lab)
    for behave in BEFORE_THE_VERDICT:
        icap = IcapServer(lab, behave)
        proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False, **QUICK)])
        for size in (100, 200000):
            url = origin.url("/bytes", n=size, cc="max-age=60")
            answer, took = measure(lambda: proxy.get(url))
            true(500 <= answer.status < 600, f"{behave.__name__}, {size}: status {answer.status}")
            lacks(answer.body, b"evil", f"{behave.__name__}: body")
            between(took, 0, 4 * lab.patience, f"{behave.__name__}, {size}: seconds")
        proxy.stop()
        icap.stop()


def rows_of_statuses():
    """The table of docs/ICAP.md: for each row the ends of its ranges, with a response or without or both, and what the client gets with and
    without bypass."""
    with open(os.path.join(SOURCE, "docs/ICAP.md"), encoding="utf-8") as page:
        section = page.read().split("### The status of an answer\n")[1].split("\n### ")[0]
    for cells in re.findall(r"^\| (`?\d[^|]*) \| (yes or no|yes|no) \| ([^|]+) \| ([^|]+) \|$", section, re.M):
        yield sorted({int(number) for number in re.findall(r"\d+", cells[0])}), cells[1].split(" or "), cells[2], cells[3]


def test_each_status(lab):
    """RFC 9110 15: "a client MUST understand the class of any status code [...] and treat an unrecognized status code as being equivalent to
    the x00 status code of that class", and 15.2: "A client MUST be able to parse one or more 1xx responses received prior to a final response"."""
    made, rows = b"made by the service", list(rows_of_statuses())
    equal(len(rows), 12, "rows of the table")
    origin, now = Origin(lab), {}

    def behave(_icap, transaction):
        transaction.finish_body()
        if now["status"] < 200:
            transaction.send(b"ICAP/1.0 %d Wait\r\n\r\n" % now["status"])
            transaction.send_200(HEAD, made)
        elif now["response"]:
            transaction.send_head(HEAD, status=b"%d Something" % now["status"])
            transaction.send(chunked(made))
        else:
            transaction.send(b'ICAP/1.0 %d Something\r\nISTag: "test-1"\r\nEncapsulated: null-body=0\r\n\r\n' % now["status"])
        return now["status"] != 204
    for point, bypass in itertools.product(("respmod_precache", "reqmod_precache"), (True, False)):
        icap = IcapServer(lab, behave, preview=None, methods=point[:point.index("_")].upper())
        proxy = Retort(lab, services=[Service("s", icap.uri(), point=point, bypass=bypass, down_min="20ms", down_max="20ms", failures_down=1000000)])
        for statuses, responses, open_, closed in rows:
            for status_, response in itertools.product(statuses, responses):
                until(lambda proxy=proxy: account(proxy)["state"] != "down", 10 * lab.patience, "it to be tried again", pause=0.01)
                now.update(status=status_, response=response == "yes")
                seen, expected = fetch(proxy, origin, 3000), open_ if bypass else closed
                what = f"{point}, bypass {bypass}: {status_}, with a response: {response}"
                equal(seen.status, 502 if expected == "502" else 200, what)
                if expected == "the original passes":
                    same_bytes(seen.body, origin.body(3000), what)
                elif expected != "502":
                    same_bytes(seen.body, made, what)
        proxy.stop()
        icap.stop()


def test_interim_answers_without_an_end(lab):
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send(b"ICAP/1.0 102 Wait\r\n\r\n" * 17)
        transaction.send_200(HEAD, b"too late")
    origin, _, proxy = start(lab, behave, bypass=False, **STEADY)
    equal(fetch(proxy, origin, 3000).status, 502, "status")
    contains(str(proxy.log(1)[0]["icap"]), "more than 16 interim answers", "the log")


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


# After it.

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


def cut(end):
    """A 200 whose body ends before it is complete."""
    def behave(_icap, transaction):
        transaction.send_head(HEAD)
        transaction.send(chunked(b"adapted part", last=b""))
        time.sleep(0.1)
        if end == "reset":
            transaction.connection.abort()
        elif end == "bad chunk":
            transaction.send(b"zz\r\n")
        elif end == "silence":
            time.sleep(3)
        return True
    return behave


def test_failure_inside_the_adapted_body(lab):
    """Its head is out: neither bypass nor an error can help; the client must see a cut, nothing is stored."""
    origin = Origin(lab)
    for bypass in (True, False):
        for end in ("close", "reset", "bad chunk", "silence"):
            icap = IcapServer(lab, cut(end))
            proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=bypass, **QUICK)])
            for _ in range(2):
                try:
                    answer = proxy.get(origin.url("/bytes", n=5000, cc="max-age=60"))
                except Truncated:
                    continue
                if bypass and answer.body == origin.body(5000):
                    continue  # it had kept the original, and nothing of the adapted one was out
                true(answer.status >= 500, f"{end}, bypass {bypass}: a complete {answer.status} of {answer.body[:30]!r}")
            proxy.stop()
            icap.stop()


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


# Deadlines.

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


def test_slow_but_steady_answer_is_not_a_failure(lab):
    """The timeout is for a pause, not for the whole."""
    def behave(_icap, transaction):
        transaction.send_head(HEAD)
        for _ in range(8):
            time.sleep(0.3)
            transaction.send(chunked(b"piece.", last=b""))
        transaction.send(b"0\r\n\r\n")
    origin, _, proxy = start(lab, behave, bypass=False, **{**QUICK, "timeout": "1s"})
    equal(fetch(proxy, origin, 5000).body, b"piece." * 8, "body")


def test_answer_that_never_ends_has_a_total_limit(lab):
    """However steadily it comes: before the verdict the message passes, after it the body is cut."""
    def head_without_end(_icap, transaction):
        while True:
            transaction.send(b"ICAP/1.0 200 OK\r\n" if not transaction.__dict__.setdefault("begun", False) else b"X: y\r\n")
            transaction.begun = True
            time.sleep(0.1)

    def body_without_end(_icap, transaction):
        transaction.send_head(HEAD)
        while True:
            transaction.send(chunked(b"more", last=b""))
            time.sleep(0.1)
    limit = {"timeout": "5s", "total_timeout": f"{800 * lab.patience}ms"}
    origin, _, proxy = start(lab, head_without_end, **limit)
    answer, took = measure(lambda: fetch(proxy, origin, 5000))
    same_bytes(answer.body, origin.body(5000), "the virgin body")
    between(took, 0.5 * lab.patience, 4 * lab.patience, "seconds")
    origin, _, proxy = start(lab, body_without_end, **limit)
    try:
        fetch(proxy, origin, 5000)
        raise AssertionError("a body that was cut looks complete")
    except Truncated:
        pass


def waits_of(pid):
    """How often its threads have gone to sleep."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as status:
            count += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M).group(1))
    return count


def test_answer_that_stops_in_its_body(lab):
    """A pause in it has its end, and is no work for the proxy."""
    over = threading.Event()

    def stops(drop, pieces, waits):
        def behave(_icap, transaction):
            transaction.finish_body()
            transaction.send_head(transaction.response_head(drop=drop))
            transaction.send(pieces)
            waits.append(waits_of(proxy.pid))
            over.wait(0.4)
            waits.append(waits_of(proxy.pid))
            over.wait(20 * lab.patience)
            return True
        return behave

    def ask():
        try:
            return fetch(proxy, origin, 5000).status
        except Truncated:
            return None

    some = chunked(b"x" * 100, last=b"")
    for drop, pieces, bypass, expected in (((), b"", True, 200), ((), some, False, None), (("content-length",), b"", False, None)):
        waits = []
        origin, _, proxy = start(lab, stops(drop, pieces, waits), bypass=bypass, **QUICK)
        status, took = measure(ask)
        equal(status, expected, "status")
        between(took, 0.5, 5 * lab.patience, "seconds")
        between(waits[1] - waits[0], 0, 100, "waits for events")
    over.set()
