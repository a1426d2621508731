"""Proxies in front and behind: whose request it is, and what origins learn of that."""

from harness import ports
from harness.checks import contains, equal, until
from harness.haproxy import HAProxy
from harness.icap import IcapServer
from harness.interception import Interception
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.suite import memcheck
from harness.wire import Wire, request

FORWARDING = ("X-Forwarded-For", "Forwarded", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Via")


class Front:
    """A listener more, behind proxies that the harness plays from 127.0.0.1."""

    def __init__(self, lab, options="", extra="", mode="reverse", **given):
        self.port = ports.take()
        self.origin = Origin(lab)
        listen = f'listen "127.0.0.1:{self.port}" {{ mode = {mode}  local_destinations = allow {options} }}\n'
        self.proxy = Retort(lab, reverse={"/": self.origin.url("/")}, extra=listen + extra, **given)
        self.asked = 0

    def ask(self, fields, path="/echo", host="www.example.com"):
        self.asked += 1
        path += f"?n={self.asked}"
        lines = "".join(f"{line}\r\n" for line in fields)
        with Wire(("127.0.0.1", self.port), timeout=20) as wire:
            wire.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n".encode())
            return wire.response()


    def clients(self, *cases):
        """Each case is field lines, and who the log then says it was."""
        numbers = []
        for *fields, _expected in cases:
            equal(self.ask(fields).status, 200, "status")
            numbers.append(self.asked)
        found = {entry["url"].split("?n=")[1]: entry["client"] for entry in self.proxy.entries("?n=", self.asked)}
        for number, (*fields, expected) in zip(numbers, cases):
            equal(found[str(number)], expected, f"client of {fields}"[:200])

    def seen(self, *fields):
        answer = echoed(self.ask(fields))
        return {name: answer["header"](name) for name in FORWARDING}


TRUST = 'trusted_proxies = { "127.0.0.1", "10.0.0.0/8" }'


@memcheck
def test_the_client_behind_a_trusted_proxy(lab):
    """The last address that no trusted proxy has is the client; what stands before it counts for nothing."""
    front = Front(lab, TRUST)
    front.clients(
        ("127.0.0.1",),
        ("X-Forwarded-For: 192.0.2.1", "192.0.2.1"),
        ("X-Forwarded-For: 10.6.6.6, 198.51.100.7, 192.0.2.1, 10.1.2.3", "192.0.2.1"),
        ("X-Forwarded-For: 198.51.100.7", "X-Forwarded-For: 192.0.2.1", "192.0.2.1"),
        ("X-Forwarded-For: [2001:db8::1]:4711", "2001:db8::1"),
        ("X-Forwarded-For: 198.51.100.7, unknown", "127.0.0.1"),
        ("X-Forwarded-For: garbage\", 192.0.2.1", "192.0.2.1"),
        ("Forwarded: for=198.51.100.7", "127.0.0.1"),
        ("X-Forwarded-For: " + "10.9.9.9, " * 3000 + "192.0.2.1", "192.0.2.1"))
    # The next request of the same connection may be another client's.
    with Wire(("127.0.0.1", front.port), timeout=20) as wire:
        for number, client in enumerate(("192.0.2.1", "192.0.2.2", None)):
            fields = {"X-Forwarded-For": client} if client else {}
            wire.send(request("GET", f"/text?same={number}", fields, host="www.example.com"))
            equal(wire.response().status, 200, "status")
    equal([entry["client"] for entry in front.proxy.entries("same=", 3)], ["192.0.2.1", "192.0.2.2", "127.0.0.1"], "clients")


def test_rfc_7239_in_front(lab):
    front = Front(lab, TRUST + " client_from = forwarded")
    front.clients(
        ('Forwarded: for=198.51.100.7;proto=https, for="[2001:db8::1]:4711"', "2001:db8::1"),
        ('Forwarded: for=198.51.100.7', 'Forwarded: for="10.2.2.2:_port"', "198.51.100.7"),
        ('Forwarded: for="198.51.100.7, for=192.0.2.1', "192.0.2.1"),
        ("Forwarded: for=_hidden", "127.0.0.1"),
        ("X-Forwarded-For: 192.0.2.1", "127.0.0.1"))


def test_nobody_is_trusted_unasked(lab):
    front = Front(lab, 'trusted_proxies = "192.0.2.0/24"')
    front.clients(
        ("X-Forwarded-For: 198.51.100.7", "127.0.0.1"),
        ("X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1", "127.0.0.1"))
    code, said = front.proxy.check_config(front.proxy.text().replace('"192.0.2.0/24"', "all"))
    equal(code, 1, "exit status")
    contains(said, "trusted_proxies", "message")


def test_rules_and_services_see_that_client(lab):
    """listen.allow, url_class.client and X-Client-IP are about the client, not about the proxy in front."""
    seen = []

    def note(_icap, transaction):
        seen.append(transaction.request.header("X-Client-IP"))
        transaction.send_204()
    icap = IcapServer(lab, note, methods="REQMOD")
    service = Service("note", icap.uri(), point="reqmod_precache", include=["X-Client-IP"])
    front = Front(lab, TRUST + ' allow = { "127.0.0.1", "192.0.2.0/24" }', services=[service],
                  url_classes={"office": {"client": "192.0.2.0/25"}}, adapt={"office": ["note"]})
    equal(front.ask(["X-Forwarded-For: 198.51.100.7"]).status, 403, "a client that may not")
    equal(front.ask(["X-Forwarded-For: 192.0.2.200"]).status, 200, "a client outside of the class")
    equal(seen, [], "who the service was asked for")
    equal(front.ask(["X-Forwarded-For: 10.1.1.1, 192.0.2.1"]).status, 200, "a client of the class")
    equal(seen, ["192.0.2.1"], "who the service was asked for")


def test_what_origins_learn(lab):
    fields = ("X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1", "X-Forwarded-Proto: https")
    front = Front(lab, TRUST)
    equal(front.seen(*fields), {
        "X-Forwarded-For": "192.0.2.1, 127.0.0.1", "Forwarded": "for=192.0.2.1", "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": None, "X-Real-IP": None, "Via": "1.1 retort"}, "by default")

    def as_configured(options):
        front.proxy.write_config(front.proxy.text() + f"forwarding {{ {options} }}\n")
        equal(front.proxy.reload().status, 200, "reload")
        return front.seen(*fields)
    seen = as_configured("x_forwarded_for = replace  forwarded = append  x_forwarded_host = true  via = false")
    equal(seen, {"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1, for=127.0.0.1;proto=http",
                 "X-Forwarded-Proto": "https", "X-Forwarded-Host": "www.example.com", "X-Real-IP": None,
                 "Via": None}, "replaced")
    equal(front.ask(()).header("Via"), None, "Via in the response")
    seen = as_configured("x_forwarded_for = delete  forwarded = delete")
    equal((seen["X-Forwarded-For"], seen["Forwarded"]), (None, None), "deleted")
    seen = as_configured("x_forwarded_for = off  forwarded = replace")
    equal((seen["X-Forwarded-For"], seen["Forwarded"]), ("192.0.2.1", "for=192.0.2.1;proto=http"), "off and replaced")


def test_no_client_has_it_dropped(lab):
    """A client may name fields in Connection, and its words pass through proxies in front."""
    front = Front(lab, TRUST, extra="forwarding { x_forwarded_proto = true }\n")
    said = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "a.test", "X-Real-IP": "192.0.2.1"}
    seen = front.seen(*(f"{name}: {value}" for name, value in said.items()), "Connection: " + ", ".join(said))
    equal({name: seen[name] for name in said}, {**said, "X-Forwarded-For": "192.0.2.1, 127.0.0.1"}, "fields at the origin")


