"""What systemd and its like see of the programs, and the rights that the shipped units leave them."""

import ctypes
import grp
import gzip
import os
import re
import signal
import socket
import subprocess
import threading
import time

from harness import media
from harness.checks import Skip, contains, equal, true, until, within
from harness.origin import Origin
from harness.process import children_of, gone
from harness.raw_origin import RawOrigin
from harness.retort import Inside, Retort
from harness.services import Services
from harness.suite import heavy, seconds
from harness.units import UNITS, analyze, calls_of, confined, unit
from harness.wire import Wire
from test_lists import NEW, Publisher, plain


class Manager:
    """The socket of a service manager."""

    def __init__(self, lab):
        self.path = lab.path(lab.unique("notify.sock"))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.heard = []
        lab.opens(self)

    def listen(self):
        """All lines so far."""
        try:
            while True:
                self.heard += self.socket.recv(4096, socket.MSG_DONTWAIT).decode().splitlines()
        except BlockingIOError:
            return self.heard

    def wait_for(self, lab, line, count=1):
        until(lambda: self.listen().count(line) >= count, 10 * lab.patience, f"{line}, heard {self.heard}")

    def stop(self):
        self.socket.close()

    def findings(self):
        return []


def test_the_manager_is_told_of_start_and_end(lab):
    manager = Manager(lab)
    proxy = Retort(lab, environment={"NOTIFY_SOCKET": manager.path})
    manager.wait_for(lab, "READY=1")
    true("STOPPING=1" not in manager.heard, "it does not stop yet")
    true("WATCHDOG=1" not in manager.heard, "nobody has asked for signs of life")
    proxy.terminate()
    manager.wait_for(lab, "STOPPING=1")
    equal(proxy.wait_exit(5), 0, "exit status")


def test_the_manager_follows_a_reload(lab):
    """sd_notify(3): RELOADING=1 "shall be sent with MONOTONIC_USEC=", and "the service must send READY=1 when it is done". systemd
    ignores a time before its signal."""
    manager = Manager(lab)
    proxy = Retort(lab, environment={"NOTIFY_SOCKET": manager.path})
    manager.wait_for(lab, "READY=1")

    def reload_by(start):
        """What is heard of one reload, after checking its order."""
        manager.listen().clear()
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        start()
        manager.wait_for(lab, "READY=1")
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        heard = [line for line in manager.heard if not line.startswith("FD")]  # sockets that the manager keeps
        equal([line.split("=")[0] for line in heard], ["RELOADING", "MONOTONIC_USEC", "READY", "STATUS"], "the order")
        said = int(heard[1].split("=")[1])
        true(before <= said <= after, f"{before} <= {said} <= {after}")
        return heard[3]
    for _ in range(5):
        equal(reload_by(proxy.hang_up), "STATUS=serves by the configuration as it was read again", "status after SIGHUP")
    equal(reload_by(proxy.reload), "STATUS=serves by the configuration as it was read again", "status after retortctl reload")
    good = proxy.text()
    proxy.write_config(good + "frob = 1\nfrub = 2\n")
    status = reload_by(proxy.hang_up)
    contains(status, "the reload was refused", "status after a refusal")
    contains(status, "frob", "the reason")
    equal(proxy.ctl("reload", expect=1), "", "ExecReload fails too")
    proxy.write_config(good.replace("workers = 1", "workers = 2"))
    contains(reload_by(proxy.hang_up), "but: workers is still 1", "status of a reload that leaves something")
    proxy.write_config(good)
    equal(reload_by(proxy.hang_up), "STATUS=serves by the configuration as it was read again", "status at the end")


def slow_starter(lab, name, seconds, runs="process"):
    """A service whose module does not come to an end with its start."""
    return Inside(name, lab.built("tests/e2e/modules/.libs/odd.so"), settings={"Do": "start-hang"}, runs=runs, start_timeout=f"{seconds}s")


