"""nginx as an origin with real content, and as a tool to judge the harness against."""

import grp
import os
import pwd

from . import ports, wire
from .process import Process

CONFIG = """
daemon off;
master_process off;
pid {directory}/nginx.pid;
error_log {directory}/nginx.error.log;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
    access_log {directory}/nginx.access.log;
    client_body_temp_path {directory}/nginx.body;
    proxy_temp_path {directory}/nginx.proxy;
    fastcgi_temp_path {directory}/nginx.fastcgi;
    uwsgi_temp_path {directory}/nginx.uwsgi;
    scgi_temp_path {directory}/nginx.scgi;
    types {{
        text/html html;  text/plain txt;  text/css css;  application/javascript js;
        image/jpeg jpg jpeg;  image/gif gif;  image/png png;
    }}
    keepalive_requests 100000;
    server {{
        listen 127.0.0.1:{port} backlog=1024{tls};
        root {root};
        add_header Cache-Control "max-age=3600";
        {extra}
    }}
}}
"""


class Nginx:
    """`tls`: True, or what else the listener gets, as " ssl http2"."""

    def __init__(self, lab, root, extra="", name="nginx", tls=False):
        self.lab = lab
        self.port = ports.take()
        self.authority = f"127.0.0.1:{self.port}"
        directory = lab.path(lab.unique(name))
        os.makedirs(directory)
        self.access_log = os.path.join(directory, "nginx.access.log")
        config = lab.write(f"{os.path.basename(directory)}/nginx.conf",
                           user_line() + CONFIG.format(directory=directory, port=self.port, root=root, extra=extra,
                                                         tls=" ssl" if tls is True else tls or ""))
        self.process = Process(lab, os.path.basename(directory),
                               ["nginx", "-e", os.path.join(directory, "nginx.error.log"), "-c", config])
        lab.opens(self)
        self.process.wait_listening(("127.0.0.1", self.port))

    def url(self, path="/"):
        return f"http://{self.authority}{path}"

    def get(self, path, **options):
        return wire.fetch(("127.0.0.1", self.port), "GET", path, host=self.authority, **options)

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.process.findings()


def user_line():
    """Keeps nginx, when started by root, from changing to a user who may not read our files."""
    if os.getuid() != 0:
        return ""
    return f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(0).gr_name};\n"
