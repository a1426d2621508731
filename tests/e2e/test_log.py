"""The access log's formats, and the id that leads from a line to its ICAP transaction."""

import os
import re
import time

from harness.checks import between, equal, true, until
from harness.cicap import Cicap, Module
from harness.icap import IcapServer, append
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import request

KEYS = {"time", "id", "client", "method", "url", "status", "bytes", "result", "origin", "ms", "step",
        "user_agent", "referer", "icap"}


@memcheck
def test_json(lab):
    origin, proxy = Origin(lab), Retort(lab)
    url = origin.url("/bytes", n=5000)
    proxy.get(url, {"User-Agent": 'the "agent" \\ é'.encode().decode("latin-1"), "Referer": "http://from/"})
    entry = proxy.log(1)[0]
    equal(KEYS - set(entry), set(), "missing keys")
    equal((entry["method"], entry["url"], entry["status"], entry["referer"]), ("GET", url, 200, "http://from/"), "entry")
    true(entry["user_agent"].startswith('the "agent" \\'), f"user_agent {entry['user_agent']!r}")
    between(entry["time"], time.time() - 60, time.time() + 1, "time")
    between(entry["bytes"], 5000, 6000, "bytes")
    between(entry["ms"], 0, 10000 * lab.patience, "ms")
    equal(entry["icap"], [], "icap")


def lines(proxy, count):
    until(lambda: len(proxy.log_lines()) >= count, 5 * proxy.lab.patience, f"{count} log lines")
    return proxy.log_lines()


@memcheck
def test_squid(lab):
    origin = Origin(lab)
    proxy = Retort(lab, log_format="squid")
    url = origin.url("/bytes", n=500, cc="max-age=60", type="image/png")
    proxy.get(url)
    proxy.get(url)
    first, second = lines(proxy, 2)
    pattern = r"(\d+\.\d{3}) ( {0,5}\d+) (\S+) (\w+)/(\d{3}) (\d+) (\w+) (\S+) (\S+) (\w+)/(\S+) (\S+)"
    for line, result in ((first, "MISS"), (second, "HIT")):
        match = re.match(pattern, line)
        true(match, f"not a line of Squid's native format: {line}")
        true(result in match.group(4), f"result in {line}")
        equal((match.group(3), match.group(5), match.group(7), match.group(8)), ("127.0.0.1", "200", "GET", url), "fields")
        equal(match.group(12), "image/png", "type")
        equal(len(match.group(2)), 6, "width of the milliseconds")


def test_type_of_what_is_stored(lab):
    """However the origin writes the field's name, and wherever it stands."""
    origin, proxy = Origin(lab), Retort(lab)
    for at, name in enumerate(("Content-Type", "content-type", "CONTENT-TYPE")):
        url = origin.url(f"/text?say={at}&h=X-Content-Type:no&h={name}:image/png&cc=max-age%3D60")
        proxy.get(url)
        proxy.get(url)
        equal([(entry["result"], entry["content_type"]) for entry in proxy.log(2 * at + 2)[-2:]],
              [("MISS", "image/png"), ("HIT", "image/png")], name)


@memcheck
def test_combined(lab):
    origin = Origin(lab)
    proxy = Retort(lab, log_format="combined")
    url = origin.url("/bytes", n=500)
    proxy.get(url, {"User-Agent": 'an "agent"', "Referer": "http://from/"})
    line = lines(proxy, 1)[0]
    match = re.match(r'127\.0\.0\.1 - (\S+) \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET (\S+) HTTP/1\.1" 200 (\d+) '
                     r'"http://from/" "an (?:\\"|\\x22|%22)agent(?:\\"|\\x22|%22)"', line)
    true(match, f"not a line of the combined format: {line}")
    equal(match.group(2), url, "URL")


def test_several_logs_at_once(lab):
    origin = Origin(lab)
    other = lab.path("other.log")
    proxy = Retort(lab, extra=f'access_log "{other}" {{ format = combined }}')
    proxy.get(origin.url("/text", say="x"))
    proxy.log(1)
    def written():
        with open(other, encoding="utf-8") as log:
            return "GET" in log.read()
    until(written, 5, "the second log")


def test_lines_can_not_be_forged(lab):
    origin = Origin(lab)
    for log_format in ("json", "squid", "combined"):
        proxy = Retort(lab, log_format=log_format)
        proxy.get(origin.url("/text?say=x") + "&evil=%0d%0aGET", {"User-Agent": "a\x80\xff\"b", "Referer": "x\ty"})
        with proxy.wire() as wire:
            wire.send(b'GET "><x HTTP/1.1\r\nHost: h\r\n\r\n')
            wire.response()
        proxy.stop()
        equal(len(proxy.log_lines()), 2, f"{log_format} lines")


