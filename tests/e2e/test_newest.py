"""Of the stored responses that a request may have, the newest is used (RFC 9111 §4), wherever they stand.

"When more than one suitable response is stored, a cache MUST use the most recent one (as determined by the Date header
field)."
"""

import os
import random
import threading
from urllib.parse import quote

from harness import wire
from harness.checks import equal, raises, true, until
from harness.disk import gauge
from harness.disk_faults import DiskFaults
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck

AGAIN = {"Cache-Control": "no-cache"}


class Newest:
    """A proxy with little memory and a disk; each answer of its origin has another version, and the Vary and the length
    that the request says. A request with X-Confirm gets a 304 when it asks for one; the body of one with X-Slow ends
    when `go_on` is set, or breaks off there where that says "broken"."""

    def __init__(self, lab, faulty=False, **cache):
        self.lab, self.versions, self.fillers = lab, 0, 0
        self.go_on = threading.Event()
        self.origin = RawOrigin(lab, self.answer)
        directory = lab.path("volume")
        os.makedirs(directory)
        self.faults = DiskFaults(lab, os.path.join(directory, "retort.cache"))
        self.proxy = Retort(lab, environment=self.faults.environment() if faulty else None,
                            cache={"memory": "1MB", "disk_io": "threads", "disk": {directory: {"size": "64MB"}}, **cache})

    def answer(self, connection, request):
        confirmed = request.header("X-Confirm") and request.header("If-None-Match")
        self.versions += not confirmed
        tag = request.header("If-None-Match") if confirmed else f'"{self.versions}"'
        body = b"" if confirmed else b"x" * int(request.header("X-Size") or 900)
        vary = f"Vary: {request.header('X-Vary')}\r\n" if request.header("X-Vary") else ""
        status = "304 Not Modified" if confirmed else "200 OK"
        slow = request.header("X-Slow")
        connection.send(f"HTTP/1.1 {status}\r\nCache-Control: max-age=3600\r\nETag: {tag}\r\n{vary}"
                        f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:500 if slow else None])
        if slow:
            self.go_on.wait(20 * self.lab.patience)
            connection.send(b"" if slow == "broken" else body[500:])
        return slow == "broken"

    def url(self, path):
        return f"http://127.0.0.1:{self.origin.port}{path}"

    def get(self, path, **fields):
        """(Was the origin asked?, version)."""
        before = len(self.origin.requests)
        response = self.proxy.get(self.url(path), {name.replace("_", "-"): str(value) for name, value in fields.items()})
        equal(response.status, 200, f"{path}: status")
        return len(self.origin.requests) > before, int(response.header("ETag").strip('"'))

    def new(self, path, **fields):
        asked, version = self.get(path, **fields, **AGAIN)
        true(asked and version == self.versions, f"{path}: the origin is asked")
        return version

    def new_slowly(self, path, **fields):
        """The connection of a client whose response has begun and is stored, and its version."""
        connection = self.proxy.wire()
        fields = {name.replace("_", "-"): str(value) for name, value in {"X_Slow": "whole", **fields, **AGAIN}.items()}
        connection.send(wire.request("GET", self.url(path), fields))
        return connection, int(connection.head().header("ETag").strip('"'))

    def inject(self, path, body):
        page = "/cache/object?lifetime=600&url=" + quote(self.url(path), safe="")
        return self.proxy.admin("PUT", page, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body)

    def push_out(self):
        """Fills memory with other things, until nothing of before is there."""
        self.fillers += 1
        for number in range(14):
            self.get(f"/other/{self.fillers}/{number}", X_Size=100_000)

    def on_disk(self, count):
        until(lambda: gauge(self.proxy, "objects") >= count, 10 * self.lab.patience, f"{count} objects on disk")

    def kill(self):
        """Once all is written: what was on its way is lost, and what it would have replaced is back."""
        self.proxy.admin("DELETE", "/cache/object?url=http://nowhere.invalid/")
        self.proxy.kill()
        self.proxy.start()

    def everywhere(self):
        """From memory, from disk, after a restart."""
        yield "in memory"
        self.push_out()
        yield "on disk"
        self.proxy.restart()
        yield "after a restart"


