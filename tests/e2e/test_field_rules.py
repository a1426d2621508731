"""Rules that change heads and URLs: request_headers, response_headers, rewrite."""

import json
import os

from harness.checks import contains, equal, lacks, true
from harness.icap import IcapServer
from harness.lab import SOURCE
from harness.nginx import Nginx
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service, run_check
from harness.suite import memcheck
from harness.wire import request


def answers(*fields, body=b"ok", status="200 OK"):
    """An origin whose response has these fields."""
    lines = "".join(f"{field}\r\n" for field in fields).encode()

    def answer(connection, _request):
        connection.send(b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status.encode(), lines, len(body), body))
    return answer


def test_requests_on_their_way_to_the_origin(lab):
    origin = Origin(lab)
    proxy = Retort(lab, extra=r'''
        url_class api { path_regex = "^/echo/api" }
        request_headers all {
            add = { "X-Many: two", "X-Many: %{status}" }
            set = { "X-Client: %{client_ip}", "X-Line: %{method} %{host}:%{port}%{path_query}", "X-User: %{user}" }
            remove = { "Referer", "X-Debug-*" }
            replace = { 'Cookie: /session=[^;]*/session=hidden/', 'User-Agent: |^(\w+)/.*|$1 (%{server_name}\|)|' }
        }
        request_headers api { set = "X-Api: yes"  remove = "X-Client" }''')
    fields = {"Referer": "http://r/", "X-Debug-A": "1", "x-debug-b": "2", "X-Debug": "stays", "X-Many": "one",
              "X-User": "root", "Cookie": "a=1; session=abc; b=2; session=x", "User-Agent": "curl/7.1 x"}
    seen = echoed(proxy.get(origin.url("/echo/a?b=c"), fields))
    expected = {"X-Client": "127.0.0.1", "X-Line": f"GET {origin.host}:{origin.port}/echo/a?b=c", "X-User": None,
                "Referer": None, "X-Debug-A": None, "X-Debug-B": None, "X-Debug": "stays", "X-Many": "one, two",
                "Cookie": "a=1; session=hidden; b=2; session=hidden", "User-Agent": "curl (retort|)", "X-Api": None}
    equal({name: seen["header"](name) for name in expected}, expected, "fields at the origin")
    seen = echoed(proxy.get(origin.url("/echo/api")))
    equal((seen["header"]("X-Api"), seen["header"]("X-Client")), ("yes", None), "two sections, in the file's order")


def test_requests_before_services_and_the_cache(lab):
    """Services and Vary see the changed request; the client can't name a field that ends here."""
    seen = []

    def note(_icap, transaction):
        seen.append(tuple(transaction.http_request.header(name) for name in ("X-Kind", "X-Mark", "X-Late")))
        transaction.send_204()
    icap = IcapServer(lab, note, methods="REQMOD", preview=0)
    origin = RawOrigin(lab, answers("Vary: X-Kind, X-Agent", "Cache-Control: max-age=60"))
    proxy = Retort(lab, services=[Service("note", icap.uri(), point="reqmod_precache")], extra='''
        request_headers all { where = client  set = "X-Kind: desk" }
        request_headers all { where = client  set = "X-Mark: yes"  replace = "X-Agent: |Phone.*|phone|" }
        request_headers all { set = "X-Late: yes" }''')
    for agent in ("Phone/1", "Phone/2", "Desk"):
        proxy.get(origin.url("/page"), {"X-Agent": agent, "X-Kind": agent, "Connection": "X-Kind, X-Mark, X-Late"})
    equal(proxy.results("/page", 3), ["MISS", "HIT", "MISS"], "results")
    equal(seen, [("desk", "yes", None)] * 3, "what the service sees")
    equal([[r.header(name) for name in ("X-Kind", "X-Agent", "X-Mark", "X-Late")] for r in origin.requests],
          [["desk", "phone", "yes", "yes"], ["desk", "Desk", "yes", "yes"]], "what the origin sees")


