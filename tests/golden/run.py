#!/usr/bin/python3
"""Compares what users see with the files of expected/: commands, pages, logs, messages about wrong configurations.

    run.py [--builddir DIR] [--update] [NAME...]

Whatever differs is printed as a unified diff; the last line counts. With --update the files become what is seen now: read `git diff`
then, since it shows what users will notice. A NAME is the beginning of files' names, such as ctl/cache or check.

collect.py makes the texts, place.py the proxy that they come from; masks.py lists what differs from run to run.
"""

import argparse
import difflib
import os
import re
import signal
import socket
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.path.insert(1, HERE)
sys.dont_write_bytecode = True
os.environ["TZ"] = "UTC"
os.environ["LC_ALL"] = "C.UTF-8"
tempfile.tempdir = "/tmp"  # of one length everywhere, for the sake of columns

from collect import GROUPS  # noqa: E402
from harness.lab import SOURCE, Lab  # noqa: E402
from masks import masked  # noqa: E402

EXPECTED = os.path.join(HERE, "expected")


def stored():
    """The names of the files there are."""
    return {os.path.relpath(os.path.join(folder, file), EXPECTED)[:-4]
            for folder, _, files in os.walk(EXPECTED) for file in files if file.endswith(".txt")}


def path_of(name):
    return os.path.join(EXPECTED, name + ".txt")


def read(name):
    try:
        with open(path_of(name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write(name, text):
    if text is None:
        os.unlink(path_of(name))
        return
    os.makedirs(os.path.dirname(path_of(name)), exist_ok=True)
    with open(path_of(name), "w", encoding="utf-8") as file:
        file.write(text)


def collected(lab, wanted):
    """{name: text} of the groups that can have a file that is wanted."""
    texts = {}
    for folders, collect in GROUPS:
        if not wanted or any(name.split("/")[0] in folders for name in wanted):
            for name, text, names in collect(lab):
                texts[name] = masked(text, names + [(lab.directory, "/DIR"), (lab.builddir, "/BUILD"), (SOURCE, "/SOURCE"), (f"root@{socket.gethostname()}", "root@HOST")])
    return compact(texts)


# JSON at length: what has no further braces in it goes on one line, and what is a page's answer is not repeated.

INNERMOST = re.compile(r"([\[{])\n\s*([^\[\]{}]*?)\n\s*([\]}])")
LINES, WIDTH = 60, 160


def folded(text):
    def fold(match):
        line = match[1] + re.sub(r",\n\s*", ", ", match[2]) + match[3]
        return line if len(line) <= WIDTH and "\n" not in line else match[0]
    return INNERMOST.sub(fold, text) if text.count("\n") > LINES else text


def compact(texts):
    texts = {name: folded(text) for name, text in texts.items()}
    answers = {text.split("\n", 2)[2]: name for name, text in texts.items() if re.match(r"> GET \S+\n200 Content-Type: application/json\n", text)}
    for name, text in texts.items():
        for answer, page in answers.items():
            if name.startswith("ctl/") and answer.count("\n") > 20:
                text = text.replace(answer, f"(the answer in {page}.txt)\n")
        texts[name] = text
    return texts


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builddir", default=os.environ.get("RETORT_BUILDDIR", os.path.join(SOURCE, "build")))
    parser.add_argument("--update", action="store_true", help="write the files anew")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only files whose names begin so")
    options = parser.parse_args()
    lab = Lab(options.builddir, name="golden")
    try:
        texts = collected(lab, options.names)
    finally:
        findings = lab.close()
    if options.names:
        texts = {name: text for name, text in texts.items() if name.startswith(tuple(options.names))}
        absent = set()
    else:
        absent = stored() - set(texts)
    passed = failed = 0
    for name, text in sorted([*texts.items(), *((name, None) for name in absent)]):
        before = read(name)
        if before == text:
            passed += 1
            continue
        failed += 1
        sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), (text or "").splitlines(True), f"expected/{name}.txt", "now"))
        if options.update:
            write(name, text)
    for finding in findings:
        failed += 1
        print(f"afterwards: {finding}")
    if options.update and failed:
        print(f"{failed} files were written anew: read git diff")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
