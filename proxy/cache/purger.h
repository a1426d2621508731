/*
 * Decides when to walk through all objects for purges. A purge is in force without a walk. A walk
 * frees the memory of the objects that the purge concerns, counts them, and lets the purge be
 * forgotten. One walk serves all purges that exist when it begins. All walks together take at most
 * one part in PURGER_SHARE of a processor.
 *
 *     purger_init(&purger, walk, arg);
 *     if (!purger_walk_soon(&purger)) ...      not now: a thread does it as soon as it may
 *     purger_walk_now(&purger);                whatever it takes
 *     purger_release(&purger);
 *
 * Threads: any. One walk runs at a time. The purger starts a thread of its own when it first
 * needs one.
 */
#ifndef RETORT_CACHE_PURGER_H
#define RETORT_CACHE_PURGER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A walk that took a millisecond of processor time is paid for by PURGER_SHARE milliseconds
 * of waiting. Unused waiting time counts as credit, for at most PURGER_CREDIT milliseconds
 * of walks. */
enum { PURGER_SHARE = 20, PURGER_CREDIT = 300 };

struct purger {
    void (*walk)(void *arg);
    void *arg;
    pthread_mutex_t walking; /* held during a walk */
    pthread_mutex_t lock;    /* of the members below */
    pthread_cond_t wanted;
    pthread_t thread;
    bool started, stopping, pending;
    uint64_t paid_until; /* microseconds of the monotonic clock at which all walks are paid for */
};

void purger_init(struct purger *purger, void (*walk)(void *arg), void *arg);
void purger_release(struct purger *purger);
/* True: the walk is done, for all purges that existed before the call. False: the purger's thread
 * will walk later. */
bool purger_walk_soon(struct purger *purger);
void purger_walk_now(struct purger *purger);

#endif
