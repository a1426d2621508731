/*
 * Sends a reply that has begun: head, framing and body, as far as the socket takes them and the
 * body has arrived.
 *
 *     http1_reply_sender_send(exchange);       again when the socket is writable or the body has grown
 *
 * The exchange's state becomes SENT, or ABORTED where the body failed.
 */
#ifndef RETORT_CLIENT_HTTP1_REPLY_SENDER_H
#define RETORT_CLIENT_HTTP1_REPLY_SENDER_H

#include "client/http1/exchange.h"

/* Most pieces of a body that one write takes. */
enum { HTTP1_PIECES = 16 };

void http1_reply_sender_send(struct http1_exchange *exchange);
/* More of the body can be read. */
void http1_reply_sender_on_body(struct task *task);
/* Begins to read that body, of which all is sent unless the caller chooses a part of it. */
void http1_reply_sender_read(struct http1_exchange *exchange, struct body *body);

#endif
