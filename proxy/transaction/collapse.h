/*
 * Collapse: the part of one transaction in a fetch that several share (cache/shared_fetch.h). It
 * leads the fetch, or follows it for a limited time.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_COLLAPSE_H
#define RETORT_TRANSACTION_COLLAPSE_H

#include "cache/shared_fetch.h"
#include "event/timer.h"

struct collapse {
    struct shared_fetch *fetch; /* the fetch under way: led, or followed */
    bool leads;
    bool expired;
    struct waiter *waiter; /* while it follows */
    struct timer timer;
};

#endif
