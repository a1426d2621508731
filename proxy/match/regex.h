/*
 * The regular expressions of URL classes: PCRE2 with its just-in-time compiler. The work of one
 * search is limited, since strangers choose the text that is searched.
 *
 *     struct regexes regexes;
 *     if (!regex_check(text, error, sizeof error)) ...      "is not a regular expression: ..."
 *     regexes_compile(&regexes, texts);                     each text was checked before
 *     if (regexes_find(&regexes, path)) ...                 one of them was found
 *     regexes_release(&regexes);
 *
 * Of many expressions, only those are searched for whose literals (literals.h) stand in the text.
 * So a hundred expressions cost hardly more than one.
 *
 * Threads: read-only once compiled. Each thread has its own scratch memory of PCRE2, which is freed
 * when the thread ends.
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
/* A search that reaches the limit of its work counts as no match. */
bool regexes_find(const struct regexes *regexes, struct slice text);
/* A quick first look, for use under a lock. False: none is found. True: one may be found. */
bool regexes_may_find(const struct regexes *regexes, struct slice text);

#endif
