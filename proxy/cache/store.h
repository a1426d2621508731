/*
 * The memory cache: an index from keys to objects, shared by all workers, under a byte limit.
 *
 *     struct cache *cache = cache_new(512 << 20);
 *     struct object *object = cache_lookup(cache, key, &request);     referenced, or NULL
 *     cache_insert(cache, object);                                    replaces the same variant
 *     cache_remove(cache, object);
 *
 * Eviction is SIEVE (Zhang et al., NSDI '24): objects stand in the order of their arrival, a hit
 * sets one bit and moves nothing, and a hand walks from old to new, clears bits and evicts what has
 * none. Chosen over LRU because a hit writes no list and takes no lock for promotion, and over
 * S3-FIFO because it needs one queue and no ghosts for the same miss ratios on web traces; one scan
 * of unvisited objects passes through without displacing visited ones.
 *
 * Threads: any. Sixty-four shards, each with its own lock, held for the walk of one hash chain;
 * never two at once, never across a system call.
 */
#ifndef RETORT_CACHE_STORE_H
#define RETORT_CACHE_STORE_H

#include "cache/object.h"

struct cache;

struct cache_statistics {
    uint64_t bytes, objects, limit, evictions;
};

struct cache *cache_new(size_t limit);
void cache_free(struct cache **cachep);
void cache_set_limit(struct cache *cache, size_t limit);

struct object *cache_lookup(struct cache *cache, struct cache_key key,
                            const struct http_head *request);
/* The object's body counts with its expected length while it arrives. */
void cache_insert(struct cache *cache, struct object *object);
void cache_remove(struct cache *cache, struct object *object);
/* Every variant of a key; returns how many there were. */
unsigned cache_remove_key(struct cache *cache, struct cache_key key);
void cache_statistics(struct cache *cache, struct cache_statistics *statistics);

#endif
