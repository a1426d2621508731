/*
 * The texts that a regular expression can not be found without: where none of them stands, it need
 * not be searched for.
 *
 *     struct literals literals;
 *     if (literals_of("\\.(jpe?g|gif)$", &literals)) ...      "jp", "gif"
 *     if (literals_of("^/[0-9]+$", &literals)) ...            false: it may be found in any text
 *
 * They are in small letters and are to be looked for in small letters, whatever the expression says
 * of upper and lower case. What is not understood gives no texts; never wrong ones.
 *
 * Threads: pure.
 */
#ifndef RETORT_MATCH_LITERALS_H
#define RETORT_MATCH_LITERALS_H

#include "base/slice.h"

enum { LITERALS_MAX = 32, LITERAL_LEAST = 2, LITERAL_MOST = 32 };

struct literal {
    unsigned length;
    char bytes[LITERAL_MOST];
};

struct literals {
    unsigned count;
    struct literal each[LITERALS_MAX];
};

static inline struct slice literal_text(const struct literal *literal) {
    return slice_make(literal->bytes, literal->length);
}

/* One of the texts stands in whatever the expression, which is well formed, is found in. False:
 * nothing can be said. */
bool literals_of(const char *regex, struct literals *literals);

#endif
