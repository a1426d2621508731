"""What the admin plane and retortctl say about options: what is in use, what waits, what was asked for, and no secrets."""

import json
import os
import subprocess

from harness.checks import contains, equal, lacks, true
from harness.retort import Retort
from test_settings import FILES, changes, guarded, post, value
from test_settings_together import A, FIRST, GROUP


def test_secrets_of_rules(lab):
    """Who may read settings does not learn credentials from them: not from rules for fields, nor from conditions or URLs."""
    rules = ('request_headers all {{ set = {{ "Authorization: Bearer {0}", "X-Who: %{{client_ip}}" }}  replace = "X-Key: /a/{0}/" '
             ' add = "X-Sesame: {0}" }}\nresponse_headers all {{ set = {{ "Set-Cookie: a={0}", "X-Frame-Options: DENY" }} }}\n'
             'url_class c {{ request_header = {{ "X-Api-Key: ^{0}$", "User-Agent: ^curl" }} }}\n'
             'access c {{ action = redirect  status = 302  to = "http://user:{0}@x.example/" }}\n')
    proxy = guarded(lab, extra=rules.format("secretone"))
    proxy.write_config(proxy.text().replace("token_file =", f'audit_log = "{proxy.audit_path}"  token_file =').replace("secretone", "secrettwo"))
    changed = json.loads(proxy.reload().body)["changed"]
    equal({change["name"] for change in changed},
          {"request_headers.all.set", "request_headers.all.replace", "request_headers.all.add", "response_headers.all.set",
           "url_class.c.request_header", "access.c.to"}, "what a reload has changed")
    for path in ("", "/effective", "/options", "/schema"):
        lacks(proxy.admin("GET", "/v1/settings" + path).text(), "secret" + "t", path)
    with open(proxy.audit_path, encoding="utf-8") as file:
        audited = file.read()
    lacks(json.dumps(changed) + audited, "secrett", "the answer and the audit log")
    lacks(json.dumps(changed) + audited, "secreto", "the answer and the audit log")
    equal(value(proxy, "request_headers.all.set")[0], ["Authorization: (not shown)", "X-Who: %{client_ip}"], "set")
    equal(value(proxy, "request_headers.all.add")[0], ["X-Sesame: (not shown)"], "add")
    equal(value(proxy, "response_headers.all.set")[0], ["Set-Cookie: (not shown)", "X-Frame-Options: DENY"], "set of responses")
    equal(value(proxy, "url_class.c.request_header")[0], ["X-Api-Key: (not shown)", "User-Agent: ^curl"], "a condition")
    equal(value(proxy, "access.c.to")[0], "http://(not shown)@x.example/", "a URL")
    proxy.write_config(proxy.text() + 'request_headers all { replace = "Authorization: /(/secrettwo/" }\nmap "/x/" { origin = "http://u:secrettwo@h/" }\n')
    error = proxy.reload()
    equal(error.status, 409, "a bad configuration")
    lacks(error.text(), "secrettwo", "its errors")


def test_bytes_that_are_no_text(lab):
    """All changes of a command are made, or none."""
    proxy = Retort(lab)
    done = subprocess.run([lab.built("proxy/retortctl"), "-s", proxy.admin_path, "set", "log_level=debug", b"cache.negative_ttl=404 \xff"],
                          capture_output=True, check=False, env={**os.environ, **lab.environment()})
    equal((done.returncode, changes(proxy)), (2, {}), f"{done.stderr}: exit status and changes")
    contains(done.stderr.decode(errors="replace"), "not UTF-8", "stderr")


def test_names_that_are_no_text(lab):
    """An argument that JSON can't have is refused, and not taken for something else."""
    proxy = Retort(lab)
    proxy.ctl("set", "cache.negative_ttl=404 7s")
    for method, path, expected in (("DELETE", "/settings?name=%FF", 400), ("DELETE", "/settings?name=cache.%C3%28", 400),
                                   ("GET", "/settings/options?name=%FF", 404), ("GET", "/settings/options?name=helper.%FF", 503),
                                   ("POST", "/services/bump?name=%FF", 404), ("POST", "/helpers/renice?pool=%FF&nice=1", 404),
                                   ("GET", "/access/test?url=http://a/%FF&user=%FF&sni=%FF&group=%FF&header=a:%FF", 200),
                                   ("GET", "/limits?section=%FF", 404), ("GET", "/dns?name=%FF", 200), ("POST", "/dns/clear?name=%FF", 200),
                                   ("POST", "/services/load?name=%FF", 404), ("POST", "/services/unload?name=%FF", 404),
                                   ("POST", "/services/order?class=%FF&services=%FF", 404), ("POST", "/intercept/clear?host=%FF", 200),
                                   ("GET", "/inspect/transaction?id=%FF", 404), ("GET", "/cache/objects?regex=%FF", 200),
                                   ("GET", "/cache/objects?tag=%FF", 200), ("POST", "/icap/record?service=%FF", 200)):
        answer = proxy.admin(method, "/v1" + path)
        equal(answer.status, expected, f"{method} {path}: {answer.text()}\nstatus")
        true(answer.body[:1] == b"{" and isinstance(json.loads(answer.body), dict), f"{method} {path}: {answer.text()}")
    equal(changes(proxy), {"cache.negative_ttl": (["none"], "404 7s", False)}, "changes")


