"""The usual way to measure: a server is asked for a while, and its CPU time is divided by the requests.

A sample has what the load generator saw, and "cpu_us" (CPU time a request), "busy" (how much of its
core the server used) and "asked" (requests that the origin got meanwhile).
"""

import time

from . import load

HITS_ONLY, MISSES_ONLY = "hits", "misses"
# Revalidations, connections opened at the end: what the origin may be asked although all are hits.
FEW = 5
HIT_MISSES, MISS_HITS = 0.01, 0.05


def measure(case, server, path, connections, *, headers=(), script=None, expect=None, seconds=None):
    """wrk's requests for one path, or for those of a script, whose responses differ in length."""
    length = 0 if script else load.response_length(server, path, headers)
    sample = observed(case.bench, server, lambda: case.bench.wrk.run(server, path, connections, seconds or case.seconds,
                                                                     headers=headers, script=script))
    if not sample["requests"]:
        raise AssertionError(f"{server.name} {path}: no request was answered: {sample['errors']}")
    if length:
        load.check_bytes(server, path, sample, length, connections)
    check_origin(server, path, expect, sample["asked"], sample["requests"])
    return sample


def observed(bench, server, ask):
    """What ask() saw, and what it cost the server."""
    asked, cpu, begin = bench.origin.count(), server.cpu_seconds(), time.monotonic()
    seen = ask()
    elapsed = time.monotonic() - begin
    cpu, asked = server.cpu_seconds() - cpu, bench.origin.count() - asked - 1
    return {**seen, "cpu_s": cpu, "cpu_us": cpu / max(seen["requests"], 1) * 1e6, "busy": cpu / elapsed, "asked": asked}


def check_origin(server, path, expect, asked, requests):
    if expect == HITS_ONLY and asked > requests * HIT_MISSES + FEW:
        raise AssertionError(f"{server.name} {path}: no hits: {asked} requests at the origin for {requests}")
    if expect == MISSES_ONLY and asked < requests * (1 - MISS_HITS):
        raise AssertionError(f"{server.name} {path}: no misses: {asked} requests at the origin for {requests}")
