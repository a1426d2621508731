"""The four services on real input, through retort, c-icap and helperd; with real content from nginx.

With `run.py --host inside` the services run in the proxy instead, and what is about c-icap is skipped."""

import json
import os
import re
import subprocess
import threading
import time
import zlib

from harness import media
from harness.adaptation import in_parallel
from harness.checks import Skip, contains, equal, lacks, one_of, same_bytes, true, until
from harness.codings import DECODERS, decode
from harness.lab import DATA, SOURCE
from harness.nginx import Nginx
from harness.origin import Origin
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service
from harness.services import Services
from harness.suite import heavy, memcheck, seconds

TEXT = b'<meta name="retort-test" content="127.0.0.1">'


class Shared:
    """Services and an origin that all tests of this file use; each test has a proxy of its own."""

    def __init__(self, lab):
        self.services = Services(lab)
        self.nginx = Nginx(lab, lab.data("."), extra="add_header X-Origin nginx;")

    def proxy(self, lab, *names, **options):
        chosen = [s for s in self.services.for_proxy() if not names or s.name in names]
        chosen.sort(key=lambda s: ["adremover", "gray", "inject", "gzip"].index(s.name))
        return Retort(lab, services=chosen, **options)


def share(lab):
    return Shared(lab)


def data_files(folder, ending):
    try:
        return sorted(name for name in os.listdir(os.path.join(DATA, folder)) if name.endswith(ending))
    except FileNotFoundError:
        raise Skip("run tests/data/fetch.sh") from None


def twice(shared, proxy, path, headers=None):
    """The first answer is adapted, the second a hit with the same bytes and no ICAP transaction."""
    before = len(proxy.log_lines())
    url = path if path.startswith("http") else shared.nginx.url(path)
    first = proxy.get(url, headers)
    proxy.log(before + 1)
    asked = shared.services.count()
    second = proxy.get(url, headers)
    entries = proxy.log(before + 2)[before:]
    equal(first.status, 200, f"{path}: status")
    same_bytes(second.body, first.body, f"{path}: second body")
    equal([e["result"] for e in entries], ["MISS", "HIT"], f"{path}: results")
    responses = [v["service"] for v in entries[1]["icap"] if v["service"] != "adremover"]
    equal(responses, [], f"{path}: services asked about the hit")
    reqmods = sum(1 for v in entries[1]["icap"] if v["service"] == "adremover")
    true(shared.services.count() <= asked + reqmods, f"{path}: ICAP transactions for the hit")
    return first


# gray

JPEG_REENCODED = {"video-001.cmyk.jpeg", "video-001.rgb.jpeg"}  # no luminance to keep as it is


def test_photos_become_gray(lab, shared):
    proxy = shared.proxy(lab, "gray")
    for name in ("photos/china.jpg", "photos/flower.jpg"):
        body = twice(shared, proxy, "/" + name).body
        equal(media.jpeg_pixels(body), media.jpeg_pixels(lab.read_data(name), gray=True), f"{name}: pixels")
        true(len(body) < len(lab.read_data(name)), f"{name}: should be smaller")


@heavy("many images")
def test_every_jpeg(lab, shared):
    """Luminance is kept exactly, in every sub-sampling, baseline and progressive."""
    proxy = shared.proxy(lab, "gray")
    for name in data_files("jpeg", ".jpeg"):
        original = lab.read_data("jpeg/" + name)
        body = twice(shared, proxy, "/jpeg/" + name).body
        if "truncated" in name:
            one_of(body == original or media.is_gray_pnm(media.jpeg_pixels(body)), (True,), f"{name}: original or gray")
            continue
        pixels = media.jpeg_pixels(body)
        true(media.is_gray_pnm(pixels), f"{name}: gray")
        if name not in JPEG_REENCODED:
            equal(pixels, media.jpeg_pixels(original, gray=True), f"{name}: pixels")


def test_gifs_become_gray(lab, shared):
    """Frames, delays, transparency, loops and interlacing survive; only colour tables change."""
    proxy = shared.proxy(lab, "gray")
    names = data_files("gif", ".gif")
    if lab.valgrind:
        names = ["calendar_265x230.gif", "triangle-001.gif", "Newtons_cradle_animation_book_2.gif"]
    for name in names:
        original = lab.read_data("gif/" + name)
        body = twice(shared, proxy, "/gif/" + name).body
        before, after = media.Gif(original), media.Gif(body)
        true(after.is_gray(), f"{name}: gray")
        equal(after.shape(), before.shape(), f"{name}: everything but colours")
        for table, gray in zip(before.tables, after.tables):
            grays = media.grays_of(table)
            true(all(abs(a - b) <= 1 for a, b in zip(grays, gray[0::3])), f"{name}: luminance of the colours")


