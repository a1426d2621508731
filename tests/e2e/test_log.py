"""The access log's formats, and the id that leads from a line to its ICAP transaction."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import time

from harness.adaptation import account
from harness.checks import Skip, between, contains, equal, true, until
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


# Squid, "Default Log Formats": squid is %ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt
SQUID = re.compile(r"(\d+\.\d{3}) ( {0,5}\d+) ([0-9a-f.:]+) ((?:TCP|NONE)[A-Z_]*)/([1-5]\d\d) (\d+) ([A-Z]+|-) (\S+) - "
                   r"(HIER_DIRECT/\S+|HIER_NONE/-) (-|[!-~]+/[!-~]+)")
# Apache, mod_log_config: combined is "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-agent}i\""
COMBINED = re.compile(r'([0-9a-f.:]+) - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] '
                      r'"([A-Z]+ [!-~]+ HTTP/1\.[01]|-)" ([1-5]\d\d) (\d+|-) "([ -~]*)" "([ -~]*)"')


def odd_requests(lab, proxy, origin): 
    """What has a line of its own kind: hits, odd texts, requests that can't be read or never come, clients that leave, tunnels."""
    proxy.get(origin.url("/bytes", n=500, cc="max-age=60", type="image/png"))
    proxy.get(origin.url("/bytes", n=500, cc="max-age=60", type="image/png"))
    proxy.get(origin.url("/text", say="x", type="text/html; charset=utf-8"),
              {"User-Agent": 'an "agent" \\ \x80\xff\x9b', "Referer": "http://from/ \t\"<x>"})
    proxy.get(origin.url("/bytes", n=0))
    for bad in (b'GET "><x HTTP/1.1\r\nHost: h\r\n\r\n', b"\x16\x03\x01\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"):
        with proxy.wire() as wire:
            wire.send(bad)
            wire.response()
    for late in (b"GET http://h/late HTTP/1.1\r\nHo", b"POST http://h/late HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx"):
        with proxy.wire() as wire:  # not all of it in time
            wire.send(late)
            wire.read_to_end()
    before = proxy.counter("client_requests")
    wire = proxy.wire()  # the client leaves before there is a response
    wire.send(request("GET", origin.url("/text", say="x", ms=1500)))
    until(lambda: proxy.counter("client_requests") > before, 5 * lab.patience, "the request")
    wire.abort()
    with proxy.wire() as wire:
        wire.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
        equal(wire.response("CONNECT").status, 200, "CONNECT")
    until(lambda: any(entry["aborted"] for entry in proxy.log()), 5 * lab.patience, "the line of the client that left")


def test_strict_formats(lab):
    """A parser that knows a format and nothing else reads every line, whatever the request was."""
    origin, odd = Origin(lab), {}
    logs = {name: lab.path(name + ".log") for name in ("squid", "combined", "squid_extended", "combined_extended")}
    proxy = Retort(lab, extra="".join(f'access_log "{path}" {{ format = {name} }}\n' for name, path in logs.items())
                   + f"connect_ports = {{ {origin.port} }}\n", client={"header_timeout": "1s", "body_timeout": "1s"}, ipv6=True)
    odd_requests(lab, proxy, origin)
    proxy.stop()
    for name, path in logs.items():
        with open(path, encoding="ascii") as file:
            odd[name] = file.read().splitlines()
    entries = proxy.log()
    for name, pattern in (("squid", SQUID), ("combined", COMBINED)):
        equal(len(odd[name]), len(entries), name)
        for line, more, entry in zip(odd[name], odd[name + "_extended"], entries):
            true(pattern.fullmatch(line), f"no line of the {name} format: {line}")
            true(more.startswith(line + " ") and entry["id"] in more, f"the same with more columns: {more}")


def test_squid(lab):
    origin = Origin(lab)
    proxy = Retort(lab, log_format="squid")
    url = origin.url("/bytes", n=500, cc="max-age=60", type="image/png")
    proxy.get(url)
    proxy.get(url)
    for line, result in zip(lines(proxy, 2), ("TCP_MISS", "TCP_MEM_HIT")):
        match = SQUID.fullmatch(line)
        true(match, f"not a line of Squid's native format: {line}")
        equal(match.group(3, 4, 5, 7, 8, 10), ("127.0.0.1", result, "200", "GET", url, "image/png"), "fields")
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


