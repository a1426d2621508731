"""Results remembered: what services made of a response is used again, until they change."""

import gzip
import json
import threading
import urllib.parse
from os import urandom

from harness.checks import contains, equal, raises, same_bytes, true, until
from harness.icap import IcapServer, append, unchanged
from harness.origin import Origin
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.services import Services
from harness.suite import memcheck
from harness.wire import Truncated, chunked, request

PAGE = {"say": "page", "cc": "max-age=600"}


def start(lab, behave, *, point="respmod_postcache", bypass=False, cache=None, **options):
    """An origin, an ICAP server and a proxy that remembers what it makes."""
    icap = IcapServer(lab, behave)
    if point == "respmod_postcache":
        options.setdefault("remember", True)
    service = Service("s", icap.uri(), point=point, bypass=bypass, **options)
    return Origin(lab), icap, Retort(lab, services=[service], cache=cache or {})


def revision(icap, text):
    """The service is another from now on: it says so in its ISTag."""
    icap.istag = icap.options["ISTag"] = f'"{text}"'
    icap.behave = append(f" {text}".encode())


def counters(proxy, *names):
    return tuple(proxy.counter(name) for name in names)


# Variants.

def test_made_once_for_all(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    for framing in ("/bytes", "/chunked"):
        for size in (0, 1, 5000, 300000):
            url = origin.url(framing, n=size, cc="max-age=600")
            before = icap.count
            for source in ("127.0.0.1", "127.0.0.2", "127.0.0.1"):
                same_bytes(proxy.get(url, source=source).body, origin.body(size) + b"!", f"{framing} of {size}")
            equal(icap.count, before + 1, f"ICAP transactions for {framing} of {size}")
    equal((origin.count("/bytes"), origin.count("/chunked")), (4, 4), "origin requests")
    equal(counters(proxy, "adapted_made", "adapted_hits", "adapted_made_again"), (8, 16, 0), "counters")
    equal(proxy.results("/bytes", 12)[:3], ["MISS", "HIT", "HIT"], "results")
    head = proxy.fetch("HEAD", origin.url("/bytes", n=5000, cc="max-age=600"))
    equal(head.header("Content-Length"), "5001", "the length that a HEAD tells")


@memcheck
def test_unchanged_for_one_client_alone(lab):
    """It is asked about for that client alone, and neither remembered nor forgotten."""
    def leave_or_append(icap, transaction):
        wanted = "no-transform" not in (transaction.http_request.header("Cache-Control") or "")
        (append(b"!") if wanted else unchanged)(icap, transaction)
    origin, icap, proxy = start(lab, leave_or_append)
    url, body, want = origin.url("/bytes", n=5000, cc="max-age=600"), origin.body(5000), {"Cache-Control": "no-transform"}
    for headers, expected in ((want, body), (None, body + b"!"), (want, body), (None, body + b"!")):
        same_bytes(proxy.get(url, headers).body, expected, f"with {headers}")
    equal((icap.count, origin.count("/bytes")), (3, 1), "ICAP transactions, origin requests")


def test_made_again_from_what_is_stored(lab):
    """When the ISTag changes, on any response, and when the operator says so: no request to the origin."""
    origin, icap, proxy = start(lab, append(b" one"))
    urls = [origin.url(f"/text/{n}", **PAGE) for n in range(4)]
    for url in urls:
        equal(proxy.get(url).text(), "page one", "body")
    revision(icap, "two")
    other = origin.url("/other", cc="max-age=600")
    proxy.get(other)  # tells of the new ISTag
    for url in urls:
        for _ in range(2):
            equal(proxy.get(url).text(), "page two", "body after another ISTag")
    icap.behave = append(b" three")
    equal(proxy.get(urls[0]).text(), "page two", "body under the same ISTag")
    contains(proxy.ctl("services", "bump", "s"), "made again", "what retortctl says")
    for url in urls:
        for _ in range(2):
            equal(proxy.get(url).text(), "page three", "body after the bump")
    equal([origin.count(f"/text/{n}") for n in range(4)], [1] * 4, "origin requests")
    equal(icap.count, 4 + 1 + 4 + 4, "ICAP transactions")
    equal(proxy.counter("adapted_made_again"), 8, "made again")
    proxy.ctl("services", "bump", "nobody", expect=1)
    proxy.ctl("services", "bump", expect=2)


def test_options_tell_of_a_new_istag(lab):
    """Hits alone ask no service, but its OPTIONS are kept fresh."""
    icap = IcapServer(lab, append(b" one"), Options_TTL=1)
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri(), point="respmod_postcache", remember=True)])
    url = origin.url("/text", **PAGE)
    equal(proxy.get(url).text(), "page one", "body")
    revision(icap, "two")
    until(lambda: proxy.get(url).text() == "page two", 10, "the new ISTag is noticed")
    equal((origin.count("/text"), icap.count), (1, 2), "origin requests, ICAP transactions")


