"""Options that are changed while the proxy runs: what is in use, what stays, and who may not."""

import json
import os
import random
import re
import threading
import time

from harness import ports
from harness.checks import Skip, contains, equal, lacks, true, until
from harness.icap import IcapServer, unchanged
from harness.disk_faults import DiskFaults
from harness.origin import Origin
from harness.retort import Retort, Service
from harness.suite import memcheck

FILES = 'saved_settings = "saved.conf"\n'


def post(proxy, changes, save=False, expect=200, token=None):
    answer = proxy.admin("POST", "/v1/settings" + ("?save=yes" if save else ""), json.dumps(changes).encode(), token=token)
    equal(answer.status, expect, f"{changes}: {answer.text()}\nstatus")
    return json.loads(answer.body)


def value(proxy, name):
    options = json.loads(proxy.admin("GET", f"/v1/settings/options?name={name}").body)["options"]
    equal(len(options), 1, f"options {name}")
    return options[0]["value"], options[0]["from"]


def changes(proxy):
    return {change["name"]: (change["configured"], change["value"], change["saved"])
            for change in json.loads(proxy.admin("GET", "/v1/settings/changes").body)["changes"]}


def test_set_and_unset(lab):
    """A change is in use at once, stays over a reload, and ends with the process."""
    proxy = Retort(lab)
    equal(proxy.ctl("diff"), "nothing was changed at run time\n", "diff at first")
    contains(proxy.ctl("set", "cache.memory=48MB", "cache.negative_ttl=404 10s", "cache.negative_ttl=410 20s"),
             "cache.memory: 48MB, before 32MB", "what set says")
    equal(value(proxy, "cache.memory"), ("48MB", "retortctl set"), "value")
    equal(value(proxy, "cache.negative_ttl")[0], ["404 10s", "410 20s"], "a list")
    equal(proxy.status()["cache"]["limit"], 48 << 20, "the limit in use")
    equal(json.loads(proxy.reload().body)["changed"], [], "what a reload changes")
    equal(proxy.status()["cache"]["limit"], 48 << 20, "after a reload")
    equal(changes(proxy), {"cache.memory": ("32MB", "48MB", False),
                           "cache.negative_ttl": (["none"], ["404 10s", "410 20s"], False)}, "changes")
    proxy.ctl("unset", "cache.negative_ttl")
    equal(value(proxy, "cache.negative_ttl"), (["none"], "default"), "unset")
    proxy.restart()
    equal((proxy.status()["cache"]["limit"], changes(proxy)), (32 << 20, {}), "after a restart")


def test_saved_changes(lab):
    """They are in a file of their own, which a later start and reload read behind the configuration."""
    proxy = Retort(lab, extra=FILES + 'map "/a\\"b$c" { origin = "http://127.0.0.1:1/" }\n')
    with open(proxy.config_path, "rb") as file:
        before = file.read()
    path = lab.path("saved.conf")
    lab.write("saved.conf.new", "half of what a process that was killed has wri")
    proxy.ctl("set", "--save", "cache.memory=48MB", 'map./a"b$c.preserve_host=true', "workers=2")
    equal(os.stat(path).st_mode & 0o777, 0o600, "mode")
    true(not os.path.exists(path + ".new"), "the temporary file is gone")
    proxy.ctl("set", "cache.memory=40MB")
    proxy.restart()
    equal((value(proxy, "cache.memory")[0], proxy.status()["workers"]), ("48MB", 2), "after a restart")
    contains(value(proxy, "cache.memory")[1], "saved.conf:", "from")
    equal(changes(proxy)['map./a"b$c.preserve_host'], (False, "true", True), "a title with marks")
    proxy.ctl("unset", "cache.memory")
    equal(json.loads(proxy.reload().body)["reloaded"], True, "reload")
    equal(changes(proxy)["cache.memory"], ("32MB", None, False), "unset for this process only")
    proxy.ctl("unset", "--all", "--save")
    proxy.restart()
    equal((changes(proxy), proxy.status()["cache"]["limit"]), ({}, 32 << 20), "all unset")
    with open(proxy.config_path, "rb") as file:
        equal(file.read(), before, "the operator's own file")


