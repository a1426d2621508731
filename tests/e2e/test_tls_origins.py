"""Origins over TLS: who is believed, what is kept apart, and that what was cut is never taken for whole."""

import time

from harness import ports
from harness.certificates import CLIENT, Authority, self_signed
from harness.checks import contains, equal, same_bytes, true, until
from harness.groups import group, named, state
from harness.icap import IcapServer
from harness.nginx import Nginx
from harness.origin import Origin
from harness.raw_origin import RawOrigin, ok, pattern
from harness.retort import Retort, Service
from harness.server import Server
from harness.suite import memcheck
from harness.tls_origin import TlsOrigin, end_of_tls
from harness.wire import Truncated


def share(lab):
    root = Authority(lab)
    return {"root": root, "leaf": root.leaf("127.0.0.1", "localhost"), "ca": {"ca_file": root.file}}


@memcheck
def test_bodies_of_all_sizes(lab, shared):
    def answer(connection, seen):
        size = int(seen.target.rpartition("=")[2])
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: max-age=60\r\n\r\n" % size + pattern(size))
    origin = TlsOrigin(lab, shared["leaf"], answer, protocols=["http/1.1"])
    proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
    for size in (0, 1, 16383, 16384, 16385, 100_000, 2_000_000):
        for _ in range(2):
            same_bytes(proxy.get(f"/x?n={size}").body, pattern(size), f"{size} bytes")
    equal(len(origin.requests), 7, "requests: the others are hits")
    equal(origin.accepted, 1, "connections")
    equal(origin.protocols, ["http/1.1"], "protocol")
    equal(proxy.counter("origin_tls_handshakes"), 1, "handshakes")


def test_large_uploads(lab, shared):
    body = pattern(3_000_000)
    origin = TlsOrigin(lab, shared["leaf"])
    proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
    equal(proxy.fetch("POST", "/up", body=body).status, 200, "status")
    same_bytes(origin.requests[0].body, body, "the body at the origin")
    equal(proxy.fetch("POST", "/up", {"Expect": "100-continue"}, body=body[:100_000]).status, 200, "status with Expect")


