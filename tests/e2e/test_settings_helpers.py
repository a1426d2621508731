"""Pools of helpers as options of retortctl set, get, diff and unset."""

import json
import os
import signal
import socket
import threading
import time

from harness.checks import contains, equal, lacks, true
from harness.helperd import Helperd
from harness.process import nice_of, stand_still
from harness.retort import Retort
from harness.suite import memcheck


class Pools:
    """A proxy, and a retort-helperd with the pools text and gray.small."""

    def __init__(self, lab):
        command = lab.built("icap-services/text-helper")
        self.helperd = Helperd(lab, f'socket = "{{socket}}"\npool text {{ command = {{"{command}"}} nice = 5 processes = 2 }}\n'
                               f'pool "gray.small" {{ command = {{"{command}"}} nice = 5 processes = 1 }}\n')
        self.proxy = Retort(lab)
        self.proxy.write_config(self.proxy.text().replace("admin {", f'admin {{ helpers = "{self.helperd.socket}" '))
        equal(self.proxy.reload().status, 200, "reload")

    def ctl(self, *words, expect=0):
        return self.proxy.ctl(*words, expect=expect, extra=())

    def options(self, *name):
        return {row["name"]: (row["value"], row["from"], row["change"]) for row in json.loads(self.ctl("--json", "get", *name))["options"]}

    def refused(self, words, expected):
        before = self.options("helper")
        answer = self.proxy.admin("POST", words[0], body=json.dumps(words[1]).encode(), headers={"Content-Type": "application/json"})
        true(answer.status in (400, 409), f"{words}: status {answer.status} {answer.text()}")
        contains(json.loads(answer.body)["error"], expected, f"{words}: reason")
        equal(self.options("helper"), before, f"{words}: nothing has changed")


@memcheck
def test_set_and_get(lab):
    """set, get, diff and unset; helpers renice shows up in them, and processes have the level."""
    pools = Pools(lab)
    file = pools.helperd.config
    equal(pools.options("helper"), {"helper.text.nice": (5, file, "now"), "helper.text.processes": (2, file, "now"),
                                    "helper.gray.small.nice": (5, file, "now"), "helper.gray.small.processes": (1, file, "now")}, "options")
    contains(pools.ctl("set", "helper.text.nice=11", "helper.gray.small.processes=3"), "helper.text.nice: 11, before 5", "what set says")
    equal(pools.options("helper.text"), {"helper.text.nice": (11, "retortctl set", "now"), "helper.text.processes": (2, file, "now")}, "a pool")
    true("helper.text.nice" in pools.options(), "get without a name")
    pools.helperd.wait_helpers("text-helper", 5)
    true(sum(nice_of(pid) == 11 for pid in pools.helperd.helpers("text-helper")) >= 2, "helpers at 11")
    contains(pools.ctl("diff"), "helper.gray.small.processes", "diff")
    pools.proxy.ctl("-H", pools.helperd.socket, "helpers", "renice", "text", "12")
    equal(pools.options("helper.text.nice")["helper.text.nice"][0], 12, "after helpers renice")
    contains(pools.ctl("unset", "helper.text.nice"), "helper.text.nice: 5, before 12", "unset")
    pools.ctl("set", "cache.negative_ttl=404 7s")
    said = pools.ctl("unset", "--all")
    contains(said, "helper.gray.small.processes: 1, before 3", "unset --all")
    contains(said, "cache.negative_ttl", "unset --all")
    contains(pools.ctl("diff"), "nothing was changed", "diff at the end")