def test_istags_that_say_nothing(lab):
    """Another ISTag with each answer, or none at all: with ignore_istag results are good until the operator says otherwise."""
    for point in ("respmod_precache", "respmod_postcache"):
        for said in (lambda: f'"{urandom(8).hex()}"', lambda: ""):
            def behave(server, transaction, said=said):
                server.istag = said()
                append(b"!")(server, transaction)
            origin, icap, proxy = start(lab, behave, point=point, ignore_istag=True)
            icap.options["ISTag"] = said()
            urls = [origin.url(f"/text/{n}", **PAGE) for n in range(4)]
            for rounds in (1, 2):
                for url in urls * 3:
                    equal(proxy.get(url).text(), "page!", "body")
                equal(icap.count, rounds * len(urls), f"{point}: ICAP transactions")
                proxy.ctl("services", "bump", "s")
            proxy.stop()


@memcheck
def test_a_reload_keeps_variants(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    url = origin.url("/text", **PAGE)
    proxy.get(url)
    proxy.ctl("services", "bump", "s")
    proxy.get(url)
    proxy.reload()
    equal(proxy.get(url).text(), "page!", "body")
    equal(icap.count, 2, "ICAP transactions")


def test_many_who_want_the_same_ask_once(lab):
    """The service is slow; the page is stored already, or is being fetched."""
    gate = threading.Event()

    def behave(icap, transaction):
        gate.wait(20)
        append(b"!")(icap, transaction)
    origin, icap, proxy = start(lab, behave, timeout="20s", cache={"collapse_timeout": "30s"})
    for round_, stored in enumerate((False, True)):
        waiting = proxy.counter("cache_collapsed")
        url = origin.url("/chunked", n=50000, cc="max-age=600", i=0)
        if stored:
            proxy.ctl("services", "bump", "s")
        gate.clear()
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(proxy.get(url).body)) for _ in range(8)]
        for thread in threads:
            thread.start()
        until(lambda waiting=waiting: proxy.counter("cache_collapsed") >= waiting + 7, 10, "seven wait for one")
        gate.set()
        for thread in threads:
            thread.join()
        equal(answers, [origin.body(50000) + b"!"] * 8, "bodies")
        equal(icap.count, round_ + 1, "ICAP transactions")
    equal(origin.count("/chunked"), 1, "origin requests")


def test_what_goes_with_the_stored_response(lab):
    """Deleted, purged, or replaced at the origin: the variant goes too."""
    origin, icap, proxy = start(lab, append(b"!"))
    url = origin.url("/page", cc="max-age=600", h=["Surrogate-Key: k"])

    def twice():
        first = proxy.get(url).text()
        equal(proxy.get(url).text(), first, "the second answer")
        return first
    twice()
    for number, forget in enumerate((("cache", "delete", url), ("cache", "purge", "--tag", "k"),
                                     ("cache", "purge", "--prefix", url), ("cache", "ban", "/page"))):
        proxy.ctl(*forget)
        twice()
        equal((origin.count("/page"), icap.count), (number + 2, number + 2), f"origin requests, ICAP transactions after {forget[:2]}")
    proxy.fetch("POST", url, {}, b"x")
    twice()
    equal(icap.count >= 6, True, "ICAP transactions after a POST")


