/*
 * The memory cache: an index from keys to objects, shared by all workers, under a byte limit.
 *
 *     struct cache *cache = cache_new(512 << 20);
 *     struct object *object = cache_lookup(cache, key, &request, OBJECT_FORWARD);
 *     cache_insert(cache, object);                                    replaces the same variant
 *     cache_remove(cache, object);
 *
 * Eviction is SIEVE (Zhang et al., NSDI '24): objects stand in the order of their arrival, a hit
 * sets one bit and moves nothing, and a hand walks from old to new, clears bits and evicts what has
 * none. Chosen over LRU because a hit writes no list and takes no lock for promotion, and over
 * S3-FIFO because it needs one queue and no ghosts for the same miss ratios on web traces; one scan
 * of unvisited objects passes through without displacing visited ones.
 *
 * Pinned objects stand apart from that order and are never evicted; they count like all others.
 *
 * Threads: any. Sixty-four shards, each with its own lock, held for the walk of one hash chain;
 * never two at once, never across a system call.
 */
#ifndef RETORT_CACHE_STORE_H
#define RETORT_CACHE_STORE_H

#include "cache/ban.h"
#include "cache/object.h"

struct cache;

struct cache_statistics {
    uint64_t bytes, objects, pinned, limit, evictions;
};

struct cache *cache_new(size_t limit);
void cache_free(struct cache **cachep);
void cache_set_limit(struct cache *cache, size_t limit);

struct object *cache_lookup(struct cache *cache, struct cache_key key,
                            const struct http_head *request, enum object_scope scope);
/* The object's body counts with its expected length while it arrives. The oldest other variants of
 * its key go when there are more than its max_variants. */
void cache_insert(struct cache *cache, struct object *object);
void cache_remove(struct cache *cache, struct object *object);
/* Puts another object in the place of one that is still there; else nothing happens. */
bool cache_replace(struct cache *cache, struct object *old, struct object *object);
/* False: the object is not there any more. */
bool cache_pin(struct cache *cache, struct object *object, bool pinned);
/* Every variant of a key; returns how many there were. */
unsigned cache_remove_key(struct cache *cache, struct cache_key key);

/* A walk over everything, a batch of referenced objects at a time, for work that needs no lock:
 *
 *     struct cache_walk walk = {0};
 *     while (cache_walk(cache, &walk, CACHE_BATCH))
 *         ... walk.objects[0 .. walk.count - 1] ...
 *     cache_walk_end(&walk);
 *
 * Whole hash chains, until `most` objects are there. What is in the cache all the time is seen,
 * some of it twice when the index grows meanwhile. `position` goes on where an earlier walk was
 * left. */
enum { CACHE_BATCH = 500 };

struct cache_walk {
    uint64_t position;
    struct object **objects;
    size_t count, capacity;
};

bool cache_walk(struct cache *cache, struct cache_walk *walk, size_t most);
/* The variants of a key instead. */
bool cache_walk_key(struct cache *cache, struct cache_walk *walk, struct cache_key key);
void cache_walk_end(struct cache_walk *walk);

/* See ban.h. Comparing everything with the bans lets them all go: done with every 64th. */
uint32_t cache_ban(struct cache *cache, const char *regex, char *error, size_t error_size);
struct bans *cache_bans(struct cache *cache);
/* Would the bans let this object be used? */
bool cache_is_banned(struct cache *cache, struct object *object);

void cache_statistics(struct cache *cache, struct cache_statistics *statistics);

#endif
