"""Services behind the cache: what is stored stays as it is, and every client gets an adaptation of its own."""

import threading

from harness.adaptation import QUICK
from harness.checks import contains, equal, same_bytes, true, until
from harness.icap import IcapServer, append, unchanged
from harness.nginx import Nginx
from harness.origin import Origin, echoed
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.services import Services
from harness.suite import memcheck
from harness.wire import chunked

OTHER_CLIENT = "127.0.0.2"


def start(lab, behave, *, bypass=False, point="respmod_postcache", server=None, **options):
    """An origin, an ICAP server and a proxy between them."""
    methods = "REQMOD" if point.startswith("reqmod") else "RESPMOD"
    icap = server or IcapServer(lab, behave, methods=methods)
    return Origin(lab), icap, Retort(lab, services=[Service("s", icap.uri(), point=point, bypass=bypass, **options)])


def sign(_icap, transaction):
    """Adds the client's address to each body."""
    body = transaction.finish_body()
    client = transaction.request.header("X-Client-IP") or "nobody"
    transaction.send_200(transaction.response_head(), body + b" for " + client.encode())


# Responses.

def test_each_client_has_its_own_text(lab):
    """The injector that comes with Retort, two clients, one stored page."""
    services = Services(lab, scope="client", names=("inject",))
    nginx = Nginx(lab, lab.data("."))
    chosen = services.for_proxy()
    for service in chosen:
        service.options["point"] = "respmod_postcache"
    proxy = Retort(lab, services=chosen)
    url = nginx.url("/html/management.html")
    original = lab.read_data("html/management.html")
    for source in ("127.0.0.1", OTHER_CLIENT, "127.0.0.1"):
        page = proxy.get(url, source=source).body
        text = f'<meta name="retort-test" content="{source}">'.encode()
        contains(page, text, f"the page of {source}")
        same_bytes(page.replace(text, b""), original, f"the rest of the page of {source}")
    equal(proxy.results("/html/management.html", 3), ["MISS", "HIT", "HIT"], "results")


@memcheck
def test_what_is_stored_stays_as_it_is(lab):
    origin, icap, proxy = start(lab, sign, include=["X-Client-IP"])
    url = origin.url("/text", say="page", cc="max-age=60")
    for source in ("127.0.0.1", OTHER_CLIENT, "127.0.0.1"):
        answer = proxy.get(url, source=source)
        equal(answer.text(), f"page for {source}", "body")
        if answer.header("Age") is not None:
            contains(answer.header("Cache-Status"), "hit", "Cache-Status")
    equal((origin.count("/text"), icap.count), (1, 3), "origin requests, ICAP transactions")
    entries = proxy.log(3)
    equal([e["result"] for e in entries], ["MISS", "HIT", "HIT"], "results")
    equal([[v["verdict"] for v in e["icap"]] for e in entries], [["MODIFIED"]] * 3, "verdicts")
    # Without the service the stored page is the origin's.
    proxy.write_config(proxy.text(services=[]))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get(url).text(), "page", "body without a service")
    equal(origin.count("/text"), 1, "origin requests")


def test_what_is_left_alone_goes_out_from_the_cache(lab):
    """Ranges, validators and lengths are the stored response's."""
    origin, icap, proxy = start(lab, unchanged)
    url = origin.url("/bytes", n=100000, cc="max-age=60", etag='"v"')
    for _ in range(2):
        answer = proxy.get(url)
        same_bytes(answer.body, origin.body(100000), "body")
        equal((answer.header("ETag"), answer.header("Content-Length")), ('"v"', "100000"), "ETag, Content-Length")
    part = proxy.get(url, {"Range": "bytes=5-9"})
    equal((part.status, part.body), (206, origin.body(100000)[5:10]), "a part")
    equal(proxy.get(url, {"If-None-Match": '"v"'}).status, 304, "status with the ETag")
    equal((origin.count("/bytes"), icap.count), (1, 4), "origin requests, ICAP transactions")


def left_alone_at_the_end(_icap, transaction):
    transaction.finish_body()
    transaction.send_204()


