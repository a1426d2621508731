"""What services do with the content of the cache (common/service/content.h): each row of the paper's Table 2, with a client that
asks afterwards, and what a service, or somebody behind one, could gain by it. The service is tests/e2e/modules/keeper.c."""

import threading
import time

from harness import ports, wire
from harness.checks import contains, equal, lacks, same_bytes, true, until
from harness.disk_bench import Bench
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Inside, Retort
from harness.suite import memcheck

PAGE = "HTTP/1.1 200 OK|Content-Type: text/plain||"


def keeper(lab, **options):
    return Inside("keeper", lab.built("tests/e2e/modules/.libs/keeper.so"), point="reqmod_precache",
                  **{"bypass": False, "timeout": "60s", **options})


def start(lab, service=None, **options):
    return Origin(lab), Retort(lab, services=[service or keeper(lab)], **options)


def do(proxy, what, url="", expect=None, **fields):
    """What the service said of the operation, as a dict. `expect`: (status, objects)."""
    headers = {"X-Do": what, "X-Url": url, **{"X-" + name.title().replace("_", "-"): str(value) for name, value in fields.items()}}
    response = proxy.get("http://keeper.example/", headers)
    equal(response.status, 200, f"{what}: {response.body[:300]}")
    said = dict(line.partition(": ")[::2] for line in response.body.decode().splitlines())
    if expect is not None:
        equal((said.get("status"), int(said.get("objects", 0))), expect, f"{what} {url}: {said}")
    return said


def number(proxy, name):
    """A number of the service's content in /metrics."""
    lines = proxy.admin("GET", "/metrics").body.decode().splitlines()
    name = f'retort_service_content_{name}{{service="keeper"}} '
    return next(int(line[len(name):]) for line in lines if line.startswith(name))


def nothing_is_left(lab, proxy):
    """A service closes its operations when its exchange ends, which is after the answer."""
    until(lambda: (number(proxy, "open"), number(proxy, "held_bytes")) == (0, 0), 10 * lab.patience, "nothing is left")


def cached(origin, path, **arguments):
    return origin.url(path, **{"cc": "max-age=60", **arguments})


# ---- Table 2 -------------------------------------------------------------------------------------------------------------


@memcheck
def test_query(lab):
    origin, proxy = start(lab)
    url = cached(origin, "/one")
    do(proxy, "query", url, expect=("not stored", 0))
    proxy.get(url)
    proxy.get(url)
    said = do(proxy, "query", url, expect=("done", 1))
    equal((said["url"], said["state"], said["http"], said["hits"], said["pinned"]), (url, "fresh", "200", "1", "0"), "query")
    equal(said["line"], "HTTP/1.1 200 OK", "its head")
    true(50 <= int(said["fresh_for"]) <= 60, said["fresh_for"])
    do(proxy, "query", url, variant=1, expect=("not stored", 1))
    do(proxy, "query", url.replace("http://", "HTTP://"), expect=("done", 1))
    contains(do(proxy, "query", "nonsense", expect=("refused", 0))["why"], "not a URL", "why")


def test_names_follow_the_policies(lab):
    """Two spellings of one object are one name: DR_ObjIDMake."""
    origin, proxy = start(lab, url_classes={"own": {"path_regex": "^/p"}}, extra='policy own { query_drop = { "utm_*" } }')
    url = cached(origin, "/p")
    proxy.get(url + "&utm_source=mail")
    said = do(proxy, "query", url + "&utm_source=elsewhere", expect=("done", 1))
    equal(said["url"], url, "the name")


@memcheck
def test_fetch_and_validate(lab):
    origin, proxy = start(lab)
    url = cached(origin, "/image", etag="one")
    said = do(proxy, "fetch", url, expect=("done", 1))
    equal((said["result"], said["http"], said["url"]), ("MISS", "200", url), "the fetch")
    proxy.get(url)
    equal(proxy.results("/image", 2), ["MISS", "HIT"], "a client that comes later")
    equal(do(proxy, "fetch", url, expect=("done", 1))["result"], "HIT", "a fetch of what is there")
    equal(do(proxy, "validate", url, expect=("done", 1))["result"], "REVALIDATED", "the origin is asked")
    equal(origin.count("/image"), 2, "requests at the origin")
    equal(do(proxy, "fetch", origin.url("/none", status=404), expect=("done", 0))["http"], "404", "an answer that is not stored")
    entry = proxy.entries("/image")[0]
    equal(entry["client"], "127.0.0.1", "whose request it is in the log")


