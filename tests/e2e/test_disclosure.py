"""Fields by which rules tell origins who asks: nobody gets what the origin made for another user."""

import threading
import time
import urllib.parse

from harness.checks import equal, until
from harness.icap import IcapServer
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from test_identity import from_address, proxied, sha, users_file

RULES = r'''
    authenticator staff {{ type = basic  file = "{users}"  realm = "Staff" }}
    url_class open {{ path_regex = "^/open" }}
    access open {{ action = allow }}
    access all {{ action = authenticate  with = staff }}
    url_class behind {{ path_regex = "^/(behind|open)" }}
    request_headers behind {{ set = "X-User: %{{user}}" }}
    url_class before {{ path_regex = "^/before" }}
    request_headers before {{ where = client  set = {{ "X-User: %{{user}}", "X-Site: one" }} }}
    url_class bosses {{ path_regex = "^/boss"  user = "anna" }}
    request_headers bosses {{ set = "X-Role: boss" }}
    url_class address {{ path_regex = "^/address" }}
    request_headers address {{ set = {{ "X-Real-IP: %{{client_ip}}", "X-Host: %{{host}}" }}  remove = "Accept-Encoding" }}
    url_class shared {{ path_regex = "^/behind/shared" }}
    policy shared {{ cache = always  override = true }}
    url_class mark {{ path_regex = "^/mark" }}
    request_headers mark {{ set = "X-Late: %{{time}}" }}
'''


class Pages:
    """An origin whose page names what it was told; the query of the URL has the fields of its response."""

    def __init__(self, lab, wait=0, names=("X-User", "X-Role")):
        self.wait, self.names = wait, names
        self.origin = RawOrigin(lab, self.answer)

    def answer(self, connection, asked):
        time.sleep(self.wait)
        fields = urllib.parse.parse_qsl(asked.target.partition("?")[2])
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        told = " ".join(str(asked.header(name)) for name in self.names).encode()
        if asked.header("If-None-Match"):
            connection.send(b"HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nCache-Control: max-age=60\r\n\r\n")
        else:
            connection.send(f"HTTP/1.1 200 OK\r\n{lines}Content-Length: {len(told)}\r\n\r\n".encode() + told)

    def url(self, path, *fields):
        return self.origin.url(path + "?" + urllib.parse.urlencode([tuple(field.split(": ")) for field in fields]))


def proxy_for(lab, **options):
    return Retort(lab, extra=RULES.format(users=users_file(lab, sha("anna"), sha("ben"))), **options)


def ask(proxy, url, user=None):
    answer = proxy.get(url, proxied(user) if user else {})
    equal(answer.status, 200, f"status of {url}")
    return answer.text()


def test_one_user_never_gets_the_page_of_another(lab):
    """RFC 9111, 3: a response may be stored for others "if the cache is shared: the Authorization header field is not
    present in the request or a response directive is present that explicitly allows shared caching". What stands in
    place of that field counts like it."""
    pages, proxy = Pages(lab), proxy_for(lab)
    fresh = "Cache-Control: max-age=60"
    rows = [
        ("/behind/a", [fresh], False), ("/behind/b", [fresh, "Vary: X-User"], False),
        ("/behind/c", ["Cache-Control: max-age=60, must-revalidate"], False),
        ("/behind/d", ["Cache-Control: public, max-age=60", "Vary: Accept, x-user"], False),
        ("/behind/e", ["Cache-Control: public, max-age=60"], True), ("/behind/f", ["Cache-Control: s-maxage=60"], True),
        ("/behind/shared", [fresh], True), ("/behind/shared2", [fresh, "Vary: X-User"], False),
        ("/before/a", [fresh], False), ("/before/b", ["Cache-Control: public, max-age=60"], True),
        ("/before/c", [fresh, "Vary: X-Site"], False),
        ("/boss/a", [fresh], False), ("/boss/b", [fresh, "Vary: X-Role"], False),
        ("/address/a", [fresh], True), ("/address/b", [fresh, "Vary: X-Real-IP"], False),
        ("/address/c", [fresh, "Vary: X-Host, Accept-Encoding"], True),
        ("/plain/a", [fresh], True), ("/plain/b", [fresh, "Vary: X-Forwarded-For"], False),
        ("/mark/a", [fresh], True), ("/mark/b", [fresh, "Vary: X-Late"], False),
    ]
    for path, fields, shared in rows:
        first, second = (ask(proxy, pages.url(path, *fields), user) for user in ("anna", "ben"))
        if path[1:].startswith("be"):
            equal((first, second), ("anna None", ("anna" if shared else "ben") + " None"), f"pages at {path}")
    results = proxy.results("?", 2 * len(rows))
    for number, (path, fields, shared) in enumerate(rows):
        equal(results[2 * number:2 * number + 2], ["MISS", "HIT" if shared else "MISS"], f"{path} with {fields}")


