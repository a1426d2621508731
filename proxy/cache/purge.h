/*
 * What was purged lately: a response that was on its way while its like was purged is not to be
 * stored as if it were newer. A purge is an event and has a number; a request notes the newest
 * number before it goes to the origin, and what it brings is compared with the purges since.
 *
 *     uint64_t since = purges_newest(&purges);                   before the origin is asked
 *     purges_add(&purges, &filter, PURGE_REMOVE);                before the cache is searched
 *     switch (purges_judge(&purges, object, since)) ...          before it is stored
 *
 * The last PURGES_KEPT purges are remembered; what is older than they are counts as purged, so
 * nothing is ever missed. Purges of single keys, which every POST makes, are remembered apart: by
 * PURGE_KEYS places that keys share. A place knows its last key and when it last had another; where
 * two that share one are purged at the same time, a third may be taken for the first of them, and
 * is then not stored once.
 *
 * Threads: any.
 */
#ifndef RETORT_CACHE_PURGE_H
#define RETORT_CACHE_PURGE_H

#include "cache/object_filter.h"

enum { PURGES_KEPT = 64, PURGE_KEYS = 4096 };

enum purge_action {
    PURGE_NOTHING,
    PURGE_STALE, /* asked for again before the next use; the old one is there should that fail */
    PURGE_REMOVE,
};

struct purge {
    struct object_filter filter; /* a copy */
    enum purge_action action;
};

/* A place for purges of single keys. */
struct purged_key {
    _Atomic uint64_t newest; /* the number of the last purge there */
    struct cache_key key;    /* what it was of */
    uint64_t others;         /* the number of the last one of any other key */
};

struct purges {
    pthread_rwlock_t lock;
    _Atomic uint64_t newest;
    struct purge kept[PURGES_KEPT]; /* by number */
    _Atomic uint64_t newest_key;
    struct purged_key keys[PURGE_KEYS];
};

void purges_init(struct purges *purges);
void purges_release(struct purges *purges);

void purges_add(struct purges *purges, const struct object_filter *filter,
                enum purge_action action);
/* What the purges since then would have done to the object. */
enum purge_action purges_judge(struct purges *purges, const struct object *object, uint64_t since);

void purges_add_key(struct purges *purges, struct cache_key key);
bool purges_has_key(struct purges *purges, struct cache_key key, uint64_t since);

static inline uint64_t purges_newest(const struct purges *purges) {
    return atomic_load_explicit(&purges->newest, memory_order_acquire);
}

static inline uint64_t purges_newest_key(const struct purges *purges) {
    return atomic_load_explicit(&purges->newest_key, memory_order_acquire);
}

#endif
