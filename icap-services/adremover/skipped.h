/*
 * What of the lists is not done, in a line for operators: how many rules ask for options that are
 * not supported, for which ones, the most frequent first, how many can't be understood, and how
 * many lists could not be read.
 *
 *     char line[200];
 *     skipped_text(filter_counts(filter), 0, line, sizeof line);
 *     "skipped for options that are not supported: 12 rules (websocket-foo 7, csp 5); bad rules: 3"
 *
 * Empty when nothing was skipped. Where not all names find room it says how many more there are.
 * Threads: pure.
 */
#ifndef RETORT_ADREMOVER_SKIPPED_H
#define RETORT_ADREMOVER_SKIPPED_H

#include "adremover/filter.h"

/* capacity: SKIPPED_TEXT_MIN at least. */
enum { SKIPPED_TEXT_MIN = 200 };
void skipped_text(const struct filter_counts *counts, unsigned unread, char *out, size_t capacity);

#endif
