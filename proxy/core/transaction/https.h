/*
 * What listeners with TLS, and those that lead to them, add to requests and responses: the redirect
 * to https, what origins learn of the client's connection, and Strict-Transport-Security.
 *
 *     if (https_is_expected(exchange)) return fail_with(...);         clear text where TLS is spoken
 *     if (https_is_elsewhere(exchange)) return https_redirect(transaction);
 *     https_tell_origin(transaction, head);                           before the request is sent
 *     https_secure_reply(transaction);                                before the reply is sent
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_HTTPS_H
#define RETORT_TRANSACTION_HTTPS_H

#include "client/exchange.h"
#include "transaction/step.h"

/* Did the client speak clear text to a listener with certificates? */
static inline bool https_is_expected(const struct exchange *exchange) {
    return exchange->listen->tls.set != NULL && exchange->ends->tls == NULL;
}

/* Does the listener redirect requests (listen.redirect_to_https)? */
static inline bool https_is_elsewhere(const struct exchange *exchange) {
    return exchange->listen->redirect_to_https != 0;
}

/* Answers with a redirect to the same URL with https, and returns STEP_DELIVER. STEP_NEXT: the
 * request is for ACME, which proves a name over http (RFC 8555 §8.3). */
enum step https_redirect(struct transaction *transaction);
/* Adds the fields of a reverse listener about the client's TLS connection, and removes those of the
 * same names that the client sent. */
void https_tell_origin(struct transaction *transaction, struct http_head *head);
/* Is the response for this client only, because the origin is told of its certificate? */
bool https_tells_of_client(const struct exchange *exchange);
static inline bool https_is_personal(const struct exchange *exchange) {
    return exchange->ends->tls != NULL && https_tells_of_client(exchange);
}
/* Puts listen.hsts into the reply, in place of the origin's field. */
void https_secure_reply(struct transaction *transaction);

#endif
