"""Interception in transparent mode: the address is the client's choice, and so is the name in the ClientHello."""

import ssl

from harness.certificates import Authority, self_signed
from harness.checks import equal, true, until
from harness.hello import Hello, records
from harness.suite import memcheck
from harness.transparent import EVIL, OTHER_CLIENT, Scene, server_context
from harness.wire import request


class Shared:
    def __init__(self, lab):
        self.scene = Scene(lab)
        self.ours = Authority(lab, "the proxy's")
        self.evil = self_signed(lab, "www.test")

    def proxy(self, lab, transparent="", interception="", origin=None, rules="", **options):
        self.scene.tls.evil = self.scene.tls.context
        more = (f'authority {{ certificate = "{self.ours.file}"  key = "{self.ours.key}" }}\n'
                f'intercept all {{ action = bump }}\ninterception {{ {interception} }}\n{rules}')
        return self.scene.proxy(lab, transparent, more, origin=origin or {"ca_file": self.scene.authority.file}, **options)

    def bumped(self, address, target="/", name="www.test", **options):
        """The body of a response through a connection with a certificate of ours."""
        with self.scene.tls_wire(address, name=name, trusted=self.ours, **options) as wire:
            wire.send(request("GET", target, host=f"{name}:{self.scene.tls.port}"))
            return wire.response().text()

    def said(self, address, source):
        return f"{address} {source} www.test:{self.scene.tls.port}"

    def spliced(self, address, name="www.test"):
        """Is it the server's own certificate that the client sees?"""
        context = ssl.create_default_context(cafile=self.ours.file)
        with self.scene.connect(address, self.scene.tls.port) as wire:
            try:
                context.wrap_socket(wire.socket, server_hostname=name).close()
                return False
            except ssl.SSLCertVerificationError:
                return True


def share(lab):
    return Shared(lab)


def test_bump(lab, shared):
    scene = shared.scene
    scene.redirect()
    proxy = shared.proxy(lab)
    for address, router in ((scene.v4, "10.99.2.1"), (scene.v6, "fd99:2::1")):
        equal(shared.bumped(address), shared.said(address, router), "inside")
    equal(proxy.counter("intercept_bumped"), 2, "bumped")
    entry = proxy.entries("https://www.test", 2)[0]
    equal((entry["destination"], entry["client"]), (f"{scene.v4}:{scene.tls.port}", scene.network.client.v4), "in the log")
    # The server's certificate is proof: what came from there is for everybody who asks for the name.
    equal([shared.bumped(scene.v4, "/cached-b") for _ in range(2)], [shared.said(scene.v4, "10.99.2.1")] * 2, "stored")
    equal(proxy.results("/cached-b", 2), ["MISS", "HIT"], "results")


def test_what_access_refuses(lab, shared):
    """A client that knows of no proxy sees the page too, whether its address, the server's or the name decides."""
    scene = shared.scene
    scene.redirect()
    for rule in (f'url_class far {{ destination = "{scene.v4}" }}', 'url_class far { domain = "www.test" }',
                 f'url_class far {{ client = "{scene.network.client.v4}" }}'):
        proxy = shared.proxy(lab, rules=f"{rule}\naccess far {{ action = deny  status = 451 }}\naccess all {{ action = allow }}\n")
        page = shared.bumped(scene.v4)
        true("access rules of this proxy do not allow" in page, f"{rule}: {page}")
        entries = proxy.log(2)
        equal([(entry["result"], entry["status"]) for entry in entries], [("DENIED", 200), ("DENIED", 451)], f"{rule}: log")
        proxy.stop()


def test_bump_with_the_clients_address(lab, shared):
    scene = shared.scene
    scene.tproxy()
    shared.proxy(lab, "tproxy = on  spoof_client = on")
    for address, client in ((scene.v4, scene.network.client.v4), (scene.v6, scene.network.client.v6)):
        equal(shared.bumped(address), shared.said(address, client), "inside")
    for client in (OTHER_CLIENT, scene.network.client.v4):
        equal(shared.bumped(scene.v4, source=client), shared.said(scene.v4, client), "another client")