def test_gifs_decode(lab, shared):
    proxy = shared.proxy(lab, "gray")
    for name in ("calendar_265x230.gif", "video-001.interlaced.gif", "video-001.gif"):
        pixels = media.gif_pixels(proxy.get(shared.nginx.url("/gif/" + name)).body)
        true(media.is_gray_pnm(pixels), f"{name}: decoded image is gray")


PNG_ODD = re.compile(r"^(basn4|basn6|ft|bench)")


@heavy("many images")
@seconds(150)
def test_pngs_become_gray(lab, shared):
    """The suite's images, with and without alpha, 1 to 16 bits; those as well that do not get smaller by it."""
    proxy = Retort(lab, services=[s for s in shared.services.for_proxy(arguments="larger") if s.name == "gray"])
    for name in data_files("png", ".png"):
        body = twice(shared, proxy, "/png/" + name).body
        pixels = media.png_pixels(body)
        true(media.is_gray_pnm(pixels), f"{name}: gray")
        size = media.split_pnm(media.png_pixels(lab.read_data("png/" + name)) if pixels[:2] != b"P4" else b"P4 1 1 1\n")[1:3]
        if pixels[:2] != b"P4":
            equal(media.split_pnm(pixels)[1:3], size, f"{name}: size")


@memcheck
def test_what_is_no_image_passes(lab, shared):
    """A wrong type, a broken image, an empty one: the original, byte for byte."""
    bodies = {"/text.jpg": b"this is no image", "/empty.jpg": b"", "/cut.jpg": lab.read_data("photos/china.jpg")[:50000],
              "/zeros.gif": b"GIF89a" + b"\0" * 1000, "/cut.gif": lab.read_data("gif/example.gif")[:1000],
              "/cut.png": lab.read_data("png/benchRGB.png")[:2000], "/jfif-only.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF\0"}

    def answer(connection, seen):
        body = bodies[seen.target]
        kind = {"jpg": b"jpeg", "gif": b"gif", "png": b"png"}[seen.target[-3:]]
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: image/" + kind + b"\r\nCache-Control: max-age=60\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body) + body)
    origin = RawOrigin(lab, answer)
    proxy = shared.proxy(lab, "gray")
    for path, body in bodies.items():
        answer_seen = proxy.get(origin.url(path))
        equal(answer_seen.status, 200, f"{path}: status")
        if answer_seen.body != body:  # a decoder may have made sense of a cut image
            true(path.startswith("/cut"), f"{path}: body of {len(answer_seen.body)} bytes instead of {len(body)}")


def test_gray_leaves_other_answers_alone(lab, shared):
    origin = Origin(lab)
    proxy = shared.proxy(lab, "gray")
    url = origin.url("/bytes", n=5000, type="image/jpeg", status=404)
    same_bytes(proxy.get(url).body, origin.body(5000), "body of a 404")
    url = origin.url("/bytes", n=5000, type="image/jpeg", cc="no-transform")
    same_bytes(proxy.get(url).body, origin.body(5000), "body with no-transform")
    equal(proxy.fetch("HEAD", shared.nginx.url("/photos/china.jpg")).status, 200, "HEAD")


def test_unchanged_for_one_client_alone(lab, shared):
    proxy = shared.proxy(lab, "gray")
    url, want = shared.nginx.url("/photos/china.jpg"), {"Cache-Control": "no-transform"}
    original = proxy.get(url, want).body
    same_bytes(original, open(lab.data("photos/china.jpg"), "rb").read(), "what must not be transformed")
    true(len(proxy.get(url).body) < len(original), "the next client's photo is as the origin sent it")


def test_gray_head_fits_the_new_body(lab, shared):
    proxy = shared.proxy(lab, "gray")
    original = shared.nginx.get("/photos/china.jpg")
    answer = proxy.get(shared.nginx.url("/photos/china.jpg"))
    if answer.header("Content-Length"):
        equal(int(answer.header("Content-Length")), len(answer.body), "Content-Length")
    true(answer.header("ETag") != original.header("ETag"), "a strong ETag must not name two different bodies")
    equal(answer.header("Content-Type"), "image/jpeg", "Content-Type")


