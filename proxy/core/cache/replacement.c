#include "cache/replacement.h"

#include "base/assert.h"

struct object *replacement_surplus(struct shard *shard, const struct object *object,
                                   unsigned max_variants) {
    const struct cache_name name = object_name(object);
    struct object *oldest = NULL;
    unsigned count = 0;
    for (struct object *old = *shard_chain(shard, object->key); old != NULL; old = old->next) {
        if (!object_has_name(old, &name))
            continue;
        bool goes = object_chain(object) == 0 || object_chain(old) != 0;
        if (goes && old->holds == 0)
            oldest = old; /* the chain begins with what came last */
        count++;
    }
    return max_variants == 0 || count < max_variants ? NULL : oldest;
}

bool replacement_is_stored(struct shard *shard, const struct object *object) {
    const struct cache_name name = object_name(object);
    bool stored = object->indexed;
    for (struct object *other = *shard_chain(shard, object->key); other != NULL && !stored;
         other = other->next)
        stored = other->body == object->body && object_has_name(other, &name) &&
                 object_chain(other) == 0;
    return stored;
}

void replacement_gather(struct shard *shard, const struct object *object, replacement_fn *goes,
                        struct cache_walk *walk) {
    const struct cache_name name = object_name(object);
    size_t count = 0;
    cache_walk_take(walk, *shard_chain(shard, object->key), &name);
    for (size_t i = 0; i < walk->count; i++)
        if (goes(walk->objects[i], object)) {
            struct object *gone = walk->objects[i];
            walk->objects[i] = walk->objects[count];
            walk->objects[count++] = gone;
        }
    for (size_t i = count; i < walk->count; i++)
        object_release(&walk->objects[i]); /* the index has another reference */
    walk->count = count;
}

bool replacement_is_made_of(const struct object *old, const struct object *object) {
    return object_is_made_of(old, object);
}

bool replacement_is_replaced(const struct object *old, const struct object *object) {
    return object_chain(old) == object_chain(object) && object_overlaps(old, object);
}

bool replacement_is_superseded(const struct object *old, const struct object *object) {
    return replacement_is_replaced(old, object) ||
           (object_chain(object) == 0 && object_chain(old) != 0 && object_overlaps(old, object));
}

/* The rule for an object that is a stored body with a new head: the variants that services made of
 * that body stay. */
static bool replacement_is_renewed(const struct object *old, const struct object *object) {
    return replacement_is_replaced(old, object) ||
           (replacement_is_superseded(old, object) && !replacement_is_made_of(old, object));
}

static bool replacement_has_body_of(struct shard *shard, const struct object *object) {
    for (struct object *old = *shard_chain(shard, object->key); old != NULL; old = old->next)
        if (old->body == object->body && object_chain(old) == 0)
            return true;
    return false;
}

replacement_fn *replacement_rule(struct shard *shard, const struct object *object, bool yields) {
    if (yields || object_chain(object) != 0)
        return replacement_is_replaced;
    return replacement_has_body_of(shard, object) ? replacement_is_renewed
                                                  : replacement_is_superseded;
}

bool replacement_has_pinned(const struct object *object, const struct cache_walk *walk) {
    for (size_t i = 0; i < walk->count; i++)
        if (walk->objects[i]->pinned && replacement_is_replaced(walk->objects[i], object))
            return true;
    return false;
}
