#include "cache/store.h"

#include "base/assert.h"

enum { SHARDS = 64, FIRST_BUCKETS = 256, BANS_MANY = 64, SHARD_SHIFT = 40 };

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
    struct list_link pinned;  /* out of the hand's way */
    struct list_link *hand;   /* next to be looked at; &objects: start at the oldest */
};

struct cache {
    unsigned magic;
#define CACHE_MAGIC 0xcac4e000u
    _Atomic size_t limit, bytes;
    _Atomic uint64_t objects, pinned, evictions;
    struct bans bans;
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
    list_init(&cache->sieve.pinned);
    bans_init(&cache->bans);
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

static void count_pinned(struct cache *cache, const struct object *object, uint64_t one) {
    if (object->pinned)
        atomic_fetch_add_explicit(&cache->pinned, one, memory_order_relaxed);
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
    count_pinned(cache, object, (uint64_t)-1);
    atomic_fetch_sub_explicit(&cache->bytes, object->cost, memory_order_relaxed);
    atomic_fetch_sub_explicit(&cache->objects, 1, memory_order_relaxed);
}

void cache_free(struct cache **cachep) {
    struct cache *cache = *cachep;
    *cachep = NULL;
    CHECK_OBJ(cache, CACHE_MAGIC);
    struct list_link *link;
    list_splice(&cache->sieve.objects, &cache->sieve.pinned);
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
    bans_release(&cache->bans);
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

static struct object *find(struct cache *cache, struct cache_key key,
                           const struct http_head *request, enum object_scope scope) {
    struct shard *shard = shard_of(cache, key);
    struct object *found = NULL;
    pthread_mutex_lock(&shard->lock);
    for (struct object *object = *bucket_of(shard, key); object != NULL; object = object->next) {
        if (!same_key(object->key, key) || !object_matches(object, request, scope))
            continue;
        found = object_reference(object);
        atomic_store_explicit(&object->hits,
                              atomic_load_explicit(&object->hits, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        break;
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

bool cache_is_banned(struct cache *cache, struct object *object) {
    uint32_t newest = bans_newest(&cache->bans);
    uint32_t checked = atomic_load_explicit(&object->checked, memory_order_relaxed);
    if (checked >= newest)
        return false;
    if (bans_match(&cache->bans, object->url, checked))
        return true;
    atomic_store_explicit(&object->checked, newest, memory_order_relaxed);
    return false;
}

struct object *cache_lookup(struct cache *cache, struct cache_key key,
                            const struct http_head *request, enum object_scope scope) {
    struct object *found;
    while ((found = find(cache, key, request, scope)) != NULL && cache_is_banned(cache, found)) {
        cache_remove(cache, found);
        object_release(&found);
    }
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

/* The variant that the new object takes the place of: the same one, or the oldest of too many,
 * since every lookup walks through the variants of its key. */
static struct object *find_replaced(struct shard *shard, const struct object *object) {
    struct object *oldest = NULL;
    unsigned count = 0;
    for (struct object *old = *bucket_of(shard, object->key); old != NULL; old = old->next) {
        if (!same_key(old->key, object->key))
            continue;
        if (object_same_variant(old, object))
            return old;
        if (oldest == NULL || old->freshness.response_time <= oldest->freshness.response_time)
            oldest = old;
        count++;
    }
    return object->max_variants == 0 || count < object->max_variants ? NULL : oldest;
}

/* What the whole of it takes. */
static void count_body(struct object *object) {
    const struct body *body = object->body;
    object->cost += body->expected >= 0 ? sizeof *body + (size_t)body->expected : body_cost(body);
}

/* Into the order of arrival, which is also the order in which objects need fear bans. */
static void enter_sieve(struct cache *cache, struct object *object) {
    struct sieve *sieve = &cache->sieve;
    pthread_mutex_lock(&sieve->lock);
    object->born = bans_newest(&cache->bans);
    atomic_store_explicit(&object->checked, object->born, memory_order_relaxed);
    list_prepend(object->pinned ? &sieve->pinned : &sieve->objects, &object->sieve);
    pthread_mutex_unlock(&sieve->lock);
}

void cache_insert(struct cache *cache, struct object *object) {
    CHECK_OBJ(object, OBJECT_MAGIC);
    struct shard *shard = shard_of(cache, object->key);
    count_body(object);
    object_reference(object);
    pthread_mutex_lock(&shard->lock);
    struct object *old = find_replaced(shard, object);
    object->pinned = old != NULL && old->pinned && object_same_variant(old, object);
    if (old != NULL)
        unlink_object(cache, shard, old);
    if (shard->count >= shard->bucket_count)
        grow(shard);
    struct object **bucket = bucket_of(shard, object->key);
    object->next = *bucket;
    *bucket = object;
    enter_sieve(cache, object);
    object->indexed = true;
    shard->count++;
    count_pinned(cache, object, 1);
    atomic_fetch_add_explicit(&cache->bytes, object->cost, memory_order_relaxed);
    atomic_fetch_add_explicit(&cache->objects, 1, memory_order_relaxed);
    pthread_mutex_unlock(&shard->lock);
    object_release(&old);
    keep_limit(cache);
}

/* In the chain and in the order of arrival alike, with the same age before bans. */
static void put_in_place(struct cache *cache, struct object *old, struct object *object) {
    struct object **at = bucket_of(shard_of(cache, old->key), old->key);
    while (*at != old)
        at = &(*at)->next;
    *at = object;
    object->next = old->next;
    old->next = NULL;
    object->pinned = old->pinned;
    object->born = old->born;
    atomic_store(&object->checked, atomic_load(&old->checked));
    atomic_store(&object->visited, atomic_load(&old->visited));
    pthread_mutex_lock(&cache->sieve.lock);
    list_insert_before(&old->sieve, &object->sieve);
    if (cache->sieve.hand == &old->sieve)
        cache->sieve.hand = &object->sieve;
    list_remove(&old->sieve);
    pthread_mutex_unlock(&cache->sieve.lock);
    object->indexed = true;
    old->indexed = false;
    atomic_fetch_add_explicit(&cache->bytes, object->cost - old->cost, memory_order_relaxed);
}

bool cache_replace(struct cache *cache, struct object *old, struct object *object) {
    struct shard *shard = shard_of(cache, old->key);
    struct object *owned = NULL;
    ASSERT(same_key(old->key, object->key) && object_same_variant(old, object));
    count_body(object);
    pthread_mutex_lock(&shard->lock);
    if (old->indexed) {
        put_in_place(cache, old, object_reference(object));
        owned = old;
    }
    pthread_mutex_unlock(&shard->lock);
    bool replaced = owned != NULL;
    object_release(&owned);
    return replaced;
}

/* Under the shard's lock. It enters anew: it has been compared with the bans. */
static void change_list(struct cache *cache, struct object *object, bool pinned) {
    pthread_mutex_lock(&cache->sieve.lock);
    if (cache->sieve.hand == &object->sieve)
        cache->sieve.hand = object->sieve.prev;
    list_remove(&object->sieve);
    pthread_mutex_unlock(&cache->sieve.lock);
    count_pinned(cache, object, (uint64_t)-1);
    object->pinned = pinned;
    count_pinned(cache, object, 1);
    enter_sieve(cache, object);
}

bool cache_pin(struct cache *cache, struct object *object, bool pinned) {
    struct shard *shard = shard_of(cache, object->key);
    if (cache_is_banned(cache, object)) {
        cache_remove(cache, object);
        return false;
    }
    pthread_mutex_lock(&shard->lock);
    bool there = object->indexed;
    if (there && object->pinned != pinned)
        change_list(cache, object, pinned);
    pthread_mutex_unlock(&shard->lock);
    keep_limit(cache);
    return there;
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

static void take_chain(struct cache_walk *walk, struct object *object,
                       const struct cache_key *only) {
    for (; object != NULL; object = object->next) {
        if (only != NULL && !same_key(object->key, *only))
            continue;
        if (walk->count == walk->capacity) {
            walk->capacity = walk->capacity * 2 + 16;
            walk->objects = xrealloc(walk->objects, walk->capacity * sizeof(struct object *));
        }
        walk->objects[walk->count++] = object_reference(object);
    }
}

static void release_batch(struct cache_walk *walk) {
    for (size_t i = 0; i < walk->count; i++)
        object_release(&walk->objects[i]);
    walk->count = 0;
}

/* Chains of one shard from `bucket` on; true when that was the last. */
static bool take_chains(struct cache_walk *walk, struct shard *shard, size_t bucket, size_t most) {
    pthread_mutex_lock(&shard->lock);
    while (bucket < shard->bucket_count && walk->count < most)
        take_chain(walk, shard->buckets[bucket++], NULL);
    bool done = bucket >= shard->bucket_count;
    pthread_mutex_unlock(&shard->lock);
    walk->position = (walk->position >> SHARD_SHIFT << SHARD_SHIFT) + bucket;
    return done;
}

bool cache_walk(struct cache *cache, struct cache_walk *walk, size_t most) {
    release_batch(walk);
    while (walk->count < most) {
        uint64_t shard = walk->position >> SHARD_SHIFT;
        if (shard >= SHARDS)
            break;
        size_t bucket = walk->position & ((UINT64_C(1) << SHARD_SHIFT) - 1);
        if (take_chains(walk, &cache->shards[shard], bucket, most))
            walk->position = (shard + 1) << SHARD_SHIFT;
    }
    return walk->count > 0;
}

bool cache_walk_key(struct cache *cache, struct cache_walk *walk, struct cache_key key) {
    struct shard *shard = shard_of(cache, key);
    release_batch(walk);
    pthread_mutex_lock(&shard->lock);
    take_chain(walk, *bucket_of(shard, key), &key);
    pthread_mutex_unlock(&shard->lock);
    return walk->count > 0;
}

void cache_walk_end(struct cache_walk *walk) {
    release_batch(walk);
    free(walk->objects);
    *walk = (struct cache_walk){0};
}

/* Bans that are older than the oldest object have nothing left to do. */
static void drop_spent_bans(struct cache *cache) {
    struct sieve *sieve = &cache->sieve;
    pthread_mutex_lock(&sieve->lock);
    uint32_t spent = bans_newest(&cache->bans);
    if (!list_empty(&sieve->pinned))
        spent = 0;
    else if (!list_empty(&sieve->objects))
        spent = CONTAINER_OF(sieve->objects.prev, struct object, sieve)->born;
    pthread_mutex_unlock(&sieve->lock);
    bans_drop(&cache->bans, spent);
}

static void apply_bans(struct cache *cache) {
    struct cache_walk walk = {0};
    uint32_t newest = bans_newest(&cache->bans);
    while (cache_walk(cache, &walk, CACHE_BATCH))
        for (size_t i = 0; i < walk.count; i++)
            if (cache_is_banned(cache, walk.objects[i]))
                cache_remove(cache, walk.objects[i]);
    cache_walk_end(&walk);
    bans_drop(&cache->bans, newest);
}

uint32_t cache_ban(struct cache *cache, const char *regex, char *error, size_t error_size) {
    drop_spent_bans(cache);
    uint32_t number = bans_add(&cache->bans, regex, error, error_size);
    if (number > 0 && number % BANS_MANY == 0)
        apply_bans(cache);
    return number;
}

struct bans *cache_bans(struct cache *cache) {
    drop_spent_bans(cache);
    return &cache->bans;
}

void cache_statistics(struct cache *cache, struct cache_statistics *statistics) {
    statistics->bytes = atomic_load_explicit(&cache->bytes, memory_order_relaxed);
    statistics->objects = atomic_load_explicit(&cache->objects, memory_order_relaxed);
    statistics->pinned = atomic_load_explicit(&cache->pinned, memory_order_relaxed);
    statistics->limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    statistics->evictions = atomic_load_explicit(&cache->evictions, memory_order_relaxed);
}
