"""--version and --help of every program that `make install` puts down."""

import glob
import os
import re
import subprocess

from harness.checks import contains, equal, true

PROGRAMS = ["gray-helper", "retort", "retort-adlist", "retort-helperd", "retort-icap-replay", "retort-logs", "retort-service", "retort-service-test", "retortctl", "text-helper"]


def version_of_configure(lab):
    with open(os.path.join(lab.builddir, "config.h"), encoding="utf-8") as header:
        return re.search(r'#define PACKAGE_VERSION "(.*)"', header.read())[1]


def installed_programs(lab):
    """Path by name, of what is no script."""
    root, found = lab.path("root"), {}
    done = subprocess.run(["make", "install", f"DESTDIR={root}"], cwd=lab.builddir, env={**os.environ, "MAKEFLAGS": ""},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    true(done.returncode == 0, done.stdout[-3000:])
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                program = file.read(4) == b"\x7fELF" and ".so" not in name
            if program:
                found[name] = path
    return found


def say(path, option):
    done = subprocess.run([path, option], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    equal((done.returncode, done.stderr), (0, ""), f"{path} {option}")
    return done.stdout


def test_all_programs_tell_their_version(lab):
    version, programs = version_of_configure(lab), installed_programs(lab)
    equal(sorted(programs), PROGRAMS, "what is installed")
    for name, path in programs.items():
        for option in ("--version", "-V"):
            first, *rest = say(path, option).splitlines()
            equal(first, f"{name} {version}", option)
            parts = rest.pop() if name == "retort" else "parts: none; left out: none"
            true(re.fullmatch(r"parts: [\w, ]+; left out: [\w, ]+", parts), parts)
            true(len(rest) <= 1 and all(re.fullmatch(r"with [\w-]+ [\w.+-]+(, [\w-]+ [\w.+-]+)*", line) for line in rest), rest)
        for option in ("--help", "-h"):
            contains(say(path, option), "--version", f"{name} {option}")
    for path in ("bash-completion/completions/retortctl", "zsh/site-functions/_retortctl",
                 "fish/vendor_completions.d/retortctl.fish", "bash-completion/completions/retort-service-test",
                 "zsh/site-functions/_retort-service-test", "fish/vendor_completions.d/retort-service-test.fish"):
        true(glob.glob(os.path.join(lab.path("root"), "**/share", path), recursive=True), f"{path} is installed")


def test_the_manuals_tell_of_the_version(lab):
    for page in ("retort.8", "retort-helperd.8", "retortctl.1", "gray-helper.8", "text-helper.8", "retort-adlist.1",
                 "retort-icap-replay.1", "retort-logs.1",
                 "retort-service-test.1"):
        with open(os.path.join(os.path.dirname(__file__), "../../docs", page), encoding="utf-8") as manual:
            contains(manual.read().replace("\\-", "-"), "--version", page)
