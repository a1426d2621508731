"""A consumer of the event stream, strict about what WHATWG HTML 9.2 says of text/event-stream.

    with Events(proxy, "status=5xx") as events:
        event = events.next()              event.kind, event.id, event.data (what the JSON says)
"""

import collections
import json

from . import wire

Event = collections.namedtuple("Event", "kind id data")


class Events:
    def __init__(self, proxy, query="", token=None, receive_buffer=None):
        self.wire = wire.Wire(proxy.admin_path, timeout=20 * proxy.lab.patience, receive_buffer=receive_buffer)
        token = token or proxy.token
        fields = {"Host": "localhost", "Accept": "text/event-stream", **({"Authorization": f"Bearer {token}"} if token else {})}
        self.wire.send(wire.request("GET", "/v1/events" + (f"?{query}" if query else ""), fields))
        self.head = self.wire.head()
        self.text = b""
        self.comments = 0
        self.ended = False  # by the last chunk
        if self.head.status != 200:
            raise AssertionError(f"status {self.head.status}: {self.wire.buffer[:300]!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.wire.close()

    def _chunk(self):
        size = int(self.wire._line(), 16)
        if size == 0:
            self.ended = self.wire._line() == ""
            return False
        pieces = []
        self.wire._exactly(size, pieces.append)
        self.wire._exactly(2, lambda _: None)
        self.text += b"".join(pieces)
        return True

    def _block(self):
        """The lines up to the next empty one; None: the stream has ended."""
        while b"\n\n" not in self.text:
            if self.ended or not self._chunk():
                return None
        block, self.text = self.text.split(b"\n\n", 1)
        return block.decode("utf-8").split("\n")

    def block(self):
        """The lines of the next event or comment."""
        return self._block()

    def next(self):
        """None: the stream has ended as it should."""
        while True:
            block = self._block()
            if block is None:
                return None
            fields = {}
            for line in block:
                name, _, value = line.partition(":")
                if name not in ("", "id", "data", "event", "retry") or name in fields:
                    raise AssertionError(f"a line of an event: {line[:200]!r}")
                self.comments += name == ""
                fields[name] = value.removeprefix(" ")
            if "data" in fields:
                return Event(fields.get("event", "message"), fields.get("id"), json.loads(fields["data"]))

    def take(self, count):
        return [self.next() for _ in range(count)]

    def rest(self):
        """All that comes until the stream ends."""
        return list(iter(self.next, None))
