"""A real browser through the proxy: a page with ads and images, as a person would see it."""

import shutil
import subprocess

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


@heavy("a browser's own time limits")
@seconds(120)
def test_page_with_ads_and_images(lab):
    program = browser()
    services = Services(lab)
    root = lab.path("site")
    lab.write("site/index.html", PAGE)
    lab.write("site/photo.jpg", lab.read_data("photos/china.jpg"))
    lab.write("site/moving.gif", lab.read_data("gif/Newtons_cradle_animation_book_2.gif"))
    lab.write("site/ads/banner.gif", lab.read_data("gif/postcard.gif"))
    nginx = Nginx(lab, root)
    proxy = Retort(lab, services=services.for_proxy())
    done = subprocess.run(
        [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom",
         f"--user-data-dir={lab.path('profile')}", f"--proxy-server=http://127.0.0.1:{proxy.forward[1]}",
         "--proxy-bypass-list=<-loopback>", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
         "--virtual-time-budget=10000", nginx.url("/index.html")],
        capture_output=True, text=True, timeout=90, check=False)
    dom = done.stdout
    equal(done.returncode, 0, f"the browser's exit status ({done.stderr[-500:]})")
    contains(dom, 'name="retort-test"', "page")
    contains(dom, 'data-photo="gray"', "page")
    contains(dom, 'data-moving="gray"', "page")
    contains(dom, 'data-ad="1x1"', "page")
    entries = [e for e in proxy.log() if nginx.authority in e["url"]]
    true(len(entries) >= 3, f"{len(entries)} requests in the log")
    with open(nginx.access_log, encoding="utf-8") as log:
        lacks(log.read(), "/ads/banner.gif", "nginx's access log")
