"""Conditions of URL classes, seen by a policy: what its class matches is never stored."""

import json
import os
import socket
import ssl
import time

from harness import ports
from harness.certificates import CLIENT, Authority
from harness.checks import contains, equal, lacks, true
from harness.origin import Origin
from harness.retort import Retort, measure
from harness.suite import memcheck


def start(lab, classes, *more, **options):
    """classes: of each name the conditions; the class is about paths that begin with the name."""
    lines = [f"url_class {name} {{ path_regex = '^/{name}/' {conditions} }}\npolicy {name} {{ cache = never }}"
             for name, conditions in classes.items()]
    return Origin(lab), Retort(lab, extra="\n".join([*lines, *more]), cache={"memory": "32MB", "x_cache": True}, **options)


class Asker:
    """Asks whether a request is of the class that its path names."""

    def __init__(self, origin, proxy):
        self.origin, self.proxy, self.count = origin, proxy, 0

    def stored(self, name, headers):
        self.count += 1
        url = self.origin.url(f"/{name}/{self.count}", cc="max-age=60")
        equal(self.proxy.get(url, headers).status, 200, "status")
        return "HIT" in self.proxy.get(url, headers).header("X-Cache")

    def yes(self, name, headers=None):
        true(not self.stored(name, headers), f"{name} matches {headers}")

    def no(self, name, headers=None):
        true(self.stored(name, headers), f"{name} does not match {headers}")


@memcheck
def test_what_the_request_says(lab):
    guests = ports.take()
    days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    tomorrow = days[(time.localtime(time.time() + 3600).tm_wday + 3) % 7]  # neither today nor a day beside it
    origin, proxy = start(
        lab, {"method": "method = { GET, HEAD }", "post": "method = POST",
              "port": 'port = { 443, "1024-65535" }', "otherport": "port = 80",
              "scheme": "scheme = http", "https": "scheme = https",
              "field": "request_header = 'X-Kind: ^good'", "there": "request_header = 'Referer:'",
              "time": 'time = "00:00-24:00"', "never": f"time = {tomorrow}",
              "guests": "listener = guests", "client": 'client = "127.0.0.0/8"', "far": 'client = "192.0.2.0/24"',
              "sni": 'sni = "a.test"', "certificate": "certificate = alice", "user": 'user = "*"', "group": "group = staff"},
        f'listen "127.0.0.1:{guests}" {{ mode = forward local_destinations = allow name = guests }}')
    ask = Asker(origin, proxy)
    for name in ("method", "port", "scheme", "time", "client"):
        ask.yes(name)
    for name in ("post", "otherport", "https", "field", "there", "never", "guests", "far", "sni", "certificate", "user", "group"):
        ask.no(name)
    ask.yes("field", {"x-kind": "goodness"})
    ask.no("field", {"x-kind": "not good"})
    ask.yes("there", {"Referer": "http://x/"})
    ask.no("user", {"Proxy-Authorization": "Basic YWxpY2U6cHc="})  # which nobody has proven
    proxy.forward = ("127.0.0.1", guests)
    ask.yes("guests")


def test_where_hosts_lead(lab):
    """The host is resolved for the classes that ask for its addresses, and these are matched again."""
    here, far = lab.write("here.list", "127.0.0.0/8\n"), lab.write("far.list", "192.0.2.0/24\n198.51.100.1\n")
    origin, proxy = start(
        lab, {"here": 'destination = { "192.0.2.0/24", "127.0.0.0/8" }', "far": 'destination = "192.0.2.0/24"',
              "notfar": "not = far_away", "nothere": "not = nearby",
              "listed": f'destination_file = "{here}"', "unlisted": f'destination_file = "{far}"'},
        'url_class far_away { destination = "192.0.2.0/24" }', 'url_class nearby { destination = "127.0.0.0/8" }')
    ask = Asker(origin, proxy)
    for _ in range(2):
        for name in ("here", "notfar", "listed"):
            ask.yes(name)
        for name in ("far", "nothere", "unlisted"):
            ask.no(name)
        ask.origin = Named(origin)


