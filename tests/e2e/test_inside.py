"""Services inside the proxy: the modules of services, loaded by the proxy itself (proxy/inside/). The services themselves are
tested under both hosts by the tests that they have (harness/services.py, `host`)."""

import gzip
import json
import os
import random
import shutil
import subprocess

from harness import ports
from harness.adaptation import account, whole_or_cut
from harness.codings import DECODERS, decode
from harness.checks import contains, equal, lacks, same_bytes, true, until
from harness.icap import IcapServer, append
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Inside, Retort, Service, run_check
from harness.services import Services
from harness.suite import memcheck

LONG = b"many lines\n" * 30_000


def module(lab, name):
    return lab.built(f"tests/e2e/modules/.libs/{name}.so")


def odd(lab, does, name="odd", settings=None, **options):
    return Inside(name, module(lab, "odd"), settings={"Do": does, **(settings or {})}, **options)


class Texts:
    """An origin of texts: with their length, or in chunks."""

    def __init__(self, lab):
        self.types = {}  # of those that are no plain text
        self.bodies = {"/short": b"One line.\n", "/long": LONG, "/empty": b""}
        self.origin = RawOrigin(lab, self.answer)

    def answer(self, connection, seen):
        path, _, how = seen.target.partition("?")
        body = self.bodies.get(path, b"")
        framing = b"Content-Length: %d" % len(body)
        if "chunked" in how:
            framing, body = b"Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        kept = b"no-store" if "store" in how else b"max-age=60"
        kind = self.types.get(path, b"text/plain")
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nCache-Control: " + kept + b"\r\n" + framing + b"\r\n\r\n" + body)

    def url(self, path):
        return self.origin.url(path)


def verdict_of(proxy, part):
    return [call["verdict"] for call in proxy.entries(part)[-1]["icap"]]


def each(lab, texts, behaviours, **options):
    """One proxy with a service for each behaviour, named as that, and a class of URLs for each: /NAME/short and /NAME/long. A
    behaviour may be (name, what it does, options)."""
    given = [(one, one, {}) if isinstance(one, str) else one for one in behaviours]
    services = [odd(lab, does, name, **{**options, **more}) for name, does, more in given]
    for service in services:
        texts.bodies.update({f"/{service.name}/short": b"One line.\n", f"/{service.name}/long": LONG})
    return Retort(lab, services=services, adapt={service.name: [service.name] for service in services},
                  url_classes={service.name: {"path_regex": f"^/{service.name}/"} for service in services})


def test_hello(lab):
    texts = Texts(lab)
    proxy = Retort(lab, services=[Inside("hello", module(lab, "hello"), bypass=False, settings={"Greeting": "Good day"},
                                         arguments="name=you")])
    for path, body in texts.bodies.items():
        for how in ("", "?chunked"):
            seen = proxy.get(texts.url(path + how))
            same_bytes(seen.body, b"Good day, you!\n" + body if body else b"", path + how)
            if body and not how:
                equal(seen.header("Content-Length"), str(len(seen.body)), f"{path}: Content-Length, which the service stated")
    same_bytes(proxy.get(texts.url("/long")).body, b"Good day, you!\n" + LONG, "the hit")
    equal(proxy.results("/long", 3)[-1], "HIT", "the adapted text is stored")
    service = account(proxy, "hello")
    equal((service["state"], service["endpoints"][0]["uri"]), ("up", f"module:{module(lab, 'hello')}"), "the service")
    equal(service["account"]["modified"], 4, "messages that it changed")
    true(service["account"]["bytes_in"] >= 4 * len(b"Good day, you!\n"), "what came from the service")


