"""Servers of a group that SRV records name (RFC 2782): who is asked, what a new answer changes, and what forged ones can not."""

import json
import threading
import time

from harness import ports
from harness.certificates import Authority
from harness.checks import between, contains, equal, lacks, one_of, true, until
from harness.dns import SRV, NameServer
from harness.groups import gone, named, state
from harness.network import Network
from harness.raw_origin import RawOrigin
from harness.retort import Retort, options_text
from harness.suite import memcheck
from harness.tls_origin import TlsOrigin

NAME = "_http._tcp.shop.test"
URL = f"http://{NAME}"


class Site:
    """A group whose servers are those that `set` names: (origin or port, priority, weight)."""

    def __init__(self, lab, *records, url=URL, more=(), name=NAME, ttl=0, origin=None, extra="", retort=None, **options):
        self.lab, self.name = lab, name
        self.dns = NameServer(lab)
        for host in ("a.test", "b.test"):
            self.dns.set(host, "127.0.0.1")
        self.set(*records, ttl=ttl)
        options = {"srv_ttl_min": "100ms", "local_destinations": "=allow", "down_min": "300ms", "down_max": "1s", **options}
        options = {key: "=" + value if key == "balance" else value for key, value in options.items() if value is not None}
        group = f'origins web {{ {options_text({"servers": [url + " srv", *more], **options})} }}\n'
        self.proxy = Retort(lab, reverse={"/": "web"}, extra=group + extra, **(retort or {}),
                            origin={"dns_servers": [self.dns.address], "dns_search": "none", "hosts_file": "none",
                                    "dns_timeout": "1s", **(origin or {})})

    def set(self, *records, ttl=0, **options):
        listed = []
        for one, priority, weight in records:
            target, port = one if isinstance(one, tuple) else ("a.test", one if isinstance(one, int) else one.port)
            listed.append((priority, weight, port, target))
        self.dns.set(self.name, srv=listed, ttl=ttl, **options)

    def get(self, path="/", **options):
        return self.proxy.get(path, host="www.example.com", **options)

    def tally(self, count):
        seen = {}
        for number in range(count):
            answer = self.get(f"/{number}")
            key = answer.text() if answer.status == 200 else answer.status
            seen[key] = seen.get(key, 0) + 1
        return seen

    def source(self):
        return json.loads(self.proxy.admin("GET", "/origins").body)["origins"][0]["sources"][0]

    def until_servers(self, count):
        until(lambda: len(state(self.proxy)) == count, 10 * self.lab.patience, f"{count} servers")

    def until_asked(self, more=2):
        before = self.dns.asked(self.name, SRV)
        until(lambda: self.dns.asked(self.name, SRV) >= before + more, 10 * self.lab.patience, "further questions")


def servers(lab, count, **options):
    return [RawOrigin(lab, named(b"s%d" % number, **options)) for number in range(count)]


def test_weights_and_host(lab):
    """ "Larger weights SHOULD be given a proportionately higher probability of being selected." A weight of 0 counts as 1."""
    origins = servers(lab, 3)
    site = Site(lab, (origins[0], 10, 30), (origins[1], 10, 10), (origins[2], 10, 0), ttl=7)
    equal(site.get("/first").status, 200, "the first request waits for the first answer")
    seen = site.tally(82)
    between(seen["s0"], 58, 62, "share of weight 30")
    between(seen["s1"], 18, 22, "share of weight 10")
    between(seen.get("s2", 0), 1, 3, "share of weight 0")
    equal({one.header("Host") for one in origins[0].requests}, {"shop.test"}, "Host")
    source = site.source()
    equal((source["url"], source["named"], source["state"], source["servers"], source["failing"]), (URL, "http://shop.test", "found", 3, False), "the page")
    one = state(site.proxy)[f"http://a.test:{origins[0].port}"]
    equal((one["source"], one["priority"], one["weight"]), (URL, 10, 30), "a server on the page")
    contains(site.proxy.ctl("origins"), f"{URL} (http://shop.test): 3 servers, ttl 7 s, asked again in ", "retortctl origins")
    true(site.proxy.counter("origin_srv_answers") >= 1, "answers are counted")