@memcheck
def test_responses_at_delivery(lab):
    """The stored response stays as it is; each client gets its own fields."""
    origin = RawOrigin(lab, answers("Cache-Control: max-age=60", "Server: secret/1.0", "X-Powered-By: x", "ETag: \"e\"",
                                    "X-Token: a=1; Secure", "Content-Type: text/html", body=b"0123456789" * 100))
    rules = '''
        url_class pages { content_type = "text/html" }
        response_headers all { set = { "X-Frame-Options: DENY", "X-Id: %{id}" }  add = "X-New: 1" }'''
    proxy = Retort(lab, extra=rules)
    ids = set()
    for _ in range(2):
        answer = proxy.get(origin.url("/page"))
        equal((answer.header("X-Frame-Options"), answer.header("X-New"), answer.header("Server"), answer.body),
              ("DENY", "1", "secret/1.0", b"0123456789" * 100), "added")
        ids.add(answer.header("X-Id"))
    equal(len(ids), 2, "a value for each client")
    equal(proxy.results("/page", 2), ["MISS", "HIT"], "results")
    proxy.write_config(proxy.text() + '''
        response_headers pages { remove = { "Server", "X-Powered-*" }  set = { "ETag: W/x", "Content-Type: text/x" }
                                 replace = "X-Token: /; *Secure//"  add = "Cache-Control: private" }''')
    equal(proxy.reload().status, 200, "reload")
    answer = proxy.get(origin.url("/page"))
    equal([answer.header(name) for name in ("Server", "X-Powered-By", "ETag", "X-Token", "Cache-Control", "X-New")],
          [None, None, "W/x", "a=1", "max-age=60, private", "1"], "changed")
    equal((answer.header("Content-Length"), answer.body), ("1000", b"0123456789" * 100), "body")
    true(answer.header("Age") is not None, "Age of a hit")
    answer = proxy.get(origin.url("/page"), {"If-None-Match": '"e"'})
    equal((answer.status, answer.header("X-Frame-Options"), answer.header("ETag")), (304, "DENY", "W/x"), "304")
    answer = proxy.fetch("HEAD", origin.url("/page"))
    equal((answer.header("X-Frame-Options"), answer.header("Server"), answer.body), ("DENY", None, b""), "HEAD")
    answer = proxy.get(origin.url("/page"), {"Range": "bytes=0-1,500-501"})
    equal(answer.status, 206, "parts")
    contains(answer.header("Content-Type"), "multipart/byteranges; boundary=", "type of parts")
    contains(answer.text(), "\r\n01\r\n", "parts")
    equal(proxy.results("/page", 6)[2:], ["HIT"] * 4, "results")
    equal(len(origin.requests), 1, "requests at the origin")


def test_responses_before_they_are_stored(lab):
    """A 304 of the origin is changed as well, and adds nothing a second time."""
    def answer(connection, seen):
        if seen.header("If-None-Match"):
            connection.send(b"HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nSet-Cookie: b=2\r\nServer: two\r\n\r\n")
            return
        connection.send(b"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nSet-Cookie: a=1\r\nVary: A\r\nServer: one\r\n"
                        b"Cache-Control: no-store\r\nContent-Length: 2\r\n\r\nok")
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, extra='''response_headers all { where = origin  remove = "Set-Cookie"  add = "Vary: B"
        set = "Cache-Control: max-age=60"  replace = "Server: /(.*)/was $1 %{status}/" }
        response_headers all { set = "X-Late: 1" }''')
    for control in ({}, {}, {"Cache-Control": "no-cache"}, {}):
        answer = proxy.get(origin.url("/page"), control)
        equal([answer.header(name) for name in ("Set-Cookie", "Vary", "Cache-Control", "X-Late")],
              [None, "A, B", "max-age=60", "1"], f"fields, asked with {control}")
    equal(answer.header("Server"), "was two 304", "the field of the 304")
    equal(proxy.results("/page", 4), ["MISS", "HIT", "REVALIDATED", "HIT"], "results")


