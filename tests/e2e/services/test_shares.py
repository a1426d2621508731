"""Helpers shared by clients: nobody's large pictures keep the others from theirs, and nobody pays for another's deadline."""

import socket
import struct
import threading
import time
import zlib

from services.icap import Broken
from services.lab import REQUEST, head, helpers_only, until
from services.pictures import netpbm
from services.test_helpers import DONE, FAILED, REFUSED, TIMEOUT, bad_helpers, result_of


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def large_png(width=5000, height=4000):
    """A few KB that a helper needs much of a second for."""
    rows = zlib.compressobj(6)
    row = b"\0" + b"\x80\x40\x20" * width
    data = b"".join(rows.compress(row) for _ in range(height)) + rows.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + \
        chunk(b"IDAT", data) + chunk(b"IEND", b"")


def send(lab, kind, body, client):
    return lab.respmod("gray", request=REQUEST, response=head(kind, len(body)), body=body, preview=1024, client_ip=client)


class Crowd:
    """Clients that ask for the same large picture again and again."""

    def __init__(self, lab, body, clients):
        self.lab, self.body, self.over = lab, body, False
        self.threads = [threading.Thread(target=self.loop, args=(client,)) for client in clients]

    def loop(self, client):
        while not self.over:
            try:
                send(self.lab, "image/png", self.body, client)
            except (OSError, Broken):
                pass
            time.sleep(0.02)  # the test is about helpers, not about who has the cores

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join()


def test_large_pictures_hold_nobody_up(lab):
    """Of 26 clients, and of one with 26 connections, even where nobody knows it from the others: small pictures become gray soon."""
    large, small = large_png(), netpbm("ppmpat -camo -randomseed=1 200 200 | cjpeg", b"")
    crowds = (["10.0.0.%d" % n for n in range(1, 27)], [None] * 26)
    for clients in crowds[:1] if lab.options.valgrind else crowds:
        before = lab.pool("gray")
        with Crowd(lab, large, clients):
            until(lambda before=before: lab.pool("gray")["refused"] > before["refused"], 20 * lab.patience, "a full queue")
            waits, begun, due = [], {"small": 0, "large": 0}, time.monotonic() + 20 * lab.patience
            while len(waits) < 10 or (not begun["large"] and time.monotonic() < due):  # large pictures have their turns, too
                sent = time.monotonic()
                answer = send(lab, "image/jpeg", small, "192.0.2.7" if clients[0] else None)
                waits.append(time.monotonic() - sent)
                assert answer.status == 200 and answer.body != small, "it stayed coloured"
                during = lab.pool("gray")
                begun = {lane["name"]: lane["begun"] - old["begun"] for lane, old in zip(during["lanes"], before["lanes"])}
        assert max(waits) < 1.5 * lab.patience, waits  # 0.5 s, and as much again for a machine that does other things
        assert during["breaker"] == "closed" and during["broken"] == before["broken"]
        assert begun["small"] == len(waits) and begun["large"] > 0, begun
        assert sum(during["refusals"].values()) == during["refused"], during["refusals"]


