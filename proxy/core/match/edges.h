/*
 * Edges: which bytes must stand at the beginning or at the end of a text, or else none of some
 * regular expressions is found in it. "\.(jpe?g|png)$" is found only in texts that end with a g, and
 * "^/ads/" only in those whose second byte is an a. So most texts need not be searched.
 *
 *     struct edges edges = {0};
 *     edges_add(&edges, "\\.(jpe?g|png)$");
 *     edges_add(&edges, "^/ads/");
 *     if (edges_may_find(&edges, path)) ...               search for the expressions
 *
 * The rules of PCRE2 without options are meant: "$" is also found before a last newline. An
 * expression that is not understood wholly may be found in any text.
 *
 * Threads: values; read-only once made.
 */
#ifndef RETORT_MATCH_EDGES_H
#define RETORT_MATCH_EDGES_H

#include "base/slice.h"

/* At the end any byte that may be a newline counts. */
enum { EDGES_LAST = 1, EDGES_SECOND = 2 };

struct edges {
    bool anywhere;            /* some expression may be found in any text */
    unsigned char bytes[256]; /* where such a byte may stand */
};

void edges_add(struct edges *edges, const char *regex);
/* An expression of which nothing is known. */
static inline void edges_add_unknown(struct edges *edges) {
    edges->anywhere = true;
}

static inline bool edges_allow(const struct edges *edges, char byte, unsigned where) {
    return (edges->bytes[(unsigned char)byte] & where) != 0;
}

/* False: none of the expressions is found in the text. */
static inline bool edges_may_find(const struct edges *edges, struct slice text) {
    return edges->anywhere || text.length < 2 ||
           edges_allow(edges, text.base[text.length - 1], EDGES_LAST) ||
           edges_allow(edges, text.base[1], EDGES_SECOND);
}

#endif
