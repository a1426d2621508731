"""The memory cache: what is stored, how long it is fresh, how it is asked again."""

import threading
import time

from harness.checks import between, contains, equal, lacks, one_of, same_bytes, true, until
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort
from harness.suite import heavy, memcheck, seconds
from harness.wire import request

OLD = 1000000000  # a Last-Modified long ago


def start(lab, **options):
    return Origin(lab), Retort(lab, **options)


def twice(origin, proxy, path, headers=None, second=None, **arguments):
    """Asks twice; returns how often the origin was asked and the second answer."""
    url = origin.url(path, **arguments)
    proxy.get(url, headers)
    answer = proxy.get(url, second if second is not None else headers)
    return origin.count(path), answer


def test_max_age(lab):
    origin, proxy = start(lab)
    asked, answer = twice(origin, proxy, "/a", cc="max-age=60")
    equal((asked, answer.status, answer.text()), (1, 200, "/a 1\n"), "requests, status, body")
    equal(proxy.results("/a", 2), ["MISS", "HIT"], "results")
    between(int(answer.header("Age")), 0, 3, "Age")


CASES = [
    # name, origin's headers, requests at the origin after asking twice
    ("s-maxage over max-age 0", {"cc": "s-maxage=60, max-age=0"}, 1),
    ("s-maxage 0 over max-age", {"cc": "s-maxage=0, max-age=60", "etag": None}, 2),
    ("max-age 0", {"cc": "max-age=0"}, 2),
    ("no-store", {"cc": "no-store"}, 2),
    ("no-store with max-age", {"cc": "no-store, max-age=60"}, 2),
    ("no-store in capitals", {"cc": "NO-STORE, MAX-AGE=60"}, 2),
    ("private", {"cc": "private, max-age=60"}, 2),
    ("no-cache", {"cc": "no-cache, max-age=60"}, 2),
    ("public", {"cc": "public, max-age=60"}, 1),
    ("max-age in a second field", {"cc": "public", "h": ["Cache-Control: max-age=60"]}, 1),
    ("no-store in a second field", {"cc": "max-age=60", "h": ["Cache-Control: no-store"]}, 2),
    ("Expires ahead", {"h": ["Expires: Fri, 01 Jan 2038 00:00:00 GMT"]}, 1),
    ("Expires past", {"h": ["Expires: Fri, 01 Jan 2010 00:00:00 GMT"]}, 2),
    ("Expires 0", {"h": ["Expires: 0"]}, 2),
    ("max-age over Expires past", {"cc": "max-age=60", "h": ["Expires: Fri, 01 Jan 2010 00:00:00 GMT"]}, 1),
    ("max-age 0 over Expires ahead", {"cc": "max-age=0", "h": ["Expires: Fri, 01 Jan 2038 00:00:00 GMT"]}, 2),
    ("nothing said", {}, 2),
    ("heuristic by Last-Modified", {"lm": OLD}, 1),
    ("Age uses max-age up", {"cc": "max-age=60", "h": ["Age: 61"]}, 2),
    ("Age within max-age", {"cc": "max-age=60", "h": ["Age: 30"]}, 1),
    # RFC 9111, 5.1: the first member counts; one that is no non-negative integer is as if there were none
    ("the first Age of a list", {"cc": "max-age=60", "h": ["Age: 30, 61"]}, 1),
    ("the first Age of a list, old", {"cc": "max-age=60", "h": ["Age: 61, 0"]}, 2),
    ("the first Age of two lines", {"cc": "max-age=60", "h": ["Age: 0", "Age: 61"]}, 1),
    ("the first Age of two lines, old", {"cc": "max-age=60", "h": ["Age: 61", "Age: 0"]}, 2),
    ("an Age that is no number", {"cc": "max-age=60", "h": ["Age: abc"]}, 1),
    ("an Age below zero", {"cc": "max-age=60", "h": ["Age: -61"]}, 1),
    ("an Age beyond all bounds", {"cc": "max-age=60", "h": ["Age: 99999999999999999999"]}, 2),
    ("404 with max-age", {"cc": "max-age=60", "status": 404}, 1),
    ("301 with max-age", {"cc": "max-age=60", "status": 301, "h": ["Location: /x"]}, 1),
    ("500 with max-age", {"cc": "max-age=60", "status": 500}, None),
    ("404 without a word", {"status": 404}, None),
    ("302 without a word", {"status": 302, "h": ["Location: /x"]}, 2),
    ("Vary *", {"cc": "max-age=60", "vary": "*"}, 2),
    ("quoted max-age", {"cc": 'max-age="60"'}, None),
    ("bad max-age", {"cc": "max-age=six"}, 2),
    ("negative max-age", {"cc": "max-age=-1"}, 2),
    ("huge max-age", {"cc": "max-age=99999999999999999999"}, 1),
    # what is not well formed may hide what was meant
    ("no-store behind a quote that is never closed", {"cc": 'max-age=60, a="b, no-store'}, 2),
    ("private behind one in another line", {"cc": 'max-age=60, a="', "h": ["Cache-Control: b, private"]}, 2),
    ("a comma that is missing", {"cc": "max-age=60 no-store"}, 2),
    ("no-store within a quoted string", {"cc": 'max-age=60, a="b, no-store"'}, 1),
]

