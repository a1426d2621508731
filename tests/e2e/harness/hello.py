"""The first bytes of a TLS client, made by hand, and what a server says to them.

    hello = Hello(name=b"a.test,DNS:b.test")          any bytes, also those that no library would send
    wire.send_pieces(records(hello.message()), 1)     byte by byte
    wire.send(records(hello.message(), size=100))     in many records
    flight = server_flight(wire)                      flight.alert, or flight.certificates (DER, the leaf first)

A Hello offers TLS 1.2 alone, unless `versions` says otherwise: there the server's certificate is not encrypted, so that a
test sees the leaf for a name without a handshake of its own. Native is the whole of a handshake by the OpenSSL library, with
what Python's ssl does not offer: any name, renegotiation, KeyUpdate.
"""

import ctypes
import os
import struct

from . import wire as wires

TLS12, TLS13 = 0x0303, 0x0304
HANDSHAKE, ALERT = 22, 21
CLIENT_HELLO, SERVER_HELLO, CERTIFICATE, SERVER_HELLO_DONE = 1, 2, 11, 14
# Suites with a certificate of ECDSA, and of RSA; of TLS 1.3.
ECDSA_SUITES, RSA_SUITES, TLS13_SUITES = (0xC02B, 0xC02C, 0xCCA9), (0xC02F, 0xC030, 0xCCA8), (0x1301, 0x1302, 0x1303)
ECDSA_SCHEMES, RSA_SCHEMES = (0x0403, 0x0503), (0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601)
ALERTS = {10: "unexpected_message", 22: "record_overflow", 40: "handshake_failure", 42: "bad_certificate", 47: "illegal_parameter",
          48: "unknown_ca", 50: "decode_error", 70: "protocol_version", 80: "internal_error", 109: "missing_extension",
          112: "unrecognized_name", 116: "certificate_required", 120: "no_application_protocol"}


def vector(data, width):
    """`data` with its length in front, in `width` bytes."""
    return len(data).to_bytes(width, "big") + data


def numbers(values):
    return b"".join(struct.pack("!H", value) for value in values)


def extension(kind, data):
    return struct.pack("!H", kind) + vector(data, 2)


class Hello:
    """`name`: the host name of the SNI extension; None: no such extension. `more`: extensions as bytes, put last."""

    def __init__(self, name=None, *, alpn=(), versions=(), suites=ECDSA_SUITES + RSA_SUITES, schemes=ECDSA_SCHEMES + RSA_SCHEMES,
                 padding=0, more=b""):
        self.name, self.alpn, self.versions = name, alpn, versions
        self.suites, self.schemes, self.padding, self.more = suites, schemes, padding, more

    def extensions(self):
        yield extension(0xFF01, b"\0")
        if self.name is not None:
            yield extension(0, vector(b"\0" + vector(self.name, 2), 2))
        yield extension(10, vector(numbers((0x001D, 0x0017)), 2))
        yield extension(11, vector(b"\0", 1))
        yield extension(13, vector(numbers(self.schemes), 2))
        if self.alpn:
            yield extension(16, vector(b"".join(vector(name, 1) for name in self.alpn), 2))
        if self.versions:
            yield extension(43, vector(numbers(self.versions), 1))
            yield extension(51, vector(numbers((0x001D,)) + vector(os.urandom(32), 2), 2))
        if self.padding:
            yield extension(21, b"\0" * self.padding)
        yield self.more

    def message(self):
        body = (struct.pack("!H", TLS12) + os.urandom(32) + vector(os.urandom(32), 1) + vector(numbers(self.suites), 2)
                + b"\1\0" + vector(b"".join(self.extensions()), 2))
        return bytes([CLIENT_HELLO]) + vector(body, 3)


def record(data, kind=HANDSHAKE, version=0x0301):
    return struct.pack("!BH", kind, version) + vector(data, 2)


def records(message, size=16384):
    """A handshake message in records of at most `size` bytes each."""
    return b"".join(record(message[start:start + size]) for start in range(0, len(message), size))


