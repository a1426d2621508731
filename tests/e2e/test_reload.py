"""A reload: what is under way keeps what it needs, and what could not be applied is said."""

import json
import os
import re
import subprocess
import threading

from harness import ports
from harness.checks import contains, equal, true, until
from harness.helperd import Helperd
from harness.icap import IcapServer
from harness.origin import Origin
from harness.process import Process
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service, run_check
from harness.suite import memcheck
from harness.wire import request


class Gate:
    """Peers that let a message on when they are told to."""

    def __init__(self, lab):
        self.service = threading.Semaphore(1)
        self.answers = threading.Semaphore(1)
        self.icap = IcapServer(lab, self.adapt, methods="REQMOD")
        self.origin = RawOrigin(lab, self.answer)

    def adapt(self, _icap, transaction):
        self.service.acquire()  # pylint: disable=consider-using-with
        transaction.send_204()

    def answer(self, connection, _request):
        self.answers.acquire()  # pylint: disable=consider-using-with
        connection.send(b"HTTP/1.1 200 OK\r\nAge: 9\r\nETag: \"1\"\r\nCache-Control: max-age=5, stale-while-revalidate=600\r\n"
                        b"Content-Length: 2\r\n\r\nok")
        return False

    def waiting(self, proxy, lab):
        """A thread that asks for what is stored and stale, and waits for the service."""
        got = []
        known = self.icap.count
        asking = threading.Thread(target=lambda: got.append(proxy.get(self.origin.url("/w")).body))
        asking.start()
        until(lambda: self.icap.count > known, 10 * lab.patience, "the request waits for the service")
        return asking, got


def start(lab):
    gate = Gate(lab)
    proxy = Retort(lab, services=[Service("gate", gate.icap.uri(), point="reqmod_precache", timeout="60s")])
    equal(proxy.get(gate.origin.url("/w")).status, 200, "the first")
    return gate, proxy


def test_a_refresh_outlives_reloads(lab):
    """A request that waits over a reload finds what is stored stale, and has it refreshed by a request of its own. That
    one goes on when the first is answered, and with it the last that held the old configuration."""
    gate, proxy = start(lab)
    asking, got = gate.waiting(proxy, lab)
    equal(proxy.reload().status, 200, "the first reload")
    gate.service.release()
    asking.join()
    equal(got, [b"ok"], "the stale body")
    until(lambda: len(gate.origin.requests) >= 2, 10 * lab.patience, "the refresh at the origin")
    proxy.entries("/w", 2)
    for number in range(2):
        equal(proxy.reload().status, 200, f"reload {number}")
    gate.answers.release()
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "the end of the refresh")
    gate.service.release()
    equal(proxy.get(gate.origin.url("/w")).body, b"ok", "it serves")
    gate.answers.release()


@memcheck
def test_a_refresh_whose_listener_has_gone(lab):
    """There is nothing that would say whom it may ask: it is left out."""
    gate, proxy = start(lab)
    asking, got = gate.waiting(proxy, lab)
    text = proxy.text()
    without = re.sub(rf'listen "{proxy.forward[0]}:{proxy.forward[1]}" .*', "", text)
    true(without != text, "the listener is in the configuration")
    proxy.write_config(without)
    equal(proxy.reload().status, 200, "reload without the listener")
    gate.service.release()
    asking.join()
    equal(got, [b"ok"], "the stale body")
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "the end of what is under way")
    equal((len(gate.origin.requests), proxy.counter("cache_background")), (1, 0), "requests at the origin, refreshes")


def only_from(proxy, network):
    """A reload after which the forward listener lets no others in."""
    own = f'listen "{proxy.forward[0]}:{proxy.forward[1]}" {{ mode = forward '
    proxy.write_config(proxy.text().replace(own, own + f"allow = {{ {network} }} "))
    equal(proxy.reload().status, 200, "the reload")