TARGETED = [
    # name, field, its value, Cache-Control, requests at the origin behind a reverse and a forward listener
    ("fresh for a CDN", "CDN-Cache-Control", "max-age=60", "no-store", 1, 2),
    ("not for a CDN", "CDN-Cache-Control", "no-store", "max-age=60", 2, 1),
    ("an unknown type", "CDN-Cache-Control", "max-age=10000, &&&&&", "no-store", 2, 2),
    ("an unknown type, and fresh", "CDN-Cache-Control", "no-store, &&&&&", "max-age=60", 1, 1),
    ("a string for a number", "CDN-Cache-Control", 'max-age="10000"', "no-store", 2, 2),
    ("a decimal for a number", "CDN-Cache-Control", "max-age=10000.0", "no-store", 2, 2),
    ("capitals", "CDN-Cache-Control", "MAX-AGE=60", "no-store", 2, 2),
    ("empty", "CDN-Cache-Control", "", "max-age=60", 1, 1),
    ("fresh for a surrogate", "Surrogate-Control", "max-age=60+30;x", "no-store", 1, 2),
    ("not for a surrogate", "Surrogate-Control", "no-store", "max-age=60", 2, 1),
    ("nothing for caches", "Surrogate-Control", 'content="ESI/1.0"', "max-age=60", 1, 1),
]


def test_what_is_stored(lab):
    origin, proxy = start(lab)
    for number, (what, arguments, expected) in enumerate(CASES):
        arguments = {name: value for name, value in arguments.items() if value is not None}
        asked, answer = twice(origin, proxy, f"/case{number}", **arguments)
        equal(answer.status, arguments.get("status", 200), f"{what}: status")
        if expected is None:
            one_of(asked, (1, 2), f"{what}: requests at the origin")
        else:
            equal(asked, expected, f"{what}: requests at the origin")


@memcheck
def test_fields_for_caches_by_name(lab):
    """RFC 9213: they speak to reverse proxies; 2.1: one that does not parse, or has a value of the wrong type, is ignored as a whole."""
    origin = Origin(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/")})
    for number, (what, name, value, cc, behind_reverse, behind_forward) in enumerate(TARGETED):
        for way, expected in (("reverse", behind_reverse), ("forward", behind_forward)):
            url = origin.url(f"/{way}{number}", cc=cc, h=[f"{name}: {value}"])
            for _ in range(2):
                equal(proxy.get(url if way == "forward" else url[url.index("/", 7):]).status, 200, "status")
            equal(origin.count(f"/{way}{number}"), expected, f"{what}: requests behind a {way} listener")


def test_authorization(lab):
    origin, proxy = start(lab)
    who = {"Authorization": "Basic eDp5"}
    for number, (cc, expected) in enumerate([("max-age=60", 2), ("public, max-age=60", 1), ("s-maxage=60", 1),
                                             ("must-revalidate, max-age=60", 1)]):
        equal(twice(origin, proxy, f"/auth{number}", who, cc=cc)[0], expected, f"requests with {cc}")


def test_answers_to_authorized_requests_are_not_given_to_others(lab):
    origin, proxy = start(lab)
    equal(twice(origin, proxy, "/mine", {"Authorization": "Basic eDp5"}, {}, cc="max-age=60")[0], 2, "requests")


def test_expires_in_time(lab):
    origin, proxy = start(lab)
    url = origin.url("/short", cc="max-age=1")
    proxy.get(url)
    proxy.get(url)
    equal(origin.count("/short"), 1, "requests while fresh")
    time.sleep(2.1)
    equal(proxy.get(url).text(), "/short 2\n", "body when stale")


def test_revalidation_by_etag(lab):
    origin, proxy = start(lab)
    url = origin.url("/e", etag='"v1"', cc="max-age=0")
    first = proxy.get(url)
    second = proxy.get(url)
    equal((second.status, second.body), (200, first.body), "second answer")
    equal(origin.count("/e"), 2, "requests at the origin")
    equal(proxy.results("/e", 2), ["MISS", "REVALIDATED"], "results")


def test_revalidation_by_last_modified(lab):
    origin, proxy = start(lab)
    url = origin.url("/l", lm=OLD, cc="max-age=0")
    first = proxy.get(url)
    equal(proxy.get(url).body, first.body, "second body")
    equal(proxy.results("/l", 2), ["MISS", "REVALIDATED"], "results")


@memcheck
def test_a_304_that_does_not_go_with_what_is_stored(lab):
    """Together they are more fields than a head may have: what would be left out may be what matters, so all is fetched anew."""
    stored = b"".join(b"X-Stored-%d: 1\r\n" % i for i in range(100))
    told = b"".join(b"X-Told-%d: 1\r\n" % i for i in range(100))

    def answer(connection, seen):
        count = len(origin.requests)
        if seen.header("If-None-Match"):
            connection.send(b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n' + told + b"Cache-Control: private, no-store\r\n\r\n")
        else:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s' % stored + b'ETag: "a"\r\nCache-Control: %s\r\n\r\n%02d' % (
                b"max-age=0" if count == 1 else b"private, no-store", count))
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, reverse={"/": origin.url()})
    equal([proxy.get("/full").body for _ in range(3)], [b"01", b"03", b"04"], "bodies")
    equal([seen.header("If-None-Match") for seen in origin.requests], [None, '"a"', None, None], "what the origin was asked")
    equal(proxy.results("/full", 3), ["MISS", "REFRESHED", "MISS"], "results")


