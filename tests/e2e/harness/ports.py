"""Loopback ports that nobody else here uses.

A port is taken from below the range the kernel gives to outgoing connections, tried by binding it,
and reserved among concurrent runs by a locked file for as long as this process lives.
"""

import fcntl
import os
import random
import socket
import tempfile

FIRST, LAST = 12000, 32000
_locks = []


def _folder():
    path = os.path.join(tempfile.gettempdir(), f"retort-ports.{os.getuid()}")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def _lock(port):
    handle = open(os.path.join(_folder(), str(port)), "w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        return None
    return handle


def _bindable(port):
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                if family == socket.AF_INET6 and not has_ipv6():
                    continue
                return False
    return True


def take():
    """A port that was free a moment ago and stays reserved."""
    for _ in range(1000):
        port = random.randint(FIRST, LAST)
        handle = _lock(port)
        if handle is None:
            continue
        if _bindable(port):
            _locks.append(handle)
            return port
        handle.close()
    raise RuntimeError("no free port found")


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False