def test_what_strangers_say(lab):
    front = Front(lab, 'trusted_proxies = "192.0.2.0/24"', extra="forwarding { untrusted = drop }\n")
    seen = front.seen("X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1", "X-Forwarded-Proto: https",
                      "X-Forwarded-Host: evil.example", "X-Real-IP: 192.0.2.1", "x-forwarded-for: 192.0.2.2")
    equal(seen, {"X-Forwarded-For": "127.0.0.1", "Forwarded": None, "X-Forwarded-Proto": "http",
                 "X-Forwarded-Host": None, "X-Real-IP": None, "Via": "1.1 retort"}, "what the origin sees")
    kept = Front(lab)
    seen = kept.seen("X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https")
    equal((seen["X-Forwarded-For"], seen["X-Forwarded-Proto"]), ("192.0.2.1, 127.0.0.1", "http"), "kept")


def test_a_refresh_in_the_background_is_for_the_same_client(lab):
    def answer(connection, _request):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=5, stale-while-revalidate=60\r\nAge: 10\r\n"
                        b"ETag: \"e\"\r\nContent-Length: 2\r\n\r\nok")
    origin = RawOrigin(lab, answer)
    front = Front(lab, TRUST, extra=f'map "http://stale.example/" {{ origin = "{origin.url("/")}" }}\n'
                                    "forwarding { x_forwarded_for = replace }\n")
    for client in ("192.0.2.1", "192.0.2.2"):
        equal(front.ask([f"X-Forwarded-For: {client}"], "/page", "stale.example").body, b"ok", "body")
        front.asked = 0
    until(lambda: len(origin.requests) == 2, 5, "the refresh")
    equal([seen.header("X-Forwarded-For") for seen in origin.requests], ["192.0.2.1", "192.0.2.2"], "clients")
    equal(front.proxy.results("/page", 2), ["MISS", "STALE"], "results")