@seconds(60)
def test_signs_of_life_while_services_start(lab):
    """A reload starts as many processes of all services at the same time as there are cores. Meanwhile the main thread gives signs of life, opens logs
    again, and the manager is told how long it may take; nobody else waits for it."""
    manager, each, cores = Manager(lab), 3 * lab.patience, len(os.sched_getaffinity(0))
    turns = -(-3 // cores)
    proxy = Retort(lab, environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "300000"})
    manager.wait_for(lab, "READY=1")
    proxy.write_config(proxy.text(services=[slow_starter(lab, name, each) for name in ("one", "two", "three")], adapt={}))
    until(lambda: os.path.exists(proxy.log_path), 10 * lab.patience, "the access log")
    os.rename(proxy.log_path, proxy.log_path + ".1")
    manager.listen().clear()
    start = time.monotonic()
    proxy.hang_up()
    manager.wait_for(lab, f"EXTEND_TIMEOUT_USEC={(turns * each + 30) * 1000000}")
    before = manager.listen().count("WATCHDOG=1")
    proxy.process.send_signal(signal.SIGUSR1)
    until(lambda: os.path.exists(proxy.log_path) and manager.listen(), 10 * lab.patience, "the log that is opened again")
    equal(proxy.status()["state"], "running", "what others are told meanwhile")
    manager.wait_for(lab, "WATCHDOG=1", before + 3)
    until(lambda: len(children_of(proxy.pid)) == min(cores, 3), 10 * lab.patience, "the processes that start")
    true("READY=1" not in manager.heard, "the reload is still under way")
    manager.wait_for(lab, "READY=1")
    true(time.monotonic() - start < (turns + 1) * each, "the services started one after the other")
    status = next(line for line in manager.heard if line.startswith("STATUS="))
    contains(status, "service one: its module did not start within start_timeout", "status")
    asks = threading.Thread(target=proxy.run_ctl, args=("reload",))
    manager.listen().clear()
    asks.start()
    manager.wait_for(lab, "RELOADING=1")
    equal(proxy.status()["state"], "running", "while another client of the admin plane waits for a reload")
    true(asks.is_alive(), "it still waits")
    asks.join()
    equal(proxy.get(Origin(lab).url("/text", say="hello")).text(), "hello", "it serves")


@seconds(60)
def test_an_end_while_services_start(lab):
    """Neither a signal nor a reload by the admin plane holds up the end."""
    for ask in (lambda proxy: proxy.hang_up(), lambda proxy: threading.Thread(target=proxy.run_ctl, args=("reload",), daemon=True).start()):
        manager = Manager(lab)
        proxy = Retort(lab, environment={"NOTIFY_SOCKET": manager.path})
        proxy.write_config(proxy.text(services=[slow_starter(lab, "one", 300)], adapt={}))
        ask(proxy)
        manager.wait_for(lab, "EXTEND_TIMEOUT_USEC=330000000")
        proxy.terminate()
        equal(proxy.wait_exit(15 * lab.patience), 0, "exit status")
        heard = manager.listen()
        true(heard.count("READY=1") == 2, f"the reload is over for a manager that waits for that: {heard}")
        equal([line for line in heard if line in ("READY=1", "STOPPING=1")][-1], "STOPPING=1", "what the manager is told last")
        equal([line for line in heard if line.startswith("STATUS=")][-1], "STATUS=finishes what is under way", "the last status")


@seconds(60)
def test_an_end_while_a_module_hangs_in_the_proxy(lab):
    """It runs in a thread of the proxy, which nobody can end: the proxy serves, names it, and leaves it behind."""
    origin = Origin(lab)
    for runs in ("worker", "thread"):
        for ask in (lambda proxy: proxy.hang_up(), lambda proxy: threading.Thread(target=proxy.run_ctl, args=("reload",), daemon=True).start()):
            proxy = Retort(lab)
            proxy.write_config(proxy.text(services=[slow_starter(lab, "one", 1, runs)], adapt={}))
            ask(proxy)
            until(lambda proxy=proxy: "service one: its module has not started within start_timeout (1000 ms)" in proxy.process.log(), 20 * lab.patience, "the log")
            equal(proxy.get(origin.url("/text", say="hello")).text(), "hello", f"{runs}: it serves")
            proxy.terminate()
            equal(proxy.wait_exit(15 * lab.patience), 0, f"{runs}: exit status")
            contains(proxy.process.log(), "service one: retort is stopping", f"{runs}: why the reload was refused")


