"""The walk of docs/START.md: its commands as they stand there, in a network of their own, because the ports are the usual ones."""

import json
import os
import re
import signal
import subprocess
import time

from harness.browser import Browser
from harness.checks import Skip, contains, equal, true
from harness.lab import SOURCE
from harness.suite import heavy, seconds

LEAST_COMMANDS = 9
# Without the installation and the build, which are done already.
LONGEST = 150


def blocks():
    """The indented blocks of the guide, each one a text."""
    with open(os.path.join(SOURCE, "docs/START.md"), encoding="utf-8") as guide:
        return [re.sub(r"^    ", "", block, flags=re.M).strip() for block in re.findall(r"(?:^    .*\n)+", guide.read(), flags=re.M)]


class Walker:
    """Two terminals in a directory that looks like the sources with a build in them."""

    def __init__(self, lab):
        self.network = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec sleep infinity"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.network.stdout.readline() != "ready\n":
            self.network.wait()
            raise Skip("a network of its own (unshare --net, as root)")
        self.directory = os.path.join(lab.directory, "sources")
        os.makedirs(os.path.join(self.directory, "build"))
        for name in ("examples", "tests", "conf", "configure"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(self.directory, name))
        for name in ("proxy", "icap-services"):
            os.symlink(os.path.join(lab.builddir, name), os.path.join(self.directory, "build", name))
        self.heard = os.path.join(lab.directory, "quickstart.out")
        self.quickstart = None

    def inside(self):
        return ["nsenter", f"--net=/proc/{self.network.pid}/ns/net"]

    def command(self, text):
        return [*self.inside(), "bash", "-c", text]

    def begin(self, text):
        with open(self.heard, "w", encoding="utf-8") as out:
            self.quickstart = subprocess.Popen(self.command("exec " + text), cwd=self.directory, stdout=out, stderr=out,
                                               stdin=subprocess.DEVNULL)

    def said(self):
        with open(self.heard, encoding="utf-8") as out:
            return out.read()

    def wait_for(self, text):
        until = time.monotonic() + LONGEST
        while text not in self.said():
            true(self.quickstart.poll() is None and time.monotonic() < until, f"{text!r} was not said:\n{self.said()}")
            time.sleep(0.1)

    def run(self, text):
        done = subprocess.run(self.command(text), cwd=self.directory, capture_output=True, text=True, timeout=30, check=False)
        equal(done.returncode, 0, f"status of {text!r}, which said {done.stderr!r}")
        return done.stdout

    def end(self):
        status = None
        if self.quickstart is not None:
            self.quickstart.send_signal(signal.SIGINT)
            status = self.quickstart.wait(60)
        self.network.kill()
        self.network.wait()
        return status


def gray(path):
    """The colours of a JPEG, by djpeg: PGM is gray; a gray PPM has three equal bytes for each pixel."""
    image = subprocess.run(["djpeg", "-pnm", path], capture_output=True, check=True).stdout
    kind, _, _, pixels = re.match(rb"(P[56])\s+(\d+)\s+(\d+)\s+255\s(.*)", image, re.S).groups()
    return kind == b"P5" or pixels[0::3] == pixels[1::3] == pixels[2::3]


def walk(walker):
    start, ready, *commands = blocks()
    equal(start, "examples/quickstart.sh", "the first command")
    walker.begin(start)
    walker.wait_for(ready)
    commands = [line for block in commands for line in block.splitlines()]
    true(len(commands) >= LEAST_COMMANDS, "the commands of the second terminal")
    answers = [walker.run(command) for command in commands]

    photo, original, other = (os.path.join(walker.directory, name) for name in ("photo.jpg", "original.jpg", "photo2.jpg"))
    true(gray(photo) and gray(other) and not gray(original), "the images that came through the proxy are gray, the original is not")
    token = answers[2].strip()
    contains(walker.said(), token, "what quickstart.sh says of the token")
    contains(walker.run("curl -sS --noproxy '*' http://127.0.0.1:3129/"), "<title>Retort", "the page")

    inspected = json.loads(answers[5])["transactions"]
    equal([one["url"] for one in inspected], ["http://127.0.0.1:9000/flower.jpg"], "what was inspected")
    ask = f"curl -sS --noproxy '*' -H 'Authorization: Bearer {token}' 'http://127.0.0.1:3129/v1/inspect/transaction?id={inspected[0]['id']}'"
    contains(walker.run(ask), "gray", "the opened transaction")
    contains(answers[6], "client_requests", "status")
    contains(answers[7], "gray", "services")
    contains(answers[8], "china.jpg", "list of the cache")
    contains(answers[9], "gray", "helpers")
    return token


def look(lab, walker, token):
    """What the guide says that the page shows."""
    with open(os.path.join(SOURCE, "docs/START.md"), encoding="utf-8") as guide:
        address = re.search(r"<(http://\S+)>", guide.read())[1]
    page = Browser(lab, before=walker.inside()).page(address)

    def open_view(name):
        page.run(f"[...document.querySelectorAll('nav a')].find(link => link.innerText === {name!r}).click()")
        page.wait(f"document.querySelector('nav a[aria-current]')?.innerText === {name!r} && document.querySelector('h1')")
    page.wait("document.activeElement.id === 'token'")
    page.type(token)
    page.key("Enter")
    page.wait("/[1-9][0-9]* in the last hour/.test(document.querySelector('main').innerText)")
    open_view("Services")
    page.wait("[...document.querySelectorAll('tbody tr')].some(row => row.cells[0].innerText === 'gray' && row.cells[4].innerText === '2')")
    open_view("Cache")
    page.wait("[...document.querySelectorAll('tbody tr')].some(row => row.innerText.includes('/china.jpg'))")
    open_view("Inspect")
    page.wait("[...document.querySelectorAll('td.url a')].find(link => link.innerText.includes('/flower.jpg'))")
    page.run("[...document.querySelectorAll('td.url a')].find(link => link.innerText.includes('/flower.jpg')).click()")
    page.wait("(images => images.length === 2 && images.every(image => image.naturalWidth > 0))([...document.querySelectorAll('.side img')])")
    for part in ("RECEIVE", "LOG", "Preview", "Body to the service"):
        contains(page.text(), part, "the opened transaction")


@heavy("it is about the guide")
@seconds(240)
def test_the_walk(lab):
    walker, began = Walker(lab), time.monotonic()
    try:
        look(lab, walker, walk(walker))
    finally:
        status = walker.end()
    equal(status, 130, "quickstart.sh after Ctrl-C")
    true(time.monotonic() - began < LONGEST, f"the walk took {time.monotonic() - began:.0f} s")