def test_haproxy_in_front(lab):
    """HAProxy adds a line of its own behind what the client says."""
    origin = Origin(lab)
    port = ports.take()
    proxy = Retort(lab, reverse={"/": origin.url("/")}, extra=f'''
        listen "127.0.0.1:{port}" {{ mode = reverse  trusted_proxies = "127.0.0.1"  allow = "127.0.0.9" }}
        forwarding {{ x_forwarded_for = replace }}''')
    balancer = HAProxy(lab, to=("127.0.0.1", port), mode="http", front="option forwardfor")
    for claimed in ({}, {"X-Forwarded-For": "192.0.2.1"}, {"X-Forwarded-For": "127.0.0.9, 127.0.0.1"}):
        with Wire(balancer.address, timeout=20, source="127.0.0.9") as wire:
            wire.send(request("GET", "/echo", claimed, host="www.example.com"))
            equal(echoed(wire.response())["header"]("X-Forwarded-For"), "127.0.0.9", f"client that says {claimed}")
        with Wire(balancer.address, timeout=20, source="127.0.0.8") as wire:
            wire.send(request("GET", "/echo", claimed, host="www.example.com"))
            equal(wire.response().status, 403, f"another client that says {claimed}")
    equal({entry["client"] for entry in proxy.entries("/echo", 6)}, {"127.0.0.9", "127.0.0.8"}, "clients in the log")


def test_inside_an_intercepted_connection(lab):
    """The client of the CONNECT counts; what the client itself says inside counts for nothing."""
    port = ports.take()
    site = Interception(lab, "www.example.com", extra=f"""
        listen "127.0.0.1:{port}" {{ mode = forward  local_destinations = allow  trusted_proxies = "127.0.0.1"
                                     allow = {{ "127.0.0.1", "192.0.2.0/24" }} }}""")
    for fields, client in (({"X-Forwarded-For": "192.0.2.1"}, "192.0.2.1"), ({}, "127.0.0.1")):
        with site.bumped("www.example.com", headers=fields, listener=port) as inside:
            inside.send(request("GET", f"/of-{client}", {"X-Forwarded-For": "198.51.100.7"}, host=site.host("www.example.com")))
            equal(inside.response().status, 200, "status")
        equal(site.proxy.entries(f"/of-{client}")[0]["client"], client, "client of the request inside")