def test_absolute_urls(lab, shared):
    """In forward mode, with keys of their own: http and https of one host are two resources."""
    def answer(connection, seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: max-age=60\r\n\r\nhttps")
    origin = TlsOrigin(lab, shared["leaf"], answer)
    proxy = Retort(lab, origin=shared["ca"])
    for _ in range(2):
        equal(proxy.get(origin.url("/a")).text(), "https", "answer")
    equal(proxy.results("/a", 2), ["MISS", "HIT"], "results")
    equal(origin.requests[0].header("Host"), origin.authority, "Host")
    equal(origin.requests[0].target, "/a", "target")
    true(origin.names in ([], [None]), "an address is no server name")
    named_url = f"https://localhost:{origin.port}/b"
    equal(proxy.get(named_url).text(), "https", "by name")
    equal(origin.names[-1], "localhost", "server name")
    equal(proxy.get(f"http://{origin.authority}/a").status, 502, "clear text to the port of TLS is another URL")
    plain = Origin(lab)
    equal(proxy.get(f"https://{plain.authority}/a").status, 502, "TLS to a port of clear text")
    equal(plain.count("/a"), 0, "requests in clear text")


def test_words_for_failures(lab, shared):
    root, other = shared["root"], Authority(lab, "other")
    cases = [
        (root.leaf("www.example.com"), "127.0.0.1"),
        (root.leaf("127.0.0.1", days=-1), "expired"),
        (root.leaf("127.0.0.1", days=(2, 30)), "not valid"),
        (other.leaf("127.0.0.1"), "ca_file"),
        (self_signed(lab, "127.0.0.1"), "self-signed"),
    ]
    for certificate, words in cases:
        origin = TlsOrigin(lab, certificate)
        proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
        answer = proxy.get("/x")
        equal(answer.status, 502, "status")
        contains(answer.text(), words, "page")
        contains(answer.text(), "certificate", "page")
        contains(proxy.last(1)["error"], words, "log")
        equal(origin.requests, [], "requests")
        equal(proxy.counter("origin_tls_failures"), 1, "failures")
        equal(proxy.counter("origin_tls_unverified"), 1, "certificates not accepted")


def test_verify_off(lab, shared):
    origin = TlsOrigin(lab, self_signed(lab, "other.example"))
    proxy = Retort(lab, reverse={"/": origin.url()}, origin={"verify": False})
    equal(proxy.get("/x").status, 200, "status")
    contains(proxy.process.log(), "origin: verify is off", "warning")


def cut(framing, notify, version="1.1"):
    """Sends half of what it announces, or of what it means to send."""
    def answer(connection, seen):
        fields = {"length": b"Content-Length: 40000\r\n", "chunked": b"Transfer-Encoding: chunked\r\n", "none": b""}[framing]
        part = pattern(20000)
        connection.send(f"HTTP/{version} 200 OK\r\nCache-Control: max-age=3600\r\n".encode() + fields + b"\r\n")
        connection.send(b"%x\r\n%s\r\n" % (len(part), part) if framing == "chunked" else part)
        if notify:
            end_of_tls(connection)
        return True
    return answer


def test_what_was_cut_is_not_whole(lab, shared):
    """Whoever is on the way can close a connection, but can't say in the server's name that this is the end."""
    for framing, notify, version, whole in (("none", False, "1.1", False), ("none", False, "1.0", False),
                                            ("none", True, "1.0", True), ("none", True, "1.1", True),
                                            ("length", False, "1.1", False), ("length", True, "1.1", False),
                                            ("chunked", False, "1.1", False), ("chunked", True, "1.1", False)):
        what = f"framing {framing}, HTTP/{version}, close_notify: {notify}"
        origin = TlsOrigin(lab, shared["leaf"], cut(framing, notify, version))
        proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
        for count in (1, 2):
            try:
                got = len(proxy.get("/x", timeout=10 * lab.patience).body)
            except (Truncated, ConnectionError):
                got = None
            equal(got, 20000 if whole else None, what)
            equal(len(origin.requests), 1 if whole else count, f"{what}: what is not whole is not stored")
        equal(proxy.result("/x"), "HIT" if whole else "MISS", what)
        if not whole and not notify:
            contains(proxy.last()["error"], "close_notify", f"{what}: the log")


def test_idle_connections_that_end(lab, shared):
    """With a close_notify or without: the next request goes over a new connection."""
    for notify in (True, False):
        ends = []

        def answer(connection, seen):
            ok(connection, seen)
            if seen.target == "/first":
                if notify:
                    end_of_tls(connection)
                ends.append(1)
                return True
            return False
        origin = TlsOrigin(lab, shared["leaf"], answer)
        proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
        equal(proxy.get("/first").status, 200, "status")
        equal(proxy.get("/second").status, 200, "status")
        equal(origin.accepted, 2, "connections")


def test_resumption(lab, shared):
    """Sessions of TLS 1.3 are used once, those of TLS 1.2 again and again."""
    for tls12 in (False, True):
        origin = TlsOrigin(lab, shared["leaf"], lambda connection, seen: ok(connection, seen) or True, tls12=tls12)
        proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
        for _ in range(4):
            equal(proxy.get("/x").status, 200, "status")
        equal(origin.reused, [False, True, True, True], f"resumed, TLS 1.2: {tls12}")
        equal(proxy.counter("origin_tls_resumed"), 3, "counted")


class FailsToResume(TlsOrigin):
    """Of TLS 1.2; its second connection ends at the ClientHello, with those bytes."""

    def __init__(self, lab, certificate, last_words):
        self.last_words = last_words
        super().__init__(lab, certificate, lambda connection, seen: ok(connection, seen) or True, tls12=True)

    def _run(self, connection, number):
        if number != 2:
            super()._run(connection, number)
            return
        connection.socket.recv(4096)
        connection.socket.sendall(self.last_words)
        connection.close()
        with self.lock:
            self.open.remove(connection)


def test_a_failed_session_is_forgotten(lab, shared):
    """RFC 5246 7.2.2: "clients MUST forget any session-identifiers, keys, and secrets associated with a failed connection"."""
    for last_words in (b"\x15\x03\x03\x00\x02\x02\x28", b""):  # the alert handshake_failure, and nothing
        origin = FailsToResume(lab, shared["leaf"], last_words)
        proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
        equal(proxy.get("/1").status, 200, "status")
        proxy.get("/2")
        equal(proxy.get("/3").status, 200, "status")
        equal(origin.reused[:2], [False, False], f"resumed, after {last_words}")


def test_groups_keep_apart(lab, shared):
    """Two groups with the same server and another trust share neither connections nor sessions."""
    other = Authority(lab, "other")
    origin = TlsOrigin(lab, shared["leaf"])
    extra = (group([origin], "good", ca_file=shared["root"].file) + group([origin], "bad", ca_file=other.file, max_failures=0) +
             group([origin], "blind", verify=False))
    proxy = Retort(lab, reverse={"/good": "good", "/bad": "bad", "/blind": "blind"}, extra=extra)
    for _ in range(2):
        equal(proxy.get("/blind/x").status, 200, "without verification")
        equal(proxy.get("/good/x").status, 200, "trusted")
        equal(proxy.get("/bad/x").status, 502, "not trusted")
    equal(len(origin.reused), 2, "handshakes that were completed")
    equal(origin.reused, [False, False], "resumed")
    contains(state(proxy, "bad")[origin.url("")]["last_error"], "certificate", "last error")


def test_group_of_both_schemes(lab, shared):
    """With health checks: a server whose certificate is not accepted is down."""
    plain, good = RawOrigin(lab, named(b"plain")), TlsOrigin(lab, shared["leaf"], named(b"good"))
    bad = TlsOrigin(lab, self_signed(lab, "127.0.0.1"), named(b"bad"))
    extra = group([plain, good, bad], health_check="/ok", check_interval="50ms", max_failures=1, **shared["ca"])
    proxy = Retort(lab, reverse={"/": "web"}, extra=extra)
    until(lambda: state(proxy)[bad.url("")]["state"] == "down", 10 * lab.patience, "the bad one is down")
    contains(state(proxy)[bad.url("")]["last_error"], "self-signed", "last error")
    equal({proxy.get("/x").text() for _ in range(8)}, {"plain", "good"}, "who answers")
    equal(bad.requests, [], "requests at the bad one")


def test_client_certificate(lab, shared):
    """By nginx: required, and its subject as the server sees it."""
    root = shared["root"]
    ours = root.leaf(cn="the proxy", usage=CLIENT)
    extra = f"""
        ssl_certificate {shared["leaf"].file};  ssl_certificate_key {shared["leaf"].key};
        ssl_client_certificate {root.file};  ssl_verify_client on;
        location / {{ add_header X-Subject "$ssl_client_s_dn" always;  return 200 "in"; }}"""
    nginx = Nginx(lab, lab.path("."), extra=extra, tls=True)
    target = f"https://{nginx.authority}/"
    good = Retort(lab, reverse={"/": target}, origin={**shared["ca"], "certificate": ours.file, "certificate_key": ours.key})
    answer = good.get("/x")
    equal((answer.status, answer.text()), (200, "in"), "with a certificate")
    contains(answer.header("X-Subject"), "CN=the proxy", "whose it is")
    without = Retort(lab, reverse={"/": target}, origin=shared["ca"])
    equal(without.get("/x").status, 400, "without one nginx answers")
    strict = TlsOrigin(lab, shared["leaf"], clients=root.file)
    refused = Retort(lab, reverse={"/": strict.url()}, origin=shared["ca"])
    answer = refused.get("/x")
    equal(answer.status, 502, "without one, status")
    contains(answer.text(), "set certificate and certificate_key", "page")


def test_parent_over_tls(lab, shared):
    """A proxy behind TLS: for whole URLs, for CONNECT, and with its own trust."""
    origin = Origin(lab)
    parent = TlsOrigin(lab, shared["leaf"], named(b"parent"))
    extra = group([parent], "up", **shared["ca"]) + "parent all { origins = up }\n"
    proxy = Retort(lab, extra=extra)
    equal(proxy.get("http://one.example/a").text(), "parent", "answer")
    equal((parent.requests[0].target, parent.requests[0].header("Host")), ("http://one.example/a", "one.example"), "request")

    def tunnel(connection, seen):
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.send(b"from the far end")
        end_of_tls(connection)
        return True
    tunneller = TlsOrigin(lab, shared["leaf"], tunnel)
    extra = group([tunneller], "up", **shared["ca"]) + "parent all { origins = up }\n" + f"connect_ports = {{ {origin.port} }}\n"
    proxy = Retort(lab, extra=extra)
    wire = proxy.wire()
    wire.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n".encode())
    equal(wire.response("CONNECT").status, 200, "CONNECT")
    equal(wire.read_to_end(), b"from the far end", "tunnel")


def test_https_by_a_parent(lab, shared):
    """The parent opens a tunnel: it sees host and port, never the request."""
    origin = TlsOrigin(lab, shared["leaf"])
    name = f"localhost:{origin.port}"
    parent = Retort(lab, name="parent", extra=f'name = "parent"\nconnect_ports = {{ {origin.port} }}\n')
    up = "http://%s:%d" % parent.forward
    extra = group([up], "up", credentials="proxy:seekrit") + "parent all { origins = up }\n"
    proxy = Retort(lab, extra=extra, origin=shared["ca"])
    for path in ("/a", "/b"):
        equal(proxy.get(f"https://{name}{path}").status, 200, "status")
    equal(proxy.fetch("POST", f"https://{name}/c", body=pattern(100_000)).status, 200, "status")
    same_bytes(origin.requests[-1].body, pattern(100_000), "body")
    equal([(seen.target, seen.header("Host"), seen.header("Proxy-Authorization")) for seen in origin.requests[:2]],
          [("/a", name, None), ("/b", name, None)], "requests at the origin")
    equal(origin.names, ["localhost"] * origin.accepted, "server name")
    equal(origin.requests[0].header("Via"), "1.1 retort", "Via: the parent is not a hop of it")
    # What fails behind the parent is not the parent's fault.
    bad = TlsOrigin(lab, self_signed(lab, "localhost"))
    answer = proxy.get(f"https://localhost:{bad.port}/x")
    equal(answer.status, 502, "a port that the parent does not allow")
    contains(answer.text(), "did not open the tunnel", "page")
    equal(state(proxy, "up")[up]["failed"], 0, "failures of the parent")
    proxy.stop()
    equal({entry["method"] for entry in parent.entries(name)}, {"CONNECT"}, "what the parent was asked")


def test_https_by_a_parent_over_tls(lab, shared):
    """TLS with the origin inside TLS with the parent."""
    origin = TlsOrigin(lab, shared["leaf"], answer=lambda connection, seen: connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\nCache-Control: no-store\r\n\r\n" + pattern(300_000)))

    port = ports.take()
    parent = Retort(lab, name="parent", extra=f"""connect_ports = {{ {origin.port} }}
listen "127.0.0.1:{port}" {{ mode = forward  local_destinations = allow  certificates = {{ "{shared["leaf"].both}" }} }}
""")
    extra = group([f"https://localhost:{port}"], "up", **shared["ca"]) + "parent all { origins = up }\n"
    proxy = Retort(lab, extra=extra, origin=shared["ca"])
    for _ in range(3):
        same_bytes(proxy.get(f"https://127.0.0.1:{origin.port}/a").body, pattern(300_000), "body")
    equal(proxy.fetch("POST", f"https://127.0.0.1:{origin.port}/up", body=pattern(2_000_000)).status, 200, "status")
    same_bytes(origin.requests[-1].body, pattern(2_000_000), "an upload")
    true(origin.accepted <= 2, "connections are kept")
    proxy.stop()
    equal({entry["method"] for entry in parent.entries(f":{origin.port}")}, {"CONNECT"}, "what the parent was asked")


def test_reqmod_changes_the_scheme(lab, shared):
    """http becomes https, and the other way round."""
    secure, plain = TlsOrigin(lab, shared["leaf"], named(b"secure")), RawOrigin(lab, named(b"plain"))

    def behave(_icap, transaction):
        target = secure.url("/s") if "/up" in transaction.http_request.start else plain.url("/p")
        transaction.send_head(transaction.request_head(start=f"GET {target} HTTP/1.1"), body=False)
    icap = IcapServer(lab, behave, methods="REQMOD")
    proxy = Retort(lab, origin=shared["ca"], services=[Service("s", icap.uri(), point="reqmod_precache", bypass=False)])
    equal(proxy.get(plain.url("/up")).text(), "secure", "http to https")
    equal(proxy.get(secure.url("/down")).text(), "plain", "https to http")
    equal(([seen.target for seen in secure.requests], [seen.target for seen in plain.requests]), (["/s"], ["/p"]), "targets")


def test_locations(lab, shared):
    """reverse_map: the origin's own https URL leads back to the proxy; http at the same host and port is another place."""
    def answer(connection, seen):
        scheme = seen.target.rpartition("/")[2]
        place = f"{scheme}://{origin.authority}/base/to"
        connection.send(f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {place}\r\n\r\n".encode())
    origin = TlsOrigin(lab, shared["leaf"], answer)
    proxy = Retort(lab, reverse={"/app/": origin.url("/base/")}, origin=shared["ca"])
    equal(proxy.get("/app/https").header("Location"), "/app/to", "https")
    equal(proxy.get("/app/http").header("Location"), f"http://{origin.authority}/base/to", "http")


def test_reload_with_another_trust(lab, shared):
    """What was opened under the old trust is not used under the new one; an unchanged trust keeps its connections."""
    lab.needs("admin")
    origin = TlsOrigin(lab, shared["leaf"])
    trusted = lab.path("trusted.pem")

    def trust(*authorities):
        with open(trusted, "wb") as out:
            out.write(b"".join(each.pem() for each in authorities))
    trust(shared["root"])
    proxy = Retort(lab, reverse={"/": origin.url()}, origin={"ca_file": trusted})
    equal(proxy.get("/x").status, 200, "before")
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get("/x").status, 200, "after a reload that changes nothing")
    equal(origin.accepted, 1, "connections")
    trust(Authority(lab, "other"))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get("/x").status, 502, "under the new trust")
    equal(len(origin.requests), 2, "requests")
    trust(shared["root"])
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get("/x").status, 200, "the old trust again")
    with open(trusted, "w", encoding="ascii") as out:
        out.write("nothing")
    contains(proxy.reload().text(), "it must contain certificates in PEM", "a file without certificates is refused")
    equal(proxy.get("/x").status, 200, "the old configuration stays")


