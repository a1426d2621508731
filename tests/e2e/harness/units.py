"""The units for systemd as `make install` would install them, and the system calls that they leave to a program.

    Process(..., before_start=confined(calls_of(lab, "retort")))       any other system call kills it
    Process(..., before_start=confined(calls, REFUSE))                 any other fails with EPERM, as the unit of retort has it
"""

import ctypes
import errno
import os
import re
import shutil
import subprocess

from .checks import Skip

# What becomes of other calls (seccomp.h).
KILL, REFUSE, ALLOW = 0x80000000, 0x00050000 | errno.EPERM, 0x7fff0000

UNITS = ("retort", "retort-helperd", "retort-lists")


def unit(lab, name):
    directory = os.path.dirname(os.path.dirname(lab.built("proxy/retort")))
    path = f"conf/{name}.service"
    subprocess.run(["make", "-s", "-C", directory, path], check=True, capture_output=True)
    return os.path.join(directory, path)


def analyze(*arguments):
    if shutil.which("systemd-analyze") is None:
        raise Skip("there is no systemd-analyze")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


def system_calls():
    """The groups of systemd, each with all its calls."""
    groups, group = {}, None
    for line in analyze("syscall-filter").stdout.splitlines():
        word = line.split("#")[0].strip()
        if word.startswith("@") and not line.startswith(" "):
            group = groups.setdefault(word, [])
        elif word and group is not None:
            group.append(word)

    def expand(name):
        return set().union(*(expand(each) for each in groups[name])) if name in groups else {name}
    return expand


def permitted(text):
    expand, calls = system_calls(), set()
    for rule in re.findall(r"^SystemCallFilter=(.*)$", text, re.MULTILINE):
        named = set().union(*(expand(name) for name in rule.lstrip("~").split()))
        calls = calls - named if rule.startswith("~") else calls | named
    return calls


def confined(calls, others=KILL):
    """For a child before it starts its program."""
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(others))
    for call in calls:
        number = library.seccomp_syscall_resolve_name(call.encode())
        if number >= 0:
            library.seccomp_rule_add(context, ALLOW, number, 0)
    return lambda: library.seccomp_load(context)


def calls_of(lab, name):
    """What the unit permits."""
    if lab.valgrind or lab.asan or lab.tsan:
        raise Skip("tools of the tests make calls of their own")
    with open(unit(lab, name), encoding="utf-8") as file:
        return permitted(file.read())
