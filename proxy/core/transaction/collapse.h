/*
 * Collapse: the part of one transaction in a fetch that several share (cache/shared_fetch.h). It
 * leads the fetch, or follows it for a limited time.
 *
 *     switch (collapse_join(&collapse, fetches, &name, loop)) {
 *     case SHARED_FETCH_LEADS:
 *         ... fetch ...
 *         collapse_finish(&collapse, SHARED_FETCH_STORED);
 *         break;
 *     case SHARED_FETCH_FOLLOWS:
 *         collapse_follow(&collapse, mailbox, &transaction->task, loop->now + timeout);
 *         ... the task runs ...
 *         if (collapse_has_ended(&collapse, &outcome)) ...
 *         break;
 *     case SHARED_FETCH_ALONE:
 *         break;
 *     }
 *     collapse_end(&collapse);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_COLLAPSE_H
#define RETORT_TRANSACTION_COLLAPSE_H

#include "cache/shared_fetch.h"
#include "event/timer.h"

/* Zeroed before it is used first. Written by collapse.c. */
struct collapse {
    struct shared_fetch *fetch; /* led, or followed; NULL: none */
    bool leads;
    bool expired; /* it was followed for long enough */
    struct loop *loop;
    struct task *waker;    /* of the follower */
    struct waiter *waiter; /* while it follows */
    struct timer timer;
};

enum shared_fetch_role collapse_join(struct collapse *collapse, struct shared_fetches *fetches,
                                     const struct cache_name *name, struct loop *loop);
/* Runs the waker when the fetch has ended, or at that time of the loop. */
void collapse_follow(struct collapse *collapse, struct mailbox *mailbox, struct task *waker,
                     uint64_t until);
/* Has the fetch that is followed ended, or the time for it? Then it is followed no more, and
 * *outcome is what became of it; SHARED_FETCH_RUNNING: it goes on. */
bool collapse_has_ended(struct collapse *collapse, enum shared_fetch_outcome *outcome);
/* The leader tells its followers the outcome of its fetch. Does nothing when no fetch is led. */
void collapse_finish(struct collapse *collapse, enum shared_fetch_outcome outcome);
/* Ends the part of this transaction in the fetch. If it led the fetch, its followers ask for
 * themselves. It may be called again. */
void collapse_end(struct collapse *collapse);

#endif
