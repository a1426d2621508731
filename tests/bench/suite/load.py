"""What asks, on a core of its own, and what came of it.

    Wrk(lab).run(server, "/hit/1000", connections=20, seconds=2)      as fast as it can
    ab(server, "/hit/1000", connections=250, requests=1000000)        so many, as HTTP/1.0 with keepalive
    reader(lab, server, ["/hit/1000"], connections=20, seconds=2)     every byte looked at
    tls_connect(lab, server, "/hit/1000", 10, 2, ...)                 each on a connection of its own, with TLS
    h2load(server, "/hit/1000", connections=20, streams=100, ...)     over HTTP/2
    Pace(lab, server, rate=4000, ...).finish()                        so many a second, whatever they take

Each gives {"requests", "seconds", "rate", "p50_ms", "p99_ms", "bytes", "errors": {...}}. For wrk, which
only counts bytes, a response is looked at before; the sum of all must agree with it.
"""

import json
import re
import subprocess

from .machine import LOAD_CORE, pinned

# wrk's own report is for people: exact figures are had from its script.
REPORT = """
function done(summary, latency)
    local e = summary.errors
    io.write(string.format('{"requests": %d, "seconds": %f, "bytes": %d, "p50_ms": %f, "p99_ms": %f, ' ..
        '"errors": {"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}}\\n',
        summary.requests, summary.duration / 1e6, summary.bytes, latency:percentile(50) / 1e3,
        latency:percentile(99) / 1e3, e.connect, e.read, e.write, e.status, e.timeout))
end
"""

# Any of so many paths; the requests are made before the clock runs.
ANY_OF = """
local requests = {{}}
function init()
    math.randomseed({seed})
    for number = 0, {count} - 1 do
        requests[number] = wrk.format("GET", (string.gsub("{path}", "{{}}", tostring(number))))
    end
end
function request() return requests[math.random(0, {count} - 1)] end
"""


# Longer than anything here may take.
PATIENCE = 150
# Of the connections that ask for their session again, so many get it.
RESUMED = 0.9


