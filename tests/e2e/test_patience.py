"""A page that asks for patience while a service has not decided about a download, and what comes of it."""

import re
import socket
import threading

from harness.checks import contains, equal, lacks, same_bytes, true, until
from harness.icap import IcapServer, append
from harness.raw_origin import RawOrigin, pattern
from harness.retort import Retort, Service
from harness.scanner import InsideScanner, Scanner, clean, dies, infected
from harness.suite import memcheck
from harness.wire import request

SIZE = 200000
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def file(size=SIZE, fields=b"Content-Type: application/zip\r\n"):
    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: %d\r\n" % size + fields + b"\r\n" + pattern(size))
    return answer


class Download:
    """A service that has not decided, and what a browser sees meanwhile."""

    def __init__(self, lab, answer=None, path="/files/some%20dir/file-1.zip?v=2", *, extra="", bypass=False, workers=1, after="50ms",
                 before=(), **options):
        self.scanner = Scanner()
        self.origin = RawOrigin(lab, answer or file())
        icaps = [IcapServer(lab, behave) for behave in (*before, self.scanner)]
        services = [Service(f"s{i}", icap.uri(), bypass=bypass, timeout="60s") for i, icap in enumerate(icaps)]
        services[-1].options.update(patience_after=after, **options)
        self.proxy = Retort(lab, services=services, extra=extra, workers=workers, reverse={"/": self.origin.url("")})
        self.path = path

    def page(self, headers=None):
        """The first answer: the page. Returns where it goes on."""
        answer = self.proxy.get(self.origin.url(self.path), headers or BROWSER)
        return self.where(answer)

    def where(self, answer):
        equal((answer.status, answer.header("Cache-Control")), (200, "no-store"), "status, Cache-Control")
        contains(answer.header("Content-Type"), "text/html", "Content-Type")
        seconds, _, url = answer.header("Refresh").partition("; url=")
        true(int(seconds) > 0, "Refresh")
        contains(answer.text(), f'content="{seconds}; url={url}"', "page")
        true(re.fullmatch(r"/\.retort-patience/[0-9a-f]{32}/[\w.-]+", url), f"where it goes on: {url}")
        return url

    def ask(self, url, seconds=30):
        """Refreshes until there is something else than the page."""
        def look():
            answer = self.proxy.get(self.origin.url(url), BROWSER)
            return answer if answer.header("Refresh") is None else None
        return until(look, seconds * self.proxy.lab.patience, "the end of patience")


@memcheck
def test_the_page_becomes_the_download(lab):
    """Forward and reverse, and at whatever worker the page asks again."""
    download = Download(lab, workers=2)
    url = download.page()
    true(url.endswith("/file-1.zip"), f"{url} has the file's name")
    true(download.scanner.read.wait(60), "the service reads on")
    for _ in range(6):
        equal(download.where(download.proxy.get(download.origin.url(url), BROWSER)), url, "the page again")
    until(lambda: "100 % (200000 of 200000 bytes)" in download.proxy.get(download.origin.url(url)).text(), 30 * lab.patience, "progress")
    true(not download.scanner.decided.is_set(), "no verdict yet")
    download.scanner.decide(clean)
    answer = download.ask(url)
    same_bytes(answer.body, pattern(SIZE), "body")
    equal([answer.header(name) for name in ("Content-Type", "ETag", "Content-Length")], ["application/zip", '"e"', str(SIZE)], "its head")
    for _ in range(6):
        same_bytes(download.proxy.get(url, host=download.origin.authority).body, pattern(SIZE), "once more, through the other listener")
    equal(len(download.origin.requests), 1, "requests at the origin")
    equal([download.proxy.counter(name) for name in ("patience_pages", "patience_delivered", "patience_failures")], [1, 7, 0], "counters")


class DownloadInside(Download):
    """The same with a service inside the proxy."""

    def __init__(self, lab, runs):  # pylint: disable=super-init-not-called
        self.scanner = InsideScanner(lab, runs=runs, patience_after="50ms")
        self.origin = RawOrigin(lab, file())
        self.proxy = Retort(lab, services=[self.scanner.service], workers=2)
        self.path = "/file-1.zip"