def test_combined(lab):
    """Apache: %b is the "size of response in bytes, excluding HTTP headers"."""
    origin = Origin(lab)
    proxy = Retort(lab, log_format="combined")
    url = origin.url("/bytes", n=500)
    for _ in range(2):
        proxy.get(url, {"User-Agent": 'an "agent"', "Referer": "http://from/"})
    proxy.fetch("HEAD", url)
    for line, method, length in zip(lines(proxy, 3), ("GET", "GET", "HEAD"), ("500", "500", "0")):
        match = COMBINED.fullmatch(line)
        true(match, f"not a line of the combined format: {line}")
        equal(match.groups(), ("127.0.0.1", f"{method} {url} HTTP/1.1", "200", length, "http://from/" * (method == "GET") or "-",
                               "an %22agent%22" if method == "GET" else match.group(6)), "fields")


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
    for log_format in ("json", "squid", "combined", "squid_extended", "combined_extended"):
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


def test_transaction_id_leads_to_cicap(lab):
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"))])
    proxy.get(origin.url("/bytes", n=5000, cc="no-store"))
    entry = proxy.log(1)[0]
    found = cicap.wait_entries(1, transaction=entry["id"])
    equal([(e.method, e.service) for e in found], [("RESPMOD", "echo")], "c-icap's entries with that id")


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


def test_a_full_disk_costs_lines_and_is_told(lab):
    """Requests are served; the log says it once, a counter how many lines are gone, and other logs have theirs."""
    origin = Origin(lab)
    proxy = Retort(lab, extra='access_log "/dev/full" { format = combined }\n')
    for lost in (1, 2, 3):
        equal(proxy.get(origin.url("/text", say="x")).status, 200, "status")
        until(lambda lost=lost: proxy.counter("access_log_lines_lost") == lost, 10 * lab.patience, "the line to be lost")
    equal(len(lines(proxy, 3)), 3, "lines of the other log")
    equal(proxy.process.log().count("cannot write the log /dev/full: No space left on device"), 1, "warnings")


def test_a_fifo_in_place_of_a_file_stops_nobody(lab):
    """Without a reader, and with one that reads nothing: lines are lost and counted."""
    origin, path = Origin(lab), lab.path("fifo")
    os.mkfifo(path)
    proxy = Retort(lab, extra=f'access_log "{path}" {{ format = combined  queue = 64KB }}\n')
    equal(proxy.get(origin.url("/text", say="x")).status, 200, "without a reader")
    contains(proxy.process.log(), f"cannot open the log {path}", "the proxy's log")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    equal(proxy.reload().status, 200, "reload")
    with proxy.wire() as wire:
        for _ in range(600):
            wire.send(request("GET", origin.url("/text", say="x"), {"Host": origin.authority, "User-Agent": "x" * 1000}))
            equal(wire.response().status, 200, "with a reader that reads nothing")
    until(lambda: proxy.counter("access_log_lines_lost") > 0, 10 * lab.patience, "lines that the pipe does not hold")
    os.close(reader)


