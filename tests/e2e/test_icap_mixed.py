"""Services of all moods, in chains at either side of the cache, under clients of all moods: whatever comes to an end has the right bytes,
and nothing is left over. Each seed is another mixture; RETORT_SEEDS=100:200 tries others."""

import gzip
import os
import random
import threading
import zlib

from harness.checks import equal, until
from harness.icap import IcapServer
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.wire import Truncated, chunked, request

SEEDS = os.environ.get("RETORT_SEEDS", "1:9")
SIZES = [0, 1, 500, 5000, 60000, 150000, 400000]
WITHOUT_A_WHOLE_BODY = (206, 304, 416, 502)


class Moods:
    """Does with each message one of several things, by chance; what it changes ends with `mark`."""
    GOOD = ["leave", "read_and_leave", "append", "make_private", "append_slowly"]
    BAD = ["close", "refuse", "break_in_head", "break_in_body"]

    def __init__(self, seed, mark):
        self.chance = random.Random(seed)
        self.mark = mark
        self.moods = self.chance.sample(self.GOOD, self.chance.choice([1, 2, 3])) + self.chance.sample(self.BAD, self.chance.choice([0, 1]))
        self.lock = threading.Lock()

    def __call__(self, _icap, transaction):
        with self.lock:
            mood = self.chance.choice(self.moods)
        if mood not in ("leave", "close"):
            transaction.finish_body()
        return getattr(self, mood)(transaction)

    def leave(self, transaction):
        transaction.send_204()

    read_and_leave = leave

    def append(self, transaction, drop=(), add=()):
        transaction.send_200(transaction.response_head(("content-length", *drop), add), transaction.body + self.mark)

    def make_private(self, transaction):
        self.append(transaction, ("cache-control",), [("Cache-Control", "private")])

    def append_slowly(self, transaction):
        transaction.send_head(transaction.response_head())
        for begin in range(0, len(transaction.body), 50000):
            transaction.send(chunked(transaction.body[begin:begin + 50000], last=b""))
        transaction.send(chunked(self.mark))

    def close(self, _transaction):
        return True

    def refuse(self, transaction):
        transaction.send(b"ICAP/1.0 500 No\r\nISTag: " + transaction.istag + b"\r\n\r\n")
        return True

    def break_in_head(self, transaction):
        transaction.send(b"ICAP/1.0 200 OK\r\nISTa")
        return True

    def break_in_body(self, transaction):
        transaction.send_head(transaction.response_head())
        transaction.send(chunked(transaction.body[:len(transaction.body) // 2] + b"x", last=b""))
        return True


def answer(connection, seen):
    """/size/framing/cache-control/coding/end/..."""
    _, size, framing, control, coding, end, *_ = seen.target.split("/")
    body = gzip.compress(pattern(int(size)), 1) if coding == "gzip" else pattern(int(size))
    fields = [b"HTTP/1.1 200 OK", b"Cache-Control: " + control.encode(), b'ETag: "e"']
    if seen.header("If-None-Match") == '"e"':
        connection.send(b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\n\r\n')
        return None
    fields += [b"Content-Encoding: gzip", b"Vary: Accept-Encoding"] if coding == "gzip" else []
    fields += [b"Content-Length: %d" % len(body) if framing == "length" else b"Transfer-Encoding: chunked", b"", b""]
    connection.send(b"\r\n".join(fields))
    if seen.method == "HEAD":
        return None
    sent = body[:len(body) // 2] if end == "breaks" else body
    for begin in range(0, len(sent), 70000):
        piece = sent[begin:begin + 70000]
        connection.send(piece if framing == "length" else chunked(piece, last=b""))
    if end == "breaks":
        return True
    connection.send(b"" if framing == "length" else b"0\r\n\r\n")
    return None


def services(lab, chance):
    """Sections and marks, in the order in which they are asked."""
    made = []
    for i in range(chance.choice([1, 2, 2, 3])):
        mark = b"<%d>" % i
        point = chance.choice(["respmod_precache", "respmod_postcache", "respmod_postcache"])
        icap = IcapServer(lab, Moods(chance.random(), mark), preview=chance.choice([0, 10, 1024, 4096]))
        options = {"decode": chance.random() < 0.3, "bypass": chance.random() < 0.7}
        if point == "respmod_postcache":
            options["remember"] = chance.random() < 0.6
        if chance.random() < 0.2:
            options.update(keep="4KB", keep_on_disk="0KB", preview="1KB")
        if chance.random() < 0.15:
            options.update(trickle_after="1ms", trickle_every="2ms", trickle_bytes="64KB")
        made.append((point == "respmod_postcache", i, Service(f"s{i}", icap.uri(), point=point, down_min="1ms", down_max="2ms", **options), mark))
    made.sort(key=lambda service: service[:2])
    return [service for _, _, service, _ in made], [mark for *_, mark in made]


def whole_body(response):
    """Without its coding; a service may have written behind it."""
    if response.header("Content-Encoding") != "gzip":
        return response.body
    stream = zlib.decompressobj(31)
    return stream.decompress(response.body) + stream.unused_data


def possible_bodies(size, marks):
    bodies = [pattern(size)]
    for mark in marks:
        bodies += [body + mark for body in bodies]
    return bodies


def client(proxy, origin, marks, chance, wrong):
    for _ in range(12):
        size = chance.choice(SIZES)
        path = "/".join(["", str(size), chance.choice(["length", "chunks"]), chance.choice(["max-age=60", "max-age=0", "no-store"]),
                         chance.choice(["plain", "plain", "gzip"]), chance.choice(["ends"] * 7 + ["breaks"]), chance.choice("ab")])
        headers = chance.choice([{}] * 8 + [{"Range": "bytes=3-9"}, {"If-None-Match": '"e"'}])
        method = chance.choice(["GET"] * 9 + ["HEAD"])
        leaves = chance.random() < 0.2
        with proxy.wire() as wire:
            try:
                wire.send(request(method, origin.url(path), {"Accept-Encoding": "gzip", **headers}))
                if leaves:
                    wire.head()
                    wire.abort()
                    continue
                response = wire.response(method)
            except Truncated:
                continue
        if method == "GET" and response.status not in WITHOUT_A_WHOLE_BODY and \
                (response.status != 200 or whole_body(response) not in possible_bodies(size, marks)):
            wrong.append((path, headers, response.status, response.fields, len(response.body), response.body[-40:]))


def mixture(lab, seed):
    chance = random.Random(seed)
    origin = RawOrigin(lab, answer)
    sections, marks = services(lab, chance)
    cache = {"memory": chance.choice(["8MB", "1MB"]), "max_object": chance.choice(["1MB", "100KB", "10KB"])}
    proxy = Retort(lab, services=sections, workers=chance.choice([1, 2]), cache=cache)
    wrong = []
    threads = [threading.Thread(target=client, args=(proxy, origin, marks, random.Random(chance.random()), wrong)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(wrong[:2], [], f"wrong with seed {seed}")
    until(lambda: proxy.status()["counters"]["transactions_active"] == 0, 20 * lab.patience, f"nothing is left over with seed {seed}")
    proxy.stop()


def test_mixtures(lab):
    first, _, end = SEEDS.partition(":")
    for seed in range(int(first), int(end)):
        mixture(lab, seed)
