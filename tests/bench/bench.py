#!/usr/bin/env python3
"""CPU time per request of Retort beside nginx, Squid, HAProxy and Traffic Server, in the same run.

    bench.py [--builddir DIR] [--rounds N] [--seconds S] [--connections N] [--only CASE] [--markdown]

Cases: "hit": 1 KB from the cache in memory; "miss": 10 KB that may not be stored; "adapted": the same
through c-icap's echo service (RESPMOD with preview), for those that speak ICAP. "disk": 32 KB, any of
4000, from a cache on disk whose memory (8 MB) holds few of them; "disk-large": 1 MB, any of 200. What
stands on the disk is in the kernel's page cache, where the server reads through it; Traffic Server
reads past it, and so from the device.

The server under test runs on one core, alone; wrk, the origin (nginx) and c-icap on the other. Rounds
are interleaved: each round measures every server in every case once, and medians are shown. CPU time
is user + system time of all the server's processes, from /proc, over one run of wrk, divided by the
requests that wrk counted. Nobody writes an access log. All run with one worker process or thread.
The origin's own count tells that hits are hits and misses misses.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.dont_write_bytecode = True

from harness import ports, wire  # noqa: E402
from harness.cicap import Cicap, Module  # noqa: E402
from harness.lab import SOURCE, Lab  # noqa: E402
from harness.process import Process, descendants_of  # noqa: E402

SERVER_CORE, PEERS_CORE = "1", "0"
TICKS = os.sysconf("SC_CLK_TCK")

ORIGIN = """
daemon off; master_process off;{user} pid {dir}/origin.pid; error_log {dir}/origin.log;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 100000000; keepalive_timeout 600; tcp_nodelay on;
    types {{ text/plain txt; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096 reuseport;
        root {dir}/site;
        location = /1k.txt {{ add_header Cache-Control "max-age=86400"; }}
        location = /10k.txt {{ add_header Cache-Control "no-store"; }}
        location /disk {{ add_header Cache-Control "max-age=86400"; }}
        location = /count {{ stub_status; }}
    }}
}}
"""

NGINX = """
daemon off; master_process on; worker_processes 1;{user} pid {dir}/{name}.pid; error_log {dir}/{name}.log;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 100000000; keepalive_timeout 600; tcp_nodelay on;
    client_body_temp_path {dir}/{name}.nb; proxy_temp_path {cache}-temp; fastcgi_temp_path {dir}/{name}.nf;
    uwsgi_temp_path {dir}/{name}.nu; scgi_temp_path {dir}/{name}.ns;
    proxy_cache_path {cache} keys_zone=c:16m max_size=1g inactive=1d; sendfile on;
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_cache c;
        }}
    }}
}}
"""

SQUID = """
http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1:{origin} no-vhost
cache_peer 127.0.0.1 parent {origin} 0 no-query originserver no-digest name=origin
pid_filename {dir}/squid.pid
cache_log {dir}/squid.log
access_log none
coredump_dir {dir}
{user}
cache_mem 64 MB
acl everybody src all
http_access allow everybody
icp_port 0
visible_hostname squid.test
shutdown_lifetime 0 seconds
pinger_enable off
netdb_filename none
memory_cache_mode always
server_persistent_connections on
client_persistent_connections on
{icap}
"""

SQUID_ICAP = """icap_enable on
icap_preview_enable on
icap_persistent_connections on
icap_service s respmod_precache bypass=off {uri}
acl big urlpath_regex 10k
adaptation_access s allow big
"""

HAPROXY = """
global
    nbthread 1
    maxconn 4000
defaults
    mode http
    timeout client 600s
    timeout server 600s
    timeout connect 5s
    option http-keep-alive
cache c
    total-max-size 64
    max-age 86400
frontend f
    bind 127.0.0.1:{port}
    default_backend b
backend b
    http-request cache-use c
    http-response cache-store c
    http-reuse always
    server o 127.0.0.1:{origin}
