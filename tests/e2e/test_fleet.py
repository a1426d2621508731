"""Many nodes as one: what is purged at one node is in force at all, and nobody serves what he can't vouch for."""

import json
import os
import shutil
import socket
import threading
import time
from urllib.parse import quote

from harness.checks import contains, equal, lacks, true, until
from harness.engine import Engine
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import memcheck
from test_admin_access import metric
from test_takeover import upgrade

KEY = "0123456789abcdef" * 4


def bulk(text):
    return b"$%d\r\n%s\r\n" % (len(text), text.encode())


def fleet_text(lab, engine, node, lease=2, key=KEY, **options):
    path = lab.path(f"{node}.key")
    if not os.path.exists(path):
        lab.write(f"{node}.key", key + "\n")
        os.chmod(path, 0o600)
    os.makedirs(lab.path(f"{node}.state"), exist_ok=True)
    more = "  ".join(f"{name} = {value}" for name, value in options.items())
    servers = ", ".join(f'"{one.address}"' for one in (engine if isinstance(engine, list) else [engine]))
    return (f'fleet edge {{ node = "{node}"  servers = {{ {servers} }}  key_file = "{path}"  '
            f'state_directory = "{lab.path(f"{node}.state")}"  lease = "{lease * lab.patience}s"  timeout = "{500 * lab.patience}ms"  {more} }}\n')


def node(lab, engine, name, *, cache=None, **options):
    return Retort(lab, name=name, cache=cache, extra=fleet_text(lab, engine, name, **options))


def proven(lab, *nodes):
    for one in nodes:
        until(lambda one=one: metric(one, "retort_fleet_proven") == 1, 10 * lab.patience, f"{one.name} is proven")


def fleet_of(lab, engine, count, **options):
    nodes = [node(lab, engine, f"n{i + 1}", **options) for i in range(count)]
    proven(lab, *nodes)
    return nodes


def saved(lab, name):
    path = lab.path(f"{name}.state/position")
    if not os.path.exists(path):
        return False
    with open(path, encoding="ascii") as position:
        return "\nmark " in position.read()


def call(proxy, method, target):
    answer = proxy.admin(method, target)
    return answer.status, json.loads(answer.body)


def purge(proxy, query, wait=5):
    status, answer = call(proxy, "POST", f"/v1/cache/purge?{query}&wait={wait}")
    equal(status, 200, f"the purge: {answer}")
    return answer


def fill(origin, nodes, path="/text", **arguments):
    url = origin.url(path, cc="max-age=1000", **arguments)
    for one in nodes:
        one.get(url)
        equal(result(one, url), "HIT", "it is stored")
    return url


def result(proxy, url):
    before = len(proxy.log(0))
    proxy.get(url)
    return proxy.log(before + 1)[-1]["result"]


@memcheck
def test_a_purge_is_in_force_at_all(lab):
    """By key, prefix, host, tag and expression, hard and soft; the answer says on how many nodes it is in force."""
    engine, origin = Engine(lab), Origin(lab)
    nodes = fleet_of(lab, engine, 3)
    for query in (f"prefix={origin.url('/text')}", "host=127.0.0.1", "tag=shoes", "regex=say%3Dx", "all=yes"):
        url = fill(origin, nodes, say="x", h=["Surrogate-Key: shoes"])
        answer = purge(nodes[0], query)
        equal((answer["nodes"], answer["in_force"], answer["missing"]), (3, 3, []), query)
        true(answer["position"], "its position")
        equal([result(one, url) for one in nodes], ["MISS"] * 3, query)
    url = fill(origin, nodes, say="y", h=["Surrogate-Key: hats"], etag='"1"')
    purge(nodes[1], "tag=hats&soft=yes")
    equal([result(one, url) for one in nodes], ["REVALIDATED"] * 3, "soft")
    url = fill(origin, nodes, say="z")
    status, answer = call(nodes[2], "DELETE", f"/v1/cache/object?url={quote(url, safe='')}&wait=5")
    equal((status, answer["in_force"]), (200, 3), "by its URL")
    equal([result(one, url) for one in nodes], ["MISS"] * 3, "by its URL")
    url = fill(origin, [nodes[1]], say="elsewhere")
    status, answer = call(nodes[2], "DELETE", f"/v1/cache/object?url={quote(url, safe='')}&wait=5")
    equal((status, answer["purged"], answer["in_force"]), (200, 0, 3), "what another node has alone")
    equal(result(nodes[1], url), "MISS", "what another node has alone")
    contains(nodes[0].ctl("cache", "purge", "--all", "--wait", "5"), "in force on 3 of 3 nodes", "the command")
    contains(nodes[0].ctl("fleet"), "fleet edge, node n1: proven", "the command that shows the fleet")


