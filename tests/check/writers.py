#!/usr/bin/env python3
"""Holds that each struct of a transaction is changed only by the files that its header names.

    writers.py [TOP-OF-THE-TREE]

Above a struct in proxy/core/transaction/ a comment says "Written by FILE[ and FILE].": it is about the member of struct transaction
that has the type; a FILE may be a folder. All other files of proxy/ may read that member, and not assign to it, hand what it owns to
a function that releases it, or point to it by a pointer that is not const. Its header may have functions that write it.

Prints FILE:LINE for each that does. One check a file.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from c_source import files, read, without_comments  # noqa: E402

ROOM = "proxy/core/transaction/"
WRITTEN = re.compile(r"Written by ([\w./ ]+?)\. \*/\nstruct (\w+) \{")
CHANGES = r"(?:[-+|&^*/]|<<|>>)?=(?!=)|\+\+|--"
RELEASES = r"\w+_(?:release|close|free|leave|cancel|stop|end|finish|take|give)\(&"


def owners(top):
    """struct -> (the files that write it, its header)"""
    found = {}
    for path in files(top, (".h",)):
        if path.startswith(ROOM):
            for names, struct in WRITTEN.findall(read(top, path)):
                writers = {os.path.normpath(os.path.join(ROOM, name)) for name in names.split(" and ")}
                writers |= {os.path.join(os.path.dirname(path), name) for name in names.split(" and ")}
                found[struct] = (writers, path)
    return found


def members(top, structs):
    """member of struct transaction -> its struct"""
    text = without_comments(read(top, ROOM + "transaction.h"))
    body = re.search(r"^struct transaction \{\n(.*?)^\};", text, re.S | re.M).group(1)
    return {name: struct for struct, name in re.findall(r"^ {4}struct (\w+) \*?(\w+);", body, re.M) if struct in structs}


def wrongs(code, member, struct):
    """Where the code changes that member."""
    place = r"\btransaction->%s\b(?:(?:\.|->)\w+|\[[^]]*\])*" % member
    for pattern in (place + r"\s*(?:%s)" % CHANGES, RELEASES + place, r"(?:\+\+|--)" + place,
                    r"^ +struct %s \*\w+ = &?transaction->%s;" % (struct, member)):
        for match in re.finditer(pattern, code, re.M):
            yield match.start() + len(match.group(0)) - len(match.group(0).lstrip())


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    structs = owners(top)
    of, bad, count = members(top, structs), 0, 0
    for path in files(top, (".c", ".h")):
        if not path.startswith("proxy/"):
            continue
        code, found = without_comments(read(top, path)), []
        for member, struct in of.items():
            writers, header = structs[struct]
            if path not in writers and os.path.dirname(path) not in writers and path != header:
                found += [(at, member, header) for at in wrongs(code, member, struct)]
        count += 1
        bad += bool(found)
        for at, member, header in sorted(found):
            print("%s:%d: changes transaction->%s, which %s says that others write; call a function of theirs"
                  % (path, code.count("\n", 0, at) + 1, member, header))
    print("%d passed, %d failed" % (count - bad, bad))
    return 1 if bad or not of else 0


if __name__ == "__main__":
    sys.exit(main())