def submit_for(lab, client, cost, what, milliseconds=60000):
    """A job as services bring it: with its client and what it will cost."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(20 * lab.patience)
    connection.connect(lab.socket)
    connection.send(struct.pack("=IHHQQIIII24s", 0x52744a31, 2, 1, 7, 0, 0, milliseconds, len(what), 0, b"bad") + what +
                    struct.pack("=Q56s", cost, client.encode()))
    return connection


@helpers_only
def test_a_deadline_is_the_jobs_fault(lab):
    """Helpers that are killed for jobs that take too long are no reason to do without helpers."""
    with bad_helpers(lab, "overdue", breaker=2, breaker_time='"10m"') as other:
        assert result_of(submit_for(other, "10.0.0.1", 1000, b"good")) == (DONE, b"good")
        for _ in range(4):
            assert result_of(submit_for(other, "10.0.0.1", 1000, b"hangs", 100))[0] == TIMEOUT
        assert other.pool("bad")["breaker"] == "closed" and other.pool("bad")["broken"] == 0
        assert result_of(submit_for(other, "10.0.0.2", 1000, b"good")) == (DONE, b"good")
        for client in ("10.0.0.1", "10.0.0.2"):
            assert result_of(submit_for(other, client, 1000, b"crashes"))[0] == FAILED
        until(lambda: other.pool("bad")["breaker"] == "open", 10 * lab.patience, "the breaker to open")


@helpers_only
def test_one_clients_crashes_are_its_own(lab):
    """A picture that kills helpers, sent again and again, costs the others nothing, though its client does not wait for an answer."""
    with bad_helpers(lab, "deadly", breaker=3, breaker_time='"10m"') as other:
        for number in range(4):
            job = submit_for(other, "10.0.0.1", 1000, b"crashes")
            if number == 1:
                until(lambda: other.pool("bad")["failed"] + other.pool("bad")["lanes"][0]["begun"] >= 3, 10 * lab.patience, "its start")
                job.close()
            else:
                result_of(job)
            until(lambda number=number: other.pool("bad")["restarts"] > min(number, 2), 10 * lab.patience, "the helper's end")
        pool = other.pool("bad")
        assert (pool["breaker"], pool["breaker_client"], pool["broken"]) == ("open", "10.0.0.1", 1), pool
        assert pool["refusals"]["breaker"] == 1 and "of client 10.0.0.1: these jobs are refused" in other.retortctl()
        assert result_of(submit_for(other, "10.0.0.2", 1000, b"good")) == (DONE, b"good")
        assert other.pool("bad")["breaker"] == "closed"


@helpers_only
def test_times_are_of_what_was_done(lab):
    """A job that nobody finished says nothing of how long one takes."""
    with bad_helpers(lab, "timed") as other:
        for _ in range(3):
            assert result_of(submit_for(other, "10.0.0.1", 1000, b"good"))[0] == DONE
        before = other.pool("bad")["mean_ms"]
        assert result_of(submit_for(other, "10.0.0.1", 1000, b"hangs", 500))[0] == TIMEOUT
        assert other.pool("bad")["mean_ms"] == before


@helpers_only
def test_a_full_queue_is_shared(lab):
    """Who has less waiting takes the place of who has more; who has most is refused."""
    with bad_helpers(lab, "shared", queue=4, queue_large=2) as other:
        first = submit_for(other, "10.0.0.1", 1000, b"hangs", 1500 * lab.stretch)
        until(lambda: other.workers("bad", "busy"), 10 * lab.patience, "a busy helper")
        waiting = [submit_for(other, "10.0.0.1", 1000, b"good") for _ in range(4)]
        until(lambda: other.pool("bad")["queued"] == 4, 10 * lab.patience, "a full queue")
        status, why = result_of(submit_for(other, "10.0.0.1", 1000, b"good"))
        assert status == REFUSED and b"queue of the pool is full" in why, why
        newcomer = submit_for(other, "10.0.0.2", 1000, b"good")
        status, why = result_of(waiting.pop())
        assert status == REFUSED and b"most work" in why, why
        pool = other.pool("bad")
        assert pool["refusals"] == {"queue_full": 1, "share": 1, "too_late": 0, "breaker": 0, "stopping": 0}, pool["refusals"]
        lanes = {lane["name"]: lane for lane in pool["lanes"]}
        assert lanes["small"]["clients"] == 2 and lanes["small"]["most"] == {"client": "10.0.0.1", "queued": 3, "cost": 3 * 4096}, lanes
        told = other.retortctl()
        assert "4 waiting, from 2 clients" in told and "most waiting jobs: client 10.0.0.1, 3\n" in told and "1 job was refused: the queue was full\n" in told, told
        assert result_of(first)[0] == TIMEOUT
        assert [result_of(job)[0] for job in waiting + [newcomer]] == [DONE] * 4


@helpers_only
def test_small_jobs_do_not_wait_for_large_ones(lab):
    """Nor do large ones wait for ever; the spare helper goes when nobody needs it any more."""
    with bad_helpers(lab, "lanes", idle='"200ms"') as other:
        large = [submit_for(other, "10.0.0.1", 20000000, b"hangs", 2000 * lab.stretch)]
        until(lambda: other.workers("bad", "busy"), 10 * lab.patience, "a busy helper")
        large.append(submit_for(other, "10.0.0.1", 20000000, b"good"))
        for _ in range(5):
            assert result_of(submit_for(other, "10.0.0.1", 1000, b"good")) == (DONE, b"good")
        assert other.workers("bad", "busy"), "the large one ended before the small ones"
        assert "the spare" in other.retortctl()
        assert [result_of(job)[0] for job in large] == [TIMEOUT, DONE]
        until(lambda: len(other.workers("bad")) == 1, 10 * lab.patience, "the spare to leave")


@helpers_only
def test_what_would_be_too_late_is_refused_at_once(lab):
    """By what such jobs have taken so far; what can start at once is tried all the same."""
    with bad_helpers(lab, "late") as other:
        assert result_of(submit_for(other, "10.0.0.1", 20000000, b"takes a while"))[0] == DONE
        until(lambda: other.workers("bad", "idle"), 10 * lab.patience, "an idle helper")
        first = submit_for(other, "10.0.0.1", 20000000, b"takes a while")
        until(lambda: other.workers("bad", "busy"), 10 * lab.patience, "a busy helper")
        begun = time.monotonic()
        status, why = result_of(submit_for(other, "10.0.0.2", 200000000, b"good", 3000))
        assert status == REFUSED and b"before its deadline" in why, (status, why)
        assert time.monotonic() - begun < 1.5 * lab.patience, "it waited for that"
        assert result_of(first)[0] == DONE
        assert result_of(submit_for(other, "10.0.0.2", 200000000, b"good", 3000 * lab.patience))[0] == DONE
