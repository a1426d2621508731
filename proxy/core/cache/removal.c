#include "cache/removal.h"

#include <time.h>

/* Acts on the objects of the walk. Returns how many of them were in the cache. */
static size_t content_act(struct cache *cache, struct cache_walk *walk, enum purge_action action) {
    if (action == PURGE_REMOVE)
        return cache_remove_all(cache, walk);
    time_t now = time(NULL);
    for (size_t i = 0; i < walk->count; i++)
        object_outdate(walk->objects[i], action == PURGE_DOUBT, now);
    return walk->count;
}

uint64_t cache_change_purge(struct cache *cache, const struct object_filter *filter,
                            enum purge_action action) {
    uint64_t number = cache_purge_begin(cache, filter, action);
    cache_purge_walk(cache, true);
    return cache_purge_count(cache, filter, number);
}

bool cache_change_purge_soon(struct cache *cache, const struct object_filter *filter,
                             enum purge_action action, uint64_t *count) {
    uint64_t number = cache_purge_begin(cache, filter, action);
    bool counted = cache_purge_walk(cache, false);
    *count = cache_purge_count(cache, filter, number);
    return counted;
}

uint64_t cache_change_purge_name(struct cache *cache, const struct cache_name *name,
                                 enum purge_action action) {
    struct cache_walk walk = {0};
    purges_add_key(cache_purges(cache), name->key);
    cache_walk_name(cache, &walk, name);
    uint64_t count = content_act(cache, &walk, action);
    cache_walk_end(&walk);
    return count;
}

uint64_t cache_change_set_lifetime(struct cache *cache, const struct cache_name *name,
                                   int64_t seconds) {
    struct cache_walk walk = {0};
    uint64_t count = 0;
    cache_walk_name(cache, &walk, name);
    for (size_t i = 0; i < walk.count; i++)
        if (!cache_is_banned(cache, walk.objects[i]) &&
            body_state(walk.objects[i]->body) == BODY_COMPLETE) {
            object_set_lifetime(walk.objects[i], seconds, time(NULL));
            count++;
        }
    cache_walk_end(&walk);
    return count;
}

uint64_t cache_change_pin(struct cache *cache, const struct cache_name *name, bool pinned) {
    struct cache_walk walk = {0};
    uint64_t count = 0;
    cache_walk_name(cache, &walk, name);
    for (size_t i = 0; i < walk.count; i++)
        count += cache_pin(cache, walk.objects[i], pinned);
    cache_walk_end(&walk);
    return count;
}

/* second_level_remove and second_level_remove_surely make the second visit to memory. */

void removal_of_name(struct cache *cache, struct second_level *level,
                     const struct cache_name *name) {
    cache_remove_name(cache, name);
    second_level_remove(level, name, NULL);
}

uint64_t removal_of_name_surely(struct cache *cache, struct second_level *level,
                                const struct cache_name *name) {
    uint64_t in_memory = cache_remove_name(cache, name);
    uint64_t on_disk = second_level_remove_surely(level, name);
    return in_memory > on_disk ? in_memory : on_disk; /* most objects are in both places */
}

void removal_of_object(struct cache *cache, struct second_level *level, struct object *object) {
    const struct cache_name name = object_name(object);
    cache_drop(cache, object);
    second_level_remove(level, &name, object);
}

void removal_of_broken(struct cache *cache, struct second_level *level, struct object *object) {
    if (object->body->kind != BODY_BACKED) /* else it is from the disk, which has seen it itself */
        second_level_leave_out(level, object);
    cache_drop(cache, object);
}

bool removal_of_all(struct cache *cache, struct second_level *level,
                    const struct object_filter *filter, enum purge_action action,
                    struct removal_found *found) {
    bool kept = second_level_purge(level, filter, action);
    found->counted = cache_change_purge_soon(cache, filter, action, &found->count);
    return kept;
}

bool removal_by_ban(struct cache *cache, struct second_level *level,
                    const struct object_filter *filter, uint64_t *number) {
    char none[1];
    bool kept = second_level_purge(level, filter, PURGE_REMOVE);
    *number = cache_ban(cache, filter->regex_text, none, sizeof none);
    return kept;
}
