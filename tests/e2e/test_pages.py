"""Error pages: by status, class, type and language, escaped, with their fields kept; and the PAC file."""

import html
import json
import os
import shutil
import subprocess

from harness import ports, wire as wire_module
from harness.checks import contains, equal, lacks, true
from harness.lab import SOURCE
from harness.origin import Origin
from harness.retort import Retort, run_check
from harness.suite import memcheck
from harness.wire import request

ATTACK = "<script>alert('1')</script>\"&"


def share(lab):
    """A proxy with pages in two languages and three types."""
    write_pages(lab)
    return Retort(lab, extra=CONFIG)


CONFIG = """url_class shop { domain = "shop.example" }
error_page shop { status = 4xx  file = "pages/shop.html" }
error_page all { status = { 403, 502, 400 }  file = { "pages/%{language}/down.html", "pages/down.json", "pages/%{language}/down.txt" } }
error_page all { status = 405  file = "pages/only.txt" }
"""


def write_pages(lab):
    for language, words in (("de", "Leider nicht"), ("en", "Sorry"), ("pt-BR", "Desculpe"), ("no such tag!", "never")):
        os.makedirs(lab.path(f"pages/{language}"), exist_ok=True)
        lab.write(f"pages/{language}/down.html", f"<p title=\"%{{url}}\">{words} %{{status}} %{{reason}} %{{error}} %{{method}} 100%% ü</p>\n")
        lab.write(f"pages/{language}/down.txt", f"{words} %{{url}}\n")
    lab.write("pages/down.json", '{"code": %{status}, "url": "%{url}", "why": "%{error}"}\n')
    lab.write("pages/shop.html", "<h1>the shop</h1>")
    lab.write("pages/only.txt", "text only")


def dead(path="/"):
    return f"http://127.0.0.1:{ports.take()}{path}"


@memcheck
def test_languages_are_chosen(lab, proxy):
    for field, words, language in ((None, "Sorry", "en"), ("de", "Leider", "de"), ("de-AT, en;q=0.5", "Leider", "de"), ("fr", "Sorry", "en"),
                                   ("fr, *;q=0.1", "Sorry", "en"), ("en;q=0.1, pt-br;q=0.2", "Desculpe", "pt-BR"), ("pt", "Desculpe", "pt-BR"),
                                   ("de;q=0, en;q=0", "Sorry", "en"), ("\xff;q=9,,;", "Sorry", "en")):
        answer = proxy.get(dead(), headers={"Accept-Language": field} if field else {})
        equal((answer.status, answer.header("Content-Language"), answer.header("Vary")), (502, language, "Accept, Accept-Language"), f"{field}")
        contains(answer.text(), words, f"{field}")
        contains(answer.text(), "502 Bad Gateway The origin", "status and reason")
        contains(answer.text(), "GET 100% ü", "text of the operator")
        equal(answer.header("Cache-Control"), "no-store", "Cache-Control")


def test_types_are_chosen(lab, proxy):
    for accept, kind in ((None, "text/html"), ("*/*", "text/html"), ("text/html,application/xml;q=0.9,*/*;q=0.8", "text/html"),
                         ("application/json", "application/json"), ("application/problem+json", "application/problem+json"),
                         ("application/json, text/plain, */*", "application/json"), ("application/*", "application/problem+json"),
                         ("text/plain", "text/plain"), ("text/html;q=0.5, text/plain", "text/plain"), ("image/png", "text/html")):
        answer = proxy.get(dead("/a"), headers={"Accept": accept} if accept else {})
        equal(answer.header("Content-Type").split(";")[0], kind, f"{accept}")
        if "json" in kind:
            equal(json.loads(answer.text())["code"], 502, "status in JSON")


def test_own_pages_have_types_too(lab, proxy):
    """Where no section says anything, and where the section has no file of the type."""
    def trace(accept):
        return proxy.fetch("TRACE", "http://h/", headers={"Accept": accept})
    answer = trace("application/json")
    problem = json.loads(answer.text())
    equal((problem["status"], problem["title"], problem["type"]), (405, "Method Not Allowed", "about:blank"), "problem (RFC 9457)")
    true(problem["detail"] and problem["instance"], f"{problem}")
    equal((answer.header("X-Content-Type-Options"), answer.header("Vary")), ("nosniff", "Accept"), "fields")
    true(answer.header("Allow"), "Allow")
    contains(trace("*/*").text(), "<h1>405 Method Not Allowed</h1>", "own page")
    equal(trace("text/plain").text().strip(), "text only", "page of the section")
    true(trace("text/plain").header("Allow"), "Allow of a page of the section")