@memcheck
def test_upgrade(lab, shared):
    """A WebSocket, or whatever else the two agree on."""
    def answer(connection, seen):
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello ")
        connection.send(connection.read_some().upper())
        end_of_tls(connection)
        return True
    origin = TlsOrigin(lab, shared["leaf"], answer)
    proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
    with proxy.wire(reverse=True) as wire:
        wire.send(b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        answer = wire.response()
        equal((answer.status, answer.text()), (101, ""), "status")
        wire.send(b"world")
        equal(wire.read_to_end(), b"hello WORLD", "both ways")


def test_what_the_cache_does_over_tls(lab, shared):
    """Revalidation, in the background too, and parts."""
    def answer(connection, seen):
        fields = b'Cache-Control: max-age=0, stale-while-revalidate=60\r\nETag: "1"\r\nAccept-Ranges: bytes\r\n'
        if seen.target == "/must":
            fields = b'Cache-Control: no-cache\r\nETag: "1"\r\n'
        if seen.header("If-None-Match"):
            connection.send(b"HTTP/1.1 304 Not Modified\r\n" + fields + b"\r\n")
        else:
            connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5000\r\n"
                            + fields + b"\r\n" + pattern(5000))
    origin = TlsOrigin(lab, shared["leaf"], answer)
    proxy = Retort(lab, reverse={"/": origin.url()}, origin=shared["ca"])
    for _ in range(2):
        same_bytes(proxy.get("/must").body, pattern(5000), "body")
    equal(proxy.results("/must", 2), ["MISS", "REVALIDATED"], "results")
    same_bytes(proxy.get("/must", {"Range": "bytes=100-199"}).body, pattern(100, 100), "a part")
    proxy.get("/later")
    time.sleep(1.1)
    equal(proxy.get("/later").status, 200, "served stale")
    until(lambda: [seen for seen in origin.requests if seen.target == "/later" and seen.header("If-None-Match")],
          10 * lab.patience, "a request in the background")
    equal(origin.accepted, 1, "connections")


def test_handshakes_that_stall(lab, shared):
    """504, and the server goes down like one that can't be reached."""
    silent = Server(lab, lambda connection, _number: connection.read_to_end())
    url = f"https://{silent.authority}"
    extra = group([url], max_failures=1, down_min="30s", down_max="30s")
    proxy = Retort(lab, reverse={"/": "web"}, extra=extra, origin={**shared["ca"], "connect_timeout": "200ms"})
    answer = proxy.get("/x")
    equal(answer.status, 504, "status")
    contains(answer.text(), "did not finish the TLS handshake in time", "page")
    equal(state(proxy)[url]["state"], "down", "the server")
    contains(state(proxy)[url]["last_error"], "TLS handshake", "last error")
    equal(proxy.counter("origin_tls_failures"), 1, "failures")
