"""HTTP/2 on the wire (RFC 9113): sends the frames it is told to send, good or bad, and reads what comes strictly.

    with Http2(("127.0.0.1", 3128)) as client:                   clear text, with prior knowledge
    with Http2(address, context=context, name="a.test") as client:      TLS; the context offers h2
        answer = client.get("http://example.com/")               .status .fields .body .trailers .interim
        stream = client.request("POST", url, body=None)          HEADERS; .data(stream, b"...", end=True)
        answer = client.response(stream)                         raises Reset, Gone or Silence
        client.frame(PING, 0, 0, bytes(8))                       any frame
        client.goaway().error                                    waits for the end that the other side makes

SETTINGS and PING are acknowledged, and windows are given back as bodies come, unless the client is made with polite=False and
credit=False. Heads are written as literals, so that any name and value can be sent; what comes is decoded by Debian's
python3-hpack.
"""

import re
import socket
import struct
import time

from . import checks
from .wire import Malformed, Silence

try:
    import hpack
except ImportError:
    hpack = None

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
PRIORITY_UPDATE = 16
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
(NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE_ERROR,
 REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM, INADEQUATE_SECURITY, HTTP_1_1_REQUIRED) = range(14)
(HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE,
 _, ENABLE_CONNECT_PROTOCOL, NO_RFC7540_PRIORITIES) = range(1, 10)
LARGEST_WINDOW = (1 << 31) - 1
CALM = ENHANCE_YOUR_CALM


class Reset(AssertionError):
    """The stream was reset; .error says how."""

    def __init__(self, stream, error):
        super().__init__(f"stream {stream} was reset with error {error}")
        self.error = error


class Gone(AssertionError):
    """The connection ended; .error is that of GOAWAY, None without one."""

    def __init__(self, message, error, text=b"", last=None):
        super().__init__(f"{message}: GOAWAY error {error}, last stream {last}, {text!r}")
        self.error, self.text, self.last = error, text, last


class Frame:
    def __init__(self, kind, flags, stream, payload):
        self.kind, self.flags, self.stream, self.payload = kind, flags, stream, payload

    def __repr__(self):
        return f"<frame {self.kind} flags {self.flags:#x} stream {self.stream} {self.payload[:40]!r}>"


class Answer:
    """What has come on one stream."""

    def __init__(self, stream):
        self.stream = stream
        self.status, self.fields, self.trailers, self.interim = None, [], [], []
        self.pieces, self.length = [], 0
        self.ended, self.reset = False, None
        self.began = self.finished = None

    @property
    def body(self):
        return b"".join(self.pieces)

    def headers(self, name):
        return [value for key, value in self.fields if key == name.lower()]

    def header(self, name):
        return ", ".join(self.headers(name)) or None


