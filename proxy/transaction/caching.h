/*
 * Caching: whether and how the cache takes part in a transaction, and under which name.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_CACHING_H
#define RETORT_TRANSACTION_CACHING_H

#include "cache/control.h"
#include "cache/name.h"
#include "settings/policy.h"

struct caching {
    bool allowed;
    const struct cache_policy *policy; /* NULL: none is for this */
    struct cache_control control;      /* the request's */
    struct cache_name name;            /* what is stored, or is to be stored, has it */
};

#endif
