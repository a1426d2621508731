"""Set-Cookie and the cache: RFC 9111 lets a cache store such a response and give it to others, who would get the cookie of the client
that asked first. It is stored without the cookie, which that one client gets."""

import os
import threading

from harness.checks import equal, lacks, true, until
from harness.disk import gauge
from harness.http2 import Http2
from harness.icap import IcapServer, append
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.suite import memcheck


class Site:
    """Each answer sets a cookie of its own, sid=1, sid=2 and so on. "/304" confirms what is stored; "/slow" waits for `go`."""

    def __init__(self, lab, control="max-age=60", body=b"body", fields=""):
        self.control, self.body, self.fields = control, body, fields
        self.count, self.lock, self.go = 0, threading.Lock(), threading.Event()
        self.origin = RawOrigin(lab, self.answer)

    def answer(self, connection, seen):
        with self.lock:
            self.count += 1
            cookie = f"Set-Cookie: sid={self.count}; Path=/\r\nSet-Cookie2: old={self.count}\r\n"
        head = f'{cookie}ETag: "v"\r\nCache-Control: {self.control}\r\n{self.fields}'
        if seen.header("If-None-Match") and seen.target == "/304":
            connection.send(f"HTTP/1.1 304 Not Modified\r\n{head}\r\n".encode())
            return
        connection.send(f"HTTP/1.1 200 OK\r\n{head}Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body[:1])
        if seen.target == "/slow":
            self.go.wait(30)
        connection.send(self.body[1:])

    def url(self, path="/"):
        return self.origin.url(path)


def cookies(answer):
    fields = dict((name.lower(), value) for name, value in answer.fields)
    return fields.get("set-cookie", "").partition(";")[0], fields.get("set-cookie2", "")


def own(number):
    return f"sid={number}", f"old={number}"


NONE = ("", "")


@memcheck
def test_hits_have_no_cookie(lab):
    """The client whose request fetched the response gets it, with its other fields; no hit has it: whole, in parts, 304, HEAD, by HTTP/2."""
    site, proxy = Site(lab), Retort(lab)
    first = proxy.get(site.url())
    equal((cookies(first), first.status, first.body, first.header("ETag")), (own(1), 200, b"body", '"v"'), "the first")
    equal(cookies(proxy.get(site.url())), NONE, "a hit")
    for headers, status in (({"If-None-Match": '"v"'}, 304), ({"Range": "bytes=1-2"}, 206), ({"Range": "bytes=0-0,2-3"}, 206),
                            ({"Range": "bytes=9-"}, 416)):
        answer = proxy.get(site.url(), headers)
        equal((answer.status, cookies(answer)), (status, NONE), f"a hit: {headers}")
    equal(cookies(proxy.fetch("HEAD", site.url())), NONE, "a hit: HEAD")
    with Http2(proxy.forward) as client:
        equal(cookies(client.get(site.url())), NONE, "a hit by HTTP/2")
        equal(cookies(client.get(site.url("/2"))), own(2), "the first by HTTP/2")
        equal(cookies(client.get(site.url("/2"))), NONE, "a hit of that")
    equal(site.count, 2, "requests at the origin")


def test_who_fetches_gets_the_cookie_in_each_form(lab):
    site, proxy = Site(lab), Retort(lab)
    for number, (headers, status) in enumerate((({"If-None-Match": '"v"'}, 304), ({"Range": "bytes=1-2"}, 206),
                                                ({"Range": "bytes=0-0,2-3"}, 206), ({"Cache-Control": "no-cache"}, 200)), 1):
        answer = proxy.get(site.url(f"/{number}"), headers)
        equal((answer.status, cookies(answer)), (status, own(number)), f"{headers}")
        equal(cookies(proxy.get(site.url(f"/{number}"))), NONE, f"{headers}: a hit")


def test_who_waits_for_the_same_fetch_gets_none(lab):
    site, proxy = Site(lab), Retort(lab)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(proxy.get(site.url("/slow")))) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: proxy.counter("cache_hits") == 2, 30, "two have joined")
    site.go.set()
    for thread in threads:
        thread.join()
    equal((sorted(cookies(answer) for answer in answers), site.count), ([NONE, NONE, own(1)], 1), "cookies, requests")


