#!/usr/bin/python3
"""The services as they run: c-icap with our modules, retort-helperd, its helpers, and an ICAP client.

    run.py [--builddir DIR] [--valgrind] [--keep] [NAME...]

Runs the functions test_* of this folder (those whose name contains a NAME) against processes started in a
scratch directory, not as root if it need not be. With --valgrind all of them run under memcheck, and
an error or a definite leak in our code fails the run. Exit status 0 when all is well.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from services import (SOURCE, test_adremover, test_forms, test_gray, test_gzip, test_helpers, test_inject, test_lines,  # noqa: E402
                      test_shares, test_together)
from services.lab import Lab  # noqa: E402
from services.pictures import make_pictures  # noqa: E402

FILES = (test_gzip, test_adremover, test_gray, test_forms, test_inject, test_helpers, test_lines, test_shares, test_together)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builddir", default=os.environ.get("RETORT_BUILDDIR", os.path.join(SOURCE, "build")))
    parser.add_argument("--valgrind", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    pictures = tempfile.mkdtemp(prefix="retort-pictures-")
    make_pictures(pictures)
    tests = [(name, function) for file in FILES for name, function in vars(file).items() if name.startswith("test_")
             and function.__module__ == file.__name__ and (not options.names or any(part in name for part in options.names))]
    lab, failed = Lab(options), 0
    for name, function in tests:
        begun = time.monotonic()
        try:
            function(lab)
            verdict = "ok"
        except Exception:  # pylint: disable=broad-except
            failed += 1
            verdict = "FAILED\n" + traceback.format_exc()
        print("%-44s %6.2f s  %s" % (name, time.monotonic() - begun, verdict), flush=True)
    findings = lab.close()
    shutil.rmtree(pictures)
    for finding in findings:
        print("FINDING:", finding)
    print("%d tests, %d failed, %d findings" % (len(tests), failed, len(findings)))
    return 1 if failed or findings else 0


if __name__ == "__main__":
    sys.exit(main())