def test_saved_file_of_others(lab):
    """A file that somebody else could have written, or that has more than may be changed, is refused with a reason."""
    proxy = Retort(lab, extra=FILES)
    path = lab.path("saved.conf")
    for text, mode, expected in (('"cache.memory" = "48MB"', 0o620, "nobody else can write to"),
                                 ('"cache.memory" = "48MB"\n"admin.token_file" = "/etc/passwd"', 0o600, "saved.conf:2: admin.token_file can not"),
                                 ('"error_log" = "/tmp/x"', 0o600, "saved.conf:1: error_log can not"),
                                 ('include = "/etc/passwd"', 0o600, "saved.conf:1: include can not"),
                                 ('"connect_ports" = "25"', 0o600, "saved.conf:1: connect_ports can not"),
                                 ('listen "127.0.0.1:1" { mode = forward }', 0o600, "saved.conf:1: write"),
                                 ('"cache.memory" = "48', 0o600, "saved.conf:"), ("\0", 0o600, "saved.conf:"),
                                 ('"nothing" = 1', 0o600, 'there is no option "nothing"')):
        with open(path, "w", encoding="utf-8") as out:
            out.write(text + "\n")
        os.chmod(path, mode)
        answer = proxy.reload()
        equal(answer.status, 409, f"{text}: {answer.text()}\nstatus")
        contains(json.loads(answer.body)["error"], expected, text)
    os.unlink(path)
    os.symlink("/etc/passwd", path)
    contains(json.loads(proxy.reload().body)["error"], "must be a regular file", "a link")
    with open("/etc/passwd", "rb") as file:
        passwd = file.read()
    contains(post(proxy, {"cache.memory": "40MB"}, save=True, expect=409)["error"], "was changed since retort has read it", "a link")
    with open("/etc/passwd", "rb") as file:
        equal(file.read(), passwd, "where the link led to")
    os.unlink(path)
    post(proxy, {"cache.memory": "40MB"}, save=True)
    proxy.ctl("unset", "--all", "--save")
    lab.write("saved.conf", '"icap_service.gone.timeout" = "3s"\n')
    os.chmod(path, 0o600)
    equal(proxy.reload().status, 200, "a section that is not there any more")
    contains(proxy.process.log(), "icap_service.gone.timeout, which was changed at run time, is not in the configuration", "log")


def test_nothing_can_be_saved(lab):
    proxy = Retort(lab)
    contains(post(proxy, {"cache.memory": "48MB"}, save=True, expect=409)["error"], "set saved_settings to a file", "no file")
    proxy.write_config(proxy.text() + f'saved_settings = "{lab.path("nowhere/saved.conf")}"\n')
    equal(proxy.reload().status, 200, "reload")
    contains(post(proxy, {"cache.memory": "48MB"}, save=True, expect=500)["error"], "can not be written", "no directory")
    equal(changes(proxy), {}, "changes")


def test_a_save_that_the_disk_does_not_confirm(lab):
    """The file is there and the change is in use, but the directory's fsync failed: that is no success, and no refusal."""
    directory = lab.path("saved")
    os.mkdir(directory)
    faults = DiskFaults(lab, directory)
    proxy = Retort(lab, environment=faults.environment())
    proxy.write_config(proxy.text() + f'saved_settings = "{directory}/saved.conf"\n')
    equal(proxy.reload().status, 200, "reload")
    faults.set(sync_error=1000)
    said = post(proxy, {"client.max_connections": "123"}, save=True, expect=500)
    true(faults.count("sync_faults") > 0, "the disk has failed")
    contains(said["error"], "the change is in use, and saved_settings", "what it says")
    contains(said["error"], "save the change again", "what to do")
    true("client.max_connections" in [each["name"] for each in said["changed"]], "what has changed")
    with open(f"{directory}/saved.conf", encoding="utf-8") as saved:
        contains(saved.read(), '"client.max_connections" = "123"', "the file")
    faults.clear()
    equal(post(proxy, {"client.max_connections": "123"}, save=True)["saved"], True, "saved again")
    proxy.kill()
    proxy.start()
    contains(proxy.ctl("get", "client.max_connections"), "123", "after a restart")


