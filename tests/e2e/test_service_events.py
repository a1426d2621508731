"""What services inside the proxy do outside of exchanges: their timer, the descriptors that they watch, and what they are told of.
The module tests/e2e/modules/outside.c counts and reports it."""

import os
import subprocess
import threading
import time

from harness import ports
from harness.adaptation import account
from harness.checks import between, contains, equal, true, until
from harness.cicap import Cicap, Module
from harness.dns import AAAA, NameServer
from harness.raw_origin import RawOrigin
from harness.retort import Inside, Retort, Service
from harness.wire import fetch
from test_takeover import upgrade


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
    proxy = Retort(lab, workers=1, services=services[0])  # the message keeps the old services of the worker that has the timer
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
        order(pipes[1], "x")
        await_count(lab, proxy, "READY", 4)
        before = count(proxy, "TIMER")
        await_count(lab, proxy, "TIMER", before + 3)  # the loop has looked at all descriptors since
        equal(count(proxy, "READY"), 4, "calls, with none for a descriptor of the old instance")
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


def reported(path, kind):
    """What the service was told of, as lists of texts."""
    try:
        with open(path, encoding="ascii") as lines:  # which it would not be if something were not escaped
            return [line.rstrip("\n").split("\t")[1:] for line in lines if line.startswith(kind + "\t")]
    except FileNotFoundError:
        return []


def await_reports(lab, path, kind, number):
    until(lambda: len(reported(path, kind)) >= number, 10 * lab.patience, f"{number} reports of kind {kind} in {path}")
    return reported(path, kind)


LOGGED = ("id", "client", "user", "method", "url", "status", "request_bytes", "response_bytes", "us", "result", "hierarchy", "server",
          "error", "content_type", "aborted")


def log_reports(lab, path, number):
    return [dict(zip(LOGGED, line)) for line in await_reports(lab, path, "logged", number)]


def test_lines_of_the_log(lab):
    """Each request once, with what the access log says of it; the service sees of the client what it may."""
    origin, report, quiet = RawOrigin(lab, sends_text), lab.path("report"), lab.path("quiet")
    services = [outside(lab, settings={"Report": report}, include=["X-Client-IP", "X-Client-Username"]),
                outside(lab, "quiet", {"Report": quiet})]
    proxy = Retort(lab, workers=3, services=services, adapt={})  # no message goes to either
    proxy.get(origin.url("/text"))
    proxy.get(origin.url("/text"))
    proxy.fetch("POST", origin.url("/post"), {"Proxy-Authorization": "Basic YW5uYTp4"}, body=b"x" * 5000)
    proxy.get("http://127.0.0.1:1/nobody")
    with proxy.wire() as other:
        other.send(b"BREW x HTTP/9.9\r\n\r\n")
        other.head()
    logged = {entry["id"]: entry for entry in proxy.log(5)}
    seen = log_reports(lab, report, 5)
    equal(sorted(line["id"] for line in seen), sorted(logged), "the requests")
    for line in seen:
        entry = logged[line["id"]]
        for name in ("client", "method", "url", "result", "content_type"):
            equal(line[name], (entry[name] or "").split(";")[0], f"{name} of {entry}")
        equal((int(line["status"]), int(line["response_bytes"])), (entry["status"], entry["bytes"]), "status and bytes")
        equal((line["aborted"] == "1", line["error"]), (entry["aborted"], entry.get("error", "")), "the end")
        equal(line["server"], entry["origin"].replace("-", ""), "the server")
        equal(line["hierarchy"], "NONE" if entry["origin"] == "-" else "DIRECT", "the hierarchy")
    post = next(line for line in seen if line["method"] == "POST")
    equal((post["request_bytes"], post["user"]), ("5000", "anna"), "the request with a body")
    unseen = log_reports(lab, quiet, 5)
    equal({(line["client"], line["user"]) for line in unseen}, {("", "")}, "what a service that may not know the client is told")
    equal(count(proxy, "LOGGED"), 5, "calls")


def sends_text(connection, seen):
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\ntext")


