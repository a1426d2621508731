"""A real redis-server or valkey-server: the engine of a fleet."""

import os
import shutil
import socket

from . import ports
from .process import Process
from .checks import Skip


class Engine:
    """`options`: lines of redis.conf more. `sentinel`: it watches others."""

    def __init__(self, lab, *options, name="engine", sentinel=False):
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if not program:
            raise Skip("redis-server is missing: apt-get install redis-server")
        self.lab, self.program = lab, program
        self.port = ports.take()
        self.sentinel = sentinel
        self.directory = lab.path(lab.unique(name))
        os.makedirs(self.directory)
        self.options = list(options)
        self.process = None
        lab.opens(self)
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        usual = [] if self.sentinel else ['save ""', "appendonly no"]
        lines = [f"port {self.port}", "bind 127.0.0.1", f"dir {self.directory}", *usual, *self.options]
        config = self.lab.write(f"{os.path.basename(self.directory)}/engine.conf", "\n".join(lines) + "\n")
        self.process = Process(self.lab, os.path.basename(self.directory), [self.program, config] + (["--sentinel"] if self.sentinel else []))
        self.process.wait_listening(("127.0.0.1", self.port))

    def ask(self, *words):
        """The answer of a command: a text, a number, None or a list."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words))
            return answer_of(connection.makefile("rb"))

    def stop(self):
        if self.process:
            self.process.stop()

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.stopped = True
        self.process.overdue = False

    def findings(self):
        return self.process.findings()


def answer_of(stream):
    line = stream.readline().rstrip(b"\r\n")
    kind, rest = line[:1], line[1:]
    if kind == b"$":
        return None if rest == b"-1" else stream.read(int(rest) + 2)[:-2].decode()
    if kind == b"*":
        return None if rest == b"-1" else [answer_of(stream) for _ in range(int(rest))]
    return int(rest) if kind == b":" else rest.decode()
