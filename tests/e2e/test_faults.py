"""Killing parts of the house while it works: what the configuration promises is what happens."""

import itertools
import os
import signal
import threading
import time

from harness import media
from harness.checks import between, equal, one_of, same_bytes, true, until
from harness.cicap import Cicap, Module
from harness.nginx import Nginx
from harness.origin import Origin
from harness.process import wait_gone
from harness.raw_origin import RawOrigin
from harness.retort import Retort, Service, measure
from harness.services import Services
from harness.suite import heavy, memcheck, seconds
from harness.wire import Truncated, request


QUICK = {"timeout": "2s", "connect_timeout": "500ms", "down_min": "100ms", "down_max": "300ms"}


def house(lab, names=("gray",), **options):
    services = Services(lab, names=names, **options)
    # What the services do takes its time under memcheck: that must not look like a service that hangs.
    quick = {**QUICK, "timeout": f"{2 * lab.patience}s"}
    return services, Nginx(lab, lab.data(".")), Retort(lab, services=services.for_proxy(bypass=True, **quick))


def is_gray(lab, body, name="photos/china.jpg"):
    return media.jpeg_pixels(body) == media.jpeg_pixels(lab.read_data(name), gray=True)


@memcheck
def test_cicap_is_killed_and_comes_back(lab):
    """bypass = true: pages go on unadapted, and are adapted again when c-icap is back."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=True, **QUICK)])
    same_bytes(proxy.get(origin.url("/bytes", n=5000)).body, origin.body(5000), "before")
    cicap.kill()
    for _ in range(3):
        answer, took = measure(lambda: proxy.get(origin.url("/bytes", n=5000, cc="no-store")))
        same_bytes(answer.body, origin.body(5000), "while it is away")
        between(took, 0, 3 * lab.patience, "seconds")
    seen = cicap.count()
    cicap.start()
    def adapted():
        proxy.get(origin.url("/bytes", n=5000, cc="no-store"))
        return cicap.count() > seen
    until(adapted, 10 * lab.patience, "ICAP transactions again", pause=0.1)


@memcheck
def test_cicap_is_killed_without_bypass(lab):
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=False, **QUICK)])
    same_bytes(proxy.get(origin.url("/bytes", n=5000)).body, origin.body(5000), "before")
    cicap.kill()
    for _ in range(3):
        answer, took = measure(lambda: proxy.get(origin.url("/bytes", n=5000, cc="no-store")))
        true(500 <= answer.status < 600, f"status {answer.status}")
        between(took, 0, 3 * lab.patience, "seconds")
    cicap.start()
    until(lambda: proxy.get(origin.url("/bytes", n=5000, cc="no-store")).status == 200, 10 * lab.patience,
          "adapted pages again", pause=0.1)


def test_cicap_is_killed_in_mid_transfer(lab):
    """A body of which an adapted part is out: a cut, never a complete message, nothing stored."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=True, keep="64KB", **QUICK)])
    url = origin.url("/drip", n=3000000, piece=20000, delay=10, cc="max-age=60")
    for attempt in range(2):  # c-icap answers 200 and 204 in turn
        this = url + f"&i={attempt}"
        got = kill_after(proxy, this, 100000, cicap)
        true(got in ("cut", 3000000), f"{got} bytes came as a complete message")
        cicap.start()
        whole = until(lambda: complete(proxy, origin, this), 20 * lab.patience, "a whole body later", pause=0.2)
        same_bytes(whole, origin.body(3000000), "the body afterwards")


def kill_after(proxy, url, length, victim):
    """Fetches it and kills `victim` when `length` bytes are there: "cut", or how many came."""
    seen = [0]

    def sink(piece):
        if seen[0] < length <= seen[0] + len(piece):
            victim.kill()
        seen[0] += len(piece)
    with proxy.wire() as wire:
        wire.send(request("GET", url))
        try:
            wire.response(sink=sink)
        except Truncated:
            return "cut"
    return seen[0]


