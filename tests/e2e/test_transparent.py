"""Transparent mode, between network namespaces: a client, a router with the proxy, a server."""

import os
import ssl
import subprocess
import time

from harness.checks import contains, equal, true, until
from harness.lab import SOURCE
from harness.network import run
from harness.raw_origin import RawOrigin
from harness.retort import run_check
from harness.suite import memcheck
from harness.transparent import EVIL, OTHER_CLIENT, PORT, Scene
from harness.wire import Wire, request

def share(lab):
    return Scene(lab)


@memcheck
def test_redirect(lab, scene):
    scene.redirect()
    proxy = scene.proxy(lab)
    for address, router in ((scene.v4, "10.99.2.1"), (scene.v6, "fd99:2::1")):
        equal(scene.body(address, "/plain"), scene.said(address, router), "plain http")
        equal([scene.body(address, f"/cached{address}") for _ in range(2)], [scene.said(address, router)] * 2, "stored")
        equal(proxy.results(f"/cached{address}", 2), ["MISS", "HIT"], "results")
        with scene.tls_wire(address) as wire:
            wire.send(request("GET", "/", host="www.test"))
            equal(wire.response().text(), f"{address} {router} www.test", "TLS passed on")
        tunnel = proxy.entries(f"{address}]:{scene.tls.port}" if ":" in address else f"{address}:{scene.tls.port}")[0]
        equal((tunnel["method"], tunnel["result"]), ("CONNECT", "TUNNEL"), "log of the tunnel")
        equal(tunnel["destination"], tunnel["url"], "destination in the log")
    equal(proxy.entries("/plain")[0]["destination"], f"{scene.v4}:{scene.http.port}", "destination in the log")
    equal(proxy.entries("/plain")[0]["client"], scene.network.client.v4, "client in the log")
    equal(proxy.counter("transparent_mismatches"), 0, "mismatches")


def test_tproxy_with_the_clients_address(lab, scene):
    scene.tproxy()
    proxy = scene.proxy(lab, "tproxy = on  spoof_client = on")
    for address, client in ((scene.v4, scene.network.client.v4), (scene.v6, scene.network.client.v6)):
        equal(scene.body(address), scene.said(address, client), "plain http")
        with scene.tls_wire(address) as wire:
            wire.send(request("GET", "/", host="www.test"))
            equal(wire.response().text(), f"{address} {client} www.test", "TLS passed on")
    # An idle connection is for the client that it comes from.
    for client in (OTHER_CLIENT, scene.network.client.v4, OTHER_CLIENT):
        equal(scene.body(scene.v4, source=client), scene.said(scene.v4, client), "another client")
    equal(proxy.counter("origin_connections_reused"), 2, "connections used again")


def test_tproxy_without_the_clients_address(lab, scene):
    scene.tproxy()
    scene.proxy(lab, "tproxy = on")
    for address, router in ((scene.v4, "10.99.2.1"), (scene.v6, "fd99:2::1")):
        equal(scene.body(address), scene.said(address, router), "plain http")
    # Redirected connections are taken as well.
    scene.redirect()
    equal(scene.body(scene.v4), scene.said(scene.v4, "10.99.2.1"), "by REDIRECT")


def test_redirected_connections_keep_the_proxys_address(lab, scene):
    """The rules of REDIRECT take no answers to a client's address in: a server that was asked from there was never heard."""
    scene.redirect()
    proxy = scene.proxy(lab, "tproxy = on  spoof_client = on")
    equal(scene.body(scene.v4), scene.said(scene.v4, "10.99.2.1"), "IPv4")
    equal(scene.body(scene.v6), scene.said(scene.v6, "fd99:2::1"), "IPv6")
    with scene.tls_wire(scene.v4) as wire:
        wire.send(request("GET", "/", host="www.test"))
        equal(wire.response().text(), f"{scene.v4} 10.99.2.1 www.test", "TLS passed on")
    equal(proxy.counter("origin_failures"), 0, "failures")


