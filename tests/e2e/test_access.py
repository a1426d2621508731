"""Access sections: who may do what, in the order of the file, by whatever way a request comes to a URL."""

import base64
import hashlib
import json
import os
import ssl
import time

from harness.certificates import Authority
from harness.checks import contains, equal, lacks, true, until
from harness.icap import IcapServer
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service, run_check
from harness.suite import memcheck
from harness.tls_origin import TlsOrigin
from harness.wire import request

INSIDE = "url_class inside { client = { \"127.0.0.1\" } }\n"


def start(lab, rules, **options):
    origin = options.pop("origin_server", None) or RawOrigin(lab)
    return origin, Retort(lab, extra=rules + options.pop("extra", ""), **options)


def send(proxy, method, target, headers=None, host=None, version="1.1"):
    with proxy.wire() as wire:
        wire.send(request(method, target, headers, host=host))
        return wire.response(method)


def test_the_first_that_matches_decides(lab):
    rules = ("url_class open { path_regex = '^/open' }\nurl_class shut { path_regex = 'shut' }\nurl_class posts { method = POST }\n"
             "access posts { action = deny  status = 451 }\naccess open { action = allow }\naccess shut { action = deny }\n"
             "url_class rest { path_regex = '^/rest' }\naccess rest { action = allow }\n")
    origin, proxy = start(lab, rules)
    for path, status in (("/open", 200), ("/open/shut", 200), ("/shut", 403), ("/rest", 200), ("/none", 403), ("/rest/shut", 403)):
        equal(proxy.get(origin.url(path)).status, status, path)
    equal(proxy.fetch("POST", origin.url("/open"), {"Content-Length": "0"}).status, 451, "POST")
    equal(len(origin.requests), 3, "requests at the origin")
    contains(proxy.get(origin.url("/none")).text(), "no access rule", "page where no section matches")
    equal([(entry["status"], entry["result"], entry.get("access")) for entry in proxy.log(8)[:5]],
          [(200, "MISS", "open"), (200, "MISS", "open"), (403, "DENIED", "shut"), (200, "MISS", "rest"), (403, "DENIED", None)], "log")


def test_every_way_to_a_denied_url(lab):
    """What is denied is denied by any method, spelling and part, from the cache as well."""
    origin = Origin(lab)
    proxy = Retort(lab, extra="url_class secret { path_regex = '^/text' }\naccess all { action = allow }\n",
                   reverse={"/": origin.url("/")})
    url = origin.url("/text", cc="max-age=600", say="secret")
    equal([proxy.get(url).status, proxy.get(url).status], [200, 200], "before")
    proxy.write_config(proxy.text().replace("access all", "access secret { action = deny }\naccess all"))
    equal(proxy.reload().status, 200, "reload")
    where = f"http://{origin.authority}"
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    for method in ("GET", "HEAD", "OPTIONS", "DELETE", "PROPFIND", "get", "PATCH"):
        equal(send(proxy, method, url).status, 403, method)
    for headers in ({"Range": "bytes=0-1"}, upgrade, {"Host": "other.example"}, {"If-None-Match": "*"}, {"Max-Forwards": "0"},
                    {"Cache-Control": "only-if-cached"}, {"X-Original-URL": "/open"}):
        equal(send(proxy, "GET", url, headers).status, 403, str(headers))
    for path in ("/text", "//text".replace("//", "/./"), "/a/../text", "/%74ext", "/%74%65xt?x", "/open/../text", "/text#x"):
        equal(send(proxy, "GET", where + path).status, 403, path)
    for authority in (origin.authority.upper(), f"user@{origin.authority}", origin.authority.replace("127.0.0.1", "127.1")):
        true(send(proxy, "GET", f"http://{authority}/text").status in (400, 403), authority)
    equal(proxy.get("/text?x").status, 403, "origin form")
    equal(proxy.get(where + "/other").status, 404 if proxy.get(where + "/other").status == 404 else 200, "another URL")
    equal(origin.count("/text"), 1, "requests at the origin")


def test_a_dry_run_changes_nothing(lab):
    origin, proxy = start(lab, "access all { action = deny  log_only = on }\naccess all { action = allow }\n")
    equal(proxy.get(origin.url("/")).status, 200, "status")
    equal((proxy.last(1)["access"], proxy.last(1)["access_log_only"]), ("all", "all"), "in the log")
    equal(proxy.counter("access_logged"), 1, "counted")
    sections = json.loads(proxy.admin("GET", "/access").body)["access"]
    equal([(one["class"], one["action"], one["decided"], one["logged"]) for one in sections],
          [("all", "deny", 0, 1), ("all", "allow", 1, 0)], "sections")
    contains(proxy.ctl("access"), "log_only", "retortctl access")


