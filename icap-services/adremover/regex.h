/*
 * A regular expression of a filter list. Lists use the syntax of JavaScript; PCRE2 runs what it
 * shares with it.
 *
 *     struct regex *regex = regex_create(SLICE("^https?:\\/\\/ads\\d+\\."), false);     NULL: bad
 *     if (regex_matches(regex, url, url_in_lower_case, &gave_up)) ...
 *     regex_free(&regex);
 *
 * The literal of an expression is the longest text that every match contains. The expression runs
 * only when the URL contains its literal. An expression that takes too long matches nothing.
 *
 * Threads: read-only once created. Each thread that matches keeps one small block of memory, which
 * is freed when the thread ends.
 */
#ifndef RETORT_ADREMOVER_REGEX_H
#define RETORT_ADREMOVER_REGEX_H

#include "base/slice.h"

struct regex;

struct regex *regex_create(struct slice pattern, bool match_case);
void regex_free(struct regex **regexp);
/* `lower` is the text in lower case, and has the same length. `gave_up`: it took too many steps, and
 * counts as no match. Only the first 2048 bytes are looked at. */
bool regex_matches(const struct regex *regex, struct slice text, const char *lower, bool *gave_up);
/* The literal, in lower case. It is empty when the expression has none. */
struct slice regex_literal(const struct regex *regex);

#endif