# gzip

def test_pages_are_compressed(lab, shared):
    proxy = shared.proxy(lab, "gzip")
    for path in ("html/management.html", "html/configuration.html", "lists/easylist.txt"):
        for coding in DECODERS:
            answer = twice(shared, proxy, "/" + path, {"Accept-Encoding": coding})
            equal(answer.header("Content-Encoding"), coding, f"{path}: Content-Encoding")
            contains((answer.header("Vary") or "").lower(), "accept-encoding", f"{path}: Vary")
            true((answer.header("ETag") or "W/").startswith("W/"), f"{path}: ETag {answer.header('ETag')}")
            same_bytes(decode(coding, answer.body), lab.read_data(path), f"{path}: decompressed")
            true(len(answer.body) * 2 < len(lab.read_data(path)), f"{path}: should be less than half")


def test_ranges_of_compressed_pages(lab, shared):
    """Parts of the stored variant are parts of what was compressed, and go to those only who accept it."""
    proxy = shared.proxy(lab, "gzip")
    url = shared.nginx.url("/html/management.html")
    original = lab.read_data("html/management.html")
    whole = proxy.get(url, {"Accept-Encoding": "br"}).body
    proxy.log(1)
    part = proxy.get(url, {"Accept-Encoding": "br", "Range": "bytes=100-299"})
    equal((part.status, part.header("Content-Encoding")), (206, "br"), "the range's status and coding")
    same_bytes(part.body, whole[100:300], "the range")
    equal(part.header("Content-Range"), f"bytes 100-299/{len(whole)}", "Content-Range")
    proxy.get(url)
    proxy.log(3)
    part = proxy.get(url, {"Range": "bytes=100-299"})
    equal((part.status, part.header("Content-Encoding")), (206, None), "the range's status and coding, not encoded")
    same_bytes(part.body, original[100:300], "the range of the page as it was")
    strong = proxy.get(url, {"Accept-Encoding": "br", "Range": "bytes=0-9", "If-Range": '"x"'})
    equal((strong.status, strong.body), (200, whole), "with another validator: the whole")


def test_gzip_is_for_those_who_accept_it(lab, shared):
    proxy = shared.proxy(lab, "gzip")
    path = "html/management.html"
    original = lab.read_data(path)
    for turn in range(2):
        for accepted, expected in (("gzip", "gzip"), (None, None), ("identity", None), ("gzip;q=0", None),
                                   ("br, gzip;q=0.5", "br"), ("deflate, GZIP", "gzip"), ("*", None)):
            answer = proxy.get(shared.nginx.url("/" + path), {"Accept-Encoding": accepted} if accepted else {})
            coding = answer.header("Content-Encoding")
            if accepted != "*":
                equal(coding, expected, f"turn {turn}: coding for {accepted}")
            same_bytes(decode(coding, answer.body), original, f"body for {accepted}")


def test_what_is_not_compressed(lab, shared):
    origin = Origin(lab)
    proxy = shared.proxy(lab, "gzip")
    accept = {"Accept-Encoding": "gzip"}
    cases = [("an image", {"type": "image/png"}), ("encoded already", {"type": "text/html", "h": ["Content-Encoding: br"]}),
             ("404", {"type": "text/html", "status": 404}), ("no-transform", {"type": "text/html", "cc": "no-transform"}),
             ("Vary on the encoding", {"type": "text/html", "vary": "Accept-Encoding"})]
    for what, arguments in cases:
        answer = proxy.get(origin.url("/bytes", n=5000, **arguments), accept)
        same_bytes(answer.body, origin.body(5000), what)
    answer = proxy.fetch("POST", origin.url("/bytes", n=5000, type="text/html"), accept, b"x")
    same_bytes(answer.body, origin.body(5000), "answer to a POST")


def test_gzip_streams(lab, shared):
    """What a page that drips has sent can be read by the client before the next piece is sent."""
    lines = [b"<p>line %d</p>\n" % number * (20 if number else 200) for number in range(6)]  # more than a preview first
    told = threading.Event()

    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n"
                        b"Cache-Control: no-store\r\n\r\n")
        for line in lines:
            told.clear()
            connection.send(b"%x\r\n%s\r\n" % (len(line), line))
            told.wait(20)
            time.sleep(0.03)  # a sender that pauses, not one of small pieces
        connection.send(b"0\r\n\r\n")
    origin = RawOrigin(lab, answer)
    proxy = shared.proxy(lab, "gzip")
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url()} HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        equal(wire.head().header("Content-Encoding"), "gzip", "Content-Encoding")
        inflate, seen, read = zlib.decompressobj(15 + 16), b"", b""
        for number in range(len(lines)):
            while read != b"".join(lines[:number + 1]):
                data = wire.read_some()
                true(data, f"the connection ended before line {number}")
                seen += data
                read = unchunked(seen, inflate.copy())
            told.set()


