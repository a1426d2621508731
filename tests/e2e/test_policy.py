"""Policies of URL classes: what the cache does differently for some URLs."""

import time
from urllib.parse import quote

from harness.checks import contains, equal, lacks, true
from harness.origin import Origin, echoed
from harness.icap import IcapServer, append
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service, run_check
from harness.suite import memcheck

OLD = 1000000000  # a Last-Modified long ago


def start(lab, *policies, **options):
    """Policies are lines of the configuration; a class p/NAME is for the paths that begin so."""
    classes = "\n".join(f"url_class {name} {{ path_regex = '^/{name}' }}" for name in "abcdefgh")
    return Origin(lab), Retort(lab, extra=classes + "\n" + "\n".join(policies), **options)


def asked(origin, proxy, path, times=2, headers=None, **arguments):
    """How often the origin is asked when a client asks so often."""
    for _ in range(times):
        proxy.get(origin.url(path, **arguments), headers)
    return origin.count(path)


def test_never_and_always(lab):
    origin, proxy = start(lab, "policy a { cache = never }", 'policy b { cache = always ttl = "1m" }',
                          'policy c { cache = always ttl = "1m" override = true }')
    equal(asked(origin, proxy, "/a", cc="max-age=60"), 2, "requests with never")
    equal(proxy.results("/a", 2), ["PASS", "PASS"], "results with never")
    equal(proxy.get(origin.url("/a"), {"Cache-Control": "only-if-cached"}).status, 504, "only-if-cached with never")
    equal(asked(origin, proxy, "/b"), 1, "requests with always, nothing said")
    equal(asked(origin, proxy, "/b302", status=302, h="Location: /x"), 1, "requests with always, 302")
    equal(asked(origin, proxy, "/bprivate", cc="private"), 2, "requests with always, private")
    equal(asked(origin, proxy, "/bstore", cc="no-store"), 2, "requests with always, no-store")
    equal(asked(origin, proxy, "/bvary", vary="*"), 2, "requests with always, Vary: *")
    equal(asked(origin, proxy, "/cprivate", cc="private, no-store"), 1, "requests with override")
    equal(asked(origin, proxy, "/cauth", headers={"Authorization": "Basic eDp5"}), 2, "requests with Authorization")
    equal(asked(origin, proxy, "/other", cc="max-age=60"), 1, "requests without a policy")


def test_lifetimes(lab):
    origin, proxy = start(lab, 'policy a { ttl = "2s" }', 'policy b { ttl_default = "1m" }', 'policy c { ttl_min = "1m" }',
                          'policy d { ttl_max = "2s" }')
    equal(asked(origin, proxy, "/a", cc="max-age=60"), 1, "requests while ttl lasts")
    equal(asked(origin, proxy, "/b"), 1, "requests with ttl_default")
    equal(asked(origin, proxy, "/bzero", cc="max-age=0"), 2, "requests with ttl_default that has no say")
    equal(asked(origin, proxy, "/c", cc="max-age=0"), 1, "requests with ttl_min")
    equal(asked(origin, proxy, "/cage", cc="max-age=10", h="Age: 90"), 1, "requests with ttl_min and an age")
    equal(asked(origin, proxy, "/d", cc="max-age=60"), 1, "requests while ttl_max lasts")
    time.sleep(3.1)
    equal(asked(origin, proxy, "/a", 1, cc="max-age=60"), 2, "requests after ttl")
    equal(asked(origin, proxy, "/d", 1, cc="max-age=60"), 2, "requests after ttl_max")


def test_errors_have_a_lifetime_of_their_own(lab):
    origin, proxy = start(lab, 'policy a { negative_ttl = "1m" }', 'policy b { ttl = "1m" ttl_min = "1m" }')
    for status in (404, 410, 500, 503):
        equal(asked(origin, proxy, f"/a{status}", status=status), 1, f"requests for {status}")
        equal(asked(origin, proxy, f"/b{status}", status=status), 2, f"requests for {status} with ttl alone")
    equal(asked(origin, proxy, "/a403", status=403), 2, "requests for 403")
    equal(asked(origin, proxy, "/azero", status=404, cc="max-age=0"), 2, "requests for 404 with max-age=0")


