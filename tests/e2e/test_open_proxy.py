"""As it is installed, the proxy is none for strangers, and leads nobody to the machine it runs on."""

import os
import time

from harness import wire as wire_module
from harness.checks import contains, equal, true
from harness.icap import IcapServer
from harness.network import Network
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.wire import request

STRANGER = "198.51.100.9"
CLOUD = "169.254.169.254"
OTHER = "10.99.2.3"  # another address of the server
CONF = os.path.join(os.path.dirname(__file__), "../../conf/retort.conf")


def say_where(connection, _seen):
    body = connection.socket.getsockname()[0].removeprefix("::ffff:").encode()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: no-store\r\n\r\n" % len(body) + body)


class Turning:
    """Addresses that change with each question, as those of names that are to be bound anew."""

    def __init__(self, *addresses):
        self.addresses, self.asked = addresses, 0

    def __iter__(self):
        address = self.addresses[min(self.asked, len(self.addresses) - 1)]
        self.asked += 1
        return iter([address])


class Installed(Retort):
    """The configuration that comes with Retort, at other places."""

    def text(self, **changes):
        self.forward = ("127.0.0.1", 3128)
        with open(CONF, encoding="utf-8") as file:
            text = file.read()
        for before, after in (('listen "127.0.0.1:3128"', 'listen ":3128"'), ("/run/retort/retort.sock", self.admin_path), ("workers = 0", "workers = 1")):
            equal(text.count(before), 1, f"{before} in retort.conf")
            text = text.replace(before, after)
        extra = self.given["extra"]
        services = "\n".join(service.text() for service in self.given["services"])
        return f'{text}\n{extra}\n{services}\n{"adapt all { services = { s } }" if services else ""}\n'


class Shared:
    def __init__(self, lab):
        self.network = network = Network(lab)
        network.client.address("eth0", f"{STRANGER}/32")
        network.router.ip(f"route add {STRANGER}/32 dev side1")
        network.server.address("eth0", f"{CLOUD}/32", f"{OTHER}/24")
        network.router.ip(f"route add {CLOUD}/32 dev side2")
        with network.server:
            self.server = RawOrigin(lab, say_where, "::")
        with network.router:
            self.own = RawOrigin(lab, address="::")
        network.names.update({"www.test": [network.server.v4], "own.test": ["127.0.0.1"], "cloud.test": [CLOUD],
                              "router.test": [network.router.v4], "six.test": ["::1"], "mapped.test": ["::ffff:127.0.0.1"]})

    def proxy(self, lab, extra="", **options):
        with self.network.router:
            return Installed(lab, extra=f'listen ":3129" {{ mode = forward  allow = all }}\n'
                                        f"connect_ports = {{ 443, {self.server.port}, {self.own.port} }}\n{extra}", **options)

    def ask(self, method, target, port=3129, source=STRANGER):
        with self.network.client:
            wire = wire_module.Wire((self.network.router.v4, port), source=source)
        with wire:
            wire.send(request(method, target, host="x" if method == "CONNECT" else None))
            return wire.response(method)

    def get(self, host, port=None, **options):
        return self.ask("GET", f"http://{host}:{port or self.own.port}/", **options)


def share(lab):
    return Shared(lab)


def start_in(shared, lab, **options):
    proxy = shared.proxy(lab, **options)
    shared.server.requests.clear()
    shared.own.requests.clear()
    return proxy


def test_strangers_are_refused(lab, shared):
    proxy = start_in(shared, lab)
    for method in ("GET", "POST", "HEAD", "OPTIONS"):
        equal(shared.ask(method, f"http://www.test:{shared.server.port}/", port=3128).status, 403, method)
    equal(shared.ask("CONNECT", f"www.test:{shared.server.port}", port=3128).status, 403, "CONNECT")
    equal(shared.ask("PURGE", f"http://www.test:{shared.server.port}/", port=3128).status, 403, "PURGE")
    equal(len(shared.server.requests), 0, "requests at the server")
    equal(shared.ask("GET", f"http://www.test:{shared.server.port}/", port=3128, source=shared.network.client.v4).status, 200,
          "a client of a private network")
    with shared.network.router:
        true(proxy.counter("client_denied") >= 6, "counted")


