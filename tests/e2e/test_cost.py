"""What a request costs in instructions of our own: the one cost that comes out the same on every machine.

Counted by callgrind, as the difference between many requests and few, so that start and end do not
count. The bounds stand a little above what was measured when they were set: who raises one says why.
"""

import re

from harness.checks import equal, true
from harness.origin import Origin
from harness.retort import Retort
from harness.suite import heavy
from harness.wire import request

FEW, MANY = 300, 1500

# Instructions a request, system calls as one.
HIT = 5800
MISS = 37000


def instructions(lab, count, path):
    """All that retort executed, from its start to its end, with so many requests in between."""
    origin = Origin(lab)
    counts = lab.path(f"callgrind.{count}")
    proxy = Retort(lab, reverse={"/": origin.url("/")}, start_seconds=60, stop_seconds=60,
                   under=["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}"])
    # No access log: what is written for it is not the way of the request.
    proxy.write_config(re.sub(r"access_log .*", "", proxy.text()))
    proxy.restart()
    with proxy.wire(reverse=True, timeout=60) as wire:
        for _ in range(count):
            wire.send(request("GET", path, {"Host": "www.example.com", "User-Agent": "test", "Accept": "*/*"}))
            equal(wire.response().status, 200, "status")
    proxy.stop()
    with open(counts, encoding="utf-8") as out:
        return int(re.search(r"^(?:totals|summary): (\d+)", out.read(), re.M).group(1))


def cost(lab, path):
    return (instructions(lab, MANY, path) - instructions(lab, FEW, path)) // (MANY - FEW)


@heavy("callgrind runs the program itself")
def test_a_hit(lab):
    each = cost(lab, "/text?say=hello&cc=max-age%3D3600")
    true(each <= HIT, f"a hit takes {each} instructions, more than {HIT}")


@heavy("callgrind runs the program itself")
def test_a_miss(lab):
    each = cost(lab, "/bytes?n=10240&cc=no-store")
    true(each <= MISS, f"a miss takes {each} instructions, more than {MISS}")
