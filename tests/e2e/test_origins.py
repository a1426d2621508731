"""Groups of origins: who is asked, what happens when one is gone, limits and the queue."""

import threading
import time

from harness import ports
from harness.checks import between, contains, equal, one_of, true, until
from harness.groups import back, gone, group, named, state
from harness.nginx import Nginx
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.remote import Remote
from harness.retort import Retort, measure
from harness.suite import memcheck, seconds
from harness.wire import Truncated, request


def servers(lab, count, **options):
    return [RawOrigin(lab, named(b"s%d" % number, **options)) for number in range(count)]


def house(lab, origins, workers=1, extra="", retort=None, **options):
    return Retort(lab, reverse={"/": "web"}, workers=workers, extra=group(origins, **options) + extra, **(retort or {}))


def who(proxy, path="/", **options):
    return proxy.get(path, host="www.example.com", **options).text()


def tally(proxy, count, path="/{}"):
    seen = {}
    for number in range(count):
        name = who(proxy, path.format(number))
        seen[name] = seen.get(name, 0) + 1
    return seen


# Who is asked.

@memcheck
def test_round_robin_by_weight(lab):
    proxy = house(lab, servers(lab, 3), suffixes=("weight=3", "", ""))
    equal(tally(proxy, 50), {"s0": 30, "s1": 10, "s2": 10}, "requests of each server")


def test_least_connections(lab):
    slow, quick = RawOrigin(lab, named(b"slow", pause=3)), RawOrigin(lab, named(b"quick"))
    proxy = house(lab, [slow, quick], balance="least_connections")
    waiting = threading.Thread(target=who, args=(proxy,))
    waiting.start()
    until(lambda: len(slow.requests) + len(quick.requests) == 1, 5 * lab.patience, "the first request")
    time.sleep(0.1)
    first_was_slow = bool(slow.requests)
    if not first_was_slow:
        threading.Thread(target=who, args=(proxy,)).start()
        until(lambda: slow.requests, 5 * lab.patience, "a request at the slow server")
    equal(tally(proxy, 10), {"quick": 10}, "while the slow one is busy")
    waiting.join()


def test_consistent_hash_moves_only_what_it_must(lab):
    origins = servers(lab, 4)
    proxy = house(lab, origins, balance="consistent_hash", max_failures=1, down_min="1h", down_max="1h")
    paths = [f"/page/{number}" for number in range(200)]
    before = {path: who(proxy, path) for path in paths}
    equal({path: who(proxy, path) for path in paths[:50]}, {path: before[path] for path in paths[:50]}, "the same again")
    for name in ("s0", "s1", "s2", "s3"):
        between(list(before.values()).count(name), 25, 80, f"share of {name}")
    gone(origins[2])
    after = {path: who(proxy, path) for path in paths}
    true("s2" not in after.values(), "nothing comes from the one that is gone")
    moved = [path for path in paths if after[path] != before[path]]
    equal({before[path] for path in moved}, {"s2"}, "whose pages moved")
    true(len({after[path] for path in moved}) == 3, "they are spread over all the others")


def test_hash_by_client_and_host(lab):
    proxy = house(lab, servers(lab, 4), balance="consistent_hash", hash_by="client")
    equal(len(tally(proxy, 20)), 1, "servers of one client")
    by_host = house(lab, servers(lab, 4), balance="consistent_hash", hash_by="host")
    seen = {by_host.get(f"/{n}", host="one.example").text() for n in range(10)}
    equal(len(seen), 1, "servers of one host")
    true(len({by_host.get("/", host=f"h{n}.example").text() for n in range(20)}) > 1, "hosts differ")


def test_group_with_a_path_and_host(lab):
    seen = []

    def answer(connection, got):
        seen.append((got.target, got.header("Host")))
        return named(b"x")(connection, got)
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, reverse={"/app/": "web/base/", "/kept/": {"origin": "web", "preserve_host": True}},
                   extra=group([origin]))
    proxy.get("/app/a?b", host="www.example.com")
    proxy.get("/kept/a", host="www.example.com")
    equal(seen, [("/base/a?b", origin.authority), ("/a", "www.example.com")], "targets and hosts")


# When one is gone.

