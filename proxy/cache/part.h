/*
 * A part of a representation: the bytes of a 206, or the bytes that the cache has stored of a
 * representation that it has not seen whole (RFC 9110 §15.3.7, RFC 9111 §3.3, §3.4).
 *
 *     struct part part, more;
 *     if (part_of_head(&part, &response))      bytes part.first .. part.first + part.count - 1
 *     if (part_joins(&part, &more))            of part.whole
 *         part = part_union(&part, &more);
 *
 * A stored object with status 206 is such a part. Its head has the Content-Range, so no other data
 * describes the part. A part is one run of bytes, not a set of runs: players and downloads that are
 * resumed ask for adjacent bytes, and one run needs no list to keep, search and merge.
 *
 * Threads: pure functions. Units: bytes.
 */
#ifndef RETORT_CACHE_PART_H
#define RETORT_CACHE_PART_H

#include "cache/range.h"

struct part {
    uint64_t first, count, whole;
};

/* Reads the part of a 206 with one part. False: its Content-Range does not have all three numbers,
 * or a Content-Length is there that does not agree with it. */
bool part_of_head(struct part *part, const struct http_head *response);

static inline uint64_t part_end(const struct part *part) {
    return part->first + part->count;
}

static inline bool part_is_whole(const struct part *part) {
    return part->count == part->whole;
}

/* Do the parts overlap or touch, and do they belong to representations of the same length? */
bool part_joins(const struct part *a, const struct part *b);
struct part part_union(const struct part *a, const struct part *b);
/* Has the part all bytes of these ranges? */
bool part_holds(const struct part *part, const struct range *ranges, unsigned count);
/* Do parts with these ETags belong to the same representation? The ETags must be equal and strong
 * (RFC 9110 §15.3.7.3). */
bool part_same_etag(struct slice a, struct slice b);

#endif
