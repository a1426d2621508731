/*
 * Recall: one service of a chain is about to be asked about a request; has it been before, and may
 * what it said be used again? If not, its answer is noted for the next, where it permits that.
 *
 *     chain->recall = recall_begin(&request, adapter);            NULL: not such a message
 *     if (recall_find(recall, &verdict)) ...             no call is needed
 *     ... adapter_call_start ...
 *     body = recall_note(recall, call, body);            the call has its verdict
 *     ... body is read ...
 *     recall_end(recall);                                before the call is closed
 *
 * Requests are equal when the service would get the same bytes: the whole encapsulated head, and
 * what it is told of the client (adapt/client_fields.h); the transaction's id alone, of which nothing can
 * depend, is left out. With `verdict_by` method, URL and the named fields stand for the head; but a
 * request that the service has changed has the fields of its client in it, and is used again for
 * the same head only. So is an answer to a Range or a condition (206, 304, 412, 416), and one with
 * Vary. One with Set-Cookie is not used again.
 *
 * Only GET, HEAD and OPTIONS without a body are looked at. Bodies of answers are copied while they
 * are read, up to VERDICT_BODY_MAX, and kept when they have come to their end.
 *
 * Threads: the worker's. Memory: the arena.
 */
#ifndef RETORT_ADAPT_RECALL_H
#define RETORT_ADAPT_RECALL_H

#include "adapt/verdicts.h"

struct recall;

/* `request` without a body: its heads live as long as its arena. */
struct recall *recall_begin(const struct adapter_request *request, struct adapter *adapter);
bool recall_find(struct recall *recall, struct verdict *verdict);
/* Returns the body as it is to be read; NULL for NULL. */
struct source *recall_note(struct recall *recall, const struct adapter_call *call,
                           struct source *body);
void recall_end(struct recall *recall);

#endif