def unchunked(text, inflate):
    """As much of a compressed, chunked body as is there."""
    original = b""
    while b"\r\n" in text:
        line, _, text = text.partition(b"\r\n")
        size = int(line, 16)
        original += inflate.decompress(text[:size])
        text = text[size + 2:]
    return original


# inject

def test_text_is_in_place(lab, shared):
    proxy = shared.proxy(lab, "inject")
    for path in ("html/management.html", "html/configuration.html", "html/lua.html"):
        original = lab.read_data(path)
        body = twice(shared, proxy, "/" + path).body
        at = body.find(TEXT)
        true(at >= 0, f"{path}: no text in {len(body)} bytes")
        same_bytes(body[:at] + body[at + len(TEXT):], original, f"{path}: the rest")
        true(re.match(rb"\s*</head", body[at + len(TEXT):], re.I), f"{path}: before </head>, but {body[at:at + 90]!r}")


@memcheck
def test_place_is_found_wherever_pieces_break(lab, shared):
    page = b"<!doctype html><html><head><title>a</title><!-- </head> --><script>'</he'</script></HEAD ><body></head>b</body></html>"
    expected = page.replace(b"</HEAD >", TEXT + b"</HEAD >")

    def answer(connection, seen):
        piece = int(seen.target[1:])
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\n")
        for start in range(0, len(page), piece):
            data = page[start:start + piece]
            connection.send(b"%x\r\n%s\r\n" % (len(data), data))
        connection.send(b"0\r\n\r\n")
    origin = RawOrigin(lab, answer)
    proxy = shared.proxy(lab, "inject")
    for piece in (1, 2, 3, 5, 7, 50, 1000):
        same_bytes(proxy.get(origin.url(f"/{piece}")).body, expected, f"pieces of {piece}")


def test_what_is_no_page_passes(lab, shared):
    """Pages whose tags are left out have a head in browsers; what a script asks for is no page."""
    origin = Origin(lab)
    proxy = shared.proxy(lab, "inject")
    script = {"Sec-Fetch-Dest": "empty", "Accept": "*/*"}
    for size in (0, 1, 5000, 300000):
        url = origin.url("/bytes", n=size, type="text/html")
        same_bytes(proxy.get(url, headers=script).body, origin.body(size), f"body of {size}")
    same_bytes(proxy.get(origin.url("/bytes", n=5000, type="text/plain")).body, origin.body(5000), "plain text")


