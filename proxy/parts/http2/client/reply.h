/*
 * A reply on its way to the client: its head becomes a block of HPACK, its body DATA frames.
 *
 *     http2_reply_start(exchange, &reply);
 *     while (http2_reply_turn(exchange)) ...        whenever it is the stream's turn
 *
 * What can leave at once leaves at once, without a turn: most hits do.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_CLIENT_REPLY_H
#define RETORT_HTTP2_CLIENT_REPLY_H

#include "http2/client/exchange.h"

void http2_reply_start(struct exchange *exchange, const struct reply *reply);
/* Puts the head, or about as much of the body as one write takes. False: nothing can be put now; the
 * stream asks for its next turn itself, or all is sent. */
bool http2_reply_turn(struct http2_exchange *exchange);
/* A task: the body has more bytes. */
void http2_reply_on_body(struct task *task);

#endif
