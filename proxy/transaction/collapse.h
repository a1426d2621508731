/*
 * Collapse: the part of one transaction in a fetch that several share (cache/flight.h). It leads
 * the fetch, or follows it for a limited time.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_COLLAPSE_H
#define RETORT_TRANSACTION_COLLAPSE_H

#include "cache/flight.h"
#include "event/timer.h"

struct collapse {
    struct flight *flight; /* the fetch under way: led, or followed */
    bool leads;
    bool expired;
    struct waiter *waiter; /* while it follows */
    struct timer timer;
};

#endif
