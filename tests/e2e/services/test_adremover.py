"""The ad remover."""

import threading

from services.icap import Broken
from services.lab import icap_only, until


def test_adremover(lab):
    def ask(line, fields="", **more):
        return lab.reqmod("adremover", request=line + " HTTP/1.1\n" + fields, **more)

    for more in ({"preview": 0}, {"allow204": True}, {}):
        answer = ask("GET http://x.ads.example/a.gif?q=1", "Host: x.ads.example\nCookie: a=b\nIf-None-Match: x\n"
                     "Range: bytes=0-1\nAuthorization: Basic x\nAccept: */*\n", **more)
        assert answer.status == 200
        assert answer.http == "GET http://retort.internal/blank.gif HTTP/1.1", answer.http
        assert answer.header("host") == "retort.internal" and answer.header("accept") == "*/*"
        for name in ("cookie", "if-none-match", "range", "authorization"):
            assert answer.header(name) is None, name
        # Reverse and intercepted: the host stands in its field.
        answer = ask("GET /banner/x.gif", "Host: any.example:8080\n", **more)
        assert answer.http == "GET /blank.gif HTTP/1.1" and answer.header("host") == "retort.internal"
    for line, fields in (("GET http://good.example/banner/x", ""), ("GET http://other.example/", ""),
                         ("GET http://sub.exact.example/", ""),
                         *((("OPTIONS *", "Host: ads.example\n"), ("CONNECT ads.example:443", "Host: ads.example:443\n")) * lab.host.is_icap)):
        answer = ask(line, fields, preview=0)
        assert answer.status == 204, (line, answer.status, answer.http)
    answer = ask("GET http://other.example/x", "Host: other.example\n")
    assert answer.status == 200 and answer.http == "GET http://other.example/x HTTP/1.1"
    answer = ask("POST http://other.example/x", "Content-Length: 100000\n", body=b"p" * 100000)
    assert answer.status == 200 and answer.body == b"p" * 100000
    assert ask("GET http://exact.example/", preview=0).status == 200
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):  # what brings a body is answered at once, and goes nowhere
        for body in (None, b"p" * 100000):
            for preview in (None, 0, 1024)[: 3 if body else 1]:
                answer = ask(method + " http://ads.example/beacon", "Content-Length: 100000\n" if body else "", body=body, preview=preview)
                assert answer.http == "HTTP/1.1 200 OK" and answer.header("cache-control") == "no-store", (method, answer.http)
                assert not answer.body, answer.body[:20]


def test_adremover_kinds(lab):
    """Each kind of request gets the neutral resource of its kind, or the one that a rule names."""
    def target(line, fields=""):
        return lab.reqmod("adremover", request="GET %s HTTP/1.1\n%s" % (line, fields), preview=0).http

    for path, fields, name in (("x.js", "", "empty.js"), ("x.css?1", "", "empty.css"), ("x.mp4", "", "empty.mp4"),
                               ("x", "Sec-Fetch-Dest: iframe\n", "empty.html"),
                               ("x", "Accept: image/webp,*/*\n", "blank.gif"), ("x", "Accept: */*\n", "empty.txt"),
                               ("named/x.js", "", "empty.json")):
        got = target("http://ads.example/" + path, fields)
        assert got == "GET http://retort.internal/%s HTTP/1.1" % name, (path, fields, got)
    assert target("/x.js", "Host: ads.example\n") == "GET /empty.js HTTP/1.1"
    # What it asked for itself is let through.
    answer = lab.reqmod("adremover", request="GET http://retort.internal/banner/empty.js HTTP/1.1\n", preview=0)
    assert answer.status == 204, answer.http


