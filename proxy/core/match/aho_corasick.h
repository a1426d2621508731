/*
 * Needles: many texts that are looked for in another text at once (Aho and Corasick, CACM '75). The
 * cost depends on the length of the searched text, not on the number of needles.
 *
 *     struct aho_corasick *needles = aho_corasick_new(&table);               the names of a sealed table
 *     aho_corasick_search(needles, path, on_found, arg);
 *     aho_corasick_free(&needles);
 *
 *     static bool on_found(void *arg, struct numbers numbers)      true: stop searching
 *
 * Needles are in lower case; the search ignores the case of the searched text. If the automaton
 * would become very large, only the beginnings of the needles are looked for. The search then may
 * report a needle that is not there, but it misses none.
 *
 * Threads: read-only once made.
 */
#ifndef RETORT_MATCH_AHO_CORASICK_H
#define RETORT_MATCH_AHO_CORASICK_H

#include "match/name_table.h"

struct aho_corasick;

/* The table must live as long; NULL when it is empty. */
struct aho_corasick *aho_corasick_new(const struct name_table *table);
void aho_corasick_free(struct aho_corasick **needlesp);

/* Is there any? */
bool aho_corasick_is_found(const struct aho_corasick *needles, struct slice text);
/* Calls back with the numbers of what is found, as often as it is. */
void aho_corasick_search(const struct aho_corasick *needles, struct slice text,
                         bool (*on_found)(void *arg, struct numbers numbers), void *arg);

#endif
