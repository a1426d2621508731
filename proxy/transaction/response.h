/*
 * The response of a transaction as it is now: what the origin or a service sent, with what services
 * have made of it since. A hit has none: its response is an object.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_RESPONSE_H
#define RETORT_TRANSACTION_RESPONSE_H

#include "event/source.h"
#include "http/head.h"

struct response {
    struct http_head *head;             /* NULL: there is none */
    struct source *body;                /* owned */
    time_t request_time, response_time; /* RFC 9111 §4.2.3 */
};

struct transaction;

/* One without Date is of when it came (RFC 9110 §6.6.1). */
void response_date(struct transaction *transaction);

#endif
