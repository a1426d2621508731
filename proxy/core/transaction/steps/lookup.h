/*
 * LOOKUP: is there a stored response that the request may have (RFC 9111 §4)?
 *
 * FETCH, after the origin has answered about `object`:
 *
 *     if (status == 304)
 *         lookup_renew(transaction, fresh);
 *     else
 *         lookup_replace(transaction);
 *     lookup_tell_followers(transaction, SHARED_FETCH_STORED);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_LOOKUP_H
#define RETORT_TRANSACTION_STEPS_LOOKUP_H

#include "cache/object.h"
#include "cache/second_level.h"
#include "transaction/collapse.h"

/* Written by lookup.c. */
struct lookup {
    struct object *object;   /* hit, or stale and to be revalidated; referenced */
    struct object *part;     /* stored, but not what the request needs of it; referenced */
    struct object *replaced; /* stale, and the origin has sent something else; referenced */
    bool revalidating;
    bool disk_asked;
    bool alone;                     /* has followed, and now fetches for itself */
    struct second_level_load *load; /* what is being read from disk */
    uint64_t load_started;          /* microseconds of the monotonic clock */
    uint64_t collapse_until;        /* for all that it follows, in the loop's time; 0: none yet */
    struct collapse collapse;       /* the fetch under way for this name */
};

struct transaction;

/* The object is replaced by `fresh`, its successor, which becomes the look-up's. */
void lookup_renew(struct transaction *transaction, struct object *fresh);
/* The origin has sent another response than the object. */
void lookup_replace(struct transaction *transaction);
void lookup_stop_revalidating(struct transaction *transaction);
void lookup_forget_part(struct transaction *transaction);
/* Forgets the stored response: it has no part in the answer. */
void lookup_forget(struct transaction *transaction);
/* Ends what is under way. It may be called again. */
void lookup_end(struct transaction *transaction);
/* Releases what was found. */
void lookup_release(struct transaction *transaction);
/* The leader tells its followers the outcome of its fetch. */
void lookup_tell_followers(struct transaction *transaction, enum shared_fetch_outcome outcome);

#endif
