"""Squid: one process, everything in memory, no client database, no digest, no logs; ICAP where it is asked for."""

import os
import subprocess

from harness import ports

from ..server import Server
from .programs import there

ACCELERATOR = """
{listen}_port 127.0.0.1:{port} accel{secured} defaultsite=127.0.0.1:{origin} no-vhost
cache_peer 127.0.0.1 parent {origin} 0 no-query originserver no-digest name=origin
"""

BUMPING = """
http_port 127.0.0.1:{port} ssl-bump tls-cert={authority.both} generate-host-certificates=on dynamic_cert_mem_cache_size=16MB
sslcrtd_program {certificates} -s {dir}/{name}.certificates -M 16MB
acl first at_step SslBump1
ssl_bump peek first
ssl_bump bump all
tls_outgoing_options cafile={trusted}
host_verify_strict off
"""

CONFIG = """
{role}
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


CERTIFICATES = "/usr/lib/squid/security_file_certgen"


def launch(bench, name, role, secure=False, more="", **values):
    there("squid")
    os.chmod(bench.lab.directory, 0o777)
    values = {**values, "dir": bench.lab.directory, "name": bench.lab.unique(name), "port": ports.take(),
              "user": "cache_effective_user proxy" if os.getuid() == 0 else ""}
    path = bench.lab.write(values["name"] + ".conf", CONFIG.format(role=role.format(**values), more=more, **values))
    if role is BUMPING:
        folder = f"{values['dir']}/{values['name']}.certificates"
        subprocess.run([CERTIFICATES, "-c", "-s", folder, "-M", "16MB"], check=True, capture_output=True)
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", "proxy", folder], check=True)
    return bench.opened(Server(bench.lab, "squid", values["name"], ["squid", "-N", "-f", path], values["port"], secure=secure))


def start_intercepting(bench, origin, authority, trusted):
    """A forward proxy that opens TLS connections; `trusted` vouches for the origin's certificate."""
    return launch(bench, "squid-bump", BUMPING, authority=authority, trusted=trusted, certificates=CERTIFICATES)


def start(bench, name="squid", *, icap=None, certificate=None):
    return launch(bench, name, ACCELERATOR, secure=certificate is not None, more=ICAP.format(uri=icap) if icap else "",
                  origin=bench.origin.port, listen="https" if certificate else "http",
                  secured=f" tls-cert={certificate}" if certificate else "")