def test_priorities_and_backups(lab):
    """ "A client MUST attempt to contact the target host with the lowest-numbered priority it can reach." """
    origins = servers(lab, 4)
    site = Site(lab, (origins[1], 20, 5), (origins[0], 10, 0), (origins[2], 20, 5), more=[origins[3].url("") + " backup"], max_failures=1)
    equal(site.tally(10), {"s0": 10}, "the lowest priority")
    gone(origins[0])
    equal(site.tally(10), {"s1": 5, "s2": 5}, "the next priority")
    gone(origins[1])
    gone(origins[2])
    equal(site.tally(10), {"s3": 10}, "the backup comes last")


def test_change_under_load_loses_no_request(lab):
    origins = servers(lab, 4, pause=0.01)
    site = Site(lab, (origins[0], 0, 1), (origins[1], 0, 1), retort={"workers": 2})
    answers, stop = [], threading.Event()

    def load():
        while not stop.is_set():
            answers.append(site.get("/").status)
    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    kept = f"http://a.test:{origins[1].port}"
    until(lambda: state(site.proxy).get(kept, {}).get("requests", 0) > 10, 10 * lab.patience, "requests")
    for chosen in ((1, 2), (1, 3), (1, 2, 3), (1, 0)):
        before = state(site.proxy)[kept]["requests"]
        site.set(*[(origins[one], 0, 1) for one in chosen])
        wanted = {f"http://a.test:{origins[one].port}" for one in chosen}
        until(lambda wanted=wanted: set(state(site.proxy)) == wanted, 10 * lab.patience, "the new servers")
        true(state(site.proxy)[kept]["requests"] >= before, "what stays keeps its counts")
    stop.set()
    for thread in threads:
        thread.join()
    true(len(answers) > 100, f"{len(answers)} answers")
    equal(set(answers), {200}, "statuses")
    true(all(one.requests for one in origins), "all of them were asked")
    true(site.proxy.counter("origin_srv_changes") >= 5, "changes are counted")


def test_failures_keep_the_servers(lab):
    """SERVFAIL, an answer that is garbage, silence, and a reload meanwhile."""
    origin, = servers(lab, 1)
    site = Site(lab, (origin, 0, 0), origin={"dns_stale": "0"})
    equal(site.get().status, 200, "at first")
    for options in ({"code": 2}, {"code": 5}, {"raw": b"\x81\x80\0\1\xff\xff\0\0\0\0"}, {"silent": True}):
        before = site.proxy.counter("origin_srv_failures")
        site.dns.set(NAME, **options)
        until(lambda: site.proxy.counter("origin_srv_failures") > before, 10 * lab.patience, f"a failure, {options}")
        equal(site.get().status, 200, f"with {options}")
        equal((site.source()["state"], site.source()["failing"]), ("found", True), f"the page, {options}")
    site.proxy.reload()
    site.until_asked(1)
    equal(site.get().status, 200, "after a reload")
    equal(list(state(site.proxy).values())[0]["requests"], 6, "and its counts are kept")
    contains(site.proxy.process.log(), f"the SRV records of {NAME} can't be looked up", "log")
    site.set((origin, 0, 0))
    until(lambda: not site.source()["failing"], 10 * lab.patience, "an answer")


@memcheck
def test_no_servers(lab):
    """NXDOMAIN, no records, and "A Target of "." means that the service is decidedly not available at this domain"."""
    origin, = servers(lab, 1)
    site = Site(lab, (origin, 0, 0), health_check="/health", check_interval="50ms")
    equal(site.get().status, 200, "at first")
    for options, why in (({"code": 3}, "there is no such name"), ({}, "the name has no SRV records"),
                         ({"srv": [(0, 0, 0, ".")]}, "the service is not available at this domain")):
        site.dns.set(NAME, ttl=0, **options)
        site.until_servers(0)
        answer = site.get()
        equal(answer.status, 503, f"status: {why}")
        contains(answer.text(), "DNS names none for it", "the page")
        contains(site.source()["last_error"], why, "the reason")
        contains(site.proxy.ctl("origins"), why, "retortctl origins")
        contains(site.proxy.process.log(), f"{NAME} names no servers: {why}", "log")
        lacks(site.proxy.admin("GET", "/metrics").text(), "retort_origin_server_up{", "metrics")
        before = len(origin.requests)
        time.sleep(0.2)
        equal(len(origin.requests), before, "health checks of nobody")
        site.set((origin, 0, 0))
        site.until_servers(1)
        equal(site.get().status, 200, "when it is back")
    true(site.proxy.counter("origin_srv_empty") >= 3, "counted")


