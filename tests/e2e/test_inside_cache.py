"""Services inside the proxy and the cache: what they make behind it, and what is remembered of them, as of ICAP services
(test_icap_postcache.py, test_icap_remembered.py, test_icap_verdicts.py)."""

import os
import shutil
import threading

from harness.adaptation import account
from harness.checks import equal, same_bytes, true, until
from harness.origin import Origin, echoed
from harness.retort import Inside, Retort
from harness.suite import memcheck
from harness.wire import Truncated

PAGE = {"say": "page", "cc": "max-age=600"}


def module(lab, name="odd"):
    return lab.built(f"tests/e2e/modules/{name}/.libs/odd.so" if name == "other" else "tests/e2e/modules/.libs/odd.so")


def odd(lab, does, name="odd", word="1", path=None, point="respmod_postcache", more=None, **options):
    return Inside(name, path or module(lab), point=point, bypass=False, settings={"Do": does, "Word": word, **(more or {})}, **options)


def seen(proxy, name="odd"):
    """How many messages the service was given."""
    return account(proxy, name)["account"]["requests"]


def in_parallel(count, call):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(call())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_each_client_has_its_own(lab):
    """Behind the cache without remember: asked each time, also for hits; the stored response stays as it is."""
    origin = Origin(lab)
    proxy = Retort(lab, services=[odd(lab, "shout")])
    url = origin.url("/text", **PAGE)
    equal([proxy.get(url).text() for _ in range(3)], ["PAGE"] * 3, "bodies")
    equal((origin.count("/text"), seen(proxy)), (1, 3), "origin requests, messages")
    equal(proxy.results("/text", 3), ["MISS", "HIT", "HIT"], "results")
    proxy.ctl("services", "unload", "odd")
    equal(proxy.get(url).text(), "page", "what is stored")
    equal(proxy.result("/text"), "HIT", "its result")


@memcheck
def test_made_once_for_all(lab):
    origin = Origin(lab)
    proxy = Retort(lab, services=[odd(lab, "shout", remember=True)])
    for framing in ("/bytes", "/chunked"):
        for size in (0, 1, 5000, 300000):
            url, before = origin.url(framing, n=size, cc="max-age=600"), seen(proxy)
            for source in ("127.0.0.1", "127.0.0.2", "127.0.0.1"):
                same_bytes(proxy.get(url, source=source).body, origin.body(size).upper(), f"{framing} of {size}")
            equal(seen(proxy), before + 1, f"messages for {framing} of {size}")
    equal((origin.count("/bytes"), origin.count("/chunked")), (4, 4), "origin requests")
    equal(tuple(proxy.counter(name) for name in ("adapted_made", "adapted_hits")), (8, 16), "counters")


def test_made_again(lab):
    """By other settings, other code and a bump; what is equal is used again. Nothing of it asks the origin."""
    origin, path = Origin(lab), lab.path("odd.so")
    shutil.copy(module(lab), path)
    services = [odd(lab, "head", path=path, remember=True)]
    proxy = Retort(lab, services=services)
    url = origin.url("/text", **PAGE)

    def get(word, made):
        before = seen(proxy)
        equal([proxy.get(url).header("X-Odd") for _ in range(2)], [word] * 2, "X-Odd")
        equal(seen(proxy) - before, made, f"messages for {word}")
    get("1", 1)
    proxy.ctl("services", "load", "odd")
    get("1", 0)
    for code, word in (("other", "1+"), ("odd", "1")):
        shutil.copy(module(lab, code), path + ".new")
        os.rename(path + ".new", path)
        get("1" if code == "other" else "1+", 0)
        proxy.ctl("services", "load", "odd")
        get(word, 1)
    proxy.write_config(proxy.text(services=[odd(lab, "head", word="two", path=path, remember=True)]))
    equal(proxy.reload().status, 200, "a reload")
    get("two", 1)
    proxy.ctl("services", "bump", "odd")
    get("two", 1)
    equal(origin.count("/text"), 1, "origin requests")


def test_on_disk(lab):
    """After a restart what the same code and settings have made is used; what older code has made is not."""
    disk = {"disk": {lab.path("volume"): {"size": "64MB"}}}
    origin, path = Origin(lab), lab.path("odd.so")
    shutil.copy(module(lab), path)
    proxy = Retort(lab, services=[odd(lab, "head", path=path, point="respmod_precache")], cache=disk)
    url = origin.url("/text", **PAGE)
    equal(proxy.get(url).header("X-Odd"), "1", "the first")
    proxy.restart()
    equal((proxy.get(url).header("X-Odd"), seen(proxy), origin.count("/text")), ("1", 0, 1), "after a restart")
    proxy.stop()
    shutil.copy(module(lab, "other"), path + ".new")
    os.rename(path + ".new", path)
    proxy.start()
    equal((proxy.get(url).header("X-Odd"), origin.count("/text")), ("1+", 2), "after a restart with other code")