@memcheck
def test_all_verdicts(lab):
    texts = Texts(lab)
    kept, upper = (lambda body: body), bytes.upper
    changes = {"head": kept, "nothing": kept, "shout": upper, "hold": upper, "skip-late": kept, "keep-late": kept, "wait": upper, "pass": upper}
    proxy = each(lab, texts, changes)
    for name, change in changes.items():
        for size in ("short", "long"):
            for how in ("", "?chunked"):
                seen = proxy.get(texts.url(f"/{name}/{size}{how}"))
                equal(seen.status, 200, f"{name}: status")
                body = texts.bodies[f"/{name}/{size}"]
                # "pass" leaves the rest alone as soon as it has given something out
                same_bytes(seen.body.upper() if name == "pass" else seen.body, change(body), f"{name} {size}{how}")
    equal(proxy.get(texts.url("/head/short")).header("X-Odd"), "1", "the field of a service that keeps the body")
    equal(verdict_of(proxy, "/skip-late/long"), ["UNMODIFIED"], "SKIP after all of the body")


@memcheck
def test_requests_are_adapted_and_answered(lab):
    origin = Origin(lab)
    proxy = Retort(lab, services=[odd(lab, "head", "marks", point="reqmod_precache"),
                                  odd(lab, "answer", "denies", point="reqmod_postcache")],
                   adapt={"all": ["marks"], "denied": ["denies"]}, url_classes={"denied": {"path_regex": "/text"}})
    seen = echoed(proxy.fetch("POST", origin.url("/echo"), body=b"x" * 50_000))
    contains(str(seen).lower(), "x-odd", "the request at the origin")
    denied = proxy.get(origin.url("/text", say="hello"))
    equal((denied.status, denied.body), (403, b"denied"), "an answer of the service")


@memcheck
def test_what_fails_passes_or_stops(lab):
    """A service that fails before a part of its body has gone out: with bypass the original, without it an error."""
    texts, names = Texts(lab), ("abort-at-once", "greedy", "stuck", "bad-head", "hold-for-ever")
    proxy = each(lab, texts, [(name + end, name, {"bypass": end == ""}) for name in names for end in ("", ".stops")])
    for name in names:
        passed = whole_or_cut(proxy, texts.url(f"/{name}/long"))
        true(passed is not None and passed.status == 200, f"{name}: with bypass the client gets an answer")
        same_bytes(passed.body, LONG, f"{name}: with bypass")
        lacks(str(passed.headers), "X-Evil", f"{name}: a field that the service had no right to begin")
        stopped = whole_or_cut(proxy, texts.url(f"/{name}.stops/long"))
        true(stopped is None or stopped.status == 502, f"{name}: without bypass: {stopped and stopped.status}")
        equal(account(proxy, name)["account"]["bypassed"], 1, f"{name}: messages that passed")


