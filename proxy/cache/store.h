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
 * Objects are evicted by the policy in eviction.h. Pinned objects are never evicted, but they count
 * against the limit like all others. A banned or purged object is never stored or used as if it
 * were newer: see ban.h and purge.h.
 *
 * Threads: any. Sixty-four shards, each with its own lock, held for the walk of one hash chain;
 * never two at once, never across a system call. Under a shard's lock the lock of
 * object_eviction.h may be taken, and that of the bans.
 */
#ifndef RETORT_CACHE_STORE_H
#define RETORT_CACHE_STORE_H

#include "cache/ban.h"
#include "cache/purge.h"
#include "cache/walk.h"

struct cache;

struct cache_statistics {
    uint64_t bytes, objects, pinned, limit, evictions;
};

struct cache *cache_new(size_t limit);
void cache_free(struct cache **cachep);
/* For memory_set_giver: some objects go, whatever the limit. False: there was none. */
bool cache_give_back(void *cache);
void cache_set_limit(struct cache *cache, size_t limit);

struct object *cache_lookup(struct cache *cache, const struct cache_name *name,
                            const struct http_head *request, enum object_scope scope);
/* For a request that passes that chain of services (not 0) behind the cache: the stored response,
 * and in *made the variant that they made of it; either may be NULL. */
struct object *cache_lookup_made(struct cache *cache, const struct cache_name *name,
                                 const struct http_head *request, enum object_scope scope,
                                 uint32_t chain, struct object **made);
/* How far bans and purges had come. */
struct cache_moment {
    uint64_t purges, keys, bans;
};

struct cache_moment cache_now(const struct cache *cache);

struct cache_arrival {
    struct cache_moment since; /* when the origin was asked */
    unsigned max_variants;     /* of its name: the oldest others go; 0: any number */
    bool yields;               /* to what it would take the place of, should that be there */
    /* Of what services made the object, a variant; it is refused if that is not stored any more.
     * NULL: it is no such variant. */
    const struct object *of;
};

/* Takes the place of all that some request would select as well as this one (RFC 9111 §4: "When
 * more than one suitable response is stored, a cache MUST use the most recent one"): so there is
 * never more than one to choose from. With it goes what services have made of that, unless the new
 * object is the old one's body under another head. The object's body counts with its expected
 * length while it arrives. False: something like it was removed since, and so is it. */
bool cache_insert(struct cache *cache, struct object *object, const struct cache_arrival *arrival);
/* Removes what that would take the place of, for an object which goes to disk past memory. */
void cache_supersede(struct cache *cache, const struct object *object);
/* Would so many bytes more leave the limit alone, and a little besides? */
bool cache_has_room(const struct cache *cache, uint64_t bytes);
/* Is there an object with this low half of a key that has been hit? */
bool cache_uses(struct cache *cache, uint64_t low_key);
/* It is there, or it would be but for the limit: nothing newer has taken its place, and no purge of
 * its like has come since. If it is not there, older ones that it took the place of go again: they
 * were on their way from disk. */
bool cache_would_hold(struct cache *cache, const struct object *object,
                      const struct cache_moment *since);
/* With what services have made of it: it is no more good. */
void cache_drop(struct cache *cache, struct object *object);
/* False: it was not there any more. */
bool cache_remove(struct cache *cache, struct object *object);
/* False: the object is not there any more. */
bool cache_pin(struct cache *cache, struct object *object, bool pinned);
/* Every variant of a name; returns how many there were. */
unsigned cache_remove_name(struct cache *cache, const struct cache_name *name);
struct purges *cache_purges(struct cache *cache);
/* From here on no look-up finds what is there now and fits; returns the purge's number. */
uint64_t cache_purge_begin(struct cache *cache, const struct object_filter *filter,
                           enum purge_action action);
/* Walks through everything for all purges, see purger.h. False: that comes later. */
bool cache_purge_walk(struct cache *cache, bool at_once);
/* How many objects it has concerned by now. */
uint64_t cache_purge_count(struct cache *cache, const struct object_filter *filter,
                           uint64_t number);

/* Walks (walk.h) over everything, over the variants of a name, and over all that has a key,
 * whatever its name is. */
bool cache_walk(struct cache *cache, struct cache_walk *walk, size_t most);
bool cache_walk_name(struct cache *cache, struct cache_walk *walk, const struct cache_name *name);
bool cache_walk_key(struct cache *cache, struct cache_walk *walk, struct cache_key key);
/* Those of this batch, for less than one by one; returns how many were still there. */
size_t cache_remove_all(struct cache *cache, struct cache_walk *walk);

/* See ban.h; 0: no expression. Everything is compared with the bans when there are 64. */
uint64_t cache_ban(struct cache *cache, const char *regex, char *error, size_t error_size);
struct bans *cache_bans(struct cache *cache);
/* Do the bans forbid to use this object? */
bool cache_is_banned(struct cache *cache, struct object *object);

void cache_statistics(struct cache *cache, struct cache_statistics *statistics);

#endif
