/*
 * A part of the index: a hash table of chains with its lock.
 *
 *     for (struct object *object = *shard_chain(shard, key); object != NULL; object = object->next)
 *     shard_add(shard, object);
 *     shard_take(shard, object);
 *
 * The table grows by linear hashing, one bucket with each object. It has as many buckets as there
 * were ever objects at once, eight bytes for each, and it never has to move all objects at once. That
 * and the key, which is a hash already, are why it is no base/table.h.
 *
 * Threads: the caller holds `lock`.
 */
#ifndef RETORT_CACHE_SHARD_H
#define RETORT_CACHE_SHARD_H

#include "base/eviction.h"
#include "cache/object.h"

enum { SHARDS = 64, SHARD_BITS = 6, SHARD_FIRST_BUCKETS = 256 };

struct shard {
    pthread_mutex_t lock;
    struct object **buckets;
    size_t bucket_count, capacity, count;
    size_t mask; /* the buckets' number rounded up to a power of two, less one */
} __attribute__((aligned(64)));

void shard_init(struct shard *shard);
void shard_release(struct shard *shard);
/* True: the table has got another bucket. */
bool shard_add(struct shard *shard, struct object *object);
void shard_take(struct shard *shard, struct object *object);

/* The shard of a key, out of all SHARDS. Buckets are chosen by other bits of the low half. */
static inline struct shard *shard_of(struct shard *shards, struct cache_key key) {
    return &shards[key.low >> 32 & (SHARDS - 1)];
}

static inline struct object **shard_chain(struct shard *shard, struct cache_key key) {
    size_t bucket = key.low & shard->mask;
    if (bucket >= shard->bucket_count)
        bucket &= shard->mask >> 1;
    return &shard->buckets[bucket];
}

/*
 * The eviction of objects: keeps all objects that are in the cache in the order in which they may
 * have to be evicted (base/eviction.h). The store asks it for an object to evict.
 *
 *     object_eviction_enter(&eviction, object);
 *     atomic_store(&object->visited, true);                            at a hit; takes no lock
 *     struct object *victim = object_eviction_choose(&eviction);       referenced; NULL: none
 *     object_eviction_leave(&eviction, &victim, 1);
 *
 * Objects that are pinned or held stand apart and are never chosen.
 *
 * Threads: any; it has a lock of its own, which is taken when an object comes or goes, not by hits.
 * Whoever enters an object or takes it out holds the lock of the object's shard.
 */

struct object_eviction {
    pthread_mutex_t lock;
    struct eviction objects;
    struct list_link staying;
};

void object_eviction_init(struct object_eviction *eviction);
void object_eviction_release(struct object_eviction *eviction); /* it is empty */
void object_eviction_enter(struct object_eviction *eviction, struct object *object);
/* Objects that are not in the eviction are passed over. */
void object_eviction_leave(struct object_eviction *eviction, struct object **objects, size_t count);
/* The next object without a hit since it was last looked at. It stays where it is. */
struct object *object_eviction_choose(struct object_eviction *eviction);
/* The oldest object, however many hits it had. It stays where it is, too. */
struct object *object_eviction_choose_oldest(struct object_eviction *eviction);
/* Any object; NULL: there is none. */
struct object *object_eviction_any(struct object_eviction *eviction);

#endif
