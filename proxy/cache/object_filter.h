/*
 * Selects objects by the beginning of their URL, by host, by surrogate key or by an expression.
 * Purges, bans and walks use these filters.
 *
 *     struct object_filter filter = {.prefix = SLICE("http://a.org/img/")};
 *     if (object_filter_fits(&filter, object)) ...
 *
 * Threads: filters are values without shared state. object_filter_copy makes a filter that owns
 * its parts.
 */
#ifndef RETORT_CACHE_OBJECT_FILTER_H
#define RETORT_CACHE_OBJECT_FILTER_H

#include "cache/object.h"
#include "match/regex.h"

/* Each member that is not empty must fit the object. An empty filter fits all objects. */
struct object_filter {
    struct slice prefix, host, tag;
    const struct regexes *regex; /* NULL: any */
    const char *regex_text;      /* what regex was compiled from */
};

/* The part of a normalised URL that the filter's `host` is compared with. */
struct slice object_filter_host(struct slice url);
bool object_filter_fits(const struct object_filter *filter, const struct object *object);
/* Like object_filter_fits, for a check under a lock: it takes little time whatever is stored, but
 * may be true for a few objects that do not fit. */
bool object_filter_may_fit(const struct object_filter *filter, const struct object *object);
struct object_filter object_filter_copy(const struct object_filter *filter);
/* Releases the parts of a copy. */
void object_filter_release(struct object_filter *filter);

#endif
