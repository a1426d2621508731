#include "cache/purge.h"

#include "base/assert.h"

void purges_init(struct purges *purges) {
    memset(purges, 0, sizeof *purges);
    ASSERT(pthread_rwlock_init(&purges->lock, NULL) == 0);
}

void purges_release(struct purges *purges) {
    for (unsigned i = 0; i < PURGES_KEPT; i++)
        object_filter_release(&purges->kept[i].filter);
    pthread_rwlock_destroy(&purges->lock);
}

void purges_add(struct purges *purges, const struct object_filter *filter,
                enum purge_action action) {
    struct object_filter copy = object_filter_copy(filter);
    pthread_rwlock_wrlock(&purges->lock);
    uint64_t number = purges_newest(purges) + 1;
    struct purge *purge = &purges->kept[number % PURGES_KEPT];
    struct object_filter forgotten = purge->filter;
    *purge = (struct purge){.filter = copy, .action = action};
    atomic_store_explicit(&purges->newest, number, memory_order_release);
    pthread_rwlock_unlock(&purges->lock);
    object_filter_release(&forgotten);
}

enum purge_action purges_judge(struct purges *purges, const struct object *object, uint64_t since) {
    enum purge_action action = PURGE_NOTHING;
    if (purges_newest(purges) == since)
        return PURGE_NOTHING;
    pthread_rwlock_rdlock(&purges->lock);
    uint64_t newest = purges_newest(purges);
    if (newest - since > PURGES_KEPT)
        action = PURGE_REMOVE;
    for (uint64_t number = since + 1; number <= newest && action != PURGE_REMOVE; number++) {
        const struct purge *purge = &purges->kept[number % PURGES_KEPT];
        if (purge->action > action && object_filter_fits(&purge->filter, object))
            action = purge->action;
    }
    pthread_rwlock_unlock(&purges->lock);
    return action;
}

void purges_add_key(struct purges *purges, struct cache_key key) {
    struct purged_key *place = &purges->keys[key.low % PURGE_KEYS];
    pthread_rwlock_wrlock(&purges->lock);
    uint64_t number = purges_newest_key(purges) + 1;
    if (!cache_key_equal(place->key, key))
        place->others = atomic_load(&place->newest);
    place->key = key;
    atomic_store(&place->newest, number);
    atomic_store_explicit(&purges->newest_key, number, memory_order_release);
    pthread_rwlock_unlock(&purges->lock);
}

bool purges_has_key(struct purges *purges, struct cache_key key, uint64_t since) {
    struct purged_key *place = &purges->keys[key.low % PURGE_KEYS];
    if (atomic_load(&place->newest) <= since)
        return false;
    pthread_rwlock_rdlock(&purges->lock);
    uint64_t number =
        cache_key_equal(place->key, key) ? atomic_load(&place->newest) : place->others;
    pthread_rwlock_unlock(&purges->lock);
    return number > since;
}
