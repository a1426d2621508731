"""A server of a site. After GET /break its pages are errors (500), until GET /mend.

    server.py PORT
"""

import http.server
import sys

PORT = int(sys.argv[1])
broken = False  # pylint: disable=invalid-name


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global broken  # pylint: disable=global-statement
        if self.path in ("/break", "/mend"):
            broken = self.path == "/break"
        failed = broken and self.path != "/break"
        body = f"from {PORT}\n".encode()
        self.send_response(500 if failed else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Page).serve_forever()
