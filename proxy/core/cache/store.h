/*
 * The memory cache: an index from keys to objects, shared by all workers, under a byte limit.
 *
 *     struct cache *cache = cache_new(512 << 20);
 *     struct object *object = cache_lookup(cache, &name, &request, OBJECT_FORWARD);
 *
 *     struct cache_arrival arrival = {.since = cache_now(cache)};     before the origin is asked
 *     if (!cache_insert(cache, object, &arrival)) ...                 purged on its way
 *     cache_remove(cache, object);
 *
 * Objects are evicted by the policy in eviction.h. Pinned and held objects are never evicted, but
 * they count against the limit like all others. A banned or purged object is never stored or used as if it
 * were newer: see ban.h and purge.h.
 *
 * Threads: any. There are sixty-four shards, each with its own lock. A lock is held for the walk of
 * one hash chain, or of a few. No thread holds two of them at once, or one across a system call.
 * Under a shard's lock the lock of the eviction may be taken, and that of the bans.
 */
#ifndef RETORT_CACHE_STORE_H
#define RETORT_CACHE_STORE_H

#include "cache/ban.h"
#include "cache/purge.h"
#include "cache/walk.h"

struct cache;

struct cache_statistics {
    uint64_t bytes, objects, pinned, limit, evictions, variants_dropped;
};

struct cache *cache_new(size_t limit);
void cache_free(struct cache **cachep);
/* For memory_set_giver: evicts some objects, whatever the limit is. False: there was no object
 * to evict. */
bool cache_give_back(void *cache);
void cache_set_limit(struct cache *cache, size_t limit);

struct object *cache_lookup(struct cache *cache, const struct cache_name *name,
                            const struct http_head *request, enum object_scope scope);
/* For a request that passes that chain of services (not 0) behind the cache. Returns the stored
 * response, and in *made the variant that these services made of it. Either may be NULL. */
struct object *cache_lookup_made(struct cache *cache, const struct cache_name *name,
                                 const struct http_head *request, enum object_scope scope,
                                 uint32_t chain, struct object **made);
/* The newest numbers of bans and purges at one moment. */
struct cache_moment {
    uint64_t purges, keys, bans;
};

struct cache_moment cache_now(const struct cache *cache);

struct cache_arrival {
    struct cache_moment since; /* when the origin was asked */
    unsigned max_variants;     /* of the name: the oldest one is removed; 0: any number */
    bool yields;               /* it is not stored if it would replace an object */
    bool held;                 /* as if by cache_hold */
    /* The stored response that services made the object of. The object is refused if that response
     * is not stored any more. NULL: the object is not made by services. */
    const struct object *of;
};

/* The object takes the place of all objects that some request would select as well (RFC 9111 §4:
 * "When more than one suitable response is stored, a cache MUST use the most recent one"). So there
 * is never more than one object to choose from. The variants that services have made of the
 * replaced objects are removed too, unless the new object has the same body under another head.
 * While the body arrives it counts with its expected length. False: the object is not stored,
 * because it was purged on its way, or it yields, or `of` is not stored any more. */
bool cache_insert(struct cache *cache, struct object *object, const struct cache_arrival *arrival);
/* Removes the objects that this object would replace, for an object that goes to disk without being
 * stored in memory. */
void cache_supersede(struct cache *cache, const struct object *object);
/* Would the cache still be a little below its limit with `bytes` more? */
bool cache_has_room(const struct cache *cache, uint64_t bytes);
/* Is there an object with this low half of a key that has been hit? */
bool cache_uses(struct cache *cache, uint64_t low_key);
/* Keeps the object from being evicted until cache_unhold, so that it leaves only when another object
 * takes its place, or when it is removed: whoever has held it since it was stored knows by cache_has
 * whether it is still the newest one. False: the object is not there any more, or is purged. */
bool cache_hold(struct cache *cache, struct object *object);
/* Also when the object is not there any more. */
void cache_unhold(struct cache *cache, struct object *object);
bool cache_has(struct cache *cache, const struct object *object);
/* Removes the object, which is not usable any more, and all variants that services have made
 * of it. */
void cache_drop(struct cache *cache, struct object *object);
/* Removes the object. False: the object was not there any more. */
bool cache_remove(struct cache *cache, struct object *object);
/* False: the object is not there any more. */
bool cache_pin(struct cache *cache, struct object *object, bool pinned);
/* Removes every variant of a name, and returns how many there were. */
unsigned cache_remove_name(struct cache *cache, const struct cache_name *name);
struct purges *cache_purges(struct cache *cache);
/* From now on no look-up finds an object that is there now and fits the filter. Returns the
 * purge's number. */
uint64_t cache_purge_begin(struct cache *cache, const struct object_filter *filter,
                           enum purge_action action);
/* Walks through all objects for all purges, see struct purger. False: the walk comes later. */
bool cache_purge_walk(struct cache *cache, bool at_once);
/* How many objects the purge has concerned by now. */
uint64_t cache_purge_count(struct cache *cache, const struct object_filter *filter,
                           uint64_t number);

/* Walks (walk.h) over all objects, over the variants of a name, and over all objects with a key,
 * whatever their names are. */
bool cache_walk(struct cache *cache, struct cache_walk *walk, size_t most);
bool cache_walk_name(struct cache *cache, struct cache_walk *walk, const struct cache_name *name);
bool cache_walk_key(struct cache *cache, struct cache_walk *walk, struct cache_key key);
/* Removes the objects of this batch, which is cheaper than one by one. Returns how many were
 * still there. */
size_t cache_remove_all(struct cache *cache, struct cache_walk *walk);

/* Adds a ban, see ban.h, and returns its number; 0: `regex` is no expression. All objects are
 * compared with the bans when there are 64 bans. */
uint64_t cache_ban(struct cache *cache, const char *regex, char *error, size_t error_size);
struct bans *cache_bans(struct cache *cache);
/* Do the bans forbid to use this object? */
bool cache_is_banned(struct cache *cache, struct object *object);

void cache_statistics(struct cache *cache, struct cache_statistics *statistics);

#endif
