"""h2spec, the public conformance suite for HTTP/2 (RFC 7540 and 7541, which RFC 9113 keeps): all of it, strictly."""

import os
import re
import subprocess

from harness import ports
from harness.certificates import Authority
from harness.checks import Skip, equal, true
from harness.lab import DATA
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import heavy, seconds

PROGRAM = os.path.join(DATA, "h2spec", "h2spec")


def h2spec(lab, port, *more):
    """The names of the cases that failed. A case that waits for an answer gives up after the time of -o."""
    if not os.path.exists(PROGRAM):
        raise Skip("needs h2spec: run tests/data/fetch.sh, which needs golang-go and the Go module proxy")
    done = subprocess.run([PROGRAM, "-h", "127.0.0.1", "-p", str(port), "--strict", "-o", str(2 * lab.patience), "-P", "/bytes?n=500", *more],
                          capture_output=True, check=False, timeout=100 * lab.patience)
    said = done.stdout.decode("utf-8", "replace")
    counts = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", said)
    true(counts is not None, f"h2spec counts its tests; it said {said[-500:]!r} {done.stderr[-500:]!r}")
    total, passed, skipped, failed = (int(count) for count in counts.groups())
    true(total > 140, f"h2spec has {total} tests")
    equal((failed, skipped), (0, 0), f"failed and skipped of {total}: {said[said.find('Failures:'):][:3000]}")


@heavy("deadlines of the suite")
@seconds(180)
def test_h2spec(lab):
    authority, port, origin = Authority(lab), ports.take(), Origin(lab)
    leaf = authority.leaf("127.0.0.1")
    proxy = Retort(lab, reverse={"/": origin.url()}, extra=f"""
listen "127.0.0.1:{port}" {{ mode = reverse  certificates = {{ "{leaf.both}" }} }}""")
    h2spec(lab, proxy.reverse[1])
    h2spec(lab, port, "-t", "-k")
    equal(proxy.counter("client_http2_connections_open"), 0, "open connections")
