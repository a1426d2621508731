"""Limits: what each client, user or class may use, and what happens above that."""

import base64
import hashlib
import json
import threading
import time

from harness.checks import between, contains, equal, raises, true, until
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort, run_check
from harness.suite import memcheck
from harness.wire import Truncated, Wire, chunked, request

ONE, OTHER = "127.0.0.1", "127.0.0.7"


def limited(lab, options, extra="", **more):
    return Retort(lab, extra=f"limit all {{ {options} }}\n{extra}", **more)


def statuses(proxy, url, count, **options):
    return [proxy.get(url, **options).status for _ in range(count)]


def test_a_rate_with_its_burst(lab):
    """Each client has its own; what is refused says when to come back, does not count, and is told by whom."""
    origin = Origin(lab)
    proxy = limited(lab, 'requests = "6/min"  burst = 3', workers=2)
    equal(statuses(proxy, origin.url("/a"), 3), [200] * 3, "the burst")
    refused = proxy.get(origin.url("/b"))
    equal(refused.status, 429, "one more")
    between(int(refused.header("Retry-After")), 5, 10, "seconds to wait")
    contains(refused.text(), "too many requests", "the page")
    equal(statuses(proxy, origin.url("/c"), 3, source=OTHER), [200] * 3, "another client")
    entry = proxy.entries("/b")[-1]
    equal((entry["result"], entry["limit"], entry["step"]), ("DENIED", "all by client", "LIMIT"), "log")
    equal(proxy.counter("limit_refused"), 1, "counted")


def test_a_rate_returns(lab):
    origin = Origin(lab)
    proxy = limited(lab, 'requests = "5/s"  burst = 1  status = 503')
    seen = statuses(proxy, origin.url("/a"), 2)
    until(lambda: proxy.get(origin.url("/a")).status == 200, 5 * lab.patience, "the next one", pause=0.1)
    if lab.patience == 1:
        equal(seen, [200, 503], "answers")


@memcheck
def test_concurrent_requests_are_given_back(lab):
    """When they are answered, when their client leaves, and over a reload."""
    go = threading.Semaphore(0)

    def answer(connection, _request):
        go.acquire()  # pylint: disable=consider-using-with
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok")

    origin = RawOrigin(lab, answer)
    quick = Origin(lab)
    proxy = limited(lab, "concurrent = 2", workers=2)
    first, second = proxy.wire(), proxy.wire()
    for wire, path in ((first, "/slow"), (second, "/slower")):
        wire.send(request("GET", origin.url(path)))
    until(lambda: len(origin.requests) == 2, 10 * lab.patience, "both are under way")
    equal(proxy.get(quick.url("/x")).status, 429, "a third")
    equal(proxy.reload().status, 200, "reload")
    refused = proxy.get(quick.url("/x"))
    equal((refused.status, refused.header("Retry-After")), (429, "1"), "a third after the reload")
    second.abort()
    until(lambda: proxy.get(quick.url("/x")).status == 200, 10 * lab.patience, "one has left")
    go.release()
    go.release()
    equal(first.response().status, 200, "the first")
    first.send(request("GET", quick.url("/y")))
    equal(first.response().status, 200, "again")


def test_close_is_no_answer(lab):
    origin = Origin(lab)
    proxy = limited(lab, 'requests = "1/min"  status = close')
    equal(proxy.get(origin.url("/a")).status, 200, "the first")
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/b")))
        equal(wire.read_to_end(), b"", "what comes")
    equal(proxy.entries("/b")[0]["limit"], "all by client", "log")


def test_the_class_shares_a_limit(lab):
    origin = Origin(lab)
    proxy = Retort(lab, extra='url_class few { path_regex = "^/few" }\n'
                              'limit few { by = class  requests = "1/min" }')
    equal(statuses(proxy, origin.url("/few"), 2), [200, 429], "one client")
    equal(statuses(proxy, origin.url("/few"), 1, source=OTHER), [429], "another client")
    equal(statuses(proxy, origin.url("/many"), 3), [200] * 3, "not of the class")


def proof_of(user):
    return {"Proxy-Authorization": "Basic " + base64.b64encode(f"{user}:secret".encode()).decode()}


