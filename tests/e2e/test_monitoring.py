"""examples/monitoring: the alert rules and the dashboard ask for metrics that exist, and a real Prometheus reads /metrics."""

import json
import os
import re
import shutil
import subprocess
import urllib.parse

from harness import ports, wire
from harness.checks import Skip, equal, true, until
from harness.lab import SOURCE
from harness.origin import Origin
from harness.process import Process
from harness.retort import Retort, Service

# Only with a disk, a listener with certificates, or a group of origins.
OPTIONAL = {"retort_origin_server_up", "retort_disk_errors_total", "retort_disk_corrupt_total", "retort_certificate_expiry_seconds", "retort_trust_expiry_seconds"}

HERE = os.path.join(SOURCE, "examples/monitoring")


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise Skip(f"{', '.join(missing)} not installed (tests/install.sh)")


def text_of(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def expressions():
    """(where, expression) of all rules and panels."""
    for line in re.findall(r"expr: (?:>\n((?:\s{10,}.*\n)+)|(.*))", text_of("alerts.yml")):
        yield "alerts.yml", "".join(line)
    for panel in json.loads(text_of("dashboard.json"))["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def test_rules(lab):
    needs("promtool")
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"], ["check", "config", "--syntax-only", "prometheus.yml"]):
        done = subprocess.run(["promtool", *command], cwd=HERE, capture_output=True, text=True, check=False)
        equal(done.returncode, 0, f"promtool {' '.join(command)}: {done.stdout}{done.stderr}; exit status")


def prometheus(lab, proxy):
    """A Prometheus that scrapes the proxy five times a second; its address."""
    address = ("127.0.0.1", ports.take())
    config = lab.write("prometheus.yml", "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"
                       "scrape_configs: [{job_name: retort, metrics_path: /v1/metrics, authorization: {credentials: '%s'}, "
                       "static_configs: [{targets: ['%s:%d']}]}]\n" % (proxy.token, *proxy.admin_path))
    process = Process(lab, "prometheus", ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={lab.path('tsdb')}",
                                          "--web.listen-address=%s:%d" % address, "--log.level=error"], memcheck=False)
    lab.opens(process)

    def answers():
        try:
            return wire.fetch(address, "GET", "/-/ready", timeout=2).status == 200
        except OSError:
            return False
    process.wait_ready(answers, 20)
    return address


def ask(address, expression):
    """{metric's labels as a frozenset: value}"""
    answer = wire.fetch(address, "GET", "/api/v1/query?query=" + urllib.parse.quote(expression, safe=""))
    equal(answer.status, 200, f"{expression}: {answer.text}; status")
    return [(item["metric"], float(item["value"][1])) for item in json.loads(answer.body)["data"]["result"]]


def test_a_real_prometheus(lab):
    """It takes every sample of a scrape, and understands every expression of the examples."""
    needs("prometheus")
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")}, admin=("127.0.0.1", ports.take()),
                   services=[Service("s", "icap://127.0.0.1:1/s")], adapt={})
    for _ in range(2):
        equal(proxy.get("/text?say=a&cc=max-age%3D60", host="www.example.com").status, 200, "status")
    there = prometheus(lab, proxy)
    until(lambda: ask(there, 'sum(retort_requests_total{result="HIT",status="2xx"})')[:1] == [({}, 1.0)], 20 * lab.patience, "the hit in Prometheus")
    equal([value for _, value in ask(there, "up")], [1], "the scrape")
    described = {name for name in re.findall(r"^# TYPE (\S+)", proxy.ctl("metrics"), re.M)}
    for where, expression in expressions():
        ask(there, expression.replace("$__rate_interval", "1m").replace("$instance", ".*"))
        for name in re.findall(r"retort_\w+", expression):
            true({name, re.sub("_bucket$", "", name)} & (described | OPTIONAL), f"{where} asks for {name}, which is not there")
