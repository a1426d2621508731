/*
 * What PRIORITY_UPDATE said of streams that are not open yet (RFC 9218 §7.1).
 *
 *     http2_early_priority_keep(session, id, value);
 *     ...
 *     if (session->has_early)
 *         http2_early_priority_apply(session, stream);        it has been opened
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_EARLY_PRIORITY_H
#define RETORT_HTTP2_EARLY_PRIORITY_H

#include "http2/session.h"

/* No effect for a stream that can't be opened next. The last HTTP2_EARLY_PRIORITIES are kept. */
void http2_early_priority_keep(struct http2_session *session, uint32_t id, struct slice value);
void http2_early_priority_apply(struct http2_session *session, struct http2_stream *stream);

#endif
