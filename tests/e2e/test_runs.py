"""Services that run in threads and processes of their own (service.runs). What they make of messages is tested by the tests of
services and of services inside the proxy, under `run.py --host thread` and `--host process`; here is what is special: the same
bytes beside each other, processes that end, hang and lie, and that nobody outlives the proxy."""

import gzip
import os
import re
import shutil
import signal
import threading
import time

from harness.adaptation import account, in_parallel, whole_or_cut
from harness.checks import contains, equal, lacks, same_bytes, true, until
from harness.metrics import scrape, value
from harness.origin import Origin
from harness.process import children_of, gone, nice_of, stand_still, wait_gone
from harness.retort import Inside, Retort, run_check
from harness.services import Services
from harness.suite import memcheck
from test_inside import LONG, Texts, each, module, odd, verdict_of
from test_inside_faults import PROMISES, STOPPED, bad
from test_service_content import do, keeper

RUNS = ("worker", "thread", "process")
QUICK = {"timeout": "1s", "hang_timeout": "1s"}


def processes(proxy, name="odd"):
    return account(proxy, name)["processes"]


def pids(proxy, name="odd"):
    return [process["pid"] for process in processes(proxy, name) if "pid" in process]


def await_state(lab, proxy, state, name="odd", starts=0):
    def reached():
        seen = account(proxy, name)
        return seen["state"] == state and sum(process["starts"] for process in seen["processes"]) >= starts
    until(reached, 20 * lab.patience, f"{name} is {state}, and was started {starts} times")


def test_the_same_bytes_everywhere(lab):
    """One origin, and a proxy for each place: heads and bodies are equal."""
    texts = Texts(lab)
    behaviours = ("count", "head", "nothing", "shout", "hold", "skip-late", "pass", "abort", "long", "bad-head", "greedy", "stuck")
    proxies = {runs: each(lab, texts, behaviours, runs=runs, keep="16KB", keep_on_disk="0") for runs in RUNS}
    for name in behaviours:
        for size in ("short", "long"):
            for how in ("", "?chunked"):
                url = texts.url(f"/{name}/{size}{how}")
                seen = {runs: whole_or_cut(proxy, url) for runs, proxy in proxies.items()}
                # what has gone through "pass" when it lets go depends on how the pieces came
                facts = {runs: one and (one.status, one.header("X-Odd"), one.body.upper() if name == "pass" else one.body) for runs, one in seen.items()}
                for runs in ("thread", "process"):
                    true(facts[runs] == facts["worker"], f"{name} {size}{how}: {runs} differs from worker: {str(facts[runs])[:90]}, {str(facts['worker'])[:90]}")
                equal(verdict_of(proxies["process"], f"/{name}/{size}"), verdict_of(proxies["worker"], f"/{name}/{size}"), f"{name} {size}: the log")
    for runs, proxy in proxies.items():
        until(lambda proxy=proxy: "service count: it counts an event that has no name" in proxy.process.log(), 20 * lab.patience, f"{runs}: said")
        equal(account(proxy, "count")["account"]["error_closed"], 0, f"{runs}: an event without a name ends no process")


def test_a_move_keeps_what_is_remembered(lab):
    """A reload that changes `runs` alone: what was stored before the cache and remembered behind it is used on, and the version is the same."""
    texts = Texts(lab)
    for point, more in (("respmod_precache", {}), ("respmod_postcache", {"remember": True})):
        def service(runs, point=point, more=more):
            return odd(lab, "shout", runs=runs, point=point, **more)
        proxy = Retort(lab, services=[service("worker")])
        url = texts.url(f"/long?{point}")
        first = proxy.get(url)
        same_bytes(first.body, LONG.upper(), "the service has changed it")
        same_bytes(proxy.get(url).body, first.body, "again")
        asked, version = account(proxy, "odd")["account"]["requests"], account(proxy, "odd")["istag"]
        for runs in (*RUNS[1:], "worker"):
            proxy.write_config(proxy.text(services=[service(runs)]))
            equal(proxy.reload().status, 200, f"{point}: a move to {runs}")
            same_bytes(proxy.get(url).body, first.body, f"{point}: {runs}")
            equal(account(proxy, "odd")["account"]["requests"], asked, f"{point}: {runs}: how often the service was asked")
            equal(account(proxy, "odd")["istag"], version, f"{point}: {runs}: the version")
            same_bytes(proxy.get(texts.url(f"/short?no-store-{runs}")).body, b"ONE LINE.\n", f"{point}: it works as {runs}")
            asked += 1


