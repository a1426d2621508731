"""What /metrics says of other programs, and that none of them can spoil or delay it."""

import copy
import json
import os
import socket
import sys
import threading
import time

from harness import ports, wire
from harness.certificates import Authority
from harness.checks import contains, equal, lacks, true, until
from harness.cicap import Cicap, Module
from harness.helperd import Helperd
from harness.icap import IcapServer, unchanged
from harness.metrics import samples, scrape, value
from harness.origin import Origin
from harness.retort import Retort, Service, run_check
from harness.suite import memcheck
from harness.tls import HOSTS
from test_identity_helpers import asked, pool, proxy_of

# Takes a fifth of a second for a password; a user "dies" ends it.
SLOW = """
import os, sys, time
for line in sys.stdin:
    if line.startswith("dies"):
        os._exit(1)
    time.sleep(0.2)
    os.write(1, b"OK\\n")
"""


def at(helpers, name, **labels):
    """The sum of the samples of a helperd's socket."""
    return lambda text: value(text, name, helperd=helpers.socket, pool="slow", **labels)


def test_how_long_jobs_wait_and_helpers_work(lab):
    origin = Origin(lab)
    helpers = Helperd(lab, 'socket = "{socket}"\n' + pool("slow", "squid_basic", sys.executable, lab.write("slow.py", SLOW)))
    proxy = proxy_of(lab, {"slow": f'type = basic  helper = slow  helpers = "{helpers.socket}"'})
    waited, worked = at(helpers, "retort_helper_queue_seconds_count"), at(helpers, "retort_helper_job_seconds_count")
    text = scrape(proxy)
    equal((waited(text), worked(text)), (0, 0), "jobs at the start")
    equal(value(text, "retort_helperd_up", helperd=helpers.socket), 1, "whether it is up")
    users = [threading.Thread(target=asked, args=(proxy, origin.url("/text?say=a"), name)) for name in ("one", "two")]
    for user in users:
        user.start()
    for user in users:
        user.join()
    text = until(lambda: (lambda now: now if worked(now) == 2 else None)(scrape(proxy)), 10 * lab.patience, "two jobs that have ended")
    equal(waited(text), 2, "jobs that came to the helper")
    total = at(helpers, "retort_helper_job_seconds_sum")(text)
    true(0.4 <= total <= 0.4 + 20 * lab.patience, f"seconds of work: {total}")
    queue = at(helpers, "retort_helper_queue_seconds_sum")(text)
    true(0.05 <= queue <= 20 * lab.patience, f"seconds that the second job waited for the only helper: {queue}")
    equal(at(helpers, "retort_helper_job_seconds_bucket", le="+Inf")(text), 2, "the last bucket")
    equal(at(helpers, "retort_helper_job_seconds_bucket", le="0.131072")(text), 0, "jobs of an eighth of a second")
    equal(at(helpers, "retort_helper_jobs_total", outcome="served")(text), 2, "served jobs")
    equal(at(helpers, "retort_helper_processes")(text), 1, "processes")
    equal(at(helpers, "retort_helper_breaker_openings_total")(text), 0, "openings of the breaker")
    asked(proxy, origin.url("/text?say=a"), "dies")
    until(lambda: worked(scrape(proxy)) == 3, 10 * lab.patience, "the job that has killed its helper")
    equal(at(helpers, "retort_helper_jobs_total", outcome="failed")(scrape(proxy)), 1, "failed jobs")
    helpers.kill()
    text = until(lambda: (lambda now: now if value(now, "retort_helperd_failures_total", helperd=helpers.socket) else None)(scrape(proxy)),
                 10 * lab.patience, "the failure")
    equal(samples(text, "retort_helperd_up"), {frozenset({("helperd", helpers.socket)}): 0}, "whether it is up")
    equal(samples(text, "retort_helper_job_seconds_count"), {}, "numbers of a helperd that does not answer")


def times():
    return {"first_us": 64, "sum_us": 5, "counts": [0] * 22}