def test_errors_by_status(lab):
    """Rules of the cache section, and those of a policy in their place."""
    origin, proxy = start(lab, 'policy a { negative_ttl = "403 1m" }', "policy b { negative_ttl = none }",
                          cache={"memory": "32MB", "negative_ttl": ["404 410 1m", "503 0", "5xx 1m"]})
    for path, status, expected in (("/404", 404, 1), ("/410", 410, 1), ("/405", 405, 2), ("/403", 403, 2), ("/500", 500, 1),
                                   ("/503", 503, 2), ("/504", 504, 1), ("/200", 200, 2), ("/302", 302, 2),
                                   ("/a403", 403, 1), ("/a404", 404, 2), ("/b404", 404, 2)):
        equal(asked(origin, proxy, path, status=status), expected, f"requests for {path}, {status}")
    equal(asked(origin, proxy, "/said", status=404, cc="max-age=0"), 2, "requests for what says so itself")
    equal(asked(origin, proxy, "/cookie", status=404, h="Set-Cookie: a=b"), 2, "requests for an error with a cookie")
    equal(asked(origin, proxy, "/private", status=404, cc="private"), 2, "requests for a private error")


def test_negative_ttl_says_what_is_wrong(lab):
    _, proxy = start(lab)
    for rule in ("404", "404 1", "200 1m", "x 1m", "404 1m 410", "4xxx 1m", ""):
        code, said = proxy.check_config(proxy.text(cache={"memory": "32MB", "negative_ttl": [rule]}))
        true(code != 0 and "negative_ttl" in said, f"{rule!r}: {said}")


def test_stale_while_revalidate_by_policy(lab):
    origin, proxy = start(lab, 'policy a { stale_while_revalidate = "1m" }', 'policy b { stale_while_revalidate = "0" }')
    says = "max-age=1, stale-while-revalidate=60"
    for path, control, first in (("/a", "max-age=1", "STALE"), ("/b", says, "REFRESHED"), ("/c", says, "STALE"),
                                 ("/amust", "max-age=1, must-revalidate", "REFRESHED")):
        proxy.get(origin.url(path, cc=control, etag="v", fail304=1))
    time.sleep(2.1)
    for path, control, first in (("/a", "max-age=1", "STALE"), ("/b", says, "REFRESHED"), ("/c", says, "STALE"),
                                 ("/amust", "max-age=1, must-revalidate", "REFRESHED")):
        proxy.get(origin.url(path, cc=control, etag="v", fail304=1))
        equal(proxy.results(path + "?", 2)[1], first, f"result of {path}")


def test_required_headers(lab):
    origin, proxy = start(lab, 'policy a { required_headers = 1 ttl = "1m" }', 'policy b { required_headers = 2 ttl = "1m" }')
    equal(asked(origin, proxy, "/a"), 2, "1: nothing said")
    equal(asked(origin, proxy, "/alm", lm=OLD), 1, "1: Last-Modified")
    equal(asked(origin, proxy, "/blm", lm=OLD), 2, "2: Last-Modified")
    equal(asked(origin, proxy, "/bcc", cc="max-age=60"), 1, "2: max-age")
    equal(asked(origin, proxy, "/bexp", h="Expires: Fri, 01 Jan 2038 00:00:00 GMT"), 1, "2: Expires")


def test_clients_that_insist(lab):
    origin, proxy = start(lab, "policy a { ignore_client_no_cache = true }")
    for number, headers in enumerate([{"Cache-Control": "no-cache"}, {"Cache-Control": "max-age=0"}, {"Pragma": "no-cache"}]):
        equal(asked(origin, proxy, f"/a{number}", headers=headers, cc="max-age=60"), 1, f"requests with {headers}")
        equal(asked(origin, proxy, f"/other{number}", headers=headers, cc="max-age=60"), 2, f"{headers} elsewhere")
    equal(asked(origin, proxy, "/astore", headers={"Cache-Control": "no-store"}, cc="max-age=60"), 2, "no-store")


