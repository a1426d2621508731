"""A proxy between an origin and an ICAP server that does as it is told, and what tests of the ICAP client ask of them.

    origin, icap, proxy = start(lab, append(b"!"), bypass=False)
    equal(fetch(proxy, origin, 3000).body, origin.body(3000) + b"!", "body")
    equal(verdicts(proxy, 1), [["MODIFIED"]], "verdicts")
"""

import itertools
import json
import threading
import time

from .icap import IcapServer, unchanged
from .origin import Origin
from .retort import Retort, Service
from .wire import Truncated

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
QUICK = {"timeout": "700ms", "connect_timeout": "500ms", "down_min": "100ms", "down_max": "200ms"}
STEADY = {"failures_down": 1000000}  # nothing takes it down


def start(lab, behave=unchanged, *, bypass=True, preview=1024, server=None, workers=1, **options):
    """An origin, an ICAP server and a proxy between them."""
    icap = server or IcapServer(lab, behave, preview=preview)
    return Origin(lab), icap, Retort(lab, workers=workers, services=[Service("s", icap.uri(), bypass=bypass, **options)])


NUMBERS = itertools.count()


def fetch(proxy, origin, size, **more):
    """Each with a URL of its own, so that none waits for another's."""
    return proxy.get(origin.url("/bytes", n=size, cc="no-store", i=next(NUMBERS), **more))


def in_parallel(count, call):
    """What `count` calls at a time returned."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(call())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def verdicts(proxy, count):
    return [[v["verdict"] for v in entry["icap"]] for entry in proxy.log(count)]


def account(proxy, name="s"):
    """What /services says of a service."""
    services = json.loads(proxy.admin("GET", "/services").body)["services"]
    return next(service for service in services if service["name"] == name)


def whole_or_cut(proxy, url):
    """The answer, or None where the client saw that it is not whole."""
    try:
        return proxy.get(url)
    except (Truncated, ConnectionError):
        return None


class Busy:
    """Counts how many are inside at a time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1


def swallow(transaction):
    """Reads the whole virgin body without keeping it; its length."""
    total = [len(transaction.preview or b"")]
    if transaction.complete:
        return total[0]
    if transaction.preview is not None:
        transaction.send_100()
    transaction.connection._chunks(transaction.request, lambda piece: total.__setitem__(0, total[0] + len(piece)))
    transaction.complete = True
    return total[0]


def dies_after(length, text=b"half a body"):
    """Its verdict is there, and so many bytes of its body, when it dies."""
    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(b"HTTP/1.1 203 Changed\r\nX-Evil: 1\r\n\r\n")
        if length:
            transaction.send(b"%x\r\n" % (length + 10) + (text * length)[:length])
        time.sleep(0.05)
        return True
    return behave
