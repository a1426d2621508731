"""The cache's content, looked after with retortctl cache."""

import json
import os
import socket
import subprocess
import threading
import time
from email.utils import parsedate_to_datetime

from harness.checks import contains, equal, lacks, same_bytes, true
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import memcheck


def start(lab, **options):
    return Origin(lab), Retort(lab, **options)


def cache(proxy, *arguments, expect=0):
    """retortctl --json cache ...; what it answered, None when that is nothing."""
    text = proxy.ctl("cache", "--json", *arguments, expect=expect)
    return json.loads(text) if text.strip() else None


def listed(proxy, *arguments):
    return sorted(entry["url"] for entry in cache(proxy, "list", *arguments)["objects"])


def fill(origin, proxy, *paths, **arguments):
    urls = [origin.url(path, **{"cc": "max-age=60", **arguments}) for path in paths]
    for url in urls:
        proxy.get(url)
    return urls


def test_show(lab):
    origin, proxy = start(lab)
    url, = fill(origin, proxy, "/one")
    for _ in range(3):
        proxy.get(url)
    variants = cache(proxy, "show", url)["variants"]
    equal(len(variants), 1, "variants")
    seen = variants[0]
    equal((seen["url"], seen["state"], seen["status"], seen["hits"], seen["pinned"]),
          (url, "fresh", 200, 3, False), "url, state, status, hits, pinned")
    true(50 <= seen["fresh_for"] <= 60 and 0 <= seen["age"] <= 10, f"age and freshness in {seen}")
    contains(seen["head"], "HTTP/1.1 200", "head")
    contains(proxy.ctl("cache", "show", url), "fresh", "for people")
    proxy.ctl("cache", "show", origin.url("/none"), expect=1)
    proxy.ctl("cache", "show", "nonsense", expect=1)
    proxy.ctl("cache", "nonsense", expect=2)


@memcheck
def test_urls_are_normalised(lab):
    origin, proxy = start(lab)
    url, = fill(origin, proxy, "/a~b")
    other = url.replace("http://", "HTTP://").replace("a~b", "a%7eb")
    equal(len(cache(proxy, "show", other)["variants"]), 1, "variants")


@memcheck
def test_variants(lab):
    origin, proxy = start(lab)
    url = origin.url("/v", cc="max-age=60", vary="X-Kind")
    for kind in ("red", "blue"):
        proxy.get(url, [("X-Kind", kind)])
    variants = cache(proxy, "show", url)["variants"]
    equal(sorted(v["vary"] for v in variants), ["x-kind:blue\n", "x-kind:red\n"], "secondary keys")
    equal(cache(proxy, "delete", url)["purged"], 2, "purged")
    proxy.ctl("cache", "delete", url, expect=1)
    proxy.get(url, [("X-Kind", "red")])
    equal(origin.count("/v"), 3, "requests at the origin")


def test_list_filters_and_pages(lab):
    origin, proxy = start(lab)
    urls = fill(origin, proxy, *[f"/p{n}/{name}" for n in (1, 2) for name in ("a.css", "b.js")])
    equal(listed(proxy), sorted(urls), "all")
    equal(listed(proxy, "--prefix", origin.url("/p1/")), sorted(urls[:2]), "prefix")
    equal(listed(proxy, "--regex", r"\.css\?"), sorted([urls[0], urls[2]]), "regex")
    equal(listed(proxy, "--host", "127.0.0.1"), sorted(urls), "host")
    equal(listed(proxy, "--host", "other"), [], "another host")
    proxy.ctl("cache", "list", "--regex", "(", expect=1)
    seen, after = [], "0"
    for _ in range(10):
        page = cache(proxy, "list", "--limit", "1", "--after", after)
        seen += [entry["url"] for entry in page["objects"]]
        if page["next"] is None:
            break
        after = str(page["next"])
    equal(sorted(seen), sorted(urls), "page by page")


def test_purges(lab):
    origin, proxy = start(lab)
    urls = fill(origin, proxy, "/x/1", "/x/2", "/y/1", "/y/2", "/z")
    equal(cache(proxy, "purge", "--prefix", origin.url("/x/"))["purged"], 2, "by prefix")
    equal(cache(proxy, "purge", "--regex", "/y/1")["purged"], 1, "by regex")
    equal(listed(proxy), sorted(urls[3:]), "left")
    proxy.ctl("cache", "purge", expect=1)
    equal(cache(proxy, "purge", "--all")["purged"], 2, "everything")
    equal(proxy.status()["cache"]["objects"], 0, "objects")
    proxy.get(urls[0])
    equal(origin.count("/x/1"), 2, "requests at the origin")


