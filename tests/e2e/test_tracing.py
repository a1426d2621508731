"""Traces for OpenTelemetry: which requests are traced, what the collector gets, and what origins and services learn of the trace."""

import json
import os
import re
import time

from harness import ports
from harness.certificates import Authority
from harness.checks import contains, equal, lacks, true, until
from harness.icap import IcapServer, echo
from harness.metrics import scrape, value
from harness.origin import Origin, echoed
from harness.otlp import Collector, one, some, spans_in, took
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service, measure, section
from harness.suite import memcheck
from harness.tls_origin import TlsOrigin
from harness.wire import Wire

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
except ImportError:
    parse_open = None

TRACE = "0af7651916cd43dd8448eb211c80319c"  # W3C Trace Context, 3.2.3
CALLER = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLER}-01"


def ids(traceparent):
    """(trace, span, sampled) of a field that a proxy has sent."""
    trace, span, flags = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-(00|01)", traceparent).groups()
    return trace, span, flags == "01"


def sent(proxy, origin, *fields):
    """(traceparent, tracestate) that the origin gets of a request with such fields."""
    seen = echoed(proxy.fetch("GET", origin.url("/echo"), list(fields)))
    return seen["header"]("traceparent"), seen["header"]("tracestate")


@memcheck
def test_a_request_is_a_trace(lab):
    """A span for the request, one for each step, for the service and for the request to the origin; each below the one that made it."""
    origin, icap, collector = Origin(lab), IcapServer(lab), Collector(lab)
    proxy = Retort(lab, services=[Service("gray", icap.uri())], extra=collector.section(service_name="edge", authorization="Bearer abc"))
    traceparent = echoed(proxy.get(origin.url("/echo", secret="x")))["header"]("traceparent")
    entry = proxy.last(1)
    if parse_open is not None:
        text = proxy.admin("GET", "/metrics", headers={"Accept": "application/openmetrics-text"}).body.decode()
        examples = [sample.exemplar.labels for family in parse_open(text) for sample in family.samples if sample.exemplar]
        equal(examples, [{"transaction_id": entry["id"], "trace_id": entry["trace_id"]}], "exemplars")
    spans = collector.spans_of(proxy)
    equal({(span.service, span.trace, span.flags) for span in spans}, {("edge", entry["trace_id"], 1)}, "services and traces")
    equal(len({span.id for span in spans}), len(spans), "ids that differ")
    equal(collector.requests[0].header("Authorization"), "Bearer abc", "Authorization of the post")
    root = one(spans, parent=None)
    equal((root.name, root.kind, root.id), ("GET", 2, entry["span_id"]), "the request")
    equal({name: root.attributes[name] for name in ("http.request.method", "url.full", "network.protocol.version", "retort.transaction_id",
                                                    "retort.result", "http.response.status_code")},
          {"http.request.method": "GET", "url.full": origin.url("/echo"), "network.protocol.version": "1.1",
           "retort.transaction_id": entry["id"], "retort.result": "MISS", "http.response.status_code": 200}, "what it says")
    steps = [span.name for span in some(spans, parent=root.id)]
    equal(steps, ["RECEIVE", "ADMIT", "LOOKUP", "FETCH", "RESPMOD", "STORE", "DELIVER"], "steps")
    call = one(spans, parent=one(spans, name="FETCH").id)
    equal((call.name, call.kind, call.attributes["server.address"], call.attributes["http.response.status_code"]),
          ("GET", 3, origin.authority, 200), "the request to the origin")
    equal(ids(traceparent), (root.trace, call.id, True), "what the origin learns")
    service = one(spans, parent=one(spans, name="RESPMOD").id)
    equal((service.name, service.kind, service.attributes["retort.verdict"], service.attributes["retort.icap.status"]),
          ("RESPMOD gray", 3, "UNMODIFIED", 204), "the service")
    equal(ids(icap.transactions[0].request.header("traceparent")), (root.trace, service.id, True), "what the service learns")
    equal(icap.transactions[0].http_request.header("traceparent"), None, "in the request that it is shown")
    for span in spans:
        true(root.begun <= span.begun and span.ended <= root.ended, f"{span} is within the request")
    true(abs(root.begun / 1e9 - time.time()) < 60 * lab.patience, "the time of day")


