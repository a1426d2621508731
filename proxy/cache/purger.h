/*
 * When objects are walked through for purges. A purge is in force without that; a walk frees the
 * memory of what it concerns, counts that, and lets the purge be forgotten. One walk serves all
 * purges that there are when it begins, and all walks together take a PURGER_SHARE of a processor
 * at most.
 *
 *     purger_init(&purger, walk, arg);
 *     if (!purger_walk_soon(&purger)) ...      not now: a thread does it as soon as it may
 *     purger_walk_now(&purger);                whatever it takes
 *     purger_release(&purger);
 *
 * Threads: any. One walk at a time. The thread of its own is there from when it is needed first.
 */
#ifndef RETORT_CACHE_PURGER_H
#define RETORT_CACHE_PURGER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A walk that took a millisecond of processor time is followed by PURGER_SHARE without one; what
 * was left unused counts up to PURGER_CREDIT milliseconds. */
enum { PURGER_SHARE = 20, PURGER_CREDIT = 300 };

struct purger {
    void (*walk)(void *arg);
    void *arg;
    pthread_mutex_t walking; /* held during a walk */
    pthread_mutex_t lock;    /* of what follows */
    pthread_cond_t wanted;
    pthread_t thread;
    bool started, stopping, pending;
    uint64_t paid_until; /* microseconds of the monotonic clock at which all walks are paid for */
};

void purger_init(struct purger *purger, void (*walk)(void *arg), void *arg);
void purger_release(struct purger *purger);
/* True: it has been done, for all that was there before the call. */
bool purger_walk_soon(struct purger *purger);
void purger_walk_now(struct purger *purger);

#endif