class Flight:
    """What a server said: its handshake messages, or its alert's name."""

    def __init__(self):
        self.messages, self.alert, self.ended = {}, None, False
        self.version = None

    @property
    def certificates(self):
        if CERTIFICATE not in self.messages:
            return []
        data, found = self.messages[CERTIFICATE][3:], []
        while data:
            length = int.from_bytes(data[:3], "big")
            found.append(data[3:3 + length])
            data = data[3 + length:]
        return found

    def answered(self):
        return SERVER_HELLO in self.messages


def server_flight(wire, timeout=None):
    """Reads until ServerHelloDone (of TLS 1.2), an alert, encrypted records, or the end."""
    flight, pending = Flight(), b""
    wire.socket.settimeout(timeout or wire.timeout)
    while True:
        try:
            kind, version, length = struct.unpack("!BHH", wire.read_bytes(5))
            data = wire.read_bytes(length)
        except wires.Truncated:
            flight.ended = True
            return flight
        flight.version = version
        if kind == ALERT:
            flight.alert = ALERTS.get(data[1], str(data[1]))
            return flight
        if kind != HANDSHAKE:
            return flight
        pending += data
        while len(pending) >= 4 and len(pending) >= 4 + int.from_bytes(pending[1:4], "big"):
            length = int.from_bytes(pending[1:4], "big")
            flight.messages[pending[0]] = pending[4:4 + length]
            pending = pending[4 + length:]
        if SERVER_HELLO_DONE in flight.messages:
            return flight


def say_hello(wire, hello, size=16384):
    wire.send(records(hello.message(), size))
    return server_flight(wire)


_ssl = None


def library():
    global _ssl  # pylint: disable=global-statement
    if _ssl is None:
        _ssl = ctypes.CDLL("libssl.so.3")
        for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
            getattr(_ssl, name).restype = ctypes.c_void_p
        _ssl.SSL_CTX_ctrl.argtypes = _ssl.SSL_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_char_p]
        for name in ("SSL_CTX_new", "SSL_new", "SSL_CTX_free", "SSL_free", "SSL_connect", "SSL_do_handshake", "SSL_renegotiate"):
            getattr(_ssl, name).argtypes = [ctypes.c_void_p]
        _ssl.SSL_set_fd.argtypes = _ssl.SSL_key_update.argtypes = _ssl.SSL_get_error.argtypes = [ctypes.c_void_p, ctypes.c_int]
        _ssl.SSL_read.argtypes = _ssl.SSL_write.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    return _ssl


class Native:
    """A client by libssl itself over a connected wire. It verifies nothing."""

    def __init__(self, wire, name=None, newest=None):
        lib = library()
        self.wire, self.lib = wire, lib
        wire.socket.setblocking(True)
        self.context = lib.SSL_CTX_new(lib.TLS_client_method())
        self.ssl = lib.SSL_new(self.context)
        if newest:
            lib.SSL_ctrl(self.ssl, 124, newest, None)  # SSL_CTRL_SET_MAX_PROTO_VERSION
        if name is not None:
            lib.SSL_ctrl(self.ssl, 55, 0, name)  # SSL_CTRL_SET_TLSEXT_HOSTNAME
        lib.SSL_set_fd(self.ssl, wire.socket.fileno())
        self.connected = lib.SSL_connect(self.ssl) == 1

    def write(self, data):
        return self.lib.SSL_write(self.ssl, data, len(data))

    def read(self, length=65536):
        """b"" at the end and after an error."""
        buffer = ctypes.create_string_buffer(length)
        got = self.lib.SSL_read(self.ssl, buffer, length)
        return buffer.raw[:max(got, 0)]

    def key_update(self):
        """Asks the server to change its keys too; False when the connection is broken."""
        return self.lib.SSL_key_update(self.ssl, 1) == 1 and self.lib.SSL_do_handshake(self.ssl) == 1

    def renegotiate(self):
        """True when the server went along."""
        return self.lib.SSL_renegotiate(self.ssl) == 1 and self.lib.SSL_do_handshake(self.ssl) == 1

    def close(self):
        self.lib.SSL_free(self.ssl)
        self.lib.SSL_CTX_free(self.context)
        self.wire.close()