def test_purge_by_tag(lab):
    origin, proxy = start(lab)
    one, = fill(origin, proxy, "/one", h=["Surrogate-Key: shop item-1"])
    two, = fill(origin, proxy, "/two", h=["Cache-Tag: shop,item-2"])
    three, = fill(origin, proxy, "/three")
    equal(listed(proxy, "--tag", "shop"), sorted([one, two]), "by tag")
    equal(cache(proxy, "purge", "--tag", "item")["purged"], 0, "part of a tag")
    equal(cache(proxy, "purge", "--tag", "item-2")["purged"], 1, "one tag")
    equal(listed(proxy), sorted([one, three]), "left")


def test_bans_hit_what_is_older(lab):
    origin, proxy = start(lab)
    old, other = fill(origin, proxy, "/old.css", "/other.js")
    proxy.ctl("cache", "ban", r"\.css")
    equal(cache(proxy, "show", old)["variants"][0]["state"], "banned", "state")
    equal(len(cache(proxy, "bans")["bans"]), 1, "bans")
    for url in (old, other, old, other):
        proxy.get(url)
    equal((origin.count("/old.css"), origin.count("/other.js")), (2, 1), "requests at the origin")
    proxy.ctl("cache", "ban", "(", expect=1)
    cache(proxy, "purge", "--all")
    equal(cache(proxy, "bans")["bans"], [], "bans without older objects")


def test_soft_purge_revalidates(lab):
    origin, proxy = start(lab)
    url, = fill(origin, proxy, "/soft", etag="e1")
    equal(cache(proxy, "delete", url, "--soft")["purged"], 1, "purged")
    equal(cache(proxy, "show", url)["variants"][0]["state"], "stale", "state")
    equal(proxy.get(url).status, 200, "status")
    equal(proxy.results("/soft", 2)[-1], "REVALIDATED", "result")
    equal(cache(proxy, "show", url)["variants"][0]["state"], "fresh", "state")


def test_soft_purge_keeps_what_errors_need(lab):
    origin, proxy = start(lab)
    url, = fill(origin, proxy, "/kept", cc="max-age=60, stale-if-error=600")
    before = proxy.get(url).body
    cache(proxy, "purge", "--all", "--soft")
    origin.stop()
    answer = proxy.get(url)
    same_bytes(answer.body, before, "the stale one")


def test_expire(lab):
    origin, proxy = start(lab)
    url, = fill(origin, proxy, "/e")
    cache(proxy, "expire", url, "3600")
    true(3590 <= cache(proxy, "show", url)["variants"][0]["fresh_for"] <= 3600, "an hour")
    cache(proxy, "expire", url, "0")
    proxy.get(url)
    equal(origin.count("/e"), 2, "requests at the origin")
    proxy.ctl("cache", "expire", url, "soon", expect=1)


def test_inject_and_get(lab):
    _, proxy = start(lab)
    url = "http://nowhere.invalid/made?a=1&b=%20"
    path = lab.write("made.txt", "made by hand\n")
    proxy.ctl("cache", "inject", url, path, "--header", "Content-Type: text/plain",
              "--header", "Surrogate-Key: made", "--lifetime", "600")
    answer = proxy.get(url)
    equal((answer.status, answer.text(), answer.header("Content-Type")), (200, "made by hand\n", "text/plain"), "answer")
    equal(proxy.results("nowhere", 1), ["HIT"], "result")
    message = proxy.ctl("cache", "get", url)
    contains(message, "Content-Type: text/plain", "head")
    # RFC 9110 6.6.1: "A recipient with a clock that receives a response message without a Date header field MUST record
    # the time it was received and append a corresponding Date header field to the message's header section"
    true(abs(time.time() - parsedate_to_datetime(answer.header("Date")).timestamp()) < 60, answer.header("Date"))
    true(message.endswith("\n\nmade by hand\n") or message.endswith("\r\n\r\nmade by hand\n"), "body")
    equal(listed(proxy, "--tag", "made"), [url], "by tag")
    proxy.ctl("cache", "inject", url + "2", path, expect=1)
    equal(len(cache(proxy, "list")["objects"]), 1, "objects")