def test_validate_is_not_for_policies_about_clients(lab):
    """ignore_client_no_cache is about clients: a service that validates is the operator's."""
    origin, proxy = start(lab, url_classes={"own": {"path_regex": "^/v"}}, extra="policy own { ignore_client_no_cache = true }")
    url = cached(origin, "/v", etag="one")
    proxy.get(url)
    equal(do(proxy, "validate", url)["result"], "REVALIDATED", "a service")
    proxy.get(url, {"Cache-Control": "no-cache"})
    equal(proxy.results("/v", 3)[-1], "HIT", "a client")


def test_fetch_is_complete_when_it_is_answered(lab):
    body = b"0123456789" * 60_000
    origin = RawOrigin(lab, lambda connection, seen: connection.send(
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: %d\r\n\r\n" % len(body) + body))
    proxy = Retort(lab, services=[keeper(lab)])
    do(proxy, "fetch", origin.url("/large"), expect=("done", 1))
    equal(do(proxy, "query", origin.url("/large"))["state"], "fresh", "state")
    same_bytes(proxy.get(origin.url("/large")).body, body, "the body")
    equal(proxy.results("/large", 2), ["MISS", "HIT"], "results")


def test_expire_and_delete(lab):
    origin, proxy = start(lab)
    url = cached(origin, "/x", etag="one")
    do(proxy, "expire", url, seconds=5, expect=("not stored", 0))
    do(proxy, "delete", url, expect=("not stored", 0))
    proxy.get(url)
    do(proxy, "expire", url, seconds=5000, expect=("done", 1))
    true(4990 <= int(do(proxy, "query", url)["fresh_for"]) <= 5000, "it is fresh for longer")
    do(proxy, "expire", url, seconds=0, expect=("done", 1))
    equal(do(proxy, "query", url)["state"], "stale", "state")
    proxy.get(url)
    do(proxy, "delete", url, expect=("done", 1))
    proxy.get(url)
    equal(proxy.results("/x", 3), ["MISS", "REVALIDATED", "MISS"], "what clients get")
    contains(do(proxy, "expire", url, seconds=1 << 40, expect=("refused", 0))["why"], "lifetime", "why")


def test_pin(lab):
    origin, proxy = start(lab)
    url = cached(origin, "/pinned")
    proxy.get(url)
    do(proxy, "pin", url, expect=("done", 1))
    equal(do(proxy, "query", url)["pinned"], "1", "pinned")
    do(proxy, "unpin", url, expect=("done", 1))
    equal(do(proxy, "query", url)["pinned"], "0", "not pinned any more")


def test_inject(lab):
    proxy = Retort(lab, services=[keeper(lab)])
    url = "http://nowhere.example/page"
    do(proxy, "inject", url, head=PAGE, body="by a service", seconds=600, expect=("done", 1))
    seen = proxy.get(url)
    equal((seen.status, seen.body, seen.header("Content-Type")), (200, b"by a service", "text/plain"), "what a client gets")
    equal(do(proxy, "read", url)["body"], "by a service", "what a service reads")
    do(proxy, "inject", url, head=PAGE, body="another", expect=("done", 1))
    equal(proxy.get(url).body, b"another", "it takes the place of the first")
    for head, why in (("HTTP/1.1 200 OK|", "empty line"), ("nonsense||", "head"), (PAGE + "more", "empty line"),
                      ("HTTP/1.1 206 Partial||", "whole"), ("HTTP/1.1 200 OK|Content-Length: 3||", "Content-Length")):
        contains(do(proxy, "inject", url, head=head, body="hello", expect=("refused", 0))["why"], why, head)
    contains(do(proxy, "inject", url, head="HTTP/1.1 200 OK|Cache-Control: no-store||", body="x", seconds="head",
                expect=("refused", 0))["why"], "may not be stored", "by its head")
    equal(proxy.get(url).body, b"another", "what was refused has changed nothing")


@memcheck
def test_inject_in_pieces(lab):
    proxy = Retort(lab, services=[keeper(lab)])
    url = "http://nowhere.example/pieces"
    body = b"".join(bytes([97 + i % 26]) * 4096 for i in range(100))
    for length in ({}, {"length": len(body)}):
        do(proxy, "delete", url)
        do(proxy, "pieces", url, head=PAGE, count=100, **length, expect=("done", 1))
        same_bytes(proxy.get(url).body, body, "the pieces")
    contains(do(proxy, "pieces", url, head=PAGE, count=1, length=5000, expect=("refused", 0))["why"], "fewer bytes", "too short")
    contains(do(proxy, "pieces", url, head=PAGE, count=3, length=5000, expect=("refused", 0))["why"], "more bytes", "too long")
    other = "http://nowhere.example/never"
    do(proxy, "pieces", other, head=PAGE, count=3, undone="yes", close="yes")
    do(proxy, "query", other, expect=("not stored", 0))
    same_bytes(proxy.get(url).body, body, "the object before is still there")
    nothing_is_left(lab, proxy)


@memcheck
def test_read(lab):
    proxy = Retort(lab, services=[keeper(lab)])
    url = "http://nowhere.example/parts"
    do(proxy, "pieces", url, head=PAGE, count=100, expect=("done", 1))
    total = 0
    for i in range(100):
        for _ in range(4096):
            total = (total * 31 + 97 + i % 26) & 0xffffffff
    said = do(proxy, "parts", url, expect=("done", 1))
    equal((said["read"], said["sum"], said["flow"], said["size"]), ("409600", str(total), "end", "409600"), "in parts")
    equal(said["line"], "HTTP/1.1 200 OK", "the head")
    do(proxy, "read", url, expect=("done", 1))
    contains(do(proxy, "read", url, length=1000, expect=("refused", 1))["why"], "larger", "more than it wants")
    do(proxy, "parts", "http://nowhere.example/none", expect=("not stored", 0))
    do(proxy, "inject", url, head=PAGE, body="", expect=("done", 1))
    equal(do(proxy, "parts", url)["flow"], "end", "an empty body")
    nothing_is_left(lab, proxy)


def test_objects_on_disk(lab):
    """All of it with an object that is only on disk, and what was done outlives a kill."""
    bench = Bench(lab, services=[keeper(lab)])
    proxy = bench.proxy
    paths = [f"/own/d/{i}" for i in range(4)]
    versions = bench.fill(paths, 2500, cc="max-age=600")
    bench.on_disk(4)
    proxy.restart()
    urls = [bench.own.url(path, 2500, cc="max-age=600") for path in paths]
    said = do(proxy, "query", urls[0], expect=("done", 1))
    equal((said["state"], said["on_disk"], said["size"]), ("fresh", "1", "2500"), "query")
    said = do(proxy, "parts", urls[1], expect=("done", 1))
    equal((said["read"], said["flow"]), ("2500", "end"), "read")
    do(proxy, "delete", urls[2], expect=("done", 1))
    do(proxy, "expire", urls[3], seconds=100_000, expect=("done", 1))
    do(proxy, "inject", "http://nowhere.example/kept", head=PAGE, body="kept", seconds=600, expect=("done", 1))
    proxy.kill()
    proxy.start()
    do(proxy, "query", urls[2], expect=("not stored", 0))
    true(int(do(proxy, "query", urls[3])["fresh_for"]) > 90_000, "the lifetime")
    equal(proxy.get("http://nowhere.example/kept").body, b"kept", "what was injected")
    hit, version = bench.get(paths[0], 2500, cc="max-age=600")
    equal((hit, version), (True, versions[paths[0]]), "what was left alone")


# ---- whose fetch it is ---------------------------------------------------------------------------------------------------


def test_a_fetch_passes_the_rules_of_clients(lab):
    """A page could name anything: a fetch goes nowhere that the client may not go itself."""
    origin = Origin(lab)
    port = ports.take()
    proxy = Retort(lab, services=[keeper(lab)], url_classes={"secret": {"path_regex": "^/secret"}},
                   extra=f'access secret {{ action = deny }}\naccess all {{ action = allow }}\nlisten "127.0.0.1:{port}" {{ mode = forward }}')
    for mine in ({}, {"for_client": "yes"}):
        said = do(proxy, "fetch", cached(origin, "/secret"), expect=("refused", 0), **mine)
        equal(said["http"], "403", f"the access section: {said}")
    lacks(str(proxy.entries("/secret")), '"MISS"', "requests to the origin")
    response = wire.fetch(("127.0.0.1", port), "GET", "http://keeper.example/",
                          {"X-Do": "fetch", "X-Url": cached(origin, "/local"), "X-For-Client": "yes"}, timeout=20 * lab.patience)
    contains(response.body.decode(), "status: refused", "the listener's clients do not reach this machine")
    response = proxy.get("http://keeper.example/", {"X-Do": "fetch", "X-Url": f"http://127.0.0.1:{port}/", "X-For-Client": "yes"})
    lacks(response.body.decode(), "status: done", "a listener of the proxy itself")


def test_fetches_make_no_fetches(lab):
    """A service's own request asks services too, and they see what it is. None of them begins another one for it."""
    origin, proxy = start(lab)
    do(proxy, "fetch", cached(origin, "/echo"), expect=("done", 1))
    seen = do(proxy, "read", cached(origin, "/echo"))
    contains(str(seen).lower(), "x-of-service", "what the service has noted in its own request")
    said = do(proxy, "fetch", "http://keeper.example/again", fields=f"X-Do: fetch|X-Url: {cached(origin, '/deep')}|X-For-Client: yes|",
              expect=("done", 0))
    equal(said["result"], "SERVICE", "the service has answered its own request")
    true(not proxy.entries("/deep", 0), "the second fetch has begun")
    equal(number(proxy, "refused_total"), 1, "and is refused")


def test_fields_of_a_fetch(lab):
    origin, proxy = start(lab)
    do(proxy, "fetch", cached(origin, "/echo"), fields="X-Mine: 17|Accept: image/*|", expect=("done", 1))
    contains(do(proxy, "read", cached(origin, "/echo"))["body"], "X-Mine", "a field at the origin")
    for fields in ("Host: elsewhere.example|", "X-Mine: 1||GET http://elsewhere.example/ HTTP/1.1|", "nonsense", "X: 1"):
        do(proxy, "fetch", cached(origin, "/bad"), fields=fields, expect=("refused", 0))
    do(proxy, "fetch", cached(origin, "/length"), fields="Content-Length: 5|Range: bytes=1-2|", expect=("done", 1))
    true(not proxy.entries("//elsewhere", 0), "requests elsewhere")


def test_limits_of_clients_are_for_fetches(lab):
    """Bytes a second, and how large a response may be: a fetch gets no more than its client."""
    body = b"x" * 3_000_000
    origin = RawOrigin(lab, lambda connection, seen: connection.send(
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"))
    proxy = Retort(lab, services=[keeper(lab)], url_classes={"big": {"path_regex": "^/big"}, "slow": {"path_regex": "^/slow"}},
                   extra='limit big { by = client  max_response = "10KB" }\nlimit slow { by = client  bandwidth = "1MB" }')
    said = do(proxy, "fetch", origin.url("/big"))
    true(said["status"] in ("refused", "failed"), f"too large: {said}")
    contains(said["why"], "larger than a limit", "too large")
    begun = time.monotonic()
    do(proxy, "fetch", origin.url("/slow"), expect=("done", 1))
    true(time.monotonic() - begun > 0.5, "3 MB at 1 MB a second")


def test_a_fetch_is_no_connection_of_its_client(lab):
    """It comes on none, so nothing would count it off again."""
    origin = Origin(lab)
    proxy = Retort(lab, services=[keeper(lab)], url_classes={"counted": {"path_regex": "^/counted"}},
                   extra="limit counted { by = client  connections = 1 }")
    for name in ("one", "two"):
        do(proxy, "fetch", cached(origin, f"/counted/{name}"), expect=("done", 1))


# ---- limits and ends -----------------------------------------------------------------------------------------------------


def test_limits(lab):
    proxy = Retort(lab, services=[keeper(lab, content_operations=8, content_object="64KB", content_memory="100KB")])
    url = "http://nowhere.example/limits"
    said = do(proxy, "flood", url, count=200)
    equal(said["begun"], "8", "operations at once")
    equal(number(proxy, "refused_total"), 192, "refused")
    contains(do(proxy, "pieces", url, head=PAGE, count=20, expect=("refused", 0))["why"], "content_object", "too large an object")
    contains(do(proxy, "pieces", url, head=PAGE, count=20, length=81920, expect=("refused", 0))["why"], "content_object", "announced")
    do(proxy, "pieces", url, head=PAGE, count=16, expect=("done", 1))
    proxy.ctl("cache", "inject", "--lifetime", "60", "http://nowhere.example/big", lab.write("big", "x" * 70_000))
    contains(do(proxy, "read", "http://nowhere.example/big", expect=("refused", 1))["why"], "content_object", "read whole")
    equal(do(proxy, "parts", "http://nowhere.example/big")["read"], "70000", "read in parts")
    nothing_is_left(lab, proxy)
    none = Retort(lab, services=[keeper(lab, content_operations=0)])
    equal(do(none, "query", url)["status"], "none", "none at all")


def test_a_fetch_that_hangs_ends(lab):
    """An origin that is silent, and one that sends a byte now and then."""
    silent = threading.Event()

    def answer(connection, seen):
        if "/drip" in seen.target:
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nCache-Control: max-age=60\r\n\r\nx")
        silent.wait(60)
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, services=[keeper(lab, content_timeout="500ms")], drain_timeout="1s")
    for path in ("/silent", "/drip"):
        contains(do(proxy, "fetch", origin.url(path), expect=("failed", 0))["why"], "content_timeout", path)
    equal(number(proxy, "failed_total"), 2, "failed")
    silent.set()


def hanging(lab):
    """An origin that does not answer until it is told to."""
    go = threading.Event()

    def answer(connection, seen):
        go.wait(60)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\n\r\nok")
    return RawOrigin(lab, answer), go


def test_a_closed_fetch_lets_its_origin_go(lab):
    origin, go = hanging(lab)
    proxy = Retort(lab, services=[keeper(lab)])
    for number_ in range(20):
        do(proxy, "fetch", origin.url(f"/closed/{number_}"), close="yes")
    until(lambda: number(proxy, "open") == 0, 10 * lab.patience, "nothing is under way")
    go.set()


def test_operations_outlive_their_service(lab):
    """A reload starts a new instance, whose predecessor stops with a fetch under way."""
    origin, go = hanging(lab)
    proxy = Retort(lab, services=[keeper(lab)])
    for number_ in range(5):
        do(proxy, "leave", origin.url(f"/left/{number_}"))
    equal(number(proxy, "open"), 5, "under way")
    proxy.reload()
    do(proxy, "inject", "http://nowhere.example/later", head=PAGE, body="later", expect=("done", 1))
    go.set()
    until(lambda: number(proxy, "open") == 0, 10 * lab.patience, "the old instance has closed them")
    equal(number(proxy, "fetches_total"), 5, "the fetches have ended well")


def test_a_service_that_forgets_them(lab):
    origin, go = hanging(lab)
    proxy = Retort(lab, services=[keeper(lab, settings={"Forgets": "on"})])
    do(proxy, "leave", origin.url("/forgotten"))
    proxy.reload()
    go.set()
    until(lambda: "left 1 operations on content open" in proxy.process.log(), 10 * lab.patience, "the line in the log")
    until(lambda: number(proxy, "open") == 0, 10 * lab.patience, "the host has closed it")


@memcheck
def test_the_process_ends_meanwhile(lab):
    """With fetches under way: they are cut at the end, and nothing new begins."""
    origin, go = hanging(lab)
    proxy = Retort(lab, services=[keeper(lab)], drain_timeout="1s")
    for number_ in range(5):
        do(proxy, "leave", origin.url(f"/left/{number_}"))
    proxy.stop()
    go.set()


def test_many_at_once_with_workers(lab):
    """Three workers, several clients, fetches, changes and reads of the same objects, and reloads between them."""
    origin, proxy = start(lab, workers=3)
    problems = []

    def client(n):
        try:
            for turn in range(12):
                url = cached(origin, f"/m/{(n + turn) % 4}")
                what = ("fetch", "query", "expire", "parts", "delete", "validate", "read", "inject")[(n + turn) % 8]
                said = do(proxy, what, url, head=PAGE, body="x" * 3000, seconds=50)
                true(said["status"] in ("done", "not stored", "failed"), f"{what}: {said}")
                proxy.get(url)
        except BaseException as error:  # pylint: disable=broad-except
            problems.append(f"{type(error).__name__}: {error}")
    threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        proxy.reload()
    for thread in threads:
        thread.join()
    true(not problems, "\n".join(problems[:3]))
    nothing_is_left(lab, proxy)