@seconds(60)
def test_an_end_before_the_services_have_started(lab):
    """SIGTERM while the first start waits for a module: nobody is served yet."""
    proxy = Retort(lab)
    proxy.stop()
    for runs, number in (("worker", signal.SIGTERM), ("thread", signal.SIGINT), ("process", signal.SIGTERM)):
        proxy.write_config(proxy.text(services=[slow_starter(lab, "one", 300, runs)], adapt={}))
        started = subprocess.Popen([proxy.program, "-f", proxy.config_path], stderr=subprocess.PIPE, env=proxy.environment)
        try:
            time.sleep(lab.patience)
            equal(started.poll(), None, f"{runs}: it starts")
            started.send_signal(number)
            said = started.communicate(timeout=15 * lab.patience)[1].decode()
            equal(started.returncode, 0, f"{runs}: exit status: {said}")
            contains(said, "service one: retort is stopping", f"{runs}: what it says")
        finally:
            started.kill()
            started.wait()


def test_abstract_socket_and_nonsense(lab):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = f"retort-test-{os.getpid()}"
    listener.bind("\0" + name)
    listener.settimeout(10 * lab.patience)
    Retort(lab, environment={"NOTIFY_SOCKET": "@" + name, "WATCHDOG_USEC": "-1"})
    contains(listener.recv(4096).decode(), "READY=1", "message")
    listener.close()
    for path in ("", "relative", "/" + "x" * 200, lab.path("nobody.sock")):
        proxy = Retort(lab, environment={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "nonsense"})
        equal(proxy.admin("GET", "/status").status, 200, f"status with {path[:20]}")


class StoppedThread:
    """A thread that a debugger holds."""

    ATTACH, DETACH, ALL = 16, 17, 0x40000000

    def __init__(self, thread):
        self.thread = thread
        self.libc = ctypes.CDLL(None, use_errno=True)
        if self.libc.ptrace(self.ATTACH, thread, None, None) != 0:
            raise Skip("ptrace is not permitted")
        os.waitpid(thread, self.ALL)

    def release(self):
        self.libc.ptrace(self.DETACH, self.thread, None, None)


def test_a_worker_that_hangs_is_no_sign_of_life(lab):
    if lab.valgrind:
        raise Skip("valgrind's threads are not ours to hold")
    manager = Manager(lab)
    proxy = Retort(lab, workers=2, environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "100000"})
    manager.wait_for(lab, "WATCHDOG=1", 3)
    threads = sorted(int(thread) for thread in os.listdir(f"/proc/{proxy.pid}/task"))
    waiting = [thread for thread in threads if thread != proxy.pid and not of_the_admin_plane(proxy.pid, thread) and in_epoll(proxy.pid, thread)]
    held = StoppedThread(waiting[0])
    try:
        # The question to the worker that was being asked may be answered yet; after that, none is.
        before = len(manager.listen())
        try:
            within(lambda: len(manager.listen()) > before + 2, 1.5, "silence")
            raise AssertionError("signs of life with a worker that hangs")
        except AssertionError as error:
            contains(str(error), "silence", "no more messages")
    finally:
        held.release()
    before = manager.listen().count("WATCHDOG=1")
    manager.wait_for(lab, "WATCHDOG=1", before + 2)


def of_the_admin_plane(pid, thread):
    with open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii") as name:
        return name.read().startswith("MHD")


def in_epoll(pid, thread):
    with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as call:
        return call.read().split()[0] in ("232", "281", "441")


