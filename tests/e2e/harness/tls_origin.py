"""An origin that speaks TLS.

    root = Authority(lab)                                   harness/certificates.py
    origin = TlsOrigin(lab, root.leaf("127.0.0.1"))         harness/raw_origin.py says how it answers
    origin.show(root.leaf("other.example.com"))             another certificate, from the next handshake on
    origin.names    the server name of each handshake; None: the client sent none
    origin.reused   whether each handshake resumed a session
    origin.shown    the certificate that each client showed, as Python's ssl module describes it
    end_of_tls(connection)                                  says that no more comes (close_notify)
"""

import socket
import ssl
import threading

from .raw_origin import RawOrigin, ok
from .tls import end_of_tls  # noqa: F401

__all__ = ["TlsOrigin", "end_of_tls"]


class TlsOrigin(RawOrigin):
    """`clients`: a file of authorities that clients must have a certificate of. `tls12`: nothing newer than TLS 1.2."""

    def __init__(self, lab, certificate, answer=ok, clients=None, tls12=False, protocols=None, **options):
        self.settings = clients, tls12, protocols
        self.names, self.reused, self.shown, self.protocols = [], [], [], []
        self.show(certificate)
        self.refused = threading.Event()
        super().__init__(lab, answer, **options)

    def show(self, certificate):
        """From the next handshake on."""
        clients, tls12, protocols = self.settings
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.file, certificate.key)
        if tls12:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
        if protocols:
            context.set_alpn_protocols(protocols)
        context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self.context = context

    def _run(self, connection, number):
        try:
            connection.socket = self.context.wrap_socket(connection.socket, server_side=True)
        except (ssl.SSLError, OSError):
            self.refused.set()
            connection.close()
            with self.lock:
                self.open.remove(connection)
            return
        self.reused.append(connection.socket.session_reused)
        self.shown.append(connection.socket.getpeercert())
        self.protocols.append(connection.socket.selected_alpn_protocol())
        super()._run(connection, number)

    def cut_connections(self):
        """An end without close_notify, on each connection."""
        with self.lock:
            for connection in self.open:
                socket.socket.shutdown(connection.socket, socket.SHUT_RDWR)

    def url(self, path="/"):
        return f"https://{self.authority}{path}"
