/*
 * Recall: before a service of a chain is asked about a request, looks whether a verdict of it on an
 * equal request is remembered. If not, its answer is noted for the next request, if it permits
 * that.
 *
 *     chain->recall = recall_begin(&request, adapter);            NULL: not such a message
 *     if (recall_find(recall, &verdict)) ...             no call is needed
 *     ... adapter_call_start ...
 *     body = recall_note(recall, call, body);            the call has its verdict
 *     ... body is read ...
 *     recall_end(recall);                                before the call is closed
 *
 * Requests are equal when the service would get the same bytes: the whole encapsulated head, and
 * what it is told about the client (adapt/client_fields.h). The id of the transaction does not
 * count, since no answer can depend on it. With `verdict_by` only the method, the URL and the named
 * fields of the head must be equal. But some answers are used again for the same whole head only: a
 * request that the service has changed, since it contains fields of its client; an answer to a
 * Range or a condition (206, 304, 412, 416); and an answer with Vary. An answer with Set-Cookie is
 * not used again.
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
