"""Names: what name servers and the hosts file say, how long it is remembered, and what clients can make of it."""

import json
import os
import threading
import time

from harness.checks import between, contains, equal, lacks, one_of, true, until
from harness.disk import gauge
from harness.dns import A, AAAA, NameServer
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import request

GUARDED = 'listen "127.0.0.1:%d" { mode = forward name = guarded }\n'


class Names:
    def __init__(self, lab, negative_ttl=None, **origin):
        self.lab = lab
        self.server = NameServer(lab, negative_ttl)
        self.origin = RawOrigin(lab)
        options = {"dns_servers": [self.server.address], "dns_search": "none", "hosts_file": "none", "dns_timeout": "2s", "max_idle": 0}
        self.proxy = Retort(lab, origin={**options, **origin}, cache={"memory": "8MB"})

    def get(self, name, path="/"):
        return self.proxy.get(f"http://{name}:{self.origin.port}{path}")

    def status(self, name):
        return self.get(name).status


@memcheck
def test_answers(lab):
    site = Names(lab, negative_ttl=30)
    site.server.set("one.test", "127.0.0.1")
    site.server.set("alias.test", alias="middle.test")
    site.server.set("middle.test", alias="one.test")
    site.server.set("many.test", *[f"127.0.0.{i}" for i in range(1, 60)], truncated=True)
    site.server.set("empty.test")
    site.server.set("failing.test", code=2)
    site.server.set("loop.test", alias="loop.test")
    site.server.set("garbage.test", raw=b"\x81\x80\0\1\xff\xff\0\0\0\0")
    for name in ("one.test", "ONE.Test", "one.test.", "alias.test", "many.test"):
        equal(site.status(name), 200, name)
    true(site.server.over_tcp > 0, "a truncated answer is asked for again by TCP")
    for name, why in (("none.test", "there is no such name"), ("empty.test", "the name has no address"),
                      ("loop.test", "the name has no address"), ("failing.test", ""), ("garbage.test", "")):
        answer = site.get(name)
        one_of(answer.status, (502, 504), name)
        contains(answer.text(), why, f"the page about {name}")
    equal(site.server.asked("one.test"), 1, "questions for one.test")


def test_what_is_remembered(lab):
    """A name that does not exist for the time of its SOA, a failure for a second, an address for its time."""
    site = Names(lab, negative_ttl=30, dns_ttl_max="1s")
    site.server.set("short.test", "127.0.0.1", ttl=0)
    for _ in range(3):
        equal(site.status("none.test"), 502, "a name that does not exist")
        equal(site.status("short.test"), 200, "a name with a lifetime of nothing")
    equal(site.server.asked("none.test"), 1, "questions for a name that does not exist")
    equal(site.server.asked("short.test"), 1, "questions within a second")
    site.server.set("none.test", "127.0.0.1")
    time.sleep(1.1)
    equal(site.status("none.test"), 502, "within the time that the SOA says")
    equal(site.status("short.test"), 200, "a second later")
    true(site.server.asked("short.test") > 1, "the name was asked for again")


def test_addresses_serve_while_servers_fail(lab):
    site = Names(lab, dns_ttl_max="1s", dns_timeout="300ms")
    strict = Retort(lab, origin={"dns_servers": [site.server.address], "dns_stale": "0", "dns_ttl_max": "1s", "dns_timeout": "300ms",
                                 "max_idle": 0})
    site.server.set("one.test", "127.0.0.1", ttl=1)
    url = f"http://one.test:{site.origin.port}/"
    equal((site.status("one.test"), strict.get(url).status), (200, 200), "while the server answers")
    site.server.silent = True
    time.sleep(1.1)
    started = time.monotonic()
    equal(site.status("one.test"), 200, "an address beyond its time")
    equal(site.status("one.test"), 200, "and again, without waiting")
    between(time.monotonic() - started, 0, 1.5 * lab.patience, "seconds for both")
    true(site.proxy.counter("dns_stale") >= 1, "counted")
    one_of(strict.get(url).status, (502, 504), "without dns_stale")
    site.server.silent = False
    del site.server.names["one.test"]
    until(lambda: site.status("one.test") == 502, 10 * lab.patience, "the server's word that the name is gone")


