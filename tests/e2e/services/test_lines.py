"""Pools of helpers that speak Squid's line protocols: what they are asked, and what becomes of helpers that lie."""

import os
import signal
import time

from services import HERE
from services.lab import helpers_only, until
from services.test_helpers import DONE, FAILED, TIMEOUT, UNUSABLE, OtherHelperd, result_of, submit

SECRET = b"S3cret.of.joe"


def line_helpers(lab, name, *pools, more=""):
    """Pools of processes that do what the name in a question says (bad_line_helper.py)."""
    text = ""
    for pool, protocol, channels in pools:
        text += """pool %s { protocol = %s  command = "/usr/bin/python3"  arguments = {"%s", "%s"}  channels = %s  breaker = 0
                   nice = 0  deadline = "%ds" %s }\n""" % (
            pool, protocol, os.path.join(HERE, "bad_line_helper.py"), "channels" if channels else "", "on" if channels else "off",
            5 * lab.patience, more)
    return OtherHelperd(lab, name, text)


def ask(lab, pool, *fields, milliseconds=60000):
    kind = b"external_acl" if pool == "groups" else b"basic"
    return result_of(submit(lab, pool, milliseconds, b"\0".join((kind,) + fields)))


@helpers_only
def test_questions_and_answers_of_lines(lab):
    """Fields are escaped, so no name is two words or two lines; what is no question never comes to a helper."""
    with line_helpers(lab, "lines", ("basic", "squid_basic", False), ("groups", "squid_external_acl", True)) as other:
        for pool in ("basic", "groups"):
            assert ask(other, pool, b"good", SECRET) == (DONE, b"OK user=good"), pool
            assert ask(other, pool, b"echo", b"a b%\xc3\xa4") == (DONE, b"OK echo=a%20b%25%C3%A4"), pool
            assert ask(other, pool, b"wrong", SECRET) == (DONE, b"ERR Wrong password"), pool
            assert ask(other, pool, b"pieces", SECRET) == (DONE, b"OK user=good"), pool
            assert ask(other, pool, b"environment", SECRET) == (DONE, b"OK group=4 core=0"), pool  # 0, 1, 2, and of listdir
            for bad in ((b"good", b""), (b"", SECRET), (b"good", b"a\nb"), (b"a\rb", SECRET), (b"good", b"x" * 1025), ()):
                assert ask(other, pool, *bad)[0] == UNUSABLE, (pool, bad)
            for kind in (b"basic", b"external_acl", b"digest"):  # a password is never taken for a group
                expected = DONE if kind == (b"external_acl" if pool == "groups" else b"basic") else UNUSABLE
                assert result_of(submit(other, pool, 60000, kind + b"\0good\0" + SECRET))[0] == expected, (pool, kind)
            assert ask(other, pool, b"broken", b"x") == (DONE, b'BH message="x"'), pool
        assert ask(other, "groups", b"echo", b"a", b"b c") == (DONE, b"OK echo=a|b%20c")
        assert ask(other, "basic", b"echo", b"a", b"b")[0] == UNUSABLE and ask(other, "basic", b"good")[0] == UNUSABLE
        assert other.pool("basic")["restarts"] == other.pool("groups")["restarts"] == 0
        assert SECRET.decode() not in other.log() + other.retortctl() + other.retortctl("--json")


@helpers_only
def test_helpers_of_lines_that_misbehave(lab):
    """No lie is an answer. The helper that told it is killed, and the next job gets another one."""
    with line_helpers(lab, "lying", ("plain", "squid_basic", False), ("many", "squid_basic", True)) as other:
        for pool in ("plain", "many"):
            lies = [("twice", FAILED), ("again", DONE), ("huge", FAILED), ("binary", FAILED), ("newline", FAILED), ("word", FAILED),
                    ("channel", FAILED), ("leaves", FAILED), ("crashes", FAILED), ("unfinished", TIMEOUT), ("hangs", TIMEOUT)]
            for what, expected in lies + ([("no.channel", FAILED)] if pool == "many" else []):
                begun, restarts = time.monotonic(), other.pool(pool)["restarts"]
                status, text = ask(other, pool, what.encode(), SECRET, milliseconds=200 if expected == TIMEOUT else 60000)
                assert status == expected and (status != DONE or text == b"ERR"), (pool, what, status, text)
                assert time.monotonic() - begun < 5 * lab.patience, what
                until(lambda pool=pool, restarts=restarts: other.pool(pool)["restarts"] > restarts, 10 * lab.patience, what)
                assert ask(other, pool, b"good", SECRET) == (DONE, b"OK user=good"), (pool, what)
        assert SECRET.decode() not in other.log() + other.retortctl("--json")


@helpers_only
def test_a_reload_to_another_protocol(lab):
    """A helper that is still there from before gets no question in the new language."""
    with line_helpers(lab, "changed", ("basic", "squid_basic", False)) as other:
        assert ask(other, "basic", b"good", SECRET)[0] == DONE
        old = other.workers("basic")
        with open(other.path("changed.conf"), encoding="utf-8") as file:
            text = file.read().replace("channels = off", "channels = on").replace('.py", ""', '.py", "channels"')
        other.write("changed.conf", text)
        other.process.send_signal(signal.SIGHUP)
        until(lambda: other.workers("basic") and other.workers("basic") != old, 10 * lab.patience, "another helper")
        got = ask(other, "basic", b"good", SECRET)
        assert got == (DONE, b"OK user=good"), got
        other.write("changed.conf", text.replace("squid_basic", "squid_digest"))
        assert not other.command(call="reload")["ok"] and "squid_basic, squid_external_acl" in other.log()
        assert ask(other, "basic", b"good", SECRET)[0] == DONE
