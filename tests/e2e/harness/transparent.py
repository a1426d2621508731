"""What tests of transparent mode share: the network, two servers in one, rules of the firewall.

    scene = Scene(lab)
    scene.redirect()                              or scene.tproxy()
    proxy = scene.proxy(lab, "mismatch = refuse")     on the router; options of its transparent section
    scene.get(scene.v4, "/path", host="www.test")
    with scene.tls_wire(scene.v4) as wire: ...

The server's host has a second address, EVIL, for which no name stands. Its answers say at which address and from which one
the request came, and for which host.
"""

import ssl

from .certificates import Authority
from .network import Network
from .raw_origin import RawOrigin
from .retort import Retort
from .server import Server
from .wire import Wire, request

PORT = 3130
EVIL = "10.99.2.3"       # another address of the server's host
OTHER_CLIENT = "10.99.1.3"


def bare(address):
    return address.removeprefix("::ffff:")


def say_who(connection, seen):
    """At which address and from which one the request came, for which host. /cached may be stored."""
    here, there = (bare(end[0]) for end in (connection.socket.getsockname(), connection.socket.getpeername()))
    body = f"{here} {there} {seen.header('Host')}".encode()
    caching = b"max-age=60" if b"cached" in seen.target.encode() else b"no-store"
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: %s\r\n\r\n" % (len(body), caching) + body)


def server_context(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)
    return context


class TlsOrigin(RawOrigin):
    """`evil`: the context at the address EVIL."""

    def __init__(self, lab, certificate):
        self.context = self.evil = server_context(certificate)
        super().__init__(lab, say_who, "::")

    def _run(self, connection, number):
        context = self.evil if bare(connection.socket.getsockname()[0]) == EVIL else self.context
        try:
            connection.socket = context.wrap_socket(connection.socket, server_side=True)
        except (ssl.SSLError, OSError):
            connection.close()
            return
        super()._run(connection, number)


class Scene:
    """What the tests of this file share: hosts, servers, certificates."""

    def __init__(self, lab):
        self.network = network = Network(lab)
        network.server.address("eth0", f"{EVIL}/24")
        network.client.address("eth0", f"{OTHER_CLIENT}/24")
        self.authority = Authority(lab)
        with network.server:
            self.http = RawOrigin(lab, say_who, "::")
            self.tls = TlsOrigin(lab, self.authority.leaf("www.test"))
            self.greeter = Server(lab, greet, "::")
        network.names["www.test"] = network.names["www2.test"] = [network.server.v4, network.server.v6]
        self.v4, self.v6 = network.server.v4, network.server.v6

    def ports(self):
        return ", ".join(str(server.port) for server in (self.http, self.tls, self.greeter))

    def redirect(self, more="", ports=None):
        self.network.rules(f"""table inet retort {{
            chain prerouting {{ type nat hook prerouting priority dstnat;
                iifname "side1" tcp dport {{ {ports or self.ports()} }} redirect to :{PORT}
            }}
            {more}
        }}""")

    def tproxy(self, ports=None):
        """Packets of connections that the proxy has are taken in, and new ones go to its listener."""
        router = self.network.router
        for family in ("-4", "-6"):
            if "lookup 100" not in router.ip(f"{family} rule"):
                router.ip(f"{family} rule add fwmark 1 lookup 100")
                router.ip(f"{family} route add local default dev lo table 100")
        self.network.rules(f"""table inet retort {{
            chain prerouting {{ type filter hook prerouting priority mangle;
                meta l4proto tcp socket transparent 1 meta mark set 1 accept
                iifname "side1" tcp dport {{ {ports or self.ports()} }} tproxy to :{PORT} meta mark set 1 accept
            }}
        }}""")

    def proxy(self, lab, transparent="", more="", **options):
        with self.network.router:
            return Retort(lab, extra=f'listen ":{PORT}" {{ mode = transparent }}\ntransparent {{ {transparent} }}\n{more}', **options)

    def connect(self, address, port, source=None):
        with self.network.client:
            return Wire((address, port), source=source)

    def get(self, address, target="/", host="www.test", source=None, method="GET"):
        with self.connect(address, self.http.port, source) as wire:
            wire.send(request(method, target, host=f"{host}:{self.http.port}"))
            return wire.response(method)

    def body(self, *arguments, **options):
        return self.get(*arguments, **options).text()

    def said(self, address, source, host="www.test"):
        return f"{address} {source} {host}:{self.http.port}"

    def tls_wire(self, address, port=None, name="www.test", source=None, trusted=None):
        """`trusted`: an authority other than that of the server."""
        context = ssl.create_default_context(cafile=(trusted or self.authority).file)
        wire = self.connect(address, port or self.tls.port, source)
        wire.socket = context.wrap_socket(wire.socket, server_hostname=name)
        return wire


def greet(connection, _number):
    """The server speaks first."""
    connection.send(b"220 hello\r\n")
    while data := connection.read_some():
        connection.send(data)
