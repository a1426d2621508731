"""retort-helperd and its helpers: killed, stopped, replaced, fed with nonsense."""

import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import time

from services import HERE, SOURCE
from services.lab import PAGE, REQUEST, Lab, head, helpers_only, in_background, send_photo, until
from services.pictures import picture


def stopped(lab, pool):
    """Stops the pool's helpers in their tracks."""
    pids = lab.workers(pool, "idle")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return pids


def go_on(pids):
    """Those of them that were not killed meanwhile."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


def test_helper_killed_at_work(lab):
    body, before = picture("photo.jpg"), lab.pool("gray")
    pids = stopped(lab, "gray")
    answer = in_background(lambda: send_photo(lab))
    busy = until(lambda: lab.workers("gray", "busy"), 5 * lab.patience, "a busy helper")
    os.kill(busy[0], signal.SIGKILL)
    got = answer()
    assert got.body == body and got.header("content-length") == str(len(body)), got
    for pid in set(pids) - set(busy):
        os.kill(pid, signal.SIGCONT)
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "a new helper")
    after = lab.pool("gray")
    assert after["failed"] == before["failed"] + 1 and after["restarts"] == before["restarts"] + 1
    assert send_photo(lab).body != body


def test_helper_hangs(lab):
    body, before = picture("photo.jpg"), lab.pool("gray")
    pids = stopped(lab, "gray")
    begun = time.monotonic()
    got = send_photo(lab)
    assert got.body == body and time.monotonic() - begun < 5 * lab.stretch
    assert lab.pool("gray")["timeouts"] == before["timeouts"] + 1
    go_on(pids)
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "new helpers")
    assert send_photo(lab).body != body


def test_queue_full(lab):
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "both helpers")
    body, before = picture("photo.jpg"), lab.pool("gray")
    pids = stopped(lab, "gray")
    answers = [in_background(lambda: send_photo(lab)) for _ in range(9)]
    until(lambda: lab.pool("gray")["refused"] == before["refused"] + 3, 5 * lab.patience, "refusals")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    bodies = [answer().body for answer in answers]
    assert sorted(b == body for b in bodies) == [False] * 6 + [True] * 3, [b == body for b in bodies]


def test_client_gone(lab):
    """Waiting jobs of clients that hang up are cancelled."""
    before, pids = lab.pool("gray"), stopped(lab, "gray")
    connections = []
    for _ in range(5):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(lab.socket)
        connection.send(struct.pack("=IHHQQIIII24s", 0x52744a31, 1, 1, 7, 0, 0, 1000, 0, 0, b"gray"))
        connections.append(connection)
    until(lambda: lab.pool("gray")["queued"] == 3, 5 * lab.patience, "a queue")
    for connection in connections:
        connection.close()
    until(lambda: lab.pool("gray")["queued"] == 0, 5 * lab.patience, "an empty queue")
    assert lab.pool("gray")["cancelled"] == before["cancelled"] + 5
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "idle helpers")
    assert send_photo(lab).body != picture("photo.jpg")


def test_late_text(lab):
    """The page goes on without its text when the helper is late."""
    page = PAGE.replace(b"@", b"")
    pids = stopped(lab, "text")
    begun = time.monotonic()
    answer = lab.respmod("inject", request=REQUEST, response=head("text/html"), body=page, client_ip="10.1.2.3")
    assert answer.body == page and time.monotonic() - begun < 4 * lab.stretch
    go_on(pids)
    until(lambda: lab.workers("text", "idle"), 10 * lab.patience, "a text helper")


def test_texts_are_read_again(lab):
    page = b"<html><head></head>"
    old = open(lab.path("texts.tsv"), encoding="utf-8").read()
    for text, expected in (("default\tnew text\n", b"new text"), ("broken\n", b"new text"), (old, b"<b>192.0.2.1</b>")):
        lab.write("texts.tsv", text)
        answer = lab.respmod("inject", request=REQUEST, response=head("text/html"), body=page,
                         client_ip="192.0.2.1")
        assert answer.body == b"<html><head>" + expected + b"</head>", answer.body


@helpers_only
def test_nonsense_to_helperd(lab):
    for packet in (b"x", b"\0" * 64, b"\xff" * 5000, struct.pack("=IHHQQIIII24s", 0x52744a31, 9, 1, 7, 0, 0, 1, 0, 0, b"gray")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(5 * lab.patience)
            connection.connect(lab.socket)
            connection.send(packet)
            assert connection.recv(100) == b"", packet[:10]
    for command in ({}, {"call": 3}, {"call": "fly"}, {"call": "renice"}, {"call": "renice", "pool": "none", "nice": 3},
                    {"call": "renice", "pool": "gray", "nice": 99}, {"call": "resize", "pool": "gray", "processes": 0}):
        answer = lab.command(**command)
        assert not answer["ok"] and len(answer["error"]) > 10, command
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(lab.socket)
        connection.send(b"{nonsense")
        assert b"no JSON" in connection.recv(1000)


def nice_of(pid):
    """Within its session, and of the session where the kernel has that."""
    try:
        with open("/proc/%d/autogroup" % pid, encoding="ascii") as group:
            of_group = int(group.read().split()[-1])
    except FileNotFoundError:
        of_group = os.getpriority(os.PRIO_PROCESS, pid)
    return os.getpriority(os.PRIO_PROCESS, pid), of_group


def test_renice_and_resize(lab):
    until(lambda: [nice_of(p) for p in lab.workers("gray", "idle")] == [(10, 10)] * 2, 10 * lab.patience, "helpers at nice 10")
    for nice in (15, 10):
        assert lab.command(call="renice", pool="gray", nice=nice)["ok"]
        until(lambda nice=nice: [nice_of(p) for p in lab.workers("gray", "idle")] == [(nice, nice)] * 2,
              10 * lab.patience, "helpers at nice %d" % nice)
    assert lab.command(call="resize", pool="gray", processes=4)["ok"]
    until(lambda: len(lab.workers("gray", "idle")) == 4, 10 * lab.patience, "four helpers")
    assert lab.command(call="resize", pool="gray", processes=2)["ok"]
    until(lambda: len(lab.workers("gray")) == 2, 10 * lab.patience, "two helpers")
    assert send_photo(lab).body != picture("photo.jpg")


@helpers_only
def test_a_job_is_cheap_to_hand_over(lab):
    """System calls of retort-helperd for each: what takes time is mostly who wakes whom, and these are what it adds."""
    if lab.options.valgrind:
        return
    jobs = 200
    program = os.path.join(lab.build, "tests/bench/handover")
    assert os.path.exists(program), "make check TESTS= builds it"
    trace = subprocess.Popen(["strace", "-c", "-p", str(lab.helperd.pid)], stderr=subprocess.PIPE, text=True)
    try:
        assert "attached" in trace.stderr.readline()
        subprocess.run([program, lab.socket, "text", str(jobs)], stdout=subprocess.DEVNULL, check=True)
    finally:
        trace.send_signal(signal.SIGINT)
        said = trace.communicate()[1]
    total = [line.split() for line in said.splitlines() if line.endswith(" total")]  # %, seconds, each, calls, (errors)
    calls = int(total[0][3]) / jobs
    assert 4 < calls < 11, said


@helpers_only
def test_reload_of_helperd(lab):
    good = open(lab.path("helperd.conf"), encoding="utf-8").read()
    lab.write("helperd.conf", "pool gray { nice = 77 }")
    answer = lab.command(call="reload")
    assert not answer["ok"], answer
    lab.write("helperd.conf", good.replace("nice = 10", "nice = 12").replace("processes = 2", "processes = 3"))
    lab.helperd.send_signal(signal.SIGHUP)
    until(lambda: len(lab.workers("gray", "idle")) == 3 and lab.pool("gray")["nice"] == 12, 10 * lab.patience, "reload")
    lab.write("helperd.conf", good)
    assert lab.command(call="reload")["ok"]
    until(lambda: len(lab.workers("gray", "idle")) == 2, 10 * lab.patience, "reload")


def test_helperd_gone(lab):
    body, page = picture("photo.jpg"), PAGE.replace(b"@", b"")
    assert lab.stop(lab.helperd)
    assert not os.path.exists(lab.socket)
    got = send_photo(lab)
    assert got.body == body
    answer = lab.respmod("inject", request=REQUEST, response=head("text/html"), body=page, preview=1024)
    assert answer.status == 204
    lab.start_helperd()
    assert send_photo(lab).body != body


def test_helperd_hangs(lab):
    """Whoever waits for it gets the original at the deadline, and whoever finds no room before it at once."""
    body, page = picture("photo.jpg"), PAGE.replace(b"@", b"")
    lab.helperd.send_signal(signal.SIGSTOP)
    try:
        begun = time.monotonic()
        answer = in_background(lambda: lab.respmod("inject", request=REQUEST, response=head("text/html"), body=page, preview=1024))
        assert send_photo(lab).body == body and answer().body == page
        assert time.monotonic() - begun < 8 * lab.stretch
        crowd = fill_backlog(lab.socket)
        begun = time.monotonic()
        assert send_photo(lab).body == body and time.monotonic() - begun < 3.5 * lab.stretch  # the deadline is 4
        for connection in crowd:
            connection.close()
    finally:
        lab.helperd.send_signal(signal.SIGCONT)
    assert until(lambda: send_photo(lab).body != body, 20 * lab.patience, "a gray picture")


def fill_backlog(path):
    """Connections that nobody accepts, until there is no room for more."""
    crowd = []
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            connection.connect(path)
        except BlockingIOError:
            connection.close()
            return crowd
        crowd.append(connection)


def test_helperd_killed(lab):
    """Its helpers go with it, and its successor takes the socket over."""
    helpers = lab.workers("gray") + lab.workers("text")
    lab.helperd.kill()
    lab.helperd.wait()
    until(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in helpers), 10 * lab.patience, "the helpers' end")
    body = picture("photo.jpg")
    assert send_photo(lab).body == body
    lab.start_helperd()
    assert send_photo(lab).body != body


def submit(lab, pool, milliseconds=60000, parameters=b""):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(20 * lab.patience)
    connection.connect(lab.socket)
    connection.send(struct.pack("=IHHQQIIII24s", 0x52744a31, 1, 1, 7, 0, 0, milliseconds, len(parameters), 0,
                                pool.encode()) + parameters)
    return connection


def result_of(connection):
    """Status and parameters."""
    packet = connection.recv(1 << 16)
    connection.close()
    _, _, kind, number, _, status, _, length, _, _ = struct.unpack("=IHHQQIIII24s", packet[:64])
    assert kind == 2 and number == 7 and length == len(packet) - 64
    return status, packet[64:]


DONE, UNCHANGED, REFUSED, FAILED, TIMEOUT, UNUSABLE = range(6)


@helpers_only
def test_jobs_by_hand(lab):
    assert result_of(submit(lab, "text", parameters=b"10.0.0.1")) == (DONE, b"<b>ten 10.0.0.1</b>")
    status, why = result_of(submit(lab, "nothing"))
    assert status == REFUSED and b'no pool "nothing"' in why
    status, why = result_of(submit(lab, "gray"))
    assert status == UNUSABLE and b"not an image" in why
    status, why = result_of(submit(lab, "slow", milliseconds=20))
    assert status == TIMEOUT and b"killed" in why
    until(lambda: lab.workers("slow", "idle"), 10 * lab.patience, "a slow helper")
    first, second = submit(lab, "slow"), None
    until(lambda: lab.workers("slow", "busy"), 10 * lab.patience, "a busy helper")
    second = submit(lab, "slow")
    until(lambda: lab.pool("slow")["queued"] == 1, 10 * lab.patience, "a queue")
    assert result_of(submit(lab, "slow"))[0] == REFUSED
    assert result_of(first)[0] == result_of(second)[0] == DONE


@helpers_only
def test_helpers_are_replaced(lab):
    """After max_jobs, here one."""
    before = lab.pool("slow")["restarts"]
    pids = set()
    for _ in range(3):
        pids.update(until(lambda: lab.workers("slow", "idle"), 10 * lab.patience, "an idle helper"))
        assert result_of(submit(lab, "slow"))[0] == DONE
    until(lambda: lab.pool("slow")["restarts"] >= before + 3, 10 * lab.patience, "restarts")
    assert len(pids) == 3


@helpers_only
def test_helper_that_does_not_start(lab):
    """It is tried again at growing intervals, and its jobs end at their deadline."""
    status, _ = result_of(submit(lab, "broken"))
    assert status in (FAILED, TIMEOUT), status
    assert lab.pool("broken")["restarts"] < 20


class OtherHelperd(Lab):
    """A retort-helperd beside the lab's, with pools of its own, for one test."""

    def __init__(self, lab, name, pools):  # pylint: disable=super-init-not-called
        self.options, self.build, self.dir = lab.options, lab.build, lab.dir
        self.patience, self.stretch, self.processes = lab.patience, lab.stretch, lab.processes
        self.name, self.socket = name, lab.path(name + ".sock")
        self.write(name + ".conf", 'socket = "%s"\n%s' % (self.socket, pools))
        self.process = self.spawn(name, [lab.build + "/icap-services/retort-helperd", "-f", lab.path(name + ".conf")])
        until(self.listens, 10 * self.patience, "retort-helperd")

    def listens(self):
        try:
            return self.command(call="helpers")["ok"]
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.stop(self.process)
        self.processes.remove(self.process)

    def log(self):
        with open(self.path(self.name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def retortctl(self, *words):
        return subprocess.run([self.build + "/proxy/retortctl", "-H", self.socket, "helpers", *words],
                              stdout=subprocess.PIPE, encoding="utf-8", timeout=60, check=True).stdout


@helpers_only
def test_pools_grow_and_shrink(lab):
    """Processes come while jobs wait, up to the limit, and leave when there is nothing to do."""
    pool = """pool some { command = {"%s/icap-services/text-helper", "--delay", "300ms"} processes = 1 max_processes = 3
              idle = "200ms" queue = 8 deadline = "60s" nice = 0 }""" % lab.build
    with OtherHelperd(lab, "growing", pool) as other:
        jobs = [submit(other, "some") for _ in range(6)]
        until(lambda: len(other.workers("some", "busy")) == 3, 10 * lab.patience, "three at work")
        assert len(other.workers("some")) == 3 and other.pool("some")["queued"] <= 3
        assert [result_of(job)[0] for job in jobs] == [DONE] * 6
        until(lambda: len(other.workers("some")) == 1, 10 * lab.patience, "one alone")
        other.command(call="resize", pool="some", processes=2)
        assert len(other.workers("some")) == 2
        assert "some" in other.retortctl("top", "0.1", "2") and other.pool("some")["cpu_ms"] >= 0


@helpers_only
def test_breaker(lab):
    """Helpers that die of every job: soon jobs are refused at once, and one in a while is tried."""
    flag = lab.path("cured")
    pool = """pool bad { command = {"/bin/sh", "-c", "test -e %s && exec %s/icap-services/text-helper; head -c1 >/dev/null; exit 3"}
              breaker = 3 breaker_time = "200ms" deadline = "60s" nice = 0 }""" % (flag, lab.build)
    with OtherHelperd(lab, "crashing", pool) as other:
        for _ in range(3):
            assert result_of(submit(other, "bad"))[0] == FAILED
        until(lambda: other.pool("bad")["breaker"] == "open", 10 * lab.patience, "the breaker to open")
        status, why = result_of(submit(other, "bad"))
        assert status in (REFUSED, FAILED), status  # FAILED: the time was over already
        assert status == FAILED or b"die" in why, why
        assert other.pool("bad")["broken"] == 1 and "are refused until" in other.retortctl()
        open(flag, "w", encoding="ascii").close()
        until(lambda: result_of(submit(other, "bad"))[0] == DONE, 30 * lab.patience, "a job that is tried")
        assert other.pool("bad")["breaker"] == "closed"
        assert result_of(submit(other, "bad"))[0] == DONE


def descriptors_of(process):
    return len(os.listdir("/proc/%d/fd" % process.pid))


def bad_helpers(lab, name, **more):
    """Pool "bad": processes that do what a job's parameters say (bad_helper.py)."""
    settings = {"processes": 1, "queue": 40, "breaker": 0, "deadline": '"%ds"' % (5 * lab.patience), "nice": 0, **more}
    pool = 'pool bad { command = {"/usr/bin/python3", "%s"} %s }' % (
        os.path.join(HERE, "bad_helper.py"), " ".join("%s = %s" % item for item in settings.items()))
    return OtherHelperd(lab, name, pool)


@helpers_only
def test_helpers_that_misbehave(lab):
    """Whatever one does, its job gets one answer, in time, and the next job another helper. Nothing is left open."""
    with bad_helpers(lab, "misbehaving") as other:
        assert result_of(submit(other, "bad", parameters=b"good")) == (DONE, b"good")
        before = descriptors_of(other.process)
        for what, expected in (("crashes", FAILED), ("closes", FAILED), ("other job", FAILED), ("short", FAILED), ("long", FAILED),
                               ("tiny", FAILED), ("a job", FAILED), ("status", FAILED), ("magic", FAILED), ("no body", FAILED),
                               ("secret body", FAILED), ("unsealed", FAILED), ("pipe", FAILED), ("nothing", FAILED),
                               ("many bodies", FAILED), ("twice", DONE), ("crashes behind", DONE), ("leaves", DONE),
                               ("floods", DONE), ("hangs", TIMEOUT)):
            milliseconds = 500 if what == "hangs" else 60000
            begun, restarts = time.monotonic(), other.pool("bad")["restarts"]
            assert result_of(submit(other, "bad", milliseconds, what.encode()))[0] == expected, what
            assert time.monotonic() - begun < 5 * lab.patience, what
            if what != "floods":
                until(lambda restarts=restarts: other.pool("bad")["restarts"] > restarts, 10 * lab.patience, "the end after " + what)
            assert result_of(submit(other, "bad", parameters=b"good"))[0] == DONE, what  # and the next starts at once
        until(lambda: descriptors_of(other.process) <= before, 5 * lab.patience, "descriptors to be closed")
        assert result_of(submit(other, "bad", parameters=b"good")) == (DONE, b"good")


@helpers_only
def test_what_helpers_write_is_bounded(lab):
    """Each line in the log with its helper, so many a second; the others are counted, and last words are heard."""
    with bad_helpers(lab, "shouting", log_lines=5) as other:
        pid = until(lambda: other.workers("bad", "idle"), 10 * lab.patience, "a helper")[0]
        assert result_of(submit(other, "bad", parameters=b"shouts"))[0] == FAILED
        until(lambda: " were dropped" in other.log(), 10 * lab.patience, "the end of the flood")
        log, dropped = other.log(), other.pool("bad")["lines_dropped"]
        assert log.count(" pool bad: helper %d: last words\n" % pid) == 1, log
        assert re.search(r" pool bad: helper %d: a long line x{988} \.\.\.\n" % pid, log), log
        assert dropped > 0 and log.count(": helper %d: " % pid) + dropped == 1001, (log, dropped)
        assert sum(int(count) for count in re.findall(r"(\d+) lines? w\w+ dropped, as its helpers wrote", log)) == dropped, log
        assert "%d were dropped" % dropped in other.retortctl()
        assert log.index("last words") < log.index("ended by signal"), log


@helpers_only
def test_why_a_helper_does_not_start_stands_in_the_log_file(lab):
    path = lab.path("nowhere.file")
    with OtherHelperd(lab, "nowhere", 'log = "%s"\npool nowhere { command = {"/nowhere"} }' % path):
        def told():
            with open(path, encoding="utf-8") as log:
                return re.search(r" pool nowhere: helper \d+: can not execute /nowhere: No such file", log.read())
        until(told, 10 * lab.patience, "the reason")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@helpers_only
def test_a_mended_command_works_at_once(lab):
    """What helpers of the command before did, by themselves or because they would not leave, says nothing of the new one."""
    good = '{"%s/icap-services/text-helper"}' % lab.build
    for name, bad in (("dying", '{"/bin/false"}'), ("staying", '{"/bin/sleep", "1000"}')):
        pool = 'pool some { command = %s breaker = %d breaker_time = "10m" deadline = "60s" nice = 0 }'
        limit = 4 if name == "dying" else 1
        with OtherHelperd(lab, name, pool % (bad, limit)) as other:
            if name == "dying":
                until(lambda: other.pool("some")["breaker"] == "open", 20 * lab.patience, "the breaker to open")
            conf = text_of(other.path(name + ".conf"))
            other.write(name + ".conf", conf.replace(bad, good))
            assert other.command(call="reload")["ok"]
            assert result_of(submit(other, "some"))[0] == DONE, name
            assert other.pool("some")["breaker"] == "closed", name


@helpers_only
def test_the_log_file_is_opened_again_at_a_reload(lab):
    """So that it can be rotated: what comes after that is in the new one."""
    path = lab.path("rotated.file")
    pool = 'log = "%s"\npool some { command = {"%s/icap-services/text-helper"} }' % (path, lab.build)
    with OtherHelperd(lab, "rotated", pool) as other:
        os.rename(path, path + ".1")
        other.process.send_signal(signal.SIGHUP)
        until(lambda: os.path.exists(path) and "configuration read again" in text_of(path), 10 * lab.patience, "the new log")
        assert other.command(call="reload")["ok"]
        assert "read again" not in text_of(path + ".1") and text_of(path).count("read again") == 2


@helpers_only
def test_a_result_counts_though_its_helper_is_gone(lab):
    """It came before the end did. That of another helper is what retort-helperd hears of first here."""
    with bad_helpers(lab, "leaving", processes=2) as other:
        for what in (b"leaves", b"crashes behind"):
            until(lambda: len(other.workers("bad", "idle")) == 2, 10 * lab.patience, "helpers")
            helpers = stopped(other, "bad")
            job = submit(other, "bad", parameters=what)
            helper = until(lambda: other.workers("bad", "busy"), 10 * lab.patience, "the job to be given")[0]
            other.process.send_signal(signal.SIGSTOP)
            for pid, how in ((sum(helpers) - helper, signal.SIGKILL), (helper, signal.SIGCONT)):
                os.kill(pid, how)
                until(lambda pid=pid: state_of(pid) == "Z", 10 * lab.patience, "a helper's end")
            other.process.send_signal(signal.SIGCONT)
            assert result_of(job) == (DONE, b"good"), what


def state_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0]


@helpers_only
def test_many_wait_while_helpers_die(lab):
    """Every job gets an answer: done, or failed at the hands of the one helper that was killed."""
    with bad_helpers(lab, "dying", processes=2) as other:
        until(lambda: len(other.workers("bad", "idle")) == 2, 10 * lab.patience, "helpers")
        pids = stopped(other, "bad")
        jobs = [submit(other, "bad", parameters=b"good") for _ in range(22)]
        until(lambda: other.pool("bad")["queued"] == 20, 10 * lab.patience, "twenty that wait")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        statuses = [result_of(job)[0] for job in jobs]
        assert statuses == [FAILED] * 2 + [DONE] * 20, statuses


@helpers_only
def test_an_idle_helper_that_died_costs_no_job(lab):
    """A job that never reached a helper is for the next one."""
    with bad_helpers(lab, "killed") as other:
        pid = until(lambda: other.workers("bad", "idle"), 10 * lab.patience, "a helper")[0]
        other.process.send_signal(signal.SIGSTOP)
        job = submit(other, "bad", parameters=b"good")
        os.kill(pid, signal.SIGKILL)
        until(lambda: state_of(pid) == "Z", 10 * lab.patience, "the helper's end")
        other.process.send_signal(signal.SIGCONT)
        assert result_of(job) == (DONE, b"good")


@helpers_only
def test_clients_that_misbehave(lab):
    """Descriptors that come with nonsense are closed, in whatever packet."""
    before = descriptors_of(lab.helperd)
    for packet in (b"", b"x", b"{}", b"y" * 30000):
        for _ in range(20):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.connect(lab.socket)
                with open("/dev/null", "rb") as null:
                    socket.send_fds(connection, [packet], [null.fileno()] * 3)
    until(lambda: descriptors_of(lab.helperd) <= before, 5 * lab.patience, "descriptors to be closed")


@helpers_only
def test_terms_of_helpers(lab):
    """Nice, I/O priority, scheduler, memory, cgroup and CPU time are what the configuration says."""
    group = lab.path("cgroup")
    os.mkdir(group)
    for name in ("cgroup.procs", "cpu.weight"):
        open(os.path.join(group, name), "w", encoding="ascii").close()
    pools = """pool kept { command = {"%s/icap-services/text-helper"} nice = 3 io = "idle" scheduler = "batch" memory = "%s"
               cgroup = "%s" cgroup_weight = 25 }
               pool spins { command = {"/bin/sh", "-c", "head -c1 >/dev/null; while :; do :; done"} cpu = "1s" deadline = "60s" nice = 0
               breaker = 1 }
               """ % (lab.build, "0" if lab.options.valgrind else "300M", group)
    with OtherHelperd(lab, "limited", pools) as other:
        pid = until(lambda: other.workers("kept", "idle"), 10 * lab.patience, "a helper")[0]
        executed = "memcheck" if lab.options.valgrind else "text-helper"
        until(lambda: executed in os.readlink("/proc/%d/exe" % pid), 10 * lab.patience, "the helper's program")
        assert os.getpriority(os.PRIO_PROCESS, pid) == 3 and os.sched_getscheduler(pid) == os.SCHED_BATCH
        assert subprocess.run(["ionice", "-p", str(pid)], stdout=subprocess.PIPE, check=True).stdout.strip() == b"idle"
        if not lab.options.valgrind:
            with open("/proc/%d/limits" % pid, encoding="ascii") as limits:
                assert re.search(r"Max address space\s+%d " % (300 << 20), limits.read())
        with open(os.path.join(group, "cpu.weight"), encoding="ascii") as weight:
            assert weight.read() == "25\n"
        with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as processes:
            assert processes.read() == "0", "it did not join"
        status, why = result_of(submit(other, "spins"))
        assert status == FAILED and b"died" in why, (status, why)
        until(lambda: "CPU time limit" in other.log(), 10 * lab.patience, "its end in the log")
        assert other.pool("spins")["cpu_ms"] >= 200  # the kernel's two clocks differ
        assert other.pool("spins")["breaker"] == "closed", "the fault was the job's"


@helpers_only
def test_examples_of_helpers(lab):
    """Those of examples/helper: in C on its own, and in Python with bodies."""
    folder, program = os.path.join(SOURCE, "examples", "helper"), lab.path("upper-helper")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", program, os.path.join(folder, "upper.c")], check=True)
    pools = """pool upper { command = {"%s"} nice = 0 }
               pool reverse { command = {"/usr/bin/python3", "%s/reverse.py"} nice = 0 deadline = "60s" }""" % (program, folder)
    with OtherHelperd(lab, "examples", pools) as other:
        for _ in range(3):
            assert result_of(submit(other, "upper", parameters=b"some words")) == (DONE, b"SOME WORDS")
            status, why = result_of(submit(other, "reverse"))
            assert status == FAILED and b"body" in why, (status, why)
            assert reversed_by(other, b"a body to be turned round" * 1000) == (b"a body to be turned round" * 1000)[::-1]


def reversed_by(lab, data):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection, \
            os.fdopen(os.memfd_create("body", os.MFD_ALLOW_SEALING), "w+b") as body:
        connection.settimeout(20 * lab.patience)
        connection.connect(lab.socket)
        body.write(data)
        body.flush()
        fcntl.fcntl(body, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
        socket.send_fds(connection, [struct.pack("=IHHQQIIII24s", 0x52744a31, 1, 1, 7, len(data), 0, 60000, 0, 1,
                                                 b"reverse")], [body.fileno()])
        packet, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 1)
        assert struct.unpack("=IHHQQIIII24s", packet[:64])[5] == DONE, packet[64:]
        with open(descriptors[0], "rb") as result:
            return os.pread(result.fileno(), len(data), 0)
