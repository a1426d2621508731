/*
 * Structured Fields (RFC 8941): the members of a dictionary, one after the other.
 *
 *     struct slice rest = field->value;
 *     struct structured_member member;
 *     enum structured_status status;
 *     while ((status = structured_next(&rest, &member)) == STRUCTURED_MEMBER)
 *         if (slice_equal(member.key, SLICE("max-age")) && member.type == STRUCTURED_INTEGER) ...
 *     if (status == STRUCTURED_BAD) ...        nothing of the field counts (§4.2)
 *
 * A key that comes again takes the place of the former one (§3.2): that is the caller's to do, and
 * so is going on with the next field line, each of which holds whole members. Parameters are read
 * and left out.
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
    int64_t number;    /* of an integer; of a boolean 0 or 1 */
};

/* Takes the next member off `rest`, which has no white space at its ends. */
enum structured_status structured_next(struct slice *rest, struct structured_member *member);

#endif