def test_a_ban_reaches_variants_of_what_is_older(lab):
    """The origin is slow: what it sends was asked for before the ban, though the service sees it later."""
    gate = threading.Event()

    def answer(connection, _request):
        gate.wait(20)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=600\r\n\r\npage")
    origin = RawOrigin(lab, answer)
    _, icap, proxy = start(lab, append(b"!"))
    url = origin.url("/page")
    first = threading.Thread(target=lambda: equal(proxy.get(url).text(), "page!", "the first body"))
    first.start()
    until(lambda: origin.requests, 10, "the origin is asked")
    proxy.ctl("cache", "ban", "/page")
    gate.set()
    first.join()
    for number in (2, 2):
        equal(proxy.get(url).text(), "page!", "body")
        equal((len(origin.requests), icap.count), (number, number), "origin requests, ICAP transactions")


def test_confirmed_by_the_origin(lab):
    """A 304 to the stored response is good for its variants: no service is asked."""
    origin, icap, proxy = start(lab, append(b"!"))
    url = origin.url("/text", say="page", cc="max-age=0", etag='"v"')
    for _ in range(4):
        equal(proxy.get(url).text(), "page!", "body")
    equal(proxy.results("/text", 4), ["MISS"] + ["REVALIDATED"] * 3, "results")
    equal((origin.count("/text"), icap.count), (4, 1), "origin requests, ICAP transactions")


@memcheck
def test_another_page_has_another_variant(lab):
    """The origin sends something new: what was made of the old page is never shown again."""
    origin, icap, proxy = start(lab, append(b"!"))
    url = origin.url("/own/page", n=100, cc="max-age=0", h=[])
    seen = {proxy.get(url).body for _ in range(4)}
    equal((len(seen), icap.count), (4, 4), "bodies, ICAP transactions")
    true(all(body.endswith(b"!") for body in seen), "all are adapted")


def test_validators_and_ranges_of_a_variant(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    url = origin.url("/bytes", n=3000, cc="max-age=600", etag='"v"')
    etag = proxy.get(url).header("ETag")
    true(etag.startswith('W/"v-'), f"an ETag of its own: {etag}")
    equal(proxy.get(url, {"If-None-Match": etag}).status, 304, "status with its ETag")
    equal(proxy.get(url, {"If-None-Match": '"v"'}).status, 200, "status with the stored one's ETag")
    part = proxy.get(url, {"Range": "bytes=2999-3000"})
    equal((part.status, part.body), (206, origin.body(3000)[2999:] + b"!"), "a part")
    equal(icap.count, 1, "ICAP transactions")
    revision(icap, "two")
    proxy.ctl("services", "bump", "s")
    answer = proxy.get(url, {"If-None-Match": etag})
    equal((answer.status, answer.body[-4:]), (200, b" two"), "with the ETag of the older variant")


def test_never_an_older_one(lab):
    """Many clients, several workers, and a service that changes all the time: what was made before a bump is not
    shown after it, and the origin is not asked again."""
    version = [0]

    def behave(_icap, transaction):
        known = version[0]
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(), body + b" %d" % known)
    icap = IcapServer(lab, behave)
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri(), point="respmod_postcache", remember=True, bypass=False)],
                   workers=3)
    urls = [origin.url(f"/text/{n}", **PAGE) for n in range(3)]
    shown, over = [], threading.Event()

    def client(number):
        while not over.is_set():
            least = bumped[0]
            shown.append((least, int(proxy.get(urls[number % 3]).text().split()[1])))
    bumped = [0]
    for url in urls:
        proxy.get(url)
    threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for number in range(1, 16):
        version[0] = number
        equal(proxy.admin("POST", "/services/bump?name=s").status, 200, "status of the bump")
        bumped[0] = number
        count = len(shown)
        until(lambda count=count: len(shown) > count + 6, 20, "clients have asked again")
    over.set()
    for thread in threads:
        thread.join()
    older = [pair for pair in shown if pair[1] < pair[0]]
    equal(older, [], "what was shown, of an older version than it should be")
    equal([origin.count(f"/text/{n}") for n in range(3)], [1] * 3, "origin requests")


def compress(_icap, transaction):
    """As gzip services do: for those who take it."""
    accepts = transaction.http_request.header("Accept-Encoding") or ""
    if "gzip" not in accepts:
        transaction.send_204()
        return
    body = transaction.finish_body()
    head = transaction.response_head(add=[("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")])
    transaction.send_200(head, gzip.compress(body))