def test_revalidation_that_fails_brings_the_new_one(lab):
    origin, proxy = start(lab)
    url = origin.url("/n", etag='"v1"', cc="max-age=0", fail304=1)
    proxy.get(url)
    equal(proxy.get(url).text(), "/n 2\n", "second body")
    equal(proxy.get(url).text(), "/n 3\n", "third body")


def test_304_freshens(lab):
    """RFC 9111 §4.3.4: the stored response takes the 304's fields."""
    state = {"n": 0}

    def answer(connection, seen):
        state["n"] += 1
        if seen.header("If-None-Match"):
            connection.send(b'HTTP/1.1 304 Not Modified\r\nETag: "v"\r\nCache-Control: max-age=60\r\nX-New: 1\r\n\r\n')
        else:
            connection.send(b'HTTP/1.1 200 OK\r\nETag: "v"\r\nCache-Control: max-age=0\r\nX-New: 0\r\nContent-Length: 4\r\n\r\nbody')
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    answers = [proxy.get(origin.url("/x")) for _ in range(3)]
    equal([a.body for a in answers], [b"body"] * 3, "bodies")
    equal(state["n"], 2, "requests at the origin: the third is fresh")
    equal(answers[2].header("X-New"), "1", "a field of the 304")


@memcheck
def test_vary(lab):
    origin, proxy = start(lab)
    url = origin.url("/v", vary="X-Color, Accept-Language", cc="max-age=60")
    seen = {}
    for color in ("red", "blue", None, "red", "blue", None):
        headers = {"X-Color": color} if color else {}
        body = proxy.get(url, headers).text()
        equal(body, seen.setdefault(color, body), f"body for {color}")
    equal(len(set(seen.values())), 3, "variants")
    equal(origin.count("/v"), 3, "requests at the origin")


