"""Squid: one process, everything in memory, no client database, no digest, no logs; ICAP where it is asked for."""

import os

from harness import ports

from ..server import Server
from .programs import there

CONFIG = """
{listen}_port 127.0.0.1:{port} accel{secured} defaultsite=127.0.0.1:{origin} no-vhost
cache_peer 127.0.0.1 parent {origin} 0 no-query originserver no-digest name=origin
pid_filename {dir}/{name}.pid
cache_log {dir}/{name}.log
access_log none
cache_store_log none
coredump_dir {dir}
{user}
max_filedescriptors 16000
cache_mem 64 MB
maximum_object_size_in_memory 4 MB
memory_cache_mode always
client_db off
digest_generation off
acl everybody src all
http_access allow everybody
icp_port 0
visible_hostname squid.test
shutdown_lifetime 0 seconds
pinger_enable off
netdb_filename none
server_persistent_connections on
client_persistent_connections on
client_idle_pconn_timeout 10 minutes
{more}
"""

ICAP = """icap_enable on
icap_preview_enable on
icap_preview_size 1024
icap_persistent_connections on
icap_service s respmod_precache bypass=off {uri}
adaptation_access s allow everybody
"""


def start(bench, name="squid", *, icap=None, certificate=None):
    there("squid")
    os.chmod(bench.lab.directory, 0o777)
    values = {"dir": bench.lab.directory, "name": bench.lab.unique(name), "port": ports.take(),
              "origin": bench.origin.port, "user": "cache_effective_user proxy" if os.getuid() == 0 else "",
              "listen": "https" if certificate else "http", "secured": f" tls-cert={certificate}" if certificate else "",
              "more": ICAP.format(uri=icap) if icap else ""}
    path = bench.lab.write(values["name"] + ".conf", CONFIG.format(**values))
    return bench.opened(Server(bench.lab, "squid", values["name"], ["squid", "-N", "-f", path], values["port"],
                               secure=certificate is not None))
