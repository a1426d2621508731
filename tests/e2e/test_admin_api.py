"""The pages of the admin plane under /v1 against their description, and what they say when they refuse."""

import json
import os
import re
import subprocess
import sys

from harness import ports
from harness.checks import Skip, contains, equal, lacks, true
from harness.helperd import Helperd
from harness.lab import DATA
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import memcheck

PACKAGES = os.path.join(DATA, "schemathesis")


def schemathesis(lab, proxy):
    """Asks every page what the description allows and what it does not: (exit status, report).

    Except /v1/drain, and /v1/events, which does not end. What the description allows may still be refused: not every text is a URL or an expression.
    """
    if not os.path.isdir(PACKAGES):
        raise Skip("run tests/data/fetch.sh")
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", "http://%s:%d/v1/openapi.json" % proxy.admin_path,
         "--header", f"Authorization: Bearer {proxy.token}", "--exclude-path", "/v1/drain", "--exclude-path", "/v1/events", "--phases", "coverage", "--seed", "1",
         "--checks", "all", "--exclude-checks", "positive_data_acceptance", "--generation-database", "none", "--no-shrink",
         "--warnings", "off", "--no-color"],
        capture_output=True, text=True, check=False, timeout=60 * lab.patience, cwd=lab.directory,
        env={**os.environ, "PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1", "NO_PROXY": "*"})
    return done.returncode, done.stdout + done.stderr


def test_description_holds(lab):
    proxy = Retort(lab, admin=("127.0.0.1", ports.take()), memcheck=False)
    helperd = Helperd(lab, f'socket = "{{socket}}"\npool text {{ command = {{"{lab.built("icap-services/text-helper")}"}} }}\n')
    proxy.write_config(proxy.text().replace("token_file =", f'helpers = "{helperd.socket}"  token_file ='))
    equal(proxy.reload().status, 200, "reload")
    status, report = schemathesis(lab, proxy)
    equal(status, 0, f"{report}\nexit status")
    pages = sum(len(methods) for methods in json.loads(proxy.admin("GET", "/v1/openapi.json").body)["paths"].values())
    equal(int(re.search(r"Tested: (\d+)", report).group(1)), pages - len(("/v1/drain", "/v1/events", "/v1/openapi.json")), "tested pages")
    true(int(re.search(r"(\d+) generated", report).group(1)) > 200, "requests")
    equal(proxy.status()["state"], "running", "state")


def test_aliases(lab):
    """The older paths are the same pages; they ignore what they do not know."""
    origin, proxy = Origin(lab), Retort(lab)
    proxy.get(origin.url("/text", say="x", cc="max-age=60"))
    for page in ("/settings", "/access", "/limits", "/cache/objects", "/origins", "/openapi.json", "/help"):
        equal(proxy.admin("GET", "/v1" + page).text(), proxy.admin("GET", page).text(), page)
    equal(proxy.admin("GET", "/cache/objects?frob=1&limit=").status, 200, "an unknown argument of an alias")
    for page in ("/v1", "/v1/", "/v1status", "/v1/v1/status", "/v2/status", "//status", "/v1//status", "/v1/status/"):
        equal(proxy.admin("GET", page).status, 404, page)
    answer = proxy.admin("PATCH", "/v1/cache/object")
    equal((answer.status, answer.header("Allow")), (405, "GET, PUT, DELETE"), "a method that the page is not for")


@memcheck
def test_mistakes_are_named(lab):
    """The parameter stands beside the error, not in it."""
    proxy = Retort(lab)
    for page, parameter, expected in (
            ("GET /v1/cache/object", "url", "the URL is missing"), ("GET /v1/cache/object?url=", "url", "the URL is missing"),
            ("GET /v1/cache/objects?limit=1001", "limit", "the number of objects must be a number from 0 to 1000"),
            ("GET /v1/cache/objects?limit=-1", "limit", "must be a number"), ("GET /v1/cache/objects?limit=", "limit", "must be a number"),
            ("GET /v1/cache/objects?limit=1&limit=2", "limit", "twice"), ("GET /v1/cache/objects?LIMIT=1", "LIMIT", "no parameter of that name"),
            ("POST /v1/cache/purge?all=maybe", "all", "must be yes or no"), ("POST /v1/cache/purge?all=1", "all", "must be yes or no"),
            ("POST /v1/reload?now", "now", "no parameter of that name"), ("GET /v1/status?%ff=1", "?", "no parameter of that name"),
            ("POST /v1/services/bump", "name", "the name of the service is missing")):
        method, target = page.split(" ")
        answer = proxy.admin(method, target, b"" if method == "POST" else None)
        body = json.loads(answer.body)
        equal((answer.status, body["parameter"]), (400, parameter), page)
        contains(body["error"], expected, page)
    for page in ("POST /v1/cache/purge", "POST /v1/dns/clear", "GET /v1/cache/object?url=x", "GET /v1/access/test?url=x"):
        method, target = page.split(" ")
        answer = proxy.admin(method, target, b"" if method == "POST" else None)
        equal(answer.status, 400, page)
        lacks(json.loads(answer.body)["error"], "=", f"{page}: what retortctl shows")


def test_help_lists_every_page(lab):
    proxy = Retort(lab)
    text = proxy.admin("GET", "/v1/help").text()
    for path, methods in json.loads(proxy.admin("GET", "/v1/openapi.json").body)["paths"].items():
        for method, operation in methods.items():
            line = next(line for line in text.splitlines() if line.split()[:2] == [method.upper(), path])
            equal(line.split()[2], operation["x-role"], f"role of {method} {path}")
            for parameter in operation["parameters"]:
                true(re.search(rf"^ +{parameter['name']} +\S", text, re.M), f"{parameter['name']} of {path}")
