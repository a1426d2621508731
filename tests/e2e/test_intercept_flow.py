"""Interception from the CONNECT to the requests inside: which connections are spliced, bumped and blocked, and what is seen of
them."""

import ssl

from harness import wire
from harness.certificates import CLIENT, Authority
from harness.checks import contains, equal, lacks, true, until
from harness.hello import Hello, records, server_flight
from harness.icap import IcapServer, unchanged
from harness.interception import Interception, Refused
from harness.retort import Service
from harness.suite import memcheck

RULES = """
url_class banks { domain = "bank.example" }
url_class bad { domain = "bad.example" }
intercept bad { action = block }
intercept banks { action = splice }
intercept all { action = bump }
"""
INCLUDED = ("X-TLS-SNI", "X-TLS-Version", "X-Client-Username", "X-TLS-Verification")
NAMES = ("www.example.com", "*.bank.example", "*.bad.example")


def stored(connection, request):
    if request.method == "POST":
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(request.body), request.body))
        return
    body = f"{request.method} {request.target}\n".encode()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: max-age=600\r\nAlt-Svc: h3=\":443\"\r\n\r\n"
                    % len(body) + body)


def upgrading(connection, request):
    connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello ")
    connection.send(connection.read_some())
    return True


def site_of(lab, *names, **options):
    options.setdefault("answer", stored)
    return Interception(lab, *(names or NAMES), **options)


def issuer_of(site, name, **options):
    """Who signed what a client of that name is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(site.authority.file)
    context.load_verify_locations(site.root.file)
    with site.bumped(name, context, **options) as client:
        return dict(pair[0] for pair in client.socket.getpeercert()["issuer"])["commonName"]


def test_a_hit_needs_no_connection_to_the_origin(lab):
    site = site_of(lab)
    first = site.get("www.example.com", "/a")
    equal(first.status, 200, "status")
    equal(first.header("Alt-Svc"), None, "Alt-Svc")
    equal(len(site.origin.names), 1, "handshakes: the one that verified the origin carries the request")
    equal(site.get("www.example.com", "/a").body, first.body, "the stored response")
    equal(len(site.origin.names), 1, "handshakes after a hit on a new connection")
    equal(site.proxy.counter("intercept_identity_hits"), 1, "identities remembered")
    equal(site.proxy.counter("intercept_bumped"), 2, "bumped")
    line = site.proxy.entries("/a")[0]
    equal(line["url"], site.url("www.example.com", "/a"), "URL in the log")
    equal((line["sni"], line["tls_verification"]), ("www.example.com", "ok"), "log")
    contains(line["tls_issuer"], "root", "issuer")


def test_actions(lab):
    site = site_of(lab, rules=RULES)
    equal(issuer_of(site, "www.bank.example"), "root", "spliced")
    equal(issuer_of(site, "www.example.com"), "authority", "bumped")
    with site.bumped("www.bank.example", site.context(trusts=site.root.file)) as client:
        client.send(wire.request("GET", "/private", {"Host": "www.bank.example"}))
        equal(client.response().header("Alt-Svc"), 'h3=":443"', "spliced bytes are as they were")
    before = len(site.origin.names)
    page = site.get("www.bad.example", "/")
    equal(page.status, 403, "blocked")
    contains(page.text(), "blocked", "the page inside TLS")
    equal(len(site.origin.names), before, "a blocked server is not contacted")
    counts = [site.proxy.counter("intercept_" + name) for name in ("spliced", "bumped", "blocked")]
    equal(counts, [2, 1, 1], "spliced, bumped, blocked")
    lacks("\n".join(str(line) for line in site.proxy.log()), "/private", "the log of a spliced connection")


REFUSING = """
url_class denied { domain = "denied.example" }
url_class moved { domain = "moved.example" }
url_class banks { domain = "bank.example" }
url_class staff { domain = "staff.example" }
access denied { action = deny  status = 451  page = own }
access moved { action = redirect  status = 303  to = "http://blocked.example/why?host=%{host}&url=%{url}" }
access banks { action = deny }
access staff { action = authenticate  with = { people } }
access all { action = allow }
intercept banks { action = splice }
intercept all { action = bump }
"""


def refusing(lab, interception=""):
    lab.write("own.html", "<p>%{url} by %{rule}: %{error}</p>")
    lab.write("users", "")
    return site_of(lab, "fine.example", rules=REFUSING, interception=interception, extra=f"""
