"""The proxy under test: writes its configuration, starts it, reads its logs, asks its admin plane.

    proxy = Retort(lab, reverse={"/": origin.url()}, services=[Service("echo", uri)], adapt={"all": ["echo"]})
    proxy.get(origin.url("/text", say="hello"))              forward mode
    proxy.get("/text?say=hello", host="www.example.com")     reverse mode: a target without scheme
"""

import json
import os
import re
import signal
import subprocess
import time

from . import checks, ports, wire
from .process import Process, status_field


class Service:
    """An icap_service section."""

    def __init__(self, name, uri, point="respmod_precache", bypass=True, **options):
        self.name = name
        self.options = {"uri": uri, "point": point, "bypass": bypass, "timeout": "5s", **options}

    def text(self):
        return f'icap_service {self.name} {{ {options_text(self.options)} }}'


class Inside:
    """A service section: the service runs in the proxy. `settings` is a dict; a list as a value is written once for each item.
    Without `runs` it runs where the environment variable RETORT_RUNS says (run.py --host): worker, thread or process."""

    def __init__(self, name, module, point="respmod_precache", bypass=True, settings=None, **options):
        self.name = name
        self.settings = settings or {}
        runs = os.environ.get("RETORT_RUNS", "worker")
        self.options = {"module": module, "point": point, "bypass": bypass, "timeout": "5s", **({"runs": runs} if runs != "worker" else {}), **options}

    def text(self):
        pairs = [f"{name} = {value_text(one)}" for name, value in self.settings.items()
                 for one in (value if isinstance(value, (list, tuple)) else [value])]
        settings = f'  settings = {{ {", ".join(pairs)} }}' if pairs else ""
        return f'service {self.name} {{ {options_text(self.options)}{settings} }}'


def value_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(value_text(item) for item in value) + " }"
    if value.startswith("="):
        return value[1:]
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Options whose values are words of the language, written without quotes.
REFUSED = 1  # exit status of a retort that does not take its configuration
WORDS = {"point", "runs", "mode", "format", "admission", "disk_io"}


def options_text(options, separator="  "):
    """A dict as a value is sections in the section: {"disk": {"/path": {"size": "64MB"}}}."""
    parts = []
    for name, value in options.items():
        if isinstance(value, dict):
            parts += [section(name, inner, title) for title, inner in value.items()]
        else:
            parts.append(f"{name} = {value if name in WORDS else value_text(value)}")
    return separator.join(parts)


def section(name, options, title=None):
    if name == "disk" and not os.path.lexists(title) and os.path.isdir(os.path.dirname(title)):
        os.close(os.open(title, os.O_WRONLY | os.O_CREAT, 0o600))  # retort makes files in directories alone
    head = f'{name} "{title}"' if title else name
    return f"{head} {{ {options_text(options)} }}"


