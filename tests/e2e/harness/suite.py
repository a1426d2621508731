"""Marks for tests, and what a test module shares among its tests.

    def test_something(lab): ...        `lab` is a fresh Lab, closed and judged behind the test

    @seconds(120)                       a longer limit than the usual one
    @memcheck                           also run under valgrind: for reads of bytes that nobody has written. All else is seen by
                                        AddressSanitizer, which runs every test, and costs a tenth
    @heavy("why")                       not run under valgrind or sanitizers

A module may have `def share(lab)`: it is called once, before the first test, and what it returns is
given to each test that has a second argument.
"""

USUAL_SECONDS = 120


def seconds(limit):
    def mark(test):
        test.seconds = limit
        return test
    return mark


def memcheck(test):
    test.memcheck = True
    return test


def heavy(reason):
    def mark(test):
        test.heavy = reason
        return test
    return mark
