"""An ICAP server that does what a test tells it to, the right and the wrong.

    def behave(icap, transaction):
        transaction.finish_body()
        transaction.send_204()
    server = IcapServer(lab, behave)

OPTIONS is answered by itself from `server.options` (a dict of header values; None leaves one out).
For REQMOD and RESPMOD the transaction holds the ICAP head, the encapsulated heads and the preview.
"""

import contextlib
import re
import time

from . import wire
from .server import Server


class IcapRequest(wire.Head):
    def __init__(self, start, fields):
        super().__init__(start, fields)
        parts = start.split(" ")
        if len(parts) != 3 or parts[2] != "ICAP/1.0":
            raise wire.Malformed(f"ICAP request line {start!r}")
        self.method, self.uri, _ = parts


class Transaction:
    """One REQMOD or RESPMOD as the server sees it."""

    def __init__(self, connection, request, number, istag='"test-1"'):
        self.connection = connection
        self.istag = istag.encode()
        self.request = request
        self.connection_number = number
        self.method = request.method
        self.http_request = self.http_response = None
        self.has_body = False
        self.preview = None
        self.ieof = False
        self.complete = False
        self.body = b""
        self.started = time.monotonic()
        self._read_encapsulated()

    def _read_encapsulated(self):
        """Heads by their offsets, strictly, then the preview if there is one."""
        parts = parse_encapsulated(self.request.header("Encapsulated"))
        for (name, start), following in zip(parts, parts[1:] + [(None, None)]):
            if name.endswith("-hdr"):
                block = self.connection.read_bytes(following[1] - start).decode("latin-1")
                head = parse_http_head(block)
                if name == "req-hdr":
                    self.http_request = head
                else:
                    self.http_response = head
        self.has_body = parts[-1][0] != "null-body"
        if not self.has_body:
            self.complete = True
        elif self.request.header("Preview") is not None:
            self.preview = self._chunks()
            self.complete = self.ieof

    def _chunks(self):
        pieces, holder = [], wire.Head("", [])
        self.connection._chunks(holder, pieces.append)
        self.ieof = "ieof" in holder.last_chunk_extension
        data = b"".join(pieces)
        self.body += data
        return data

    @property
    def preview_limit(self):
        value = self.request.header("Preview")
        return None if value is None else int(value)

    def allows(self, status):
        return str(status) in re.split(r"[\s,]+", self.request.header("Allow") or "")

    def send(self, data):
        self.connection.send(data)

    def send_100(self):
        self.send(b"ICAP/1.0 100 Continue\r\n\r\n")

    def finish_body(self):
        """Has the whole virgin body sent, saying 100 where it was a preview."""
        if self.complete:
            return self.body
        if self.preview is not None:
            self.send_100()
        self._chunks()
        self.complete = True
        return self.body

    def read_some_body(self, length):
        """Reads about `length` raw bytes of a body that is being sent, and forgets them."""
        left = length
        while left > 0:
            data = self.connection.read_some()
            if not data:
                return
            left -= len(data)

    def send_204(self, extra=b""):
        self.send(b"ICAP/1.0 204 No Content\r\nISTag: " + self.istag + b"\r\n" + extra + b"\r\n")

    def http_part(self, head):
        return ("res" if head.startswith(b"HTTP/") else "req").encode()

    def send_head(self, head, body=True, icap=b"", status=b"200 OK", encapsulated=None):
        """The ICAP head of a 200 (or 206) with an encapsulated head; the body's chunks follow."""
        part = self.http_part(head)
        if encapsulated is None:
            encapsulated = b"%s-hdr=0, %s=%d" % (part, part + b"-body" if body else b"null-body", len(head))
        self.send(b"ICAP/1.0 " + status + b"\r\nISTag: " + self.istag + b"\r\n" + icap
                  + b"Encapsulated: " + encapsulated + b"\r\n\r\n" + head)

    def send_200(self, head, body=b"", icap=b"", piece=65536):
        self.send_head(head, True, icap)
        for start in range(0, len(body), piece):
            self.send(wire.chunked(body[start:start + piece], last=b""))
        self.send(b"0\r\n\r\n")

    def response_head(self, drop=("content-length", "transfer-encoding"), add=()):
        """The virgin response's head, for changing."""
        return write_head(self.http_response, drop, add)

    def request_head(self, drop=("transfer-encoding",), add=(), start=None):
        return write_head(self.http_request, drop, add, start)


