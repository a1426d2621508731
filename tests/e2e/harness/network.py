"""Three hosts in a row, each a network namespace: a client, a router, where the proxy runs, and a server.

    network = Network(lab)
    with network.server:
        origin = Origin(lab, network.server.v4)        what starts or opens sockets here does so on that host
    network.rules("table ip t { ... }")                for nft, on the router; they replace those from before
    network.names["www.test"] = [network.server.v4]    what the router's DNS server answers
    with network.client:
        wire = Wire((network.server.v4, 80))

The namespaces have no names and end with the process. Where they can't be made, or nft is missing, the test is skipped.
"""

import ctypes
import os
import socket
import struct
import subprocess
import threading

from .checks import Skip
from .dns import question

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise Skip(f"needs to make network namespaces: {what}: {os.strerror(ctypes.get_errno())}")


def run(*words, text=None):
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=20, check=False)
    except FileNotFoundError:
        raise Skip(f"needs {words[0]}") from None
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Host:
    """Entered and left by one thread at a time."""

    def __init__(self):
        self.fd, self.before = None, []
        failures = []
        thread = threading.Thread(target=self._make, args=(failures,))
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        with self:
            run("ip", "link", "set", "lo", "up")

    def _make(self, failures):
        try:
            check(libc.unshare(CLONE_NEWNET), "unshare")
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        except (Skip, OSError) as error:
            failures.append(error)

    def __enter__(self):
        self.before.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        check(libc.setns(self.fd, CLONE_NEWNET), "setns")
        return self

    def __exit__(self, *_):
        before = self.before.pop()
        check(libc.setns(before, CLONE_NEWNET), "setns")
        os.close(before)

    @property
    def path(self):
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    def ip(self, line):
        with self:
            return run("ip", *line.split())

    def set(self, name, value):
        try:
            with self, open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
                file.write(str(value))
        except OSError as error:
            raise Skip(f"needs to set net/{name}: {error}") from None

    def address(self, device, *addresses):
        for address in addresses:
            self.ip(f"address add {address} dev {device}" + (" nodad" if ":" in address else ""))


def answer(packet, names):
    name, kind, end = question(packet)
    family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
    addresses = [each for each in names.get(name, []) if (":" in each) == (family == socket.AF_INET6)] if family else []
    records = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, 4 if kind == 1 else 16) + socket.inet_pton(family, each)
                       for each in addresses)
    return packet[:2] + struct.pack("!HHHHH", 0x8180 if name in names else 0x8183, 1, len(addresses), 0, 0) + packet[12:end] + records


def nameserver():
    """The one that programs here ask."""
    try:
        with open("/etc/resolv.conf", encoding="utf-8") as file:
            return next((line.split()[1] for line in file if line.startswith("nameserver")), "127.0.0.1").split("%")[0]
    except OSError:
        return "127.0.0.1"


class Host4(Host):
    def __init__(self, v4, v6):
        super().__init__()
        self.v4, self.v6 = v4, v6


class Network:
    def __init__(self, lab):
        self.client, self.router, self.server = (
            Host4(*addresses) for addresses in (("10.99.1.2", "fd99:1::2"), ("10.99.1.1", "fd99:1::1"), ("10.99.2.2", "fd99:2::2")))
        self.names = {}
        for number, host in ((1, self.client), (2, self.server)):
            self.router.ip(f"link add side{number} type veth peer name eth0 netns {host.path}")
            self.router.address(f"side{number}", f"10.99.{number}.1/24", f"fd99:{number}::1/64")
            self.router.ip(f"link set side{number} up")
            host.address("eth0", f"{host.v4}/24", f"{host.v6}/64")
            host.ip("link set eth0 up")
            host.ip(f"route add default via 10.99.{number}.1")
            host.ip(f"-6 route add default via fd99:{number}::1")
        for family in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            self.router.set(family, 1)
        self._serve_names()
        self.rules("")
        lab.opens(self)

    def _serve_names(self):
        address = nameserver()
        if not address.startswith("127."):
            self.router.address("lo", address + ("/128" if ":" in address else "/32"))
        with self.router:
            self.dns = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
            self.dns.bind((address, 53))
        threading.Thread(target=self._answer_names, daemon=True).start()

    def _answer_names(self):
        while True:
            try:
                packet, requester = self.dns.recvfrom(2048)
                self.dns.sendto(answer(packet, self.names), requester)
            except OSError:
                return

    def rules(self, text):
        with self.router:
            run("nft", "-f", "-", text="flush ruleset\n" + text)

    def stop(self):
        self.dns.close()
        for host in (self.client, self.router, self.server):
            if host.fd is not None:
                os.close(host.fd)
                host.fd = None

    @staticmethod
    def findings():
        return []
