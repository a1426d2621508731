"""A service such as a scanner for viruses, for IcapServer: it reads all of a body before it decides, as the test says.

    scanner = Scanner()
    icap = IcapServer(lab, scanner)
    ... scanner.read.wait(); scanner.decide(clean)

The same as a service inside the proxy:

    scanner = InsideScanner(lab, runs="thread", patience_after="50ms")
    proxy = Retort(lab, services=[scanner.service])
    ... scanner.decide("clean")
"""

import os
import threading

from .retort import Inside


class Scanner:
    """Reads all of a body, and decides when the test says what."""

    def __init__(self):
        self.read, self.decided, self.decision = threading.Event(), threading.Event(), None

    def __call__(self, icap, transaction):
        transaction.finish_body()
        self.read.set()
        self.decided.wait(60)
        return self.decision(icap, transaction)

    def decide(self, decision):
        self.decision = decision
        self.decided.set()


def clean(_icap, transaction):
    transaction.send_204()


def infected(_icap, transaction):
    transaction.send_200(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\n\r\n", b"infected")


def dies(_icap, _transaction):
    return True


class InsideScanner:
    """The module odd, which waits for a word in a FIFO once it has read all."""

    def __init__(self, lab, **options):
        path = lab.path(lab.unique("decision"))
        os.mkfifo(path)
        self.fifo = os.open(path, os.O_RDWR)
        self.service = Inside("scanner", lab.built("tests/e2e/modules/.libs/odd.so"), settings={"Do": "scan", "Word": path},
                              **{"bypass": False, "timeout": "60s", **options})

    def decide(self, word):
        """For one message: "clean" or "infected"."""
        os.write(self.fifo, word[:1].encode())