def test_failover_and_recovery(lab):
    origins = servers(lab, 2)
    proxy = house(lab, origins, max_failures=2)
    equal(tally(proxy, 10), {"s0": 5, "s1": 5}, "both")
    gone(origins[0])
    equal(tally(proxy, 20), {"s1": 20}, "nobody notices")
    url = origins[0].url("")
    one_of(state(proxy)[url]["state"], ("down", "trying"), "state")
    equal(proxy.counter("origin_servers_down"), 1, "counter")
    true(proxy.counter("origin_server_switches") >= 2, "switches are counted")
    contains(proxy.process.log(), f"origins web: server {url} is down: ", "log")
    contains(proxy.ctl("origins"), "down, next try in", "retortctl origins")
    metrics = proxy.admin("GET", "/metrics").text()
    contains(metrics, f'retort_origin_server_up{{origins="web",server="{url}"}} 0', "metrics")
    proxy.ctl("set", f"origins.web.servers[{origins[1].url('')}]=drain")
    contains(proxy.admin("GET", "/metrics").text(), f'retort_origin_server_up{{origins="web",server="{origins[1].url("")}"}} 1', "one that is drained is not down")
    proxy.ctl("unset", "--all")
    back(origins[0])
    until(lambda: who(proxy, "/again") == "s0", 10 * lab.patience, "requests at the server that came back")
    contains(proxy.process.log(), f"origins web: server {url} is up again", "log")
    equal(tally(proxy, 10), {"s0": 5, "s1": 5}, "both again")


def test_nginx_is_killed(lab):
    nginxes = [Nginx(lab, lab.directory, extra=f"location / {{ add_header Cache-Control no-store always; return 200 n{n}; }}")
               for n in range(3)]
    proxy = house(lab, [nginx.url("") for nginx in nginxes], workers=2)
    tally(proxy, 12)
    nginxes[1].process.kill()
    equal(sorted(tally(proxy, 40)), ["n0", "n2"], "servers")
    equal(proxy.counter("origin_failures"), 0, "failures that clients saw")


def test_half_open_lets_one_request_through(lab):
    """A server that came back in name only costs one request a pause, however many there are."""
    hangs = RawOrigin(lab, lambda connection, seen: time.sleep(3) or True)
    good = RawOrigin(lab, named(b"good"))
    proxy = house(lab, [hangs, good], max_failures=1, retort={"origin": {"first_byte_timeout": "400ms"}})
    answers = []

    def load(stop=time.monotonic() + 2.5):
        while time.monotonic() < stop:
            answers.append(proxy.get("/", host="h").status)
    load_threads = [threading.Thread(target=load) for _ in range(8)]
    first = proxy.get("/", host="h").status
    for thread in load_threads:
        thread.start()
    for thread in load_threads:
        thread.join()
    bad = [first, *answers].count(504)
    true(len(answers) > 50, f"{len(answers)} answers")
    # Down at the first failure (several may be under way then), and probes by ones after 0.3, 0.6, 1 s.
    between(len(hangs.requests), 2, 13 if lab.patience == 1 else 30, "requests at the one that hangs")
    equal(bad, [first, *answers].count(504), "bad")
    true(state(proxy)[hangs.url("")]["failed"] >= 2, "it has been probed, and failed")


def test_answers_that_count_as_failures(lab):
    origins = [RawOrigin(lab, named(b"bad", status=b"503 Service Unavailable")), RawOrigin(lab, named(b"good"))]
    proxy = house(lab, origins, max_failures=2, down_min="1h", down_max="1h")
    seen = [proxy.get(f"/{n}", host="h").status for n in range(20)]
    equal(seen.count(503), 2, "answers 503, until it is down")
    lenient = house(lab, origins, max_failures=2, failure_status="none")
    equal([lenient.get(f"/{n}", host="h").status for n in range(20)].count(503), 10, "answers 503, none counted")


def test_backup_servers(lab):
    origins = servers(lab, 3)
    proxy = house(lab, origins, suffixes=("", "", "backup"), max_failures=1, down_min="400ms")
    equal(tally(proxy, 10), {"s0": 5, "s1": 5}, "the backup is not asked")
    gone(origins[0])
    gone(origins[1])
    equal(tally(proxy, 6), {"s2": 6}, "now it is")
    back(origins[1])
    until(lambda: who(proxy) == "s1", 10 * lab.patience, "the one that came back")