@memcheck
def test_a_304_sets_it_for_who_asked(lab):
    """RFC 9111 §4.3.4: the stored head gets the fields of the 304, but for the cookie."""
    site, proxy = Site(lab, control="max-age=0"), Retort(lab)
    equal([cookies(proxy.get(site.url("/304"))) for _ in range(2)], [own(1), own(2)], "a miss, a revalidation")
    site.control = "max-age=60"
    equal([cookies(proxy.get(site.url("/304"))) for _ in range(2)], [own(3), NONE], "a revalidation, a hit")
    equal(cookies(proxy.get(site.url("/304"), {"If-None-Match": '"v"'})), NONE, "a hit with a condition")
    site.control = "private"
    equal(cookies(proxy.get(site.url("/304"), {"Cache-Control": "no-cache"})), own(4), "a 304 that may not be stored")
    equal(proxy.results("/304", 6), ["MISS", "REVALIDATED", "REVALIDATED", "HIT", "HIT", "REVALIDATED"], "results")


def test_a_refresh_in_the_background_sets_it_for_nobody(lab):
    site, proxy = Site(lab, control="max-age=1, stale-while-revalidate=60"), Retort(lab)
    equal(cookies(proxy.get(site.url())), own(1), "the first")

    def refreshed():
        equal(cookies(proxy.get(site.url())), NONE, "a hit, stale or fresh")
        return site.count >= 3
    until(refreshed, 30, "two refreshes")


def test_after_a_restart_and_from_disk(lab):
    """Also of a body that is too large for memory and goes to disk as it passes."""
    volume = os.path.join(lab.directory, "volume")
    site = Site(lab, body=pattern(300000))
    proxy = Retort(lab, cache={"memory": "8MB", "max_object": "100KB", "disk": {volume: {"size": "64MB"}}})
    equal(cookies(proxy.get(site.url("/large"))), own(1), "the first of the large one")
    site.body = pattern(3000)
    equal(cookies(proxy.get(site.url("/small"))), own(2), "the first of the small one")
    until(lambda: gauge(proxy, "objects") == 2, 30, "both are on disk")
    for when in ("before", "after"):
        for path in ("/large", "/small"):
            equal(cookies(proxy.get(site.url(path))), NONE, f"{path} {when} a restart")
        proxy.restart()
    equal(site.count, 2, "requests at the origin")


def test_services_behind_the_cache(lab):
    """They don't see the cookie, nor is it in results that are remembered."""
    for remember in (False, True):
        site = Site(lab)
        icap = IcapServer(lab, append(b"!"))
        proxy = Retort(lab, services=[Service("s", icap.uri(), point="respmod_postcache", bypass=False, remember=remember)])
        answers = [proxy.get(site.url()) for _ in range(3)]
        equal([(cookies(answer), answer.body) for answer in answers], [(own(1), b"body!"), (NONE, b"body!"), (NONE, b"body!")], "answers")
        lacks(str([seen.http_response.fields for seen in icap.transactions]), "sid=", "what services see")
        equal((site.count, icap.count), (1, 1 if remember else 3), "requests at the origin, and at the service")
        proxy.stop()


def test_a_cookie_of_a_service_behind_the_cache_is_not_remembered(lab):
    def behave(icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(add=[("Set-Cookie", f"mine={icap.count}")]), body)
    site, icap = Site(lab), IcapServer(lab, behave)
    proxy = Retort(lab, services=[Service("s", icap.uri(), point="respmod_postcache", bypass=False, remember=True)])
    seen = [[value for name, value in proxy.get(site.url()).fields if name.lower() == "set-cookie"] for _ in range(3)]
    equal(seen, [["mine=1", "sid=1; Path=/"], ["mine=2"], ["mine=3"]], "cookies")


def test_rules_for_the_client_see_it(lab):
    site = Site(lab)
    proxy = Retort(lab, extra='response_headers all { remove = { "Set-Cookie" } }')
    equal([cookies(proxy.get(site.url()))[0] for _ in range(2)], ["", ""], "cookies that a rule removes")


def test_what_policies_say(lab):
    extra = "".join(f'url_class {name} {{ path_regex = "^/{name}/" }}\npolicy {name} {{ set_cookie = {name} }}\n'
                    for name in ("explicit", "store", "strip", "pass"))
    site, proxy = Site(lab), Retort(lab, extra=extra)
    expected = {"explicit": [own(1), NONE, NONE], "store": [own(2), own(2), own(2)], "strip": [NONE, NONE, NONE], "pass": [own(4), own(5), own(6)]}
    for name, wanted in expected.items():
        equal([cookies(proxy.get(site.url(f"/{name}/x"))) for _ in range(3)], wanted, name)


def test_an_injected_response_has_none(lab):
    site, proxy = Site(lab), Retort(lab)
    message = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nSet-Cookie: a=b\r\nX-Kept: 1\r\n\r\nmine"
    true(proxy.admin("PUT", "/cache/object?url=" + site.url("/i"), body=message).status in (200, 201), "injected")
    answer = proxy.get(site.url("/i"))
    equal((answer.body, cookies(answer), answer.header("X-Kept"), site.count), (b"mine", NONE, "1", 0), "a hit")
