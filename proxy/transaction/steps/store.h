/*
 * STORE: the response's body begins to flow into memory, kept if it may be stored, passing through
 * if not.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_STORE_H
#define RETORT_TRANSACTION_STEPS_STORE_H

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

#endif