def test_all_are_down(lab):
    origins = servers(lab, 2)
    proxy = house(lab, origins, max_failures=1, down_min="1h", down_max="1h")
    for origin in origins:
        gone(origin)
    for number in range(3):
        equal(proxy.get(f"/{number}", host="h").status, 502, "status")
    equal([server["state"] for server in state(proxy).values()], ["down", "down"], "states")
    back(origins[1])
    for number in range(4):
        equal(who(proxy, f"/x{number}"), "s1", "the pause is not waited for while there is nothing else")


def test_slow_start(lab):
    origins = servers(lab, 2)
    proxy = house(lab, origins, max_failures=1, down_min="100ms", down_max="100ms", slow_start="1h")
    gone(origins[0])
    tally(proxy, 4)
    back(origins[0])
    url = origins[0].url("")
    until(lambda: tally(proxy, 2) and state(proxy)[url]["state"] == "up", 10 * lab.patience, "it is up")
    seen = tally(proxy, 170)
    between(seen.get("s0", 0), 5, 20, "share of the one that came back: a sixteenth at first")


def test_health_checks(lab):
    well = {"s0": True}

    def checked(connection, seen):
        if seen.target == "/healthz":
            connection.send(b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n" % (b"200 OK" if well["s0"] else b"500 No"))
            return False
        return named(b"s0")(connection, seen)
    origins = [RawOrigin(lab, checked), RawOrigin(lab, named(b"s1"))]
    proxy = house(lab, origins, workers=2, max_failures=2, health_check="/healthz", check_interval="100ms")
    equal(tally(proxy, 10), {"s0": 5, "s1": 5}, "both")
    well["s0"] = False
    url = origins[0].url("")
    until(lambda: state(proxy)[url]["state"] == "down", 10 * lab.patience, "it is down by its checks")
    time.sleep(0.5)
    equal(tally(proxy, 10), {"s1": 10}, "requests do not try it")
    well["s0"] = True
    until(lambda: state(proxy)[url]["state"] == "up", 10 * lab.patience, "it is up by its checks")
    equal(tally(proxy, 10), {"s0": 5, "s1": 5}, "both again")
    true(proxy.counter("origin_check_failures") >= 2, "failed checks are counted")


def test_reload_keeps_what_is_known(lab):
    origins = servers(lab, 3)
    proxy = house(lab, origins[:2], max_failures=1, down_min="1h", down_max="1h", workers=2)
    gone(origins[0])
    tally(proxy, 4)
    url = origins[0].url("")
    equal(state(proxy)[url]["state"], "down", "state before")
    text = proxy.text(extra=group(origins, max_failures=1, down_min="1h", down_max="1h",
                                  health_check="/", check_interval="1h"))
    proxy.write_config(text)
    equal(proxy.reload().status, 200, "reload")
    equal(state(proxy)[url]["state"], "down", "state after")
    equal(sorted(set(tally(proxy, 10))), ["s1", "s2"], "servers after")
    proxy.write_config(proxy.text(reverse={"/": origins[1].url("/")}, extra=""))
    equal(proxy.reload().status, 200, "reload without the group")
    equal(who(proxy), "s1", "one origin")
    equal(state(proxy), {}, "groups")


# What is sent twice, and what never is.

def closes_after_reading(connection, seen):
    return True


@memcheck
def test_a_post_is_never_sent_twice(lab):
    origins = [RawOrigin(lab, closes_after_reading), RawOrigin(lab, closes_after_reading)]
    proxy = house(lab, origins, max_failures=0)
    for number in range(6):
        body = b"x" * 10 if number % 2 else None
        equal(proxy.fetch("POST", f"/{number}", body=body, host="h").status, 502, "status")
    seen = [got.target for origin in origins for got in origin.requests]
    equal(sorted(seen), [f"/{number}" for number in range(6)], "each came once")


def test_a_get_goes_to_another_server(lab):
    origins = [RawOrigin(lab, closes_after_reading), RawOrigin(lab, named(b"good"))]
    proxy = house(lab, origins, max_failures=0)
    equal(tally(proxy, 6), {"good": 6}, "answers")
    true(origins[0].requests, "the other one was asked as well")


def test_a_post_that_could_not_be_sent_goes_to_another_server(lab):
    dead = f"http://127.0.0.1:{ports.take()}"
    good = RawOrigin(lab, named(b"good"))
    proxy = house(lab, [dead, good], max_failures=0)
    for number in range(6):
        answer = proxy.fetch("POST", f"/{number}", body=b"b" * 100000, host="h")
        equal((answer.status, answer.body), (200, b"good"), "answer")
    equal([len(seen.body) for seen in good.requests], [100000] * 6, "bodies came whole")


def test_tries_are_bounded(lab):
    origins = [RawOrigin(lab, closes_after_reading) for _ in range(5)]
    proxy = house(lab, origins, max_failures=0, tries=2)
    equal(proxy.get("/", host="h").status, 502, "status")
    equal(sum(len(origin.requests) for origin in origins), 2, "tries")


def test_a_kept_connection_that_died_costs_nobody_anything(lab):
    """Closed by the server in the moment of its reuse: asked again there, which is no failure."""
    def one_request(connection, seen):
        named(b"s")(connection, seen)
        connection.read_some()
        return True
    origin = RawOrigin(lab, one_request, read_body=True)
    proxy = house(lab, [origin], max_failures=1)
    for number in range(4):
        equal(who(proxy, f"/{number}"), "s", "answer")
    equal(state(proxy)[origin.url("")]["failed"], 0, "failures")


# Limits.

class Gate:
    """Origins that count how many requests are in them, and answer when they are let."""

    def __init__(self, lab, count):
        self.lock = threading.Lock()
        self.inside = [0] * count
        self.most = [0] * count
        self.open = threading.Event()
        self.origins = [RawOrigin(lab, self.answer(number)) for number in range(count)]

    def answer(self, number):
        def enter(connection, seen):
            with self.lock:
                self.inside[number] += 1
                self.most[number] = max(self.most[number], self.inside[number])
            self.open.wait(30)
            time.sleep(0.02)
            with self.lock:
                self.inside[number] -= 1
            return named(b"s%d" % number)(connection, seen)
        return enter


def start_all(proxy, count):
    answers = []

    def one(number):
        answers.append(measure(lambda: proxy.get(f"/{number}", host="h")))
    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


@seconds(90)
def test_limits_hold_over_all_workers(lab):
    lab.needs("admin")
    gate = Gate(lab, 2)
    proxy = house(lab, gate.origins, workers=2, max_connections=3, queue_timeout="30s")
    threads, answers = start_all(proxy, 40)
    until(lambda: sum(gate.inside) == 6, 10 * lab.patience, "six requests inside")
    until(lambda: proxy.counter("origin_queued") == 34, 10 * lab.patience, "34 wait")
    contains(proxy.ctl("origins"), "34 waiting", "retortctl origins")
    gate.open.set()
    for thread in threads:
        thread.join()
    equal([answer.status for answer, _ in answers], [200] * 40, "answers")
    equal(gate.most, [3, 3], "most requests at a time")
    equal([server["active"] for server in state(proxy).values()], [0, 0], "afterwards")


def test_queue_is_bounded_in_length_and_time(lab):
    lab.needs("admin")
    gate = Gate(lab, 1)
    proxy = house(lab, gate.origins, workers=2, max_connections=1, queue_max=2, queue_timeout="700ms")
    threads, answers = start_all(proxy, 6)
    until(lambda: len(answers) == 5, 10 * lab.patience, "five answers")
    equal([answer.status for answer, _ in answers], [503] * 5, "statuses")
    at_once = sum(took < 0.5 for _, took in answers)
    if lab.patience == 1:
        equal(at_once, 3, "refused at once")
    texts = [answer.text() for answer, _ in answers]
    equal(sum("queue_max" in text for text in texts), 3, "told that the queue is full")
    equal(sum("queue_timeout" in text for text in texts), 2, "told that they have waited too long")
    equal((proxy.counter("origin_queue_refused"), proxy.counter("origin_queue_timeouts")), (3, 2), "counters")
    gate.open.set()
    for thread in threads:
        thread.join()
    equal(who(proxy), "s0", "afterwards")


def test_who_waits_may_leave(lab):
    lab.needs("admin")
    gate = Gate(lab, 1)
    proxy = house(lab, gate.origins, max_connections=1, queue_timeout="30s", queue_max=1)
    threads, answers = start_all(proxy, 1)
    until(lambda: sum(gate.inside) == 1, 10 * lab.patience, "one inside")
    with proxy.wire(reverse=True) as wire:
        wire.send(request("GET", "/leaves", host="h"))
        until(lambda: proxy.counter("origin_queued") == 1, 10 * lab.patience, "it waits")
        wire.abort()
    gate.open.set()
    threads[0].join()
    until(lambda: proxy.status()["counters"]["transactions_active"] == 0, 10 * lab.patience, "all have ended")
    equal(who(proxy), "s0", "afterwards")
    equal([server["active"] for server in state(proxy).values()], [0], "active afterwards")


def test_a_drain_does_not_wait_for_the_queue_for_ever(lab):
    gate = Gate(lab, 1)
    proxy = house(lab, gate.origins, workers=2, max_connections=1, queue_timeout="1h",
                  retort={"drain_timeout": "1s"})
    wires = [proxy.wire(reverse=True) for _ in range(5)]
    for number, wire in enumerate(wires):
        wire.send(request("GET", f"/{number}", host="h"))
    until(lambda: proxy.counter("origin_queued") == 4, 10 * lab.patience, "four wait")
    proxy.terminate()
    equal(proxy.wait_exit(10), 0, "exit status")
    gate.open.set()


# Deadlines.

def test_total_deadline(lab):
    def drips(connection, seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nCache-Control: no-store\r\n\r\n")
        for _ in range(100):
            connection.send(b"x" * 10)
            time.sleep(0.1)
        return True
    silent = RawOrigin(lab, lambda connection, seen: time.sleep(5 * lab.patience) or True)
    dripping = RawOrigin(lab, drips)
    proxy = Retort(lab, origin={"total_timeout": "1s"})
    answer, took = measure(lambda: proxy.get(silent.url("/")))
    equal(answer.status, 504, "status")
    contains(answer.text(), "origin.total_timeout", "the page says why")
    between(took, 0.9, 3 * lab.patience, "seconds")
    try:
        took = measure(lambda: proxy.get(dripping.url("/")))
        true(False, f"a complete response: {took}")
    except Truncated as error:
        true(0 < len(error.response.body) < 1000, f"{len(error.response.body)} bytes before the cut")


# All of it together.

def test_everything_at_once(lab):
    """Several workers, a server that comes and goes, full queues, clients that leave, reloads: every
    answer is one that may be, and at the end nobody holds a place."""
    origins = servers(lab, 3, pause=0.005)
    plan = {"max_connections": 2, "queue_timeout": "200ms", "queue_max": 6, "max_failures": 1, "down_min": "50ms",
            "down_max": "200ms", "slow_start": "300ms"}
    proxy = house(lab, origins, workers=4, **plan)
    stop, seen, odd = time.monotonic() + 4, {}, []

    def load(patient):
        number = 0
        while time.monotonic() < stop:
            number += 1
            try:
                with proxy.wire(reverse=True) as wire:
                    wire.send(request("GET", f"/{number}", host="h"))
                    if not patient and number % 3 == 0:
                        time.sleep(0.003)
                        wire.abort()
                        continue
                    answer = wire.response()
                    seen[answer.status] = seen.get(answer.status, 0) + 1
                    if answer.status not in (200, 503):
                        odd.append((answer.status, answer.text()))
            except Exception as error:  # pylint: disable=broad-except
                odd.append(repr(error))
    threads = [threading.Thread(target=load, args=(number % 2,)) for number in range(16)]
    for thread in threads:
        thread.start()
    balances = ("least_connections", "consistent_hash", "round_robin")
    for turn in range(6):
        time.sleep(0.2)
        gone(origins[turn % 2])
        time.sleep(0.2)
        back(origins[turn % 2])
        proxy.write_config(proxy.text(extra=group(origins[:2 + turn % 2], balance=balances[turn % 3], **plan)))
        equal(proxy.reload().status, 200, "reload")
    for thread in threads:
        thread.join()
    equal(odd[:3], [], f"odd answers beside {seen}")
    true(seen.get(200, 0) > 100, f"answers {seen}")
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "all have ended")
    equal([server["active"] for server in state(proxy).values()], [0, 0, 0], "active afterwards")


@memcheck
def test_limits_of_origins_that_are_named_by_url(lab):
    """origin.max_connections: forward mode, and maps with one origin; each origin has its own."""
    gate, free = Gate(lab, 1), RawOrigin(lab, named(b"free"))
    limits = {"max_connections": 2, "queue_max": 3, "queue_timeout": "700ms"}
    proxy = Retort(lab, workers=2, reverse={"/": gate.origins[0].url("/")}, origin=limits)
    answers = []

    def one(number):
        url = gate.origins[0].url(f"/{number}") if number % 2 else f"/{number}"
        answers.append(proxy.get(url, host=None if number % 2 else "h"))
    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: len(answers) == 6, 10 * lab.patience, "six answers")
    equal([answer.status for answer in answers], [503] * 6, "statuses")
    texts = [answer.text() for answer in answers]
    equal((sum("queue_max" in text for text in texts), sum("queue_timeout" in text for text in texts)), (3, 3), "reasons")
    equal(proxy.get(free.url("/")).text(), "free", "another origin")
    gate.open.set()
    for thread in threads:
        thread.join()
    equal(gate.most, [2], "most requests at a time")
    equal([proxy.get(gate.origins[0].url(f"/again{number}")).text() for number in range(4)], ["s0"] * 4, "afterwards")


