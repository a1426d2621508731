"""nginx: proxy_cache in /dev/shm (or on disk), files kept open, sendfile, connections to the origin kept."""

from harness import ports

from ..machine import LOAD_CORE, SERVER_CORE
from ..origin import nginx_user
from ..server import Server
from .programs import there

CONFIG = """
daemon off; master_process on; worker_processes 1;{user} pid {dir}/{name}.pid; error_log {dir}/{name}.log crit;
events {{ worker_connections 16000; multi_accept on; }}
http {{
    access_log off; keepalive_requests 100000000; http2_max_concurrent_streams 256; keepalive_timeout 600; tcp_nodelay on; sendfile on;
    open_file_cache max=10000 inactive=1h; open_file_cache_valid 1h;
    client_body_temp_path {dir}/{name}.nb; proxy_temp_path {cache}-temp; fastcgi_temp_path {dir}/{name}.nf;
    uwsgi_temp_path {dir}/{name}.nu; scgi_temp_path {dir}/{name}.ns;
    proxy_cache_path {cache} keys_zone=c:64m max_size=4g inactive=1d use_temp_path=off;
    proxy_buffers 16 16k; proxy_buffer_size 16k;
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{port}{secured} backlog=4096;{certificate}
        location /file/ {{ root {root}; }}
        location / {{
            proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_cache c; proxy_max_temp_file_size 2048m;
        }}
    }}
}}
"""

SECURED = """
        ssl_certificate {certificate}; ssl_certificate_key {certificate}; ssl_protocols TLSv1.2 TLSv1.3;"""


def start(bench, name="nginx", *, on_disk=False, certificate=None, beside=False, http2=False, root="/nonexistent"):
    """`beside`: on the load's core, since it is not measured itself. What is below /file/ stands in `root`."""
    there("nginx")
    name = bench.lab.unique(name)
    cache = bench.lab.path(name + "-cache") if on_disk else bench.in_memory(name)
    values = {"dir": bench.lab.directory, "name": name, "port": ports.take(), "origin": bench.origin.port,
              "cache": cache, "user": nginx_user(), "root": root,
              "secured": (" ssl" if certificate else "") + (" http2" if http2 else ""),
              "certificate": SECURED.format(certificate=certificate) if certificate else ""}
    path = bench.lab.write(name + ".conf", CONFIG.format(**values))
    return bench.opened(Server(bench.lab, "nginx", name, ["nginx", "-e", bench.lab.path(name + ".log"), "-c", path],
                               values["port"], secure=certificate is not None, core=LOAD_CORE if beside else SERVER_CORE))
