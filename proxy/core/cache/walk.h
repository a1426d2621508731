/*
 * A walk over all objects of the cache, or those that fit a filter. It gives a batch of referenced
 * objects at a time, for work that needs no lock:
 *
 *     struct cache_walk walk = {0};
 *     while (cache_walk(cache, &walk, CACHE_BATCH))
 *         ... walk.objects[0 .. walk.count - 1] ...
 *     cache_walk_end(&walk);
 *
 * A batch consists of whole hash chains, until it has `most` objects. A lock is held for a few
 * chains. Then it is the turn of another shard, and of other threads. An object that is in the
 * cache all the time is seen, perhaps twice when the index grows meanwhile. A walk with the
 * `position` of an earlier walk goes on where that one stopped. A walk with a time to stop at gives
 * back what it has found until then, which may be nothing; cache_walk_is_over tells it from the end.
 *
 * Threads: any; a walk belongs to one thread. It holds one shard's lock at a time.
 */
#ifndef RETORT_CACHE_WALK_H
#define RETORT_CACHE_WALK_H

#include "cache/filter_table.h"
#include "cache/shard.h"

enum { CACHE_BATCH = 500 };

struct bans;

struct cache_walk {
    const struct object_filter *filter; /* NULL: all */
    uint64_t number;                    /* only objects that this ban may concern; 0: all */
    const struct bans *bans;            /* the bans that `number` is of; set by cache_walk */
    struct purges *purges;              /* only objects that one of these may concern; NULL: all */
    uint64_t
        until; /* nanoseconds of the monotonic clock; the walk stops soon after; 0: it does not */
    unsigned ended; /* shards that have no chains beyond this round */
    uint64_t position;
    struct object **objects;
    size_t count, capacity;
};

/* The next batch; `shards` are all SHARDS of the cache. False: there are no more objects, or it is
 * time to stop. */
bool cache_walk_shards(struct cache_walk *walk, struct shard *shards, size_t most);
/* Has it been at all chains? */
bool cache_walk_is_over(const struct cache_walk *walk);
/* Gives the variants of one name, in its shard. A name without a URL stands for all objects with
 * its key. */
bool cache_walk_shard(struct cache_walk *walk, struct shard *shard, const struct cache_name *name);
/* Takes the objects of a chain that may be wanted, under the chain's lock. `only` NULL: objects of
 * any name. */
void cache_walk_take(struct cache_walk *walk, struct object *object, const struct cache_name *only);
void cache_walk_end(struct cache_walk *walk);

#endif