def tunnel(proxy, authority):
    wire = proxy.wire()
    wire.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    return wire, wire.response("CONNECT").status


def test_tunnels_count_at_origins_that_are_named_by_url(lab):
    """As long as they are open, beside requests to the same host and port; where nobody is there they hold no place."""
    origin, free, nowhere = RawOrigin(lab, named(b"page")), RawOrigin(lab, named(b"free")), ports.take()
    allow = f"connect_ports = {{ {origin.address[1]}, {free.address[1]}, {nowhere} }}"
    proxy = Retort(lab, workers=2, origin={"max_connections": 2, "queue_timeout": "200ms"}, extra=allow)
    wires = []
    for expected in (200, 200, 503):
        wire, status = tunnel(proxy, "%s:%d" % origin.address)
        equal(status, expected, f"status of tunnel {len(wires)}")
        wires.append(wire)
    equal(proxy.get(origin.url("/")).status, 503, "a request beside two tunnels")
    equal(tunnel(proxy, "%s:%d" % free.address)[1], 200, "another origin")
    equal([tunnel(proxy, f"127.0.0.1:{nowhere}")[1] for _ in range(4)], [502] * 4, "where nobody is there")
    for wire in wires:
        wire.close()
    until(lambda: proxy.get(origin.url("/")).status == 200, 10 * lab.patience, "places when they are closed")


