"""The web page of the admin plane, in Chromium: what it shows of real traffic, who may change what, and that nothing of what
comes from the network does anything in it."""

import json
import math
import os
import ssl
import subprocess

from harness import ports, wire
from harness.browser import Browser
from harness.checks import contains, equal, lacks, raises, true, until
from harness.interception import Interception
from harness.nginx import Nginx
from harness.origin import Origin
from harness.retort import Retort
from harness.services import Services
from harness.suite import heavy, seconds

TOKENS = {role: f"{role}-" + "0123456789abcdef" * 3 for role in ("read", "operate", "admin")}
PAGE_TEXT = "<html><head><title>t</title></head><body>old line\nthe same line\n</body></html>"


class Stage:
    """A proxy with four services, tokens of all roles, traffic, and a browser."""

    def __init__(self, lab):
        self.lab = lab
        self.browser = Browser(lab)
        self.origin = Origin(lab)
        self.services = Services(lab)
        self.address = ("127.0.0.1", ports.take())
        self.url = "http://%s:%d/" % self.address
        self.proxy = Retort(lab, services=self.services.for_proxy(), admin=self.address, extra=f"""
url_class off {{ path_regex = "^/off" }}
url_class few {{ path_regex = "^/few" }}
access off {{ action = deny }}
access all {{ action = allow }}
limit few {{ requests = "1/h" }}
origins pair {{ servers = {{ "{self.origin.url()}", "http://127.0.0.1:1 backup" }} }}""",
                            admin_options={"helpers": self.services.helperd.socket, "history_step": "1s"})
        self.proxy.write_tokens("".join(f"{role} {role} {token}\n" for role, token in TOKENS.items()))
        self.proxy.token = None
        equal(self.proxy.admin("POST", "/reload", token="0123456789abcdef" * 4).status, 200, "reload")
        self.proxy.token = TOKENS["admin"]
        for path in ("/text", "/bytes"):
            for _ in range(3):
                self.proxy.get(self.origin.url(path, n=5000, say=PAGE_TEXT, h=["Cache-Control: max-age=600", "Content-Type: text/html"]))

    def page(self, view="overview", token=TOKENS["admin"], **media):
        page = self.browser.page(self.url + "#" + view, **media)
        page.wait("document.activeElement.id === 'token'")
        page.type(token)
        page.key("Enter")
        return page


def share(lab):
    return Stage(lab)


def complaints(page):
    """Without the first question of a tab that has no token yet."""
    return [text for text in page.complaints() if "401 (Unauthorized)" not in text]


def picture(lab, page, name):
    page.screenshot(os.path.join(lab.builddir, "page", name + ".png"))


def guide_picture(lab, page, name, *headings):
    """A picture for the guides (docs/pictures): of the sections under these headings alone, or of all. With 200 colours it is small
    enough for the tree; docs/build-site.sh takes the newest one."""
    if headings:
        page.run(f"""document.getElementById('notice').hidden = true;
            for (const section of document.querySelectorAll('main section'))
                section.hidden = !{list(headings)}.some(text => section.querySelector('h2')?.innerText.startsWith(text))""")
    page.size(1000, 300)
    picture(lab, page, name)
    path = os.path.join(lab.builddir, "page", name + ".png")
    few = subprocess.run(f"pngtopnm {path} | pnmquant -quiet 200 | pnmtopng -quiet -compression 9", shell=True, capture_output=True, check=True)
    with open(path, "wb") as out:
        out.write(few.stdout)
    true(len(few.stdout) < 150000, "bytes of a picture for the guides")


@heavy("a browser's own time limits")
@seconds(120)
def test_overview(lab, stage):
    page = stage.page()
    page.wait("document.querySelector('h1').textContent === 'Overview'")
    page.wait("document.querySelector('.chart path').getAttribute('d').split('L').length > 2")
    contains(page.text(), "6 in the last hour", "overview")
    picture(lab, page, "overview")
    page.run("document.querySelector('details').open = true")
    page.wait("document.querySelectorAll('details[open] tbody tr').length > 1")
    equal(complaints(page), [], "what the browser complains about")


def notice(page, text):
    page.wait(f"document.getElementById('notice').innerText === {text!r}")


