/*
 * The ranges of a stored response that the client asked for (RFC 9110 §14.2, §15.3.7): a single one
 * as the body, several as multipart/byteranges. The bytes are sent from where they are stored.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_RANGES_H
#define RETORT_TRANSACTION_RANGES_H

#include "cache/object.h"
#include "client/exchange.h"
#include "transaction/step.h"

/* Reduces the reply to the parts of the object that the request asks for. The length of the object
 * must be known. */
void ranges_choose(struct transaction *transaction, const struct object *object,
                   struct reply *reply);

#endif
