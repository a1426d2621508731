/*
 * Failures: an error page in place of what the client asked for. It names the reason, and where the
 * trouble is.
 *
 *     if (request->method_id == HTTP_METHOD_TRACE)
 *         return fail_with(transaction, 405, "TRACE is not supported");
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_FAIL_H
#define RETORT_TRANSACTION_FAIL_H

#include "transaction/step.h"

/* Prepares an error page and returns STEP_DELIVER. The reason is static text for people. */
enum step fail_with(struct transaction *transaction, unsigned status, const char *reason);
/* As fail_with, when the client may not have what it asks for: 403, and denied in the log. */
enum step fail_denied(struct transaction *transaction, const char *reason);
/* As fail_denied, when the client may not reach the place that its request would go to
 * (net/reach.h). */
enum step fail_destination_denied(struct transaction *transaction, const char *reason);

#endif
