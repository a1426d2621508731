"""What retortctl writes: for programs (--json), for people at a terminal (colours, headings, progress), for many URLs."""

import base64
import json
import os
import pty
import ssl
import subprocess

from harness.checks import contains, equal, lacks, true
from harness.origin import Origin
from harness.retort import Retort


def at_terminal(lab, proxy, *words, **environment):
    """What a terminal gets on standard output and standard error."""
    master, slave = pty.openpty()
    environment = {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, **lab.environment(),
                   "TERM": "xterm", **environment}
    with subprocess.Popen([lab.built("proxy/retortctl"), "-s", proxy.admin_listen(), *words], stdin=subprocess.DEVNULL,
                          stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        text = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the last one has closed the terminal
                piece = b""
            if not piece:
                break
            text += piece
        os.close(master)
        equal(process.wait(), 0, f"{words}: {text}")
    return text.decode()


def test_colours_are_for_terminals(lab):
    proxy = Retort(lab)
    contains(at_terminal(lab, proxy, "status"), "\033[1mcounter", "status at a terminal")
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        lacks(at_terminal(lab, proxy, "status", **environment), "\033", f"with {environment}")
    contains(at_terminal(lab, proxy, "status", NO_COLOR=""), "\033[1m", "an empty NO_COLOR says nothing")
    lacks(proxy.ctl("status"), "\033", "a pipe")


def test_many_urls_are_fetched_and_deleted_at_once(lab):
    origin, proxy = Origin(lab), Retort(lab)
    via = "%s:%d" % proxy.forward
    urls = [origin.url(f"/j{n}", cc="max-age=60") for n in range(24)]
    names = lab.write("urls", "\n".join(urls) + "\n")
    shown = at_terminal(lab, proxy, "cache", "fetch", "--via", via, "--rate", "0", "--jobs", "8", "@" + names)
    contains(shown, "\r[", "progress at a terminal")
    contains(shown, " of 24", "progress at a terminal")
    equal(len([line for line in shown.splitlines() if "200 http" in line]), 24, "lines")
    told = proxy.ctl("cache", "revalidate", "--via", via, "--rate", "0", "--jobs", "4", "--json", *urls)
    equal(sorted((line["url"], line["status"]) for line in map(json.loads, told.splitlines())),
          sorted((url, 200) for url in urls), "as JSON")
    told = proxy.ctl("cache", "delete", "--jobs", "4", "@" + names)
    equal(len(told.splitlines()), 24, told)
    lacks(told, "\r", "no progress in a pipe")
    equal(json.loads(proxy.ctl("cache", "list", "--json"))["objects"], [], "what is left")
    proxy.ctl("cache", "delete", "@" + names + ".none", expect=1)
    for wrong in ("0", "257", "x"):
        proxy.ctl("cache", "delete", "--jobs", wrong, "@" + names, expect=2)


def test_the_socket_may_be_relative(lab):
    proxy = Retort(lab)
    directory, name = os.path.split(proxy.admin_path)
    for where in ("./" + name, "../" + os.path.basename(directory) + "/" + name):
        done = subprocess.run([lab.built("proxy/retortctl"), "-s", where, "status"], cwd=directory, capture_output=True,
                              text=True, timeout=20 * lab.patience, check=False)
        equal((done.returncode, done.stderr), (0, ""), where)
        done = subprocess.run([lab.built("proxy/retortctl"), "-s", where, "page"], cwd=directory, capture_output=True,
                              text=True, timeout=20 * lab.patience, check=False)
        contains(done.stdout, f":{os.path.realpath(proxy.admin_path)} ", "the command for another machine")


def test_programs_get_json(lab):
    proxy = Retort(lab)
    metrics = json.loads(proxy.ctl("metrics", "--json"))
    true(all(set(metric) == {"name", "labels", "value"} for metric in metrics) and len(metrics) > 50, f"{metrics}"[:300])
    equal(len(metrics), len([line for line in proxy.ctl("metrics").splitlines() if line and line[0] != "#"]), "metrics")
    files = ("--certificate", lab.path("ca.pem"), "--key", lab.path("ca.key"))
    made = json.loads(proxy.ctl("ca", "create", "--json", "--name", "x", *files))
    equal((made["usable"], "x" in made["subject"]), (True, True), f"{made}")
    equal(json.loads(proxy.ctl("ca", "show", "--json", *files)), made, "the same, shown")
    os.unlink(lab.path("ca.key"))
    equal(json.loads(proxy.ctl("ca", "show", "--json", *files, expect=1))["usable"], False, "without the key")
    true(len(json.loads(proxy.ctl("ca", "export", "--hints", "--json"))) > 3, "hints")
    pem = proxy.ctl("ca", "export", *files[:2])
    equal(json.loads(proxy.ctl("ca", "export", "--json", *files[:2]))["pem"], pem, "ca export")
    der = base64.b64decode(json.loads(proxy.ctl("ca", "export", "--json", "--der", *files[:2]))["der"], validate=True)
    equal(ssl.DER_cert_to_PEM_cert(der).split(), pem.split(), "ca export --der")
