/*
 * The frames that a session receives: read from its connection, checked, and handled one after the
 * other (RFC 9113 §4, §6).
 *
 *     http2_input_read(session);
 *
 * Frames other than DATA are handled when they are there as a whole; the bytes of DATA as they come.
 * A head is put together from its frames and decoded at once, with bounds on bytes and frames.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_INPUT_H
#define RETORT_HTTP2_INPUT_H

struct http2_session;

/* Handles frames until there are none, until what we answer is not taken, or until others have
 * their turn. */
void http2_input_read(struct http2_session *session);
void http2_input_release(struct http2_session *session);

#endif