def test_variants_by_accept_encoding(lab):
    """The compressor's case, whoever comes first: one stored page without coding."""
    for order in (("gzip", None, "gzip", None, "br"), (None, "gzip", "br", None, "gzip")):
        origin, icap, proxy = start(lab, compress)
        url = origin.url("/bytes", n=5000, cc="max-age=600")
        for coding in order:
            answer = proxy.get(url, {"Accept-Encoding": coding} if coding else {})
            coded = answer.header("Content-Encoding")
            equal(coded, "gzip" if coding == "gzip" else None, f"coding for {coding}")
            same_bytes(gzip.decompress(answer.body) if coded else answer.body, origin.body(5000), f"body for {coding}")
        equal((origin.count("/bytes"), icap.count), (1, 3), "origin requests, ICAP transactions")


def by_kind(_icap, transaction):
    body = transaction.finish_body()
    kind = transaction.http_request.header("X-Kind") or "-"
    transaction.send_200(transaction.response_head(), body + kind.encode())


def test_variants_by_other_fields(lab):
    """As remember_by has it, whatever Vary says."""
    origin, icap, proxy = start(lab, by_kind, remember_by=["X-Kind"])
    url = origin.url("/text", **PAGE)
    for kind in ("a", "b", "a", "b"):
        equal(proxy.get(url, {"X-Kind": kind, "Accept-Encoding": kind}).text(), "page" + kind, "body")
    equal((origin.count("/text"), icap.count), (1, 2), "origin requests, ICAP transactions")
    seen = json.loads(proxy.admin("GET", "/cache/object?url=" + urllib.parse.quote(url, safe="")).body)["variants"]
    equal(sorted((v["services"], v["vary"]) for v in seen),
          [("behind the cache", "x-kind:a\n"), ("behind the cache", "x-kind:b\n"), ("none", "")], "what the admin plane shows")
    contains(proxy.ctl("cache", "show", url), "behind the cache", "what retortctl shows")
    # "none": one for all.
    origin, icap, proxy = start(lab, by_kind, remember_by=["none"])
    for kind in ("a", "b"):
        equal(proxy.get(origin.url("/text", **PAGE), {"X-Kind": kind, "Accept-Encoding": kind}).text(), "pagea", "body")


def test_each_variant_is_made_by_its_own(lab):
    """Whether remember_by or Vary tells them apart: one that is made holds up no other."""
    def named(_icap, transaction):
        body = transaction.finish_body()
        kind = transaction.http_request.header("X-Kind")
        transaction.send_200(transaction.response_head(add=[("Vary", "X-Kind")]), body + kind.encode())

    for behave, by in ((by_kind, {"remember_by": ["X-Kind"]}), (named, {})):
        gate = threading.Barrier(7)

        def behave_together(icap, transaction, behave=behave, gate=gate):
            if transaction.http_request.header("X-Kind") != "first":
                gate.wait(20)
            behave(icap, transaction)
        origin, icap, proxy = start(lab, behave_together, timeout="30s", cache={"collapse_timeout": "30s"}, **by)
        url = origin.url("/text", **PAGE)
        proxy.get(url, {"X-Kind": "first"})
        answers = {}

        def ask(kind, answers=answers, proxy=proxy, url=url):
            answers[kind] = proxy.get(url, {"X-Kind": kind}).text()
        threads = [threading.Thread(target=ask, args=(kind,)) for kind in "abcdefg"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(answers, {kind: "page" + kind for kind in "abcdefg"}, "bodies")
        equal((origin.count("/text"), icap.count), (1, 8), "origin requests, ICAP transactions")


def test_the_real_compressor(lab):
    services = Services(lab, names=("gzip",))
    chosen = services.for_proxy()
    for service in chosen:
        service.options.update(point="respmod_postcache", remember=True)
    origin = Origin(lab)
    proxy = Retort(lab, services=chosen)
    url = origin.url("/text", say="text " * 2000, type="text/plain", cc="max-age=600")
    for _ in range(2):
        for coding in ("gzip", "identity"):
            answer = proxy.get(url, {"Accept-Encoding": coding})
            coded = answer.header("Content-Encoding")
            equal(coded, "gzip" if coding == "gzip" else None, f"coding for {coding}")
            equal(gzip.decompress(answer.body) if coded else answer.body, b"text " * 2000, f"body for {coding}")
    equal(origin.count("/text"), 1, "origin requests")
    equal(counters(proxy, "adapted_made", "adapted_hits"), (2, 2), "variants made, hits on them")


def test_remembered_first_then_each_client(lab):
    shared, own = IcapServer(lab, append(b" for all")), IcapServer(lab, append(b" and one"))
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("shared", shared.uri(), point="respmod_postcache", remember=True, bypass=False),
                                  Service("own", own.uri(), point="respmod_postcache", bypass=False)])
    url = origin.url("/text", **PAGE)
    for _ in range(3):
        equal(proxy.get(url).text(), "page for all and one", "body")
    equal((shared.count, own.count, origin.count("/text")), (1, 3, 1), "transactions, origin requests")
    same_bytes(proxy.get(origin.url("/text", say="x", cc="no-store")).body, b"x for all and one", "what is not stored")


