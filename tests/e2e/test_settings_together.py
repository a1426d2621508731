"""Changes at run time that belong together: in whichever order they are made, and whichever of them are saved."""

import ctypes
import json
import os
import shutil
import subprocess
import sys

from harness import ports
from harness.checks import Skip, contains, equal, lacks, true
from harness.retort import Retort, run_check
from test_settings import FILES, changes, post, value

A, B, C = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
GROUP = f'origins web {{ servers = {{ "{A}", "{B}" }} }}\n'
SERVERS = "origins.web.servers"
FIRST = f"{SERVERS}[{A}]"


def states(proxy):
    """{url: state} of the group."""
    return {server["url"]: server["state"] for server in json.loads(proxy.admin("GET", "/v1/origins").body)["origins"][0]["servers"]}


def refusal(proxy, *arguments):
    """What retortctl writes to stderr."""
    result = proxy.run_ctl(*arguments)
    equal(result.returncode, 1, f"{arguments}: {result.stderr}\nexit status")
    return result.stderr


def test_an_element_of_a_changed_list(lab):
    """The list is replaced first, and its elements are changed behind that, whatever is set, unset or saved in between."""
    for number, steps in enumerate((
            (("set", "log_level=debug"), ("set", f"{SERVERS}={A}", f"{SERVERS}={C}"), ("set", f"{FIRST}=drain"), ("unset", "log_level")),
            (("set", "--save", "log_level=debug"), ("set", "--save", f"{SERVERS}={A}", f"{SERVERS}={C}"),
             ("set", "--save", f"{FIRST}=drain"), ("unset", "--save", "log_level")),
            (("set", f"{SERVERS}={A}", f"{SERVERS}={C}"), ("set", "--save", f"{FIRST}=drain")),
            (("set", f"{FIRST}=drain"), ("set", f"{SERVERS}={A} drain", f"{SERVERS}={C}")),
            (("set", f"{FIRST}=drain", f"{SERVERS}={A}", f"{SERVERS}={C}"),))):
        proxy = Retort(lab, extra=f'saved_settings = "saved{number}.conf"\n' + GROUP, reverse={"/": "=web"}, name=f"order{number}")
        for step in steps:
            proxy.ctl(*step)
        equal(states(proxy), {A: "drain", C: "up"}, f"{steps}: servers")
        equal(proxy.reload().status, 200, "reload")
        equal(states(proxy), {A: "drain", C: "up"}, f"{steps}: servers after a reload")
        equal(changes(proxy)[FIRST][1], "drain", f"{steps}: diff")
        proxy.restart()
        kept = {A: "drain", C: "up"} if number == 1 else {A: "drain", B: "up"} if number == 2 else {A: "up", B: "up"}
        equal(states(proxy), kept, f"{steps}: servers after a restart")
        proxy.stop()


def test_a_change_without_effect_is_refused(lab):
    proxy = Retort(lab, extra=FILES + GROUP + "limit all { concurrent = 5 }\n", reverse={"/": "=web"})
    proxy.ctl("set", f"{FIRST}=drain")
    contains(refusal(proxy, "set", f"{SERVERS}={A}", f"{SERVERS}={C}"), f'was changed by itself to "{A} drain"', "the list is set")
    equal(states(proxy), {A: "drain", B: "up"}, "servers")
    contains(post(proxy, {SERVERS: [C], FIRST: "drain"}, expect=409)["error"], "no element that begins with", "a list without the element")
    proxy.ctl("set", f"{SERVERS}={C}", f"{SERVERS}={B}")
    equal(set(changes(proxy)), {SERVERS}, "changes, after the list has lost the element")
    proxy.ctl("unset", SERVERS)
    contains(post(proxy, {"limit.all.concurrent": 3, "limit.all#1.concurrent": 4}, expect=409)["error"], "are the same option", "two names")
    for name, number in (("limit.all.concurrent", 6), ("limit.all#1.concurrent", 7), ("limit.all.concurrent", 8)):
        proxy.ctl("set", f"{name}={number}")
        equal(value(proxy, "limit.all.concurrent")[0], number, "limit.all.concurrent")
    equal(list(changes(proxy)), ["limit.all.concurrent"], "one option, one change")
    proxy.ctl("unset", "limit.all#1.concurrent")
    equal((value(proxy, "limit.all.concurrent")[0], changes(proxy)), (5, {}), "unset by the other name")


