/*
 * A fetch: the request that a service makes. It is an exchange of a worker (client/exchange.h) and
 * takes the same steps as a client's: the listener's rules, access and limit sections, services, the
 * bounds of where clients may go, loops. Its reply goes nowhere, but is read to its end, so that the
 * object is stored when the service gets its answer.
 *
 *     content_fetch_begin(operation, requester, again);   ends with content_operation_end
 *     content_fetch_cancel(operation->fetch);         while it is under way, under the room's lock
 *
 * For an requester it is a request of the same client, on the same listener, by the same user, in the same
 * worker. Without one it is the service's own, and the workers take turns.
 *
 * Threads: begin and cancel any; the rest is the worker's, to which messages go.
 */
#ifndef RETORT_CONTENT_FETCH_H
#define RETORT_CONTENT_FETCH_H

#include "client/requester.h"
#include "content/operation.h"

/* Under the lock. NULL: it has begun. Else the sentence that says why it may not. */
const char *content_fetch_begin(struct content_operation *operation,
                                const struct requester *requester, bool again);
void content_fetch_cancel(struct content_fetch *fetch);

#endif