def test_users_have_their_own(lab):
    """Two on one address do not share; one on two addresses does."""
    secret = base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
    users = lab.write("users", "".join(f"{user}:{{SHA}}{secret}\n" for user in ("anna", "bert")))
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, extra='limit all { by = user  requests = "3/h" }\n'
                                         f'authenticator staff {{ type = basic  file = "{users}" }}\n'
                                         "access all { action = authenticate  with = staff }")
    url = origin.url("/a")
    equal(statuses(proxy, url, 2, headers=proof_of("anna")), [200, 200], "anna, on one address")
    equal(statuses(proxy, url, 2, headers=proof_of("anna"), source=OTHER), [200, 429], "anna, on another")
    equal(statuses(proxy, url, 1, headers=proof_of("anna")), [429], "anna, back on the first")
    equal(statuses(proxy, url, 3, headers=proof_of("bert")), [200] * 3, "bert, on an address of anna's")
    equal(statuses(proxy, url, 1), [407], "nobody")
    listed = {entry["client"]: entry["taken"] for entry in json.loads(proxy.ctl("limits", "--json"))["list"]}
    equal(listed, {"user anna": 3, "user bert": 3}, "what is counted")


class Behind:
    """A proxy that believes what is in front of it. One connection carries requests of any client."""

    def __init__(self, lab, options, extra=""):
        self.origin = Origin(lab)
        self.proxy = limited(lab, options, extra, client={"max_connections": 100})
        self.proxy.write_config(self.proxy.text().replace("mode = forward", 'mode = forward  allow = { "0.0.0.0/0", "::/0" }  trusted_proxies = "127.0.0.1"'))
        self.proxy.restart()
        self.url = self.origin.url("/text?say=hello&cc=max-age%3D3600")

    def statuses(self, clients):
        """Asked together, fifty at a time."""
        seen = []
        with self.proxy.wire() as wire:
            for at in range(0, len(clients), 50):
                some = clients[at:at + 50]
                wire.send(b"".join(request("GET", self.url, {"X-Forwarded-For": client}) for client in some))
                seen += [wire.response().status for _ in some]
        return seen


def test_the_connection_of_a_trusted_proxy_is_no_clients(lab):
    """It carries requests of many clients, so it neither counts for them nor is closed for one of them. What the proxy
    asks for itself, and what all clients share, counts."""
    site = Behind(lab, "connections = 1", "limit all { by = class  connections = 3 }")
    with site.proxy.wire() as first, site.proxy.wire() as second, site.proxy.wire() as own, site.proxy.wire() as fourth:
        for wire, client, status in ((first, "192.0.2.1", 200), (first, "192.0.2.2", 200), (second, "192.0.2.1", 200),
                                     (second, "192.0.2.1", 200), (own, None, 200), (fourth, "192.0.2.3", 429)):
            wire.send(request("GET", site.url, {"X-Forwarded-For": client} if client else {}))
            equal(wire.response().status, status, f"{client}")
        true(fourth.at_end(), "one too many for the class is closed")
        with site.proxy.wire() as wire:
            wire.send(request("GET", site.url))
            equal(wire.response().status, 429, "another connection of the proxy's own requests")


def test_close_spares_the_clients_behind_the_same_proxy(lab):
    """One client over its limit can't break off what the proxy in front fetches for others on that connection."""
    site = Behind(lab, 'requests = "1/h"  status = close')
    first, greedy, other = "192.0.2.1", "192.0.2.2", "192.0.2.3"
    with site.proxy.wire() as wire:
        wire.send(b"".join(request("GET", site.url, {"X-Forwarded-For": client})
                           for client in (greedy, first, greedy, greedy, other)))
        answers = [wire.response() for _ in range(5)]
        equal([answer.status for answer in answers], [200, 200, 429, 429, 200], "on one connection")
        true(answers[2].header("Retry-After"), "Retry-After")
        wire.send(request("GET", site.url, {"X-Forwarded-For": "192.0.2.4"}))
        equal(wire.response().status, 200, "the connection stays")
        wire.send(request("GET", site.url) * 2)  # of the proxy itself
        equal([wire.response().status, wire.response().status], [200, 429], "the proxy's own requests")
    with site.proxy.wire(source=OTHER) as wire:  # nobody trusts this one
        wire.send(request("GET", site.url, {"X-Forwarded-For": "192.0.2.5"}) * 2)
        equal((wire.response().status, wire.read_to_end()), (200, b""), "a client that names others is cut off")