def test_a_host_that_is_elsewhere(lab, scene):
    """A client can't put what its own server says under the name of another one."""
    scene.redirect()
    proxy = scene.proxy(lab)
    router = "10.99.2.1"
    equal(scene.body(EVIL, "/cached-a"), scene.said(EVIL, router), "the request goes where the client connected to")
    equal(scene.body(EVIL, "/cached-a"), scene.said(EVIL, router), "again")
    equal(scene.body(scene.v4, "/cached-a"), scene.said(scene.v4, router), "the host's own")
    equal(scene.body(EVIL, "/cached-a"), scene.said(EVIL, router), "not from the cache either")
    equal(proxy.results("/cached-a", 4), ["PASS", "PASS", "MISS", "PASS"], "results")
    equal([entry.get("mismatch") for entry in proxy.entries("/cached-a")], [True, True, None, True], "in the log")
    for method in ("POST", "HEAD"):
        scene.get(EVIL, "/cached-a", method=method)
    scene.body(scene.v4, "/cached-a")
    equal(proxy.results("/cached-a", 7)[-1], "HIT", "after a POST and a HEAD to another server")
    for host in ("nowhere.test", "127.0.0.1", "localhost", scene.v4 + ".", "10.99.1.1"):
        equal(scene.body(EVIL, "/cached-b", host=host), scene.said(EVIL, router, host.rstrip(".")), f"Host: {host}")
    equal(scene.body(EVIL, "/cached-b", host=EVIL), scene.said(EVIL, router, EVIL), "its own address")
    equal(proxy.results("/cached-b", 6)[-1], "MISS", "an address that agrees")
    equal(proxy.counter("transparent_mismatches"), 10, "mismatches")


def test_the_port_is_part_of_the_server(lab, scene):
    scene.redirect()
    proxy = scene.proxy(lab)
    with scene.connect(scene.v4, scene.http.port) as wire:
        wire.send(request("GET", "/cached-p", host="www.test"))       # clients may leave it out
        contains(wire.response().text(), f" www.test:{scene.http.port}", "the port of the connection")
        wire.send(request("GET", "/cached-p", host="www.test:99"))
        contains(wire.response().text(), " www.test:99", "another one")
        wire.send(request("GET", "/cached-p", host="www2.test"))
        contains(wire.response().text(), f" www2.test:{scene.http.port}", "another host of that address")
    equal(proxy.results("/cached-p", 3), ["MISS", "PASS", "MISS"], "results")


def test_a_mismatch_may_be_refused(lab, scene):
    scene.redirect()
    scene.proxy(lab, "mismatch = refuse")
    equal(scene.get(EVIL).status, 421, "status")
    equal(scene.get(scene.v4).status, 200, "status")


def test_requests(lab, scene):
    scene.redirect()
    proxy = scene.proxy(lab)
    port = scene.http.port
    equal(scene.get(scene.v4).status, 200, "a request, before which the harness's own connections are counted")
    started = proxy.counter("client_connections")
    for text, status in (
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
            (f"GET http://www.test:{port}/ HTTP/1.0\r\n\r\n", 200),
            (f"GET http://WWW.test:{port}/ HTTP/1.1\r\nHost: www.test:{port}\r\n\r\n", 200),
            (f"GET http://www.test:{port}/ HTTP/1.1\r\nHost: other.test:{port}\r\n\r\n", 400),
            (f"GET https://www.test:{port}/ HTTP/1.1\r\nHost: www.test:{port}\r\n\r\n", 400),
            (f"CONNECT www.test:{port} HTTP/1.1\r\nHost: www.test:{port}\r\n\r\n", 405),
            ("OPTIONS * HTTP/1.1\r\nHost: www.test\r\n\r\n", 501),
            ("SSH-2.0-client\r\n", 400)):
        with scene.connect(scene.v4, port) as wire:
            wire.send(text.encode())
            equal(wire.response().status, status, text)
    with scene.connect(scene.v4, port) as wire:
        wire.send_pieces(request("GET", "/slow", host=f"www.test:{port}"), 1)
        equal(wire.response().status, 200, "byte by byte")
        wire.send(request("GET", "/slow", host=f"www.test:{port}"))
        equal(wire.response().status, 200, "the next one")
    equal(proxy.counter("client_connections") - started, 12, "connections, each counted once")