def test_purge_by_a_client(lab):
    """The methods PURGE and BAN of a client that an access section lets in; an engine that is away holds nobody up."""
    engine, origin = Engine(lab), Origin(lab)
    rules = "url_class purge { method = { PURGE, BAN } }\naccess purge { action = allow }\naccess all { action = allow }\n"
    first, second = [Retort(lab, name=name, extra=rules + fleet_text(lab, engine, name)) for name in ("n1", "n2")]
    proven(lab, first, second)
    one, other = (fill(origin, [first, second], say=say) for say in ("one", "other"))
    equal(first.fetch("PURGE", one).status, 200, "PURGE")
    until(lambda: metric(second, "retort_fleet_applied_total") >= 1, 10 * lab.patience, "it is told")
    equal([result(second, url) for url in (one, other)], ["MISS", "HIT"], "one is gone")
    equal(first.fetch("BAN", origin.url("/text"), {"X-Ban-Regex": "say=other"}).status, 200, "BAN")
    until(lambda: metric(second, "retort_fleet_applied_total") >= 2, 10 * lab.patience, "it is told")
    equal([result(second, url) for url in (one, other)], ["HIT", "MISS"], "the other one is gone")
    engine.stop()
    until(lambda: metric(first, "retort_fleet_connected") == 0, 20 * lab.patience, "the engine is away")
    begun = time.monotonic()
    equal({first.fetch("PURGE", origin.url("/none", say=f"x{n}")).status for n in range(10)}, {404}, "PURGE without an engine")
    true(time.monotonic() - begun < 3 * lab.patience, "nobody waits")


