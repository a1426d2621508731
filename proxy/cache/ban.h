/*
 * Bans: what was stored before now, under a URL that the expression is found in, is not to be used
 * any more. Nothing is searched when a ban comes: each object is compared with the bans that are
 * newer than it when it is next looked up, and once with each.
 *
 *     uint32_t number = bans_add(&bans, "\\.css$", error, sizeof error);    0: no expression
 *     if (bans_match(&bans, url, object_number)) ...                        a newer ban hits
 *     bans_drop(&bans, number);                                             and the older ones
 *
 * A ban is an event and has a number, counted from 1; an object carries the number of the newest
 * ban that it need not fear. Bans go when no object is older than they are.
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
    unsigned count;
};

void bans_init(struct bans *bans);
void bans_release(struct bans *bans);
uint32_t bans_add(struct bans *bans, const char *text, char *error, size_t error_size);
bool bans_match(struct bans *bans, struct slice url, uint32_t after);
void bans_drop(struct bans *bans, uint32_t until);
/* Calls `see` for each, under the lock. */
void bans_each(struct bans *bans, void (*see)(void *arg, const struct ban *ban), void *arg);

static inline uint32_t bans_newest(const struct bans *bans) {
    return atomic_load_explicit(&bans->newest, memory_order_acquire);
}

#endif