def make_private(_icap, transaction):
    body = transaction.finish_body()
    head = transaction.response_head(drop=("content-length", "cache-control"), add=[("Cache-Control", "private")])
    transaction.send_200(head, body + b"!")


def test_not_remembered_then_left_alone(lab):
    """What the first service makes passes by; the second has read it when it leaves it alone."""
    def leave_alone(_icap, transaction):
        transaction.finish_body()
        transaction.send_204()
    first, second = IcapServer(lab, make_private), IcapServer(lab, leave_alone)
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("first", first.uri(), point="respmod_postcache", remember=True, bypass=False),
                                  Service("second", second.uri(), point="respmod_postcache", bypass=False)])
    for size in (1000, 90000, 700000):
        for _ in range(2):
            url = origin.url("/bytes", n=size, cc="max-age=600")
            same_bytes(proxy.get(url).body, origin.body(size) + b"!", f"body of {size}")


def test_failures_are_not_remembered(lab):
    def closes(_icap, _transaction):
        return True
    origin, icap, proxy = start(lab, closes, bypass=True, down_min="100ms", down_max="200ms")
    url = origin.url("/text", **PAGE)
    equal(proxy.get(url).text(), "page", "body without the service")
    icap.behave = append(b"!")
    until(lambda: proxy.get(url).text() == "page!", 5, "the service is up again")
    equal((proxy.get(url).text(), origin.count("/text")), ("page!", 1), "body, origin requests")


def test_private_results_are_not_remembered(lab):
    origin, icap, proxy = start(lab, make_private)
    url = origin.url("/text", **PAGE)
    for _ in range(3):
        equal(proxy.get(url).text(), "page!", "body")
    equal((origin.count("/text"), icap.count), (1, 3), "origin requests, ICAP transactions")


