/*
 * LOOKUP: is there a stored response that the request may have (RFC 9111 §4)?
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_LOOKUP_H
#define RETORT_TRANSACTION_STEPS_LOOKUP_H

#include "cache/object.h"
#include "disk/disk.h"
#include "transaction/collapse.h"

struct lookup {
    struct object *object;   /* hit, or stale and to be revalidated; referenced */
    struct object *part;     /* stored, but not what the request needs of it; referenced */
    struct object *replaced; /* stale, and the origin has sent something else; referenced */
    bool revalidating;
    bool disk_asked;
    bool alone;               /* has followed, and now fetches for itself */
    struct disk_load *load;   /* what is being read from disk */
    uint64_t collapse_until;  /* for all that it follows, in the loop's time; 0: none yet */
    struct collapse collapse; /* the fetch under way for this name */
};

struct transaction;

/* The leader tells those who follow how its fetch came out. */
void lookup_tell_followers(struct transaction *transaction, enum shared_fetch_outcome outcome);

#endif
