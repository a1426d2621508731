/*
 * Until when what is stored may be used without a question to the origin, beside its freshness. A proxy alone vouches for it
 * always. A node of a fleet does so for as long as it knows of all purges (fleet/node.h).
 *
 *     if (vouching_is_over(host->vouching, loop->now_nanoseconds)) ...      ask the origin, or refuse
 *
 * Units: nanoseconds of CLOCK_MONOTONIC. Threads: any.
 */
#ifndef RETORT_CACHE_VOUCHING_H
#define RETORT_CACHE_VOUCHING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vouching {
    _Atomic uint64_t until; /* UINT64_MAX: always */
    bool refuses;           /* nothing is served behind that */
};

/* Of a proxy alone. */
extern const struct vouching vouching_always;

static inline void vouching_init(struct vouching *vouching, bool refuses) {
    atomic_init(&vouching->until, UINT64_MAX);
    vouching->refuses = refuses;
}

static inline void vouching_set(struct vouching *vouching, uint64_t until) {
    atomic_store_explicit(&vouching->until, until, memory_order_release);
}

static inline bool vouching_is_over(const struct vouching *vouching, uint64_t now) {
    return now > atomic_load_explicit(&vouching->until, memory_order_acquire);
}

#endif