def test_counts_say_since_when(lab):
    """A change of options begins anew, and the answer says so."""
    origin, proxy = start(lab, "access all { action = allow }\n")

    def counted():
        answer = json.loads(proxy.admin("GET", "/v1/access").body)
        return answer["access"][0]["decided"], answer["since"]

    proxy.get(origin.url("/"))
    decided, since = counted()
    equal(decided, 1, "counted")
    true(0 <= time.time() - since < 60 * lab.patience, f"since {since}")
    contains(proxy.ctl("access"), time.strftime("counted since %Y-%m-%d %H:%M:%S:", time.localtime(since)), "retortctl access")
    until(lambda: int(time.time()) > since, 10 * lab.patience, "the next second")
    proxy.ctl("set", "cache.memory=33MB")
    decided, later = counted()
    equal((decided, later > since), (0, True), "after a change of options")


def test_too_much_work_is_denied(lab):
    """Whoever makes an expression of a section that denies give up has not got past it."""
    origin = Origin(lab)
    proxy = Retort(lab, extra="url_class hard { path_regex = '^/(a+)+$' }\naccess hard { action = deny }\naccess all { action = allow }\n")
    equal(proxy.get(origin.url("/" + "a" * 40)).status, 403, "what the expression finds")
    page = proxy.get(origin.url("/" + "a" * 40 + "b"))
    equal(page.status, 403, "what it gives up on")
    contains(page.text(), "too much work", "reason")
    told = proxy.ctl("access", "test", origin.url("/" + "a" * 40 + "b"), "--destination", "192.0.2.1")
    contains(told, "deny (403): an expression of the rules needs too much work", "retortctl access test")
    equal(proxy.get(origin.url("/b")).status, 200, "another URL")


def test_redirections(lab):
    rules = ("url_class old { path_regex = '^/old' }\nurl_class self { path_regex = '^/self' }\n"
             "access old { action = redirect  status = 307  to = \"https://new.example%{path_query}&from=%{client_ip}\" }\n"
             "access self { action = redirect  to = \"%{url}\" }\naccess all { action = allow }\n").replace('to = "%{url}"',
                                                                                                            'to = "http://%{host}:%{port}/self"')
    origin, proxy = start(lab, rules + "connect_ports = { 443 }\nurl_class c { method = CONNECT }\n")
    answer = proxy.get(origin.url("/old/a?b=1"))
    equal((answer.status, answer.header("Location")), (307, "https://new.example/old/a?b=1&from=127.0.0.1"), "redirection")
    equal(proxy.get(origin.url("/self")).status, 508, "to itself")
    for evil in ("/old%0d%0aX:y", "/old?%0d%0aSet-Cookie:a=b", "/old/%22%3e%3cscript%3e"):
        answer = proxy.get(origin.url(evil))
        equal((answer.status, answer.header("X"), answer.header("Set-Cookie")), (307, None, None), evil)
        true(answer.header("Location").startswith("https://new.example/old"), answer.header("Location"))
    equal(len(origin.requests), 0, "requests at the origin")


