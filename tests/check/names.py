#!/usr/bin/env python3
"""Holds that no name of a static function is in two files, so that a backtrace says which one it is.

    names.py [TOP-OF-THE-TREE]

Prints FILE:LINE for each that is. One check a file.
"""
import collections
import os
import re
import sys

sys.dont_write_bytecode = True
from c_source import ATTRIBUTE, files, read, without_comments  # noqa: E402

STATIC = re.compile(r"^static\s+(?:[\w*]+\s+)*\**(\w+)\(", re.M)


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places, paths = collections.defaultdict(dict), list(files(top, (".c",)))
    for path in paths:
        code = ATTRIBUTE.sub("", without_comments(read(top, path)))
        for match in STATIC.finditer(code):
            places[match.group(1)].setdefault(path, code.count("\n", 0, match.start()) + 1)
    bad = set()
    for name, found in sorted(places.items()):
        if len(found) > 1:
            bad.update(found)
            for path, line in found.items():
                print("%s:%d: there is a static %s in another file too; begin it with the file's name" % (path, line, name))
    print("%d passed, %d failed" % (len(paths) - len(bad), len(bad)))
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
