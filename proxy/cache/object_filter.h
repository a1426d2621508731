/*
 * Which objects are meant: by the beginning of their URL, host, surrogate key, or an expression.
 *
 *     struct object_filter filter = {.prefix = SLICE("http://a.org/img/")};
 *     if (object_filter_fits(&filter, object)) ...
 *
 * Threads: values; no shared state. object_filter_copy makes one that owns its parts.
 */
#ifndef RETORT_CACHE_OBJECT_FILTER_H
#define RETORT_CACHE_OBJECT_FILTER_H

#include "cache/object.h"
#include "match/regex.h"

/* All that is not empty must fit; an empty one takes all. */
struct object_filter {
    struct slice prefix, host, tag;
    const struct regexes *regex; /* NULL: any */
    const char *regex_text;      /* what regex was compiled from */
};

/* Of a normalised URL: the part that `host` is compared with. */
struct slice object_filter_host(struct slice url);
bool object_filter_fits(const struct object_filter *filter, const struct object *object);
/* The same for a look under a lock, which takes little time whatever is stored: of those that may
 * fit a few do not. */
bool object_filter_may_fit(const struct object_filter *filter, const struct object *object);
struct object_filter object_filter_copy(const struct object_filter *filter);
/* Of a copy. */
void object_filter_release(struct object_filter *filter);

#endif