def test_refusals(lab):
    """All or nothing, and each refusal says what to do."""
    pools = Pools(lab)
    for body, expected in (({"helper.text.nice": "20"}, "nice must be from"), ({"helper.text.nice": "x"}, "not a number"),
                           ({"helper.text.nice": ""}, "not a number"), ({"helper.text.nice": "99999999999999999999"}, "not a number"),
                           ({"helper.text.nice": 1.5}, "not a number"), ({"helper.text.nice": [1]}, "not a number"),
                           ({"helper.text.processes": 0}, "processes must be from"), ({"helper.nowhere.nice": 1}, "no such pool"),
                           ({"helper.text.queue": 1}, "write helper.POOL.nice"), ({"helper": 1}, "write helper.POOL.nice"),
                           ({"helper.": 1}, "write helper.POOL.nice"), ({"helper..nice": 1}, "write helper.POOL.nice"),
                           ({"helper.nice": 1}, "write helper.POOL.nice"),
                           ({"helper.text.nice": 7, "helper.text.processes": 4, "helper.gray.small.processes": 100000}, "processes must be from"),
                           ({"helper.text.nice": 7, "cache.memory": "32MB"}, "in a call of their own")):
        pools.refused(("/v1/settings", body), expected)
    pools.refused(("/v1/settings?save=yes", {"helper.text.nice": 7}), "helpers reload")
    contains(pools.ctl("set", "--save", "helper.text.nice=7", expect=1), "", "retortctl")
    pools.helperd.stop()
    answer = pools.proxy.admin("GET", "/v1/settings/options?name=helper")
    equal(answer.status, 503, "without retort-helperd")
    contains(answer.text(), "is retort-helperd running", "reason")
    equal(pools.proxy.admin("GET", "/v1/settings/options").status, 200, "get without a name")
    equal(pools.proxy.admin("GET", "/v1/settings/changes").status, 200, "diff")


def test_unset_all_without_an_answer(lab):
    """It says so when the pools stay as they are. Where no retort-helperd runs, no pool is changed, and there is nothing to say."""
    pools = Pools(lab)
    pools.ctl("set", "helper.text.nice=9")
    stand_still(pools.helperd.process.pid)
    try:
        pools.ctl("set", "cache.negative_ttl=404 7s")
        said = json.loads(pools.proxy.admin("DELETE", "/v1/settings?all=yes").body)
        contains(str(said), "the pools stay as they are, because retort-helperd", "what it could not do")
        contains(str(said), "cache.negative_ttl", "what it did")
    finally:
        os.kill(pools.helperd.process.pid, signal.SIGCONT)
    pools.helperd.kill()
    pools.ctl("set", "cache.negative_ttl=404 7s")
    lacks(pools.proxy.admin("DELETE", "/v1/settings?all=yes").text(), "helperd", "where none runs")


def test_audit(lab):
    """The audit log has what was before, and what is now."""
    pools = Pools(lab)
    path = lab.path("audit.log")
    pools.proxy.write_config(pools.proxy.text().replace("admin {", f'admin {{ helpers = "{pools.helperd.socket}" audit_log = "{path}" '))
    equal(pools.proxy.reload().status, 200, "reload")
    pools.ctl("set", "helper.text.nice=9")
    true(os.path.exists(path), "there is an audit log")
    with open(path, encoding="utf-8") as lines:
        last = json.loads(lines.readlines()[-1])
    equal(last["changed"], [{"name": "helper.text.nice", "old": 5, "new": 9}], "audit log")


def test_the_pages_of_helpers_with_a_hung_helperd(lab):
    """Looks wait once for all of them, and so do changes."""
    pools = Pools(lab)
    asked = (("GET", "/v1/helpers"), ("POST", "/v1/helpers/renice?pool=text&nice=7"), ("GET", "/v1/helpers"), ("POST", "/v1/helpers/resize?pool=text&processes=3"),
             ("GET", "/v1/settings/options"), ("GET", "/v1/helpers"))
    stand_still(pools.helperd.process.pid)
    try:
        begun = time.monotonic()
        statuses = [pools.proxy.admin(*one).status for one in asked]
        took = time.monotonic() - begun
        equal(statuses, [503, 409, 503, 409, 200, 503], "statuses")
        true(2.9 <= took < 4.5 * lab.patience, f"six calls take {took:.1f} s")
        contains(pools.proxy.admin("GET", "/v1/helpers").text(), "has not answered a moment ago", "reason")
    finally:
        os.kill(pools.helperd.process.pid, signal.SIGCONT)


