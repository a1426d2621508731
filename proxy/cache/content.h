/*
 * Looking after what is in the cache: purge, give another lifetime, pin.
 *
 *     struct object_filter filter = {.prefix = SLICE("http://a.org/img/")};
 *     uint64_t count = content_purge(cache, &filter, PURGE_REMOVE);
 *     content_set_lifetime(cache, &name, 3600);
 *
 * A purge is in force before it has begun to search: from then on no look-up finds what it
 * concerns, and a response that is on its way into the cache is purged as well; what is asked for
 * from then on is left alone. Then it goes through the store in batches (cache_walk): a lock is
 * held for some hundred hash chains at once, and none while memory is freed, so requests go on
 * meanwhile.
 *
 * Threads: any.
 */
#ifndef RETORT_CACHE_CONTENT_H
#define RETORT_CACHE_CONTENT_H

#include "cache/store.h"

/* Returns how many it has concerned, each once, those included that were looked up meanwhile. */
uint64_t content_purge(struct cache *cache, const struct object_filter *filter,
                       enum purge_action action);
/* In force as soon, but at a rate of purges that would take too much time the rest comes later
 * (purger.h), for many at once. False: *count are those that were looked up by now. */
bool content_purge_soon(struct cache *cache, const struct object_filter *filter,
                        enum purge_action action, uint64_t *count);
/* All variants of one URL; these return how many there were. */
uint64_t content_purge_name(struct cache *cache, const struct cache_name *name,
                            enum purge_action action);
/* From now on. */
uint64_t content_set_lifetime(struct cache *cache, const struct cache_name *name, int64_t seconds);
uint64_t content_pin(struct cache *cache, const struct cache_name *name, bool pinned);

#endif
