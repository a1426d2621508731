/*
 * The sections request_headers and response_headers at work (rewrite/field_rules.h): where each
 * head passes them.
 *
 *     if (settings->any_request_fields[FIELDS_AT_ORIGIN] &&
 *         !head_rules_change_outgoing(transaction, head)) ...     431
 *
 * The request of the client is changed by the step REWRITE, before services and the cache; the
 * request for the origin right before it is sent; the response of the origin when it has come, a
 * 304 that confirms a stored response as well; the reply when it is delivered.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_HEAD_RULES_H
#define RETORT_TRANSACTION_HEAD_RULES_H

#include "http/head.h"

struct transaction;

/* False: the head can not be changed as the rules want it, because it has too many fields, a value
 * becomes too long, or an expression needs too much work. It must not be used then. */
bool head_rules_change_request(struct transaction *transaction);
bool head_rules_change_outgoing(struct transaction *transaction, struct http_head *head);
bool head_rules_change_response(struct transaction *transaction, struct http_head *head);
/* Changes the reply that is about to be delivered: *head is its new head, NULL when it keeps the one
 * that it has, and *lines are more field lines. */
bool head_rules_change_reply(struct transaction *transaction, const struct http_head **head,
                             struct slice *lines);

/* What the client is told, for a request and for a response. */
extern const char head_rules_request_error[];
extern const char head_rules_response_error[];

/* Does a section that applies to the request for the origin depend on who asks? */
bool head_rules_tell_class(struct transaction *transaction);

#endif