def complete(proxy, origin, url):
    try:
        answer = proxy.get(url.replace("delay=10", "delay=0"))
        return answer.body if answer.status == 200 else None
    except Truncated:
        return None


def test_cicap_freezes(lab):
    """It accepts and says nothing: a bounded delay, then as configured; afterwards it works again."""
    origin = Origin(lab)
    cicap = Cicap(lab, [Module("echo", "srv_echo.so")])
    proxy = Retort(lab, services=[Service("echo", cicap.uri("echo"), bypass=True, **{**QUICK, "timeout": "800ms"})])
    proxy.get(origin.url("/bytes", n=10))
    cicap.freeze()
    try:
        for _ in range(3):
            answer, took = measure(lambda: proxy.get(origin.url("/bytes", n=5000, cc="no-store")))
            same_bytes(answer.body, origin.body(5000), "while it is frozen")
            between(took, 0, 4 * lab.patience, "seconds")
    finally:
        cicap.thaw()
    seen = cicap.count()
    def adapted():
        proxy.get(origin.url("/bytes", n=5000, cc="no-store"))
        return cicap.count() > seen + 1
    until(adapted, 10 * lab.patience, "ICAP transactions again", pause=0.1)


def test_a_helper_is_killed(lab):
    """Between jobs: it is replaced, and images are gray as before."""
    services, nginx, proxy = house(lab)
    true(is_gray(lab, proxy.get(nginx.url("/photos/china.jpg?1")).body), "gray before")
    before = services.helperd.helpers("gray-helper")
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    services.helperd.wait_helpers("gray-helper", len(before), without=before)
    true(is_gray(lab, proxy.get(nginx.url("/photos/china.jpg?2")).body), "gray afterwards")


def test_a_helper_is_killed_at_work(lab):
    """Its job's client gets the original or a gray image, and never waits for long."""
    services, nginx, proxy = house(lab, gray_processes=1)
    original = lab.read_data("photos/china.jpg")
    stop, answers = threading.Event(), []

    def load():
        number = 0
        while not stop.is_set():
            number += 1
            answers.append(measure(lambda: proxy.get(nginx.url(f"/photos/china.jpg?{number}"))))
    thread = threading.Thread(target=load)
    thread.start()
    for _ in range(6):
        time.sleep(0.25)
        for pid in services.helperd.helpers("gray-helper"):
            os.kill(pid, signal.SIGKILL)
    stop.set()
    thread.join()
    for answer, took in answers:
        equal(answer.status, 200, "status")
        true(answer.body == original or is_gray(lab, answer.body), f"{len(answer.body)} bytes, neither gray nor the original")
        between(took, 0, 8 * lab.patience, "seconds")
    services.helperd.wait_helpers("gray-helper", 1)
    def works():
        return is_gray(lab, proxy.get(nginx.url(f"/photos/china.jpg?{time.monotonic()}")).body)
    until(works, 15 * lab.patience, "gray images again", pause=0.2)


@seconds(90)
def test_a_helper_hangs(lab):
    """It is stopped by its deadline, the client gets the original, another helper takes its place."""
    services, nginx, proxy = house(lab, gray_processes=1, deadline="1s", gray="gray.Deadline 1s")
    pid = services.helperd.wait_helpers("gray-helper", 1)[0]
    os.kill(pid, signal.SIGSTOP)
    answer, took = measure(lambda: proxy.get(nginx.url("/photos/china.jpg?1")))
    same_bytes(answer.body, lab.read_data("photos/china.jpg"), "the original")
    between(took, 0, 6 * lab.patience, "seconds")
    wait_gone(pid, 10 * lab.patience)
    services.helperd.wait_helpers("gray-helper", 1, without=[pid])
    numbers = itertools.count(2)  # a busy machine may take longer than the deadline for the first
    until(lambda: is_gray(lab, proxy.get(nginx.url(f"/photos/china.jpg?{next(numbers)}")).body), 10 * lab.patience, "gray afterwards")