def test_through_two_proxies(lab):
    """One trace: the second goes on below the request that the first has sent, because it trusts the first. tracestate goes through."""
    origin, collector = Origin(lab), Collector(lab)
    second = Retort(lab, name="second", extra='name = "second"\n' + collector.section(sample="=0", trust="127.0.0.1", service_name="second"))
    up = 'origins up { servers = { "http://%s:%d" } }\nparent all { origins = up }\nname = "first"\n' % second.forward
    first = Retort(lab, name="first", extra=up + collector.section(sample="=0", trust="127.0.0.0/8", service_name="first"))
    parent, state = sent(first, origin, ("traceparent", PARENT), ("tracestate", "a=1,b=2"), ("tracestate", "c=3"))
    unsampled = sent(first, origin, ("traceparent", PARENT[:-1] + "0"), ("tracestate", "a=1"))
    unnamed = sent(first, origin)
    spans = collector.spans_of(first, second)
    equal({span.trace for span in spans}, {TRACE}, "traces")
    equal({span.state for span in spans}, {"a=1,b=2, c=3"}, "their state")
    outer, inner = one(spans, service="first", kind=2), one(spans, service="second", kind=2)
    between_them, last = one(spans, service="first", kind=3), one(spans, service="second", kind=3)
    equal((outer.parent, inner.parent), (CALLER, between_them.id), "who called")
    equal((ids(parent), state), ((TRACE, last.id, True), "a=1,b=2, c=3"), "what the origin learns")
    equal(unsampled, (PARENT[:-1] + "0", "a=1"), "what it learns of a request that its caller does not trace")
    equal((ids(unnamed[0])[2], unnamed[1]), (False, None), "what it learns of one that nobody traces")


def test_a_client_decides_nothing(lab):
    """One that is not trusted can have nothing traced, neither here nor at the origin, and writes into no trace."""
    origin, collector = Origin(lab), Collector(lab)
    proxy = Retort(lab, extra=collector.section(sample="=0", trust="192.0.2.1"))
    seen = [sent(proxy, origin, ("traceparent", PARENT), ("tracestate", "evil=1")) for _ in range(2)]
    equal([(ids(parent)[2], state) for parent, state in seen], [(False, None)] * 2, "sampled, state")
    equal(len({ids(parent)[0] for parent, _ in seen} | {TRACE}), 3, "traces that differ")
    lacks(proxy.last(2), "trace_id", "the access log")
    equal((proxy.counter("requests_traced"), collector.spans_of(proxy)), (0, []), "spans")


def test_what_is_no_traceparent(lab):
    """Trace Context 4.3: a new trace begins, and 4.2: tracestate is not looked at. A later version is read as far as it is known."""
    origin, collector = Origin(lab), Collector(lab)
    proxy = Retort(lab, extra=collector.section(sample="=0", trust="127.0.0.1"))
    state = ("tracestate", "a=1")
    for value in ("", "00", PARENT + "-x", PARENT[:-1], PARENT.upper(), "ff" + PARENT[2:], PARENT.replace(TRACE, "0" * 32), PARENT.replace("-", "_"),
                  PARENT.replace(CALLER, "0" * 16), "01" + PARENT[2:] + "x", PARENT[:-2] + "0g", "x" * 5000):
        parent, seen = sent(proxy, origin, ("traceparent", value), state)
        equal((ids(parent)[0] == TRACE, ids(parent)[2], seen), (False, False, None), f"{value[:60]!r}: same trace, sampled, state")
    parent, seen = sent(proxy, origin, ("traceparent", PARENT), ("traceparent", PARENT), state)
    equal((ids(parent)[0] == TRACE, seen), (False, None), "two of them")
    for value in ("cc" + PARENT[2:] + "-what-the-future-will-be-like", PARENT[:-1] + "9"):
        equal(ids(sent(proxy, origin, ("traceparent", value))[0])[::2], (TRACE, True), value)
    long = ",".join(f"k{n}={'v' * 40}" for n in range(40))
    seen = sent(proxy, origin, ("traceparent", PARENT), ("tracestate", long))[1]
    true(400 < len(seen) <= 512 and long.startswith(seen + ","), f"whole members of a long tracestate: {seen}")
    equal(sent(proxy, origin, ("traceparent", PARENT), ("tracestate", "a=\xfc"))[1], None, "a tracestate with a letter that is not ASCII")


