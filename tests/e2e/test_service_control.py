"""retortctl services load, unload and order: services put to work, taken out and ordered while the proxy runs, and modules that are
replaced. No request may be lost by it."""

import json
import os
import shutil
import threading

from harness import ports
from harness.adaptation import account
from harness.checks import contains, equal, lacks, same_bytes, true, until
from harness.icap import IcapServer, append
from harness.raw_origin import RawOrigin
from harness.retort import Inside, Retort, Service
from harness.suite import memcheck

TEXT = b"some text\n" * 3000
SAVED = 'saved_settings = "saved.conf"\n'


def origin_of_texts(lab, body=TEXT):
    def answer(connection, seen):
        kept = b"no-store" if "store" in seen.target else b"max-age=60"
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: " + kept +
                        b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return RawOrigin(lab, answer)


def module(lab, name="odd"):
    return lab.built(f"tests/e2e/modules/{name}/.libs/odd.so" if name == "other" else f"tests/e2e/modules/.libs/{name}.so")


def odd(lab, name="odd", word="1", does="head", path=None, **options):
    settings = {"Do": does, "Word": word, "Tell": "on"}
    return Inside(name, path or module(lab), settings=settings, bypass=False, **options)


def marks(proxy, url):
    """What services have put into X-Odd, in their order; of a response that is not stored."""
    seen = proxy.get(url + "?no-store")
    equal(seen.status, 200, url)
    return seen.headers("X-Odd")


def changes(proxy):
    return {change["name"]: change["value"] for change in json.loads(proxy.admin("GET", "/v1/settings/changes").body)["changes"]}


def replace(path, other):
    """As install does: the new file gets the name of the old one."""
    shutil.copy(other, path + ".new")
    os.rename(path + ".new", path)


@memcheck
def test_unload_and_load(lab):
    origin = origin_of_texts(lab)
    proxy = Retort(lab, services=[odd(lab), odd(lab, "two", "2")])
    url = origin.url("/x")
    equal(marks(proxy, url), ["1", "2"], "both")
    said = proxy.ctl("services", "unload", "odd")
    contains(said, "service.odd.disabled: true", "what has changed")
    contains(said, "odd is unloaded", "what retortctl says")
    equal(marks(proxy, url), ["2"], "one is unloaded")
    equal(account(proxy, "odd")["state"], "unloaded", "its state")
    contains(proxy.ctl("services"), "odd (inside), respmod_precache: unloaded", "retortctl services")
    contains(proxy.ctl("diff"), "service.odd.disabled", "retortctl diff")
    metrics = proxy.admin("GET", "/metrics").body.decode()
    contains(metrics, 'retort_icap_service_state{service="odd",state="unloaded"} 1', "metrics")
    lacks(metrics, 'retort_icap_service_up{service="odd"}', "an unloaded service is not down")
    until(lambda: "service odd: it stops" in proxy.process.log(), 10 * lab.patience, "its instance stops")
    equal(proxy.reload().status, 200, "a reload")
    equal(marks(proxy, url), ["2"], "it stays unloaded over a reload")
    proxy.ctl("services", "unload", "odd")
    contains(proxy.ctl("services", "load", "odd"), "odd is loaded", "what retortctl says of load")
    equal(marks(proxy, url), ["1", "2"], "loaded again")
    equal(changes(proxy), {}, "as configured")
    equal((account(proxy, "odd")["state"], account(proxy, "odd")["counts"]["SEEN"]), ("up", 2), "its state; what it counts goes on")
    equal(json.loads(proxy.admin("POST", "/v1/services/unload?name=two").body)["loaded"], False, "the API")
    equal(marks(proxy, url), ["1"], "the other one is unloaded")


