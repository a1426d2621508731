/*
 * Many texts looked for in another one, all at once (Aho and Corasick, CACM '75): what it costs
 * depends on the length of the text that is searched, not on how many are looked for.
 *
 *     struct needles *needles = needles_new(&table);               the names of a sealed table
 *     needles_search(needles, path, on_found, arg);
 *
 *     static bool on_found(void *arg, struct numbers numbers)      true: that is enough
 *
 * The needles are in small letters; in the text that is searched, large letters count as small
 * ones. Of needles so many that the automaton would be very large only the beginnings are looked
 * for: what is found may then be none of them, but nothing is missed.
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

/* Is there any? A search up to the first byte `stop`; -1: to the end. */
bool needles_are_in(const struct needles *needles, struct slice text, int stop);
/* Calls back with the numbers of what is found, as often as it is. */
void needles_search(const struct needles *needles, struct slice text,
                    bool (*on_found)(void *arg, struct numbers numbers), void *arg);

#endif