"""

RETORT = """
workers = 1
listen "127.0.0.1:{port}" {{ mode = reverse }}
map "/" {{ origin = "http://127.0.0.1:{origin}/" }}
cache {{ {cache} }}
admin {{ listen = "{dir}/{name}.sock" }}
{icap}
"""

RETORT_ICAP = """icap_service s {{ uri = "{uri}"  point = respmod_precache  bypass = false  timeout = "5s"  max_connections = 64 }}
url_class big {{ path_regex = "10k" }}
adapt big {{ services = {{ s }} }}
"""


TRAFFIC_SERVER = """
CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING {user}
CONFIG proxy.config.exec_thread.autoconfig.enabled INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.accept_threads INT 0
CONFIG proxy.config.http.wait_for_cache INT 1
CONFIG proxy.config.cache.ram_cache.size INT 8388608
CONFIG proxy.config.cache.min_average_object_size INT 8000
CONFIG proxy.config.http.cache.required_headers INT 0
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.diags.output.status STRING L
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 600
CONFIG proxy.config.url_remap.pristine_host_hdr INT 0
"""

TRAFFIC_SERVER_ROOT = """
prefix: {root}
exec_prefix: {root}
bindir: /usr/bin
sbindir: /usr/bin
sysconfdir: {root}/etc
datadir: {root}/data
includedir: /usr/include
libdir: /usr/lib
libexecdir: /usr/lib/trafficserver/modules
localstatedir: {root}/run
runtimedir: {root}/run
logdir: {root}/log
cachedir: {root}/cache
"""

TRAFFIC_SERVER_CLIENTS = """
ip_allow:
  - apply: in
    ip_addrs: 127.0.0.1
    action: allow
    methods: ALL
"""

# case: (paths, how many, bytes of each)
DISK_CASES = {"disk": ("/disk/{}", 4000, 32 * 1024), "disk-large": ("/disk-large/{}", 200, 1 << 20)}

ANY_OF = """
math.randomseed(os.time())
request = function()
    return wrk.format("GET", (string.gsub("{path}", "{{}}", tostring(math.random(0, {last})))))