class Named:
    """The same origin by its name."""

    def __init__(self, origin):
        self.origin = origin

    def url(self, *arguments, **more):
        return self.origin.url(*arguments, **more).replace("127.0.0.1", "localhost", 1)


def test_other_classes(lab):
    origin, proxy = start(
        lab, {"one": "any_of = { curl, wget }", "none": "not = { curl, wget }", "deep": "any_of = one_agent  not = tester"},
        "url_class one_agent { any_of = { wget, curl } }",
        "url_class curl { request_header = 'User-Agent: ^curl/' }",
        "url_class wget { request_header = 'User-Agent: ^Wget/' }",
        "url_class tester { request_header = 'X-Test:' }")
    ask = Asker(origin, proxy)
    curl = {"User-Agent": "curl/8"}
    ask.yes("one", curl)
    ask.yes("one", {"User-Agent": "Wget/1"})
    ask.no("one", {"User-Agent": "Mozilla"})
    ask.no("none", curl)
    ask.yes("none", {"User-Agent": "Mozilla"})
    ask.yes("deep", curl)
    ask.no("deep", {**curl, "X-Test": "1"})


@memcheck
def test_lists(lab):
    files = {kind: lab.write(f"{kind}.list", text) for kind, text in {
        "host": "# all\r\n0.0.0.0 ads.example tracker.example\n127.0.0.1\n",
        "domain": ".example.com\nlocalhost\n",
        "client": "192.0.2.0/24\n127.0.0.1 # here\n",
        "far": "192.0.2.0/24\n"}.items()}
    urls = lab.path("urls.list")
    classes = {"host": f'host_file = "{files["host"]}"', "domain": f'domain_file = "{files["domain"]}"',
               "client": f'client_file = "{files["client"]}"', "far": f'client_file = "{files["far"]}"',
               "both": f'host = "www.example"  host_file = "{files["host"]}"'}
    lab.write("urls.list", "# none\n")
    origin, proxy = start(lab, classes, f'url_class urls {{ url_file = "{urls}" }}', "policy urls { cache = never }")
    ask = Asker(origin, proxy)
    for name, answer in (("host", ask.yes), ("both", ask.yes), ("domain", ask.no), ("client", ask.yes), ("far", ask.no), ("urls", ask.no)):
        answer(name)
    with open(urls, "w", encoding="utf-8") as out:
        out.write(f"{origin.url('/urls/')}*\n")
    equal(proxy.reload().status, 200, "status of a reload")
    ask.yes("urls")


def test_damaged_lists_are_refused(lab):
    """A reload names the file and the line, and the list of before stays."""
    path = lab.write("names.list", "127.0.0.1\n")
    origin, proxy = start(lab, {"names": f'host_file = "{path}"'})
    ask = Asker(origin, proxy)
    ask.yes("names")
    for damaged, said in ((b"one.example\ntwo.exam", ":2: the last line does not end with a line break"),
                          (b"one.example\n\0\0\0\0\0\n", ":2: the line contains a control character"),
                          (b"one.example\n\nnot a name\n", ":3: \"not a name\" is not a name"),
                          (b"", ":1: the list is empty"), (None, ": No such file or directory")):
        os.unlink(path)
        if damaged is not None:
            with open(path, "wb") as out:
                out.write(damaged)
        answer = proxy.reload()
        true(answer.status >= 400, f"a reload with {damaged} is refused: {answer.status}")
        contains(json.loads(answer.body)["error"], path + said, "the error")
        ask.yes("names")
        if damaged is None:
            lab.write("names.list", "")
    with open(path, "wb") as out:
        out.write(b"# none\n")
    equal(proxy.reload().status, 200, "status of a reload")
    ask.no("names")


