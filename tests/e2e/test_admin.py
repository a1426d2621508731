"""The admin plane and retortctl."""

import json
import os
import re
import subprocess
import threading
import time

from harness import ports, wire as wire_module
from harness.checks import contains, equal, one_of, same_bytes, true, until
from harness.origin import Origin
from harness.process import Process, nice_of
from harness.retort import Retort
from harness.services import Services
from harness.suite import memcheck
from harness.wire import request


@memcheck
def test_status(lab):
    origin, proxy = Origin(lab), Retort(lab)
    proxy.get(origin.url("/text", say="x"))
    status = proxy.status()
    equal((status["pid"], status["state"], status["workers"]), (proxy.pid, "running", 1), "pid, state, workers")
    true(status["counters"]["client_requests"] >= 1, "client_requests")
    true(status["uptime"] >= 0 and status["version"], "uptime, version")


@memcheck
def test_metrics_in_prometheus_text(lab):
    origin, proxy = Origin(lab), Retort(lab)
    url = origin.url("/text", say="x", cc="max-age=60")
    for _ in range(3):
        proxy.get(url)
    answer = proxy.admin("GET", "/metrics")
    equal(answer.status, 200, "status")
    contains(answer.header("Content-Type"), "text/plain", "Content-Type")
    samples = {}
    for line in answer.text().splitlines():
        if line.startswith("#"):
            true(re.match(r"# (HELP|TYPE) [a-z0-9_]+ ", line), f"comment {line!r}")
            continue
        match = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[^}]*\})? (\S+)', line)
        true(match, f"sample {line!r}")
        samples[match.group(1)] = float(match.group(3))
    requests = [value for name, value in samples.items() if "client_requests" in name]
    hits = [value for name, value in samples.items() if "cache_hits" in name]
    equal((requests, hits), ([3.0], [2.0]), "requests and hits")


def test_counters_count(lab):
    origin, proxy = Origin(lab), Retort(lab)
    url = origin.url("/bytes", n=10000, cc="max-age=60")
    for _ in range(4):
        proxy.get(url)
    counters = proxy.status()["counters"]
    equal((counters["client_requests"], counters["cache_hits"], counters["cache_misses"], counters["origin_requests"]),
          (4, 3, 1, 1), "requests, hits, misses, origin requests")
    true(counters["client_bytes_out"] >= 40000, f"client_bytes_out {counters['client_bytes_out']}")
    until(lambda: proxy.counter("client_connections_open") == 0, 5, "connections to be counted as closed")


def test_settings(lab):
    proxy = Retort(lab)
    answer = proxy.admin("GET", "/settings")
    equal(answer.status, 200, "status")
    contains(json.dumps(json.loads(answer.body)), proxy.admin_path, "settings")