@memcheck
def test_heads_without_room(lab):
    """A service may fill a head. The proxy needs room behind it, for what frames the body before all, and others parse what it
    has made: such a message fails, wherever the service runs, also when the verdict could be remembered, and nobody takes its body
    for another request."""
    texts, seen = Texts(lab), []

    def answer(connection, request):
        seen.append(request.method)
        texts.answer(connection, request)
    origin = RawOrigin(lab, answer)
    services = [odd(lab, does, f"{does}-{point[:3]}", {"Lifetime": "60"}, point=point + "_precache", bypass=False) for does in ("crowd", "swell")
                for point in ("reqmod", "respmod")]
    proxy = Retort(lab, services=services, adapt={service.name: [service.name] for service in services},
                   url_classes={service.name: {"path_regex": f"^/{service.name}"} for service in services})
    for service in services:
        url = origin.url(f"/{service.name}")
        for _ in range(2):
            equal(proxy.get(url).status, 502, f"{service.name}: status")
        contains(proxy.entries(service.name)[-1]["icap"][0]["error"], "more than 128 fields or 128 KB", f"{service.name}: the log")
        equal(account(proxy, service.name)["account"]["error_protocol"], 2, f"{service.name}: counted")
    del seen[:]
    body = b"5\r\nGET /\r\n0\r\n\r\n"
    with proxy.wire() as wire:
        wire.send(f"POST {origin.url('/crowd-req')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + body)
        equal(wire.head().status, 502, "a request with a body")
    equal(seen, [], "what the origin has seen of it")


def test_lengths_that_lie(lab):
    """A body that is longer or shorter than the service said is never delivered as whole, and never stored as whole."""
    texts = Texts(lab)
    proxy = each(lab, texts, ["long", "short"], bypass=False)
    texts.bodies["/short/short"] = b"tiny"
    for name, path in (("long", "/long/long"), ("short", "/short/short")):
        for _ in range(2):
            seen = whole_or_cut(proxy, texts.url(path))
            true(seen is None or seen.status == 502, f"{name}: {seen}")
        equal(account(proxy, name)["account"]["error_protocol"], 2, f"{name}: counted")


def test_answers_that_lie(lab):
    """The same of answers to requests. A length of 0 tells the client not to wait for anything, so it has to be true before the head goes out."""
    texts, lies = Texts(lab), ("answer-long", "answer-short", "answer-other", "answer-empty")
    proxy = each(lab, texts, ["answer", *lies], bypass=False, point="reqmod_precache")
    seen = proxy.get(texts.url("/answer/short"))
    equal((seen.status, seen.header("Content-Length"), seen.body), (403, "6", b"denied"), "one that is true")
    for name in lies:
        seen = whole_or_cut(proxy, texts.url(f"/{name}/short"))
        true(seen is None or seen.status == 502, f"{name}: {seen and (seen.status, seen.body)}")
        equal(account(proxy, name)["account"]["error_protocol"], 1, f"{name}: counted")


@memcheck
def test_abort_in_the_middle(lab):
    """A body that the service gives up, or never ends, after a part of it has gone out: it is cut, also where the service has
    bypass, and it is not stored."""
    texts = Texts(lab)
    proxy = each(lab, texts, [(name + end, name, {"bypass": end == ""}) for name in ("abort", "silent") for end in ("", ".stops")])
    for name in ("abort", "silent", "abort.stops", "silent.stops"):
        for path in (f"/{name}/long", f"/{name}/long?chunked"):
            equal([whole_or_cut(proxy, texts.url(path)) for _ in range(2)], [None, None], path)


def test_inability(lab):
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "fail")])
    same_bytes(proxy.get(texts.url("/long")).body, LONG, "what the service could not adapt")
    call = proxy.entries("/long")[-1]["icap"][0]
    equal((call["verdict"], call["error"]), ("UNABLE", "it could not: tired"), "the log")
    equal(account(proxy, "odd")["account"]["unable"], 1, "the account")


