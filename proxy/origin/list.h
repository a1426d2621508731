/*
 * The list of the servers that a group is to have: those of its settings and those that its sources
 * have found, in the order in which they are asked. It says nothing of their health.
 *
 *     struct origin_list list;
 *     origin_list_make(&list, entries, count);
 *     ... list.places[i], whose tiers grow; list.tiers ...
 *     origin_list_release(&list);
 *
 * Servers of one tier share the requests. The next tier is asked while all before it are down. The
 * servers of the settings, and those of the lowest priority of each SRV name, are in the first one;
 * each higher priority of a name is one tier further. "A client MUST attempt to contact the target
 * host with the lowest-numbered priority it can reach" (RFC 2782). The tiers of backups come behind
 * all these.
 *
 * A server is in the list once. One that the settings name goes before one that DNS names.
 *
 * Threads: under the lock of the group; the strings are those of the entries and the sources.
 */
#ifndef RETORT_ORIGIN_LIST_H
#define RETORT_ORIGIN_LIST_H

#include "origin/member.h"

struct origin_list {
    struct origin_place *places;
    size_t count;
    unsigned tiers;
};

/* An entry with a source stands for what the source has found. Sets `doubled` of the sources. */
void origin_list_make(struct origin_list *list, const struct origin_place *entries, size_t count);
void origin_list_release(struct origin_list *list);

#endif