def test_secrets_of_what_is_stored_are_masked(lab):
    """Who may look at the cache sees neither the session of a stored response nor by which cookie it was chosen."""
    origin = RawOrigin(lab, lambda connection, request: connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\nVary: Cookie, X-Color\r\nSet-Cookie: sid=s3cret\r\n\r\nok"))
    proxy = Retort(lab, extra="policy all { set_cookie = store }\n")
    equal(proxy.get(origin.url("/v"), {"Cookie": "id=s3cret", "X-Color": "red"}).status, 200, "status")
    for shown in (proxy.admin("GET", "/v1/cache/object?url=" + origin.url("/v")).text(), proxy.ctl("cache", "show", origin.url("/v"))):
        lacks(shown, "s3cret", "what is shown")
        contains(shown, "cookie: masked", "the fields")
        contains(shown, "x-color:red", "a field that is no secret")


def test_conditional_requests_are_answered(lab):
    origin, proxy = start(lab)
    url = origin.url("/c", etag='"v1"', lm=OLD, cc="max-age=60")
    first = proxy.get(url)
    date = first.header("Last-Modified")
    cases = [({"If-None-Match": '"v1"'}, 304), ({"If-None-Match": 'W/"v1"'}, 304), ({"If-None-Match": "*"}, 304),
             ({"If-None-Match": '"a", "v1"'}, 304), ({"If-None-Match": '"v2"'}, 200),
             ({"If-Modified-Since": date}, 304), ({"If-Modified-Since": "Sat, 08 Sep 2001 01:46:40 GMT"}, 200),
             ({"If-None-Match": '"v2"', "If-Modified-Since": date}, 200),
             ({"If-None-Match": '"v1"', "If-Modified-Since": "Sat, 08 Sep 2001 01:46:40 GMT"}, 304)]
    for headers, expected in cases:
        answer = proxy.get(url, headers)
        equal(answer.status, expected, f"status for {headers}")
        if expected == 304:
            equal((answer.header("ETag"), answer.body), ('"v1"', b""), "ETag and body of the 304")
    equal(origin.count("/c"), 1, "requests at the origin")


def test_conditional_request_that_misses_stores_the_whole(lab):
    """A 304 to somebody's own condition must never be stored as the page."""
    origin, proxy = start(lab)
    url = origin.url("/m", etag='"v1"', cc="max-age=60")
    equal(proxy.get(url, {"If-None-Match": '"v1"'}).status, 304, "status")
    answer = proxy.get(url)
    equal(answer.status, 200, "status without a condition")
    true(answer.text().startswith("/m "), f"body {answer.text()!r}")


def test_request_directives(lab):
    origin, proxy = start(lab)
    url = origin.url("/r", cc="max-age=60")
    proxy.get(url)
    proxy.get(url, {"Cache-Control": "no-cache"})
    equal(origin.count("/r"), 2, "requests after no-cache")
    proxy.get(url, {"Cache-Control": "max-age=0"})
    equal(origin.count("/r"), 3, "requests after max-age=0")
    equal(proxy.get(url, {"Cache-Control": "only-if-cached"}).status, 200, "only-if-cached when it is")
    equal(proxy.get(origin.url("/not-there"), {"Cache-Control": "only-if-cached"}).status, 504, "only-if-cached when not")


def test_request_no_store(lab):
    origin, proxy = start(lab)
    equal(twice(origin, proxy, "/rn", {"Cache-Control": "no-store"}, {}, cc="max-age=60")[0], 2, "requests")


def test_head_from_cache(lab):
    origin, proxy = start(lab)
    url = origin.url("/bytes", n=1234, cc="max-age=60")
    proxy.get(url)
    answer = proxy.fetch("HEAD", url)
    equal((answer.status, answer.header("Content-Length"), answer.body), (200, "1234", b""), "HEAD")
    equal(origin.count("/bytes"), 1, "requests at the origin")


def test_methods_that_are_not_cached(lab):
    origin, proxy = start(lab)
    for method in ("POST", "PUT", "DELETE", "PATCH", "FROB"):
        url = origin.url(f"/m-{method}", cc="max-age=60")
        proxy.fetch(method, url, body=b"x")
        proxy.fetch(method, url, body=b"x")
        equal(origin.count(f"/m-{method}"), 2, f"{method} requests at the origin")


def test_unsafe_methods_invalidate(lab):
    """RFC 9111 §4.4."""
    origin, proxy = start(lab)
    url = origin.url("/i", cc="max-age=60")
    proxy.get(url)
    proxy.fetch("POST", url, body=b"x")
    proxy.get(url)
    equal(origin.count("/i"), 3, "requests at the origin")


def test_safe_methods_invalidate_nothing(lab):
    """RFC 9111 §4.4 is about unsafe methods; these are safe by the IANA registry of methods. RFC 9110 §9.2.1: "Request
    methods are considered "safe" if their defined semantics are essentially read-only"."""
    origin, proxy = start(lab)
    url = origin.url("/safe", cc="max-age=60")
    proxy.get(url)
    for number, method in enumerate(("OPTIONS", "PROPFIND", "REPORT", "SEARCH", "QUERY"), 2):
        equal(proxy.fetch(method, url, body=b"x").status, 200, f"{method}: status")
        proxy.get(url)
        equal(origin.count("/safe"), number, f"requests at the origin after {method}")
    proxy.fetch("PROPPATCH", url, body=b"x")
    proxy.get(url)
    equal(origin.count("/safe"), number + 2, "requests at the origin after PROPPATCH")


def test_chunked_responses_are_stored_whole(lab):
    origin, proxy = start(lab)
    url = origin.url("/chunked", n=200000, piece=5000, cc="max-age=60")
    proxy.get(url)
    answer = proxy.get(url)
    same_bytes(answer.body, origin.body(200000))
    equal((answer.header("Content-Length"), origin.count("/chunked")), ("200000", 1), "Content-Length and requests")


def test_query_is_part_of_the_key(lab):
    origin, proxy = start(lab)
    for n in (10, 20):
        equal(len(proxy.get(origin.url("/bytes", n=n, cc="max-age=60")).body), n, "length")


# Targets on evil.org which XXH3 without a secret hashes like "/xxx..." on bank.org, made as in
# tests/unit/proxy/test_name.c: their length, and what stands there instead of x.
FORGED = {
    113: {1: "cb79e64eccc0e57841b75e66ef47622b", 81: "cd34f2f077f3d8b1e03590e6813a264c6263616161616161"},
    585: {185: "cb79e64e39abc9d9", 241: "cb79e64e53c4ade5ce9169faccff7221", 305: "28312dffccff7221", 369: "6162627061616161"},
}


def test_forged_urls(lab):
    """A page is never answered with that of a URL which was computed to have its hash."""
    def answer(connection, seen):
        body = seen.header("Host").encode()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: max-age=60\r\n\r\n%s" % (len(body), body))

    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, reverse={"/": {"origin": origin.url("/"), "preserve_host": True}})
    with proxy.wire(reverse=True) as wire:
        for length, places in FORGED.items():
            page = bytearray(b"/".ljust(length, b"x"))
            forged = bytearray(page)
            for at, text in places.items():
                forged[at:at + len(text) // 2] = bytes.fromhex(text)
            for host, target in ((b"evil.org", forged), (b"bank.org", page), (b"evil.org", forged)):
                wire.send(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, host))
                equal(wire.response().body, host, f"who answers for {host.decode()}, {length} bytes")
    equal(len(origin.requests), 4, "requests at the origin")


def test_normalised_urls_share_an_object(lab):
    origin, proxy = start(lab)
    base = f"{origin.authority}"
    for url in (f"http://{base}/text?say=x&cc=max-age%3D60", f"HTTP://{base}/te%78t?say=x&cc=max-age%3D60"):
        equal(proxy.get(url).text(), "x", "body")
    equal(origin.count("/text"), 1, "requests at the origin")


def test_eviction_under_a_limit(lab):
    """30 MB pass through a cache of 4 MB: the limit holds, and what is asked often stays."""
    origin, proxy = start(lab, cache={"memory": "4MB", "max_object": "1MB"})
    hot = origin.url("/bytes/hot", n=1000, cc="max-age=600")
    proxy.get(hot)
    for number in range(300):
        proxy.get(origin.url("/bytes/cold", n=100000, i=number, cc="max-age=600"))
        if number % 3 == 0:
            proxy.get(hot)
    status = proxy.status()
    true("cache" in status, f"no cache in /status: {sorted(status)}")
    true(cache_bytes(status) <= 4 << 20, f"cache holds {cache_bytes(status)} bytes")
    equal(origin.count("/bytes/hot"), 1, "requests for the page that is asked often")


def cache_bytes(status):
    cache = status["cache"]
    return cache.get("bytes", cache.get("memory"))


