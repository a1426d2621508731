"""A server of the harness in threads: accepts, hands each connection to a function, counts.

The function runs in a thread of its own; what it raises counts as a finding unless it is about a
peer that went away.
"""

import contextlib
import socket
import threading
import traceback

from . import wire

GONE = (ConnectionError, BrokenPipeError, TimeoutError, wire.Truncated, wire.Silence)


class Connection(wire.Wire):
    """The server's side of an accepted socket."""

    def __init__(self, accepted, timeout=20):  # pylint: disable=super-init-not-called
        self.socket = accepted
        self.socket.settimeout(timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout = timeout
        self.buffer = b""
        self.eof = self.reset = False


class Server:
    """`remote`: the host where it listens (harness.remote)."""

    def __init__(self, lab, serve, address="127.0.0.1", receive_buffer=None, remote=None):
        address = remote.address if remote else address
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with remote or contextlib.nullcontext():
            self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.listener.bind((address, 0))
        self.listener.listen(256)
        self.host, self.port = self.listener.getsockname()[:2]
        self.serve = serve
        self.lock = threading.Lock()
        self.accepted = 0
        self.open = []
        self.failures = []
        self.stopping = False
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        lab.opens(self)

    @property
    def address(self):
        return (self.host, self.port)

    @property
    def authority(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def _accept(self, listener):
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.accepted += 1
                number = self.accepted
                connection = Connection(accepted)
                self.open.append(connection)
            threading.Thread(target=self._run, args=(connection, number), daemon=True).start()

    def _run(self, connection, number):
        try:
            self.serve(connection, number)
        except GONE:
            pass
        except OSError:
            if not self.stopping:
                self.failures.append(traceback.format_exc())
        except Exception:  # pylint: disable=broad-except
            self.failures.append(traceback.format_exc())
        finally:
            connection.close()
            with self.lock:
                if connection in self.open:
                    self.open.remove(connection)

    def close_listener(self):
        """New connections are refused from now on."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def listen_again(self):
        """Listens on the same port as before."""
        self.listener = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(self.address)
        self.listener.listen(256)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def reset_connections(self):
        with self.lock:
            for connection in self.open:
                connection.abort()

    def stop(self):
        self.stopping = True
        self.close_listener()
        with self.lock:
            for connection in self.open:
                try:
                    connection.socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def findings(self):
        return [f"{type(self).__name__} of the test failed:\n{failure}" for failure in self.failures]
