"""Where clients of a forward listener get to: not to the machine itself, and never to the proxy itself."""

import os
import subprocess
import sys
import textwrap

from harness import ports
from harness import wire as wire_module
from harness.checks import Skip, contains, equal, lacks, true
from harness.groups import group
from harness.icap import IcapServer
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import request

# This machine, as one may spell it.
SELF = ["127.0.0.1", "127.1", "127.0.1", "0x7f.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.1.", "127.8.8.8",
        "localhost", "LOCALHOST.", "some.localhost", "0.0.0.0", "0", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "[::ffff:0:0]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]"]
LINK = ["169.254.169.254", "169.254.1.1", "2852039166", "0xa9fea9fe", "[fe80::1]", "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[::ffff:0:169.254.169.254]", "168.63.129.16", "100.100.100.200", "1684301000", "192.0.0.192",
        "[fd00:ec2::254]", "[fd00:0ec2:0:0::0254]", "[fd20:ce::254]", "[::ffff:168.63.129.16]", "[64:ff9b::6464:64c8]", "224.0.0.1", "255.255.255.255", "[ff02::1]"]


class Guarded(Retort):
    """One whose forward listener is as it is unless something else is said."""

    def text(self, **changes):
        return super().text(**changes).replace("  local_destinations = allow", "")


def both(lab, **options):
    """A proxy, and the port of a second forward listener at which nothing is said of local destinations."""
    port = ports.take()
    extra = options.pop("extra", "")
    return Retort(lab, extra=f'listen "127.0.0.1:{port}" {{ mode = forward }}\n{extra}', **options), ("127.0.0.1", port)


def ask(lab, address, method, target, headers=None, host=None):
    with wire_module.Wire(address, timeout=20 * lab.patience) as wire:
        wire.send(request(method, target, headers, host=host))
        return wire.response(method)


def asked(origin):
    return len(origin.requests)


def test_nothing_of_this_machine_is_reached(lab):
    origin = RawOrigin(lab)
    proxy = Guarded(lab, extra=f"connect_ports = {{ {origin.port} }}")
    targets = [f"{host}:{origin.port}" for host in SELF + LINK]
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    for target in targets:
        answer = ask(lab, proxy.forward, "GET", f"http://{target}/")
        equal(answer.status, 403, f"GET http://{target}/")
        contains(answer.text(), "listen.local_destinations", "the page")
    for target in targets[::5]:
        equal(ask(lab, proxy.forward, "CONNECT", target, host=target).status, 403, f"CONNECT {target}")
        equal(ask(lab, proxy.forward, "POST", f"http://{target}/", {"Content-Length": "0"}).status, 403, f"POST to {target}")
        equal(ask(lab, proxy.forward, "GET", f"http://{target}/", upgrade).status, 403, f"upgrade at {target}")
    equal(asked(origin), 0, "requests at the origin")
    entries = proxy.log(len(targets))
    equal({(entry["status"], entry["result"]) for entry in entries}, {(403, "DENIED")}, "in the log")
    contains(entries[0]["error"], "loopback", "reason in the log")
    true(proxy.counter("destinations_denied") > len(targets), "counted")


def test_maps_are_the_operators_word(lab):
    origin = Origin(lab)
    proxy = Guarded(lab, reverse={"/": origin.url("/")})
    equal(proxy.get("/text?say=mapped").text(), "mapped", "through a map")
    equal(proxy.get(origin.url("/text")).status, 403, "past it")


def test_the_cloud_says_nothing_to_clients(lab):
    """Its address is refused at once: nothing is dialled that would have to time out."""
    proxy = Guarded(lab, origin={"connect_timeout": "20s"})
    equal(proxy.get("http://169.254.169.254/latest/meta-data/").status, 403, "status")
    equal(proxy.counter("origin_requests"), 0, "requests to origins")


