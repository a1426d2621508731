"""Inspected transactions by the admin plane: who may look at what."""

import json
import socket
import threading

from harness import ports
from harness.checks import contains, equal, lacks, until
from harness.icap import IcapServer
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service

TOKENS = {role: f"{role}-" + "0123456789abcdef" * 3 for role in ("operate", "admin")}


class Inspecting:
    """A proxy with a service whose operators and admins inspect."""

    def __init__(self, lab, **options):
        self.icap = IcapServer(lab)
        self.proxy = Retort(lab, services=[Service("s", self.icap.uri())], admin=("127.0.0.1", ports.take()), **options)
        self.proxy.write_tokens("".join(f"{role} {role} {token}\n" for role, token in TOKENS.items()))
        equal(self.proxy.admin("POST", "/reload").status, 200, "reload")

    def call(self, method, path, role="operate", expect=200):
        answer = self.proxy.admin(method, "/v1/inspect" + path, token=TOKENS[role])
        equal(answer.status, expect, f"{method} {path} by the role {role}: {answer.body}; status")
        return answer

    def list(self):
        return json.loads(self.call("GET", "").body)["transactions"]

    def ended(self, count):
        """The latest so many transactions, once they have ended."""
        until(lambda: len(self.list()) >= count and not any(one["active"] for one in self.list()), 10 * self.proxy.lab.patience,
              "inspected transactions that have ended")
        return self.list()[:count]


def test_the_inspection_of_a_transaction_masks_it(lab):
    """An operator inspects a request that takes long. Meanwhile an admin begins another inspection, with all secrets. What the
    operator's has recorded stays masked to its end, and the admin's stays the admins'."""
    go = threading.Event()

    def answer(connection, request):
        if "/slow" in request.start:
            go.wait(30)
        connection.send(b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=seekrit-2\r\nContent-Length: 2\r\n\r\nok")
        return True
    inspecting, origin = Inspecting(lab), RawOrigin(lab, answer)
    secret = {"Cookie": "a=seekrit-1"}
    inspecting.call("POST", "?transactions=5")
    slow = threading.Thread(target=lambda: inspecting.proxy.get(origin.url("/slow"), secret))
    slow.start()
    until(inspecting.list, 10 * lab.patience, "the slow request")
    inspecting.call("POST", "/stop")
    inspecting.call("POST", "?transactions=1&unmasked=yes", role="admin")
    go.set()
    slow.join()
    inspecting.proxy.get(origin.url("/quick"), secret)
    quick, slow = inspecting.ended(2)
    equal((slow["masked"], slow["exchange_count"], quick["masked"], quick["exchange_count"]), (True, 1, False, 1), "the two")
    masked = inspecting.call("GET", f"/transaction?id={slow['id']}").body
    lacks(masked, b"seekrit", "what the operator sees")
    contains(masked, b"Cookie: masked", "what the operator sees")
    equal(json.loads(masked)["exchanges"][0]["masked"], 1, "the exchange says so")
    inspecting.call("GET", f"/transaction?id={quick['id']}", expect=403)
    whole = inspecting.call("GET", f"/transaction?id={quick['id']}", role="admin").body
    for part in (b"seekrit-1", b"seekrit-2"):
        contains(whole, part, "what the admin sees")
    equal(json.loads(whole)["exchanges"][0].get("masked"), None, "the exchange says so")


def test_a_recording_beside_an_inspection(lab):
    """Both run at once, also while a tunnel that is inspected goes on; but no two of a kind."""
    far = socket.create_server(("127.0.0.1", 0))
    inspecting = Inspecting(lab, extra=f"connect_ports = {far.getsockname()[1]}\n")
    proxy = inspecting.proxy
    record = lambda: proxy.admin("POST", "/v1/icap/record", token=TOKENS["admin"])
    inspecting.call("POST", "?transactions=2")
    with proxy.wire() as client:
        target = f"127.0.0.1:{far.getsockname()[1]}"
        client.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        equal(client.response("CONNECT").status, 200, "CONNECT")
        until(inspecting.list, 10 * lab.patience, "the tunnel")
        begun = record()
        equal(begun.status, 200, f"a recording beside the inspection ({begun.body})")
        equal(record().status, 409, "a second recording")
        inspecting.call("POST", "?transactions=1", expect=409)
        inspecting.call("POST", "/stop")
        equal(inspecting.list()[0]["active"], True, "the tunnel goes on")
        inspecting.call("POST", "?transactions=1")
    far.close()
    inspecting.ended(1)


def test_each_of_both_has_the_exchange_in_its_way(lab):
    """Without secrets for the recording, with them for the inspection, and the whole body for both."""
    body = b"x" * 100_000
    origin = RawOrigin(lab, lambda connection, request: connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body) or True)
    inspecting = Inspecting(lab)
    admin = lambda path: inspecting.proxy.admin("POST", "/v1/icap/record" + path, token=TOKENS["admin"])
    number = json.loads(admin("").body)["recording"]
    inspecting.call("POST", "?transactions=1&unmasked=yes", role="admin")
    equal(inspecting.proxy.get(origin.url("/"), {"Cookie": "a=seekrit"}).body, body, "the response")
    one = inspecting.ended(1)[0]
    whole = inspecting.call("GET", f"/transaction?id={one['id']}", role="admin").body
    contains(whole, b"seekrit", "the inspection")
    exchange = json.loads(whole)["exchanges"][0]
    equal((exchange["virgin_length"], exchange["virgin_kept"]), (len(body), len(body)), "the body that the inspection has")
    record = admin(f"/take?recording={number}").body
    contains(record, b"Cookie: masked", "the recording")
    lacks(record, b"seekrit", "the recording")
    contains(record, body, "the recording")


