"""Retort and those it is compared with, one file each: start(bench, ...) gives a running Server.

Each is configured as somebody would who wants it fast and correct: one worker, 64 MB of cache in
memory, no access log, connections kept, room for 12,000 of them. What its file states is what docs/PERFORMANCE.md says.
"""

from . import h2o, haproxy, nginx, nghttpx, plain, retort, squid, trafficserver, varnish

CACHES = {"haproxy": haproxy, "nginx": nginx, "trafficserver": trafficserver, "varnish": varnish, "squid": squid}
LABELS = {"limit": "limit", "retort": "Retort", "haproxy": "HAProxy", "nginx": "nginx", "trafficserver": "ATS",
          "varnish": "Varnish", "squid": "Squid", "microhttpd": "libmicrohttpd", "retort+log": "Retort, access log",
          "retort-clear": "Retort, clear text", "retort-http1": "Retort, HTTP/1.1", "nginx-file": "nginx, file",
          "h2o": "h2o, file", "nghttpx": "nghttpx, no cache"}

__all__ = ["CACHES", "LABELS", "h2o", "nghttpx", "plain", "retort"]