def test_the_four_services_everywhere(lab):
    services = {runs: Services(lab, host="inside") for runs in ("worker", "process")}
    page = b"<html><head><title>x</title></head><body>" + b"text " * 5000 + b"</body></html>"
    texts = Texts(lab)
    texts.bodies["/page"] = page
    chain = {"all": ["adremover", "gray", "inject", "gzip"]}
    proxies = {runs: Retort(lab, services=one.for_proxy(runs=runs), adapt=chain) for runs, one in services.items()}
    versions = {runs: [account(proxy, name)["istag"] for name in ("gzip",)] for runs, proxy in proxies.items()}
    equal(versions["process"], versions["worker"], "equal settings are equal versions, wherever they run")
    for path in ("/page", "/long", "/short"):
        one, two = (proxies[runs].get(texts.url(path), {"Accept-Encoding": "gzip"}) for runs in ("worker", "process"))
        equal((two.status, two.header("Content-Encoding"), two.header("Vary")), (one.status, one.header("Content-Encoding"), one.header("Vary")), path)
        # an encoder gives bytes out earlier when the next ones are late
        plain = [gzip.decompress(seen.body) if seen.header("Content-Encoding") == "gzip" else seen.body for seen in (one, two)]
        same_bytes(plain[1], plain[0], path)


def test_three_workers_share_the_four_services(lab):
    """Three workers, and two threads of each service, have one instance of each between them. Each answer is what it is alone."""
    services, texts = Services(lab, host="inside", gray_more="queue_large = 16"), Texts(lab)
    texts.bodies.update({"/page": b"<html><head><title>x</title></head><body>" + b"text " * 5000 + b"</body></html>",
                         "/photo": lab.read_data("photos/flower.jpg"), "/ads/banner": b"an advertisement"})
    texts.types = {"/page": b"text/html", "/photo": b"image/jpeg"}
    for options in ({}, {"runs": "thread", "threads": 2}):
        proxy = Retort(lab, workers=3, services=services.for_proxy(**options), adapt={"all": ["adremover", "gray", "inject", "gzip"]},
                       extra="policy all { cache = never }")

        def ask(path, proxy=proxy):
            seen = proxy.get(texts.url(path), {"Accept-Encoding": "gzip"})
            equal(seen.status, 200, path)
            return gzip.decompress(seen.body) if seen.header("Content-Encoding") == "gzip" else seen.body
        alone = {path: ask(path) for path in ("/page", "/photo", "/ads/banner", "/long")}
        for path in ("/page", "/photo", "/ads/banner"):
            true(alone[path] != texts.bodies[path], f"{path} is adapted")

        def visit(ask=ask, alone=alone):
            return all(ask(path) == alone[path] for _ in range(3) for path in alone)
        equal(in_parallel(8, visit), [True] * 8, f"visits of eight clients at a time, {options}")


def test_faults_are_told_alike(lab):
    """What a module does wrong is counted and named as it is where it runs in a worker. A process has the same code."""
    texts = Texts(lab)
    faults = {fault: PROMISES[fault] for fault in ("answer", "took", "got", "flow", "verdict", "split_head", "framing", "never", "long", "counter")}
    texts.bodies.update({f"/{fault}": LONG for fault in faults})
    services = [bad(lab, fault, fault, runs="thread", bypass=False) for fault in faults]
    proxy = Retort(lab, services=services, adapt={service.name: [service.name] for service in services},
                   url_classes={service.name: {"path_regex": f"^/{service.name}$"} for service in services})
    for service in services:
        result, counter, words = faults[service.name]
        seen = whole_or_cut(proxy, texts.url(f"/{service.name}"))
        if result == STOPPED:
            true(seen is None or seen.status == 502, f"{service.name}: {seen and seen.status}")
            equal(account(proxy, service.name)["account"][counter], 1, f"{service.name}: {counter}")
            contains(str(proxy.entries(f"/{service.name}")[-1]["icap"]), words, f"{service.name}: the log")
        else:
            same_bytes(seen.body, LONG.upper(), service.name)


