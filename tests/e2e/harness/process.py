"""A process under the harness: started, waited for, stopped by its own id, and judged by what it left.

Each process leads a session of its own; its process group holds what it forks, and nothing else is
ever signalled. What counts against a process: an unexpected exit status, a failed assertion, and
reports of AddressSanitizer, UBSan or valgrind.
"""

import glob
import os
import re
import signal
import socket
import subprocess
import time

from . import checks

REPORTS = re.compile(
    rb"ERROR: AddressSanitizer|ERROR: LeakSanitizer|WARNING: ThreadSanitizer|runtime error:"
    rb"|[Aa]ssertion failed|Assertion `|AddressSanitizer:DEADLYSIGNAL")


class Process:
    def __init__(self, lab, name, arguments, *, environment=None, stop_signal=signal.SIGTERM,
                 stop_seconds=10, memcheck=False, expected_status=0, nice=None, supplementary_fds=(), before_start=None):
        self.lab = lab
        self.name = name
        self.stop_signal = stop_signal
        self.stop_seconds = stop_seconds * lab.patience
        self.expected_status = expected_status
        self.killed = False
        self.stopped = False
        self.log_path = lab.path(f"{name}.out")
        self.memcheck_prefix = lab.path(f"{name}.valgrind") if memcheck and lab.valgrind else None
        arguments = [str(argument) for argument in arguments]
        if self.memcheck_prefix:
            arguments = lab.valgrind_command(self.memcheck_prefix) + arguments
        with open(self.log_path, "ab") as log:
            self.popen = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                cwd=lab.directory, env={**os.environ, **(environment or {})},
                start_new_session=True, pass_fds=supplementary_fds,
                preexec_fn=(lambda: os.nice(nice)) if nice else before_start)
        self.pid = self.popen.pid

    def log(self):
        with open(self.log_path, "rb") as log:
            return log.read().decode("utf-8", "replace")

    def tail(self, lines=15):
        return "\n".join("    | " + line for line in self.log().splitlines()[-lines:])

    def running(self):
        return self.popen.poll() is None

    def wait_ready(self, ready, seconds=10):
        """Waits until ready() is true; an early exit fails at once with the process's own words."""
        deadline = time.monotonic() + seconds * self.lab.patience
        while not ready():
            if not self.running():
                raise AssertionError(
                    f"{self.name} ended with {self.popen.returncode} instead of starting:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name} was not ready in time:\n{self.tail()}")
            time.sleep(0.01)

    def wait_listening(self, address, seconds=10):
        """Waits until it accepts connections there."""
        def accepts():
            try:
                socket.create_connection(address, timeout=1).close()
                return True
            except OSError:
                return False
        self.wait_ready(accepts, seconds)

    def send_signal(self, number):
        if self.running():
            os.kill(self.pid, number)

    def wait(self, seconds):
        """The exit status, or a failure when it still runs after `seconds`."""
        try:
            return self.popen.wait(seconds * self.lab.patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {seconds} s:\n{self.tail()}") from None

    def kill(self):
        """kill -9, on a test's purpose: the exit status is no finding."""
        self.killed = True
        self._kill_group()
        self.popen.wait()

    def _kill_group(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def stop(self):
        if self.stopped:
            return
        self.stopped = True
        self.overdue = False
        if self.running():
            self.send_signal(self.stop_signal)
            try:
                self.popen.wait(self.stop_seconds)
            except subprocess.TimeoutExpired:
                self.overdue = True
        self._kill_group()
        self.popen.wait()

    def findings(self):
        """What is wrong with how this process ran; call after stop()."""
        found = []
        status = self.popen.returncode
        if self.overdue:
            found.append(f"{self.name} did not stop within {self.stop_seconds:g} s")
        elif status != self.expected_status and not self.killed:
            found.append(f"{self.name} exited with {status}, expected {self.expected_status}:\n{self.tail()}")
        found += [f"{self.name} reported: {line}" for line in self._reports()]
        found += self._memcheck_findings()
        return found

    def _reports(self):
        with open(self.log_path, "rb") as log:
            lines = log.read().splitlines()
        for number, line in enumerate(lines):
            if REPORTS.search(line):
                yield b"\n    | ".join(lines[number:number + 25]).decode("utf-8", "replace")
                return

    def _memcheck_findings(self):
        if not self.memcheck_prefix:
            return []
        found = []
        for path in glob.glob(self.memcheck_prefix + ".*"):
            with open(path, encoding="utf-8", errors="replace") as report:
                text = report.read()
            if self._memcheck_bad(text):
                found.append(f"valgrind on {self.name} ({os.path.basename(path)}):\n" + text[:6000])
        return found

    @staticmethod
    def _memcheck_bad(text):
        summary = re.search(r"ERROR SUMMARY: (\d+) errors", text)
        # A process killed by a signal leaves no summary; errors before that stand in the report.
        return int(summary.group(1)) > 0 if summary else bool(re.search(r"== (Invalid|Conditional|Syscall)", text))


class Daemon:
    """What a test opens for the sake of one process, `self.process`."""

    process = None

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.process.findings()


def status_field(pid, name):
    """A number from /proc/PID/status, such as VmHWM in kB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    raise AssertionError(f"{name} is not in /proc/{pid}/status")


def nice_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[16])


def children_of(pid):
    """Of all its threads: each one has those that it has started."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as children:
                found += [int(child) for child in children.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass  # the thread has ended meanwhile
    return sorted(found)


def descendants_of(pid):
    found = []
    for child in children_of(pid):
        found += [child] + descendants_of(child)
    return found


def command_of(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as command:
        return command.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()


def _states(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        try:
            with open(path, encoding="ascii", errors="replace") as stat:
                found.append(stat.read().rsplit(")", 1)[1].split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # the thread has ended meanwhile
    return found


def stand_still(pid, seconds=30):
    """Stops a process and waits until each of its threads stands: they run on for a moment behind the signal."""
    os.kill(pid, signal.SIGSTOP)
    checks.until(lambda: all(state in "Tt" for state in _states(pid)), seconds, f"process {pid} to stand still")


def gone(pid):
    """True when no such process lives (a zombie counts as gone)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_gone(pid, seconds):
    checks.until(lambda: gone(pid), seconds, f"process {pid} to end")
