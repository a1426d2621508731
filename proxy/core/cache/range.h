/*
 * Byte ranges (RFC 9110 §14): which parts of a stored response does a request want?
 *
 *     struct range ranges[16];
 *     unsigned count;
 *     struct range_subject subject = {etag, last_modified, length};
 *     switch (range_of_request(ranges, 16, &count, &request, &subject)) {
 *     case RANGE_WHOLE:          no range that counts: the whole response
 *     case RANGE_PARTS:          206, ranges[0 .. count - 1]; several: multipart/byteranges
 *     case RANGE_UNSATISFIABLE:  416
 *     case RANGE_TOO_MANY:       more than 16: the whole response
 *     }
 *
 * Ranges keep the order of the request. Ranges that overlap, or whose gap is smaller than the head
 * of a part, become one range, which takes the place of the first of them (§14.2, §15.3.7.2). So
 * the parts are never longer than the whole response and their heads. A Range does not count if its
 * If-Range does not hold under strong comparison (§13.1.5), if it is malformed, or if the request
 * has two Range fields.
 *
 * Threads: pure functions.
 */
#ifndef RETORT_CACHE_RANGE_H
#define RETORT_CACHE_RANGE_H

#include "http/head.h"

#include <time.h>

enum range_kind { RANGE_WHOLE, RANGE_PARTS, RANGE_UNSATISFIABLE, RANGE_TOO_MANY };

struct range {
    uint64_t first, count; /* bytes; count is never 0 */
};

/* The response that the ranges refer to. */
struct range_subject {
    struct slice etag;          /* empty: none */
    struct slice last_modified; /* the field's text; empty: no strong validator */
    uint64_t length;            /* of the whole */
};

/* Takes ETag and Last-Modified from a response. The date counts only if it is a strong validator:
 * at least a second before Date (§8.8.2.2). Slices of the head. */
void range_subject_of(struct range_subject *subject, const struct http_head *response,
                      uint64_t length);

enum range_kind range_of_request(struct range *ranges, unsigned most, unsigned *count,
                                 const struct http_head *request,
                                 const struct range_subject *subject);

/*
 * Partial content: the bytes of a 206, or the bytes that the cache has stored of a
 * representation that it has not seen whole (RFC 9110 §15.3.7, RFC 9111 §3.3, §3.4).
 *
 *     struct partial part, more;
 *     if (partial_of_head(&part, &response))      bytes part.first .. part.first + part.count - 1
 *     if (partial_joins(&part, &more))            of part.whole
 *         part = partial_union(&part, &more);
 *
 * A stored object with status 206 is such a part. Its head has the Content-Range, so no other data
 * describes the part. A part is one run of bytes, not a set of runs: players and downloads that are
 * resumed ask for adjacent bytes, and one run needs no list to keep, search and merge.
 *
 * Threads: pure functions. Units: bytes.
 */

struct partial {
    uint64_t first, count, whole;
};

/* Reads the part of a 206 with one part. False: its Content-Range does not have all three numbers,
 * or a Content-Length is there that does not agree with it. */
bool partial_of_head(struct partial *part, const struct http_head *response);

static inline uint64_t partial_end(const struct partial *part) {
    return part->first + part->count;
}

static inline bool partial_is_whole(const struct partial *part) {
    return part->count == part->whole;
}

/* Do the parts overlap or touch, and do they belong to representations of the same length? */
bool partial_joins(const struct partial *a, const struct partial *b);
struct partial partial_union(const struct partial *a, const struct partial *b);
/* Has the part all bytes of these ranges? */
bool partial_holds(const struct partial *part, const struct range *ranges, unsigned count);
/* Do parts with these ETags belong to the same representation? The ETags must be equal and strong
 * (RFC 9110 §15.3.7.3). */
bool partial_same_etag(struct slice a, struct slice b);

#endif
