/*
 * The rules of the settings (match/rules.h) that match a transaction's request. The request is
 * matched against all rules once, and again only when it has changed.
 *
 *     const uint64_t *rules = request_rules(transaction);
 *     if (adapt_set_has(transaction->adapt, ADAPT_RESPMOD_PRECACHE, rules)) ...
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_REQUEST_RULES_H
#define RETORT_TRANSACTION_REQUEST_RULES_H

#include "http/head.h"

struct transaction;

/* The rules that match the request, as a bit set; with any content type. */
const uint64_t *request_rules(struct transaction *transaction);
/* The rules that match the request and want no content type. */
const uint64_t *request_rules_without_type(struct transaction *transaction);
/* The rules that match the request, and whose content type is that of the response or that want
 * none. */
const uint64_t *request_rules_for_response(struct transaction *transaction,
                                           const struct http_head *response);

#endif
