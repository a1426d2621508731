"""The PROXY protocol: headers that load balancers send, and headers that the proxy sends to origins."""

import socket
import ssl
import struct

from harness import ports
from harness.certificates import Authority
from harness.checks import contains, equal, lacks, one_of, true, until
from harness.haproxy import HAProxy
from harness.icap import IcapServer, unchanged
from harness.nginx import Nginx
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import Truncated, Wire, request

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
V1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 1234 80\r\n"


def v2(source="192.0.2.7", destination="198.51.100.1", ports_=(1234, 80), command=0x21, facts=b""):
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    body = b"".join(socket.inet_pton(family, each) for each in (source, destination)) + struct.pack("!HH", *ports_) + facts
    return SIGNATURE + struct.pack("!BBH", command, 0x21 if ":" in source else 0x11, len(body)) + body


class Announced:
    """A proxy with listeners that demand headers. Loopback but for 127.0.0.9 may send them."""

    def __init__(self, lab, *modes, more="", client=None, origin=None, allow='"192.0.2.0/24", "2001:db8::/32", "127.0.0.0/8"',
                 trusted='"127.0.0.0/29"', reverse=None, **options):
        self.lab = lab
        self.origin = origin or RawOrigin(lab)
        self.ports = [ports.take() for _ in modes]
        sections = "".join(f'listen "127.0.0.1:{port}" {{ {mode} proxy_protocol = {{ {trusted} }} allow = {{ {allow} }} }}\n'
                           for port, mode in zip(self.ports, modes))
        self.proxy = Retort(lab, reverse={"/": reverse or self.origin.url()}, extra=sections + more, client=client, **options)

    def connect(self, first=b"", listener=0, source=None):
        wire = Wire(("127.0.0.1", self.ports[listener]), source=source, timeout=10 * self.lab.patience)
        if first:
            wire.send(first)
        return wire

    def status(self, first, target="/", listener=0, source=None):
        """None: the connection was closed without an answer."""
        with self.connect(first + request("GET", target, host="a.test"), listener, source) as wire:
            try:
                return wire.response().status
            except (Truncated, ConnectionError):
                return None

    def closes(self, first, shut=False):
        with self.connect(first) as wire:
            if shut:
                wire.socket.shutdown(socket.SHUT_WR)
            try:
                return wire.socket.recv(1) == b""
            except ConnectionResetError:
                return True

    def client(self, count=1):
        return self.proxy.last(count)["client"]


