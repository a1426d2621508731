"""An ICAP host that falls silent: no reset, no refusal, nothing comes any more."""

import threading
import time

from harness.adaptation import account, fetch, in_parallel
from harness.checks import between, contains, equal, true, until, within
from harness.cicap import Cicap, Module
from harness.icap import IcapServer
from harness.origin import Origin
from harness.remote import Remote
from harness.retort import Retort, Service, measure
from harness.suite import heavy, seconds
from harness.wire import Truncated, chunked, request

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


class Thinks:
    """A service that has all of the message and says nothing; or a byte of its answer now and then, to messages about `dripping` URLs."""

    def __init__(self):
        self.over, self.here, self.dripping = threading.Event(), 0, True

    def __call__(self, icap, transaction):
        drips = b"drips" in transaction.http_request.start.encode()
        transaction.finish_body()
        with icap.lock:
            self.here += 1
        if drips:
            transaction.send_head(transaction.response_head())
        while not self.over.wait(0.5 if drips else None):
            if self.dripping:
                transaction.send(chunked(b"x", last=b""))
        return True


class Waits(threading.Thread):
    """A client that waits for the service. `answer` is None where the service broke off in the midst of it."""

    def __init__(self, proxy, origin, **more):
        super().__init__()
        self.get, self.ended, self.answer = lambda: fetch(proxy, origin, 3000, **more), None, None
        self.start()

    def run(self):
        try:
            self.answer = self.get()
        except (Truncated, ConnectionError):
            pass
        self.ended = time.monotonic()


class Thinking:
    """Two services that think, on another host, and clients that wait for s, or for t about URLs with other=1."""

    def __init__(self, lab, workers=1, **options):
        self.lab, self.remote, self.thinks = lab, Remote(lab), Thinks()
        self.icap, self.origin = IcapServer(lab, self.thinks, remote=self.remote), Origin(lab)
        self.proxy = Retort(lab, workers=workers, drain_timeout="1s", services=[Service(name, self.icap.uri(name), timeout="60s", **options) for name in "st"],
                            url_classes={"s": {"url_regex": "(i=[0-9]+|drips=1)$"}, "t": {"url_regex": "other=1$"}}, adapt={"s": "s", "t": "t"})

    def client(self, **more):
        """It waits now."""
        before = self.thinks.here
        client = Waits(self.proxy, self.origin, **more)
        until(lambda: self.thinks.here > before, 10 * self.lab.patience, "the message to be at the service", pause=0.005)
        return client

    def cut(self, clients):
        """Seconds that the last one of them waits behind the cut."""
        self.remote.pull()
        cut = time.monotonic()
        for client in clients:
            client.join()
        equal({client.answer.status for client in clients}, {200}, "statuses")
        return max(client.ended for client in clients) - cut

    def mend(self):
        self.remote.plug()
        until(lambda: account(self.proxy)["endpoints"][0]["state"] == "up", 10 * self.lab.patience, "it to be up again")

    def checks(self):
        return self.proxy.counter("icap_host_checks"), self.proxy.counter("icap_host_checks_unanswered")

    def end(self, clients):
        self.thinks.over.set()
        for client in clients:
            client.join()


@heavy("it measures waits")
@seconds(240)
def test_a_cut_costs_less_than_a_second(lab):
    """Also where nothing is unacknowledged: soon after the last packet and late, soon after a message and long after, in all workers."""
    for workers, count, connect in ((1, 1, "250ms"), (1, 1, "500ms"), (3, 6, "200ms")):
        thinking, waits = Thinking(lab, workers, connect_timeout=connect, max_connections=8), {}
        for pause in (0, 0.3, 0.6, 0.9, 2.1, 2.5, 3.8):
            clients = []
            for _ in range(count):
                clients.append(thinking.client(**({"other": 1} if len(clients) % 3 == 2 else {})))
                time.sleep(0.07 if count > 1 else 0)
            time.sleep(pause)
            waits[pause] = round(thinking.cut(clients), 3)
            thinking.mend()
        true(max(waits.values()) < 1, f"seconds behind a cut so long after the message, {workers} workers, {connect}: {waits}")
        thinking.end([])
        thinking.proxy.stop()


@heavy("it measures waits")
def test_a_host_that_thinks_is_asked_once_a_second(lab):
    """For all services and workers there together, by packets that no program there learns of; none of its messages is given up."""
    thinking = Thinking(lab, 3, connect_timeout="250ms", max_connections=8)
    clients, began = [thinking.client()], time.monotonic()
    time.sleep(4)
    asked, unanswered = thinking.checks()
    between(asked, 3, 5, "checks in four seconds, for one client")
    for _ in range(3):
        clients += [thinking.client(), thinking.client(other=1)]
        time.sleep(0.13)
    time.sleep(5)
    took = time.monotonic() - began
    asked, unanswered = thinking.checks()
    between(asked, 3, took * 1.2 + 1, f"checks in {took:.1f} seconds")
    equal((unanswered, account(thinking.proxy)["account"]["error_lost"]), (0, 0), "checks without an answer, messages given up")
    between(thinking.icap.accepted, 7, 9, "connections that the service has seen")  # of the clients, and for OPTIONS
    thinking.end(clients)
    time.sleep(2)
    equal(thinking.checks()[0], asked, "checks behind the last answer")