def test_what_is_saved_can_start(lab):
    """What is saved needs nothing that is not: else retort would refuse its next start."""
    proxy = Retort(lab, extra=FILES + GROUP + GROUP.replace("web", "other"), reverse={"/": "=web"})
    proxy.ctl("set", "client.max_connections=20000", "log_level=debug")
    error = refusal(proxy, "set", "--save", "client.max_connections_per_client=15000")
    contains(error, "client.max_connections_per_client needs client.max_connections, which is not saved: save it too", "set --save")
    equal(set(changes(proxy)), {"client.max_connections", "log_level"}, "changes")
    proxy.ctl("set", "--save", "client.max_connections_per_client=15000", "client.max_connections=20000")
    proxy.ctl("set", "client.max_connections_per_client=10")
    contains(refusal(proxy, "unset", "--save", "client.max_connections"), "client.max_connections needs client.max_connections_per_client",
             "unset --save")
    proxy.ctl("set", f"{SERVERS}={C}")
    contains(refusal(proxy, "set", "--save", f"{SERVERS}[{C}]=drain"), f"needs {SERVERS}, which is not saved", "an element of a list")
    proxy.ctl("set", "origins.other.down_max=3h", "origins.web.down_max=3h")
    contains(refusal(proxy, "set", "--save", "origins.web.down_min=2h"), "needs origins.web.down_max, which is not saved", "of two sections")
    proxy.restart()
    equal({name: change[1] for name, change in changes(proxy).items()},
          {"client.max_connections_per_client": "15000", "client.max_connections": "20000"}, "after a restart")


