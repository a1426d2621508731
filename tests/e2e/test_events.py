"""The event stream: what it shows to whom, and what a consumer can not do to others, to the proxy, or to its end."""

import json
import re
import socket
import time

from harness.checks import contains, equal, true, until
from harness.events import Events
from harness.icap import IcapServer, unchanged
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import Wire, request
from test_admin_access import ADMIN, OPERATE, READ, audit, guarded, metric
from test_takeover import Successor


def ask(proxy, query):
    wire = Wire(proxy.admin_path, timeout=20 * proxy.lab.patience)
    wire.send(request("GET", "/v1/events?" + query, host="localhost"))
    return wire


def said_of(entry):
    return entry["url"].split("say=")[1].split("&")[0]


def said(events):
    return [said_of(event.data) for event in events]


@memcheck
def test_lines_of_the_access_log(lab):
    """Each event is a line of the JSON access log to the letter, and its id that of the transaction."""
    icap, origin = IcapServer(lab, unchanged), Origin(lab)
    proxy = Retort(lab, workers=2, services=[Service("quiet", icap.uri("quiet"))])
    with Events(proxy) as events:
        equal((events.head.header("Content-Type"), events.head.header("Cache-Control")), ("text/event-stream", "no-store"), "fields")
        for n in range(3):
            proxy.get(origin.url("/text", say=f"x{n}", cc="max-age=60"), {"User-Agent": 'a"\\\x80\xfc', "Referer": "http://r/"})
        proxy.get(origin.url("/text", say="x0", cc="max-age=60"))
        proxy.fetch("GET", "no-url", body=None)
        seen = events.take(5)
    lines = {entry["id"]: entry for entry in proxy.log(5)}
    equal({event.id: event.data for event in seen}, lines, "events and lines")
    equal({event.kind for event in seen}, {"message"}, "kinds")
    equal(sorted(event.data["result"] for event in seen).count("HIT"), 1, "hits")
    until(lambda: metric(proxy, "retort_event_consumers") == 0, 5 * lab.patience, "the consumer is gone")
    proxy.get(origin.url("/text", say="later"))
    equal(metric(proxy, "retort_events_sent_total"), 5, "events without a consumer are not written")


def test_filters(lab):
    icap, origin = IcapServer(lab, unchanged), Origin(lab)
    proxy = Retort(lab, services=[Service("quiet", icap.uri("quiet"))], adapt={"adapted": ["quiet"]},
                   url_classes={"adapted": {"method": "PUT"}, "unused": {"method": "POST"}})
    cases = {
        "": "a adapted b gone slow", "status=404,5xx": "gone", "status=200-299": "a adapted b slow", "method=POST": "b",
        "method=GET,HEAD": "a gone slow", "result=PASS": "adapted b", "service=quiet,other": "adapted", "service=other": "",
        "client=127.0.0.0/8": "a adapted b gone slow", "client=::1,192.0.2.1": "", "host=.0.0.1": "a adapted b gone slow",
        "host=localhost": "", "host=127.0.0.1": "a adapted b gone slow", "url=say%3Da": "a adapted", "min_ms=300": "slow",
        "class=unused": "b", "class=adapted&status=2xx&method=PUT": "adapted", "user=nobody": "", "class=all": "a adapted b gone slow"}
    proxy.write_config(proxy.text().replace("admin { ", "admin { event_consumers = 32  "))
    proxy.restart()
    consumers = {query: Events(proxy, query) for query in cases}
    for say, method, path, more in (("a", "GET", "/text", {}), ("b", "POST", "/text", {}), ("adapted", "PUT", "/text", {}),
                                    ("gone", "GET", "/text", {"status": 404}), ("slow", "GET", "/drip", {"n": 2, "piece": 1, "delay": 200})):
        proxy.fetch(method, origin.url(path, say=say, **more), body=b"x" if method != "GET" else None)
    cases["min_ms=300"] = " ".join(sorted(said_of(entry) for entry in proxy.log(5) if entry["ms"] >= 300))
    contains(cases["min_ms=300"], "slow", "the slow ones")
    proxy.terminate()
    for query, events in consumers.items():
        equal(" ".join(sorted(said(events.rest()))), cases[query], query)
        true(events.ended, f"{query}: the stream ends as it should")
        events.close()


def test_wrong_filters(lab):
    proxy = Retort(lab)
    for query, status, expected in (
            ("status=99", 400, "write 404, 5xx or 400-499"), ("status=", 200, ""), ("status=404,", 400, "is no list"), ("result=hit", 400, "is no result"),
            ("client=10.0.0.0%2F33", 400, "is not an address or a network"), ("class=none", 404, "there is no url_class"),
            ("method=" + ",".join("A" * 33), 400, "1 to 32 values"), ("min_ms=-1", 400, "must be a number"), ("min_ms=86400001", 400, "must be a number"),
            ("frob=1", 400, "no parameter of that name"), ("status=200&status=404", 400, "twice")):
        with ask(proxy, query) as wire:
            head = wire.head()
            equal(head.status, status, query)
            if status != 200:
                body = []
                wire._exactly(int(head.header("Content-Length")), body.append)
                contains(json.loads(b"".join(body))["error"], expected, query)