def test_client_leaves_while_a_variant_is_made(lab):
    gate = threading.Event()

    def behave(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_head(transaction.response_head())
        transaction.send(b"1\r\n+\r\n")
        gate.wait(20)
        transaction.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    origin, icap, proxy = start(lab, behave, timeout="20s")
    url = origin.url("/bytes", n=5000, cc="max-age=600")
    with proxy.wire() as wire:
        wire.send(f"GET {url} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        wire.head()
    gate.set()
    until(lambda: proxy.status()["cache"]["objects"] == 2, 10, "the variant is brought home")
    same_bytes(proxy.get(url).body, b"+" + origin.body(5000), "body")
    equal((origin.count("/bytes"), icap.count), (1, 1), "origin requests, ICAP transactions")


def test_client_leaves_a_variant_too_large_to_be_stored(lab):
    """Then there is nothing to go on for."""
    gate = threading.Event()

    def behave(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(transaction.response_head())
        transaction.send(b"1\r\n+\r\n")
        gate.wait(20)
        for _ in range(20):
            transaction.send(chunked(b"x" * 50000, last=b""))
    origin, icap, proxy = start(lab, behave, timeout="20s", cache={"memory": "8MB", "max_object": "100KB"})
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url('/bytes', n=5000, cc='max-age=600')} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        wire.head()
        wire.abort()
    proxy.log(1)
    gate.set()
    until(lambda: proxy.status()["counters"]["transactions_active"] == 0, 10 * lab.patience, "it is given up")


def test_a_service_that_dies_inside_a_variant(lab):
    """The client sees the break, nobody else gets it."""
    def dies(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(transaction.response_head())
        transaction.send(b"4\r\npart\r\n")
        return True
    origin, icap, proxy = start(lab, dies)
    url = origin.url("/bytes", n=5000, cc="max-age=600")
    raises(Truncated, lambda: proxy.get(url), "an answer that broke off")
    icap.behave = append(b"!")
    for _ in range(2):
        same_bytes(proxy.get(url).body, origin.body(5000) + b"!", "body")
    equal(origin.count("/bytes"), 1, "origin requests")


# Nothing to change.

def test_nothing_to_change_is_remembered(lab):
    origin, icap, proxy = start(lab, unchanged)
    for framing in ("/bytes", "/chunked"):
        url = origin.url(framing, n=5000, cc="max-age=600", etag='"v"')
        for _ in range(3):
            answer = proxy.get(url)
            same_bytes(answer.body, origin.body(5000), "body")
            equal(answer.header("ETag"), '"v"', "ETag")
        equal(proxy.get(url, {"Range": "bytes=0-1"}).body, origin.body(2), "a part")
    equal(icap.count, 2, "ICAP transactions")
    equal(proxy.counter("adapted_left_alone"), 6, "counter")
    revision(icap, "two")
    proxy.ctl("services", "bump", "s")
    equal(proxy.get(origin.url("/bytes", n=5000, cc="max-age=600", etag='"v"')).body[-4:], b" two", "after the service changed")


def test_nothing_to_change_in_what_turns_out_too_large(lab):
    """It was to be remembered; then it came to nothing, as it is not stored."""
    known = threading.Event()
    body = pattern(300000)

    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.send(chunked(body[:5000], last=b""))
        known.wait(20)
        connection.send(chunked(body[5000:]))
    _, icap, proxy = start(lab, unchanged, cache={"memory": "8MB", "max_object": "100KB"})
    origin = RawOrigin(lab, answer)
    for count in (1, 2):
        known.clear()
        with proxy.wire() as wire:
            wire.send(request("GET", origin.url("/page")))
            until(lambda count=count: proxy.counter("adapted_made") >= count, 5 * lab.patience, "the service has left it alone")
            known.set()
            same_bytes(wire.response().body, body, "body")
    equal((len(origin.requests), icap.count), (2, 2), "origin requests, ICAP transactions")


def test_nothing_to_change_and_confirmed(lab):
    origin, icap, proxy = start(lab, unchanged)
    url = origin.url("/text", say="page", cc="max-age=0", etag='"v"')
    for _ in range(4):
        equal(proxy.get(url).text(), "page", "body")
    equal((origin.count("/text"), icap.count), (4, 1), "origin requests, ICAP transactions")


# Before the cache.

def test_stored_under_an_old_istag(lab):
    """What a service saw before it was stored is fetched again when the service is another."""
    origin, icap, proxy = start(lab, append(b" one"), point="respmod_precache")
    url, other = origin.url("/text", **PAGE), origin.url("/other", cc="max-age=600")
    for _ in range(2):
        equal(proxy.get(url).text(), "page one", "body")
    equal(icap.count, 1, "ICAP transactions")
    revision(icap, "two")
    proxy.get(other)
    for _ in range(2):
        equal(proxy.get(url).text(), "page two", "body after another ISTag")
    equal((origin.count("/text"), icap.count), (2, 3), "origin requests, ICAP transactions")
    icap.behave = append(b" three")
    proxy.ctl("services", "bump", "s")
    for _ in range(2):
        equal(proxy.get(url).text(), "page three", "body after the bump")
    equal((origin.count("/text"), proxy.counter("adapted_outdated")), (3, 2), "origin requests, counter")
    equal(proxy.results("/text", 6), ["MISS", "HIT", "REFRESHED", "HIT", "REFRESHED", "HIT"], "results")


def test_a_late_answer_with_the_old_istag(lab):
    """RFC 3507 4.7: "a server's ISTag ... invalidates all entities ... previously cached": an answer to what was asked before the new one
    was first seen does not make the old one current again."""
    let_go = threading.Event()

    def behave(_icap, transaction):
        if "/slow" not in transaction.http_request.start:
            append(b" two")(_icap, transaction)
            return
        let_go.wait(30)
        transaction.istag = b'"one"'
        append(b" one")(_icap, transaction)
    icap = IcapServer(lab, behave)
    icap.istag = icap.options["ISTag"] = '"one"'
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False)], workers=2)
    slow, url, answers = origin.url("/slow", **PAGE), origin.url("/text", **PAGE), []
    asking = threading.Thread(target=lambda: answers.append(proxy.get(slow).body))
    asking.start()
    until(lambda: icap.count == 1, 10 * lab.patience, "the slow one is asked about")
    icap.istag = icap.options["ISTag"] = '"two"'
    equal(proxy.get(url).text(), "page two", "body")
    let_go.set()
    asking.join()
    for _ in range(3):
        equal(proxy.get(url).text(), "page two", "body")
    equal(sorted(proxy.results("/text", 4)), ["HIT", "HIT", "HIT", "MISS"], "results: of two workers in any order")
    contains(proxy.ctl("services"), '"two"', "the tag that is shown")
    equal(origin.count("/slow"), 1, "asked for")
    proxy.get(slow)
    equal((origin.count("/slow"), proxy.results("/slow", 2)[1]), (2, "REFRESHED"), "what came late is of the old one")


