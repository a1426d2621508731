/*
 * The fields that each delivery adds to a stored head: its age (RFC 9111 §5.1), and how the cache
 * handled the request (RFC 9211).
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_CACHE_STATUS_H
#define RETORT_TRANSACTION_CACHE_STATUS_H

#include "base/slice.h"

struct transaction;

/* Age and Cache-Status, as the answer to this request has them. */
struct slice cache_status_fields(struct transaction *transaction);

#endif
