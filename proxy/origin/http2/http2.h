/*
 * HTTP/2 toward origins (RFC 9113): each call is a stream, and the calls of a site share a few
 * connections.
 *
 *     connections = origin_connections_new(net, &origin_http1_class, &origin_http2_class);
 *
 * Only proxy/worker.c includes this room, because it registers the protocol.
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_HTTP2_HTTP2_H
#define RETORT_ORIGIN_HTTP2_HTTP2_H

#include "origin/call.h"

extern const struct origin_call_class origin_http2_class;

#endif
