"""The programmable origin (tests/e2e/origin/origin.c): its answers are written in the URL."""

import json
import urllib.parse

from . import wire
from .process import Process
from .raw_origin import pattern


class Origin:
    def __init__(self, lab, address="127.0.0.1", remote=None):
        self.host = remote.address if remote else address
        self.process = Process(lab, lab.unique("origin"),
                               (remote.under if remote else []) + [lab.built("tests/e2e/origin/origin"), self.host],
                               environment=lab.environment())
        self.process.wait_ready(lambda: "port " in self.process.log())
        self.port = int(self.process.log().split("port ")[1].split()[0])
        lab.opens(self)

    @property
    def address(self):
        return (self.host, self.port)

    @property
    def authority(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, path="/", **arguments):
        return f"http://{self.authority}{self.target(path, **arguments)}"

    @staticmethod
    def target(path="/", **arguments):
        """target("/bytes", n=5, h=["A: b"]) is /bytes?n=5&h=A%3A%20b"""
        query = urllib.parse.urlencode(arguments, doseq=True, quote_via=urllib.parse.quote)
        return path + ("?" + query if query else "")

    def count(self, path):
        """How many requests the path has had, asked past the proxy."""
        answer = wire.fetch(self.address, "GET", self.target("/count", of=path))
        return int(answer.body)

    @staticmethod
    def body(length):
        return pattern(length)

    def stop(self):
        self.process.stop()

    def findings(self):
        return self.process.findings()


def echoed(response):
    """What /echo says it was sent; headers as pairs, names in lower case."""
    seen = json.loads(response.body)
    seen["headers"] = [(name.lower(), value) for name, value in seen["headers"]]
    seen["body"] = bytes.fromhex(seen["body"])
    seen["header"] = lambda name: ", ".join(v for k, v in seen["headers"] if k == name.lower()) or None
    return seen
