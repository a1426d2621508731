"""HTTP/1 on the wire: sends the bytes it is told to send, reads what comes strictly.

    wire = Wire(("127.0.0.1", 3128))
    wire.send(b"GET http://host/ HTTP/1.1\\r\\nHost: host\\r\\n\\r\\n")
    response = wire.response()

A response that ends before its framing says raises Truncated, one that is not of the grammar raises
Malformed. Nothing is corrected, nothing is guessed.
"""

import re
import socket
import time


class Malformed(AssertionError):
    pass


class Truncated(AssertionError):
    """The connection ended inside a message; .response is what had come."""

    def __init__(self, message, response=None):
        super().__init__(message)
        self.response = response


class Silence(AssertionError):
    """Nothing came in time."""


class Head:
    def __init__(self, start, fields):
        self.start = start
        self.fields = fields

    def headers(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def header(self, name):
        values = self.headers(name)
        return ", ".join(values) if values else None


class Response(Head):
    def __init__(self, start, fields):
        super().__init__(start, fields)
        match = re.fullmatch(r"(HTTP|ICAP)/(1\.[01]) (\d{3})(?: (.*))?", start)
        if not match:
            raise Malformed(f"status line {start!r}")
        self.version, self.status, self.reason = match.group(2), int(match.group(3)), match.group(4)
        self.body = b""
        self.framing = None
        self.trailers = []
        self.interim = []

    def text(self):
        return self.body.decode("utf-8", "replace")


TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")


def parse_fields(lines):
    fields = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not TOKEN.match(name):
            raise Malformed(f"field line {line!r}")
        fields.append((name, value.strip(" \t")))
    return fields


def request(method, target, headers=None, body=None, version="1.1", host=None):
    """The bytes of a request. Headers is a dict or a list of pairs; Host is added when it is missing."""
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
    names = {name.lower() for name, _ in pairs}
    if "host" not in names and version == "1.1":
        if host is None:
            match = re.match(r"https?://([^/?#]+)", target)
            host = match.group(1) if match else "localhost"
        pairs.insert(0, ("Host", host))
    if body is not None and "content-length" not in names and "transfer-encoding" not in names:
        pairs.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/{version}"] + [f"{name}: {value}" for name, value in pairs]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def chunked(*pieces, last=b"0\r\n\r\n"):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + last


class Wire:
    def __init__(self, address, timeout=20, receive_buffer=None, source=None):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind((source, 0))
        self.socket.settimeout(timeout)
        self.timeout = timeout
        self.socket.connect(address)
        if not isinstance(address, str):
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.eof = False
        self.reset = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_pieces(self, data, size, pause=0.0):
        for start in range(0, len(data), size):
            self.socket.sendall(data[start:start + size])
            if pause:
                time.sleep(pause)

    def finish_sending(self):
        self.socket.shutdown(socket.SHUT_WR)

    def abort(self):
        """Closes with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def _fill(self):
        """Reads more; False at the end of the stream."""
        if self.eof:
            return False
        try:
            data = self.socket.recv(262144)
        except TimeoutError:
            raise Silence(f"nothing came for {self.socket.gettimeout():g} s; "
                          f"so far: {self.buffer[:200]!r}") from None
        except ConnectionResetError:
            self.reset = True
            data = b""
        if not data:
            self.eof = True
            return False
        self.buffer += data
        return True

    def _line(self, limit=131072):
        while b"\n" not in self.buffer:
            if len(self.buffer) > limit:
                raise Malformed("a line without an end")
            if not self._fill():
                raise Truncated(f"the connection {'was reset' if self.reset else 'ended'} inside a line: "
                                f"{self.buffer[:200]!r}")
        line, self.buffer = self.buffer.split(b"\n", 1)
        if not line.endswith(b"\r"):
            raise Malformed(f"a line that ends with a bare LF: {line[:200]!r}")
        if b"\r" in line[:-1] or b"\0" in line:
            raise Malformed(f"CR or NUL inside a line: {line[:200]!r}")
        return line[:-1].decode("latin-1")

    def _exactly(self, length, sink):
        while length:
            if not self.buffer and not self._fill():
                raise Truncated(f"the connection ended {length} bytes before the body's end")
            piece, self.buffer = self.buffer[:length], self.buffer[length:]
            length -= len(piece)
            sink(piece)

    def head(self, kind=Response):
        start = self._line()
        lines = []
        while True:
            line = self._line()
            if not line:
                return kind(start, parse_fields(lines))
            lines.append(line)

    def response(self, method="GET", sink=None, timeout=None):
        """One final response with its body; interim ones are collected in .interim. With `sink`, body
        pieces go there and .body stays empty."""
        self.socket.settimeout(timeout or self.timeout)
        interim = []
        while True:
            response = self.head()
            if response.status >= 200 or response.status == 101:
                break
            interim.append(response)
        response.interim = interim
        response.framing, length = framing(response, method)
        pieces = []
        try:
            self._body(response, length, sink or pieces.append)
        except Truncated as error:
            response.body = b"".join(pieces)
            error.response = response
            raise
        response.body = b"".join(pieces)
        return response

    def _body(self, response, length, sink):
        if response.framing == "length":
            self._exactly(length, sink)
        elif response.framing == "chunked":
            self._chunks(response, sink)
        elif response.framing == "close":
            while self.buffer or self._fill():
                piece, self.buffer = self.buffer, b""
                sink(piece)
            if self.reset:
                raise Truncated("the connection was reset inside a body that goes until close")

    def _chunks(self, response, sink):
        while True:
            line = self._line()
            match = re.fullmatch(r"([0-9A-Fa-f]{1,16})((?:[ \t]*;.*)?)", line)
            if not match:
                raise Malformed(f"chunk size line {line!r}")
            size = int(match.group(1), 16)
            if size == 0:
                response.last_chunk_extension = match.group(2)
                break
            self._exactly(size, sink)
            if self._line() != "":
                raise Malformed("no CRLF behind a chunk")
        lines = []
        while True:
            line = self._line()
            if not line:
                break
            lines.append(line)
        response.trailers = parse_fields(lines)

    def read_bytes(self, length):
        pieces = []
        self._exactly(length, pieces.append)
        return b"".join(pieces)

    def read_some(self):
        """What is there or comes next; b"" at the end."""
        if not self.buffer:
            self._fill()
        data, self.buffer = self.buffer, b""
        return data

    def read_to_end(self, timeout=None):
        self.socket.settimeout(timeout or self.timeout)
        while self._fill():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def at_end(self, timeout=5):
        """True when the peer closes (or resets) within `timeout` and sends nothing more."""
        self.socket.settimeout(timeout)
        try:
            return not self.buffer and not self._fill()
        except Silence:
            return False

    def quiet(self, seconds=0.2):
        """True when for `seconds` nothing comes and the connection stays open."""
        if self.buffer or self.eof:
            return False
        self.socket.settimeout(seconds)
        try:
            self._fill()
        except Silence:
            return True
        finally:
            self.socket.settimeout(self.timeout)
        return False


def framing(response, method):
    """RFC 9112 §6.3, without mercy: ("none"|"length"|"chunked"|"close", length)."""
    lengths = response.headers("Content-Length")
    codings = response.headers("Transfer-Encoding")
    if lengths and codings:
        raise Malformed(f"Content-Length {lengths} together with Transfer-Encoding {codings}")
    if len(lengths) > 1:
        raise Malformed(f"several Content-Length fields {lengths}")
    if lengths and not re.fullmatch(r"\d+", lengths[0]):
        raise Malformed(f"Content-Length {lengths[0]!r}")
    if codings and codings != ["chunked"]:
        raise Malformed(f"Transfer-Encoding {codings}")
    if codings and response.version == "1.0":
        raise Malformed("Transfer-Encoding in an HTTP/1.0 response")
    if method == "HEAD" or response.status in (204, 304) or response.status < 200:
        return "none", 0
    if method == "CONNECT" and response.status < 300:
        return "none", 0
    if codings:
        return "chunked", None
    if lengths:
        return "length", int(lengths[0])
    return "close", None


def fetch(address, method, target, headers=None, body=None, version="1.1", host=None, timeout=20, source=None):
    """One request on a connection of its own."""
    with Wire(address, timeout, source=source) as wire:
        wire.send(request(method, target, headers, body, version, host))
        return wire.response(method)