def test_services_inside(lab):
    """In a worker, a thread and a process: progress and the file, or what the service says instead."""
    for runs in ("worker", "thread", "process"):
        download = DownloadInside(lab, runs)
        url = download.page()
        until(lambda download=download, url=url: "100 % (200000 of 200000 bytes)" in download.proxy.get(download.origin.url(url)).text(),
              30 * lab.patience, f"{runs}: progress")
        download.scanner.decide("clean")
        answer = download.ask(url)
        equal((answer.status, answer.header("Content-Type")), (200, "application/zip"), f"{runs}: status")
        same_bytes(answer.body, pattern(SIZE), f"{runs}: body")
        download.path = "/file-2.zip"
        url = download.page()
        download.scanner.decide("infected")
        answer = download.ask(url)
        equal((answer.status, answer.body), (403, b"denied"), f"{runs}: the service's own page")
        equal(len(download.origin.requests), 2, f"{runs}: requests at the origin")
        equal([download.proxy.counter(name) for name in ("patience_pages", "patience_failures")], [2, 0], f"{runs}: counters")


def test_what_a_service_makes_of_it(lab):
    download = Download(lab)
    url = download.page()
    download.scanner.decide(infected)
    answer = download.ask(url)
    equal((answer.status, answer.body, answer.header("Content-Type")), (403, b"infected", "text/html"), "the service's own page")
    download = Download(lab, before=[append(b"!")])
    url = download.page()
    download.scanner.decide(clean)
    same_bytes(download.ask(url).body, pattern(SIZE) + b"!", "body")


def test_a_service_that_fails(lab):
    for bypass in (True, False):
        download = Download(lab, bypass=bypass)
        url = download.page()
        download.scanner.decide(dies)
        answer = download.ask(url)
        equal(answer.status, 200 if bypass else 502, "status")
        if bypass:
            same_bytes(answer.body, pattern(SIZE), "body")
        equal(download.proxy.counter("patience_failures"), 0 if bypass else 1, "failures")


@memcheck
def test_the_origin_breaks_off(lab):
    going = threading.Event()

    def answer(connection, _seen):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: %d\r\n\r\n" % SIZE + pattern(100000))
        going.wait(60)
        return True
    download = Download(lab, answer, bypass=True)
    url = download.page()
    until(lambda: "50 %" in download.proxy.get(download.origin.url(url)).text(), 30 * lab.patience, "progress")
    going.set()
    equal(download.ask(url).status, 502, "status")


def test_for_whom_it_is_not(lab):
    """They wait, as without patience."""
    cases = [("GET", {}, file()), ("GET", {"Accept": "*/*"}, file()), ("GET", {**BROWSER, "Sec-Fetch-Dest": "image"}, file()),
             ("POST", BROWSER, file()), ("GET", BROWSER, file(fields=b"Content-Type: text/html; charset=utf-8\r\n"))]
    for method, headers, answer in cases:
        download = Download(lab, answer, after="1ms")
        with download.proxy.wire() as wire:
            wire.send(request(method, download.origin.url("/file.zip"), headers, b"x" if method == "POST" else None))
            true(download.scanner.read.wait(60), "read")
            true(wire.quiet(0.1), f"nothing comes for {method} {headers}")
            download.scanner.decide(clean)
            same_bytes(wire.response().body, pattern(SIZE), "body")
        equal(download.proxy.counter("patience_pages"), 0, "pages")


def test_who_decides_in_time_needs_none(lab):
    download = Download(lab, after="60s")
    download.scanner.decide(clean)
    same_bytes(download.proxy.get(download.origin.url("/file.zip"), BROWSER).body, pattern(SIZE), "body")
    equal(download.proxy.counter("patience_pages"), 0, "pages")


def test_tokens(lab):
    """Of another client, made up, cut, by another method: there is nothing, and no origin is asked."""
    download = Download(lab)
    url = download.page({**BROWSER, "Sec-Fetch-Dest": "document"})
    token = url.split("/")[2]
    for path in (url.replace(token, "0" * 32), "/.retort-patience/", f"/.retort-patience/{token[:31]}", f"/.retort-patience/{token[:-1]}g/x"):
        equal(download.proxy.get(download.origin.url(path)).status, 404, path)
    equal(download.proxy.fetch("POST", download.origin.url(url), body=b"x").status, 404, "POST")
    download.scanner.decide(clean)
    download.ask(url)
    with socket.create_connection(download.proxy.forward, source_address=("127.0.0.2", 0)) as other:
        other.sendall(request("GET", download.origin.url(url), {"Connection": "close"}))
        seen = b"".join(iter(lambda: other.recv(65536), b""))
    true(seen.startswith(b"HTTP/1.1 404 "), f"another client saw {seen[:100]!r}")
    equal(len(download.origin.requests), 1, "requests at the origin")


