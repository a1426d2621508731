"""The proxy is killed (kill -9) again and again under load, on the same disk: whatever it serves
afterwards is whole and right, most of what it had is there, and nothing comes back that was removed.

run.py --kills N sets how often; 20 unless told.
"""

import os
import random
import threading
import time
from urllib.parse import quote

from harness import wire
from harness.checks import equal, true
from harness.origin import Origin
from harness.own import Own, Wrong
from harness.retort import Retort
from harness.suite import heavy, seconds

KILLS = int(os.environ.get("RETORT_KILLS", "20"))
NAMES = 3000
# Bytes stored before a kill that are certainly on disk, and that the ring (64 MB) has not reached again.
SETTLED_BYTES, RECENT_BYTES = 2 << 20, 24 << 20
SETTLED = 3  # seconds after which what a POST removes is, with a writer that has to wait for the processor


def length_of(number):
    """From 100 bytes to 4 MB, most of them small."""
    chance = random.Random(number)
    share = chance.random()
    low, high = (100, 20_000) if share < 0.85 else (20_000, 300_000) if share < 0.97 else (300_000, 4 << 20)
    return int(low * (high / low) ** chance.random())


class Crash:
    """What all threads know: whether the proxy should be there, and what can be expected of it."""

    def __init__(self, origin, proxy):
        self.own = Own(origin)
        self.proxy = proxy
        self.lock = threading.Lock()
        self.generation = 1
        self.alive = True
        self.over = False
        self.problems = []
        self.requests = 0
        self.stored = []  # (path, kind, length, version) that came from the origin, in order
        self.least = {}   # path: the least version that may be seen, and when that became so

    def fail(self, problem):
        with self.lock:
            self.problems.append(problem)

    def removed(self, path, settles_later=False):
        """What is there now must not be seen again."""
        with self.lock:
            self.least[path] = (self.own.version() + 1, time.monotonic() if settles_later else 0)


class Client:
    """One thread's connection, made anew after each kill; answers are checked on the way."""

    def __init__(self, crash):
        self.crash = crash
        self.wire = None
        self.generation = 0

    def exchange(self, method, url, headers=None):
        """The response; None when the proxy was killed meanwhile."""
        crash = self.crash
        generation = crash.generation
        try:
            if self.wire is None or self.generation != generation:
                self.close()
                self.wire, self.generation = wire.Wire(crash.proxy.forward, timeout=30), generation
            self.wire.send(wire.request(method, url, headers, body=b"" if method == "POST" else None))
            return self.wire.response(method)
        except (OSError, wire.Truncated, wire.Silence) as error:
            self.close()
            if crash.alive and generation == crash.generation:
                crash.fail(f"{method} {url} while the proxy was up: {error!r}")
            time.sleep(0.02)
            return None

    def close(self):
        if self.wire:
            self.wire.close()
        self.wire = None

    def get(self, path, n, kind=None, **arguments):
        """The version that was served; None when there was no answer."""
        crash = self.crash
        least = crash.least.get(path, (0, 0))[0]
        headers = {"X-Kind": kind} if kind else {}
        response = self.exchange("GET", crash.own.url(path, n, **arguments), headers)
        if response is None:
            return None
        version = crash.own.check(path, n, response, kind or "-")
        if version < least:
            raise Wrong(f"{path}: version {version} was removed before {least} was asked for")
        with crash.lock:
            crash.requests += 1
            if "fwd=" in response.header("Cache-Status"):
                crash.stored.append((path, kind, n, version))
        return version


def guarded(crash, work):
    def run():
        client = Client(crash)
        chance = random.Random(threading.get_ident())
        while not crash.over:
            try:
                work(client, chance)
            except Exception as error:  # pylint: disable=broad-except
                crash.fail(f"{type(error).__name__}: {error}")
                client.close()
        client.close()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def load(client, chance):
    """Popular names more often; one in ten varies."""
    number = int(NAMES * chance.random() ** 2)
    if number % 10 == 0:
        client.get(f"/own/{number}", length_of(number), chance.choice(("red", "blue", "green")), vary="X-Kind")
    else:
        client.get(f"/own/{number}", length_of(number))