class Opened:
    """Counts how often a file is opened (inotify)."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        true(self.fd >= 0 and libc.inotify_add_watch(self.fd, path.encode(), 0x30) >= 0, "inotify")  # IN_OPEN, IN_CLOSE_NOWRITE

    def count(self):
        count = 0
        try:
            while True:
                count += len(os.read(self.fd, 65536)) // 16  # an event without a name has 16 bytes; equal ones in a row would be one
        except BlockingIOError:
            return count // 2


def test_a_refused_save_loads_little(lab):
    """Of many unsaved changes the one that is needed is found by what the faults name, however many there are."""
    proxy = Retort(lab, extra=FILES, admin=("127.0.0.1", ports.take()))
    names = [f"client.{name}" for name in ("header_timeout", "handshake_timeout", "idle_timeout", "body_timeout", "send_timeout")]
    names += [f"origin.{name}" for name in ("connect_timeout", "first_byte_timeout", "read_timeout", "idle_timeout", "dns_timeout")]
    names += [f"cache.{name}" for name in ("refresh_pause", "collapse_timeout", "stale_if_error", "stale_while_revalidate", "failed_lifetime")]
    names += ["drain_timeout", "patience_keep", "origin.attempt_delay", "origin.queue_timeout", "origin.dns_stale", "interception.hello_timeout"]
    proxy.ctl("set", *(f"{name}=1s" for name in names[:11]), "client.max_connections=20000", *(f"{name}=1s" for name in names[11:]))
    opened = Opened(proxy.token_path)
    proxy.ctl("set", "log_level=debug")
    one = opened.count()
    true(one >= 1, "a change reads the file of tokens")
    error = refusal(proxy, "set", "--save", "client.max_connections_per_client=15000")
    contains(error, "client.max_connections_per_client needs client.max_connections, which is not saved: save it too", "set --save")
    loads = opened.count() / one
    true(2 <= loads <= 3, f"{loads} loads of the configuration")
    equal(len(changes(proxy)), len(names) + 2, "changes")


def test_a_reload_can_start(lab):
    """A reload refuses a configuration that only an unsaved change makes good."""
    proxy = Retort(lab, extra=FILES)
    proxy.ctl("set", "client.max_connections=20000")
    text = proxy.text()
    proxy.write_config(text + "client { max_connections_per_client = 15000 }\n")
    error = refusal(proxy, "reload")
    contains(error, "is more than max_connections", "reload")
    contains(error, "retort could not start again", "reload")
    proxy.write_config(text)
    lacks(proxy.ctl("reload"), "refused", "reload")


def test_an_edited_file_is_not_overwritten(lab):
    proxy = Retort(lab, extra=FILES)
    proxy.ctl("set", "--save", "cache.memory=40MB")
    with open(lab.path("saved.conf"), "a", encoding="utf-8") as file:
        file.write('"drain_timeout" = "7s"\n')
    contains(refusal(proxy, "set", "--save", "cache.memory=41MB"), "saved.conf was changed since retort has read it: reload first", "set --save")
    proxy.ctl("set", "cache.memory=42MB")  # saves nothing
    proxy.ctl("reload")
    proxy.ctl("set", "--save", "cache.memory=41MB")
    proxy.restart()
    equal((value(proxy, "drain_timeout")[0], value(proxy, "cache.memory")[0]), ("7s", "41MB"), "both changes")


def test_a_directory_that_can_not_be_read(lab):
    """What can't be synchronised is not written."""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    directory = lab.path("state")
    os.mkdir(directory)
    os.chmod(os.path.dirname(lab.path("x")), 0o755)
    os.chown(directory, 65534, 65534)
    os.chmod(directory, 0o300)
    # Others may not reach the build tree.
    program = shutil.copy(lab.built("proxy/retort"), lab.path("retort-of-nobody"))
    code = f"import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv({program!r}, sys.argv[1:])"
    proxy = Retort(lab, extra='saved_settings = "state/saved.conf"\n', memcheck=False)
    proxy.stop()
    for path in (proxy.config_path, proxy.log_path):
        os.chmod(path, 0o666)
    proxy.admin_path = os.path.join(directory, "s.sock")
    proxy.write_config(proxy.text())
    proxy.under = [sys.executable, "-c", code]
    proxy.start()
    contains(post(proxy, {"cache.memory": "40MB"}, save=True, expect=500)["error"], "can not be written", "set --save")
    equal(([name for name in os.listdir(directory) if "saved" in name], value(proxy, "cache.memory")[0]), ([], "32MB"), "files, and the value in use")


def test_checks_by_another_user(lab):
    """Root may check a configuration whose saved file belongs to the service; a check of the file alone judges no owners."""
    if os.geteuid() != 0:
        raise Skip("only root has files of others")
    path = lab.write("saved.conf", '"cache.memory" = "40MB"\n')
    config = lab.write("checked.conf", FILES + 'listen "127.0.0.1:1" { mode = forward }\n')
    os.chown(path, 65534, 65534)
    for mode, flag, status in ((0o600, "-t", 0), (0o600, "-T", 0), (0o620, "-t", 1), (0o620, "-T", 0)):
        os.chmod(path, mode)
        done = run_check(lab, config, flag)
        equal(done[0], status, f"{flag} with mode {mode:o}: {done[1]}\nstatus")
    os.chmod(path, 0o600)
    done = subprocess.run([lab.built("proxy/retort"), "-f", config], capture_output=True, text=True, timeout=20 * lab.patience, check=False)
    equal(done.returncode, 1, "a start as root, with a file that somebody else can write to")
    contains(done.stderr, "belongs to retort's user or root", "a start")
    lab.write("saved.conf", '"nothing" = "1"\n')
    equal(run_check(lab, config, "-T")[0], 1, "what stands in the file is checked")
