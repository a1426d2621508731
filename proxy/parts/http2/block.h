/*
 * A block of fields as it is received: the head of a request or a response, or trailers, in HEADERS and
 * CONTINUATION (RFC 9113 §4.3). It is put together with bounds on bytes and frames, decoded at once,
 * and handed to the stream that it is for, which a request opens.
 *
 *     http2_block_begin(session, &headers, payload);
 *     http2_block_continue(session, &continuation, payload);
 *     http2_block_release(session);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_BLOCK_H
#define RETORT_HTTP2_BLOCK_H

#include "http2/session.h"

void http2_block_begin(struct http2_session *session, const struct http2_frame *frame,
                       struct slice payload);
void http2_block_continue(struct http2_session *session, const struct http2_frame *frame,
                          struct slice payload);
/* Drops what has come of one. */
void http2_block_release(struct http2_session *session);

#endif