def test_pages_of_the_proxy(lab):
    proxy = Retort(lab, extra='''response_headers all { set = "X-Always: 1"  on_errors = true }
        response_headers all { set = "X-Good: 1" }''')
    answer = proxy.get("http://127.0.0.1:1/")
    equal((answer.status, answer.header("X-Always"), answer.header("X-Good")), (502, "1", None), "an error page")
    with proxy.wire() as wire:
        wire.send(b"GET nothing HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = wire.response()
        equal((answer.status, answer.header("X-Always")), (400, "1"), "a request without a URL")


def test_values_begin_no_field(lab):
    """Whatever a variable stands for, it ends in one field of one line."""
    origin = RawOrigin(lab, answers("Cache-Control: no-store"))
    proxy = Retort(lab, extra='''request_headers all { set = "X-Path: %{path_query}"  replace = 'X-In: /, */\t/' }
        response_headers all { set = "X-Path: %{path_query}" }''')
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url('/a%0d%0aX-Evil:%201')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                  f"X-In: a,b, c\r\n\r\n".encode())
        answer = wire.response()
    equal(answer.header("X-Path"), "/a%0D%0AX-Evil:%201", "value in the response")
    equal((answer.header("X-Evil"), origin.requests[0].header("X-Evil")), (None, None), "a field of the client's")
    equal(origin.requests[0].header("X-Path"), "/a%0D%0AX-Evil:%201", "value at the origin")
    # An expression that finds without end, and a value that grows beyond bounds.
    proxy.write_config(proxy.text(extra='''request_headers all { replace = { "X-In: /a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/" } }
        request_headers all { replace = "X-Hard: /^(a+)+$/x/" }'''))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get(origin.url("/b"), {"X-In": "a" * 900}).status, 431, "a value that grows")
    equal(proxy.get(origin.url("/b"), {"X-In": "b" * 900}).status, 200, "one that does not")
    equal(proxy.get(origin.url("/b"), {"X-Hard": "a" * 100 + "!"}).status, 431, "a value that is hard to search")
    equal(proxy.counter("field_rules_failures"), 2, "counted")


def test_fields_as_variables(lab):
    """Of the request and of the response, as they are before a place changes them; hits included."""
    origin = RawOrigin(lab, answers("Cache-Control: max-age=60", "Server: nginx", "X-Two: a", "X-Two: b"))
    proxy = Retort(lab, extra='''
        request_headers all { where = client  set = "X-Agent: was %{request.User-Agent}"  remove = "User-Agent" }
        request_headers all { where = client  set = "X-Again: %{request.User-Agent}%{request.X-Agent}" }
        request_headers all { set = { "X-Tell: %{request.X-Agent}", "X-None: %{request.Nothing}%{response.Server}" } }
        response_headers all { set = { "X-Server: %{response.Server}; %{response.X-Two}", "X-For: %{request.X-Agent}" }  remove = "Server" }
        response_headers all { where = origin  set = "X-Stored: by %{response.server}" }''')
    for agent in ("one", "two"):
        answer = proxy.get(origin.url("/page"), {"User-Agent": agent})
        equal([answer.header(name) for name in ("X-Server", "X-For", "Server", "X-Stored")],
              ["nginx; a, b", f"was {agent}", None, "by nginx"], agent)
    equal(proxy.results("/page", 2), ["MISS", "HIT"], "results")
    equal([origin.requests[0].header(name) for name in ("X-Agent", "X-Again", "User-Agent", "X-Tell", "X-None")],
          ["was one", "one", None, "was one", None], "fields at the origin")