@heavy("it measures waits")
def test_a_patient_service_is_not_asked(lab):
    """With a connect_timeout above half a second TCP itself is fast enough."""
    thinking = Thinking(lab, connect_timeout="600ms")
    client = thinking.client()
    time.sleep(3)
    equal(thinking.checks(), (0, 0), "checks")
    thinking.end([client])


def test_one_lost_probe(lab):
    """A packet may get lost. RFC 1122 section 4.2.3.6: "It is extremely important to remember that ACK segments that contain no
    data are not reliably transmitted by TCP. Consequently, if a keep-alive mechanism is implemented it MUST NOT interpret
    failure to respond to any specific probe as a dead connection." """
    for connect in ("250ms", "500ms", "600ms", "1s", "1500ms"):
        thinking = Thinking(lab, connect_timeout=connect)
        client = thinking.client()
        time.sleep(0.3)  # delayed acknowledgements have come
        thinking.remote.lose_one_probe()
        until(lambda: thinking.remote.counted("passed") > 0 or client.ended, 10 * lab.patience, "the next probe", pause=0.02)  # noqa: B023
        equal((thinking.remote.counted("dropped"), client.ended, account(thinking.proxy)["account"]["error_lost"]), (1, None, 0),
              f"probes lost, the end of the wait, messages given up, at connect_timeout {connect}")
        thinking.end([client])
        equal(client.answer and client.answer.status, 200, "status")
        thinking.proxy.stop()
        thinking.remote.stop()


def test_a_window_that_stays_shut(lab):
    """A service reads nothing. Linux answers one of two probes of its window within half a second (tcp_invalid_ratelimit), so some stay without an answer."""
    remote, over, here, ended = Remote(lab), threading.Event(), threading.Event(), []

    def reads_nothing(_icap, transaction):
        transaction.send_100()
        here.set()
        over.wait()
        return True
    icap, origin = IcapServer(lab, reads_nothing, remote=remote), Origin(lab)
    proxy = Retort(lab, workers=1, services=[Service("s", icap.uri("s"), timeout="60s", connect_timeout="300ms")])
    client = threading.Thread(target=lambda: ended.append(fetch(proxy, origin, 8000000).status))
    client.start()
    here.wait(10 * lab.patience)
    time.sleep(4)  # probes come after 0.2, 0.4, 0.8 and 1.6 seconds
    equal((ended, account(proxy)["account"]["error_lost"]), ([], 0), "answers, messages given up")
    over.set()
    client.join()


SYNS = "table ip full { chain in { type filter hook input priority 0; tcp flags & (syn | ack) == syn drop; }; }"


@heavy("it measures waits")
def test_a_host_that_takes_no_connections(lab):
    """Its backlog is full: what begins a connection is dropped. Those that it has are not given up, since something is heard on one."""
    thinking = Thinking(lab, connect_timeout="250ms", max_connections=8)
    clients = [thinking.client(), thinking.client(drips=1)]
    thinking.remote.rules(SYNS)
    time.sleep(5)
    true(thinking.checks()[1] > 0, "checks without an answer")
    thinking.thinks.dripping = False  # from now on there are keep-alive probes alone, and it is known that checks say nothing
    asked = thinking.checks()[1]
    time.sleep(5)
    true(thinking.checks()[1] > asked, "checks without an answer in silence")
    equal(account(thinking.proxy)["account"]["error_lost"], 0, "messages given up")
    thinking.remote.rules("")
    answered = lambda: thinking.checks()[0] - thinking.checks()[1]  # noqa: E731
    before = answered()
    until(lambda: answered() > before, 5 * lab.patience, "checks to be answered again")
    between(thinking.cut([clients[0]]), 0, 1, "seconds behind a cut")
    thinking.mend()
    thinking.end(clients)


def test_checks_that_are_broken_off(lab):
    """By a reload, a client that leaves, and the end of the proxy, while nobody answers them."""
    thinking = Thinking(lab, 2, connect_timeout="100ms", max_connections=8)
    clients = [thinking.client(), thinking.client(drips=1)]  # it is known to be there, so nobody is given up
    thinking.remote.rules(SYNS)
    until(lambda: thinking.checks()[1] > 0, 10 * lab.patience, "a check without an answer")
    for number in range(8):
        asked = thinking.checks()[0]
        until(lambda: thinking.checks()[0] > asked, 10 * lab.patience, "a check", pause=0.01)  # noqa: B023
        if number % 2 == 0:
            thinking.proxy.ctl("reload")
        else:
            with thinking.proxy.wire() as leaves:
                leaves.send(request("GET", thinking.origin.url("/bytes", n=10, cc="no-store", i=number)))
                time.sleep(0.1)
    equal(account(thinking.proxy)["account"]["error_lost"], 0, "messages given up")
    thinking.proxy.process.stop()
    thinking.thinks.over.set()
