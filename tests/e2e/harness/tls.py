"""Certificates made for a test, and an ICAP server that speaks TLS.

    ca = Authority(lab)
    good = ca.certificate("good")                     for 127.0.0.1 and localhost
    server = TlsIcapServer(lab, behave, good)         .reused: was each handshake a resumed one?
    Service("s", server.uri(), ca_file=ca.file)
"""

import socket
import ssl
import subprocess
import threading

from .icap import IcapServer

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
HOSTS = "IP:127.0.0.1,DNS:localhost"


class Certificate:
    def __init__(self, file, key):
        self.file, self.key = file, key


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30)


def self_signed(lab, name):
    made = Certificate(lab.path(name + ".pem"), lab.path(name + ".key"))
    openssl("req", "-x509", *KEY, "-keyout", made.key, "-out", made.file, "-subj", "/CN=" + name, "-days", "30",
            "-addext", "subjectAltName=" + HOSTS)
    return made


class Authority:
    def __init__(self, lab, name="ca"):
        self.lab = lab
        made = self_signed(lab, name)
        self.file, self.key = made.file, made.key

    def certificate(self, name, hosts=HOSTS, days=30):
        made = Certificate(self.lab.path(name + ".pem"), self.lab.path(name + ".key"))
        request = self.lab.path(name + ".csr")
        extensions = self.lab.write(name + ".ext", "subjectAltName=" + hosts)
        openssl("req", *KEY, "-keyout", made.key, "-out", request, "-subj", "/CN=" + name)
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.key, "-CAcreateserial",
                "-extfile", extensions, "-days", str(days), "-out", made.file)
        return made


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
