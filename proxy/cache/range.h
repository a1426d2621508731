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
 * Ranges keep the order of the request, but those that overlap, or lie closer together than the
 * head of a part is long, become one, which stands where the first of them stood (§14.2,
 * §15.3.7.2). So the parts never come to more bytes than the whole and their heads. A Range whose
 * If-Range does not hold, strongly compared (§13.1.5), does not count; nor does one that is not of
 * the grammar, nor two of them.
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

/* What the ranges are of. */
struct range_subject {
    struct slice etag;          /* empty: none */
    struct slice last_modified; /* as the field has it; empty: none that is a strong validator */
    uint64_t length;            /* of the whole */
};

/* ETag and Last-Modified of a response; the date counts where it is strong: at least a second
 * before Date (§8.8.2.2). Slices of the head. */
void range_subject_of(struct range_subject *subject, const struct http_head *response,
                      uint64_t length);

enum range_kind range_of_request(struct range *ranges, unsigned most, unsigned *count,
                                 const struct http_head *request,
                                 const struct range_subject *subject);

#endif
