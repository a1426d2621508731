"""Another host, whose cable can be pulled: a network namespace at the other end of a veth pair.

    remote = Remote(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")], remote=remote)
    remote.pull()        from now on packets get no answer, and no reset either
    remote.plug()
    remote.rules("table ip t { ... }")        for nft over there; they replace those from before
    with remote:
        server = Server(lab, ...)             what opens sockets here does so over there

Where namespaces can't be made the test is skipped.
"""

import os
import random
import re
import subprocess

from .checks import Skip
from .network import CLONE_NEWNET, check, libc


class Remote:
    def __init__(self, lab):
        number = random.randint(0, 16383)
        self.name = f"retort-{os.getpid()}-{number}"
        self.here, self.there = f"rtA{number}", f"rtB{number}"
        near, self.address = (f"198.{18 + number // 8192}.{number // 32 % 256}.{number % 32 * 4 + last}" for last in (1, 2))
        self.stopped, self.net, self.before = False, None, None
        self._ip("netns", "add", self.name, skip=True)
        lab.opens(self)
        self._ip("link", "add", self.here, "type", "veth", "peer", "name", self.there, "netns", self.name, skip=True)
        self._ip("address", "add", f"{near}/30", "dev", self.here)
        self._ip("link", "set", self.here, "up")
        # Without our own end nothing may go out by another way.
        self.net = f"{near}/32".rsplit(".", 1)[0] + f".{number % 32 * 4}/30"
        self._ip("route", "add", "unreachable", self.net, "metric", "9999")
        self._ip("address", "add", f"{self.address}/30", "dev", self.there, under=self.under)
        for device in ("lo", self.there):
            self._ip("link", "set", device, "up", under=self.under)

    def __enter__(self):
        """For one thread at a time."""
        self.before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._move_to(os.open(f"/run/netns/{self.name}", os.O_RDONLY))
        return self

    def __exit__(self, *_):
        self._move_to(self.before)

    @staticmethod
    def _move_to(namespace):
        try:
            check(libc.setns(namespace, CLONE_NEWNET), "setns")
        finally:
            os.close(namespace)

    def rules(self, text):
        try:
            done = subprocess.run([*self.under, "nft", "-f", "-"], input="flush ruleset\n" + text, capture_output=True, text=True,
                                  timeout=20, check=False)
        except FileNotFoundError:
            raise Skip("needs nft") from None
        if done.returncode != 0:
            raise AssertionError(f"nft: {done.stderr.strip()}")

    def lose_one_probe(self):
        """The next packet without data to there is dropped. counted("dropped") and counted("passed") say how many have come since."""
        self.rules("""table ip t { counter dropped { }; counter passed { }; chain in { type filter hook input priority 0;
            tcp flags == ack ip length < 60 quota until 60 bytes counter name dropped drop; tcp flags == ack counter name passed; }; }""")

    def counted(self, name):
        shown = subprocess.run([*self.under, "nft", "list", "counter", "ip", "t", name], capture_output=True, text=True, timeout=20, check=True)
        return int(re.search(r"packets (\d+)", shown.stdout)[1])

    @staticmethod
    def _ip(*arguments, skip=False, under=()):
        try:
            done = subprocess.run([*under, "ip", *arguments], capture_output=True, text=True, timeout=20, check=False)
        except FileNotFoundError:
            raise Skip("needs ip (iproute2)") from None
        if done.returncode != 0 and skip:
            raise Skip(f"needs to make network namespaces: ip {' '.join(arguments)}: {done.stderr.strip()}")
        if done.returncode != 0:
            raise AssertionError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

    @property
    def under(self):
        """What runs a command over there. Not "ip netns exec", which wants a root directory that is a mount point, as that of a chroot is not."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def pull(self, here=False):
        self._set("down", here)

    def plug(self, here=False):
        self._set("up", here)

    def _set(self, state, here):
        if here:
            self._ip("link", "set", self.here, state)
        else:
            self._ip("link", "set", self.there, state, under=self.under)

    def stop(self):
        if not self.stopped:
            self.stopped = True
            self._ip("netns", "delete", self.name)
            if self.net:
                self._ip("route", "delete", "unreachable", self.net, "metric", "9999")

    @staticmethod
    def findings():
        return []