def test_waits_do_not_hold_others_up(lab):
    """One worker: while a service waits for its descriptor, others are served; its deadline ends the wait."""
    texts = Texts(lab)
    texts.bodies["/waits"] = LONG
    proxy = Retort(lab, workers=1, services=[odd(lab, "wait-for-ever", "waits", timeout="1s", bypass=False)],
                   adapt={"waits": ["waits"]}, url_classes={"waits": {"path_regex": "/waits"}})
    with proxy.wire() as waiting:
        waiting.send(f"GET {texts.url('/waits')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: account(proxy, "waits")["connections"] == 1, 10, "the call")
        same_bytes(proxy.get(texts.url("/short")).body, texts.bodies["/short"], "another request meanwhile")
        equal(waiting.head().status, 502, "the service did not answer in time")
    equal(account(proxy, "waits")["account"]["error_timeout"], 1, "timeouts")
    equal(account(proxy, "waits")["connections"], 0, "calls")


def test_max_messages(lab):
    """So many messages at a time, of all workers together; further ones wait, so many of them and so long, and fail then. A change
    does not begin to count anew. A message that is left alone, and one whose client has gone, make room."""
    texts = Texts(lab)
    proxy = Retort(lab, workers=2, services=[odd(lab, "wait-for-ever", "waits", timeout="1h", bypass=False, max_messages=2, queue_max=5,
                                                 queue_timeout="1h")])
    url, waiting = texts.url("/long?no-store"), []

    def connections():
        return account(proxy, "waits")["connections"]

    def ask(expected):
        waiting.append(proxy.wire())
        waiting[-1].send(f"GET {url}{len(waiting)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: connections() == expected, 20 * lab.patience, f"messages at the service: {expected}, there are {connections()}")
    for number in (1, 2, 3, 4):
        ask(number)
    equal(account(proxy, "waits")["account"]["queued"], 2, "messages that waited")
    proxy.ctl("set", "service.waits.queue_timeout=100ms")
    before = account(proxy, "waits")["account"]["error_queue"]
    equal(proxy.get(url).status, 502, "none becomes free in time, also for the instance that begins with the change")
    true(account(proxy, "waits")["account"]["error_queue"] > before, "counted")
    contains(proxy.entries("/long")[-1]["icap"][0]["error"], "none ended within queue_timeout", "the log")
    proxy.ctl("set", "service.waits.bypass=true", "service.waits.queue_max=0")
    same_bytes(proxy.get(url).body, LONG, "with bypass, and nobody may wait")
    proxy.ctl("set", "service.waits.queue_max=10", "service.waits.bypass=false", "service.waits.queue_timeout=1h", "service.waits.timeout=200ms")
    late = proxy.wire()
    late.send(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    until(lambda: account(proxy, "waits")["pending"] >= 1, 20 * lab.patience, "it waits")
    for one in waiting:
        one.abort()
    equal(late.head().status, 502, "it came to the service, which did not answer in time")
    true(account(proxy, "waits")["account"]["error_timeout"] >= 1, "that was a timeout")
    late.close()
    until(lambda: connections() == 0, 20 * lab.patience, "all places are free")


def test_another_number_of_messages(lab):
    """A reload that is refused, for a mistake elsewhere, changes no limit; and those that wait hear of a higher one at once."""
    texts = Texts(lab)
    waits = {"timeout": "1h", "bypass": False, "queue_max": 5, "queue_timeout": "1h"}

    def services(most, other):
        return [odd(lab, "wait-for-ever", "waits", max_messages=most, **waits), odd(lab, other, "other")]
    proxy = Retort(lab, workers=2, services=services(2, "head"), adapt={"all": ["waits"]})
    waiting = []

    def ask(pending):
        waiting.append(proxy.wire())
        waiting[-1].send(f"GET {texts.url('/long?no-store')}{len(waiting)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: account(proxy, "waits")["connections"] == len(waiting), 20 * lab.patience, "the message")
        equal(account(proxy, "waits")["pending"], pending, f"of {len(waiting)} messages, those that wait")
    proxy.write_config(proxy.text(services=services(1, "refuse")))
    equal(proxy.reload().status, 409, "the reload is refused")
    for pending in (0, 0, 1, 2):
        ask(pending)
    proxy.write_config(proxy.text(services=services(4, "head")))
    equal(proxy.reload().status, 200, "a reload")
    until(lambda: account(proxy, "waits")["pending"] == 0, 20 * lab.patience, "all to come to the service")
    for one in waiting:
        one.abort()
    until(lambda: account(proxy, "waits")["connections"] == 0, 20 * lab.patience, "all places are free")


def test_what_is_left_alone_takes_no_place(lab):
    texts = Texts(lab)
    texts.bodies["/huge"] = LONG * 100
    proxy = Retort(lab, services=[odd(lab, does, does, max_messages=1, queue_timeout="1h", bypass=False)
                                  for does in ("nothing", "head", "pass")])
    slow = [proxy.wire() for _ in range(2)]
    for number, one in enumerate(slow):
        one.send(f"GET {texts.url('/huge')}?no-store={number} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        equal(one.head().status, 200, "a slow client")
    equal(proxy.get(texts.url("/short")).status, 200, "another one meanwhile")
    equal([account(proxy, name)["account"]["queued"] for name in ("nothing", "head")], [0, 0], "messages that waited")
    for one in slow:
        one.close()


def test_recordings(lab):
    """The messages of a service inside, as those of one at an ICAP server; retort-service-test takes the file."""
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "head", "marks", point="reqmod_precache"), Inside("hello", module(lab, "hello"), bypass=False)])
    path = lab.path("inside.rec")
    recording = subprocess.Popen([lab.built("proxy/retortctl"), "-s", proxy.admin_listen(), "services", "record", path, "--exchanges", "6"],
                                 stdout=subprocess.PIPE, text=True, env={**os.environ, **lab.environment()})
    until(lambda: "recording of ICAP exchanges started" in proxy.process.log(), 20 * lab.patience, "the recording")
    for target in ("/short", "/long?chunked", "/empty"):
        equal(proxy.get(texts.url(target), {"Cookie": "secret=1"}).status, 200, target)
    said, _ = recording.communicate(timeout=30 * lab.patience)
    equal(recording.returncode, 0, said)
    shown = [json.loads(line) for line in proxy.ctl("--json", "icap", "show", path).splitlines()]
    shown = [one for one in shown if "service" in one]
    equal(sorted((one["service"], one["verdict"]) for one in shown),
          [("hello", "modified")] * 2 + [("hello", "unmodified")] + [("marks", "modified")] * 3, "exchanges")
    number = next(i for i, one in enumerate(shown, 1) if one["service"] == "hello" and "long" in one["url"])
    same_bytes(proxy.ctl("icap", "show", path, str(number), "virgin").encode(), LONG, "the body before")
    same_bytes(proxy.ctl("icap", "show", path, str(number), "result").encode(), b"Hello, world!\n" + LONG, "the body after")
    equal(next(one for one in shown if one["service"] == "hello")["uri"], f"module:{module(lab, 'hello')}", "where it runs")
    contains(proxy.ctl("icap", "show", path, str(number), "response_head"), "Content-Type: text/plain", "the head")
    lacks(proxy.ctl("icap", "show", path, str(number), "request_head"), "secret=1", "secrets are masked")
    done = subprocess.run([lab.built("icap-services/retort-service-test"), "--cuts", "4", module(lab, "hello"), path], capture_output=True,
                          text=True, timeout=60 * lab.patience, check=False, env={**os.environ, **lab.environment()})
    equal(done.returncode, 0, f"retort-service-test on the recording: {done.stdout}{done.stderr}")


def test_messages_wait_for_one_descriptor(lab):
    """As those of a service do that has one connection for all: each is told when it is ready."""
    texts = Texts(lab)
    proxy = Retort(lab, workers=1, services=[odd(lab, "together", timeout="60s", bypass=False)])
    with proxy.wire() as first:
        first.send(f"GET {texts.url('/short?1-no-store')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: account(proxy, "odd")["connections"] == 1, 10 * lab.patience, "the first message")
        same_bytes(proxy.get(texts.url("/short?2-no-store")).body, b"ONE LINE.\n", "the second message")
        same_bytes(first.response().body, b"ONE LINE.\n", "the first message")


def test_slow_calls_are_counted_and_named(lab):
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "slow", runs="worker")])
    proxy.get(texts.url("/short?store"))
    true(account(proxy, "odd")["account"]["slow"] >= 1, "slow calls")
    contains(proxy.process.log(), "service odd: its function preview held a worker up for", "the log")


