/*
 * What an unsafe method may have changed is not served any more (RFC 9111 §4.4): the target, and
 * what Location and Content-Location name on the same origin.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_INVALIDATE_H
#define RETORT_TRANSACTION_INVALIDATE_H

#include "transaction/step.h"

/* Drops what the request's success has made stale (RFC 9111 §4.4). */
void invalidate_stored(struct transaction *transaction);

#endif
