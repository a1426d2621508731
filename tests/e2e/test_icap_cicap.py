"""The ICAP client with c-icap and the services that come with it."""

from harness.adaptation import account, fetch
from harness.checks import contains, equal, same_bytes, true, until
from harness.cicap import Cicap, Module
from harness.origin import Origin, echoed
from harness.raw_origin import PatternCheck, RawOrigin, pattern
from harness.retort import Retort, Service
from harness.services import module_path
from harness.suite import heavy, memcheck, seconds
from harness.wire import request

SIZES = [0, 1, 1023, 1024, 1025, 4096, 65536, 300000, 3000000]


@memcheck
def test_srv_echo(lab):
    """It answers by 200 and 204 in turn."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=False)])
    for turn in range(2):
        for size in SIZES:
            for framing in ("/bytes", "/chunked"):
                same_bytes(proxy.get(origin.url(framing, n=size, cc="no-store", i=turn)).body, origin.body(size),
                           f"{framing} of {size}")
    until(lambda: cicap.count() >= 4 * len(SIZES), 5, "an ICAP transaction for each")
    equal({entry.status for entry in cicap.entries()}, {200, 204}, "c-icap's statuses")


def test_cicap_is_known_before_the_first_message(lab):
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo")), Service("none", cicap.uri("none"))], adapt={})
    until(lambda: [account(proxy, name)["state"] for name in ("echo", "none")] == ["up", "down"], 10 * lab.patience, "both to be known")
    contains(account(proxy, "none")["endpoints"][0]["error"], "404", "why c-icap has no such service")


@memcheck
def test_srv_ex206(lab):
    """It inserts a comment and refers to the rest of the original (206)."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("ex206", "srv_ex206.so")])
    proxy = Retort(lab, services=[Service("ex206", cicap.uri("ex206"), bypass=False)])
    page = "<html><head></head><body>text" + "x" * 5000 + "</body></html>"
    direct = RawOrigin(lab, lambda c, r: c.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"
                                                % (len(page), page.encode())))
    for _ in range(3):
        answer = proxy.get(direct.url())
        equal(answer.status, 200, "status")
        true(answer.body.endswith(b"x" * 5000 + b"</body></html>"), "the original's rest")
        contains(answer.body, b"ex206 C-ICAP service", "page")
        contains(answer.body, b"<head></head><body>", "page")
    for size in SIZES:
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"binary of {size}")


def test_a_wrong_setting_stops_its_service_only(lab):
    """c-icap starts, its log says what is wrong, and the other services answer."""
    wrong = f"Service gzip {module_path(lab, 'gzip')}\ngzip.Level 77\ngzip.MinGain many\n"
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")], extra=wrong)
    contains(cicap.server_log(), "gzip.Level: Level must be from 1 to 9. The service is not started.", "c-icap's log")
    equal(cicap.options("gzip").status, 500, "OPTIONS of the service")


def test_chain_of_two_in_cicap(lab):
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so"), Module("ex206", "srv_ex206.so")])
    proxy = Retort(lab, services=[Service("one", cicap.uri("echo"), bypass=False),
                                  Service("two", cicap.uri("ex206"), bypass=False)])
    for size in SIZES:
        same_bytes(fetch(proxy, origin, size).body, origin.body(size), f"body of {size}")
    entry = proxy.log(1)[0]
    equal([v["service"] for v in entry["icap"]], ["one", "two"], "services in the log")
    cicap.wait_entries(2, transaction=entry["id"])


@memcheck
def test_reqmod_through_srv_echo(lab):
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), point="reqmod_precache", bypass=False)])
    for size in SIZES[:-1]:
        seen = echoed(proxy.fetch("POST", origin.url("/echo"), body=pattern(size)))
        equal(seen["length"], size, "length at the origin")
        same_bytes(seen["body"], pattern(min(size, 65536)), "body at the origin")
    equal(echoed(proxy.get(origin.url("/echo", a="b")))["arguments"], [["a", "b"]], "GET through REQMOD")
    true(all(entry.method == "REQMOD" for entry in cicap.entries()), "methods")


@heavy("moves 200 MB")
@seconds(120)
def test_large_body_through_a_streaming_service(lab):
    """c-icap's echo: 200 MB with a slow client, memory stays flat."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=False, keep="256KB", timeout="20s")])
    for turn in range(2):  # 200 and 204 in turn

        check = PatternCheck()
        with proxy.wire(timeout=30) as wire:
            wire.send(request("GET", origin.url("/bytes", n=100 << 20, cc="no-store", i=turn)))
            wire.response(sink=check)
        equal(check.length, 100 << 20, "length")
    true(proxy.memory_peak_kb() < 64 << 10, f"peak memory {proxy.memory_peak_kb()} kB")
