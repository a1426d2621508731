"""What is known of an ICAP service: shared by all workers, renewed without cost to its work, and told to operators."""

import re
import threading
import time

from harness.adaptation import QUICK, account, fetch, in_parallel, start
from harness.checks import between, contains, equal, lacks, true, until
from harness.cicap import Cicap, Module
from harness.icap import IcapServer, append
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.services import module_path
from harness.suite import memcheck


def says(proxy, what):
    """Lines of its log."""
    return [line for line in proxy.process.log().splitlines() if what in line]


def keep_fetching(proxy, origin, clients, seconds):
    """So many clients at a time, for so long."""
    end = time.monotonic() + seconds

    def client():
        while time.monotonic() < end:
            fetch(proxy, origin, 3000)
    in_parallel(clients, client)


def test_options_fall_due_at_a_busy_service(lab):
    """c-icap with as many threads as it takes connections: OPTIONS go over one of those (RFC 3507, 4.10.2: Max-Connections)."""
    cicap = Cicap(lab, [Module("gzip", module_path(lab, "gzip"), "gzip.MaxConnections 4\ngzip.OptionsTTL 1")], threads=4)
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, services=[Service("s", cicap.uri("gzip"), timeout=f"{lab.patience}s",
                                                     connect_timeout="500ms")])
    keep_fetching(proxy, origin, 8, 3.5)
    seen = account(proxy)["account"]
    true(seen["requests"] > 50, f"{seen['requests']} requests")
    equal((seen["bypassed"], account(proxy)["state"]), (0, "up"), "messages that passed unadapted, state")
    between(proxy.counter("icap_options"), 3, 6, "OPTIONS in three and a half seconds, at a TTL of one")


def test_options_that_fail_at_a_service_that_works(lab):
    """The old ones stay in force while it serves; a service that is no longer one is another matter."""
    answers = {"slow": lambda _i, _c: time.sleep(20) is None,
               "500": lambda _i, c: c.send(b"ICAP/1.0 500 Error\r\n\r\n") is None,
               "closed": lambda _i, _c: True}
    for what, answer in answers.items():
        icap = IcapServer(lab, append(b"!"), Options_TTL=0, Max_Connections=2)
        origin, _, proxy = start(lab, server=icap, workers=2, connect_timeout="200ms", failures_down=3, timeout="20s")
        equal(fetch(proxy, origin, 10).body, origin.body(10) + b"!", "body")
        icap.options_answer = answer
        asked = icap.options_count
        keep_fetching(proxy, origin, 4, 1.5)
        seen = account(proxy)
        equal((seen["account"]["bypassed"], seen["state"]), (0, "up"), f"{what}: bypassed, state")
        between(icap.options_count - asked, 1, 4, f"{what}: OPTIONS meanwhile")
        true(icap.accepted <= 8, f"{what}: {icap.accepted} connections")
        icap.options_answer = None
        icap.options["Methods"] = "REQMOD"
        until(lambda: fetch(proxy, origin, 10).body == origin.body(10), 10 * lab.patience, f"{what}: it to be left alone")
        proxy.stop()
        icap.stop()


def test_all_workers_know(lab):
    """OPTIONS are asked once for all, so many failures in a row take it down for all, and the log says so once."""
    failing = threading.Event()

    def behave(_icap, transaction):
        if failing.is_set():
            return True
        transaction.send_204()
        return False
    origin, icap, proxy = start(lab, behave, workers=4, failures_down=6, down_min="1h", down_max="1h")
    in_parallel(24, lambda: fetch(proxy, origin, 10))
    equal(icap.options_count, 1, "OPTIONS requests")
    failing.set()
    before, requests = icap.count, account(proxy)["account"]["requests"]
    for _ in range(40):
        fetch(proxy, origin, 10)
    seen = account(proxy)
    equal(seen["account"]["requests"] - requests - seen["account"]["retries"], 6, "requests that failed before it was down")
    true(icap.count > before, "it was asked")
    equal(seen["endpoints"][0]["state"], "down", "state")
    equal(len(says(proxy, "is down")), 1, "lines in the log")
    proxy.reload()
    fetch(proxy, origin, 10)
    until(lambda: icap.options_count >= 2, 10 * lab.patience, "it to be tried when the configuration is read again")


