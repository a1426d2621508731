/*
 * The first asking: each service of a set is asked what it can do before there is a message for it,
 * so that the first message does not wait for that, and operators see from the start which services
 * are down.
 *
 *     struct warm_up *asking = warm_up_new(set);     at the start, and after a reload
 *     warm_up_free(&asking);
 *
 * One worker does it for all workers. It begins when the loop runs, so the start does not wait for
 * it, and asks WARM_UP_AT_ONCE services at a time: the next one when one has answered, or is
 * down. A message for a service whose turn has not come asks it at once. Services that are known
 * already, from before a reload, are left alone.
 *
 * Threads: the worker's. Ownership: the set outlives it.
 */
#ifndef RETORT_ADAPT_WARM_UP_H
#define RETORT_ADAPT_WARM_UP_H

#include "adapt/set.h"

enum { WARM_UP_AT_ONCE = 16 };

struct warm_up;

struct warm_up *warm_up_new(const struct adapt_set *set);
void warm_up_free(struct warm_up **askingp);

#endif