def test_a_change_leaves_other_services_alone(lab):
    """A change of something else starts no service anew, and load starts one alone; a reload starts all."""
    origin = origin_of_texts(lab)
    proxy = Retort(lab, services=[odd(lab), odd(lab, "two", "2")])

    def starts(name):
        return proxy.process.log().count(f"service {name}: it starts")
    equal((starts("odd"), starts("two")), (1, 1), "after the start")
    proxy.ctl("set", "cache.memory=24MB")
    equal((starts("odd"), starts("two")), (1, 1), "after a change of the cache")
    proxy.ctl("services", "load", "odd")
    equal((starts("odd"), starts("two")), (2, 1), "after services load odd")
    proxy.ctl("services", "order", "all", "two,odd")
    equal((starts("odd"), starts("two")), (2, 1), "after services order")
    equal(marks(proxy, origin.url("/x")), ["2", "1"], "the order")
    proxy.ctl("set", "service.two.timeout=3s")
    equal((starts("odd"), starts("two")), (2, 2), "after a change of its own section")
    equal(proxy.reload().status, 200, "a reload")
    equal((starts("odd"), starts("two")), (3, 3), "after a reload")
    until(lambda: proxy.process.log().count("it stops") == 4, 10 * lab.patience, "those before have stopped")


def test_load_reads_the_section(lab):
    """load takes the section of the service as the file has it now, and nothing else of the file. Where it can't, all stays."""
    origin = origin_of_texts(lab)
    services = [odd(lab, word="one"), odd(lab, "two", "2")]
    proxy = Retort(lab, services=services)
    url = origin.url("/x")
    proxy.write_config(proxy.text(services=[odd(lab, word="new"), odd(lab, "two", "other")], adapt={"all": ["two"]}))
    proxy.ctl("services", "load", "odd")
    equal(marks(proxy, url), ["new", "2"], "the section of one service alone")
    contains(proxy.ctl("get", "service.odd.settings"), f"{proxy.config_path}:", "where it stands")
    proxy.write_config(proxy.text(services=[odd(lab, does="refuse"), services[1]]))
    done = proxy.run_ctl("services", "load", "odd")
    equal(done.returncode, 1, "settings that the module refuses")
    contains(done.stderr, "it refuses", "why")
    proxy.write_config(proxy.text(services=[services[1]], adapt={"all": ["two"]}))
    done = proxy.run_ctl("services", "load", "odd")
    equal(done.returncode, 1, "a section that is gone")
    contains(done.stderr, "the files of the configuration have no such section for the service odd any more: run \"retortctl reload\"", "why")
    proxy.write_config(proxy.text(services=services) + "nonsense = 1\n")
    done = proxy.run_ctl("services", "load", "odd")
    equal(done.returncode, 1, "a file with a fault")
    contains(done.stderr, "nonsense", "why")
    equal(marks(proxy, url), ["new", "2"], "the old one serves on")
    proxy.write_config(proxy.text(services=services))
    for _ in range(3):
        proxy.ctl("services", "load", "odd")
    equal(marks(proxy, url), ["one", "2"], "as the file has it again")


def test_saved(lab):
    """What is saved outlives the process; what is not does not."""
    origin = origin_of_texts(lab)
    proxy = Retort(lab, services=[odd(lab), odd(lab, "two", "2")], extra=SAVED)
    url = origin.url("/x")
    proxy.ctl("services", "unload", "two", "--save")
    proxy.ctl("services", "order", "all", "two,odd")
    proxy.restart()
    equal(marks(proxy, url), ["1"], "two stays unloaded")
    proxy.ctl("services", "order", "all", "two,odd", "--save")
    proxy.ctl("services", "load", "two")
    equal(marks(proxy, url), ["2", "1"], "loaded in the new order")
    proxy.restart()
    equal(marks(proxy, url), ["1"], "a load that was not saved")
    proxy.ctl("services", "load", "two", "--save")
    proxy.restart()
    equal(marks(proxy, url), ["2", "1"], "loaded, and saved")
    proxy.write_config(proxy.text(extra="", services=[odd(lab, disabled=True), odd(lab, "two", "2")]))
    equal(proxy.reload().status, 200, "a reload with disabled = true in the file")
    equal(marks(proxy, url), ["2"], "disabled by the file")
    proxy.ctl("services", "load", "odd")
    equal(sorted(marks(proxy, url)), ["1", "2"], "loaded over the file")
    done = proxy.run_ctl("services", "unload", "odd", "--save")
    equal(done.returncode, 1, "nothing to save to")
    contains(done.stderr, "set saved_settings to a file", "why")