def test_helperd_is_killed_and_comes_back(lab):
    services, nginx, proxy = house(lab, names=("gray", "inject"))
    helpers = services.helperd.helpers()
    services.helperd.kill()
    for pid in helpers:
        wait_gone(pid, 5 * lab.patience)
    same_bytes(proxy.get(nginx.url("/photos/china.jpg?1")).body, lab.read_data("photos/china.jpg"), "image without helperd")
    same_bytes(proxy.get(nginx.url("/html/management.html?1")).body, lab.read_data("html/management.html"), "page without helperd")
    services.helperd.start()
    def works():
        return is_gray(lab, proxy.get(nginx.url(f"/photos/china.jpg?{time.monotonic()}")).body)
    until(works, 10 * lab.patience, "gray images again", pause=0.1)


def test_helpers_end_with_helperd(lab):
    services = Services(lab, names=("gray",))
    pids = services.helperd.helpers()
    services.helperd.stop()
    for pid in pids:
        wait_gone(pid, 5 * lab.patience)


def test_origin_is_killed_in_mid_transfer(lab):
    """Under adaptation by all response services: a cut or an error, and nothing of it in the cache."""
    services = Services(lab, names=("gray", "inject", "gzip"))
    photo, page = lab.read_data("photos/china.jpg"), lab.read_data("html/management.html")
    whole = [False]

    def answer(connection, seen):
        body, kind = (photo, b"image/jpeg") if "jpg" in seen.target else (page, b"text/html")
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: max-age=60\r\n\r\n" % (kind, len(body)))
        connection.send(body if whole[0] else body[:len(body) // 2])
        return not whole[0]
    origin = RawOrigin(lab, answer)
    proxy = Retort(lab, services=services.for_proxy(bypass=True, timeout=f"{2 * lab.patience}s"))
    for path in ("/a.jpg", "/b.html"):
        whole[0] = False
        for _ in range(2):
            try:
                got = proxy.get(origin.url(path), {"Accept-Encoding": "gzip"}, timeout=30 * lab.patience)
                true(got.status >= 500, f"{path}: a complete {got.status} of {len(got.body)} bytes")
            except Truncated:
                pass
        whole[0] = True
        got = proxy.get(origin.url(path))
        equal(got.status, 200, f"{path}: status of the whole")
        true(is_gray(lab, got.body) if "jpg" in path else b"retort-test" in got.body, f"{path}: adapted")


@heavy("many processes")
@seconds(120)
def test_everything_is_killed_in_turn_under_load(lab):
    """With bypass no client sees an error, but for bodies of which an adapted part was on its way."""
    services, nginx, proxy = house(lab, names=("gray", "inject", "gzip"))
    stop, bad, served = threading.Event(), [], [0]
    photo, page = lab.read_data("photos/flower.jpg"), lab.read_data("html/management.html")

    def load(path, original):
        number = 0
        while not stop.is_set():
            number += 1
            try:
                got = proxy.get(nginx.url(f"{path}?{threading.get_ident()}.{number}"))
                if got.status == 502 and b"broke off" in got.body:
                    continue
                if got.status != 200 or len(got.body) < len(original) // 4:
                    bad.append((got.status, path, got.body[-200:]))
                served[0] += 1
            except Truncated:
                served[0] += 1  # an adapted part was out when c-icap was killed
            except Exception as error:  # pylint: disable=broad-except
                bad.append(repr(error))
    threads = [threading.Thread(target=load, args=("/photos/flower.jpg", photo)),
               threading.Thread(target=load, args=("/html/management.html", page))]
    for thread in threads:
        thread.start()
    for turn in range(3):
        time.sleep(0.7)
        for pid in services.helperd.helpers("gray-helper"):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.7)
        services.cicap.kill()
        time.sleep(0.3)
        services.cicap.start()
        time.sleep(0.5)
        services.helperd.kill()
        services.helperd.start()
    stop.set()
    for thread in threads:
        thread.join()
    equal(bad[:3], [], f"bad answers among {served[0]}")
    one_of(served[0] > 20, (True,), f"only {served[0]} answers")