class Retort:
    def __init__(self, lab, *, reverse=None, services=(), adapt=None, url_classes=None, workers=1,
                 cache=None, client=None, origin=None, log_format="json", extra="", name="retort",
                 ipv6=False, memcheck=True, text=None, stop_seconds=10, drain_timeout=None,
                 environment=None, start_seconds=10, under=(), admin=None, admin_options=None, before_start=None):
        self.lab = lab
        self.before_start = before_start  # what the process does before it becomes retort
        self.under = list(under)  # a command that runs it, as callgrind
        self.name = lab.unique(name)
        host = "::1" if ipv6 else "127.0.0.1"
        self.forward = (host, ports.take())
        self.reverse = (host, ports.take())
        self.log_path = lab.path(f"{self.name}.access.log")
        self.admin_path = admin or lab.path(f"{self.name}.sock")  # or an address
        self.token = None  # what admin() and ctl() send; an address needs one
        self.token_path = lab.path(f"{self.name}.tokens")
        if not isinstance(self.admin_path, str):
            self.token = self.write_tokens("lab admin " + "0123456789abcdef" * 4).rsplit(" ", 1)[1]
        self.config_path = lab.path(f"{self.name}.conf")
        self.given = {"reverse": reverse or {}, "services": list(services), "adapt": adapt,
                      "url_classes": url_classes or {}, "workers": workers,
                      "cache": cache if cache is not None else {"memory": "32MB"},
                      "client": client or {}, "origin": origin or {}, "log_format": log_format,
                      "extra": extra, "drain_timeout": drain_timeout, "admin": admin_options or {}}
        self.write_config(text or self.text())
        self.program = lab.built("proxy/retort")
        self.environment = merged(lab.environment(), environment or {})
        self.memcheck = memcheck
        self.stop_seconds = stop_seconds
        self.start_seconds = start_seconds
        self.earlier_findings = []
        self.process = None
        lab.opens(self)
        self.start()

    def start(self):
        """The first start and, once it has stopped or was killed, every further one."""
        if self.process:
            self.process.stop()
            self.earlier_findings += self.process.findings()
        self.served = self.process.log().count(" serving with ") if self.process else 0
        said = len(self.process.log()) if self.process else 0
        self.process = Process(self.lab, self.name, self.under + [self.program, "-f", self.config_path],
                               environment=self.environment, memcheck=self.memcheck,
                               stop_seconds=self.stop_seconds, before_start=self.before_start)
        self.pid = self.process.pid
        try:
            self.process.wait_ready(self._answers, self.start_seconds)
        except AssertionError:
            part = needs_of(self.process.log()[said:])
            if self.process.popen.poll() == REFUSED and part:
                self.process.expected_status = REFUSED
                self.lab.needs(part)
            raise

    def restart(self):
        self.stop()
        self.start()

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.stopped = True
        self.process.overdue = False

    def _answers(self):
        try:
            wire.Wire(self.forward, timeout=1).close()
            if self.lab.has_part("admin"):
                wire.Wire(self.admin_path, timeout=1).close()  # the last socket that it opens
            elif "error_log" not in self.given["extra"]:
                return self.process.log().count(" serving with ") > self.served
            return True
        except OSError:
            return False

    def text(self, **changes):
        """The configuration; `changes` replace what the constructor was given."""
        given = {**self.given, **changes}
        quoted = [f"{h}:{p}" if ":" not in h else f"[{h}]:{p}" for h, p in (self.forward, self.reverse)]
        lines = [f'workers = {given["workers"]}',
                 f'listen "{quoted[0]}" {{ mode = forward  local_destinations = allow }}',
                 f'listen "{quoted[1]}" {{ mode = reverse }}',
                 f'access_log "{self.log_path}" {{ format = {given["log_format"]} }}']
        if self.lab.has_part("admin"):
            lines.append(section("admin", {"listen": self.admin_listen(), **({"token_file": self.token_path} if self.token else {}),
                                           **given["admin"]}))
        if given["drain_timeout"]:
            lines.append(f'drain_timeout = "{given["drain_timeout"]}"')
        for kind in ("cache", "client", "origin"):
            options = given[kind]
            if kind == "cache" and options:
                options = {**self._cache_defaults(options), **options}
            if options:
                lines.append(section(kind, options))
        for prefix, target in given["reverse"].items():
            options = target if isinstance(target, dict) else {"origin": target}
            lines.append(section("map", options, prefix))
        lines += [service.text() for service in given["services"]]
        for name, conditions in given["url_classes"].items():
            lines.append(f"url_class {name} {{ {options_text(conditions)} }}")
        adapt = given["adapt"]
        if adapt is None and given["services"]:
            adapt = {"all": [service.name for service in given["services"]]}
        for name, chain in (adapt or {}).items():
            lines.append(f"adapt {name} {{ services = {{ {', '.join(chain)} }} }}")
        return "\n".join(lines) + "\n" + given["extra"] + "\n"

    def write_tokens(self, text):
        """The file of admin.token_file: lines NAME ROLE TOKEN. Returns the text."""
        with open(self.token_path, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            out.write(text + "\n")
        return text

    def admin_listen(self):
        return self.admin_path if isinstance(self.admin_path, str) else "%s:%d" % self.admin_path

    def _cache_defaults(self, options):
        defaults = {}
        if self.lab.valgrind and "disk" in options:
            defaults["disk_io"] = "threads"  # valgrind stands still in io_uring_enter
        if self.lab.patience > 1:
            defaults["collapse_timeout"] = f"{5 * self.lab.patience}s"
        return defaults

    def write_config(self, text):
        temporary = self.config_path + ".new"
        with open(temporary, "w", encoding="utf-8") as out:
            out.write(text)
        os.rename(temporary, self.config_path)

    # Talking through it.

    def wire(self, reverse=False, **options):
        options.setdefault("timeout", 20 * self.lab.patience)
        return wire.Wire(self.reverse if reverse else self.forward, **options)

    def fetch(self, method, url, headers=None, body=None, **options):
        reverse = url.startswith("/")
        options.setdefault("timeout", 20 * self.lab.patience)
        return wire.fetch(self.reverse if reverse else self.forward, method, url, headers, body, **options)

    def get(self, url, headers=None, **options):
        return self.fetch("GET", url, headers, **options)

    # Its logs.

    def log_lines(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                return log.read().splitlines()
        except FileNotFoundError:
            return []

    def log(self, count=None, seconds=5):
        """The entries of the json access log; waits until there are at least `count`."""
        if count is not None:
            checks.until(lambda: len(self.log_lines()) >= count, seconds * self.lab.patience,
                         f"{count} access log lines, there are {len(self.log_lines())}")
        return [json.loads(line) for line in self.log_lines()]

    def last(self, count=None):
        return self.log(count)[-1]

    def entries(self, part, count=1, seconds=5):
        """The log entries whose URL contains `part`, at least `count` of them."""
        def found():
            return [entry for entry in self.log() if part in entry["url"]]
        checks.until(lambda: len(found()) >= count, seconds * self.lab.patience,
                     f"{count} log entries about {part}")
        return found()

    def result(self, part):
        """The cache result of the newest log entry about a URL that contains `part`."""
        return self.entries(part)[-1]["result"]

    def results(self, part, count):
        return [entry["result"] for entry in self.entries(part, count)]

    # Its admin plane.

    def admin(self, method, path, body=None, token=None, headers=None):
        self.lab.needs("admin")
        token = token or self.token
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        return wire.fetch(self.admin_path, method, path, headers, body=body, host="localhost",
                          timeout=20 * self.lab.patience)

    def status(self):
        answer = self.admin("GET", "/status")
        checks.equal(answer.status, 200, "GET /status")
        return json.loads(answer.body)

    def counter(self, name):
        counters = self.status()["counters"]
        if name not in counters:
            raise AssertionError(f"no counter {name} in /status: {sorted(counters)}")
        return counters[name]

    def run_ctl(self, *arguments):
        """Runs retortctl; returns the process, which has ended."""
        self.lab.needs("admin")
        return subprocess.run([self.lab.built("proxy/retortctl"), "-s", self.admin_listen(), *arguments],
                              capture_output=True, text=True, timeout=30 * self.lab.patience, check=False,
                              env={**os.environ, **self.lab.environment(), "RETORT_TOKEN": self.token or ""})

    def ctl(self, *arguments, expect=0, extra=()):
        """Runs retortctl; returns its standard output."""
        done = self.run_ctl(*extra, *arguments)
        if expect is not None:
            checks.equal(done.returncode, expect,
                         f"retortctl {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}; exit status")
        return done.stdout

    # Its life.

    def memory_peak_kb(self):
        return status_field(self.pid, "VmHWM")

    def reload(self):
        """A reload through the admin plane, or by SIGHUP where there is none; done when this returns."""
        return self.admin("POST", "/reload") if self.lab.has_part("admin") else self._reload_by_signal()

    def _reload_by_signal(self):
        def outcomes():
            return re.findall("configuration read again.*|reload refused", self.process.log())
        before = len(outcomes())
        self.hang_up()
        checks.until(lambda: len(outcomes()) > before, 10 * self.lab.patience, "the reload to be done")
        if "some changes are not in use" in outcomes()[before]:
            self.lab.needs("admin")  # which tells what waits from what was refused
        return wire.Response("HTTP/1.1 " + ("200 OK" if "read" in outcomes()[before] else "409 Conflict"), [])

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait_exit(self, seconds=10):
        return self.process.wait(seconds)

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.earlier_findings + self.process.findings()

    def check_config(self, text):
        """`retort -t` on the text: (exit status, what it said)."""
        path = self.lab.write(f"{self.name}.checked.conf", text)
        return run_check(self.lab, path)


def merged(environment, more):
    """Sanitizers do not like to be loaded second, but get used to it."""
    together = {**environment, **more}
    if "LD_PRELOAD" in more and "ASAN_OPTIONS" in environment:
        together["ASAN_OPTIONS"] += ":verify_asan_link_order=0"
    return together


def run_check(lab, path, flag="-t"):
    """`retort -t -f PATH`: (exit status, standard output and error). -T: of the file alone."""
    done = subprocess.run([lab.built("proxy/retort"), flag, "-f", path], capture_output=True, text=True,
                          timeout=20 * lab.patience, check=False, env={**os.environ, **lab.environment()})
    if needs_of(done.stderr):
        lab.needs(needs_of(done.stderr))
    return done.returncode, done.stdout + done.stderr


def needs_of(said):
    """The part that a configuration needs, as retort has said when it refused it; None: none."""
    found = re.search("this retort was built without the part ([a-z0-9_]+)", said)
    return found and found.group(1)


def measure(call):
    """(what call returned, seconds it took)"""
    start = time.monotonic()
    value = call()
    return value, time.monotonic() - start
