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

#include "base/slice.h"
#include "transaction/step.h"

/* Prepares an error page and returns STEP_DELIVER. The reason is static text for people. */
enum step fail_with(struct transaction *transaction, unsigned status, const char *reason);
/* As fail_with, with the page of that name (error_page.name). NULL: class and status choose it. */
enum step fail_page(struct transaction *transaction, unsigned status, const char *reason,
                    const char *name);
/* As fail_with, when the client may not have what it asks for: 403, and denied in the log. */
enum step fail_denied(struct transaction *transaction, const char *reason);
/* As fail_with, where the client may say who it is: 407 or 401, with these values of
 * Proxy-Authenticate or WWW-Authenticate (RFC 9110 §11.6.1, §11.7.1). They live as long as the
 * transaction. */
enum step fail_challenge(struct transaction *transaction, unsigned status, const char *reason,
                         const struct slice *challenges, size_t count);
/* As fail_with, with Retry-After: that many seconds (RFC 9110 §10.2.3). */
enum step fail_later(struct transaction *transaction, unsigned status, const char *reason,
                     unsigned seconds);
/* The head of the request has no room for what rules or the proxy write into it, or a rule can't be applied: 431. */
enum step fail_to_change(struct transaction *transaction);
/* As fail_denied, when the client may not reach the place that its request would go to
 * (net/egress.h). */
enum step fail_destination_denied(struct transaction *transaction, const char *reason);

#endif