def test_vary_gives_each_user_a_page(lab):
    pages, proxy = Pages(lab), proxy_for(lab)
    url = pages.url("/before/own", "Cache-Control: max-age=60", "Vary: X-User")
    for user in ("anna", "ben", "anna", "ben"):
        equal(ask(proxy, url, user), f"{user} None", "the page")
    equal(proxy.results("/before/own", 4), ["MISS", "MISS", "HIT", "HIT"], "results")


def test_what_nobody_asked_for_by_name_stays_shared(lab):
    """Where nobody is proven, the origin is told nothing. But Vary by a field that others send hides who gets what."""
    pages, proxy = Pages(lab), proxy_for(lab)
    for path, vary, second in (("/open/a", [], "HIT"), ("/open/b", ["Vary: X-User"], "MISS")):
        for _ in range(2):
            equal(ask(proxy, pages.url(path, "Cache-Control: max-age=60", *vary)), "None None", "the page")
        equal(proxy.results(path, 2), ["MISS", second], f"results of {path}")


def test_what_a_service_tells_the_origin_is_for_one_user(lab):
    """A service behind the cache writes the user's name into a field, and the origin varies by it."""
    def behave(_icap, transaction):
        user = transaction.request.header("X-Client-Username")
        transaction.send_head(transaction.request_head(add=[("X-User", user)] if user else []), body=False)
    icap = IcapServer(lab, behave, methods="REQMOD", preview=0)
    pages = Pages(lab)
    proxy = proxy_for(lab, services=[Service("s", icap.uri(), point="reqmod_postcache", include=["X-Client-Username"])])
    url = pages.url("/plain/told", "Cache-Control: max-age=60", "Vary: X-User")
    equal([ask(proxy, url, user) for user in ("anna", "ben")], ["anna None", "ben None"], "pages")


def test_a_304_for_one_user_does_not_share_the_page(lab):
    pages, proxy = Pages(lab), proxy_for(lab)
    url = pages.url("/behind/old", "Cache-Control: public, max-age=0", 'ETag: "e"')
    for user in ("anna", "ben", "ben"):
        ask(proxy, url, user)
    equal(proxy.results("/behind/old", 3), ["MISS", "REVALIDATED", "MISS"], "the 304 does not say public")


