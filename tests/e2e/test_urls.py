"""One form of a URL for everything: what is stored, which class it is of, where it goes, what the origin is asked for."""

import json
from urllib.parse import quote

from harness.checks import contains, equal
from harness.icap import IcapServer
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service, run_check
from harness.suite import memcheck
from harness.wire import request


def echo(connection, seen):
    """Answers with what it was asked for, for everybody."""
    body = json.dumps([seen.target, seen.header("Host")]).encode()
    connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: %d\r\n\r\n" % len(body)
                    + (b"" if seen.method == "HEAD" else body))


# Other spellings of /a/private/x?q=/../%2F, by RFC 3986 6.2.2 and 6.2.3.
SPELLINGS = ["/a/private/x", "/a/./private/x", "/a/%2e/private/x", "/a/b/../private/x", "/a/b/%2E%2e/private/./x", "/../a/private/x",
             "/%61/p%72ivate/x", "/a/private/y/../x", "/./a/private/x", "/a/%2E/b/c/.%2e/%2e./private/%78"]
QUERY = "?q=/../%2f"
CANONICAL = "/a/private/x?q=/../%2F"


def ask(wire, target, host):
    wire.send(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target.encode(), host.encode()))
    return wire.response()


@memcheck
def test_spellings_in_forward_mode(lab):
    """RFC 9112 3.2.2: "When a proxy receives a request with an absolute-form of request-target, the proxy MUST ignore the
    received Host header field (if any) and instead replace it with the host information of the request-target." """
    origin = RawOrigin(lab, echo)
    proxy = Retort(lab, extra="url_class p { path_regex = '^/a/private/' }\nurl_class q { host = '127.0.0.1' path_regex = '^/b/' }\n"
                              "policy p { cache = never }\npolicy q { ttl = 1h }\n")
    host, port = origin.address
    expected = [CANONICAL, origin.authority]
    with proxy.wire() as wire:
        for number, spelling in enumerate(SPELLINGS):
            named = (host, host + ".")[number % 2]
            answer = ask(wire, f"HTTP://{named}:{port}{spelling}{QUERY}#{spelling}", "evil.example")
            equal(json.loads(answer.body), expected, f"what is asked for by {spelling} at {named}")
        equal(len(origin.requests), len(SPELLINGS), "requests at the origin, of a class that is not stored")
        for spelling in SPELLINGS:
            ask(wire, f"http://{host}:{port}/..{spelling}/../../stored", "evil.example")
        equal(len(origin.requests), len(SPELLINGS) + 1, "requests at the origin for what is stored")


@memcheck
def test_spellings_in_reverse_mode(lab):
    origin = RawOrigin(lab, echo)
    proxy = Retort(lab, reverse={"/": {"origin": origin.url("/"), "preserve_host": True}},
                   extra="url_class p { host = www.example.com path_regex = '^/a/private/' }\npolicy p { cache = never }\n")
    hosts = ["www.example.com", "WWW.Example.com", "www.example.com.", "www.example.com:80", "www.example.com.:"]
    with proxy.wire(reverse=True) as wire:
        for number, spelling in enumerate(SPELLINGS):
            for form in ("", "http://www.EXAMPLE.com.:80"):
                host = hosts[number % len(hosts)] if form == "" else "evil.example"
                answer = ask(wire, form + spelling + QUERY, host)
                equal(json.loads(answer.body), [CANONICAL, "www.example.com"], f"what is asked for by {form}{spelling} at {host}")
        equal(len(origin.requests), 2 * len(SPELLINGS), "requests at the origin")


# Behind a map's prefix: what a server may take for "..".
CLIMBING = ["../secret", "/..%2fsecret", "/..%2Fsecret", "/..%5csecret", "/..\\secret", "/..;/secret", "/..;a=b/secret", "..", "/%2e%2e%2fsecret",
            "../", "..%2fsecret", "..;/secret", "..\\secret", "/x/..%2f..%2fsecret", "/.;/x", "/.%2fx", "/..%252fsecret", "/%252e%252e/secret",
            "/..%c0%afsecret", "/%c0%ae%c0%ae/secret", "%2f..%2fsecret", "/%25252e./secret",
            "/..%%35csecret", "/%%32e%%32e/secret", "/..%%32%66secret"]


def test_nothing_climbs_out_of_a_map(lab):
    """What goes out is checked, prefix and rest together, also after a service has written the URL."""
    origin = RawOrigin(lab, echo)

    def rewrite(_icap, transaction):
        start = transaction.http_request.start
        target = transaction.http_request.header("X-Target")
        if target is not None:
            method, _, version = start.split(" ")
            start = f"{method} http://www.example.com{target} {version}"
        transaction.send_head(transaction.request_head(start=start), body=False)
    icap = IcapServer(lab, rewrite, "REQMOD")
    service = Service("s", icap.uri(), point="reqmod_precache", bypass=False)
    late = Service("t", icap.uri(), point="reqmod_postcache", bypass=False)
    for services in ((), (service,), (late,)):
        before = len(origin.requests)
        proxy = Retort(lab, reverse={"/short": origin.url("/app/short"), "/rest/": origin.url("/")}, services=services)

        def get(path, proxy=proxy, services=services):
            asked, more = (f"/short/first?{len(path)}", {"X-Target": path}) if services else (path, {})
            with proxy.wire(reverse=True) as wire:
                wire.send(request("GET", asked, {"Host": "www.example.com", **more}))
                return wire.response()
        for rest in CLIMBING:
            equal(get("/short" + rest).status, 400, f"status of /short{rest} with {len(services)} services")
        equal(len(origin.requests), before, "requests at the origin")
        # Dot segments themselves only shorten the path.
        for path, expected in (("/short/x/../y", "/app/short/y"), ("/short/./y.z", "/app/short/y.z"), ("/x/../short/long/a..b", "/app/short/long/a..b")):
            equal(json.loads(get(path).body)[0], expected, f"what is asked for by {path}")
        proxy.stop()