def test_a_network_of_64_bits_is_one_client(lab):
    """Whatever addresses of it are used; and its neighbour is another one."""
    site = Behind(lab, 'requests = "2/h"')
    equal(site.statuses([f"2001:db8:0:1:{i:x}::{i:x}" for i in range(1, 21)]), [200] * 2 + [429] * 18, "addresses of one network")
    equal(site.statuses(["2001:db8:0:2::1"]), [200], "its neighbour")
    equal(site.statuses(["::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1"]), [200, 200, 429], "one IPv4 address in two forms")
    listed = {entry["client"]: entry["taken"] for entry in json.loads(site.proxy.ctl("limits", "--json"))["list"]}
    equal(listed, {"2001:db8:0:1::/64": 2, "2001:db8:0:2::/64": 1, "192.0.2.1": 2}, "what is counted")


def test_a_client_with_a_large_network_fills_the_table(lab):
    """It keeps nobody out, and frees neither itself nor others that are at their limit."""
    site = Behind(lab, 'requests = "1/h"', "limits { entries = 1000 }")
    waiting = [f"192.0.{i}.1" for i in range(20)]
    equal(site.statuses(waiting + waiting), [200] * 20 + [429] * 20, "clients that are at their limit")
    attack = [f"2001:db8:7:{i:x}::1" for i in range(1300) for _ in range(2)]
    seen = site.statuses(attack)
    true(503 in seen[-200:], "the table is full, and the attacker is told so")
    equal(site.statuses(waiting), [429] * 20, "those at their limit still are")
    equal(site.statuses([attack[0], attack[600]]), [429, 429], "the attacker's first addresses")
    equal(site.statuses([f"198.51.{i}.1" for i in range(30)]), [200] * 30, "others, of any network")
    equal(site.statuses([f"2001:db8:8:{i:x}::1" for i in range(30)]), [200] * 30, "its neighbours")
    site.statuses([f"2001:db8:7:{i:x}::1" for i in range(2000, 2100) for _ in range(2)])
    equal(site.statuses(waiting), [429] * 20, "those at their limit still are, in the end")
    equal(site.statuses([f"198.18.{i}.1" for i in range(30)]), [200] * 30, "others, in the end")


def test_all_sections_that_match_apply(lab):
    """What the second refuses is given back to the first."""
    origin = Origin(lab)
    proxy = limited(lab, 'requests = "3/h"', extra='limit all { requests = "1/h" }\nlimit all { by = class  requests = "9/h" }')
    equal(statuses(proxy, origin.url("/a"), 2), [200, 429], "answers")
    equal(proxy.entries("/a", 2)[-1]["limit"], "all by client (2)", "log")
    taken = {entry["section"]: entry["taken"] for entry in json.loads(proxy.ctl("limits", "--json"))["list"]}
    equal(taken, {"all by client": 1, "all by client (2)": 1, "all by class": 1}, "taken")


def test_connections_that_carried_requests(lab):
    origin = Origin(lab)
    proxy = limited(lab, "connections = 2")
    wires = [proxy.wire() for _ in range(3)]
    for wire, status in zip(wires, (200, 200, 429)):
        wire.send(request("GET", origin.url("/a")))
        equal(wire.response().status, status, "status")
    true(wires[2].at_end(), "the one too many is closed")
    wires[0].close()
    until(lambda: proxy.get(origin.url("/a")).status == 200, 5 * lab.patience, "one is closed")
    wires[1].send(request("GET", origin.url("/a")))
    equal(wires[1].response().status, 200, "the connection is counted once")


def fetch_all(calls):
    """Runs the calls at once; returns when each ended, in seconds, and what it returned."""
    ends, begin = [None] * len(calls), time.monotonic()

    def run(i):
        got = calls[i]()
        ends[i] = (time.monotonic() - begin, got)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def test_bandwidth_is_shaped_and_shared(lab):
    """Two connections of a client take turns and end together; another client does not wait for them."""
    origin = Origin(lab)
    proxy = limited(lab, 'bandwidth = "200KB"', workers=2)
    url = origin.url("/bytes", n=100_000)
    proxy.get(url, source="127.0.0.9")
    (first, one), (second, two) = fetch_all([lambda: proxy.get(url), lambda: proxy.get(url)])
    equal((len(one.body), len(two.body)), (100_000, 100_000), "whole")
    true(one.body == origin.body(100_000), "the first has other bytes")
    for seconds in (first, second):
        between(seconds, 0.55, 1.5 * lab.patience, "seconds for 200 KB at 200 KB/s")
    between(abs(first - second), 0, 0.3 * lab.patience, "seconds between both ends")


