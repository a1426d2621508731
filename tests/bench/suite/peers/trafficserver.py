"""Traffic Server: one event thread, RAM cache before a disk cache, which it must have, no logs."""

import os
import shutil
import subprocess

from harness import ports

from ..server import Server
from .programs import there

RECORDS = """
CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1{secured}
CONFIG proxy.config.admin.user_id STRING {user}
CONFIG proxy.config.exec_thread.autoconfig.enabled INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.accept_threads INT 0
CONFIG proxy.config.http.wait_for_cache INT 1
CONFIG proxy.config.cache.ram_cache.size INT {memory}
CONFIG proxy.config.cache.min_average_object_size INT 8000
CONFIG proxy.config.http.cache.required_headers INT 0
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.diags.output.status STRING L
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 600
CONFIG proxy.config.net.default_inactivity_timeout INT 600
CONFIG proxy.config.net.connections_throttle INT 30000
CONFIG proxy.config.net.listen_backlog INT 4096
CONFIG proxy.config.url_remap.pristine_host_hdr INT 0
"""

ROOT = """
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

CLIENTS = """
ip_allow:
  - apply: in
    ip_addrs: 127.0.0.1
    action: allow
    methods: ALL
"""

FILES = {"etc/records.config": RECORDS, "runroot.yaml": ROOT, "etc/ip_allow.yaml": CLIENTS,
         "etc/storage.config": "{root}/cache 1G\n", "etc/ssl_multicert.config": "{multicert}\n", "etc/remap.config": "map / http://127.0.0.1:{origin}/\n"}


def start(bench, name="trafficserver", *, memory=64 << 20, certificate=None):
    there("traffic_server")
    name = bench.lab.unique(name)
    root = bench.lab.path(name)
    for folder in ("run", "log", "cache", "data"):
        os.makedirs(os.path.join(root, folder))
    if certificate:  # its own user reads it, whom the file of the lab does not let
        certificate = shutil.copy(certificate, os.path.join(root, "data", "server.pem"))
    values = {"origin": bench.origin.port, "port": ports.take(), "root": root, "memory": memory,
              "secured": ":ssl" if certificate else "",
              "multicert": f"dest_ip=* ssl_cert_name={certificate} ssl_key_name={certificate}" if certificate else "",
              "user": "trafficserver" if os.getuid() == 0 else "#-1"}
    for file, text in FILES.items():
        bench.lab.write(f"{name}/{file}", text.format(**values))
    if os.getuid() == 0:  # it refuses to be root
        subprocess.run(["chown", "-R", "trafficserver", root], check=True)
    return bench.opened(Server(bench.lab, "trafficserver", name, ["traffic_server"], values["port"],
                               environment={"TS_RUNROOT": os.path.join(root, "runroot.yaml")},
                               secure=certificate is not None))
