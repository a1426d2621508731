/*
 * Rewrites URLs in response headers that lead to the origin into the URLs that the client must ask
 * for: the map rule in reverse. The result is a path, which is right for any name and scheme by
 * which the client reaches the proxy.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_REVERSE_MAP_H
#define RETORT_TRANSACTION_REVERSE_MAP_H

#include "transaction/step.h"

/* Turns what the origin's response says of its own URLs into the client's view of them. */
void reverse_map_response(struct transaction *transaction);

#endif