def test_what_services_learn(lab):
    """What they make of a request goes to the origin with the span of that request, not with theirs."""
    origin = Origin(lab)
    for how, in_head, in_message in (("head", True, False), ("message", False, True), ("both", True, True), ("off", False, False)):
        collector, icap = Collector(lab), IcapServer(lab, echo, methods="REQMOD")
        proxy = Retort(lab, services=[Service("s", icap.uri(), point="reqmod_precache")], extra=collector.section(trust="127.0.0.1", icap=how))
        parent, state = sent(proxy, origin, ("traceparent", PARENT), ("tracestate", "a=1"))
        spans = collector.spans_of(proxy)
        service, call = one(spans, name="REQMOD s"), one(spans, name="GET", kind=3)
        asked = icap.transactions[0]
        for what, head, wanted in (("the ICAP request", asked.request, in_head), ("the HTTP request in it", asked.http_request, in_message)):
            equal((head.header("traceparent"), head.header("tracestate")), (f"00-{TRACE}-{service.id}-01", "a=1") if wanted else (None, None),
                  f"{how}: {what}")
        equal((ids(parent)[1], state), (call.id, "a=1"), f"{how}: what the origin learns")


def test_failures_show(lab):
    """The service has failed, then the origin; the text of the error is in the span."""
    origin, collector = Origin(lab), Collector(lab)
    icap = IcapServer(lab, lambda _i, _t: True)
    proxy = Retort(lab, services=[Service("s", icap.uri(), failures_down=1000)], extra=collector.section(queries=True))
    equal(proxy.get(origin.url("/text", say="a")).status, 200, "status")
    equal(proxy.get("http://127.0.0.1:1/?a=b").status, 502, "status")
    spans = collector.spans_of(proxy)
    good, bad = [span for span in spans if span.kind == 2]
    equal((good.error, bad.attributes["url.full"]), (None, "http://127.0.0.1:1/?a=b"), "the requests")
    contains(bad.error, "refused", "what the request to nobody says")
    contains(one(spans, name="RESPMOD s").error, "closed", "what the service says")
    contains(one(spans, kind=3, name="GET", trace=bad.trace).error, "refused", "the request to nobody")


