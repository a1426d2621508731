"""All errors of a configuration are told at once: by -t, at a start, and by a reload."""

import json
import subprocess

from harness.checks import contains, equal, lacks, true
from harness.retort import Retort, run_check
from harness.suite import memcheck

WRONG = """wrokers = 1
listen "127.0.0.1:3128" { mode = forward }
log_level = loud
url_class a { path_regex = '(' }
policy a { ttl = 1m }
icap_service s { uri = "http://h/s"  point = sometime }
adapt a { services = { s } }
client { idle_timeout = 10 }
"""

# Lines with an error of their own; the others follow from these.
LINES = {1: "wrokers", 3: "loud", 4: "path_regex", 6: "sometime", 8: "idle_timeout"}


def check_lines(said, path):
    found = [int(line.split(f"{path}:")[1].split(":")[0]) for line in said.splitlines() if f"{path}:" in line]
    equal(found, list(LINES), f"lines that are named in: {said}")
    for word in LINES.values():
        contains(said, word, "messages")


@memcheck
def test_all_errors_are_told(lab):
    path = lab.write("wrong.conf", WRONG)
    for option in ("-t", "-T"):
        status, said = run_check(lab, path, option)
        true(status > 0, f"exit status {status}")
        check_lines(said, path)
    done = subprocess.run([lab.built("proxy/retort"), "-f", path], capture_output=True, text=True, timeout=10 * lab.patience, check=False)
    equal(done.returncode, 1, "exit status of a start")
    check_lines(done.stderr, path)


def test_a_reload_tells_all_errors(lab):
    proxy = Retort(lab)
    good = proxy.text()
    proxy.write_config(good + "log_levle = info\nadapt all { services = { s } }\n")
    answer = proxy.reload()
    equal(answer.status, 409, "status")
    said = json.loads(answer.text())["error"]
    equal([word in said for word in ("log_levle", 'no icap_service "s"')], [True, True], said)
    for word in ("log_levle", 'no icap_service "s"'):
        contains(proxy.process.log(), word, "the log")
    told = subprocess.run([lab.built("proxy/retortctl"), "-s", proxy.admin_listen(), "reload"], capture_output=True, text=True,
                          timeout=20 * lab.patience, check=False)
    true(told.returncode > 0, "exit status of retortctl")
    equal(len(told.stderr.splitlines()), 2, f"lines of retortctl: {told.stderr}")
    lacks(told.stderr, "\\n", "lines of retortctl")


def test_many_errors_are_counted(lab):
    path = lab.write("many.conf", "wrokers = 1\n" * 100 + "listen \":1\" { mode = forward }\n")
    status, said = run_check(lab, path, "-T")
    true(status > 0 and len(said.splitlines()) < 40 and "and 80 more errors" in said, said)