def test_left_alone_when_it_has_passed_by(lab):
    """The services had the only copy of it: too large to be stored, as turned out while it came."""
    for remember in (False, True):
        icap = IcapServer(lab, left_alone_at_the_end)
        origin = Origin(lab)
        service = Service("s", icap.uri(), point="respmod_postcache", bypass=False, remember=remember)
        proxy = Retort(lab, services=[service], cache={"memory": "8MB", "max_object": "100KB"})
        for size in (90000, 150000, 700000):
            answer = proxy.get(origin.url("/chunked", n=size, cc="max-age=60", etag='"v"'))
            same_bytes(answer.body, origin.body(size), f"body of {size}")
            equal(answer.header("ETag"), '"v"', "ETag")


def test_left_alone_after_one_that_failed(lab):
    """It is what was stored, so parts of it can be had, though a service had begun to change it."""
    def dies_inside(_icap, transaction):
        transaction.finish_body()
        transaction.send_head(transaction.response_head())
        transaction.send(chunked(b"x" * 300, last=b""))
        asked.wait(20)
        return True

    def reads(_icap, transaction):
        asked.set()
        left_alone_at_the_end(_icap, transaction)
    asked = threading.Event()
    icaps = [IcapServer(lab, behave, preview=0) for behave in (dies_inside, reads)]
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service(f"s{i}", icap.uri(), point="respmod_postcache") for i, icap in enumerate(icaps)])
    answer = proxy.get(origin.url("/bytes", n=3000, cc="max-age=60", etag='"v"'))
    equal([v["verdict"] for v in proxy.log(1)[-1]["icap"]], ["BYPASSED", "UNMODIFIED"], "verdicts")
    same_bytes(answer.body, origin.body(3000), "body")
    equal((answer.header("ETag"), answer.header("Content-Length")), ('"v"', "3000"), "ETag, Content-Length")


