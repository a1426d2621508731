"""The usual way to measure: wrk asks a server for a while, and the server's CPU time is divided by the requests.

A sample has what wrk saw, and "cpu_us" (CPU time a request), "busy" (how much of its core the server
used) and "asked" (requests that the origin got meanwhile).
"""

import time

from . import load

HITS_ONLY, MISSES_ONLY = "hits", "misses"
# Revalidations, connections opened at the end: what the origin may be asked although all are hits.
FEW = 5
HIT_MISSES, MISS_HITS = 0.01, 0.05


def measure(bench, server, path, connections, *, headers=(), script=None, expect=None, seconds=None, length=None):
    """length: bytes of a response; 0: responses differ, none is looked at."""
    if length is None:
        length = load.response_length(server, path, headers)
    asked, cpu, begin = bench.origin.count(), server.cpu_seconds(), time.monotonic()
    seen = bench.wrk.run(server, path, connections, seconds or bench.seconds, headers=headers, script=script)
    elapsed = time.monotonic() - begin
    cpu, asked = server.cpu_seconds() - cpu, bench.origin.count() - asked - 1
    if not seen["requests"]:
        raise AssertionError(f"{server.name} {path}: no request was answered: {seen['errors']}")
    if length:
        load.check_bytes(server, path, seen, length, connections)
    check_origin(server, path, expect, asked, seen["requests"])
    return {**seen, "cpu_us": cpu / seen["requests"] * 1e6, "busy": cpu / elapsed, "asked": asked}


def check_origin(server, path, expect, asked, requests):
    if expect == HITS_ONLY and asked > requests * HIT_MISSES + FEW:
        raise AssertionError(f"{server.name} {path}: no hits: {asked} requests at the origin for {requests}")
    if expect == MISSES_ONLY and asked < requests * (1 - MISS_HITS):
        raise AssertionError(f"{server.name} {path}: no misses: {asked} requests at the origin for {requests}")
