"""The addresses of a service: away, down, tried again, taking over from one another."""

import threading
import time

from harness import ports
from harness.adaptation import QUICK, STEADY, Busy, account, fetch, in_parallel, start, swallow
from harness.checks import between, contains, equal, one_of, same_bytes, true, until
from harness.icap import IcapServer, append
from harness.origin import Origin
from harness.retort import Retort, Service, measure
from harness.suite import memcheck


@memcheck
def test_nobody_listens(lab):
    origin = Origin(lab)
    for bypass, allowed in ((True, (200,)), (False, (500, 502, 503, 504))):
        proxy = Retort(lab, services=[Service("s", f"icap://127.0.0.1:{ports.take()}/s", bypass=bypass, **QUICK)])
        answer, took = measure(lambda: fetch(proxy, origin, 100))
        one_of(answer.status, allowed, f"bypass {bypass}: status")
        between(took, 0, 3 * lab.patience, "seconds")
        if not bypass:
            contains(answer.text().lower(), "adaptation service", "error page")


def test_service_that_is_away_costs_its_delay_once(lab):
    """While it is down nobody waits for it."""
    stop = threading.Event()
    icap = IcapServer(lab)
    icap.options_answer = lambda _i, _c: stop.wait(30)
    origin, _, proxy = start(lab, server=icap, **{**QUICK, "down_min": "20s", "down_max": "20s"})
    fetch(proxy, origin, 100)
    _, took = measure(lambda: [fetch(proxy, origin, 100) for _ in range(20)])
    stop.set()
    between(took, 0, 2 * lab.patience, "seconds for 20 requests")


@memcheck
def test_recovery_is_noticed(lab):
    origin, icap, proxy = start(lab, append(b"!"), **QUICK)
    icap.close_listener()
    equal(fetch(proxy, origin, 10).body, origin.body(10), "body while it is away")
    icap.listen_again()
    until(lambda: fetch(proxy, origin, 10).body.endswith(b"!"), 8 * lab.patience, "adapted bodies again", pause=0.1)


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


# Several of them.

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
    until(lambda: all(server.options_count >= 1 for server in servers), 10 * lab.patience, "OPTIONS of both")
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
