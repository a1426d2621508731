"""What a service inside the proxy may do wrong (faults/bad.c), and what becomes of the message and of the proxy then. docs/SERVICES.md,
"Faults of a module", promises it. Where a service runs in a thread or a process, the messages fare the same (run.py --host)."""

import os
import signal
import time

from harness.adaptation import account, whole_or_cut
from harness.checks import contains, equal, lacks, same_bytes, true, until
from harness.origin import Origin
from harness.retort import Inside, Retort, run_check
from harness.suite import heavy, seconds
from harness.wire import Truncated, request
from test_inside import LONG, Texts
from test_service_manager import Manager

ORIGINAL, ADAPTED, STOPPED = "original", "adapted", "stopped"

# With a text of 10 bytes and one of 330 KB, both with their length. What the client gets without bypass: the adapted body, the
# original one, or nothing that looks whole; the member of the account that counts it; words of the error.
PROMISES = {
    "none": (ADAPTED, None, None),
    "leak": (ADAPTED, None, None),
    "descriptor": (ADAPTED, None, None),
    "member": (ADAPTED, None, None),
    "late_head": (ADAPTED, None, None),
    "counter": (ADAPTED, None, None),
    "framing": (STOPPED, "error_protocol", "contradicts itself"),
    "skip_head": (ORIGINAL, None, None),
    "skip_body": (ORIGINAL, None, None),
    "unable": (ORIGINAL, "unable", None),
    "took": (STOPPED, "error_protocol", "took more of the body than there was"),
    "got": (STOPPED, "error_protocol", "gave more than there was room for"),
    "flow": (STOPPED, "error_protocol", "an unknown answer"),
    "verdict": (STOPPED, "error_protocol", "an unknown verdict"),
    "answer": (STOPPED, "error_protocol", "answered a response"),
    "split_head": (STOPPED, "error_protocol", "bytes that HTTP does not allow"),
    "long": (STOPPED, "error_protocol", "longer than the length"),
    "short": (STOPPED, "error_protocol", "shorter than the length"),
    "endless": (STOPPED, "error_protocol", "longer than the length"),
    "empty": (STOPPED, "error_protocol", "longer than the length"),
    "keeps_length": (STOPPED, "error_protocol", "states another length than the body has"),
    "hold": (STOPPED, "error_server", "neither goes on nor waits"),
    "never": (STOPPED, "error_server", "neither goes on nor waits"),
    "past_deadline": (STOPPED, "error_server", "neither goes on nor waits"),
    "closed": (STOPPED, "error_timeout", "did not answer in time"),
    "spins": (STOPPED, "error_timeout", "did not answer in time"),
}


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def bad(lab, fault, name="bad", **options):
    service = Inside(name, lab.built("tests/e2e/faults/.libs/bad.so"), settings={"Fault": fault}, **{"timeout": "500ms", **options})
    if service.options.get("runs") == "process":  # which hears of no events
        service.options["module"] = lab.built("tests/e2e/faults/quiet/.libs/bad.so")
    return service


def proxy_of(lab, texts, faults, workers=1, environment=None, **options):
    """A service for each fault, and a class of URLs for each: /FAULT/short and /FAULT/long."""
    for fault in faults:
        texts.bodies.update({f"/{fault}/short": b"One line.\n", f"/{fault}/long": LONG})
    return Retort(lab, workers=workers, environment=environment, services=[bad(lab, fault, fault, **options) for fault in faults], adapt={fault: [fault] for fault in faults},
                  url_classes={fault: {"path_regex": f"^/{fault}/"} for fault in faults})


def bounded(proxy, url):
    """What whole_or_cut returns, of a body that may have no end."""
    seen = 0

    def count(piece):
        nonlocal seen
        seen += len(piece)
        true(seen < 10_000_000, f"{url}: a body without an end")
        pieces.append(piece)
    pieces = []
    try:
        with proxy.wire() as wire:
            wire.send(request("GET", url))
            answer = wire.response(sink=count)
    except (Truncated, ConnectionError):
        return None
    answer.body = b"".join(pieces)
    return answer


