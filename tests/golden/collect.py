"""The texts of the golden files: GROUPS names folders, and functions that yield (name of the file, its text, names for masks.py)."""

import concurrent.futures
import gzip
import json
import os
import re
import subprocess
import time

from harness import ports
from harness.checks import until
from harness.events import Events
from harness.lab import SOURCE
from harness.metrics import scrape, value
from harness.retort import Retort
from place import TOKENS, FORMATS, Site

HERE = os.path.dirname(os.path.abspath(__file__))


def block(command, done):
    """One call as somebody sees it at a terminal."""
    text = f"$ {command}\n{done.stdout}"
    text += "" if text.endswith("\n") else "\\\n"
    text += "".join(f"! {line}\n" for line in done.stderr.splitlines())
    return text + (f"= {done.returncode}\n" if done.returncode else "")


# What programs say of themselves.

def run(lab, program, *arguments, given=None):
    return subprocess.run([lab.built(program), *arguments], capture_output=True, text=True, timeout=60 * lab.patience, check=False, input=given,
                          cwd=lab.directory, env={**os.environ, **lab.environment()})


def in_tree(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def same(what, made, name, part=None):
    """A text that is kept in the tree, where people read it."""
    kept = in_tree(name)
    if part:
        kept = kept.split(f'.\\" {part}: begin\n')[1].split(f'.\\" {part}: end\n')[0]
    return f"$ {what}\n" + (f"(the text of {name})\n" if made == kept else made)


def programs(lab):
    manuals = [("retort --print-options markdown", "proxy/retort", ("--print-options", "markdown"), "docs/CONFIGURATION.md", None),
               ("retortctl --print-manual", "proxy/retortctl", ("--print-manual",), "docs/retortctl.1", "commands"),
               ("retort-helperd --print-manual", "icap-services/retort-helperd", ("--print-manual",), "docs/retort-helperd.8", "options"),
               ("retortctl completion bash", "proxy/retortctl", ("completion", "bash"), "conf/completion/retortctl", None),
               ("retortctl completion zsh", "proxy/retortctl", ("completion", "zsh"), "conf/completion/_retortctl", None),
               ("retortctl completion fish", "proxy/retortctl", ("completion", "fish"), "conf/completion/retortctl.fish", None)]
    yield "programs/manuals", "".join(same(what, run(lab, program, *words).stdout, name, part) for what, program, words, name, part in manuals), []
    text = ""
    for program in ("proxy/retort", "proxy/retortctl", "icap-services/retort-helperd"):
        for option in ("--version", "--help", "--frob"):
            text += block(f"{os.path.basename(program)} {option}", run(lab, program, option))
    text += block("retort -t FILE more", run(lab, "proxy/retort", "-t", "-f", "none.conf", "more"))
    text += block("retort --print-options", run(lab, "proxy/retort", "--print-options"))
    text += block("retort --print-options html", run(lab, "proxy/retort", "--print-options", "html"))
    yield "programs/options", text, []
    commands = words_of_commands(lab)
    yield "programs/commands", block("retortctl --help", run(lab, "proxy/retortctl", "--help")) + "".join(
        block(f"retortctl {' '.join(words)} --help", run(lab, "proxy/retortctl", *words, "--help")) for words in commands), []
    yield "programs/wrong-words", "".join(
        block("retortctl " + " ".join(words), run(lab, "proxy/retortctl", "-s", "nobody.sock", "-H", "nobody.sock", *words, given=""))
        for words in wrong_words(commands)), []


def named(text):
    """What a help lists below "Commands:"."""
    part = re.search(r"^Commands:\n((?:  .*\n)+)", text, flags=re.M)
    return re.findall(r"^  ([a-z-]+) ", part[1], flags=re.M) if part else []


def words_of_commands(lab):
    found = []
    for first in named(run(lab, "proxy/retortctl", "--help").stdout):
        found.append((first,))
        found += [(first, second) for second in named(run(lab, "proxy/retortctl", first, "--help").stdout)]
    return found


# Commands that need nobody, and for which nobody at the socket is no fault.
ALONE = {"ca", "adlist", "completion", "logs", "page"}


def wrong_words(commands):
    yield from ((), ("frob",), ("stat",), ("--frob", "status"), ("-s",), ("cache", "frob"), ("ca", "create", "x"), ("completion", "csh"),
                ("cache", "purge", "--al"), ("cache", "bans", "--limit", "3"), ("cache", "purge", "--host"), ("cache", "purge", "--all=yes"),
                ("unset",), ("unset", "a", "--all"), ("set", "x"), ("set", "=x"), ("dns", "clear"), ("dns", "clear", "a", "--all"),
                ("intercept", "clear", "x"), ("intercept", "clear", "all", "host=x"), ("tail", "frob=1"), ("tail", "--count", "x"), ("top", "--by", "x"),
                ("top", "--sort", "x"), ("top", "--rows", "0"), ("top", "--interval", "0"), ("logs", "top", "none.log"), ("logs", "top", "x", "--by", "y"),
                ("cache", "delete", "u", "v", "--jobs", "0"), ("cache", "fetch", "u"), ("cache", "fetch", "u", "--via", "x"),
                ("cache", "fetch", "u", "--via", "127.0.0.1:1", "--rate", "x"), ("cache", "inject", "u", "none"),
                ("cache", "inject", "u", "-", "--status", "x"), ("cache", "inject", "u", "-", "--header", "x"), ("cache", "delete", "@none"),
                ("icap", "record", "none/r", "--body", "x"), ("icap", "record", "r", "--filter", "x"), ("icap", "show", "none"), ("icap", "show", "none", "x"),
                ("icap", "replay", "none"), ("icap", "replay", "none", "--service", "x"), ("icap", "replay", "none", "--service", "icap://127.0.0.1:1/x"),
                ("helpers", "renice", "a", "x"), ("helpers", "resize", "a", "x"), ("helpers", "top", "x"), ("ca", "show", "--certificate", "none"),
                ("ca", "export", "--certificate", "none"), ("ca", "create", "--years", "x"), ("ca", "create", "--years", "99"), ("ca", "create", "--owner", "nobody-here"),
                ("adlist", "test", "none"), ("adlist", "check", "none"), ("adlist", "test", "none", "--type", "x"), ("-t", "none", "status"))
    for words in commands:
        yield (*words, "--frob")
        if words[0] not in ALONE:
            yield words
        if words[0] not in ("completion", "adlist"):
            yield (*words, *"abcdefg")


# Messages about configurations.

AUXILIARY = {"users": "anna:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n", "wrong.users": "anna\n", "hosts.list": "a.test\n\nnot a host\n",
             "open.tokens": "anna admin " + "a" * 32 + "\n", "wrong.tokens": "anna admin short\n", "wrong-role.tokens": "anna emperor " + "a" * 32 + "\n",
             "loop.conf": 'include = "loop.conf"\n', "wrong.d/10.conf": "\nwrokers = 1\n", "wrong.d/20.conf": "workers = many\n",
             "bad-code.html": "<p>\n%{nothing}\n", "bad-bytes.html": b"\xff\n"}
BYTES = (b'name = "a\x01b"', b'name = "a\xff"', b'name = "\xed\xa0\x80"', b'workers = 1\n\0')


def check(lab):
    for name, text in AUXILIARY.items():
        os.chmod(lab.write(name, text), 0o600 if name.endswith(("tokens", "users")) else 0o644)
    os.chmod(lab.path("open.tokens"), 0o644)
    for file in sorted(os.listdir(os.path.join(HERE, "wrong"))):
        snippets = in_tree(f"tests/golden/wrong/{file}").rstrip("\n").split("\n----\n")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            yield f"check/{file.removesuffix('.conf')}", "".join(pool.map(lambda one: checked(lab, *one), enumerate(snippets))), []  # pylint: disable=cell-var-from-loop
    yield "check/files", "".join(files_checked(lab)), []


def said_of(lab, path, flag):
    done = run(lab, "proxy/retort", flag, "-f", path)
    text = re.sub(r"^20\d\d-\S+Z retort (\w+) ", r"\1: ", done.stdout + done.stderr, flags=re.M).replace(path, "FILE")
    return "".join(f"    {line}\n" for line in text.splitlines() if "root has done this check" not in line) + f"    = {done.returncode}\n"


def checked(lab, number, snippet):
    """What -T says, and -t too where -T finds nothing wrong, at ports that are free."""
    text = 'listen "127.0.0.1:1" { mode = forward }\n' + snippet.replace("{dir}", lab.directory) + "\n"
    said = said_of(lab, lab.write(f"check/{number}.conf", text), "-T")
    if said.endswith("= 0\n"):
        free = {f'"127.0.0.1:{port}"': f'"127.0.0.1:{ports.take()}"' for port in (1, 2, 3) if f'"127.0.0.1:{port}"' in text}
        for port, other in free.items():
            text = text.replace(port, other)
        more = said_of(lab, lab.write(f"check/{number}.conf", text), "-t")
        for port, other in free.items():
            more = more.replace(other[1:-1], port[1:-1])
        said += f"  -t:\n{more}" if more != said and "needs root or CAP" not in more and "needs the capability" not in more else ""
    return f"{snippet}\n{said}\n"


def files_checked(lab):
    for flag in ("-t", "-T"):
        for name, text in (("empty", ""), ("only workers", "workers = 1\n"), ("good", 'listen "127.0.0.1:1" { mode = forward }\n'),
                           ("many", "wrokers = 1\n" * 100 + 'listen ":1" { mode = forward }\n'), *((repr(bad), bad) for bad in BYTES)):
            path = lab.write("file.conf", text)
            if flag == "-T" or name != "good":
                yield f"{flag}: {name}\n{said_of(lab, path, flag)}"
        for path in ("/no/such.conf", lab.directory, "/dev/null"):
            yield f"{flag}: {path}\n{said_of(lab, path, flag)}"
    for name in ("conf/retort.conf", "examples/security-headers.conf"):
        yield f"-T: {name}\n{said_of(lab, os.path.join(SOURCE, name), '-T')}"


# The proxy.

def proxy(lab):
    site = Site(lab)
    site.requests()
    pages = Pages(site)
    for name, text in (*reading_commands(site), *pages.shown(), *metrics(site), *streams(site), *pages.refused(), *changing_commands(site),
                       *pages.changed(), *logs(site), *ending(site)):
        yield name, text, site.names


def commands(site, name, *calls, **options):
    """A file of expected/ctl: the calls, each as text and as JSON."""
    text = ""
    for call in calls:
        for extra in ((), ("--json",)):
            text += block("retortctl " + " ".join((*extra, *call)), site.ctl(*call, extra=extra, **options))
    return f"ctl/{name}", text


def reading_commands(site):
    url = site.page
    yield commands(site, "status", ("status",))
    yield "ctl/metrics", block("retortctl metrics --json (names and labels)", of_names(site, site.ctl("--json", "metrics")))
    for words in (("origins",), ("services",), ("settings",), ("diff",), ("page",), ("access",), ("intercept",), ("limits",), ("limits", "show"), ("dns",),
                  ("helpers",), ("config", "schema"), ("cache", "bans")):
        yield commands(site, "-".join(words), words)
    yield commands(site, "get", ("get", "cache"), ("get", "cache.memory"), ("get", "listen"), ("get", "none"), ("get", "url_class.pages"))
    yield commands(site, "get-all", ("get",))
    yield commands(site, "config-show", ("config", "show"))
    yield commands(site, "config-show-effective", ("config", "show", "--effective"))
    yield commands(site, "limits-filters", ("limits", "--section", "none"), ("limits", "show", "--client", "127.0.0.1"))
    yield commands(site, "dns-show", ("dns", "show", "site.test"), ("dns", "show", "absent.test"))
    yield commands(site, "access-test", ("access", "test", url), ("access", "test", "http://denied.test/", "--destination", "192.0.2.1"),
                   ("access", "test", site.nginx.url("/members/x"), "--client", "192.0.2.9"),
                   ("access", "test", site.nginx.url("/members/x"), "--user", "anna", "--authenticator", "staff", "--group", "a", "--group", "b"),
                   ("access", "test", "shop.test:443", "--method", "CONNECT", "--sni", "shop.test", "--destination", "192.0.2.1"),
                   ("access", "test", url, "--header", "X-A: b", "--listener", "secure", "--certificate", "CN=x"),
                   ("access", "test", "none"), ("access", "test", url, "--client", "x"))
    yield commands(site, "cache-show", ("cache", "show", url), ("cache", "show", site.picture), ("cache", "show", site.nginx.url("/never")), ("cache", "show", "none"))
    yield "ctl/cache-get", "".join(block(f"retortctl cache get {' '.join(words)}", site.ctl("cache", "get", *words)) for words in (
        (url,), (site.picture, "--variant", "9"), (url, "--variant", "x"), ("http://never.test/",), ("none",)))
    yield commands(site, "cache-list", ("cache", "list"), ("cache", "list", "--prefix", site.nginx.url("/p")), ("cache", "list", "--limit", "1"),
                   ("cache", "list", "--host", "none.test"), ("cache", "list", "--regex", "("), ("cache", "list", "--limit", "x"), ("cache", "list", "--after", "x"))
    yield commands(site, "adlist", ("adlist", "check", site.lab.write("ads.list", "||ads.test^\n@@||ads.test/ok\n##.banner\n")),
                   ("adlist", "test", site.lab.path("ads.list"), "--type", "script"), given="http://ads.test/x\nhttp://ads.test/ok\nhttp://other.test/\n")
    where = ("--certificate", site.lab.path("ca.pem"), "--key", site.lab.path("ca.key"))
    name, text = commands(site, "ca", ("ca", "create", "--name", "golden", *where), ("ca", "show", *where), ("ca", "export", site.lab.path("exported.pem"), *where[:2]),
                          ("ca", "export", "--hints"))
    yield name, re.sub(r"(SHA-256|fingerprint).*", r"\1 F", text)


def of_names(site, done):
    rows = {f'{one["name"]} {json.dumps({**one["labels"], **({"le": 0} if "le" in one["labels"] else {})}, sort_keys=True)}'
            for one in json.loads(done.stdout)}
    done.stdout = "".join(f"{row}\n" for row in sorted(map(site.named, rows)))
    return done


def metrics(site):
    """Names, labels, HELP and TYPE, without values."""
    known = set()
    for name, accept in (("metrics", "*/*"), ("openmetrics", "application/openmetrics-text")):
        answer = site.proxy.admin("GET", "/metrics", headers={"Accept": accept})
        rows = {re.sub(r"^(\w+(?:\{.*?\})?) .*", r"\1", line) if line[:1] != "#" else line for line in site.named(answer.text()).splitlines()}
        of = sorted(rows - known, key=lambda row: (re.sub(r"^# (HELP|TYPE|UNIT) ", "", row).split("{")[0].split(" ")[0], row))
        known |= rows
        yield f"api/{name}", f"{answer.status} {answer.header('Content-Type')}\n" + "\n".join(of) + "\n"
    yield "ctl/metrics-text", "".join(sorted({re.sub(r"[{ ].*", "", line) + "\n" for line in site.ctl("metrics").stdout.splitlines() if line[:1] != "#"}))


# Pages of the API.

SHOWN_HEADERS = ("Content-Type", "Allow", "Retry-After", "Content-Disposition", "WWW-Authenticate", "Location")
USUAL = {"cache-control", "x-content-type-options", "content-security-policy", "cross-origin-resource-policy", "date", "content-length", "connection",
         "transfer-encoding"}


class Pages:
    def __init__(self, site):
        self.site = site
        answer = site.proxy.admin("GET", "/v1/openapi.json")
        self.described = json.loads(answer.body)
        self.routes = [(path.removeprefix("/v1"), method.upper(), operation) for path, methods in sorted(self.described["paths"].items())
                       for method, operation in sorted(methods.items())]
        web = site.nginx
        self.arguments = {
            ("GET", "/access/test"): f"url={web.url('/members/x')}", ("GET", "/cache/object"): f"url={site.picture}", ("GET", "/cache/content"): f"url={site.nginx.url('/never')}",
            ("GET", "/cache/objects"): f"prefix={web.url('/p')}", ("GET", "/settings/options"): "name=cache", ("GET", "/dns"): "name=site.test",
            ("GET", "/history"): "after=0", ("GET", "/inspect/transaction"): "id=" + "0" * 16, ("GET", "/inspect/body"): "id=" + "0" * 16 + "&exchange=0&part=virgin",
        }

    def ask(self, method, path, token="admin", body=None, headers=None, dense=False):
        answer = self.site.proxy.admin(method, path, body=body and body.encode(), token=TOKENS.get(token, token), headers=headers)
        fields = [f"{name}: {value}" for name, value in answer.fields if name.lower() not in USUAL]
        text = answer.body.decode("utf-8", "replace").replace("\r\n", "\n")
        more = "".join(f" [{name}: {value}]" for name, value in (headers or {}).items()) + (f" {body!r}" if body else "")
        return f"> {method} {path}{more}\n{answer.status} {'; '.join(fields)}\n{text}" + ("\n" if not text.endswith("\n") else "")

    @staticmethod
    def file_of(path):
        return "api/" + path.strip("/").replace("/", "-")

    def shown(self):
        """What each page says that changes nothing."""
        for path, method, _ in self.routes:
            if method != "GET" or path in ("/metrics", "/events"):
                continue
            query = self.arguments.get((method, path))
            text = self.ask(method, "/v1" + path + (f"?{query}" if query else ""))
            yield self.file_of(path), text
        text = "".join(self.ask("GET", path) for path in ("/nothing", "/v1/nothing", "/v1/", "/v1", "/status?frob=1", "/v1/status?frob=1", "/v1/status?frob=1&frob=2"))
        first = self.site.proxy.admin("GET", "/v1/whoami", token=TOKENS["read"])
        text += "".join(f"{name}: {value}\n" for name, value in first.fields if name.lower() in USUAL - {"date", "content-length"})
        text += "".join(self.ask("HEAD", path) for path in ("/v1/status", "/v1/nothing"))
        text += "".join(self.ask(method, "/v1/status") for method in ("OPTIONS", "PATCH", "POST"))
        yield "api/no-page", text
        text = ""
        for path in ("/", "/index.html", "/app.js", "/style.css", "/nothing.js"):
            answer = self.site.proxy.admin("GET", path)
            text += f"> GET {path}\n{answer.status} " + "; ".join(f"{n}: {v}" for n, v in answer.fields if n.lower() not in ("date", "content-length", "etag")) + "\n"
        yield "api/web", text

    def refused(self):
        """Methods, roles and parameters that a page does not take."""
        text = ""
        for path in dict.fromkeys(path for path, _, _ in self.routes):
            for method in ("GET", "POST", "PUT", "DELETE"):
                if (path, method) not in {(path, method) for path, method, _ in self.routes}:
                    text += re.sub(r'\n\{\n  "error": "the page is not for this method.*\n\}', "", self.ask(method, "/v1" + path))
        yield "api/methods", text
        text = ""
        for path, method, operation in self.routes:
            for role in ("none", "read", "operate"):
                answer = self.site.proxy.admin(method, "/v1" + path, token=TOKENS.get(role, "x" * 32)) if role == "none" or role != operation["x-role"] and not (
                    role == "operate" and operation["x-role"] == "read") else None
                if answer is not None:
                    text += f"{role} {method} {path}: {answer.status} {json.loads(answer.body)['error']}\n"
        yield "api/roles", text
        text = ""
        for path, method, operation in self.routes:
            text += "".join(self.one_line(method, path, query) for query in wrong_queries(operation))
        yield "api/parameters", text

    def one_line(self, method, path, query, body=None):
        answer = self.site.proxy.admin(method, f"/v1{path}?{query}", token=TOKENS["admin"], body=body)
        return f"{method} {path}?{query}: {answer.status} {answer.text() if answer.status == 200 else json.dumps(json.loads(answer.body))}\n"

    def changed(self):
        """The pages that change something, with arguments that are good."""
        web, url = self.site.nginx, self.site.picture
        site = self.site

        def calls(name, *rows):
            return f"api/{name}", "".join(self.ask(*row[:2], body=row[2] if len(row) > 2 else None,
                                                   headers={"Content-Type": row[3]} if len(row) > 3 else None) for row in rows)
        site.get(url)
        yield calls("change-cache", ("POST", f"/v1/cache/pin?url={url}"), ("POST", f"/v1/cache/unpin?url={url}"), ("POST", f"/v1/cache/lifetime?url={url}&seconds=60"),
                    ("POST", "/v1/cache/pin?url=http://never.test/"), ("POST", "/v1/cache/bans?regex=^http://never"), ("POST", "/v1/cache/bans?regex=("),
                    ("PUT", "/v1/cache/object?url=http://injected.test/&lifetime=60", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"),
                    ("PUT", "/v1/cache/object?url=http://injected.test/", "nothing"), ("GET", "/v1/cache/content?url=http://injected.test/"),
                    ("DELETE", "/v1/cache/object?url=http://injected.test/&soft=yes"), ("DELETE", "/v1/cache/object?url=http://injected.test/"),
                    ("DELETE", "/v1/cache/object?url=http://injected.test/"), ("POST", "/v1/cache/purge?host=never.test"), ("POST", "/v1/cache/purge"),
                    ("POST", f"/v1/cache/purge?prefix={web.url('/old')}&soft=yes"), ("POST", "/v1/cache/purge?regex=("))
        yield calls("change-settings", ("POST", "/v1/settings", '{"log_level": "warn"}', "application/json"), ("GET", "/v1/settings/changes"),
                    ("POST", "/v1/settings", '{"log_level": "loud", "none": 1}', "application/json"), ("POST", "/v1/settings", '{"name": "x"}', "application/json"),
                    ("POST", "/v1/settings", "[]", "application/json"), ("POST", "/v1/settings", "{", "application/json"), ("POST", "/v1/settings", '{"log_level": "info"}'),
                    ("POST", "/v1/settings?save=yes", '{"log_level": "warn"}', "application/json"), ("DELETE", "/v1/settings?name=log_level&save=yes"),
                    ("DELETE", "/v1/settings"), ("DELETE", "/v1/settings?name=none"), ("DELETE", "/v1/settings?all=yes"))
        yield calls("change-services", ("POST", "/v1/services/bump?name=gzip_inside"), ("POST", "/v1/services/bump?name=none"),
                    ("POST", "/v1/services/unload?name=gzip_inside"), ("POST", "/v1/services/load?name=gzip_inside"), ("POST", "/v1/services/load?name=none"),
                    ("POST", "/v1/services/order?class=pages&services=away,inject"), ("POST", "/v1/services/order?class=pages&services=inject,away"),
                    ("POST", "/v1/services/order?class=pages&services=inject"), ("POST", "/v1/services/order?class=none&services=inject"), ("DELETE", "/v1/settings?all=yes"))
        yield calls("change-helpers", ("POST", "/v1/helpers/renice?pool=gray&nice=11"), ("POST", "/v1/helpers/renice?pool=none&nice=11"),
                    ("POST", "/v1/helpers/resize?pool=gray&processes=2"))
        yield calls("change-rest", ("POST", "/v1/dns/clear?name=site.test"), ("POST", "/v1/dns/clear"), ("POST", "/v1/limits/clear?section=none"),
                    ("POST", "/v1/intercept/clear"), ("POST", "/v1/inspect/stop"), ("POST", "/v1/inspect/clear"), ("POST", "/v1/icap/record/stop?recording=77"),
                    ("POST", "/v1/icap/record/take?recording=77"), ("POST", "/v1/reload"))


def wrong_queries(operation):
    """One for each way in which a parameter can be wrong."""
    parameters = operation["parameters"]
    needed = "&".join(f"{one['name']}={right_value(one)}" for one in parameters if one["required"])
    if needed:
        yield ""
    yield (needed + "&" if needed else "") + "frob=1"
    for one in parameters:
        schema, name = one["schema"], one["name"]
        others = "".join(f"{other['name']}={right_value(other)}&" for other in parameters if other["required"] and other is not one)
        if one["required"]:
            yield f"{others}{name}="
        if schema["type"] == "integer":
            yield f"{others}{name}=x"
            yield f"{others}{name}={schema['maximum'] + 1}"
        elif "enum" in schema or "pattern" in schema:
            yield f"{others}{name}=perhaps"
        if one is parameters[0]:
            yield f"{others}{name}=1&{name}=2"
            yield f"{others}{name.upper()}=1"


def right_value(parameter):
    schema = parameter["schema"]
    return schema.get("minimum", schema.get("enum", ["x"])[0])


# What goes on while somebody looks.

class Looking:
    """retortctl in the background, until it has what it wants."""

    def __init__(self, site, *words):
        self.site, self.words = site, words
        until(lambda: self.consumers() == 0, 20, "nobody looks any more")
        self.process = subprocess.Popen([site.lab.built("proxy/retortctl"), "-s", site.proxy.admin_listen(), *words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=site.lab.directory,
                                        env={**os.environ, **site.lab.environment()})

    def consumers(self):
        return value(scrape(self.site.proxy), "retort_event_consumers")

    def connected(self):
        until(lambda: self.consumers() > 0 or self.process.poll() is not None, 20, f"{self.words} is connected")
        return self

    def seen(self):
        out, errors = self.process.communicate(timeout=60 * self.site.lab.patience)
        return block("retortctl " + " ".join(self.words), subprocess.CompletedProcess((), self.process.returncode, out, errors))


def streams(site):
    url, picture = site.page, site.picture
    text = ""
    for words in (("tail", "--count", "2"), ("--json", "tail", "--count", "2"), ("tail", "--count", "1", "status=4xx,5xx"),
                  ("top", "--count", "2", "--once"), ("top", "--by", "service", "--count", "2", "--once"), ("--json", "top", "--by", "url", "--count", "2", "--once")):
        looking = Looking(site, *words).connected()
        site.get(url)
        site.get(site.nginx.url("/absent.html"), status=404)
        text += looking.seen()
    yield "ctl/tail", text
    with Events(site.proxy, token=TOKENS["admin"]) as events:
        site.get(url)
        site.get(picture)
        lines = [line for _ in range(2) for line in events.block() if events]
    yield "api/events", "".join(f"{name}: {value}\n" for name, value in events.head.fields if name.lower() not in USUAL) + "\n".join(lines) + "\n"
    looking = Looking(site, "icap", "record", site.lab.path("recording"), "--exchanges", "2")
    until(lambda: os.path.exists(site.lab.path("recording")) and os.path.getsize(site.lab.path("recording")) >= 16, 20, "a recording")
    site.get(site.nginx.url("/a.html"))
    site.get(site.nginx.url("/c.html"))
    text = looking.seen()
    for words in (("icap", "show", "recording"), ("--json", "icap", "show", "recording"), ("icap", "show", "recording", "1"), ("--json", "icap", "show", "recording", "1"),
                  ("icap", "show", "recording", "1", "asked"), ("icap", "show", "recording", "9"), ("icap", "show", "recording", "1", "nothing"),
                  ("icap", "replay", "recording", "--service", site.services.outside.uri("inject"), "--filter", "service=inject")):
        text += block("retortctl " + " ".join(words), site.ctl(*words))
    yield "ctl/icap", text
    pages = Pages(site)
    text = pages.ask("POST", "/v1/inspect?transactions=1")
    site.get(url)
    until(lambda: json.loads(site.proxy.admin("GET", "/v1/inspect").body)["transactions"], 20, "an inspected transaction")
    until(lambda: all(one.get("ended", True) for one in json.loads(site.proxy.admin("GET", "/v1/inspect").body)["transactions"]), 20, "its end")
    one = json.loads(site.proxy.admin("GET", "/v1/inspect").body)["transactions"][0]["id"]
    text += pages.ask("GET", "/v1/inspect") + pages.ask("GET", f"/v1/inspect/transaction?id={one}") + pages.ask("GET", f"/v1/inspect/body?id={one}&exchange=0&part=virgin")
    text += pages.ask("POST", "/v1/inspect?transactions=1") + pages.ask("POST", "/v1/icap/record") + pages.ask("POST", "/v1/inspect/stop") + pages.ask("POST", "/v1/inspect/clear")
    yield "api/inspect-one", text


# Commands that change something.

def changing_commands(site):
    url = site.page
    never = "http://never.test/"
    yield commands(site, "cache-change", ("cache", "pin", site.picture), ("cache", "show", site.picture), ("cache", "unpin", site.picture), ("cache", "pin", never),
                   ("cache", "expire", site.picture, "60"), ("cache", "expire", url, "60"), ("cache", "expire", url, "x"),
                   ("cache", "ban", "^http://never"), ("cache", "ban", "("), ("cache", "bans",))
    yield commands(site, "cache-inject", ("cache", "inject", "http://injected.test/", "-", "--header", "Content-Type: text/plain", "--lifetime", "60"),
                   ("cache", "get", "http://injected.test/"), ("cache", "delete", "http://injected.test/", "--soft"), ("cache", "delete", "http://injected.test/"),
                   ("cache", "delete", never, "http://also.test/"), ("cache", "delete", "none"), ("cache", "inject", "none", "-"), given="hello")
    via = ("--via", "%s:%d" % site.proxy.forward, "--rate", "0")
    yield commands(site, "cache-fetch", ("cache", "fetch", site.picture, *via), ("cache", "fetch", site.nginx.url("/absent.html"), *via),
                   ("cache", "revalidate", site.nginx.url("/site.txt"), "--header", "X-A: b", *via), ("cache", "fetch", "@" + site.lab.write("urls", f"{site.picture}\n# no\n"), *via))
    yield commands(site, "cache-purge", ("cache", "purge"), ("cache", "purge", "--host", "never.test"), ("cache", "purge", "--prefix", site.nginx.url("/b"), "--soft"),
                   ("cache", "purge", "--regex", "("), ("cache", "purge", "--tag", "x"), ("cache", "purge", "--prefix", site.picture))
    yield commands(site, "set", ("set", "log_level=warn"), ("get", "log_level"), ("diff",), ("set", "log_level=loud", "none=1"), ("set", "name=x"),
                   ("set", "cache.memory=64MB", "workers=2"), ("diff",), ("set", "log_level=info", "--save"), ("unset", "none"), ("unset", "log_level", "--save"),
                   ("unset", "--all"), ("diff",), ("set", "helper.gray.nice=12"), ("set", "helper.none.nice=12"), ("set", "url_class.pages.path_regex[x]=y"))
    yield commands(site, "services-change", ("services", "bump", "gzip_inside"), ("services", "bump", "none"), ("services", "unload", "gzip_inside"), ("services", "unload", "none"),
                   ("diff",), ("services", "load", "gzip_inside"), ("services", "load", "none"), ("services", "order", "pages", "away,inject"),
                   ("services", "order", "pages", "inject,away"), ("services", "order", "pages", "inject"), ("services", "order", "none", "x"), ("unset", "--all"))
    yield commands(site, "helpers-change", ("helpers", "renice", "gray", "11"), ("helpers", "resize", "gray", "1"), ("helpers", "renice", "none", "1"),
                   ("helpers", "renice", "gray", "99"), ("helpers", "reload"), ("helpers", "top", "1", "1"))
    yield commands(site, "clear", ("limits", "clear", "--section", "none"), ("limits", "clear", "--client", "127.0.0.1"), ("limits", "clear"), ("dns", "clear", "site.test"),
                   ("dns", "clear", "absent.test"), ("dns", "clear", "--all"), ("intercept", "clear", "all"), ("intercept", "clear", "client=127.0.0.1", "host=x"))
    name, text = commands(site, "reload", ("reload",))
    good = site.proxy.text()
    for more in ("log_level = debug\n", "workers = 1\nworkers = 2\nadapt none { services = { x } }\n", "log_levle = info\n", "log_level = debug\ncache { }\n"):
        site.proxy.write_config(good + more)
        text += f"# with {more!r}\n" + commands(site, "", ("reload",))[1]
    site.proxy.write_config(good)
    yield name, text + commands(site, "", ("reload",))[1]
    yield commands(site, "tokens", ("whoami",), ("status",), ("drain",), token="x" * 32)
    yield commands(site, "roles", ("cache", "purge", "--all"), ("drain",), token=TOKENS["read"])


# Logs, spans, and the end.

def logs(site):
    time.sleep(0.1)
    for name in (*FORMATS, "own", "icap", "icap-own", "audit"):
        path = site.lab.path(f"{name}.log")
        with open(path, encoding="utf-8", errors="replace") as file:
            yield f"logs/{name}", file.read()
    text = ""
    for name in FORMATS:
        text += "".join(block("retortctl " + " ".join(words), site.ctl(*words)) for words in (("logs", "top", f"{name}.log"), ("--json", "logs", "top", f"{name}.log", "--by", "status", "--sort", "bytes")))
    with open(site.lab.path("json.log"), "rb") as file:
        site.lab.write("json.log.gz", gzip.compress(file.read()))
    yield "ctl/logs", text + block("retortctl logs top json.log.gz --rows 1", site.ctl("logs", "top", "json.log.gz", "--rows", "1"))


def ending(site):
    lab = site.lab
    bare = Retort(lab, name="bare")
    text = ""
    for words in (("origins",), ("services",), ("access",), ("limits",), ("dns",), ("intercept",), ("cache", "list"), ("cache", "bans"), ("diff",), ("helpers",),
                  ("cache", "show", "http://never.test/"), ("access", "test", "http://192.0.2.1/"), ("drain",)):
        text += block("retortctl " + " ".join(words), site.ctl(*words, where=bare.admin_listen()))
    bare.wait_exit()
    text += "".join(block("retortctl " + " ".join(words), site.ctl(*words, where=where)) for where in (bare.admin_listen(), "127.0.0.1:1", "nothing", lab.directory)
                    for words in (("status",), ("--json", "status"), ("tail", "--count", "1"), ("cache", "fetch", "http://x/", "--via", "127.0.0.1:1")))
    yield "ctl/bare", text
    site.proxy.stop()
    spans = sorted(json.dumps(span, indent=1, sort_keys=True) for span in plain_spans(site))
    yield "logs/spans", "\n".join(spans) + "\n"
    yield "logs/error", "".join(sorted({re.sub(r"^20\S+Z ", "", line) + "\n" for line in site.named(site.proxy.process.log()).splitlines()}))


def plain_spans(site):
    """Without repetition: one for each name with its attributes' names."""
    seen = {}
    for request in site.collector.requests:
        for resource in json.loads(request.body)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    seen.setdefault((span["name"], tuple(one["key"] for one in span["attributes"])), span)
    return seen.values()


GROUPS = ((("programs",), programs), (("check",), check), (("ctl", "api", "logs"), proxy))