def test_object_above_the_limit_is_passed_on(lab):
    origin, proxy = start(lab, cache={"memory": "8MB", "max_object": "100KB"})
    for framing in ("/bytes", "/chunked"):
        for _ in range(2):
            same_bytes(proxy.get(origin.url(framing, n=500000, cc="max-age=60")).body, origin.body(500000))
        equal(origin.count(framing), 2, f"requests for {framing} at the origin")


@heavy("measures memory")
def test_memory_of_small_objects_is_bounded(lab):
    origin, proxy = start(lab, cache={"memory": "8MB"})
    with proxy.wire() as wire:
        for number in range(20000):
            wire.send(request("GET", origin.url("/bytes", n=1000, i=number, cc="max-age=600")))
            wire.response()
    true(proxy.memory_peak_kb() < 40 << 10, f"peak memory {proxy.memory_peak_kb()} kB for a cache of 8 MB")


def test_hits_from_several_workers(lab):
    """One cache for all workers."""
    origin, proxy = start(lab, workers=4)
    url = origin.url("/shared", cc="max-age=600")
    proxy.get(url)
    for _ in range(40):
        equal(proxy.get(url).text(), "/shared 1\n", "body")
    equal(origin.count("/shared"), 1, "requests at the origin")


@seconds(90)
def test_hammering_one_url_from_several_workers(lab):
    """Readers while the object arrives, expires and is replaced: every body is whole."""
    origin, proxy = start(lab, workers=4, cache={"memory": "2MB", "max_object": "1MB"})
    wrong = []

    def hammer(number):
        try:
            for turn in range(60):
                size = 50000 + (number * 7 + turn) % 20 * 1000
                answer = proxy.get(origin.url("/bytes", n=size, cc="max-age=1"))
                if answer.body != pattern(size):
                    wrong.append(size)
        except Exception as error:  # pylint: disable=broad-except
            wrong.append(repr(error))
    threads = [threading.Thread(target=hammer, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(wrong, [], "wrong bodies")


def test_set_cookie_is_not_shared_by_heuristics(lab):
    origin, proxy = start(lab)
    asked, answer = twice(origin, proxy, "/cookie", h=["Set-Cookie: id=1"], cc="max-age=60")
    one_of(asked, (1, 2), "requests at the origin")
    equal(answer.status, 200, "status")


def test_clear_statement_of_a_hit(lab):
    """A hit brings the stored fields, Age, and no field of the old connection."""
    origin, proxy = start(lab)
    url = origin.url("/f", cc="max-age=60", h=["X-Kept: 1", "Connection: X-Dropped", "X-Dropped: 1"])
    first, second = proxy.get(url), proxy.get(url)
    for answer in (first, second):
        equal((answer.header("X-Kept"), answer.header("X-Dropped")), ("1", None), "X-Kept and X-Dropped")
    equal(first.header("Date"), second.header("Date"), "Date")
    true(second.header("Age") is not None, "a hit has an Age")


def test_an_answer_without_date_is_of_when_it_came(lab):
    """A 304 without Date makes young again what is stored (RFC 9110, 6.6.1): else all later requests would ask as well."""
    def answer(connection, seen):
        if seen.header("If-None-Match"):
            connection.send(b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\nCache-Control: max-age=60\r\n\r\n')
        else:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: "e"\r\nCache-Control: max-age=60\r\n'
                            b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nok")
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    ages = [int(proxy.get(origin.url("/")).header("Age") or 0) for _ in range(3)]
    equal([age > 60 for age in ages], [True, False, False], f"old, then young: {ages}")
    equal(len(origin.requests), 2, "requests at the origin")


def test_a_partial_response_is_not_stored_as_whole(lab):
    """206 to a Range request, then the whole."""
    def answer(connection, seen):
        if seen.header("Range"):
            connection.send(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/10\r\nContent-Length: 4\r\n"
                            b'ETag: "r"\r\nCache-Control: max-age=60\r\n\r\n0123')
        else:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: "r"\r\nCache-Control: max-age=60\r\n\r\n0123456789')
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    part = proxy.get(origin.url("/p"), {"Range": "bytes=0-3"})
    one_of((part.status, part.body), ((206, b"0123"), (200, b"0123456789")), "range")
    equal(proxy.get(origin.url("/p")).body, b"0123456789", "whole")
    one_of((part.status, proxy.get(origin.url("/p"), {"Range": "bytes=0-3"}).body),
           ((206, b"0123"), (206, b"0123456789"), (200, b"0123456789")), "range again")


def test_collapsing_or_not_every_reader_gets_the_whole(lab):
    """Several clients ask for the same page while it arrives slowly."""
    origin, proxy = start(lab)
    url = origin.url("/drip", n=20000, piece=2000, delay=50, cc="max-age=60")
    bodies = []
    threads = [threading.Thread(target=lambda: bodies.append(proxy.get(url).body)) for _ in range(6)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    equal(len(bodies), 6, "answers")
    for body in bodies:
        same_bytes(body, origin.body(20000))
    until(lambda: proxy.get(url).body == origin.body(20000), 5, "a whole body afterwards")


def test_cache_status_tells_how_the_cache_took_part(lab):
    """RFC 9211, beside Age; what a cache before us said stays in front."""
    origin, proxy = start(lab)

    def said(path, headers=None, **arguments):
        return proxy.get(origin.url(path, **arguments), headers).headers("Cache-Status")
    equal(said("/s", cc="max-age=60"), ["retort; fwd=miss; stored"], "the first time")
    hit = said("/s", cc="max-age=60")
    equal(len(hit), 1, "fields of a hit")
    true(hit[0].startswith("retort; hit; ttl="), hit[0])
    between(int(hit[0].rpartition("=")[2]), 55, 60, "ttl")
    equal(said("/s", {"Cache-Control": "no-cache"}, cc="max-age=60"), ["retort; fwd=request; stored"], "asked for anew")
    equal(said("/n", cc="no-store"), ["retort; fwd=miss"], "not stored")
    upstream = {"cc": "max-age=60", "h": ["Cache-Status: far; hit"]}
    said("/u", **upstream)
    both = said("/u", {"Range": "bytes=0-1"}, **upstream)
    equal((both[0], both[1].split(";")[0]), ("far; hit", "retort"), "two caches, the nearer one last")
    quiet = Retort(lab, cache={"memory": "32MB", "status_field": False})
    equal(quiet.get(origin.url("/q", cc="max-age=60")).headers("Cache-Status"), [], "switched off")


def stale_page(lab, control, second_body=b"two", **options):
    """An origin whose page has gone stale in the cache, and that is slow the second time."""
    def answer(connection, request_seen):
        first = len(origin.requests) == 1
        if not first:
            time.sleep(0.5 * lab.patience)
        body = b"one" if first else second_body
        connection.send(b"HTTP/1.1 200 OK\r\nETag: \"%s\"\r\nCache-Control: %s\r\nContent-Length: %d\r\n\r\n%s"
                        % (body, control, len(body), body))
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, **options)
    equal(proxy.get(origin.url("/w")).body, b"one", "the first body")
    time.sleep(1.6)
    return origin, proxy


def test_stale_while_revalidate(lab):
    """RFC 5861 §3: what is stale goes out at once, and one asks for all in the background."""
    origin, proxy = stale_page(lab, b"max-age=1, stale-while-revalidate=60")
    start_time = time.monotonic()
    for _ in range(3):
        answer = proxy.get(origin.url("/w"))
        equal(answer.body, b"one", "the body meanwhile")
        true("hit" in answer.header("Cache-Status"), answer.header("Cache-Status"))
    between(time.monotonic() - start_time, 0, 0.45 * lab.patience, "seconds: nobody waits for the origin")
    until(lambda: proxy.get(origin.url("/w")).body == b"two", 5 * lab.patience, "the new body")
    between(len(origin.requests), 2, 3, "requests at the origin")
    equal(origin.requests[1].header("If-None-Match"), '"one"', "the validator it was asked with")
    equal(proxy.results("/w", 4)[:4], ["MISS", "STALE", "STALE", "STALE"], "results")


def test_stale_while_revalidate_by_setting(lab):
    origin, proxy = stale_page(lab, b"max-age=1", cache={"memory": "32MB", "stale_while_revalidate": "1m"})
    equal(proxy.get(origin.url("/w")).body, b"one", "the body meanwhile")
    until(lambda: proxy.get(origin.url("/w")).body == b"two", 5 * lab.patience, "the new body")


def test_stale_while_revalidate_has_its_limits(lab):
    for control in (b"max-age=1, stale-while-revalidate=60, must-revalidate", b"max-age=1, stale-while-revalidate=0"):
        origin, proxy = stale_page(lab, control)
        equal(proxy.get(origin.url("/w")).body, b"two", control.decode())
    origin, proxy = stale_page(lab, b"max-age=1, stale-while-revalidate=60")
    equal(proxy.get(origin.url("/w"), {"Cache-Control": "max-age=0"}).body, b"two", "a client that insists")


def test_a_drain_waits_for_a_refresh_in_the_background(lab):
    origin, proxy = stale_page(lab, b"max-age=1, stale-while-revalidate=60", second_body=b"x" * 100000)
    equal(proxy.get(origin.url("/w")).body, b"one", "the body meanwhile")
    proxy.stop()


def test_what_the_origin_has_taken_back_is_not_served_stale(lab):
    """A page that has become private replaces the stored one, though it is not stored itself."""
    def answer(connection, _request):
        first = len(origin.requests) == 1
        control = b"max-age=1, stale-while-revalidate=60" if first else b"private"
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: %s\r\nETag: \"%d\"\r\nContent-Length: 3\r\n\r\n%s"
                        % (control, len(origin.requests), b"old" if first else b"new"))
        return False
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab)
    equal(proxy.get(origin.url("/p")).body, b"old", "the first body")
    time.sleep(2.1)
    proxy.get(origin.url("/p"))
    until(lambda: len(origin.requests) >= 2, 5 * lab.patience, "the refresh")
    until(lambda: proxy.get(origin.url("/p")).body == b"new", 5 * lab.patience, "the body after the refresh")


def head_page(lab, get_fields, head_fields, head_status=b"200 OK"):
    """Stores a page of ten bytes that is stale at once, asks for its head, then for the page again.
    Returns how often it was asked for with GET, the last answer, and the proxy."""
    def answer(connection, seen):
        if seen.method == "HEAD":
            connection.send(b"HTTP/1.1 " + head_status + b"\r\n" + head_fields + b"\r\n")
        else:
            connection.send(b"HTTP/1.1 200 OK\r\nX-Old: 1\r\nX-New: 0\r\nCache-Control: max-age=1\r\n" + get_fields
                            + b"Content-Length: 10\r\n\r\n0123456789")
        return False
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    url = origin.url("/h")
    proxy.get(url)
    time.sleep(2.1)
    head = proxy.fetch("HEAD", url)
    again = proxy.get(url)
    equal((head.body, again.body), (b"", b"0123456789"), "bodies")
    return [seen.method for seen in origin.requests].count("GET"), again, proxy


FRESH = b"Cache-Control: max-age=60\r\nX-New: 1\r\n"


def test_head_renews_what_is_stored(lab):
    """RFC 9111 §4.3.5."""
    date = b"Last-Modified: Sat, 08 Sep 2001 01:46:40 GMT\r\n"
    for get_fields, head_fields in ((b'ETag: "a"\r\n', b'ETag: "a"\r\nContent-Length: 10\r\n'), (date, date),
                                    (b"", b"Content-Length: 10\r\n")):
        gets, again, proxy = head_page(lab, get_fields, FRESH + head_fields)
        equal(gets, 1, f"{head_fields}: GET requests at the origin")
        equal((again.header("X-Old"), again.header("X-New"), again.header("Content-Length")), ("1", "1", "10"), "fields")
        equal(proxy.counter("cache_head_updated"), 1, "counted")
        proxy.stop()


def test_head_about_other_bytes_drops_what_is_stored(lab):
    for get_fields, head_fields in ((b'ETag: "a"\r\n', b'ETag: "b"\r\n'), (b'ETag: "a"\r\n', b'ETag: "a"\r\nContent-Length: 11\r\n'),
                                    (b"", b"Content-Length: 9\r\n"), (b"", b'ETag: "b"\r\n'),
                                    (b"", b"Last-Modified: Sat, 08 Sep 2001 01:46:40 GMT\r\n")):
        gets, _again, proxy = head_page(lab, get_fields, FRESH + head_fields)
        equal(gets, 2, f"{head_fields}: GET requests at the origin")
        equal(proxy.counter("cache_head_dropped"), 1, "counted")
        proxy.stop()


def test_head_that_tells_nothing_changes_nothing(lab):
    gets, again, _proxy = head_page(lab, b"", FRESH)
    equal((gets, again.header("X-New")), (2, "0"), "nothing to compare by")
    gets, again, _proxy = head_page(lab, b'ETag: "a"\r\n', FRESH, b"404 Not Found")
    equal((gets, again.header("X-New")), (2, "0"), "404")


def test_304_to_a_head_renews_what_is_stored(lab):
    gets, again, _proxy = head_page(lab, b'ETag: "a"\r\n', FRESH + b'ETag: "a"\r\n', b"304 Not Modified")
    equal((gets, again.header("X-New")), (1, "1"), "the page afterwards")


def refresh_fails(lab, **options):
    """A page that is stale, and whose origin has begun to fail; returns it and how often it was asked since."""
    def answer(connection, _request):
        if len(origin.requests) > 1 and not origin.well:
            return True
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=1, stale-while-revalidate=600\r\n"
                        b"Content-Length: 3\r\n\r\n%03d" % len(origin.requests))
        return False
    origin = RawOrigin(lab, answer)
    origin.well = False
    proxy = Retort(lab, **options)
    proxy.get(origin.url("/p"))
    time.sleep(2.1)
    return origin, proxy