def test_uploads_are_read_more_slowly(lab):
    origin = Origin(lab)
    proxy = limited(lab, 'upload_bandwidth = "100KB"')
    for headers, body in (({}, b"x" * 80_000), ({"Transfer-Encoding": "chunked"}, chunked(*[b"x" * 8000] * 10))):
        begin = time.monotonic()
        with proxy.wire() as wire:
            wire.send(request("POST", origin.url("/echo"), {"Content-Length": "80000"} if not headers else headers) + body)
            equal(wire.response().status, 200, "status")
        between(time.monotonic() - begin, 0.5, 3 * lab.patience, "seconds for 80 KB at 100 KB/s")


def test_tunnels_are_shaped(lab):
    origin = Origin(lab)
    proxy = limited(lab, 'bandwidth = "200KB"', extra=f"connect_ports = {{ {origin.port} }}")
    with proxy.wire() as wire:
        wire.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
        equal(wire.response("CONNECT").status, 200, "status")
        begin = time.monotonic()
        wire.send(b"GET /bytes?n=120000 HTTP/1.1\r\nHost: x\r\n\r\n")
        equal(len(wire.response().body), 120_000, "bytes")
        between(time.monotonic() - begin, 0.35, 2 * lab.patience, "seconds for 120 KB at 200 KB/s")


def test_sizes(lab):
    """A body that is too large is refused, or broken off where its length is not known; and it is not stored as whole."""
    origin = Origin(lab)
    proxy = limited(lab, 'max_request = 1000  max_response = 10000')
    equal(proxy.fetch("POST", origin.url("/echo"), body=b"x" * 1000).status, 200, "an upload of the limit")
    equal(proxy.fetch("POST", origin.url("/echo"), body=b"x" * 1001).status, 413, "a larger one")
    for length, status in ((1000, 200), (1001, 413), (70_000, 413)):
        with proxy.wire() as wire:
            wire.send(request("POST", origin.url("/echo"), {"Transfer-Encoding": "chunked"}) + chunked(b"x" * length))
            equal(wire.response().status, status, f"an upload in chunks, {length} bytes")
    equal(proxy.get(origin.url("/bytes", n=10_000)).status, 200, "a response of the limit")
    for _ in range(2):
        equal(proxy.get(origin.url("/bytes", n=10_001)).status, 403, "a larger one")
    equal(proxy.fetch("HEAD", origin.url("/bytes", n=10_001)).status, 200, "its head")
    equal(len(proxy.get(origin.url("/chunked", n=9000)).body), 9000, "a small one in chunks")


def endless(connection, _request):
    """A response whose end nobody knows: its first chunk is larger than the limit."""
    connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + chunked(b"x" * 60_000, last=b""))
    time.sleep(0.2)
    return True


def test_a_reply_is_cut_at_its_limit(lab):
    """It ends without its last chunk, and what was cut is not stored."""
    origin = RawOrigin(lab, endless)
    proxy = limited(lab, "max_response = 10000")
    for _ in range(2):
        error = raises(Truncated, lambda: proxy.get(origin.url("/long")), "a response that is too large")
        true(len(error.response.body) <= 10_001, "more than the limit was sent")
    equal([(entry["limit"], entry["aborted"], entry["result"]) for entry in proxy.entries("/long", 2)],
          [("all by client", True, "MISS")] * 2, "log")
    equal(proxy.counter("limit_refused"), 2, "counted")


def test_heads_and_urls_of_a_listener(lab):
    origin = Origin(lab)
    proxy = Retort(lab)
    text = proxy.text().replace("mode = forward", 'mode = forward  max_head = "2KB"  max_url = 300')
    proxy.write_config(text)
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get(origin.url("/" + "a" * 200)).status, 200, "a short URL")
    refused = proxy.get(origin.url("/" + "a" * 400))
    equal(refused.status, 414, "a long URL")
    equal(proxy.get(origin.url("/a"), {"X-Long": "x" * 2000}).status, 431, "a large head")
    equal(proxy.get("/" + "a" * 400).status, 404, "the other listener")