def test_killed_while_it_saves(lab):
    """What was answered as saved is there after kill -9; what was not answered is there whole, or not at all."""
    proxy = Retort(lab, extra=FILES, memcheck=False)
    saved, sent = [30], [30]

    def save():
        try:
            while True:
                sent[0] += 1
                post(proxy, {"drain_timeout": f"{sent[0]}s", "cache.memory": f"{sent[0] + 100}MB"}, save=True)
                saved[0] = sent[0]
        except (OSError, AssertionError, ValueError):
            pass  # killed

    for _ in range(5):
        thread = threading.Thread(target=save)
        thread.start()
        until(lambda first=sent[0]: sent[0] > first + 2, 10 * lab.patience, "changes")
        threading.Event().wait(random.random() / 50)
        proxy.kill()
        thread.join()
        proxy.start()
        number = int(value(proxy, "drain_timeout")[0].rstrip("ms")) * (60 if value(proxy, "drain_timeout")[0].endswith("m") else 1)
        true(saved[0] <= number <= sent[0], f"saved {saved[0]}, sent {sent[0]}, found {number}")
        equal(value(proxy, "cache.memory")[0], f"{number + 100}MB", "the other half of the change")


def test_a_disk_that_a_start_could_not_have(lab):
    """A size that is larger than the file system is not saved, so the next start finds a file that it can use."""
    system = os.statvfs(lab.path(""))
    if system.f_blocks * system.f_frsize > 1900e9:
        raise Skip("a file system of less than 1900 GB")
    proxy = Retort(lab, extra=FILES, cache={"memory": "16MB", "disk": {lab.path("volume"): {"size": "64MB"}}})
    name = f"cache.disk.{lab.path('volume')}.size"
    said = post(proxy, {name: "2000GB"}, save=True, expect=409)["error"]
    contains(said, "larger than the whole file system", "reason")
    contains(said, "lower size", "what to do")
    equal(post(proxy, {name: "96MB"}, save=True, expect=200)["saved"], True, "a size that is possible")
    proxy.restart()
    equal(value(proxy, name)[0], "96MB", "after a restart")


@memcheck
def test_servers_of_a_group(lab):
    """One server gets no new requests, then another share, and then what the file says."""
    first, second = Origin(lab), Origin(lab)
    proxy = Retort(lab, reverse={"/": "=web"}, extra=f'origins web {{ servers = {{ "{first.url()}", "{second.url()}" }} }}\n')

    def shares(count):
        for _ in range(count):
            equal(proxy.get("/text?say=x", host="h", headers={"Cache-Control": "no-store"}).status, 200, "status")
        return {server["url"]: server["requests"] for server in json.loads(proxy.admin("GET", "/v1/origins").body)["origins"][0]["servers"]}

    name = f"origins.web.servers[{first.url().rstrip('/')}]"
    text = proxy.text()
    proxy.write_config(text.replace(first.url(), first.url().rstrip("/")))
    equal(proxy.reload().status, 200, "reload")
    url = first.url().rstrip("/")
    proxy.ctl("set", f"{name}=drain")
    contains(proxy.ctl("origins"), "drain", "origins")
    equal(shares(4)[url], 0, "requests while it drains")
    proxy.ctl("set", f"{name}=weight=3")
    equal(shares(4)[url], 3, "requests with three shares of four")
    proxy.ctl("unset", name)
    equal(shares(4)[url], 5, "requests with equal shares")
    contains(post(proxy, {"origins.web.servers[http://other]": "drain"}, expect=409)["error"], "no element that begins with", "another")
    proxy.ctl("set", f"{name}=drain", f"origins.web.servers[{second.url()}]=drain")
    equal(proxy.get("/text?say=x", host="h", headers={"Cache-Control": "no-store"}).status, 503, "when all drain")