GOOD = {"ok": True, "pools": [{
    "name": 'p "one" \\', "workers": [{}, {}], "refusals": {"queue_full": 3}, "cpu_ms": 1500,
    **{name: 7 for name in ("served", "unchanged", "failed", "refused", "timeouts", "cancelled", "restarts", "broken")},
    "lanes": [{"name": name, "queued": 1, "at_work": 2, "waiting": times(), "working": times()} for name in ("small", "large")]}]}


class FakeHelperd:
    """Sends every caller what `packets` makes, one packet after the other, and then says nothing."""

    def __init__(self, lab, name, packets):
        self.socket, self.packets, self.calls = lab.path(f"{name}.sock"), packets, 0
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.socket)
        self.listener.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            caller, _ = self.listener.accept()
            self.calls += 1
            threading.Thread(target=self.answer, args=(caller,), daemon=True).start()

    def answer(self, caller):
        with caller:
            try:
                caller.recv(65536)
                for packet in self.packets():
                    caller.send(packet)
                caller.recv(65536)  # until it leaves
            except OSError:
                pass


def changed(change):
    """The packets of an answer that is good but for one thing."""
    answer = copy.deepcopy(GOOD)
    change(answer, answer["pools"][0])
    return lambda: [json.dumps(answer).encode() + b"\n"]


def trickle():
    while True:
        yield b"{"
        time.sleep(0.05)


def endless():
    while True:
        yield b"[" * 16384


def set_in(*path, to):
    """A change of what stands there in the first pool."""
    def change(_, one):
        for step in path[:-1]:
            one = one[step]
        one[path[-1]] = to
    return change


LIES = {
    "silent": lambda: [], "trickle": trickle, "endless": endless, "no_json": lambda: [b"\xff{{{\n"], "deep": lambda: [b"[" * 16000 + b"\n"],
    "refusal": lambda: [b'{"ok":false,"error":"no"}\n'], "list": lambda: [b"[]\n"], "no_pools": lambda: [b'{"ok":true}\n'],
    "twice": changed(lambda answer, one: answer["pools"].append(one)),
    "many": changed(lambda answer, one: answer.update(pools=[{**one, "name": str(number)} for number in range(300)])),
    "negative": changed(set_in("served", to=-1)), "fraction": changed(set_in("served", to=1.5)), "huge": changed(set_in("failed", to=1 << 62)),
    "text": changed(set_in("restarts", to="1\nretort_forged 1")), "missing": changed(lambda answer, one: one.pop("cpu_ms")),
    "line": changed(set_in("name", to="a\nretort_forged 1")), "long": changed(set_in("name", to="a" * 100)),
    "reason": changed(set_in("refusals", to={"a\nb": 1})), "reasons": changed(set_in("refusals", to={str(number): 1 for number in range(17)})),
    "one_lane": changed(lambda answer, one: one["lanes"].pop()), "buckets": changed(set_in("lanes", 0, "waiting", "counts", to=[0] * 21)),
    "bounds": changed(set_in("lanes", 0, "working", "first_us", to=1)),
}


def test_a_helperd_that_lies_costs_a_count(lab):
    """Whatever it sends, or does not: /metrics comes, says that it failed, and has no number of it."""
    good = FakeHelperd(lab, "good", lambda: [json.dumps(GOOD).encode()[:100], json.dumps(GOOD).encode()[100:] + b"\n"])
    names = list(LIES)
    for first in range(0, len(names), 6):
        liars = {name: FakeHelperd(lab, name, LIES[name]) for name in names[first:first + 6]}
        sections = {name: f'type = basic  helper = p  helpers = "{liar.socket}"' for name, liar in {**liars, "good": good}.items()}
        proxy = proxy_of(lab, sections)
        begun = time.monotonic()
        text = scrape(proxy)
        true(time.monotonic() - begun < 0.25 * len(liars) + 3 * lab.patience, f"seconds for /metrics: {time.monotonic() - begun}")
        equal({name: value(text, "retort_helperd_failures_total", helperd=liar.socket) for name, liar in liars.items()},
              dict.fromkeys(liars, 1), "failures")
        equal(samples(text, "retort_helperd_up"), {frozenset({("helperd", good.socket)}): 1}, "those that are up")
        equal({dict(labels)["helperd"] for labels in samples(text, "retort_helper_restarts_total")}, {good.socket}, "whose numbers these are")
        contains(text, 'pool="p \\"one\\" \\\\",reason="queue_full"} 3\n', "labels that had to be escaped")
        equal(value(text, "retort_helper_cpu_seconds_total"), 1.5, "seconds of CPU")
        lacks(text, "\nretort_forged", "what a liar has written")
        scrape(proxy)
        equal({name: liar.calls for name, liar in liars.items()}, dict.fromkeys(liars, 1), "calls of liars, which are left alone for a while")
        proxy.stop()