def test_adremover_strips(lab):
    """Parameters for tracking go, and the rest of the request stays."""
    for line, fields, wanted in (
            ("http://page.example/a?utm_id=1&b=2", "Host: page.example\n", "http://page.example/a?b=2"),
            ("/a?b=2&utm_id=1", "Host: page.example\n", "/a?b=2"),
            ("/?utm_id=1", "Host: page.example\n", "/")):
        request = "GET %s HTTP/1.1\n%sCookie: a=b\nSec-Fetch-Dest: document\n" % (line, fields)
        answer = lab.reqmod("adremover", request=request, preview=0)
        assert answer.http == "GET %s HTTP/1.1" % wanted, (answer.status, answer.http)
        assert answer.header("cookie") == "a=b" and answer.header("host") == "page.example"
    answer = lab.reqmod("adremover", preview=0, request="GET http://page.example/a?utm_id=1 HTTP/1.1\n"
                    "Sec-Fetch-Dest: image\n")
    assert answer.status == 204, answer.http


def test_adremover_answers(lab):
    """With target=answer nobody has to be asked: the response is there at once, on a connection that lives on."""
    connection = lab.connect()
    for path, kind, start in (("x.gif", "image/gif", b"GIF89a"), ("x.js", "text/javascript", b""),
                              ("y.html?named", "text/html", b"<!DOCTYPE"), ("x.mp4", "video/mp4", b"\0\0\0")):
        for method in ("GET", "HEAD"):
            for more in ({}, {"preview": 0}, {"allow204": True}, {"body": b"p" * 70000}, {"body": b"pp", "preview": 1}):
                request = "%s http://ads.example/%s HTTP/1.1\nHost: ads.example\n%s" % (
                    method, path, "Sec-Fetch-Dest: iframe\n" if "html" in path else "")
                if "body" in more:
                    request += "Content-Length: %d\n" % len(more["body"])
                answer = connection.call("REQMOD", "adremover?target=answer", request=request, **more)
                assert answer.status == 200 and answer.http == "HTTP/1.1 200 OK", (answer.status, answer.http, more)
                assert answer.header("content-type") == kind and answer.header("cache-control") == "no-store"
                length = int(answer.header("content-length") or 0)
                if method == "HEAD" or length == 0:
                    assert answer.body == (b"" if "body" in more or not lab.host.is_icap else None), answer.body
                else:
                    assert len(answer.body) == length and answer.body.startswith(start), answer.body
    assert connection.call("REQMOD", "adremover?target=answer", request="GET http://fine.example/ HTTP/1.1\n",
                           preview=0).status == 204
    connection.close()


@icap_only("looks at the ISTag; test_services.test_lists_are_read_again has it of a service inside")
def test_adremover_reload(lab):
    """New lists come into force at once, with a new ISTag and without a request that fails."""
    stop, wrong, seen = threading.Event(), [], {}
    with open(lab.path("rules.txt"), encoding="utf-8") as file:
        before = file.read()

    def ask(connection):
        """A connection that ends between two requests is taken anew, as every ICAP client does."""
        for _ in range(3):
            try:
                return connection, connection.call("REQMOD", "adremover", preview=0,
                                                   request="GET http://reloaded.example/x.gif HTTP/1.1\n")
            except (OSError, Broken):
                assert connection.buffer == b"", "broken off within a response"
                connection.close()
                connection = lab.connect()
        raise AssertionError("three connections ended without an answer")

    def run():
        try:
            connection = lab.connect()
            while not stop.is_set():
                connection, answer = ask(connection)
                seen[answer.status, answer.headers["istag"][0]] = True
            connection.close()
        except Exception as error:  # pylint: disable=broad-except
            wrong.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: seen or wrong, 10 * lab.patience, "requests")
        lab.write("rules.txt", before + "||reloaded.example^\n")
        with open(lab.path("c-icap.ctl"), "w", encoding="ascii") as control:
            control.write("reconfigure")
        until(lambda: any(status == 200 for status, _ in list(seen)) or wrong, 30 * lab.patience, "the new list")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        lab.write("rules.txt", before)
    assert not wrong, wrong
    statuses = {}
    for status, tag in seen:
        statuses.setdefault(tag, set()).add(status)
    assert sorted(map(sorted, statuses.values())) == [[200], [204]], statuses
