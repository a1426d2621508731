"""Retort, as it comes, with one worker. Text for more sections of its configuration may be given."""

from harness import ports

from ..server import Server

CONFIG = """
workers = {workers}
listen "127.0.0.1:{port}" {{ mode = reverse }}
map "/" {{ origin = "http://127.0.0.1:{origin}/" }}
cache {{ memory = "{memory}" {cache} }}
client {{ max_connections = 12000  idle_timeout = "10m" }}
admin {{ listen = "{dir}/{name}.sock" }}
log_level = warn
{more}
"""

LOG = 'access_log "{dir}/{name}.access.log" {{ format = squid }}'


def start(bench, name="retort", *, kind="retort", workers=1, memory="512MB", cache="", more="", origin=None, log=False,
          **options):
    values = {"dir": bench.lab.directory, "name": bench.lab.unique(name), "port": ports.take(), "workers": workers,
              "memory": memory, "cache": cache, "origin": origin or bench.origin.port}
    if log:
        more += LOG.format(**values)
    path = bench.lab.write(values["name"] + ".conf", CONFIG.format(**values, more=more))
    return bench.opened(Server(bench.lab, kind, values["name"], [bench.lab.built("proxy/retort"), "-f", path],
                               values["port"], **options))
