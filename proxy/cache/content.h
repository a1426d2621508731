/*
 * What is in the cache, for those who look after it: find, purge, make stale, give another
 * lifetime.
 *
 *     struct content_filter filter = {.prefix = SLICE("http://a.org/img/")};
 *     uint64_t count = content_purge(cache, &filter, CONTENT_REMOVE);
 *     content_set_lifetime(cache, key, 3600);
 *
 * Everything goes through the store in batches (cache_walk): no lock is held while URLs are
 * compared or memory is freed, so requests go on meanwhile. A response that is on its way into the
 * cache during a purge may be stored after it. Objects do not change: one with another lifetime
 * takes the place of the old one, on the same body.
 *
 * Threads: any.
 */
#ifndef RETORT_CACHE_CONTENT_H
#define RETORT_CACHE_CONTENT_H

#include "cache/store.h"

/* All that is not empty must fit; an empty one takes all. */
struct content_filter {
    struct slice prefix, host, tag;
    const struct regexes *regex; /* NULL: any */
};

/* CONTENT_STALE: asked for again before the next use; the old one is there should that fail. */
enum content_action { CONTENT_REMOVE, CONTENT_STALE };

bool content_fits(const struct content_filter *filter, const struct object *object);
uint64_t content_purge(struct cache *cache, const struct content_filter *filter,
                       enum content_action action);
/* All variants of one URL; these return how many there were. */
uint64_t content_purge_key(struct cache *cache, struct cache_key key, enum content_action action);
/* From now on. */
uint64_t content_set_lifetime(struct cache *cache, struct cache_key key, int64_t seconds);
uint64_t content_pin(struct cache *cache, struct cache_key key, bool pinned);

#endif
