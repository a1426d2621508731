"""A real browser through the proxy: a page with ads and images, as a person would see it; by https as well."""

import os
import shutil
import subprocess

from harness import ports
from harness.certificates import Authority
from harness.checks import Skip, contains, equal, lacks, true
from harness.nginx import Nginx
from harness.retort import Retort
from harness.services import Services
from harness.suite import heavy, seconds

PAGE = """<!doctype html><html><head><title>a page</title></head><body>
<img id="photo" src="/photo.jpg"><img id="ad" src="/ads/banner.gif"><img id="moving" src="/moving.gif">
<script>
function gray(image) {
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
    for (let i = 0; i < data.length; i += 4)
        if (data[i] !== data[i + 1] || data[i] !== data[i + 2]) return "coloured";
    return "gray";
}
window.onload = () => {
    const say = (name, text) => document.body.setAttribute("data-" + name, text);
    for (const name of ["photo", "moving"]) say(name, gray(document.getElementById(name)));
    const ad = document.getElementById("ad");
    say("ad", ad.naturalWidth + "x" + ad.naturalHeight);
};
</script></body></html>"""


def browser():
    for name in ("chromium", "chromium-browser"):
        if shutil.which(name):
            return name
    raise Skip("Debian package chromium")


SITE = "news.localhost"


def make_site(lab):
    """Pictures, an ad, and the page that looks at them. The folder."""
    lab.write("site/index.html", PAGE)
    lab.write("site/photo.jpg", lab.read_data("photos/china.jpg"))
    lab.write("site/moving.gif", lab.read_data("gif/Newtons_cradle_animation_book_2.gif"))
    lab.write("site/ads/banner.gif", lab.read_data("gif/postcard.gif"))
    return lab.path("site")


def browse(lab, proxy, url, home=None):
    """The page's DOM after its scripts have run. `home`: where the browser's certificate store is."""
    done = subprocess.run(
        [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom",
         f"--user-data-dir={lab.path(lab.unique('profile'))}", f"--proxy-server=http://127.0.0.1:{proxy.forward[1]}",
         "--proxy-bypass-list=<-loopback>", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
         "--virtual-time-budget=10000", url],
        capture_output=True, text=True, timeout=90, check=False, env={**os.environ, **({"HOME": home} if home else {})})
    equal(done.returncode, 0, f"the browser's exit status ({done.stderr[-500:]})")
    return done.stdout


def check_adapted(dom):
    contains(dom, 'name="retort-test"', "page")
    contains(dom, 'data-photo="gray"', "page")
    contains(dom, 'data-moving="gray"', "page")
    contains(dom, 'data-ad="1x1"', "page")


@heavy("a browser's own time limits")
@seconds(120)
def test_page_with_ads_and_images(lab):
    browser()
    services = Services(lab)
    nginx = Nginx(lab, make_site(lab))
    proxy = Retort(lab, services=services.for_proxy())
    check_adapted(browse(lab, proxy, nginx.url("/index.html")))
    entries = [e for e in proxy.log() if nginx.authority in e["url"]]
    true(len(entries) >= 3, f"{len(entries)} requests in the log")
    with open(nginx.access_log, encoding="utf-8") as log:
        lacks(log.read(), "/ads/banner.gif", "nginx's access log")


def trusting_home(lab, authority):
    """A home directory whose certificate store, which Chromium uses, trusts the authority for web sites."""
    if not shutil.which("certutil"):
        raise Skip("Debian package libnss3-tools")
    store = lab.path("home/.pki/nssdb")
    os.makedirs(store)
    for words in (("-N", "--empty-password"), ("-A", "-t", "C,,", "-n", "retort", "-i", authority.file)):
        subprocess.run(["certutil", "-d", f"sql:{store}", *words], check=True, capture_output=True, timeout=60)
    return lab.path("home")


@heavy("a browser's own time limits")
@seconds(180)
def test_intercepted_page(lab):
    """The same by https: opened, adapted by all four services, and the second time from the cache without any connection to the
    origin. What access denies is a page of the proxy, not an error of the browser. A browser that does not know the proxy's authority
    sees nothing of it."""
    browser()
    root, authority = Authority(lab, "root"), Authority(lab, "authority", path_length=0)
    certificate, port = root.leaf(SITE), ports.take()
    nginx = Nginx(lab, make_site(lab), extra=f"""listen 127.0.0.1:{port} ssl;
        ssl_certificate {certificate.file};  ssl_certificate_key {certificate.key};  gzip off;""")
    services = Services(lab, ads="||localhost^*/ads/\n")
    proxy = Retort(lab, services=services.for_proxy(), origin={"ca_file": root.file}, extra=f"""
connect_ports = {{ {port} }}
url_class games {{ domain = "games.localhost" }}
access games {{ action = deny }}
access all {{ action = allow }}
authority {{ certificate = "{authority.file}"  key = "{authority.key}" }}
intercept all {{ action = bump }}""")
    home, url = trusting_home(lab, authority), f"https://{SITE}:{port}/index.html"
    check_adapted(browse(lab, proxy, url, home))
    with open(nginx.access_log, encoding="utf-8") as log:
        asked = log.read()
    lacks(asked, "/ads/banner.gif", "nginx's access log")
    nginx.stop()
    check_adapted(browse(lab, proxy, url, home))
    inside = [entry for entry in proxy.log() if entry["url"].startswith(f"https://{SITE}")]
    results = [entry["result"] for entry in inside if entry["url"].endswith((".html", ".jpg", "moving.gif"))]
    equal(sorted(results), ["HIT"] * 3 + ["MISS"] * 3, "results of the page and its two pictures")
    verdicts = {verdict["service"] for entry in inside for verdict in entry["icap"] if verdict["verdict"] in ("MODIFIED", "SATISFIED")}
    equal(verdicts, {"adremover", "gray", "inject", "gzip"}, "services that changed something")
    contains(browse(lab, proxy, f"https://games.localhost:{port}/", home), "the access rules of this proxy do not allow this request",
             "what a browser shows of a host that is denied")
    stranger = browse(lab, proxy, url, lab.path("profile"))
    lacks(stranger, "retort-test", "what a browser shows that does not trust the authority")
