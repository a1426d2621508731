"""Chromium without a screen, driven by the DevTools protocol through a pipe: no port, no driver, no package but Debian's chromium.

    browser = Browser(lab)
    page = browser.page("http://127.0.0.1:3129/")
    page.wait("document.querySelector('h1')")        JavaScript, until it is true
    page.type("text"); page.key("Tab"); page.screenshot("build/page.png")
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time

from .checks import Skip

NAMES = ("chromium", "chromium-browser")
AXE = os.path.join(os.path.dirname(__file__), "..", "..", "data", "cache", "axe", "axe.min.js")
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "ArrowRight": (39, ""), "ArrowLeft": (37, ""), "Escape": (27, ""), " ": (32, " ")}


def program():
    for name in NAMES:
        if shutil.which(name):
            return name
    raise Skip("Debian package chromium")


class Browser:
    def __init__(self, lab, arguments=(), before=()):
        """`before`: words of a command that starts the browser elsewhere, such as nsenter's."""
        self.lab = lab
        self.number = 0
        self.events = []
        self.rest = b""
        there, self.commands = os.pipe()
        self.answers, back = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4.
        self.child = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", *before, program(),
             "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--disable-extensions", "--remote-debugging-pipe",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
             f"--user-data-dir={lab.path(lab.unique('profile'))}", *arguments, "about:blank"],
            pass_fds=(there, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(back)
        lab.opens(self)

    def send(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        return self.number

    def read(self, until):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.answers], [], [], max(0, until - time.monotonic()))
            if not ready:
                return None
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise AssertionError("the browser has ended")
            self.rest += got
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        number, until = self.send(method, session, **parameters), time.monotonic() + 30 * self.lab.patience
        while True:
            message = self.read(until)
            if message is None:
                raise AssertionError(f"the browser does not answer {method}")
            if message.get("id") == number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def page(self, url, **media):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"], url, media)

    def stop(self):
        if self.child.poll() is None:
            try:
                self.send("Browser.close")
                self.child.wait(10)
            except (OSError, subprocess.TimeoutExpired):
                self.child.kill()
                self.child.wait()
        for descriptor in (self.commands, self.answers):
            if descriptor is not None:
                os.close(descriptor)
        self.commands = self.answers = None

    def findings(self):
        return []


class Page:
    def __init__(self, browser, session, url, media):
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")
        self.do("Emulation.setScrollbarsHidden", hidden=True)
        self.size(1200, 900)
        self.media(**media)
        self.open(url)

    def do(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def size(self, width, height):
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, **features):
        self.do("Emulation.setEmulatedMedia", features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def open(self, url):
        self.do("Page.navigate", url=url)

    def run(self, expression):
        """The value of JavaScript, as JSON has it; promises are awaited."""
        result = self.do("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def wait(self, expression, seconds=10):
        """Until the JavaScript is true; returns its value."""
        until = time.monotonic() + seconds * self.browser.lab.patience
        while True:
            value = self.run(f"(() => {{ try {{ return {expression}; }} catch {{ return null; }} }})()")
            if value or value == {}:  # a node of the page
                return value
            if time.monotonic() > until:
                raise AssertionError(f"{expression} stays {value!r}; the page says: {self.text()[:1500]}; {self.complaints()}")
            time.sleep(0.03)

    def text(self):
        return self.run("document.body ? document.body.innerText : ''") or ""

    def key(self, name, shift=False):
        code, text = KEYS[name]
        common = {"key": name, "code": "Space" if name == " " else name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.do("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.do("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.do("Input.insertText", text=text)

    def barriers(self):
        """What axe-core finds in the page: ["rule: element", ...]."""
        if not os.path.exists(AXE):
            raise Skip("tests/data/fetch.sh axe-core")
        if not self.run("'axe' in window"):
            with open(AXE, encoding="utf-8") as file:
                self.run(file.read() + "; 0")
        return self.run("""axe.run(document, {resultTypes: ['violations']}).then(result => result.violations.flatMap(
            found => found.nodes.map(node => `${found.id}: ${node.html.slice(0, 150)} ${node.failureSummary}`)))""")

    def complaints(self):
        """What the page wrote to the console and what the browser refused, violations of the policy included."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            if event["method"] == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"] + " " + event["params"]["entry"].get("url", ""))
            if event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append(str(event["params"]["args"]))
        return found

    def screenshot(self, path):
        """All of the page, also what is below the window."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.do("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]))