def framed(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(value, bits, first=0):
    """RFC 7541 §5.1."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = bytearray([first | most]), value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out + bytes([value]))


def text(value):
    return value if isinstance(value, bytes) else value.encode("latin-1")


def string(value):
    return integer(len(text(value)), 7) + text(value)


def literal(name, value, first=0x00):
    """A field as a literal with a new name (RFC 7541 §6.2.2): not indexed; 0x40: indexed; 0x10: never indexed."""
    return bytes([first]) + string(name) + string(value)


def block(fields, first=0x00):
    return b"".join(literal(name, value, first) for name, value in fields)


def settings(**values):
    """settings(initial_window_size=0) is the payload of a SETTINGS frame."""
    return b"".join(struct.pack(">HI", globals()[name.upper()], value) for name, value in values.items())


def request_fields(method, url, fields=(), **more):
    """The pseudo fields of a URL, and others behind them. `more`: authority="x" or path=None, for one that differs or is missing."""
    match = re.match(r"(https?)://([^/?#]*)(.*)", url)
    scheme, authority, path = match.groups() if match else ("http", "localhost", url)
    pseudo = {"method": method, "scheme": scheme, "authority": authority, "path": path or "/", **more}
    return [(f":{name}", value) for name, value in pseudo.items() if value is not None] + list(fields)


class Http2:
    def __init__(self, address, context=None, name=None, *, timeout=20, polite=True, credit=True, preface=True,
                 receive_buffer=None, source=None, **values):
        self.socket = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind((source, 0))
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname=name)
        self.begin(self.socket, timeout, polite, credit, preface, **values)

    @classmethod
    def over(cls, connected, timeout=20, **options):
        """HTTP/2 on a socket that is there already."""
        self = cls.__new__(cls)
        self.begin(connected, timeout, **options)
        return self

    def begin(self, connected, timeout, polite=True, credit=True, preface=True, **values):
        if hpack is None:
            raise checks.Skip("needs Debian's python3-hpack: tests/install.sh test")
        self.socket, self.timeout = connected, timeout
        self.polite, self.credit = polite, credit
        self.buffer, self.eof, self.was_reset = bytearray(), False, False
        self.next_stream = 1
        self.answers = {}
        self.end = None  # the GOAWAY frame
        self.settings = {}
        self.windows = {}  # what the other side has given, beyond what it says first
        self.acknowledged = self.pongs = 0
        self.open_block = None
        self.decoder = hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 24
        if preface:
            self.send(PREFACE + framed(SETTINGS, 0, 0, settings(**values)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def abort(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    # Sending.

    def send(self, data):
        """Everything, unless the other side has ended the connection: its reason is yet to be read."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            self.was_reset = True

    def frame(self, kind, flags=0, stream=0, payload=b""):
        self.send(framed(kind, flags, stream, payload))

    def take_stream(self):
        self.next_stream += 2
        return self.next_stream - 2

    def headers(self, stream, fields, end=True, first=0x00, flags=0):
        """A head in HEADERS and, if it is large, CONTINUATION."""
        self.send(self.head_frames(stream, block(fields, first), end, flags))

    @staticmethod
    def head_frames(stream, data, end=True, flags=0, size=16384):
        pieces = [data[at:at + size] for at in range(0, len(data), size)] or [b""]
        out = []
        for i, piece in enumerate(pieces):
            last = END_HEADERS if i == len(pieces) - 1 else 0
            out.append(framed(CONTINUATION if i else HEADERS, last | (0 if i else flags | (END_STREAM if end else 0)), stream, piece))
        return b"".join(out)

    def request(self, method, url, fields=(), body=b"", **more):
        """A request; body=None: DATA is to follow. Returns the number of its stream."""
        stream = self.take_stream()
        self.headers(stream, request_fields(method, url, fields, **more), end=body == b"")
        if body:
            self.data(stream, body, end=True)
        return stream

    def data(self, stream, data=b"", end=False, size=16384):
        """As DATA, whatever the windows say."""
        pieces = [data[at:at + size] for at in range(0, len(data), size)] or [b""]
        for i, piece in enumerate(pieces):
            self.frame(DATA, END_STREAM if end and i == len(pieces) - 1 else 0, stream, piece)

    def upload(self, stream, data, end=True, size=16384):
        """As DATA, within the windows: waits for them to grow."""
        while data:
            room = min(self.window(0), self.window(stream), size)
            if room <= 0:
                self.read_until(lambda: min(self.window(0), self.window(stream)) > 0 or self.answer(stream).reset is not None)
                if self.answer(stream).reset is not None:
                    raise Reset(stream, self.answer(stream).reset)
                continue
            piece, data = data[:room], data[room:]
            self.take_window(stream, len(piece))
            self.frame(DATA, END_STREAM if end and not data else 0, stream, piece)

    def window(self, stream):
        first = 65535 if stream == 0 else self.settings.get(INITIAL_WINDOW_SIZE, 65535)
        return first + self.windows.get(stream, 0)

    def take_window(self, stream, length):
        for one in (0, stream):
            self.windows[one] = self.windows.get(one, 0) - length

    def reset_stream(self, stream, error=CANCEL):
        self.frame(RST_STREAM, 0, stream, struct.pack(">I", error))

    def give(self, stream, length):
        self.frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", length))

    # Reading.

    def _fill(self):
        if self.eof:
            return False
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise Silence(f"nothing came for {self.socket.gettimeout():g} s") from None
        except (ConnectionResetError, BrokenPipeError):
            self.was_reset, data = True, b""
        except OSError as error:  # TLS that ends without close_notify
            if "EOF" not in str(error) and "SSL" not in type(error).__name__:
                raise
            data = b""
        self.eof = not data
        self.buffer += data
        return bool(data)

    def read_frame(self):
        """The next frame; None at the end of the connection."""
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            if not self._fill():
                if self.buffer and not self.was_reset:
                    raise Malformed(f"the connection ended inside a frame: {bytes(self.buffer[:60])!r}")
                return None
        length = int.from_bytes(self.buffer[:3], "big")
        kind, flags, stream = self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big")
        payload = bytes(self.buffer[9:9 + length])
        del self.buffer[:9 + length]
        frame = Frame(kind, flags, stream, payload)
        if stream >> 31:
            raise Malformed(f"a reserved bit is set: {frame}")
        if length > 16384:
            raise Malformed(f"a frame of {length} bytes, which nobody allowed")
        self.take(frame)
        return frame

    def read_until(self, condition, timeout=None):
        """Reads frames until the condition is true. Gone: the connection ends before. Silence: not in time."""
        deadline = time.monotonic() + (timeout or self.timeout)
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                raise Silence("the condition does not come true in time")
            self.socket.settimeout(left)
            try:
                if self.read_frame() is None:
                    raise self.gone("the connection ended")
            finally:
                self.socket.settimeout(self.timeout)

    def gone(self, message):
        if self.end is None:
            return Gone(message, None)
        last, error = struct.unpack(">II", self.end.payload[:8])
        return Gone(message, error, self.end.payload[8:], last)

    def answer(self, stream):
        return self.answers.setdefault(stream, Answer(stream))

    def response(self, stream, timeout=None):
        """The whole response. Reset or Gone: it will not come."""
        answer = self.answer(stream)
        self.read_until(lambda: answer.ended or answer.reset is not None, timeout)
        if answer.reset is not None and not answer.ended:
            raise Reset(stream, answer.reset)
        return answer

    def get(self, url, fields=(), method="GET", body=b"", timeout=None, **more):
        return self.response(self.request(method, url, fields, body, **more), timeout)

    def settle(self, timeout=None):
        """Until the other side has seen all that was sent: PING and its answer."""
        pongs = self.pongs
        self.frame(PING, 0, 0, b"settled?")
        self.read_until(lambda: self.pongs > pongs, timeout)

    def goaway(self, timeout=None):
        """Reads until the connection ends; what GOAWAY said, as Gone."""
        try:
            self.read_until(lambda: False, timeout)
        except Gone as gone:
            return gone

    def reset_of(self, stream, timeout=None):
        """The error that the stream is reset with."""
        answer = self.answer(stream)
        self.read_until(lambda: answer.reset is not None, timeout)
        return answer.reset

    def is_open(self):
        """Does the other side still answer?"""
        try:
            self.settle()
            return True
        except Gone:
            return False

    # What comes.

    def take(self, frame):
        if self.open_block and (frame.kind != CONTINUATION or frame.stream != self.open_block[0].stream):
            raise Malformed(f"{frame} inside a head")
        reader = {DATA: self.take_data, HEADERS: self.take_headers, CONTINUATION: self.take_headers, SETTINGS: self.take_settings,
                  RST_STREAM: self.take_reset, WINDOW_UPDATE: self.take_update, PING: self.take_ping}.get(frame.kind)
        if frame.kind == GOAWAY:
            self.end = frame
        elif frame.kind == PUSH_PROMISE:
            raise Malformed("a promise that nobody asked for")
        elif reader:
            reader(frame)

    def take_data(self, frame):
        answer = self.answer(frame.stream)
        if answer.ended or answer.status is None:
            raise Malformed(f"{frame} on a stream that {'has ended' if answer.ended else 'has no head'}")
        payload = frame.payload
        if frame.flags & PADDED:
            payload = payload[1:len(payload) - payload[0]]
        answer.pieces.append(payload)
        answer.length += len(payload)
        if self.credit and frame.payload:
            self.give(0, len(frame.payload))
            if not frame.flags & END_STREAM:
                self.give(frame.stream, len(frame.payload))
        self.end_of(answer, frame)

    def end_of(self, answer, frame):
        if frame.flags & END_STREAM:
            answer.ended, answer.finished = True, time.monotonic()

    def take_headers(self, frame):
        if frame.kind == HEADERS:
            payload = frame.payload
            if frame.flags & PADDED:
                payload = payload[1:len(payload) - payload[0]]
            if frame.flags & WITH_PRIORITY:
                payload = payload[5:]
            self.open_block = (frame, bytearray(payload))
        elif not self.open_block:
            raise Malformed(f"{frame} without a head before it")
        else:
            self.open_block[1].extend(frame.payload)
        if frame.flags & END_HEADERS:
            (begin, data), self.open_block = self.open_block, None
            self.take_head(begin, [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.decoder.decode(bytes(data), raw=True)])

    def take_head(self, frame, fields):
        answer = self.answer(frame.stream)
        if answer.ended:
            raise Malformed(f"a head on stream {frame.stream}, which has ended")
        for name, value in fields:
            if name != name.lower() or not re.fullmatch(r":status|[!#$%&'*+\-.^_`|~0-9a-z]+", name) or re.search("[\0\r\n]", value):
                raise Malformed(f"field {name!r}: {value!r}")
            if name in ("connection", "transfer-encoding", "keep-alive", "proxy-connection", "upgrade"):
                raise Malformed(f"a field of HTTP/1 only: {name}: {value}")
        if answer.status is not None:
            if any(name.startswith(":") for name, _ in fields) or not frame.flags & END_STREAM:
                raise Malformed(f"trailers with pseudo fields, or without an end: {fields}")
            answer.trailers = fields
        else:
            status = [value for name, value in fields if name == ":status"]
            if len(status) != 1 or fields[0][0] != ":status" or not re.fullmatch(r"[1-9]\d\d", status[0]):
                raise Malformed(f"a head without one :status at its beginning: {fields}")
            if status[0][0] == "1":
                answer.interim.append((int(status[0]), fields[1:]))
                return
            answer.status, answer.fields, answer.began = int(status[0]), fields[1:], time.monotonic()
        self.end_of(answer, frame)

    def take_settings(self, frame):
        if frame.flags & ACK:
            self.acknowledged += 1
            return
        for at in range(0, len(frame.payload), 6):
            name, value = struct.unpack_from(">HI", frame.payload, at)
            self.settings[name] = value
        if self.polite:
            self.frame(SETTINGS, ACK)

    def take_reset(self, frame):
        self.answer(frame.stream).reset = int.from_bytes(frame.payload, "big")

    def take_update(self, frame):
        self.windows[frame.stream] = self.windows.get(frame.stream, 0) + int.from_bytes(frame.payload, "big")

    def take_ping(self, frame):
        if frame.flags & ACK:
            self.pongs += 1
        elif self.polite:
            self.frame(PING, ACK, 0, frame.payload)
