/*
 * A histogram of durations, by powers of two: below[0] counts those up to TIMES_FIRST microseconds,
 * below[i] those that are longer than TIMES_FIRST << (i - 1) and not longer than TIMES_FIRST << i,
 * and the last one all that are longer.
 *
 *     times_add(&times, microseconds);
 *     times_sum(&all, &times);                           of several threads
 *     uint64_t most = times_quantile(&all, 0.99);
 *
 * Adding takes no lock and no branch. Units: microseconds. Threads: values; whoever owns them.
 */
#ifndef RETORT_BASE_TIMES_H
#define RETORT_BASE_TIMES_H

#include <stdint.h>

enum { TIMES_COUNT = 22, TIMES_FIRST = 64, TIMES_FIRST_BITS = 6 };

struct times {
    uint64_t below[TIMES_COUNT];
    uint64_t count, sum;
};

/* Which element of `below` counts the duration. */
static inline unsigned times_index(uint64_t microseconds) {
    uint64_t above = (microseconds - (microseconds > 0)) >> TIMES_FIRST_BITS;
    unsigned index = above == 0 ? 0 : 64 - (unsigned)__builtin_clzll(above);
    return index < TIMES_COUNT ? index : TIMES_COUNT - 1;
}

static inline void times_add(struct times *times, uint64_t microseconds) {
    times->below[times_index(microseconds)]++;
    times->count++;
    times->sum += microseconds;
}

void times_sum(struct times *sum, const struct times *more);
/* Microseconds that the given share (0 to 1) of all durations did not exceed; an upper bound. 0:
 * there are none. */
uint64_t times_quantile(const struct times *times, double share);

#endif
