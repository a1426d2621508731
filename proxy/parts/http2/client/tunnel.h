/*
 * A tunnel on a stream: the duplex behind a CONNECT (RFC 9113 §8.5) or an extended one (RFC 8441).
 *
 *     struct duplex *duplex = http2_tunnel_open(exchange, head, protocol);
 *     http2_tunnel_wake(exchange);                  a read or a write may do more
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_CLIENT_TUNNEL_H
#define RETORT_HTTP2_CLIENT_TUNNEL_H

#include "http2/client/exchange.h"

struct duplex *http2_tunnel_open(struct exchange *exchange, struct http_head *head,
                                 struct slice protocol);
void http2_tunnel_wake(struct http2_exchange *exchange);

#endif