@memcheck
def test_long_lines_stay_whole(lab):
    """Texts are cut, one after the other and all together, and what stands around them is not."""
    origin, proxy = Origin(lab), Retort(lab)
    long = "\xff" * 3000
    url = origin.url("/text", say="x", type="a/" + "\xff" * 3000)
    with proxy.wire() as wire:
        wire.send(request("GET", url + "&" + long, {"User-Agent": long, "Referer": long}))
        equal(wire.response().status, 200, "status")
    entry = proxy.log(1)[0]
    equal(entry["user_agent"][:2560].strip("\ufffd"), "", "what was cut")
    between(len(entry["user_agent"]), 2000, 2560, "its length")
    equal((entry["icap"], entry["status"]), ([], 200), "what stands around them")


def test_every_request_has_one_line(lab):
    origin, proxy = Origin(lab), Retort(lab, workers=2)
    for connection in range(10):
        with proxy.wire() as wire:
            wire.send(b"".join(request("GET", origin.url("/text", say=f"{connection}.{n}")) for n in range(20)))
            for _ in range(20):
                wire.response()
    proxy.stop()
    entries = proxy.log()
    equal(len(entries), 200, "lines")
    equal(len({entry["id"] for entry in entries}), 200, "different ids")
    equal(len({entry["url"] for entry in entries}), 200, "different URLs")


def test_reopened_by_a_reload(lab):
    origin, proxy = Origin(lab), Retort(lab)
    proxy.get(origin.url("/text", say="before"))
    proxy.log(1)
    os.rename(proxy.log_path, proxy.log_path + ".1")
    equal(proxy.reload().status, 200, "POST /reload")
    proxy.get(origin.url("/text", say="after"))
    equal([entry["url"][-5:] for entry in proxy.log(1)], ["after"], "lines in the new file")


@memcheck
def test_transaction_id_leads_to_cicap(lab):
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"))])
    proxy.get(origin.url("/bytes", n=5000, cc="no-store"))
    entry = proxy.log(1)[0]
    found = cicap.wait_entries(1, transaction=entry["id"])
    equal([(e.method, e.service) for e in found], [("RESPMOD", "echo")], "c-icap's entries with that id")


@memcheck
def test_icap_verdicts(lab):
    origin = Origin(lab)
    change, same = IcapServer(lab, append(b"!")), IcapServer(lab)
    proxy = Retort(lab, services=[Service("change", change.uri()), Service("same", same.uri())])
    url = origin.url("/text", say="x", cc="max-age=60")
    equal(proxy.get(url).text(), "x!", "body")
    entry = proxy.log(1)[0]
    equal([(v["service"], v["verdict"]) for v in entry["icap"]], [("change", "MODIFIED"), ("same", "UNMODIFIED")], "icap")
    for verdict, status, out in zip(entry["icap"], (200, 204), (0, len("x!"))):
        between(verdict["ms"], 0, 5000 * lab.patience, "ms")
        equal(verdict["status"], status, "ICAP status")
        between(verdict["bytes_out"], 200 + out, 2000, "bytes to the service")
        between(verdict["bytes_in"], 30, 2000, "bytes from the service")
        between(verdict["last_byte_ms"], max(verdict["queue_ms"], 0.001), 5000 * lab.patience, "ms to the last byte")
    equal(change.transactions[0].request.header("X-Transaction-ID"), entry["id"], "X-Transaction-ID")
    proxy.get(url)
    equal((proxy.log(2)[1]["result"], proxy.log(2)[1]["icap"]), ("HIT", []), "the hit's result and icap")


@memcheck
def test_a_full_disk_costs_lines_and_is_told(lab):
    """Requests are served; the log says it once, a counter how many lines are gone, and other logs have theirs."""
    origin = Origin(lab)
    proxy = Retort(lab, extra='access_log "/dev/full" { format = combined }\n')
    for _ in range(3):
        equal(proxy.get(origin.url("/text", say="x")).status, 200, "status")
        lost = proxy.counter("access_log_lines_lost") + 1
        until(lambda lost=lost: proxy.counter("access_log_lines_lost") == lost, 10 * lab.patience, "the line to be lost")
    equal(len(lines(proxy, 3)), 3, "lines of the other log")
    equal(proxy.process.log().count("cannot write the access log /dev/full: No space left on device"), 1, "warnings")
