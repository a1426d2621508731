"""SIGTERM and friends."""

import os
import signal
import threading
import time

from harness.checks import between, contains, equal, raises, same_bytes, true, until
from harness.helperd import Helperd
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import memcheck
from harness.wire import Wire, request


@memcheck
def test_terminate_when_idle(lab):
    origin, proxy = Origin(lab), Retort(lab)
    idle = proxy.wire()
    idle.send(request("GET", origin.url("/text", say="hello")))
    equal(idle.response().text(), "hello", "body")
    proxy.terminate()
    equal(proxy.wait_exit(5), 0, "exit status")
    true(idle.at_end(), "an idle connection should be closed")


@memcheck
def test_terminate_drains_a_download(lab):
    origin, proxy = Origin(lab), Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/drip", n=30000, piece=1000, delay=50, cc="no-store")))
        wire.head()
        proxy.terminate()
        until(lambda: not accepts(proxy), 5 * lab.patience, "the listener to close")
        same_bytes(wire.read_bytes(30000), origin.body(30000), "the download that ran")
        true(wire.at_end(5 * lab.patience), "the connection should close after it")
    equal(proxy.wait_exit(5), 0, "exit status")


def accepts(proxy):
    try:
        Wire(proxy.forward, timeout=1).close()
        return True
    except OSError:
        return False


def test_terminate_drains_an_upload(lab):
    origin, proxy = Origin(lab), Retort(lab)
    with proxy.wire() as wire:
        wire.send(request("POST", origin.url("/echo"), {"Content-Length": "20"}) + b"0123456789")
        time.sleep(0.2)
        proxy.terminate()
        time.sleep(0.3)
        wire.send(b"0123456789")
        equal(wire.response().status, 200, "status")
    equal(proxy.wait_exit(5), 0, "exit status")


def test_drain_is_asked_for_by_many(lab):
    """Two orders that come at the same time are one order, not an order to hurry."""
    lab.needs("admin")
    origin, proxy = Origin(lab), Retort(lab, drain_timeout="20s")
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/drip", n=20000, piece=1000, delay=50, cc="no-store")))
        wire.head()
        asking = [Wire(proxy.admin_path) for _ in range(12)]
        for admin in asking:
            admin.send(request("POST", "/drain", host="localhost", body=b""))
        same_bytes(wire.read_bytes(20000), origin.body(20000), "the download that ran")
    equal(proxy.wait_exit(5), 0, "exit status")


def test_drain_has_a_limit(lab):
    origin = Origin(lab)
    proxy = Retort(lab, drain_timeout="1s")
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/drip", n=1000000, piece=100, delay=100, cc="no-store")))
        wire.head()
        start = time.monotonic()
        proxy.terminate()
        equal(proxy.wait_exit(8), 0, "exit status")
        between(time.monotonic() - start, 0.5, 5 * lab.patience, "seconds")


def test_second_terminate_does_not_wait(lab):
    origin = Origin(lab)
    proxy = Retort(lab, drain_timeout="60s", stop_seconds=20)
    with proxy.wire() as wire:
        wire.send(request("GET", origin.url("/drip", n=1000000, piece=100, delay=100, cc="no-store")))
        wire.head()
        proxy.terminate()
        time.sleep(0.3)
        proxy.terminate()
        status = proxy.wait_exit(8)
    proxy.process.expected_status = status
    true(status in (0, 1, -signal.SIGTERM), f"exit status {status}")


def test_interrupt_stops_like_terminate(lab):
    proxy = Retort(lab)
    proxy.process.send_signal(signal.SIGINT)
    equal(proxy.wait_exit(5), 0, "exit status")


def test_broken_pipe_is_harmless(lab):
    origin, proxy = Origin(lab), Retort(lab)
    proxy.process.send_signal(signal.SIGPIPE)
    time.sleep(0.1)
    equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body")