def test_queries(lab):
    origin, proxy = start(lab, 'policy a { query_drop = { "utm_*", fbclid } }', "policy b { query_ignore = true query_sent = whole }",
                          "policy c { query_keep = { id, cc } query_sort = true }")
    for query in ("cc=max-age%3D60", "cc=max-age%3D60&utm_source=x", "fbclid=1&cc=max-age%3D60", "utm_x&cc=max-age%3D60&utm_y"):
        proxy.get(f"{origin.url('/a')}?{query}")
        proxy.get(f"{origin.url('/b')}?{query}&v={query}")
    equal((origin.count("/a"), origin.count("/b")), (1, 1), "requests with query_drop, query_ignore")
    for query in ("id=1&cc=max-age%3D60", "x=1&cc=max-age%3D60&y=2&id=1"):
        proxy.get(f"{origin.url('/c')}?{query}")
    equal(origin.count("/c"), 1, "requests with query_keep and query_sort")
    proxy.get(f"{origin.url('/c')}?cc=max-age%3D60&id=2")
    equal(origin.count("/c"), 2, "requests for another id")


def target(connection, request):
    """Answers with what was asked for, which everybody then gets."""
    body = request.target.encode()
    connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"e\"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def test_the_origin_gets_what_is_stored(lab):
    """What is taken out of the key could else be one client's choice of what all others get."""
    origin = RawOrigin(lab, target)
    classes = "\n".join(f"url_class {name} {{ path_regex = '^/{name}' }}" for name in "abcd")
    proxy = Retort(lab, extra=classes + "\npolicy a { query_drop = { x, \"utm_*\" } }\npolicy b { query_keep = { a, b } query_sort = true }\n"
                                        "policy c { query_ignore = true }\n"
                                        "policy d { query_drop = x query_sort = true query_sent = whole }\n")
    for path, kept in (("/a", "?b=2&a=3"), ("/b", "?a=3&b=2"), ("/c", ""), ("/d", "?x=1&b=2&utm_x=5&a=3")):
        for query in ("?x=1&b=2&utm_x=5&a=3", "?utm_x=5&b=2&x=1;y=2&a=3", "?utm_x=<script>&x=9&b=2&a=3"):
            answer = proxy.get(origin.url(path + query))
            if path != "/d":
                equal(answer.text(), path + kept, f"what comes for {path + query}")
        proxy.get(origin.url(path + "?x=1&b=2&utm_x=5&a=3"), {"Cache-Control": "no-cache"})
    sent = [request.target for request in origin.requests]
    equal(sent, ["/a?b=2&a=3"] * 2 + ["/b?a=3&b=2"] * 2 + ["/c"] * 2
          + ["/d?x=1&b=2&utm_x=5&a=3", "/d?utm_x=<script>&x=9&b=2&a=3", "/d?x=1&b=2&utm_x=5&a=3"],
          "what the origin was asked for")


def silent(connection, request):
    """Does not say how long the answer is fresh."""
    body = request.target.encode()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def test_a_policy_holds_for_what_it_drops(lab):
    """A class may look at the very part of the query that its policy drops. The policy that has decided the key decides also whether, and
    for how long, the response is stored: by the request alone, and where classes with types make it look again."""
    for more in ("", 'url_class pictures { content_type = "image/*" }\npolicy pictures { ttl_max = "1h" }'):
        origin = RawOrigin(lab, silent)
        proxy = Retort(lab, extra='url_class tracked { url_regex = "[?&]x=" }\npolicy tracked { query_drop = x  ttl = "1h" }\n' + more)
        bodies = [proxy.get(origin.url(f"/a?x={number}")).text() for number in range(3)]
        equal(bodies, ["/a"] * 3, f"{more!r}: bodies")
        equal([request.target for request in origin.requests], ["/a"], f"{more!r}: requests at the origin")
        proxy.stop()