@memcheck
def test_left_alone_under_an_old_istag(lab):
    """A scanner that found nothing has to look again when it knows more; a 304 asks nobody."""
    origin, icap, proxy = start(lab, unchanged, point="respmod_precache")
    url = origin.url("/text", say="page", cc="max-age=0", etag='"v"')
    for _ in range(3):
        equal(proxy.get(url).text(), "page", "body")
    equal(icap.count, 1, "ICAP transactions")
    revision(icap, "two")
    proxy.ctl("services", "bump", "s")
    for _ in range(2):
        equal(proxy.get(url).text(), "page two", "body after another ISTag")
    equal(icap.count, 2, "ICAP transactions")


def test_an_old_istag_on_disk(lab):
    disk = {"disk": {lab.path("volume"): {"size": "64MB"}}}
    origin, icap, proxy = start(lab, append(b" one"), point="respmod_precache", cache=disk)
    url, other = origin.url("/text", **PAGE), origin.url("/other", cc="max-age=600")
    proxy.get(url)
    proxy.restart()
    equal((proxy.get(url).text(), proxy.get(url).text()), ("page one",) * 2, "bodies from disk")
    until(lambda: icap.options_count >= 2, 5, "OPTIONS are asked")
    equal(proxy.get(url).text(), "page one", "body under the same ISTag")
    equal(origin.count("/text"), 1, "origin requests")
    revision(icap, "two")
    proxy.restart()
    proxy.get(other)
    equal(proxy.get(url).text(), "page two", "body after another ISTag")
    equal(origin.count("/text"), 2, "origin requests")


def test_a_bump_outlives_the_proxy(lab):
    """What was made before it does not come back from disk."""
    disk = {"disk": {lab.path("volume"): {"size": "64MB"}}}
    origin, icap, proxy = start(lab, append(b" one"), point="respmod_precache", cache=disk)
    url, other = origin.url("/text", **PAGE), origin.url("/other", cc="max-age=600")
    proxy.get(url)
    icap.behave = append(b" two")
    proxy.ctl("services", "bump", "s")
    for _ in range(2):
        proxy.restart()
        proxy.get(other)  # the service says its ISTag
        equal(proxy.get(url).text(), "page two", "body after the bump and a restart")
    equal(origin.count("/text"), 2, "origin requests")


def test_settings_that_make_no_sense(lab):
    _, _, proxy = start(lab, unchanged)
    status, said = proxy.check_config(proxy.text().replace("respmod_postcache", "respmod_precache"))
    true(status != 0, "exit status")
    contains(said, "remember", "the message")
