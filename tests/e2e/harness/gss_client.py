"""A client of GSSAPI that insists on mutual authentication, as a program of its own: libkrb5 reads its environment.

    gss_client.py HTTP@localhost

Prints a token in base64. For each line that it reads, the server's token in base64, it prints "complete" or why not. A session
ends with the first that is complete; those that are not leave it as it was.
"""

import base64
import ctypes
import sys

MUTUAL = 2
SPNEGO = b"\x2b\x06\x01\x05\x05\x02"


class Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_void_p)]


class Oid(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("elements", ctypes.c_void_p)]


class Session:
    def __init__(self, service):
        self.library = ctypes.CDLL("libgssapi_krb5.so.2")
        self.name, self.context = ctypes.c_void_p(), ctypes.c_void_p()
        self.elements = ctypes.create_string_buffer(SPNEGO, len(SPNEGO))
        self.mechanism = Oid(len(SPNEGO), ctypes.cast(self.elements, ctypes.c_void_p))
        kind = ctypes.c_void_p.in_dll(self.library, "GSS_C_NT_HOSTBASED_SERVICE")
        text, minor = self._buffer(service.encode()), ctypes.c_uint32()
        if self.library.gss_import_name(ctypes.byref(minor), ctypes.byref(text), kind, ctypes.byref(self.name)) != 0:
            raise SystemExit("gss_import_name")

    def _buffer(self, octets):
        self.kept = ctypes.create_string_buffer(octets, len(octets))
        return Buffer(len(octets), ctypes.cast(self.kept, ctypes.c_void_p))

    def step(self, answer=None):
        """What GSSAPI says, and the token to send."""
        minor, output = ctypes.c_uint32(), Buffer()
        given = self._buffer(answer) if answer is not None else None
        major = self.library.gss_init_sec_context(
            ctypes.byref(minor), None, ctypes.byref(self.context), self.name, ctypes.byref(self.mechanism), ctypes.c_uint32(MUTUAL),
            ctypes.c_uint32(0), None, ctypes.byref(given) if given else None, None, ctypes.byref(output), None, None)
        return major & 0xffffffff, ctypes.string_at(output.value, output.length) if output.length else b""


def main():
    session = Session(sys.argv[1])
    major, token = session.step()
    if major >> 16 != 0:
        raise SystemExit(f"gss_init_sec_context: {major:#x}")
    print(base64.b64encode(token).decode(), flush=True)
    for line in sys.stdin:
        major, _ = session.step(base64.b64decode(line))
        print("complete" if major == 0 else f"not complete: {major:#x}", flush=True)


if __name__ == "__main__":
    main()
