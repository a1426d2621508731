#!/usr/bin/python3
"""Runs the end-to-end tests: the functions test_* of the files test_*.py beside this one.

    run.py [--builddir DIR] [--valgrind] [--quick] [--filter TEXT]... [--list] [--keep] [--jobs N] [--kills N] [--host HOST] [--parts NAME] [--again]

Each file runs in a process of its own, several at a time: N, and up to twice as many while the machine mostly waits. One line a
test; the last line counts.
With --again the tests that failed and that tests/unsteady.txt names run once more, each alone: what passes then depended on how
busy the machine was, and is named and counted at the end. No other test gets that second chance, and none where one of them has
a finding of valgrind, a sanitizer or the lab itself.
Exit status 0 when all passed. A test that can not run here counts as skipped and says what it needs.
"""

import argparse
import ctypes
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from harness.checks import Skip  # noqa: E402
from harness.lab import SOURCE, Lab, sanitized  # noqa: E402
from harness.suite import USUAL_SECONDS  # noqa: E402

# Started first, because they take longest.
SLOWEST_FIRST = ["test_icap_failures", "test_cache", "test_cost", "test_services", "test_disk_volume", "test_disk_faults", "test_faults"]
GRACE_SECONDS = 120
UNSTEADY = os.path.join(SOURCE, "tests", "unsteady.txt")
# What is in the text of a problem that a second run must not hide: findings of the lab when it closed, of sanitizers, of valgrind.
FINDINGS = ("afterwards:", "Sanitizer", "runtime error:", "definitely lost", "Invalid read", "Invalid write", "uninitialised")


class TimedOut(Exception):
    pass


def unsteady_tests():
    """The names in tests/unsteady.txt; one that ends with ".*" is each test of that file."""
    with open(UNSTEADY, encoding="utf-8") as lines:
        return tuple(line.split()[0].removesuffix("*") for line in lines if line.strip() and not line.startswith("#"))


def is_unsteady(test, names):
    return any(test == name or (name.endswith(".") and test.startswith(name)) for name in names)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builddir", default=os.environ.get("RETORT_BUILDDIR", os.path.join(SOURCE, "build")),
                        help="the build tree under test (default: ./build, or $RETORT_BUILDDIR)")
    parser.add_argument("--valgrind", action="store_true", help="only tests marked for it, under memcheck")
    parser.add_argument("--filter", action="append", default=[], help="only tests whose file.name contains this")
    parser.add_argument("--quick", action="store_true", help="without the tests that are marked as heavy")
    parser.add_argument("--list", action="store_true", help="names the tests and runs none")
    parser.add_argument("--keep", action="store_true", help="leaves the scratch directories")
    parser.add_argument("--jobs", type=int, default=2, help="files run at a time")
    parser.add_argument("--kills", type=int, help="how often the crash test of the disk kills the proxy (default: 20)")
    parser.add_argument("--host", choices=("icap", "inside", "thread", "process"), help="where the services run that "
                        "harness/services.py starts: at c-icap, or in the proxy, there also in threads or processes (default: icap, or $RETORT_HOST)")
    parser.add_argument("--parts", metavar="NAME", help="the proxy is proxy/retort-NAME, which tests/link-parts.sh has linked with fewer parts, such "
                        "as none or minimal; what needs the others is skipped")
    parser.add_argument("--again", action="store_true", help="run tests that failed once more, each alone")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        os.environ["RETORT_HOST"] = "icap" if options.host == "icap" else "inside"
        os.environ["RETORT_RUNS"] = options.host if options.host in ("thread", "process") else "worker"
    if options.parts:
        os.environ["RETORT_PARTS"] = options.parts
    if options.kills:
        os.environ["RETORT_KILLS"] = str(options.kills)  # tests are in processes of their own
    return options


def chosen(options, module):
    """The module's tests that these options ask for, in the order of the file."""
    tests = [value for name, value in vars(module).items() if name.startswith("test_") and callable(value)
             and value.__module__ == module.__name__]
    tests.sort(key=lambda test: test.__code__.co_firstlineno)
    if options.valgrind:
        tests = [test for test in tests if getattr(test, "memcheck", False)]
    if options.filter:
        tests = [test for test in tests
                 if any(part in f"{module.__name__}.{test.__name__}" for part in options.filter)]
    if options.quick or options.valgrind or sanitized(options.builddir):
        tests = [test for test in tests if not getattr(test, "heavy", None)]
    if options.only:
        tests = [test for test in tests if test.__name__ == options.only]
    return tests


# One file, in a process of its own.

