/*
 * What listeners with TLS, and those that lead to them, add to requests and responses: the redirect
 * to https, what origins learn of the client's connection, and Strict-Transport-Security.
 *
 *     if (https_is_expected(transaction)) return fail_with(...);      clear text where TLS is spoken
 *     if (https_is_elsewhere(transaction)) return https_redirect(transaction);
 *     https_tell_origin(transaction, head);                           before the request is sent
 *     https_secure_reply(transaction);                                before the reply is sent
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_HTTPS_H
#define RETORT_TRANSACTION_HTTPS_H

#include "http/head.h"
#include "transaction/step.h"

#include <stdbool.h>

/* Did the client speak clear text to a listener with certificates? */
bool https_is_expected(const struct transaction *transaction);
/* Does the listener redirect this request (listen.redirect_to_https)? */
bool https_is_elsewhere(const struct transaction *transaction);
/* Answers with a redirect to the same URL with https, and returns STEP_DELIVER. */
enum step https_redirect(struct transaction *transaction);
/* Adds the fields of a reverse listener about the client's TLS connection, and removes those of the
 * same names that the client sent. */
void https_tell_origin(struct transaction *transaction, struct http_head *head);
/* Is the response for this client only, because the origin was told of its certificate? */
bool https_is_personal(const struct transaction *transaction);
/* Puts listen.hsts into the reply, in place of the origin's field. */
void https_secure_reply(struct transaction *transaction);

#endif