def test_inject_nothing_that_was_not_read_whole(lab):
    """What can't be read to its end is no response, nor a list of URLs."""
    _, proxy = start(lab)
    made = proxy.run_ctl("cache", "inject", "http://nowhere.invalid/made", lab.directory, "--lifetime", "600")
    equal((made.returncode, "Is a directory" in made.stderr), (1, True), f"a directory: {made.stdout}{made.stderr}")
    long = lab.write("long", "")
    os.truncate(long, (64 << 20) + 1)
    made = proxy.run_ctl("cache", "inject", "http://nowhere.invalid/made", long, "--lifetime", "600")
    equal((made.returncode, "64 MB" in made.stderr), (1, True), f"a file that is too long: {made.stdout}{made.stderr}")
    equal(cache(proxy, "list")["objects"], [], "objects")
    for words in (("delete",), ("fetch", "--via", "%s:%d" % proxy.forward)):
        done = proxy.run_ctl("cache", *words, "@" + lab.directory)
        equal((done.returncode, "Is a directory" in done.stderr), (1, True), f"{words}: {done.stdout}{done.stderr}")
    done = proxy.run_ctl("-t", lab.directory, "status")
    equal((done.returncode, "Is a directory" in done.stderr), (1, True), f"a token file: {done.stdout}{done.stderr}")


def test_inject_something_large(lab):
    _, proxy = start(lab)
    path = lab.write("large", "0123456789abcdef" * 200000)
    proxy.ctl("cache", "inject", "http://nowhere.invalid/large", path, "--lifetime", "600")
    same_bytes(proxy.get("http://nowhere.invalid/large").body, b"0123456789abcdef" * 200000, "body")


@memcheck
def test_fetch_and_revalidate_via_a_listener(lab):
    origin, proxy = start(lab)
    urls = [origin.url(f"/f{n}", cc="max-age=60", etag="e") for n in range(3)]
    names = lab.write("urls", "# a list\n" + "\n".join(urls[1:]) + "\n")
    via = "%s:%d" % proxy.forward
    proxy.ctl("cache", "fetch", "--via", via, urls[0], "@" + names)
    equal(listed(proxy), sorted(urls), "preloaded")
    for url in urls:
        proxy.get(url)
    equal([origin.count(f"/f{n}") for n in range(3)], [1, 1, 1], "requests at the origin")
    proxy.ctl("cache", "revalidate", "--via", via, urls[0])
    equal(origin.count("/f0"), 2, "asked again")
    proxy.ctl("cache", "fetch", urls[0], expect=2)


def test_what_is_fetched_came_whole(lab):
    origin, proxy = start(lab, cache={"memory": "32MB"})
    via = "%s:%d" % proxy.forward
    whole = [origin.url("/bytes", n=70 << 20), origin.url("/chunked", n=100000, piece=30000), origin.url("/bytes", n=0)]
    done = proxy.ctl("cache", "fetch", "--via", via, *whole)
    equal(done.splitlines(), ["200 " + url for url in whole], "lines")
    for url in (origin.url("/abort", n=100000, after=50000), origin.url("/abort", n=100000, after=50000, chunked=1)):
        equal(proxy.ctl("cache", "fetch", "--via", via, url, expect=1), "", "said of a body that broke off")


def test_each_command_has_help(lab):
    origin, proxy = start(lab)
    for command in (["cache"], ["cache", "fetch"], ["icap"], ["services"], ["helpers"], ["adlist"]):
        contains(proxy.ctl(*command, "--help"), "Usage: retortctl", f"{command} --help")


def test_each_program_has_help(lab):
    for program in ("proxy/retort", "proxy/retortctl", "icap-services/retort-helperd", "icap-services/gray-helper",
                    "icap-services/text-helper", "icap-services/retort-service-test"):
        for option in ("-h", "--help"):
            done = subprocess.run([lab.built(program), option], capture_output=True, text=True, timeout=60, check=True)
            equal((done.stdout.lower().startswith("usage: "), done.stderr), (True, ""), f"{program} {option}")


def test_fetching_has_a_rate(lab):
    origin, proxy = start(lab)
    urls = [origin.url(f"/r{n}", cc="max-age=60") for n in range(6)]
    via = "%s:%d" % proxy.forward
    started = time.monotonic()
    proxy.ctl("cache", "fetch", "--via", via, "--rate", "10", *urls)
    true(time.monotonic() - started >= 0.5, f"{time.monotonic() - started:.2f} s for 6 requests, 10 a second")
    equal(listed(proxy), sorted(urls), "preloaded")
    proxy.ctl("cache", "fetch", "--via", via, "--rate", "0", *urls)
    for rate in ("-1", "much", "1x", ""):
        proxy.ctl("cache", "fetch", "--via", via, "--rate", rate, urls[0], expect=2)


