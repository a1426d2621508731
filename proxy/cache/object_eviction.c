#include "cache/object_eviction.h"

#include "base/assert.h"

void object_eviction_init(struct object_eviction *eviction) {
    pthread_mutex_init(&eviction->lock, NULL);
    eviction_init(&eviction->objects);
    list_init(&eviction->pinned);
}

void object_eviction_release(struct object_eviction *eviction) {
    ASSERT(eviction_oldest(&eviction->objects) == NULL && list_empty(&eviction->pinned));
    pthread_mutex_destroy(&eviction->lock);
}

void object_eviction_enter(struct object_eviction *eviction, struct object *object) {
    pthread_mutex_lock(&eviction->lock);
    if (object->pinned)
        list_prepend(&eviction->pinned, &object->eviction);
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
        entry = list_first(&eviction->pinned);
    struct object *object = entry == NULL ? NULL : object_reference(object_eviction_object(entry));
    pthread_mutex_unlock(&eviction->lock);
    return object;
}
