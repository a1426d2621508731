"""An origin that answers with exactly the bytes the test wants, and remembers what it was sent.

    def answer(connection, request):
        connection.send(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    origin = RawOrigin(lab, answer)

The function is called for each request; when it returns True or the peer closes, the connection is
closed. `origin.requests` are the requests of all connections in the order of their heads.
"""

import re
import zlib

from . import wire
from .server import Server


class Request(wire.Head):
    def __init__(self, start, fields):
        super().__init__(start, fields)
        self.method, self.target, self.version = (start.split(" ") + ["", ""])[:3]
        self.body = b""
        self.connection_number = 0
        self.chunked = False


def read_request(connection, body=True):
    """Reads leniently in what is a body, strictly in how it is written. None at a clean end."""
    if not connection.buffer and not connection._fill():
        return None
    request = connection.head(Request)
    request.chunked = (request.header("Transfer-Encoding") or "").lower() == "chunked"
    if body:
        read_body(connection, request)
    return request


def read_body(connection, request):
    pieces = []
    if request.chunked:
        connection._chunks(request, pieces.append)
    else:
        connection._exactly(int(request.header("Content-Length") or 0), pieces.append)
    request.body = b"".join(pieces)


def ok(connection, request):
    """The answer of an origin about which nothing is special."""
    body = b"the origin's answer\n"
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: no-store\r\n\r\n" % len(body)
                    + (b"" if request.method == "HEAD" else body))


class RawOrigin(Server):
    def __init__(self, lab, answer=ok, address="127.0.0.1", read_body=True, receive_buffer=None):
        self.answer = answer
        self.read_body = read_body
        self.requests = []
        super().__init__(lab, self._serve, address, receive_buffer)

    def _serve(self, connection, number):
        while True:
            request = read_request(connection, self.read_body)
            if request is None:
                return
            request.connection_number = number
            with self.lock:
                self.requests.append(request)
            if self.answer(connection, request):
                return

    def url(self, path="/"):
        return f"http://{self.authority}{path}"


class ByteOrigin(Server):
    """Reads whatever comes, byte for byte, and answers each request head that it can see with 200.
    For tests of what the proxy lets through: `received` is one byte string a connection."""

    def __init__(self, lab):
        self.received = {}
        super().__init__(lab, self._serve)

    def _serve(self, connection, number):
        with self.lock:
            self.received[number] = b""
        answered = 0
        while True:
            data = connection.read_some()
            if not data:
                return
            with self.lock:
                self.received[number] += data
                seen = self.received[number]
            while answered < count_requests(seen):
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: no-store\r\n\r\nyes")
                answered += 1

    def request_lines(self):
        lines = []
        for number in sorted(self.received):
            lines += REQUEST_LINE.findall(self.received[number])
        return lines

    def url(self, path="/"):
        return f"http://{self.authority}{path}"


REQUEST_LINE = re.compile(rb"(?:^|\n)([A-Z]+ [^ \r\n]* HTTP/1\.[01])\r?\n")
COMPLETE_HEAD = re.compile(rb"(?:^|\n)([A-Z]+ [^ \r\n]* HTTP/1\.[01])\r?\n.*?\r?\n\r?\n", re.S)


def count_requests(data):
    return len(COMPLETE_HEAD.findall(data))


def _make_pattern():
    state, out = 1, bytearray()
    for _ in range(65537):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(state >> 24)
    return bytes(out)


PATTERN = _make_pattern()


def pattern(length, start=0):
    """The bytes that the programmable origin serves."""
    offset = start % len(PATTERN)
    copies = (offset + length) // len(PATTERN) + 1
    return (PATTERN * copies)[offset:offset + length]


class PatternCheck:
    """A sink for Wire.response that compares the pattern as it comes and keeps nothing."""

    def __init__(self):
        self.length = 0

    def __call__(self, piece):
        if piece != pattern(len(piece), self.length):
            raise AssertionError(f"wrong bytes after {self.length} right ones")
        self.length += len(piece)


def crc32(data):
    return zlib.crc32(data) & 0xFFFFFFFF
