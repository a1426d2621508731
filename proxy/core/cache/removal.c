#include "cache/removal.h"

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