def test_each_fault_has_its_promised_result(lab):
    texts = Texts(lab)
    promises = {fault: promise for fault, promise in PROMISES.items() if not (lab.asan and fault == "leak")}  # it sees what is lost
    proxy = proxy_of(lab, texts, promises, bypass=False)
    for fault, (result, counter, words) in promises.items():
        sizes = ("short",) if fault == "skip_body" else ("short", "long")  # it keeps no more than 64 KB
        for size in sizes:
            path = f"/{fault}/{size}"
            seen = bounded(proxy, texts.url(path))
            if result == STOPPED:
                true(seen is None or seen.status == 502, f"{path}: {seen and (seen.status, seen.body[:100])}")
                continue
            same_bytes(seen.body, texts.bodies[path] if result == ORIGINAL else texts.bodies[path].upper(), path)
            for name in ("X-Late", "X-Forged") + (("X-Bad",) if result == ORIGINAL else ()):
                equal(seen.header(name), None, f"{path}: {name}")
        if counter:
            equal(account(proxy, fault)["account"][counter], len(sizes), f"{fault}: {counter}")
        if words:
            contains(str(proxy.entries(f"/{fault}/{sizes[-1]}")[-1]["icap"]), words, f"{fault}: the log")
        equal(account(proxy, fault)["connections"], 0, f"{fault}: messages that are left")
    same_bytes(proxy.get(texts.url("/none/long?again")).body, LONG.upper(), "afterwards")
    contains(proxy.process.log(), "service counter: it counts an event that has no name", "an event without a name")


def test_each_fault_with_bypass(lab):
    """Where the service has failed before anything of its body went out, the original passes: also the one that it was given."""
    texts = Texts(lab)
    faults = {fault: promise for fault, promise in PROMISES.items() if promise[0] == STOPPED}
    proxy = proxy_of(lab, texts, faults, bypass=True)
    late = ("long", "short", "endless")  # what is wrong is seen at the end
    for fault in faults:
        seen = bounded(proxy, texts.url(f"/{fault}/short"))
        true(fault in late or seen is not None, f"{fault}: with bypass the client gets an answer")
        if seen is not None:
            equal(seen.status, 200, f"{fault}: status")
            same_bytes(seen.body, b"One line.\n", f"{fault}: with bypass")
            equal([seen.header(name) for name in ("X-Bad", "X-Forged")], [None, None], f"{fault}: fields of the service")
        equal(bounded(proxy, texts.url(f"/{fault}/short")) is None, seen is None, f"{fault}: the second time, since it is not stored")


def test_a_body_that_is_kept_too_late(lab):
    """The service has taken all of the body, and then wants it to pass as it is. The proxy has a copy of the short one; of the long one
    nobody has all, so no client may take what is left for the whole."""
    texts = Texts(lab)
    for bypass in (False, True):
        proxy = proxy_of(lab, texts, ["keeps_late"], bypass=bypass, keep="16KB", keep_on_disk="0")
        for how in ("", "?chunked"):
            seen = bounded(proxy, texts.url(f"/keeps_late/short{how}"))
            same_bytes(seen.body, b"One line.\n", f"short{how}")
            equal(seen.header("X-Bad"), "value", f"short{how}: the head of the service")
            for attempt in (1, 2):  # what is cut is not stored
                seen = bounded(proxy, texts.url(f"/keeps_late/long{how}"))
                true(seen is None or seen.status == 502, f"long{how}, {attempt}: {seen and (seen.status, len(seen.body))}")
        equal(account(proxy, "keeps_late")["account"]["error_protocol"], 4, "what was counted")
        contains(str(proxy.entries("/keeps_late/long")[-1]["icap"]), "set keeps_body after it had taken a part", "the log")