def test_a_crash_harms_only_its_messages(lab):
    """The message that the module crashed with passes without it, or fails, as bypass says; other services go on; the process is
    started again, each time later; and its state says why."""
    texts = Texts(lab)
    for path in ("/crash", "/crash2", "/crash3", "/stops", "/fine", "/fine2"):
        texts.bodies[path] = LONG
    proxy = Retort(lab, services=[odd(lab, "push-crash", "crash", runs="process"),
                                  odd(lab, "begin-exit", "stops", runs="process", bypass=False),
                                  odd(lab, "shout", "fine", runs="process", threads=2)],
                   adapt={name: [name] for name in ("crash", "stops", "fine")},
                   url_classes={name: {"path_regex": f"^/{name}"} for name in ("crash", "stops", "fine")})
    equal(len(pids(proxy, "fine")), 2, "processes of a service with threads = 2")
    first = pids(proxy, "crash")[0]
    same_bytes(proxy.get(texts.url("/crash")).body, LONG, "with bypass")
    contains(str(proxy.entries("/crash")[-1]["icap"]), "its process ended", "the access log")
    stopped = proxy.get(texts.url("/stops"))
    equal(stopped.status, 502, "without bypass")
    same_bytes(proxy.get(texts.url("/fine")).body, LONG.upper(), "another service")
    await_state(lab, proxy, "up", "crash", starts=2)
    true(pids(proxy, "crash")[0] != first and gone(first), "another process")
    contains(proxy.process.log(), f"service crash: its process {first} was ended by signal 11", "the log")
    contains(proxy.process.log(), "service stops: its process", "the log")
    contains(proxy.process.log(), "ended with status 3; it is started again in 1 s", "the log")
    proxy.get(texts.url("/crash2"))
    until(lambda: "service crash: " in proxy.process.log() and "again in 2 s" in proxy.process.log(), 20 * lab.patience, "the pause doubles")
    await_state(lab, proxy, "up", "crash", starts=3)
    proxy.get(texts.url("/crash3"))
    until(lambda: "again in 4 s" in proxy.process.log(), 20 * lab.patience, "and doubles again")
    await_state(lab, proxy, "down", "crash")
    endpoint = account(proxy, "crash")["endpoints"][0]
    contains(endpoint["error"], "signal 11", "why it is down")
    process = processes(proxy, "crash")[0]
    contains(process["error"], "signal 11", "why that process is down")
    for what, seen in (("endpoint", endpoint), ("process", process)):
        true(0 < seen["retry_in"] <= 4, f"{what}: seconds until it is started again: {seen['retry_in']}")
    same_bytes(proxy.get(texts.url("/crash?down")).body, LONG, "while it is down, messages pass")
    equal(account(proxy, "crash")["account"]["error_down"], 1, "counted")
    shown = proxy.ctl("services")
    equal(len(re.findall(r"since [^;]*signal 11 [^;]*; next try in [0-4]\.\d s\n", shown)), 2, f"retortctl services: {shown}")
    metrics = scrape(proxy)
    equal(value(metrics, "retort_service_runners", service="fine"), 2, "metrics: runners")
    true(value(metrics, "retort_service_process_starts_total", service="crash") >= 2, "metrics: starts")
    equal(value(metrics, "retort_icap_service_error_closed_total", service="crash"), 3, "metrics: messages whose process ended")
    contains(proxy.ctl("services"), f"process {pids(proxy, 'fine')[0]}: up", "retortctl services")


