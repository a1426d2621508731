/*
 * A walk over everything that the cache holds, or what fits a filter, a batch of referenced objects
 * at a time, for work that needs no lock:
 *
 *     struct cache_walk walk = {0};
 *     while (cache_walk(cache, &walk, CACHE_BATCH))
 *         ... walk.objects[0 .. walk.count - 1] ...
 *     cache_walk_end(&walk);
 *
 * Whole hash chains, until `most` objects are there; a lock is held for a few chains, then it is
 * another shard's turn, and other threads'. What is in the cache all the time is seen, some of it
 * twice when the index grows meanwhile. `position` goes on where an earlier walk was left.
 *
 * Threads: any; a walk belongs to one. Of the locks of shards one is held at a time.
 */
#ifndef RETORT_CACHE_WALK_H
#define RETORT_CACHE_WALK_H

#include "cache/object_filter.h"
#include "cache/shard.h"

enum { CACHE_BATCH = 500 };

struct bans;

struct cache_walk {
    const struct object_filter *filter; /* NULL: all */
    uint64_t number;                    /* only what this ban may concern; 0: all */
    const struct bans *bans;            /* of which that is one; set by cache_walk */
    struct purges *purges;              /* only what one of these may concern; NULL: all */
    unsigned ended;                     /* shards that have no chains beyond this round */
    uint64_t position;
    struct object **objects;
    size_t count, capacity;
};

/* The next batch, of all of the cache's SHARDS; false: that was all. */
bool cache_walk_shards(struct cache_walk *walk, struct shard *shards, size_t most);
/* The variants of a name instead, in its shard; without a URL, all that has its key. */
bool cache_walk_shard(struct cache_walk *walk, struct shard *shard, const struct cache_name *name);
/* Takes what may be wanted of a chain, under its lock; `only` NULL: whatever its name is. */
void cache_walk_take(struct cache_walk *walk, struct object *object, const struct cache_name *only);
void cache_walk_end(struct cache_walk *walk);

#endif