def test_nobody_connects_to_the_listener_itself(lab, scene):
    for rules, transparent in ((scene.redirect, ""), (scene.tproxy, "tproxy = on")):
        rules(ports=f"{scene.ports()}, {PORT}") if transparent else rules()
        proxy = scene.proxy(lab, transparent)
        for address in ("10.99.1.1", "fd99:1::1"):
            with scene.connect(address, PORT) as wire:
                wire.send(request("GET", "/cached", host=f"{address}:{PORT}" if "." in address else f"[{address}]:{PORT}"))
                equal(wire.response().status, 403, "status")
            refused_tls(scene, address, PORT)
        equal((proxy.counter("transparent_connections"), proxy.counter("transparent_direct")), (4, 4), "connections, refused")
        proxy.stop()


def refused_tls(scene, address, port):
    try:
        scene.tls_wire(address, port).close()
    except (ssl.SSLError, ConnectionResetError) as error:
        return str(error)
    raise AssertionError("the TLS connection was made")


def test_the_machine_itself_is_out_of_reach(lab, scene):
    """Connections to the router's own ports, its admin plane and other listeners are redirected as well."""
    proxy = scene.proxy(lab, admin=("127.0.0.1", 3999))
    scene.redirect(ports=f"3999, {proxy.forward[1]}, 8888")
    for address in ("10.99.1.1", "10.99.2.1", "fd99:1::1"):
        for port in (3999, proxy.forward[1], 8888):
            for host in (f"127.0.0.1:{port}", f"www.test:{port}", f"{address}:{port}" if "." in address else f"[{address}]:{port}"):
                with scene.connect(address, port) as wire:
                    wire.send(request("GET", "/status", host=host))
                    equal(wire.response().status, 403, f"Host: {host} at {address}")
            contains(refused_tls(scene, address, port), "access denied", "the alert")


@memcheck
def test_its_own_connections_do_not_come_back(lab, scene):
    """Rules that forget the proxy's own connections make no loop."""
    own = f"""chain output {{ type nat hook output priority -100;
                  tcp dport {{ {scene.ports()} }} redirect to :{PORT}
              }}"""
    scene.redirect(own)
    proxy = scene.proxy(lab)
    for address in (scene.v4, scene.v6):
        equal(scene.get(address).status, 508, "status")
        true(refused_tls(scene, address, scene.tls.port), "TLS")
    equal((proxy.counter("transparent_connections"), proxy.counter("transparent_loops")), (8, 4), "connections, loops")
    proxy.stop()
    scene.redirect(own.replace("tcp dport", "meta mark != 7 tcp dport"))
    proxy = scene.proxy(lab, "mark = 7")
    router = scene.network.router
    for address, there in ((scene.v4, "10.99.2.1"), (scene.v6, "fd99:2::1")):
        equal(scene.body(address), scene.said(address, there), "with a mark")
        with router, Wire((address, scene.http.port)) as wire:
            wire.send(request("GET", "/", host=f"www.test:{scene.http.port}"))
            equal(wire.response().text(), scene.said(address, there), "of the machine itself")
    equal((proxy.counter("transparent_connections"), proxy.counter("transparent_loops")), (4, 0), "connections, loops")


def test_clients_that_say_nothing(lab, scene):
    scene.redirect()
    proxy = scene.proxy(lab, 'silent_after = "300ms"')
    with scene.connect(scene.v4, scene.greeter.port) as wire:
        equal(wire.socket.recv(100), b"", "closed")
    with scene.connect(scene.v4, scene.http.port) as wire:  # the rest of a request may come later
        wire.send(b"GE")
        time.sleep(0.4)
        wire.send(request("GET", "/", host="www.test")[2:])
        equal(wire.response().status, 200, "begun in time")
    equal(proxy.counter("transparent_silent"), 1, "silent clients")
    proxy.stop()
    proxy = scene.proxy(lab, 'silent_after = "300ms"  silent = tunnel  other = tunnel')
    for first in (b"", b"SSH-2.0-client\r\n", b"\0\1"):
        with scene.connect(scene.v4, scene.greeter.port) as wire:
            wire.send(first)
            equal(wire._line(), "220 hello", "greeting")  # pylint: disable=protected-access
            wire.send(b"echo\r\n")
            until(lambda: wire._fill() and first + b"echo\r\n" in wire.buffer, 5, "the echo")  # pylint: disable=protected-access