def test_a_module_that_can_not_start(lab):
    """A constructor or a start that crashes, hangs or refuses harms the proxy neither at its start nor at a reload."""
    texts, listen = Texts(lab), 'listen "127.0.0.1:3128" { mode = forward }\n'
    for name, does, expected in (("doomed", "", "was ended by signal 6"), ("odd", "start-crash", "was ended by signal 11"),
                                 ("odd", "start-hang", "did not start within start_timeout (700 ms)"),
                                 ("odd", "refuse", "does not start: odd.Do: it refuses"),
                                 ("odd", "refuse, Tell = on", "does not start: odd.Do: it refuses"), ("odd", "start-exit", "ended with status 3")):
        settings = f"settings = {{ Do = {does} }}" if does else ""
        section = f'service s {{ module = "{module(lab, name)}"  runs = process  start_timeout = "700ms"  {settings} }}\n'
        status, said = run_check(lab, lab.write("checked.conf", listen + section))
        equal(status, 1, f"retort -t: {does or name}: {said}")
        contains(said, expected, "what -t says")
        contains(said, "checked.conf:2: service s: ", "the place")
    proxy = Retort(lab, services=[odd(lab, "shout", runs="process")])
    proxy.write_config(proxy.text(services=[odd(lab, "shout", runs="process"), Inside("doomed", module(lab, "doomed"), runs="process")], adapt={"all": ["odd"]}))
    true(proxy.reload().status >= 400, "a reload with a module that dies")
    same_bytes(proxy.get(texts.url("/long")).body, LONG.upper(), "the old configuration serves on")
    until(lambda: len(children_of(proxy.process.pid)) == 1, 20 * lab.patience, "the processes of the refused configuration are gone")


def test_what_needs_the_workers(lab):
    """A module with a timer, or one that hears of connections, is refused in a process; one that asks for content in a thread or a
    process is told that there is no cache."""
    listen, outside = 'listen "127.0.0.1:3128" { mode = forward }\n', module(lab, "outside")
    for runs, expected in (("thread", 0), ("process", 1)):
        status, said = run_check(lab, lab.write("checked.conf", f'{listen}service s {{ module = "{outside}"  runs = {runs} }}\n'))
        equal(status, expected, f"retort -t, {runs}: {said}")
    contains(said, "checked.conf:2: service s: the module outside has a timer, or hears of requests, connections or names", "what -t says")
    contains(said, "set runs = worker or runs = thread", "what to do")
    for runs in ("thread", "process"):
        proxy = Retort(lab, services=[keeper(lab, runs=runs)])
        for what in ("query", "fetch", "leave", "validate", "expire", "delete", "pin", "inject", "pieces", "read", "parts"):
            equal(do(proxy, what, "http://a.example/", head="HTTP/1.1 200 OK||", body="x", length=3), {"status": "none"}, f"{what} in a {runs}")
        equal(do(proxy, "flood", "http://a.example/", count=10), {"begun": "0"}, f"many at a time in a {runs}")


def test_a_hang_ends(lab):
    """A function that does not return: the message fails after timeout, and the process is ended after hang_timeout."""
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "push-hang", runs="process", timeout="1s", hang_timeout="4s")])
    first = pids(proxy)[0]
    same_bytes(proxy.get(texts.url("/long")).body, LONG, "the message passes")
    equal(account(proxy, "odd")["account"]["error_timeout"], 1, "timeouts")
    wait_gone(first, 20 * lab.patience)
    until(lambda: "it has not answered for hang_timeout" in proxy.process.log(), 20 * lab.patience, "the log")
    await_state(lab, proxy, "up", starts=2)
    until(lambda: f"its process {pids(proxy)[0]} runs, after 1 that ended" in proxy.process.log(), 20 * lab.patience, "the log says that it is back")
    equal((processes(proxy)[0]["hangs"], value(scrape(proxy), "retort_service_hangs_total", service="odd")), (1, 1), "hangs")
    until(lambda: len(children_of(proxy.process.pid)) == 1, 20 * lab.patience, "one process")


def test_an_end_that_leaves_a_process_behind(lab):
    """The module has started a process of its own, which has a copy of the socket and goes on: the end is seen all the same."""
    texts, file = Texts(lab), lab.write("lives", "")
    proxy = Retort(lab, services=[odd(lab, "begin-leave", runs="process", settings={"Word": file}, timeout="1h", hang_timeout="1h")])
    first = pids(proxy)[0]
    try:
        same_bytes(proxy.get(texts.url("/long"), timeout=30 * lab.patience).body, LONG, "the message passes")
        equal(account(proxy, "odd")["account"]["error_closed"], 1, "messages whose process ended")
        await_state(lab, proxy, "up", starts=2)
        contains(proxy.process.log(), f"its process {first} was ended by signal 11", "the log")
    finally:
        os.unlink(file)


