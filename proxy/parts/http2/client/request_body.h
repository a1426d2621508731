/*
 * The body of a request, as a source: the data that has come on the exchange's stream.
 *
 *     http2_request_body_init(exchange);
 *     struct source *body = http2_request_body_take(exchange);
 *
 * "100 Continue" is sent when somebody begins to read it (RFC 9110 §10.1.1).
 */
#ifndef RETORT_HTTP2_CLIENT_REQUEST_BODY_H
#define RETORT_HTTP2_CLIENT_REQUEST_BODY_H

#include "http2/client/exchange.h"

void http2_request_body_init(struct http2_exchange *exchange);
struct source *http2_request_body_take(struct exchange *exchange);
/* The time is over in which something had to come. */
void http2_request_body_is_late(struct http2_exchange *exchange);
/* Bytes have come, or the end: its reader is woken, and the client's time does not run any more. */
void http2_request_body_came(struct http2_exchange *exchange);

#endif
