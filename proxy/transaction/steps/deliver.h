/*
 * DELIVER: the answer goes to the client.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_DELIVER_H
#define RETORT_TRANSACTION_STEPS_DELIVER_H

#include "client/exchange.h"

struct transaction;

struct delivery {
    bool replied;
    struct reply reply;
};

/* Makes that the reply's head. */
void delivery_set_head(struct transaction *transaction, const struct http_head *head);
/* Makes an HTML page of ours the reply. Returns its head, for more fields. */
struct http_head *delivery_make_page(struct transaction *transaction, unsigned status,
                                     struct slice text);

#endif
