"""examples/content-manager: which images of a page it fetches, by which URLs, and what a page could make it fetch."""

import os
import socket
import threading

from harness import ports
from harness.adaptation import account
from harness.checks import between, contains, equal, same_bytes, true, until
from harness.raw_origin import RawOrigin
from harness.retort import Inside, Retort
from harness.suite import memcheck


class Pages:
    """Two sites: one with the pages of `texts`, by their paths, and with an image at each other path; and another one."""

    def __init__(self, lab, **settings):
        self.lab, self.texts = lab, {}
        self.origin, self.other = RawOrigin(lab, self.answer), RawOrigin(lab, self.answer)
        module = lab.built("examples/content-manager/.libs/manager.so")
        self.proxy = Retort(lab, services=[Inside("manager", module, settings={"MaxPerPage": 100, **settings}, decode=True)])

    def answer(self, connection, request):
        path = request.target
        kind, body = ("text/html", self.texts[path]) if path in self.texts else ("image/png", b"image")
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nCache-Control: max-age=60\r\nContent-Length: %d\r\n\r\n"
                        % (kind.encode(), len(body)) + body)

    def counts(self):
        """What the manager has counted, when it has ended all of its fetches."""
        counts = account(self.proxy, "manager")["counts"]
        return counts if counts["FOUND"] == counts["FETCHED"] + counts["FAILED"] + counts["SKIPPED"] else None

    def read(self, path, body):
        """The paths that are asked for because a client reads this page."""
        body = body.replace("{site}", self.origin.url("")).replace("{other}", self.other.url("")).encode()
        self.texts[path] = body
        before, pages = len(self.origin.requests), (self.counts() or {"PAGES": 0})["PAGES"]
        same_bytes(self.proxy.get(self.origin.url(path)).body, body, path)
        until(lambda: (self.counts() or {"PAGES": 0})["PAGES"] == pages + 1, 20 * self.lab.patience, "the end of the fetches")
        return sorted(request.target for request in self.origin.requests[before:] if request.target != path)


def test_urls_of_images(lab):
    """As a browser reads them: relative ones, in quotes or not, with what stands around and inside them."""
    pages = Pages(lab)
    equal(pages.read("/dir/relative", '<img src=a><IMG SRC=\'b\'><img src="../c"><img src="/d"><img src="./e/../f"><img src="?g">'
                     '<img src="//{host}/h"><img src="{site}/i">'.replace("//{host}", pages.origin.url("").partition(":")[2])),
          ["/c", "/d", "/dir/a", "/dir/b", "/dir/f", "/dir/relative?g", "/h", "/i"], "relative URLs")
    equal(pages.read("/written", '<img alt="1 > 0" src="a1"><img src=" b1\n"><img src="c1#part"><img src="d1?x=1&amp;y=2"><img src="e 1">'
                     '<img src="\u00e4"><img src="f1" src="no"><img alt=it\'s src=g1>'),
          ["/%C3%A4", "/a1", "/b1", "/c1", "/d1?x=1&y=2", "/e%201", "/f1", "/g1"], "URLs with other characters")
    equal(pages.read("/none", '<!-- <img src="no1"> --><script>"<img src=no2>"</script><img src="data:image/gif;base64,R0"><img src="&#97;">'
                     '<img src="javascript:x"><img src=""><img src="http://[/"><!--><img src="yes">'), ["/yes"], "what is no image")
    equal(pages.read("/twice", '<img src="again"><img src="./again"><img src="{site}/again">'), ["/again"], "one image in three spellings")


def test_srcset(lab):
    """A browser takes one image of a srcset. The manager can't know which: the first, or all."""
    page = ('<img srcset="a 1x, b 2x"><img src="c" srcset="d, e 2x"><picture><source srcset="f?1,2 480w,g 800w"><img src="h"></picture>'
            '<img srcset=" , "><video><source src="no"></video>')
    equal(Pages(lab).read("/page", page), ["/a", "/c", "/d", "/f?1,2", "/h"], "the first")
    equal(Pages(lab, AllSizes="on").read("/page", page), ["/a", "/b", "/c", "/d", "/e", "/f?1,2", "/g", "/h"], "all")


def test_base(lab):
    pages = Pages(lab)
    equal(pages.read("/dir/one", '<base href="/up/"><base href="/no/"><img src="a"><img src="../b">'), ["/b", "/up/a"], "the first base")
    equal(pages.read("/dir/two", '<base href="deep/x"><img src="c"><img src="?d">'), ["/dir/deep/c", "/dir/deep/x?d"], "a relative base")
    equal(pages.read("/three", '<base target="x"><base href="data:,"><img src="e">'), ["/e"], "a base that is none")
    equal(pages.read("/four", '<base href="{other}/"><img src="f"><img src="{site}/g">'), ["/g"], "a base at another site")
    equal(pages.other.requests, [], "what the other site was asked for")


@memcheck
def test_cut_anywhere(lab):
    """A page that comes byte by byte has the same images."""
    pages = Pages(lab)
    page = b'<p><img alt=">" src="a"><!-- x --><base href="/up/"><img srcset="b 2x, c">'

    def answer(connection, request):
        if request.target != "/page":
            return pages.answer(connection, request)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page))
        for at in range(len(page)):
            connection.send(page[at:at + 1])
        return None
    slow = RawOrigin(lab, answer)
    same_bytes(pages.proxy.get(slow.url("/page")).body, page, "the page")
    until(lambda: sorted(one.target for one in slow.requests) == ["/a", "/page", "/up/b"], 20 * lab.patience, "the images")