def test_a_process_that_lies_is_ended(lab):
    """It writes over all memory that it shares with the proxy."""
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "push-scribble", runs="process", **QUICK)], workers=3)
    first = pids(proxy)[0]
    same_bytes(proxy.get(texts.url("/long")).body, LONG, "the message passes")
    wait_gone(first, 20 * lab.patience)
    equal(account(proxy, "odd")["account"]["bypassed"], 1, "counted")
    await_state(lab, proxy, "up", starts=2)
    true(proxy.process.running(), "the proxy")


def test_kills_at_work(lab):
    """kill -9 of the process again and again, under load: each message is whole, adapted or original."""
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "shout", runs="process", threads=2)], workers=2)
    ended, wrong = threading.Event(), []

    def load():
        while not ended.is_set():
            seen = whole_or_cut(proxy, texts.url("/long?store"))
            if seen is not None and seen.body not in (LONG, LONG.upper()):
                wrong.append(len(seen.body))
    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        for pid in pids(proxy):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.4)
    ended.set()
    for thread in threads:
        thread.join()
    equal(wrong, [], "lengths of bodies that are neither")
    await_state(lab, proxy, "up")
    until(lambda: proxy.get(texts.url("/long?store")).body == LONG.upper(), 20 * lab.patience, "adapted again")


def test_no_process_outlives_the_proxy(lab):
    """kill -9 of the proxy: its processes end, also one that hangs."""
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "shout", runs="process", nice=7), odd(lab, "push-hang", "hangs", runs="process")],
                   adapt={"all": ["odd"], "hangs": ["hangs"]}, url_classes={"hangs": {"path_regex": "/short"}})
    own, hanging = pids(proxy)[0], pids(proxy, "hangs")[0]
    equal(nice_of(own), 7, "its nice value")
    equal([os.readlink(f"/proc/{own}/fd/{fd}") for fd in (0, 1)], ["/dev/null"] * 2, "its standard input and output")
    files = {os.readlink(f"/proc/{own}/fd/{fd}") for fd in os.listdir(f"/proc/{own}/fd") if int(fd) > 2}
    files = {re.sub(r"\d+", "N", name) for name in files}
    # its socket to the proxy, eventfds of itself and the workers, its loop; nothing that the proxy has open besides
    equal(files - {"socket:[N]", "anon_inode:[eventfd]", "anon_inode:[eventpoll]"}, set(), "what it has open")
    lacks(open(f"/proc/{proxy.process.pid}/maps", encoding="ascii").read(), "odd.so", "the module is not in the proxy")
    with proxy.wire() as client:
        client.send(f"GET {texts.url('/short')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: account(proxy, "hangs")["connections"] == 1, 10 * lab.patience, "a message that hangs")
        proxy.kill()
        for pid in (own, hanging):
            wait_gone(pid, 20 * lab.patience)


def test_a_process_that_is_stopped_ends_with_the_proxy(lab):
    """It hears nothing, so the proxy ends it before it is gone itself; one whose module hangs likewise."""
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "shout", runs="process"), odd(lab, "push-hang", "hangs", runs="process", timeout="1s", hang_timeout="1h")],
                   adapt={"all": ["odd"], "hangs": ["hangs"]}, url_classes={"hangs": {"path_regex": "/short"}})
    own, hanging = pids(proxy)[0], pids(proxy, "hangs")[0]
    proxy.get(texts.url("/short"))
    stand_still(own)
    try:
        proxy.terminate()
        equal(proxy.wait_exit(20 * lab.patience), 0, "exit status")
        equal((gone(own), gone(hanging)), (True, True), "the processes are gone")
        lacks(proxy.process.log(), "left behind", "the log")
    finally:
        if not gone(own):
            os.kill(own, signal.SIGKILL)


