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

void object_eviction_init(struct object_eviction *eviction) {
    pthread_mutex_init(&eviction->lock, NULL);
    eviction_init(&eviction->objects);
    list_init(&eviction->staying);
}

void object_eviction_release(struct object_eviction *eviction) {
    ASSERT(eviction_oldest(&eviction->objects) == NULL && list_empty(&eviction->staying));
    pthread_mutex_destroy(&eviction->lock);
}

void object_eviction_enter(struct object_eviction *eviction, struct object *object) {
    pthread_mutex_lock(&eviction->lock);
    if (object->pinned || object->holds > 0)
        list_prepend(&eviction->staying, &object->eviction);
    else
        eviction_enter(&eviction->objects, &object->eviction);
    pthread_mutex_unlock(&eviction->lock);
}

/* The neighbours of the objects may stand anywhere in memory: all are prefetched before the first
 * is read. */
void object_eviction_leave(struct object_eviction *eviction, struct object **objects,
                           size_t count) {
    pthread_mutex_lock(&eviction->lock);
    for (size_t i = 0; i < count; i++) {
        __builtin_prefetch(objects[i]->eviction.prev, 1);
        __builtin_prefetch(objects[i]->eviction.next, 1);
    }
    for (size_t i = 0; i < count; i++)
        eviction_leave(&eviction->objects, &objects[i]->eviction);
    pthread_mutex_unlock(&eviction->lock);
}

static struct object *object_eviction_object(struct list_link *entry) {
    return CONTAINER_OF(entry, struct object, eviction);
}

static bool take_visit(struct list_link *entry, void *arg) {
    struct object *object = object_eviction_object(entry);
    (void)arg;
    if (!atomic_load_explicit(&object->visited, memory_order_relaxed))
        return false;
    atomic_store_explicit(&object->visited, false, memory_order_relaxed);
    return true;
}

struct object *object_eviction_choose(struct object_eviction *eviction) {
    pthread_mutex_lock(&eviction->lock);
    struct list_link *entry = eviction_choose(&eviction->objects, take_visit, NULL);
    struct object *victim = entry == NULL ? NULL : object_reference(object_eviction_object(entry));
    pthread_mutex_unlock(&eviction->lock);
    return victim;
}

struct object *object_eviction_choose_oldest(struct object_eviction *eviction) {
    pthread_mutex_lock(&eviction->lock);
    struct list_link *entry = eviction_oldest(&eviction->objects);
    struct object *victim = entry == NULL ? NULL : object_reference(object_eviction_object(entry));
    pthread_mutex_unlock(&eviction->lock);
    return victim;
}

struct object *object_eviction_any(struct object_eviction *eviction) {
    pthread_mutex_lock(&eviction->lock);
    struct list_link *entry = eviction_oldest(&eviction->objects);
    if (entry == NULL)
        entry = list_first(&eviction->staying);
    struct object *object = entry == NULL ? NULL : object_reference(object_eviction_object(entry));
    pthread_mutex_unlock(&eviction->lock);
    return object;
}
