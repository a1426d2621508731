/*
 * A request of HTTP/2: the fields of its head become an exchange.
 *
 *     if (!http2_request_read(exchange, list, ended)) ...       malformed: the stream is reset
 *
 * Threads: the worker's.
 */
#ifndef RETORT_CLIENT_HTTP2_REQUEST_H
#define RETORT_CLIENT_HTTP2_REQUEST_H

#include "client/http2/exchange.h"

/* `ended`: the request has no body. A head that is too large becomes an exchange with an error
 * status, so that it is answered and logged. */
bool http2_request_read(struct http2_exchange *exchange, struct hpack_list *list, bool ended);
bool http2_request_check_trailers(const struct hpack_list *list);

#endif
