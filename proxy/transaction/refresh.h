/*
 * Gives a stored response a new head: after a 304 (RFC 9111 §4.3.4), or after the response to a
 * HEAD that describes the same bytes (§4.3.5).
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_REFRESH_H
#define RETORT_TRANSACTION_REFRESH_H

#include "cache/shared_fetch.h"
#include "http/head.h"

struct transaction;

/* Puts the fields of a response without a body, which is about the stored one, over those of
 * `object`, which becomes the outcome; says whether that is in the index. False: they do not go
 * together into one head, and nothing has changed. */
bool refresh_object(struct transaction *transaction, const struct http_head *news,
                    enum shared_fetch_outcome *outcome);
/* The response to a HEAD tells something of what is stored. */
void refresh_from_head(struct transaction *transaction);

#endif
