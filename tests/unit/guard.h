/*
 * Input for parsers, with a forbidden page behind it: one that looks a byte too far dies there,
 * however it reads, also with instructions that take sixteen bytes at once.
 *
 *     struct slice input = guard_put(bytes);       valid until the next call
 *     struct slice value = guard_keep(bytes);      valid as long as the process
 *
 * Threads: one.
 */
#ifndef RETORT_TESTS_UNIT_GUARD_H
#define RETORT_TESTS_UNIT_GUARD_H

#include "base/slice.h"

enum { GUARD_MAX = 128 * 1024 };

struct slice guard_put(struct slice bytes);
struct slice guard_keep(struct slice bytes);

#endif