def test_who_has_no_helpers_sees_no_failures(lab):
    proxy = Retort(lab, admin_options={"helpers": lab.path("nobody.sock")})
    text = scrape(proxy)
    equal(value(text, "retort_helperd_failures_total"), 0, "failures")
    equal(samples(text, "retort_helperd_up"), {}, "what is up")
    true(not os.path.exists(lab.path("nobody.sock")), "the socket")


def info(proxy, name, authority):
    return value(scrape(proxy), f"retort_icap_server_{name}", server=authority)


def failed(proxy, authority):
    return until(lambda: info(proxy, "failures_total", authority), 20 * proxy.lab.patience, "a failure")


@memcheck
def test_what_cicap_counts(lab):
    """Two services and four workers ask one c-icap: it is asked once in three seconds, and its numbers are there once."""
    origin = Origin(lab)
    cicap, begun = Cicap(lab, [Module("echo", "srv_echo.so")], children=2, threads=10), time.monotonic()
    services = [Service(name, cicap.uri("echo"), bypass=False, info="info") for name in ("one", "two")]
    proxy = Retort(lab, services=services, adapt={"all": ["one"]}, workers=4)
    until(lambda: info(proxy, "up", cicap.authority) == 1, 10 * lab.patience, "the first answer")
    before = scrape(proxy)
    for _ in range(5):
        equal(proxy.get(origin.url("/bytes", n=20000, cc="no-store")).status, 200, "status")
    until(lambda: info(proxy, "requests_total", cicap.authority) >= value(before, "retort_icap_server_requests_total") + 5,
          20 * lab.patience, "what c-icap has counted")
    text = scrape(proxy)
    questions, seconds = sum("info" in entry.service for entry in cicap.entries()), time.monotonic() - begun
    true(2 <= questions <= seconds / 3 + 2, f"questions to the info service: {questions} in {seconds:.1f} s")
    for name, least, most in (("processes", 2, 2), ("threads_used", 1, 20), ("threads_free", 1, 20), ("failed_requests_total", 0, 0),
                              ("bytes_in_total", 20000, 200000), ("processes_crashed_total", 0, 0), ("failures_total", 0, 0)):
        found = samples(text, f"retort_icap_server_{name}")
        equal([dict(labels)["server"] for labels in found], [cicap.authority], f"servers of {name}")
        true(least <= list(found.values())[0] <= most, f"{name}: {found}")
    cicap.kill()
    until(lambda: info(proxy, "failures_total", cicap.authority), 20 * lab.patience, "the failure")
    equal(samples(scrape(proxy), "retort_icap_server_requests_total"), {}, "numbers of a server that does not answer")
    equal(info(proxy, "up", cicap.authority), 0, "whether it is up")


def test_cicap_over_tls_counts_too(lab):
    ca, port = Authority(lab), ports.take()
    good = ca.leaf(*HOSTS)
    Cicap(lab, [Module("echo", "srv_echo.so")], extra=f"TlsPort 127.0.0.1:{port} cert={good.file} key={good.key}")
    proxy = Retort(lab, services=[Service("s", f"icaps://localhost:{port}/echo", ca_file=ca.file, info="info")])
    until(lambda: info(proxy, "up", f"localhost:{port}") == 1, 10 * lab.patience, "the answer")


