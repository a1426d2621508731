/*
 * The rules of the settings (match/rules.h) that a transaction's request is for. They are asked
 * once, and again only when the request has changed.
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

/* Those that fit the request, whatever content type they want. */
const uint64_t *request_rules(struct transaction *transaction);
/* Of these, those that want no content type. */
const uint64_t *request_rules_without_type(struct transaction *transaction);
/* Of these, those whose content type is the response's, and those that want none. */
const uint64_t *request_rules_for_response(struct transaction *transaction,
                                           const struct http_head *response);

#endif
