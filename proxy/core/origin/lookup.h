/*
 * Look-ups of SRV records: each source of a group (origin/source.h) is asked for when its time
 * comes, and the group is told the answer.
 *
 *     struct origin_lookups *lookups = origin_lookups_new(net, groups, on_change, worker);
 *     ...
 *     origin_lookups_free(&lookups);
 *
 *     static void on_change(void *arg, struct origin_group *group)     it has other members now
 *
 * One worker asks for all workers, on a channel of its own to the name servers of the section
 * origin. All names are asked for at the start, and so after each reload. Search domains complete
 * no name, neither the one that is asked for nor those in the answer.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_LOOKUP_H
#define RETORT_ORIGIN_LOOKUP_H

#include "net/context.h"
#include "origin/group.h"

struct origin_lookups;

typedef void origin_change_fn(void *arg, struct origin_group *group);

struct origin_lookups *origin_lookups_new(struct net_context *net, struct origin_groups *groups,
                                          origin_change_fn *on_change, void *arg);
void origin_lookups_free(struct origin_lookups **lookupsp);

#endif
