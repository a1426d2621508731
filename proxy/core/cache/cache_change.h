/*
 * Changes what is in the cache: purges objects, sets their lifetime, pins them. The admin interface
 * calls it (admin/cache_call.h).
 *
 *     struct object_filter filter = {.prefix = SLICE("http://a.org/img/")};
 *     uint64_t count = cache_change_purge(cache, &filter, PURGE_REMOVE);
 *     cache_change_set_lifetime(cache, &name, 3600);
 *
 * A purge is in force before it begins to search: from then on no look-up finds an object that the
 * purge concerns. A response that is on its way into the cache is purged as well. A response that
 * is requested after that is left alone. Then the purge goes through the store in batches
 * (cache_walk). It holds a lock for some hundred hash chains at once, and no lock while it frees
 * memory, so requests go on meanwhile.
 *
 * Threads: any.
 */
#ifndef RETORT_CACHE_CACHE_CHANGE_H
#define RETORT_CACHE_CACHE_CHANGE_H

#include "cache/store.h"

/* Returns how many objects the purge has concerned, including those that were looked up meanwhile.
 * Each object counts once. */
uint64_t cache_change_purge(struct cache *cache, const struct object_filter *filter,
                            enum purge_action action);
/* Like cache_change_purge, and in force as soon. When purges come so often that their walks would take
 * too much time, one later walk serves many purges (struct purger). False: the walk comes later, and
 * *count is the number of objects that were looked up by now. */
bool cache_change_purge_soon(struct cache *cache, const struct object_filter *filter,
                             enum purge_action action, uint64_t *count);
/* These three act on all variants of one URL, and return how many variants there were. */
uint64_t cache_change_purge_name(struct cache *cache, const struct cache_name *name,
                                 enum purge_action action);
/* The lifetime counts from now on. */
uint64_t cache_change_set_lifetime(struct cache *cache, const struct cache_name *name,
                                   int64_t seconds);
uint64_t cache_change_pin(struct cache *cache, const struct cache_name *name, bool pinned);

#endif