def parse_encapsulated(value):
    if value is None:
        raise wire.Malformed("no Encapsulated header")
    parts = []
    for part in value.split(","):
        match = re.fullmatch(r"\s*(req-hdr|res-hdr|req-body|res-body|null-body|opt-body)=(\d+)\s*", part)
        if not match:
            raise wire.Malformed(f"Encapsulated: {value!r}")
        parts.append((match.group(1), int(match.group(2))))
    if [at for _, at in parts] != sorted(at for _, at in parts) or parts[0][1] != 0:
        raise wire.Malformed(f"Encapsulated offsets {value!r}")
    if not parts[-1][0].endswith("-body"):
        raise wire.Malformed(f"Encapsulated without a body part: {value!r}")
    return parts


def parse_http_head(block):
    if not block.endswith("\r\n\r\n"):
        raise wire.Malformed(f"an encapsulated head without its empty line: {block[-40:]!r}")
    lines = block[:-4].split("\r\n")
    return wire.Head(lines[0], wire.parse_fields(lines[1:]))


def write_head(head, drop=(), add=(), start=None):
    lines = [start or head.start]
    lines += [f"{name}: {value}" for name, value in head.fields if name.lower() not in drop]
    lines += [f"{name}: {value}" for name, value in add]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def unchanged(_icap, transaction):
    """The behaviour of a service that never changes anything."""
    if not transaction.allows(204) and transaction.preview is None:
        raise AssertionError("this behaviour needs Allow: 204 or a preview")
    transaction.send_204()


def echo(_icap, transaction):
    """Takes the whole message and sends it back as a 200."""
    body = transaction.finish_body()
    if transaction.method == "RESPMOD":
        transaction.send_200(transaction.response_head(), body)
    elif transaction.has_body:
        transaction.send_200(transaction.request_head(drop=("content-length", "transfer-encoding")), body)
    else:
        transaction.send_head(transaction.request_head(), body=False)


def append(text):
    """A service that adds `text` to the end of each body."""
    def behave(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(), body + text)
    return behave


class IcapServer(Server):
    def __init__(self, lab, behave=unchanged, methods="RESPMOD", preview=1024, receive_buffer=None, remote=None, **options):
        """`remote`: the host that it is on (harness/remote.py); None: this one."""
        self.behave = behave
        self.istag = '"test-1"'  # of what is answered to REQMOD and RESPMOD
        self.options = {"Methods": methods, "ISTag": '"test-1"', "Service": "harness", "Allow": "204",
                        "Preview": preview, "Transfer-Preview": "*", "Options-TTL": 3600,
                        "Encapsulated": "null-body=0"}
        self.options.update({name.replace("_", "-"): value for name, value in options.items()})
        self.options_answer = None
        self.options_count = 0
        self.options_requests = []
        self.transactions = []
        with remote or contextlib.nullcontext():
            super().__init__(lab, self._serve, address=remote.address if remote else "127.0.0.1", receive_buffer=receive_buffer)

    def _serve(self, connection, number):
        while True:
            if not connection.buffer and not connection._fill():
                return
            request = connection.head(IcapRequest)
            if request.method == "OPTIONS":
                with self.lock:
                    self.options_count += 1
                    self.options_requests.append(request)
                if self.options_answer is None:
                    self.send_options(connection)
                elif self.options_answer(self, connection):
                    return
                continue
            transaction = Transaction(connection, request, number, self.istag)
            with self.lock:
                self.transactions.append(transaction)
            if self.behave(self, transaction):
                return

    def send_options(self, connection, status="200 OK"):
        fields = [f"{name}: {value}" for name, value in self.options.items() if value is not None]
        connection.send((f"ICAP/1.0 {status}\r\n" + "\r\n".join(fields) + "\r\n\r\n").encode())

    @property
    def count(self):
        return len(self.transactions)

    def uri(self, name="service"):
        return f"icap://{self.authority}/{name}"
