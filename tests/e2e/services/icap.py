"""A small ICAP client for tests: raw sockets, full duplex, previews, and misbehaviour on demand."""
import socket
import threading


class Broken(Exception):
    """The server closed the connection inside a message."""


class Response:
    def __init__(self):
        self.status, self.headers = 0, {}
        self.http, self.http_headers, self.body = "", {}, None
        self.continued, self.original = False, None

    def header(self, name):
        return self.http_headers.get(name.lower(), [None])[0]


def parse_head(text):
    lines = text.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        if line:
            name, _, value = line.partition(":")
            headers.setdefault(name.lower(), []).append(value.strip())
    return lines[0], headers


class Connection:
    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port, self.buffer = port, b""

    def close(self):
        self.socket.close()

    def fill(self):
        data = self.socket.recv(65536)
        if not data:
            raise Broken("closed with %d bytes unread" % len(self.buffer))
        self.buffer += data

    def read_until(self, mark):
        while mark not in self.buffer:
            self.fill()
        head, _, self.buffer = self.buffer.partition(mark)
        return head + mark

    def read_exactly(self, length):
        while len(self.buffer) < length:
            self.fill()
        data, self.buffer = self.buffer[:length], self.buffer[length:]
        return data

    def read_chunks(self, on_data=None):
        parts = []
        while True:
            self.chunk_line = self.read_until(b"\r\n")
            size = int(self.chunk_line.split(b";")[0], 16)
            data = self.read_exactly(size)
            self.read_exactly(2) if size else self.read_until(b"\r\n")
            if size == 0:
                return b"".join(parts)
            parts.append(data)
            if on_data:
                on_data(data)

    def read_response(self, on_data=None):
        response = Response()
        line, headers = parse_head(self.read_until(b"\r\n\r\n"))
        response.status, response.headers = int(line.split()[1]), headers
        if response.status == 100 or "encapsulated" not in headers:
            return response
        parts = [p.strip().split("=") for p in headers["encapsulated"][0].split(",")]
        offsets = {name: int(value) for name, value in parts}
        ends = sorted(offsets.values())
        for name in ("req-hdr", "res-hdr"):
            if name in offsets:
                end = [e for e in ends if e > offsets[name]]
                block = self.read_exactly(end[0] - offsets[name])
                response.http, response.http_headers = parse_head(block)
        if "req-body" in offsets or "res-body" in offsets:
            response.body = self.read_chunks(on_data)
            if b"use-original-body=" in self.chunk_line:
                response.original = int(self.chunk_line.split(b"=")[1])
        return response

    def send_pieces(self, pieces):
        for piece in pieces:
            if piece:
                self.socket.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.socket.sendall(b"0\r\n\r\n")

    def call(self, method, service, request, response=None, body=None, preview=None,
             allow204=False, allow206=False, client_ip=None, piece=4096, on_data=None, pieces=None, user=None):
        """`body` None: no body. `pieces`: the body as it shall be cut (may be a generator)."""
        heads = [("req-hdr", request)] if request else []
        if response is not None:
            heads.append(("res-hdr", response))
        encapsulated, block = [], b""
        for name, head in heads:
            encapsulated.append("%s=%d" % (name, len(block)))
            block += head.replace("\n", "\r\n").encode("latin-1") + b"\r\n"
        has_body = body is not None or pieces is not None
        kind = ("res-body" if response is not None else "req-body") if has_body else "null-body"
        encapsulated.append("%s=%d" % (kind, len(block)))
        lines = ["%s icap://127.0.0.1:%d/%s ICAP/1.0" % (method, self.port, service),
                 "Host: 127.0.0.1", "Encapsulated: " + ", ".join(encapsulated)]
        if allow204 or allow206:
            lines.append("Allow: " + ", ".join(["204"] * allow204 + ["206"] * allow206))
        if client_ip:
            lines.append("X-Client-IP: " + client_ip)
        if preview is not None:
            lines.append("Preview: %d" % preview)
        if user:
            lines.append("X-Client-Username: " + user)
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + block)
        if not has_body:
            return self.read_response(on_data)
        if preview is not None:
            start, rest = body[:preview], body[preview:]
            if start:
                self.socket.sendall(b"%x\r\n%s\r\n" % (len(start), start))
            if not rest:
                self.socket.sendall(b"0; ieof\r\n\r\n")
                return self.read_response(on_data)
            self.socket.sendall(b"0\r\n\r\n")
            answer = self.read_response(on_data)
            if answer.status != 100:
                return answer
            body = rest
        cut = pieces or (body[i:i + piece] for i in range(0, len(body), piece))
        sender = threading.Thread(target=self.send_pieces, args=(cut,))
        sender.start()
        try:
            answer = self.read_response(on_data)
        finally:
            sender.join()
        answer.continued = preview is not None
        return answer


def pieces_of(body, size, preview=None):
    """Those of an ordinary call; the first one is the preview."""
    if preview:
        yield body[:preview]
        body = body[preview:]
    for start in range(0, len(body), size):
        yield body[start:start + size]
