/*
 * Says in one line for operators what the filter does not do of its lists: how many rules have
 * options that are not supported, the names of these options (the most frequent first), how many
 * rules can't be understood, and how many lists could not be read.
 *
 *     char line[200];
 *     skipped_text(filter_counts(filter), 0, line, sizeof line);
 *     "skipped for options that are not supported: 12 rules (websocket-foo 7, csp 5); bad rules: 3"
 *
 * The line is empty when nothing was skipped. If there is no room for all names, the line says how
 * many more there are. Threads: pure.
 */
#ifndef RETORT_ADREMOVER_SKIPPED_H
#define RETORT_ADREMOVER_SKIPPED_H

#include "adremover/filter.h"

/* capacity: SKIPPED_TEXT_MIN at least. */
enum { SKIPPED_TEXT_MIN = 200 };
void skipped_text(const struct filter_counts *counts, unsigned unread, char *out, size_t capacity);

#endif