def test_bytes_that_could_forge_a_line(lab):
    """What a client or an origin sends can neither end a line nor begin a value in what a service writes."""
    def answer(connection, seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/x\ty\"z\\\xe4\r\nContent-Length: 0\r\n\r\n")
    origin, report = RawOrigin(lab, answer), lab.path("report")
    proxy = Retort(lab, services=[outside(lab, settings={"Report": report})], adapt={})
    proxy.get(origin.url('/a"b\\c'))
    proxy.get(origin.url("/" + "y" * 6000))
    short, long = [line for line in await_reports(lab, report, "logged", 2)]
    equal(len(long), len(LOGGED), "values of the line of a long URL")
    true(len(long[4]) < 3000, f"a long URL is cut: {len(long[4])}")
    equal((short[4], short[13]), (origin.url("/a%22b%5Cc"), "text/x%09y%22z%5C%E4"), "the URL and the type")
    true(all(" " < letter <= "~" and letter not in '"\\' for value in short for letter in value), f"raw bytes in {short}")


def test_lines_after_a_reload(lab):
    """A request that was under way when a reload took the service out is still told to it; those after it are not."""
    texts, report = SlowOrigin(lab), lab.path("report")
    proxy = Retort(lab, workers=2, services=[outside(lab, settings={"Report": report})], adapt={})
    with proxy.wire() as slow:
        slow.send(f"GET {texts.url('/slow')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        slow.head()
        proxy.write_config(proxy.text(services=[]))
        equal(proxy.reload().status, 200, "the reload")
        equal(proxy.get("http://127.0.0.1:1/after").status, 502, "a request after the reload")
        texts.going_on.set()
        await_reports(lab, report, "logged", 1)
    equal([line["url"] for line in log_reports(lab, report, 1)], [texts.url("/slow")], "the requests that it heard of")


def await_closed(lab, path, number):
    """The last of so many connections with requests."""
    def closed():
        return [line for line in reported(path, "closed") if line[1] != "0"]
    until(lambda: len(closed()) >= number, 10 * lab.patience, f"{number} connections that have ended")
    return closed()[-1]


def test_connections_that_end(lab):
    origin, report = RawOrigin(lab), lab.path("report")
    proxy = Retort(lab, workers=3, services=[outside(lab, settings={"Report": report}, include="X-Client-IP")], adapt={},
                   client={"idle_timeout": "1s"}, extra=f"connect_ports = {{ {origin.port} }}")
    with proxy.wire() as one:
        for path in ("/1", "/2"):
            one.send(f"GET {origin.url(path)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            equal(one.response().status, 200, "a request")
    client = await_closed(lab, report, 1)
    equal((client[0], client[1], client[5]), ("127.0.0.1", "2", "client"), "a client that leaves")
    true(100 < int(client[2]) < 1000 and 200 < int(client[3]) < 2000, f"bytes in and out: {client[2:4]}")
    with proxy.wire() as idle:
        idle.send(f"GET {origin.url('/3')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        idle.response()
        equal(await_closed(lab, report, 2)[5], "timeout", "a client that does nothing")
    with proxy.wire() as last:
        last.send(f"GET {origin.url('/4')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        last.response()
        equal(await_closed(lab, report, 3)[5], "proxy", "a request that is the last")
    with proxy.wire() as tunnel:
        tunnel.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        equal(tunnel.head().status, 200, "CONNECT")
        tunnel.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        tunnel.response()
    ended = await_closed(lab, report, 4)
    equal((ended[1], ended[2], ended[5]), ("1", "27", "tunnel"), "a tunnel")
    silent = [line for line in reported(report, "closed") if line[1] == "0"]
    true(len(silent) > 0 and {line[5] for line in silent} == {"client"}, f"those that saw whether the proxy listens: {silent}")


def says(text, address="127.0.0.1", lab=None, port=None):
    """An origin at that address whose answers are that text."""
    def answer(connection, seen):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: %d\r\n\r\n" % len(text) + text.encode())
    origin = RawOrigin(lab, answer, address)
    if port:
        origin.close_listener()
        origin.port = port
        origin.listen_again()
    return origin


class Named:
    """two.test has two addresses, with an origin at each: they answer "first" and "second"."""

    def __init__(self, lab, sorts, **origin):
        self.names = NameServer(lab)
        self.report = lab.path("report")
        self.port = says("first", lab=lab).port
        says("second", "127.0.0.2", lab, self.port)
        self.names.set("two.test", "127.0.0.1", "127.0.0.2")
        service = outside(lab, settings={"Report": self.report, "Name": "two.test", "Sorts": sorts})
        self.proxy = Retort(lab, workers=1, services=[service], adapt={}, origin={
            "dns_servers": [self.names.address], "dns_search": "none", "hosts_file": "none", "max_idle": 0, "dns_ipv6": False, **origin})

    def get(self, name="two.test"):
        return self.proxy.get(f"http://{name}:{self.port}/")

    def asked(self):
        return reported(self.report, "resolved")


def test_order_of_addresses(lab):
    """The first address that the service says is tried first. It is asked once in a time to live, and when it is gone, so is what
    it said."""
    site = Named(lab, "backwards")
    equal([site.get().text() for _ in range(3)], 3 * ["second"], "backwards")
    equal(site.asked(), [["two.test", "2"]], "what the service was asked")
    site.proxy.write_config(site.proxy.text(services=[]))
    equal(site.proxy.reload().status, 200, "a reload without the service")
    equal(site.get().text(), "first", "without the service")
    equal(len(site.asked()), 1, "questions after the reload")


def test_order_of_families(lab):
    """Also the family that is tried first is the service's to say: IPv6 is first without it."""
    names = NameServer(lab)
    port = says("IPv4", lab=lab).port
    says("IPv6", "::1", lab, port)
    names.set("two.test", "127.0.0.1", "::1")
    service = outside(lab, settings={"Name": "two.test", "Sorts": "backwards"})
    proxy = Retort(lab, services=[service], adapt={}, origin={"dns_servers": [names.address], "dns_search": "none", "hosts_file": "none",
                                                              "max_idle": 0, "attempt_delay": "10s"})
    equal(proxy.get(f"http://two.test:{port}/").text(), "IPv4", "backwards")
    proxy.write_config(proxy.text(services=[]))
    equal(proxy.reload().status, 200, "a reload without the service")
    equal(proxy.get(f"http://two.test:{port}/").text(), "IPv6", "without the service")


def test_addresses_that_are_left_out(lab):
    site = Named(lab, "first")
    site.names.set("two.test", "127.0.0.9", "127.0.0.1")  # nobody is at the one that is left
    equal(site.get().status, 502, "with the one address that refuses")
    equal(site.get("localhost").text(), "first", "localhost, which the service is not asked about")
    site.names.set("other.test", "127.0.0.9", "127.0.0.1")
    equal(site.get("OTHER.test").text(), "first", "another name, which the service leaves alone")
    equal(site.asked(), [["two.test", "2"], ["other.test", "2"]], "what the service was asked")


def test_no_address_is_left(lab):
    site = Named(lab, "none")
    for _ in range(2):
        answer = site.get()
        equal(answer.status, 502, "status")
        contains(answer.text(), "the service outside left out all addresses of the name", "the page")
    equal(len(site.asked()), 1, "questions")
    contains(site.proxy.ctl("dns"), "the service outside left out all addresses of the name", "retortctl dns")


def test_forged_addresses(lab):
    """A service can lead clients neither to an address that DNS did not give, nor past the rules about the machine itself."""
    site = Named(lab, "forged")
    site.names.set("two.test", "127.0.0.2", "127.0.0.9")
    equal(site.get().status, 502, "the forged 127.0.0.1 is not used, and nobody is at the other address")
    contains(site.proxy.process.log(), "service outside: its function resolved names an address that DNS did not give", "the log")
    equal(account(site.proxy, "outside")["account"]["error_protocol"], 1, "errors of the service")
    many = Named(lab, "too-many")
    equal(many.get().text(), "first", "a service that returns more than there were is not listened to")
    contains(many.proxy.process.log(), "its function resolved returns more addresses than there were", "the log")
    guarded = Named(lab, "backwards")
    port = ports.take()
    guarded.proxy.write_config(guarded.proxy.text() + f'listen "127.0.0.1:{port}" {{ mode = forward name = guarded }}\n')
    equal(guarded.proxy.reload().status, 200, "the reload")
    answer = fetch(("127.0.0.1", port), "GET", f"http://two.test:{guarded.port}/")
    equal(answer.status, 403, "a client that may not reach the machine itself")


def test_transaction_ids(lab):
    """The id is the proxy's own, whatever a client sends, and the same for the request, its response and its line."""
    report, origin = lab.path("report"), RawOrigin(lab)
    services = [outside(lab, "asks", {"Does": "tell-id"}, point="reqmod_precache"),
                outside(lab, "gives", {"Does": "tell-id", "Report": report})]
    proxy = Retort(lab, workers=2, services=services)
    seen = proxy.get(origin.url("/"), {"X-Transaction-ID": "forged", "X-Outside": "forged"})
    told = origin.requests[0].headers("X-Outside")
    equal(told, ["forged", seen.header("X-Outside")], "what the services told the origin and the client")
    equal([line["id"] for line in log_reports(lab, report, 1)], told[1:], "the line")
    equal(proxy.last(1)["id"], told[1], "the access log")


def test_opt_out(lab):
    """Who opts out at the request is asked neither at its other points nor for the line; others are, and later requests are as ever.
    What it was left out of is not stored for others."""
    report, origin = lab.path("report"), RawOrigin(lab, sends_text)
    services = [outside(lab, "asks", {"Does": "opt-out", "Report": report}, point="reqmod_precache"),
                outside(lab, "gives", {"Does": "tell-id"}),
                outside(lab, "behind", {"Does": "tell-id"}, point="respmod_postcache"),
                Inside("other", lab.built("tests/e2e/modules/.libs/odd.so"), settings={"Do": "head"})]
    proxy = Retort(lab, workers=1, services=services,  # whose lines come in the order of the requests
                   adapt={"all": ["asks", "gives", "behind", "other"]})
    out = proxy.get(origin.url("/page"), {"X-Out": "1"})
    equal((out.header("X-Outside"), out.header("X-Odd")), (None, "1"), "the response to who opted out")
    verdicts = {call["service"]: call["verdict"] for call in proxy.last(1)["icap"]}
    equal(verdicts, {"asks": "UNMODIFIED", "gives": "OPTED_OUT", "other": "MODIFIED", "behind": "OPTED_OUT"}, "verdicts")
    other = proxy.get(origin.url("/page"))
    equal(len(other.headers("X-Outside")), 2, "another client gets what the services make of it")
    equal(proxy.results("/page", 2), ["MISS", "MISS"], "nobody gets what somebody opted out of")
    equal(len(proxy.get(origin.url("/page")).headers("X-Outside")), 2, "a hit")
    hit = proxy.get(origin.url("/page"), {"X-Out": "1"})
    equal((proxy.results("/page", 4)[2:], len(hit.headers("X-Outside"))), (["HIT", "HIT"], 1), "a hit for who opts out")
    ids = [entry["id"] for entry in proxy.log(4)]
    equal({line["id"] for line in log_reports(lab, report, 2)}, {ids[1], ids[2]}, "lines that the module heard of")


def test_opting_out_of_what_is_remembered(lab):
    """Who opted out gets no variant that services behind the cache made for all, and the one without it is for nobody else."""
    origin = RawOrigin(lab, sends_text)
    services = [outside(lab, "asks", {"Does": "opt-out"}, point="reqmod_precache"),
                outside(lab, "behind", {"Does": "tell-id"}, point="respmod_postcache", remember=True)]
    proxy = Retort(lab, services=services, adapt={"all": ["asks", "behind"]})
    marks = [proxy.get(origin.url("/page"), headers).header("X-Outside") is not None
             for headers in ({}, {"X-Out": "1"}, {}, {"X-Out": "1"})]
    equal(marks, [True, False, True, False], "who gets the variant")
    fresh = [proxy.get(origin.url("/fresh"), headers).header("X-Outside") is not None for headers in ({"X-Out": "1"}, {})]
    equal(fresh, [False, True], "the other way round")
    late = [outside(lab, "asks", {"Does": "opt-out"}, point="reqmod_postcache"), services[1]]
    proxy.write_config(proxy.text(services=late))
    equal(proxy.reload().status, 200, "the reload")
    marks = [proxy.get(origin.url("/late"), headers).header("X-Outside") is not None for headers in ({"X-Out": "1"}, {}, {})]
    equal(marks, [False, True, True], "who opts out behind the look-up")


def test_two_descriptors(lab):
    """A service waits for two descriptors: it is told when the second one is ready, however far the deadline of the first."""
    origin = RawOrigin(lab, sends_text)
    proxy = Retort(lab, services=[outside(lab, does, {"Does": does}) for does in ("wait-two", "wait-also")],
                   adapt={"all": ["wait-two", "wait-also"]})
    began = time.monotonic()
    seen = proxy.get(origin.url("/"))
    equal(len(seen.headers("X-Outside")), 2, "both services have decided")
    between(time.monotonic() - began, 0, 10, "seconds")


def test_in_c_icap(lab):
    """c-icap knows the id and waits for two descriptors; it calls no function outside of exchanges, and says so."""
    origin = RawOrigin(lab, sends_text)
    path = lab.built("tests/e2e/modules/.libs/srv_outside.so")
    for does in ("tell-id", "wait-also"):
        cicap = Cicap(lab, [Module("outside", path, f"outside.Does {does}")])
        proxy = Retort(lab, services=[Service("outside", cicap.uri("outside"), bypass=False)])
        seen = proxy.get(origin.url("/"), {"X-Transaction-ID": "forged"})
        equal(seen.header("X-Outside"), proxy.last(1)["id"], f"{does}: the id")
        contains(cicap.server_log(), "outside: c-icap never calls those of its functions timer, descriptor, logged, closed and resolved",
                 "c-icap's log")
        counters = cicap.server_log().count("can be watched")
        equal(counters, 0, "descriptors that could be watched")


def test_one_family_answers_later(lab):
    """The addresses that are there are shown to the service at once, and all of them when the other family has answered."""
    names, report = NameServer(lab), lab.path("report")
    origin = says("first", lab=lab)
    names.set("two.test", "127.0.0.1", "::1", delay={AAAA: 0.5})
    proxy = Retort(lab, services=[outside(lab, settings={"Report": report, "Name": "two.test", "Sorts": "backwards"})], adapt={},
                   origin={"dns_servers": [names.address], "dns_search": "none", "hosts_file": "none"})
    equal(proxy.get(f"http://two.test:{origin.port}/").text(), "first", "with the address that is there")
    equal(await_reports(lab, report, "resolved", 2), [["two.test", "1"], ["two.test", "2"]], "what the service was asked")
    contains(proxy.ctl("dns"), "127.0.0.1", "retortctl dns")


def test_takeover_with_timers(lab):
    """The new process's timer runs, and the old one's ends with its process."""
    pipe, origin = make_pipe(lab), RawOrigin(lab)
    proxy = Retort(lab, workers=2, services=[outside(lab, settings={"Pipe": pipe})], drain_timeout="20s")
    await_count(lab, proxy, "TIMER", 3)
    upgrade(lab, proxy)
    await_count(lab, proxy, "TIMER", 3)
    order(pipe, "xx")
    equal(proxy.get(origin.url("/")).status, 200, "a request")
    nothing_strange(proxy)


def test_report_service(lab):
    """examples/report-service: it counts what clients were sent, but not what it opted out of, and leaves an address out."""
    path, pipe, names = lab.built("tests/e2e/modules/.libs/report.so"), make_pipe(lab), NameServer(lab)
    port = says("first", lab=lab).port
    says("second", "127.0.0.2", lab, port)
    names.set("two.test", "127.0.0.1", "127.0.0.2")
    names.set("one.test", "127.0.0.1")
    service = Inside("report", path, point="reqmod_precache",
                     settings={"Pipe": pipe, "Quiet": "/health", "Avoid": "127.0.0.1", "Every": "60m"})
    proxy = Retort(lab, workers=2, services=[service],
                   origin={"dns_servers": [names.address], "dns_search": "none", "hosts_file": "none", "max_idle": 0})
    for url, text in ((f"http://two.test:{port}/", "second"), (f"http://one.test:{port}/", "first"),
                      (f"http://two.test:{port}/health", "second")):
        equal(proxy.get(url).text(), text, url)
    equal(proxy.get("http://127.0.0.1:1/").status, 502, "a request that fails")
    until(lambda: proxy.status()["counters"]["client_connections_open"] == 0, 10 * lab.patience, "the ends of the connections")
    order(pipe, "x")
    until(lambda: "service report: 3 requests: 2 2xx, 0 3xx, 0 4xx, 1 5xx; 0 hits; 4 connections ended; the newest failure: 502 Bad Gateway" in proxy.process.log(),
          10 * lab.patience, "the report")
    tester = subprocess.run([lab.built("icap-services/retort-service-test"), path], capture_output=True, text=True, timeout=100, check=False,
                            env={**os.environ, **lab.environment()})
    equal(tester.returncode, 0, f"retort-service-test: {tester.stdout}{tester.stderr}")