@memcheck
def test_the_proxy_itself_is_never_reached(lab):
    """Whatever local_destinations says, each listener's and the admin plane's port is none of the clients'."""
    port, wild = ports.take(), ports.take()
    origin = Origin(lab)
    proxy = Retort(lab, admin=("127.0.0.1", port), extra=f'listen "0.0.0.0:{wild}" {{ mode = forward }}\n'
                                                         f"connect_ports = {{ {port}, {wild}, {origin.port} }}")
    v4 = [host for host in SELF if host[0] != "[" and host not in ("127.8.8.8", "localhost", "LOCALHOST.", "some.localhost")]
    mapped = ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:0]"]
    for host in v4 + mapped:
        for path in ("/drain", "/reload"):
            equal(proxy.fetch("POST", f"http://{host}:{port}{path}", {"Host": "127.0.0.1"}, b"").status, 403, f"{host}{path}")
        equal(ask(lab, proxy.forward, "CONNECT", f"{host}:{port}", host="x").status, 403, f"CONNECT to {host}")
    for own in (proxy.forward[1], proxy.reverse[1], wild):
        equal(proxy.get(f"http://127.0.0.1:{own}/").status, 403, "a listener")
    equal(proxy.get(f"http://127.5.5.5:{wild}/").status, 403, "a listener at all addresses")
    for host in ("localhost", "some.localhost"):
        true(proxy.get(f"http://{host}:{port}/status").status >= 400, host)
    equal(proxy.get(origin.url("/text", say="other")).text(), "other", "another server of the machine")
    equal(proxy.get(origin.url("/text", say="still")).text(), "still", "it serves")


def test_admin_refuses_what_proxies_pass_on(lab):
    port = ports.take()
    proxy, unix = Retort(lab, admin=("127.0.0.1", port)), Retort(lab)
    for admin in (proxy, unix):
        for field in ("Via", "via", "Forwarded", "X-Forwarded-For"):
            answer = admin.admin("POST", "/drain", b"", headers={field: ""})
            equal(answer.status, 403, f"status with {field}")
            contains(answer.text(), "admin.listen", "what to do")
        equal(admin.admin("GET", "/status").status, 200, "status without")


def test_what_services_rewrite_is_looked_at(lab):
    """Before the cache and behind it."""
    origin = RawOrigin(lab)

    def behave(_icap, transaction):
        transaction.send_head(transaction.request_head(drop=("host",), add=[("Host", origin.authority)],
                                                       start=f"GET {origin.url('/inside')} HTTP/1.1"), body=False)
    icap = IcapServer(lab, behave, methods="REQMOD")
    for point in ("reqmod_precache", "reqmod_postcache"):
        proxy = Guarded(lab, services=[Service("s", icap.uri(), point=point, bypass=False)])
        equal(proxy.get(f"http://192.0.2.1/{point}").status, 403, point)
    equal(asked(origin), 0, "requests at the origin")


@memcheck
def test_listeners_share_neither_connections_nor_content(lab):
    """What clients who reach the machine have brought is not for those who do not."""
    origin = Origin(lab)
    proxy, other = both(lab)
    for path in ("/kept", "/text"):
        equal(proxy.get(origin.url(path, cc="max-age=60" if path == "/kept" else "no-store")).status, 200, path)
    for path in ("/kept", "/text"):
        equal(ask(lab, other, "GET", origin.url(path, cc="max-age=60" if path == "/kept" else "no-store")).status, 403, path)
    equal(proxy.get(origin.url("/kept", cc="max-age=60")).status, 200, "again")
    equal(proxy.results("/kept", 3), ["MISS", "DENIED", "HIT"], "results")


def test_a_reload_counts(lab):
    """Also for connections that were opened before."""
    origin = Origin(lab)
    proxy = Retort(lab)
    url = origin.url("/text", cc="max-age=60")
    with proxy.wire() as wire:
        for text, status in ((None, 200), (proxy.text().replace("= allow", "= deny"), 403), (proxy.text(), 200)):
            if text:
                proxy.write_config(text)
                equal(proxy.reload().status, 200, "POST /reload")
            wire.send(request("GET", url))
            equal(wire.response().status, status, "status")


