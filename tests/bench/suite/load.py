"""What asks, on a core of its own, and what came of it.

    Wrk(lab).run(server, "/hit/1000", connections=20, seconds=2)

gives {"requests", "seconds", "rate", "p50_ms", "p99_ms", "bytes", "errors": {...}}. What a response
has in bytes is looked at once before; the sum of all must agree.
"""

import json
import re
import socket
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


class Wrk:
    def __init__(self, lab):
        self.lab = lab
        self.report = lab.write("report.lua", REPORT)

    def any_of(self, name, path, count, seed=1):
        """A script that asks for any of `count` paths: {} in `path` is the number."""
        return self.lab.write(name + ".lua", ANY_OF.format(path=path, count=count, seed=seed) + REPORT)

    def run(self, server, path, connections, seconds, *, headers=(), script=None):
        fields = [word for field in headers for word in ("-H", field)]
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *fields, "-s", script or self.report, server.url(path)]
        done = subprocess.run(pinned(LOAD_CORE, command), capture_output=True, text=True, timeout=seconds + 30, check=False)
        line = re.search(r"^\{.*\}$", done.stdout, re.M)
        if done.returncode or not line:
            raise AssertionError(f"wrk against {server.name}: {(done.stderr or done.stdout).strip()}")
        seen = json.loads(line.group(0))
        return {**seen, "rate": seen["requests"] / seen["seconds"]}


def response_length(server, path, headers=()):
    """The bytes of a response, head and body, as wrk gets it."""
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", *headers]
    with socket.create_connection(server.address, timeout=20) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            piece = connection.recv(65536)
            if not piece:
                raise AssertionError(f"{server.name} {path}: the connection ended inside the head")
            data += piece
    length = re.search(rb"\r\nContent-Length: *(\d+)", data[:end + 2], re.I)
    if not data.startswith(b"HTTP/1.1 200 ") or not length:
        raise AssertionError(f"{server.name} {path}: {data[:end]!r}")
    return end + 4 + int(length.group(1))


# Age, ttl and the like may have more or fewer digits than in the response that was looked at.
HEAD_VARIES = 24


def check_bytes(server, path, seen, length, connections):
    least = seen["requests"] * (length - HEAD_VARIES)
    most = seen["requests"] * (length + HEAD_VARIES) + (connections + sum(seen["errors"].values())) * length
    if not least <= seen["bytes"] <= most:
        raise AssertionError(f"{server.name} {path}: {seen['bytes']} bytes for {seen['requests']} requests of {length}")
