"""Squid as a foreign ICAP client: the same adapted bytes from our services as through Retort."""

import shutil

from harness import media
from harness.checks import Skip, contains, equal, same_bytes, true
from harness.codings import DECODERS, decode
from harness.nginx import Nginx
from harness.retort import Retort
from harness.services import Services
from harness.squid import Squid
from harness.suite import heavy


def share(lab):
    if not shutil.which("squid"):
        raise Skip("Debian package squid-openssl")
    return Services(lab, adremover="adremover.Remember 60m")


def three(lab, services, names):
    """nginx, Squid and Retort with the same services."""
    origin = Nginx(lab, lab.data("."))
    chosen = [s for s in services.for_proxy() if s.name in names]
    squid = Squid(lab, [(s.options["point"], s.options["uri"]) for s in chosen])
    proxy = Retort(lab, services=chosen)
    return origin, squid, proxy


def same_from_both(origin, squid, proxy, path, headers=None):
    """Fetches through both; they must give the same status and bytes."""
    ours, theirs = proxy.get(origin.url(path), headers), squid.get(origin.url(path), headers)
    equal((ours.status, theirs.status), (200, 200), f"{path}: statuses")
    same_bytes(ours.body, theirs.body, f"{path}: body through Retort against Squid's")
    equal(ours.header("Content-Encoding"), theirs.header("Content-Encoding"), f"{path}: Content-Encoding")
    return theirs


@heavy("Squid's own time limits")
def test_gray(lab, services):
    """Images of less than 64 KB: Squid 5.7 stalls with larger ones when a service wants the whole first."""
    origin, squid, proxy = three(lab, services, ["gray"])
    for path in ("/jpeg/video-001.jpeg", "/jpeg/video-001.progressive.jpeg", "/jpeg/video-001.q50.420.jpeg"):
        body = same_from_both(origin, squid, proxy, path).body
        equal(media.jpeg_pixels(body), media.jpeg_pixels(origin.get(path).body, gray=True), f"{path}: pixels")
    for path in ("/gif/video-001.gif", "/gif/calendar_265x230.gif", "/gif/triangle-001.gif"):
        body = same_from_both(origin, squid, proxy, path).body
        true(media.Gif(body).is_gray(), f"{path} is gray")
    body = same_from_both(origin, squid, proxy, "/png/basn6a16.png").body
    true(media.is_gray_pnm(media.png_pixels(body)), "the PNG is gray")


@heavy("Squid's own time limits")
def test_gzip(lab, services):
    origin, squid, proxy = three(lab, services, ["gzip"])
    for path in ("/html/management.html", "/html/configuration.html"):
        for coding in DECODERS:
            for client in (proxy, squid):  # the streams differ: they are flushed where a sender paused
                answer = client.get(origin.url(path), {"Accept-Encoding": coding})
                equal((answer.status, answer.header("Content-Encoding")), (200, coding), f"{path}: status and coding")
                same_bytes(decode(coding, answer.body), origin.get(path).body, path)


@heavy("Squid's own time limits")
def test_inject(lab, services):
    origin, squid, proxy = three(lab, services, ["inject"])
    for path in ("/html/management.html", "/html/configuration.html", "/html/lua.html"):
        contains(same_from_both(origin, squid, proxy, path).body, b'content="127.0.0.1">', path)


@heavy("Squid's own time limits")
def test_adremover(lab, services):
    origin, _, proxy = three(lab, services, ["adremover"])
    url = origin.url("/ads/x.gif")
    squid = Squid(lab, [("reqmod_precache", services.cicap.uri("adremover"))])
    blank = proxy.get(url)
    equal(blank.status, 200, "status through Retort")
    # Squid follows the rewritten URL to a host that only Retort serves: it must not reach the ad.
    theirs = squid.get(url)
    true(theirs.status >= 500, f"Squid should look for the internal host, status {theirs.status}")
    contains(theirs.text(), "retort.internal", "Squid's error page")


@heavy("Squid's own time limits")
def test_adremover_answers(lab, services):
    """Answered at once, an ad needs nothing of Squid; and what is no ad goes on as it came."""
    origin = Nginx(lab, lab.data("."))
    squid = Squid(lab, [("reqmod_precache", services.cicap.uri("adremover") + "?target=answer")])
    for path, kind, start in (("/ads/x.gif", "image/gif", b"GIF89a"), ("/ads/x.js", "text/javascript", b""),
                              ("/ads/y.gif", "image/gif", b"GIF89a")):
        answer = squid.get(origin.url(path))
        equal((answer.status, answer.header("Content-Type")), (200, kind), f"{path}: status and type")
        equal(answer.body[:6], start, f"{path}: body")
    same_bytes(squid.get(origin.url("/gif/triangle-001.gif")).body, lab.read_data("gif/triangle-001.gif"), "no ad")
