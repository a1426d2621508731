/*
 * The message that services are asked about, the same at each point: heads without what ends at
 * this hop (RFC 3507 §4.4.2), and beside them what the proxy itself knows.
 *
 *     struct adapt_message message;
 *     message_begin(transaction, &message, message_copy_request(transaction), response);
 *     message.body = body;
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_ADAPT_SHOWN_MESSAGE_H
#define RETORT_ADAPT_SHOWN_MESSAGE_H

#include "adapt/message.h"
#include "adapt/set.h"

struct transaction;

/* Begins the message that services are asked about, without a body yet. Fields that are not for
 * services are removed from its heads. `response` is NULL when services are asked about the
 * request. */
void message_begin(struct transaction *transaction, struct adapt_message *message,
                   struct http_head *request, struct http_head *response);
struct http_head *message_copy_request(struct transaction *transaction);
/* The response to a HEAD is not for services. They alone know some fields of the response to a GET,
 * so the response to a HEAD loses these fields. */
void message_remove_untold(struct transaction *transaction, struct http_head *response,
                           struct adapter *const *services, unsigned count);

#endif
