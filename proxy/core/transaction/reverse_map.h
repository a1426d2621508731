/*
 * The map of a reverse listener, seen from the origin (RFC 9110 §10.2.2, §8.7).
 *
 *     reverse_map_response(transaction);     Location: http://127.0.0.1:9000/b  becomes  /b
 *
 * Rewrites URLs in response headers that lead to the origin into the URLs that the client must ask
 * for: the map rule in reverse. The result is a path, which is right for any name and scheme by
 * which the client reaches the proxy.
 *
 * Called once for each response of an origin, before services and the cache see it. Only Location,
 * Content-Location and Refresh are changed, and only where their URL leads to a map's origin; what is
 * no URL stays as it is.
 *
 * Threads: the worker's. Memory: the transaction's arena, into which the head points afterwards.
 */
#ifndef RETORT_TRANSACTION_REVERSE_MAP_H
#define RETORT_TRANSACTION_REVERSE_MAP_H

#include "transaction/step.h"

/* Turns what the origin's response says of its own URLs into the client's view of them. */
void reverse_map_response(struct transaction *transaction);

#endif
