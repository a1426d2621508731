"""A collector of OpenTelemetry that takes OTLP over HTTP in JSON, and holds what it is sent to the shape that OTLP has.

    collector = Collector(lab)
    proxy = Retort(lab, extra=collector.section(sample=1))
    proxy.get(origin.url("/text", say="a"))
    spans = collector.spans_of(proxy)                   stops the proxy, so that nothing waits any more
    root = one(spans, parent=None)
    fetch = one(spans, name="FETCH", parent=root.id)
"""

import json
import re

from .checks import equal, true
from .raw_origin import RawOrigin
from .retort import section


def took(connection, _request):
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")


class Span:
    """One span; `attributes` is a dict."""

    def __init__(self, found, service):
        known = {"traceId", "spanId", "parentSpanId", "traceState", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
                 "attributes", "status"}
        equal(set(found) - known, set(), "members of a span that OTLP does not have")
        self.trace, self.id, self.parent = found["traceId"], found["spanId"], found.get("parentSpanId")
        for value, digits in ((self.trace, 32), (self.id, 16)) + (((self.parent, 16),) if self.parent is not None else ()):
            true(re.fullmatch("[0-9a-f]{%d}" % digits, value) and value.strip("0"), f"an id: {value}")
        self.name, self.kind, self.state, self.flags = found["name"], found["kind"], found.get("traceState"), found["flags"]
        true(self.kind in (1, 2, 3) and isinstance(self.kind, int), f"kind {self.kind}")
        true(isinstance(self.name, str) and self.name, "a name")
        for name in ("startTimeUnixNano", "endTimeUnixNano"):  # a fixed64 is a text in JSON
            true(re.fullmatch(r"[1-9]\d{18}", found[name]), f"{name} {found[name]}")
        self.begun, self.ended = int(found["startTimeUnixNano"]), int(found["endTimeUnixNano"])
        true(self.begun <= self.ended, "it ends after its beginning")
        self.attributes = attributes(found["attributes"])
        self.error = found["status"].get("message") if found["status"].get("code") == 2 else None
        equal(set(found["status"]) - {"code", "message"}, set(), "members of the status")
        self.service = service

    def __repr__(self):
        return f"{self.service} {self.name} {self.id} < {self.parent}"


def attributes(found):
    values = {}
    for attribute in found:
        equal(set(attribute), {"key", "value"}, "members of an attribute")
        (kind, value), = attribute["value"].items()
        true(isinstance(value, str) and kind in ("stringValue", "intValue"), f"{attribute}: an int64 is a text in JSON")
        true(attribute["key"] not in values, f"{attribute['key']} occurs once")
        values[attribute["key"]] = int(value) if kind == "intValue" else value
    return values


def spans_in(body):
    """Those of an ExportTraceServiceRequest."""
    request = json.loads(body)
    equal(set(request), {"resourceSpans"}, "members of the request")
    found = []
    for resource in request["resourceSpans"]:
        equal(set(resource), {"resource", "scopeSpans"}, "members of resourceSpans")
        service = attributes(resource["resource"]["attributes"])["service.name"]
        for scope in resource["scopeSpans"]:
            equal((set(scope), scope["scope"]["name"]), ({"scope", "spans"}, "retort"), "members of scopeSpans")
            found += [Span(span, service) for span in scope["spans"]]
    return found


class Collector(RawOrigin):
    def __init__(self, lab, answer=took):
        super().__init__(lab, answer)

    def section(self, **options):
        return section("tracing", {"collector": f"http://{self.authority}/v1/traces", "sample": "=1", **options})

    def spans(self):
        for request in self.requests:
            equal((request.method, request.target, request.header("Content-Type")), ("POST", "/v1/traces", "application/json"), "a post")
        return [span for request in self.requests for span in spans_in(request.body)]

    def spans_of(self, *proxies):
        for proxy in proxies:
            proxy.stop()
        return self.spans()


def some(spans, **values):
    return [span for span in spans if all(getattr(span, name) == value for name, value in values.items())]


def one(spans, **values):
    found = some(spans, **values)
    equal(len(found), 1, f"spans with {values} among {spans}")
    return found[0]