@memcheck
def test_roles_and_audit(lab):
    """URLs and users are personal data: a token that only reads numbers does not get them, and who looks is noted."""
    proxy = guarded(lab)
    equal(proxy.admin("GET", "/v1/events", token=READ).status, 403, "a reader")
    equal(proxy.admin("GET", "/events", token=READ).status, 403, "a reader by the older path")
    equal(proxy.admin("HEAD", "/v1/events", token=ADMIN).status, 200, "HEAD")
    with Events(proxy, "user=anna", token=OPERATE):
        line = audit(proxy)[-1]
    equal((line["who"], line["did"], line["arguments"], line["status"]), ("deploy", "GET /events", {"user": "anna"}, 200), "the audit log")
    equal([line["status"] for line in audit(proxy)[-4:-1]], [403, 403, 200], "those before")


def test_a_stream_ends_with_the_right_to_it(lab):
    """Who loses the token, or the role, gets no event that comes after the reload. Others' streams go on."""
    proxy = guarded(lab)
    with Events(proxy, token=OPERATE) as removed, Events(proxy, token=ADMIN) as lowered, Events(proxy) as kept:
        proxy.get("http://127.0.0.1:1/before")
        for events in (removed, lowered, kept):
            contains(events.next().data["url"], "/before", "the event before the reload")
        proxy.write_tokens(f"lab admin {proxy.token}\nanna read {ADMIN}")
        equal(proxy.reload().status, 200, "reload")
        proxy.get("http://127.0.0.1:1/after")
        contains(kept.next().data["url"], "/after", "the event after the reload")
        for events in (removed, lowered):
            equal((events.next(), events.ended), (None, True), "what a reader gets that may not have it any more")


def test_bound_of_consumers(lab):
    """One too many is refused and counted; whoever leaves makes room at once, also without a word and under a thousand others."""
    proxy = Retort(lab)
    proxy.write_config(proxy.text().replace("admin { ", "admin { event_consumers = 2  "))
    proxy.restart()
    first, second = Events(proxy), Events(proxy)
    answer = proxy.admin("GET", "/v1/events")
    equal(answer.status, 503, "a third")
    contains(json.loads(answer.body)["error"], "admin.event_consumers", "the reason")
    equal(metric(proxy, "retort_event_consumers_refused_total"), 1, "refused")
    second.close()
    until(lambda: metric(proxy, "retort_event_consumers") == 1, 5 * lab.patience, "the place is free")
    half = Events(proxy)
    half.wire.finish_sending()  # an end of reading, for a stream that only the server writes
    until(lambda: metric(proxy, "retort_event_consumers") == 1, 5 * lab.patience, "the place is free again")
    idle = [socket.socket(socket.AF_UNIX) for _ in range(80)]
    for one in idle:  # more than the admin plane keeps: the oldest are closed, but no consumer
        one.connect(proxy.admin_path)
    equal(proxy.status()["state"], "running", "state")
    proxy.fetch("GET", "no-url")
    equal(first.next().data["url"], "no-url", "what the first consumer sees")
    for one in idle:
        one.close()


def test_a_thousand_times(lab):
    """Consumers that connect, read nothing or half of it, and are gone leave nothing behind."""
    proxy, statuses = Retort(lab, workers=2), []
    for n in range(1000):
        wire = ask(proxy, "status=5xx")
        if n % 2 == 0:  # places become free as fast as the stream notices, so many are refused
            statuses.append(wire.head().status)
        wire.close()
    true(statuses.count(200) > 20 and set(statuses) <= {200, 503}, f"{statuses.count(200)} of {len(statuses)} were let in")
    with_room = Events(proxy)
    proxy.fetch("GET", "no-url")
    equal(with_room.next().data["url"], "no-url", "what is seen afterwards")
    with_room.close()
    until(lambda: metric(proxy, "retort_event_consumers") == 0, 5 * lab.patience, "all are gone")


def test_a_consumer_that_does_not_read(lab):
    """It loses events and is told how many, where they are missing; another one and the clients notice nothing."""
    origin, proxy, count = Origin(lab), Retort(lab), 160
    proxy.write_config(proxy.text().replace("admin { ", 'admin { event_queue = "256KB"  '))
    proxy.restart()
    url = origin.url("/text", say="x", cc="max-age=60")
    with Events(proxy) as slow, Events(proxy) as other, proxy.wire() as wire:
        for n in range(count):
            wire.send(request("GET", url, {"User-Agent": f"{n:04}" * 600, "Referer": "r" * 2400}))
            equal(wire.response().status, 200, "status")
            if n % 20 == 19:
                equal([event.data["user_agent"][:4] for event in other.take(20)], [f"{m:04}" for m in range(n - 19, n + 1)], "what the other one sees")
        until(lambda: metric(proxy, "retort_events_lost_total") > 0, 5 * lab.patience, "events are lost")
        got, lost, numbers = 0, 0, []
        while got + lost < count:
            event = slow.next()
            if event.kind == "lost":
                lost += event.data["lost"]
                numbers.append(None)
            else:
                got += 1
                numbers.append(int(event.data["user_agent"][:4]))
        equal(metric(proxy, "retort_events_lost_total"), lost, "lost")
        true(got > 20 and lost > 20, f"{got} events, {lost} lost")
        at = numbers.index(None)
        equal(numbers[:at], list(range(at)), "those before the loss")
        proxy.get(url, {"User-Agent": "last"})
        equal(slow.next().data["user_agent"], "last", "what comes when it reads again")