def test_errors(lab):
    proxy = Retort(lab, services=[odd(lab), odd(lab, "two"), odd(lab, "spare")], adapt={"all": ["odd", "two"]})
    for words, expected in (
            (("load", "gray"), 'there is no service "gray" in the configuration in use, which has odd, two, spare; if it was just added '
                               "to the file, reload"),
            (("unload", "gray"), 'there is no service "gray"'),
            (("order", "images", "odd,two"), 'there is no section adapt "images"; those of the configuration in use are of the classes all'),
            (("order", "all", "two"), "the order leaves out odd: name all services of the chain"),
            (("order", "all", "two,odd,two"), "two is there twice"),
            (("order", "all", "two,odd,gray"), 'there is no service "gray"'),
            (("order", "all", "two,odd,spare"), "spare is not in the chain of adapt all"),
            (("order", "all", "two,,odd"), 'there is no service ""'),
    ):
        done = proxy.run_ctl("services", *words)
        equal(done.returncode, 1, f"services {words}")
        contains(done.stderr, expected, f"services {words}")
    equal(changes(proxy), {}, "nothing has changed")
    done = proxy.run_ctl("services", "load", "spare")
    equal(done.returncode, 0, done.stderr)
    contains(done.stderr, "no adapt section names spare, so no message passes through it", "the note")
    proxy.ctl("set", "adapt.all.disabled=two")
    done = proxy.run_ctl("services", "load", "two")
    contains(done.stderr, "adapt all has two among its disabled services: retortctl unset adapt.all.disabled", "the note")
    proxy.ctl("unset", "--all")
    proxy.write_config(proxy.text(adapt={}))
    equal(proxy.reload().status, 200, "a reload")
    contains(proxy.run_ctl("services", "order", "all", "odd").stderr, "has no adapt section; add one and reload", "without chains")
    proxy.write_config(proxy.text(services=[], adapt={}))
    equal(proxy.reload().status, 200, "a reload")
    contains(proxy.run_ctl("services", "load", "odd").stderr, "has no services; add a section and reload", "without services")


def test_roles(lab):
    """Who may not change settings may not take a filter out."""
    tokens = {"reader": "1" * 64, "operator": "2" * 64, "boss": "3" * 64}
    proxy = Retort(lab, services=[odd(lab)], admin=("127.0.0.1", ports.take()))
    proxy.write_tokens("\n".join([f"lab admin {proxy.token}"] + [f"{name} {role} {tokens[name]}" for name, role in (
        ("reader", "read"), ("operator", "operate"), ("boss", "admin"))]))
    equal(proxy.reload().status, 200, "a reload")
    for name, expected in (("reader", 403), ("operator", 403), ("boss", 200)):
        for path in ("unload?name=odd", "load?name=odd", "order?class=all&services=odd"):
            equal(proxy.admin("POST", f"/v1/services/{path}", token=tokens[name]).status, expected, f"{name}: {path}")


def test_an_icap_service(lab):
    """It is asked no more, also not for its OPTIONS, and asked again."""
    origin = origin_of_texts(lab)
    icap = IcapServer(lab, append(b"+icap"), preview=1024)
    proxy = Retort(lab, services=[Service("s", icap.uri(), bypass=False), odd(lab)])
    url = origin.url("/x?no-store")
    same_bytes(proxy.get(url).body, TEXT + b"+icap", "asked")
    proxy.ctl("services", "unload", "s")
    asked = len(icap.transactions)
    same_bytes(proxy.get(url).body, TEXT, "unloaded")
    equal(account(proxy, "s")["state"], "unloaded", "its state")
    icap.stop()
    same_bytes(proxy.get(url).body, TEXT, "its server is gone, and nobody minds")
    equal(len(icap.transactions), asked, "what it was asked")
    proxy.ctl("services", "order", "all", "odd,s")
    equal(proxy.run_ctl("services", "load", "s").returncode, 0, "services load s")
    equal(proxy.get(url).status, 502, "it is asked again")