def test_a_hung_helperd(lab):
    """Who looks waits for a second; who looks again in the next ten seconds does not, and the admin plane answers others."""
    pools = Pools(lab)
    pools.options()
    stand_still(pools.helperd.process.pid)
    try:
        took = []
        for _ in range(6):
            begun = time.monotonic()
            equal(pools.proxy.admin("GET", "/v1/settings/options").status, 200, "options of the proxy")
            took.append(time.monotonic() - begun)
        true(took[0] >= 0.9, f"the first look takes {took[0]:.2f} s")
        true(sum(took[1:]) < 0.9 * lab.patience, f"the next five take {took[1:]}")
        answer = pools.proxy.admin("GET", "/v1/settings/options?name=helper")
        equal(answer.status, 503, "options of helpers")
        contains(answer.text(), "has not answered a moment ago", "reason")
    finally:
        os.kill(pools.helperd.process.pid, signal.SIGCONT)


class SlowHelperd:
    """Answers for retort-helperd with the pools a and b. `delay` says how many seconds a command waits for its answer."""

    def __init__(self, lab, delay):
        self.delay = delay
        self.pools = {name: {"name": name, "nice": 5, "processes": 2, "configured": {"nice": 5, "processes": 2}} for name in ("a", "b")}
        self.asked = 0
        self.socket = lab.path(lab.unique("slow-helperd") + ".sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.socket)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()
        self.proxy = Retort(lab)
        self.text = self.proxy.text()
        self.use(self.socket)

    def use(self, path):
        self.proxy.write_config(self.text.replace("admin {", f'admin {{ helpers = "{path}" '))
        equal(self.proxy.reload().status, 200, "reload")

    def accept(self):
        while True:
            threading.Thread(target=self.answer, args=(self.listener.accept()[0],), daemon=True).start()

    def answer(self, peer):
        with peer:
            command = json.loads(peer.recv(65536))
            self.asked += 1
            wait = self.delay(command)
            if wait is None:
                time.sleep(60)
                return
            time.sleep(wait)
            for option in ("nice", "processes"):
                if option in command:
                    self.pools[command["pool"]][option] = command[option]
            try:
                peer.sendall(json.dumps({"ok": True, "pools": list(self.pools.values())}).encode() + b"\n")
            except OSError:
                pass

    def set(self, **options):
        body = json.dumps({f"helper.{name.replace('_', '.')}": value for name, value in options.items()}).encode()
        return self.proxy.admin("POST", "/v1/settings", body=body, headers={"Content-Type": "application/json"})


def test_a_change_is_taken_back_after_a_late_one(lab):
    helperd = SlowHelperd(lab, lambda command: None if command["call"] == "resize" else 0)
    answer = helperd.set(a_nice=7, b_processes=4)
    equal(answer.status, 409, "status")
    contains(answer.text(), "took too long", "reason")
    lacks(answer.text(), "taken back", "reason")
    equal(helperd.pools["a"]["nice"], 5, "nice of the first pool")


def test_what_can_not_be_taken_back_is_named(lab):
    helperd = SlowHelperd(lab, lambda command: None if command["call"] == "resize" or command.get("nice") == 5 else 0)
    answer = helperd.set(a_nice=7, b_nice=8, b_processes=4)
    equal(answer.status, 409, "status")
    contains(answer.text(), "helper.a.nice could not be taken back and may still be 7", "reason")
    contains(answer.text(), "helper.b.nice could not be taken back and may still be 8", "reason")


def test_late_looks_refuse_no_changes(lab):
    """Changes have two seconds, and looks have one."""
    helperd = SlowHelperd(lab, lambda command: 1.2)
    for nice in (7, 8):
        equal(helperd.proxy.admin("GET", "/v1/helpers").status, 503, "a look")
        equal(helperd.set(a_nice=nice).status, 200, "a change")
        equal(helperd.pools["a"]["nice"], nice, "nice")


def test_another_socket_is_asked_at_once(lab):
    helperd = SlowHelperd(lab, lambda command: None)
    equal(helperd.set(a_nice=7).status, 409, "a change")
    asked = helperd.asked
    equal(helperd.proxy.admin("GET", "/v1/helpers").status, 503, "a look")
    equal(helperd.asked, asked, "calls meanwhile")
    link = helperd.socket + "2"
    os.symlink(helperd.socket, link)
    helperd.delay = lambda command: 0
    helperd.use(link)
    equal(helperd.proxy.admin("GET", "/v1/helpers").status, 200, "a look at another socket")