@memcheck
def test_maps_keep_each_slash(lab):
    """Else a class would see another path than the origin: RFC 3986 3.3 lets segments be empty."""
    origin = RawOrigin(lab, echo)
    proxy = Retort(lab, reverse={"/": origin.url("/"), "/deep/": origin.url("/root/"), "/bare/": origin.url("/b"), "/cut": origin.url("/c/")},
                   extra="url_class p { path_regex = '^/a/private/' }\npolicy p { cache = never }\n")
    for path, expected in (("/a/private/x", "/a/private/x"), ("//a/private/x", "//a/private/x"), ("/a//private/x", "/a//private/x"),
                           ("///", "///"), ("/deep/x", "/root/x"), ("/deep//x", "/root//x"), ("/deep/", "/root/"), ("/bare/x", "/b/x"),
                           ("/bare//x", "/b//x"), ("/bare/?q", "/b?q"), ("/cut/x", "/c/x"), ("/cut//x", "/c//x"), ("/cut", "/c/")):
        equal(json.loads(proxy.get(path).body)[0], expected, f"what is asked for by {path}")


def test_maps_have_no_dot_segments(lab):
    origin = RawOrigin(lab, echo)
    proxy = Retort(lab, reverse={"http://WWW.Example.com.:80/%7Ea/": {"origin": origin.url("/t/"), "preserve_host": True}})
    answer = proxy.get("/%7ea/x", host="www.example.com")
    equal(json.loads(answer.body), ["/t/x", "www.example.com"], "a map that is not in canonical form")
    for title, target in (("/a/../b", "/"), ("/a/%2e/", "/"), ("/a", "/x/..%2f")):
        text = f'listen "127.0.0.1:1" {{ mode = reverse }}\nmap "{title}" {{ origin = "http://h{target}" }}\n'
        status, said = run_check(lab, lab.write("maps.conf", text))
        equal(status, 1, f"status of retort -t for {title} to {target}")
        contains(said, "segment", "what it says")


@memcheck
def test_the_admin_plane_has_the_same_form(lab):
    origin = RawOrigin(lab, echo)
    proxy = Retort(lab)
    url, other = origin.url("/a/b"), origin.url("/other")
    for spelling in ("/a/./b", "/a/c/%2e./b", "/%61/b"):
        proxy.get(url)
        equal(proxy.admin("DELETE", "/cache/object?url=" + quote(origin.url(spelling), safe="")).status, 200, f"DELETE of {spelling}")
    proxy.get(url)
    proxy.get(other)
    # A prefix ends within a segment, which may go on and be another one than "..".
    for prefix, purged in (("/a/..", 0), ("/a/.", 0), ("/a/%2e%2e", 0), ("/other/../a/./", 1)):
        answer = proxy.admin("POST", "/cache/purge?prefix=" + quote(origin.url(prefix), safe=""))
        equal(json.loads(answer.body)["purged"], purged, f"purged by {prefix}")
    for host in (origin.address[0] + ".", origin.address[0]):
        proxy.get(other)
        equal(json.loads(proxy.admin("POST", "/cache/purge?host=" + host).body)["purged"] > 0, True, f"whether the host {host} is found")


def test_connect_has_one_form(lab):
    """Host and port as they are compared with classes, services and the log have them."""
    origin = RawOrigin(lab, echo)
    host, port = origin.address
    proxy = Retort(lab, extra=f"connect_ports = {{ {port} }}")
    with proxy.wire() as wire:
        wire.send(f"CONNECT {host}.:{port} HTTP/1.1\r\nHost: evil.example\r\n\r\n".encode())
        equal(wire.response("CONNECT").status, 200, "status of CONNECT")
        equal(json.loads(ask(wire, "/a/../b", "h").body), ["/a/../b", "h"], "what goes through the tunnel is the client's")


def test_options_for_the_whole_server(lab):
    """RFC 9112 3.2.4: "If a proxy receives an OPTIONS request with an absolute-form of request-target in which the URI has an empty
    path and no query component, then the last proxy on the request chain MUST send a request-target of "*"" """
    origin = RawOrigin(lab, echo)
    proxy = Retort(lab)
    for target, expected in (("", "*"), ("/", "/"), ("?", "/?")):
        proxy.fetch("OPTIONS", origin.url("") + target)
        equal(origin.requests[-1].target, expected, f"target of OPTIONS for {target!r}")
