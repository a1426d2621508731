/*
 * Structured Fields (RFC 8941): the members of a dictionary, one after the other.
 *
 *     struct slice rest = field->value;
 *     struct structured_member member;
 *     enum structured_status status;
 *     while ((status = structured_next(&rest, &member)) == STRUCTURED_MEMBER)
 *         if (slice_equal(member.key, SLICE("max-age")) && member.type == STRUCTURED_INTEGER) ...
 *     if (status == STRUCTURED_BAD) ...        ignore the whole field (§4.2)
 *
 * When a key occurs again, its last value counts (§3.2); the caller has to see to that. The caller
 * also goes on with the next field line; a member never continues on another line. Parameters are
 * checked and left out.
 *
 * Threads: a function without state or allocation.
 */
#ifndef RETORT_HTTP_STRUCTURED_H
#define RETORT_HTTP_STRUCTURED_H

#include "base/slice.h"

enum structured_type {
    STRUCTURED_INTEGER,
    STRUCTURED_DECIMAL,
    STRUCTURED_STRING,
    STRUCTURED_TOKEN,
    STRUCTURED_BYTES,
    STRUCTURED_BOOLEAN,
    STRUCTURED_LIST, /* an inner one */
};

enum structured_status { STRUCTURED_MEMBER, STRUCTURED_END, STRUCTURED_BAD };

struct structured_member {
    struct slice key;
    enum structured_type type;
    struct slice text; /* the value as it is written; empty: a key alone, which means true */
    int64_t number;    /* the value of an integer; 0 or 1 for a boolean */
};

/* Takes the next member off `rest`, which has no white space at its ends. */
enum structured_status structured_next(struct slice *rest, struct structured_member *member);

#endif