end
"""


class Server:
    """One server under test, pinned to its core."""

    def __init__(self, lab, name, command, port, expected_status=0, environment=None):
        self.name = name
        self.port = port
        self.process = Process(lab, name, ["taskset", "-c", SERVER_CORE, *command], stop_seconds=20,
                               expected_status=expected_status, environment=environment)
        lab.opens(self)
        self.process.wait_ready(lambda: answers(port), 20)

    def cpu_seconds(self):
        total = 0
        for pid in [self.process.pid] + descendants_of(self.process.pid):
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.process.findings()


def answers(port):
    try:
        wire.Wire(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Bench:
    def __init__(self, lab, options):
        self.lab, self.options = lab, options
        self.origin = ports.take()
        os.makedirs(lab.path("site"))
        for name, size in (("1k.txt", 1000), ("10k.txt", 10000)):
            lab.write("site/" + name, b"0123456789" * (size // 10))
        self.start_peers()
        self.servers = {}
        if options.only not in DISK_CASES:
            self.servers.update(self.start_servers())
        if options.only in (None, *DISK_CASES):
            self.servers.update(self.start_disk_servers())

    def start_peers(self):
        lab = self.lab
        config = lab.write("origin.conf", ORIGIN.format(dir=lab.directory, port=self.origin, user=nginx_user()))
        process = Process(lab, "origin", ["taskset", "-c", PEERS_CORE, "nginx", "-e", lab.path("origin.log"), "-c", config])
        lab.opens(Stoppable(process))
        process.wait_ready(lambda: answers(self.origin))
        self.cicap = Cicap(lab, [Module("echo", "srv_echo.so")], threads=80, access_log=False)
        for pid in [self.cicap.process.pid] + self.cicap.children():
            os.sched_setaffinity(pid, {int(PEERS_CORE)})
            for task in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(task), {int(PEERS_CORE)})

    def start_servers(self):
        servers = {}
        for name, start in (("retort", self.start_retort), ("nginx", self.start_nginx), ("squid", self.start_squid),
                            ("haproxy", self.start_haproxy)):
            try:
                servers[name] = start(name, "")
            except FileNotFoundError as missing:
                print(f"{name} is left out: {missing}", file=sys.stderr)
        uri = self.cicap.uri("echo")
        for name, start, icap in (("retort", self.start_retort, RETORT_ICAP.format(uri=uri)),
                                  ("squid", self.start_squid, SQUID_ICAP.format(uri=uri))):
            if name in servers:
                servers[name + "+icap"] = start(name + "-icap", icap)
        return servers

    def start_disk_servers(self):
        for path, count, size in DISK_CASES.values():
            for number in range(count):
                self.lab.write("site" + path.format(number), disk_body(number, size))
        servers = {}
        for name, start in (("retort+disk", self.start_retort_disk), ("nginx+disk", self.start_nginx_disk),
                            ("trafficserver+disk", self.start_traffic_server)):
            try:
                servers[name] = start(name.replace("+", "-"))
            except FileNotFoundError as missing:
                print(f"{name} is left out: {missing}", file=sys.stderr)
        for server in servers.values():
            self.fill(server)
        return servers

    def fill(self, server):
        """Every object is asked for, and was right; twice, as some store at the second time."""
        for path, count, size in list(DISK_CASES.values()) * 2:
            with wire.Wire(("127.0.0.1", server.port)) as connection:
                for number in range(count):
                    connection.send(wire.request("GET", path.format(number), host=f"127.0.0.1:{server.port}"))
                    if connection.response().body != disk_body(number, size):
                        raise AssertionError(f"{server.name}: {path.format(number)} is not what the origin has")

    def config(self, name, text, **more):
        port = ports.take()
        values = {"dir": self.lab.directory, "port": port, "origin": self.origin, "name": name,
                  "tag": os.path.basename(self.lab.directory), **more}
        return self.lab.write(name + ".conf", text.format(**values)), port

    def start_retort(self, name, icap, cache='memory = "64MB"'):
        path, port = self.config(name, RETORT, icap=icap, cache=cache)
        return Server(self.lab, name, [self.lab.built("proxy/retort"), "-f", path], port)

    def start_retort_disk(self, name):
        os.makedirs(self.lab.path(name))
        return self.start_retort(name, "", f'memory = "8MB" disk "{self.lab.path(name)}" {{ size = "2GB" }}')

    def start_nginx(self, name, _icap, cache=None):
        cache = cache or f"/dev/shm/{os.path.basename(self.lab.directory)}-cache"
        path, port = self.config(name, NGINX, user=nginx_user(), cache=cache)
        return Server(self.lab, name, ["nginx", "-e", self.lab.path(name + ".log"), "-c", path], port)

    def start_nginx_disk(self, name):
        return self.start_nginx(name, "", self.lab.path(name + "-cache"))

    def start_traffic_server(self, name):
        if not shutil.which("traffic_server"):
            raise FileNotFoundError("traffic_server is not installed")
        root = self.lab.path(name)
        for folder in ("run", "log", "cache", "data"):
            os.makedirs(os.path.join(root, folder))
        values = {"origin": self.origin, "port": ports.take(), "root": root,
                  "user": "trafficserver" if os.getuid() == 0 else "#-1"}
        files = {"etc/records.config": TRAFFIC_SERVER, "runroot.yaml": TRAFFIC_SERVER_ROOT,
                 "etc/ip_allow.yaml": TRAFFIC_SERVER_CLIENTS,
                 "etc/storage.config": "{root}/cache 1G\n", "etc/remap.config": "map / http://127.0.0.1:{origin}/\n"}
        for file, text in files.items():
            self.lab.write(f"{name}/{file}", text.format(**values))
        if os.getuid() == 0:  # it refuses to be root
            subprocess.run(["chown", "-R", "trafficserver", root], check=True)
        return Server(self.lab, name, ["traffic_server"], values["port"], 0,
                      {"TS_RUNROOT": os.path.join(root, "runroot.yaml")})

    def start_squid(self, name, icap):
        os.chmod(self.lab.directory, 0o777)
        path, port = self.config(name, SQUID.replace("{dir}/squid", "{dir}/" + name), icap=icap,
                                 user="cache_effective_user proxy" if os.getuid() == 0 else "")
        return Server(self.lab, name, ["squid", "-N", "-f", path], port)

    def start_haproxy(self, name, _icap):
        path, port = self.config(name, HAPROXY)
        return Server(self.lab, name, ["haproxy", "-db", "-f", path], port, -signal.SIGTERM)

    def origin_count(self):
        text = wire.fetch(("127.0.0.1", self.origin), "GET", "/count").text()
        return int(re.search(r"\n\s*\d+ \d+ (\d+)", text).group(1))

    def run_wrk(self, server, path, seconds, script=None):
        """(requests, requests a second, median latency and that of 99 %, in milliseconds)"""
        done = subprocess.run(
            ["taskset", "-c", PEERS_CORE, "wrk", "-t1", f"-c{self.options.connections}", f"-d{seconds}s", "--latency",
             *(["-s", script] if script else []), f"http://127.0.0.1:{server.port}{path}"], capture_output=True, text=True, check=True, timeout=seconds + 30)
        bad = re.search(r"Non-2xx or 3xx responses: (\d+)|Socket errors:.*", done.stdout)
        if bad:
            raise AssertionError(f"{server.name} {path}: {bad.group(0)}")
        return (int(re.search(r"(\d+) requests in", done.stdout).group(1)),
                float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout).group(1)),
                latency(done.stdout, "50%"), latency(done.stdout, "99%"))

    def check_body(self, server, path, size):
        answer = wire.fetch(("127.0.0.1", server.port), "GET", path, host="127.0.0.1")
        if (answer.status, answer.body) != (200, b"0123456789" * (size // 10)):
            raise AssertionError(f"{server.name} {path}: {answer.status}, {len(answer.body)} bytes")

    def measure(self, server, case):
        """(CPU microseconds a request, requests a second, median latency and that of 99 %)"""
        if case in DISK_CASES:
            return self.measure_disk(server, case)
        path, size = ("/1k.txt", 1000) if case == "hit" else ("/10k.txt", 10000)
        self.check_body(server, path, size)
        self.run_wrk(server, path, 1)
        asked, cpu = self.origin_count(), server.cpu_seconds()
        requests, *seen = self.run_wrk(server, path, self.options.seconds)
        cpu, asked = server.cpu_seconds() - cpu, self.origin_count() - asked
        if case == "hit" and asked > requests * 0.01 + 5 or case != "hit" and asked < requests * 0.95:
            raise AssertionError(f"{server.name}, {case}: {asked} requests at the origin for {requests}")
        return cpu / requests * 1e6, *seen

    def measure_disk(self, server, case):
        path, count, _ = DISK_CASES[case]
        script = self.lab.write(case + ".lua", ANY_OF.format(path=path, last=count - 1))
        self.run_wrk(server, "/", 1, script)
        asked, cpu = self.origin_count(), server.cpu_seconds()
        requests, *seen = self.run_wrk(server, "/", self.options.seconds, script)
        cpu, asked = server.cpu_seconds() - cpu, self.origin_count() - asked
        if asked > requests * 0.01 + 5:
            raise AssertionError(f"{server.name}, {case}: {asked} requests at the origin for {requests}")
        return cpu / requests * 1e6, *seen

    def run(self):
        cases = {"hit": ["retort", "nginx", "squid", "haproxy"], "miss": ["retort", "nginx", "squid", "haproxy"],
                 "adapted": ["retort+icap", "squid+icap"],
                 **{case: ["retort+disk", "nginx+disk", "trafficserver+disk"] for case in DISK_CASES}}
        cases = {case: [n for n in names if n in self.servers] for case, names in cases.items()
                 if self.options.only in (None, case)}
        seen = {}
        for number in range(self.options.rounds):
            for case, names in cases.items():
                for name in names:
                    seen.setdefault((case, name), []).append(self.measure(self.servers[name], case))
            print(f"round {number + 1} of {self.options.rounds} done", file=sys.stderr)
        return cases, seen


def disk_body(number, size):
    return (b"%011d\n" % number) * (size // 12) + b"x" * (size % 12)


def latency(text, percentile):
    """Milliseconds, from wrk's table."""
    number, unit = re.search(percentile + r"\s+([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def nginx_user():
    return " user root;" if os.getuid() == 0 else ""


class Stoppable:
    def __init__(self, process):
        self.process = process
        self.stop = process.stop
        self.findings = process.findings


TITLES = {"hit": "hit in memory, 1 KB", "miss": "miss, 10 KB, no-store", "adapted": "miss, 10 KB, adapted by RESPMOD",
          "disk": "hit on disk, 32 KB of 4000", "disk-large": "hit on disk, 1 MB of 200"}


def show(cases, seen, markdown):
    widths = ("{:32}", "{:13}", "{:>10}", "{:>15}", "{:>10}", "{:>9}", "{:>9}", "{:>9}")
    row = "| " + " | ".join(widths) + " |" if markdown else " ".join(widths)
    print(row.format("case", "server", "CPU us/req", "range", "requests/s", "median ms", "99 % ms", "CPU ratio"))
    if markdown:
        print("|---|---|---:|---:|---:|---:|---:|---:|")
    for case, names in cases.items():
        base = None
        for name in names:
            cpu = [values[0] for values in seen[case, name]]
            rate, median, slow = (statistics.median(column) for column in list(zip(*seen[case, name]))[1:])
            base = base or statistics.median(cpu)
            print(row.format(TITLES[case], name.split("+")[0], f"{statistics.median(cpu):.1f}",
                             f"{min(cpu):.1f} - {max(cpu):.1f}", f"{rate:.0f}", f"{median:.2f}", f"{slow:.2f}",
                             f"{statistics.median(cpu) / base:.2f}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builddir", default=os.path.join(SOURCE, "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--only", choices=list(TITLES))
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        sys.exit("two cores are needed: one for the server under test, one for all else")
    lab = Lab(options.builddir, name="bench")
    findings = []
    try:
        cases, seen = Bench(lab, options).run()
        show(cases, seen, options.markdown)
    finally:
        findings = lab.close()
        subprocess.run(["rm", "-rf", f"/dev/shm/{os.path.basename(lab.directory)}-cache",
                        f"/dev/shm/{os.path.basename(lab.directory)}-cache-temp"], check=False)
        for finding in findings:
            print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