@memcheck
def test_a_tunnel_waits_for_its_place(lab):
    origin = RawOrigin(lab, named(b"page"))
    proxy = Retort(lab, workers=2, origin={"max_connections": 1, "queue_timeout": "60s"},
                   extra=f"connect_ports = {{ {origin.address[1]} }}")
    authority = "%s:%d" % origin.address
    first, _ = tunnel(proxy, authority)
    statuses = []
    second = threading.Thread(target=lambda: statuses.append(tunnel(proxy, authority)[1]))
    second.start()
    until(lambda: proxy.counter("origin_queued") == 1, 10 * lab.patience, "one that waits")
    equal(statuses, [], "its status meanwhile")
    first.close()
    second.join()
    equal(statuses, [200], "its status")


def test_a_server_gets_its_own_back(lab):
    origins = servers(lab, 3)
    proxy = house(lab, origins, balance="consistent_hash", max_failures=1)
    before = {number: who(proxy, f"/{number}") for number in range(60)}
    gone(origins[1])
    for number in range(60):
        who(proxy, f"/{number}")
    back(origins[1])
    until(lambda: state(proxy)[origins[1].url("")]["state"] == "up" or who(proxy, "/poke") is None, 10 * lab.patience,
          "it is up")
    equal({number: who(proxy, f"/{number}") for number in range(60)}, before, "who has what")