def server(stage, number):
    return json.loads(stage.proxy.admin("GET", "/v1/origins").body)["origins"][0]["servers"][number]


@heavy("a browser's own time limits")
@seconds(120)
def test_origins_drain_and_weight(lab, stage):
    """An administrator drains a server, gives it another weight, and undoes both, by keys alone. The words that the configuration
    has behind a server stay. Who may not change settings finds nothing to press."""
    first, second = server(stage, 0)["url"], server(stage, 1)["url"]
    buttons = "document.querySelector(`button[aria-label=%r]`)"
    page = stage.page("origins")
    row(page, first)

    def press(label):
        page.wait(buttons % label)
        page.run((buttons % label) + ".focus()")
        page.key("Enter")

    def weigh(text):
        page.run(f"document.querySelector('input[type=number][aria-label*=\\'{first}\\']').select()")
        page.type(text)
    press(f"Drain {first} of pair")
    notice(page, f"{first} gets no new requests; those under way go on.")
    equal(server(stage, 0)["state"], "drain", "state")
    # Of two servers the second is a backup, and now the last one.
    press(f"Drain {second} of pair")
    page.wait("document.getElementById('notice').innerText.includes('no other server that is up')")
    equal(server(stage, 1)["state"], "up", "the last server after one press")
    guide_picture(lab, page, "origins")
    weigh("7")
    notice(page, f"{first} has the weight 7.")
    equal([server(stage, 0)[name] for name in ("state", "weight")], ["drain", 7], "both changes")
    press(f"Give requests to {first} of pair")
    notice(page, f"{first} gets new requests.")
    equal([server(stage, 0)[name] for name in ("state", "weight")], ["up", 7], "the weight stays")
    weigh("257")
    notice(page, "A weight is a number from 1 to 256.")
    equal(server(stage, 0)["weight"], 7, "after a weight that is too large")
    press(f"{first} of pair as configured")
    notice(page, f"{first} is again as configured.")
    equal(server(stage, 0)["weight"], 1, "as configured")
    press(f"Drain {second} of pair")
    notice(page, f"{second} gets no new requests; those under way go on.")
    equal([server(stage, 1)[name] for name in ("state", "backup")], ["drain", True], "a backup that drains")
    press(f"Give requests to {second} of pair")
    notice(page, f"{second} gets new requests.")
    equal(json.loads(stage.proxy.admin("GET", "/v1/settings/changes").body)["changes"], [], "changes that are left")
    page.run("document.getElementById('origins-keep').click()")
    press(f"Drain {first} of pair")
    page.wait("document.getElementById('notice').className === 'bad'")
    contains(page.run("document.getElementById('notice').innerText"), "saved_settings", "to be kept, without a file to keep it in")
    equal(server(stage, 0)["state"], "up", "what was refused")
    page.run("location.hash = 'overview'")  # its browser has told of the refusal
    for role in ("read", "operate"):
        page = stage.page("origins", token=TOKENS[role])
        row(page, first)
        equal(page.run("document.querySelectorAll('main button, main input').length"), 0, f"controls for the role {role}")
        equal(complaints(page), [], "what the browser complains about")


def row(page, text):
    """The cells of the table row that begins so."""
    return page.wait("(row => row && [...row.cells].map(cell => cell.innerText.trim()))"
                     f"([...document.querySelectorAll('tbody tr')].find(row => row.cells[0].innerText === {text!r}))")


@heavy("a browser's own time limits")
@seconds(120)
def test_services_and_origins(lab, stage):
    page = stage.page("services")
    for name in ("adremover", "gray", "inject", "gzip"):
        equal(row(page, name)[1], "up", name)
    equal(row(page, "inject")[2:5], ["2", "0", "2"], "asked, unmodified and modified of inject")
    picture(lab, page, "services")
    page.run("document.querySelector('button[aria-label*=gzip]').click()")
    page.wait("document.getElementById('notice').innerText.includes('The results of gzip are old now.')")
    page.run("location.hash = 'origins'")
    equal(row(page, "pair")[1:3], ["2 of 2", "round robin"], "servers up, balance")
    equal(complaints(page), [], "what the browser complains about")