def test_bump_by_redirect_has_the_proxys_address(lab, shared):
    shared.scene.redirect()
    shared.proxy(lab, "tproxy = on  spoof_client = on")
    equal(shared.bumped(shared.scene.v4), shared.said(shared.scene.v4, "10.99.2.1"), "inside")


def test_a_server_that_asks_for_certificates(lab, shared):
    """Nobody can have another server's connections spliced by a server of his own that has the name and asks for a
    client's certificate."""
    scene = shared.scene
    scene.redirect()
    shared.proxy(lab, origin={"verify": False})
    scene.tls.evil = server_context(shared.evil)
    scene.tls.evil.load_verify_locations(shared.evil.file)
    scene.tls.evil.verify_mode = ssl.CERT_OPTIONAL
    true(shared.spliced(EVIL), "the server that asks is spliced")
    true(not shared.spliced(scene.v4), "the other one is not")


def test_names_without_verification(lab, shared):
    scene = shared.scene
    scene.redirect()
    proxy = shared.proxy(lab, origin={"verify": False})
    scene.tls.evil = server_context(shared.evil)
    for _ in range(2):
        equal(shared.bumped(EVIL, "/cached-v"), shared.said(EVIL, "10.99.2.1"), "the client's own choice")
    equal(shared.bumped(scene.v4, "/cached-v"), shared.said(scene.v4, "10.99.2.1"), "what others get")
    equal(shared.bumped(EVIL, "/cached-v"), shared.said(EVIL, "10.99.2.1"), "the client's own choice")
    true("HIT" not in proxy.results("/cached-v", 4)[:3], "results")


@memcheck
def test_unfinished_hello(lab, shared):
    """What begins as TLS is never passed on unseen because its ClientHello comes late or is large."""
    scene = shared.scene
    scene.redirect()
    shared.proxy(lab, interception='hello_timeout = "200ms"  hello_size = "1KB"')
    hello = records(Hello(name=b"www.test").message())
    accepted = scene.tls.accepted
    for begun in (hello[:20], records(Hello(name=b"www.test").message() + bytes(3000))):
        with scene.connect(scene.v4, scene.tls.port) as wire:
            wire.send(begun)
            try:
                equal(wire.socket.recv(5)[:1] in (b"", b"\x15"), True, "closed, or an alert")
            except ConnectionResetError:
                pass
    equal(scene.tls.accepted, accepted, "connections to the server")


def test_clients_that_leave(lab, shared):
    """At any moment: in the ClientHello, while the server is asked, in the handshake, in the request; also during a reload."""
    scene = shared.scene
    scene.tproxy()
    proxy = shared.proxy(lab, "tproxy = on  spoof_client = on", "refusals = 0", workers=2)
    hello = records(Hello(name=b"www.test").message())
    for _ in range(3):
        wires = []
        for step in range(0, len(hello) + 1, 7):
            wire = scene.connect(scene.v4, scene.tls.port)
            wire.send(hello[:step])
            wires.append(wire)
        for number, wire in enumerate(wires):
            (wire.abort if number % 2 else wire.close)()
            if number == len(wires) // 2:
                equal(proxy.reload().status, 200, "reload")
    half = scene.tls_wire(scene.v4, trusted=shared.ours)
    half.send(b"GET / HT")
    half.close()
    equal(shared.bumped(scene.v4), shared.said(scene.v4, scene.network.client.v4), "afterwards")


def test_clients_that_only_sometimes_leave(lab, shared):
    """A client that accepts the certificate in between has not refused it."""
    scene = shared.scene
    scene.redirect()
    proxy = shared.proxy(lab, interception="refusals = 2")
    for number in range(1, 5):
        true(refuses(shared), "refused")
        until(lambda seen=number: proxy.counter("intercept_refusals") == seen, 5, "the refusal")
        equal(shared.bumped(scene.v4), shared.said(scene.v4, "10.99.2.1"), "accepted")


def refuses(shared):
    with shared.scene.connect(shared.scene.v4, shared.scene.tls.port) as wire:
        try:
            ssl.create_default_context(cafile=shared.evil.file).wrap_socket(wire.socket, server_hostname="www.test")
            return False
        except ssl.SSLCertVerificationError:
            return True