def test_hello_in_pieces(lab, scene):
    scene.redirect()
    scene.proxy(lab)
    context = ssl.create_default_context(cafile=scene.authority.file)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="www.test")
    with scene.connect(scene.v4, scene.tls.port) as wire:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                wire.send_pieces(outgoing.read(), 1)
                incoming.write(wire.socket.recv(65536))
        equal(tls.version()[:4], "TLSv", "version")


@memcheck
def test_reload(lab, scene):
    """TPROXY is switched on for a listener that is open already, and a drained proxy ends."""
    scene.redirect()
    proxy = scene.proxy(lab)
    equal(scene.get(scene.v4).status, 200, "status")
    waiting = scene.connect(scene.v4, scene.http.port)
    scene.tproxy()
    proxy.write_config(proxy.text(extra=f'listen ":{PORT}" {{ mode = transparent }}\ntransparent {{ tproxy = on  spoof_client = on }}'))
    equal(proxy.reload().status, 200, "reload")
    equal(scene.body(scene.v4), scene.said(scene.v4, scene.network.client.v4), "by TPROXY")
    with scene.tls_wire(scene.v4) as wire:
        proxy.terminate()
        wire.send(request("GET", "/", host="www.test"))
        equal(wire.response().status, 200, "a tunnel goes on")
    waiting.close()
    equal(proxy.wait_exit(), 0, "exit status")


def test_stale_meanwhile(lab, scene):
    """A refresh in the background goes to where the client had connected."""
    scene.redirect()
    proxy = scene.proxy(lab, cache={"memory": "32MB", "stale_while_revalidate": "60s"})
    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCache-Control: max-age=1\r\n\r\nx")
    with scene.network.server:
        origin = RawOrigin(lab, answer, "::")
    scene.redirect(ports=str(origin.port))
    for _ in range(2):
        with scene.connect(scene.v4, origin.port) as wire:
            wire.send(request("GET", "/", host="www.test"))
            equal(wire.response().status, 200, "status")
        time.sleep(1.6)
    until(lambda: len(origin.requests) == 2, 5, "the refresh")
    equal(proxy.counter("cache_background"), 1, "refreshes")


def test_the_example(lab, _scene):
    """The rules that are shown work as they are."""
    done = subprocess.run(["examples/transparent/transparent.sh", "--check", "--no-install", "--builddir", lab.builddir], cwd=SOURCE,
                          capture_output=True, text=True, timeout=100, check=False)
    equal(done.returncode, 0, done.stdout + done.stderr)
    equal(done.stdout.count(" ok\n"), 51, "rows")


def test_privileges(lab, scene):
    """What needs CAP_NET_ADMIN says so, at retort -t and at a start."""
    path = lab.write("transparent.conf", f'listen "127.0.0.1:{PORT}" {{ mode = transparent }}\ntransparent {{ tproxy = on }}\n')
    with scene.network.router:
        equal(run_check(lab, path)[0], 0, "with the capability")
    bounded = ["setpriv", "--bounding-set=-net_admin,-net_raw", "--inh-caps=-net_admin,-net_raw"]
    run("setpriv", "--version")
    for options in ("tproxy = on", "mark = 7"):
        lab.write("transparent.conf", f'listen "127.0.0.1:{PORT}" {{ mode = transparent }}\ntransparent {{ {options} }}\n')
        for flags in (["-t"], []):
            done = subprocess.run(bounded + [lab.built("proxy/retort"), *flags, "-f", path], capture_output=True, text=True,
                                  timeout=20 * lab.patience, check=False, env={**os.environ, **lab.environment()})
            equal(done.returncode, 1, f"exit status, {done.stderr}")
            contains(done.stderr, "CAP_NET_ADMIN", "the message")
    lab.write("transparent.conf", f'listen ":{PORT}" {{ mode = transparent }}\ntransparent {{ spoof_client = on }}\n')
    contains(run_check(lab, path, "-T")[1], "needs tproxy", "the message")
