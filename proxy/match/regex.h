/*
 * Regular expressions of URL classes: PCRE2 with its compiler to machine code, and bounds on the
 * work of one search, since the text searched comes from strangers.
 *
 *     struct regexes regexes;
 *     if (!regex_check(text, error, sizeof error)) ...      "is not a regular expression: ..."
 *     regexes_compile(&regexes, texts);                     all were checked before
 *     if (regexes_find(&regexes, path)) ...                 one of them was found
 *     regexes_release(&regexes);
 *
 * Of many, only those are searched for whose literals (literals.h) stand in the text, so that a
 * hundred cost hardly more than one.
 *
 * Threads: read-only once compiled; PCRE2's scratch memory is kept per thread and freed with it.
 */
#ifndef RETORT_MATCH_REGEX_H
#define RETORT_MATCH_REGEX_H

#include "base/slice.h"

struct regexes {
    struct pcre2_real_code_8 **codes;
    size_t count;
    struct regex_filter *filter; /* NULL: they are few */
};

bool regex_check(const char *text, char *error, size_t error_size);
/* texts ends with NULL; NULL: none. */
void regexes_compile(struct regexes *regexes, char **texts);
void regexes_release(struct regexes *regexes);
/* A search that runs into its bounds counts as no match. */
bool regexes_find(const struct regexes *regexes, struct slice text);
/* False: none of them is found, which was soon clear. For a first look under a lock. */
bool regexes_may_find(const struct regexes *regexes, struct slice text);

#endif
