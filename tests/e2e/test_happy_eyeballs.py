"""Several addresses of a host: the first that answers is used (RFC 8305)."""

import socket
import struct
import time

from harness import ports
from harness.checks import between, equal, until
from harness.dns import A, AAAA, NameServer
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck


class DeadEnd:
    """An address that accepts no connection and refuses none: its backlog is full."""

    def __init__(self, lab, address, port):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, port))
        self.socket.listen(0)
        self.fill = [self._half(address, port, family) for _ in range(4)]
        lab.opens(self)

    @staticmethod
    def _half(address, port, family):
        one = socket.socket(family, socket.SOCK_STREAM)
        one.setblocking(False)
        one.connect_ex((address, port))
        return one

    def stop(self):
        for each in self.fill + [self.socket]:
            each.close()

    @staticmethod
    def findings():
        return []


class Race:
    def __init__(self, lab, **origin):
        self.lab = lab
        self.origin = RawOrigin(lab)
        self.names = NameServer(lab)
        self.proxy = Retort(lab, origin={"dns_servers": [self.names.address], "hosts_file": "none", "idle_timeout": "0", **origin})

    def timed(self, name, port=None):
        started = time.monotonic()
        answer = self.proxy.get(f"http://{name}:{port or self.origin.port}/")
        return answer.status, time.monotonic() - started


def at_most(lab, seconds):
    """Under valgrind only the result counts."""
    return 60 if lab.valgrind else seconds * lab.patience


@memcheck
def test_a_dead_address_costs_a_quarter_of_a_second(lab):
    race = Race(lab)
    DeadEnd(lab, "::1", race.origin.port)
    race.names.set("www.test", "127.0.0.1", "::1")
    status, seconds = race.timed("www.test")
    equal(status, 200, "status")
    between(seconds, 0.2, at_most(lab, 0.4), "seconds")
    equal(race.proxy.counter("connect_races"), 1, "races")
    equal(race.proxy.counter("connect_fallbacks"), 1, "fallbacks")
    status, seconds = race.timed("www.test")
    between(seconds, 0, at_most(lab, 0.2), "seconds, when it is known which address is slow")
    equal((status, race.proxy.counter("connect_races")), (200, 1), "status and races")


def test_a_refusal_costs_nothing(lab):
    race = Race(lab, attempt_delay="10s")
    race.names.set("www.test", "127.0.0.1", "::1")
    status, seconds = race.timed("www.test")
    equal(status, 200, "status")
    between(seconds, 0, 0.2 * lab.patience, "seconds")


def test_slow_name_servers(lab):
    """IPv4 waits 50 ms for IPv6; IPv6 does not wait for IPv4."""
    six, race = RawOrigin(lab, address="::1"), Race(lab, dns_timeout="2s")
    race.names.set("slow6.test", "127.0.0.1", "::1", delay={AAAA: 1.5})
    race.names.set("slow4.test", "127.0.0.1", "::1", delay={A: 1.5})
    race.names.set("soon6.test", "127.0.0.1", "::1", delay={AAAA: 0.02})
    status, seconds = race.timed("slow6.test")
    equal(status, 200, "status by IPv4")
    between(seconds, 0.04, 0.8 * lab.patience, "seconds by IPv4")
    status, seconds = race.timed("slow4.test", six.port)
    equal(status, 200, "status by IPv6")
    between(seconds, 0, 0.8 * lab.patience, "seconds by IPv6")
    if lab.patience == 1:
        equal(race.timed("soon6.test", six.port)[0], 200, "IPv6 that comes within 50 ms")
    time.sleep(1.6)
    equal(race.timed("slow6.test")[0], 200, "when all is known")


def test_failures(lab):
    """The race ends when all have failed, and each has its time."""
    race = Race(lab, connect_timeout="300ms", attempt_delay="100ms")
    dead = ports.take()
    DeadEnd(lab, "::1", dead)
    DeadEnd(lab, "127.0.0.1", dead)
    race.names.set("www.test", "127.0.0.1", "::1")
    status, seconds = race.timed("www.test", dead)
    equal(status, 504, "status")
    between(seconds, 0.35, 0.6 * lab.patience, "seconds")
    race.names.set("refused.test", "127.0.0.2", "127.0.0.3")
    equal(race.timed("refused.test", dead)[0], 502, "status where both refuse")


def test_clients_that_leave(lab):
    """Attempts end with the client that waits for them."""
    race = Race(lab, connect_timeout="60s", attempt_delay="50ms")
    dead = ports.take()
    DeadEnd(lab, "::1", dead)
    DeadEnd(lab, "127.0.0.1", dead)
    race.names.set("www.test", "127.0.0.1", "::1")
    wire = race.proxy.wire()
    wire.send(f"GET http://www.test:{dead}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    until(lambda: race.proxy.counter("connect_races") == 1, 5 * lab.patience, "the race")
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.close()
    until(lambda: race.proxy.counter("transactions_active") == 0, 5 * lab.patience, "the end of the request")
