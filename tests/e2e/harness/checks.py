"""Assertions that say what was seen."""

import time


class Skip(Exception):
    """The test needs something that can not be had here; the message names it."""


def short(value, limit=400):
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + f"... ({len(text)} characters)"


def equal(seen, expected, what="value"):
    if seen != expected:
        raise AssertionError(f"{what}: expected {short(expected)}, saw {short(seen)}")


def same_bytes(seen, expected, what="body"):
    """Like equal, but tells where two long byte strings part."""
    if seen == expected:
        return
    limit = min(len(seen), len(expected))
    at = next((i for i in range(limit) if seen[i] != expected[i]), limit)
    raise AssertionError(
        f"{what}: {len(seen)} bytes seen, {len(expected)} expected, they differ at {at}: "
        f"saw {bytes(seen[at:at + 24])!r}, expected {bytes(expected[at:at + 24])!r}")


def true(condition, message):
    if not condition:
        raise AssertionError(message)


def contains(haystack, needle, what="text"):
    if needle not in haystack:
        raise AssertionError(f"{what}: {short(needle)} is not in {short(haystack)}")


def lacks(haystack, needle, what="text"):
    if needle in haystack:
        raise AssertionError(f"{what}: {short(needle)} is in {short(haystack)}")


def one_of(seen, allowed, what="value"):
    if seen not in allowed:
        raise AssertionError(f"{what}: expected one of {short(allowed)}, saw {short(seen)}")


def between(seen, low, high, what="value"):
    if not low <= seen <= high:
        raise AssertionError(f"{what}: expected {low} to {high}, saw {seen}")


def raises(kinds, call, what):
    try:
        result = call()
    except kinds as error:
        return error
    raise AssertionError(f"{what}: expected a failure, got {short(result)}")


# A machine that is busy with other things stands still for seconds: nothing that is sure to happen is given less.
LEAST_PATIENCE = 20


def until(condition, seconds, what, pause=0.02):
    """Waits until condition() is true and returns its value; fails when it is not after `seconds`, or LEAST_PATIENCE.

    What counts upwards may have passed a number before it is looked at: ask for `>=`, and for the exact number afterwards. Where
    the time itself is tested, use `within`."""
    return within(condition, max(seconds, LEAST_PATIENCE), what, pause)


def within(condition, seconds, what, pause=0.02):
    """Like until, to the second."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {seconds:g} s in vain: {what}")
        time.sleep(pause)