def test_a_refresh_that_fails_is_not_begun_again_at_once(lab):
    origin, proxy = refresh_fails(lab)
    begin, times = time.monotonic(), []
    while time.monotonic() - begin < 5:
        equal(proxy.get(origin.url("/p")).body, b"001", "the stale page")
        times += [time.monotonic() - begin] * (len(origin.requests) - 1 - len(times))
        time.sleep(0.02)
    between(len(times), 2, 4, f"refreshes in five seconds, at {times}")
    until(lambda: proxy.counter("cache_background_failures") == proxy.counter("cache_background"), 5, "all have failed")
    origin.well = True
    until(lambda: proxy.get(origin.url("/p")).body != b"001", 10, "the origin is asked again")


def test_pauses_are_bounded(lab):
    """With a pause of a second at most, as often as there are seconds; with none, with every request."""
    for pause, least, most in (("1s", 3, 5), ("0", 10, 1000)):
        origin, proxy = refresh_fails(lab, cache={"memory": "32MB", "refresh_pause": pause})
        begin = time.monotonic()
        while time.monotonic() - begin < 4:
            proxy.get(origin.url("/p"))
            time.sleep(0.02)
        between(proxy.counter("cache_background"), least, most, f"refreshes with {pause}")


def test_x_cache(lab):
    origin, proxy = start(lab, cache={"memory": "32MB", "x_cache": True})
    def said(path, headers=None, **arguments):
        return proxy.get(origin.url(path, **arguments), headers).headers("X-Cache")
    equal(said("/x", cc="max-age=60"), ["MISS from retort"], "a miss")
    equal(said("/x", cc="max-age=60"), ["HIT from retort"], "a hit")
    equal(said("/x", {"Range": "bytes=0-1"}, cc="max-age=60"), ["HIT from retort"], "a range")
    equal(said("/v", cc="no-cache", etag="v"), ["MISS from retort"], "the first")
    equal(said("/v", cc="no-cache", etag="v"), ["HIT from retort"], "revalidated")
    equal(said("/n", cc="no-store"), ["MISS from retort"], "not stored")
    equal(said("/u", cc="max-age=60", h="X-Cache: HIT from far"), ["HIT from far", "MISS from retort"], "two caches")
    equal(start(lab)[1].get(origin.url("/y")).headers("X-Cache"), [], "off by default")