def test_settings_are_checked(lab):
    path = module(lab, "odd")
    untold = lab.write("other.so", b"no module")
    loose = shutil.copy(path, lab.path("loose.so"))
    os.chmod(loose, 0o666)
    os.mkdir(lab.path("open"))
    os.chmod(lab.path("open"), 0o777)
    moved = shutil.copy(path, lab.path("open/odd.so"))
    os.mkdir(lab.path("folder.so"))
    os.mkfifo(lab.path("pipe.so"))
    listen = 'listen "127.0.0.1:3128" { mode = forward }\n'
    for section, expected in (
            (f'module = "{path}"  settings = {{ Do = refuse }}', "does not start: odd.Do: it refuses"),
            (f'module = "{path}"\nsettings = {{ Do = shout,\nCount = 3 }}', ":4: service s: settings: the module odd has no setting \"Count\"; it has Do, Word, "),
            (f'module = "{path}"  settings = {{ Do }}', "is no NAME = VALUE"),
            (f'module = "{path}"  helpers = "/run/x"', "helpers: the module odd uses no helpers"),
            (f'module = "{path}"\nsettings = {{ Lifetime = x }}', ":3: service s: settings: Lifetime wants a number, not \"x\""),
            ('module = "/nowhere/gray.so"', "the module can't be loaded: /nowhere/gray.so: No such file or directory; correct the path"),
            (f'module = "{untold}"', "build it again with the headers"),
            (f'module = "{lab.path("folder.so")}"', "folder.so is no file; write the path of the module"),
            (f'module = "{lab.path("pipe.so")}"', "pipe.so is no file"),
            (f'module = "{lab.path("pipe.so")}"  runs = process', "pipe.so is no file"),
            (f'module = "{loose}"', "everybody may write this file"),
            (f'module = "{moved}"', "everybody may write its folder"),
            (f'module = "{moved}"  runs = process', "everybody may write its folder"),
            (f'module = "{module(lab, "hello")}"  point = reqmod_precache', "does not adapt requests; set point = respmod_precache"),
            (f'module = "{module(lab, "hello")}"  settings = {{ Greeting = "" }}', "hello.Greeting: say something"),
            ('settings = { A = 1 }', "has no module"),
    ):
        status, said = run_check(lab, lab.write("checked.conf", f"{listen}service s {{ {section} }}\n"))
        equal(status, 1, f"retort -t: {section}: {said}")
        contains(said, expected, "what -t says")
        equal(said.count("checked.conf:"), 1, f"the file, once: {said}")
    status, said = run_check(lab, lab.write("good.conf", f'{listen}service s {{ module = "{path}"  settings = {{ Do = shout, Word = "a b" }} }}\n'))
    equal((status, "good" in said), (0, True), said)
    status, said = run_check(lab, lab.write("twice.conf", f'{listen}icap_service s {{ uri = "icap://h/s"  point = respmod_precache }}\n'
                                            f'service s {{ module = "{path}" }}\n'))
    equal(status, 1, said)
    contains(said, 'service "s": an icap_service has this name already', "two of one name")


