/*
 * Invalidates stored responses that an unsafe method may have changed (RFC 9111 §4.4): the target,
 * and the URLs in Location and Content-Location on the same origin.
 *
 *     invalidate_stored(transaction);
 *     if (transaction->told != NULL && !invalidate_is_told(transaction)) ...    wait for its task
 *     invalidate_end(transaction);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_INVALIDATE_H
#define RETORT_TRANSACTION_INVALIDATE_H

#include "transaction/step.h"

#include <stdbool.h>

/* Drops what the request's success has made stale (RFC 9111 §4.4). While another process takes over,
 * it has to drop that too: transaction->told is the order that tells it, to be waited for before the
 * client learns of the success. */
void invalidate_stored(struct transaction *transaction);
/* True: it is told, or can't be, which is counted. */
bool invalidate_is_told(struct transaction *transaction);
/* May be called again. */
void invalidate_end(struct transaction *transaction);

#endif