def test_many_at_once(lab):
    """One runner: messages that wait, and a reader that takes its time, hold no other one up."""
    texts = Texts(lab)
    services, adapt = [], {}
    for runs in ("thread", "process"):
        # both kinds of messages go to the same runner
        services.append(odd(lab, "wait-at-first", f"odd-{runs}", runs=runs, timeout="6s"))
        adapt[runs] = [f"odd-{runs}"]
        texts.bodies.update({f"/{runs}/first": LONG, f"/{runs}/text": LONG, f"/{runs}/big": b"many lines\n" * 400_000})
    proxy = Retort(lab, services=services, adapt=adapt, url_classes={runs: {"path_regex": f"^/{runs}/"} for runs in adapt})
    clients = []

    def ask(path):
        clients.append(proxy.wire())
        clients[-1].send(f"GET {texts.url(path)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    for runs in adapt:
        for i in range(40):
            ask(f"/{runs}/first?store&{i}")
        until(lambda runs=runs: account(proxy, f"odd-{runs}")["connections"] == 40, 5 * lab.patience, "40 messages that wait")
        ask(f"/{runs}/big?store")
        equal(clients[-1].head().status, 200, "a slow reader")
        seen = in_parallel(8, lambda runs=runs: proxy.get(texts.url(f"/{runs}/text?store")).body)
        true(all(body == LONG.upper() for body in seen), f"{runs}: others meanwhile")
        true(account(proxy, f"odd-{runs}")["connections"] >= 40, "they wait still")
    for client in clients:
        client.close()
    for runs in adapt:
        until(lambda runs=runs: account(proxy, f"odd-{runs}")["connections"] == 0, 20 * lab.patience, "they are gone")


def test_what_older_code_makes_is_not_remembered(lab):
    """One of two processes is started again and finds other code: what the other one makes counts as made by the old."""
    origin, path = Origin(lab), lab.path("odd.so")
    shutil.copy(module(lab, "odd"), path)
    proxy = Retort(lab, services=[Inside("odd", path, point="respmod_postcache", bypass=False, settings={"Do": "head"}, runs="process", threads=2,
                                         remember=True)])

    def word(number):
        return proxy.get(origin.url("/text", say=f"page {number}", cc="max-age=600")).header("X-Odd")
    shutil.copy(lab.built("tests/e2e/modules/other/.libs/odd.so"), path + ".new")
    os.rename(path + ".new", path)
    old, new = pids(proxy)
    os.kill(old, signal.SIGKILL)
    await_state(lab, proxy, "up", starts=3)
    until(lambda: len(pids(proxy)) == 2, 20 * lab.patience, "two processes")
    words = [word(number) for number in range(20)]
    equal(set(words), {"1", "1+"}, "both work")
    os.kill(new, signal.SIGKILL)
    until(lambda: len(pids(proxy)) == 2 and new not in pids(proxy), 20 * lab.patience, "two processes with the new code")
    equal({word(number) for number in range(20)}, {"1+"}, "after the restart of the second one")


@memcheck
def test_reloads_under_load(lab):
    """Where a service runs changes again and again at a reload: no request is lost, all are adapted, and processes of configurations
    that are gone end."""
    texts = Texts(lab)
    proxy = Retort(lab, services=[odd(lab, "shout", runs="process", bypass=False)], workers=3)
    ended, seen = threading.Event(), []

    def load():
        while not ended.is_set():
            answer = proxy.get(texts.url("/long?store"))
            seen.append((answer.status, answer.body == LONG.upper()))
    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i, runs in enumerate(("thread", "worker", "process", "thread", "process")):
        proxy.write_config(proxy.text(services=[odd(lab, "shout", runs=runs, bypass=False, settings={"Word": str(i)})]))
        equal(proxy.reload().status, 200, f"a reload with runs = {runs}")
        count = len(seen)
        until(lambda: len(seen) > count + 5, 20 * lab.patience, "requests")
    ended.set()
    for thread in threads:
        thread.join()
    equal(set(seen), {(200, True)}, "status, and whether it is adapted")
    until(lambda: children_of(proxy.process.pid) == pids(proxy), 20 * lab.patience, "only the processes of the last one are left")
    contains(proxy.ctl("services"), f"process {pids(proxy)[0]}: up", "retortctl services")
    until(lambda: account(proxy, "odd")["counts"]["SEEN"] >= len(seen), 20 * lab.patience, "what the service counts itself, wherever it ran")