def test_order_and_chains(lab):
    """A variant belongs to the chain that made it."""
    origin = Origin(lab)
    proxy = Retort(lab, services=[odd(lab, "head", remember=True), odd(lab, "head", "two", "2", remember=True)])
    url = origin.url("/text", **PAGE)

    def marks():
        return proxy.get(url).headers("X-Odd")
    equal([marks() for _ in range(2)], [["1", "2"]] * 2, "as configured")
    proxy.ctl("services", "order", "all", "two,odd")
    equal([marks() for _ in range(2)], [["2", "1"]] * 2, "in the other order")
    proxy.ctl("services", "unload", "two")
    equal([marks() for _ in range(2)], [["1"]] * 2, "one alone")
    proxy.ctl("services", "load", "two")
    equal([marks() for _ in range(2)], [["2", "1"]] * 2, "both again")
    equal(origin.count("/text"), 1, "origin requests")


def test_variants(lab):
    """Of a response with Vary, and by the fields that the result depends on."""
    origin = Origin(lab)
    proxy = Retort(lab, services=[odd(lab, "shout", remember=True, remember_by=["Accept"])])
    vary = origin.url("/echo", cc="max-age=600", vary="Accept-Language")
    for _ in range(2):
        for language in ("de", "en"):
            body = proxy.get(vary, {"Accept-Language": language}).text()
            true(language.upper() in body and body == body.upper(), f"{language}: {body}")
    plain, before = origin.url("/text", **PAGE), seen(proxy)
    for _ in range(2):
        for accept in ("a/b", "c/d"):
            equal(proxy.get(plain, {"Accept": accept}).text(), "PAGE", accept)
    equal(seen(proxy) - before, 2, "messages for two values of Accept")
    equal(origin.count("/text"), 1, "origin requests")


def test_many_who_want_the_same(lab):
    """Collapsed behind one fetch and one message, before the cache and behind it; each with a message of his own where nothing is
    remembered."""
    for point, remember, messages in (("respmod_precache", False, 1), ("respmod_postcache", True, 1), ("respmod_postcache", False, 8)):
        origin = Origin(lab)
        proxy = Retort(lab, services=[odd(lab, "wait", point=point, timeout="60s", **({"remember": True} if remember else {}))],
                       cache={"memory": "32MB", "collapse_timeout": "60s"})
        url = origin.url("/bytes", n=50000, cc="max-age=600", ms=500)
        answers = in_parallel(8, lambda proxy=proxy, url=url: proxy.get(url).body)
        for body in answers:
            same_bytes(body, origin.body(50000).upper(), f"{point}, {remember}")
        equal((len(answers), origin.count("/bytes"), seen(proxy)), (8, 1, messages), f"{point}, {remember}: answers, fetches, messages")


def test_failures_are_not_remembered(lab):
    origin = Origin(lab)
    proxy = Retort(lab, services=[odd(lab, "fail", remember=True)])
    url = origin.url("/text", **PAGE)
    equal([proxy.get(url).text() for _ in range(2)], ["page"] * 2, "bodies")
    proxy.write_config(proxy.text(services=[odd(lab, "abort", remember=True)]))
    equal(proxy.reload().status, 200, "a reload")
    for _ in range(2):
        try:
            status = proxy.get(origin.url("/bytes", n=300000, cc="max-age=600")).status
            equal(status, 502, "an answer that is whole")
        except (Truncated, ConnectionError):
            pass
    proxy.write_config(proxy.text(services=[odd(lab, "shout", remember=True)]))
    equal(proxy.reload().status, 200, "a reload")
    equal(proxy.get(url).text(), "PAGE", "once it works")
    same_bytes(proxy.get(origin.url("/bytes", n=300000, cc="max-age=600")).body, origin.body(300000).upper(), "once it works")


@memcheck
def test_verdicts_on_requests(lab):
    """What permits it, answers included, is used again until the settings are others."""
    origin = Origin(lab)
    proxy = Retort(lab, services=[odd(lab, "head", "marks", point="reqmod_precache", more={"Lifetime": 600}),
                                  odd(lab, "answer", "denies", point="reqmod_precache", more={"Lifetime": 600})],
                   adapt={"all": ["marks"], "denied": ["denies"]}, url_classes={"denied": {"path_regex": "/text"}})
    for _ in range(3):
        equal(echoed(proxy.get(origin.url("/echo")))["header"]("x-odd"), "1", "the field at the origin")
    for _ in range(3):
        equal(proxy.get(origin.url("/text", say="hello")).body, b"denied", "an answer")
    equal([(seen(proxy, name), account(proxy, name)["account"]["remembered"]) for name in ("marks", "denies")], [(2, 4), (1, 2)],
          "messages, verdicts used again")
    proxy.ctl("services", "load", "denies")
    proxy.get(origin.url("/text", say="hello"))
    equal(seen(proxy, "denies"), 1, "the same settings and code")
    proxy.ctl("services", "bump", "denies")
    proxy.get(origin.url("/text", say="hello"))
    equal(seen(proxy, "denies"), 2, "after a bump")
    until(lambda: account(proxy, "denies")["connections"] == 0, 10 * lab.patience, "no messages are left")
