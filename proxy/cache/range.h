/*
 * Byte ranges (RFC 9110 §14): which part of a stored response does a request want?
 *
 *     struct range range;
 *     switch (range_of_request(&range, &request, etag, last_modified, length)) {
 *     case RANGE_WHOLE:          no range that counts: the whole response
 *     case RANGE_PART:           206, range.first and range.count
 *     case RANGE_UNSATISFIABLE:  416
 *     }
 *
 * One range is served; a request for several gets the whole (§14.2 lets a server choose). A Range
 * whose If-Range does not hold, strongly compared (§13.1.5), does not count.
 */
#ifndef RETORT_CACHE_RANGE_H
#define RETORT_CACHE_RANGE_H

#include "http/head.h"

enum range_kind { RANGE_WHOLE, RANGE_PART, RANGE_UNSATISFIABLE };

struct range {
    uint64_t first, count;
};

enum range_kind range_of_request(struct range *range, const struct http_head *request,
                                 struct slice etag, struct slice last_modified, uint64_t length);

#endif
