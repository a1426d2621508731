/*
 * Purges: what was stored before now and fits a filter is not to be used any more, or is stale. A
 * purge is an event and has a number. It is in force at once, at any rate and whatever is stored:
 * an object carries the number of the newest purge that it need not fear, and is compared with
 * those that are newer when it is looked up, all at once (filter_table.h) and once with each.
 *
 *     uint64_t number = purges_add(&purges, &filter, PURGE_REMOVE);
 *     if (purges_check(&purges, object) == PURGE_REMOVE) ...             when it is looked up
 *
 * A walk through all objects compares each with all purges that there are when it begins; after
 * that none of these concerns what is stored:
 *
 *     uint64_t until = purges_newest(&purges);
 *     ... every object ...
 *     purges_end_walk(&purges, until);
 *
 * A response that was on its way while its like was purged is not to be stored as if it were newer:
 * a request notes the newest number before it goes to the origin, and what it brings is compared
 * with the purges since.
 *
 *     uint64_t since = purges_newest(&purges);                   before the origin is asked
 *     switch (purges_judge(&purges, object, since)) ...          before it is stored
 *     purges_enter(&purges, object);
 *
 * For that purges are remembered for PURGES_SECONDS at least, and for twice that at most, however
 * many they are; what was on its way for longer counts as purged, so nothing is ever missed.
 *
 * Purges of single keys, which every POST makes, are remembered apart, in PURGE_KEYS places that
 * keys share. A place knows its last key, and when it last had another key. When two keys of one
 * place are purged at the same time, a third key may be mistaken for the first; its response is
 * then not stored once.
 *
 * Threads: any; looking takes a lock that all who look share. An object that no newer purge can
 * concern takes none.
 */
#ifndef RETORT_CACHE_PURGE_H
#define RETORT_CACHE_PURGE_H

#include "cache/filter_table.h"

enum { PURGES_SECONDS = 120, PURGE_KEYS = 4096 };

/* A place for purges of single keys. */
struct purged_key {
    _Atomic uint64_t newest; /* the number of the last purge there */
    struct cache_key key;    /* what it was of */
    uint64_t others;         /* the number of the last one of any other key */
};

struct purges {
    pthread_rwlock_t lock;
    _Atomic uint64_t newest, due;  /* due: newest, if it has not been walked for; else 0 */
    _Atomic uint64_t walked;       /* what is stored has been compared with purges up to this one */
    struct filter_table tables[2]; /* the younger first */
    uint64_t floor;                /* the newest one that is forgotten */
    uint64_t turned_at;            /* when the younger table began, in seconds */
    _Atomic uint64_t newest_key;
    struct purged_key keys[PURGE_KEYS];
};

void purges_init(struct purges *purges);
void purges_release(struct purges *purges);

uint64_t purges_add(struct purges *purges, const struct object_filter *filter,
                    enum purge_action action);
/* What the purges since then would have done to the object. */
enum purge_action purges_judge(struct purges *purges, const struct object *object, uint64_t since);
/* The object is about to be stored, under a lock that walks take, and has been judged by all
 * purges. */
void purges_enter(struct purges *purges, struct object *object);
/* Unless it says PURGE_REMOVE the object need not fear these purges any more; what one says is
 * stale is so from then on. */
enum purge_action purges_compare(struct purges *purges, struct object *object);
/* The object that purges_compare said PURGE_REMOVE of was removed for that. */
void purges_note_removal(struct purges *purges, const struct object *object);
/* For a walk, which holds the lock: may one concern the object? */
bool purges_may_concern(struct purges *purges, const struct object *object);
/* All objects that were there have been compared with those up to that number. */
void purges_end_walk(struct purges *purges, uint64_t until);
/* Objects that this purge has concerned, since it was not known or had been walked for. */
uint64_t purges_hits(struct purges *purges, const struct object_filter *filter, uint64_t number);
/* Those of which a walk has to compare each with each object. */
size_t purges_slow(struct purges *purges);

void purges_add_key(struct purges *purges, struct cache_key key);
bool purges_has_key(struct purges *purges, struct cache_key key, uint64_t since);

static inline uint64_t purges_newest(const struct purges *purges) {
    return atomic_load_explicit(&purges->newest, memory_order_acquire);
}

static inline uint64_t purges_newest_key(const struct purges *purges) {
    return atomic_load_explicit(&purges->newest_key, memory_order_acquire);
}

/* Of the object's number its last 32 bits are kept: it never lags behind by more. */
static inline uint64_t purges_number_of(const struct purges *purges, const struct object *object) {
    uint64_t newest = purges_newest(purges);
    uint32_t kept = atomic_load_explicit(&object->purged, memory_order_acquire);
    uint32_t lag = (uint32_t)newest - kept;
    uint64_t walked = atomic_load_explicit(&purges->walked, memory_order_acquire);
    return lag >= newest || newest - lag < walked ? walked : newest - lag;
}

static inline enum purge_action purges_check(struct purges *purges, struct object *object) {
    uint64_t due = atomic_load_explicit(&purges->due, memory_order_acquire);
    if (due == 0 || (uint32_t)due == atomic_load_explicit(&object->purged, memory_order_acquire))
        return PURGE_NOTHING;
    return purges_compare(purges, object);
}

#endif