def test_a_change_beside_something_that_fails(lab):
    """The change is made; what can't be used is said, and by the exit status too."""
    proxy = Retort(lab)
    proxy.write_config(proxy.text() + f'access_log "{lab.path("nowhere/a.log")}" {{ }}\n')
    proxy.reload()
    for command in (("set", "cache.memory=40MB"), ("unset", "cache.memory"), ("unset", "--all")):
        done = proxy.run_ctl(*command)
        equal(done.returncode, 1, f"{command}: exit status")
        contains(done.stderr, "the change is made, but", f"{command}")
        contains(done.stderr, "nowhere/a.log", f"{command}")
        proxy.ctl("set", "cache.memory=48MB", expect=1)


def test_what_was_asked_is_noted(lab):
    """The audit log has what was saved and unsaved, also where the value in use stays the same."""
    proxy = guarded(lab, extra=FILES)
    post(proxy, {"cache.memory": "40MB"})
    post(proxy, {"cache.memory": "40MB"}, save=True)
    proxy.admin("DELETE", "/v1/settings?all=yes&save=yes")
    post(proxy, {"icap_service.x.credentials": "u:hidden"}, expect=400)
    with open(proxy.audit_path, encoding="utf-8") as file:
        text = file.read()
    lines = [json.loads(line) for line in text.splitlines()][-4:]
    equal([(line.get("asked"), line["arguments"].get("save"), line.get("changed")) for line in lines[1:3]],
          [({"cache.memory": "40MB"}, "yes", []),
           ({"cache.memory": None}, "yes", [{"name": "cache.memory", "old": "40MB", "new": "32MB"}])], "asked, save, changed")
    lacks(text, "u:hidden", "the audit log")


def test_what_waits_for_a_restart(lab):
    """It is in use nowhere, and no answer says so."""
    proxy = Retort(lab, extra=FILES)
    equal(proxy.ctl("set", "--save", "workers=2", "authentication.threads=3").splitlines(),
          ["workers: will be 2 after a restart, is 1", "authentication.threads: will be 3 after a restart, is 0"], "set")
    option = json.loads(proxy.admin("GET", "/v1/settings/options?name=workers").body)["options"][0]
    equal((option["value"], option["waits"]), (1, 2), "get")
    contains(proxy.ctl("get", "workers"), "1 (2 at restart)", "get")
    settings = json.loads(proxy.admin("GET", "/v1/settings").body)
    equal((settings["workers"], settings["authentication"]["threads"]), (1, 0), "settings")
    equal(json.loads(proxy.reload().body)["changed"], [], "a reload that changes nothing")
    equal(proxy.ctl("unset", "--save", "workers"), "workers: stays 1\n", "unset")
    os.mkdir(lab.path("d"))
    proxy.write_config(proxy.text().replace("cache {", f'cache {{ disk "{lab.path("d")}" {{ size = "16MB" }} ', 1))
    changed = {change["name"]: change for change in json.loads(proxy.reload().body)["changed"]}
    equal(changed[f"cache.disk.{lab.path('d')}.size"],
          {"name": f"cache.disk.{lab.path('d')}.size", "old": None, "new": "16MB", "waits": True}, "a disk that a reload does not open")
    equal(json.loads(proxy.admin("GET", "/v1/settings").body)["cache"]["disk"], [], "disks in use")
    proxy.restart()
    equal((value(proxy, "authentication.threads")[0], value(proxy, f"cache.disk.{lab.path('d')}.size")[0]), (3, "16MB"), "after a restart")


def test_get_takes_the_names_of_set(lab):
    proxy = Retort(lab, extra=GROUP + "limit all { concurrent = 5 }\n", reverse={"/": "=web"})
    proxy.ctl("set", f"{FIRST}=weight=3")
    equal(proxy.ctl("get", FIRST).splitlines()[1].split(), [FIRST, "weight=3", "now", "retortctl", "set"], "an element")
    proxy.ctl("get", FIRST.replace(A, "http://other"), expect=1)
    equal(json.loads(proxy.admin("GET", "/v1/settings/options?name=limit.all%231.concurrent").body)["options"][0]["value"], 5, "by its number")
