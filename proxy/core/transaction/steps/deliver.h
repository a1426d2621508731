/*
 * DELIVER: the answer goes to the client.
 *
 *     struct http_head *head = delivery_make_page(transaction, RESULT_ERROR, 502, text);
 *     http_head_add(head, SLICE("Retry-After"), SLICE("10"));
 *     delivery_close_connection(transaction);
 *     return STEP_DELIVER;
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_DELIVER_H
#define RETORT_TRANSACTION_STEPS_DELIVER_H

#include "client/exchange.h"
#include "transaction/outcome.h"

struct transaction;

/* Written by deliver.c. */
struct delivery {
    bool replied;
    struct body *page; /* of the proxy's own; NULL: none; referenced */
    struct reply reply;
};

/* Makes `head` the head of the reply. */
void delivery_set_head(struct transaction *transaction, const struct http_head *head);
/* Adds field lines to the reply. */
void delivery_add_lines(struct transaction *transaction, struct slice lines);
/* Makes an HTML page of ours the reply. Returns its head, for more fields. */
struct http_head *delivery_make_page(struct transaction *transaction, enum cache_result result,
                                     unsigned status, struct slice text);
/* Sends the client to another URL; in the log the request counts as denied. */
void delivery_redirect(struct transaction *transaction, unsigned status, struct slice to);
/* As delivery_make_page, with another Content-Type. */
struct http_head *delivery_make_typed_page(struct transaction *transaction,
                                           enum cache_result result, unsigned status,
                                           struct slice type, struct slice text);
/* Makes a response with that head and content the reply. The content is copied. */
void delivery_set_page(struct transaction *transaction, enum cache_result result,
                       const struct http_head *head, struct slice content);
/* No further request of the client may be read. */
void delivery_close_connection(struct transaction *transaction);
/* Releases the page. */
void delivery_release(struct transaction *transaction);

#endif
