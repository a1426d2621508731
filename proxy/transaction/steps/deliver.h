/*
 * DELIVER: the answer goes to the client.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_DELIVER_H
#define RETORT_TRANSACTION_STEPS_DELIVER_H

#include "client/exchange.h"

struct delivery {
    bool replied;
    struct reply reply;
};

struct transaction;

/* The status line and the fields, in the arena. */
struct slice delivery_write_head(struct transaction *transaction, const struct http_head *head);

#endif
