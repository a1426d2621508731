/*
 * The beginning of a reply on the wire: its head, with the fields that say where the reply ends and
 * what becomes of the connection.
 *
 *     exchange->class->reply(exchange, &reply);       http1_reply_start; then http1_reply_sender goes on
 */
#ifndef RETORT_CLIENT_HTTP1_REPLY_H
#define RETORT_CLIENT_HTTP1_REPLY_H

#include "client/http1/exchange.h"

void http1_reply_start(struct exchange *exchange, const struct reply *reply);

#endif
