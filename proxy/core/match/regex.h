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
/* A search that reaches the limit of its work counts as no match; see regex_take_gave_up. */
bool regexes_find(const struct regexes *regexes, struct slice text);
/* Has a search of this thread reached the limit of its work since the last call? Whoever refuses
 * what is found asks this, because a stranger can choose a text that needs too much work. */
bool regex_take_gave_up(void);
/* A quick first look, for use under a lock. False: none is found. True: one may be found. */
bool regexes_may_find(const struct regexes *regexes, struct slice text);

/* One expression whose groups are wanted, for replacing what it finds.
 *
 *     struct regex *regex = regex_new("^/old/(.*)", error, sizeof error);
 *     struct slice groups[REGEX_GROUPS];
 *     if (regex_search(regex, text, 0, groups) == REGEX_FOUND) ...    groups[1] is the first group
 */
struct regex;
enum { REGEX_GROUPS = 10 }; /* all that was found, and nine groups */
enum regex_result {
    REGEX_FOUND,
    REGEX_NOT_FOUND,
    REGEX_GAVE_UP, /* at the limit of its work */
};

/* NULL: `error` says why it is no regular expression. */
struct regex *regex_new(const char *text, char *error, size_t error_size);
void regex_free(struct regex **regexp);
unsigned regex_groups(const struct regex *regex); /* how many it has, 9 at most */
/* Searches from that byte on. Groups that took no part are empty, with base NULL. */
enum regex_result regex_search(const struct regex *regex, struct slice text, size_t from,
                               struct slice groups[REGEX_GROUPS]);

#endif