GOOD_INFO = ("Children number: 1\nClosing Processes: 0\nStarted Processes: 1\nCrashed Processes: 0\nFree Servers: 1\nUsed Servers: 1\n"
             "REQUESTS : 77\nFAILED REQUESTS : 0\nALLOW 204 : 0\nBYTES IN : 0 Kbs 1 bytes\nBYTES OUT : 0 Kbs 1 bytes\n")
RESPONSE = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"


def says(text):
    return lambda transaction: transaction.send_200(RESPONSE, text.encode())


def drips(transaction):
    """A head that does not end, a byte at a time."""
    for _ in range(200):
        transaction.send(b"X")
        time.sleep(0.05)


def never_ends(transaction):
    transaction.send_head(RESPONSE)
    while True:
        transaction.send(wire.chunked(b"Service x\n" * 1000, last=b""))


INFO_LIES = {
    "silent": lambda transaction: transaction.connection.read_some(), "drips": drips, "never_ends": never_ends,
    "nothing": says(""), "page": says("<html>"), "negative": says(GOOD_INFO.replace("77", "-77")),
    "huge": says(GOOD_INFO.replace("77", "7" * 30)), "twice": says(GOOD_INFO * 2), "no_204": lambda transaction: transaction.send_204(),
    "request": lambda transaction: transaction.send_200(b"GET / HTTP/1.1\r\n\r\n", GOOD_INFO.encode()),
    "heads": lambda transaction: transaction.send_head(RESPONSE, encapsulated=b"res-hdr=0, res-body=99999999"),
    "garbage": lambda transaction: transaction.send(b"\0\xff" * 50000),
    "chunks": lambda transaction: (transaction.send_head(RESPONSE), transaction.send(b"zz\r\n")),
}


def test_a_server_that_lies_about_itself_costs_a_count(lab):
    """Whatever its info service sends: the failure is counted, nothing is shown, and the service is used as before."""
    origin = Origin(lab)
    servers = {}

    def behaviour(lie):
        def behave(icap, transaction):
            if "/info?view=text" in transaction.request.uri:
                lie(transaction)
            else:
                unchanged(icap, transaction)
        return behave
    for name, lie in {**INFO_LIES, "good": says(GOOD_INFO)}.items():
        servers[name] = IcapServer(lab, behaviour(lie), methods="RESPMOD, REQMOD")
    services = [Service(name, server.uri(), bypass=False, info="info") for name, server in servers.items()]
    proxy = Retort(lab, services=services, adapt={"all": list(servers)})
    at = {name: server.authority for name, server in servers.items()}
    until(lambda: info(proxy, "up", at["good"]) == 1, 10 * lab.patience, "the answer of the good one")
    for name in INFO_LIES:
        failed(proxy, at[name])
    text = scrape(proxy)
    equal({dict(labels)["server"]: found for labels, found in samples(text, "retort_icap_server_requests_total").items()}, {at["good"]: 77},
          "requests by server")
    equal({dict(labels)["server"] for labels in samples(text, "retort_icap_server_up")}, {at["good"]}, "servers that have answered")
    equal(proxy.get(origin.url("/bytes", n=100, cc="no-store")).status, 200, "a response through all services")
    equal({entry["state"] for entry in json.loads(proxy.admin("GET", "/services").body)["services"]}, {"up"}, "states of services")


def test_info_is_asked_only_where_it_is_wanted(lab):
    server = IcapServer(lab)
    proxy = Retort(lab, services=[Service("s", server.uri())])
    equal(samples(scrape(proxy), "retort_icap_server_failures_total"), {}, "servers")
    for name in ("a b", "a\\\\r", "a/x", "x" * 65):
        config = lab.write("bad.conf", f'icap_service s {{ uri = "icap://127.0.0.1:1/s" point = respmod_precache info = "{name}" }}\n')
        contains(run_check(lab, config, "-T")[1], "is no name of an info service", f"retort -T with {name!r}")
