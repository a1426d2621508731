/*
 * The response of a transaction as it is now: what the origin or a service sent, with what services
 * have made of it since. A hit has none: its response is an object.
 *
 *     struct response *response = &transaction->response;
 *     response_set(response, head, &body);
 *     response_set_times(response, asked, answered);
 *     response_date(transaction);
 *     body = response_give_body(response);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_RESPONSE_H
#define RETORT_TRANSACTION_RESPONSE_H

#include "event/source.h"
#include "http/head.h"

/* Written by response.c. */
struct response {
    struct http_head *head;             /* NULL: there is none */
    struct source *body;                /* owned */
    time_t request_time, response_time; /* RFC 9111 §4.2.3 */
};

struct transaction;

/* The body becomes the response's; *bodyp may be NULL. */
void response_set(struct response *response, struct http_head *head, struct source **bodyp);
void response_set_head(struct response *response, struct http_head *head);
void response_set_times(struct response *response, time_t request_time, time_t response_time);
/* The body, for a chain of services or a pump; NULL: none. */
struct source *response_give_body(struct response *response);
void response_close_body(struct response *response);
/* Drops the response: there is none any more. */
void response_drop(struct response *response);
/* Gives a response without Date the time when it came (RFC 9110 §6.6.1). */
void response_date(struct transaction *transaction);

#endif
