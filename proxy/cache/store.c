#include "cache/store.h"

#include "base/assert.h"

enum { SHARDS = 64, FIRST_BUCKETS = 256, VARIANTS_MAX = 64 };

struct shard {
    pthread_mutex_t lock;
    struct object **buckets;
    size_t bucket_count, count;
} __attribute__((aligned(64)));

/* The order of arrival, of all shards together: touched when an object comes or goes, not by hits.
 */
struct sieve {
    pthread_mutex_t lock;
    struct list_link objects; /* newest first */
    struct list_link *hand;   /* next to be looked at; &objects: start at the oldest */
};

struct cache {
    unsigned magic;
#define CACHE_MAGIC 0xcac4e000u
    _Atomic size_t limit, bytes;
    _Atomic uint64_t objects, evictions;
    struct sieve sieve;
    struct shard shards[SHARDS];
};

struct cache *cache_new(size_t limit) {
    struct cache *cache;
    cache = aligned_alloc(64, sizeof *cache);
    ASSERT(cache != NULL);
    INIT_OBJ(cache, CACHE_MAGIC);
    atomic_init(&cache->limit, limit);
    pthread_mutex_init(&cache->sieve.lock, NULL);
    list_init(&cache->sieve.objects);
    cache->sieve.hand = &cache->sieve.objects;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_init(&shard->lock, NULL);
        shard->bucket_count = FIRST_BUCKETS;
        shard->buckets = xcalloc(FIRST_BUCKETS, sizeof *shard->buckets);
    }
    return cache;
}

static struct shard *shard_of(struct cache *cache, struct cache_key key) {
    return &cache->shards[key.high % SHARDS];
}

static struct object **bucket_of(struct shard *shard, struct cache_key key) {
    return &shard->buckets[key.low % shard->bucket_count];
}

static bool same_key(struct cache_key a, struct cache_key b) {
    return a.high == b.high && a.low == b.low;
}

/* Out of the index, under the shard's lock. The index's reference passes to the caller. */
static void unlink_object(struct cache *cache, struct shard *shard, struct object *object) {
    struct object **at = bucket_of(shard, object->key);
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    object->next = NULL;
    pthread_mutex_lock(&cache->sieve.lock);
    if (cache->sieve.hand == &object->sieve)
        cache->sieve.hand = object->sieve.prev;
    list_remove(&object->sieve);
    pthread_mutex_unlock(&cache->sieve.lock);
    object->indexed = false;
    shard->count--;
    atomic_fetch_sub_explicit(&cache->bytes, object->cost, memory_order_relaxed);
    atomic_fetch_sub_explicit(&cache->objects, 1, memory_order_relaxed);
}

void cache_free(struct cache **cachep) {
    struct cache *cache = *cachep;
    *cachep = NULL;
    CHECK_OBJ(cache, CACHE_MAGIC);
    struct list_link *link;
    while ((link = list_first(&cache->sieve.objects)) != NULL) {
        struct object *object = CONTAINER_OF(link, struct object, sieve);
        unlink_object(cache, shard_of(cache, object->key), object);
        object_release(&object);
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        free(cache->shards[i].buckets);
        pthread_mutex_destroy(&cache->shards[i].lock);
    }
    pthread_mutex_destroy(&cache->sieve.lock);
    FREE_OBJ(cache);
}

/* A power of two of buckets, doubled when there are as many objects. */
static void grow(struct shard *shard) {
    size_t old_count = shard->bucket_count;
    struct object **old = shard->buckets;
    shard->bucket_count = old_count * 2;
    shard->buckets = xcalloc(shard->bucket_count, sizeof *old);
    for (size_t i = 0; i < old_count; i++)
        while (old[i] != NULL) {
            struct object *object = old[i];
            old[i] = object->next;
            struct object **bucket = bucket_of(shard, object->key);
            object->next = *bucket;
            *bucket = object;
        }
    free(old);
}

struct object *cache_lookup(struct cache *cache, struct cache_key key,
                            const struct http_head *request) {
    struct shard *shard = shard_of(cache, key);
    struct object *found = NULL;
    pthread_mutex_lock(&shard->lock);
    for (struct object *object = *bucket_of(shard, key); object != NULL; object = object->next) {
        if (!same_key(object->key, key) || !object_matches(object, request))
            continue;
        found = object_reference(object);
        break;
    }
    pthread_mutex_unlock(&shard->lock);
    if (found != NULL && !atomic_load_explicit(&found->visited, memory_order_relaxed))
        atomic_store_explicit(&found->visited, true, memory_order_relaxed);
    return found;
}

/* SIEVE's hand: the next object without a visit since the hand last passed, referenced; NULL: there
 * is none. It stays in the list: only whoever holds its shard's lock takes it out. */
