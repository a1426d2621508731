/*
 * Eviction chooses the entry that is removed when space is needed. The objects in memory
 * (proxy/core/cache/shard.h) and shared tables (base/shared_table.h) use it.
 *
 * The policy is SIEVE (Zhang et al., NSDI '24). Entries stand in the order of their arrival. A use
 * sets one bit of the entry and moves nothing. A hand walks from old to new; it clears the bits
 * that are set, and stops at the first entry whose bit is clear. Why not LRU: a use of an entry
 * would write a list and take a lock. Why not S3-FIFO: SIEVE has the same miss ratios on traces of
 * the web with one queue and no memory of evicted entries. One scan of entries that nobody uses
 * again passes through without displacing the ones in use.
 *
 *     eviction_init(&eviction);
 *     eviction_enter(&eviction, &entry->link);
 *     struct list_link *link = eviction_choose(&eviction, take_use, NULL);       NULL: it is empty
 *     eviction_leave(&eviction, link);
 *
 *     static bool take_use(struct list_link *link, void *arg)     was it used? Clears that bit.
 *
 * Threads: the owner holds a lock of its own around each call.
 */
#ifndef RETORT_BASE_EVICTION_H
#define RETORT_BASE_EVICTION_H

#include "base/list.h"

struct eviction {
    struct list_link entries; /* newest first */
    struct list_link *hand;   /* next to be looked at; &entries: start at the oldest */
};

void eviction_init(struct eviction *eviction);
void eviction_enter(struct eviction *eviction, struct list_link *entry);
/* An entry that is in no list is left as it is. */
void eviction_leave(struct eviction *eviction, struct list_link *entry);
/* The next entry for which `take_use` is false. It stays where it is; the hand moves past it. */
struct list_link *eviction_choose(struct eviction *eviction,
                                  bool (*take_use)(struct list_link *entry, void *arg), void *arg);

/* The oldest entry, however often it was used; NULL: there is none. */
static inline struct list_link *eviction_oldest(struct eviction *eviction) {
    return list_empty(&eviction->entries) ? NULL : eviction->entries.prev;
}

#endif