def test_what_is_for_one_user_spares_the_page_of_the_others(lab):
    """A 304, another page or a HEAD for one who is known say nothing about the page that is stored for those who are not."""
    def answer(connection, asked):
        user, known = asked.header("X-User"), "/other" in asked.target
        if user and asked.method == "HEAD":
            connection.send(b'HTTP/1.1 200 OK\r\nETag: "his"\r\nContent-Length: 4\r\n\r\n')
        elif user and known:
            connection.send(f'HTTP/1.1 200 OK\r\nETag: "his"\r\nContent-Length: {len(user)}\r\n\r\n{user}'.encode())
        elif asked.header("If-None-Match") == '"all"':
            connection.send(b'HTTP/1.1 304 Not Modified\r\nETag: "all"\r\nCache-Control: max-age=0\r\n\r\n')
        else:
            connection.send(b'HTTP/1.1 200 OK\r\nETag: "all"\r\nCache-Control: max-age=0\r\nContent-Length: 3\r\n\r\nall')
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, extra=f'''
        authenticator staff {{ type = basic  file = "{users_file(lab, sha("anna"), sha("ben"))}"  realm = "Staff" }}
        url_class nobody {{ client = "{BOSS}" }}
        access nobody {{ action = allow }}
        access all {{ action = authenticate  with = staff }}
        request_headers all {{ set = "X-User: %{{user}}" }}''')
    for path, his, result in (("/same", "all", "REVALIDATED"), ("/other", "anna", "REFRESHED")):
        url = origin.url(path)
        equal(ask_from(proxy, BOSS, url), "all", "the page of nobody")
        equal([ask(proxy, url, "anna"), ask_from(proxy, BOSS, url)], [his, "all"], f"pages of {path}")
        equal(proxy.results(path, 3), ["MISS", result, "REVALIDATED"], f"results of {path}")
        if path == "/other":
            equal(proxy.fetch("HEAD", url, proxied("anna")).status, 200, "HEAD")
            equal(ask_from(proxy, BOSS, url), "all", "the page after a HEAD")
            equal(proxy.results(path, 5)[-1], "REVALIDATED", "the result after a HEAD")