error_page all {{ name = own  file = "{lab.path('own.html')}" }}
authenticator people {{ type = basic  file = "{lab.path('users')}" }}""")


def shown(site, host, name=None):
    """The page inside of the connection to this host, whose TLS asks for `name`."""
    page = site.get(name or host, "/a?b", to=(host, site.origin.port))
    equal(page.header("Connection"), "close", f"{host}: the connection behind the page")
    return page


def status_in_clear_text(site, host):
    try:
        site.tunnel(to=(host, site.origin.port)).close()
    except Refused as refused:
        return refused.response.status
    return 200


def test_what_access_refuses(lab):
    """Browsers show nothing of an answer to CONNECT, so the page, or the redirection, is inside of the connection where it would be
    opened anyway. What is left closed, and a question for credentials, is answered in clear text."""
    site = refusing(lab)
    page = shown(site, "denied.example")
    equal(page.status, 451, "denied: status")
    url = site.url("denied.example", "/a?b")
    equal(page.text().strip(), f"<p>{url} by denied: the access rules of this proxy do not allow this request</p>", "denied: the page of the section")
    page = shown(site, "moved.example")
    equal(page.status, 303, "redirected: status")
    equal(page.header("Location"), f"http://blocked.example/why?host=moved.example&url=https%3A%2F%2F{site.host('moved.example')}%2F".replace(
        ":", "%3A").replace("http%3A", "http:", 1), "redirected: where to")
    equal(shown(site, "denied.example", "fine.example").status, 451, "a host that is denied, with TLS for one that is not")
    page = shown(site, site.origin.host, "denied.example")
    contains(page.text(), " by denied: ", "TLS for a host that is denied: the page of the section")
    equal(shown(site, site.origin.host, "moved.example").status, 303, "TLS for a host that is redirected")
    for host, status in (("bank.example", 403), ("staff.example", 407)):
        equal(status_in_clear_text(site, host), status, f"CONNECT {host}")
    equal(site.origin.names, [], "connections at the server")
    connects = [entry for entry in site.proxy.log(12) if entry["method"] == "CONNECT"]
    equal([(entry["result"], entry.get("access")) for entry in connects[:2]], [("DENIED", "denied"), ("DENIED", "moved")], "CONNECT in the log")
    inside = site.proxy.entries("denied.example")
    equal([(entry["status"], entry["result"]) for entry in inside if entry["url"] == url], [(451, "DENIED")] * 2, "the page in the log")
    equal(site.proxy.counter("intercept_blocked"), 5, "blocked")


@memcheck
def test_refused_clients_get_no_tunnel(lab):
    """Whatever a client sends that is told that the connection is there, none of it goes anywhere; nor is it waited for too long."""
    site = refusing(lab, 'hello_timeout = "500ms"  not_tls = tunnel')
    for what, sent in (("no TLS", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ("a record of another kind", b"\x17\x03\x03\x00\x01x"),
                       ("half a ClientHello", records(Hello(b"denied.example").message())[:40]), ("nothing", b"")):
        with site.tunnel(to=("denied.example", site.origin.port)) as client:
            client.send(sent)
            true(client.at_end(20 * lab.patience), f"the connection is cut after {what}")
    site.tunnel(to=("denied.example", site.origin.port)).close()
    equal(site.origin.names, [], "connections at the server")
    equal({entry["result"] for entry in site.proxy.log(5)}, {"DENIED"}, "results in the log")
    site.proxy.write_config(site.proxy.text().replace("not_tls = tunnel", "show_denied = false"))
    equal(site.proxy.reload().status, 200, "reload")
    for host, status in (("denied.example", 451), ("moved.example", 403)):
        equal(status_in_clear_text(site, host), status, f"CONNECT {host}, show_denied = false")


def test_a_name_gives_no_other_host_a_tunnel(lab):
    """The client chooses the name in its TLS. A connection that is opened for one host is not left alone because its
    TLS asks for another one, and the other way round."""
    hosts = lab.path("hosts")
    with open(hosts, "w", encoding="ascii") as file:
        file.write("127.0.0.1 bank.example www.bank.example evil.example\n")
    services = IcapServer(lab, unchanged, methods="REQMOD", preview=0)
    site = site_of(lab, "bank.example", "www.bank.example", "evil.example", origin={"hosts_file": hosts},
                   services=[Service("s", services.uri(), point="reqmod_precache")],
                   extra='url_class bank { domain = "bank.example" }\naccess bank { action = tunnel }\naccess all { action = allow }')
    for host, name, issuer in (
            ("bank.example", "bank.example", "root"), ("www.bank.example", "bank.example", "root"),
            ("127.0.0.1", "bank.example", "root"), ("127.0.0.1", "evil.example", "authority"),
            ("evil.example", "evil.example", "authority"),
            ("evil.example", "bank.example", "authority"), ("bank.example", "evil.example", "authority")):
        before = len(services.transactions)
        equal(issuer_of(site, name, to=(host, site.origin.port)), issuer, f"CONNECT {host}, TLS for {name}")
        equal(len(services.transactions) - before, int(issuer == "authority"), f"services that saw CONNECT {host}")


def test_other_hosts_are_misdirected(lab):
    site = site_of(lab)
    for host, target in (("www.other.example", "/"), ("www.example.com", "/"), ("www.example.com:1", "/"), (None, "http://www.example.com/"),
                         (None, "https://www.other.example/")):
        with site.bumped("www.example.com") as client:
            client.send(wire.request("GET", target, {"Host": host or "www.example.com"}))
            equal(client.response().status, 421, f"{host} {target}")
    equal(site.proxy.counter("intercept_misdirected"), 5, "counted")
    equal(site.origin.requests, [], "requests at the origin")
    with site.bumped("www.example.com") as client:
        client.send(wire.request("CONNECT", "www.example.com:443", host="www.example.com:443"))
        equal(client.response("CONNECT").status, 405, "CONNECT inside")


def test_origins_that_fail(lab):
    root = Authority(lab, "elsewhere")
    for certificate, words in ((root.leaf("www.example.com"), "issuer"), (None, "expired")):
        site = site_of(lab, "www.example.com", certificate=certificate)
        if certificate is None:
            site = site_of(lab, certificate=site.root.leaf("www.example.com", days=-1))
        for _ in range(2):
            page = site.get("www.example.com", "/")
            equal(page.status, 502, "status")
        lacks(str(site.origin.requests), "GET", "requests at the origin")
        true(site.proxy.counter("intercept_untrusted") == 2, "counted")
        equal(len(site.origin.names), 1, "the failure is remembered for failure_time")
    refused = site_of(lab, "www.example.com", certificate=root.leaf("www.example.com"), interception="mirror_errors = true")
    try:
        refused.get("www.example.com")
        raise AssertionError("the certificate is one that clients refuse")
    except ssl.SSLCertVerificationError:
        pass


def test_clients_that_refuse(lab):
    site = site_of(lab, interception="refusals = 2")
    pinned = site.context(trusts=site.root.file)
    for _ in range(2):
        try:
            site.get("www.example.com", context=pinned)
            raise AssertionError("the client trusts the proxy")
        except ssl.SSLError:
            pass
        site.proxy.log()
    until(lambda: site.proxy.counter("intercept_refusals") == 2, 5, "refusals")
    equal(site.get("www.example.com", context=pinned).status, 200, "spliced")
    equal(site.get("www.example.com", source="127.0.0.2").status, 200, "bumped for another client")
    contains(site.proxy.process.log(), "has refused the certificate for www.example.com:", "log")
    contains(site.proxy.ctl("intercept"), "refused 2 times, spliced", "retortctl intercept")
    contains(site.proxy.ctl("intercept", "clear", "client=127.0.0.9"), "0 entries", "another client")
    contains(site.proxy.ctl("intercept", "clear", "host=www.example.com"), "1 entry cleared", "cleared")
    equal(site.get("www.example.com").status, 200, "bumped again")
    site.proxy.ctl("intercept", "drop", expect=2)


@memcheck
def test_origins_that_ask_for_certificates(lab):
    clients = Authority(lab, "clients")
    alice = clients.leaf("alice.example", usage=CLIENT)
    site = site_of(lab, "www.example.com", clients=clients.file)
    context = site.context(trusts=site.root.file)
    context.load_cert_chain(alice.file, alice.key)
    for _ in range(2):
        equal(site.get("www.example.com", context=context).status, 200, "spliced at once, with the client's certificate")
    equal(site.proxy.counter("intercept_asking"), 1, "found once")
    equal(site.proxy.counter("intercept_exempt"), 1, "remembered")


def test_upgrades(lab):
    site = site_of(lab, answer=upgrading)
    with site.bumped("www.example.com") as client:
        client.send(wire.request("GET", "/socket", {"Host": site.host("www.example.com"), "Connection": "Upgrade",
                                                    "Upgrade": "websocket"}))
        equal(client.head(wire.Response).status, 101, "status")
        client.send(b"world")
        equal(client.read_bytes(11), b"hello world", "bytes both ways")


def test_hellos_in_pieces(lab):
    site = site_of(lab, rules=RULES)
    message = Hello(name=b"www.example.com", alpn=(b"http/1.1",)).message()
    for what, pieces in (("byte by byte", (records(message), 1)), ("in many records", (records(message, size=40), 100000)),
                         ("both", (records(message, size=7), 3)), ("in one piece", (records(message), 100000))):
        with site.tunnel() as tunnel:
            tunnel.send_pieces(*pieces)
            flight = server_flight(tunnel)
            equal(flight.alert, None, what)
            true(flight.certificates, what)


def test_what_is_not_tls(lab):
    refusing = "not_tls = refuse  hello_timeout = 300ms"
    for options, passed in (("hello_timeout = 300ms", True), (refusing, False)):
        site = site_of(lab, rules=RULES, interception=options.replace("300ms", '"300ms"'))
        for count, first in enumerate((b"SSH-2.0-x\r\n", b"\x17\x03\x03\x00\x05hello", b""), 1):
            with site.tunnel() as tunnel:
                tunnel.send(first)
                until(lambda s=site, c=count: s.proxy.counter("intercept_not_tls") == c, 5, f"{first!r} is counted")
                if passed:
                    until(lambda s=site, c=count: s.origin.accepted == c, 5, f"{first!r} is tunnelled")
                else:
                    true(tunnel.at_end(), f"{first!r} is refused")
    with site_of(lab).tunnel() as tunnel:
        tunnel.send(records(Hello(name=b"www.example.com", alpn=(b"h3",)).message()))
        true(server_flight(tunnel).certificates, "a client that speaks another protocol is spliced")


def test_names(lab):
    site = site_of(lab, "www.example.com", "127.0.0.1", interception="refusals = 0")
    for name in (b"www.example.com,DNS:victim.example", b"*", b"a b", b"x" * 255, b"127.0.0.1", None):
        with site.tunnel() as tunnel:
            tunnel.send(records(Hello(name=name).message()))
            flight = server_flight(tunnel)
            true(flight.certificates, f"{name!r} gets a certificate for the address that was dialled, or an alert")
            lacks(flight.certificates[0], b"victim", f"the certificate for {name!r}")
    context = site.context()
    context.check_hostname = False
    with site.bumped(None, context) as client:
        equal(dict(client.socket.getpeercert())["subjectAltName"], (("IP Address", "127.0.0.1"),), "without a name")
        client.send(wire.request("GET", "/", {"Host": f"127.0.0.1:{site.origin.port}"}))
        equal(client.response().status, 200, "status")
    with site.tunnel() as tunnel:
        tunnel.send(records(Hello(name=b"www.example.com", suites=(0xC02F,), schemes=(0x0401, 0x0804)).message()))
        equal(server_flight(tunnel).alert, None, "a client that verifies RSA only")


def test_services_see_the_name(lab):
    seen = []

    def behave(icap, transaction):
        seen.append(tuple(transaction.request.header(name) for name in INCLUDED))
        unchanged(icap, transaction)
    server = IcapServer(lab, behave, methods="REQMOD")
    site = site_of(lab, services=[Service("s", server.uri(), point="reqmod_precache", include=INCLUDED)])
    forged = {"Proxy-Authorization": "Basic bWFsOng=", "X-TLS-SNI": "forged.example"}
    with site.bumped("www.example.com", headers={"Proxy-Authorization": "Basic am9lOnNlY3JldA=="}) as client:
        client.send(wire.request("GET", "/", {"Host": site.host("www.example.com"), **forged}))
        equal(client.response().status, 200, "status")
    equal(seen[0], ("www.example.com", None, "joe", None), "the CONNECT")
    equal(seen[1], ("www.example.com", "TLSv1.3", "joe", "ok"), "the request inside")
    equal(site.proxy.entries("https://")[0]["user"], "joe", "user in the log")


def test_services_decide(lab):
    page = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Type: text/plain\r\nProxy-Authenticate: Basic\r\n\r\n"

    def behave(icap, transaction):
        name, connects = transaction.request.header("X-TLS-SNI"), transaction.http_request.start.startswith("CONNECT")
        if connects and name.startswith("page"):
            transaction.send_200(page, b"not from here")
        elif connects and name != "www.bank.example":
            transaction.send_head(transaction.request_head(add=[("X-Intercept", name.split(".")[0])]), body=False)
        else:
            unchanged(icap, transaction)
    server = IcapServer(lab, behave, methods="REQMOD")
    site = site_of(lab, "*.example.com", "*.bank.example", rules=RULES,
                   services=[Service("s", server.uri(), point="reqmod_precache", include=["X-TLS-SNI"], bypass=False)])
    equal(issuer_of(site, "bump.bank.example"), "root", "a service can not have a connection opened")
    equal(issuer_of(site, "splice.example.com"), "root", "spliced by a service")
    answer = site.get("page.example.com")
    equal((answer.status, answer.body, answer.header("Proxy-Authenticate")), (403, b"not from here", None), "a service's page")
    contains(site.get("block.bank.example").text(), "service blocks", "blocked by a service")
    with site.tunnel(headers={"X-Intercept": "splice"}) as tunnel:
        tunnel.socket = site.context().wrap_socket(tunnel.socket, server_hostname="bump.example.com")
    server.stop()
    contains(site.get("other.example.com").text(), "The adaptation service s failed", "a service that fails")


@memcheck
def test_clients_that_leave(lab):
    site = site_of(lab)
    hello = records(Hello(name=b"www.example.com").message())
    for phase in (b"", hello[:20], hello, hello + b"\x16\x03\x03\x00\x10"):
        tunnel = site.tunnel()
        tunnel.send(phase)
        tunnel.abort()
    for _ in range(3):
        client = site.bumped("www.example.com")
        client.send(b"GET / HT")
        client.abort()
    until(lambda: site.proxy.counter("transactions_active") == 0, 5, "no transaction is left")
    equal(site.get("www.example.com").status, 200, "all is well")
