/*
 * A large set of names of hosts and domains, or of other strings: a million take about 35 MB, and a
 * question costs the same however many there are.
 *
 *     struct name_set *set = name_set_new();
 *     name_set_add(set, SLICE("example.com"), NAME_SET_ITSELF | NAME_SET_BELOW);
 *     if (name_set_has_host(set, SLICE("www.example.com"))) ...       below example.com
 *     name_set_free(&set);
 *
 * The names stand in one block of memory, since an entry of base/table.h for each would take twice
 * as much. What a hash finds is compared byte by byte.
 *
 * Threads: read-only once all names are added.
 */
#ifndef RETORT_LISTS_NAME_SET_H
#define RETORT_LISTS_NAME_SET_H

#include "base/slice.h"

enum { NAME_SET_ITSELF = 1, NAME_SET_BELOW = 2 };

struct name_set;

struct name_set *name_set_new(void);
void name_set_free(struct name_set **setp);
/* Copies the name, which is as those that are asked for: hosts in lower case. `matches`: the name
 * itself, the names below it, or both. False: the set is full (4 GB). */
bool name_set_add(struct name_set *set, struct slice name, unsigned matches);
size_t name_set_count(const struct name_set *set);

/* Is the name itself there? */
bool name_set_has(const struct name_set *set, struct slice name);
/* Is the host there, or is it below a name that is there? An IP address is below nothing. */
bool name_set_has_host(const struct name_set *set, struct slice host);

#endif