@memcheck
def test_a_service_of_a_class(lab):
    """It is not asked about requests of that class, and about others it is."""
    icap, origin = IcapServer(lab, unchanged, methods="REQMOD"), Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri(), point="reqmod_precache")], url_classes={"here": {"path_regex": "^/text"}},
                   adapt={"here": ["s"]}, extra="url_class there { path_regex = '^/echo' }\nadapt there { services = s }\n")

    def asked(path):
        before = icap.count
        proxy.get(origin.url(path), headers={"Cache-Control": "no-store"})
        return icap.count - before

    equal((asked("/text?say=a"), asked("/echo")), (1, 1), "at first")
    proxy.ctl("set", "adapt.here.disabled=s")
    equal((asked("/text?say=b"), asked("/echo")), (0, 1), "disabled")
    proxy.ctl("unset", "adapt.here.disabled")
    equal((asked("/text?say=c"), asked("/echo")), (1, 1), "enabled")
    contains(post(proxy, {"adapt.here.disabled": "other"}, expect=409)["error"], "is not one of the services", "another service")


def guarded(lab, **options):
    """On an address, with tokens and an audit log."""
    proxy = Retort(lab, admin=("127.0.0.1", ports.take()), **options)
    proxy.audit_path = lab.path("audit.log")
    proxy.write_tokens(f"lab admin {proxy.token}\ndeploy operate {'0' * 64}")
    proxy.write_config(proxy.text().replace("token_file =", f'audit_log = "{proxy.audit_path}"  token_file ='))
    equal(proxy.reload().status, 200, "reload")
    return proxy


def test_who_changes_what_is_noted(lab):
    """Who, what, and the values before and after; also at log_level = error, where the log is the audit log."""
    proxy = guarded(lab)
    answer = proxy.admin("POST", "/v1/settings", b'{"cache.memory": "40MB"}', token="0" * 64)
    equal(answer.status, 403, "operate may not")
    post(proxy, {"cache.memory": "40MB", "log_level": "error"})
    proxy.admin("DELETE", "/v1/settings?name=cache.memory")
    with open(proxy.audit_path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file][-3:]
    equal([(line["who"], line["did"], line["status"], line.get("changed")) for line in lines],
          [("deploy", "POST /settings", 403, None),
           ("lab", "POST /settings", 200, [{"name": "log_level", "old": "info", "new": "error"},
                                           {"name": "cache.memory", "old": "32MB", "new": "40MB"}]),
           ("lab", "DELETE /settings", 200, [{"name": "cache.memory", "old": "40MB", "new": "32MB"}])], "the audit log")
    unix = Retort(lab)
    post(unix, {"log_level": "error"})
    post(unix, {"cache.memory": "40MB"})
    contains(unix.process.log(), '"changed":[{"name":"cache.memory","old":"32MB","new":"40MB"}]', "the log at log_level = error")


def options_of(schema, inside=""):
    for name, option in schema["properties"].items():
        below = option.get("items", option)
        if "properties" in below:
            yield from options_of(below, name + ".")
        elif "x-change" in option:
            yield inside + name, option


