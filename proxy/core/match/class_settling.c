/* Settles a class: finds out what the classes that it names by `not` and `any_of` make it ask for,
 * and refuses circles and too many of them. */
#include "base/assert.h"
#include "base/failure.h"
#include "match/url_class_internal.h"

#include <stdio.h>

/* Limits of `not` and `any_of`: how deep classes name each other, and how many classes one
 * comparison may go through. */
enum { DEPTH_MAX = 8, WEIGHT_MAX = 1000 };

/* The classes on the way from the one that is settled first. */
struct trail {
    const struct url_class *url_class;
    const struct trail *before;
    unsigned depth;
};

static size_t write_trail(const struct trail *trail, const struct url_class *from, char *out,
                          size_t capacity) {
    size_t length = trail->url_class == from ? 0 : write_trail(trail->before, from, out, capacity);
    if (length < capacity)
        length +=
            (size_t)snprintf(out + length, capacity - length, "%s -> ", trail->url_class->name);
    return length;
}

static bool fail_circle(const struct trail *trail, const struct url_class *again, char *error,
                        size_t error_size) {
    char way[400];
    write_trail(trail, again, way, sizeof way);
    return failure(error, error_size,
                   "url_class \"%s\": not and any_of lead back to the class: %s%s", again->name,
                   way, again->name);
}

static bool class_settle(struct url_class *url_class, const struct trail *before, char *error,
                         size_t error_size);

static bool settle_references(struct url_class *url_class,
                              const struct class_references *references, const struct trail *trail,
                              char *error, size_t error_size) {
    for (size_t i = 0; i < references->count; i++) {
        struct url_class *other = references->each[i];
        if (!class_settle(other, trail, error, error_size))
            return false;
        if ((other->asks & CLASS_ASKS_TYPE) != 0)
            return failure(
                error, error_size,
                "url_class \"%s\": class %s has a content_type, which not and any_of can not "
                "compare; write the content_type into %s itself",
                url_class->name, other->name, url_class->name);
        url_class->asks |= other->asks;
        url_class->weight += other->weight;
    }
    return true;
}

static bool class_settle(struct url_class *url_class, const struct trail *before, char *error,
                         size_t error_size) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    const struct trail trail = {url_class, before, before == NULL ? 1 : before->depth + 1};
    if (url_class->state == CLASS_SETTLED)
        return true;
    if (url_class->state == CLASS_SETTLING)
        return fail_circle(before, url_class, error, error_size);
    url_class->state = CLASS_SETTLING;
    if (trail.depth <= DEPTH_MAX &&
        (!settle_references(url_class, &url_class->any_of, &trail, error, error_size) ||
         !settle_references(url_class, &url_class->none_of, &trail, error, error_size)))
        return false;
    if (trail.depth > DEPTH_MAX || url_class->weight > WEIGHT_MAX)
        return failure(
            error, error_size,
            "url_class \"%s\": not and any_of lead through too many classes; at most %d deep, "
            "and %d together",
            url_class->name, DEPTH_MAX, WEIGHT_MAX);
    url_class->state = CLASS_SETTLED;
    return true;
}

bool url_class_settle(struct url_class *url_class, char *error, size_t error_size) {
    return class_settle(url_class, NULL, error, error_size);
}
