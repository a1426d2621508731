"""Debian's c-icap from a scratch directory, with its own echo services or with ours.

    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    cicap.uri("echo")
    cicap.entries()          what its access log says: one Entry for each ICAP request

The access log holds the transaction id that the proxy sent with each request.
"""

import collections
import os
import re
import signal
import subprocess

from . import checks, ports, wire
from .process import Process, descendants_of

DEBIAN_MODULES = "/usr/lib/x86_64-linux-gnu/c_icap"

CONFIG = """
PidFile {directory}/c-icap.pid
CommandsSocket {directory}/c-icap.ctl
Timeout {timeout}
MaxKeepAliveRequests -1
KeepAliveTimeout 600
StartServers {children}
MaxServers {children}
MinSpareThreads 1
MaxSpareThreads {threads}
ThreadsPerChild {threads}
MaxRequestsPerChild 0
InterProcessSharedMemScheme mmap
Port {host}:{port}
TmpDir {directory}
MaxMemObject 131072
DebugLevel 1
Pipelining on
SupportBuggyClients off
ModulesDir {modules}
ServicesDir {modules}
LoadMagicFile /etc/c-icap/c-icap.magic
ServerLog {directory}/server.log
LogFormat harness "%ts %im %iu %is %{{X-Transaction-ID}}>ih %{{X-Client-IP}}>ih %{{Preview}}>ih"
{access_log}
{services}
{extra}
"""

Module = collections.namedtuple("Module", "name file options", defaults=("",))
Entry = collections.namedtuple("Entry", "method service status transaction client preview")


class Cicap:
    """`threads` is how many connections each of `children` processes can serve at a time."""

    def __init__(self, lab, modules, modules_dir=DEBIAN_MODULES, extra="", children=1, threads=20,
                 memcheck=False, name="c-icap", timeout=300, access_log=True, remote=None):
        self.lab = lab
        self.port = ports.take()
        self.remote = remote  # the host that it runs on; None: this one
        self.host = remote.address if remote else "127.0.0.1"
        self.authority = f"{self.host}:{self.port}"
        self.name = lab.unique(name)
        self.directory = lab.path(self.name)
        os.makedirs(self.directory)
        self.modules = modules
        self.memcheck = memcheck
        self.config = lab.write(f"{self.name}/c-icap.conf", self._config(modules_dir, extra, children, threads, timeout, access_log))
        self.process = None
        lab.opens(self)
        self.start()

    def _config(self, modules_dir, extra, children, threads, timeout, access_log):
        lines = []
        for module in self.modules:
            path = module.file if module.file.startswith("/") else os.path.join(modules_dir, module.file)
            lines.append(f"Service {module.name} {path}")
            if module.options:
                lines.append(module.options)
        return CONFIG.format(directory=self.directory, host=self.host, port=self.port, modules=modules_dir, children=children,
                             threads=threads, timeout=timeout,
                             access_log=f"AccessLog {self.directory}/access.log harness" if access_log else "",
                             services="\n".join(lines), extra=extra)

    def start(self):
        """Also for starting it again, at the same port, after it was killed."""
        for leftover in ("c-icap.pid", "c-icap.ctl"):
            path = os.path.join(self.directory, leftover)
            if os.path.exists(path):
                os.unlink(path)
        under = self.remote.under if self.remote else []
        self.process = Process(self.lab, self.name, under + ["c-icap", "-N", "-f", self.config],
                               environment=self._environment(), memcheck=self.memcheck, stop_seconds=25)
        self.process.wait_ready(self._ready, 15)

    def _environment(self):
        if not self.lab.asan:
            return {}
        # c-icap itself is not instrumented and never frees some of its configuration; each module
        # has a symbol `service`, which is what c-icap wants of them.
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        return {**self.lab.environment(), "LD_PRELOAD": os.path.realpath(library),
                "ASAN_OPTIONS": self.lab.environment()["ASAN_OPTIONS"].replace("detect_leaks=1", "detect_leaks=0")
                + ":detect_odr_violation=0"}

    def _ready(self):
        try:
            return all(self.options(module.name).status == 200 for module in self.modules)
        except (OSError, wire.Truncated, wire.Silence):
            return False

    def options(self, name):
        """The service's answer to OPTIONS."""
        with wire.Wire((self.host, self.port), timeout=2 * self.lab.patience) as connection:
            connection.send(f"OPTIONS {self.uri(name)} ICAP/1.0\r\nHost: {self.authority}\r\n"
                            f"Connection: close\r\n\r\n".encode())
            return connection.head()

    def uri(self, name):
        return f"icap://{self.authority}/{name}"

    def reconfigure(self):
        """It reads its configuration again, and starts new children that serve new connections."""
        with open(os.path.join(self.directory, "c-icap.ctl"), "w", encoding="ascii") as control:
            control.write("reconfigure")

    def children(self):
        return descendants_of(self.process.pid)

    def entries(self, transaction=None, method=None):
        """The access log, OPTIONS left out; of one transaction id, of one method."""
        entries = []
        for line in self._read("access.log").splitlines():
            parts = line.split(" ")
            if len(parts) != 7 or parts[1] == "OPTIONS":
                continue
            service = re.sub(r"^(?:icap://[^/]*)?/?([^?]*).*$", r"\1", parts[2])
            entries.append(Entry(parts[1], service, int(parts[3]), *parts[4:]))
        return [entry for entry in entries
                if (transaction is None or entry.transaction == transaction)
                and (method is None or entry.method == method)]

    def wait_entries(self, count, seconds=10, **which):
        checks.until(lambda: len(self.entries(**which)) >= count, seconds * self.lab.patience,
                     f"{count} entries {which or ''} in c-icap's access log")
        return self.entries(**which)

    def count(self):
        return len(self.entries())

    def server_log(self):
        return self._read("server.log")

    def _read(self, name):
        try:
            with open(os.path.join(self.directory, name), encoding="utf-8", errors="replace") as log:
                return log.read()
        except FileNotFoundError:
            return ""

    def kill(self):
        self.process.kill()

    def send_signal_to_all(self, number):
        for pid in [self.process.pid] + self.children():
            os.kill(pid, number)

    def freeze(self):
        """It accepts (the kernel does) and says nothing."""
        self.send_signal_to_all(signal.SIGSTOP)

    def thaw(self):
        self.send_signal_to_all(signal.SIGCONT)

    def stop(self):
        if self.process:
            self.process.stop()

    def findings(self):
        return self.process.findings() if self.process else []
