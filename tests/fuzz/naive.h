/*
 * A second reading of HTTP's lists and numbers, slow and written without a look at the first, for
 * fuzzers that compare the two.
 *
 *     struct naive_list list;
 *     naive_list_of(&list, value);
 *     for (unsigned i = 0; i < list.count; i++) ... list.elements[i]
 *
 * Threads: values.
 */
#ifndef RETORT_TESTS_FUZZ_NAIVE_H
#define RETORT_TESTS_FUZZ_NAIVE_H

#include "base/slice.h"

enum { NAIVE_ELEMENTS_MAX = 4096 };

struct naive_list {
    unsigned count;
    struct slice elements[NAIVE_ELEMENTS_MAX];
};

/* The elements between commas that stand outside "quoted strings", without white space at their
 * ends, those that are empty left out. */
void naive_list_of(struct naive_list *list, struct slice value);

/* Every "quoted string" is closed. */
bool naive_balanced(struct slice value);

/* The number that the digits stand for, cut off at `most`; -1 when there is anything but digits. */
__int128 naive_number(struct slice text, __int128 most);

bool naive_equal_nocase(struct slice a, struct slice b);

#endif