def test_what_is_changed_has_no_validators_of_the_stored(lab):
    origin, _, proxy = start(lab, append(b"!"))
    url = origin.url("/bytes", n=3000, cc="max-age=60", etag='"v"', h=["Accept-Ranges: bytes", "Content-MD5: x"])
    whole = origin.body(3000) + b"!"
    asked = [{}, {}, {"Range": "bytes=5-9"}, {"If-None-Match": '"v"'}, {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
             {"Range": "bytes=0-0", "If-Range": '"v"'}]
    for headers in asked:
        answer = proxy.get(url, headers)
        equal(answer.status, 200, f"status with {headers}")
        same_bytes(answer.body, whole, f"body with {headers}")
        for name in ("ETag", "Accept-Ranges", "Content-MD5"):
            equal(answer.header(name), None, f"{name} with {headers}")
    head = proxy.fetch("HEAD", url)
    equal((head.status, head.header("ETag"), head.header("Content-Length")), (200, None, None), "HEAD")
    equal(origin.count("/bytes"), 1, "origin requests")


def test_a_range_that_misses_brings_the_whole(lab):
    """No client gets past a service by asking for parts."""
    origin, _, proxy = start(lab, append(b"!"))
    url = origin.url("/bytes", n=3000, cc="max-age=60", etag='"v"')
    same_bytes(proxy.get(url, {"Range": "bytes=5-9"}).body, origin.body(3000) + b"!", "body")
    # Nor by what others have stored as a part.
    plain = proxy.text(services=[])
    adapted = proxy.text()
    proxy.write_config(plain)
    proxy.reload()
    other = origin.url("/own/part", n=3000, cc="max-age=60")
    proxy.get(other, {"Range": "bytes=0-99"})
    proxy.write_config(adapted)
    proxy.reload()
    answer = proxy.get(other, {"Range": "bytes=5-9"})
    equal((answer.status, answer.body[-1:]), (200, b"!"), "status, end of the body")


@memcheck
def test_an_etag_that_the_service_gives(lab):
    own = [("ETag", '"mine"'), ("Repr-Digest", "sha-256=:eHl6:")]

    def behave(_icap, transaction):
        body = transaction.finish_body()
        transaction.send_200(transaction.response_head(drop=("content-length", "etag", "repr-digest"), add=own), body + b"!")
    origin, _, proxy = start(lab, behave)
    url = origin.url("/text", say="x", cc="max-age=60", etag='"v"', h=["Repr-Digest: sha-256=:YWJj:"])
    answer = proxy.get(url)
    equal([(name, answer.header(name)) for name, _ in own], own, "ETag, Repr-Digest")
    equal(proxy.get(url, {"If-None-Match": '"mine"'}).status, 304, "status with the service's ETag")
    equal(proxy.get(url, {"If-None-Match": '"v"'}).status, 200, "status with the stored ETag")


def test_what_is_not_stored_is_adapted_too(lab):
    origin, icap, proxy = start(lab, append(b"!"))
    for path, cc in (("/bytes", "no-store"), ("/chunked", "private")):
        for size in (0, 1, 5000, 700000):
            url = origin.url(path, n=size, cc=cc)
            same_bytes(proxy.get(url).body, origin.body(size) + b"!", f"{path} of {size}")
    answer = proxy.fetch("POST", origin.url("/echo"), {}, b"upload")
    true(answer.body.endswith(b"!"), "the answer to a POST")
    icap.behave = unchanged
    for size in (0, 1, 5000, 700000):
        same_bytes(proxy.get(origin.url("/chunked", n=size, cc="no-store")).body, origin.body(size), f"untouched, {size}")


def test_collapsed_clients_have_their_own(lab):
    """They wait for one fetch, and each is adapted for itself."""
    origin, icap, proxy = start(lab, sign, include=["X-Client-IP"])
    url = origin.url("/text", say="page", cc="max-age=60", ms=700)
    answers = {}

    def ask(source):
        answers[source] = proxy.get(url, source=source).text()
    sources = [f"127.0.0.{n}" for n in range(2, 8)]
    threads = [threading.Thread(target=ask, args=(source,)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(answers, {source: f"page for {source}" for source in sources}, "bodies")
    equal((origin.count("/text"), icap.count), (1, 6), "origin requests, ICAP transactions")


def test_confirmed_by_the_origin(lab):
    """The origin is asked with the stored validators, not with those of what clients got."""
    origin, _, proxy = start(lab, append(b"!"))
    url = origin.url("/text", say="x", cc="max-age=0", etag='"v"')
    for _ in range(3):
        equal(proxy.get(url).text(), "x!", "body")
    equal(proxy.results("/text", 3), ["MISS", "REVALIDATED", "REVALIDATED"], "results")


def test_bodies_on_disk(lab):
    """Read from the file while services read them: small ones, and large ones that never are in memory."""
    icap = IcapServer(lab, append(b"!"), methods="RESPMOD")
    origin = Origin(lab)
    disk = {"disk": {lab.path("volume"): {"size": "64MB"}}}
    for remember in (False, True):
        service = Service("s", icap.uri(), point="respmod_postcache", bypass=False, remember=remember)
        proxy = Retort(lab, services=[service], cache={"memory": "8MB", "max_object": "4MB", **disk})
        sizes = {f"/bytes/{remember}/{size}": size for size in (0, 100, 100000, 3000000)}
        for _ in range(2):
            for path, size in sizes.items():
                for _ in range(2):
                    same_bytes(proxy.get(origin.url(path, n=size, cc="max-age=600")).body, origin.body(size) + b"!",
                               f"{size} bytes")
            proxy.restart()
        equal([origin.count(path) for path in sizes], [1] * 4, "origin requests")
        proxy.stop()


def test_failures_follow_bypass(lab):
    def closes(_icap, _transaction):
        return True
    for bypass, expected in ((True, (200, "x")), (False, (502, None))):
        origin, icap, proxy = start(lab, closes, bypass=bypass, **QUICK)
        for path in ("/text", "/text2"):
            url = origin.url(path, say="x", cc="max-age=60" if path == "/text" else "no-store")
            answer = proxy.get(url)
            equal(answer.status, expected[0], f"status of {path} with bypass {bypass}")
            if bypass:
                equal(answer.text(), "x", "body")
        # What came from the origin is good, and stored.
        icap.behave = append(b"!")
        url = origin.url("/text", say="x", cc="max-age=60")
        until(lambda proxy=proxy, url=url: proxy.get(url).body == b"x!", 5, "the service is up again")
        equal(origin.count("/text"), 1, "origin requests")


def test_client_leaves_while_the_service_works(lab):
    """The object is brought home, though nobody waits for what the service makes of it."""
    go = threading.Event()

    def behave(_icap, transaction):
        go.wait(20)
        append(b"!")(_icap, transaction)
    origin, icap, proxy = start(lab, behave, timeout="20s")
    url = origin.url("/chunked", n=300000, cc="max-age=60")
    with proxy.wire() as wire:
        wire.send(f"GET {url} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        until(lambda: icap.count >= 1, 5, "the service is asked")
        until(lambda: proxy.status()["cache"]["objects"] == 1, 5, "the object is stored")
    go.set()
    same_bytes(proxy.get(url).body, origin.body(300000) + b"!", "body")
    equal(origin.count("/chunked"), 1, "origin requests")


@memcheck
def test_both_response_points(lab):
    before, behind = IcapServer(lab, append(b" stored")), IcapServer(lab, sign)
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("before", before.uri(), bypass=False),
                                  Service("behind", behind.uri(), point="respmod_postcache", bypass=False,
                                          include=["X-Client-IP"])])
    url = origin.url("/text", say="x", cc="max-age=60")
    for source in ("127.0.0.1", OTHER_CLIENT):
        equal(proxy.get(url, source=source).text(), f"x stored for {source}", "body")
    equal((before.count, behind.count, origin.count("/text")), (1, 2, 1), "transactions, origin requests")
    equal([v["service"] for v in proxy.log(1)[0]["icap"]], ["before", "behind"], "services in the log")


def test_classes_by_content_type(lab):
    icap = IcapServer(lab, append(b"!"))
    origin = Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri(), point="respmod_postcache")],
                   url_classes={"pages": {"content_type": "text/html"}}, adapt={"pages": ["s"]})
    for kind, expected in (("text/html", "x!"), ("text/plain", "x")):
        url = origin.url("/text", say="x", type=kind, cc="max-age=60")
        for _ in range(2):
            equal(proxy.get(url).text(), expected, kind)