def test_comments_in_silence(lab):
    """A consumer that gets no event gets a comment, so that it and gateways between know that the stream is alive."""
    proxy = Retort(lab)
    proxy.write_config(proxy.text().replace("admin { ", "admin { event_heartbeat = 1s  "))
    proxy.restart()
    with Events(proxy, "status=404") as events:
        begun = time.monotonic()
        equal([events.block(), events.block(), events.block()], [["retry: 1000"], [":"], [":"]], "what comes without an event")
        took = time.monotonic() - begun
        true(1 <= took <= 2 + 3 * lab.patience, f"two comments took {took:.1f} s")


def resident(proxy):
    with open(f"/proc/{proxy.process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def test_a_stuck_consumer(lab):
    """It reads nothing while fifty times its queue goes by: memory stays as it is, another consumer misses nothing, and it is
    told of its losses as soon as it reads again, although no event follows."""
    origin, proxy = Origin(lab), Retort(lab)
    proxy.write_config(proxy.text().replace("admin { ", 'admin { event_queue = "256KB"  '))
    proxy.restart()
    url, count, lump = origin.url("/text", say="x", cc="max-age=60"), 2600, 20
    with Events(proxy, receive_buffer=4096) as stuck, Events(proxy) as other, proxy.wire(timeout=20) as wire:
        for n in range(0, count, lump):
            for m in range(n, n + lump):
                wire.send(request("GET", url, {"User-Agent": f"{m:04}" * 600, "Referer": "r" * 2400}))
            for _ in range(lump):
                equal(wire.response().status, 200, "status")
            equal([event.data["user_agent"][:4] for event in other.take(lump)], [f"{m:04}" for m in range(n, n + lump)], "what the other one sees")
            if n == 400:
                before = resident(proxy)
        grown = resident(proxy) - before
        true(grown < 2048 or lab.asan, f"memory has grown by {grown} KB")
        begun, got, lost = time.monotonic(), 0, 0
        while got + lost < count:
            event = stuck.next()
            got, lost = (got, lost + event.data["lost"]) if event.kind == "lost" else (got + 1, lost)
        took = time.monotonic() - begun
        true(took < 3 * lab.patience, f"after {took:.1f} s it knows what it has lost")
        true(lost > count / 2 and metric(proxy, "retort_events_lost_total") == lost, f"{lost} of {count} lost")


def test_reload_and_end(lab):
    """A reload keeps consumers and looks for their classes anew; the end of the proxy ends the stream, and does not wait for it."""
    origin = Origin(lab)
    proxy = Retort(lab, url_classes={"one": {"url_regex": "say=a"}})
    reading, stuck = Events(proxy, "class=one"), Events(proxy)
    proxy.get(origin.url("/text", say="a"))
    proxy.write_config(proxy.text(url_classes={"one": {"url_regex": "say=b"}}))
    equal(proxy.reload().status, 200, "reload")
    proxy.get(origin.url("/text", say="a2"))
    proxy.get(origin.url("/text", say="b"))
    proxy.write_config(proxy.text(url_classes={}).replace("admin { ", "admin { event_consumers = 9  "))
    contains(proxy.reload().text(), "admin.event_heartbeat are still as they were", "what is not applied")
    proxy.get(origin.url("/text", say="b2"))
    begun = time.monotonic()
    proxy.terminate()
    proxy.wait_exit(10)
    true(time.monotonic() - begun < 3 * lab.patience, "the end takes no longer for a consumer that does not read")
    equal(said(reading.rest()), ["a", "b"], "what the class had")
    true(reading.ended, "the stream ends as it should")
    reading.close()
    stuck.close()


def test_takeover(lab):
    """The old process ends its stream when it gives the socket away, so that a consumer that comes again sees the new one."""
    origin, proxy = Origin(lab), Retort(lab)
    with Events(proxy) as events:
        proxy.get(origin.url("/text", say="a"))
        successor = Successor(lab, proxy)
        equal(said(events.rest()), ["a"], "events of the old process")
        true(events.ended, "the stream ends as it should")
    with Events(proxy) as events:
        proxy.get(origin.url("/text", say="b"))
        equal(said(events.take(1)), ["b"], "events of the new process")
    successor.wait_for_the_end_of_the_old_one()
