"""What services inside the proxy do outside of exchanges: their timer, the descriptors that they watch, and what they are told of.
The module tests/e2e/modules/outside.c counts and reports it."""

import os
import threading
import time

from harness.adaptation import account
from harness.checks import between, contains, equal, true, until
from harness.raw_origin import RawOrigin
from harness.retort import Inside, Retort


def module(lab):
    return lab.built("tests/e2e/modules/.libs/outside.so")


def outside(lab, name="outside", settings=None, **options):
    return Inside(name, module(lab), settings=settings or {}, **options)


def count(proxy, what, name="outside"):
    return account(proxy, name)["counts"][what]


def await_count(lab, proxy, what, least, name="outside"):
    until(lambda: count(proxy, what, name) >= least, 10 * lab.patience, f"{what} of {name} to be {least}")


def make_pipe(lab, name="orders"):
    path = lab.path(name)
    os.mkfifo(path)
    return path


def order(path, letters):
    """Gives the orders once the service has opened the pipe."""
    pipe = os.open(path, os.O_WRONLY)
    try:
        os.write(pipe, letters.encode())
    finally:
        os.close(pipe)


class SlowOrigin(RawOrigin):
    """Sends the end of its answers when `going_on` is set."""

    def __init__(self, lab):
        self.going_on = threading.Event()
        super().__init__(lab, self.give)

    def give(self, connection, seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8000\r\n\r\n" + 1000 * b"half")
        self.going_on.wait(60)
        connection.send(1000 * b"more")


def nothing_strange(proxy, name="outside"):
    equal(count(proxy, "STRANGE", name), 0, f"strange things that the service has seen: {proxy.process.log()[-2000:]}")


def test_timer_and_descriptors(lab):
    """With three workers, one of them calls the timer and the descriptor of a service, and others serve meanwhile."""
    pipe, origin = make_pipe(lab), RawOrigin(lab)
    proxy = Retort(lab, workers=3, services=[outside(lab, settings={"Pipe": pipe})])
    await_count(lab, proxy, "TIMER", 5)
    order(pipe, "xxx")
    await_count(lab, proxy, "READY", 3)
    for i in range(6):
        equal(proxy.get(origin.url(f"/{i}")).status, 200, "a request")
    order(pipe, "e")  # it ends the watch
    await_count(lab, proxy, "READY", 4)
    order(pipe, "x")
    before = count(proxy, "TIMER")
    await_count(lab, proxy, "TIMER", before + 3)
    equal(count(proxy, "READY"), 4, "calls for a descriptor that is watched no more")
    nothing_strange(proxy)


def test_a_change_of_something_else(lab):
    """The instance goes on, and with it its timer and the descriptors that it watches."""
    pipe = make_pipe(lab)
    proxy = Retort(lab, workers=2, services=[outside(lab, settings={"Pipe": pipe})])
    await_count(lab, proxy, "TIMER", 2)
    order(pipe, "x")
    await_count(lab, proxy, "READY", 1)
    for size in ("24MB", "20MB", "28MB"):
        proxy.ctl("set", f"cache.memory={size}")
    before = count(proxy, "TIMER")
    await_count(lab, proxy, "TIMER", before + 3)
    order(pipe, "xx")
    await_count(lab, proxy, "READY", 3)
    nothing_strange(proxy)
    proxy.ctl("services", "unload", "outside")
    until(lambda: "counts" not in account(proxy, "outside"), 10 * lab.patience, "the service is gone")
    proxy.ctl("services", "load", "outside")
    order(pipe, "x")
    await_count(lab, proxy, "READY", 4)


def test_reload_begins_anew(lab):
    """The old instance's timer ends with the reload, while a message of it is still under way, before stop; one of many reloads
    meets a timer at work. The last one takes the service out."""
    texts = SlowOrigin(lab)
    pipes = [make_pipe(lab, f"orders{i}") for i in range(2)]
    services = [[outside(lab, settings={"Pipe": pipe, "Does": "tell-id"})] for pipe in pipes]
    proxy = Retort(lab, workers=2, services=services[0])
    await_count(lab, proxy, "TIMER", 2)
    order(pipes[0], "x")
    await_count(lab, proxy, "READY", 1)
    with proxy.wire() as slow:
        slow.send(f"GET {texts.url('/slow')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        slow.head()
        proxy.write_config(proxy.text(services=services[1]))
        equal(proxy.reload().status, 200, "the reload")
        before = count(proxy, "TIMER")
        await_count(lab, proxy, "TIMER", before + 2)
        order(pipes[1], "xx")
        await_count(lab, proxy, "READY", 3)
        order(pipes[0], "x")  # which the old instance still has open
        time.sleep(0.05)
        equal(count(proxy, "READY"), 3, "calls for a descriptor of the old instance")
        texts.going_on.set()
    for i in range(20):
        proxy.write_config(proxy.text(services=services[i % 2]))
        equal(proxy.reload().status, 200, "a reload")
    nothing_strange(proxy)
    proxy.write_config(proxy.text(services=[], adapt={}))
    equal(proxy.reload().status, 200, "the reload without the service")


def test_many_descriptors(lab):
    """A service that watches too many has the first ones only."""
    origin = RawOrigin(lab)
    proxy = Retort(lab, workers=1, services=[outside(lab, settings={"Many": 300}), outside(lab, "few", {"Many": 3}, descriptors=2)])
    await_count(lab, proxy, "REFUSED", 300 - 64)
    await_count(lab, proxy, "READY", 64)
    await_count(lab, proxy, "REFUSED", 1, "few")
    equal((count(proxy, "REFUSED"), count(proxy, "REFUSED", "few")), (300 - 64, 1), "descriptors that were one too many")
    equal(account(proxy, "outside")["account"]["watches_refused"], 300 - 64, "the account")
    contains(proxy.process.log(), "service few: it watches 2 descriptors, as many as its option descriptors allows", "the log")
    equal(proxy.get(origin.url("/")).status, 200, "a request")
    nothing_strange(proxy)


def test_what_is_closed_while_it_is_watched(lab):
    """A service closes a descriptor and says nothing, while another descriptor of the same file is open: the kernel goes on to
    report it. It is named, the loop does not spin, and the number may be somebody else's afterwards."""
    pipe, origin = make_pipe(lab), RawOrigin(lab)
    proxy = Retort(lab, workers=1, services=[outside(lab, settings={"Pipe": pipe})])
    order(pipe, "sx")
    until(lambda: "it has closed a descriptor that it watches" in proxy.process.log(), 10 * lab.patience, "the log")
    with proxy.wire() as one, proxy.wire() as other:  # one of them gets the number
        for wire in (one, other):
            wire.send(f"GET {origin.url('/')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            equal(wire.head().status, 200, "a request")
    equal(count(proxy, "READY"), 1, "calls")
    nothing_strange(proxy)


def test_slow_timer_is_named(lab):
    proxy = Retort(lab, services=[outside(lab, settings={"Sleep": 30})])
    await_count(lab, proxy, "TIMER", 2)
    true(account(proxy, "outside")["account"]["slow"] >= 1, "slow calls")
    contains(proxy.process.log(), "service outside: its function timer held a worker up for", "the log")


def test_drain_with_timers(lab):
    """A drain waits for no timer, and an end in the middle of timers is clean."""
    proxy = Retort(lab, workers=3, services=[outside(lab, settings={"Many": 8})], drain_timeout="30s")
    await_count(lab, proxy, "TIMER", 3)
    began = time.monotonic()
    proxy.terminate()
    equal(proxy.wait_exit(20 * lab.patience), 0, "the exit status")
    between(time.monotonic() - began, 0, 15 * lab.patience, "seconds until the end")
