#!/usr/bin/env python3
"""A slow site: each page takes 200 ms to make, as a page from a database does.

    site.py PORT

    /static...     may be kept for an hour
    /semi...       must be validated each time; to find out that nothing has changed takes 20 ms
    /dynamic...    is different each time
    /news...       may be kept for a second, and shown for a minute while a new one is made or the site is down
    /count         how many requests each of them got, as JSON
"""

import collections
import http.server
import json
import sys
import threading
import time

MADE, CHECKED = 0.2, 0.02
ETAG = '"1"'
FIELDS = {"static": "max-age=3600", "semi": "no-cache", "dynamic": "no-store",
          "news": "max-age=1, stale-while-revalidate=60, stale-if-error=60"}
TEXT = "<p>This page took a while.</p>\n" * 300


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    counts, lock = collections.Counter(), threading.Lock()

    def do_GET(self):
        kind = self.path.strip("/").split("/")[0].split("?")[0]
        if kind == "count":
            return self.answer(200, json.dumps(self.counts), "no-store")
        if kind not in FIELDS:
            return self.answer(404, "There is no such page.\n", "no-store")
        with self.lock:
            self.counts[kind] += 1
            number = self.counts[kind]
        if kind == "semi" and self.headers.get("If-None-Match") == ETAG:
            time.sleep(CHECKED)
            return self.answer(304, "", FIELDS[kind])
        time.sleep(MADE)
        return self.answer(200, f"<h1>{kind}, number {number}</h1>\n{TEXT}", FIELDS[kind], ETAG if kind == "semi" else None)

    def answer(self, status, text, cache_control, etag=None):
        body = text.encode()
        self.send_response(status)
        self.send_header("Cache-Control", cache_control)
        if etag or status == 304:
            self.send_header("ETag", ETAG)
        if status != 304:
            self.send_header("Content-Type", "application/json" if text.startswith("{") else "text/html")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        """The proxy has a log."""


class Site(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


Site(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
