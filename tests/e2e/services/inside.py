"""The other host: retort with the services inside, between a client and an origin of the tests.

Each call makes one HTTP request. The service that it names stands in a section of its own with the arguments and the preview that it
names, and a class sends the request through that service alone. What comes back looks as an ICAP client would see it:

- RESPMOD: the origin sends the response that was given, and the client gets what the service makes of it.
- REQMOD: behind the service a second one of the tests sees the request, tells it, and answers it. Who has it answered by the service
  gets that answer.

The status is 204 for a message that is as it was, where ICAP would have allowed a 204.
"""

import base64
import hashlib
import itertools
import os
import re
import threading

from harness import wire
from harness.icap import IcapServer
from harness.lab import Lab as Peers
from harness.raw_origin import RawOrigin
from harness.retort import Inside, Retort, Service, section
from harness.services import module_path, settings_of
from services.icap import Response, parse_head, pieces_of

MOST_SECTIONS = 12
OWN_FIELDS = ("via", "date", "age", "connection", "keep-alive", "transfer-encoding", "cache-status")  # of the proxy
USER = "<jo>"  # the only one, with the password "secret"
PREVIEW_MOST = 1 << 20


class InsideHost:
    is_icap = False

    def __init__(self, lab, runs):
        self.lab, self.runs = lab, runs
        self.peers = Peers(lab.build, lab.options.valgrind, lab.options.keep, "services-inside")
        self.origin = RawOrigin(self.peers, self.respond)
        self.witness = IcapServer(self.peers, self.see, methods="REQMOD", preview=0)
        self.directives = directives(lab)
        self.users = self.peers.write("users", password_line(USER))
        self.numbers, self.calls = itertools.count(1), {}
        self.sections, self.lock = {}, threading.Lock()
        self.proxy = ServicesProxy(self)

    def connect(self, timeout=60):
        return InsideConnection(self, timeout)

    def close(self):
        return self.peers.close()

    def section_of(self, service, preview):
        """The number of the class that leads there. A process for each size of a preview would be too many."""
        key = (service, (preview or 0) if self.runs != "process" else 1024 * bool(preview))
        with self.lock:
            if key not in self.sections:
                if len(self.sections) >= MOST_SECTIONS:
                    del self.sections[next(iter(self.sections))]
                self.sections[key] = next(self.numbers)
                try:
                    self.proxy.take_sections()
                except AssertionError:
                    del self.sections[key]
                    raise
            else:
                self.sections[key] = self.sections.pop(key)  # the latest is the last to go
            return self.sections[key]

    def respond(self, connection, request):
        """The origin: a call may have no body, and its sender may wait for what comes out at the other end."""
        call = self.calls[int(request.header("X-Test-Call"))]
        connection.send(call.virgin_head())
        if request.method != "HEAD":
            call.send_body(connection)

    def see(self, _icap, transaction):
        call = self.calls[int(transaction.http_request.header("X-Test-Call"))]
        body = transaction.finish_body()
        call.seen = (transaction.http_request, body if transaction.has_body else None)
        transaction.send_200(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", b"seen")


def password_line(user):
    return "%s:{SHA}%s\n" % (user, base64.b64encode(hashlib.sha1(b"secret").digest()).decode())


def directives(lab):
    """What the lab's c-icap has in its configuration, by service."""
    found = {"adremover": "", "gzip": "", "gray": "", "inject": ""}
    for line in lab.directives().splitlines():
        name = line.partition(".")[0]
        if name in found and not re.match(r"\w+\.(OptionsTTL|MaxConnections) ", line):
            option, *values = line.split(" ")
            found[name] += "".join("%s %s\n" % (option, value) for value in values)
    return found


class ServicesProxy(Retort):
    def __init__(self, host):
        self.inside = host
        super().__init__(host.peers, name="services", start_seconds=10 * host.lab.patience)

    def text(self, **changes):
        inside, origin = self.inside, f"http://{self.inside.origin.authority}"
        lines = ["workers = 1",
                 *(f'listen "{address}:{port}" {{ mode = {mode} allow = {{ "0.0.0.0/0", "::/0" }} trusted_proxies = {{ "127.0.0.1" }} {more} }}'
                   for (address, port), mode, more in ((self.forward, "forward", "local_destinations = allow"), (self.reverse, "reverse", ""))),
                 f'access_log "{self.log_path}" {{ format = json }}', section("admin", {"listen": self.admin_listen()}),
                 section("map", {"origin": origin, "preserve_host": True}, "/"),
                 f'authenticator some {{ type = basic  file = "{inside.users}" }}',
                 "url_class known { request_header = 'Proxy-Authorization:' }", "access known { action = authenticate  with = some }",
                 "access all { action = allow }",
                 f'origins up {{ servers = "{origin}" }}', "parent all { origins = up }", "policy all { cache = never }",
                 Service("witness", inside.witness.uri("witness"), "reqmod_precache", bypass=False, timeout="60s").text()]
        for (service, preview), number in inside.sections.items():
            lines += self.section(service, preview, number)
        return "\n".join(lines) + "\n"

    def section(self, service, preview, number):
        name, _, arguments = service.partition("?")
        point = "reqmod_precache" if name == "adremover" else "respmod_precache"
        options = {"include": ["X-Client-Username"], "runs": self.inside.runs, "timeout": "60s", **({"arguments": arguments} if arguments else {}),
                   "preview": str(min(preview or 0, PREVIEW_MOST)), "keep": str(PREVIEW_MOST)}
        module = module_path(self.inside.peers, name, "")
        return [Inside(f"s{number}", module, point, bypass=False, settings=settings_of(name, self.inside.directives[name]), **options).text(),
                f"url_class c{number} {{ request_header = 'X-Test-Service: ^{number}$' }}",
                f"adapt c{number} {{ services = {{ s{number}{', witness' if name == 'adremover' else ''} }} }}"]

    def take_sections(self):
        self.write_config(self.text())
        answer = self.reload()
        assert answer.status == 200, answer.body


class Call:
    """One message on its way."""

    def __init__(self, response, body, preview, piece, pieces):
        self.response, self.seen, self.sent = response, None, []
        self.has_body = body is not None or pieces is not None
        self.pieces = pieces if pieces is not None else pieces_of(body or b"", piece, preview)
        self.known = response is not None and re.search(r"^content-length:", response, re.I | re.M)

    def virgin_head(self):
        lines = self.response.rstrip("\n").split("\n")
        if not self.known:
            lines.append("Transfer-Encoding: chunked")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def send_body(self, peer):
        for piece in self.pieces:
            self.sent.append(piece)
            if piece:
                peer.send(piece if self.known else b"%x\r\n%s\r\n" % (len(piece), piece))
        if not self.known:
            peer.send(b"0\r\n\r\n")


class InsideConnection:
    def __init__(self, host, timeout):
        self.host, self.timeout, self.wires, self.buffer = host, timeout, {}, b""

    def close(self):
        for each in self.wires.values():
            each.close()
        self.wires = {}

    @staticmethod
    def mode(target):
        return "reverse" if target.startswith("/") else "forward"

    def wire(self, target):
        mode = self.mode(target)
        if mode not in self.wires:
            self.wires[mode] = self.host.proxy.wire(reverse=mode == "reverse", timeout=self.timeout)
        return self.wires[mode]

    def call(self, method, service, request, response=None, body=None, preview=None, allow204=False,
             client_ip=None, piece=4096, on_data=None, pieces=None, user=None):
        """As services.icap.Connection.call; of what only ICAP has there is nothing here."""
        http_method, target, _ = request.split("\n")[0].split(" ")
        number = self.host.section_of(service, preview)
        call = Call(response, body, preview, piece, pieces)
        key = next(self.host.numbers)
        self.host.calls[key] = call
        parts = []
        try:
            peer = self.wire(target)
            self.send_request(peer, request, (number, key, client_ip, user), body if method == "REQMOD" else None)
            got = peer.response(http_method, lambda data: (parts.append(data), on_data and on_data(data)))
        finally:
            del self.host.calls[key]
        if (got.header("Connection") or "").lower() == "close":
            self.wires.pop(self.mode(target)).close()
        body_got = b"".join(parts)
        if method == "REQMOD" and call.seen:
            return self.seen(call, request, body, allow204 or preview is not None)
        return self.answered(call, got, body_got, method == "RESPMOD" and (allow204 or preview is not None))

    @staticmethod
    def send_request(peer, request, terms, body):
        number, key, client_ip, user = terms
        lines = request.rstrip("\n").split("\n")
        names = [line.partition(":")[0].lower() for line in lines]
        lines += [] if "host" in names else ["Host: " + re.match(r"\w+ (?:http://)?([^/ ]*)", request).group(1)]
        lines += ["X-Test-Service: %d" % number, "X-Test-Call: %d" % key]
        lines += ["X-Forwarded-For: " + client_ip] if client_ip else []
        lines += ["Proxy-Authorization: Basic " + base64.b64encode((user + ":secret").encode()).decode()] if user else []
        lines += ["Transfer-Encoding: chunked"] if body is not None and "content-length" not in names else []
        peer.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if body is not None:
            peer.send(body if "content-length" in names else wire.chunked(body))

    @staticmethod
    def seen(call, request, body, allowed):
        head, body_seen = call.seen
        result = Response()
        result.http, result.body = head.start, body_seen
        for name, value in head.fields:
            result.http_headers.setdefault(name.lower(), []).append(value)
        if request.split(" ")[1].startswith("/"):  # the proxy tells services the whole URL of each request
            authority = re.match(r"\w+ http://([^/ ]+)", head.start).group(1)
            result.http = head.start.replace("http://" + authority, "")
            result.http_headers["host"] = [authority]
        line, fields = parse_head(request.rstrip("\n").replace("\n", "\r\n").encode())
        same = line == head.start and body_seen == body and all(result.http_headers.get(n) == v for n, v in fields.items())
        result.status = 204 if same and allowed else 200
        return result

    @staticmethod
    def answered(call, got, body, allowed):
        result = Response()
        result.http, result.body = got.start, body
        for name, value in got.fields:
            if name.lower() not in OWN_FIELDS:
                result.http_headers.setdefault(name.lower(), []).append(value)
        line, fields = parse_head((call.response or "").rstrip("\n").replace("\n", "\r\n").encode())
        lengths = result.http_headers.pop("content-length", None)
        same = (line, fields) == (got.start, {**result.http_headers, **({"content-length": lengths} if call.known else {})})
        if lengths:
            result.http_headers["content-length"] = lengths
        same = same and body == b"".join(call.sent)
        result.status = 204 if same and allowed else 200
        return result