def text_of(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def test_logs_of_some_requests(lab):
    """Each log has the lines that fit all it asks for, in a format of its own; JSON that way stays JSON."""
    origin = Origin(lab)
    logs = {name: lab.path(name + ".log") for name in ("failed", "hits", "images", "short", "json")}
    proxy = Retort(lab, url_classes={"images": {"content_type": "image/png"}}, extra=f"""
access_log "{logs['failed']}" {{ format = "%>Hs %ru"  status = {{ 5xx, 404 }} }}
access_log "{logs['hits']}" {{ format = '%Ss %"ru'  result = HIT }}
access_log "{logs['images']}" {{ format = "%rp"  class = images  status = 200 }}
access_log "{logs['short']}" {{ format = "%>a %>p"  ipv4_prefix = 8 }}
access_log "{logs['json']}" {{ format = '{{"agent": "%{{User-Agent}}>h", "ms": %tr}}'  escape = json }}
""")
    image, page = (origin.url("/bytes", n=9, cc="max-age=60", type=kind) for kind in ("image/png", "text/html"))
    agent = 'a"b\\c\u202e'
    for url in (image, image, page, origin.url("/text", say="x", status=404)):
        proxy.get(url, {"User-Agent": agent.encode().decode("latin-1")})
    proxy.stop()
    equal(text_of(logs["failed"]), f"404 {origin.url('/text', say='x', status=404)}\n", "failed")
    equal(text_of(logs["hits"]), f"TCP_MEM_HIT {image}\n", "hits")
    equal(text_of(logs["images"]), (image[len(origin.url("")):] + "\n") * 2, "images")
    equal(text_of(logs["short"]), "127.0.0.0 0\n" * 4, "shortened addresses")
    equal({json.loads(line)["agent"] for line in text_of(logs["json"]).splitlines()}, {agent}, "the agent")


# Squid, "Default Log Formats": icap_squid is %ts.%03tu %6icap::tr %>A %icap::to/%03icap::Hs %icap::<st %icap::rm %icap::ru %un -/%icap::<A -
ICAP_SQUID = re.compile(r"\d+\.\d{3} {1,6}\d+ 127\.0\.0\.1 (ICAP_[A-Z_]+)/(\d{3}) (\d+) (REQMOD|RESPMOD) (icap://\S+) - -/(\S+) -")


@memcheck
def test_icap_log(lab):
    """A line a call: what was remembered has none, and what failed has one."""
    origin, every, one = Origin(lab), lab.path("icap.log"), lab.path("same.log")
    change, same, dead = IcapServer(lab, append(b"!")), IcapServer(lab), IcapServer(lab)
    proxy = Retort(lab, services=[Service("change", change.uri()), Service("same", same.uri("same")), Service("dead", dead.uri())],
                   extra=f'icap_log "{every}" {{ }}\n'
                   f'icap_log "{one}" {{ format = "%retort::service %retort::verdict %icap::Hs"  service = same }}\n')
    dead.stop()
    url = origin.url("/text", say="x", cc="max-age=60")
    for _ in range(2):
        equal(proxy.get(url).text(), "x!", "body")
    equal(proxy.log(2)[0]["icap"][2]["verdict"], "BYPASSED", "verdict of the third")
    proxy.stop()
    found = [ICAP_SQUID.fullmatch(line) for line in text_of(every).splitlines()]
    true(all(found), f"lines of Squid's format: {text_of(every)}")
    equal([(f.group(1), f.group(2), f.group(4), f.group(5)) for f in found],
          [("ICAP_MOD", "200", "RESPMOD", change.uri()), ("ICAP_ECHO", "204", "RESPMOD", same.uri("same")),
           ("ICAP_ERR_OTHER", "000", "RESPMOD", dead.uri())] * (len(found) // 3), "calls")
    equal(found[0].group(6), change.uri().split("/")[2], "its host")
    true(text_of(one).startswith("same UNMODIFIED 204\n"), "the log of one service")


def test_bad_logs_are_refused(lab):
    proxy = Retort(lab)
    for text, message in (('access_log "/tmp/x" { format = sqid }', 'format: "sqid" is neither squid, combined'),
                          ('access_log "/tmp/x" { format = "%st" }', "there is no code %"),
                          ('access_log "/tmp/x" { status = 6xx }', "is no status"),
                          ('access_log "/tmp/x" { result = HITS }', "is no result"),
                          ('access_log "/tmp/x" { class = nobody }', 'there is no url_class "nobody"'),
                          ('access_log "/tmp/x" { service = nobody }', 'there is no icap_service "nobody"'),
                          ('access_log "/tmp/x" { format = "%{X-Forwarded-For}>h"  ipv4_prefix = 24 }', "tells the client's address"),
                          ('icap_log "/tmp/x" { format = squid }', "neither icap_squid nor")):
        status, said = proxy.check_config(proxy.text() + text + "\n")
        equal(status, 1, text)
        contains(said, message, text)


def test_calamaris_reads_squid(lab):
    """A report with all requests in it, none of them unreadable."""
    if shutil.which("calamaris") is None:
        raise Skip("calamaris is not installed")
    origin = Origin(lab)
    proxy = Retort(lab, log_format="squid")
    url = origin.url("/bytes", n=500, cc="max-age=60", type="image/png")
    for _ in range(3):
        proxy.get(url, {"User-Agent": "x"})
    proxy.stop()
    with open(proxy.log_path, encoding="ascii") as log:
        done = subprocess.run(["calamaris"], stdin=log, capture_output=True, text=True, check=True, timeout=60)
    true(re.search(r"lines parsed: +lines +3 *$", done.stdout, re.M), done.stdout)
    true(re.search(r"invalid lines: +lines +0 *$", done.stdout, re.M), done.stdout)


def goaccess_format():
    """As docs/OPERATIONS.md writes it."""
    with open(os.path.join(os.path.dirname(__file__), "../../docs/OPERATIONS.md"), encoding="utf-8") as file:
        return re.search(r"--log-format='([^']*)'", file.read()).group(1)


def test_goaccess_reads_them(lab):
    """Its own names for the formats; of Squid's that one without syslog's words in front, which its predefined one wants."""
    origin = Origin(lab)
    users = lab.write("users", "alice:{SHA}" + base64.b64encode(hashlib.sha1(b"pw").digest()).decode() + "\n")
    os.chmod(users, 0o600)
    logs = {name: lab.path(name + ".log") for name in ("squid", "combined")}
    proxy = Retort(lab, extra="".join(f'access_log "{path}" {{ format = {name} }}\n' for name, path in logs.items())
                   + f"connect_ports = {{ {origin.port} }}\nurl_class known {{ path_regex = '^/known' }}\n"
                   + f'authenticator staff {{ type = basic  file = "{users}" }}\naccess known {{ action = authenticate  with = staff }}\n'
                   + "access all { action = allow }\n", client={"header_timeout": "1s", "body_timeout": "1s"})
    odd_requests(lab, proxy, origin)
    proxy.get(origin.url("/known"), {"Proxy-Authorization": "Basic " + base64.b64encode(b"alice:pw").decode()})
    proxy.stop()
    unreadable = sum(entry["method"] == "" for entry in proxy.log())  # "-" is no method to it in Squid's format
    known = {"combined": ["--log-format=COMBINED"],
             "squid": ["--log-format=" + goaccess_format(), "--date-format=%s", "--time-format=%s", "--datetime-format=%s"]}
    for name, options in known.items():
        report = lab.path(name + ".json")
        subprocess.run(["goaccess", logs[name], *options, "--no-global-config", "-o", report], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=True, timeout=60)
        with open(report, encoding="utf-8") as file:
            parsed = json.load(file)
        general = parsed["general"]
        if name == "squid":
            equal({row["data"] for row in parsed.get("remote_user", {"data": []})["data"]}, {"alice", "-"}, "users")
        equal([row["data"] for row in parsed["requests"]["data"] if "HIER_" in row["data"]], [], f"URLs of {name} with what stands behind")
        equal(general["failed_requests"], unreadable if name == "squid" else 0, f"lines of {name} that it can't read")
        equal(general["total_requests"], len(proxy.log()), f"lines of {name}")


# What steers a terminal, turns a line around or is not seen: C0, C1, Unicode's Bidi_Control, line and paragraph separators.
HIDDEN = [*range(1, 0x20), *range(0x7f, 0xa0), 0x61c, *range(0x200b, 0x2010), *range(0x2028, 0x202f), *range(0x2066, 0x206a), 0xfeff, 0xe0041]


def hidden_in(text):
    return [hex(ord(c)) for c in text if ord(c) in HIDDEN and c != "\n"]


@memcheck
def test_nothing_steers_a_terminal(lab):
    """RFC 8259, 7: "Any character may be escaped." What clients write reaches logs, the admin plane and retortctl so."""
    origin, proxy = Origin(lab), Retort(lab, extra='log_level = debug\n')
    odd = "".join(chr(c) for c in HIDDEN if c > 0x7f)
    raw = odd.encode() + b"\x80\xed\xa0\x80\xff\xc0\xaf"
    url = origin.url("/text?say=x&cc=max-age%3D60")
    with proxy.wire() as wire:
        wire.send(b"GET " + url.encode() + b"&" + raw + b" HTTP/1.1\r\nHost: " + origin.authority.encode()
                  + b"\r\nUser-Agent: " + raw + "é漢".encode() + b"\r\n\r\n")
        equal(wire.response().status, 200, "status")
    entry = proxy.log(1)[0]
    with open(proxy.log_path, "rb") as file:
        equal(hidden_in(file.read().decode("utf-8")), [], "in the log")
    equal(entry["user_agent"], odd + "\ufffd" * 7 + "é漢", "what a reader of JSON gets")
    equal(hidden_in(proxy.admin("GET", "/cache/objects").body.decode("utf-8")), [], "from the admin plane")
    for arguments in (("cache", "list"), ("--json", "cache", "list"), ("cache", "show", url), ("status",), ("cache", "purge", "--prefix", odd)):
        equal(hidden_in(proxy.ctl(*arguments, expect=None)), [], f"from retortctl {arguments}")
    equal(hidden_in(proxy.process.log()), [], "in the error log")


def trace_of(proxy, number):
    """What the error log says of a request, without times and ids, and without what depends on the client's socket."""
    identity = proxy.log(number)[number - 1]["id"]
    begun = re.compile(rf"^\S+ retort debug {identity} (.*)$", re.M)
    until(lambda: "LOG -> DONE" in "\n".join(begun.findall(proxy.process.log())), 5 * proxy.lab.patience, "the last step")
    return [re.sub(r" after \d+ ms", " after N ms", line) for line in begun.findall(proxy.process.log())
            if not line.startswith("DELIVER waits")]


def test_debug_follows_a_request(lab):
    """log_level = debug: a line for each step that a request has been through, and for each that waits."""
    origin, icap = Origin(lab), IcapServer(lab, append(b"!"))
    service = Service("echo", icap.uri("echo"), bypass=False)
    proxy = Retort(lab, services=[service], extra="log_level = debug\n")
    url, place = origin.url("/bytes", n=5000, cc="max-age=60"), origin.authority
    # Its OPTIONS are asked at the start; before the answer a message would wait for them.
    until(lambda: account(proxy, "echo")["state"] == "up", 5 * lab.patience, "the service to be known")
    proxy.get(url)
    equal(trace_of(proxy, 1), [
        f"RECEIVE -> ADMIT: GET {url} from 127.0.0.1",
        "ADMIT -> LOOKUP",
        "LOOKUP -> FETCH: nothing is stored",
        f"FETCH waits for the origin {place}",
        f"FETCH -> RESPMOD: 200 from {place}",
        f"asks the service echo at {icap.uri('echo')}",
        "RESPMOD waits for the service echo",
        "RESPMOD -> STORE: echo MODIFIED after N ms",
        "STORE -> DELIVER: the response is stored in memory as it arrives",
        "DELIVER -> LOG: 200",
        "LOG -> DONE: MISS 200"], "a miss")
    proxy.get(url)
    equal(trace_of(proxy, 2), [
        f"RECEIVE -> ADMIT: GET {url} from 127.0.0.1",
        "ADMIT -> LOOKUP",
        "LOOKUP -> DELIVER: a fresh response is stored",
        "DELIVER -> LOG: 200",
        "LOG -> DONE: HIT 200"], "a hit")
    proxy.get("http://127.0.0.1:1/")
    equal(trace_of(proxy, 3)[-3:], [
        "FETCH -> DELIVER: 127.0.0.1:1; Connection refused",
        "DELIVER -> LOG: 502; Connection refused",
        "LOG -> DONE: ERROR 502; Connection refused"], "an origin that is not there")


def test_no_debug_lines_at_other_levels(lab):
    origin, proxy = Origin(lab), Retort(lab)
    proxy.get(origin.url("/bytes", n=10))
    proxy.log(1)
    equal(" debug " in proxy.process.log(), False, "a debug line at log_level = info")
