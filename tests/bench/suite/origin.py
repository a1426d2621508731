"""Where everything comes from: an nginx on the load's core, with files whose bytes tell their place.

A file of the path /hit/N or /miss/N has N bytes, 0123456789 over and over; what is below /hit may be
stored, what is below /miss may not. count() is how many requests came: so hits are known to be hits.
"""

import os
import re

from harness import ports, wire

from .machine import LOAD_CORE
from .server import Server

CONFIG = """
daemon off; master_process off;{user} pid {dir}/origin.pid; error_log {dir}/origin.log;
worker_rlimit_nofile 8192;
events {{ worker_connections 8192; }}
http {{
    access_log off; keepalive_requests 100000000; keepalive_timeout 600; tcp_nodelay on;
    open_file_cache max=10000 inactive=1h; open_file_cache_valid 1h;
    default_type text/plain; types {{ text/html html; image/jpeg jpg; application/octet-stream bin; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096 reuseport;
        root {dir}/site;
        location /hit {{ add_header Cache-Control "max-age=86400"; }}
        location /miss {{ add_header Cache-Control "no-store"; }}
        location = /count {{ stub_status; }}
    }}
}}
"""
DIGITS = b"0123456789"
PIECE = DIGITS * 100_000


def body(size):
    """The bytes of a file of that size, which is small enough to be held."""
    return (PIECE * (size // len(PIECE) + 1))[:size]


def nginx_user():
    return " user root;" if os.getuid() == 0 else ""


class Origin(Server):
    def __init__(self, lab):
        self.lab = lab
        port = ports.take()
        os.makedirs(lab.path("site"))
        config = lab.write("origin.conf", CONFIG.format(dir=lab.directory, port=port, user=nginx_user()))
        super().__init__(lab, "origin", "origin", ["nginx", "-e", lab.path("origin.log"), "-c", config], port,
                         core=LOAD_CORE)

    def has(self, path, content=None):
        """Makes a file; without content it has as many bytes as the path's last part says."""
        where = self.lab.path("site" + path)
        if os.path.exists(where):
            return path
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "wb") as out:
            if content is not None:
                out.write(content)
            else:
                write_digits(out, int(re.match(r"\d+", path.rsplit("/", 1)[1]).group(0)))
        return path

    def count(self):
        text = wire.fetch(self.address, "GET", "/count").text()
        return int(re.search(r"\n\s*\d+ \d+ (\d+)", text).group(1))


def write_digits(out, size):
    for _ in range(size // len(PIECE)):
        out.write(PIECE)
    out.write(PIECE[:size % len(PIECE)])


class Digits:
    """Takes the pieces of a body of any size and sees that each stands in its place."""

    def __init__(self):
        self.size = 0

    def take(self, piece):
        begin = self.size % len(DIGITS)
        if piece != PIECE[begin:begin + len(piece)]:
            raise AssertionError(f"a piece of {len(piece)} bytes at {self.size} is not what the origin has")
        self.size += len(piece)