@heavy("a browser's own time limits")
@seconds(120)
def test_helpers_slider(lab, stage):
    """An arrow key on the slider changes the nice level of real processes."""
    page = stage.page("helpers", token=TOKENS["operate"])
    equal(row(page, "gray")[1], "10", "nice")
    page.run("document.querySelector('input[type=range]').focus()")
    page.key("ArrowRight")
    page.wait("document.getElementById('notice').innerText === 'The pool gray has the nice level 11.'")
    for pid in stage.services.helperd.helpers("gray-helper"):
        equal(os.getpriority(os.PRIO_PROCESS, pid), 11, "nice level of a helper")
    equal(row(page, "gray")[1], "11", "nice")
    place = "[...document.querySelectorAll('thead th')].findIndex(head => head.innerText === 'CPU')"
    page.wait(f"/^[0-9]+ %$/.test([...document.querySelectorAll('tbody tr')].find(row => row.cells[0].innerText === 'gray').cells[{place}].innerText)")
    picture(lab, page, "helpers")


@heavy("a browser's own time limits")
@seconds(120)
def test_role_and_wrong_token(lab, stage):
    """With the role read the buttons are there and can't be used, and the proxy refuses what they would ask. A token that the
    proxy does not take, from the start or any more, leads back to the question for one."""
    page = stage.page("services", token=TOKENS["read"])
    row(page, "gzip")
    true(page.run("[...document.querySelectorAll('main button')].every(button => button.disabled)"), "all buttons are disabled")
    refused = page.run(f"""fetch('/v1/services/bump?name=gzip', {{method: 'POST', headers: {{Authorization: 'Bearer {TOKENS["read"]}'}}}})
        .then(response => response.status)""")
    equal(refused, 403, "status of a change by a reader")
    page = stage.page("services", token="x" * 40)
    page.wait("document.querySelector('[role=alert]').innerText.includes('does not take this token')")
    equal(page.run("sessionStorage.length"), 0, "tokens that the page keeps")
    page.type(TOKENS["read"])
    page.key("Enter")
    row(page, "gzip")
    stage.proxy.write_tokens("".join(f"{role} {role} {token}\n" for role, token in TOKENS.items() if role != "read"))
    try:
        equal(stage.proxy.admin("POST", "/reload").status, 200, "reload")
        page.run("location.hash = 'origins'")
        page.wait("document.querySelector('[role=alert]').innerText.includes('any more')")
    finally:
        stage.proxy.write_tokens("".join(f"{role} {role} {token}\n" for role, token in TOKENS.items()))
        stage.proxy.admin("POST", "/reload")


def test_files_of_the_page(lab, stage):
    """They need no token, say nothing of this proxy, and let a browser do nothing else. Pages of others may link to them and load
    none of them."""
    def get(path, **headers):
        host = headers.pop("Host", "%s:%d" % stage.address)
        return wire.fetch(stage.address, "GET", path, {name.replace("_", "-"): value for name, value in headers.items()}, host=host)
    answer = get("/")
    equal(answer.status, 200, "status")
    policy = answer.header("Content-Security-Policy")
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"):
        contains(policy, part, "policy")
    lacks(policy, "unsafe", "policy")
    lacks(answer.body.decode(), "<script>", "scripts in the page")
    equal(answer.header("X-Content-Type-Options"), "nosniff", "X-Content-Type-Options")
    equal(answer.header("Cache-Control"), "no-cache", "Cache-Control")
    equal(get("/", If_None_Match=answer.header("ETag")).status, 304, "the same page again")
    equal(get("/page/page.js").header("Content-Type"), "text/javascript; charset=utf-8", "type of a module")
    equal(get("/page/page.js", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="script").status, 403, "a script for others")
    equal(get("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document").status, 200, "a link")
    equal(get("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe").status, 403, "a frame")
    equal(get("/page/../page.js").status, 401, "a path that is none of the files")
    equal(get("/", Host="retort.example").status, 403, "another name")
    bearer = {"Authorization": f"Bearer {TOKENS['read']}"}
    own = "http://%s:%d" % stage.address
    for site, origin, status in (("same-origin", own, 200), ("same-origin", "http://evil.example", 403), ("same-site", own, 403),
                                 ("none", "null", 403), ("same-origin", own.replace("http", "https"), 403)):
        equal(get("/v1/whoami", Sec_Fetch_Site=site, Origin=origin, **bearer).status, status, f"{site} from {origin}")
    out = stage.proxy.ctl("page")
    contains(out, stage.url, "what retortctl page says")
    contains(out, "ssh -N -L", "what retortctl page says")


