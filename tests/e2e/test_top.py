"""retortctl top and logs top: the tables of the event stream and of access logs, and their bounds."""

import gzip
import json
import os
import pty
import subprocess
import time

from harness.checks import contains, equal, lacks, true, until
from harness.icap import IcapServer, unchanged
from harness.origin import Origin
from harness.retort import Retort, Service
from test_admin_access import metric
from test_tail import Ctl, Hostile, event, stream

FORMATS = ("json", "squid", "combined", "squid_extended", "combined_extended")


def logs_top(lab, path, *words, expected=0, data=None):
    done = subprocess.run([lab.built("proxy/retortctl"), "logs", "top", path, *words], input=data, stdin=None if data is not None else subprocess.DEVNULL,
                          capture_output=True, timeout=60 * lab.patience, check=False, env={**os.environ, **lab.environment()})
    equal(done.returncode, expected, f"{path} {words}: {done.stderr}")
    return done.stdout.decode(), done.stderr.decode()


def table(lab, path, *words, **more):
    return json.loads(logs_top(lab, path, "--json", *words, **more)[0])


def squid_line(host="a.example", path="/", client="192.0.2.7", result="TCP_MISS", status=200, size=100, ms=10):
    return f"1764012345.678 {ms:6} {client} {result}/{status:03} {size} GET http://{host}{path} - HIER_DIRECT/192.0.2.9 text/html\n"


def numbers(rows, key):
    return {row[key]: row["requests"] for row in rows}


def test_all_formats_say_the_same(lab):
    """A log of each format, written by retort, gives the requests, bytes, hits, errors and services that were asked for."""
    icap, origin = IcapServer(lab, unchanged), Origin(lab)
    proxy = Retort(lab, services=[Service("quiet", icap.uri("quiet"))])
    paths = {name: lab.path(f"{name}.log") for name in FORMATS}
    proxy.write_config(proxy.text() + "".join(f'access_log "{path}" {{ format = {name} }}\n' for name, path in paths.items()))
    proxy.restart()
    with Ctl(lab, proxy.admin_listen(), "top", "--json", "--once", "--interval", "600", "--count", "7", "--by", "status") as now:
        until(lambda: metric(proxy, "retort_event_consumers") == 1, 20 * lab.patience, "top")
        for _ in range(4):
            proxy.get(origin.url("/text", say="kept", cc="max-age=60"))
        for status in (404, 500):
            proxy.get(origin.url("/text", say="x", status=status))
        proxy.fetch("GET", "no-url", body=None)
        live = json.loads(now.ends())
    equal(numbers(live["rows"], "status"), {"200": 4, "404": 1, "500": 1, "400": 1}, "top")
    equal((live["all"]["requests"], live["all"]["hits"], live["all"]["errors"]), (7, 3, 1), "all of top")
    proxy.log(7)
    for name, path in paths.items():
        until(lambda path=path: open(path, encoding="utf-8").read().count("\n") == 7, 10 * lab.patience, f"{name}: 7 lines")
        seen = table(lab, path, "--by", "host")
        equal((seen["bad_lines"], seen["all"]["requests"], seen["all"]["errors"]), (0, 7, 1), name)
        equal(numbers(seen["rows"], "host")["127.0.0.1"], 6, f"{name}: hosts")
        equal(seen["all"].get("hits"), None if name == "combined" else 3, f"{name}: hits")
        equal("p95_ms" in seen["all"], not name.startswith("combined"), f"{name}: durations")
        equal(seen["all"]["bytes"] == live["all"]["bytes"], not name.startswith("combined"), f"{name}: bytes")
        equal(numbers(table(lab, path, "--by", "client")["rows"], "client"), {"127.0.0.1": 7}, f"{name}: clients")
        services = numbers(table(lab, path, "--by", "service")["rows"], "service")
        equal(set(services), {"quiet"} if name == "json" or name.endswith("extended") else set(), f"{name}: services")
        kept = [row for row in table(lab, path, "--by", "url", "--sort", "requests")["rows"] if "say=kept" in row["url"]]
        equal([row["requests"] for row in kept], [4], f"{name}: URLs")


def test_top_shows_tables(lab):
    """A pipe gets a table an interval; a terminal is drawn anew; --fresh counts each interval for itself."""
    origin, proxy = Origin(lab), Retort(lab)
    with Ctl(lab, proxy.admin_listen(), "top", "--interval", "1", "--fresh", "--count", "2", "--json") as fresh, \
            Ctl(lab, proxy.admin_listen(), "top", "--interval", "1", "--count", "2") as whole:
        for ctl in (fresh, whole):
            until(lambda ctl=ctl: ctl.out != "", 20 * lab.patience, "the first table")
        proxy.get(origin.url("/text", say="x"))
        until(lambda: '"requests":1' in fresh.out and "        1 " in whole.out, 20 * lab.patience, "the first request")
        proxy.get(origin.url("/text", say="x"))
        totals = [json.loads(line)["all"]["requests"] for line in fresh.ends().splitlines()]
        equal((sum(totals), max(totals)), (2, 1), f"each counts anew: {totals}")
        contains(whole.ends(), "        2 ", "the whole")
        lacks(whole.out, "\033", "a file")
    master, slave = pty.openpty()
    environment = {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, **lab.environment(), "TERM": "xterm"}
    with subprocess.Popen([lab.built("proxy/retortctl"), "-s", proxy.admin_listen(), "top"], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                          env=environment) as process:
        os.close(slave)
        text = b""
        while text.count(b"\033[H\033[J") < 2:
            text += os.read(master, 65536)
        process.kill()
        os.close(master)
    contains(text.decode(), "REQUESTS", "headings")