def test_a_request_outlives_reloads(lab):
    """What began under the old settings of the listener ends under them, its body included; the next request on the same connection
    goes by the new ones."""
    lab.needs("admin")
    head, rest = threading.Semaphore(0), threading.Semaphore(0)

    def answer(connection, _request):
        head.acquire()  # pylint: disable=consider-using-with
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nhalf")
        rest.acquire()  # pylint: disable=consider-using-with
        connection.send(b"done")
        return False

    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/slow")))
        until(lambda: len(origin.requests) == 1, 10 * lab.patience, "the request at the origin")
        for network in ("10.0.0.0/8", "10.1.0.0/16"):
            only_from(proxy, network)
        head.release()
        until(lambda: proxy.counter("cache_stores") == 1, 10 * lab.patience, "the head of the response")
        only_from(proxy, "10.2.0.0/16")
        rest.release()
        equal(wire.response().body, b"halfdone", "the body")
        wire.send(request("GET", origin.url("/slow")))
        equal(wire.response().status, 403, "the next request")


@memcheck
def test_a_connection_whose_listener_has_gone(lab):
    """It says so, and closes."""
    origin = Origin(lab)
    proxy = Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/text?say=one")))
        equal(wire.response().text(), "one", "before")
        text = proxy.text()
        proxy.write_config(re.sub(rf'listen "{proxy.forward[0]}:{proxy.forward[1]}" .*', "", text))
        for number in range(2):
            equal(proxy.reload().status, 200, f"reload {number}")
        wire.send(request("GET", origin.url("/text?say=two")))
        response = wire.response()
        equal((response.status, response.header("Connection")), (503, "close"), "after")


@memcheck
def test_a_tunnel_outlives_reloads(lab):
    origin = Origin(lab)
    proxy = Retort(lab, extra=f"connect_ports = {{ {origin.port} }}")
    with proxy.wire() as wire:
        wire.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
        equal(wire.response("CONNECT").status, 200, "the tunnel")
        for network in ("10.0.0.0/8", "10.1.0.0/16"):
            only_from(proxy, network)
            wire.send(request("GET", f"/text?say={network[:4]}", host="x"))
            equal(wire.response().text(), network[:4], "through the tunnel")
    until(lambda: proxy.counter("transactions_active") == 0, 10 * lab.patience, "the end of the tunnel")


def reload_says(proxy, lab, expect=1):
    """`retortctl reload`: what it said."""
    done = subprocess.run([lab.built("proxy/retortctl"), "-s", proxy.admin_path, "reload"], capture_output=True, text=True,
                          check=False, timeout=20 * lab.patience, env={**os.environ, **lab.environment()})
    equal(done.returncode, expect, f"exit status; it said: {done.stdout}{done.stderr}")
    return done.stderr


def test_what_a_reload_leaves_is_said(lab):
    """Each thing with what to do, as often as it is asked, and the rest is applied."""
    lab.needs("admin")
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/one/")})
    nowhere = lab.path("nowhere")
    for number, (text, expected) in enumerate((
            (proxy.text(workers=3), "workers is still 1, not 3: restart retort"),
            (proxy.text() + f'access_log "{nowhere}/log" {{ format = json }}', "access_log"),
            (proxy.text() + f'error_log = "{nowhere}/log"', "error_log"),
            (proxy.text() + "authentication { attempt_entries = 64 }", "authentication.attempt_entries is still 20000, not 64: restart retort"),
            (proxy.text() + "authentication { remember_entries = 64 }", "authentication.remember_entries is still 20000, not 64"),
            (proxy.text() + "authentication { threads = 3 }", "authentication.threads is still 0, not 3"),
            (proxy.text(cache={"memory": "32MB", "disk": {lab.directory: {"size": "64MB"}}}), "cache.disk"),
            (proxy.text().replace(f'admin {{ listen = "{proxy.admin_path}" }}', ""), "admin.listen is still"))):
        proxy.write_config(text.replace("/one/", f"/page{number}/"))
        for _ in range(2):
            waits = not expected.endswith("_log")
            said = reload_says(proxy, lab, expect=0 if waits else 1)
            contains(said, expected, "what it said")
            equal((said.count("waits for a restart:"), said.count("refused:")), (int(waits), int(not waits)), f"what it left: {said}")
        contains(proxy.get("/x", host="h", headers={"Cache-Control": "no-cache"}).text(), f"/page{number}/", "the rest")
    proxy.write_config(proxy.text())
    equal(reload_says(proxy, lab, expect=0), "", "what it said of a file that is applied")
    answer = json.loads(proxy.reload().body)
    equal([answer[name] for name in ("changed", "waits_for_restart", "refused", "not_applied")], [[]] * 4, "the answer")


