/*
 * STORE: the response's body begins to flow into memory, kept if it may be stored, passing through
 * if not.
 *
 *     storing_note_moment(transaction);             before the cache or the origin is asked
 *     outcome = storing_insert(transaction, object);
 *     storing_settle(transaction);                  whenever the body may have come to its end
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_STORE_H
#define RETORT_TRANSACTION_STEPS_STORE_H

#include "cache/second_level.h"
#include "cache/shared_fetch.h"
#include "cache/store.h"
#include "transaction/pump.h"

/* Written by store.c. */
struct storing {
    bool settled;             /* the object is in the index, or will never be */
    struct object *held;      /* the object, until the disk has it or it has failed; or NULL */
    struct object *object;    /* what this transaction stores; NULL: nothing; referenced */
    struct body *body;        /* of the response, stored or passing by; referenced */
    int64_t announced_length; /* that the client is told; -1: not known */
    struct pump pump;
    /* what had been purged when what is stored was looked for; nothing found: when the origin was
     * asked */
    struct cache_moment since;
    struct second_level_moment second_level_since;
};

struct transaction;

/* Puts an object into the index. Returns the outcome for the transactions that wait for it. */
enum shared_fetch_outcome storing_insert(struct transaction *transaction, struct object *object);
/* Removes the object from the cache, in memory and on disk. */
void storing_drop(struct transaction *transaction, struct object *object);
/* Does so for one whose body ended early or is damaged; what came later stays. */
void storing_drop_broken(struct transaction *transaction, struct object *object);
/* Is the object still arriving, and will it be stored whole? Then others may wait for it. */
bool storing_is_worth_finishing(const struct storing *storing);
/* Releases the object and the body. */
void storing_release(struct transaction *transaction);
/* A removal that this transaction itself has just made does not keep its response from being
 * stored. */
void storing_see_own_removal(struct transaction *transaction);
/* Notes what has been purged by now. */
void storing_note_moment(struct transaction *transaction);
/* Called when the body of the response has arrived or has broken off. An object of unknown length
 * enters the index when it is whole; an object that broke off leaves the index. At any other time
 * the call does nothing. */
void storing_settle(struct transaction *transaction);

#endif
