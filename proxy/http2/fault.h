/*
 * What a fault of the other side ends (RFC 9113 §5.4): its stream, by RST_STREAM, or the connection.
 *
 *     http2_fault_end(session, frame.stream, http2_frame_check(&frame, 16384));
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_FAULT_H
#define RETORT_HTTP2_FAULT_H

#include "http2/session.h"

/* What was wrong with a frame of that stream, if anything was. */
void http2_fault_end(struct http2_session *session, uint32_t id, struct http2_fault fault);
/* Resets a stream that the session does not know. */
void http2_fault_refuse(struct http2_session *session, uint32_t id, enum http2_error error);

#endif