def test_users_who_ask_at_once_get_pages_of_their_own(lab):
    pages, proxy = Pages(lab, wait=0.2 * lab.patience), proxy_for(lab)
    url, got = pages.url("/behind/crowd", "Cache-Control: max-age=60"), {}
    for user in ("anna", "ben"):
        ask(proxy, pages.url("/plain/warm"), user)  # proven and remembered
    threads = [threading.Thread(target=lambda user=user: got.update({user: ask(proxy, url, user)}))
               for user in ("anna", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(got, {"anna": "anna None", "ben": "ben None"}, "pages")


BOSS, GUEST = "127.0.0.2", "127.0.0.1"


def ask_from(proxy, source, url, headers=None):
    answer = from_address(proxy, source, url, headers or {})
    equal(answer.status, 200, f"status of {url} for {source}")
    return answer.text()


def test_a_refresh_is_for_who_asked(lab):
    """RFC 5861, 3: "the cache MAY serve the response in which it appears after it becomes stale", and meanwhile one
    request asks for everybody. It is the request of one user."""
    pages = Pages(lab, names=("X-User", "X-Role", "X-Late"))
    proxy = Retort(lab, cache={"memory": "32MB", "stale_while_revalidate": "1m"}, extra=f'''
        authenticator staff {{ type = basic  file = "{users_file(lab, sha("anna"), sha("ben"))}"  realm = "Staff" }}
        url_class strangers {{ path_regex = "^/user/mixed"  client = "{GUEST}" }}
        access strangers {{ action = allow }}
        url_class users {{ path_regex = "^/user" }}
        access users {{ action = authenticate  with = staff }}
        access all {{ action = allow }}
        request_headers users {{ where = client  set = "X-User: %{{user}}" }}
        url_class boss {{ client = "{BOSS}"  path_regex = "^/(class|setting)" }}
        request_headers boss {{ where = client  set = "X-Role: boss" }}
        url_class behind {{ client = "{BOSS}"  path_regex = "^/behind" }}
        request_headers behind {{ set = "X-Late: boss" }}''')
    swr, fresh = "Cache-Control: max-age=1, stale-while-revalidate=60", "Cache-Control: max-age=1"
    urls = {path: pages.url(path, *fields) for path, fields in (
        ("/class", [swr]), ("/setting", [fresh]), ("/behind", [swr]), ("/class/vary", [swr, "Vary: X-Role"]), ("/user/mixed", [swr]))}
    own = pages.url("/user", swr, "Vary: X-User")
    for url in urls.values():
        equal(ask_from(proxy, GUEST, url), "None None None", "the guest's first page")
    for user in ("anna", "ben"):
        equal(ask(proxy, own, user), f"{user} None None", "the user's first page")
    equal(ask_from(proxy, BOSS, urls["/class/vary"]), "None boss None", "the boss's own page")
    time.sleep(2.1)
    before = len(pages.origin.requests)
    for path in ("/class", "/setting", "/behind", "/class/vary"):
        equal(ask_from(proxy, BOSS, urls[path]), "None None boss" if path == "/behind" else "None boss None", f"the boss at {path}")
    ask_from(proxy, BOSS, urls["/user/mixed"], proxied("anna"))
    ask(proxy, own, "anna")
    until(lambda: len(pages.origin.requests) == before + 6, 5 * lab.patience, "three pages for the boss and three refreshes")
    time.sleep(0.2 * lab.patience)
    equal(proxy.counter("cache_background"), 3, "refreshes in the background")
    for path, url in urls.items():
        equal(ask_from(proxy, GUEST, url), "None None None", f"the guest's page at {path} after the refresh")
    equal(ask(proxy, own, "ben"), "ben None None", "ben's page after the refresh of anna's")
    equal(ask(proxy, own, "anna"), "anna None None", "anna's page after its refresh")
    equal(ask_from(proxy, BOSS, urls["/class/vary"]), "None boss None", "the boss's page after its refresh")


def test_a_missing_field_tells_as_much(lab):
    """A rule for a class takes a field away, and the origin makes another page. A rule that finds no field tells
    nothing."""
    pages = Pages(lab, names=("X-Guest", "X-Real", "Y-Guest"))
    proxy = Retort(lab, extra=f'''
        url_class client {{ path_regex = "^/client" }}
        url_class origin {{ path_regex = "^/origin" }}
        request_headers client {{ where = client  set = {{ "X-Guest: 1", "X-Real: 1" }} }}
        request_headers origin {{ set = "Y-Guest: 1" }}
        url_class boss {{ client = "{BOSS}"  path_regex = "^/(client|nothing)/name" }}
        request_headers boss {{ where = client  remove = "X-Guest" }}
        url_class boss_behind {{ client = "{BOSS}"  path_regex = "^/origin/name" }}
        request_headers boss_behind {{ remove = "Y-Guest" }}
        url_class boss_all {{ client = "{BOSS}"  path_regex = "^/client/prefix" }}
        request_headers boss_all {{ where = client  remove = "X-*" }}
        url_class boss_cut {{ client = "{BOSS}"  path_regex = "^/client/replace" }}
        request_headers boss_cut {{ where = client  replace = "X-Guest: /1//" }}''')
    fresh = "Cache-Control: max-age=100"
    rows = [
        ("/client/name", [], "None 1", ["MISS", "MISS", "HIT"]), ("/origin/name", [], "None None", ["MISS", "MISS", "HIT"]),
        ("/client/name/vary", ["Vary: X-Guest"], "None 1", ["MISS", "MISS", "HIT"]),
        ("/client/prefix", [], "None None", ["MISS", "MISS", "HIT"]),
        ("/client/prefix/half", ["Vary: X-Guest"], "None None", ["MISS", "MISS", "HIT"]),
        ("/client/prefix/both", ["Vary: X-Guest, X-Real"], "None None", ["MISS", "MISS", "HIT"]),
        ("/client/replace", [], "None 1", ["MISS", "MISS", "HIT"]),
        ("/nothing/name", [], "None None", ["MISS", "HIT", "HIT"]),
    ]
    for path, fields, boss, results in rows:
        url = pages.url(path, fresh, *fields)
        guest = {"client": "1 1 None", "origin": "None None 1", "nothing": "None None None"}[path.split("/")[1]]
        for source, page in ((BOSS, boss + " None"), (GUEST, guest), (GUEST, guest)):
            equal(ask_from(proxy, source, url), page, f"page of {path} for {source}")
        equal(proxy.results(path + "?", 3), results, f"results of {path}")
    for path, results in (("/client/name/vary", "HIT"), ("/client/prefix/both", "HIT"), ("/client/prefix/half", "MISS")):
        ask_from(proxy, BOSS, next(pages.url(row[0], fresh, *row[1]) for row in rows if row[0] == path))
        equal(proxy.results(path + "?", 4)[-1], results, f"the boss asks again for {path}")


def test_a_class_gets_nothing_that_others_had(lab):
    """What is written for all but one class is as much as what is written for that class."""
    pages = Pages(lab, names=("X-Role", "X-Strict"))
    proxy = Retort(lab, extra=f'''
        url_class before {{ path_regex = "^/before" }}
        request_headers before {{ where = client  set = "X-Role: boss" }}
        url_class guests {{ client = "{GUEST}"  path_regex = "^/before" }}
        request_headers guests {{ where = client  remove = "X-Role" }}
        url_class children {{ client = "{GUEST}"  path_regex = "^/behind" }}
        request_headers children {{ set = "X-Strict: yes" }}
        url_class shared {{ path_regex = "^/(before|behind)/shared" }}
        policy shared {{ cache = always  override = true }}
        url_class typed {{ path_regex = "^/behind/typed"  content_type = "text/plain" }}
        policy typed {{ cache = always  override = true }}''')
    fresh, public = "Cache-Control: max-age=60", "Cache-Control: public, max-age=60"
    rows = [
        ("/before/a", [fresh], "None None", "MISS"), ("/before/vary", [fresh, "Vary: X-Role"], "None None", "HIT"),
        ("/before/public", [public], "boss None", "HIT"), ("/before/shared", [fresh], "boss None", "HIT"),
        ("/behind/a", [fresh], "None yes", "MISS"), ("/behind/public", [public], "None None", "HIT"),
        ("/behind/shared", [fresh], "None None", "HIT"),
        ("/behind/typed", [fresh, "Content-Type: text/plain"], "None None", "HIT"),
        ("/behind/typed-css", [fresh, "Content-Type: text/css"], "None yes", "MISS"), ("/plain", [fresh], "None None", "HIT"),
    ]
    for path, fields, guest, again in rows:
        url, boss = pages.url(path, *fields), "boss None" if path.startswith("/before") else "None None"
        for source, page in ((BOSS, boss), (GUEST, guest), (BOSS, boss), (GUEST, guest)):
            equal(ask_from(proxy, source, url), page, f"page of {path} for {source}")
        equal(proxy.results(path + "?", 4)[2:], ["HIT", again], f"results of {path}")
    equal(proxy.counter("cache_excluded"), 6, "stored responses that guests did not get")


def test_a_proven_connection_is_for_nobody_else(lab):
    """RFC 9110, 3.3: a server "MUST NOT assume that two requests on the same connection are from the same user agent
    unless the connection is secured and specific to that agent. Some non-standard HTTP extensions (e.g., [RFC4559]) have
    been known to violate this requirement, resulting in security and interoperability problems." """
    proven = {}

    def answer(connection, asked):
        scheme, _, user = (asked.header("Authorization") or "").partition(" ")
        if scheme.lower() in ("ntlm", "negotiate"):
            proven[asked.connection_number] = user
        page = proven.get(asked.connection_number, "nobody").encode()
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: %d\r\n\r\n" % len(page) + page)
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, reverse={"/": origin.url("/")})
    for url in (origin.url("/a"), "/a"):
        for scheme in ("NTLM", "negotiate", "Negotiate"):
            equal(proxy.get(url, {"Authorization": f"{scheme} anna"}).text(), "anna", f"anna's page by {scheme}")
            equal(proxy.get(url).text(), "nobody", f"the page of the next, after {scheme}")
        before = origin.requests[-1].connection_number
        for _ in range(2):
            equal(proxy.get(url, {"Authorization": "Basic anna"}).text(), "nobody", "a scheme that proves each request")
        equal(origin.requests[-1].connection_number, before, "the connection is used again")