def test_no_answer_at_the_start(lab):
    """Requests wait for the first answer, but no longer than for the name servers, or queue_timeout."""
    site = Site(lab, retort={"memcheck": False}, origin={"dns_timeout": "600ms", "dns_tries": 1})
    site.dns.silent = True
    site.proxy.restart()
    answer = site.get()
    equal(answer.status, 503, "status")
    contains(answer.text(), "has not been asked with success yet", "the page")
    equal(site.source()["state"], "unknown", "state")
    site.dns.silent = False
    origin, = servers(lab, 1)
    site.set((origin, 0, 0))
    site.until_servers(1)
    equal(site.get().status, 200, "when it answers")


FORGED = ["127.0.0.1", "127.8.8.8", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "::ffff:127.0.0.1", "100.100.100.200"]


def test_forged_targets(lab):
    """Whoever changes the records reaches nothing that trusts local connections."""
    origin, = servers(lab, 1)
    site = Site(lab, local_destinations=None, balance="round_robin", max_failures=0)
    for number, address in enumerate(FORGED):
        site.dns.set(f"evil{number}.test", address)
    for number in range(len(FORGED)):
        site.set(((f"evil{number}.test", origin.port), 0, 0))
        until(lambda number=number: f"http://evil{number}.test:{origin.port}" in state(site.proxy), 10 * lab.patience, FORGED[number])
        answer = site.get()
        equal(answer.status, 502, FORGED[number])
        contains(answer.text(), "origins.local_destinations", FORGED[number])
    for target in ("localhost", "127.0.0.1", "2130706433", "some.localhost"):
        site.set(((target, origin.port), 0, 0))
        until(lambda target=target: f"http://{target}:{origin.port}" in state(site.proxy), 10 * lab.patience, target)
        equal(site.get().status, 502, target)
    equal(len(origin.requests), 0, "requests that came through")
    equal(site.proxy.counter("origin_srv_refused"), len(FORGED) + 4, "refused")
    equal(site.proxy.counter("destinations_denied"), 0, "no client is blamed")


def test_the_proxy_itself_is_never_a_server(lab):
    """With local_destinations = allow too: neither its listeners nor its admin plane, by requests and by health checks."""
    site = Site(lab, health_check="/", check_interval="50ms", retort={"admin": ("127.0.0.1", ports.take())})
    for port in (site.proxy.admin_path[1], site.proxy.reverse[1], site.proxy.forward[1]):
        site.set((port, 0, 0))
        until(lambda port=port: f"http://a.test:{port}" in state(site.proxy), 10 * lab.patience, "the server")
        answer = site.get()
        equal(answer.status, 502, "status")
        contains(answer.text(), "the proxy itself listens at", "the page")
        until(lambda port=port: state(site.proxy)[f"http://a.test:{port}"]["failed_in_a_row"] > 1, 10 * lab.patience, "health checks fail too")


def test_private_addresses_are_in_reach(lab):
    """What is out of reach is the machine itself, by whatever address, and not the network that it is in."""
    network = Network(lab)
    with network.server:
        origin = RawOrigin(lab, named(b"inside"), network.server.v4)
    with network.router:
        near = RawOrigin(lab, named(b"near"), network.router.v4)
        site = Site(lab, (origin, 0, 0), local_destinations=None)
        site.dns.set("a.test", network.server.v4)
        equal(site.get().text(), "inside", "a server of the network")
        site.dns.set("b.test", network.router.v4)
        site.set((("b.test", near.port), 0, 0))
        until(lambda: f"http://b.test:{near.port}" in state(site.proxy), 10 * lab.patience, "the machine's own address")
        equal(site.get().status, 502, "the machine's own address")
    equal(len(near.requests), 0, "requests there")


def test_a_client_with_many_look_ups_brings_no_server_down(lab):
    """The name of a server is looked up on nobody's account: a client's own names may be refused, and nothing else is."""
    origin, = servers(lab, 1)
    site = Site(lab, (("b.test", origin.port), 0, 0), max_failures=1, origin={"dns_client_lookups": 1, "dns_timeout": "5s"})
    site.dns.set("slow.test", silent=True)
    until(lambda: len(state(site.proxy)) == 1, 10 * lab.patience, "the server")
    asking = threading.Thread(target=site.proxy.get, args=("http://slow.test/",))
    asking.start()
    until(lambda: site.dns.asked("slow.test"), 10 * lab.patience, "the client's look-up")
    equal(site.proxy.get("http://other.test/").status, 502, "another name of the client")
    true(site.proxy.counter("dns_refused") > 0, "it is refused")
    equal(site.get().status, 200, "the server's name")
    site.dns.set("slow.test", "127.0.0.1")
    asking.join()


