/*
 * Bans: what was stored before now and fits a filter is not to be used any more, or is stale.
 * Nothing is searched when a ban comes: each object is compared with the bans that are newer than
 * it when it is next looked up, and once with each. So a ban is in force at once, whatever is
 * stored.
 *
 *     uint64_t number = bans_add(&bans, &filter, PURGE_REMOVE);
 *
 * A ban is an event and has a number, counted from 1; an object carries the number of the newest
 * ban that it need not fear: at first the newest one when its origin was asked, later that which it
 * was last compared with. How many objects stand at which number is counted. A ban is dropped when
 * no object is older than it:
 *
 *     if (!bans_enter(&bans, &object->checked, number_when_asked)) ...  too old to be compared
 *     if (bans_check(&bans, object) == PURGE_REMOVE) ...                a newer ban hits
 *     bans_leave(&bans, &object->checked);
 *     bans_drop_spent(&bans);
 *
 * Numbers never come round: they have 64 bits. An object keeps the last 31 of its own, and which of
 * the numbers it is follows from how little an object lags behind.
 *
 * Threads: any; searching takes a lock that searchers share. An object that no newer ban can
 * concern takes none.
 */
#ifndef RETORT_CACHE_BAN_H
#define RETORT_CACHE_BAN_H

#include "cache/purge.h"

/* Whoever adds bans must see to it that no object lags behind by BANS_COUNTED. */
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
    _Atomic uint64_t newest, due; /* due: the newest that is there; 0: none is */
    uint64_t dropped;             /* the newest one that is not there any more */
    unsigned count;
    _Atomic uint64_t objects[BANS_COUNTED]; /* how many stand at a number */
};

void bans_init(struct bans *bans);
void bans_release(struct bans *bans);
uint64_t bans_add(struct bans *bans, const struct object_filter *filter, enum purge_action action);
/* False: bans that came since `number` are forgotten, or it is BANS_LATE of them behind. */
bool bans_enter(struct bans *bans, _Atomic uint32_t *checked, uint64_t number);
void bans_leave(struct bans *bans, _Atomic uint32_t *checked);
/* Compares with the bans that are newer than `checked`. Unless one says PURGE_REMOVE, `checked` is
 * moved on; what one says is stale is so from then on. */
enum purge_action bans_compare(struct bans *bans, struct object *object);
void bans_drop_spent(struct bans *bans);
/* Calls `see` for each, under the lock. */
void bans_each(struct bans *bans, void (*see)(void *arg, const struct ban *ban), void *arg);

static inline uint64_t bans_newest(const struct bans *bans) {
    return atomic_load_explicit(&bans->newest, memory_order_acquire);
}

/* An object that has left keeps its number, with this bit, for those who still hold it. */
#define BANS_LEFT 0x80000000u

/* The number whose last 31 bits these are, of those up to the newest. 0, which is no ban's: it was
 * never in the cache. */
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
