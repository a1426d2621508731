"""An origin that speaks HTTP/2 and answers with exactly the frames that the test wants.

    def answer(stream):
        stream.head({":status": "200", "content-length": "2"})
        stream.data(b"ok", end=True)
    origin = Http2Origin(lab, answer)                  in clear text, by prior knowledge
    origin = Http2Origin(lab, answer, certificate=leaf)
    group = origin.group("web")                        text of an origins section, http2 = on

The function runs in a thread of its own for each stream, when the head of its request is there. What it sends is not checked:
frames, fields and their order are the test's. `origin.streams` are all streams in the order in which they came.
Needs python3-hpack (a part of python3-h2).
"""

import select
import ssl
import struct
import threading

from .checks import Skip
from .server import GONE, Server

try:
    import hpack
except ImportError:
    hpack = None

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR = 0, 1, 2
REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM, HTTP_1_1_REQUIRED = 7, 8, 11, 13
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A field as HPACK writes it without an index, whatever bytes it has."""
    return b"\0" + string(name) + string(value)


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    return bytes(out) + bytes((number,))


def string(text):
    data = text if isinstance(text, bytes) else text.encode("latin-1")
    return (bytes((len(data),)) if len(data) < 127 else b"\x7f" + varint(len(data) - 127)) + data


def block(fields):
    pairs = fields.items() if isinstance(fields, dict) else fields
    return b"".join(literal(name, value) for name, value in pairs)


def at_once(count, call):
    """The results of so many calls at the same time."""
    results = [None] * count

    def run(index):
        results[index] = call(index)
    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Stream:
    """One request. `fields`: its head in order; `body` and `ended` grow as it comes; `reset`: the error, once it was reset."""

    def __init__(self, link, number, fields):
        self.link, self.id, self.fields = link, number, fields
        self.body, self.ended, self.reset, self.trailers = b"", threading.Event(), None, None
        self.never_indexed = set()  # names of fields that no table may hold
        self.news = threading.Condition()
        self.grown = 0  # bytes that the other side has added to the window, without those that were sent

    def __getitem__(self, name):
        return dict(self.fields).get(name)

    def head(self, fields, end=False):
        self.link.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), self.id, block(fields)))

    def data(self, data=b"", end=False):
        pieces = [data[at:at + 16384] for at in range(0, len(data), 16384)] or [b""]
        for index, piece in enumerate(pieces):
            self.link.send(frame(DATA, END_STREAM if end and index == len(pieces) - 1 else 0, self.id, piece))

    def flow(self, data, end=False, seconds=60):
        """As data, but keeps to the windows of the other side."""
        at = 0
        while at < len(data):
            size = self.link.take_window(self, min(16384, len(data) - at), seconds)
            if size == 0:
                return
            self.data(data[at:at + size], end=end and at + size == len(data))
            at += size
        if not data:
            self.data(end=end)

    def answer(self, body=b"the origin's answer\n", **fields):
        self.head({":status": "200", "content-length": str(len(body)), "cache-control": "no-store",
                   **{name.replace("_", "-"): value for name, value in fields.items()}})
        self.flow(body, end=True)

    def cut(self, error=INTERNAL_ERROR):
        self.link.send(frame(RST_STREAM, 0, self.id, struct.pack(">I", error)))

    def grow(self, by, connection=True):
        self.link.send(frame(WINDOW_UPDATE, 0, self.id, struct.pack(">I", by)))
        if connection:
            self.link.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", by)))

    def wait_body(self, length, seconds=60):
        with self.news:
            self.news.wait_for(lambda: len(self.body) >= length or self.ended.is_set() or self.reset is not None, seconds)
        return self.body


class Link:
    """One connection."""

    def __init__(self, origin, connection, number):
        self.origin, self.connection, self.number = origin, connection, number
        self.decoder = hpack.Decoder()
        self.lock = threading.Lock()
        self.streams = {}
        self.idle_resets = []  # streams that were reset before they were opened
        self.settings = {}
        self.goaway = None
        self.pings = 0
        self.room = threading.Condition()
        self.window = 65535

    def send(self, data):
        with self.lock:
            self.connection.socket.sendall(data)

    def go_away(self, last, error=NO_ERROR):
        self.send(frame(GOAWAY, 0, 0, struct.pack(">II", last, error)))

    def close(self):
        self.connection.socket.shutdown(2)

    def take_window(self, stream, most, seconds):
        """Waits for room in both windows, and takes up to that many bytes of it; 0: the stream was reset."""
        def room():
            return min(most, self.window, self.settings.get(INITIAL_WINDOW_SIZE, 65535) + stream.grown)
        with self.room:
            self.room.wait_for(lambda: room() > 0 or stream.reset is not None, seconds)
            size = max(room(), 0) if stream.reset is None else 0
            self.window -= size
            stream.grown -= size
            return size

    def _receive(self, most):
        """Never while another thread sends: OpenSSL takes one call for a connection at a time."""
        socket = self.connection.socket
        while True:
            with self.lock:
                timeout = socket.gettimeout()
                socket.settimeout(0)
                try:
                    return socket.recv(most)
                except (ssl.SSLWantReadError, BlockingIOError):
                    pass
                finally:
                    socket.settimeout(timeout)
            if not select.select([socket], [], [], timeout)[0]:
                raise TimeoutError

    def _exactly(self, length):
        data = b""
        while len(data) < length:
            piece = self._receive(length - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return data

    def serve(self):
        if self._exactly(len(PREFACE)) != PREFACE:
            raise AssertionError("a connection that does not begin as HTTP/2")
        self.send(self.origin.first)
        while True:
            head = self._exactly(9)
            length = int.from_bytes(head[:3], "big")
            self.take(head[3], head[4], int.from_bytes(head[5:9], "big"), self._exactly(length))

    def take(self, kind, flags, number, payload):
        stream = self.streams.get(number)
        if kind == HEADERS and stream is None:
            self.open(number, flags, payload)
        elif kind == HEADERS:
            stream.trailers = self.decoder.decode(payload)
            self.end(stream, flags)
        elif kind == DATA and stream is not None:
            with stream.news:
                stream.body += payload
                stream.news.notify_all()
            self.end(stream, flags)
            if self.origin.grows and payload:
                stream.grow(len(payload))
        elif kind == RST_STREAM and stream is None:
            self.idle_resets.append(number)
        elif kind == RST_STREAM:
            stream.reset = int.from_bytes(payload, "big")
            with stream.news:
                stream.news.notify_all()
            with self.room:
                self.room.notify_all()
        elif kind == SETTINGS and not flags & ACK:
            self.settings = {struct.unpack(">H", payload[at:at + 2])[0]: struct.unpack(">I", payload[at + 2:at + 6])[0]
                             for at in range(0, len(payload), 6)}
            if self.origin.acknowledges:
                self.send(frame(SETTINGS, ACK))
            with self.room:
                self.room.notify_all()
        elif kind == WINDOW_UPDATE:
            with self.room:
                if stream:
                    stream.grown += int.from_bytes(payload, "big")
                elif number == 0:
                    self.window += int.from_bytes(payload, "big")
                self.room.notify_all()
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == PING:
            self.pings += 1
        elif kind == GOAWAY:
            self.goaway = int.from_bytes(payload[4:8], "big")

    def end(self, stream, flags):
        if flags & END_STREAM:
            stream.ended.set()
            with stream.news:
                stream.news.notify_all()

    def open(self, number, flags, payload):
        fields = self.decoder.decode(payload)
        stream = Stream(self, number, [tuple(field) for field in fields])
        stream.never_indexed = {field[0] for field in fields if isinstance(field, hpack.NeverIndexedHeaderTuple)}
        self.streams[number] = stream
        with self.origin.lock:
            self.origin.streams.append(stream)
        self.end(stream, flags)
        threading.Thread(target=self.origin.run, args=(stream,), daemon=True).start()


class Http2Origin(Server):
    """`settings`: what the origin says first. `first`: bytes in their place. `grows`: windows grow as bytes come. `before`: is called
    before the handshake."""

    def __init__(self, lab, answer=Stream.answer, certificate=None, settings=(), first=None, grows=True, acknowledges=True,
                 protocols=("h2",), before=lambda: None, **options):
        if hpack is None:
            raise Skip("python3-hpack is missing: apt-get install python3-h2")
        self.answer, self.certificate, self.grows, self.acknowledges, self.before = answer, certificate, grows, acknowledges, before
        self.first = frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in dict(settings).items())) \
            if first is None else first
        self.streams, self.links = [], []
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate.file, certificate.key)
            self.context.set_alpn_protocols(list(protocols))
        super().__init__(lab, self._serve, **options)

    def _serve(self, connection, number):
        self.before()
        if self.certificate:
            connection.socket = self.context.wrap_socket(connection.socket, server_side=True)
        self.speak(connection, number)

    def speak(self, connection, number):
        link = Link(self, connection, number)
        with self.lock:
            self.links.append(link)
        link.serve()

    def run(self, stream):
        try:
            self.answer(stream)
        except GONE + (OSError,):
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.failures.append(repr(error))

    def url(self, path="/"):
        return f"{'https' if self.certificate else 'http'}://{self.authority}{path}"

    def group(self, name, **options):
        more = "  ".join(f"{key} = {value}" for key, value in options.items())
        return f'origins {name} {{ servers = {{ "{self.url("")}" }}  http2 = on  {more} }}'