def test_websocket_holds_its_place(lab):
    def upgrade(connection, seen):
        if seen.header("Upgrade") is None:
            return named(b"page")(connection, seen)
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while data := connection.read_some():
            connection.send(data)
        return True
    origin = RawOrigin(lab, upgrade)
    proxy = house(lab, [origin], max_connections=1, queue_timeout="200ms")
    with proxy.wire(reverse=True) as wire:
        wire.send(request("GET", "/chat", {"Connection": "Upgrade", "Upgrade": "websocket"}, host="h"))
        equal(wire.response().status, 101, "status")
        wire.send(b"ping")
        equal(wire.read_bytes(4), b"ping", "through the tunnel")
        equal(proxy.get("/", host="h").status, 503, "while it is open")
    until(lambda: state(proxy)[origin.url("")]["active"] == 0, 10 * lab.patience, "its end")
    equal(who(proxy), "page", "afterwards")


def test_a_reload_drops_nobody_who_waits(lab):
    lab.needs("admin")
    gate = Gate(lab, 1)
    proxy = house(lab, gate.origins, workers=2, max_connections=1, queue_timeout="30s")
    threads, answers = start_all(proxy, 4)
    until(lambda: proxy.counter("origin_queued") == 3, 10 * lab.patience, "three wait")
    proxy.write_config(proxy.text(reverse={"/": gate.origins[0].url("/")}, extra=""))
    equal(proxy.reload().status, 200, "reload without the group")
    equal(len(answers), 0, "answers so far")
    gate.open.set()
    for thread in threads:
        thread.join()
    equal([answer.status for answer, _ in answers], [200] * 4, "answers")
    equal(gate.most, [1], "most requests at a time")