@memcheck
def test_connections_of_what_is_down(lab):
    """None stays open for it, neither those that were idle nor those that come back later: each may hold a thread that it needs."""
    mode, held, leave = {"now": "work"}, threading.Event(), threading.Event()

    def behave(_icap, transaction):
        if "hold" in transaction.http_request.start:
            held.set()
            leave.wait(60 * lab.patience)
        elif mode["now"] == "fail":
            return True
        transaction.send_204()
        return False
    together = threading.Barrier(6)
    origin, icap, proxy = start(lab, lambda i, t: (together.wait(20 * lab.patience), t.send_204())[1], workers=2,
                                failures_down=2, down_min="1h", down_max="1h", timeout="60s")
    in_parallel(6, lambda: fetch(proxy, origin, 10))
    icap.behave = behave
    long = threading.Thread(target=lambda: fetch(proxy, origin, 10, hold=1))
    long.start()
    try:
        true(held.wait(20 * lab.patience), "the long one is with the service")
        mode["now"] = "fail"
        until(lambda: fetch(proxy, origin, 10) and account(proxy)["state"] == "down", 20 * lab.patience, "it to be down")
        until(lambda: len(icap.open) == 1, 10 * lab.patience, "the idle ones to go")
    finally:
        leave.set()
        long.join()
    until(lambda: not icap.open, 10 * lab.patience, "the one that comes back to go")


def test_options_with_a_ttl_of_zero(lab):
    """It asks to be asked each time; once a second is enough."""
    icap = IcapServer(lab, Options_TTL=0)
    origin, _, proxy = start(lab, server=icap, workers=2)
    keep_fetching(proxy, origin, 3, 1.5)
    true(icap.count > 10, f"{icap.count} transactions")
    between(icap.options_count, 1, 3, "OPTIONS requests")


def test_fail_open_is_loud(lab):
    """The log tells of the first message and, at the latest when the proxy ends, of how many there were."""
    origin, icap, proxy = start(lab, workers=2, **{**QUICK, "down_min": "30s", "down_max": "30s"})
    icap.close_listener()
    for _ in range(20):
        fetch(proxy, origin, 10)
    equal(len(says(proxy, "a message passed unadapted because Connection re")), 1, "lines at once: refused, or reset in its queue")
    shown = proxy.ctl("services")
    true(re.search(r"20 messages passed unadapted since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", shown), f"how many: {shown}")
    # A host out of reach is looked for each second; a connection that was reset in the server's queue had reached it.
    true(re.search(r"down .*\n +since \d{4}-.*: Connection (refused; next try in 0|reset by peer; next try in \d+)\.\d s", shown), f"why: {shown}")
    proxy.stop()
    equal(len(says(proxy, "19 more messages passed unadapted (20 in ")), 1, f"lines at the end: {says(proxy, 'unadapted')}")


def test_metrics_of_health(lab):
    """What has not answered yet is neither up nor down."""
    failing, asked = threading.Event(), threading.Event()
    icap = IcapServer(lab, lambda _i, t: True if failing.is_set() else t.send_204())
    icap.options_answer = lambda server, connection: asked.wait(20 * lab.patience) and server.send_options(connection)
    origin, _, proxy = start(lab, server=icap, failures_down=1, **{**QUICK, "timeout": "20s", "down_min": "1h", "down_max": "1h"})
    metrics = proxy.admin("GET", "/metrics").text()
    lacks(metrics, "retort_icap_service_up{", "metrics before it has answered OPTIONS")
    asked.set()
    fetch(proxy, origin, 10)
    metrics = proxy.admin("GET", "/metrics").text()
    contains(metrics, 'retort_icap_service_up{service="s"} 1', "metrics")
    since = float(re.search(r'retort_icap_service_since_timestamp_seconds{service="s"} (\d+)', metrics).group(1))
    between(time.time() - since, -1, 60 * lab.patience, "seconds since it came up")
    failing.set()
    fetch(proxy, origin, 10)
    contains(proxy.admin("GET", "/metrics").text(), 'retort_icap_service_up{service="s"} 0', "metrics when it is down")


def test_no_limit_of_connections(lab):
    """Neither the server nor the configuration says how many: the log warns, once."""
    for stated, given, lines in ((None, {}, 1), (8, {}, 0), (None, {"max_connections": 64}, 0)):
        icap = IcapServer(lab, Max_Connections=stated)
        origin, _, proxy = start(lab, server=icap, **given)
        for _ in range(3):
            fetch(proxy, origin, 10)
        equal(len(says(proxy, "set max_connections to its number of threads")), lines, f"{stated}, {given}: warnings")
        proxy.stop()
