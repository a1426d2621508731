/*
 * Partial responses in the cache (RFC 9111 §3.3, §3.4): when a stored part is sufficient, how it is
 * completed, and how a new part is stored.
 *
 *     if (object->status == 206 && !stored_part_will_do(transaction)) ...      LOOKUP
 *     if (stored_part_ask_for_rest(transaction, head)) ...                     FETCH: "Range" is set
 *     if (!stored_part_completes(transaction)) ...                             FETCH: the answer
 *     keep = stored_part_join(transaction, keep);                              STORE
 *     stored_part_drop(transaction, &freshness);                               STORE, not kept
 *
 * The steps in capitals call it. `object` and `part` are those of transaction->lookup; parts are joined
 * only if their strong validators are equal (RFC 9110 §13.1.5). Offsets and lengths are bytes.
 *
 * Errors: none; what can't be joined is fetched whole, or delivered and not stored.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STORED_PART_H
#define RETORT_TRANSACTION_STORED_PART_H

#include "http/head.h"

struct freshness;
struct transaction;

/* Does the stored part, `object`, hold what the request asks for? */
bool stored_part_will_do(struct transaction *transaction);
/* Has the request to the origin ask for what `part` lacks to be whole, where that can be. */
bool stored_part_ask_for_rest(struct transaction *transaction, struct http_head *head);
/* Is the response to that request what was asked for? */
bool stored_part_completes(struct transaction *transaction);
/* The response is a part: joins it with the stored one, and with `keep` makes it ready for being
 * stored; false: it is not to be stored. */
bool stored_part_join(struct transaction *transaction, bool keep);
/* The response is not stored: neither may `part` stay if it shows that there are other bytes now.
 */
void stored_part_drop(struct transaction *transaction, const struct freshness *freshness);

#endif