def test_a_body_without_an_end(lab):
    """No length is stated, so the client gets bytes as long as it wants them. It takes no more memory, and ends with the client."""
    texts = Texts(lab)
    proxy = proxy_of(lab, texts, ["endless"], bypass=False, total_timeout="60s")
    with proxy.wire() as wire:
        wire.send(f"GET {texts.url('/endless/long?chunked-no-store')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        equal(wire.head().status, 200, "status")
        seen = 0
        while seen < 20_000_000:
            seen += len(wire.socket.recv(65536))
    until(lambda: account(proxy, "endless")["connections"] == 0, 10 * lab.patience, "the end of the call")
    true(lab.asan or lab.valgrind or proxy.memory_peak_kb() < 100_000, f"{proxy.memory_peak_kb()} KB")


def test_descriptors_and_memory_that_are_lost(lab):
    """They are the proxy's, and it says so in its metrics; retort-service-test finds the service (test_service_test.py)."""
    texts = Texts(lab)
    proxy = proxy_of(lab, texts, ["descriptor"], bypass=False)
    proxy.get(texts.url("/descriptor/short?0"))
    before = descriptors(proxy.pid)
    for number in range(1, 21):
        proxy.get(texts.url(f"/descriptor/short?{number}"))
    true(descriptors(proxy.pid) >= before + 15, f"{descriptors(proxy.pid)} descriptors, {before} before")


def test_state_that_messages_share(lab):
    """A module counts bytes in a static variable, and changes each 4096th of them: all its instances in the proxy count together, on
    workers and in threads, and each alone in a process of its own. retort-service-test finds it (test_service_test.py)."""
    texts = Texts(lab)
    texts.bodies.update({"/one": b"a" * 4095, "/two": b"b" * 10})
    for runs, expected in (("worker", b"C" + b"B" * 9), ("thread", b"C" + b"B" * 9), ("process", b"B" * 10)):
        services = [bad(lab, "static", name, runs=runs, bypass=False) for name in ("one", "two")]
        proxy = Retort(lab, services=services, adapt={name: [name] for name in ("one", "two")},
                       url_classes={name: {"path_regex": f"^/{name}$"} for name in ("one", "two")})
        same_bytes(proxy.get(texts.url("/one")).body, b"A" * 4095, f"{runs}: the first service")
        same_bytes(proxy.get(texts.url("/two")).body, expected, f"{runs}: the second service")


def test_a_call_that_does_not_come_back(lab):
    """The worker is held for good: others go on, and a service manager hears no more signs of life, so that it starts the proxy anew."""
    texts = Texts(lab)
    manager = Manager(lab)
    texts.bodies["/other"] = b"other"
    proxy = proxy_of(lab, texts, ["loop"], workers=2, environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "500000"})
    manager.wait_for(lab, "WATCHDOG=1")
    with proxy.wire() as held:
        held.send(f"GET {texts.url('/loop/short')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: is_silent(manager), 30 * lab.patience, "silence")
        answered = 0
        for number in range(30):  # the kernel gives each connection to one of the two workers
            try:
                answered += proxy.get(texts.url(f"/other?{number}"), timeout=2 * lab.patience).status == 200
            except (OSError, AssertionError):
                continue
            break
        true(answered > 0, "requests that the other worker answers")
    proxy.kill()


def hanging(lab, does, name="one", **options):
    """A service that does not come back from one of its functions."""
    return Inside(name, lab.built("tests/e2e/modules/.libs/odd.so"), settings={"Do": f"{does}-hang"}, **options)


def held(lab, does, **options):
    """A proxy whose worker hangs, and the connection of the request that it hangs in. It has written a line of its access log before,
    which no timer of the worker hands over any more."""
    texts = Texts(lab)
    texts.bodies.update({"/held": b"One line.\n", "/other": b"other"})
    proxy = Retort(lab, services=[hanging(lab, does)], adapt={"one": ["one"]}, url_classes={"one": {"path_regex": "^/held"}}, **options)
    wire = proxy.wire()
    for path in ("/other", "/held"):
        wire.send(request("GET", texts.url(path)))
    equal(wire.response().body, b"other", "before")
    until(lambda: proxy.status()["workers_silent"] == 1, 20 * lab.patience, "a worker that hangs")
    return proxy, wire


def ends(lab, proxy, does, what):
    equal(proxy.wait_exit(20 * lab.patience), 0, f"{what}: exit status")
    contains(proxy.process.log(), f"worker 0 does not end: it has been in the function {does} of the service one for ", what)
    equal([entry["url"][-6:] for entry in proxy.log()], ["/other"], f"{what}: the access log")


@seconds(90)
def test_an_end_while_a_worker_hangs(lab):
    """Nobody can end the thread: the proxy names the function, writes what is to be written, and goes: when drain_timeout is over, or at
    the second signal."""
    for does in ("begin", "push"):
        proxy, wire = held(lab, does, drain_timeout="1s", cache={"disk": {lab.path(lab.unique("volume")): {"size": "16MB"}}})
        proxy.terminate()
        ends(lab, proxy, does, does)
        wire.close()
    proxy, wire = held(lab, "push", drain_timeout="1h")
    proxy.terminate()
    until(lambda: "draining" in proxy.process.log(), 20 * lab.patience, "the first signal")
    proxy.terminate()
    ends(lab, proxy, "push", "the second signal")
    wire.close()


@seconds(60)
def test_an_end_while_a_module_hangs_in_its_stop(lab):
    """Neither a reload, which ends the instance before, nor the end waits for it."""
    origin = Origin(lab)
    for runs in ("worker", "thread"):
        proxy = Retort(lab, services=[hanging(lab, "stop", runs=runs)])
        proxy.ctl("reload")
        equal(proxy.get(origin.url("/text", say="hello")).text(), "HELLO", f"{runs}: it serves")
        proxy.terminate()
        equal(proxy.wait_exit(20 * lab.patience), 0, f"{runs}: exit status")
        equal(proxy.process.log().count("service one: its function stop does not come back; it is left behind"), 2, f"{runs}: both instances")


@seconds(60)
def test_an_end_while_a_thread_of_a_service_hangs(lab):
    texts = Texts(lab)
    proxy = Retort(lab, services=[hanging(lab, "push", runs="thread", timeout="500ms")])
    same_bytes(proxy.get(texts.url("/short")).body, b"One line.\n", "the message passes")
    proxy.terminate()
    equal(proxy.wait_exit(20 * lab.patience), 0, "exit status")
    contains(proxy.process.log(), "service one: its thread does not end: a function of it does not come back; it is left behind", "the log")


@seconds(60)
def test_a_reload_while_a_worker_hangs(lab):
    """It says who has not taken the new settings, and why; so does a takeover, which needs the sockets of all workers."""
    proxy, wire = held(lab, "begin", drain_timeout="1s")
    done = proxy.run_ctl("reload")
    equal(done.returncode, 1, "exit status of retortctl")
    contains(done.stderr, "worker 0 goes on with the settings from before: it has been in the function begin of the service one for ", "retortctl")
    proxy.hang_up()
    until(lambda: proxy.process.log().count("not applied: worker 0 goes on") == 2, 20 * lab.patience, "the reload by a signal")
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: "did not take over: this one goes on as before" in proxy.process.log(), 40 * lab.patience, "the takeover")
    contains(proxy.process.log(), "worker 0 does not give its sockets: it has been in the function begin of the service one for ", "why it can't be taken over")
    proxy.terminate()
    ends(lab, proxy, "begin", "the end")
    wire.close()


