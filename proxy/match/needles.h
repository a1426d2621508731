/*
 * Needles: many texts that are looked for in another text at once (Aho and Corasick, CACM '75). The
 * cost depends on the length of the searched text, not on the number of needles.
 *
 *     struct needles *needles = needles_new(&table);               the names of a sealed table
 *     needles_search(needles, path, on_found, arg);
 *     needles_free(&needles);
 *
 *     static bool on_found(void *arg, struct numbers numbers)      true: stop searching
 *
 * Needles are in lower case; the search ignores the case of the searched text. If the automaton
 * would become very large, only the beginnings of the needles are looked for. The search then may
 * report a needle that is not there, but it misses none.
 *
 * Threads: read-only once made.
 */
#ifndef RETORT_MATCH_NEEDLES_H
#define RETORT_MATCH_NEEDLES_H

#include "match/name_table.h"

struct needles;

/* The table must live as long; NULL when it is empty. */
struct needles *needles_new(const struct name_table *table);
void needles_free(struct needles **needlesp);

/* Is there any? */
bool needles_are_in(const struct needles *needles, struct slice text);
/* Calls back with the numbers of what is found, as often as it is. */
void needles_search(const struct needles *needles, struct slice text,
                    bool (*on_found)(void *arg, struct numbers numbers), void *arg);

#endif
