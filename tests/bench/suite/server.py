"""One process under test, alone on its core, with all that it forks."""

import socket
import ssl
import time

from harness import wire
from harness.process import Process, descendants_of

from .machine import SERVER_CORE, cpu_seconds, memory_kb, pinned

START_SECONDS = 30
NAME = "bench.test"  # in the certificate of servers with TLS
TRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TRUSTING.check_hostname, TRUSTING.verify_mode = False, ssl.CERT_NONE


class Missing(Exception):
    """A peer that is not installed: its rows are left out."""


class Server:
    """`kind` is whose figures these are (retort, nginx, ...), `name` tells several of a kind apart. `secure`: it serves TLS."""

    def __init__(self, lab, kind, name, command, port, *, expected_status=0, environment=None, core=SERVER_CORE,
                 secure=False):
        self.kind, self.name, self.port, self.secure = kind, name, port, secure
        self.address = ("127.0.0.1", port)
        begin = time.monotonic()
        self.process = Process(lab, name, pinned(core, command), stop_seconds=30, expected_status=expected_status,
                               environment=environment)
        lab.opens(self)
        while not self.answers():
            if not self.process.running() or time.monotonic() > begin + START_SECONDS:
                raise AssertionError(f"{name} did not start:\n{self.process.tail()}")
            time.sleep(0.001)
        self.start_seconds = time.monotonic() - begin

    def answers(self):
        try:
            wire.Wire(self.address, timeout=1).close()
            return True
        except OSError:
            return False

    def processes(self):
        return [self.process.pid] + descendants_of(self.process.pid)

    def cpu_seconds(self):
        return sum(cpu_seconds(pid) for pid in self.processes())

    def memory_kb(self):
        return sum(memory_kb(pid) for pid in self.processes())

    def url(self, path):
        return f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}{path}"

    def connect(self):
        """A socket to it; its certificate is not looked at."""
        connection = socket.create_connection(self.address, timeout=20)
        return TRUSTING.wrap_socket(connection, server_hostname=NAME) if self.secure else connection

    def fetch(self, path, headers=None):
        with wire.Wire(self.address) as asked:
            if self.secure:
                asked.socket = TRUSTING.wrap_socket(asked.socket, server_hostname=NAME)
            asked.send(wire.request("GET", path, headers, host=f"127.0.0.1:{self.port}"))
            return asked.response()

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.process.findings()