def is_silent(manager):
    before = len(manager.listen())
    time.sleep(2)
    return len(manager.listen()) == before


@heavy("they report the crash, which is wanted")
def test_a_crash_ends_the_process(lab):
    """The proxy is gone, and the service manager starts another one; what is on disk is there again."""
    texts = Texts(lab)
    texts.bodies.update({"/crash/short": b"One line.\n", "/kept": LONG})
    proxy = Retort(lab, services=[bad(lab, "crash")], adapt={"crash": ["bad"]}, url_classes={"crash": {"path_regex": "^/crash/"}})
    proxy.get(texts.url("/kept"))
    equal(whole_or_cut(proxy, texts.url("/crash/short")), None, "what the client of that message gets")
    status = proxy.wait_exit(20 * lab.patience)
    equal(status, -signal.SIGSEGV, "the end of the process")
    proxy.kill()


def test_settings_out_of_range(lab):
    """Numbers that are too large for their option, or for any: refused with file and line, nothing is cut off or wraps around."""
    listen = 'listen "127.0.0.1:3128" { mode = forward }\n'
    gzip, gray = (lab.built(f"icap-services/.libs/{name}.so") for name in ("gzip", "gray"))
    for path, setting, words in (
            (gzip, "Level = 10", "Level"), (gzip, "Level = 18446744073709551617", "Level"),
            (gzip, "Level = -1", "Level"), (gzip, "MinSize = 18014398509481984K", "MinSize"),
            (gzip, "MinSize = 99999999999999999999", "MinSize"), (gzip, "FlushEvery = 99999999999999999999s", "FlushEvery"),
            (gray, "Deadline = 18446744073709552s", "Deadline"), (gray, "MaxSize = 17179869184G", "MaxSize"),
            (gray, 'MaxPixels = "1e9"', "MaxPixels")):
        status, said = run_check(lab, lab.write("range.conf", f'{listen}service s {{ module = "{path}"  settings = {{ {setting} }} }}\n'))
        equal(status, 1, f"{setting}: {said}")
        contains(said, f"range.conf:2: service s: settings: {words}", setting)
