"""The admin plane while something is under way that takes long: who looks waits for no change, and a second change is refused at once."""

import json
import os
import signal
import socket
import threading
import time

from harness.checks import contains, equal, one_of, true, until
from harness.origin import Origin
from harness.retort import Inside, Retort
from harness.suite import seconds
from harness.wire import Wire, request

JSON = {"Content-Type": "application/json"}
LOOKS = ("/v1/status", "/v1/metrics", "/v1/whoami", "/v1/settings", "/v1/settings/options", "/v1/settings/changes", "/v1/settings/effective", "/v1/services",
         "/v1/origins", "/v1/access", "/v1/limits", "/v1/dns", "/v1/history", "/v1/cache/bans", "/v1/cache/objects", "/v1/openapi.json", "/v1/inspect")
# What changes something else than the settings.
OTHERS = (("POST", "/v1/cache/purge?host=a.test"), ("DELETE", "/v1/cache/object?url=http://a.test/"), ("POST", "/v1/cache/bans?regex=x"),
          ("POST", "/v1/limits/clear"), ("POST", "/v1/dns/clear?all=yes"), ("POST", "/v1/inspect"), ("POST", "/v1/inspect/stop"))
# What changes settings.
CHANGES = (("POST", "/v1/reload", None), ("POST", "/v1/settings", b'{"log_level": "debug"}'), ("POST", "/v1/settings?save=yes", b'{"log_level": "debug"}'),
           ("DELETE", "/v1/settings?all=yes", None), ("POST", "/v1/services/load?name=one", None), ("POST", "/v1/services/unload?name=one", None),
           ("POST", "/v1/services/order?class=all&services=one", None))


class Asked:
    """A call of the admin plane whose answer comes late."""

    def __init__(self, proxy, method, path, body=None):
        self.answer = None
        self.thread = threading.Thread(target=self.ask, args=(proxy, method, path, body), daemon=True)
        self.thread.start()

    def ask(self, proxy, method, path, body):
        try:
            self.answer = proxy.admin(method, path, body=body, headers=JSON if body else None)
        except OSError as error:
            self.answer = error

    def waits(self):
        return self.thread.is_alive()

    def get(self, lab):
        self.thread.join(20 * lab.patience)
        true(not self.waits(), "no answer came")
        return self.answer


def quick(lab, call, what, most=0.5):
    begun = time.monotonic()
    answer = call()
    took = time.monotonic() - begun
    true(took < most * lab.patience, f"{what} took {took:.2f} s")
    return answer


def odd(lab, does, runs="worker", timeout="1s"):
    return Inside("one", lab.built("tests/e2e/modules/.libs/odd.so"), settings={"Do": does}, runs=runs, start_timeout=timeout)


def hanging(lab, proxy, runs="worker"):
    """The configuration has a module that never ends its start."""
    proxy.write_config(proxy.text(services=[odd(lab, "start-hang", runs)], adapt={"all": ["one"]}))


def until_it_hangs(lab, proxy):
    until(lambda: "service one: its module has not started within start_timeout (1000 ms)" in proxy.process.log(), 20 * lab.patience, "the log")


@seconds(60)
def test_nobody_waits_for_a_reload(lab):
    """However many ask for one: one is under way, the others are told so, and everything else is answered."""
    proxy = Retort(lab, services=[odd(lab, "shout")], adapt={"all": ["one"]}, extra=f'saved_settings = "{lab.path("saved.conf")}"\n')
    hanging(lab, proxy)
    asked = [Asked(proxy, "POST", "/v1/reload") for _ in range(6)]
    until_it_hangs(lab, proxy)
    until(lambda: sum(one.waits() for one in asked) == 1, 10 * lab.patience, "five of six answers")
    for answer in [one.answer for one in asked if not one.waits()]:
        equal((answer.status, answer.header("Retry-After")), (503, "1"), "a second reload")
        contains(answer.text(), "a reload that was asked for through the admin plane has been under way for ", "its reason")
    for path in LOOKS:
        equal(quick(lab, lambda path=path: proxy.admin("GET", path), path).status, 200, path)
    for method, path in OTHERS:
        one_of(quick(lab, lambda method=method, path=path: proxy.admin(method, path), path).status, (200, 404), path)
    for method, path, body in CHANGES:
        answer = quick(lab, lambda call=(method, path, body): proxy.admin(call[0], call[1], body=call[2], headers=JSON if call[2] else None), path)
        equal((answer.status, answer.header("Retry-After")), (503, "1"), path)
    refused = quick(lab, lambda: proxy.run_ctl("reload"), "retortctl reload", 2)
    equal((refused.returncode, refused.stdout), (1, ""), "retortctl reload")
    contains(refused.stderr, "retortctl: nothing was changed: a reload that was asked for through the admin plane has been under way for ", "what it says")
    equal(proxy.run_ctl("set", "log_level=debug").returncode, 1, "retortctl set")
    contains(proxy.ctl("status"), "a reload that was asked for through the admin plane has been under way for ", "retortctl status")
    equal(json.loads(proxy.admin("GET", "/v1/status").body)["under_way"]["what"], "a reload that was asked for through the admin plane", "under_way")
    equal(proxy.get(Origin(lab).url("/text", say="hello")).text(), "HELLO", "it serves as before")
    waiting = next(one for one in asked if one.waits())
    equal(quick(lab, lambda: proxy.admin("POST", "/v1/drain"), "drain").status, 200, "drain")
    answer = waiting.get(lab)
    equal(answer.status, 409, "the reload that the end cuts short")
    contains(answer.text(), "service one: retort is stopping", "its reason")
    equal(proxy.wait_exit(15 * lab.patience), 0, "exit status")