def test_unknown_paths_and_methods(lab):
    proxy = Retort(lab)
    equal(proxy.admin("GET", "/nothing").status, 404, "GET /nothing")
    equal(proxy.admin("GET", "/drain").status, 405, "GET /drain")
    equal(proxy.admin("POST", "/status").status, 405, "POST /status")
    equal(proxy.admin("POST", "/reload", body=b"x" * 100000).status // 100 in (2, 4), True, "POST with a body")


def test_socket_is_private(lab):
    proxy = Retort(lab)
    true(os.stat(proxy.admin_path).st_mode & 0o077 == 0, f"mode {os.stat(proxy.admin_path).st_mode:o}")
    proxy.stop()
    true(not os.path.exists(proxy.admin_path), "the socket should be gone after the end")


@memcheck
def test_reload_refuses_a_bad_file(lab):
    origin, proxy = Origin(lab), Retort(lab)
    proxy.write_config(proxy.text() + "wrokers = 1\n")
    answer = proxy.reload()
    equal(answer.status, 409, "status")
    contains(json.loads(answer.body)["error"], f"{proxy.config_path}:", "error")
    equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body")


@memcheck
def test_ctl_status_reload(lab):
    origin, proxy = Origin(lab), Retort(lab)
    proxy.get(origin.url("/text", say="x"))
    contains(proxy.ctl("status"), "client_requests", "retortctl status")
    proxy.ctl("reload")
    proxy.write_config(proxy.text() + "wrokers = 1\n")
    proxy.ctl("reload", expect=1)


def test_ctl_without_a_proxy(lab):
    proxy = Retort(lab)
    proxy.stop()
    proxy.ctl("status", expect=1)


def test_ctl_mistakes_are_told_in_a_line(lab):
    """Not above a page of help, where nobody sees them."""
    for words, expected in ((("frob",), 'no command "frob"'), (("--frob", "status"), "--frob"),
                            (("services", "frob"), 'services takes no argument "frob"')):
        done = subprocess.run([lab.built("proxy/retortctl"), *words], capture_output=True, text=True, check=False,
                              timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
        equal((done.returncode, done.stdout), (2, ""), f"{words}: exit status, output")
        contains(done.stderr, expected, f"{words}: message")
        contains(done.stderr, "retortctl --help", f"{words}: message")
        true(done.stderr.count("\n") <= 2, f"{words}: {done.stderr}")


def test_ctl_drain(lab):
    origin, proxy = Origin(lab), Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/drip", n=20000, piece=1000, delay=50, cc="no-store")))
        wire.head()
        proxy.ctl("drain")
        same_bytes(wire.read_bytes(20000), origin.body(20000), "the download that ran")
    equal(proxy.wait_exit(5), 0, "exit status")


def test_admin_answers_while_workers_are_busy(lab):
    origin, proxy = Origin(lab), Retort(lab)
    stop = threading.Event()

    def load():
        with proxy.wire() as wire:
            while not stop.is_set():
                wire.send(request("GET", origin.url("/bytes", n=100000, cc="max-age=60")))
                wire.response()
    thread = threading.Thread(target=load)
    thread.start()
    for _ in range(20):
        start = time.monotonic()
        proxy.status()
        true(time.monotonic() - start < 1 * lab.patience, "an answer within a second")
    stop.set()
    thread.join()


def test_admin_on_a_loopback_port(lab):
    port = ports.take()
    proxy = Retort(lab)
    proxy.write_tokens("lab read " + "t" * 32)
    text = proxy.text().replace(f'"{proxy.admin_path}"', f'"127.0.0.1:{port}"  token_file = "{proxy.token_path}"')
    proxy.stop()
    path = lab.write("port.conf", text)
    second = Process(lab, "second", [lab.built("proxy/retort"), "-f", path])
    try:
        def up():
            try:
                return wire_module.fetch(("127.0.0.1", port), "GET", "/status", {"Authorization": "Bearer " + "t" * 32}).status == 200
            except OSError:
                return False
        second.wait_ready(up)
    finally:
        second.stop()
    equal(second.findings(), [], "findings")


def test_helpers_listed_and_reniced(lab):
    services = Services(lab)
    proxy = Retort(lab)
    before = services.helperd.wait_helpers("gray-helper", 2)
    listed = helpers(proxy, services)
    for word in ["gray", "text"] + [str(pid) for pid in before]:
        contains(listed, word, "retortctl helpers")
    for pid in before:
        equal(nice_of(pid), 10, f"nice of helper {pid}")
    helpers(proxy, services, "renice", "gray", "19")
    until(lambda: {nice_of(pid) for pid in services.helperd.helpers("gray-helper")} == {19}, 10 * lab.patience,
          "all gray helpers at nice 19")
    contains(helpers(proxy, services), "19", "retortctl helpers")
    if os.getuid() == 0:
        helpers(proxy, services, "renice", "gray", "0")
        until(lambda: len(services.helperd.helpers("gray-helper")) == 2 and
              {nice_of(pid) for pid in services.helperd.helpers("gray-helper")} == {0}, 10 * lab.patience,
              "all gray helpers at nice 0")
    true(nice_of(services.helperd.helpers("text-helper")[0]) == 5, "the other pool keeps its nice")


def helpers(proxy, services, *arguments):
    """retortctl helpers, told where retort-helperd listens."""
    return proxy.ctl("helpers", *arguments, extra=("-H", services.helperd.socket))


def test_helpers_mistakes_are_told(lab):
    services = Services(lab)
    proxy = Retort(lab)
    proxy.ctl("helpers", "renice", "nosuchpool", "5", extra=("-H", services.helperd.socket), expect=1)
    proxy.ctl("helpers", "renice", "gray", "99", extra=("-H", services.helperd.socket), expect=None)
    one_of(nice_of(services.helperd.helpers("gray-helper")[0]), (10,), "nice")


def admin_says(proxy, message):
    """Status and body of what the admin plane answers to these bytes; 0 when it just closes."""
    with wire_module.Wire(proxy.admin_path) as wire:
        wire.send(message)
        data = wire.read_to_end()
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.1 ") else 0, data


def test_the_end_answers_who_has_connected(lab):
    """A process that ends answers requests of which it has a part, and waits no longer than a moment for one that never comes."""
    proxy = Retort(lab)
    with wire_module.Wire(proxy.admin_path) as silent, wire_module.Wire(proxy.admin_path) as slow, \
            wire_module.Wire(proxy.admin_path) as later, wire_module.Wire(proxy.admin_path) as again:
        slow.send(b"GET /v1/status HTTP/1.1\r\nHost: local")
        later.send(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        equal(later.response().status, 200, "the first request of a connection")
        later.send(b"POST /v1/cache/purge?host=a.org HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n ")
        again.send(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        equal(again.response().status, 200, "the first request of a connection")
        again.send(b"GET /v1/status HTTP/1.1\r\nHost: local")
        proxy.status()
        proxy.terminate()
        until(lambda: not os.path.exists(proxy.admin_path), 20 * lab.patience, "the admin plane to stop")
        slow.send(b"host\r\n\r\n")
        later.send(b" ")
        again.send(b"host\r\n\r\n")
        equal(again.response().status, 200, "status of a second request that was under way")
        equal(slow.response().status, 200, "status of the request that was under way")
        equal(later.response().status, 503, "a second request that would take its time: nothing was done")
        equal(proxy.wait_exit(5), 0, "exit status")
        true(silent.at_end(), "who has sent nothing is cut off")


@memcheck
def test_admin_takes_only_what_has_one_reading(lab):
    """RFC 9112, 3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request message that lacks a
    Host header field and to any request message that contains more than one Host header field line"; 6.1, 6.3."""
    proxy = Retort(lab)
    for target, fields, body in (
            ("/status", "Host: a\r\nHost: b", ""), ("/status", "Host: a\r\nhost: a", ""), ("/status", "", ""),
            ("/status%00", "Host: a", ""), ("/status%00.html", "Host: a", ""), ("/cache/objects?host=a%00b", "Host: a", ""),
            ("/status?%zz", "Host: a", ""), ("/status?%2", "Host: a", ""), ("/status?x=\xe9", "Host: a", ""),
            ("/status\x00", "Host: a", ""), ("/status\x00.html", "Host: a", ""),
            ("/status", "Host : a", ""), ("/status", "Host: a\r\nVia : 1.1 x", ""), ("/status", "Host: a\r\nVia\t: 1.1 x", ""),
            ("/status", "Host: a\r\nVia\x0b: 1.1 x", ""), ("/status", "Host: a\r\nContent-Length: 0\r\nContent-Length: 1", ""),
            ("/status", "Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
            ("/status", "Host: a\r\nTransfer-Encoding: gzip, chunked", "0\r\n\r\n"),
            ("/status", "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
            ("/status", "Host: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b", ""),
            ("/status", "Host: a\r\nauthorization: Bearer a\r\nX: y\r\nAuthorization: Bearer a", ""),
            ("/status", "Host: a\r\nAuthorization: Bearer a\x00b", ""), ("/status", "Host: a\r\nAuthorization: Bearer a\x00", ""),
            ("/status", "Host: a\r\nAuthorization: Bearer a\x00\x00\x00\x00\x00b", ""), ("/status", "Host: a\r\nAuthorization: Bearer a\x00b\r\nX: y", ""),
            ("/status", "Host: a\x00b\r\nX: y", ""), ("/status", "X: y\r\nHost: localhost\x00", ""), ("/status", "Host: a\r\nX: y\r\n z", ""),
            ("/status", "Host: a\r\nOrigin: http://a\r\nOrigin: http://b", ""),
            ("/status", "Host: a\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site", ""),
            ("/status", "Host: a\r\nContent-Length: +0", ""), ("/status", "Host: a\r\nContent-Length: -1", "")):
        for method in ("GET", "POST"):
            fields = fields + "\r\n" * bool(fields)
            status, data = admin_says(proxy, f"{method} {target} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n{body}".encode("latin-1"))
            one_of(status, (0, 400, 413), f"{method} {target!r} {fields!r} {data!r}")
            fields = fields[:-2] if fields else ""
    equal(admin_says(proxy, b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[0], 200, "what is good")
    equal(admin_says(proxy, b"GET /status HTTP/1.1\r\nHost: \t localhost\r\nX:\r\nY: \t \r\nConnection:close\r\nZ: z  \r\n\r\n")[0], 200, "blanks around values")
    equal(admin_says(proxy, b"GET /%73tatus?a=%20 HTTP/1.0\r\n\r\n")[0], 200, "and HTTP/1.0")
    equal(admin_says(proxy, b"POST /drain HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                     + b"40000\r\n" + b"x" * 0x40000 + b"\r\n0\r\n\r\n")[0], 413, "a body that is too long")
    equal(proxy.status()["state"], "running", "state")


def test_admin_is_open_while_others_hold_connections(lab):
    """Half-open requests, slow bodies, idle connections and answers that nobody reads: none of them locks the operator out."""
    for proxy in (Retort(lab), Retort(lab, admin=("127.0.0.1", ports.take()))):
        held = []
        for n in range(300):
            wire = wire_module.Wire(proxy.admin_path)
            held.append(wire)
            try:
                wire.send((b"GET /sta", b"", b"POST /drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nx",
                           b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % (proxy.token or "").encode() * 50
                           if proxy.token else b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)[n % 4])
            except OSError:
                pass  # it was closed already
            if n % 60 == 59:
                equal(proxy.status()["state"], "running", f"state behind {n} connections")
        start = time.monotonic()
        proxy.ctl("status")
        true(time.monotonic() - start < 10 * lab.patience, "retortctl waited")
        for wire in held:
            wire.close()
        contains(proxy.process.log(), "so idle ones are closed", "the log")


def test_pages_and_purges_at_the_same_time(lab):
    """The threads of the admin plane: purges come on several while other pages read and change what they share."""
    origin = Origin(lab)
    proxy = Retort(lab, cache={"memory": "16MB", "disk": {lab.directory + "/volume": {"size": "16MB"}}})
    failed = []

    def ask(calls):
        for number in range(60):
            method, page = calls[number % len(calls)]
            answer = proxy.admin(method, page.format(number))
            second = page == "/reload" and answer.status == 503 and "under way" in answer.text()  # both threads reload
            if answer.status != 200 and not second:
                failed.append((method, page, answer.status, answer.text()))

    purges = [("POST", "/cache/purge?" + what) for what in ("tag=t{}", "host=h{}", "prefix=http://h/{}", "regex=x{}$")]
    others = [("GET", "/status"), ("GET", "/metrics"), ("GET", "/cache/objects"), ("POST", "/cache/bans?regex=y{}"), ("GET", "/cache/bans"),
              ("GET", "/settings"), ("GET", "/origins"), ("GET", "/services"), ("POST", "/reload")]
    threads = [threading.Thread(target=ask, args=(calls,)) for calls in (purges, purges, purges, others, others)]
    for thread in threads:
        thread.start()
    for number in range(50):
        equal(proxy.get(origin.url("/text", say=number % 5, cc="max-age=60")).text(), str(number % 5), "body meanwhile")
    for thread in threads:
        thread.join()
    equal(failed, [], "calls that failed")
