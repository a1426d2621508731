#include "cache/shard.h"

#include "base/assert.h"

void shard_init(struct shard *shard) {
    *shard = (struct shard){
        .bucket_count = SHARD_FIRST_BUCKETS,
        .capacity = SHARD_FIRST_BUCKETS,
        .mask = SHARD_FIRST_BUCKETS - 1,
        .buckets = xcalloc(SHARD_FIRST_BUCKETS, sizeof(struct object *)),
    };
    pthread_mutex_init(&shard->lock, NULL);
}

void shard_release(struct shard *shard) {
    ASSERT(shard->count == 0);
    free(shard->buckets);
    pthread_mutex_destroy(&shard->lock);
}

/* Adds a bucket. The objects that belong there move to it from the bucket whose number lacks the
 * highest bit. */
static void shard_split(struct shard *shard) {
    if (shard->bucket_count == shard->capacity) {
        shard->capacity *= 2;
        shard->buckets = xrealloc(shard->buckets, shard->capacity * sizeof(struct object *));
    }
    size_t added = shard->bucket_count++;
    if (added > shard->mask)
        shard->mask = shard->mask * 2 + 1;
    struct object **at = &shard->buckets[added & shard->mask >> 1];
    struct object **to = &shard->buckets[added];
    while (*at != NULL) {
        struct object *object = *at;
        if ((object->key.low & shard->mask) == added) {
            *at = object->next;
            *to = object;
            to = &object->next;
        } else {
            at = &object->next;
        }
    }
    *to = NULL;
}

bool shard_add(struct shard *shard, struct object *object) {
    bool another = shard->count >= shard->bucket_count;
    if (another)
        shard_split(shard);
    struct object **chain = shard_chain(shard, object->key);
    object->next = *chain;
    *chain = object;
    shard->count++;
    return another;
}

void shard_take(struct shard *shard, struct object *object) {
    struct object **at = shard_chain(shard, object->key);
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    object->next = NULL;
    shard->count--;
}
