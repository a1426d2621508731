/*
 * The rules of the settings (match/rules.h) that match a transaction's request. The request is
 * matched against all rules once, and again only when it has changed, or when its user or its
 * destination has become known and a rule asks for that (request_set_user, request_set_destinations).
 *
 *     const uint64_t *rules = request_rules(transaction);
 *     if (adapt_set_has(set, ADAPT_RESPMOD_PRECACHE, rules)) ...
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_REQUEST_RULES_H
#define RETORT_TRANSACTION_REQUEST_RULES_H

#include "match/url_class.h"

struct transaction;

/* What classes are compared with. It points into the transaction. Nothing is said to be pending:
 * who waits for a user or a destination sets that in the result. */
void request_subject(const struct transaction *transaction, struct class_subject *subject);

/* The rules that match the request, as a bit set; with any content type. */
const uint64_t *request_rules(struct transaction *transaction);
/* The rules that match the request and want no content type. */
const uint64_t *request_rules_without_type(struct transaction *transaction);
/* The rules that match the request, and whose content type is that of the response or that want
 * none. */
const uint64_t *request_rules_for_response(struct transaction *transaction,
                                           const struct http_head *response);

#endif