def test_servers_are_drained_together(lab):
    origins = servers(lab, 2)
    site = Site(lab, (origins[0], 0, 1), more=[origins[1].url("")])
    equal(site.tally(4), {"s0": 2, "s1": 2}, "at first")
    site.proxy.ctl("set", f"origins.web.servers[{URL}]=srv drain")
    equal(site.tally(4), {"s1": 4}, "drained")
    site.proxy.ctl("unset", f"origins.web.servers[{URL}]")
    equal(site.tally(4), {"s0": 2, "s1": 2}, "and back")


def test_reach_is_kept_apart(lab):
    """A connection that was made while local destinations were allowed does not serve when they are not."""
    origin, = servers(lab, 1)
    site = Site(lab, (origin, 0, 0))
    equal(site.get().status, 200, "allowed")
    site.proxy.write_config(site.proxy.text().replace("local_destinations = allow  down_min", "down_min"))
    lacks(open(site.proxy.config_path, encoding="utf-8").read().split("origins web")[1], "local_destinations", "the configuration")
    site.proxy.reload()
    equal(site.get().status, 502, "denied, with a connection in the pool")


def test_search_domains_complete_no_target(lab):
    origin, = servers(lab, 1)
    site = Site(lab, (("inner", origin.port), 0, 0), origin={"dns_search": ["corp.test"], "dns_search_clients": True})
    site.dns.set("inner.corp.test", "127.0.0.1")
    site.dns.set(NAME + ".corp.test", srv=[(0, 0, origin.port, "a.test")])
    equal(site.get().status, 502, "status")
    equal(site.dns.asked("inner.corp.test"), 0, "questions for the completed name")
    site.dns.set(NAME, code=3)
    site.until_servers(0)
    site.until_asked()
    equal(site.dns.asked(NAME + ".corp.test", SRV), 0, "questions for the completed SRV name")


def test_many_servers(lab):
    """300 in an answer by TCP: srv_servers of them are used, those of the lowest priorities."""
    origin, = servers(lab, 1)
    site = Site(lab, *[(20000 + number, 5, 1) for number in range(299)], (origin, 1, 0), srv_servers=50)
    equal(site.tally(3), {"s0": 3}, "the lowest priority")
    equal(len(state(site.proxy)), 50, "servers")
    true(site.dns.over_tcp > 0, "TCP")
    equal(site.source()["left_out"], 250, "left out")
    true(site.proxy.counter("origin_srv_left_out") >= 250, "counted")
    contains(site.proxy.process.log(), "names are used, left out: 250", "log")


def test_ttl(lab):
    origin, = servers(lab, 1)
    site = Site(lab, (origin, 0, 0), srv_ttl_min="300ms", srv_ttl_max="900ms")
    for ttl, least, most in ((0, 0.3, 0.3), (0x7fffffff, 0.9, 0.9)):
        site.set((origin, 0, 0), ttl=ttl)
        until(lambda least=least: site.source()["ttl"] == least, 10 * lab.patience, f"ttl {ttl}")
    before, begin = site.dns.asked(NAME, SRV), time.monotonic()
    site.until_asked(3)
    true(time.monotonic() - begin >= 1.6, f"{site.dns.asked(NAME, SRV) - before} questions in {time.monotonic() - begin} s")


def test_certificates_are_of_the_configured_name(lab):
    """A server that DNS names proves that it is the service, and not that it is who DNS says."""
    root = Authority(lab)
    good, other = TlsOrigin(lab, root.leaf("shop.test"), named(b"good")), TlsOrigin(lab, root.leaf("a.test", "127.0.0.1"), named(b"other"))
    name = "_https._tcp.shop.test"
    site = Site(lab, (good, 0, 0), url=f"https://{name}", name=name, origin={"ca_file": root.file})
    equal(site.get().text(), "good", "answer")
    equal(good.requests[0].header("Host"), "shop.test", "Host")
    site.set((other, 0, 0))
    until(lambda: f"https://a.test:{other.port}" in state(site.proxy), 10 * lab.patience, "the other server")
    answer = site.get()
    equal(answer.status, 502, "a certificate of the name that DNS gives")
    contains(answer.text(), "shop.test", "the page")
    equal(len(other.requests), 0, "requests that it got")
    called = Site(lab, (other, 0, 0), url=f"https://{name}", name=name, origin={"ca_file": root.file})
    called.proxy.write_config(called.proxy.text().replace(f"{name} srv", f"{name} srv name=a.test"))
    called.proxy.reload()
    equal(called.get().text(), "other", "with name=")


