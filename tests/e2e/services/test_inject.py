"""Texts in pages, and the policies of these."""

import base64
import contextlib
import glob
import hashlib
import os
import re
import sys
import threading
import time

from services import SOURCE
from services.lab import PAGE, REQUEST, every_way, head


def test_inject_every_way(lab):
    def check(answer, got):
        assert answer.status == 200 and got == PAGE.replace(b"@", text), got[:300]
        assert answer.header("cache-control") == "private" and answer.header("content-length") in (None, str(len(got)))

    clients = [("10.1.2.3", b"<b>ten 10.1.2.3</b>"), ("2001:db8::1", b"<b>2001:db8::1</b>")]
    if lab.host.is_icap:  # which may not be told; the proxy knows its clients
        clients.append((None, b"<b>unknown</b>"))
    for address, text in clients:
        every_way(lab, "inject", "text/html; charset=utf-8", PAGE.replace(b"@", b""), check, client_ip=address)


def test_inject_any_split(lab):
    page = b"<html><head><title>t</title></head><body>b</body></html>"
    connection = lab.connect()
    for cut in range(1, len(page)):
        answer = connection.call("RESPMOD", "inject", request=REQUEST, response=head("text/html"),
                                 pieces=[page[:cut], page[cut:]], client_ip="192.0.2.1")
        assert answer.body == page.replace(b"</head>", b"<b>192.0.2.1</b></head>"), (cut, answer.body)
    connection.close()


def test_inject_passes_on_while_it_scans(lab):
    arrived = threading.Event()

    def pieces():
        yield b"<html><head>" + b"<!-- early -->" * 1000
        assert arrived.wait(20 * lab.patience), "nothing passed on before the end of the head"
        yield b"</head><body>" + b"x" * 100000

    answer = lab.respmod("inject", request=REQUEST, response=head("text/html"), pieces=pieces(),
                     client_ip="192.0.2.1", on_data=lambda data: arrived.set())
    assert b"--><b>192.0.2.1</b></head>" in answer.body and len(answer.body) == 114025 + len("<b>192.0.2.1</b>")


def test_inject_leaves_alone(lab):
    page = PAGE.replace(b"@", b"")
    for kind, extra in (("text/plain", ""), ("text/html; charset=UTF-16", ""), ("text/html", "Content-Encoding: gzip\n"),
                        ("text/html", "Cache-Control: no-transform\n")):
        answer = lab.respmod("inject", request=REQUEST, response=head(kind, len(page), extra), body=page,
                         preview=1024)
        assert answer.status == 204, (kind, extra)
    page = b"<p>no head at all" * 10000
    answer = lab.respmod("inject", request=REQUEST + "Sec-Fetch-Dest: empty\n", response=head("text/html"), body=page)
    assert answer.body == page


def injected(lab, arguments, page, extra="", ip="192.0.2.1", **more):
    answer = lab.respmod("inject" + arguments, request=REQUEST, response=head("text/html", len(page), extra),
                     body=page, preview=1024, client_ip=ip, **more)
    return page if answer.status == 204 else answer.body


def test_inject_places(lab):
    page = b"<html><head><template></head></template></head><body class='>'><p>x</p></body></html>"
    text = b"<b>192.0.2.1</b>"
    for place, at in (("head-end", page.index(b"</head><body")), ("body-start", page.index(b"<p>")), ("body-end", page.index(b"</body>"))):
        assert injected(lab, "?position=" + place, page) == page[:at] + text + page[at:], place


def test_inject_tells_the_page(lab):
    """URL and name go to the helper if that is wanted, and are escaped; time is."""
    with open(lab.path("texts.tsv"), encoding="utf-8") as file:
        before = file.read()
    lab.write("texts.tsv", "default\t[%{url}|%{user}|%{time}]\n")
    try:
        page, request = b"<head></head>", REQUEST.replace("/a HTTP", "/a?b='&c HTTP")
        answer = lab.respmod("inject?url", request=request, response=head("text/html"), body=page,
                         client_ip="192.0.2.1", user="<jo>")
        assert re.fullmatch(rb"<head>\[http://origin.example/a\?b=&#39;&amp;c\|&lt;jo&gt;\|20\d\d-\d\d-\d\dT[\d:]+Z\]</head>",
                            answer.body), answer.body
    finally:
        lab.write("texts.tsv", before)