# Requests.

def add_field(name, value):
    def behave(_icap, transaction):
        head = transaction.request_head(drop=("transfer-encoding", name.lower()), add=[(name, value)])
        if transaction.has_body:
            transaction.send_200(head, transaction.finish_body())
        else:
            transaction.send_head(head, body=False)
    return behave


def test_requests_behind_the_cache(lab):
    """Asked only for what the cache has not got; what is stored answers the client's request."""
    origin, icap, proxy = start(lab, add_field("X-Kind", "adapted"), point="reqmod_postcache")
    url = origin.url("/echo", cc="max-age=60", vary="X-Kind")
    for kind in ("a", "b"):
        for _ in range(2):
            seen = echoed(proxy.get(url, {"X-Kind": kind}))
            equal(seen["header"]("X-Kind"), "adapted", "what the origin was sent")
    equal((origin.count("/echo"), icap.count), (2, 2), "origin requests, ICAP transactions")
    equal(proxy.results("/echo", 4), ["MISS", "HIT", "MISS", "HIT"], "results")
    seen = echoed(proxy.fetch("POST", origin.url("/echo"), {}, b"upload"))
    equal((seen["header"]("X-Kind"), seen["body"]), ("adapted", b"upload"), "a POST")


def test_a_purge_reaches_what_is_to_be_confirmed(lab):
    """Found, then purged while a service sees the request: the origin's 304 does not bring it back."""
    gate = threading.Event()

    def behave(_icap, transaction):
        gate.wait(20)
        unchanged(_icap, transaction)
    origin, icap, proxy = start(lab, behave, point="reqmod_postcache", timeout="20s")
    url = origin.url("/text", say="page", cc="max-age=0", etag='"v"')
    for purge in (("delete", url), ("purge", "--all"), ("ban", "/text")):
        gate.set()
        proxy.get(url)
        seen = icap.count
        gate.clear()
        waiting = threading.Thread(target=lambda: equal(proxy.get(url).text(), "page", "body"))
        waiting.start()
        until(lambda seen=seen: icap.count > seen, 10, "the service sees the request")
        proxy.ctl("cache", *purge)
        gate.set()
        waiting.join()
    proxy.get(url)
    equal(proxy.results("/text", 7), ["MISS", "REVALIDATED"] * 3 + ["MISS"], "results")