def test_what_a_page_could_gain(lab):
    """Neither other sites, nor the machine's own services, nor fetches without an end, nor more than the bounds."""
    pages = Pages(lab, MaxPerPage=10)
    own = pages.proxy.forward[1]
    others = "".join(f'<img src="{url}">' for url in ("{other}/x", f"http://127.0.0.1:{ports.take()}/y", f"http://127.0.0.1:{own}/z",
                                                      "http://169.254.169.254/", "http://[::1]/", "http://2130706433/"))
    equal(pages.read("/others", others), [], "images elsewhere")
    equal(pages.other.requests, [], "what the other site was asked for")
    pages.texts["/page2"] = b'<img src="deeper">'
    equal(pages.read("/endless", '<img src="page2"><img src="/endless?again">'), ["/endless?again", "/page2"], "pages as images")
    equal(len(pages.read("/many", "".join(f'<img src="many{i}">' for i in range(3000)))), 10, "images of one page")
    pages.read("/long", '<img src="' + "x" * 100_000 + '"><img ' + "src " * 1000 + ">" + "<" * 10_000)
    equal(pages.counts()["FAILED"], 0, "fetches that failed")


def test_shares(lab):
    """One page of a slow site, or one client, does not take all fetches from the others."""
    pages, go = Pages(lab), threading.Event()

    def answer(connection, request):
        if "held" in request.target:
            go.wait(30 * lab.patience)
        return pages.answer(connection, request)

    def held(name, count, source):
        pages.texts[f"/{name}"] = "".join(f'<img src="{name}-held{i}">' for i in range(count)).encode()
        equal(pages.proxy.get(slow.url(f"/{name}"), source=source).status, 200, name)

    def asked(name):
        return sum(name + "-held" in request.target for request in slow.requests)
    slow = RawOrigin(lab, answer)
    held("first", 100, "127.0.0.1")
    until(lambda: account(pages.proxy, "manager")["counts"]["SKIPPED"] == 76, 20 * lab.patience, "what does not wait behind its page")
    until(lambda: asked("first") == 24, 20 * lab.patience, "half of the places for one page")
    for name, source in (("second", "127.0.0.2"), ("third", "127.0.0.1")):
        held(name, 2, source)
        until(lambda: asked(name) == 2, 20 * lab.patience, f"the images of another page, of {source}")
    go.set()
    until(lambda: pages.counts() and pages.counts()["FETCHED"] == 28, 20 * lab.patience, "all images")


def test_images_wait_for_their_turn(lab):
    """While the page is under way, what is beyond its share is fetched when there is room again."""
    pages, go = Pages(lab), threading.Event()
    page = [f'<img src="held{i}">'.encode() for i in range(60)]

    def fetched():
        return account(pages.proxy, "manager")["counts"]["FETCHED"]

    def answer(connection, request):
        if request.target != "/page":
            go.wait(30 * lab.patience)
            return pages.answer(connection, request)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % (len(b"".join(page)) + 2) + b"".join(page))
        until(lambda: len(slow.requests) == 1 + 24, 20 * lab.patience, "the first images")
        go.set()
        for more in (24, 48):
            until(lambda: fetched() == more, 20 * lab.patience, f"{more} images")
            connection.send(b"\n")
    slow = RawOrigin(lab, answer)
    pages.proxy.get(slow.url("/page"))
    until(lambda: pages.counts(), 20 * lab.patience, "the end of the fetches")
    equal((fetched(), pages.counts()["SKIPPED"]), (60, 0), "images that were fetched, and left out")


def test_other_sites(lab):
    """With OtherSites the rules for the reader of the page are what bounds it."""
    pages = Pages(lab, OtherSites="on")
    own = f"http://127.0.0.1:{pages.proxy.forward[1]}/self"
    equal(pages.read("/page", f'<img src="{{other}}/x"><img src="{own}">'), [], "of its own site")
    equal([one.target for one in pages.other.requests], ["/x"], "of the other site")
    until(lambda: pages.proxy.entries("/self"), 10 * lab.patience, "the log")
    contains(str(pages.proxy.entries("/self")), "DENIED", "an image that is the proxy itself")


def command(path, text):
    """What the manager answers to a command."""
    with socket.socket(socket.AF_UNIX) as there:
        there.settimeout(20)
        there.connect(path)
        there.sendall(text.encode() + b"\nquit\n")
        return b"".join(iter(lambda: there.recv(65536), b"")).decode()


def fresh_for(path, url):
    return int(command(path, f"query {url}").partition("fresh for ")[2].partition(",")[0])


def test_a_list_that_changes(lab):
    """It sets the lifetimes of what is stored, but of no URL that is too long to be remembered."""
    path, listed = lab.path("manager.sock"), lab.write("lifetimes.txt", "*.none 1\n")
    pages = Pages(lab, Socket=path, List=listed)
    short, long = (pages.origin.url("/" + letter * length) for letter, length in (("s", 1000), ("l", 3000)))
    for url in (short, long):
        equal(pages.proxy.get(url).body, b"image", "an image")
    until(lambda: os.path.exists(path), 10 * lab.patience, "the socket")
    between(fresh_for(path, short), 1, 60, "as the origin says")
    lab.write("lifetimes.txt", "* 7200\n")
    until(lambda: fresh_for(path, short) > 7000, 20 * lab.patience, "as the list says")
    until(lambda: account(pages.proxy, "manager")["counts"]["EXPIRED"] == 1, 10 * lab.patience, "how many were set")
    between(fresh_for(path, long), 1, 60, "the long URL")


def test_the_socket_takes_no_file_away(lab):
    file = lab.write("important.txt", "text")
    pages = Pages(lab, Socket=file)
    until(lambda: "Socket: nobody can connect to" in pages.proxy.process.log(), 10 * lab.patience, "the log")
    true(os.path.isfile(file), "the file is still there")
