"""Who waits longer than whom: a helper that hangs costs its own picture, and no other picture and no other service."""

import os
import re
import signal
import threading

from harness.adaptation import account
from harness.checks import contains, equal, lacks, true, until
from harness.lab import SOURCE
from harness.retort import Retort
from harness.services import Services
from test_unable import PAGE, RED, serve

LADDER = {"deadline": "600ms", "gray": "gray.Deadline 800ms"}  # and the proxy waits for a second


def hold(services):
    """The helpers for pictures hang, as one does in a picture that never ends."""
    for pid in services.helperd.wait_helpers("gray-helper", 2):
        os.kill(pid, signal.SIGSTOP)


def test_a_helper_that_hangs_costs_one_picture(lab):
    """Two helpers hang with a picture each; two more pictures wait behind these, and a new helper may still have the time for them.
    Two failures would bring the service down, had it failed."""
    services = Services(lab, names=("gray", "gzip"), **LADDER)
    pictures, pages = serve(lab), serve(lab, PAGE, "text/html")
    proxy = Retort(lab, services=services.for_proxy(timeout="%ds" % lab.patience, failures_down=2), cache={"memory": "32MB"})
    equal(proxy.get(pictures.url("/warm.png")).body == RED, False, "gray before")
    hold(services)
    got = []
    threads = [threading.Thread(target=lambda n=n: got.append(proxy.get(pictures.url("/%d.png" % n)).body)) for n in range(4)]
    for thread in threads:
        thread.start()
    page = proxy.get(pages.url("/page.html"), {"Accept-Encoding": "gzip"})
    equal(page.header("Content-Encoding"), "gzip", "a page meanwhile")
    for thread in threads:
        thread.join()
    unchanged = got.count(RED)
    true(2 <= unchanged <= 4, f"{unchanged} of four pictures went on unchanged, not the two or more that hanging helpers had or kept waiting")
    entries = [entry for entry in proxy.log(6) if entry["url"].endswith(".png")]
    verdicts = [v["verdict"] for entry in entries[1:] for v in entry["icap"] if v["service"] == "gray"]
    equal(sorted(verdicts), ["MODIFIED"] * (4 - unchanged) + ["UNABLE"] * unchanged, "verdicts: the service has answered")
    until(lambda: proxy.get(pictures.url("/next.png"), {"Cache-Control": "no-cache"}).body != RED, 30, "gray again", pause=0.05)
    equal([account(proxy, name)["account"]["bypassed"] for name in ("gray", "gzip")], [0, 0], "failures")


def test_a_timeout_that_is_too_short_is_told(lab):
    """The service says how long it may take, and the log whose setting is to be changed."""
    services = Services(lab, names=("gray",), **LADDER)
    for timeout, told in (({"timeout": "700ms"}, "timeout is 700 ms"), ({"timeout": "9s", "first_byte_timeout": "800ms"},
                                                                     "first_byte_timeout is 800 ms"), ({"timeout": "900ms"}, None)):
        origin = serve(lab)
        proxy = Retort(lab, services=services.for_proxy(**timeout))
        proxy.get(origin.url("/a.png"))
        text = proxy.process.log()
        if told is None:
            lacks(text, "for an answer", "log")
        else:
            contains(text, "may take 800 ms for an answer, but " + told, "log")


def seconds_of(text, pattern):
    found = re.findall(pattern, text)
    true(found, "nothing like " + pattern)
    return [float(number) for number in found]


def test_examples_have_it_right(_lab):
    """Of those that we give: the helper's deadline, then the service's, then the proxy's timeout."""
    def read(path):
        with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
            return file.read()

    service = seconds_of(read("docs/SERVICES.md"), r"`gray\.Deadline TIME` \| (\d+)s")
    helpers = [seconds for path in ("conf/helperd.conf.in", "conf/helperd-build.conf.in", "docs/retort-helperd.8")
               for seconds in seconds_of(read(path), r"(?s)pool gray \{.*?\n\s*deadline\s*= \"(\d+)s")]
    proxies = [seconds for path in ("README.md", "docs/OPERATIONS.md")
               for seconds in seconds_of(read(path), r"icap_service gray .*\btimeout = \"(\d+)s")]
    proxies += seconds_of(read("conf/retort.conf"), r"#icap_service gray \{[^}]*?timeout = \"(\d+)s")
    proxies += seconds_of(read("examples/quickstart.sh"), r"bypass = true  timeout = ..(\d+)s")
    true(max(helpers) < service[0] < min(proxies), f"{helpers} < {service} < {proxies}")