def test_purges_by_clients(lab):
    """Only by those whom a section lets do it that names the method; done when it is done."""
    rules = ("url_class purgers { method = { PURGE, BAN }  client = \"127.0.0.1\"  domain = \"127.0.0.1\" }\n"
             "url_class mine { path_regex = '^/(text|kept)' }\nurl_class other { method = PURGE }\n"
             "access purgers { action = allow }\naccess all { action = allow }\n").replace("url_class other { method = PURGE }\n", "")
    origin = Origin(lab)
    disk = {"disk": {lab.path("disk"): {"size": "64MB"}}}
    proxy = Retort(lab, extra=rules, cache={"memory": "32MB", **disk})
    urls = [origin.url(path, cc="max-age=600") for path in ("/text", "/kept/a.jpg", "/kept/b.png")]

    def stored():
        return [proxy.get(url, {"Cache-Control": "only-if-cached"}).status == 200 for url in urls]
    for url in urls:
        proxy.get(url)
    equal(stored(), [True] * 3, "before")
    for method in ("PURGE", "BAN"):  # other caches purge by keys then: less, or more, than the URL says
        for field in ("Surrogate-Key", "Cache-Tag", "xkey"):
            answer = send(proxy, method, urls[0], {field: "article-5"})
            equal((answer.status, stored()), (400, [True] * 3), f"{method} with {field}")
            contains(answer.text(), "tag", f"{method} with {field}: what to do")
    equal((send(proxy, "PURGE", urls[0]).status, stored()), (200, [False, True, True]), "PURGE")
    equal(send(proxy, "PURGE", urls[0]).status, 404, "again")
    equal(send(proxy, "purge", urls[1]).status, 405, "another spelling")
    equal(send(proxy, "PURGE", urls[1].replace("127.0.0.1", "127.0.0.2")).status, 405, "a host that the class does not name")
    answer = send(proxy, "BAN", origin.url("/kept/"), {"X-Ban-Regex": r"\.jpg"})
    equal((answer.status, stored()), (200, [False, False, True]), answer.text())
    equal(send(proxy, "BAN", origin.url("/kept/"), {"X-Ban-Regex": "("}).status, 400, "a bad expression")
    equal((send(proxy, "BAN", origin.url("/")).status, stored()), (200, [False] * 3), "BAN of all")
    proxy.restart()
    equal(stored(), [False] * 3, "after a restart")
    proxy.write_config(proxy.text().replace('client = "127.0.0.1"', 'client = "192.0.2.1"'))
    proxy.reload()
    proxy.get(urls[0])
    equal((send(proxy, "PURGE", urls[0]).status, stored()[0]), (405, True), "another client")


@memcheck
def test_what_services_change_is_decided_again(lab):
    """Before the cache and behind it; a service can take rights away and give none."""
    origin = RawOrigin(lab)
    target = {"path": "/denied"}

    def behave(_icap, transaction):
        transaction.send_head(transaction.request_head(start=f"GET {origin.url(target['path'])} HTTP/1.1"), body=False)
    icap = IcapServer(lab, behave, methods="REQMOD")
    rules = ("url_class denied { path_regex = '^/denied' }\nurl_class moved { path_regex = '^/moved' }\n"
             "access denied { action = deny }\naccess moved { action = redirect  to = \"/\" }\naccess all { action = allow }\n")
    for point in ("reqmod_precache", "reqmod_postcache"):
        proxy = Retort(lab, services=[Service("s", icap.uri(), point=point, bypass=False, include=["X-Access-Rule"])], extra=rules)
        for path, status in (("/denied", 403), ("/moved", 403), ("/fine", 200), ("/x/../denied", 403), ("/%64enied", 403)):
            target["path"] = path
            answer = proxy.get(origin.url(f"/asked{path.replace('/', '-')}"))
            equal((answer.status, answer.header("Location")), (status, None), f"{point}: {path}")
        target["path"] = "/fine"
        equal(proxy.get(origin.url("/denied")).status, 403, "what is denied first is no service's business")
    equal({request.target for request in origin.requests}, {"/fine"}, "asked for")
    equal([one.request.header("X-Access-Rule") for one in icap.transactions], ["all"] * 10, "the section, in each request that services have seen")


def test_a_tunnel_sees_neither_cache_nor_services(lab):
    icap = IcapServer(lab, methods="RESPMOD")
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False)],
                   extra="url_class plain { path_regex = '^/text' }\naccess plain { action = tunnel }\naccess all { action = allow }\n")
    for path, seen, results in (("/text", 0, ["PASS", "PASS"]), ("/kept", 1, ["MISS", "HIT"])):
        before = len(icap.transactions)
        for _ in range(2):
            equal(proxy.get(origin.url(path, cc="max-age=60")).status, 200, path)
        equal((len(icap.transactions) - before, proxy.results(path, 2)), (seen, results), path)


def reaches(proxy, server, name):
    """Does a TLS connection through CONNECT get to the server?"""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with proxy.wire() as wire:
        wire.send(request("CONNECT", server.authority, host="x"))
        equal(wire.response("CONNECT").status, 200, "CONNECT")
        try:
            with context.wrap_socket(wire.socket, server_hostname=name) as tls:
                return tls.version() is not None
        except OSError:
            return False


