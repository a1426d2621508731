/*
 * Invalidates stored responses that an unsafe method may have changed (RFC 9111 §4.4): the target,
 * and the URLs in Location and Content-Location on the same origin.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_INVALIDATE_H
#define RETORT_TRANSACTION_INVALIDATE_H

#include "transaction/step.h"

/* Drops what the request's success has made stale (RFC 9111 §4.4). */
void invalidate_stored(struct transaction *transaction);

#endif