@memcheck
def test_through_parents(lab):
    """Parents are the operator's word; what they are asked for is the client's."""
    parent = RawOrigin(lab)
    proxy = Guarded(lab, extra=group([f"http://{parent.authority}"], "up") + "parent all { origins = up }\n")
    equal(proxy.get("http://www.example.com/").status, 200, "a parent on this machine")
    for host in ("127.0.0.1", "localhost", "2130706433", "169.254.169.254", "[::1]"):
        equal(proxy.get(f"http://{host}:81/").status, 403, f"{host} through the parent")
        equal(ask(lab, proxy.forward, "CONNECT", f"{host}:443", host="x").status, 403, f"CONNECT {host} through the parent")
    equal(proxy.get(parent.url()).status, 403, "the parent itself, to which there is an idle connection")
    equal(asked(parent), 1, "requests at the parent")


def hosts_of_its_own(lab, text):
    """A command that runs another with this as /etc/hosts."""
    path = lab.write("hosts", text)
    command = ["unshare", "-rm", "sh", "-c", f'mount --bind {path} /etc/hosts && exec "$0" "$@"']
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("namespaces of a user's own (unshare -rm) are not allowed here")
    return command


def test_names_are_resolved_first(lab):
    """Of several addresses those are tried that may be reached."""
    origin = RawOrigin(lab)
    names = hosts_of_its_own(lab, "127.0.0.1 own.test both.test\n192.0.2.7 both.test\n::1 six.test\n169.254.169.254 cloud.test\n")
    proxy = Guarded(lab, under=names, origin={"connect_timeout": "100ms"}, memcheck=False)
    for name in ("own.test", "six.test", "cloud.test"):
        equal(proxy.get(f"http://{name}:{origin.port}/").status, 403, name)
    answer = proxy.get(f"http://both.test:{origin.port}/")
    true(answer.status in (502, 504), f"status {answer.status} where the one that is left does not answer")
    lacks(answer.text(), "local_destinations", "the page")
    equal(asked(origin), 0, "requests at the origin")


ROUTED = "198.51.100.7"
INSIDE = textwrap.dedent("""
    import http.server, subprocess, sys, threading
    from harness.checks import until
    from harness.wire import Wire, request
    origin = http.server.HTTPServer(("", 8000), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    proxy = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL)

    def ask(port, method, authority):
        with Wire(("127.0.0.1", port)) as wire:
            wire.send(request(method, authority if method == "CONNECT" else f"http://{authority}/", {"Host": "x"}))
            return wire.head().status

    def answers():
        try:
            return ask(3128, "TRACE", "x") == 405
        except OSError:
            return False
    until(answers, 20, "an answer", pause=0.02)
    for port, method, to in ((3128, "GET", 8000), (3128, "CONNECT", 8000), (3129, "GET", 3129), (3129, "CONNECT", 3129), (3129, "GET", 8000)):
        print(ask(port, method, f"ROUTED:{to}"))
    proxy.terminate()
    proxy.wait()
""").replace("ROUTED", ROUTED)


def test_addresses_that_are_routes(lab):
    """What is the machine's by a route alone, as behind load balancers: no interface has that address."""
    route = ["unshare", "-rn", "sh", "-c", f'ip link set lo up && ip route add local {ROUTED} dev lo && exec "$0" "$@"']
    if subprocess.run([*route, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("namespaces of a user's own (unshare -rn) are not allowed here")
    config = lab.write("routed.conf", 'listen "127.0.0.1:3128" { mode = forward }\n'
                       'listen "0.0.0.0:3129" { mode = forward local_destinations = allow }\nconnect_ports = { 3129, 8000 }\n')
    done = subprocess.run([*route, sys.executable, lab.write("inside.py", INSIDE), lab.built("proxy/retort"), "-f", config],
                          capture_output=True, text=True, timeout=60 * lab.patience, check=False, cwd=lab.path(""),
                          env={**os.environ, **lab.environment(), "PYTHONPATH": os.path.dirname(__file__)})
    equal(done.stdout.split(), ["403", "403", "403", "403", "200"], f"statuses; {done.stderr}")
