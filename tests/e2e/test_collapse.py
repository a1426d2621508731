"""Collapsed forwarding: many ask for the same, one request goes to the origin."""

import threading
import time

from harness.checks import between, equal, one_of, same_bytes, true
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import Truncated

CROWD = 12


def crowd(proxy, url, count=CROWD, headers=None, method="GET"):
    """Asks `count` times at once; returns the answers (None where the connection broke) and seconds."""
    answers, start = [None] * count, time.monotonic()
    seconds = [0.0] * count

    def ask(number):
        try:
            answers[number] = proxy.get(url, headers(number) if headers else None)
        except Truncated:
            pass
        seconds[number] = time.monotonic() - start
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, seconds


def slow(seconds, head, body=b"hello"):
    """An origin that lets every request wait before it answers."""
    def answer(connection, _request):
        time.sleep(seconds)
        connection.send(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return False
    return answer


CACHEABLE = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"


@memcheck
def test_one_request_for_a_crowd(lab):
    origin = RawOrigin(lab, slow(0.4 * lab.patience, CACHEABLE))
    for workers in (1, 3):
        proxy = Retort(lab, workers=workers)
        before = len(origin.requests)
        answers, _seconds = crowd(proxy, origin.url(f"/{workers}"))
        equal([answer.body for answer in answers], [b"hello"] * CROWD, "bodies")
        equal(len(origin.requests) - before, 1, f"requests at the origin, {workers} workers")
        results = proxy.results(f"/{workers}", CROWD)
        equal(sorted(set(results)), ["HIT", "MISS"], "results")
        equal(results.count("MISS"), 1, "misses")


def test_waiting_has_one_end(lab):
    """Whatever is fetched is purged on its way, so that those who wait try together again; but not longer than collapse_timeout."""
    lab.needs("admin")
    at_once, most, lock = 0, 0, threading.Lock()

    def answer(connection, _request):
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        proxy.ctl("cache", "purge", "--prefix", origin.url("/"))
        time.sleep(0.4)
        with lock:
            at_once -= 1
        connection.send(CACHEABLE + b"Content-Length: 5\r\n\r\nhello")
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, cache={"collapse_timeout": "900ms"})
    answers, _seconds = crowd(proxy, origin.url("/"), 8)
    equal([answer.body for answer in answers], [b"hello"] * 8, "bodies")
    true(most > 1, f"{most} at a time at the origin")


def test_readers_join_while_it_arrives(lab):
    origin = Origin(lab)
    proxy = Retort(lab, workers=2)
    url = origin.url("/drip", n=200000, piece=10000, delay=30, cc="max-age=60")
    answers, _seconds = crowd(proxy, url)
    for answer in answers:
        same_bytes(answer.body, origin.body(200000), "body")
    equal(origin.count("/drip"), 1, "requests at the origin")


def test_length_not_known_beforehand(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    answers, _seconds = crowd(proxy, origin.url("/chunked", n=100000, piece=10000, delay=10, cc="max-age=60"))
    for answer in answers:
        same_bytes(answer.body, origin.body(100000), "body")
    equal(origin.count("/chunked"), 1, "requests at the origin")


def test_what_is_not_stored_is_fetched_by_each_at_once(lab):
    """The followers do not queue up behind one another."""
    wait = 0.4 * lab.patience
    origin = RawOrigin(lab, slow(wait, b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n"))
    proxy = Retort(lab)
    answers, seconds = crowd(proxy, origin.url("/own"))
    equal([answer.body for answer in answers], [b"hello"] * CROWD, "bodies")
    equal(len(origin.requests), CROWD, "requests at the origin")
    between(max(seconds), wait, 3.5 * wait, "seconds: once behind the leader, once for itself")
    _answers, seconds = crowd(proxy, origin.url("/own"))
    between(max(seconds), wait, 1.9 * wait, "seconds: the second crowd follows nobody")


def test_revalidation_is_shared(lab):
    wait = 0.3 * lab.patience

    def answer(connection, request):
        if request.header("If-None-Match"):
            time.sleep(wait)
            connection.send(b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\n\r\n")
        else:
            connection.send(b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=1\r\nContent-Length: 2\r\n\r\nok")
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, workers=2)
    proxy.get(origin.url("/r"))
    time.sleep(2.1)
    answers, _seconds = crowd(proxy, origin.url("/r"))
    equal([answer.body for answer in answers], [b"ok"] * CROWD, "bodies")
    equal(len(origin.requests), 2, "requests at the origin: the first, and one revalidation")


def test_a_slow_leader_is_not_waited_for_longer_than_set(lab):
    turn = []

    def answer(connection, _request):
        turn.append(1)
        if len(turn) == 1:
            time.sleep(3 * lab.patience)
        connection.send(CACHEABLE + b"Content-Length: 2\r\n\r\nok")
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, cache={"memory": "32MB", "collapse_timeout": "300ms"})
    leader = threading.Thread(target=lambda: proxy.get(origin.url("/late")))
    leader.start()
    time.sleep(0.1)
    _answers, seconds = crowd(proxy, origin.url("/late"), 4)
    between(max(seconds), 0.15, 2 * lab.patience, "seconds of the followers")
    leader.join()


def test_variants(lab):
    """A follower of another variant fetches its own."""
    def answer(connection, request):
        time.sleep(0.3 * lab.patience)
        body = (request.header("Accept-Language") or "").encode()
        connection.send(CACHEABLE + b"Vary: Accept-Language\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    answers, _seconds = crowd(proxy, origin.url("/v"), headers=lambda number: {"Accept-Language": "de" if number % 2 else "en"})
    equal([answer.body for answer in answers], [b"de" if number % 2 else b"en" for number in range(CROWD)], "bodies")
    between(len(origin.requests), 2, CROWD // 2 + 1, "requests at the origin")


def test_origin_that_fails(lab):
    wait = 0.3 * lab.patience

    def answer(connection, _request):
        time.sleep(wait)
        connection.abort()
        return True
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    answers, seconds = crowd(proxy, origin.url("/gone"))
    equal({answer.status for answer in answers}, {502}, "statuses")
    between(max(seconds), wait, 6 * wait, "seconds: together, not one after the other")


def test_leader_that_leaves(lab):
    origin = RawOrigin(lab, slow(0.5 * lab.patience, CACHEABLE))
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url('/left')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
        time.sleep(0.1)
        threads_answers = []
        follower = threading.Thread(target=lambda: threads_answers.append(proxy.get(origin.url("/left"))))
        follower.start()
        time.sleep(0.1)
        wire.abort()
    follower.join()
    equal([answer.body for answer in threads_answers], [b"hello"], "the follower's body")
    one_of(len(origin.requests), (1, 2), "requests at the origin")


def test_private_answers_are_not_shared(lab):
    def answer(connection, request):
        time.sleep(0.2 * lab.patience)
        body = (request.header("Cookie") or "").encode()
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    answers, _seconds = crowd(proxy, origin.url("/me"), headers=lambda number: {"Cookie": f"who={number}"})
    equal([answer.body for answer in answers], [f"who={number}".encode() for number in range(CROWD)], "bodies")
    true(len(origin.requests) == CROWD, "each asks for itself")
