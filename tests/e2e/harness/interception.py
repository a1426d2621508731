"""A proxy that opens TLS connections, an https origin behind it, and clients that trust the proxy's authority.

    site = Interception(lab, "*.example.com", rules="intercept all { action = bump }")
    with site.bumped("www.example.com") as client:          CONNECT, then TLS with the proxy's certificate
        client.send(wire.request("GET", "/", {"Host": "www.example.com"}))
        response = client.response()
    with site.tunnel("www.example.com") as plain: ...       CONNECT only: the ClientHello is the test's

Names lead nowhere here, so each CONNECT is for the address of the origin, and the name is in the ClientHello.
"""

import ssl

from . import checks, wire
from .certificates import Authority
from .raw_origin import ok
from .retort import Retort
from .tls_origin import TlsOrigin

BUMP = "intercept all { action = bump }"


class Interception:
    """`certificate`: the origin's, in place of one for `names`. `options`: of Retort."""

    def __init__(self, lab, *names, rules=BUMP, answer=ok, interception="", extra="", certificate=None, clients=None,
                 origin=None, **options):
        self.lab = lab
        self.root, self.authority = Authority(lab, "root"), Authority(lab, "authority", path_length=0)
        self.certificate = certificate or self.root.leaf(*names)
        self.origin = TlsOrigin(lab, self.certificate, answer, clients=clients)
        self.proxy = Retort(lab, origin={"ca_file": self.root.file, **(origin or {})}, **options, extra=f"""
authority {{ certificate = "{self.authority.file}"  key = "{self.authority.key}" }}
interception {{ {interception} }}
{allow(self.origin.port)}
{rules}
{extra}""")

    def allow(self, *more):
        """CONNECT to these ports too, from now on."""
        first = allow(self.origin.port)
        self.proxy.write_config(self.proxy.text().replace(first, allow(self.origin.port, *more)))
        checks.equal(self.proxy.reload().status, 200, "reload")

    def context(self, newest=None, trusts=None):
        context = ssl.create_default_context(cafile=trusts or self.authority.file)
        if newest:
            context.maximum_version = newest
        return context

    def tunnel(self, to=None, headers=None, source=None, listener=None):
        """A wire behind a CONNECT to `to`, which is the origin if nothing is said. `listener`: another port of the proxy."""
        host, port = to or (self.origin.host, self.origin.port)
        connected = wire.Wire(("127.0.0.1", listener or self.proxy.forward[1]), 20 * self.lab.patience, source=source)
        connected.send(wire.request("CONNECT", f"{host}:{port}", headers, host=f"{host}:{port}"))
        response = connected.response("CONNECT")
        if response.status != 200:
            connected.close()
            raise Refused(response)
        return connected

    def bumped(self, name, context=None, **options):
        connected = self.tunnel(**options)
        context = context or self.context()
        connected.socket = context.wrap_socket(connected.socket, server_hostname=name)
        return connected

    def get(self, name, path="/", headers=None, **options):
        """One request on a bumped connection of its own."""
        with self.bumped(name, **options) as client:
            client.send(wire.request("GET", path, {"Host": self.host(name), **(headers or {})}))
            return client.response()

    def host(self, name):
        """The authority of its URLs: the origin's port is none that may be left out."""
        return f"{name}:{self.origin.port}"

    def url(self, name, path="/"):
        return f"https://{self.host(name)}{path}"


def allow(*ports):
    """The line that lets CONNECT be for these ports."""
    return f"connect_ports = {{ {', '.join(str(port) for port in ports)} }}"


class Refused(AssertionError):
    def __init__(self, response):
        super().__init__(f"CONNECT was answered with {response.status}: {response.body[:300]!r}")
        self.response = response