def bound_resources():
    """No core files, no runaway logs; orphans of what we start come to us."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 30, 4 << 30))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def on_alarm(_signal, _frame):
    raise TimedOut()


def limited(call, limit):
    """Calls it under a time limit; returns what went wrong as text, or None."""
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        call()
    except TimedOut:
        return f"not done after {limit:g} s\n" + traceback.format_exc(limit=-6)
    except Skip:
        raise
    except AssertionError as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = next((frame for frame in reversed(frames) if "/harness/" not in frame.filename), frames[-1])
        return f"{os.path.basename(place.filename)}:{place.lineno}: {place.line}\n{error}"
    except Exception:  # pylint: disable=broad-except
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def emit(**record):
    print(json.dumps(record), flush=True)


def run_test(options, module, test, shared):
    lab = Lab(options.builddir, options.valgrind, options.keep, f"{module.__name__}.{test.__name__}")
    start = time.monotonic()
    limit = getattr(test, "seconds", USUAL_SECONDS) * lab.patience
    problem = skip = None
    emit(begin=f"{module.__name__}.{test.__name__}", limit=limit)
    try:
        problem = limited(lambda: test(lab, *shared[:test.__code__.co_argcount - 1]), limit)
    except Skip as reason:
        skip = str(reason)
    if problem:
        problem += "\n" + lab.tails()
    closing = limited(lambda: close_into(lab, findings := []) or raise_findings(findings), 60 * lab.patience)
    if closing:
        problem = (problem + "\n" if problem else "") + closing
    emit(test=f"{module.__name__}.{test.__name__}", seconds=round(time.monotonic() - start, 2),
         problem=problem, skip=None if problem else skip)


def close_into(lab, findings):
    findings += lab.close()


def raise_findings(findings):
    if findings:
        raise AssertionError("afterwards:\n" + "\n".join(findings))


def run_file(options):
    bound_resources()
    module = importlib.import_module(options.file)
    tests = chosen(options, module)
    shared, shared_lab = (), None
    if tests and hasattr(module, "share"):
        shared_lab = Lab(options.builddir, options.valgrind, options.keep, module.__name__)
        holder = []
        emit(begin=f"{module.__name__}.share", limit=120 * shared_lab.patience)
        try:
            problem = limited(lambda: holder.append(module.share(shared_lab)), 120 * shared_lab.patience)
        except Skip as reason:
            for test in tests:
                emit(test=f"{module.__name__}.{test.__name__}", seconds=0, problem=None, skip=str(reason))
            tests, problem = [], None
        if problem:
            emit(test=f"{module.__name__}.share", seconds=0, skip=None,
                 problem=f"what {len(tests)} tests share did not start: {problem}\n{shared_lab.tails()}")
            tests = []
        shared = tuple(holder)
    for test in tests:
        run_test(options, module, test, shared)
    if shared_lab:
        findings = []
        emit(begin=f"{module.__name__}.shared_peers", limit=60 * shared_lab.patience)
        problem = limited(lambda: close_into(shared_lab, findings), 60 * shared_lab.patience)
        if findings or problem:
            emit(test=f"{module.__name__}.shared_peers", seconds=0, skip=None,
                 problem="\n".join(findings + ([problem] if problem else [])))
    reap()
    os._exit(0)  # threads of a test's own servers may still wait


def reap():
    """Ends orphans that came to us because their parents, which we had started, have ended."""
    for _ in range(50):
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
                orphans = [int(pid) for pid in children.read().split()]
        except FileNotFoundError:
            return
        if not orphans:
            return
        for pid in orphans:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


# All files.

class Machine:
    """Which part of the processors' time nobody needs: they are idle, or what runs is niced, such as the builds of run.sh."""

    ENOUGH = 0.35

    def __init__(self):
        self.seen = self.spare_at = self.total = 0

    def has_room(self):
        """Has it had room since the last look? Looks once a second at most."""
        now = time.monotonic()
        if now < self.seen + 1:
            return False
        with open("/proc/stat", encoding="ascii") as file:
            times = [int(word) for word in file.readline().split()[1:9]]
        _, niced, _, idle, waits = times[:5]
        spare, total = niced + idle + waits, sum(times)
        share = (spare - self.spare_at) / max(1, total - self.total) if self.seen else 0
        self.seen, self.spare_at, self.total = now, spare, total
        return share >= self.ENOUGH