def test_a_million_names(lab):
    """Loaded in less than a second on a machine with nothing else to do, and found."""
    path, networks = lab.path("million.list"), lab.path("networks.list")
    with open(path, "w", encoding="utf-8") as out:
        out.write("".join(f"host{i}.ads{i % 1000}.example\n" for i in range(1000000)) + "127.0.0.1\n")
    with open(networks, "w", encoding="utf-8") as out:
        out.write("".join(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}\n" for i in range(0, 1 << 20, 2)) + "127.0.0.0/8\n")
    origin, proxy = start(lab, {"many": f'domain_file = "{path}"', "again": f'domain_file = "{path}"',
                                "clients": f'client_file = "{networks}"'}, start_seconds=60)
    ask = Asker(origin, proxy)
    ask.yes("many")
    ask.yes("again")
    ask.yes("clients")
    answer, seconds = measure(proxy.reload)
    equal(answer.status, 200, "status of a reload")
    true(seconds < 5 * lab.patience, f"a reload of 1.5 million entries takes {seconds:.1f} s")
    ask.yes("many")
    true(proxy.memory_peak_kb() < 700000 * lab.patience, f"{proxy.memory_peak_kb()} KB for two lists, twice while one is replaced")


def test_sni_and_certificates(lab):
    ca, port = Authority(lab), ports.take()
    leaf, alice = ca.leaf("a.test"), ca.sign("alice", usage=CLIENT)
    origin, proxy = start(
        lab, {"sni": 'sni = "a.test"', "below": 'sni = "*.test"', "alice": "certificate = alice",
              "subject": 'certificate = "CN=alice"', "bob": "certificate = bob", "front": "listener = front"},
        f'listen "127.0.0.1:{port}" {{ mode = reverse name = front certificates = "{leaf.both}" client_ca = "{ca.file}" '
        "client_certificate = optional }", reverse={"/": "http://127.0.0.1:1/"})
    proxy.write_config(proxy.text(reverse={"/": origin.url()}))
    equal(proxy.reload().status, 200, "status of a reload")

    def results(name, certificate):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(certificate.file, certificate.key)
        found = {}
        for each in ("sni", "below", "alice", "subject", "bob", "front") * 2:  # twice, as Asker does
            raw = socket.create_connection(("127.0.0.1", port), timeout=10 * lab.patience)
            with context.wrap_socket(raw, server_hostname=name) as connection:
                connection.sendall(f"GET /{each}/{name}?cc=max-age%3D60 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n".encode())
                found[each] = b"".join(iter(lambda: connection.recv(65536), b""))
        return {each for each, answer in found.items() if b"X-Cache: MISS" in answer}

    equal(results("a.test", alice), {"sni", "below", "alice", "subject", "front"}, "classes of alice at a.test")
    equal(results("b.test", None), {"below", "front"}, "classes of a stranger at b.test")


def test_what_never_matches_is_named(lab):
    _origin, proxy = start(lab, {})
    classes = ('url_class elsewhere { host = "www.example.org" domain = "example.com" }\n'
               "url_class nobody { not = all }\n"
               "url_class nowhere { listener = no_such }\n"
               "url_class unused { host = a }\n"
               "origins up { servers = \"http://127.0.0.1:1\" }\n"
               "parent all { direct = always }\nparent elsewhere { origins = up }\n"
               "policy nobody { ttl = 1d }\npolicy nowhere { ttl = 1d }\n")
    status, said = proxy.check_config(proxy.text(extra=classes))
    equal(status, 0, "exit status")
    for warning in ("url_class elsewhere can never match: none of its hosts is in one of its domains",
                    "url_class nobody can never match: not names a class that matches every request",
                    'url_class nowhere: no listener has the name "no_such"',
                    "no section uses url_class unused",
                    "parent elsewhere is never reached: parent all in line"):
        contains(said, warning, "what retort -t says")
    status, said = proxy.check_config(proxy.text(extra="url_class a { not = b }\nurl_class b { any_of = a }"))
    equal(status, 1, "exit status of a circle")
    contains(said, "lead back to the class: a -> b -> a", "what retort -t says")
    lacks(said, "is good", "what retort -t says")