def test_inject_keeps_answers(lab):
    """Each of c-icap's processes asks once for a client; other clients have other texts."""
    served = lab.pool("text")["served"]
    for _ in range(30):
        for ip in ("192.0.2.77", "10.0.0.77"):
            assert ip.encode() in injected(lab, "?ttl=10m", b"<head></head>", ip=ip)
    children = 2
    assert lab.pool("text")["served"] <= served + 2 * children, "the helper was asked too often"
    assert b"192.0.2.77" in injected(lab, "", b"<head></head>", ip="192.0.2.77")
    assert lab.pool("text")["served"] > served


@contextlib.contextmanager
def texts(lab, text):
    """All clients get this text meanwhile."""
    with open(lab.path("texts.tsv"), encoding="utf-8") as file:
        before = file.read()
    lab.write("texts.tsv", "default\t" + text + "\n")
    try:
        yield
    finally:
        lab.write("texts.tsv", before)


def test_inject_and_policies(lab):
    page = b"<head></head>"
    strict, free = "Content-Security-Policy: default-src 'self'\n", ""
    nonce = "Content-Security-Policy: script-src 'nonce-abc'\n"
    with texts(lab, "<b>x</b>"):
        assert b"<b>x</b>" in injected(lab, "", page, strict)
    with texts(lab, "<script nonce=\"%{nonce}\">x</script>"):
        for arguments, extra, expected in (("", strict, None), ("", nonce, None), ("?csp=insert", strict, b""), ("", free, b""),
                                           ("?csp=nonce", nonce, b"abc"), ("?csp=nonce", strict, None),
                                           ("?csp=hash", nonce, b"abc"), ("?csp=nonce", nonce + strict, None)):
            body = injected(lab, arguments, page, extra)
            assert body == (page if expected is None else b"<head><script nonce=\"%s\">x</script></head>" % expected), \
                (arguments, extra, body)


META = b"<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">"


def hash_of(script):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def test_inject_adds_hashes_to_the_head(lab):
    """Where the policy of the head needs them and no other; with every preview, known or not yet."""
    ours = hash_of("x()")
    cases = (("script-src 'self'", "script-src 'self' " + ours), ("default-src 'none'", "default-src 'none'; script-src " + ours),
             ("img-src a, script-src b, script-src 'unsafe-inline'", "img-src a, script-src b %s, script-src 'unsafe-inline'" % ours),
             ("script-src 'unsafe-inline'", "script-src 'unsafe-inline'"), ("sandbox", None),
             ("script-src 'self'\nContent-Security-Policy: default-src c", "script-src 'self' " + ours + "|default-src c; script-src c " + ours))
    page = b"<html><head></head>" + b"x" * 70000
    with texts(lab, "<script>x()</script>"):
        for policy, expected in cases:
            for arguments in ("?csp=hash", "?csp=hash&ttl=10m", "?csp=hash&ttl=10m"):
                for preview in (0, 16, 1024, 10**6, None):
                    answer = lab.respmod("inject" + arguments, request=REQUEST, body=page, preview=preview, allow204=True,
                                     response=head("text/html", len(page), "Content-Security-Policy: %s\n" % policy))
                    if expected is None:
                        assert answer.status == 204 or answer.body == page, (policy, preview, answer.status)
                        continue
                    assert answer.body == page.replace(b"</head>", b"<script>x()</script></head>"), (policy, answer.body[:200])
                    got = answer.http_headers["content-security-policy"]
                    assert "|".join(got) == expected, (policy, preview, got)
    with texts(lab, "<a onclick=x()>"):
        assert injected(lab, "?csp=hash", page, "Content-Security-Policy: script-src 'self'\n") == page


