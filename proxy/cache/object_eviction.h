/*
 * The eviction of objects: keeps all objects that are in the cache in the order in which they may
 * have to be evicted (cache/eviction.h). The store asks it for an object to evict.
 *
 *     object_eviction_enter(&eviction, object);
 *     atomic_store(&object->visited, true);                            at a hit; takes no lock
 *     struct object *victim = object_eviction_choose(&eviction);       referenced; NULL: none
 *     object_eviction_leave(&eviction, &victim, 1);
 *
 * Pinned objects stand apart and are never chosen.
 *
 * Threads: any; it has a lock of its own, which is taken when an object comes or goes, not by hits.
 * Whoever enters an object or takes it out holds the lock of the object's shard.
 */
#ifndef RETORT_CACHE_OBJECT_EVICTION_H
#define RETORT_CACHE_OBJECT_EVICTION_H

#include "cache/eviction.h"
#include "cache/object.h"

struct object_eviction {
    pthread_mutex_t lock;
    struct eviction objects;
    struct list_link pinned;
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
