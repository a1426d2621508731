/*
 * HTTP/2 toward origins (RFC 9113): each call is a stream, and the calls of a site share a few
 * connections.
 *
 *     connections = origin_pool_new(net, &origin_http1_class, &origin_http2_class);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_ORIGIN_HTTP2_H
#define RETORT_HTTP2_ORIGIN_HTTP2_H

#include "origin/call.h"

extern const struct origin_call_class origin_http2_class;

#endif
