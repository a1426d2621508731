/*
 * Collapsed forwarding: of several requests that miss the same name at the same time, one goes to
 * the origin and the others wait for what it brings.
 *
 *     switch (flight_join(flights, &name, now, &flight)) {
 *     case FLIGHT_LEADS:   fetch; then flight_land(&flight, outcome, now, loop)
 *     case FLIGHT_FOLLOWS: if (flight_wait(flight, &slot, mailbox, task)) ... wait for the task;
 *                          flight_outcome() says how it ended; flight_leave(&flight, &slot)
 *     case FLIGHT_ALONE:   this was not to be stored lately: fetch for yourself
 *     }
 *
 * A follower looks into the cache again when the flight has landed. What can't be stored releases
 * all followers at once, and the name is remembered for ALONE_SECONDS so that nobody waits for it
 * again; how long a follower waits at the most is its own affair (cache.collapse_timeout).
 *
 * `now` is in seconds of a clock that is never set back (loop_seconds).
 *
 * Threads: any. Followers in other threads are woken by message. Locks: one per bucket of the
 * table, taken alone.
 */
#ifndef RETORT_CACHE_FLIGHT_H
#define RETORT_CACHE_FLIGHT_H

#include "cache/object.h"

struct flights;
struct flight;

enum flight_role { FLIGHT_LEADS, FLIGHT_FOLLOWS, FLIGHT_ALONE };

enum flight_outcome {
    FLIGHT_ALOFT,
    FLIGHT_STORED,   /* look into the cache */
    FLIGHT_UNSTORED, /* nothing that others may have */
    FLIGHT_FAILED,   /* the origin failed */
    FLIGHT_LEFT,     /* the leader's client left before there was an answer, or the answer was
                      * purged on its way: worth another flight */
};

struct flights *flights_new(void);
void flights_free(struct flights **flightsp);

enum flight_role flight_join(struct flights *flights, const struct cache_name *name, time_t now,
                             struct flight **flightp);
/* May a refresh of this begin: is nobody fetching it, and has no refresh of it failed just now?
 */
bool flight_may_refresh(struct flights *flights, const struct cache_name *name, time_t now);
/* A refresh in the background has failed: the next has to wait for a second, after further failures
 * twice as long each time, up to `most` seconds. Or it has come to something. Four names a bucket
 * are remembered, those whose pause is the last to end. */
void flight_note_failure(struct flights *flights, const struct cache_name *name, time_t now,
                         time_t most);
void flight_note_success(struct flights *flights, const struct cache_name *name);
/* The leader's. */
void flight_land(struct flight **flightp, enum flight_outcome outcome, time_t now,
                 const struct loop *loop);
/* A follower's. False: it has landed already. */
bool flight_wait(struct flight *flight, struct waiter **slot, struct mailbox *mailbox,
                 struct task *task);
enum flight_outcome flight_outcome(struct flight *flight);
void flight_leave(struct flight **flightp, struct waiter **slot);

#endif