def test_head_and_keep_alive(lab, proxy):
    with proxy.wire() as wire:
        wire.send(request("HEAD", dead()))
        head = wire.response(method="HEAD")
        true(int(head.header("Content-Length")) > 20, "Content-Length of HEAD")
        wire.send(request("GET", dead()))
        contains(wire.response().text(), "Sorry", "the next page")


@memcheck
def test_nothing_is_a_way_in(lab, proxy):
    """URL, Host, method and error texts, in HTML and in JSON."""
    for path in ("/<script>alert(1)</script>", "/%22onload=%22x", "/'\"><b>", "/\\u003cb", "/?a=</p><b>&%7b\x7f"):
        with proxy.wire() as wire:
            wire.send(f"GET {dead(path)} HTTP/1.1\r\nHost: h\r\n\r\n".encode("latin-1"))
            text = wire.response().text()
            for word in ("<script", "<b>", '"onload', '"><'):
                lacks(text.split(">", 1)[1].rsplit("</p>", 1)[0], word, f"page about {path}")
            contains(text, '<p title="', "page")
            equal(text.count('"'), 2, f"quotes of the page about {path}: {text}")
        with proxy.wire() as wire:
            wire.send(f"GET {dead(path)} HTTP/1.1\r\nHost: h\r\nAccept: application/json\r\n\r\n".encode("latin-1"))
            answer = wire.response()
            if answer.status == 502:  # of a head that can't be read nothing is known
                true("url" in json.loads(answer.text()), f"JSON about {path}: {answer.text()}")
    for head in (b"GET /\x01 HTTP/1.1\r\n\r\n", b"<script> http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", b"GET http://<b>/ HTTP/1.1\r\nHost: <b>\r\n\r\n"):
        with proxy.wire() as wire:
            wire.send(head)
            data = wire.read_to_end(5 * lab.patience).decode("utf-8", "replace")
            for word in ("<script", "<b>"):
                lacks(data, word, f"answer to {head}")


def test_classes_choose_pages(lab):
    origin = Origin(lab)
    write_pages(lab)
    os.makedirs(lab.path("x"), exist_ok=True)
    proxy = Retort(lab, extra=CONFIG + "connect_ports = none\n")
    with proxy.wire() as wire:
        wire.send(request("CONNECT", "shop.example:443"))
        contains(wire.response().text(), "the shop", "page of the class")
    with proxy.wire() as wire:
        wire.send(request("CONNECT", "other.example:443"))
        contains(wire.response().text(), "Sorry", "page of all")
    equal(proxy.get(origin.url("/text", say="fine")).text(), "fine", "a page that is there")
    lab.write("pages/en/down.html", "changed")
    contains(proxy.get(dead()).text(), "Sorry", "page before a reload")
    equal(proxy.reload().status, 200, "reload")
    contains(proxy.get(dead()).text(), "changed", "page behind it")
    shutil.rmtree(lab.path("pages/en"))
    shutil.rmtree(lab.path("pages/de"))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get(dead(), headers={"Accept-Language": "de"}).header("Content-Language"), "pt-BR", "the language that is left")
    os.remove(lab.path("pages/shop.html"))
    equal(proxy.reload().status, 409, "reload without a file")
    contains(proxy.get(dead()).text(), "Desculpe", "page behind the refusal")


def test_access_sections_choose_pages(lab):
    """By name, whatever the class and the status; challenges keep their fields with any page."""
    write_pages(lab)
    lab.write("users", "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n")
    proxy = Retort(lab, extra=CONFIG + """url_class blocked { domain = "blocked.example" }
url_class known { domain = "known.example" }
error_page shop { name = sign  file = "pages/shop.html" }
error_page all { status = 407  file = "pages/only.txt" }
authenticator staff { type = basic  file = "%s"  realm = "Staff" }
access blocked { action = deny  status = 451  page = sign }
access known { action = authenticate  with = staff }
access all { action = allow }
""" % lab.path("users"))
    answer = proxy.get("http://blocked.example/")
    equal((answer.status, answer.text()), (451, "<h1>the shop</h1>\n" if answer.text().endswith("\n") else "<h1>the shop</h1>"), "page of the access section")
    answer = proxy.get("http://known.example/", headers={"Accept": "text/plain"})
    equal((answer.status, answer.text().strip()), (407, "text only"), "page of the challenge")
    contains(answer.header("Proxy-Authenticate"), "Staff", "Proxy-Authenticate")
    status, said = run_check(lab, lab.write("unknown.conf", 'listen ":1" { mode = forward }\naccess all { action = deny  page = none }\n'), "-T")
    true(status > 0 and 'unknown.conf:2: page: no error_page section has the name "none"' in said, said)