@memcheck
def test_fields_of_attackers(lab):
    """What a client or an origin puts into a field stays inside the field, and is bounded."""
    evil = b"a\tb\x80\xff<script>\"'%{user}%0d%0aX-Evil: 1"
    origin = RawOrigin(lab, answers("Cache-Control: no-store", "Server: x\t%{client_ip}<b>"))
    lab.write("evil.html", "<p title=\"%{request.X-In}\">%{request.X-In}</p>")
    lab.write("evil.json", '{"in": "%{request.X-In}"}')
    proxy = Retort(lab, extra='''
        request_headers all { set = "X-Copy: %{request.X-In}" }
        response_headers all { set = { "X-Copy: %{request.X-In}", "X-Server: %{response.Server}" } }
        error_page all { file = { "evil.html", "evil.json" } }
        url_class away { path_regex = "^/away" }
        access away { action = redirect  to = "https://login.example/%{request.X-In}?by=%{request.X-In}" }
        access all { action = allow }''')

    def ask(target, value, accept="*/*"):
        with proxy.wire() as wire:
            wire.send(f"GET {target} HTTP/1.1\r\nHost: {origin.authority}\r\nAccept: {accept}\r\nX-In: ".encode() + value + b"\r\n\r\n")
            return wire.response()
    answer = ask(origin.url("/"), evil)
    expected = evil.replace(b"\t", b" ").decode("latin-1")
    equal((answer.header("X-Copy"), answer.header("X-Evil")), (expected, None), "the client's field in the response")
    equal((origin.requests[0].header("X-Copy"), origin.requests[0].header("X-Evil")), (expected, None), "at the origin")
    answer = ask(origin.url("/away"), evil)
    equal((answer.status, answer.header("X-Evil")), (302, None), "redirection")
    value = "a%09b%80%FF%3Cscript%3E%22%27%25%7Buser%7D%250d%250aX-Evil%3A%201"
    equal(answer.header("Location"), f"https://login.example/{value}?by={value}", "Location")
    html_page = ask("http://127.0.0.1:1/", evil).body
    lacks(html_page.decode("latin-1"), "<script", "HTML")
    equal(html_page.count(b'"'), 2, "quotation marks in HTML")
    page = json.loads(ask("http://127.0.0.1:1/", evil, "application/json").body)
    equal(page["in"], 'a\tb\ufffd\ufffd<script>"\'%{user}%0d%0aX-Evil: 1', "JSON")
    equal(ask(origin.url("/"), b"x" * 9000).header("X-Copy"), "x" * 4096, "a long field")
    # Many long lines become one value, once, and never a head of megabytes.
    proxy.write_config(proxy.text(extra='request_headers all { set = "X-Copy: ' + "%{request.X-In}" * 20 + '" }'))
    equal(proxy.reload().status, 200, "reload")
    equal(ask(origin.url("/"), b"x" * 4000).status, 431, "a value that grows beyond bounds")
    equal(proxy.counter("field_rules_failures"), 1, "failures")


def test_fields_that_are_refused(lab):
    listen = 'listen "127.0.0.1:3128" { mode = forward }\n'
    for text, word in (('request_headers all { set = "A: %{request.Cookie}" }', "carries credentials"),
                       ('response_headers all { set = "A: %{response.set-cookie}" }', "carries credentials"),
                       ('rewrite all { match = "x"  to = "http://h/%{request.Authorization}" }', "carries credentials"),
                       ('access all { action = redirect  to = "http://h/%{request.Proxy-Authorization}" }', "carries credentials"),
                       ('request_headers all { set = "A: %{request.a b}" }', "is no name of a field"),
                       ('response_headers all { where = origin  add = "A: %{request.User-Agent}" }', "write where = client"),
                       ('response_headers all { where = origin  replace = "A: /x/%{client_ip}/" }', "write where = client"),
                       ('response_headers all { where = origin  set = "A: %{rule}" }', "write where = client"),
                       ('response_headers all { where = origin  set = "A: %{tls_sni}" }', "write where = client"),
                       ('response_headers all { where = origin  set = "A: %{listener}" }', "write where = client"),
                       ('response_headers all { where = origin  set = "A: %{user}" }', "write where = client")):
        status, said = run_check(lab, lab.write("bad.conf", listen + text + "\n"), "-T")
        true(status > 0 and f"bad.conf:2: " in said and word in said, f"{text}: {said}")


def test_connection_takes_nothing_from_others(lab):
    """A field that Connection names chooses no variant, because the origin has not seen it; and nobody has what a proxy in
    front says dropped that way."""
    def answer(connection, seen):
        body = (seen.header("Accept-Language") or "en").encode()
        connection.send(b"HTTP/1.1 200 OK\r\nVary: Accept-Language\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\n" + body)
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, reverse={"/": origin.url()}, extra='request_headers all { set = { "X-Late: yes", "X-Real-IP: 192.0.2.1" } }')
    equal(proxy.get("/page", {"Accept-Language": "de", "Connection": "Accept-Language, X-Late"}).text(), "en", "what the attacker gets")
    equal(proxy.get("/page", {"Accept-Language": "de"}).text(), "de", "what others get")
    proxy.get("/other", {"X-Forwarded-Port": "444", "X-Own": "1", "Connection": "X-Forwarded-Port, x-forwarded-for, X-Real-IP, X-Own"})
    equal([r.header("X-Late") for r in origin.requests], ["yes"] * 3, "fields of rules")
    equal([origin.requests[2].header(name) for name in ("X-Forwarded-Port", "X-Real-IP", "X-Forwarded-For", "X-Own")],
          ["444", "192.0.2.1", "127.0.0.1", None], "fields of proxies")