def test_what_is_dropped_does_not_choose_services(lab):
    """Nor header rules: all clients get the response that one of them made the services adapt."""
    origin = RawOrigin(lab, target)
    icap = IcapServer(lab, append(b"!"))
    proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False)], adapt=False, extra="""
        policy all { query_drop = x }
        url_class unseen { url_regex = "skip" }  url_class seen { not = unseen }
        adapt seen { services = s }
        response_headers unseen { set = "X-Unseen: 1" }""")
    for query in ("?x=skip", "", "?x=1"):
        answer = proxy.get(origin.url("/b" + query))
        equal((answer.text(), answer.header("X-Unseen")), ("/b!", None), f"/b{query}")
    equal((len(origin.requests), icap.count), (1, 1), "requests at the origin and the service")


def test_posts_are_sent_and_stored_whole(lab):
    def answer(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Location: %s\r\nContent-Length: 6\r\n\r\nposted"
                        % request.target.encode())
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, extra="policy all { query_drop = x }")
    proxy.fetch("POST", origin.url("/p?x=1&a=2"), body=b"new")
    equal(origin.requests[0].target, "/p?x=1&a=2", "what a POST asks for")
    proxy.get(origin.url("/p?a=2"))
    equal(len(origin.requests), 2, "requests: the answer to a POST with more in its URL is not that to a GET")
    proxy.fetch("POST", origin.url("/p?a=2"), body=b"new")
    proxy.get(origin.url("/p?a=2&x=3"))
    equal(len(origin.requests), 3, "requests: the answer to a POST of the same URL is")


def test_what_posts_change_is_found_by_its_key(lab):
    origin, proxy = start(lab, "policy a { query_drop = x }")
    equal(asked(origin, proxy, "/a", cc="max-age=60", x=1), 1, "requests before")
    proxy.fetch("POST", origin.url("/a", cc="max-age=60", x=2), body=b"new")
    equal(asked(origin, proxy, "/a", 1, cc="max-age=60", x=3), 3, "requests after the POST")


@memcheck
def test_the_admin_plane_finds_what_is_stored(lab):
    origin, proxy = start(lab, "policy a { query_drop = x }")
    equal(asked(origin, proxy, "/a", cc="max-age=60", x=1), 1, "requests before")
    url = quote(origin.url("/a", cc="max-age=60", x=2), safe="")
    equal(proxy.admin("DELETE", "/cache/object?url=" + url).status, 200, "status of the purge")
    equal(asked(origin, proxy, "/a", 1, cc="max-age=60", x=3), 2, "requests after")


def test_cookies_are_stripped(lab):
    origin, proxy = start(lab, 'url_class echo { path_regex = "^/echo" }', "policy echo { strip_cookies = true }",
                          "policy a { set_cookie = strip ttl_default = 1m }", "policy b { set_cookie = pass }",
                          "policy c { set_cookie = store ttl = 1m }", "policy d { ttl = 1m }")
    lacks(str(echoed(proxy.get(origin.url("/echo"), {"Cookie": "a=b"}))["headers"]), "a=b", "what the origin saw")
    contains(str(echoed(proxy.fetch("POST", origin.url("/echo"), {"Cookie": "a=b"}, body=b"x"))["headers"]), "a=b",
             "what the origin saw of a POST")
    cookie = {"h": "Set-Cookie: session=1"}
    equal(asked(origin, proxy, "/a", **cookie), 1, "requests with strip")
    equal(proxy.get(origin.url("/a", **cookie)).header("Set-Cookie"), None, "cookie with strip")
    true(proxy.get(origin.url("/ap", cc="private", **cookie)).header("Set-Cookie"), "what is not stored keeps its cookie")
    equal(asked(origin, proxy, "/b", cc="max-age=60", **cookie), 2, "requests with pass")
    equal(asked(origin, proxy, "/c", **cookie), 1, "requests with store")
    equal(proxy.get(origin.url("/c", **cookie)).header("Set-Cookie"), "session=1", "cookie with store")
    equal(asked(origin, proxy, "/d", **cookie), 2, "requests where only the policy knows a lifetime")
    equal(asked(origin, proxy, "/e", cc="max-age=60", **cookie), 1, "requests where the origin says so")