def delete(client, path):
    url = quote(client.crash.own.url(path, 3000), safe="")
    answer = client.crash.proxy.admin("DELETE", f"/cache/object?url={url}")
    true(answer.status in (200, 404), f"DELETE {path}: {answer.status} {answer.text()[:200]}")


def purge_prefix(client, path):
    prefix = quote(client.crash.own.origin.url(path), safe="")
    answer = client.crash.proxy.admin("POST", f"/cache/purge?prefix={prefix}")
    equal(answer.status, 200, "POST /cache/purge")


def ban(client, path):
    answer = client.crash.proxy.admin("POST", "/cache/bans?regex=" + quote(path + "[?]", safe=""))
    equal(answer.status, 200, f"POST /cache/bans: {answer.text()[:200]}; status")


removals = {"number": 0}


def remove(client, chance):
    """One thread fills names of its own and removes them, by every way there is; some it fills again."""
    removals["number"] += 1
    way = chance.choice(("delete", "purge", "ban", "post"))
    path = f"/own/{way}/{removals['number']}"
    if client.get(path, 3000) is None:
        return
    if chance.random() < 0.5:
        time.sleep(chance.random() * 0.05)
    try:
        if way == "post":
            if client.exchange("POST", client.crash.own.url(path, 3000)) is None:
                return
        else:
            {"delete": delete, "purge": purge_prefix, "ban": ban}[way](client, path)
    except (OSError, wire.Truncated):
        return  # killed before it was confirmed
    client.crash.removed(path, settles_later=way == "post")
    if chance.random() < 0.3:
        client.get(path, 3000)


def recall(crash, newest):
    """After a restart: of what was stored last, how much is served without the origin, of how much?"""
    client, sample, total = Client(crash), [], 0
    seen = set()
    for path, kind, n, version in reversed(crash.stored):
        total += n
        if total > RECENT_BYTES:
            break
        if total > SETTLED_BYTES and (path, kind) not in seen and path not in crash.least:
            sample.append((path, kind, n, version))
        seen.add((path, kind))
    sample = random.sample(sample, min(40, len(sample)))
    remembered = 0
    for path, kind, n, _ in sample:
        version = client.get(path, n, kind, **({"vary": "X-Kind"} if kind else {}))
        remembered += version is not None and version <= newest
    client.close()
    return remembered, len(sample)


def check_removed(crash, killed_at):
    """Some of what was removed before the kill; Client.get() looks at the version."""
    client = Client(crash)
    with crash.lock:
        removed = [path for path, (_, when) in crash.least.items() if when < killed_at - SETTLED]
    for path in random.sample(removed, min(30, len(removed))) + removed[-5:]:
        client.get(path, 3000)
    client.close()


def kill_once(crash):
    """A while of load, a kill, a restart, and what is left then."""
    time.sleep(random.uniform(0.2, 1.5))
    newest = crash.own.version()
    crash.alive = False
    killed_at = time.monotonic()
    crash.proxy.kill()
    crash.proxy.start()
    crash.generation += 1
    crash.alive = True
    counts = recall(crash, newest)
    check_removed(crash, killed_at)
    return counts


@heavy("it needs speed to turn the ring")
@seconds(60 + 5 * KILLS)
def test_kills_under_load(lab):
    origin = Origin(lab)
    volume = lab.path("volume")
    os.makedirs(volume)
    proxy = Retort(lab, workers=2, cache={"memory": "8MB", "max_object": "8MB", "disk": {volume: {"size": "64MB"}}})
    crash = Crash(origin, proxy)
    threads = [guarded(crash, load) for _ in range(3)] + [guarded(crash, remove)]
    remembered = asked = 0
    try:
        for _ in range(KILLS):
            found, sampled = kill_once(crash)
            remembered, asked = remembered + found, asked + sampled
            true(not crash.problems, "\n".join(crash.problems[:5]))
    finally:
        crash.over = True
        for thread in threads:
            thread.join(30)
    print(f"    {KILLS} kills, {crash.requests} responses checked, {remembered} of {asked} remembered, "
          f"{len(crash.least)} removals, {proxy.status().get('disk')}")
    true(not crash.problems, "\n".join(crash.problems[:5]))
    true(asked >= 10 * KILLS and remembered >= 0.6 * asked, f"{remembered} of {asked} were remembered after a kill")
    true(len(crash.least) >= 5 * KILLS, f"only {len(crash.least)} removals")