def test_what_is_refused(lab):
    proxy = Retort(lab)
    cases = [
        ('request_headers all { set = "Content-Length: 0" }', "says how messages are sent"),
        ('request_headers all { remove = "connection" }', "says how messages are sent"),
        ('request_headers all { set = "Host: x" }', "says how messages are sent"),
        ('response_headers all { add = "Via: x" }', "says how messages are sent"),
        ('request_headers all { remove = "If-None-Match" }', "write where = client"),
        ('request_headers all { set = "X-A %{client_ip}" }', 'is not "Name: value"'),
        ('request_headers all { set = ": x" }', "has no name of a field"),
        ('request_headers all { set = "X A: x" }', "has no name of a field"),
        ('request_headers all { remove = "*" }', "has no name of a field"),
        ('request_headers all { set = "X-A: a\x01b" }', "control character"),
        ('request_headers all { set = "X-A: %{nobody}" }', "there is no variable %{nobody}; there are: client_ip"),
        ('request_headers all { replace = "X-A: x" }', "/expression/replacement/"),
        ('request_headers all { replace = "X-A: /a/b/c" }', "/expression/replacement/"),
        ("request_headers all { replace = 'X-A: /(/b/' }", "is not a regular expression"),
        ("request_headers all { replace = 'X-A: /(a)/$2/' }", "has no group 2"),
        ("request_headers all { where = client }", "changes nothing"),
        ("request_headers nobody { set = \"A: b\" }", '"nobody"'),
        ("response_headers all { where = origin  on_errors = true  remove = A }", "never pass where = origin"),
        ('url_class lan { client = "10.0.0.0/8" }\nurl_class mine { any_of = lan }\nresponse_headers mine { where = origin  set = "A: b" }',
         "depends on who asks"),
        ('url_class anna { user = "anna" }\nresponse_headers anna { where = origin  remove = A }', "depends on who asks"),
        ('url_class guests { listener = guests }\nresponse_headers guests { where = origin  remove = A }', "depends on who asks"),
        ('url_class name { sni = "a.test" }\nresponse_headers name { where = origin  remove = A }', "depends on who asks"),
        ("url_class curl { request_header = 'User-Agent: ^curl' }\nresponse_headers curl { where = origin  remove = A }", "depends on who asks"),
        ("rewrite all { match = '(' to = \"/\" }", "is not a regular expression"),
        ("rewrite all { match = 'a' to = \"http://x/ y\" }", "has a blank"),
        ("rewrite all { match = 'a' to = \"/$1\" }", "has no group 1"),
        ("rewrite all { match = 'a' }", "has no to"),
        ('url_class t { content_type = "text/html" }\nrequest_headers t { remove = A }', "before there is a response"),
    ]
    for text, expected in cases:
        code, said = proxy.check_config(proxy.text() + text + "\n")
        equal(code, 1, f"exit status for {text}")
        contains(said, expected, f"message for {text}")


