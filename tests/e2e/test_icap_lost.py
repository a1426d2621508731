"""An ICAP host that falls silent: no reset, no refusal, nothing comes any more."""

import threading
import time

from harness.adaptation import account, fetch, in_parallel
from harness.checks import between, contains, equal, true, until, within
from harness.cicap import Cicap, Module
from harness.origin import Origin
from harness.remote import Remote
from harness.retort import Retort, Service, measure
from harness.suite import heavy

CONNECT = 1  # seconds
LIMIT = CONNECT + 1


def house(lab, workers=2, **options):
    """c-icap on another host, and a proxy with two of its services."""
    remote = Remote(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so"), Module("ex206", "srv_ex206.so")], remote=remote, threads=8)
    services = [Service(name, cicap.uri(name), bypass=True,
                        **{"timeout": "30s", "connect_timeout": f"{CONNECT}s", "max_connections": 4, **options}) for name in ("echo", "ex206")]
    return remote, Origin(lab), Retort(lab, services=services, workers=workers)


def says(proxy, what):
    """Lines of its log."""
    return [line for line in proxy.process.log().splitlines() if what in line]


def states(proxy):
    return [account(proxy, name)["endpoints"][0]["state"] for name in ("echo", "ex206")]


class Client(threading.Thread):
    """Fetches all the time, and notes when each fetch began and how long it took."""

    def __init__(self, proxy, origin, stop):
        super().__init__()
        self.proxy, self.origin, self.stop, self.took = proxy, origin, stop, []
        self.start()

    def run(self):
        while not self.stop.is_set():
            began = time.monotonic()
            status = fetch(self.proxy, self.origin, 3000).status
            self.took.append((time.monotonic() - began, began, status))
            time.sleep(0.02)


@heavy("it measures waits")
def test_a_host_that_falls_silent(lab):
    """No client waits for longer than connect_timeout and a second, none of them twice, and all is as before a second after its return."""
    for here in (False, True):
        remote, origin, proxy = house(lab)
        in_parallel(8, lambda proxy=proxy, origin=origin: fetch(proxy, origin, 3000))
        stop = threading.Event()
        clients = [Client(proxy, origin, stop) for _ in range(8)]
        try:
            until(lambda: all(len(client.took) > 3 for client in clients), 20, "all clients to be served")
            remote.pull(here)
            pulled = time.monotonic()
            within(lambda: states(proxy) == ["down", "down"], LIMIT + 2, "both services to be down")
            time.sleep(1.5)
            plugged, counts = time.monotonic(), [account(proxy, "ex206")["account"]["requests"]]
            remote.plug(here)
            until(lambda: states(proxy) == ["up", "up"], 5, "both to be up again")
            back = time.monotonic() - plugged
            until(lambda: account(proxy, "ex206")["account"]["requests"] > counts[0], 3, "messages to pass them again")
        finally:
            stop.set()
            for client in clients:
                client.join()
        between(back, 0, 3, "seconds from its return until both are up")  # one, and two for a busy machine
        for client in clients:
            equal({status for _, _, status in client.took}, {200}, "statuses")
            slow = [took for took, began, _ in client.took if took > 0.95 * CONNECT and began < plugged]
            true(len(slow) <= 1, f"one wait a client, here {here}: {slow}")
            between(max(took for took, began, _ in client.took), 0, LIMIT + 1, "the longest wait")  # and one for a busy machine
        true(pulled < plugged, "the order of things")
        for what in ("is down", "is up again"):
            equal(len(says(proxy, what)), 2, f"lines that say that a service {what}: {says(proxy, 'icap service')}")
        proxy.stop()


def test_what_waits_for_it_is_let_go(lab):
    """A message that a service thinks about when its host is lost; the other host is asked instead."""
    remote = Remote(lab)
    lost = Cicap(lab, [Module("echo", "srv_echo.so")], remote=remote, threads=8)
    other = Cicap(lab, [Module("echo", "srv_echo.so")])
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", '={ "%s", "%s" }' % (lost.uri("echo"), other.uri("echo")), bypass=False,
                                          timeout="60s", connect_timeout=f"{CONNECT}s")])
    in_parallel(8, lambda: fetch(proxy, origin, 3000))
    lost.freeze()
    answers, threads = [], []

    def waits():
        """Each asks the endpoint with the least to do: one that is still under way when the next begins is at the frozen one."""
        threads.append(threading.Thread(target=lambda: answers.append(measure(lambda: fetch(proxy, origin, 3000)))))
        threads[-1].start()
        return account(proxy)["endpoints"][0]["connections"] > 0
    try:
        until(waits, 10 * lab.patience, "one that waits for the frozen one", pause=0.1)
        remote.pull()
        _, took = measure(lambda: [thread.join() for thread in threads])
    finally:
        remote.plug()
        lost.thaw()
    equal([answer.status for answer, _ in answers], [200] * len(threads), "statuses")
    between(took, 0, (LIMIT + 2) * lab.patience, "seconds until all have an answer")
    true(account(proxy)["account"]["error_lost"] > 0, "it was lost")


def test_slow_is_not_lost(lab):
    """A host whose programs say nothing, and take nothing, still answers by its kernel."""
    remote, origin, proxy = house(lab, workers=1, connect_timeout="300ms", timeout="20s")
    cicap = lab.opened[1]
    in_parallel(4, lambda: fetch(proxy, origin, 3000))
    cicap.freeze()
    results = []
    threads = [threading.Thread(target=lambda size=size: results.append(fetch(proxy, origin, size).status))
               for size in (10, 3000, 8000000, 8000000)]
    for thread in threads:
        thread.start()
    time.sleep(2.5)
    seen = states(proxy)
    cicap.thaw()
    for thread in threads:
        thread.join()
    equal(results, [200] * 4, "statuses")
    equal(seen, ["up", "up"], "states meanwhile")
    equal([account(proxy, name)["account"]["bypassed"] for name in ("echo", "ex206")], [0, 0], "bypassed")


def test_why_it_is_down(lab):
    """`retortctl services` says since when, why, and when it is tried next."""
    remote, origin, proxy = house(lab)
    remote.pull()
    fetch(proxy, origin, 10)
    shown = proxy.ctl("services")
    contains(shown, "since 20", "what it says of a lost host")
    contains(shown, "; next try in 0.", "when it is tried next")
    remote.plug()
    until(lambda: "up" in states(proxy), 10 * lab.patience, "a service to be up")