def test_wrong_words(lab):
    proxy = Retort(lab)
    for words in (["--by", "x"], ["--sort", "x"], ["--rows", "0"], ["--rows", "1001"], ["--interval", "0"], ["status"]):
        proxy.ctl("top", *words, expect=2)
    proxy.ctl("top", "status=99", expect=1)
    contains(logs_top(lab, lab.path("none.log"), expected=1)[1], "No such file", "a missing file")
    contains(logs_top(lab, lab.directory, expected=1)[1], "Is a directory", "a directory")
    logs_top(lab, "-", "--by", "time", expected=2, data=b"")


def test_numbers(lab):
    """Requests, bytes, hits, errors and the 95th percentile of a log whose sums are known; what does not fit is among others."""
    lines = [squid_line("a.example", size=10, ms=n + 1) for n in range(100)] + [squid_line("b.example", result="TCP_MEM_HIT", size=1000)] * 50
    lines += [squid_line("c.example", status=502, size=0)] * 3 + [squid_line(f"d{n}.example") for n in range(10)]
    path = lab.write("access.log", "".join(lines) + "bad\n\n{\"status\":1e9}\n{no json}\n1.5 x y\n")
    seen = table(lab, path, "--rows", "3")
    equal([row["host"] for row in seen["rows"]], ["a.example", "b.example", "c.example"], "order")
    equal([(row["requests"], row["bytes"], row["hits"], row["errors"]) for row in seen["rows"]], [(100, 1000, 0, 0), (50, 50000, 50, 0), (3, 0, 0, 3)], "numbers")
    true(95 <= seen["rows"][0]["p95_ms"] <= 95 * 1.25, f"p95 {seen['rows'][0]}")
    equal((seen["others"]["requests"], seen["all"]["requests"], seen["bad_lines"]), (10, 163, 4), "others, all and bad lines")
    for sort, first in (("bytes", "b.example"), ("errors", "c.example"), ("p95", "a.example")):
        equal(table(lab, path, "--sort", sort)["rows"][0]["host"], first, sort)
    text, said = logs_top(lab, path, "--rows", "3")
    contains(said, "4 lines were left out", "bad lines are told")
    contains(text, "others", "others")
    data = "".join(lines).encode()
    equal(table(lab, "-", data=data)["all"]["requests"], 163, "standard input")
    equal(table(lab, "-", data=data[:-1])["all"]["requests"], 163, "without the last line end")
    packed = lab.path("access.log.gz")
    with open(packed, "wb") as file:
        file.write(gzip.compress(data) + gzip.compress(data))
    equal(table(lab, packed)["all"]["requests"], 326, "two members of gzip")
    with open(packed, "wb") as file:
        file.write(gzip.compress(os.urandom(40000).hex().encode() + b"\n" + data)[:-20])
    contains(logs_top(lab, packed, expected=1)[1], "is cut off", "a file that is cut off")


def test_hostile_lines(lab):
    """Nothing in a log steers the terminal, breaks the table or makes it fail."""
    bad = squid_line("x.example").replace("x.example", "\x1b[2J\u202e\x9b").encode()
    lines = [bad, bad.replace(b"\x1b", b"\xff\xfe"), b"\0" * 50 + b"\n", b"x" * (300 << 10) + b"\n", squid_line("good.example").encode(), b"[" * 70000 + b"\n",
             b'{"status":200,"url":' + b"[" * 70000 + b"\n", b'{"status":200,"url":"http://\\u0000\\u001b/","icap":[1,{"service":7}],"ms":"x","bytes":-5}\n',
             b'a - - [x] "\\" 200 1\n', b'a - - [x] "GET http://[::1 HTTP/1.1" 200 - "\\"\n', b"1.1 1 a /200 1 GET @:@ - - - a b:c:9,,:::\n", b"1.1 1 a x/ 1 G u\n"]
    for by in ("host", "url", "client", "service"):
        for words in ([], ["--json"]):
            text, said = logs_top(lab, "-", "--by", by, *words, data=b"".join(lines))
            for c in "\x1b\u202e\x9b\0":
                lacks(text + said, c, by)
            contains(said if not words else text, "left out" if not words else '"bad_lines":', "bad lines")
    server = Hostile(lab, stream(event(url="http://\x1b]0;x\x07/", status=200, client="\u202e"), b'data: {"status":"x","icap":7}\n\n', event(status=-1), event(url="http://b/", status=200)))
    with Ctl(lab, server.path, "top", "--once", "--interval", "600", "--count", "4") as ctl:
        lacks(ctl.ends(), "\x1b", "top")


def test_a_large_log(lab):
    """100,000 lines with as many URLs: bounded memory, the frequent ones are right, and every line is counted."""
    path = lab.path("large.log")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(squid_line(path=f"/{'often' if n % 10 == 0 else n}?{'q' * 300 if n % 10 else ''}") for n in range(100000))
    command = [lab.built("proxy/retortctl"), "logs", "top", path, "--by", "url", "--json"]
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **lab.environment()}) as process:
        seen = json.loads(process.stdout.read())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    equal(status, 0, "exit status")
    true(time.monotonic() - begun < 15 * lab.patience, "time")
    equal((seen["all"]["requests"], sum(row["requests"] for row in seen["rows"]) + seen["others"]["requests"], seen["bad_lines"]), (100000, 100000, 0), "sums")
    equal((seen["rows"][0]["url"], seen["rows"][0]["requests"]), ("http://a.example/often?", 10000), "the most frequent")
    if not (lab.asan or lab.tsan):
        true(used.ru_maxrss < 40 << 10, f"{used.ru_maxrss} KB")