def test_what_opens_something_can_not_be_changed(lab):
    """Who may change settings must not be able to run programs, read or write files, or let others in by it: unit test settings of the table."""
    proxy = Retort(lab, extra='origins inner { servers = "http://127.0.0.1:1" }\n')
    found = dict(options_of(json.loads(proxy.ctl("config", "schema"))))
    true(len(found) > 250, f"{len(found)} options")
    equal({name for name, option in found.items() if option["x-change"] != "file" and name.startswith("admin.")}, set(), "options of the admin plane")
    for name, changed in (("listen.%s.allow", "all"), ("listen.%s.local_destinations", "allow"), ("listen.%s.trusted_proxies", "all"),
                          ("origins.inner.local_destinations", "allow"), ("origins.inner.verify", "false"), ("origins.inner.proxy_protocol", "v1"),
                          ("client.uncounted", "all"), ("connect_ports", "all"), ("interception.not_tls", "tunnel"), ("transparent.other", "tunnel")):
        name = name.replace("%s", ":".join(map(str, proxy.forward)))
        contains(post(proxy, {name: changed}, expect=400)["error"], "can not be changed at run time", name)
        equal(found[re.sub("listen.*[.]", "listen.", name).replace(".inner", "")]["x-change"], "file", name)
    for name in ("admin.token_file", "admin.listen", "error_log", "include", "saved_settings", "temporary_directory",
                 "admin.audit_log", "name"):
        error = post(proxy, {name: "/etc/passwd"}, expect=400)
        contains(error["error"], "can not be changed at run time", name)
        equal(error["parameter"], name, "parameter")


@memcheck
def test_attacks(lab):
    """Values and names that are more than they seem."""
    proxy = Retort(lab, extra=FILES + "limit all { requests = \"20/s\" }\nlimit all { concurrent = 5 }\n")
    for asked, status, expected in (
            ({"cache.memory": "0"}, 400, "out of range"), ({"cache.memory": "-1"}, 400, "is not a size"),
            ({"cache.memory": "99999999999999999999GB"}, 400, "is not a size"), ({"cache.memory": ["1MB", "2MB"]}, 400, "takes one value"),
            ({"cache.memory": {"a": 1}}, 400, "write a string"), ({"cache.memory": ""}, 400, "is not a size"),
            ({"cache.memory": '1MB" include = "/etc/passwd'}, 400, "is not a size"), ({"cache.memory\n": "1MB"}, 400, "there is no option"),
            ({"cache.memory": "40MB\n\"log_level\" = \"debug\""}, 400, "control character"),
            ({"cache.negative_ttl": ["404 10s\u0000"]}, 400, ""), ({"cache.negative_ttl": []}, 400, "the list is empty"),
            ({"cache.negative_ttl": ["404 10s"] * 1001}, 400, "the list is too long"), ({"": "x"}, 400, "there is no option"),
            ({".": "x"}, 400, "there is no option"), ({"a" * 5000: "x"}, 400, "there is no option"), ({"cache": "x"}, 400, "there is no option"),
            ({"cache.memory[x]": "1MB"}, 400, "no elements that can be named"), ({"[": "x"}, 400, "there is no option"),
            ({"listen.nobody.max_head": "1KB"}, 409, 'there is no section listen "nobody"'),
            ({"limit.all.concurrent": 3}, 409, "write limit.all#1.concurrent"), ({"limit.all#3.concurrent": 3}, 409, "limit.all#1"),
            ({"limit.all#99999999999999999999.concurrent": 3}, 409, "there is no section"),
            ({"client.max_connections_per_client": 1000000}, 409, "is more than max_connections"), ({}, 400, "the body must be")):
        contains(post(proxy, asked, expect=status)["error"], expected, f"{asked}"[:100])
    for body in (b"", b"x", b"[]", b'"x"', b'{"cache.memory": "40MB", "cache.memory": "41MB"}', b'{"a": ' * 3000, b"\xff{}", b'{"\xff": 1}'):
        equal(proxy.admin("POST", "/v1/settings", body).status, 400, f"{body[:60]}")
    equal(proxy.admin("POST", "/v1/settings", b'{"cache.memory": "' + b"1" * (80 << 10) + b'MB"}').status, 413, "a long body")
    equal(changes(proxy), {}, "changes")
    equal(value(proxy, "cache.memory")[0], "32MB", "the value")
    post(proxy, {"limit.all#2.concurrent": 3, "limit.all#1.requests": "5/s"})
    equal([value(proxy, "limit.all%232.concurrent")[0], value(proxy, "limit.all%231.requests")[0]], [3, "5/s"], "sections with one title")


