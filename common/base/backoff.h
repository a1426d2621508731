/*
 * Back-off: the pauses between tries, each twice as long as the one before, up to a limit.
 *
 *     uint64_t pause = FIRST;                                        who keeps the pause
 *     ... wait so long, and try; if that fails: ...
 *     pause = backoff_next(pause, MOST);
 *
 *     uint64_t pause = backoff_after(FIRST, MOST, failures);         who counts failures in a row
 *
 * Units: any, the same for all. Threads: pure.
 */
#ifndef RETORT_BASE_BACKOFF_H
#define RETORT_BASE_BACKOFF_H

#include <stdint.h>

static inline uint64_t backoff_next(uint64_t pause, uint64_t most) {
    return pause > most / 2 ? most : 2 * pause;
}

/* `failures`: 1 has the first pause; 0 as well. */
static inline uint64_t backoff_after(uint64_t first, uint64_t most, unsigned failures) {
    uint64_t pause = first < most ? first : most;
    for (; failures > 1 && pause > 0 && pause < most; failures--)
        pause = backoff_next(pause, most);
    return pause;
}

#endif