def test_cookies_of_a_304_are_stripped(lab):
    def answer(connection, seen):
        cookie = b"Set-Cookie: session=1\r\n"
        if seen.header("If-None-Match"):
            connection.send(b'HTTP/1.1 304 Not Modified\r\nETag: "v"\r\nCache-Control: max-age=60\r\n' + cookie + b"\r\n")
        else:
            connection.send(b'HTTP/1.1 200 OK\r\nETag: "v"\r\nCache-Control: max-age=0\r\n' + cookie +
                            b"Content-Length: 4\r\n\r\nbody")
    origin, proxy = RawOrigin(lab, answer), Retort(lab, extra="policy all { set_cookie = strip }")
    answers = [proxy.get(origin.url("/x")) for _ in range(3)]
    equal([a.header("Set-Cookie") for a in answers], [None] * 3, "cookies")
    equal(proxy.results("/x", 3), ["MISS", "REVALIDATED", "HIT"], "results")


@memcheck
def test_classes_by_type(lab):
    origin, proxy = start(lab, 'url_class pictures { content_type = "image/*" }', 'policy pictures { ttl_default = "1m" }',
                          'policy all { ttl_max = "1h" }')
    equal(asked(origin, proxy, "/p", type="image/png"), 1, "requests for a picture")
    equal(asked(origin, proxy, "/t", type="text/plain"), 2, "requests for text")


def test_variants_are_bounded(lab):
    origin, proxy = start(lab, "policy a { max_variants = 2 }", cache={"memory": "32MB", "max_variants": 3})
    for path, most in (("/a", 2), ("/b", 3)):
        url = origin.url(path, vary="X-Color", cc="max-age=60")
        for color in "12345":
            proxy.get(url, {"X-Color": color})
        for color in "12345"[-most:]:
            proxy.get(url, {"X-Color": color})
        equal(origin.count(path), 5, f"requests at {path}: the newest {most} are stored")
        proxy.get(url, {"X-Color": "1"})
        equal(origin.count(path), 6, f"requests at {path}: the oldest is not")


def test_stale_if_error(lab):
    origin, proxy = start(lab, 'policy a { stale_if_error = "1h" }', 'policy b { stale_if_error = 0 }')
    urls = [origin.url(path, cc="max-age=2") for path in ("/a", "/b", "/c")]
    for url in urls:
        proxy.get(url)
    time.sleep(3.1)
    origin.stop()
    equal([proxy.get(url).status for url in urls], [200, 502, 200], "statuses without the origin")


@memcheck
def test_a_reload_brings_policies(lab):
    origin, proxy = start(lab)
    equal(asked(origin, proxy, "/before", cc="max-age=60"), 1, "requests before")
    proxy.write_config(proxy.text(extra="policy all { cache = never }"))
    equal(proxy.reload().status, 200, "reload")
    equal(asked(origin, proxy, "/after", cc="max-age=60"), 2, "requests after")
    equal(proxy.result("/after"), "PASS", "result")


def test_errors_name_their_line(lab):
    text = 'listen "127.0.0.1:1" { mode = forward }\nurl_class a { host = x }\npolicy a {\n  ttl = soon\n}\n'
    status, said = run_check(lab, lab.write("bad.conf", text))
    true(status != 0, "a bad policy is refused")
    contains(said, "bad.conf:4: ttl", "message")