def test_inject_streams(lab, shared):
    """The client has the page's beginning before its end was sent."""
    ready = threading.Event()

    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n")
        first = b"<html><head></head><body>" + b"p" * 100000
        connection.send(b"%x\r\n%s\r\n" % (len(first), first))
        ready.wait(20)
        connection.send(b"4\r\nlast\r\n0\r\n\r\n")
    origin = RawOrigin(lab, answer)
    proxy = shared.proxy(lab, "inject")
    with proxy.wire() as wire:
        wire.send(f"GET {origin.url()} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        wire.head()
        seen = b""
        while len(seen) < 50000:
            data = wire.read_some()
            true(data, "the connection ended")
            seen += data
        contains(seen, TEXT, "what came before the page's end")
        ready.set()
        true(wire.read_some(), "the rest")


def test_inject_per_client_is_not_shared(lab):
    services = Services(lab, scope="client", names=("inject",))
    nginx = Nginx(lab, lab.data("."))
    proxy = Retort(lab, services=services.for_proxy())
    for _ in range(2):
        answer = proxy.get(nginx.url("/html/management.html"))
        contains(answer.body, TEXT, "page")
        contains(answer.header("Cache-Control"), "private", "Cache-Control")
    lacks(proxy.results("/html/management.html", 2), "HIT", "results")


# adremover

# Kinds of ads: two URLs of each, fields of the request, type and size of what is given instead.
KINDS = [
    (("/ads/one.gif", "/x/banner/y/img/1.png"), {}, "image/gif", 43),
    (("/ads/two.js", "/ads/three.js?x"), {}, "text/javascript", 0),
    (("/ads/a.css", "/ads/b.css"), {}, "text/css", 0),
    (("/ads/frame", "/ads/frame2"), {"Sec-Fetch-Dest": "iframe"}, "text/html", None),
    (("/ads/film.mp4", "/ads/film.webm"), {}, "video/mp4", None),
    (("/ads/call", "/ads/call2"), {"Sec-Fetch-Dest": "empty"}, "text/plain", 0),
]


@memcheck
def test_ads_are_replaced_and_then_hits(lab, shared):
    """All ads of a kind are one object: the first is a miss, every other a hit."""
    proxy = shared.proxy(lab, "adremover")
    for paths, fields, kind, size in KINDS:
        answers = [proxy.get(shared.nginx.url(path), fields) for path in paths]
        equal([a.status for a in answers], [200, 200], f"{paths}: statuses")
        equal({a.header("Content-Type") for a in answers}, {kind}, f"{paths}: types")
        equal(answers[0].body, answers[1].body, f"{paths}: bodies")
        equal(len(answers[0].body), len(answers[0].body) if size is None else size, f"{paths}: length")
    entries = proxy.log(2 * len(KINDS))
    equal([e["result"] for e in entries], ["MISS", "HIT"] * len(KINDS), "results")
    equal([[v["verdict"] for v in e["icap"]] for e in entries], [["MODIFIED"]] * len(entries), "verdicts")
    blank = media.Gif(proxy.get(shared.nginx.url("/pic-ad-300x250.jpg")).body)
    equal((blank.width, blank.height, len(blank.frames)), (1, 1, 1), "the blank image's shape")
    with open(shared.nginx.access_log, encoding="utf-8") as log:
        lacks(log.read(), "/ads/one.gif", "nginx's access log")


def test_ads_are_answered_at_once(lab, shared):
    """With target=answer the service gives the response itself, whatever the proxy serves."""
    proxy = Retort(lab, services=[s for s in shared.services.for_proxy(arguments="target=answer") if s.name == "adremover"])
    for paths, fields, kind, size in KINDS:
        for path in paths:
            answer = proxy.get(shared.nginx.url(path), fields)
            equal((answer.status, answer.header("Content-Type")), (200, kind), f"{path}: status and type")
            equal(len(answer.body), len(answer.body) if size is None else size, f"{path}: length")
    equal([[v["verdict"] for v in e["icap"]] for e in proxy.log(2 * len(KINDS))],
          [["SATISFIED"]] * 2 * len(KINDS), "verdicts")


def test_own_picture(lab, shared):
    """The operator's picture in place of ads: by a URL that is asked for, or as the answer itself."""
    path, kind = "gif/video-001.gif", "image/gif"
    for options in (f"adremover.Blank {shared.nginx.url('/' + path)}",
                    f"adremover.Target answer\nadremover.Picture {lab.data(path)}"):
        services = Services(lab, adremover=options, names=("adremover",))
        proxy = Retort(lab, services=services.for_proxy())
        for url in ("http://ads.example/x.gif", "http://ads.example/y.png"):
            answer = proxy.get(url)
            equal((answer.status, answer.header("Content-Type")), (200, kind), f"{options}: {url}")
            same_bytes(answer.body, lab.read_data(path), f"{options}: {url}")
        equal(proxy.get("http://ads.example/x.js").body, b"", f"{options}: a script")
    equal([e["result"] for e in proxy.log(3)], ["SERVICE"] * 3, "answers are not stored")


def test_parameters_are_taken_off(lab, shared):
    services = Services(lab, ads="||127.0.0.1^$removeparam=utm_id\n", names=("adremover",))
    proxy = Retort(lab, services=services.for_proxy())
    for url in ("/html/management.html?utm_id=1", "/html/management.html?utm_id=2"):
        equal(proxy.get(shared.nginx.url(url), {"Accept": "text/html"}).status, 200, url)
    equal([e["result"] for e in proxy.log(2)], ["MISS", "HIT"], "one object without the parameter")
    with open(shared.nginx.access_log, encoding="utf-8") as log:
        lacks(log.read(), "utm_id", "nginx's access log")


def test_ads_by_c_icap_client(lab, shared):
    """c-icap's own client, for both targets."""
    got = lab.path("from-c-icap-client")
    for service, wanted in (("adremover?target=answer", b"GIF89a"), ("adremover", b"")):
        command = ["c-icap-client", "-i", "127.0.0.1", "-p", str(shared.services.cicap.port), "-s", service, "-method",
                   "GET", "-req", "http://ads.example/x.gif", "-o", got, "-v"]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        equal(done.returncode, 0, f"{service}: {done.stderr[-300:]}")
        with open(got, "rb") as file:
            equal(file.read()[:6], wanted, f"{service}: body")
        said = done.stdout.decode() + done.stderr.decode()
        contains(said, "retort.internal/blank.gif" if service == "adremover" else "image/gif", f"{service}: output")
        os.unlink(got)


def test_adlist(lab):
    """retortctl tells what lists do with URLs, without a proxy."""
    rules = lab.write("list.txt", "! a list\n||ads.example^$image\n@@/good/\n/pix$third-party\n##.ad\n||x^$csp=a\n"
                                  "||page.example^$removeparam=utm_id\n")
    def run(*arguments, text=""):
        return subprocess.run([lab.built("proxy/retortctl"), "adlist", *arguments], input=text, capture_output=True,
                              text=True, timeout=60, check=False)
    urls = "http://ads.example/a.gif\nhttp://ads.example/good/b.gif\nhttp://o.example/pix.gif\nnonsense\n"
    done = run("test", rules, text=urls)
    equal((done.returncode, done.stdout), (0, "block ||ads.example^$image\nallow @@/good/\nnone\nnone\n"), "by ending")
    done = run("test", rules, "--type", "script", "--from", "http://news.example/x", text=urls)
    equal(done.stdout, "none\nnone\nblock /pix$third-party\nnone\n", "a script from a page")
    done = run("test", rules, text="http://page.example/?utm_id=1\thttp://page.example/\tdocument\r\n")
    equal(done.stdout, "strip ||page.example^$removeparam=utm_id\n", "page and type in the line")
    done = run("test", rules, "--time", text=urls)
    true(all(re.fullmatch(r"(block|allow|none).*\t\d+", line) for line in done.stdout.splitlines()), done.stdout)
    contains(done.stderr, "4 URLs, 1 blocked", "the average")
    done = run("test", rules, "--json", text="http://ads.example/a.gif\nhttp://x.example/\u00e9\nnonsense\n")
    equal(json.loads(done.stdout), [{"url": "http://ads.example/a.gif", "decision": "block", "rule": "||ads.example^$image"},
                                    {"url": "http://x.example/\u00e9", "decision": "none"}, {"url": "nonsense", "decision": "none"}],
          "JSON of test")
    counts = json.loads(run("check", rules, "--json").stdout)
    equal((counts["rules"], counts["exceptions"], counts["unsupported_options"]), (4, 1, {"csp": 1}), "JSON of check")
    strange = lab.write("-j.txt", "||dash.example^\n")
    done = subprocess.run([lab.built("proxy/retortctl"), "adlist", "check", "--", os.path.basename(strange)], capture_output=True,
                          text=True, timeout=60, check=False, cwd=os.path.dirname(strange))
    contains(done.stdout, "1 rule in use", f"a file whose name begins like an option {done.stderr}")
    done = run("check", rules)
    true(re.search(r"^ *4 rules in use$", done.stdout, re.M), done.stdout)
    true(re.search(r"^ *1 csp$", done.stdout, re.M), done.stdout)
    for wrong in (("test",), ("sing", rules), ("test", rules, "--type", "song"), ("test", rules, "--from", "nowhere")):
        equal(run(*wrong).returncode, 2, f"{wrong}: status")
    done = run("test", rules + ".missing")
    equal(done.returncode, 1, "a list that is not there")
    contains(done.stderr, "list.txt.missing: No such file", "its message")


def test_lists_are_reloaded_under_load(lab, shared):
    """New lists without a failed request: before, after and while c-icap reads its configuration again."""
    services = Services(lab, children=2, names=("adremover",))
    proxy = Retort(lab, services=services.for_proxy(bypass=False), workers=2)
    read_again = proxy.reload if services.outside is None else services.cicap.reconfigure
    url, stop, wrong, seen = shared.nginx.url("/gif/video-001.gif"), threading.Event(), [], []
    lab.write("ads.txt", "||ads.example^\n")

    def run(number):
        while not stop.is_set():
            answer = proxy.get(url)
            if answer.status != 200 or answer.body not in (picture, blank):
                wrong.append((number, answer.status, answer.body[:80]))
            seen.append(answer.body == blank)
    picture, blank = lab.read_data("gif/video-001.gif"), proxy.get("http://retort.internal/blank.gif").body
    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(seen) > 20, 30 * lab.patience, "requests before")
    lab.write("ads.txt", "||127.0.0.1^*/gif/\n")
    read_again()
    until(lambda: any(seen) or wrong, 30 * lab.patience, "the new list")
    begun = len(seen)
    until(lambda: len(seen) > begun + 20, 30 * lab.patience, "requests after")
    stop.set()
    for thread in threads:
        thread.join()
    equal(wrong[:3], [], "requests that went wrong")
    equal(proxy.get(url).body, blank, "the new list is in force")