def test_a_reload_lets_in_who_waits(lab):
    lab.needs("admin")
    gate = Gate(lab, 1)
    proxy = house(lab, gate.origins, workers=2, max_connections=1, queue_timeout="30s")
    threads, answers = start_all(proxy, 4)
    until(lambda: proxy.counter("origin_queued") == 3, 10 * lab.patience, "three wait")
    proxy.write_config(proxy.text(extra=group(gate.origins, max_connections=3)))
    equal(proxy.reload().status, 200, "reload with a larger limit")
    until(lambda: gate.inside == [3], 10 * lab.patience, "three inside")
    gate.open.set()
    for thread in threads:
        thread.join()
    equal([answer.status for answer, _ in answers], [200] * 4, "answers")


# Hosts that fall silent.

def test_one_lost_probe(lab):
    """RFC 1122 section 4.2.3.6: "it MUST NOT interpret failure to respond to any specific probe as a dead connection." """
    remote = Remote(lab)
    slow = Origin(lab, remote=remote)
    proxy = Retort(lab, reverse={"/": slow.url()}, origin={"connect_timeout": "700ms", "first_byte_timeout": "60s"})
    answers = []
    thread = threading.Thread(target=lambda: answers.append(proxy.get("/delay?ms=4000&cc=no-store").status))
    thread.start()
    until(lambda: slow.count("/delay") >= 1, 10 * lab.patience, "a request that waits for its answer")
    time.sleep(0.3)  # delayed acknowledgements have come
    remote.lose_one_probe()
    thread.join()
    equal((remote.counted("dropped"), answers), (1, [200]), "probes lost, statuses")


def test_a_host_that_falls_silent(lab):
    """Connections to it that were idle cost connect_timeout, not first_byte_timeout; a group asks another server."""
    remote = Remote(lab)
    silent, other = Origin(lab, remote=remote), Origin(lab)
    timeouts = {"connect_timeout": "1s", "first_byte_timeout": "60s"}
    proxy = house(lab, [silent, other], max_failures=1, down_min="1h", down_max="1h", retort={"origin": timeouts})
    alone = Retort(lab, reverse={"/": silent.url()}, origin=timeouts)
    for one in (proxy, alone):
        for _ in range(4):
            equal(one.get("/text?say=x&cc=no-store").status, 200, "status")
    slow = []
    threads = [threading.Thread(target=lambda: slow.append(measure(lambda: alone.get("/delay?ms=60000&cc=no-store"))))]
    threads[0].start()
    until(lambda: silent.count("/delay") >= 1, 10 * lab.patience, "a request that waits for its answer")
    remote.pull()
    answers = [measure(lambda: proxy.get("/text?say=x&cc=no-store")) for _ in range(4)]
    equal([answer.status for answer, _ in answers], [200] * 4, "statuses where there is another server")
    between(max(took for _, took in answers), 0, 3 * lab.patience, "the longest wait")
    true(len([1 for _, took in answers if took > 0.8]) <= 1, "one request waits for it")
    answer, took = measure(lambda: alone.get("/text?say=x&cc=no-store"))
    one_of(answer.status, (502, 504), "status where there is no other")
    between(took, 0, 4 * lab.patience, "seconds until it is known")
    threads[0].join()
    between(slow[0][1], 0, 8 * lab.patience, "seconds that a request which was under way takes")