@memcheck
def test_connections_are_named_by_their_tls(lab):
    """CONNECT to a host that is allowed, with TLS that asks for one that is not (domain fronting)."""
    root = Authority(lab)
    server = TlsOrigin(lab, root.leaf("127.0.0.1"))
    rules = (f"connect_ports = {{ {server.port} }}\nurl_class bad {{ domain = \"denied.test\" }}\n"
             "access bad { action = deny }\naccess all { action = allow }\n")
    proxy = Retort(lab, extra=rules)
    for name, good in (("fine.test", True), ("www.denied.test", False), ("DENIED.test", False), ("denied.test.", False), (None, True)):
        equal(reaches(proxy, server, name), good, f"SNI {name}")
    equal(server.names, ["fine.test", None], "connections at the server")
    equal(sorted(entry["access"] for entry in proxy.log(5)), ["all", "all", "bad", "bad", "bad"], "in the log, at the ends of connections")
    with proxy.wire() as wire:
        wire.send(request("CONNECT", "www.denied.test:443", host="x"))
        equal(wire.response("CONNECT").status, 403, "CONNECT to the host itself")


def test_what_would_happen(lab):
    """retortctl access test goes by the settings in use, and sends nothing."""
    rules = ("url_class lan { client = \"10.0.0.0/8\" }\nurl_class bad { domain = \"bad.test\" }\nurl_class posts { method = POST }\n"
             "access bad { action = deny  status = 451 }\naccess posts { action = redirect  to = \"/no\" }\naccess lan { action = allow }\n")
    proxy = Retort(lab, extra=rules)
    for arguments, words in ((["http://www.bad.test/", "--client", "10.1.1.1"], "deny (451) by section 1, access bad"),
                             (["http://ok.test/", "--client", "10.1.1.1", "--destination", "192.0.2.1"], "allow (200) by section 3, access lan"),
                             (["http://ok.test/", "--method", "POST", "--destination", "192.0.2.1"], "redirect (302) by section 2"),
                             (["http://ok.test/", "--client", "127.0.0.1", "--destination", "192.0.2.1"], "deny (403): no access section"),
                             (["http://ok.test/", "--client", "192.0.2.9", "--destination", "192.0.2.1"], "deny (403): listen.allow"),
                             (["ok.test:25", "--method", "CONNECT", "--destination", "192.0.2.1"], "connect_ports")):
        contains(proxy.ctl("access", "test", *arguments), words, str(arguments))
    contains(proxy.ctl("access", "test", "nonsense", "--client", "x", expect=1), "", "bad arguments")
    equal(sum(one["decided"] for one in json.loads(proxy.admin("GET", "/access").body)["access"]), 0, "nothing counted")


def test_destinations_decide(lab):
    """However the address is spelt; a host whose address can't be found is asked by nobody."""
    origin = RawOrigin(lab, address="0.0.0.0")
    proxy = Retort(lab, extra="url_class far { destination = \"127.0.0.2\" }\naccess far { action = deny }\naccess all { action = allow }\n"
                              f"connect_ports = {{ {origin.port} }}\n", origin={"dns_timeout": "500ms"})
    for host, status in (("127.0.0.1", 200), ("localhost", 200), ("127.0.0.3", 200), ("127.0.0.2", 403), ("127.2", 403), ("2130706434", 403),
                         ("0x7f.2", 403), ("[::ffff:127.0.0.2]", 403), ("[::ffff:7f00:2]", 403)):
        equal(proxy.get(f"http://{host}:{origin.port}/").status, status, host)
        equal(send(proxy, "CONNECT", f"{host}:{origin.port}", host="x").status, status, f"CONNECT {host}")
    equal(proxy.get(f"http://not.there.invalid:{origin.port}/").status, 502, "a name without an address")


def test_rules_that_are_never_reached(lab):
    rules = ("access all { action = deny  log_only = on }\naccess all { action = allow }\nurl_class a { method = GET }\n"
             "access a { action = deny }\n")
    status, said = run_check(lab, lab.write("shadow.conf", 'listen "127.0.0.1:1" { mode = forward }\n' + rules))
    equal(status, 0, said)
    contains(said, "shadow.conf:5: access a is never reached", "what -t says")


def test_services_for_some_clients_before_the_cache(lab):
    """What is stored before a class of clients could matter goes to all of them: -t says so."""
    service = 'icap_service filter { uri = "icap://127.0.0.1:1/x"  point = %s }\n'
    rules = 'url_class kids { client = "10.0.0.0/8" }\nurl_class young { any_of = kids }\nadapt young { services = { filter } }\n'
    for point, warns in (("respmod_precache", True), ("respmod_postcache", False), ("reqmod_precache", False)):
        status, said = run_check(lab, lab.write("kids.conf", 'listen "127.0.0.1:1" { mode = forward }\n' + service % point + rules))
        equal((status, "class young depends on who asks" in said), (0, warns), f"what -t says of {point}: {said}")