def test_nothing_is_kept_for_ever(lab):
    """Neither what nobody collects nor what nobody waits for."""
    download = Download(lab, extra='patience_keep = "300ms"')
    url = download.page()
    until(lambda: download.proxy.status()["counters"]["transactions_active"] == 0, 60, "it is given up")
    equal(download.proxy.get(download.origin.url(url)).status in (404, 502), True, "given up or gone")
    until(lambda: download.proxy.get(download.origin.url(url)).status == 404, 60, "gone")
    download.scanner.decide(clean)
    until(lambda: download.proxy.get(download.origin.url(download.path), BROWSER).body == pattern(SIZE), 60, "it is asked for anew")


def test_there_is_room_for_so_much(lab):
    download = Download(lab, extra='patience_space = "150KB"')
    url = download.page()
    download.scanner.decide(clean)
    answer = download.ask(url)
    equal(answer.status, 502, "status")
    contains(answer.text(), "patience_space", "page")
    # What there was no room for takes none from others.
    download.origin.answer = file(100000)
    download.scanner.decided.clear()
    url = download.page()
    download.scanner.decide(clean)
    same_bytes(download.ask(url).body, pattern(100000), "the next one")


def test_patience_and_trickling(lab):
    """What comes first counts."""
    download = Download(lab, trickle_after="60s")
    url = download.page()
    download.scanner.decide(clean)
    same_bytes(download.ask(url).body, pattern(SIZE), "body")
    download = Download(lab, after="60s", trickle_after="50ms", trickle_every="10ms")
    with download.proxy.wire() as wire:
        wire.send(request("GET", download.origin.url("/file.zip"), BROWSER))
        true(wire.head().header("Refresh") is None, "no page")
        download.scanner.decide(clean)
    equal(download.proxy.counter("patience_pages"), 0, "pages")


def test_names_that_need_care(lab):
    """What would be something else in a page or in a field is not there."""
    for path, name in (("/a/%3Cscript%3E.zip", "download"), ("/a/b;c.zip", "download"), ("/", "download"), ("/a/" + "n" * 101, "download"),
                       ("/a/.ok-1_2.tar.gz?<", ".ok-1_2.tar.gz")):
        download = Download(lab, path=path)
        answer = download.proxy.get(download.origin.url(path), BROWSER)
        true(download.where(answer).endswith("/" + name), f"{path}: {answer.header('Refresh')}")
        lacks(answer.text(), "script", "page")
        download.scanner.decide(clean)


@memcheck
def test_pages_of_the_operator(lab):
    for language, words in (("de", "wird geprüft"), ("en", "is checked")):
        lab.write(f"wait.{language}.html", f'<a href="%{{location}}">%{{file}} {words}</a> %{{percent}}|%{{expected}}|%{{host}}|%{{request.X-In}}|%{{error}}')
    download = Download(lab, extra='error_page all { file = "wait.en.html" name = no }\nerror_page all { for = waiting  file = "wait.%{language}.html" }\n')
    answer = download.proxy.get(download.origin.url(download.path), {**BROWSER, "Accept-Language": "de", "X-In": "<b>\"'"})
    url = answer.header("Refresh").partition("; url=")[2]
    contains(answer.text(), f'<a href="{url}">file-1.zip wird geprüft</a> ', "page")
    contains(answer.text(), f"|{SIZE}|127.0.0.1|&lt;b&gt;&quot;&#39;|", "page")
    equal([answer.header(name) for name in ("Content-Language", "Vary", "Cache-Control")], ["de", "Accept-Language", "no-store"], "fields")
    contains(download.proxy.get(download.origin.url(url), BROWSER).text(), "is checked", "asked again, in the default language")
    download.scanner.decide(clean)
    same_bytes(until(lambda: (a := download.proxy.get(download.origin.url(url), BROWSER)).header("Refresh") is None and a, 30 * lab.patience, "end").body,
               pattern(SIZE), "body")


def test_the_proxy_stops_meanwhile(lab):
    download = Download(lab, extra='drain_timeout = "200ms"')
    download.page()
    download.proxy.stop()
    download.scanner.decide(clean)


def test_where_it_can_be_asked_for(lab):
    proxy = Retort(lab)
    status, said = proxy.check_config(
        'listen "127.0.0.1:1" { mode = forward }\n'
        'icap_service s { uri = "icap://127.0.0.1/x" point = respmod_postcache patience_after = "1s" }\n')
    true(status != 0, "refused")
    contains(said, "patience_after works only for services at respmod_precache", "message")
