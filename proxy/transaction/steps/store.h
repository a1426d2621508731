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

struct storing {
    bool begun;        /* the object is what this transaction brings into the cache */
    bool settled;      /* it is in the index, or will never be */
    struct body *body; /* referenced */
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
/* Notes what has been purged by now. */
void storing_note_moment(struct transaction *transaction);
/* What was to be stored has arrived, or will not: an object of unknown length enters the index now
 * that it is whole, one that broke off leaves it. Harmless before and after. */
void storing_settle(struct transaction *transaction);

#endif
