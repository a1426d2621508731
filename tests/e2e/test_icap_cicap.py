"""The ICAP client with c-icap and the services that come with it, and with modules that do something wrong there."""

import itertools

from harness.adaptation import account, fetch, whole_or_cut
from harness.checks import contains, equal, same_bytes, true, until
from harness.cicap import Cicap, Module
from harness.origin import Origin, echoed
from harness.raw_origin import PatternCheck, RawOrigin, pattern
from harness.retort import Retort, Service
from harness.services import module_path
from harness.suite import heavy, memcheck, seconds
from harness.wire import Wire, chunked, request
from test_inside import LONG, Texts

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


def bads(lab, texts, faults, point="respmod_precache", **options):
    """c-icap with the service of faults/bad.c once for each fault, and a class of URLs for each: /FAULT/short and /FAULT/long."""
    services = []
    for fault in faults:
        texts.bodies.update({f"/{fault}/short": b"One line.\n", f"/{fault}/long": LONG})
        cicap = Cicap(lab, [Module("bad", lab.built("tests/e2e/faults/.libs/srv_bad.so"), f"bad.Fault {fault}")], threads=4)
        services.append(Service(fault, cicap.uri("bad"), point=point, **{"timeout": "2s", "failures_down": 1000000, **options}))
    return Retort(lab, services=services, adapt={fault: [fault] for fault in faults}, url_classes={fault: {"path_regex": f"^/{fault}/"} for fault in faults})


@memcheck
def test_a_body_that_is_kept_too_late(lab):
    """The service has taken a part of the body, and then wants the body to pass as it is. Its host still has the preview, and nothing of what
    came behind it: no client may take what is left for the whole."""
    texts, faults = Texts(lab), ("keeps_soon", "keeps_part", "keeps_late")
    for options in ({}, {"preview": 0}, {"bypass": True}):
        proxy = bads(lab, texts, faults, **{"bypass": False, **options})
        for fault, how in itertools.product(faults, ("", "?chunked")):
            previewed = "preview" not in options
            for size in ("short", "long"):
                whole = previewed and (fault == "keeps_soon" or size == "short")
                for attempt in (1, 2):  # what is cut is not stored, nor what passed without the service
                    seen = whole_or_cut(proxy, texts.url(f"/{fault}/{size}{how}"))
                    what = f"{options}: {fault} {size}{how}, {attempt}"
                    if whole or (seen is not None and seen.status == 200):
                        same_bytes(seen.body, texts.bodies[f"/{fault}/{size}"], what)
                        equal(seen.header("X-Bad"), "value" if whole else None, f"{what}: the head of the service")
                    true(whole or seen is None or seen.status == (200 if "bypass" in options else 502), f"{what}: {seen and seen.status}")
        proxy.stop()


def test_a_body_of_another_length_than_it_set(lab):
    """RFC 9112 8: "A message body that uses a valid Content-Length is incomplete if the size of the message body received (in octets) is less
    than the value given by Content-Length." So the host does not bring it to its end: neither for the proxy, which counts itself, nor for a
    client of c-icap that does not."""
    texts, faults = Texts(lab), ("none", "long", "short", "empty", "endless")
    proxy = bads(lab, texts, faults, bypass=False)
    for fault, size, attempt in itertools.product(faults, ("short", "long"), (1, 2)):
        seen = whole_or_cut(proxy, texts.url(f"/{fault}/{size}"))
        if fault == "none":
            same_bytes(seen.body, texts.bodies[f"/none/{size}"].upper(), f"{size}, {attempt}")
            continue
        true(seen is None or seen.status == 502, f"{fault} {size}, {attempt}: {seen and (seen.status, len(seen.body))}")
    asked, answered = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    for cicap, fault in zip((one for one in lab.opened if isinstance(one, Cicap)), faults):
        with Wire((cicap.host, cicap.port)) as wire:
            wire.send(f"RESPMOD {cicap.uri('bad')} ICAP/1.0\r\nHost: a\r\nConnection: close\r\nEncapsulated: req-hdr=0, res-hdr={len(asked)}, "
                      f"res-body={len(asked + answered)}\r\n\r\n".encode() + asked + answered + chunked(b"One line.\n"))
            seen = wire.read_to_end()
        equal(seen.endswith(b"\r\n0\r\n\r\n"), fault == "none", f"{fault}: c-icap sends the last chunk: {seen[-80:]!r}")