def test_names_in_use_are_refreshed(lab):
    """A name of the configuration is resolved before anybody asks for it, and again before it expires."""
    server = NameServer(lab)
    origin = RawOrigin(lab)
    server.set("backend.test", "127.0.0.1", ttl=60)
    proxy = Retort(lab, reverse={"/": f"http://backend.test:{origin.port}/"}, origin={"dns_servers": [server.address]})
    until(lambda: server.asked("backend.test") == 1, 5 * lab.patience, "the question at the start")
    equal(proxy.get("/").status, 200, "status")
    equal(server.asked("backend.test"), 1, "questions")
    equal(proxy.reload().status, 200, "the reload")
    equal(proxy.get("/").status, 200, "status after a reload")
    equal(server.asked("backend.test"), 1, "questions after a reload that changes nothing of names")


def test_hosts_file(lab):
    path = lab.write("hosts", "127.0.0.1 file.test UPPER.test # more.test\n\n192.0.2.999 bad.test\nbad line\n127.0.0.1 server.test")
    site = Names(lab, hosts_file=path)
    site.server.set("server.test", "192.0.2.1")
    for name in ("file.test", "upper.test", "server.test"):
        equal(site.status(name), 200, name)
    for name in ("more.test", "bad.test"):
        equal(site.status(name), 502, name)
    equal(site.server.asked("server.test"), 0, "questions for a name of the file")
    lab.write("hosts", "127.0.0.1 other.test\n")
    until(lambda: site.status("other.test") == 200, 10 * lab.patience, "a name that was added to the file")
    equal(site.status("file.test"), 502, "a name that was removed")


def test_search_domains_are_for_the_configuration(lab):
    """A client can't reach a host under a name that rules do not know."""
    server, origin = NameServer(lab), RawOrigin(lab)
    server.set("secret.internal.test", "127.0.0.1")
    options = {"dns_servers": [server.address], "dns_search": ["other.test", "internal.test"], "hosts_file": "none"}
    proxy = Retort(lab, reverse={"/": f"http://secret:{origin.port}/"}, origin=options)
    equal(proxy.get("/").status, 200, "a short name of the configuration")
    equal(proxy.get(f"http://secret:{origin.port}/").status, 502, "the same name, by a client")
    proxy.write_config(proxy.text(origin={**options, "dns_search_clients": True}))
    proxy.reload()
    equal(proxy.get(f"http://secret:{origin.port}/").status, 200, "where clients may")