@memcheck
def test_one_client_has_a_share_of_all_connections(lab):
    """For all workers together; half-open ones are fewer still. Nobody else pays for it."""
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, client={"max_connections_per_client": 6, "max_half_open": 3,
                                           "uncounted": "127.0.0.9"})
    wires = [Wire(proxy.forward, source=OTHER) for _ in range(4)]
    until(lambda: proxy.counter("client_half_open_rejected") == 1, 10 * lab.patience, "one too many is silent")
    for wire in wires[:3]:
        wire.socket.setblocking(True)
    talking = []
    for _ in range(3):
        wire = Wire(proxy.forward, source=OTHER, timeout=10 * lab.patience)
        wire.send(request("GET", origin.url("/a")))
        equal(wire.response().status, 200, "one that speaks")
        talking.append(wire)
    with Wire(proxy.forward, source=OTHER) as wire:
        wire.send(request("GET", origin.url("/a")))
        equal(wire.read_to_end(), b"", "the seventh")
    equal(proxy.counter("client_share_rejected"), 1, "counted")
    equal(proxy.get(origin.url("/a"), source="127.0.0.8").status, 200, "another client")
    many = [Wire(proxy.forward, source="127.0.0.9") for _ in range(8)]
    equal(proxy.get(origin.url("/a"), source="127.0.0.9").status, 200, "one that is not counted")
    for wire in wires + talking + many:
        wire.close()
    until(lambda: proxy.fetch("GET", origin.url("/a"), source=OTHER, headers={"Connection": "close"}).status == 200,
          5 * lab.patience, "its connections are closed")


def test_slow_heads_and_bodies(lab):
    origin = Origin(lab)
    proxy = Retort(lab, client={"min_rate": 1000, "min_rate_after": "300ms"})
    with proxy.wire() as head, proxy.wire() as body, proxy.wire() as fast:
        head.send(b"GET / HTTP/1.1\r\nHost: a\r\n")
        body.send(request("POST", origin.url("/echo"), {"Content-Length": "100"}) + b"x")
        fast.send(request("POST", origin.url("/echo"), {"Content-Length": "4000"}) + b"x" * 3000)
        time.sleep(0.1)
        equal(body.response().status, 408, "a slow body")
        equal(head.read_to_end(), b"", "a slow head")
        fast.send(b"x" * 1000)
        equal(fast.response().status, 200, "a body that was fast before it paused")
    equal(proxy.counter("client_too_slow"), 2, "counted")


def test_limits_are_shown_and_cleared(lab):
    origin = Origin(lab)
    proxy = limited(lab, 'requests = "2/h"')
    for source in (ONE, OTHER):
        equal(statuses(proxy, origin.url("/a"), 3, source=source), [200, 200, 429], "answers")
    shown = proxy.ctl("limits", "show")
    contains(shown, "all by client: 2 refused (rate)", "retortctl limits show")
    contains(shown, OTHER, "retortctl limits show")
    listed = json.loads(proxy.ctl("limits", "show", "--client", OTHER, "--json"))["list"]
    equal([(entry["section"], entry["client"], entry["taken"], entry["refused"]) for entry in listed],
          [("all by client", OTHER, 2, 1)], "one client")
    equal(proxy.ctl("limits", "clear", "--section", "all by client", "--client", OTHER), "1 entry cleared\n", "cleared")
    equal(statuses(proxy, origin.url("/a"), 1, source=OTHER), [200], "begins anew")
    equal(statuses(proxy, origin.url("/a"), 1, source=ONE), [429], "not cleared")
    proxy.ctl("limits", "clear", "--section", "none", expect=1)
    proxy.ctl("limits", "wrong", expect=2)
    contains(proxy.admin("GET", "/metrics").text(),
             'retort_limit_section_refused_total{section="all by client",reason="rate"} 3', "metrics")


def test_a_bad_limit_is_named(lab):
    for options, words in (('requests = "10"', "10/s"), ('requests = "0/s"', "10/s"), ("burst = 3  concurrent = 2", "requests"),
                           ("by = user", "limits nothing"), ("status = 404  concurrent = 1", "429")):
        text = f'listen "127.0.0.1:1" {{ mode = forward }}\nlimit all {{ {options} }}\n'
        status, said = run_check(lab, lab.write("bad.conf", text))
        true(status != 0, f"{options}: accepted")
        contains(said, words, options)