def test_locations_come_back(lab):
    def answer(connection, seen):
        where = {"/named": b"http://shop.test/x", "/target": b"http://%s/x" % f"a.test:{origin.port}".encode()}[seen.target]
        connection.send(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n" % where)
        return True
    origin = RawOrigin(lab, answer)
    site = Site(lab, (origin, 0, 0))
    for path in ("/named", "/target"):
        equal(site.get(path).header("Location"), "/x", path)


def test_reload_and_checks(lab):
    """Servers that stay keep their health over a reload and a new answer, and checks follow the servers."""
    origins = servers(lab, 3)
    site = Site(lab, (origins[0], 0, 1), (origins[1], 0, 1), health_check="/health", check_interval="50ms", max_failures=1)
    url = [f"http://a.test:{one.port}" for one in origins]
    until(lambda: all(len(one.requests) > 1 for one in origins[:2]), 10 * lab.patience, "checks of both")
    gone(origins[0])
    until(lambda: state(site.proxy)[url[0]]["state"] == "down", 10 * lab.patience, "it is down")
    site.proxy.reload()
    equal(state(site.proxy)[url[0]]["state"], "down", "after the reload")
    site.set((origins[0], 0, 1), (origins[2], 0, 1))
    until(lambda: url[2] in state(site.proxy), 10 * lab.patience, "the new server")
    equal(state(site.proxy)[url[0]]["state"], "down", "after the new answer")
    until(lambda: len(origins[2].requests) > 1, 10 * lab.patience, "checks of the new one")
    before = len(origins[1].requests)
    time.sleep(0.3)
    equal(len(origins[1].requests), before, "checks of the one that left")
    equal(site.tally(4), {"s2": 4}, "who is asked")


def test_parents(lab):
    """A parent that DNS names: its address and its certificate, with credentials."""
    root = Authority(lab)
    parent = TlsOrigin(lab, root.leaf("shop.test"), named(b"parent"))
    name = "_https._tcp.shop.test"
    extra = "parent all { origins = web }\n"
    site = Site(lab, (parent, 0, 0), url=f"https://{name}", name=name, origin={"ca_file": root.file}, extra=extra, credentials="me:secret")
    equal(site.proxy.get("http://any.test/").text(), "parent", "answer")
    equal(parent.requests[0].target, "http://any.test/", "target")
    site.proxy.write_config(site.proxy.text().replace("local_destinations = allow  down_min", "down_min"))
    site.proxy.reload()
    equal(site.proxy.get("http://any.test/").status, 502, "a local parent that is not allowed")
    one_of(site.proxy.fetch("CONNECT", "any.test:443").status, (502, 503), "a tunnel likewise")


def test_errors(lab):
    site = Site(lab, (1, 0, 0))
    good = site.proxy.text()
    for servers_text, more, wanted in (
            (f'"{URL}:8080 srv"', "", "without a port"), ('"http://10.0.0.1 srv"', "", "can not be looked up as SRV records"),
            (f'"{URL} srv weight=3"', "", "the weights are those of the SRV records"), (f'"{URL}"', "", "write srv behind it"),
            ('"http://a.test name=b.test"', "", "has name= without srv"), (f'"{URL} srv name=b.test:80"', "", "not the name of a host"),
            (f'"{URL} srv name=10.0.0.1"', "", "not the name of a host"),
            (f'"{URL} srv"', 'credentials = "a:b"', "credentials would go to whichever server DNS names"),
            (f'"https://{NAME} srv"', 'credentials = "a:b" verify = off', "begin its URL with https:// and leave verify on"),
            (f'"{URL} srv"', "srv_ttl_min = 10s srv_ttl_max = 5s", "srv_ttl_min is larger"),
            (f'"{URL} srv", "http://_a._tcp.x.test srv"', "srv_servers = 1000", "lower srv_servers")):
        head = good[:good.index("origins web")]
        site.proxy.write_config(head + f"origins web {{ servers = {{ {servers_text} }} {more} }}\n")
        answer = site.proxy.reload()
        contains(answer.text(), wanted, servers_text)