def test_what_the_origin_has_said(lab):
    """A request to the origin has the origin's own answer, whatever becomes of it: a stored response takes its place, the origin is
    asked again, a service makes another, or it is no answer for a part."""
    collector, answers = Collector(lab), []

    def answer(connection, _request):
        head, body = answers.pop(0)
        connection.send(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (head, len(body), body))
        return True
    origin = RawOrigin(lab, answer)
    icap = IcapServer(lab, lambda _i, transaction: transaction.send_200(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"))
    proxy = Retort(lab, services=[Service("s", icap.uri())], url_classes={"denied": {"path_regex": "^/denied"}}, adapt={"denied": ["s"]},
                   extra=collector.section())
    said = []

    def get(path, *heads, status=200, **headers):
        answers[:] = [(head, b"0123" if b"206" in head else b"") for head in heads]
        said.extend(int(head[:3]) for head in heads)
        equal((proxy.get(origin.url(path), headers).status, answers), (status, []), f"{path}: status, answers of the origin that are left")
    get("/stale", b'200 OK\r\nETag: "1"\r\nCache-Control: max-age=1, stale-if-error=600')
    get("/again", b'206 Partial Content\r\nETag: "1"\r\nCache-Control: max-age=60\r\nContent-Range: bytes 0-3/10', status=206, Range="bytes=0-3")
    get("/again", b"416 Range Not Satisfiable", b"200 OK")
    get("/denied", b"200 OK", status=403)
    time.sleep(2.1)
    get("/stale", b"503 Busy")
    spans = collector.spans_of(proxy)
    calls = [(span.attributes.get("http.response.status_code"), span.error) for span in some(spans, kind=3, name="GET")]
    equal(calls, [(status, None) for status in said], "status and error of each request to the origin")


def test_what_is_never_sent_has_no_span(lab):
    """A destination that is out of a client's reach is not asked: localhost is, once its name has been looked up."""
    origin, collector, address = Origin(lab), Collector(lab), ("127.0.0.1", ports.take())
    proxy = Retort(lab, extra=collector.section() + f'\nlisten "127.0.0.1:{address[1]}" {{ mode = forward }}')
    with Wire(address) as client:
        client.send(f"GET http://localhost:{origin.address[1]}/ HTTP/1.1\r\nHost: localhost:{origin.address[1]}\r\n\r\n".encode())
        equal(client.response().status, 403, "status")
    spans = collector.spans_of(proxy)
    one(spans, name="FETCH")
    equal(some(spans, kind=3), [], "requests to the origin")


def test_no_password_goes_to_the_collector(lab):
    """A URL with user info is refused, and a target that is no URL does not become url.full, whatever it contains. The part of a URL
    behind a '#' is as private as the query."""
    origin, collector = Origin(lab), Collector(lab)
    proxy = Retort(lab, extra=collector.section())
    for target, status in (("http://bob:hunter2@a.test/x", 400), ("ftp://bob:hunter2@a.test/", 501), ("/hunter2", 400),
                           (origin.url("/text", say="a") + "#hunter2", 200)):
        with proxy.wire() as client:
            client.send(f"GET {target} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
            equal(client.response().status, status, f"{target}: status")
    spans = collector.spans_of(proxy)
    equal([span.attributes.get("url.full") for span in some(spans, parent=None)], [None, None, None, origin.url("/text")], "URLs")
    lacks(b"".join(request.body for request in collector.requests), b"hunter2", "what the collector gets")


def test_hits_and_samples(lab):
    """A hit has no request to an origin. About the part of the requests is traced that the option says."""
    origin, collector = Origin(lab), Collector(lab)
    proxy = Retort(lab, extra=collector.section(sample="=0.5"))
    for _ in range(200):
        equal(proxy.get(origin.url("/text", say="a", cc="max-age=60")).status, 200, "status")
    traced = [entry for entry in proxy.log(200) if "trace_id" in entry]
    true(60 < len(traced) < 140, f"{len(traced)} of 200 are traced")
    spans = collector.spans_of(proxy)
    equal({span.trace for span in spans}, {entry["trace_id"] for entry in traced}, "traces")
    hit = next(entry for entry in traced if entry["result"] == "HIT")
    root = one(spans, trace=hit["trace_id"], parent=None)
    equal([span.name for span in some(spans, trace=root.trace, parent=root.id)], ["RECEIVE", "ADMIT", "LOOKUP", "DELIVER"], "steps of a hit")


def test_a_collector_that_is_away(lab):
    """No request waits for it; what finds no room is dropped and counted. It gets the same spans again when it is overloaded."""
    origin = Origin(lab)
    answers = [b"503 Service Unavailable", b"200 OK"]
    busy = Collector(lab, lambda c, _r: c.send(b"HTTP/1.1 " + (answers.pop(0) if answers else b"400 Bad Request") + b"\r\nContent-Length: 0\r\n\r\n"))
    proxy = Retort(lab, extra=busy.section(queue=2))
    seconds = measure(lambda: [proxy.get(origin.url("/text", say="a")) for _ in range(20)])[1]
    true(seconds < 2 * lab.patience, f"{seconds} s for 20 requests")
    metric = lambda name: float(re.search(rf"^retort_{name} (\S+)", proxy.admin("GET", "/metrics").body.decode(), re.M).group(1))  # noqa: E731
    dropped = metric("spans_dropped_total")
    true(dropped > 0, "spans were dropped")
    until(lambda: metric("spans_exported_total") > 0, 10 * lab.patience, "spans to be taken in the end")
    equal([request.body == busy.requests[0].body for request in busy.requests], [True, True], "the same post twice")
    equal((metric("span_posts_failed_total"), metric("spans_waiting_requests")), (1, 0), "posts that failed, requests that wait")
    contains(proxy.process.log(), "answered with the status 503; they are posted again", "the log")
    proxy.get(origin.url("/text", say="a"))
    until(lambda: metric("spans_dropped_total") > dropped, 10 * lab.patience, "spans to be dropped that it refuses")
    equal(len(busy.requests), 3, "posts: what it refuses is not repeated")
    proxy = Retort(lab, extra=Collector(lab, lambda c, _r: c.send(b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n")).section())
    proxy.get(origin.url("/text", say="a"))
    until(lambda: "answered with the status 400; they are dropped" in proxy.process.log(), 10 * lab.patience, "what the log says of a refusal")


def answers_with(body):
    return lambda connection, _request: connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                                                        % (len(body), body))


def partial(rejected, why="no\nroom"):
    return json.dumps({"partialSuccess": {"rejectedSpans": rejected, "errorMessage": why}}).encode()


def test_a_collector_that_rejects_some_spans(lab):
    """OTLP, "Partial Success": it takes the post and says how many spans it rejected, as a number or a text. What it can't mean counts for nothing."""
    origin, bodies = Origin(lab), []
    collector = Collector(lab, lambda connection, request: answers_with(bodies[len(collector.requests) - 1])(connection, request))
    proxy = Retort(lab, extra=collector.section())
    names = ("retort_spans_rejected_total", "retort_spans_exported_total", "retort_spans_dropped_total")
    counted = lambda: [value(scrape(proxy), name) for name in names]  # noqa: E731
    said = '"no?room"; see its log'
    for rejected, body in ((0, b"{}"), (0, partial(0, "")), (0, partial(-1, "")), (2, partial("2")), (None, partial(10**15)), (0, b"[" * 5000),
                           (0, b" " * 9000 + partial(2)), (0, b'{"partialSuccess":2}')):
        before = counted()
        bodies.append(body)
        proxy.get(origin.url("/text", say="a"))
        until(lambda was=sum(before): sum(counted()) > was, 10 * lab.patience, f"the answer {body[:60]}")
        spans = len(spans_in(collector.requests[-1].body))
        expected = spans if rejected is None else rejected
        equal([now - was for was, now in zip(before, counted())], [expected, spans - expected, 0], f"rejected, exported, dropped after {body[:60]}")
        equal(said in proxy.process.log(), partial("2") in bodies, f"the log after {body[:60]}")
    equal(proxy.process.log().count(said), 1, "warnings in a minute")


def test_a_collector_over_tls(lab):
    """Verified with ca_file; spans go to nobody that another authority has made."""
    origin, ca, other = Origin(lab), Authority(lab), Authority(lab)
    collector = TlsOrigin(lab, ca.leaf("localhost"), took)
    url = collector.url("/v1/traces").replace("127.0.0.1", "localhost")
    text = lambda file: section("tracing", {"collector": url, "sample": "=1", "ca_file": file})  # noqa: E731
    proxy = Retort(lab, extra=text(other.file))
    proxy.get(origin.url("/text", say="a"))
    until(lambda: value(scrape(proxy), "retort_span_posts_failed_total") > 0, 10 * lab.patience, "a post that fails")
    until(lambda: "cannot post spans to the collector https://localhost" in proxy.process.log(), 5 * lab.patience, "a line in the log")
    equal(len(collector.requests), 0, "posts to a collector that is not verified")
    proxy.stop()
    proxy = Retort(lab, extra=text(ca.file))
    proxy.get(origin.url("/text", say="a"))
    until(lambda: value(scrape(proxy), "retort_spans_exported_total") > 0, 10 * lab.patience, "spans that are taken")
    equal([(post.method, post.target) for post in collector.requests], [("POST", "/v1/traces")], "posts")
    equal(len(spans_in(collector.requests[0].body)), int(value(scrape(proxy), "retort_spans_exported_total")), "spans")


def test_a_silent_collector_delays_no_end(lab):
    origin, collector = Origin(lab), Collector(lab, lambda _c, _r: time.sleep(30) or took(_c, _r))
    proxy = Retort(lab, extra=collector.section())
    proxy.get(origin.url("/text", say="a"))
    until(lambda: collector.requests, 10 * lab.patience, "a post")
    proxy.get(origin.url("/text", say="b"))
    true(measure(proxy.stop)[1] < 4 * lab.patience, "the end")
    equal(len(collector.requests), 2, "posts: the one that is left, and the last one")
    lacks(proxy.process.log(), "cannot post spans", "the log: the collector has not had its time")


def test_a_name_that_is_not_found_delays_no_end(lab):
    """The system's resolver waits for a name server that does not answer, and libcurl for the resolver."""
    origin, library = Origin(lab), lab.built("tests/e2e/faults/.libs/slow_names.so")
    proxy = Retort(lab, extra=section("tracing", {"collector": "http://collector.slow.test/", "sample": "=1"}), memcheck=False,
                   environment={"LD_PRELOAD": library})
    proxy.get(origin.url("/text", say="a"))
    time.sleep(1.5)  # it is posted after a second
    true(measure(proxy.stop)[1] < 4 * lab.patience, "the end while a post is under way")
    proxy.start()
    proxy.get(origin.url("/text", say="a"))
    true(measure(proxy.stop)[1] < 4 * lab.patience, "the end with a last post")


def runs_cat(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "cat"
    except OSError:
        return False  # it has ended


def test_no_descriptor_goes_to_programs(lab):
    """libcurl closes none of its descriptors in programs that are started: the connection to the collector would stay open in them."""
    origin, collector = Origin(lab), Collector(lab)
    proxy = Retort(lab, extra=collector.section() + 'access_log "|/bin/cat" {}\n', memcheck=False)

    def program():
        mine = []
        for task in os.listdir(f"/proc/{proxy.pid}/task"):
            with open(f"/proc/{proxy.pid}/task/{task}/children", encoding="ascii") as children:
                mine += children.read().split()
        return [pid for pid in mine if runs_cat(pid)]
    proxy.get(origin.url("/text", say="a"))
    first = until(program, 10 * lab.patience, "the program")
    until(lambda: collector.requests, 10 * lab.patience, "a post")
    os.kill(int(first[0]), 9)

    def second():
        proxy.get(origin.url("/text", say="a"))
        return [pid for pid in program() if pid != first[0]]
    pid = until(second, 10 * lab.patience, "the program that is started again")[0]
    # For a moment the loader has those of libraries.
    until(lambda: sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"], 10 * lab.patience, "it to have no other descriptors")


def test_without_tracing(lab):
    """Both fields pass through as they are; a reload brings tracing, and another takes it away."""
    origin, collector = Origin(lab), Collector(lab)
    proxy = Retort(lab)
    fields = [("traceparent", "what a client likes"), ("tracestate", "a=1")]
    equal(sent(proxy, origin, *fields), ("what a client likes", "a=1"), "without tracing")
    proxy.write_config(proxy.text(extra=collector.section()))
    equal(proxy.reload().status, 200, "reload")
    true(ids(sent(proxy, origin, *fields)[0])[2], "with tracing it is sampled")
    until(lambda: collector.spans(), 10 * lab.patience, "spans")
    proxy.write_config(proxy.text())
    equal(proxy.reload().status, 200, "reload")
    equal(sent(proxy, origin, *fields), ("what a client likes", "a=1"), "without tracing")
    lacks(proxy.last(3), "trace_id", "the access log")
