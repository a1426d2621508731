"""The server of transparent.sh: answers HTTP on port 80 and HTTPS on port 443 with the address that the request came from.

    server.py CERTIFICATE-AND-KEY
"""

import http.server
import socket
import ssl
import sys
import threading


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6  # and IPv4


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = (self.client_address[0].removeprefix("::ffff:") + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=60")
        self.end_headers()
        self.wfile.write(body)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
secure = Server(("::", 443), Answer)
secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=secure.serve_forever, daemon=True).start()
Server(("::", 80), Answer).serve_forever()