def test_rewritten_urls(lab):
    """The cache, the origin and the classes see the rewritten URL, the log what the client asked for."""
    origin, other = Origin(lab), Origin(lab)
    proxy = Retort(lab, extra=f'''
        url_class old {{ path_regex = "^/old/" }}
        url_class new {{ path_regex = "^/echo/new/" }}
        rewrite old {{ match = '^http://[^/]*/old/(.*)'  to = "/echo/new/$1" }}
        rewrite all {{ match = 'moved=(\\w+)'  to = "http://{other.authority}/echo/$1?from=%{{url}}"  last = true }}
        rewrite all {{ match = '/echo/'  to = "%{{url}}" }}
        rewrite all {{ match = 'broken'  to = "ftp://x/" }}
        rewrite all {{ match = 'local'  to = "http://[::1" }}
        request_headers new {{ set = "X-New: 1" }}''')
    seen = echoed(proxy.get(origin.url("/old/a?b=c")))
    equal((seen["path"], seen["arguments"], seen["header"]("X-New")), ("/echo/new/a", [["b", "c"]], "1"), "a path")
    equal(seen["header"]("Host"), origin.authority, "Host")
    contains(proxy.entries("/old/a")[0]["url"], "/old/a?b=c", "URL in the log")
    url = origin.url("/old/x?moved=there")
    seen = echoed(proxy.get(url))
    equal((seen["path"], seen["header"]("Host")), ("/echo/there", other.authority), "another host")
    equal(seen["arguments"], [["from", origin.url("/echo/new/x?moved=there")]], "the URL as a value")
    for path in ("/broken", "/local"):
        equal(proxy.get(origin.url(path)).status, 500, path)
    equal((proxy.counter("urls_rewritten"), proxy.counter("rewrite_failures")), (2, 2), "counters")
    # One page under two names is stored once.
    page = "say=x&cc=max-age%3D60"
    proxy.write_config(proxy.text(extra=f'''rewrite all {{ match = '^http://alias\\.example/(.*)' to = "{origin.url("/")}$1" }}'''))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get(f"http://alias.example/text?{page}").body, b"x", "by the alias")
    equal(proxy.get(origin.url(f"/text?{page}")).body, b"x", "by its name")
    equal(proxy.results("/text", 2), ["MISS", "HIT"], "results")


def test_nginx_gets_what_the_rules_say(lab):
    root = os.path.dirname(lab.write("site/index.html", "<p>hello</p>"))
    nginx = Nginx(lab, root, extra='''location /seen { return 200 "$http_x_client|$http_x_forwarded_for|$http_referer|$http_cookie\n"; }''')
    proxy = Retort(lab, reverse={"/": nginx.url("/")}, extra='''
        request_headers all { set = "X-Client: %{client_ip} %{scheme}"  remove = "Referer"  replace = "Cookie: /b/c/" }
        response_headers all { remove = "Server"  set = "Cache-Control: max-age=5" }''')
    answer = proxy.get("/seen", {"Referer": "r", "Cookie": "a=b; b=b"}, host="www.example.com")
    equal(answer.text(), "127.0.0.1 http|127.0.0.1||a=c; c=c\n", "what nginx saw")
    answer = proxy.get("/index.html", host="www.example.com")
    equal((answer.header("Server"), answer.header("Cache-Control"), answer.body), (None, "max-age=5", b"<p>hello</p>"), "page")


def test_the_example_of_security_fields(lab):
    """examples/security-headers.conf as it stands."""
    with open(os.path.join(SOURCE, "examples", "security-headers.conf"), encoding="utf-8") as example:
        rules = example.read()
    origin = RawOrigin(lab, answers("Server: x", "X-Powered-By: y", "X-Frame-Options: ALLOWALL", "Content-Type: text/html"))
    proxy = Retort(lab, reverse={"/": origin.url("/")}, extra=rules)
    answer = proxy.get("/", host="www.example.com")
    for name, expected in {"Strict-Transport-Security": "max-age=31536000", "X-Content-Type-Options": "nosniff",
                           "X-Frame-Options": "DENY", "Referrer-Policy": "strict-origin-when-cross-origin"}.items():
        equal(answer.header(name), expected, name)
    contains(answer.header("Content-Security-Policy"), "default-src 'self'", "Content-Security-Policy")
    equal((answer.header("Server"), answer.header("X-Powered-By")), (None, None), "what servers say of themselves")
    origin.stop()
    lacks(str(proxy.get("/gone", host="www.example.com").header("X-Content-Type-Options")), "None", "on an error page")


def test_rewriting_leads_past_no_access_rule(lab):
    origin = Origin(lab)
    proxy = Retort(lab, extra='''
        url_class secret { path_regex = "^/echo/secret" }
        access secret { action = deny }
        access all { action = allow }
        rewrite all { match = '/open/(.*)'  to = "/echo/$1" }''')
    equal(proxy.get(origin.url("/open/a")).status, 200, "a path that is allowed")
    for path in ("/open/secret", "/open/%73ecret", "/open/x/../secret", "/open/./%2e%2e/echo/secret"):
        equal(proxy.get(origin.url(path)).status, 403, path)