REDUCED = [
    # what clients send, what the origin gets
    ("gzip, deflate, br", "br, gzip"), ("br;q=1.0, gzip;q=0.8", "br, gzip"), ("GZIP,BR", "br, gzip"), ("br, gzip", "br, gzip"),
    ("gzip", "gzip"), ("gzip;q=0.001, deflate", "gzip"), ("gzip, br;q=0", "gzip"), ("gzip , br ; q=0.000", "gzip"),
    ("br;q=0, *", "gzip"), ("*", "br, gzip"), ("*;q=0.5, gzip;q=0.", "br"), ("x-unknown, deflate", "identity"), ("", "identity"),
    (None, "identity"), ("identity", "identity"), ("gzip;q=0", "identity"), ("br;q=1.5x, gzip;v=1", "br, gzip"),
    ("identity;q=0, deflate", "identity;q=0, deflate"), ("deflate, *;q=0", "deflate, *;q=0"),
]


def test_accept_encoding_is_reduced_to_known_codings(lab):
    """Who takes the same shares a variant, and the origin is asked for that one."""
    origin, proxy = start(lab, cache={"memory": "32MB", "accept_encoding": ["br", "gzip"]})
    for number, (sent, expected) in enumerate(REDUCED):
        answer = proxy.get(origin.url("/echo", of=number), {"Accept-Encoding": sent} if sent is not None else {})
        equal(echoed(answer)["header"]("Accept-Encoding"), expected, f"what the origin gets for {sent!r}")
    answers = {}
    for sent, expected in REDUCED:
        body = proxy.get(origin.url("/v", vary="Accept-Encoding", cc="max-age=60"),
                         {"Accept-Encoding": sent} if sent is not None else {}).body
        equal(answers.setdefault(expected, body), body, f"variant for {sent!r}")
    equal(origin.count("/v"), len({expected for _, expected in REDUCED}), "variants")
    posted = echoed(proxy.fetch("POST", origin.url("/echo"), {"Accept-Encoding": "x-unknown"}, b"x"))
    equal(posted["header"]("Accept-Encoding"), "x-unknown", "what is no matter for the cache")
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/echo", two=1), [("Accept-Encoding", "br"), ("Accept-Encoding", "gzip;q=0.5")]))
        equal(echoed(wire.response())["header"]("Accept-Encoding"), "br, gzip", "two fields")


