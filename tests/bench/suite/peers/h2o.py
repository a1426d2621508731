"""h2o: files of a directory, which it serves faster than any proxy a cache."""

from harness import ports

from ..server import Server
from .programs import there

CONFIG = """
num-threads: 1
max-connections: 12000
http2-idle-timeout: 600
hosts:
  default:
    listen:
      port: {port}
      host: 127.0.0.1
      ssl: {{ certificate-file: {certificate}, key-file: {certificate} }}
    paths:
      /file: {{ file.dir: {root}/file }}
"""


def start(bench, name="h2o", *, certificate, root):
    there("h2o")
    name, port = bench.lab.unique(name), ports.take()
    path = bench.lab.write(name + ".conf", CONFIG.format(port=port, certificate=certificate, root=root))
    return bench.opened(Server(bench.lab, "h2o", name, ["h2o", "-c", path], port, secure=True))
