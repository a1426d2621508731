#!/usr/bin/python3
"""The services as they run: c-icap with our modules, retort-helperd, its helpers, and an ICAP client. Or with --host inside, thread or
process the proxy with the services in it, and a client and an origin: the same tests (inside.py).

    run.py [--builddir DIR] [--valgrind] [--keep] [--host HOST] [NAME...]

Runs the functions test_* of this folder (those whose name contains a NAME) against processes started in a
scratch directory, not as root if it need not be. With --valgrind all of them run under memcheck, and
an error or a definite leak in our code fails the run. Exit status 0 when all is well. A test that can not run under a host counts
as skipped and says why.
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
    parser.add_argument("--host", choices=("icap", "inside", "thread", "process"), default="icap", help="where the services run")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    pictures = tempfile.mkdtemp(prefix="retort-pictures-")
    make_pictures(pictures)
    tests = [(name, function) for file in FILES for name, function in vars(file).items() if name.startswith("test_")
             and function.__module__ == file.__name__ and (not options.names or any(part in name for part in options.names))]
    lab, failed, skipped = Lab(options), 0, 0
    for name, function in tests:
        if options.host != "icap" and hasattr(function, "icap_only"):
            skipped += 1
            print("SKIP %s: %s" % (name, function.icap_only))
            continue
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
    print("%d tests, %d failed, %d findings, %d skipped" % (len(tests) - skipped, failed, len(findings), skipped))
    return 1 if failed or findings else 0


if __name__ == "__main__":
    sys.exit(main())