@memcheck
def test_what_varies_replaces_what_does_not(lab):
    cache = Newest(lab)
    first = cache.new("/x")
    cache.on_disk(1)
    second = cache.new("/x", X_Kind="red", X_Vary="X-Kind")
    true(second > first, "versions")
    for where in cache.everywhere():
        equal(cache.get("/x", X_Kind="red"), (False, second), f"{where}: asked, version")
    asked, version = cache.get("/x")
    true(asked and version > second, f"without X-Kind: asked {asked}, version {version}; {first} was replaced")


def test_what_does_not_vary_replaces_what_does(lab):
    cache = Newest(lab)
    for kind in ("red", "blue"):
        cache.new("/y", X_Kind=kind, X_Vary="X-Kind")
    cache.on_disk(2)
    newest = cache.new("/y", X_Kind="green")
    for where in cache.everywhere():
        for kind in ("red", "blue", "green"):
            equal(cache.get("/y", X_Kind=kind), (False, newest), f"{where}: {kind}: asked, version")


def test_a_confirmation_that_varies_replaces_what_did_not(lab):
    cache = Newest(lab)
    first = cache.new("/c")
    cache.on_disk(1)
    asked, version = cache.get("/c", X_Kind="red", X_Vary="X-Kind", X_Confirm="yes", **AGAIN)
    equal((asked, version), (True, first), "confirmed: asked, version")
    for where in cache.everywhere():
        true(cache.get("/c", X_Kind=where, X_Vary="X-Kind")[0], f"{where}: another kind asks the origin")


def test_what_is_injected_replaces_what_came(lab):
    cache = Newest(lab)
    cache.new("/z")
    cache.on_disk(1)
    cache.proxy.ctl("cache", "inject", cache.url("/z"), lab.write("made.txt", "made by hand\n"), "--lifetime", "600")
    for where in cache.everywhere():
        equal(cache.proxy.get(cache.url("/z")).text(), "made by hand\n", f"{where}: body")
    later = cache.new("/z")
    cache.on_disk(2)
    for where in cache.everywhere():
        equal(cache.get("/z"), (False, later), f"{where}, what came after it: asked, version")


def test_what_is_too_large_for_memory_replaces_what_is_there(lab):
    cache = Newest(lab, max_object="64KB")
    cache.new("/big", X_Kind="red", X_Vary="X-Kind")
    newest = cache.new("/big", X_Kind="blue", X_Size=300_000)
    stored = {"X-Kind": "red", "Cache-Control": "only-if-cached"}
    until(lambda: cache.proxy.get(cache.url("/big"), stored).status == 200, 5 * lab.patience, "a stored response")
    equal(cache.get("/big", X_Kind="red"), (False, newest), "asked, version")


def test_what_waits_to_be_written_hides_what_is_there(lab):
    """The writer is slow, and memory has let go what it has yet to write."""
    cache = Newest(lab, faulty=True)
    cache.new("/slow")
    cache.on_disk(1)
    cache.faults.set(write_delay=200)
    newest = cache.new("/slow", X_Kind="red", X_Vary="X-Kind")
    cache.push_out()
    asked, version = cache.get("/slow")
    cache.faults.clear()
    true(asked and version > newest, f"asked {asked}, version {version}, when {newest} had come")


def rest_of(connection):
    connection._exactly(900, lambda piece: None)  # pylint: disable=protected-access


def end_slowly(cache, connection):
    """The rest of the slow response comes, and what the proxy does with it is done."""
    count = len(cache.proxy.log_lines())
    cache.go_on.set()
    rest_of(connection)
    until(lambda: len(cache.proxy.log_lines()) > count, 10 * cache.lab.patience, "the line of the slow request")


def test_what_arrives_slowly_is_older_than_what_came_meanwhile(lab):
    """Both are of one second: what is stored later is newer, whatever clocks say."""
    cache = Newest(lab)
    connection, slow = cache.new_slowly("/slow")
    newest = cache.new("/slow")
    true(newest > slow, "versions")
    cache.on_disk(1)
    end_slowly(cache, connection)
    for where in cache.everywhere():
        equal(cache.get("/slow"), (False, newest), f"{where}: asked, version")