@memcheck
def test_headers_name_the_client(lab):
    site = Announced(lab, "mode = reverse")
    for number, (header, client) in enumerate((
            (V1, "192.0.2.7"), (b"PROXY TCP6 2001:db8::7 2001:db8::1 1 2\r\n", "2001:db8::7"),
            (b"PROXY TCP6 ::ffff:192.0.2.8 ::ffff:198.51.100.1 1 2\r\n", "192.0.2.8"), (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
            (v2(), "192.0.2.7"), (v2("2001:db8::7", "2001:db8::1"), "2001:db8::7"), (v2("::ffff:192.0.2.8", "::1"), "192.0.2.8"),
            (v2(command=0x20), "127.0.0.1"), (v2(facts=b"\1\0\2h2\x20\0\5\1\0\0\0\0"), "192.0.2.7"),
            (SIGNATURE + b"\x21\x31\0\xd8" + bytes(216), "127.0.0.1")), 1):
        equal(site.status(header), 200, f"status behind {header!r}")
        equal(site.client(number), client, f"the client by {header!r}")
    equal(site.proxy.counter("proxy_headers"), 10, "headers")
    equal([each.target for each in site.origin.requests], ["/"] * 10, "what reached the origin")


def test_allow_lists_go_by_the_header(lab):
    site = Announced(lab, "mode = reverse", allow='"192.0.2.7", "2001:db8::7"')
    equal(site.status(V1), 200, "a client who may")
    equal(site.status(v2("192.0.2.8")), 403, "a client who may not")
    equal(site.status(v2("2001:db8::7", "::1")), 200, "a client who may, IPv6")
    equal(site.status(b"PROXY UNKNOWN\r\n"), 403, "the load balancer itself")


def test_headers_are_for_load_balancers_only(lab):
    site = Announced(lab, "mode = reverse")
    equal(site.status(V1, source="127.0.0.9"), None, "an address that may not send headers")
    equal(site.status(b"", source="127.0.0.9"), None, "the same without a header")
    equal(site.proxy.counter("proxy_headers_untrusted"), 2, "untrusted")
    with site.proxy.wire(reverse=True) as wire:
        wire.send(V1 + request("GET", "/", host="a.test"))
        equal(wire.response().status, 400, "a header for a listener that takes none")


def test_shares_of_connections_go_by_the_header(lab):
    """Each client that a load balancer names has its own. What others say of a client does not count against it."""
    site = Announced(lab, "mode = reverse", client={"max_connections_per_client": 3})
    ask = request("GET", "/", host="a.test")
    forged = [site.connect(V1 + ask, source="127.0.0.9") for _ in range(5)]
    equal([wire.read_to_end() for wire in forged], [b""] * 5, "forged headers")
    with site.proxy.wire(reverse=True) as wire:
        wire.send(V1 + ask)
        equal(wire.response().status, 400, "a header at a listener that takes none")
    held = [site.connect(V1 + ask) for _ in range(3)]
    equal([wire.response().status for wire in held], [200] * 3, "the share of a client")
    equal(site.status(V1), None, "one more of it")
    equal(site.proxy.counter("client_share_rejected"), 1, "counted")
    equal(site.status(v2("192.0.2.8")), 200, "another client behind the same load balancer")
    equal([site.status(v2("2001:db8::%x" % i, "::1")) for i in range(1, 4)], [200] * 3, "addresses of a network, one after the other")
    held += [site.connect(v2("2001:db8::%x" % i, "::1") + ask) for i in range(1, 4)]
    equal([wire.response().status for wire in held[3:]], [200] * 3, "addresses of a network, at once")
    equal(site.status(v2("2001:db8::9", "::1")), None, "one more of the network")
    held[0].close()
    until(lambda: site.status(V1) == 200, 5 * lab.patience, "one is closed")
    for wire in held:
        wire.close()


def test_headers_are_not_optional(lab):
    site = Announced(lab, "mode = reverse", client={"header_timeout": "300ms"})
    bad = (b"", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", V1.replace(b"1234", b"70000"), V1[:-2] + b"\n", V1.lower(),
           v2(command=0x22), v2(command=0x31), v2(facts=b"\1\0\5h2"), SIGNATURE + b"\x21\x11\xff\xff", b"PROXY TCP4 " + b"1" * 120)
    for number, header in enumerate(bad[1:], 1):
        equal(site.status(header), None, f"status behind {header!r}")
        until(lambda count=number: site.proxy.counter("proxy_headers_bad") == count, 5 * lab.patience, f"count after {header!r}")
    equal(site.closes(b""), True, "no header ends the connection after header_timeout")
    equal(site.closes(V1[:20]), True, "half a header ends the connection after header_timeout")
    equal(site.closes(V1[:20], shut=True), True, "half a header that ends")
    equal(site.proxy.counter("proxy_headers_bad"), len(bad) + 2, "bad headers")
    equal(site.origin.requests, [], "what reached the origin")
    contains(site.proxy.process.log(), "listen.proxy_protocol", "the log")


def test_headers_in_pieces(lab):
    """The header ends where it ends, wherever the bytes are cut."""
    site = Announced(lab, "mode = reverse")
    for header in (V1, v2(facts=b"\1\0\2h2")):
        whole = header + request("GET", "/cut", host="a.test")
        for at in range(1, len(header) + 4):
            with site.connect(whole[:at]) as wire:
                wire.send(whole[at:])
                equal(wire.response().status, 200, f"cut at {at}")
    true(all(each.target == "/cut" for each in site.origin.requests), "what reached the origin")


def test_headers_in_front_of_tls(lab):
    authority = Authority(lab)
    certificate = authority.leaf("a.test")
    site = Announced(lab, f'mode = reverse certificates = {{ "{certificate.both}" }}')
    for header, ip in ((V1, "192.0.2.7"), (v2("2001:db8::7", "::1"), "2001:db8::7")):
        with socket.create_connection(("127.0.0.1", site.ports[0]), timeout=10 * lab.patience) as raw:
            raw.sendall(header)
            context = ssl.create_default_context(cafile=authority.file)
            with context.wrap_socket(raw, server_hostname="a.test") as secure:
                secure.sendall(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
                contains(secure.recv(4096), b"200 OK", "the answer")
        until(lambda ip=ip: any(each["client"] == ip for each in site.proxy.log()), 5, f"a log line of {ip}")
    equal(site.status(v2()), 400, "HTTP behind the header, where TLS is due")


def test_headers_for_transparent_listeners(lab):
    """The destination is that of the header."""
    origin = RawOrigin(lab)
    site = Announced(lab, "mode = transparent local_destinations = allow", origin=origin)
    target = v2("192.0.2.7", "127.0.0.1", (1234, origin.port))
    with site.connect(target + request("GET", "/there", host=origin.authority)) as wire:
        equal(wire.response().status, 200, "status")
    equal(origin.requests[-1].target, "/there", "what reached the origin")
    equal(site.client(), "192.0.2.7", "the client")
    one_of(site.status(v2(command=0x20)), (400, 403, 421), "status of what the load balancer itself asks")
    own = v2("192.0.2.7", "127.0.0.1", (1234, site.ports[0]))
    one_of(site.status(own), (400, 403, 421), "status for the listener itself")
    equal(len(origin.requests), 1, "requests at the origin")


def test_services_see_the_client(lab):
    icap = IcapServer(lab, unchanged)
    site = Announced(lab, "mode = forward local_destinations = allow",
                     services=[Service("watch", icap.uri("watch"), include=["X-Client-IP"])])
    with site.connect(v2() + request("GET", site.origin.url("/"))) as wire:
        equal(wire.response().status, 200, "status")
    equal(icap.transactions[-1].request.header("X-Client-IP"), "192.0.2.7", "X-Client-IP")


def test_haproxy_in_front(lab):
    """HAProxy sends each version; its health checks (LOCAL) are no clients."""
    site = Announced(lab, "mode = reverse")
    to = ("127.0.0.1", site.ports[0])
    for number, option in enumerate(("send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"), 1):
        balancer = HAProxy(lab, option, to)
        with Wire(balancer.address, source="127.0.0.77") as wire:
            for _ in range(2):
                wire.send(request("GET", "/", host="a.test"))
                equal(wire.response().status, 200, f"status by {option}")
        entries = site.proxy.log(2 * number)[-2:]
        equal([each["client"] for each in entries], ["127.0.0.77"] * 2, f"the client by {option}")
        balancer.stop()
    checking = HAProxy(lab, "send-proxy-v2 check inter 50ms", to)
    before = site.proxy.counter("proxy_headers")
    until(lambda: site.proxy.counter("proxy_headers") > before + 2, 5 * lab.patience, "health checks with headers")
    equal(site.proxy.counter("proxy_headers_bad"), 0, "bad headers")
    checking.stop()
    lacks(site.proxy.process.log(), "proxy_protocol", "the log")


class Prefaced(RawOrigin):
    """An origin whose connections begin with a header of version 1; `headers` are those."""

    def __init__(self, lab, **options):
        self.headers = []
        super().__init__(lab, **options)

    def _serve(self, connection, number):
        while b"\r\n" not in connection.buffer:
            if not connection._fill():
                return
        line, connection.buffer = connection.buffer.split(b"\r\n", 1)
        with self.lock:
            self.headers.append(line.decode())
        super()._serve(connection, number)


def group(authority, version, more="", scheme="http"):
    return f'origins behind {{ servers = "{scheme}://{authority}" proxy_protocol = {version} {more} }}\n'


def asks(lab, proxy, count, source="127.0.0.1", address=None):
    with Wire(address or proxy.reverse, source=source, timeout=10 * lab.patience) as wire:
        own = wire.socket.getsockname()
        for number in range(count):
            wire.send(request("GET", f"/{own[1]}/{number}", host="a.test"))
            equal(wire.response().status, 200, "status")
    return f"PROXY TCP4 {source} 127.0.0.1 {own[1]} {proxy.reverse[1]}"


@memcheck
def test_origins_are_told_the_client(lab):
    """One connection serves one client only."""
    origin = Prefaced(lab)
    proxy = Retort(lab, reverse={"/": "=behind"}, extra=group(origin.authority, "v1"))
    headers = [asks(lab, proxy, 2), asks(lab, proxy, 2, "127.0.0.2"), asks(lab, proxy, 1)]
    equal(origin.headers, headers, "headers")
    equal([each.connection_number for each in origin.requests][:4], [1, 1, 2, 2], "connections")
    true(all(each.start.startswith("GET /") for each in origin.requests), "requests behind the headers")


def test_health_checks_are_nobodys(lab):
    origin = Prefaced(lab)
    proxy = Retort(lab, reverse={"/": "=behind"}, extra=group(origin.authority, "v1", 'health_check = "/up" check_interval = "50ms"'))
    until(lambda: len(origin.headers) > 1, 5 * lab.patience, "health checks")
    equal(set(origin.headers), {"PROXY UNKNOWN"}, "headers")
    asks(lab, proxy, 1)
    equal(len({*origin.headers}), 2, "kinds of headers")


def test_the_address_behind_a_wildcard(lab):
    """The header has the address that the client has connected to, also where the listener has all of them."""
    origin = Prefaced(lab)
    port = ports.take()
    proxy = Retort(lab, reverse={"/": "=behind"}, extra=f'listen ":{port}" {{ mode = reverse }}\n' + group(origin.authority, "v1"))
    asks(lab, proxy, 1, "127.0.0.3", ("127.0.0.4", port))
    equal(origin.headers[-1].split()[1:4] + origin.headers[-1].split()[5:], ["TCP4", "127.0.0.3", "127.0.0.4", str(port)], "header")


def test_haproxy_and_nginx_behind(lab):
    """Both versions, before TLS too, and the client of a header that came in."""
    authority = Authority(lab)
    certificate = authority.leaf("127.0.0.1")
    said = 'http-request return status 200 content-type text/plain lf-string "%[src] %[dst]"'
    port = ports.take()
    Nginx(lab, lab.directory, f"listen 127.0.0.1:{port} proxy_protocol; location / {{ return 200 '$proxy_protocol_addr x'; }}")
    for version in ("v1", "v2"):
        plain = HAProxy(lab, mode="http", bind="accept-proxy", front=said)
        secure = HAProxy(lab, mode="http", bind=f"accept-proxy ssl crt {certificate.both}", front=said)
        for server, more, scheme in ((plain.port, "", "http"), (port, "", "http"),
                                     (secure.port, f'ca_file = "{authority.file}"', "https")):
            extra = group(f"127.0.0.1:{server}", version, more, scheme)
            site = Announced(lab, "mode = reverse", more=extra, reverse="=behind")
            with site.connect(v2("192.0.2.9", "198.51.100.9")) as wire:
                wire.send(request("GET", "/", host="a.test"))
                answer = wire.response()
            equal((answer.status, answer.text().split()[0]), (200, "192.0.2.9"), f"{version} to {scheme} {server}")
