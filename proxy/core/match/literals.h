/*
 * The literals of a regular expression: texts of which at least one stands in every text that the
 * expression is found in. Where none of them stands, the expression need not be searched for.
 *
 *     struct literals literals;
 *     if (literals_of("\\.(jpe?g|gif)$", &literals)) ...      "jp", "gif"
 *     if (literals_of("^/[0-9]+$", &literals)) ...            false: it may be found in any text
 *
 * Literals are in lower case. They are to be looked for in text in lower case, whatever the
 * expression says about case. An expression that is not understood gives no literals, and never
 * wrong ones.
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

/* The expression must be well formed. False: no literals are known. */
bool literals_of(const char *regex, struct literals *literals);

#endif