def test_another_place_behind_the_cache(lab):
    """The key stays the client's."""
    def behave(_icap, transaction):
        start = transaction.http_request.start.replace("/one", "/two")
        transaction.send_head(transaction.request_head(start=start), body=False)
    origin, _, proxy = start(lab, behave, point="reqmod_postcache")
    url = origin.url("/one", cc="max-age=60")
    for _ in range(2):
        contains(proxy.get(url).text(), "/two", "body")
    equal((origin.count("/one"), origin.count("/two")), (0, 1), "requests for either place")
    equal(proxy.results("/one", 2), ["MISS", "HIT"], "results")


@memcheck
def test_a_service_answers_behind_the_cache(lab):
    def behave(_icap, transaction):
        transaction.send_200(b"HTTP/1.1 403 Forbidden\r\nCache-Control: max-age=60\r\n\r\n", b"no")
    origin, icap, proxy = start(lab, behave, point="reqmod_postcache")
    url = origin.url("/text", say="x", cc="max-age=60")
    for _ in range(2):
        answer = proxy.get(url)
        equal((answer.status, answer.text()), (403, "no"), "answer")
    equal((origin.count("/text"), icap.count), (0, 2), "origin requests, ICAP transactions")
    equal(proxy.results("/text", 2), ["SERVICE", "SERVICE"], "results")
    # Nor does a stale object come into it.
    icap.behave = unchanged
    stale = origin.url("/text", say="y", cc="max-age=0", etag='"v"')
    equal(proxy.get(stale).text(), "y", "body")
    icap.behave = behave
    equal(proxy.get(stale).text(), "no", "body")


def test_request_failures_behind_the_cache(lab):
    def closes(_icap, _transaction):
        return True
    for bypass, status in ((True, 200), (False, 502)):
        origin, _, proxy = start(lab, closes, bypass=bypass, point="reqmod_postcache", **QUICK)
        equal(proxy.get(origin.url("/text", say="x")).status, status, f"status with bypass {bypass}")


def test_conditions_of_the_cache_behind_a_request_service(lab):
    origin, icap, proxy = start(lab, add_field("X-Added", "y"), point="reqmod_postcache")
    url = origin.url("/text", say="x", cc="max-age=0", etag='"v"')
    for _ in range(2):
        equal(proxy.get(url).text(), "x", "body")
    equal(proxy.results("/text", 2), ["MISS", "REVALIDATED"], "results")


def test_all_four_points(lab):
    servers = {point: IcapServer(lab, behave, methods="REQMOD" if point.startswith("req") else "RESPMOD")
               for point, behave in (("reqmod_precache", add_field("X-One", "1")), ("reqmod_postcache", add_field("X-Two", "2")),
                                     ("respmod_precache", append(b" three")), ("respmod_postcache", append(b" four")))}
    origin = RawOrigin(lab, lambda connection, seen: connection.send(
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\n%s%s%s"
        % ((seen.header("X-One") or "-").encode(), b" ", (seen.header("X-Two") or "-").encode())))
    proxy = Retort(lab, services=[Service(point, server.uri(), point=point, bypass=False) for point, server in servers.items()])
    for _ in range(2):
        equal(proxy.get(origin.url("/page")).text(), "1 2 three four", "body")
    equal([servers[point].count for point in servers], [2, 1, 1, 2], "transactions at each point")
    equal([v["service"] for v in proxy.log(1)[0]["icap"]], list(servers), "services in the log")
