/*
 * Where Retort and llhttp do not read a head in the same way: each kind of difference has a name,
 * the side that refuses, and a repair that takes the cause out of the head. A difference is
 * explained when it is gone after the repair of a kind with the same side; any other one is a bug
 * of one of the two.
 *
 *     const struct difference *kind;
 *     if (!compare_heads(&comparison, head, &kind)) -> comparison.what is not explained
 *     else if (kind != NULL) ...                       kind->name
 *
 * docs/TESTING.md has the kinds in a table.
 *
 * Threads: one.
 */
#ifndef RETORT_TESTS_FUZZ_COMPARE_H
#define RETORT_TESTS_FUZZ_COMPARE_H

#include "reading.h"

/* A head that is being changed. */
struct text {
    size_t length;
    char bytes[READING_MAX];
};

enum difference_side { RETORT_REFUSES, LLHTTP_REFUSES, READ_OTHERWISE };

struct difference {
    const char *name;
    enum difference_side side;
    bool (*repair)(struct text *head); /* false: there is nothing of that kind */
};

extern const struct difference differences[]; /* ends with a name that is NULL */
unsigned difference_count(void);

struct comparison {
    struct reading ours, theirs;
    const char *what; /* differs; NULL: nothing */
    struct text whole, repaired;
};

/* False: the two differ, and nothing explains it. `kind` is NULL where they do not. Heads longer
 * than COMPARE_MAX are left alone: a repair may make them longer. */
enum { COMPARE_MAX = READING_MAX / 2 };
bool compare_heads(struct comparison *comparison, struct slice head,
                   const struct difference **kind);

#endif
