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

#include "cache/shared_fetch.h"
#include "cache/store.h"
#include "disk/disk.h"
#include "transaction/pump.h"

/* Written by store.c. */
struct storing {
    bool settled;             /* the object is in the index, or will never be */
    struct object *object;    /* what this transaction stores; NULL: nothing; referenced */
    struct body *body;        /* of the response, stored or passing by; referenced */
    int64_t announced_length; /* that the client is told; -1: not known */
    struct pump pump;
    /* what had been purged when what is stored was looked for; nothing found: when the origin was
     * asked */
    struct cache_moment since;
    struct disk_moment disk_since;
};

struct transaction;

/* Puts an object into the index; the outcome for those who wait for it. */
enum shared_fetch_outcome storing_insert(struct transaction *transaction, struct object *object);
/* Out of the cache, in memory and on disk. */
void storing_drop(struct transaction *transaction, struct object *object);
/* Is the object arriving still, and will it be stored whole? Then others may wait for it. */
bool storing_is_worth_finishing(const struct storing *storing);
/* The client reads no more of the body. */
void storing_let_client_go(struct transaction *transaction);
/* Ends what is under way. Harmless when repeated. */
void storing_end(struct transaction *transaction);
/* Lets go of object and body. */
void storing_release(struct transaction *transaction);
/* What this transaction itself has just removed does not count against what it stores. */
void storing_see_own_removal(struct transaction *transaction);
/* Notes what has been purged by now. */
void storing_note_moment(struct transaction *transaction);
/* What was to be stored has arrived, or will not: an object of unknown length enters the index now
 * that it is whole, one that broke off leaves it. Harmless before and after. */
void storing_settle(struct transaction *transaction);

#endif