@seconds(60)
def test_an_end_answers_who_waits(lab):
    """SIGTERM while a reload is under way that the admin plane has been asked for."""
    for runs in ("worker", "process"):
        proxy = Retort(lab)
        hanging(lab, proxy, runs)
        proxy.write_config(proxy.text(services=[odd(lab, "start-hang", runs, "300s")], adapt={"all": ["one"]}))
        asked = Asked(proxy, "POST", "/v1/reload")
        until(lambda proxy=proxy: proxy.status().get("under_way"), 10 * lab.patience, "a reload")
        proxy.terminate()
        answer = asked.get(lab)
        equal(answer.status, 409, f"{runs}: status")
        contains(answer.text(), "service one: retort is stopping", f"{runs}: reason")
        equal(proxy.wait_exit(15 * lab.patience), 0, f"{runs}: exit status")


@seconds(60)
def test_a_hang_up_is_not_lost(lab):
    """One that comes during a reload is followed by another reload, also when the admin plane has asked for the first."""
    proxy = Retort(lab)
    good = proxy.text().replace("log_level = debug", "log_level = info")
    for ask in (lambda: Asked(proxy, "POST", "/v1/reload"), proxy.hang_up):
        proxy.write_config(proxy.text(services=[odd(lab, "start-hang", "process", f"{2 * lab.patience}s")], adapt={"all": ["one"]}))
        ask()
        until(lambda: proxy.status().get("under_way"), 10 * lab.patience, "a reload")
        first = proxy.process.log().count("configuration read again")
        proxy.write_config(good)
        for _ in range(3):
            proxy.hang_up()
        until(lambda first=first: proxy.process.log().count("configuration read again") > first, 20 * lab.patience, "the reload behind it")
        until(lambda: not proxy.status().get("under_way"), 10 * lab.patience, "the end of all reloads")
        contains(proxy.process.log(), "service one: its module did not start within start_timeout", "the first reload")


@seconds(60)
def test_a_connection_with_several_requests(lab):
    """Connections that are open already are served while a reload is under way, whichever thread has them."""
    proxy = Retort(lab)
    open_ones = [Wire(proxy.admin_path, 20 * lab.patience) for _ in range(12)]

    def look(wire):
        wire.send(request("GET", "/v1/whoami", host="localhost"))
        return wire.response("GET").status

    for wire in open_ones:
        equal(look(wire), 200, "before the reload")
    hanging(lab, proxy)
    open_ones[0].send(request("POST", "/v1/reload", host="localhost"))
    until_it_hangs(lab, proxy)
    for wire in open_ones[1:]:
        equal(quick(lab, lambda wire=wire: look(wire), "a second request"), 200, "during the reload")
        wire.close()
    proxy.terminate()
    equal(open_ones[0].response("POST").status, 409, "the reload that the end cuts short")
    equal(proxy.wait_exit(15 * lab.patience), 0, "exit status")


class Silent:
    """In the place of retort-helperd: it accepts, and says nothing."""

    def __init__(self, lab):
        self.path = lab.path(lab.unique("silent") + ".sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.asked = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            self.asked.append(self.listener.accept()[0])


@seconds(60)
def test_nobody_waits_for_a_silent_helperd(lab):
    """Calls that ask it end within their time, and meanwhile others are answered."""
    silent = Silent(lab)
    proxy = Retort(lab)
    text = proxy.text()
    calls = (("GET", "/v1/helpers", None), ("GET", "/v1/settings/options", None), ("GET", "/v1/settings/changes", None), ("GET", "/v1/metrics", None),
             ("POST", "/v1/helpers/renice?pool=a&nice=7", None), ("POST", "/v1/helpers/resize?pool=a&processes=3", None),
             ("POST", "/v1/settings", b'{"helper.a.nice": 7}'), ("DELETE", "/v1/settings?all=yes", None))
    for number, (method, path, body) in enumerate(calls):
        link = f"{silent.path}{number}"
        os.symlink(silent.path, link)
        proxy.write_config(text.replace("admin {", f'admin {{ helpers = "{link}" '))
        equal(proxy.reload().status, 200, "reload")
        before = len(silent.asked)
        asked = [Asked(proxy, method, path, body) for _ in range(6)]
        until(lambda before=before: len(silent.asked) > before, 10 * lab.patience, "a call")
        for look in ("/v1/status", "/v1/whoami", "/v1/services"):
            equal(quick(lab, lambda look=look: proxy.admin("GET", look), f"{look} during {path}", 0.15).status, 200, look)
        begun = time.monotonic()
        statuses = [one.get(lab).status for one in asked]
        true(time.monotonic() - begun < 5 * lab.patience, f"{path}: all six have ended")
        true(set(statuses) <= {200, 409, 503}, f"{path}: {statuses}")
        proxy.process.send_signal(signal.SIGUSR1)
