/*
 * A ban says that stored objects which fit a filter must not be used any more, or are stale. A ban
 * concerns only objects that were requested before it. Adding a ban searches nothing: an object is
 * compared with the bans that are newer when it is next looked up, once with each ban. So a ban is
 * in force at once, however many objects are stored. The store keeps the bans (cache/store.c).
 *
 *     uint64_t number = bans_add(&bans, &filter, PURGE_REMOVE);
 *
 * Bans are numbered from 1. An object carries a number and is compared only with bans whose number
 * is larger. At first this is the number of the newest ban when the origin was asked; later it is
 * the number of the newest ban at the last comparison. The number of objects at each number is
 * counted. A ban is dropped when no object is older than the ban:
 *
 *     if (!bans_enter(&bans, &object->checked, number_when_asked)) ...  too old to be compared
 *     if (bans_check(&bans, object) == PURGE_REMOVE) ...                a newer ban hits
 *     bans_leave(&bans, &object->checked);
 *     bans_drop_spent(&bans);
 *
 * Numbers have 64 bits and never wrap around. An object keeps only the last 31 bits of its number.
 * The whole number follows from these bits, because no object lags far behind the newest ban.
 *
 * Threads: any. A comparison takes a read lock, which several threads may hold at once. The check
 * of an object that no newer ban can concern takes no lock.
 */
#ifndef RETORT_CACHE_BAN_H
#define RETORT_CACHE_BAN_H

#include "cache/purge.h"

/* The caller that adds bans makes sure that no object lags behind by BANS_COUNTED numbers. */
enum { BANS_COUNTED = 4096, BANS_LATE = 2048 };

struct ban {
    unsigned magic;
#define BAN_MAGIC 0xba4ba400u
    enum purge_action action;
    struct list_link link;
    uint64_t number;
    time_t made;
    struct object_filter filter; /* a copy */
};

struct bans {
    pthread_rwlock_t lock;
    struct list_link list;        /* oldest first */
    _Atomic uint64_t newest, due; /* due: the newest ban in the list; 0: none */
    uint64_t dropped;             /* the newest ban that was dropped */
    unsigned count;
    _Atomic uint64_t objects[BANS_COUNTED]; /* how many objects stand at a number */
};

void bans_init(struct bans *bans);
void bans_release(struct bans *bans);
uint64_t bans_add(struct bans *bans, const struct object_filter *filter, enum purge_action action);
/* False: bans that are newer than `number` were dropped, or BANS_LATE bans came since `number`. */
bool bans_enter(struct bans *bans, _Atomic uint32_t *checked, uint64_t number);
void bans_leave(struct bans *bans, _Atomic uint32_t *checked);
/* Compares the object with the bans that are newer than `checked`. If no ban says PURGE_REMOVE,
 * `checked` becomes the newest number. If a ban says PURGE_STALE, the object becomes stale. */
enum purge_action bans_compare(struct bans *bans, struct object *object);
void bans_drop_spent(struct bans *bans);
/* Calls `see` for each ban, oldest first, under the lock. */
void bans_each(struct bans *bans, void (*see)(void *arg, const struct ban *ban), void *arg);

static inline uint64_t bans_newest(const struct bans *bans) {
    return atomic_load_explicit(&bans->newest, memory_order_acquire);
}

/* An object that has left the cache keeps its number, with this bit set, for threads that still
 * hold a reference to the object. */
#define BANS_LEFT 0x80000000u

/* The largest number, up to the newest, that ends with these 31 bits. The function returns 0, which
 * is no ban's number, for an object that was never in the cache. */
static inline uint64_t bans_number_from(const struct bans *bans, uint32_t checked) {
    uint32_t kept = checked & ~BANS_LEFT;
    uint64_t newest = bans_newest(bans);
    return kept == 0 ? 0 : newest - (((uint32_t)newest - kept) & ~BANS_LEFT);
}

static inline uint64_t bans_number_of(const struct bans *bans, const struct object *object) {
    return bans_number_from(bans, atomic_load_explicit(&object->checked, memory_order_acquire));
}

static inline enum purge_action bans_check(struct bans *bans, struct object *object) {
    uint64_t due = atomic_load_explicit(&bans->due, memory_order_acquire);
    if (due == 0 || bans_number_of(bans, object) >= due)
        return PURGE_NOTHING;
    return bans_compare(bans, object);
}

#endif