def test_what_arrives_slowly_is_older_than_what_memory_has_let_go(lab):
    """The disk has the newer one, or has refused it."""
    cache = Newest(lab, disk={lab.path("volume"): {"size": "64MB", "max_object": "200KB"}})
    for path, length in (("/small", 900), ("/large", 400_000)):
        cache.go_on.clear()
        connection, slow = cache.new_slowly(path)
        newest = cache.new(path, X_Size=length)
        cache.push_out()
        end_slowly(cache, connection)
        for where in cache.everywhere():
            asked, version = cache.get(path)
            true(version > newest if asked else version == newest,
                 f"{path}, {where}: asked {asked}, version {version}; {newest} is the newest, {slow} came slowly")
            newest = version


def test_an_injection_is_newer_than_what_arrives_slowly(lab):
    """It is answered as done and stays, also where the slow response breaks off."""
    cache = Newest(lab)
    for kind in ("broken", "whole"):
        cache.go_on.clear()
        path = f"/{kind}"
        connection, _ = cache.new_slowly(path, X_Slow=kind)
        answer = cache.inject(path, b"made by hand")
        equal(answer.status, 200, f"{kind}: {answer.text()}")
        if kind == "whole":
            end_slowly(cache, connection)
        else:
            cache.go_on.set()
            raises(wire.Truncated, lambda: rest_of(connection), "the rest")  # pylint: disable=cell-var-from-loop
            cache.proxy.entries(path)
        for where in cache.everywhere():
            equal(cache.proxy.get(cache.url(path)).text(), "made by hand", f"{kind}, {where}: body")


def test_an_injection_right_behind_a_response_is_kept(lab):
    """The writer still has the response before it in its hands; a later one comes before the answer."""
    cache = Newest(lab, faulty=True)
    cache.new("/x")
    cache.on_disk(1)
    cache.faults.set(write_delay=100)
    cache.new("/x")
    answers = []
    inject = threading.Thread(target=lambda: answers.append(cache.inject("/x", b"made by hand")))
    inject.start()
    until(lambda: cache.proxy.get(cache.url("/x")).text() == "made by hand", 10 * lab.patience, "the injection")
    newest = cache.new("/x")
    inject.join()
    cache.faults.clear()
    equal(answers[0].status, 200, answers[0].text())
    cache.on_disk(1)
    for where in cache.everywhere():
        equal(cache.get("/x"), (False, newest), f"{where}: asked, version")


class Model:
    """Every response that may be stored, in the order in which it came or was confirmed."""

    def __init__(self):
        self.stored = {}

    def newest(self, path, fields):
        fitting = [version for version, wanted in self.stored.get(path, [])
                   if all(fields.get(name, "") == value for name, value in wanted.items())]
        return fitting[-1] if fitting else None

    def vary_of(self, path, version):
        return [list(wanted) for stored, wanted in self.stored[path] if stored == version][-1]

    def add(self, path, version, fields, vary):
        self.stored.setdefault(path, []).append((version, {name: fields.get(name, "") for name in vary}))


def step(cache, model, chance, what):
    path = f"/p{chance.randrange(3)}"
    fields = {name: chance.choice("ab") for name in ("X-Kind", "X-Other") if chance.random() < 0.7}
    vary = [name for name in ("X-Kind", "X-Other") if chance.random() < 0.5]
    extra = {**(AGAIN if chance.random() < 0.4 else {}), **({"X-Confirm": "yes"} if chance.random() < 0.3 else {})}
    newest = model.newest(path, fields)
    asked, version = cache.get(path, **fields, **extra, **{"X-Vary": ", ".join(vary)})
    confirmed = asked and cache.origin.requests[-1].header("If-None-Match") and "X-Confirm" in extra
    if not asked or confirmed:
        equal(version, newest, f"{what}: {path} with {fields}: version")
    if asked:
        vary = vary or (model.vary_of(path, version) if confirmed else [])
        model.add(path, version, fields, vary)


def test_of_matching_responses_the_newest(lab):
    """Stores at random with and without Vary, and with other fields in it; evictions, restarts and kills between them."""
    cache, model = Newest(lab), Model()
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    chance = random.Random(seed)
    for number in range(200):
        what = chance.random()
        if what < 0.05:
            cache.push_out()
        elif what < 0.08:
            chance.choice((cache.proxy.restart, cache.kill))()
        step(cache, model, chance, f"SEED={seed}, step {number}")
    true(gauge(cache.proxy, "objects") > 0, "objects on disk")