def test_inject_and_policies_of_the_page(lab):
    """Those of <meta> count as well, wherever the page is cut; what stands behind the place does not."""
    script = b"<script>x()</script>"
    ours = hash_of("x()").encode()
    with texts(lab, script.decode()):
        for arguments, policy, expected in (("", b"script-src 'self'", None), ("", b"img-src 'none'", b"img-src 'none'"),
                                            ("?csp=hash", b"script-src 'self'", b"script-src 'self' " + ours),
                                            ("?csp=hash", b"script-src 'unsafe-inline'", b"script-src 'unsafe-inline'"),
                                            ("?csp=hash", b"a; sandbox", None), ("?csp=hash", b"&Tab;", None)):
            page = b"<html><head>" + META % policy + b"@</head><body>" + META % b"default-src 'none'" + b"</body>"
            wanted = page.replace(policy, expected or policy, 1).replace(b"@", script if expected else b"")
            got = injected(lab, arguments, page.replace(b"@", b""))
            assert got == wanted, (arguments, policy, got)
        page = b"<!doctype html>" + META % b"script-src a" + META % b"img-src b" + META % b"default-src c" + b"<p>"
        wanted = page.replace(b"-src a", b"-src a " + ours).replace(b"-src c", b"-src c; script-src c " + ours)
        wanted = wanted.replace(b"<p>", script + b"<p>")
        connection = lab.connect()
        for cut in range(1, len(page)):
            answer = connection.call("RESPMOD", "inject?csp=hash", request=REQUEST, response=head("text/html"),
                                     pieces=[page[:cut], page[cut:]])
            assert answer.body == wanted, (cut, answer.body)
        connection.close()
        for cut in (META % b"script-src a")[:-1], META % b"script-src a":  # the end of a page in a tag, and behind it
            answer = lab.respmod("inject?csp=hash", request=REQUEST, response=head("text/html"), body=cut)
            assert answer.body == cut.replace(b"-src a\">", b"-src a " + ours + b"\">" + script), answer.body
    with texts(lab, "<script nonce='%{nonce}'>x()</script>"):
        page = b"<head>" + META % b"script-src 'nonce-abc'" + b"</head>"
        assert b"nonce='abc'" in injected(lab, "?csp=nonce", page) and injected(lab, "", page) == page
    with texts(lab, "<script>'\u00e4'</script>"):  # its hash is known in UTF-8 only
        for kind, known in (("text/html", False), ("text/html; charset=UTF-8", True)):
            answer = lab.respmod("inject?csp=hash", request=REQUEST, response=head(kind), body=META % b"script-src a" + b"</head>")
            assert (hash_of("'\u00e4'").encode() in answer.body) == known, kind


def pages_of_all_sorts():
    return sorted(glob.glob(os.path.join(SOURCE, "tests", "data", "pages", "*.html")))


def parsed_places(data):
    """As a browser reads the page: its elements in order, where the marker is among them, and text on either side."""
    sys.path.append("/usr/lib/python3/dist-packages")  # Debian's python3-html5lib, whatever Python this is
    import html5lib  # pylint: disable=import-outside-toplevel
    data = re.sub(rb"<template.*?</template>", b"", data, flags=re.S)  # which html5lib does not know
    root = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False).parse(data, scripting=True)
    parts = {name: root.find(name) for name in ("head", "body")}
    return root, parts["head"], parts["body"]


def text_after(part, marker):
    """Of the text in `part`, what stands behind the marker, and the elements there."""
    behind, texts_behind, elements = False, "", 0

    def visit(element):
        nonlocal behind, texts_behind, elements
        if element is marker:
            behind = True
        elif behind:
            elements += isinstance(element.tag, str)
        if behind and element is not marker:
            texts_behind += element.text or "" if isinstance(element.tag, str) else ""
        for child in element:
            visit(child)
            texts_behind += (child.tail or "") if behind else ""
    visit(part)
    return texts_behind.strip(), elements


MARKERS = {"head-end": b"<meta id=marker>", "body-start": b"<i id=marker></i>", "body-end": b"<i id=marker></i>"}


def test_inject_is_where_a_browser_finds_it(lab):
    """html5lib follows the HTML standard to the letter. A page without tags of html, head and body has these all the same;
    one with a frameset has no body."""
    for place, text in MARKERS.items():
        with texts(lab, text.decode()):
            for path in pages_of_all_sorts():
                with open(path, "rb") as file:
                    page = file.read()
                got = injected(lab, "?position=%s&csp=insert" % place, page)
                if b"<frameset" in page and place != "head-end":
                    assert got == page, (path, place)
                    continue
                assert got != page and got.replace(text, b"") == page, (path, place)
                expect_marker(place, *parsed_places(got), (path, place))


def expect_marker(place, root, page_head, body, what):
    marker = root.find(".//*[@id='marker']")
    assert marker is not None, what
    if place == "head-end":
        assert marker in list(page_head) and text_after(page_head, marker) == ("", 0), what
    elif place == "body-end":
        assert text_after(body, marker) == ("", 0), what
    else:
        assert list(body)[0] is marker and not (body.text or "").strip(), what


