/*
 * A part of a representation: what a 206 brings, and what the cache stores of one that it has not
 * seen whole (RFC 9110 §15.3.7, RFC 9111 §3.3, §3.4).
 *
 *     struct part part, more;
 *     if (part_of_head(&part, &response))      bytes part.first .. part.first + part.count - 1
 *     if (part_joins(&part, &more))            of part.whole
 *         part = part_union(&part, &more);
 *
 * A stored object with status 206 is such a part: its head has the Content-Range, so nothing else
 * needs to know of it. It is one run of bytes, not a set of them: players and downloads that go on
 * where they were ask for adjacent bytes, and one run needs no list to keep, search and merge.
 *
 * Threads: pure functions. Units: bytes.
 */
#ifndef RETORT_CACHE_PART_H
#define RETORT_CACHE_PART_H

#include "cache/range.h"

struct part {
    uint64_t first, count, whole;
};

/* From a 206 with one part: its Content-Range with all three numbers known, and a Content-Length,
 * where there is one, that agrees with it. */
bool part_of_head(struct part *part, const struct http_head *response);

static inline uint64_t part_end(const struct part *part) {
    return part->first + part->count;
}

static inline bool part_is_whole(const struct part *part) {
    return part->count == part->whole;
}

/* Do they overlap or touch, and are they of a thing of the same length? */
bool part_joins(const struct part *a, const struct part *b);
struct part part_union(const struct part *a, const struct part *b);
/* Does it hold all of these ranges? */
bool part_holds(const struct part *part, const struct range *ranges, unsigned count);
/* Are parts with these ETags of the same bytes: equal and strong (RFC 9110 §15.3.7.3)? */
bool part_same_etag(struct slice a, struct slice b);

#endif