def test_one_client_can_not_fill_the_resolver(lab):
    site = Names(lab, dns_client_lookups=4, dns_timeout="1s")
    site.server.set("fast.test", "127.0.0.1")
    for i in range(8):
        site.server.set(f"slow{i}.test", silent=True)
    started = [threading.Thread(target=site.get, args=(f"slow{i}.test",)) for i in range(8)]
    for each in started:
        each.start()
    until(lambda: site.proxy.counter("dns_refused") == 4, 5 * lab.patience, "look-ups refused")
    equal(site.proxy.reload().status, 200, "reload, which begins them anew")
    equal((site.status("more.test"), site.proxy.counter("dns_refused")), (502, 5), "one more, after the reload")
    with site.proxy.wire(source="127.0.0.2") as wire:
        wire.send(f"GET http://fast.test:{site.origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        equal(wire.response().status, 200, "another client")
    for each in started:
        each.join()
    equal(site.status("fast.test"), 200, "the client, when its look-ups are over")


def test_names_are_forgotten_in_order(lab):
    site = Names(lab, dns_names=16)
    site.server.set("used.test", "127.0.0.1")
    for i in range(20):
        site.server.set(f"n{i}.test", "127.0.0.1")
        equal((site.status(f"n{i}.test"), site.status("used.test")), (200, 200), f"number {i}")
    equal(site.server.asked("used.test"), 1, "questions for the name in use")
    equal(site.proxy.counter("dns_names"), 16, "names")
    equal(site.proxy.counter("dns_names_dropped"), 5, "names dropped")


def test_names_that_change_between_two_looks(lab):
    """DNS rebinding: each address is judged when it is dialled."""
    server, origin = NameServer(lab), RawOrigin(lab)
    path = lab.write("hosts", "127.0.0.1 loop.test\n::1 loop6.test\n")
    proxy = Retort(lab, origin={"dns_servers": [server.address], "hosts_file": path, "connect_timeout": "100ms"})
    proxy.write_config(proxy.text().replace("mode = forward  local_destinations = allow", "mode = forward"))
    proxy.reload()
    server.set("both.test", "192.0.2.1", "127.0.0.1", "::ffff:127.0.0.1", "::1", ttl=0)
    server.set("mapped.test", "::ffff:169.254.169.254", "64:ff9b::7f00:1", ttl=0)
    server.set("alias.test", alias="loop.test", ttl=0)
    server.set("loop.test", "127.0.0.1", ttl=0)
    server.set("localhost", "192.0.2.1")
    for host in ("loop.test", "loop6.test", "mapped.test", "alias.test", "localhost", "a.localhost", "localhost.", "0", "127.1",
                 "2130706433", "0x7f000001", "017700000001", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0", "127.0.0.1."):
        one_of(proxy.get(f"http://{host}:{origin.port}/").status, (400, 403), host)
    one_of(proxy.get(f"http://both.test:{origin.port}/").status, (502, 504), "the one that may be dialled does not answer")
    equal(origin.requests, [], "requests at the origin")
    equal(server.asked("localhost"), 0, "questions for localhost")


def test_reload_with_other_servers(lab):
    """Look-ups under way go on at the new servers."""
    site = Names(lab, dns_timeout="5s")
    site.server.set("one.test", silent=True)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(site.status("one.test")))
    waiting.start()
    until(lambda: site.server.asked("one.test") > 0, 5 * lab.patience, "the question")
    other = NameServer(lab)
    other.set("one.test", "127.0.0.1")
    site.proxy.write_config(site.proxy.text(origin={**site.proxy.given["origin"], "dns_servers": [other.address]}))
    equal(site.proxy.reload().status, 200, "the reload")
    waiting.join()
    equal(answers, [200], "the answer")
    equal(other.asked("one.test", AAAA), 1, "questions at the other server")
    lacks(site.proxy.process.log(), "error", "the log")
    equal(other.asked("one.test", A), 1, "questions at the other server")


PRIVATE = ('url_class chief { client = "127.0.0.9" }\nurl_class private { destination = "127.0.0.2" }\n'
           "access chief { action = allow }\naccess private { action = deny }\naccess all { action = allow }\n")


def test_a_name_does_not_lead_to_what_others_have_stored(lab):
    """Whoever decides what a name stands for can't read through the cache what a client with more rights has fetched."""
    def answer(connection, req):
        body = connection.socket.getsockname()[0].encode() * 20
        head, part = "200 OK", body
        if req.header("Range") == "bytes=0-9":
            head, part = "206 Partial Content\r\nContent-Range: bytes 0-9/%d" % len(body), body[:10]
        elif req.header("Range"):
            head, part = "206 Partial Content\r\nContent-Range: bytes 10-%d/%d" % (len(body) - 1, len(body)), body[10:]
        connection.send(b"HTTP/1.1 %s\r\nETag: \"same\"\r\nCache-Control: max-age=600\r\nContent-Length: %d\r\n\r\n" % (head.encode(), len(part)) + part)
    server, origin = NameServer(lab), RawOrigin(lab, answer, address="0.0.0.0")
    directory = lab.path("disk")
    os.mkdir(directory)
    proxy = Retort(lab, origin={"dns_servers": [server.address], "hosts_file": "none", "max_idle": 0}, extra=PRIVATE,
                   cache={"memory": "8MB", "disk": {directory: {"size": "64MB"}}})

    def get(path, source, **fields):
        with proxy.wire(source=source) as wire:
            wire.send(request("GET", f"http://evil.test:{origin.port}{path}", fields))
            return wire.response()

    def lead_to(address):
        server.set("evil.test", address)
        equal(proxy.ctl("dns", "clear", "evil.test").strip(), "1 name cleared", "retortctl dns clear")
    server.set("evil.test", "127.0.0.2")
    for path in ("/one", "/two", "/three"):
        contains(get(path, "127.0.0.9").text(), "127.0.0.2", "what the chief fetches")
    equal(get("/part", "127.0.0.9", Range="bytes=0-9").status, 206, "a part")
    equal(get("/one", "127.0.0.1").status, 403, "another client, while the name leads there")
    lead_to("127.0.0.1")
    lacks(get("/one", "127.0.0.1").text(), "127.0.0.2", "another client, when it leads elsewhere")
    equal(proxy.counter("cache_denied"), 1, "counted")
    contains(get("/two", "127.0.0.9").text(), "127.0.0.2", "the chief has what is stored")
    whole = get("/part", "127.0.0.9")
    lacks(whole.text(), "127.0.0.2", "parts from two addresses are not joined")
    asked = len(origin.requests)
    contains(get("/one", "127.0.0.1").text(), "127.0.0.1", "what is stored now")
    equal(len(origin.requests), asked, "requests for it")
    until(lambda: gauge(proxy, "objects") >= 3, 5 * lab.patience, "objects on disk")
    proxy.restart()
    contains(get("/two", "127.0.0.9").text(), "127.0.0.2", "the chief, after a restart")
    lacks(get("/three", "127.0.0.1").text(), "127.0.0.2", "another client, after a restart")
    equal(proxy.counter("cache_denied"), 1, "counted after a restart")


def test_another_address_changes_nothing_that_is_stored(lab):
    """A 304 and the answer to a HEAD come from where only some may go: nobody else gets their fields with what is
    stored from where all may go."""
    def answer(connection, req):
        secret = b"" if connection.socket.getsockname()[0] == "127.0.0.1" else b"X-Secret: 42\r\n"
        old = req.header("If-None-Match")
        connection.send(b"HTTP/1.1 %s\r\nETag: \"same\"\r\nCache-Control: max-age=600\r\n%s%s" % (
            b"304 Not Modified" if old else b"200 OK", secret, b"\r\n" if old else b"Content-Length: 2\r\n\r\n")
            + (b"" if old or req.method == "HEAD" else b"ok"))
    server, origin = NameServer(lab), RawOrigin(lab, answer, address="0.0.0.0")
    proxy = Retort(lab, origin={"dns_servers": [server.address], "hosts_file": "none", "max_idle": 0}, extra=PRIVATE)

    def ask(method, path, source, **fields):
        with proxy.wire(source=source) as wire:
            wire.send(request(method, f"http://turn.test:{origin.port}{path}", fields))
            return wire.response(method)

    def lead_to(address):
        server.set("turn.test", address)
        proxy.ctl("dns", "clear", "turn.test")
    for method, path in (("GET", "/confirmed"), ("HEAD", "/described")):
        lead_to("127.0.0.1")
        equal(ask("GET", path, "127.0.0.1").text(), "ok", "what all may have")
        lead_to("127.0.0.2")
        answered = ask(method, path, "127.0.0.9", **{"Cache-Control": "no-cache"})
        equal((answered.status, answered.header("X-Secret")), (200, "42"), f"what the chief gets by {method}")
        lead_to("127.0.0.1")
        equal(ask("GET", path, "127.0.0.1").header("X-Secret"), None, f"what others get after the {method}")
    equal(proxy.counter("cache_revalidated"), 0, "confirmed by another address")


def test_what_is_remembered_is_shown(lab):
    site = Names(lab, negative_ttl=30)
    site.server.set("one.test", "127.0.0.1", "::1", ttl=60)
    equal((site.status("one.test"), site.status("none.test")), (200, 502), "status")

    def shown(*name):
        return {each["name"]: each for each in json.loads(site.proxy.ctl("--json", "dns", "show", *name))["names"]}
    names = shown()
    equal(set(names), {"one.test", "none.test"}, "names")
    equal((names["one.test"]["addresses"], names["none.test"]["addresses"]), (["::1", "127.0.0.1"], []), "addresses")
    equal((names["one.test"]["error"], names["none.test"]["error"]), (None, "there is no such name"), "errors")
    between(names["one.test"]["expires_in"], 20, 60, "seconds left")
    between(names["none.test"]["expires_in"], 5, 30, "seconds left of a name that does not exist")
    equal(set(shown("ONE.test.")), {"one.test"}, "one of them")
    contains(site.proxy.ctl("dns"), "there is no such name", "for people")
    for words in (("dns", "clear"), ("dns", "clear", "one.test", "--all"), ("dns", "show", "--all"), ("dns", "a", "b")):
        site.proxy.ctl(*words, expect=2)
    equal(site.proxy.admin("POST", "/dns/clear").status, 400, "without a name")
    equal(site.proxy.admin("GET", "/dns/clear?all=yes").status, 405, "by GET")
    contains(site.proxy.ctl("dns", "clear", "none.test"), "1 name cleared", "one")
    site.server.set("none.test", "127.0.0.1")
    equal(site.status("none.test"), 200, "the name exists now")
    contains(site.proxy.ctl("dns", "clear", "--all"), "2 names cleared", "all")
    equal(shown(), {}, "what is left")
