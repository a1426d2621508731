/*
 * HTTP/1.1 toward origins: each connection carries one request at a time, and returns to the pool
 * after a complete response.
 *
 *     connections = origin_pool_new(net, &origin_http1_class, &origin_http2_class);
 *
 * Only proxy/core/worker.c includes this room, because it registers the protocol.
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_HTTP1_HTTP1_H
#define RETORT_ORIGIN_HTTP1_HTTP1_H

#include "origin/call.h"

extern const struct origin_call_class origin_http1_class;

#endif
