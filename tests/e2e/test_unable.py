"""Services that could not do what they are there for: their results are delivered, told of, and soon made again."""

import struct
import zlib

from harness import wire
from harness.adaptation import account
from harness.checks import contains, equal, true, until
from harness.icap import IcapServer, append
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.services import Services
from harness.suite import memcheck


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


# A red square of 8 by 8.
RED = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
       + chunk(b"IDAT", zlib.compress((b"\0" + b"\xff\0\0" * 8) * 8)) + chunk(b"IEND", b""))
PAGE = b"<html><head><title>t</title></head><body>" + b"text " * 100 + b"</body></html>"


def serve(lab, body=RED, kind="image/png"):
    """It confirms with 304 whatever it is asked about."""
    def answer(connection, request):
        head = (b"Content-Type: %s\r\nCache-Control: max-age=36000, stale-while-revalidate=36000, "
                b"stale-if-error=36000\r\nETag: \"v\"\r\n" % kind.encode())
        if request.header("If-None-Match"):
            connection.send(b"HTTP/1.1 304 Not Modified\r\n" + head + b"\r\n")
        else:
            connection.send(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body)
                            + (b"" if request.method == "HEAD" else body))
    return RawOrigin(lab, answer)


def saying(*failing):
    """A service that says of these paths that it could not, and adds "!" to others."""
    def behave(_icap, transaction):
        if any(path in transaction.http_request.start for path in failing):
            transaction.send_204(b"X-Retort-Failed: refused\r\n")
        else:
            append(b"!")(_icap, transaction)
    return behave


def becomes(get, expected, what):
    return until(lambda: get().body == expected, 30, what, pause=0.1)


def test_helperd_is_gone_for_a_while(lab):
    """What was coloured for want of a helper is gray once that is back, whatever the origin said of its lifetime."""
    services, origin = Services(lab, names=("gray",)), serve(lab)
    proxy = Retort(lab, services=services.for_proxy(), cache={"memory": "32MB", "failed_lifetime": "2s"})
    services.helperd.stop()
    for _ in range(2):
        equal(proxy.get(origin.url("/a.png")).body, RED, "body without a helper")
    entries = proxy.log(2)
    equal([entry["result"] for entry in entries], ["MISS", "HIT"], "results: origins are spared")
    equal([v["verdict"] for v in entries[0]["icap"]], ["UNABLE"], "verdict")
    contains(entries[0]["icap"][0]["error"], "refused", "what the log says")
    equal((account(proxy, "gray")["account"]["unable"], proxy.counter("adapted_unable")), (1, 1), "counted")
    services.helperd.start()
    until(lambda: proxy.get(origin.url("/a.png")).body != RED, 30, "it is made again", pause=0.1)
    proxy.get(origin.url("/a.png"))
    equal([r.header("If-None-Match") for r in origin.requests], [None, None], "conditions")
    until(lambda: [e["result"] for e in proxy.log()][-2:] == ["REFRESHED", "HIT"], 10, "what was made lives on")


def test_a_client_may_ask_anew_at_once(lab):
    """no-cache brings the whole again: a 304 would renew what was not adapted (RFC 9111 4.3.4)."""
    icap, origin = IcapServer(lab, saying("/a")), serve(lab, PAGE, "text/html")
    proxy = Retort(lab, services=[Service("s", icap.uri())], cache={"memory": "32MB", "failed_lifetime": "1h"})
    equal([proxy.get(origin.url("/a")).body for _ in range(2)], [PAGE, PAGE], "bodies while it can not")
    equal(proxy.fetch("HEAD", origin.url("/a")).status, 200, "HEAD")
    icap.behave = saying()
    equal(proxy.get(origin.url("/a"), {"Cache-Control": "no-cache"}).body, PAGE + b"!", "asked anew")
    equal(proxy.get(origin.url("/a")).body, PAGE + b"!", "and kept")
    equal([r.header("If-None-Match") for r in origin.requests], [None, None], "conditions")


def test_a_restart_lengthens_nothing(lab):
    icap, origin = IcapServer(lab, saying("/a")), serve(lab, PAGE, "text/html")
    proxy = Retort(lab, services=[Service("s", icap.uri())],
                   cache={"memory": "32MB", "failed_lifetime": "1s",
                          "disk": {lab.path("volume"): {"size": "64MB", "admission": "all"}}})
    equal(proxy.get(origin.url("/a")).body, PAGE, "body while it can not")
    proxy.restart()
    icap.behave = saying()
    becomes(lambda: proxy.get(origin.url("/a")), PAGE + b"!", "it is made again after the restart")
    equal([r.header("If-None-Match") for r in origin.requests], [None, None], "conditions")


@memcheck
def test_one_of_a_chain(lab):
    """What the others made is short-lived too; 0 stores nothing; memory of verdicts likewise."""
    icap, other, origin = IcapServer(lab, saying("/a")), IcapServer(lab, append(b"?")), serve(lab, PAGE, "text/html")
    services = [Service("s", icap.uri()), Service("t", other.uri())]
    proxy = Retort(lab, services=services, cache={"memory": "32MB", "failed_lifetime": "0"})
    for _ in range(2):
        equal(proxy.get(origin.url("/a")).body, PAGE + b"?", "body")
    equal([(e["result"], [v["verdict"] for v in e["icap"]]) for e in proxy.log(2)],
          [("MISS", ["UNABLE", "MODIFIED"])] * 2, "log")
    icap.behave = saying()
    equal([proxy.get(origin.url("/a")).body for _ in range(2)], [PAGE + b"!?"] * 2, "once it can")
    equal(proxy.log(4)[-1]["result"], "HIT", "result")


