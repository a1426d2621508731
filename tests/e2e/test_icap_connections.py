"""Connections to ICAP servers: used again, limited in number, queued for, and lost."""

import select
import threading
import time

from harness.adaptation import HEAD, QUICK, STEADY, Busy, account, fetch, in_parallel, start, swallow, whole_or_cut
from harness.checks import between, equal, lacks, same_bytes, true, until
from harness.icap import IcapServer, append
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import chunked, request


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


@memcheck
def test_connections_are_reused(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    for _ in range(20):
        fetch(proxy, origin, 3000)
    true(icap.accepted <= 3, f"{icap.accepted} connections for 20 transactions and OPTIONS")


def test_connection_close_from_the_server(lab):
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(HEAD, b"bye", icap=b"Connection: close\r\n")
        time.sleep(0.3)
        return True
    origin, icap, proxy = start(lab, behave, bypass=False)
    for _ in range(3):
        equal(fetch(proxy, origin, 3000).body, b"bye", "body")


# How many.

def test_connections_are_capped(lab):
    """max_connections holds; those that wait are served in turn."""
    busy, most, lock = [0], [0], threading.Lock()

    def behave(icap, transaction):
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.05)
        with lock:
            busy[0] -= 1
        transaction.send_204()
    origin, icap, proxy = start(lab, behave, max_connections=3, bypass=False)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(fetch(proxy, origin, 100).status)) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(answers, [200] * 24, "statuses")
    true(most[0] <= 3, f"{most[0]} transactions at a time")


def test_max_connections_of_the_server(lab):
    icap = IcapServer(lab, lambda i, t: (time.sleep(0.05), t.send_204())[1], Max_Connections=2)
    origin, _, proxy = start(lab, server=icap)
    threads = [threading.Thread(target=lambda: fetch(proxy, origin, 100)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    true(icap.accepted <= 3, f"{icap.accepted} connections, the server wants 2 (and one may carry OPTIONS)")


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
    equal([error[:13] for error in errors], ["", "no connection", "too many mess", "too many mess"], "errors")
    seen = account(proxy)["account"]
    equal((seen["bypassed"], seen["error_queue"]), (3, 3), "bypassed, error_queue")
    equal(account(proxy)["state"], "up", "state: that it is busy is no fault")


def test_a_reload_leaves_no_idle_connections(lab):
    """Those of the old configuration would stand beside what the new one may have, as long as one of its transactions lasts."""
    held, leave, together = threading.Event(), threading.Event(), threading.Barrier(3)

    def behave(_icap, transaction):
        if "hold" in transaction.http_request.start:
            held.set()
            leave.wait(60 * lab.patience)
        else:
            together.wait(20 * lab.patience)
        transaction.send_204()
    origin, _, proxy = start(lab, behave, bypass=False, timeout="60s")
    long = threading.Thread(target=lambda: fetch(proxy, origin, 100, hold=1))
    long.start()
    try:
        true(held.wait(20 * lab.patience), "the long one is with the service")
        equal([answer.status for answer in in_parallel(3, lambda: fetch(proxy, origin, 100))], [200] * 3, "statuses")
        equal(proxy.reload().status, 200, "reload")
        until(lambda: proxy.counter("icap_connections_open") == 1, 10 * lab.patience, "that of the long one alone")
    finally:
        leave.set()
        long.join()
    until(lambda: proxy.counter("icap_connections_open") == 0, 10 * lab.patience, "the long one's connection to go, too")
    equal([answer.status for answer in in_parallel(3, lambda: fetch(proxy, origin, 100))], [200] * 3, "statuses after it")


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


# Those that die.

@memcheck
def test_pooled_connections_that_die(lab):
    """The server closes after each answer without having said so: the client must not notice."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_200(HEAD, b"answered")
        return True
    origin, icap, proxy = start(lab, behave, bypass=False)
    for turn in range(10):
        equal(fetch(proxy, origin, 3000).body, b"answered", f"body of turn {turn}")
        time.sleep(0.03)


def test_pooled_connection_that_dies_under_the_request(lab):
    """It takes the request and resets before the first byte of an answer: once more on a fresh one."""
    def behave(_icap, transaction):
        if transaction.connection_number <= 2 and len(_icap.transactions) > 1:
            transaction.connection.abort()
            return True
        transaction.finish_body()
        transaction.send_200(HEAD, b"answered")
        return False
    origin, icap, proxy = start(lab, behave, bypass=False)
    for turn, size in enumerate((500, 5000, 60000)):
        equal(fetch(proxy, origin, size).body, b"answered", f"body of turn {turn}")


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


# Bytes behind an answer.

def test_answer_in_one_packet_with_the_next(lab):
    """Bytes behind the end of an answer are not the next one's."""
    def behave(_icap, transaction):
        transaction.send(b'ICAP/1.0 204 No Content\r\nISTag: "a"\r\n\r\nICAP/1.0 204 No Content\r\nISTag: "a"\r\n\r\n')
    origin, icap, proxy = start(lab, behave, bypass=True, **QUICK)
    for size in (100, 200, 300):
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"body of {size}")


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


def test_fewer_connections_than_workers(lab):
    """A worker goes on with the one that it has, until another one waits for it."""
    origin, icap, proxy = start(lab, bypass=False, workers=4, max_connections=1, queue_timeout="30s")
    clients = [proxy.wire() for _ in range(8)]
    for client in clients:
        for _ in range(10):
            client.send(request("GET", origin.url("/bytes", n=10, cc="no-store")))
            equal(client.response("GET").status, 200, "status")
    true(icap.accepted <= 12, f"{icap.accepted} connections for 80 transactions of 8 clients one after another")
    equal(icap.count, 80, "transactions")
    for client in clients:
        client.close()