def test_an_instance_ends_with_its_last_message(lab):
    origin = origin_of_texts(lab, b"long text\n" * 1_600_000)
    proxy = Retort(lab, services=[odd(lab, does="shout")])
    with proxy.wire() as slow:
        slow.send(f"GET {origin.url('/slow?no-store')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        slow.head()
        proxy.ctl("services", "unload", "odd")
        equal(proxy.get(origin.url("/other?no-store"), {"Range": "bytes=0-9"}).status, 200, "another request meanwhile")
        lacks(proxy.process.log(), "it stops", "the instance")
    until(lambda: "service odd: it stops" in proxy.process.log(), 20 * lab.patience, "the instance stops")


class Load:
    """Clients that ask all the time; each response must be whole, and one that some order of the services makes."""

    def __init__(self, proxy, url, allowed, clients=4):
        self.proxy, self.url, self.allowed, self.wrong, self.done = proxy, url, allowed, [], 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(i,)) for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def ask(self, number):
        count = 0
        while not self.over.is_set() and not self.wrong:
            count += 1
            try:
                seen = self.proxy.get(f"{self.url}?no-store={number}.{count}")
            except Exception as error:  # pylint: disable=broad-except
                self.wrong.append(repr(error))
                continue
            made = tuple(seen.headers("X-Odd"))
            if seen.status != 200 or made not in self.allowed or seen.body.upper() != TEXT.upper():
                self.wrong.append(f"{seen.status} {made} {len(seen.body)} bytes")
            self.done += 1

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        equal(self.wrong, [], "responses under load")


def test_no_request_is_lost(lab):
    """Three workers, clients that ask all the time: load, unload, order, reloads and new code, again and again."""
    origin = origin_of_texts(lab)
    path = lab.path("odd.so")
    shutil.copy(module(lab), path)
    proxy = Retort(lab, workers=3, services=[odd(lab, path=path, does="shout"), odd(lab, "two", "2")])
    ones = ((), ("1",), ("1+",))
    allowed = {one + two for one in ones for two in ((), ("2",))} | {two + one for one in ones for two in ((), ("2",))}
    load = Load(proxy, origin.url("/x"), allowed)
    for turn in range(6):
        proxy.ctl("services", "unload", "odd")
        proxy.ctl("services", "order", "all", "two,odd" if turn % 2 else "odd,two")
        proxy.ctl("services", "unload", "two")
        replace(path, module(lab, "other" if turn % 2 == 0 else "odd"))
        proxy.ctl("services", "load", "odd")
        proxy.ctl("services", "load", "two")
        equal(proxy.reload().status, 200, "a reload")
    load.end()
    true(load.done > 20, f"requests meanwhile: {load.done}")
    equal(marks(proxy, origin.url("/x")), ["2", "1"], "the last code in the last order")
    equal([account(proxy, name)["account"]["bypassed"] for name in ("odd", "two")], [0, 0], "messages without adaptation")


@memcheck
def test_a_replaced_module(lab):
    """Its new code runs after load and after a reload, under another version; a new file of the same code has the same one. A file
    that is no module changes nothing."""
    origin = origin_of_texts(lab)
    path = lab.path("odd.so")
    shutil.copy(module(lab), path)
    proxy = Retort(lab, services=[odd(lab, path=path)])
    url, stored = origin.url("/x"), origin.url("/stored")

    def seen():
        return marks(proxy, url), proxy.get(stored).header("X-Odd"), account(proxy, "odd")["istag"]
    first = seen()
    equal(first[:2], (["1"], "1"), "the first code")
    replace(path, module(lab))
    proxy.ctl("services", "load", "odd")
    equal(seen(), first, "the same code in a new file")
    replace(path, module(lab, "other"))
    equal(seen(), first, "a new file that nobody has loaded")
    proxy.ctl("services", "load", "odd")
    second = seen()
    equal(second[:2], (["1+"], "1+"), "the new code, also for what older code has made and is stored")
    true(second[2] != first[2], "its version")
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.write("no module")
    os.rename(path + ".new", path)
    done = proxy.run_ctl("services", "load", "odd")
    equal(done.returncode, 1, "no module")
    contains(done.stderr, "the module can't be loaded", "why")
    os.remove(path)
    contains(proxy.run_ctl("services", "load", "odd").stderr, "No such file", "no file")
    equal(seen(), second, "the code before runs on")
    shutil.copy(module(lab), path)
    equal(proxy.reload().status, 200, "a reload")
    equal(seen(), first, "the first code again, after a reload")