def test_watchdog_of_another_process(lab):
    manager = Manager(lab)
    proxy = Retort(lab, environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"})
    manager.wait_for(lab, "READY=1")
    proxy.admin("GET", "/status")
    proxy.terminate()
    manager.wait_for(lab, "STOPPING=1")
    equal(manager.listen().count("WATCHDOG=1"), 0, "signs of life that somebody else owes")


def test_f_has_a_default(lab):
    for program, name in (("proxy/retort", "retort.conf"), ("icap-services/retort-helperd", "helperd.conf")):
        usage = subprocess.run([lab.built(program), "-h"], capture_output=True, text=True, check=True).stdout
        path = re.search(r"instead of (/\S*/retort/" + re.escape(name) + ")", usage).group(1)
        if not os.path.exists(path):
            done = subprocess.run([lab.built(program), "-T"], capture_output=True, text=True, check=False)
            equal(done.returncode, 1, f"exit status of {program} without its configuration")
            contains(done.stderr, path, "what is missing")


# The units.

def test_units_leave_few_rights(lab):
    for path in (unit(lab, name) for name in UNITS):
        done = analyze("security", "--offline=yes", "--no-pager", "--threshold=20", path)
        equal(done.returncode, 0, f"{path}: {done.stdout.splitlines()[-1:]}")


@heavy("sanitizers and valgrind need other system calls")
def test_retort_needs_no_other_system_calls(lab):
    """The unit answers other calls with EPERM; here they would kill."""
    calls = calls_of(lab, "retort")
    true({"read", "epoll_wait", "mincore"} <= calls and not {"mount", "reboot", "bpf"} & calls, "the list")
    origin = Origin(lab)
    proxy = Retort(lab, workers=2, cache={"memory": "16MB", "disk": {lab.path("volume"): {"size": "64MB"}}})
    proxy.stop()
    run = subprocess.Popen([proxy.program, "-f", proxy.config_path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           cwd=lab.directory, preexec_fn=confined(calls))
    try:
        until(lambda: run.poll() is not None or answers(proxy), 10 * lab.patience, "the start")
        for _ in range(3):
            for url in (origin.url("/bytes", n=3000, cc="max-age=60"), origin.url("/bytes", n=3 << 20, cc="max-age=60")):
                equal(proxy.get(url).status, 200, url)
        equal(proxy.admin("POST", "/reload").status, 200, "a reload")
        equal(proxy.admin("DELETE", "/cache/object?url=" + origin.url("/bytes", n=3000, cc="max-age=60").replace("&", "%26")).status in (200, 404),
              True, "a removal")
        run.send_signal(signal.SIGTERM)
        equal(run.wait(10 * lab.patience), 0, "exit status")
    finally:
        if run.poll() is None:
            run.kill()
        run.communicate()
    true(gone(run.pid), "it has ended")


@heavy("sanitizers and valgrind need other system calls")
def test_helperd_needs_no_other_system_calls(lab):
    """With a socket for another group, as its configuration is shipped, and helpers with all terms that may be set without root."""
    calls = calls_of(lab, "retort-helperd")
    photo = lab.read_data("photos/china.jpg")
    origin = RawOrigin(lab, lambda connection, _request: connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n"
                                                                         b"Content-Length: %d\r\n\r\n" % len(photo) + photo))
    services = Services(lab, names=("gray", "inject"), gray_more='io = "idle"  scheduler = "idle"  memory = "1G"  cpu = "20s"')
    proxy = Retort(lab, services=services.for_proxy())
    helperd = services.helperd
    helperd.stop()
    lab.write(f"{helperd.name}.conf", f'socket_group = "{grp.getgrgid(65534).gr_name}"\nsocket_mode = 0660\n'
              + helperd.config_text.replace("{socket}", helperd.socket))
    helperd.start(confined(calls))
    equal((os.stat(helperd.socket).st_gid, os.stat(helperd.socket).st_mode & 0o777), (65534, 0o660), "who may connect")
    equal(media.jpeg_pixels(proxy.get(origin.url("/photo.jpg")).body), media.jpeg_pixels(photo, gray=True), "the photo")
    for arguments in ((), ("reload",), ("renice", "gray", "19")):
        proxy.ctl("helpers", *arguments, extra=("-H", helperd.socket))
    until(lambda: [os.getpriority(os.PRIO_PROCESS, pid) for pid in helperd.helpers("gray")] == [19, 19], 10 * lab.patience, "the nice level")
    log = helperd.process.log()
    true("can not" not in log and "died" not in log, log)


@heavy("sanitizers and valgrind need other system calls")
def test_lists_need_no_other_system_calls(lab):
    calls = calls_of(lab, "retort-lists")
    publisher = Publisher(lab)
    publisher.before_start = confined(calls)
    publisher.takes(plain(gzip.compress(NEW)), NEW, "a list that is new")


def answers(proxy):
    try:
        Wire(proxy.forward, timeout=1).close()
        Wire(proxy.admin_path, timeout=1).close()
        return True
    except OSError:
        return False