@memcheck
def test_variants_behind_the_cache(lab):
    icap, origin = IcapServer(lab, saying("/a")), serve(lab, PAGE, "text/html")
    proxy = Retort(lab, services=[Service("s", icap.uri(), "respmod_postcache", remember=True)])
    equal(proxy.get(origin.url("/a")).body, PAGE, "body while it can not")
    icap.behave = saying()
    equal([proxy.get(origin.url("/a")).body for _ in range(2)], [PAGE + b"!"] * 2, "once it can")
    equal((len(origin.requests), icap.count), (1, 2), "origin requests, ICAP transactions")


@memcheck
def test_verdicts_on_requests(lab):
    """They are not remembered, whatever else the answer permits."""
    def behave(_icap, transaction):
        transaction.send_204(b"Cache-Control: max-age=600\r\nX-Retort-Failed: lists\r\n")
    icap, origin = IcapServer(lab, behave, methods="REQMOD", preview=None), Origin(lab)
    proxy = Retort(lab, services=[Service("s", icap.uri(), "reqmod_precache")])
    for _ in range(2):
        proxy.get(origin.url("/text", say="x", cc="no-store"))
    equal((icap.count, account(proxy)["account"]["unable"]), (2, 2), "ICAP transactions, counted")


@memcheck
def test_requests_behind_the_cache(lab):
    """The response to a request that such a service missed is stored as that to the client's: not for long."""
    def behave(_icap, transaction):
        transaction.send_head(transaction.request_head(add=[("X-Kind", "adapted")]), body=False)
    icap = IcapServer(lab, behave, methods="REQMOD", preview=None)
    origin = RawOrigin(lab, lambda connection, request: connection.send(
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=36000\r\nETag: \"v\"\r\nContent-Length: 7\r\n\r\n"
        + (request.header("X-Kind") or "unasked").encode()[:7]))
    proxy = Retort(lab, services=[Service("s", icap.uri(), "reqmod_postcache", down_min="100ms", down_max="100ms")],
                   cache={"memory": "32MB", "failed_lifetime": "1s"})
    icap.behave = lambda _icap, transaction: transaction.send_204(b"X-Retort-Failed: memory\r\n")
    equal(proxy.get(origin.url("/a")).body, b"unasked", "it could not")
    icap.behave = lambda _icap, transaction: True
    equal(proxy.get(origin.url("/b")).body, b"unasked", "it was passed by")
    icap.behave = behave
    for path in ("/a", "/b"):
        becomes(lambda path=path: proxy.get(origin.url(path)), b"adapted", "asked for again " + path)


def test_a_page_without_its_text(lab):
    services, origin = Services(lab, names=("inject",)), serve(lab, PAGE, "text/html")
    proxy = Retort(lab, services=services.for_proxy(), cache={"memory": "32MB", "failed_lifetime": "1s"})
    helpers = services.helperd.wait_helpers("text-helper", 1)
    services.helperd.kill()
    equal(proxy.get(origin.url("/a")).body, PAGE, "body without its text")
    equal([v["verdict"] for v in proxy.log(1)[0]["icap"]], ["UNABLE"], "verdict")
    true(helpers, "there was a helper")
    services.helperd.start()
    until(lambda: b"retort-test" in proxy.get(origin.url("/a")).body, 30, "it is made again", pause=0.1)


def test_what_lies_in_the_picture_is_no_outage(lab):
    """A broken picture comes out the same each time: left alone, and kept as long as the origin says."""
    services, origin = Services(lab, names=("gray",)), serve(lab, RED[:60])
    proxy = Retort(lab, services=services.for_proxy(), cache={"memory": "32MB", "failed_lifetime": "0"})
    for _ in range(2):
        equal(proxy.get(origin.url("/a.png")).body, RED[:60], "body")
    entries = proxy.log(2)
    equal(([e["result"] for e in entries], [v["verdict"] for v in entries[0]["icap"]]),
          (["MISS", "HIT"], ["UNMODIFIED"]), "results, verdict")


def test_lists_that_can_not_be_read(lab):
    """The ad remover without its lists says so, and permits nobody to remember what it let pass."""
    services = Services(lab, names=("adremover",), ads="/nowhere/ads.txt")
    origin = Origin(lab)
    proxy = Retort(lab, services=services.for_proxy())
    for _ in range(2):
        proxy.get(origin.url("/text", say="x", cc="max-age=60"))
    entries = proxy.log(2)
    equal([[v["verdict"] for v in entry["icap"]] for entry in entries], [["UNABLE"]] * 2, "verdicts")
    equal([entry["result"] for entry in entries], ["MISS", "HIT"], "what it let pass is stored as such")


def test_foreign_clients_are_told(lab):
    """By Cache-Control in the ICAP head (RFC 3507 5), before and behind the preview."""
    services = Services(lab, names=("gray",))
    services.helperd.stop()
    for allow in ("Allow: 204\r\n", ""):
        head = b"GET http://x/a.png HTTP/1.1\r\nHost: x\r\n\r\n"
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n" % len(RED)
        with wire.Wire(("127.0.0.1", services.cicap.port), timeout=20 * lab.patience) as connection:
            connection.send(f"RESPMOD {services.cicap.uri('gray')} ICAP/1.0\r\nHost: x\r\n{allow}"
                            f"Encapsulated: req-hdr=0, res-hdr={len(head)}, res-body={len(head) + len(answer)}\r\n\r\n"
                            .encode() + head + answer + wire.chunked(RED))
            told = connection.head()
            equal((told.status, told.header("X-Retort-Failed"), told.header("Cache-Control")),
                  (204 if allow else 200, "refused", "no-store"), f"answer with {allow!r}")