def test_accept_encoding_is_left_alone_by_default(lab):
    origin, proxy = start(lab)
    for sent in ("br;q=1.0, gzip;q=0.8", "x-unknown", None):
        answer = proxy.get(origin.url("/echo", of=sent), {"Accept-Encoding": sent} if sent else {})
        equal(echoed(answer)["header"]("Accept-Encoding"), sent, f"what the origin gets for {sent!r}")
    for word in ("identity", "GZip", "a b", ""):
        code, said = proxy.check_config(proxy.text(cache={"memory": "32MB", "accept_encoding": [word]}))
        true(code != 0 and "accept_encoding" in said, f"{word!r}: {said}")


POSTS = [
    # Content-Location, other fields, status, is it stored for GET?
    ("{}", "Cache-Control: max-age=60", 200, True), ("http://{authority}{}", "Cache-Control: max-age=60", 200, True),
    ("{}", "Expires: Fri, 01 Jan 2038 00:00:00 GMT", 200, True), ("{}", "X: y", 200, False),
    ("{}", "Last-Modified: Sat, 08 Sep 2001 01:46:40 GMT", 200, False), ("{}x", "Cache-Control: max-age=60", 200, False),
    ("http://elsewhere{}", "Cache-Control: max-age=60", 200, False), ("{}", "Cache-Control: max-age=60", 201, False),
    ("{}", "Cache-Control: no-store, max-age=60", 200, False), ("{}", "Cache-Control: private, max-age=60", 200, False),
    (None, "Cache-Control: max-age=60", 200, False),
]


def test_what_a_post_brings_may_answer_a_get(lab):
    """RFC 9110 §9.3.3: with explicit freshness and a Content-Location that is the URL itself."""
    def answer(connection, seen):
        if seen.method != "POST":
            connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\ngot")
            return False
        place, fields, status, _ = POSTS[int(seen.target[2:])]
        if place is not None:
            fields += "\r\nContent-Location: " + place.format(seen.target, authority=origin.authority)
        connection.send(f"HTTP/1.1 {status} X\r\n{fields}\r\nContent-Length: 6\r\n\r\nposted".encode())
        return False
    origin, proxy = RawOrigin(lab, answer), Retort(lab)
    for number, (place, fields, status, stored) in enumerate(POSTS):
        url = origin.url(f"/p{number}")
        equal(proxy.fetch("POST", url, {"If-None-Match": "*"}, b"x").body, b"posted", f"{place}, {fields}: the answer to POST")
        equal(proxy.get(url).body, b"posted" if stored else b"got", f"{place}, {fields}, {status}: the answer to GET")
    asked = len(origin.requests)
    proxy.fetch("POST", origin.url("/p0"), body=b"x")
    equal(len(origin.requests), asked + 1, "a POST is never answered from the cache")
