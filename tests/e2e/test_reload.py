"""A reload: what is under way keeps what it needs, and what could not be applied is said."""

import threading

from harness.checks import equal, until
from harness.icap import IcapServer
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import memcheck


class Gate:
    """Peers that let a message on when they are told to."""

    def __init__(self, lab):
        self.service = threading.Semaphore(1)
        self.answers = threading.Semaphore(1)
        self.icap = IcapServer(lab, self.adapt, methods="REQMOD")
        self.origin = RawOrigin(lab, self.answer)

    def adapt(self, _icap, transaction):
        self.service.acquire()  # pylint: disable=consider-using-with
        transaction.send_204()

    def answer(self, connection, _request):
        self.answers.acquire()  # pylint: disable=consider-using-with
        connection.send(b"HTTP/1.1 200 OK\r\nAge: 9\r\nETag: \"1\"\r\nCache-Control: max-age=5, stale-while-revalidate=600\r\n"
                        b"Content-Length: 2\r\n\r\nok")
        return False

    def waiting(self, proxy, lab):
        """A thread that asks for what is stored and stale, and waits for the service."""
        got = []
        known = self.icap.count
        asking = threading.Thread(target=lambda: got.append(proxy.get(self.origin.url("/w")).body))
        asking.start()
        until(lambda: self.icap.count == known + 1, 10 * lab.patience, "the request waits for the service")
        return asking, got


def start(lab):
    gate = Gate(lab)
    proxy = Retort(lab, services=[Service("gate", gate.icap.uri(), point="reqmod_precache", timeout="60s")])
    equal(proxy.get(gate.origin.url("/w")).status, 200, "the first")
    return gate, proxy


@memcheck
def test_a_refresh_outlives_reloads(lab):
    """A request that waits over a reload finds what is stored stale, and has it refreshed by a request of its own. That
    one goes on when the first is answered, and with it the last that held the old configuration."""
    gate, proxy = start(lab)
    asking, got = gate.waiting(proxy, lab)
    equal(proxy.reload().status, 200, "the first reload")
    gate.service.release()
    asking.join()
    equal(got, [b"ok"], "the stale body")
    until(lambda: len(gate.origin.requests) == 2, 10 * lab.patience, "the refresh at the origin")
    proxy.entries("/w", 2)
    for number in range(2):
        equal(proxy.reload().status, 200, f"reload {number}")
    gate.answers.release()
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "the end of the refresh")
    gate.service.release()
    equal(proxy.get(gate.origin.url("/w")).body, b"ok", "it serves")
    gate.answers.release()


@memcheck
def test_a_refresh_whose_listener_has_gone(lab):
    """There is nothing that would say whom it may ask: it is left out."""
    gate, proxy = start(lab)
    asking, got = gate.waiting(proxy, lab)
    text = proxy.text()
    proxy.write_config(text.replace(f'listen "{proxy.forward[0]}:{proxy.forward[1]}" {{ mode = forward }}\n', ""))
    equal(proxy.reload().status, 200, "reload without the listener")
    gate.service.release()
    asking.join()
    equal(got, [b"ok"], "the stale body")
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "the end of what is under way")
    equal((len(gate.origin.requests), proxy.counter("cache_background")), (1, 0), "requests at the origin, refreshes")
