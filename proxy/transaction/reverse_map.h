/*
 * URLs in a response's headers that lead to the origin itself become what the client must ask for:
 * the map's rule the other way round. The result is a path, for it is right under whatever name and
 * scheme the client has reached us.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_REVERSE_MAP_H
#define RETORT_TRANSACTION_REVERSE_MAP_H

#include "transaction/step.h"

/* Turns what the origin's response says of its own URLs into the client's view of them. */
void reverse_map_response(struct transaction *transaction);

#endif