def test_a_reload_says_what_it_did(lab):
    """Options with their values, sections that come and go; 409 where something is refused, and the rest is in use."""
    lab.needs("admin")
    proxy = Retort(lab)
    proxy.write_config(proxy.text(drain_timeout="20s", workers=2) + 'icap_service s { uri = "icap://127.0.0.1:1/s"  point = reqmod_precache }\n')
    answer = proxy.reload()
    body = json.loads(answer.body)
    changed = {change["name"]: (change["old"], change["new"]) for change in body["changed"]}
    equal((answer.status, changed["drain_timeout"], changed["icap_service.s.point"]), (200, ("30s", "20s"), (None, "reqmod_precache")), "the answer")
    equal((len(body["waits_for_restart"]), body["refused"]), (1, []), "what waits")
    proxy.write_config(proxy.text(drain_timeout="25s") + f'error_log = "{lab.path("nowhere/log")}"\n')
    answer = proxy.reload()
    body = json.loads(answer.body)
    equal((answer.status, body["reloaded"], len(body["refused"])), (409, True, 1), "with a log that can not be opened")
    equal({change["name"] for change in body["changed"]} >= {"drain_timeout", "icap_service.s.point"}, True, "the rest is in use")


def test_no_reload_while_it_stops(lab):
    """Whoever reloads then is told so, and is not told that the settings are in use."""
    lab.needs("admin")
    origin = RawOrigin(lab, lambda _connection, _request: threading.Event().wait(1) and False)
    proxy = Retort(lab, drain_timeout="20s")
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/slow")))
        until(lambda: len(origin.requests) == 1, 10 * lab.patience, "the request at the origin")
        equal(proxy.admin("POST", "/v1/drain", b"").status, 200, "drain")
        answer = proxy.admin("POST", "/v1/reload", b"")
        equal(answer.status, 409, "reload")
        contains(json.loads(answer.body)["error"], "is stopping", "the reason")
        equal(proxy.admin("POST", "/v1/settings", b'{"cache.memory": "40MB"}').status, 409, "set")


def test_a_reload_with_a_file_that_can_not_be_used_changes_nothing(lab):
    lab.needs("admin")
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/one/")})
    service = Service("s", "icaps://127.0.0.1:1/x", ca_file=lab.write("ca.pem", "none"))
    proxy.write_config(proxy.text(services=[service]).replace("/one/", "/two/"))
    contains(reload_says(proxy, lab), "it must contain certificates in PEM", "what it said")
    contains(proxy.get("/x", host="h").text(), "/one/", "the old configuration")


def test_a_reload_that_can_not_listen_changes_nothing(lab):
    """All addresses that can't be had are named."""
    lab.needs("admin")
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/one/")})
    taken = [Origin(lab).port for _ in range(2)]
    more = "".join(f'listen "127.0.0.1:{port}" {{ mode = forward }}\n' for port in taken)
    proxy.write_config(proxy.text().replace("/one/", "/two/") + more)
    said = reload_says(proxy, lab)
    for port in taken:
        contains(said, f"127.0.0.1:{port}", "what it said")
    contains(proxy.get("/x", host="h").text(), "/one/", "the old configuration")


def test_a_check_finds_what_a_start_lacks(lab):
    """`retort -t` looks for what the file names; `retort -T` does not."""
    proxy = Retort(lab)
    nowhere = lab.path("nowhere")
    equal(run_check(lab, proxy.config_path)[0], 0, "of the file in use")
    for text, expected in ((f'access_log "{nowhere}/log" {{ }}', nowhere), (f'error_log = "{nowhere}/log"', nowhere),
                           (f'cache {{ disk "{nowhere}/disk" {{ size = "64MB" }} }}', nowhere),
                           (f'admin {{ listen = "{nowhere}/sock" }}', nowhere),
                           (f'admin {{ listen = "{lab.directory}" }}', "is not a socket"),
                           ('listen "192.0.2.1:80" { mode = forward }', "192.0.2.1:80"),
                           (Service("s", "icaps://127.0.0.1:1/x", ca_file=lab.write("ca.pem", "none")).text(), "ca_file"),
                           (f'origin {{ ca_file = "{nowhere}/ca.pem" }}', nowhere),
                           (f'listen "127.0.0.1:{ports.take()}" {{ mode = reverse  certificates = {{ "{nowhere}/c.pem" }} }}', nowhere),
                           (f'authority {{ certificate = "{nowhere}/ca.pem"  key = "{nowhere}/ca.key" }}', nowhere)):
        path = lab.write("lacking.conf", f'listen "127.0.0.1:{ports.take()}" {{ mode = forward }}\n{text}\n')
        status, said = run_check(lab, path)
        equal(status, 1, f"exit status for {text}; it said: {said}")
        contains(said, expected, "what it said")
        equal(run_check(lab, path, "-T")[0], 0, "exit status of -T")