def test_bad_sections(lab):
    listen = 'listen "127.0.0.1:1" { mode = forward }\nurl_class typed { content_type = "text/html" }\n'
    for section, words in (("access nowhere { action = allow }", '"nowhere"'), ("access all { }", "action"),
                           ("access typed { action = deny }", "content_type"), ("access all { action = authenticate }", "authenticator"),
                           ("access all { action = redirect }", "to ="), ('access all { action = redirect  to = "//%{host}/" }', "begin with"),
                           ('access all { action = redirect  to = "%{url}" }', "begin with"),
                           ('access all { action = redirect  to = "/%{nothing}" }', "nothing"), ("access all { action = deny  status = 407 }", "status"),
                           ("access all { action = allow  status = 403 }", "status"), ('access all { action = allow  page = "x" }', "page")):
        status, said = run_check(lab, lab.write("bad.conf", listen + section + "\n"))
        true(status > 0, f"{section}: {said}")
        contains(said, "bad.conf:3: ", section)
        contains(said, words, section)


def recipes():
    """The configurations in docs/ACCESS.md, by their headings."""
    with open(os.path.join(os.path.dirname(__file__), "../../docs/ACCESS.md"), encoding="utf-8") as file:
        text = file.read().split("\n## Recipes\n")[1].split("\n## ")[0]
    for part in text.split("\n### ")[1:]:
        name, rest = part.split("\n", 1)
        yield name, "".join(line[4:] + "\n" for line in rest.split("\n") if line.startswith("    "))


def test_recipes_are_good(lab):
    users = lab.write("users", "alice:$2y$05$abcdefghijklmnopqrstuuOiKpgKjD2iXDqPdu3EfuxDqSK6lTr1e\n")
    groups, court = lab.write("groups", "personnel: alice\n"), lab.write("court", "casino.example\n")
    names = []
    for name, text in recipes():
        for word, path in (("groups", groups), ("court", court), ("teachers", users), ("staff", users), ("admins", users)):
            text = text.replace(f"/etc/retort/{word}", path)
        status, said = run_check(lab, lab.write("recipe.conf", text))
        equal(status, 0, f"{name}: {said}")
        lacks(said, "never", name)
        names.append(name)
    equal(len(names), 5, f"recipes: {names}")


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@memcheck
def test_users_are_asked_for(lab):
    """407 on forward and 401 on reverse listeners; what a user may do, nobody else may."""
    hashes = "".join(f"{user}:{{SHA}}{base64.b64encode(hashlib.sha1(user.encode()).digest()).decode()}\n" for user in ("alice", "bob"))
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")}, extra=(
        f'authenticator staff {{ type = basic  file = "{lab.write("users", hashes)}"  realm = "Staff" }}\n'
        "url_class bob { user = bob }\nurl_class open { path_regex = \"^/count\" }\n"
        "access open { action = allow }\naccess bob { action = deny }\naccess all { action = authenticate  with = { staff } }\n"))
    url = origin.url("/echo")
    for target, field, status in ((url, "Proxy-Authorization", 407), ("/echo", "Authorization", 401)):
        for value in (None, basic("alice", "wrong"), basic("eve", "eve")):
            answer = proxy.get(target, {field: value} if value else None)
            challenge = answer.header("Proxy-Authenticate" if status == 407 else "WWW-Authenticate")
            equal((answer.status, challenge and challenge.split(",")[0]), (status, 'Basic realm="Staff"'), f"{target}: {value}")
        answer = proxy.get(target, {field: basic("alice", "alice")})
        equal((answer.status, echoed(answer)["header"](field)), (200, None), f"{target}: alice, and what the origin sees")
        equal(proxy.get(target, {field: basic("bob", "bob")}).status, 403, f"{target}: bob")
    equal(proxy.get(origin.url("/count", of="/echo")).text(), "2", "requests at the origin, asked by nobody")
    equal(send(proxy, "CONNECT", f"{origin.host}:443", host="x").status, 407, "CONNECT")
    true(proxy.counter("access_challenged") >= 7, "counted")
    equal([(entry["access"], entry.get("user")) for entry in proxy.log(12) if entry["status"] == 200][:1], [("all", "alice")], "in the log")
    lacks(str(proxy.log_lines()) + proxy.process.log(), basic("alice", "alice")[6:], "the logs")
