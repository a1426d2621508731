/*
 * A part of the index: a hash table of chains with its lock.
 *
 *     for (struct object *object = *shard_chain(shard, key); object != NULL; object = object->next)
 *     shard_add(shard, object);
 *     shard_take(shard, object);
 *
 * The table grows by linear hashing, one bucket with each object. It has as many buckets as there
 * were ever objects at once, eight bytes for each, and it never has to move all objects at once.
 *
 * Threads: the caller holds `lock`.
 */
#ifndef RETORT_CACHE_SHARD_H
#define RETORT_CACHE_SHARD_H

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

#endif