def test_pinned_objects_stay(lab):
    origin, proxy = start(lab, cache={"memory": "1MB"})
    url, = fill(origin, proxy, "/pinned")
    loose, = fill(origin, proxy, "/loose")
    cache(proxy, "pin", url)
    for number in range(30):
        fill(origin, proxy, "/bytes", n=100000, many=number)
    left = listed(proxy)
    contains(left, url, "objects")
    lacks(left, loose, "objects")
    cache(proxy, "unpin", url)
    equal(cache(proxy, "show", url)["variants"][0]["pinned"], False, "pinned")
    for number in range(30):
        fill(origin, proxy, "/bytes", n=100000, more=number)
    lacks(listed(proxy), url, "objects")


def test_pages_say_which_methods_they_have(lab):
    proxy = Retort(lab)
    equal(proxy.admin("POST", "/cache/object?url=http://a/").status, 405, "POST")
    equal(proxy.admin("GET", "/cache/purge?all=yes").status, 405, "GET")
    equal(proxy.admin("GET", "/cache/nothing").status, 404, "no such page")
    equal(proxy.admin("GET", "/cache/object").status, 400, "no URL")
    equal(proxy.admin("PUT", "/cache/object?url=http://a/", body=b"nonsense").status, 400, "no response")


def test_header_lines_may_be_empty(lab):
    """RFC 9110, 5.5: a field value may be empty, and blanks around it are none of it."""
    proxy = Retort(lab)
    with socket.create_server(("127.0.0.1", 0)) as server:
        answers = []

        def answer():
            with server.accept()[0] as connection:
                answers.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        proxy.ctl("cache", "fetch", "--via", "127.0.0.1:%d" % server.getsockname()[1], "http://a.example/", "--header", "X-Blank: ",
                  "--header", "X-Empty:", "--header", "X-Full: x")
        thread.join(60)
    lines = answers[0].split(b"\r\n")
    for line in (b"X-Blank:", b"X-Empty:", b"X-Full: x"):
        contains(lines, line, "lines of the head")


def test_header_lines_are_one_field_each(lab):
    """RFC 9110, 5.5: "Field values containing CR, LF, or NUL characters are invalid and dangerous"."""
    origin, proxy = Origin(lab), Retort(lab)
    page, url, via = lab.write("page", "hello"), "http://a.example/x", f"127.0.0.1:{proxy.forward[1]}"
    for bad in ("X: a\r\nSet-Cookie: b=c", "X: a\nY: b", "X: a\r", "X: \x1b[2J", "X: \x7f", "X", ": a", "", " X: a", "X : a", "X\r\nY: b",
                "X(: a", "é: a", "Content-Length: 3", "transfer-encoding: chunked"):
        proxy.ctl("cache", "inject", url, page, "--lifetime", "60", "--header", bad, expect=2)
        for command in ("fetch", "revalidate"):
            proxy.ctl("cache", command, "--via", via, origin.url("/text", say="x"), "--header", bad, expect=2)
    for bad in ("200 OK\r\nSet-Cookie: a=b", "20", "2000", "abc", ""):
        proxy.ctl("cache", "inject", url, page, "--status", bad, expect=2)
    for bad in (url + "\r\nX: y", url + " HTTP/1.1\r\nHost: b\r\n\r\n", url + "\n", "http://a.example\r\nX: y/"):
        proxy.ctl("cache", "fetch", "--via", via, bad, expect=1)
        proxy.ctl("cache", "show", bad, expect=1)
    proxy.ctl("cache", "expire", url, "5 HTTP/1.1\r\nX: y", expect=1)
    equal(proxy.counter("client_requests"), 0, "requests through the listener")
    equal(json.loads(proxy.admin("GET", "/cache/objects").body)["objects"], [], "what is stored")
    proxy.ctl("cache", "inject", url, page, "--lifetime", "60", "--header", "X-Kind: a, é\tb", "--header", "Content-Type: text/plain")
    equal(proxy.get(url).header("Content-Type"), "text/plain", "what is good")


def test_injected_heads_are_checked(lab):
    """The admin plane does so itself, whoever asks."""
    proxy = Retort(lab)
    for head in (b"X: a\rb", b"X: a\0b", b"X y : a", b" X: a", b"X: a\n Y: b", b"X\x80: a", b"Content-Length: 4", b"Content-Length: 5\r\nContent-Length: 5",
                 b"Content-Length: x"):
        answer = proxy.admin("PUT", "/cache/object?url=http://a.example/x&lifetime=60", b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\nhello")
        equal(answer.status, 400, f"{head!r}")
    answer = proxy.admin("PUT", "/cache/object?url=http://a.example/x&lifetime=60", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    equal(answer.status, 200, "what is good")
    response = proxy.get("http://a.example/x")
    equal((response.text(), response.headers("Content-Length")), ("hello", ["5"]), "body and length")