def test_credentials_of_many_names(lab):
    """Programs name their credentials as they like, and operators see none of them."""
    names = ("Private-Token", "X-Vault-Token", "X-Amz-Security-Token", "Api-Key", "X-Session-Token", "Cf-Access-Jwt-Assertion")
    origin = RawOrigin(lab, lambda connection, request: connection.send(
        b"HTTP/1.1 200 OK\r\nX-Refresh-Token: seekrit\r\nSurrogate-Key: item-1\r\nContent-Length: 2\r\n\r\nok") or True)
    inspecting = Inspecting(lab)
    inspecting.call("POST", "?transactions=1")
    inspecting.proxy.get(origin.url("/"), {name: "seekrit" for name in names})
    seen = inspecting.call("GET", f"/transaction?id={inspecting.ended(1)[0]['id']}").body
    lacks(seen, b"seekrit", "what the operator sees")
    for name in (*names, "X-Refresh-Token"):
        contains(seen, f"{name}: masked".encode(), "what the operator sees")
    contains(seen, b"Surrogate-Key: item-1", "what the operator sees")


def test_the_client_of_an_inspection(lab):
    """An address is known in each of its spellings, and nothing else is taken."""
    origin, inspecting = RawOrigin(lab, lambda connection, request: connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") or True), Inspecting(lab)
    for wrong in ("foo", "127.0.0", "127.0.0.1:80", "10.0.0.0/8", "1" * 100, "%FF"):
        contains(inspecting.call("POST", f"?client={wrong}", expect=400).body, b"must be an IP address", wrong)
    inspecting.call("POST", "?transactions=1&client=2001:DB8:0::1")
    inspecting.proxy.get(origin.url("/"))
    equal(inspecting.list(), [], "transactions of another client")
    inspecting.call("POST", "/stop")
    inspecting.call("POST", "?transactions=1&client=::ffff:127.0.0.1")
    inspecting.proxy.get(origin.url("/"))
    equal([one["client"] for one in inspecting.ended(1)], ["127.0.0.1"], "clients")


def test_passwords_in_addresses(lab):
    """A URL with user info is refused (RFC 9110 4.2.4). Nobody reads the password in what tells of the request."""
    def read(url, inspecting):
        with inspecting.proxy.wire() as client:
            client.send(b"GET " + url + b" HTTP/1.1\r\nHost: retort.test\r\n\r\n")
            equal(client.response().status, 501 if url.startswith(b"ftp:") else 400, "status")
    inspecting = Inspecting(lab, extra='log_level = debug\naccess_log "%s" { format = combined }' % lab.path("combined.log"))
    inspecting.call("POST", "?transactions=100")
    targets = (b"http://bob:hunter2@retort.test/x", b"http://bob:hun/ter2@retort.test/x", b"ftp://bob:hunter2@retort.test/", b"/http://bob:hunter2@a/")
    for target in targets:
        read(target, inspecting)
    lines = inspecting.proxy.log(len(targets))
    equal([line["url"] for line in lines], ["http://retort.test/x", "http://retort.test/x", "ftp://retort.test/", "/http://a/"], "the access log")
    for one in inspecting.ended(len(targets)):
        lacks(one["url"], "ter2", "the list")
        lacks(inspecting.call("GET", f"/transaction?id={one['id']}").body, b"ter2", "the transaction")
    with open(lab.path("combined.log"), encoding="utf-8") as combined:
        lacks(combined.read(), "ter2", "the log in the combined format")
    lacks(inspecting.proxy.process.log(), "ter2", "the error log")
