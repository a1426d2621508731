"""The bench a test works at: a scratch directory, and everything that was started there.

close() stops it all in reverse order and returns what was wrong with how it ran.
"""

import functools
import os
import re
import shutil
import subprocess
import tempfile

from .checks import Skip

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
SOURCE = os.path.dirname(TESTS)
DATA = os.path.join(TESTS, "data", "cache")
SUPPRESSIONS = os.path.join(TESTS, "valgrind")


def sanitized(builddir, kind="address"):
    """Was this build made with AddressSanitizer? With "thread": with ThreadSanitizer?"""
    try:
        with open(os.path.join(builddir, "Makefile"), encoding="utf-8", errors="replace") as makefile:
            return any(line.startswith("RETORT_LDFLAGS") and kind in line for line in makefile)
    except FileNotFoundError:
        return False


@functools.lru_cache(maxsize=None)
def parts_left_out(program):
    """Those that this retort was built without."""
    said = subprocess.run([program, "-V"], capture_output=True, text=True, check=False).stdout
    found = re.search("^parts: .*; left out: (.*)$", said, re.MULTILINE)
    return found.group(1).split(", ") if found else []


class Lab:
    """The environment variable RETORT_PARTS (run.py --parts) names a retort with fewer parts, which tests/link-parts.sh has linked."""

    def __init__(self, builddir, valgrind=False, keep=False, name="lab"):
        self.builddir = os.path.abspath(builddir)
        self.valgrind = valgrind
        self.asan = sanitized(builddir)
        self.tsan = sanitized(builddir, "thread")
        self.keep = keep
        # How much longer things may take than in a plain build.
        self.patience = 12 if valgrind else 3 if self.asan else 1
        self.directory = tempfile.mkdtemp(prefix=f"retort-{name}-")
        os.chmod(self.directory, 0o755)
        self.opened = []
        self.names = {}

    def path(self, name):
        return os.path.join(self.directory, name)

    def unique(self, name):
        """name, name-2, name-3, ..."""
        self.names[name] = self.names.get(name, 0) + 1
        return name if self.names[name] == 1 else f"{name}-{self.names[name]}"

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb" if isinstance(text, bytes) else "w") as out:
            out.write(text)
        return path

    def built(self, name):
        """A program or module of the build tree."""
        parts = os.environ.get("RETORT_PARTS")
        path = os.path.join(self.builddir, f"{name}-{parts}" if parts and name == "proxy/retort" else name)
        if not os.path.exists(path):
            raise AssertionError(f"{path} does not exist: build first, or give --builddir")
        return path

    def has_part(self, part):
        return part not in parts_left_out(self.built("proxy/retort"))

    def needs(self, part):
        """A test that needs a part which the retort under test was built without is skipped."""
        if not self.has_part(part):
            raise Skip(f"needs the part {part}")

    def data(self, name):
        """A file of the fetched test data."""
        path = os.path.join(DATA, name)
        if not os.path.exists(path):
            raise AssertionError(f"{path} does not exist: run tests/data/fetch.sh")
        return path

    def read_data(self, name):
        with open(self.data(name), "rb") as data:
            return data.read()

    def opens(self, thing):
        """Registers something with stop() and findings()."""
        self.opened.append(thing)
        return thing

    def environment(self):
        """For our own programs: the one that runs services in processes of their own, and under sanitizers how those behave."""
        of_runs = {"RETORT_SERVICE_PROGRAM": os.path.join(self.builddir, "common/retort-service")}
        return {
            **of_runs,
            "ASAN_OPTIONS": "abort_on_error=0:exitcode=99:detect_leaks=1:detect_stack_use_after_return=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "LSAN_OPTIONS": "suppressions=" + os.path.join(SUPPRESSIONS, "lsan.supp"),
        } if self.asan else of_runs

    def valgrind_command(self, prefix):
        suppressions = [f"--suppressions={os.path.join(SUPPRESSIONS, name)}"
                        for name in sorted(os.listdir(SUPPRESSIONS)) if name.endswith(".supp") and name != "lsan.supp"]
        return ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full",
                "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite", "--num-callers=30",
                "--trace-children=yes", "--read-inline-info=no", "--trace-children-skip=/usr/bin/*,/bin/*,*/python3*", "--child-silent-after-fork=no",
                "-v", "--log-file=" + prefix + ".%p", *suppressions]

    def stop_all(self):
        for thing in reversed(self.opened):
            thing.stop()

    def close(self, failed=False):
        findings = []
        self.stop_all()
        for thing in reversed(self.opened):
            findings += thing.findings()
        if self.keep:
            findings = findings and [*findings, f"kept: {self.directory}"]
            print(f"    kept: {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
        return findings

    def tails(self):
        """The last words of everything that was started, for a failed test's report."""
        return "\n".join(f"    {thing.process.name}:\n{thing.process.tail()}"
                         for thing in self.opened if getattr(thing, "process", None))
