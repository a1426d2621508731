"""A name server that answers as a test says, by UDP and TCP.

    names = NameServer(lab)
    names.set("www.test", "127.0.0.1", "::1", ttl=60)
    proxy = Retort(lab, origin={"dns_servers": names.address})
    names.set("slow.test", "127.0.0.1", delay={28: 1.0})        28 (AAAA) a second late
    names.asked("www.test")                                      how often, A only
    names.set("_http._tcp.www.test", srv=[(0, 10, 8080, "a.test")])      priority, weight, port, target

What is not set does not exist (NXDOMAIN), for the time of `negative_ttl`.
"""

import socket
import struct
import threading

from . import ports

A, CNAME, SOA, AAAA, SRV = 1, 5, 6, 28, 33


class Name:
    def __init__(self, addresses=(), alias=None, ttl=60, code=0, delay=None, silent=False, truncated=False, raw=None, srv=()):
        self.addresses, self.alias, self.ttl, self.code = list(addresses), alias, ttl, code
        self.delay, self.silent, self.truncated, self.raw = delay or {}, silent, truncated, raw
        self.srv = list(srv)


class NameServer:
    def __init__(self, lab, negative_ttl=None):
        self.names, self.questions, self.negative_ttl = {}, [], negative_ttl
        self.silent = False
        self.lock = threading.Lock()
        self.port = ports.take()
        self.address = f"127.0.0.1:{self.port}"
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.tcp = socket.create_server(("127.0.0.1", self.port))
        self.over_tcp = 0
        for serve in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=serve, daemon=True).start()
        lab.opens(self)

    def set(self, name, *addresses, **options):
        self.names[name] = Name(addresses, **options)

    def asked(self, name, kind=A):
        with self.lock:
            return self.questions.count((name, kind))

    def _serve_udp(self):
        while True:
            try:
                packet, requester = self.udp.recvfrom(4096)
            except OSError:
                return
            self._later(packet, lambda reply, requester=requester: self.udp.sendto(reply, requester), udp=True)

    def _serve_tcp(self):
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            self.over_tcp += 1
            threading.Thread(target=self._serve_stream, args=(connection,), daemon=True).start()

    def _serve_stream(self, connection):
        with connection, connection.makefile("rb") as stream:
            while True:
                head = stream.read(2)
                if len(head) < 2:
                    return
                packet = stream.read(struct.unpack("!H", head)[0])
                self._later(packet, lambda reply: connection.sendall(struct.pack("!H", len(reply)) + reply), udp=False)

    def _later(self, packet, send, udp):
        name, kind, end = question(packet)
        with self.lock:
            self.questions.append((name, kind))
        known = self.names.get(name)
        if self.silent or (known and known.silent):
            return

        def answer():
            try:
                send(self._answer(packet, name, kind, end, udp))
            except OSError:
                pass
        delay = known.delay.get(kind, 0) if known else 0
        if delay:
            threading.Timer(delay, answer).start()
        else:
            answer()

    def _answer(self, packet, name, kind, end, udp):
        known = self.names.get(name)
        if known and known.raw:
            return packet[:2] + known.raw
        records, code, seen = [], known.code if known else 3, set()
        while known and known.alias and name not in seen:
            seen.add(name)
            records.append(record(name, CNAME, known.ttl, encode(known.alias)))
            name = known.alias
            known = self.names.get(name)
            code = known.code if known else 3
        family = {A: socket.AF_INET, AAAA: socket.AF_INET6}.get(kind)
        for each in known.addresses if known and family else ():
            if (":" in each) == (family == socket.AF_INET6):
                records.append(record(name, kind, known.ttl, socket.inet_pton(family, each)))
        for priority, weight, port, target in known.srv if known and kind == SRV else ():
            records.append(record(name, kind, known.ttl, struct.pack("!HHH", priority, weight, port) + encode(target)))
        authority = []
        if not records and self.negative_ttl is not None:
            numbers = struct.pack("!IIIII", 1, 2, 3, 4, self.negative_ttl)
            authority = [record("test", SOA, 3600, encode("ns.test") + encode("admin.test") + numbers)]
        truncated = udp and known is not None and (known.truncated or kind == SRV and sum(map(len, records)) > 450)
        if truncated:
            records = []
        flags = 0x8180 | code | (0x0200 if truncated else 0)
        return packet[:2] + struct.pack("!HHHHH", flags, 1, len(records), len(authority), 0) + packet[12:end] + b"".join(records + authority)

    def stop(self):
        self.udp.close()
        self.tcp.close()

    @staticmethod
    def findings():
        return []


def question(packet):
    """The name, the type, and where the question ends."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode("latin-1"))
        at += 1 + packet[at]
    return ".".join(labels).lower(), struct.unpack_from("!H", packet, at + 1)[0], at + 5


def encode(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


def record(name, kind, ttl, data):
    return encode(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data
