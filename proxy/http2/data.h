/*
 * DATA as it is received (RFC 9113 §6.1, §6.9): its bytes count for the windows, and go to the stream that
 * they are for as they come, without waiting for the rest of the frame.
 *
 *     http2_data_begin(session, &frame, padding);
 *     while (session->in_data)
 *         http2_data_take(session, &bytes);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_DATA_H
#define RETORT_HTTP2_DATA_H

#include "http2/session.h"

/* `padding` has its own byte in front. */
void http2_data_begin(struct http2_session *session, const struct http2_frame *frame,
                      uint32_t padding);
/* Takes what there is of the frame that has begun. */
void http2_data_take(struct http2_session *session, struct slice *bytes);

#endif