def test_lists_that_are_reloaded_again(lab):
    """c-icap ignores that it is to reload as long as an old child has a connection: the proxy closes those of all of its services when the
    first answer tells that the lists are others (ISTag), so that the next reload counts too."""
    services, origin = Services(lab, children=2, names=("adremover", "gzip")), Origin(lab)
    true(services.cicap, "c-icap")
    proxy = Retort(lab, services=services.for_proxy(bypass=False, idle_timeout="10m"), workers=2)
    body = lambda path: proxy.get(origin.url(path, say="here", cc="no-store")).body
    for turn in (1, 2):
        in_parallel(8, lambda: proxy.get(origin.url("/bytes", ms=100, n=2000, cc="no-store")))  # they leave idle connections
        before = services.cicap.children()
        lab.write("ads.txt", f"||127.0.0.1^*/text{turn}\n")
        services.cicap.reconfigure()
        until(lambda turn=turn: body(f"/text{turn}") != b"here", 20 * lab.patience, f"list {turn} is in force")
        until(lambda before=before: not set(before) & set(services.cicap.children()), 20 * lab.patience, f"the children of list {turn - 1} go")
    lacks(services.cicap.server_log(), "Ignoring reconfigure request", "what c-icap says")


def test_orders_to_reload_all_count(lab):
    """c-icap ignores an order while an idle connection keeps an old child: the script that comes with Retort gives it again."""
    services, origin = Services(lab, children=2, names=("adremover",)), Origin(lab)
    true(services.cicap, "c-icap")
    proxy = Retort(lab, services=services.for_proxy(bypass=False, idle_timeout="3s"))
    script = os.path.join(SOURCE, "conf/reload-c-icap.sh")
    reload = lambda directory=services.cicap.directory: subprocess.run(
        ["sh", script, directory], capture_output=True, text=True, check=False, timeout=60 * lab.patience,
        env={**os.environ, "RELOAD_SECONDS": str(40 * lab.patience)})
    body = lambda path: proxy.get(origin.url(path, say="here", cc="no-store")).body
    in_parallel(8, lambda: proxy.get(origin.url("/bytes", ms=100, n=2000, cc="no-store")))  # they leave idle connections
    for turn in (1, 2):
        lab.write("ads.txt", f"||127.0.0.1^*/text{turn}\n")
        done = reload()
        equal((done.returncode, done.stderr), (0, ""), f"reload {turn}")
    contains(services.cicap.server_log(), "Ignoring reconfigure request", "the second order was ignored at first")
    until(lambda: body("/text2") != b"here", 10 * lab.patience, "the second list is in force")
    done = reload(lab.path("nowhere"))
    equal(done.returncode, 1, "without c-icap")
    contains(done.stderr, "start c-icap", "what is said")