def test_nobody_reaches_the_machine(lab, shared):
    """By name, address, mapped address, number; also the services of clouds."""
    start_in(shared, lab)
    equal(shared.get("www.test", shared.server.port).status, 200, "another machine")
    for host in ("own.test", "six.test", "mapped.test", "router.test", "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.0.0.1",
                 "[::1]", "[::ffff:7f00:1]", shared.network.router.v4, "10.99.2.1", "0", "localhost", "[fd99:1::1]"):
        equal(shared.get(host).status, 403, host)
        equal(shared.ask("CONNECT", f"{host}:{shared.own.port}").status, 403, f"CONNECT {host}")
    for host in ("cloud.test", CLOUD, "2852039166", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]", "168.63.129.16"):
        equal(shared.get(host, shared.server.port).status, 403, host)
    equal((len(shared.own.requests), len(shared.server.requests)), (0, 1), "requests that got there")


def test_names_that_change(lab, shared):
    """A name that is that of the server when it is judged, and another place when it is asked."""
    start_in(shared, lab, extra='origin { dns_ipv6 = false  dns_ttl_max = "1ms" }\n')
    for place in ("127.0.0.1", CLOUD, shared.network.router.v4):
        for method in ("GET", "CONNECT"):
            name = f"{method.lower()}{place.replace('.', '-')}.test"
            shared.network.names[name] = Turning(place)
            target = f"{name}:{shared.own.port}"
            equal(shared.ask(method, target if method == "CONNECT" else f"http://{target}/").status, 403, f"{method} {place}")
    equal(len(shared.own.requests), 0, "requests at the machine's own server")


KEPT = 1.1  # seconds; a name is used again for at least one


def test_sections_for_addresses_see_where_it_goes(lab, shared):
    """Names that change between the decision and the connection, and connections that others have opened."""
    rules = (f'url_class far {{ destination = "{OTHER}"  not = {{ friend }} }}\nurl_class friend {{ client = "{shared.network.client.v4}" }}\n'
             'access far { action = deny }\naccess all { action = allow }\norigin { dns_ipv6 = false  dns_ttl_max = "1ms" }\n')
    with shared.network.router:
        icap = IcapServer(lab, lambda _icap, transaction: (time.sleep(KEPT), transaction.send_204()), methods="REQMOD")
    start_in(shared, lab, extra=rules, services=[Service("s", icap.uri(), point="reqmod_precache", bypass=False)])
    shared.network.names["far.test"] = [OTHER]
    shared.network.names["turn.test"] = Turning(shared.network.server.v4, OTHER)
    shared.network.names["kept.test"] = [OTHER]
    equal(shared.get("far.test", shared.server.port).status, 403, "an address that is denied")
    equal(shared.get("turn.test", shared.server.port).status, 403, "a name that has turned to it")
    equal(len(shared.server.requests), 0, "requests so far")
    friend = shared.network.client.v4
    equal([shared.get("kept.test", shared.server.port, source=friend).text() for _ in range(2)], [OTHER] * 2, "a client that may")
    equal(len({request.connection_number for request in shared.server.requests}), 1, "connections of it")
    shared.network.names["kept.test"] = [shared.network.server.v4]
    time.sleep(KEPT)
    equal(shared.get("kept.test", shared.server.port).text(), shared.network.server.v4, "one that may not has another connection")


def test_services_and_redirections_lead_nowhere(lab, shared):
    places = [f"http://127.0.0.1:{shared.own.port}/", f"http://own.test:{shared.own.port}/", f"http://{CLOUD}:{shared.server.port}/"]
    to = {}

    def behave(_icap, transaction):
        transaction.send_head(transaction.request_head(drop=("host",), start=f"GET {to['url']} HTTP/1.1"), body=False)
    with shared.network.router:
        icap = IcapServer(lab, behave, methods="REQMOD")
    for point in ("reqmod_precache", "reqmod_postcache"):
        proxy = start_in(shared, lab, services=[Service("s", icap.uri(), point=point, bypass=False)])
        for to["url"] in places:
            equal(shared.get("www.test", shared.server.port).status, 403, f"{point} to {to['url']}")
        proxy.stop()
    rules = "".join(f'url_class to{number} {{ path_regex = "^/{number}" }}\naccess to{number} {{ action = redirect  to = "{place}" }}\n'
                    for number, place in enumerate(places)) + "access all { action = allow }\n"
    start_in(shared, lab, extra=rules)
    for number, place in enumerate(places):
        answer = shared.ask("GET", f"http://www.test:{shared.server.port}/{number}")
        equal((answer.status, answer.header("Location")), (302, place), "redirection")
        equal(shared.ask("GET", answer.header("Location")).status, 403, "where it leads")
    equal((len(shared.own.requests), len(shared.server.requests)), (0, 0), "requests that got there")
    contains(shared.get("own.test").text(), "listen.local_destinations", "the page")