def test_clients_that_reset_do_no_harm(lab):
    origin, proxy = Origin(lab), Retort(lab)
    for moment in range(30):
        wire = proxy.wire()
        wire.send(request("GET", origin.url("/bytes", n=1 << 20, cc="no-store")))
        time.sleep(moment * 0.002)
        wire.abort()
    equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body")


def test_terminate_under_load(lab):
    """Requests at the moment of the end are answered whole or refused, never cut."""
    origin = Origin(lab)
    proxy = Retort(lab, workers=2)
    cut, whole = [], [0]

    def load():
        while True:
            try:
                wire = Wire(proxy.forward, timeout=10)
            except OSError:
                return
            try:
                wire.send(request("GET", origin.url("/bytes", n=20000, cc="no-store")))
                if wire.response().body == origin.body(20000):
                    whole[0] += 1
            except ConnectionError:
                pass  # closed before the request was taken
            except AssertionError as error:
                if wire.buffer or "inside a line: b''" not in str(error):
                    cut.append(str(error)[:100])
            finally:
                wire.close()
    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    until(lambda: whole[0] > 50, 20 * lab.patience, "requests are served")
    proxy.terminate()
    equal(proxy.wait_exit(8), 0, "exit status")
    for thread in threads:
        thread.join()
    equal(cut[:3], [], "responses that were cut")
    raises((OSError,), lambda: Wire(proxy.forward), "connecting after the end")


HARMLESS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO,
            signal.SIGPIPE, signal.SIGRTMIN, signal.SIGRTMAX)


def test_harmless_signals(lab):
    """A default action that nobody means: "SIGUSR1 ... Term" (signal(7))."""
    origin = Origin(lab)
    proxy = Retort(lab)
    for number in HARMLESS:
        if number != signal.SIGUSR2:  # test_takeover.py
            proxy.process.send_signal(number)
    equal(proxy.get(origin.url("/text", say="on")).text(), "on", "body")


def test_harmless_signals_to_helpers(lab):
    helperd = Helperd(lab, f'socket = "{{socket}}"\npool text {{ command = {{"{lab.built("icap-services/text-helper")}"}} }}\n')
    (helper,) = helperd.wait_helpers("text-helper", 1)
    for number in HARMLESS:
        if number != signal.SIGPIPE:
            os.kill(helper, number)
        helperd.process.send_signal(number)
    until(lambda: "log opened again" in helperd.process.log(), 5 * lab.patience, "SIGUSR1 to be taken")
    equal(helperd.helpers("text-helper"), [helper], "the helper that runs")


@memcheck
def test_user_signal_opens_logs_again(lab):
    """As logrotate and other programs expect it: SIGUSR1 means that the logs were renamed."""
    origin = Origin(lab)
    messages = lab.path("messages.log")
    proxy = Retort(lab, extra=f'error_log = "{messages}"')
    proxy.get(origin.url("/text", say="before"))
    proxy.log(1)
    for path in (messages, proxy.log_path):
        os.rename(path, path + ".1")
    proxy.process.send_signal(signal.SIGUSR1)
    until(lambda: os.path.exists(messages) and os.path.exists(proxy.log_path), 5 * lab.patience, "the new files")
    proxy.get(origin.url("/text", say="after"))
    equal([entry["url"][-5:] for entry in proxy.log(1)], ["after"], "lines in the new file")
    with open(messages, encoding="utf-8") as log:
        contains(log.read(), "logs opened again", "messages in the new file")


def test_user_signal_opens_the_log_of_helperd_again(lab):
    log = lab.path("helperd.log")
    helperd = Helperd(lab, f'socket = "{{socket}}"\nlog = "{log}"\n'
                      f'pool text {{ command = {{"{lab.built("icap-services/text-helper")}"}} }}\n')
    os.rename(log, log + ".1")
    helperd.process.send_signal(signal.SIGUSR1)
    until(lambda: os.path.exists(log), 5 * lab.patience, "the new file")
    true(helperd.process.running(), "it runs")