def test_a_check_finds_what_helpers_lack(lab):
    good = {"socket": lab.path("s.sock"), "log": lab.path("h.log"), "group": "root",
            "command": lab.built("icap-services/text-helper")}
    for name, value in (("", ""), ("socket", lab.path("nowhere/s")), ("log", lab.path("nowhere/l")),
                        ("group", "no-such-group"), ("command", lab.path("nowhere/helper"))):
        words = {**good, name: value}
        path = lab.write("helperd.conf", "socket = \"{socket}\"\nlog = \"{log}\"\nsocket_group = \"{group}\"\n"
                         "pool text {{ command = {{\"{command}\"}} }}\n".format(**words))
        for flag in ("-t", "-T"):
            done = subprocess.run([lab.built("icap-services/retort-helperd"), flag, "-f", path], capture_output=True,
                                  text=True, check=False, env={**os.environ, **lab.environment()})
            equal(done.returncode, 1 if name and flag == "-t" else 0, f"{flag} {name}: {done.stdout}{done.stderr}")
        if name:
            contains(done.stderr if name == "" else done.stdout + done.stderr, "helperd.conf", "the file")


def test_what_a_reload_of_helperd_leaves_is_said(lab):
    text = f'socket = "{{socket}}"\npool text {{ command = {{"{lab.built("icap-services/text-helper")}"}} }}\n'
    helperd = Helperd(lab, text)
    lab.write("helperd.conf", text.replace("{socket}", helperd.socket) .replace("pool text", "pool other"))
    done = subprocess.run([lab.built("proxy/retortctl"), "-H", helperd.socket, "helpers", "reload"], capture_output=True,
                          text=True, check=False, env={**os.environ, **lab.environment()})
    equal(done.returncode, 1, f"exit status; it said: {done.stdout}{done.stderr}")
    contains(done.stderr, "pool text stays", "what it said")


def beside(lab, proxy, extra="", listen=None):
    """Another instance, at the address of the first: started, or why it is not."""
    text = f'{listen or f"listen {chr(34)}127.0.0.1:{proxy.forward[1]}{chr(34)}"} {{ mode = forward local_destinations = allow }}\nworkers = 2\n{extra}\n'
    second = Process(lab, lab.unique("second"), [lab.built("proxy/retort"), "-f", lab.write("second.conf", text)],
                     environment=lab.environment(), memcheck=True)
    until(lambda: not second.running() or "serving with" in second.log(), 20 * lab.patience, "it serves or ends")
    return second


def test_two_do_not_share_a_port_in_silence(lab):
    origin, proxy = Origin(lab), Retort(lab, workers=2)
    port = proxy.forward[1]
    for listen in (None, f'listen "0.0.0.0:{port}"', f'listen "[::]:{port}"'):
        second = beside(lab, proxy, listen=listen)
        equal(second.wait(10), 1, f"exit status: {second.log()}")
        contains(second.log(), f":{port}: Address already in use; another program listens there", "message")
        second.expected_status = 1
    second = beside(lab, proxy, "share_listeners = true")
    true(second.running(), f"where both want it: {second.log()}")
    proxy.terminate()
    equal(proxy.wait_exit(10), 0, "exit status of the first")
    for _ in range(4):
        equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body from the second")
    second.stop()


def test_a_wildcard_beside_one_of_its_addresses(lab):
    """Both are this instance's own."""
    origin, proxy = Origin(lab), Retort(lab, workers=2)
    port = ports.take()
    one, all_of_them = (f'listen "{host}:{port}" {{ mode = forward }}\n' for host in ("127.0.0.1", "0.0.0.0"))
    for text in (one + all_of_them, one):
        proxy.write_config(proxy.text() + text)
        equal(proxy.reload().status, 200, f"reload with {text}")
    proxy.write_config(proxy.text() + one + all_of_them)
    equal(proxy.reload().status, 200, "reload that adds the wildcard")
    proxy.restart()
    equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body")
