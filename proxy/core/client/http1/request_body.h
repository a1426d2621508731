/*
 * The body of a request, as a source: first what came along with the head, then from the socket.
 *
 *     http1_request_body_init(exchange);                        when its head is parsed
 *     struct source *body = http1_request_body_take(exchange);
 *     bool clean = http1_request_body_skip(exchange);           before the next request
 *
 * "100 Continue" is sent when somebody begins to read it (RFC 9110 §10.1.1).
 */
#ifndef RETORT_CLIENT_HTTP1_REQUEST_BODY_H
#define RETORT_CLIENT_HTTP1_REQUEST_BODY_H

#include "client/http1/exchange.h"

void http1_request_body_init(struct http1_exchange *exchange);
struct source *http1_request_body_take(struct exchange *exchange);
/* As http1_request_body_skip, of a body that has not ended. */
bool http1_request_body_skip_rest(struct http1_exchange *exchange);
/* Reads away what nobody has read. True: the connection stands behind the body. What is in the
 * buffer already costs nothing; waiting for more is not worth it. */
static inline bool http1_request_body_skip(struct http1_exchange *exchange) {
    return exchange->body_ended || http1_request_body_skip_rest(exchange);
}

#endif