def test_at_once(lab):
    """Changes, reloads and SIGHUP at the same time: who is refused because another change is under way repeats his, and the last state is that of the
    last change."""
    proxy = Retort(lab, extra=FILES, workers=2)
    failures = []

    def run(step):
        try:
            for number in range(12):
                step(number)
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)

    def insist(method, path, body=None):
        answer = proxy.admin(method, path, body)
        while (answer.status, answer.header("Retry-After")) == (503, "1"):
            contains(answer.text(), "has been under way for", "why it is refused")
            time.sleep(0.01)
            answer = proxy.admin(method, path, body)
        equal(answer.status, 200, path)

    steps = (lambda number: insist("POST", "/v1/settings", b'{"cache.memory": "%dMB"}' % (40 + number)),
             lambda number: insist("POST", "/v1/settings?save=yes", b'{"drain_timeout": "%ds"}' % (number + 1)),
             lambda number: insist("POST", "/v1/reload"), lambda number: proxy.hang_up())
    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(failures, [], "failures")
    equal((value(proxy, "cache.memory")[0], value(proxy, "drain_timeout")[0]), ("51MB", "12s"), "the last values")
    equal(proxy.status()["state"], "running", "state")


def test_what_get_shows_can_be_set(lab):
    """Every option of a configuration is taken back as it is shown, and that changes nothing."""
    icap = IcapServer(lab, unchanged)
    proxy = Retort(lab, services=[Service("s", icap.uri())], url_classes={"c": {"host": "x"}}, reverse={"/": "http://127.0.0.1:1/"},
                   extra='origins web { servers = "http://127.0.0.1:1 weight=2" }\npolicy c { ttl_default = "1h" }\nlimit c { concurrent = 4 }\n'
                         "intercept c { action = splice }\naccess all { action = allow }\nparent c { direct = always }\n")
    options = json.loads(proxy.admin("GET", "/v1/settings/options").body)["options"]
    asked = {option["name"]: option["value"] for option in options if option["change"] == "now" and option["value"] not in (None, [])
             and not option["name"].startswith("policy.")}
    true(len(asked) > 100, f"{len(asked)} options")
    equal(post(proxy, asked)["changed"], [], "what has changed")
    equal(set(changes(proxy)), set(asked), "changes")
    equal(proxy.ctl("get", "cache.memory").splitlines()[1].split(), ["cache.memory", "32MB", "now", "retortctl", "set"], "get")


def test_schema_fits(lab):
    """`config show --effective --json` is what `config schema` describes, and each option is in the schema."""
    try:
        from jsonschema import Draft7Validator  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip("python3-jsonschema is not installed") from None
    icap = IcapServer(lab, unchanged)
    proxy = Retort(lab, services=[Service("s", icap.uri(), credentials="user:hidden")], reverse={"/": "http://127.0.0.1:1/"},
                   url_classes={"c": {"path_regex": "x"}}, extra="connect_ports = none\npolicy c { ttl_default = \"1h\" }\n")
    schema = json.loads(proxy.ctl("config", "schema"))
    Draft7Validator.check_schema(schema)
    shown = proxy.ctl("config", "show", "--effective", "--json")
    equal([error.message for error in Draft7Validator(schema).iter_errors(json.loads(shown))], [], "errors")
    lacks(shown, "hidden", "a secret")
    broken = json.loads(shown)
    broken["cache"]["memory"] = "many"
    equal(len(list(Draft7Validator(schema).iter_errors(broken))), 1, "errors of another value")
    contains(json.loads(shown)["from"]["cache.memory"], "retort.conf:", "from")
    lacks(proxy.ctl("config", "show", "--effective"), "hidden", "a secret")
    contains(proxy.ctl("config", "show"), "icap_service.s.credentials", "config show")
