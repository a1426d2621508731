"""A proxy with one volume, whose every answer is checked byte by byte; and the same with a disk that fails on demand.

    bench = Bench(lab)
    versions = bench.fill(names("r", 20), 3000)
    bench.on_disk(20)
    bench.proxy.restart()
    bench.expect_hits(versions, 3000)
"""

import json
import os
import subprocess
import threading

from . import ports, wire
from .checks import equal, true, until
from .disk import gauge, volume_of
from .disk_faults import DiskFaults
from .origin import Origin
from .own import Own
from .retort import Retort


class Bench:
    """An origin, a proxy with one volume, and the names that were asked for."""

    def __init__(self, lab, memory="8MB", disk=None, cache=None, directory=None, **options):
        self.lab = lab
        self.origin = Origin(lab)
        self.own = Own(self.origin, 24 << 20)
        self.directory = directory or lab.path("volume")
        os.makedirs(self.directory, exist_ok=True)
        self.volume = volume_of(self.directory)
        self.proxy = Retort(lab, cache={"memory": memory, **(cache or {}),
                                        "disk": {self.directory: {"size": "64MB", **(disk or {})}}}, **options)

    def get(self, path, n, headers=None, kind=None, **arguments):
        """A GET that is checked byte by byte: (was it a hit?, version)."""
        headers = {**(headers or {}), **({"X-Kind": kind} if kind else {})}
        response = self.proxy.get(self.own.url(path, n, **arguments), headers)
        return is_hit(response), self.own.check(path, n, response, kind or "-")

    def fill(self, paths, n, **arguments):
        """Asks for each; returns their versions."""
        return {path: self.get(path, n, **arguments)[1] for path in paths}

    def on_disk(self, count):
        """Waits until so many objects are on disk."""
        until(lambda: gauge(self.proxy, "objects") >= count, 10 * self.lab.patience,
              f"{count} objects on disk, there are {gauge(self.proxy, 'objects')}")

    def expect_hits(self, versions, n, **arguments):
        for path, version in versions.items():
            equal(self.get(path, n, **arguments), (True, version), f"{path}: hit, version")

    def cache(self, *arguments, expect=0):
        text = self.proxy.ctl("cache", "--json", *arguments, expect=expect)
        return json.loads(text) if text.strip() else None

    def listed(self, *arguments):
        return sorted(entry["url"] for entry in self.cache("list", *arguments)["objects"])


class FaultyBench(Bench):
    """A bench whose disk fails on demand."""

    def __init__(self, lab, **options):
        directory = lab.path("volume")
        self.faults = DiskFaults(lab, os.path.join(directory, "retort.cache"))
        options["cache"] = {"disk_io": "threads", **options.get("cache", {})}  # io_uring goes past the faults
        super().__init__(lab, environment=self.faults.environment(), **options)

    def try_get(self, path, n):
        """Like get, but None where the connection broke off in the middle, for all to see."""
        try:
            return self.get(path, n)
        except wire.Truncated as error:
            if error.response is not None:
                body = self.own.body(path, n, self.own.check_head(path, error.response))
                self.own.check_bytes(path, body[:len(error.response.body)], error.response.body)
            return None

    def log(self):
        return self.proxy.process.log()


def is_hit(response):
    return "hit" in response.header("Cache-Status").split(";")[1].strip()


def names(what, count):
    return [f"/own/{what}/{number}" for number in range(count)]


def refused(lab, cache, environment=None):
    """What retort says when it does not start with this cache."""
    config = lab.write("refused.conf", f'listen "127.0.0.1:{ports.take()}" {{ mode = forward }}\n{cache}\n')
    done = subprocess.run([lab.built("proxy/retort"), "-f", config], capture_output=True, text=True, check=False,
                          timeout=20 * lab.patience, env={**os.environ, **lab.environment(), **(environment or {})})
    equal(done.returncode, 1, f"exit status; it said: {done.stdout}{done.stderr}")
    return done.stderr


def in_threads(count, work):
    problems = []

    def run(number):
        try:
            work(number)
        except BaseException as error:  # pylint: disable=broad-except
            problems.append(f"{type(error).__name__}: {error}")
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    true(not problems, "\n".join(problems[:3]))
