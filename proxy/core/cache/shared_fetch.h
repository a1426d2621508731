/*
 * Shared fetches (collapsed forwarding): when several requests miss the same name at the same time,
 * one of them goes to the origin and the others wait for its response. The main callers are
 * transaction/collapse.c and transaction/refresh.c.
 *
 *     switch (shared_fetch_join(fetches, &name, loop_seconds(loop), &fetch)) {
 *     case SHARED_FETCH_LEADS:
 *         ... ask the origin ...
 *         shared_fetch_finish(&fetch, SHARED_FETCH_STORED, loop_seconds(loop), loop);
 *         break;
 *     case SHARED_FETCH_FOLLOWS:
 *         if (shared_fetch_wait(fetch, &waiter, mailbox, task))
 *             ... the task runs when the fetch has ended ...
 *         outcome = shared_fetch_outcome(fetch);
 *         shared_fetch_leave(&fetch, &waiter);
 *         break;
 *     case SHARED_FETCH_ALONE:
 *         ... the response could not be stored lately: every request asks the origin ...
 *         break;
 *     }
 *
 * A follower looks into the cache again when the fetch has ended. A response that can't be stored
 * releases all followers at once, and its name is remembered for ALONE_SECONDS so that nobody waits
 * for it again. Each follower limits the time for which it waits (cache.collapse_timeout).
 *
 * `now` is in seconds of a clock that is never set back (loop_seconds).
 *
 * Threads: any. Followers in other threads are woken by message. Locks: one per bucket of the
 * table; a thread never holds two of them. A bucket also remembers a few names that have no fetch,
 * so it is no base/shared_table.h.
 */
#ifndef RETORT_CACHE_SHARED_FETCH_H
#define RETORT_CACHE_SHARED_FETCH_H

#include "cache/object.h"

struct shared_fetches;
struct shared_fetch;

enum shared_fetch_role { SHARED_FETCH_LEADS, SHARED_FETCH_FOLLOWS, SHARED_FETCH_ALONE };

enum shared_fetch_outcome {
    SHARED_FETCH_RUNNING,
    SHARED_FETCH_STORED,    /* look into the cache */
    SHARED_FETCH_UNSTORED,  /* nothing that other requests may use */
    SHARED_FETCH_FAILED,    /* the origin failed */
    SHARED_FETCH_ABANDONED, /* the leader's client left, or the answer was purged: fetch again */
};

struct shared_fetches *shared_fetches_new(void);
void shared_fetches_free(struct shared_fetches **fetchesp);

enum shared_fetch_role shared_fetch_join(struct shared_fetches *fetches,
                                         const struct cache_name *name, time_t now,
                                         struct shared_fetch **fetchp);
/* May a refresh of this name begin? It may not while another request fetches the name, or soon
 * after a refresh of it has failed. */
bool shared_fetch_may_refresh(struct shared_fetches *fetches, const struct cache_name *name,
                              time_t now);
/* A refresh in the background has failed, or has succeeded. After a failure the next refresh has to
 * wait for a second, after each further failure twice as long, up to `most` seconds. Each bucket
 * remembers four names: those whose pauses end last. */
void shared_fetch_note_failure(struct shared_fetches *fetches, const struct cache_name *name,
                               time_t now, time_t most);
void shared_fetch_note_success(struct shared_fetches *fetches, const struct cache_name *name);
/* For the leader: the fetch has ended with this outcome. */
void shared_fetch_finish(struct shared_fetch **fetchp, enum shared_fetch_outcome outcome,
                         time_t now, const struct loop *loop);
/* For a follower. False: the fetch has ended already. */
bool shared_fetch_wait(struct shared_fetch *fetch, struct waiter **slot, struct mailbox *mailbox,
                       struct task *task);
enum shared_fetch_outcome shared_fetch_outcome(struct shared_fetch *fetch);
void shared_fetch_leave(struct shared_fetch **fetchp, struct waiter **slot);

#endif