class Wrk:
    """A script of one's own defines request() and ends with Wrk.REPORT."""

    REPORT = REPORT

    def __init__(self, lab):
        self.lab = lab
        self.report = lab.write("report.lua", REPORT)

    def any_of(self, name, path, count, seed=1):
        """A script that asks for any of `count` paths: {} in `path` is the number."""
        return self.lab.write(name + ".lua", ANY_OF.format(path=path, count=count, seed=seed) + REPORT)

    def run(self, server, path, connections, seconds, *, headers=(), script=None):
        return self.finish(server, self.start(server, path, connections, seconds, headers=headers, script=script))

    def start(self, server, path, connections, seconds, *, headers=(), script=None):
        fields = [word for field in headers for word in ("-H", field)]
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *fields, "-s", script or self.report, server.url(path)]
        return subprocess.Popen(pinned(LOAD_CORE, command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    @staticmethod
    def finish(server, process):
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        line = re.search(r"^\{.*\}$", said, re.M)
        if process.returncode or not line:
            raise AssertionError(f"wrk against {server.name}: {said.strip()[-300:]}")
        seen = json.loads(line.group(0))
        return {**seen, "rate": seen["requests"] / seen["seconds"]}


def ab(server, path, connections, requests, seconds):
    """As many requests as fit the time."""
    command = ["ab", "-q", "-k", "-c", connections, "-t", seconds, "-n", requests, server.url(path)]
    done = subprocess.run(pinned(LOAD_CORE, [str(word) for word in command]), capture_output=True, text=True,
                          timeout=PATIENCE, check=False)

    def figure(what):
        found = re.search(what + r"\s+([\d.]+)", done.stdout)
        return float(found.group(1)) if found else 0
    if done.returncode or not figure("Complete requests:"):
        raise AssertionError(f"ab against {server.name}: {done.stderr.strip()[-300:]}")
    return {"requests": int(figure("Complete requests:")), "seconds": figure("Time taken for tests:"),
            "rate": figure("Requests per second:"), "bytes": int(figure("Total transferred:")), "p50_ms": figure("50%"),
            "p99_ms": figure("99%"),
            "errors": {"failed": int(figure("Failed requests:")), "status": int(figure("Non-2xx responses:"))}}


def reader(lab, server, paths, connections, seconds, closes=False, rate=None):
    """tests/bench/reader.c says what the errors are. With a rate, each request has its time."""
    how = rate or ("close" if closes else "keep")
    command = [lab.built("tests/bench/reader"), server.port, connections, seconds, how, *paths]
    done = subprocess.run(pinned(LOAD_CORE, [str(word) for word in command]), capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    if done.returncode:
        raise AssertionError(f"reader against {server.name}: {done.stderr.strip()}")
    seen = json.loads(done.stdout)
    return {**seen, "rate": seen["requests"] / seen["seconds"]}


def tls_connect(lab, server, path, connections, seconds, *, resumed, version, tunnel=None):
    """A connection with TLS for each request. tests/bench/tls_connect.c says how; "resumed" counts those that were."""
    command = [lab.built("tests/bench/tls_connect"), server.port, connections, seconds, "resumed" if resumed else "full", version,
               path, *([tunnel] if tunnel else [])]
    done = subprocess.run(pinned(LOAD_CORE, [str(word) for word in command]), capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    if done.returncode:
        raise AssertionError(f"tls_connect against {server.name}: {done.stderr.strip()}")
    seen = json.loads(done.stdout)
    if not seen["requests"] or (seen["resumed"] > 0) != resumed or seen["resumed"] < RESUMED * seen["requests"] * resumed:
        raise AssertionError(f"tls_connect against {server.name}: {seen}")
    return {**seen, "rate": seen["requests"] / seen["seconds"]}


def h2load(server, path, connections, streams, seconds, *, http1=False):
    """Requests for one path over kept connections, so many at a time on each. Times are the mean and the longest."""
    command = ["h2load", f"-D{seconds}", f"-c{connections}", f"-m{streams}", "-t1", *(["--h1"] if http1 else []), server.url(path)]
    done = subprocess.run(pinned(LOAD_CORE, command), capture_output=True, text=True, timeout=PATIENCE, check=False)
    figures = {what: re.search(pattern, done.stdout) for what, pattern in {
        "rate": r"finished in [\d.]+m?s, ([\d.]+) req/s", "counts": r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout",
        "bytes": r"headers .*, [\d.]+\w+ \((\d+)\) data", "times": r"time for request: +(\S+) +(\S+) +(\S+)"}.items()}
    if done.returncode or not all(figures.values()):
        raise AssertionError(f"h2load against {server.name}: {(done.stderr or done.stdout).strip()[-300:]}")
    succeeded, failed, errored, timeout = map(int, figures["counts"].groups())
    return {"requests": succeeded, "seconds": seconds, "rate": float(figures["rate"].group(1)), "bytes": int(figures["bytes"].group(1)),
            "mean_ms": milliseconds(figures["times"].group(3)), "most_ms": milliseconds(figures["times"].group(2)),
            "errors": {"failed": failed, "timeout": timeout}}


def milliseconds(text):
    """As h2load writes times: "12us", "1.20ms", "2.01s"."""
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


class Pace:
    """Runs from now on. tests/bench/pace.c says what the figures are: hits and misses apart."""

    def __init__(self, lab, server, *, rate, seconds, connections, miss, length=0, hit="-", hits=0, share=0, field=""):
        arguments = [server.port, rate, seconds, connections, share, hits, hit, miss, length, field]
        command = [lab.built("tests/bench/pace"), *(str(argument) for argument in arguments)]
        self.server = server
        self.process = subprocess.Popen(pinned(LOAD_CORE, command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self):
        try:
            said, _ = self.process.communicate(timeout=PATIENCE)
        finally:
            self.process.kill()
        if self.process.returncode:
            raise AssertionError(f"pace against {self.server.name}: {said.strip()[-300:]}")
        return json.loads(said)


def response_length(server, path, headers=()):
    """The bytes of a response, head and body, as wrk gets it; 0 when the head does not say."""
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", *headers]
    with server.connect() as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            piece = connection.recv(65536)
            if not piece:
                raise AssertionError(f"{server.name} {path}: the connection ended inside the head")
            data += piece
    length = re.search(rb"\r\nContent-Length: *(\d+)", data[:end + 2], re.I)
    if not data.startswith(b"HTTP/1.1 200 "):
        raise AssertionError(f"{server.name} {path}: {data[:end]!r}")
    return end + 4 + int(length.group(1)) if length else 0


# Age, ttl and the like may have more or fewer digits than in the response that was looked at; what a
# service answers in turn, some fields more.
HEAD_VARIES = 64


def check_bytes(server, path, seen, length, connections):
    least = seen["requests"] * (length - HEAD_VARIES)
    most = seen["requests"] * (length + HEAD_VARIES) + (connections + sum(seen["errors"].values())) * length
    if not least <= seen["bytes"] <= most:
        raise AssertionError(f"{server.name} {path}: {seen['bytes']} bytes for {seen['requests']} requests of {length}")
