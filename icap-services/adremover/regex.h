/*
 * A regular expression of a filter list, in JavaScript's language as far as PCRE2 speaks it.
 *
 *     struct regex *regex = regex_create(SLICE("^https?:\\/\\/ads\\d+\\."), false);     NULL: bad
 *     if (regex_matches(regex, url, url_in_lower_case)) ...
 *     regex_free(&regex);
 *
 * Before the expression runs, the URL has to contain its `literal`: the longest text that whatever
 * matches must contain. An expression that would take too long matches nothing.
 *
 * Threads: read-only once created; each thread that matches keeps one small block for it, which is
 * freed when the thread ends.
 */
#ifndef RETORT_ADREMOVER_REGEX_H
#define RETORT_ADREMOVER_REGEX_H

#include "base/slice.h"

struct regex;

struct regex *regex_create(struct slice pattern, bool match_case);
void regex_free(struct regex **regexp);
/* `lower` is the text in lower case; of the same length. */
bool regex_matches(const struct regex *regex, struct slice text, const char *lower);
/* In lower case; empty when there is none. */
struct slice regex_literal(const struct regex *regex);

#endif
