"""A service such as a scanner for viruses, for IcapServer: it reads all of a body before it decides, as the test says.

    scanner = Scanner()
    icap = IcapServer(lab, scanner)
    ... scanner.read.wait(); scanner.decide(clean)
"""

import threading


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
