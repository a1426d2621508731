/*
 * Clocks: one number for a point in time, for code without a loop, or where the time of the loop is
 * too old.
 *
 *     uint64_t begun = clocks_nanoseconds(CLOCK_MONOTONIC);
 *     ...
 *     uint64_t took = clocks_nanoseconds(CLOCK_MONOTONIC) - begun;
 *
 * Units: the names say them. The clocks are those of clock_gettime(2): CLOCK_MONOTONIC for
 * durations, CLOCK_REALTIME for a date, CLOCK_MONOTONIC_COARSE for a cheap reading that is up to
 * 4 ms old.
 * Threads: any.
 */
#ifndef RETORT_BASE_CLOCKS_H
#define RETORT_BASE_CLOCKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clocks_nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t clocks_microseconds(clockid_t clock) {
    return clocks_nanoseconds(clock) / 1000;
}

static inline uint64_t clocks_milliseconds(clockid_t clock) {
    return clocks_nanoseconds(clock) / 1000000;
}

/* So many nanoseconds, as system calls want them. */
static inline struct timespec clocks_timespec(uint64_t nanoseconds) {
    return (struct timespec){
        .tv_sec = (time_t)(nanoseconds / 1000000000u),
        .tv_nsec = (long)(nanoseconds % 1000000000u),
    };
}

#endif
