"""An ICAP server that speaks TLS.

    ca = Authority(lab)                               of harness/certificates.py
    good = ca.leaf(*HOSTS)
    server = TlsIcapServer(lab, behave, good)         .reused: was each handshake a resumed one?
    Service("s", server.uri(), ca_file=ca.file)
"""

import socket
import ssl
import threading

from .icap import IcapServer

HOSTS = ("127.0.0.1", "localhost")


class TlsIcapServer(IcapServer):
    """`clients`: a file of authorities that clients must have a certificate of."""

    def __init__(self, lab, behave, certificate, clients=None, newest=None, **options):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate.file, certificate.key)
        if newest:
            self.context.maximum_version = newest
        if clients:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(clients)
        self.names = []
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self.reused = []
        self.refused = threading.Event()
        super().__init__(lab, behave, **options)

    def _run(self, connection, number):
        try:
            connection.socket = self.context.wrap_socket(connection.socket, server_side=True)
        except (ssl.SSLError, OSError):
            self.refused.set()
            connection.close()
            return
        self.reused.append(connection.socket.session_reused)
        super()._run(connection, number)

    def uri(self, name="service"):
        return f"icaps://{self.authority}/{name}"


def end_of_tls(connection):
    """Says that no more comes (close_notify), and closes."""
    try:
        connection.socket.settimeout(0.2)
        connection.socket.unwrap()
    except (OSError, ValueError):
        pass
    try:
        connection.socket.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