def evening(x, y):
    """A pixel of a picture: the sun above hills."""
    if (x - 230) ** 2 + (y - 70) ** 2 < 30 ** 2:
        return bytes((255, 236, 150))
    if y > 130 + 20 * math.sin(x / 40):
        return bytes((40, 90 + y // 4, 50))
    return bytes((80 + y, 110 + y // 3, 210 - y // 2))


EVIL = '"><img src=x onerror=document.title=1><script>document.title=2</script>'
EVIL_TARGET = "/%22%3E%3Cscript%3Edocument.title=3%3C/script%3E'><script>document.title=4</script>"


def inspected(page, part):
    """Opens the inspected transaction whose URL has this part."""
    page.run("location.hash = 'inspect'")
    page.wait(f"[...document.querySelectorAll('td.url a')].find(link => link.innerText.includes({part!r}) && "
              "!link.closest('tr').innerText.includes('under way'))")
    page.run(f"[...document.querySelectorAll('td.url a')].find(link => link.innerText.includes({part!r})).click()")
    page.wait("document.querySelector('[data-shown]')")
    page.wait("!document.querySelector('main').innerText.includes('Loading')")


@heavy("a browser's own time limits")
@seconds(120)
def test_inspected_transactions(lab, stage):
    """A page and an image go through services: steps, heads, exchanges, the difference of lines, and both images. What the client
    and the origin say is text, and secrets are masked."""
    pixels = b"P6 320 200 255 " + b"".join(evening(x, y) for y in range(200) for x in range(320))
    lab.write("site/photo.jpg", subprocess.run(["cjpeg"], input=pixels, capture_output=True, check=True).stdout)
    nginx = Nginx(lab, lab.path("site"))
    page = stage.page("inspect")
    page.wait("document.getElementById('inspect-transactions')")
    page.run("document.getElementById('inspect-transactions').value = 3; document.querySelector('button.main').click()")
    page.wait("document.getElementById('notice').innerText.includes('are inspected')")
    stage.proxy.get(nginx.url("/photo.jpg"))
    stage.proxy.get(stage.origin.url("/text", say=PAGE_TEXT, new=1, h=["Content-Type: text/html", "X-Evil: " + EVIL]),
                    {"User-Agent": EVIL, "Cookie": "secret=1"})
    stage.proxy.get(f"http://{stage.origin.authority}{EVIL_TARGET}", {"Referer": EVIL})
    inspected(page, "/text")
    text = page.text()
    for part in ("RECEIVE", "RESPMOD", "waited", "inject", "MODIFIED", "respmod_precache", "+ ", 'name="retort-test"', EVIL, "Cookie: masked"):
        contains(text, part, "an inspected page")
    lacks(text, "secret=1", "an inspected page")
    equal(page.barriers(), [], "barriers in an inspected page")
    picture(lab, page, "transaction-page")
    inspected(page, "photo.jpg")
    sizes = page.wait("(images => images.length > 1 && images.every(image => image.naturalWidth > 0) && images.map(image => image.naturalWidth))"
                      "([...document.querySelectorAll('.side img')])")
    equal(sizes[0], sizes[1], "widths before and after")
    guide_picture(lab, page, "transaction", "Steps", "gray")
    inspected(page, "document.title=4")
    true(page.run("document.title").startswith("Transaction"), "nothing of it has run")
    equal(page.run("document.querySelectorAll('main script, main iframe, main [onerror]').length"), 0, "elements that it made")
    equal(complaints(page), [], "what the browser complains about")
    one = stage.proxy.admin("GET", "/v1/inspect/body?id=%s&exchange=0&part=virgin" % page.run("location.hash.split('/')[1]"))
    if one.status == 200:
        equal(one.header("Content-Type"), "application/octet-stream", "type of a body")
        equal(one.header("Content-Disposition"), "attachment", "disposition of a body")
    equal(stage.proxy.admin("POST", "/v1/inspect?unmasked=yes", token=TOKENS["operate"]).status, 403, "unmasked by an operator")


@heavy("a browser's own time limits")
@seconds(120)
def test_cache_clients_certificates_and_live(lab, stage):
    page = stage.page("live")
    page.wait("document.querySelector('main').innerText.includes('Listening')")
    stage.proxy.get(stage.origin.url("/text", say=EVIL), {"User-Agent": EVIL})
    page.wait("document.querySelector('td.url') && document.querySelector('td.url').innerText.includes('/text')")
    picture(lab, page, "live")
    page.run("location.hash = 'cache'")
    page.wait("document.querySelectorAll('tbody tr').length > 1")
    before = page.run("document.querySelectorAll('tbody tr').length")
    page.run("document.querySelector('tbody button').click()")
    page.wait(f"document.querySelectorAll('tbody tr').length < {before}")
    page.run("location.hash = 'clients'")
    page.wait("document.querySelector('main').innerText.includes('Listening')")
    for path in ("/off?" + EVIL_TARGET[1:], "/few", "/few"):
        stage.proxy.get(stage.origin.url(path))
    page.wait("[...document.querySelectorAll('tbody tr')].some(row => row.cells[0].innerText === '127.0.0.1' && row.cells[2].innerText === '2' && "
              "row.innerText.includes('limit few') && row.cells[5].innerText === '429')")
    page.wait("[...document.querySelectorAll('button')].some(button => button.innerText === 'Clear')")
    picture(lab, page, "clients")
    page.run("[...document.querySelectorAll('button')].find(button => button.innerText === 'Clear').click()")
    notice(page, "1 entry is cleared.")
    for view, title in (("clients", "Clients that were denied or limited"), ("certificates", "Certificates and interception")):
        page.run(f"location.hash = '{view}'")
        page.wait(f"document.querySelector('h1').innerText === '{title}'")
        page.wait("!document.querySelector('main').innerText.includes('Loading')")
    equal(complaints(page), [], "what the browser complains about")


LISTENING = "document.querySelector('main').innerText.includes('Listening')"


@heavy("a browser's own time limits")
@seconds(120)
def test_live_events_that_are_refused(lab, stage):
    """What the proxy refuses for good is asked for once: each question would be a line of the audit log. A token that was taken away
    leads back to the question for one."""
    def asked(page):
        return page.run("window.asked.filter(url => String(url).includes('/events')).length")

    def watched(view):
        page = stage.page(view, token=TOKENS["operate"])
        page.wait(LISTENING)
        page.run("""window.asked = []; window.real = window.fetch;
            window.fetch = (url, ...rest) => { window.asked.push(url); return window.real(url, ...rest); }""")
        return page
    page = watched("live")
    page.run("document.getElementById('live-client').value = 'nonsense'; document.querySelector('form button.main').click()")
    page.wait("document.querySelector('main').innerText.includes('client')")
    page.run("new Promise(resolve => setTimeout(resolve, 3500))")
    equal(asked(page), 1, "questions after a wrong filter")
    page.run("document.getElementById('live-client').value = ''; document.querySelector('form button.main').click()")
    page.wait(LISTENING)
    pages = [watched("live"), watched("clients")]
    stage.proxy.write_tokens("".join(f"{role} {role} {token}\n" for role, token in TOKENS.items() if role != "operate"))
    try:
        equal(stage.proxy.admin("POST", "/reload").status, 200, "reload")
        stage.proxy.get(stage.origin.url("/text", say="the next event, with which the stream ends"))
        for one in pages:
            one.wait("document.querySelector('[role=alert]') && document.querySelector('[role=alert]').innerText.includes('any more')")
            equal(one.run("sessionStorage.length"), 0, "tokens that the page keeps")
            one.run("new Promise(resolve => setTimeout(resolve, 3500))")
            true(asked(one) <= 1, "questions with the old token")
    finally:
        stage.proxy.write_tokens("".join(f"{role} {role} {token}\n" for role, token in TOKENS.items()))
        stage.proxy.admin("POST", "/reload")


@heavy("a browser's own time limits")
@seconds(120)
def test_live_list_stands_still(lab, stage):
    page = stage.page("live")
    page.wait(LISTENING)
    # The press comes between an event and its drawing.
    page.run("""(real => {
        window.setTimeout = (work, after, ...rest) => {
            if (after === 200) {
                window.setTimeout = real;
                real(() => [...document.querySelectorAll('button')].find(button => button.innerText === 'Pause').click(), 0);
            }
            return real(work, after, ...rest);
        };
    })(window.setTimeout)""")
    stage.proxy.get(stage.origin.url("/text", say="an event"))
    page.wait("document.querySelector('main').innerText.includes('stands still')")
    page.run("new Promise(resolve => setTimeout(resolve, 500))")
    contains(page.text(), "The list stands still.", "what the page says after the last drawing")


@heavy("a browser's own time limits")
@seconds(120)
def test_bodies_of_many_lines(lab, stage):
    """Somebody's page of a million lines does not hang the tab of the operator who opens its transaction."""
    page = stage.page("inspect")
    page.wait("document.getElementById('inspect-transactions')")
    took = page.run("""import('/page/difference.js').then(({difference}) => {
        const many = '\\n'.repeat(4 << 20), begun = performance.now(), other = 'a\\n'.repeat(2 << 20);
        const shown = [difference(many, many + 'x'), difference('', many), difference(many, other), difference('a\\nb', 'a\\nc')];
        return [performance.now() - begun, ...shown.map((lines) => lines === null ? 'too many' : lines.length)];
    })""")
    equal(took[1:], ["too many", "too many", "too many", 3], "what is shown")
    true(took[0] < 1000 * lab.patience, f"it takes {took[0]} ms")


@heavy("a browser's own time limits")
@seconds(120)
def test_more_of_the_cache(lab, stage):
    """Objects that are only on disk, more than one answer has, by the button of the page."""
    volume = lab.path("more-volume")
    origin, address = Origin(lab), ("127.0.0.1", ports.take())
    proxy = Retort(lab, admin=address, cache={"memory": "8MB", "disk": {volume: {"size": "64MB"}}})
    proxy.write_tokens(f"admin admin {TOKENS['admin']}\n")
    equal(proxy.admin("POST", "/reload").status, 200, "reload")
    proxy.token = TOKENS["admin"]
    for number in range(230):
        proxy.get(origin.url(f"/more/{number}", n=10, cc="max-age=600"))
    until(lambda: proxy.status()["disk"]["disk_objects"] >= 230, 20 * lab.patience, "objects on disk")
    proxy.restart()
    page = stage.browser.page("http://%s:%d/#cache" % address)
    page.wait("document.activeElement.id === 'token'")
    page.type(TOKENS["admin"])
    page.key("Enter")
    rows = "document.querySelectorAll('tbody tr').length"
    more = "[...document.querySelectorAll('button')].find(button => button.innerText === 'More')"
    for seen in (100, 200, 230):
        page.wait(f"{rows} >= {seen} && !document.querySelector('main').innerText.includes('Searching')")
        if seen < 230:
            page.run(more + ".click()")
        page.run("document.getElementById('cache-text').value = 'not.searched.yet'")
    equal(page.run(rows), 230, "objects")
    contains(page.text(), "230 objects", "what the page says")
    page.run("document.getElementById('cache-text').value = 'nothing.example'; document.querySelector('button.main').click()")
    page.wait("document.querySelector('main').innerText.includes('No stored object was found.')")
    equal(complaints(page), [], "what the browser complains about")
    proxy.stop()


@heavy("a browser's own time limits")
@seconds(120)
def test_interception(lab, stage):
    """A client that refuses the proxy's certificate is in the list with its bypass, and is forgotten by a button; below stands until
    when the authority is good."""
    address = ("127.0.0.1", ports.take())
    site = Interception(lab, "www.example.com", interception="refusals = 1", admin=address)
    site.proxy.write_tokens(f"operate operate {TOKENS['operate']}\n")
    equal(site.proxy.admin("POST", "/reload", token="0123456789abcdef" * 4).status, 200, "reload")
    raises(ssl.SSLError, lambda: site.bumped("www.example.com", site.context(trusts=site.root.file)), "a client that refuses")
    page = stage.browser.page("http://%s:%d/#certificates" % address)
    page.wait("document.activeElement.id === 'token'")
    page.type(TOKENS["operate"])
    page.key("Enter")
    seen = row(page, "127.0.0.1")
    equal([seen[1], seen[2], seen[3]], [site.host("www.example.com"), "1", "relayed unopened"], "the client that refuses")
    equal(row(page, site.authority.file)[1:3], ["the proxy's authority", "authority"], "the authority")
    page.run("[...document.querySelectorAll('main button')].find(button => button.innerText === 'Forget').click()")
    notice(page, "1 refusal is forgotten.")
    page.wait("document.querySelector('main').innerText.includes('No client has refused a certificate.')")
    equal(complaints(page), [], "what the browser complains about")


VIEWS = ("overview", "live", "inspect", "services", "helpers", "origins", "clients", "cache", "certificates")


def stand(page, view):
    """The view with its first answer."""
    page.run(f"location.hash = '{view}'")
    page.wait(f"document.querySelector('nav a[aria-current]').hash === '#{view}' && !!document.querySelector('h1')")
    page.run("new Promise(resolve => setTimeout(resolve, 200))")


NAMELESS = """[...document.querySelectorAll('a, button, input, select, img, svg[role=img], [role=region]')].filter(node =>
    !(node.innerText || node.alt || node.getAttribute('aria-label') || (node.labels && node.labels.length) ||
      node.getAttribute('title'))).map(node => node.outerHTML)"""
# WCAG 2: the contrast of each text with what stands behind it, where that is less than 4.5.
FAINT = """(() => {
    const numbers = (color) => color.match(/[0-9.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (node) => { for (; node; node = node.parentElement) { const color = numbers(getComputedStyle(node).backgroundColor);
        if (color.length < 4 || color[3] > 0) return color; } return [255, 255, 255]; };
    return [...document.querySelectorAll('body *')].filter(node => [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim()) &&
        node.getClientRects().length && !node.disabled && !node.closest('noscript, option')).map(node => {
            const [one, other] = [light(numbers(getComputedStyle(node).color)), light(behind(node))];
            return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), node.outerHTML.slice(0, 120)];
        }).filter(([contrast]) => contrast < 4.5);
})()"""


@heavy("a browser's own time limits")
@seconds(120)
def test_reading_and_keyboard(lab, stage):
    """Each view, dark and light, 360 pixels wide: everything has a name, texts have contrast, nothing scrolls sideways. The Tab key
    alone leads to a view."""
    for scheme in ("light", "dark"):
        page = stage.page("overview", prefers_color_scheme=scheme)
        page.size(360, 800)
        for view in VIEWS:
            stand(page, view)
            equal(page.run(NAMELESS), [], f"elements of {view} without a name")
            equal(page.run(FAINT), [], f"texts of {view} ({scheme}) with little contrast")
            true(page.run("document.documentElement.scrollWidth") <= 360, f"{view} scrolls sideways at 360 pixels")
        picture(lab, page, f"narrow-{scheme}")
    page.run("document.activeElement.blur(); document.getElementById('skip').focus(); location.hash = 'overview'")
    page.wait("document.querySelector('h1').innerText === 'Overview'")
    for _ in range(12):
        page.key("Tab")
        if page.run("document.activeElement.hash") == "#services":
            break
    page.key("Enter")
    page.wait("document.querySelector('h1').innerText === 'Services'")


@heavy("a browser's own time limits")
@seconds(180)
def test_barriers(lab, stage):
    """axe-core finds nothing in any view, dark and light, wide and narrow, nor in the question for a token."""
    page = stage.browser.page(stage.url)
    page.wait("document.activeElement.id === 'token'")
    equal(page.barriers(), [], "barriers in the question for a token")
    page.run("document.getElementById('main').append(Object.assign(document.createElement('input'), {type: 'text'}))")
    true(page.barriers(), "a field without a label is found")
    for scheme, width in (("light", 1200), ("dark", 360)):
        page = stage.page("overview", prefers_color_scheme=scheme)
        page.size(width, 800)
        for view in VIEWS:
            stand(page, view)
            equal(page.barriers(), [], f"barriers in {view}, {scheme}, {width} pixels wide")


# What a person can do something with, or has to scroll, as it follows one another.
REACHABLE = """[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')].filter(node =>
    !node.disabled && node.checkVisibility({visibilityProperty: true}))"""
FOCUS = """(() => {
    const node = document.activeElement;
    if (node === document.body) return null;
    const style = getComputedStyle(node), box = node.getBoundingClientRect();
    return {index: %s.indexOf(node), html: node.outerHTML.slice(0, 100),
        ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth};
})()""" % REACHABLE


def walk(page, back):
    """Where the Tab key leads from one end of the page, through it, and out or to where it began: what FOCUS says of each place."""
    page.run(REACHABLE + f".at({0 if back else -1}).focus()")
    places = []
    for _ in range(page.run(REACHABLE + ".length") + 5):
        page.key("Tab", shift=back)
        place = page.run(FOCUS)
        if places and (place is None or place["index"] == places[0]["index"]):
            return places
        if place is not None:
            places.append(place)
    raise AssertionError(f"the Tab key does not leave the page; the last places: {places[-3:]}")


@heavy("a browser's own time limits")
@seconds(180)
def test_keyboard_walk(lab, stage):
    """In each view the Tab key leads through everything that can be used, in its order, with a ring that is seen, and out again;
    with Shift the other way."""
    page = stage.page("overview")
    for view in VIEWS:
        stand(page, view)
        for back in (False, True):
            places, count = walk(page, back), page.run(REACHABLE + ".length")
            order = [place["index"] for place in places]
            equal(order, list(range(count))[::-1 if back else 1], f"order of {view}{' backwards' if back else ''}")
            equal([place["html"] for place in places if not (place["ring"] and place["seen"])], [], f"places of {view} that are not seen")


@heavy("a browser's own time limits")
@seconds(120)
def test_address_that_encodes_nothing(lab, stage):
    """Somebody has shortened the address in the middle of an encoded character, and opens it, or changes it so later."""
    page = stage.page("overview/%")
    page.wait("document.querySelector('h1').textContent === 'Overview'")
    page.run("location.hash = 'services/%E0%A4'")
    row(page, "gzip")
    equal(complaints(page), [], "what the browser complains about")


@heavy("a browser's own time limits")
@seconds(120)
def test_zy_token_while_the_proxy_is_away(lab, stage):
    """Somebody presses the button again and again while the proxy is down. The page asks once when the proxy is back, and leaves
    the form alone in which the next token is typed."""
    page = stage.browser.page(stage.url)
    page.wait("document.activeElement.id === 'token'")
    page.run("""window.asked = []; window.real = window.fetch;
        window.fetch = (url, ...rest) => { window.asked.push(url); return window.real(url, ...rest); }""")
    stage.proxy.stop()
    page.type("x" * 40)
    for _ in range(5):
        page.run("document.querySelector('form button').click()")
    page.wait("document.getElementById('notice').innerText.includes('does not answer')")
    page.run("window.asked = []")
    stage.proxy.start()
    page.wait("document.querySelector('[role=alert]')")
    page.type("half")
    page.run("new Promise(resolve => setTimeout(resolve, 3500))")
    equal(page.run("document.getElementById('token').value"), "half", "what stands in the form")
    true(page.run("window.asked.length") <= 3, "questions while the proxy starts, and then one")


@heavy("a browser's own time limits")
@seconds(120)
def test_zz_proxy_restarts(lab, stage):
    """The last test here: the proxy goes while the page is open, and comes back."""
    page = stage.page("origins")
    row(page, "pair")
    stage.proxy.stop()
    page.run("window.dispatchEvent(new Event('hashchange'))")
    page.wait("document.getElementById('notice').innerText.includes('does not answer')")
    stage.proxy.start()
    page.wait("document.getElementById('notice').innerText === ''")
    row(page, "pair")