def test_the_check_asks_for_the_helpers(lab):
    """retort -t says when the retort-helperd of a service does not answer, and is good all the same: it may start later."""
    services = Services(lab, host="inside", names=("gray",))
    inside = services.for_proxy()[0]
    port, missing = ports.take(), lab.path("none.sock")

    def check(socket, more=""):
        inside.options["helpers"] = socket
        second = f'service other {{ module = "{inside.options["module"]}"  helpers = "{socket}" {more} }}'
        status, said = run_check(lab, lab.write("check.conf", f'listen "127.0.0.1:{port}" {{ mode = forward }}\n{inside.text()}\n{second}\n'))
        equal(status, 0, f"{socket}: {said}")
        return said
    lacks(check(services.helperd.socket), "left undone", "a socket that answers")
    said = check(missing)
    contains(said, f"check.conf:2: service gray: helpers: {missing}: No such file or directory; what its helpers should do is left undone",
             "a socket that is not there")
    contains(said, "start retort-helperd", "what to do")
    equal(said.count("left undone"), 1, "two services of one socket")
    inside.options["disabled"] = True
    lacks(check(missing, "disabled = true"), "left undone", "services that are disabled")


def test_reload(lab):
    """Other settings are another version: what the old one made is not used again. Settings that the module refuses change
    nothing. A message that is under way ends with the instance that it began with."""
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "head", settings={"Word": "one"})])
    url = texts.url("/long")
    equal([proxy.get(url).header("X-Odd") for _ in range(2)], ["one", "one"], "before")
    before = account(proxy, "odd")["istag"]
    with proxy.wire() as slow:
        slow.send(f"GET {texts.url('/long?under-way')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        slow.head()
        proxy.write_config(proxy.text(services=[odd(lab, "head", settings={"Word": "two"})]))
        equal(proxy.reload().status, 200, "the reload")
    equal([proxy.get(url).header("X-Odd") for _ in range(2)], ["two", "two"], "after")
    true(account(proxy, "odd")["istag"] != before, "the version")
    until(lambda: account(proxy, "odd")["counts"]["SEEN"] >= 3, 10 * lab.patience, "a process that has ended has told what it counted")
    seen = account(proxy, "odd")["counts"]["SEEN"]
    true(seen >= 3, f"what the service counts itself is kept over a reload: {seen}")
    contains(proxy.admin("GET", "/metrics").body.decode(), f'retort_service_events_total{{service="odd",event="SEEN"}} {seen}\n', "metrics")
    contains(proxy.admin("GET", "/metrics").body.decode(), 'retort_service_requests_total{service="odd",kind="inside"} ', "metrics of both kinds")
    contains(proxy.ctl("services"), "SEEN", "retortctl services")
    proxy.write_config(proxy.text(services=[odd(lab, "refuse")]))
    answer = proxy.reload()
    true(answer.status >= 400, f"a reload with settings that the module refuses: {answer.status}")
    contains(answer.body.decode(), "it refuses", "why")
    equal(proxy.get(url).header("X-Odd"), "two", "the old configuration serves on")
    proxy.write_config(proxy.text(services=[], adapt={}))
    equal(proxy.reload().status, 200, "a reload without the service")
    equal(proxy.get(texts.url("/short")).header("X-Odd"), None, "without the service")


@memcheck
def test_mixed_chains(lab):
    """Services inside and at an ICAP server, in both orders, in one chain."""
    texts = Texts(lab)
    icap = IcapServer(lab, append(b"+icap"), preview=1024)
    services = [odd(lab, "shout"), Service("icap", icap.uri()), Inside("hello", module(lab, "hello"))]
    proxy = Retort(lab, services=services, adapt={"one": ["odd", "icap", "hello"], "two": ["icap", "hello", "odd"]},
                   url_classes={"one": {"path_regex": "/one"}, "two": {"path_regex": "/two"}})
    for path in ("/one", "/two"):
        texts.bodies[path] = LONG
    same_bytes(proxy.get(texts.url("/one")).body, b"Hello, world!\n" + LONG.upper() + b"+icap", "inside, outside, inside")
    same_bytes(proxy.get(texts.url("/two")).body, (b"Hello, world!\n" + LONG + b"+icap").upper(), "outside, inside, inside")
    icap.stop()
    texts.bodies["/one2"] = LONG
    same_bytes(proxy.get(texts.url("/one2")).body, b"Hello, world!\n" + LONG.upper(), "without the ICAP server")


def test_both_hosts_give_the_same(lab):
    """The four services in c-icap, and the same modules inside: the same bytes."""
    ads = lab.write("ads.txt", "||127.0.0.1^*/ads/\n")
    outside, inside = Services(lab, host="icap", ads=ads), Services(lab, host="inside", ads=ads)
    page = b"<html><head><title>x</title></head><body>" + b"text " * 5000 + b"</body></html>"
    bodies = {"/page": (b"text/html", page), "/photo": (b"image/jpeg", lab.read_data("photos/china.jpg")), "/text": (b"text/plain", LONG),
              "/ads/x.js": (b"text/javascript", b"x()")}

    def answer(connection, seen):
        kind, body = bodies[seen.target]
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b'\r\nETag: "1"\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
    origin = RawOrigin(lab, answer)
    chain = {"all": ["adremover", "gray", "inject", "gzip"]}
    proxies = [Retort(lab, services=services.for_proxy(), adapt=chain) for services in (outside, inside)]
    for path in bodies:
        one, two = (proxy.get(origin.url(path), {"Accept-Encoding": "gzip"}) for proxy in proxies)
        equal(two.status, one.status, f"{path}: status")
        for name in ("Content-Type", "Content-Encoding", "ETag", "Vary"):
            equal(two.header(name), one.header(name), f"{path}: {name}")
        plain = [gzip.decompress(seen.body) if seen.header("Content-Encoding") == "gzip" else seen.body for seen in (one, two)]
        same_bytes(plain[1], plain[0], path)
    for name in ("adremover", "gzip"):  # the others have the path of a socket among their settings
        one, two = (account(proxy, name)["istag"].strip('"') for proxy in proxies)
        equal(one, f"CI0001-{two}", f"{name}: the ISTag, which the settings, the lists and the code make")
    digits = random.Random(1).randbytes(150_000).hex().encode()  # more comes out of it than an encoder keeps inside
    for coding in DECODERS:
        bodies[f"/digits.{coding}"] = (b"text/plain", digits)
        for proxy in proxies:
            seen = proxy.get(origin.url(f"/digits.{coding}"), {"Accept-Encoding": coding})
            equal(seen.header("Content-Encoding"), coding, "Content-Encoding")
            same_bytes(decode(coding, seen.body), digits, f"digits by {coding}")