class Runner:
    def __init__(self, options, names):
        self.options = options
        self.machine = Machine()
        self.waiting = names
        self.running = []
        self.passed = self.failed = 0
        self.skipped = []
        self.failures = []
        self.lasting = False  # a failure that must not be tried again
        self.unsteady = []

    def command(self, name, only=None):
        command = [sys.executable, os.path.abspath(__file__), "--file", name, "--builddir", self.options.builddir]
        command += ["--valgrind"] if self.options.valgrind else []
        command += ["--keep"] if self.options.keep else []
        command += ["--quick"] if self.options.quick else []
        for part in self.options.filter:
            command += ["--filter", part]
        command += ["--only", only] if only else []
        return command

    def again(self):
        """Each unsteady test that failed, alone."""
        names = unsteady_tests()
        chances = [test for test in self.failures if is_unsteady(test, names)]
        if not chances:
            return
        self.failures = [test for test in self.failures if test not in chances]
        print("\nagain, each alone:")
        for test in chances:
            self.failed -= 1
            name, function = test.split(".", 1)
            before = self.passed
            self.running.append(File(name, self.command(name, function)))
            self.run()
            if self.passed > before and test not in self.failures:
                self.unsteady.append(test)

    def start(self):
        name = self.waiting.pop(0)
        self.running.append(File(name, self.command(name)))

    def run(self):
        while self.waiting or self.running:
            while self.waiting and len(self.running) < max(1, self.options.jobs):
                self.start()
            if self.waiting and 1 < self.options.jobs <= len(self.running) < 2 * self.options.jobs and self.machine.has_room():
                self.start()
            for file in list(self.running):
                for record in file.records():
                    self.report(record)
                if file.done():
                    self.running.remove(file)
                    for record in file.last_words():
                        self.report(record)
            time.sleep(0.05)

    def report(self, record):
        if record.get("problem"):
            self.failed += 1
            self.failures.append(record["test"])
            self.lasting |= any(word in record["problem"] for word in FINDINGS) or record["test"].endswith((".file", ".share", ".shared_peers"))
            print(f"FAIL {record['test']} ({record['seconds']} s)")
            print("    " + record["problem"].rstrip().replace("\n", "\n    "))
        elif record.get("skip"):
            self.skipped.append(record["test"])
            print(f"SKIP {record['test']}: {record['skip']}")
        elif record.get("test"):
            self.passed += 1
            print(f"ok   {record['test']} ({record['seconds']} s)")
        else:
            print(record["text"])
        sys.stdout.flush()


class File:
    """A test file under way."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.rest = b""
        self.current = None
        self.overdue_at = time.monotonic() + GRACE_SECONDS

    def records(self):
        data = self.process.stdout.read()
        if data:
            self.rest += data
        lines = self.rest.split(b"\n")
        self.rest = lines.pop()
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                yield {"text": line.decode("utf-8", "replace")}
                continue
            if not isinstance(record, dict) or not ("begin" in record or "test" in record):
                yield {"text": line.decode("utf-8", "replace")}
            elif "begin" in record:
                self.current = record["begin"]
                self.overdue_at = time.monotonic() + record["limit"] + GRACE_SECONDS
            else:
                self.current = None
                yield record

    def done(self):
        if self.process.poll() is not None:
            return True
        if time.monotonic() < self.overdue_at:
            return False
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return True

    def last_words(self):
        yield from self.records()
        if self.process.returncode != 0:
            yield {"test": self.current or f"{self.name}.file", "seconds": 0, "skip": None,
                   "problem": f"its process ended with {self.process.returncode}: {self.rest.decode('utf-8', 'replace')}"}


def main():
    # A shell without job control starts what it leaves behind with SIGINT ignored, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = parse_arguments()
    if options.file:
        return run_file(options)
    names = sorted(name[:-3] for name in os.listdir(HERE) if name.startswith("test_") and name.endswith(".py"))
    names.sort(key=lambda name: SLOWEST_FIRST.index(name) if name in SLOWEST_FIRST else len(SLOWEST_FIRST))
    if options.list or options.filter or options.valgrind:
        modules = {name: chosen(options, importlib.import_module(name)) for name in names}
        names = [name for name in names if modules[name]]
        if options.list:
            for name in names:
                for test in modules[name]:
                    print(f"{name}.{test.__name__}")
            return 0
    runner = Runner(options, names)
    start = time.monotonic()
    runner.run()
    if options.again and not runner.lasting:
        runner.again()
    if runner.unsteady:
        print("\npassed only when run again, alone:\n    " + "\n    ".join(runner.unsteady))
    if runner.failures:
        print("\nfailed:\n    " + "\n    ".join(runner.failures))
    print(f"\n{time.monotonic() - start:.0f} s")
    if options.again:
        print(f"{len(runner.unsteady)} of them passed only alone")
    skipped = f", {len(runner.skipped)} skipped" if runner.skipped else ""
    print(f"{runner.passed} passed, {runner.failed} failed{skipped}")
    return 1 if runner.failed or not runner.passed else 0


if __name__ == "__main__":
    sys.exit(main())
