"""Watches what a running Retort delivers, and takes servers that fail too often out of use for a while.

It reads the event stream (GET /v1/events), counts the answers of each server, and drains a server by the API of settings
(POST /v1/settings, as "retortctl set" does) when too many of its answers are errors. After a while it gives the server its
requests back. A start for your own rules: Decision is all that knows them.

    guard.py SOCKET GROUP [--errors 0.5] [--answers 10] [--window 10] [--pause 30]

Only Python's standard library is needed. The guard never drains the last server in use: errors are better than nothing.
"""

import argparse
import collections
import http.client
import json
import socket
import sys
import time


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Api:
    """The admin plane. What it refuses is an OSError with its reason."""

    def __init__(self, path):
        self.path = path

    def call(self, method, page, body=None):
        connection = Unix(self.path, 10)
        try:
            connection.request(method, page, None if body is None else json.dumps(body), {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise OSError(f"{method} {page}: {answer.status} {text.decode(errors='replace').strip()}")
            return json.loads(text)
        finally:
            connection.close()

    def events(self):
        """Each transaction that ends; None after at most ten seconds without one. Ends with the stream."""
        connection = Unix(self.path, 30)  # a comment comes every ten seconds
        try:
            connection.request("GET", "/v1/events")
            answer = connection.getresponse()
            if answer.status != 200:
                raise OSError(f"GET /v1/events: {answer.status} {answer.read(1000).decode(errors='replace').strip()}")
            kind = None
            while line := answer.readline(1 << 17):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data" and kind is None:
                    yield json.loads(value)
                elif name == "":
                    kind = None
                    yield None
        finally:
            connection.close()


class Decision:
    """Which server is to be drained, by what was seen of it lately."""

    def __init__(self, options):
        self.options = options
        self.seen = collections.defaultdict(lambda: collections.deque(maxlen=1000))

    def take(self, server, failed, now):
        seen = self.seen[server]
        seen.append((now, failed))
        while seen[0][0] < now - self.options.window:
            seen.popleft()
        errors = sum(failed for _, failed in seen)
        return len(seen) >= self.options.answers and errors >= self.options.errors * len(seen)

    def forget(self, server):
        self.seen.pop(server, None)


class Guard:
    def __init__(self, options):
        self.options = options
        self.api = Api(options.socket)
        self.decision = Decision(options)
        self.drained = {}  # server: when it gets its requests back
        self.urls = {}     # server: what settings call it

    def servers(self):
        """What events call them: HOST:PORT, and what settings call them: the URL."""
        groups = self.api.call("GET", "/v1/origins")["origins"]
        return {server["url"].split("://")[-1]: server["url"] for group in groups if group["name"] == self.options.group for server in group["servers"]}

    def option(self, url):
        return f"origins.{self.options.group}.servers[{url}]"

    def drain(self, server):
        known = self.servers()
        if server not in known or set(known) <= {server, *self.drained}:
            return
        self.api.call("POST", "/v1/settings", {self.option(known[server]): "drain"})
        self.drained[server] = time.monotonic() + self.options.pause
        self.urls[server] = known[server]
        print(f"{server}: drained", flush=True)

    def give_back(self):
        for server, end in list(self.drained.items()):
            if time.monotonic() >= end:
                self.api.call("POST", "/v1/settings", {self.option(self.urls[server]): None})
                del self.drained[server]
                self.decision.forget(server)
                print(f"{server}: in use again", flush=True)

    def watch(self):
        print("watching", flush=True)
        for event in self.api.events():
            self.give_back()
            if event is None or event["origin"] == "-" or event["origin"] in self.drained:
                continue
            failed = event["status"] == 0 or event["status"] >= 500
            if self.decision.take(event["origin"], failed, time.monotonic()):
                self.drain(event["origin"])


def main():
    parser = argparse.ArgumentParser(description="drains servers that fail too often")
    parser.add_argument("socket", help="admin.listen of retort")
    parser.add_argument("group", help="the title of the section origins")
    parser.add_argument("--errors", type=float, default=0.5, help="the share of errors from which a server is drained (0.5)")
    parser.add_argument("--answers", type=int, default=10, help="not before so many answers (10)")
    parser.add_argument("--window", type=float, default=10, help="seconds that count (10)")
    parser.add_argument("--pause", type=float, default=30, help="seconds until a server is tried again (30)")
    guard = Guard(parser.parse_args())
    while True:  # a restart or a takeover ends the stream
        try:
            guard.watch()
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            print(f"{error}; again in a second", file=sys.stderr, flush=True)
        time.sleep(1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
