/*
 * Gives a stored response a new head: after a 304 (RFC 9111 §4.3.4), or after the response to a
 * HEAD that describes the same bytes (§4.3.5).
 *
 *     if (!refresh_object(transaction, response, &outcome)) ...        FETCH, after a 304
 *     refresh_from_head(transaction);                                  FETCH, after any other
 *     if (!refresh_spares(transaction, &freshness, object, response)) ...      drop the object
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_REFRESH_H
#define RETORT_TRANSACTION_REFRESH_H

#include "cache/shared_fetch.h"
#include "http/head.h"

struct freshness;
struct object;
struct transaction;

/* `news` is the head of a response without a body that describes the stored one: its fields replace
 * those of the stored head. *outcome tells whether the result is in the index. False: the two heads
 * do not go together, or come from two addresses (stored_source.h), and nothing has changed. */
bool refresh_object(struct transaction *transaction, const struct http_head *news,
                    enum shared_fetch_outcome *outcome);
/* The response to a HEAD describes what is stored: updates its head. */
void refresh_from_head(struct transaction *transaction);
/* Does what is stored stay for others, although the response `news`, of this freshness, may not be
 * stored? It was made for the user who asked, or for a request that wants to be kept nowhere, and
 * says nothing about what others get; unless the stored one was for all, and the news are not. */
bool refresh_spares(struct transaction *transaction, const struct freshness *freshness,
                    const struct object *stored, const struct http_head *news);

#endif
