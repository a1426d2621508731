#include "cache/sieve.h"

#include "base/assert.h"

void sieve_init(struct sieve *sieve) {
    pthread_mutex_init(&sieve->lock, NULL);
    list_init(&sieve->objects);
    list_init(&sieve->pinned);
    sieve->hand = &sieve->objects;
}

void sieve_release(struct sieve *sieve) {
    ASSERT(list_empty(&sieve->objects) && list_empty(&sieve->pinned));
    pthread_mutex_destroy(&sieve->lock);
}

void sieve_enter(struct sieve *sieve, struct object *object) {
    pthread_mutex_lock(&sieve->lock);
    list_prepend(object->pinned ? &sieve->pinned : &sieve->objects, &object->sieve);
    pthread_mutex_unlock(&sieve->lock);
}

/* Their neighbours stand anywhere in memory: all are asked for before the first is needed. */
void sieve_leave(struct sieve *sieve, struct object **objects, size_t count) {
    pthread_mutex_lock(&sieve->lock);
    for (size_t i = 0; i < count; i++) {
        __builtin_prefetch(objects[i]->sieve.prev, 1);
        __builtin_prefetch(objects[i]->sieve.next, 1);
    }
    for (size_t i = 0; i < count; i++) {
        struct object *object = objects[i];
        if (sieve->hand == &object->sieve)
            sieve->hand = object->sieve.prev;
        list_remove(&object->sieve);
    }
    pthread_mutex_unlock(&sieve->lock);
}

struct object *sieve_choose(struct sieve *sieve) {
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

struct object *sieve_choose_oldest(struct sieve *sieve) {
    struct object *victim = NULL;
    pthread_mutex_lock(&sieve->lock);
    if (!list_empty(&sieve->objects))
        victim = object_reference(CONTAINER_OF(sieve->objects.prev, struct object, sieve));
    pthread_mutex_unlock(&sieve->lock);
    return victim;
}

struct object *sieve_any(struct sieve *sieve) {
    struct list_link *link;
    pthread_mutex_lock(&sieve->lock);
    link = list_first(&sieve->objects);
    if (link == NULL)
        link = list_first(&sieve->pinned);
    struct object *object =
        link == NULL ? NULL : object_reference(CONTAINER_OF(link, struct object, sieve));
    pthread_mutex_unlock(&sieve->lock);
    return object;
}