def test_all_by(lab):
    """A node that has been in the fleet for a lease says by when a purge is in force everywhere."""
    engine = Engine(lab)
    first, second = fleet_of(lab, engine, 2)
    until(lambda: purge(first, "all=yes")["all_by"], 10 * lab.patience, "it says so")
    second.kill()
    before = time.time()
    answer = purge(first, "all=yes", wait=0)
    equal((answer["in_force"], answer["nodes"], answer["missing"]), (1, 2, ["n2"]), "a node is away")
    at = time.mktime(time.strptime(answer["all_by"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    true(before + 1 < at < time.time() + 2 * lab.patience + 1, f"by {at}, a lease from {before}")
    equal(call(first, "POST", "/v1/fleet/forget?node=n2")[0], 200, "it is forgotten")
    answer = purge(first, "all=yes")
    equal((answer["in_force"], answer["nodes"]), (1, 1), "nobody waits for it")


@memcheck
def test_engine_away(lab):
    """No request fails; what can't be vouched for is asked for; a purge meanwhile is in force here, and elsewhere later."""
    engine, origin = Engine(lab, "appendonly yes"), Origin(lab)
    first, second = fleet_of(lab, engine, 2)
    url = fill(origin, [first, second], say="x", etag='"1"')
    engine.stop()
    until(lambda: metric(first, "retort_fleet_proven") == 0 and metric(second, "retort_fleet_proven") == 0, 20 * lab.patience, "not proven")
    equal([result(one, url) for one in (first, second)], ["REVALIDATED"] * 2, "unproven")
    equal([result(one, url) for one in (first, second)], ["REVALIDATED"] * 2, "unproven, again")
    answer = purge(first, "all=yes", wait=0)
    equal((answer["position"], answer["all_by"], answer["in_force"]), (None, None, 1), "the engine does not have it")
    first.kill()
    engine.start()
    first.start()
    proven(lab, first, second)
    until(lambda: metric(second, "retort_fleet_applied_total") >= 1, 10 * lab.patience, "it has come")
    equal(result(second, url), "MISS", "the purge of a node that was killed")
    equal(result(second, url), "HIT", "proven again")


def test_on_isolation(lab):
    engine, origin = Engine(lab), Origin(lab)
    serves = node(lab, engine, "n1", on_isolation="serve")
    refuses = node(lab, engine, "n2", on_isolation="refuse")
    proven(lab, serves, refuses)
    url = fill(origin, [serves, refuses], say="x")
    engine.stop()
    until(lambda: metric(serves, "retort_fleet_proven") == 0 and metric(refuses, "retort_fleet_proven") == 0, 20 * lab.patience, "not proven")
    equal(result(serves, url), "HIT", "serve")
    equal(refuses.get(url).status, 503, "refuse")
    equal(refuses.get(origin.url("/text", say="new")).status, 200, "what is not stored")


@memcheck
def test_absence(lab):
    """A node that was away reads what it has missed; what can't be read any more is a doubt about all that is stored."""
    engine, origin = Engine(lab), Origin(lab)
    first = node(lab, engine, "n1")
    second = node(lab, engine, "n2", cache={"memory": "16MB", "disk": {lab.path("n2.disk"): {"size": "64MB"}}})
    proven(lab, first, second)
    kept, gone = (fill(origin, [second], say=say, etag='"1"') for say in ("kept", "gone"))
    until(lambda: metric(second, "retort_disk_objects") >= 2, 20 * lab.patience, "on disk")
    until(lambda: saved(lab, "n2"), 20 * lab.patience, "its place is saved")
    second.kill()
    purge(first, "regex=say%3Dgone", wait=0)
    second.start()
    proven(lab, second)
    equal([result(second, url) for url in (kept, gone)], ["HIT", "MISS"], "behind an absence")
    second.kill()
    purge(first, "regex=say%3Dgone", wait=0)
    engine.ask("XTRIM", "retort:{edge}:events", "MAXLEN", "0")
    second.start()
    proven(lab, second)
    equal(metric(second, "retort_fleet_doubts_total"), 1, "doubts")
    equal([result(second, url) for url in (kept, kept)], ["REVALIDATED", "HIT"], "behind a gap")


def test_a_process_takes_over(lab):
    """The process of a node takes the place of another one: what was told before, meanwhile and later is in force, and nothing is doubted."""
    engine, origin = Engine(lab), Origin(lab)
    first = node(lab, engine, "n1", cache={"memory": "16MB", "disk": {lab.path("n1.disk"): {"size": "16MB"}}})
    second = node(lab, engine, "n2")
    proven(lab, first, second)
    kept, gone = (fill(origin, [first, second], say=say, etag='"1"') for say in ("kept", "gone"))
    until(lambda: metric(first, "retort_disk_objects") >= 2 and saved(lab, "n1"), 20 * lab.patience, "on disk")
    for _ in range(2):
        upgrade(lab, first)
        equal(purge(second, "regex=say%3Dgone", wait=10)["in_force"], 2, "a purge of the other node")
        proven(lab, first)
        until(lambda: purge(first, "tag=x", wait=1)["in_force"] == 2, 20 * lab.patience, "a purge of this one")
        equal([result(first, url) for url in (kept, gone)], ["HIT", "MISS"], "what is stored")
    equal([metric(one, "retort_fleet_conflicts_total") for one in (first, second)], [0, 0], "conflicts")
    equal([metric(one, "retort_fleet_doubts_total") for one in (first, second)], [0, 1], "doubts")


def test_a_restored_snapshot(lab):
    """The state directory and the disk of yesterday: what the node itself has told since is done again, and its events get new numbers."""
    engine, origin = Engine(lab), Origin(lab)
    disk, state = lab.path("n1.disk"), lab.path("n1.state")
    first = node(lab, engine, "n1", cache={"memory": "16MB", "disk": {disk: {"size": "16MB"}}})
    second = node(lab, engine, "n2")
    proven(lab, first, second)
    url = fill(origin, [first], say="x", etag='"1"')
    until(lambda: metric(first, "retort_disk_objects") >= 1 and saved(lab, "n1"), 20 * lab.patience, "on disk")
    first.stop()
    shutil.copyfile(disk, disk + ".kept")
    shutil.copytree(state, state + ".kept")
    first.start()
    proven(lab, first)
    equal(result(first, url), "HIT", "it is there")
    equal(purge(first, "all=yes")["in_force"], 2, "a purge")
    first.stop()
    shutil.copyfile(disk + ".kept", disk)
    shutil.rmtree(state)
    shutil.copytree(state + ".kept", state)
    first.start()
    proven(lab, first)
    equal(result(first, url), "MISS", "what it has purged itself")
    until(lambda: purge(first, "tag=x", wait=1)["in_force"] == 2, 20 * lab.patience, "it goes on")
    equal([metric(one, "retort_fleet_conflicts_total") for one in (first, second)], [0, 0], "conflicts")
    equal(metric(second, "retort_fleet_doubts_total"), 1, "doubts of the other one")


def test_an_engine_that_forgets(lab):
    """FLUSHALL, and a server that starts empty: events that were acknowledged are appended again, or all is doubted."""
    engine, origin = Engine(lab), Origin(lab)
    first, second = fleet_of(lab, engine, 2)
    url = fill(origin, [first, second], say="x", etag='"1"')
    engine.ask("FLUSHALL")
    until(lambda: metric(first, "retort_fleet_doubts_total") >= 2 and metric(second, "retort_fleet_doubts_total") >= 2, 20 * lab.patience, "they notice")
    proven(lab, first, second)
    equal([result(one, url) for one in (first, second)], ["REVALIDATED"] * 2, "all is doubted")
    answer = purge(first, "all=yes")
    equal(answer["in_force"], 2, "it goes on")
    engine.stop()
    engine.start()
    until(lambda: metric(second, "retort_fleet_doubts_total") >= 3, 20 * lab.patience, "they notice")
    proven(lab, first, second)
    equal(purge(first, "all=yes")["in_force"], 2, "it goes on")


@memcheck
def test_forged_entries(lab):
    """Whoever may write to the engine can't purge: entries without the key are counted and left."""
    engine, origin = Engine(lab), Origin(lab)
    first, second = fleet_of(lab, engine, 2)
    url = fill(origin, [first, second], say="x")
    purge(first, "tag=nothing")
    stream = engine.ask("XRANGE", "retort:{edge}:events", "-", "+")
    purges = [entry[1][1] for entry in stream if entry[1][1].startswith("1 purge ")]
    true(purges, "a purge to forge by")
    words = purges[-1].split(" ")
    forged = [purges[-1].replace('"nothing"', '"other"'), " ".join(words[:2] + ["n2"] + words[3:]), "1 purge", "", "x" * 100000,
              " ".join(words[:7]) + ' {"url":"' + url + '"}', " ".join(words[:4] + [str(int(words[4]) + 1)] + words[5:])]
    for text in forged:
        engine.ask("XADD", "retort:{edge}:events", "*", "event", text)
    engine.ask("XADD", "retort:{edge}:events", "*", "other", "field")
    until(lambda: metric(second, "retort_fleet_rejected_total") == len(forged) + 1, 10 * lab.patience, "they are rejected")
    engine.ask("XADD", "retort:{edge}:events", "*", "event", purges[-1])
    equal(purge(first, "tag=other")["in_force"], 2, "it goes on")
    equal([result(one, url) for one in (first, second)], ["HIT"] * 2, "nothing was purged")
    equal([metric(one, "retort_fleet_doubts_total") for one in (first, second)], [1, 1], "nothing was doubted")


def test_one_name_twice(lab):
    engine = Engine(lab)
    first = node(lab, engine, "n1")
    proven(lab, first)
    other = Retort(lab, name="copy", extra=fleet_text(lab, engine, "n1").replace("n1.state", "n1.copy"))
    os.makedirs(lab.path("n1.copy"), exist_ok=True)
    until(lambda: metric(first, "retort_fleet_conflicts_total") > 0, 20 * lab.patience, "it is noticed")
    contains(first.process.log(), "another node uses the name n1", "the message")
    other.stop()


def test_another_key(lab):
    """A node with another key neither tells nor hears anything, and proves nothing by others' events."""
    engine = Engine(lab)
    first = node(lab, engine, "n1")
    stranger = node(lab, engine, "n2", key="f" * 64)
    proven(lab, first, stranger)
    purge(first, "all=yes", wait=0)
    purge(stranger, "all=yes", wait=0)
    until(lambda: metric(first, "retort_fleet_rejected_total") > 0 and metric(stranger, "retort_fleet_rejected_total") > 0, 10 * lab.patience, "rejected")
    equal([metric(one, "retort_fleet_applied_total") for one in (first, stranger)], [0, 0], "nothing is applied")


def events_of(engine, kind):
    return [entry[1][1] for entry in engine.ask("XRANGE", "retort:{edge}:events", "-", "+") if entry[1][1].startswith(f"1 {kind} ")]


def test_an_engine_that_lacks_the_last_entries(lab):
    """A copy takes over that does not have what was acknowledged: it is told again, so that who was away hears it; nothing is doubted."""
    engine, origin = Engine(lab), Origin(lab)
    copy = Engine(lab, f"replicaof 127.0.0.1 {engine.port}", name="copy")
    nodes = [node(lab, [engine, copy], name, lease=6) for name in ("n1", "n2")]
    away = node(lab, [engine, copy], "n3", lease=6, cache={"memory": "16MB", "disk": {lab.path("n3.disk"): {"size": "64MB"}}})
    proven(lab, *nodes, away)
    url = fill(origin, [away], say="x", etag='"1"')
    until(lambda: metric(away, "retort_disk_objects") >= 1 and saved(lab, "n3"), 20 * lab.patience, "on disk")
    until(lambda: len(events_of(copy, "alive")) > 3, 20 * lab.patience, "the copy follows")
    away.kill()
    copy.ask("REPLICAOF", "NO", "ONE")
    equal(purge(nodes[0], "all=yes", wait=0)["in_force"], 2, "it is acknowledged")
    until(lambda: purge(nodes[0], "tag=another", wait=0)["in_force"] == 2, 10 * lab.patience, "another one")
    equal(events_of(copy, "purge"), [], "the copy has none of it")
    engine.stop()
    until(lambda: len(events_of(copy, "purge")) >= 2, 20 * lab.patience, "they are told again")
    proven(lab, *nodes)
    away.start()
    proven(lab, away)
    equal([result(away, url), result(away, url)], ["MISS", "HIT"], "who was away")
    equal([metric(one, "retort_fleet_doubts_total") for one in nodes], [1, 1], "doubts")


def test_a_node_that_says_nothing(lab):
    """Another engine serves, and a node that might have told something is silent: all is doubted after a lease."""
    engine, origin = Engine(lab, "appendonly yes"), Origin(lab)
    first, second = fleet_of(lab, engine, 2)
    url = fill(origin, [first], say="x", etag='"1"')
    second.kill()
    engine.stop()
    engine.start()
    until(lambda: metric(first, "retort_fleet_doubts_total") == 2, 20 * lab.patience, "it is doubted")
    contains(first.process.log(), "another server has begun to serve the stream", "why")
    proven(lab, first)
    equal([result(first, url), result(first, url)], ["REVALIDATED", "HIT"], "once")


def test_a_server_that_is_cut_off(lab):
    """copies = 1: a server whose copies do not follow any more proves nothing to anybody."""
    engine, origin = Engine(lab), Origin(lab)
    copy = Engine(lab, f"replicaof 127.0.0.1 {engine.port}", name="copy")
    only = node(lab, engine, "n1", copies=1)
    proven(lab, only)
    url = fill(origin, [only], say="x", etag='"1"')
    copy.stop()
    until(lambda: metric(only, "retort_fleet_proven") == 0, 20 * lab.patience, "not proven")
    equal(result(only, url), "REVALIDATED", "unproven")
    answer = purge(only, "all=yes", wait=0)
    equal((answer["position"], answer["all_by"]), (None, None), "a purge counts only when a copy has it")
    copy.start()
    proven(lab, only)


def test_failover_by_sentinel(lab):
    """A server dies; Sentinel makes another one serve; what was purged before, during and after is in force."""
    engine, origin = Engine(lab), Origin(lab)
    copies = [Engine(lab, f"replicaof 127.0.0.1 {engine.port}", name="copy") for _ in range(2)]
    sentinel = Engine(lab, f"sentinel monitor edge 127.0.0.1 {engine.port} 1", "sentinel down-after-milliseconds edge 500",
                      "sentinel failover-timeout edge 5000", name="sentinel", sentinel=True)
    until(lambda: engine.ask("INFO", "replication").count("state=online") == 2, 20 * lab.patience, "two copies")
    until(lambda: len(sentinel.ask("SENTINEL", "replicas", "edge")) == 2, 30 * lab.patience, "Sentinel knows both")
    nodes = [node(lab, sentinel, name, sentinel='"edge"', copies=1) for name in ("n1", "n2")]
    proven(lab, *nodes)
    urls = [fill(origin, nodes, say=say) for say in ("before", "during", "after")]
    equal(purge(nodes[0], "regex=say%3Dbefore")["in_force"], 2, "before")
    engine.kill()
    purge(nodes[0], "regex=say%3Dduring", wait=0)
    until(lambda: sentinel.ask("SENTINEL", "get-master-addr-by-name", "edge")[1] != str(engine.port), 60 * lab.patience, "the failover")
    until(lambda: purge(nodes[1], "regex=say%3Dafter", wait=1)["in_force"] == 2, 60 * lab.patience, "after")
    until(lambda: metric(nodes[1], "retort_fleet_applied_total") >= 2, 20 * lab.patience, "what was told meanwhile")
    equal([[result(one, url) for url in urls] for one in nodes], [["MISS"] * 3] * 2, "what was purged")


class Strange:
    """Whoever connects gets these bytes for each piece that he sends."""

    def __init__(self, lab, answer):
        self.answer, self.asked, self.connections = answer, 0, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        lab.opens(self)

    def accept(self):
        try:
            while True:
                connection = self.socket.accept()[0]
                self.connections.append(connection)
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()
        except OSError:
            pass

    def serve(self, connection):
        try:
            while connection.recv(65536):
                self.asked += 1
                connection.sendall(self.answer)
        except OSError:
            pass

    def stop(self):
        self.socket.close()
        for connection in self.connections:
            connection.close()

    def findings(self):
        return []


INFO = "role:master\r\nmaster_replid:%s\r\n"
STRANGE = {
    "lists in lists": b"*1\r\n" * 100000, "a list that is announced": b"*2147483647\r\n", "many elements": b"*90000\r\n" + b":1\r\n" * 90000,
    "no protocol": b"\0\xff" * 5000, "another type": b":1\r\n", "an id of a server that breaks a file": bulk(INFO % "a\nb"),
    "an id of a server that is too long": bulk(INFO % ("a" * 5000)), "no id": bulk("role:master\r\n"), "an error": b"-x\xff\r\n",
}


@memcheck
def test_strange_engines(lab):
    """Whatever an engine answers, the proxy serves, shows what is wrong, and ends when it is told to."""
    origin = Origin(lab)
    for number, (what, answer) in enumerate(STRANGE.items()):
        engine = Strange(lab, answer)
        only = node(lab, engine, f"s{number}")
        until(lambda: engine.asked >= 4, 20 * lab.patience, f"{what}: it is asked again")
        equal(only.get(origin.url("/text", say="x")).status, 200, what)
        status, shown = call(only, "GET", "/v1/fleet")
        equal((status, shown["nodes"]), (200, []), what)
        equal(metric(only, "retort_fleet_proven"), 0, what)
        only.stop()
        engine.stop()