static struct object *choose_victim(struct sieve *sieve) {
    struct object *victim = NULL;
    pthread_mutex_lock(&sieve->lock);
    while (victim == NULL && !list_empty(&sieve->objects)) {
        if (sieve->hand == &sieve->objects)
            sieve->hand = sieve->objects.prev;
        struct object *object = CONTAINER_OF(sieve->hand, struct object, sieve);
        sieve->hand = sieve->hand->prev;
        if (atomic_load_explicit(&object->visited, memory_order_relaxed))
            atomic_store_explicit(&object->visited, false, memory_order_relaxed);
        else
            victim = object_reference(object);
    }
    pthread_mutex_unlock(&sieve->lock);
    return victim;
}

static bool evict_one(struct cache *cache) {
    struct object *victim = choose_victim(&cache->sieve);
    if (victim == NULL)
        return false;
    cache_remove(cache, victim);
    object_release(&victim);
    atomic_fetch_add_explicit(&cache->evictions, 1, memory_order_relaxed);
    return true;
}

static void keep_limit(struct cache *cache) {
    while (atomic_load_explicit(&cache->bytes, memory_order_relaxed) >
           atomic_load_explicit(&cache->limit, memory_order_relaxed))
        if (!evict_one(cache))
            return;
}

void cache_set_limit(struct cache *cache, size_t limit) {
    atomic_store_explicit(&cache->limit, limit, memory_order_relaxed);
    keep_limit(cache);
}

/* The variant that the new object takes the place of: the same one, or the oldest of too many, since
 * every lookup walks through the variants of its key. */
static struct object *find_replaced(struct shard *shard, const struct object *object) {
    struct object *oldest = NULL;
    unsigned count = 0;
    for (struct object *old = *bucket_of(shard, object->key); old != NULL; old = old->next) {
        if (!same_key(old->key, object->key))
            continue;
        if (slice_equal(old->vary, object->vary))
            return old;
        if (oldest == NULL || old->freshness.response_time <= oldest->freshness.response_time)
            oldest = old;
        count++;
    }
    return count < VARIANTS_MAX ? NULL : oldest;
}

void cache_insert(struct cache *cache, struct object *object) {
    CHECK_OBJ(object, OBJECT_MAGIC);
    struct shard *shard = shard_of(cache, object->key);
    const struct body *body = object->body;
    object->cost += body->expected >= 0 ? sizeof *body + (size_t)body->expected : body_cost(body);
    object_reference(object);
    pthread_mutex_lock(&shard->lock);
    struct object *old = find_replaced(shard, object);
    if (old != NULL)
        unlink_object(cache, shard, old);
    if (shard->count >= shard->bucket_count)
        grow(shard);
    struct object **bucket = bucket_of(shard, object->key);
    object->next = *bucket;
    *bucket = object;
    pthread_mutex_lock(&cache->sieve.lock);
    list_prepend(&cache->sieve.objects, &object->sieve);
    pthread_mutex_unlock(&cache->sieve.lock);
    object->indexed = true;
    shard->count++;
    atomic_fetch_add_explicit(&cache->bytes, object->cost, memory_order_relaxed);
    atomic_fetch_add_explicit(&cache->objects, 1, memory_order_relaxed);
    pthread_mutex_unlock(&shard->lock);
    object_release(&old);
    keep_limit(cache);
}

void cache_remove(struct cache *cache, struct object *object) {
    struct shard *shard = shard_of(cache, object->key);
    struct object *owned = NULL;
    pthread_mutex_lock(&shard->lock);
    if (object->indexed) {
        unlink_object(cache, shard, object);
        owned = object;
    }
    pthread_mutex_unlock(&shard->lock);
    object_release(&owned);
}

unsigned cache_remove_key(struct cache *cache, struct cache_key key) {
    struct shard *shard = shard_of(cache, key);
    struct object *removed = NULL;
    unsigned count = 0;
    pthread_mutex_lock(&shard->lock);
    struct object *object = *bucket_of(shard, key);
    while (object != NULL) {
        struct object *next = object->next;
        if (same_key(object->key, key)) {
            unlink_object(cache, shard, object);
            object->next = removed;
            removed = object;
            count++;
        }
        object = next;
    }
    pthread_mutex_unlock(&shard->lock);
    while (removed != NULL) {
        object = removed;
        removed = object->next;
        object_release(&object);
    }
    return count;
}

void cache_statistics(struct cache *cache, struct cache_statistics *statistics) {
    statistics->bytes = atomic_load_explicit(&cache->bytes, memory_order_relaxed);
    statistics->objects = atomic_load_explicit(&cache->objects, memory_order_relaxed);
    statistics->limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    statistics->evictions = atomic_load_explicit(&cache->evictions, memory_order_relaxed);
}
