"""Retort: as it comes, with one worker, 64 MB of memory and its admin plane.

Text for more sections of its configuration may be given. server.admin is the socket of the admin plane.
"""

import json
import os

from harness import ports, wire

from ..server import Server

CONFIG = """
workers = {workers}
listen "127.0.0.1:{port}" {{ mode = reverse{secured} }}
map "/" {{ origin = "http://127.0.0.1:{origin}/" }}
cache {{ memory = "{memory}" {cache} }}
client {{ max_connections = 12000  idle_timeout = "10m" }}
admin {{ listen = "{dir}/{name}.sock" }}
log_level = warn
{more}
"""

LOG = 'access_log "{dir}/{name}.access.log" {{ format = squid }}'


def start(bench, name="retort", *, kind="retort", workers=1, memory="64MB", cache="", more="", origin=None, log=False,
          certificate=None, **options):
    values = {"dir": bench.lab.directory, "name": bench.lab.unique(name), "port": ports.take(), "workers": workers,
              "memory": memory, "cache": cache, "secured": f' certificates = {{ "{certificate}" }}' if certificate else "", "origin": origin or bench.origin.port}
    if log:
        more += LOG.format(**values)
    path = bench.lab.write(values["name"] + ".conf", CONFIG.format(**values, more=more))
    server = bench.opened(Server(bench.lab, kind, values["name"], [bench.lab.built("proxy/retort"), "-f", path],
                                 values["port"], secure=certificate is not None,
                                 **{"environment": bench.lab.environment(), **options}))
    server.admin = bench.lab.path(values["name"] + ".sock")
    return server


FORWARD = """
workers = 1
listen "127.0.0.1:{port}" {{ mode = forward  local_destinations = allow }}
connect_ports = {{ {origin} }}
authority {{ certificate = "{authority.file}"  key = "{authority.key}" }}
intercept all {{ action = bump }}
origin {{ ca_file = "{trusted}" }}
cache {{ memory = "64MB" }}
client {{ max_connections = 12000 }}
log_level = warn
"""


def start_intercepting(bench, origin, authority, trusted):
    """A forward proxy that opens TLS connections to the port `origin`, whose certificate the file `trusted` vouches for."""
    values = {"name": bench.lab.unique("retort-bump"), "port": ports.take()}
    path = bench.lab.write(values["name"] + ".conf",
                           FORWARD.format(**values, origin=origin, authority=authority, trusted=trusted))
    return bench.opened(Server(bench.lab, "retort", values["name"], [bench.lab.built("proxy/retort"), "-f", path],
                               values["port"]))


def start_on_disk(bench, name="retort-disk", *, memory=8 << 20, size="4GB", **options):
    """With a volume in a directory of its own: server.volume is its file."""
    directory = bench.lab.path(bench.lab.unique("volume"))
    os.makedirs(directory)
    server = start(bench, name, memory=f"{memory >> 20}MB", cache=f'disk "{directory}" {{ size = "{size}" }}', **options)
    server.volume = os.path.join(directory, "retort.cache")
    return server


def counters(server):
    """What /status of its admin plane says; the socket may come a moment after the listeners."""
    server.process.wait_ready(lambda: os.path.exists(server.admin))
    return json.loads(wire.fetch(server.admin, "GET", "/status", host="localhost").body)["counters"]
