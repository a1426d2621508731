#include "content/stored.h"

#include <time.h>

/* Has the disk stored the change? `lapses`: what disk_lapses was before. */
static bool stored_settle(const struct content_store *store, uint64_t lapses) {
    return disk_commit(store->disk) && disk_lapses(store->disk) == lapses;
}

/* Writes the changed variants to disk as they are now in memory. */
static void stored_keep(const struct content_store *store, const struct cache_name *name) {
    struct cache_walk walk = {0};
    if (disk_has_lost(store->disk)) /* what is not in memory must not return unchanged */
        disk_forget(store->disk, name);
    struct disk_moment since = disk_now(store->disk);
    cache_walk_name(store->cache, &walk, name);
    for (size_t i = 0; i < walk.count; i++)
        disk_store(store->disk, walk.objects[i], &since);
    cache_walk_end(&walk);
}

static enum stored_result stored_result_of(const struct content_store *store, uint64_t lapses,
                                           uint64_t count) {
    if (!stored_settle(store, lapses))
        return STORED_NOT_KEPT;
    return count == 0 ? STORED_NOTHING : STORED_CHANGED;
}

enum stored_result stored_delete(const struct content_store *store, const struct cache_name *name,
                                 enum purge_action action, uint64_t *count) {
    disk_load_now(store->disk, name);
    uint64_t lapses = disk_lapses(store->disk), on_disk = 0;
    *count = content_purge_name(store->cache, name, action);
    if (action == PURGE_STALE && *count > 0)
        stored_keep(store, name);
    else
        on_disk = disk_remove_surely(store->disk, name);
    *count = *count > on_disk ? *count : on_disk; /* most objects are in both places */
    return stored_result_of(store, lapses, *count);
}

enum stored_result stored_expire(const struct content_store *store, const struct cache_name *name,
                                 int64_t seconds, uint64_t *count) {
    disk_load_now(store->disk, name);
    *count = content_set_lifetime(store->cache, name, seconds);
    uint64_t lapses = disk_lapses(store->disk);
    stored_keep(store, name);
    return stored_result_of(store, lapses, *count);
}

enum stored_result stored_pin(const struct content_store *store, const struct cache_name *name,
                              bool pinned, uint64_t *count) {
    if (pinned)
        disk_load_now(store->disk, name);
    *count = content_pin(store->cache, name, pinned);
    return *count == 0 ? STORED_NOTHING : STORED_CHANGED;
}

void stored_variants(const struct content_store *store, const struct cache_name *name,
                     struct cache_walk *walk) {
    disk_load_now(store->disk, name);
    cache_walk_name(store->cache, walk, name);
}

static const char *stored_state(struct cache *cache, struct object *object,
                                const struct freshness *freshness, int64_t left) {
    enum body_state body = body_state(object->body);
    if (cache_is_banned(cache, object))
        return "banned";
    if (body != BODY_COMPLETE)
        return body == BODY_FAILED ? "failed" : "arriving";
    return freshness->always_revalidate || left <= 0 ? "stale" : "fresh";
}

void stored_look(const struct content_store *store, struct object *object,
                 struct stored_facts *facts) {
    static const char *const services[] = {[OBJECT_UNSEEN] = "none",
                                           [OBJECT_SEEN] = "before it was stored",
                                           [OBJECT_MADE] = "behind the cache",
                                           [OBJECT_LEFT_ALONE] = "behind the cache, unchanged",
                                           [OBJECT_UNABLE] = "before it was stored, unable"};
    struct freshness freshness = object_freshness(object);
    int64_t age = freshness_age(&freshness, time(NULL)), left = freshness.lifetime - age;
    *facts = (struct stored_facts){
        .url = object_url(object),
        .head = object_head(object),
        .vary = object_selector(object),
        .state = stored_state(store->cache, object, &freshness, left),
        .services = services[object_making(object).kind],
        .status = object->status,
        .size = body_length(object->body),
        .memory = object_cost(object),
        .age = age,
        .left = left,
        .stored = object->response_time,
        .hits = atomic_load_explicit(&object->hits, memory_order_relaxed),
        .pinned = object->pinned,
        .on_disk = disk_has(store->disk, object->key),
    };
}
