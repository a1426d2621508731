/*
 * Bans: what was stored before now, under a URL that the expression is found in, is not to be used
 * any more. Nothing is searched when a ban comes: each object is compared with the bans that are
 * newer than it when it is next looked up, and once with each.
 *
 *     uint32_t number = bans_add(&bans, "\\.css$", error, sizeof error);    0: no expression
 *
 * A ban is an event and has a number, counted from 1; an object carries the number of the newest
 * ban that it need not fear: at first the newest one when its origin was asked, later that which it
 * was last compared with. How many objects stand at which number is counted, and bans go when no
 * object is older than they are:
 *
 *     if (!bans_enter(&bans, &object->checked, number_when_asked)) ...  too old to be compared
 *     if (bans_check(&bans, url, &object->checked)) ...                 a newer ban hits
 *     bans_leave(&bans, &object->checked);
 *     bans_drop_spent(&bans);
 *
 * Threads: any; searching takes a lock that searchers share.
 */
#ifndef RETORT_CACHE_BAN_H
#define RETORT_CACHE_BAN_H

#include "base/list.h"
#include "settings/regex.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Whoever adds bans must see to it that no object lags behind by BANS_COUNTED. */
enum { BANS_COUNTED = 256, BANS_LATE = 128 };

struct ban {
    unsigned magic;
#define BAN_MAGIC 0xba4ba400u
    struct list_link link;
    uint32_t number;
    time_t made;
    char *text;
    struct regexes regex;
};

struct bans {
    pthread_rwlock_t lock;
    struct list_link list; /* oldest first */
    _Atomic uint32_t newest;
    uint32_t dropped; /* the newest that is not there any more */
    unsigned count;
    _Atomic uint64_t objects[BANS_COUNTED]; /* how many stand at a number */
};

void bans_init(struct bans *bans);
void bans_release(struct bans *bans);
uint32_t bans_add(struct bans *bans, const char *text, char *error, size_t error_size);
/* False: bans that came since `number` are forgotten, or it is BANS_LATE of them behind. */
bool bans_enter(struct bans *bans, _Atomic uint32_t *checked, uint32_t number);
void bans_leave(struct bans *bans, _Atomic uint32_t *checked);
/* Compares with the bans that are newer than `checked`, and moves that on when none hits. */
bool bans_compare(struct bans *bans, struct slice url, _Atomic uint32_t *checked);
void bans_drop_spent(struct bans *bans);
/* Calls `see` for each, under the lock. */
void bans_each(struct bans *bans, void (*see)(void *arg, const struct ban *ban), void *arg);

static inline uint32_t bans_newest(const struct bans *bans) {
    return atomic_load_explicit(&bans->newest, memory_order_acquire);
}

/* An object that has left keeps its number, with this bit, for those who still hold it. */
#define BANS_LEFT 0x80000000u

static inline bool bans_check(struct bans *bans, struct slice url, _Atomic uint32_t *checked) {
    uint32_t number = atomic_load_explicit(checked, memory_order_relaxed) & ~BANS_LEFT;
    return number < bans_newest(bans) && bans_compare(bans, url, checked);
}

#endif