# What a tokenizer reads over has the tags in upper case, which the test does not look for.
TAGS = """<html> </html> <head> </head> <body> </body> </body > <p> </p> <div/id='</BODY>'> </div> x <!--</BODY>--> <!doctype~html>
<title>t</title> <meta> <link> <script>'</BODY>'</script> <style>s</style> <noscript></BODY></noscript> <frameset> <noframes>f</noframes>
<table> </table> <tr> </tr> <td> </td> <th> <tbody> <caption> </caption> <select> </select> <option> <svg> </svg> <math> </math> <mi> </mi>
<foreignObject> </foreignObject> <g> </g> <svg/> <object> </object> <marquee> </marquee> <br> <input> <textarea></BODY></textarea> <a> </a>
<ul> <li> <h1> ~""".split()


def comment_is_in_body(page):
    """Behind what has ended the body, a comment belongs to the document (HTML standard, 13.2.6.4.19)."""
    _, _, body = parsed_places(page + b"<!--here-->")
    return body is None or any(not isinstance(element.tag, str) and element.text == "here" for element in body.iter())


def test_inject_in_any_order_of_tags(lab):
    """What a browser makes of tags that belong to no such place."""
    import random  # pylint: disable=import-outside-toplevel
    chance, connection = random.Random(1), lab.connect()
    for place, text in MARKERS.items():
        with texts(lab, text.decode()):
            for _ in range(40 if lab.options.valgrind else 150):
                page = "".join(chance.choice(TAGS) for _ in range(chance.randint(1, 12))).replace("~", " ").encode()
                answer = connection.call("RESPMOD", "inject?csp=insert&position=" + place, request=REQUEST,
                                         response=head("text/html"), body=page)
                expect_soup(place, text, page, answer.body)
    connection.close()


def expect_soup(place, text, page, got):
    if place == "body-end":
        ends = [end for end in re.finditer(rb"</(body|html) ?>", page) if not comment_is_in_body(page[:end.end()])]
        at = got.find(text)
        assert not ends or b"<frameset" in page or at == ends[0].start(), (page, got)
        assert ends or at in (-1, len(page)), (page, got)
        return
    root, page_head, body = parsed_places(got)
    if b"<frameset" in page and place == "body-start":  # which may take the place of a body that has begun
        return
    assert text in got, (place, page)
    marker = root.find(".//*[@id='marker']")
    assert marker in list(page_head if place == "head-end" else body)[:None if place == "head-end" else 1], (place, page, got)


def test_inject_leaves_fragments_alone(lab):
    """What a script asks for is put into a page that has its text already: by Sec-Fetch-Dest, by what scripts send, or by an
    Accept without HTML, as fetch() has it. Behind a doctype it is a page all the same."""
    for extra, is_page in (("", True), ("Sec-Fetch-Dest: document", True), ("Sec-Fetch-Dest: iframe\nAccept: */*", True),
                           ("Sec-Fetch-Dest: empty", False), ("Sec-Fetch-Dest: image", False), ("Accept: */*", False),
                           ("Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
                           ("Accept: text/html, */*; q=0.01\nX-Requested-With: XMLHttpRequest", False)):
        request = REQUEST + extra + "\n" * bool(extra)
        for place in MARKERS:
            for page, expected in ((b"<p>part", is_page), (b"<!doctype html><p>all", True), (b'{"a": 1}', False)):
                answer = lab.respmod("inject?position=" + place, request=request, response=head("text/html"), body=page)
                assert (answer.body != page) == expected, (extra, place, page, answer.body)


def test_inject_costs_no_time(lab):
    """The first byte of a page comes within a millisecond of what a service costs that only looks at it, and the page
    streams. The best of many: what else the machine does must not decide."""
    page = b"<html><head><title>t</title></head><body>" + b"x" * 30000

    def first_byte(service, kind):
        connection, times = lab.connect(), []
        for _ in range(150):
            seen = []
            begin = time.perf_counter()
            connection.call("RESPMOD", service, request=REQUEST, response=head(kind), pieces=[page], client_ip="192.0.2.1",
                            on_data=lambda data, seen=seen: seen.append(time.perf_counter()))
            times.append(seen[0] - begin)
        connection.close()
        return min(times)
    plain, adapted = first_byte("inject", "text/plain"), first_byte("inject", "text/html")
    if not lab.options.valgrind:
        assert adapted - plain <= 0.001, "%.3f ms instead of %.3f ms" % (1000 * adapted, 1000 * plain)
