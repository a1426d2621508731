/*
 * Looking after what is in the cache: purge, give another lifetime, pin.
 *
 *     struct object_filter filter = {.prefix = SLICE("http://a.org/img/")};
 *     uint64_t count = content_purge(cache, &filter, PURGE_REMOVE);
 *     content_set_lifetime(cache, key, 3600);
 *
 * Everything goes through the store in batches (cache_walk): a lock is held for some dozen hash
 * chains at once, and none while an expression is searched or memory is freed, so requests go on
 * meanwhile. A response that is on its way into the
 * cache during a purge is purged as well.
 *
 * Threads: any.
 */
#ifndef RETORT_CACHE_CONTENT_H
#define RETORT_CACHE_CONTENT_H

#include "cache/store.h"

uint64_t content_purge(struct cache *cache, const struct object_filter *filter,
                       enum purge_action action);
/* All variants of one URL; these return how many there were. */
uint64_t content_purge_key(struct cache *cache, struct cache_key key, enum purge_action action);
/* From now on. */
uint64_t content_set_lifetime(struct cache *cache, struct cache_key key, int64_t seconds);
uint64_t content_pin(struct cache *cache, struct cache_key key, bool pinned);

#endif