def test_the_examples_are_pages(lab):
    source = os.path.join(SOURCE, "examples/pages/pages.conf")
    proxy = Retort(lab, extra=f'include = "{source}"\n')
    for language, words in (("de", "Der Server ist nicht erreichbar"), ("en", "The server could not be reached")):
        contains(proxy.get(dead(), headers={"Accept-Language": language}).text(), words, "page")


BAD_PAGES = (("%{urll}", "bad.html:1: ", "urll"), ("\n\n<p>%{nothing}", "bad.html:3: ", "nothing"), ("\xff\n", "bad.html is not text in UTF-8", ""),
             ("\0", "bad.html is not text in UTF-8", ""), ("x" * 140000, "bad.html", "too long"))


def test_bad_pages_are_refused(lab):
    listen = 'listen "127.0.0.1:3128" { mode = forward }\n'
    for text, place, word in BAD_PAGES:
        with open(lab.path("bad.html"), "w", encoding="latin-1") as out:
            out.write(text)
        path = lab.write("bad.conf", listen + 'error_page all {\n file = "bad.html" }\n')
        status, said = run_check(lab, path)
        true(status > 0, f"{text[:20]!r} was taken")
        contains(said, f"{path}:3: file: ", "message")
        contains(said, place, "message")
        contains(said, word, "message")
        equal(run_check(lab, path, "-T")[0], 0, "-T reads no pages")
    os.remove(lab.path("bad.html"))
    for option, word in (('file = "none.html"', "No such file"), ('file = "x.php"', "must end with"), ('file = "%{language}.html"  language = fr', "no file is"),
                         ('file = "%{language}/%{language}.html"', "only once"), ('status = 200  file = "x.html"', "is not a status"), ("", "has no file")):
        status, said = run_check(lab, lab.write("bad.conf", listen + f"error_page all {{ {option} }}\n"))
        true(status > 0 and word in said, f"{option}: {said}")


@memcheck
def test_pac_file(lab):
    proxy = Retort(lab, extra='pac { proxy = "PROXY proxy.example:3128; DIRECT"  direct = { "Intranet.example", "b.example" } }\n')
    for path in ("/proxy.pac", "/wpad.dat"):
        straight = wire_module.fetch(proxy.forward, "GET", path, host="127.0.0.1")
        through = proxy.get(f"http://retort.internal{path}")
        equal((straight.status, through.status, straight.body), (200, 200, through.body), path)
        equal(straight.header("Content-Type"), "application/x-ns-proxy-autoconfig", "Content-Type")
    equal(proxy.get("/other.pac", host="h").status, 404, "no page at a reverse listener")
    check_pac(straight.text())
    proxy.write_config(proxy.text(extra=f'pac {{ file = "{lab.write("my.pac", "// mine")}" }}\n'))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get("http://retort.internal/proxy.pac").text().strip(), "// mine", "a file of the operator's, behind a reload")
    proxy.write_config(proxy.text(extra=""))
    equal(proxy.reload().status, 200, "reload")
    equal(proxy.get("http://retort.internal/proxy.pac").status, 404, "without a pac section")


def check_pac(text):
    """What a browser makes of it, if there is a JavaScript here."""
    node = shutil.which("node")
    hosts = {"www": "DIRECT", "localhost": "DIRECT", "x.INTRANET.example": "DIRECT", "b.example": "DIRECT", "xb.example": "PROXY",
             "www.example.com": "PROXY", "[::1]": "PROXY"}
    if node is None:
        for word in ('"Intranet.example"', '"b.example"', 'return "PROXY proxy.example:3128; DIRECT"'):
            contains(text, word, "PAC file")
        return
    calls = ",".join(f'FindProxyForURL("http://{host}/", {json.dumps(host)})' for host in hosts)
    said = json.loads(subprocess.run([node, "-e", f"{text}\nconsole.log(JSON.stringify([{calls}]))"], capture_output=True, text=True, check=True).stdout)
    equal([answer.split(" ")[0] for answer in said], list(hosts.values()), "what FindProxyForURL returns")


def test_attack_text_is_escaped_as_html_says(lab, proxy):
    """A browser reads the URL back from the page as it was."""
    answer = proxy.get(dead("/?" + ATTACK.replace(" ", "")))
    title = answer.text().split('title="', 1)[1].split('"', 1)[0]
    contains(html.unescape(title), "alert(", "URL in the page")
