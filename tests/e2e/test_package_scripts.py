"""Scripts that root runs: what a purge of the packages leaves, in whatever order they go; and directories of others, where root
follows no links."""

import os
import re
import subprocess
import threading

from harness.checks import Skip, contains, equal, true
from harness.lab import SOURCE

PROXYS = {"/var/cache/retort/volume", "/var/lib/retort/saved.conf", "/run/retort/retort.sock", "/run/retort/retort.sock.take-over",
          "/var/log/retort/access.log", "/var/log/retort/access.log.1.gz", "/var/log/retort/sub/icap.log"}
SERVICES = {"/var/lib/retort-lists/own.txt", "/var/lib/retort-lists/own.txt.installed", "/run/retort/helperd.sock",
            "/var/log/retort/helperd.log", "/var/log/retort/helperd.log.2.gz"}
PLACES = ("/var/cache", "/var/lib", "/var/log", "/run", "/usr/lib/sysusers.d")
# In a mount namespace of its own, where nothing is the machine's. "-NAME" removes a package, and leaves what a purge takes.
SCRIPT = f"""
mount --make-rprivate /
for place in {" ".join(PLACES)}; do mount -t tmpfs none $place || exit 9; done
for file in {" ".join(sorted(PROXYS | SERVICES))}; do mkdir -p "${{file%/*}}" && : >"$file"; done
: >/usr/lib/sysusers.d/retort.conf; : >/usr/lib/sysusers.d/retort-icap-services.conf
for name; do
    rm -f "/usr/lib/sysusers.d/${{name#-}}.conf"
    case $name in -*) ;; *) sh "{SOURCE}/debian/$name.postrm" purge || exit 8 ;; esac
done
find {" ".join(PLACES[:4])} ! -type d -print -o -name 'retort*' -empty -printf '%p/\\n'
"""


def left_after(*names):
    if not os.path.exists(f"{SOURCE}/debian"):
        raise Skip("the tree has no debian directory")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", SCRIPT, "sh", *names], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or done.returncode == 9:
        raise Skip("no mount namespace may be made here")
    equal((done.returncode, done.stderr), (0, ""), f"purge of {names}")
    return set(done.stdout.split())


def test_each_order_of_purges(lab):
    proxy, services = "retort", "retort-icap-services"
    for names, left in (((proxy,), SERVICES), ((services,), PROXYS), ((proxy, services), set()), ((services, proxy), set()),
                        (("-" + services, proxy), SERVICES), (("-" + proxy, services), PROXYS),
                        (("-" + services, proxy, services), set()), (("-" + services, "-" + proxy, services, proxy), set())):
        equal(left_after(*names), left, f"what is left after {names}")


def test_no_number_is_freed(lab):
    """Files in places that the scripts don't know would be the next user's."""
    scripts = [name for name in ("retort", "retort-icap-services") if os.path.exists(f"{SOURCE}/debian/{name}.postrm")]
    if not scripts:
        raise Skip("the tree has no debian directory")
    for name in scripts:
        with open(os.path.join(SOURCE, f"debian/{name}.postrm"), encoding="utf-8") as script:
            true("userdel" not in script.read(), f"{name}: the user stays")


def test_root_writes_where_nobody_else_may(lab):
    """The directory that the timer fills as root lies below none that systemd gives to the user retort."""
    with open(os.path.join(SOURCE, "conf/local.mk"), encoding="utf-8") as file:
        lists = re.search(r"^listsdir = \$\(localstatedir\)/(\S+)$", file.read(), re.M).group(1)
    if os.path.exists(f"{SOURCE}/debian"):
        with open(os.path.join(SOURCE, "debian/retort-icap-services.dirs"), encoding="utf-8") as file:
            equal([each for each in file.read().split() if each.startswith("var/")], ["var/" + lists], "directories of the package")
    for name in ("retort", "retort-helperd"):
        with open(os.path.join(SOURCE, f"conf/{name}.service.in"), encoding="utf-8") as file:
            for kind, directory in re.findall(r"^(State|Cache|Logs)Directory=(\S+)$", file.read(), re.M):
                place = {"State": "lib", "Cache": "cache", "Logs": "log"}[kind] + "/" + directory
                true(lists != place and not lists.startswith(place + "/"), f"{name}: {place} and {lists}")


NOBODY = 65534


class Directory:
    """Instead of /run/c-icap: another user's, who has put links to a file of root there."""

    def __init__(self, lab):
        if os.geteuid() != 0:
            raise Skip("only root can be led to write elsewhere")
        self.path, self.control = lab.path("c-icap"), lab.path("c-icap/c-icap.ctl")
        os.chmod(lab.directory, 0o755)
        os.mkdir(self.path)
        os.chown(self.path, NOBODY, NOBODY)
        self.secret = lab.write("secret", "kept")
        os.chmod(self.secret, 0o600)
        lab.write("c-icap/c-icap.pid", f"{os.getpid()}\n")
        os.symlink(self.secret, self.control)

    def keeps(self, what):
        with open(self.secret, encoding="ascii") as file:
            equal(file.read(), "kept", what)

    def make_pipe(self):
        os.unlink(self.control)
        os.mkfifo(self.control, 0o600)
        os.chown(self.control, NOBODY, NOBODY)

    def read(self):
        """What the next one writes."""
        got = []
        def run():
            with open(self.control, encoding="ascii") as pipe:
                got.append(pipe.read())
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return lambda: thread.join(20) or got


def test_an_order_to_reload_follows_no_link(lab):
    directory = Directory(lab)
    script = lab.write("reload-c-icap.sh", open(os.path.join(SOURCE, "conf/reload-c-icap.sh"), encoding="utf-8").read())
    def reload():
        return subprocess.run(["sh", script, directory.path], capture_output=True, text=True, check=False, timeout=60 * lab.patience,
                              env={**os.environ, "RELOAD_SECONDS": "0"})
    done = reload()
    equal(done.returncode, 1, "exit status")
    contains(done.stderr, "c-icap.ctl is no pipe", "what is said")
    directory.keeps("after a reload")
    directory.make_pipe()
    read = directory.read()
    contains(reload().stderr, "has ignored the order", "what is said of a process that is no c-icap")
    equal(read(), ["reconfigure"], "the order")


def test_an_order_to_open_logs_follows_no_link(lab):
    """And does not wait for ever where nobody reads."""
    directory = Directory(lab)
    with open(os.path.join(SOURCE, "conf/retort-icap-services.logrotate"), encoding="utf-8") as file:
        line = re.findall(r"postrotate\n(.*?)\n\s*endscript", file.read(), re.S)[1]
    line = line.replace("/run/c-icap", directory.path).replace("id=c-icap", f"id={NOBODY}")
    lab.write("systemctl", "#!/bin/sh\n")
    os.chmod(lab.path("systemctl"), 0o755)
    def rotate():
        return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=30 * lab.patience,
                              env={**os.environ, "PATH": f"{lab.directory}:{os.environ['PATH']}"}).returncode
    true(rotate() != 0, "a link is refused")
    directory.keeps("after a rotation")
    directory.make_pipe()
    read = directory.read()
    equal((rotate(), read()), (0, ["relog"]), "the order")
    true(rotate() != 0, "nobody reads")