def test_skipped_rules_are_told(lab, shared):
    """What lists ask for and adremover can't do stands in `retortctl services`, after a reload too."""
    path = lab.write("skip.txt", "||ads.example^\na$csp=x\nb$websocket-foo\nc$image,websocket-foo=1\n|\n")
    services = Services(lab, names=("adremover",), ads=path, adremover="adremover.OptionsTTL 1")
    proxy = Retort(lab, services=services.for_proxy())
    read_again = proxy.reload if services.outside is None else services.cicap.reconfigure
    url = shared.nginx.url("/photos/china.jpg")

    def notice():
        equal(proxy.get(url).status, 200, "status")
        found = re.search(r"^ +notice: (.*)$", proxy.ctl("services"), re.M)
        return found and found[1]
    until(lambda: notice() == "skipped for options that are not supported: 3 rules (websocket-foo 2, csp 1)"
          "; bad rules: 1", 10 * lab.patience, "what is skipped")
    lab.write("skip.txt", "||ads.example^\nb$websocket-foo\nc$permissions=x\n")
    read_again()
    until(lambda: notice() == "skipped for options that are not supported: 2 rules (permissions 1, websocket-foo 1)",
          20 * lab.patience, "what is skipped of the new list")


def test_what_is_no_ad_passes(lab, shared):
    proxy = shared.proxy(lab, "adremover")
    same_bytes(proxy.get(shared.nginx.url("/photos/china.jpg")).body, lab.read_data("photos/china.jpg"), "photo")
    equal(proxy.get(shared.nginx.url("/ads/allowed/x.gif")).status, 404, "an exception goes to the origin")
    equal([[v["verdict"] for v in e["icap"]] for e in proxy.log(2)], [["UNMODIFIED"]] * 2, "verdicts")


def test_ad_host(lab, shared):
    """A host that does not exist: nobody looks its name up."""
    proxy = shared.proxy(lab, "adremover")
    for url in ("http://ads.example/x.gif", "http://www.ads.example/banner?id=1"):
        equal(proxy.get(url).status, 200, url)
    one_of(proxy.get("http://noads.example/").status, (502, 503, 504), "another host")


def test_blank_image_by_its_url(lab, shared):
    proxy = shared.proxy(lab, "adremover")
    answer = proxy.get("http://retort.internal/blank.gif")
    equal((answer.status, answer.header("Content-Type")), (200, "image/gif"), "status and type")
    one_of(proxy.get("http://retort.internal/nothing").status, (404,), "another internal URL")


@heavy("loads EasyList")
def test_easylist_and_real_urls(lab):
    """EasyList as it is: what it blocks on other sites' pages is replaced without a look at the network."""
    services = Services(lab, ads=lab.data("lists/easylist.txt"), names=("adremover",))
    proxy = Retort(lab, services=services.for_proxy(), origin={"dns_timeout": "100ms", "connect_timeout": "100ms"})
    for url in ("http://apopgo.com/x", "http://ad.doubleclick.net/ad/site;sz=1x1", "http://www.007-gateway.com/a"):
        answer = proxy.get(url, {"Referer": "http://news.example/", "Accept": "image/webp,*/*"})
        equal((answer.status, answer.header("Content-Type")), (200, "image/gif"), url)


# All together

@memcheck
def test_the_whole_house(lab, shared):
    """A page, its images and its ads with all four services in place."""
    proxy = shared.proxy(lab)
    accept = {"Accept-Encoding": "gzip"}
    page = twice(shared, proxy, "/html/management.html", accept)
    equal(page.header("Content-Encoding"), "gzip", "Content-Encoding")
    contains(decode("gzip", page.body), TEXT, "page")
    photo = twice(shared, proxy, "/photos/flower.jpg", accept)
    equal(media.jpeg_pixels(photo.body), media.jpeg_pixels(lab.read_data("photos/flower.jpg"), gray=True), "photo")
    for path in ("/ads/a.gif", "/ads/b.gif"):
        equal(proxy.get(shared.nginx.url(path), accept).header("Content-Type"), "image/gif", path)
    entry = proxy.entries("/html/management.html")[0]
    equal([v["service"] for v in entry["icap"]], ["adremover", "gray", "inject", "gzip"], "services in the log")
    found = shared.services.cicap.wait_entries(4, transaction=entry["id"])
    equal(len(found), 4, "c-icap's entries with the page's id")


def test_many_images_at_once(lab, shared):
    """More images than helpers and queue places: each client gets a whole image, gray or not."""
    proxy = shared.proxy(lab, "gray", workers=2)
    names = ["photos/china.jpg", "photos/flower.jpg", "jpeg/video-001.jpeg", "gif/video-001.gif", "png/benchRGB.png"]
    wrong, grays = [], [0]

    def run(number):
        for turn in range(6):
            name = names[(number + turn) % len(names)]
            body = proxy.get(shared.nginx.url(f"/{name}?n={number}.{turn}")).body
            if body == lab.read_data(name):
                continue
            decode = {"jpg": media.jpeg_pixels, "jpeg": media.jpeg_pixels, "gif": media.gif_pixels, "png": media.png_pixels}
            if media.is_gray_pnm(decode[name.rsplit(".", 1)[1]](body)):
                grays[0] += 1
            else:
                wrong.append(name)
    threads = [threading.Thread(target=run, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(wrong, [], "images that are neither gray nor the original")
    true(grays[0] >= 30, f"only {grays[0]} of 72 became gray")
