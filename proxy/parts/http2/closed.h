/*
 * Streams that are closed or were never opened, and what still comes for them (RFC 9113 §5.1): whether
 * it is the other side's fault, and what it costs.
 *
 *     http2_closed_note(session, id);                 we have ended the stream, or ignore it
 *     http2_closed_expect(session, bytes);            so much of it may be under way
 *     ...
 *     if (http2_stream_known(session, frame.stream) == NULL)
 *         http2_closed_take(session, frame.stream);
 *
 * Of the last HTTP2_CUT_KEPT streams it is known which of them we have ended.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_CLOSED_H
#define RETORT_HTTP2_CLOSED_H

#include "http2/session.h"

/* We have ended the stream, or ignore it: what comes for it is not the other side's fault. */
static inline void http2_closed_note(struct http2_session *session, uint32_t id) {
    unsigned at = (id >> 1) % HTTP2_CUT_KEPT;
    session->cut[at / 64] |= UINT64_C(1) << at % 64;
}

static inline void http2_closed_forget(struct http2_session *session, uint32_t id) {
    unsigned at = (id >> 1) % HTTP2_CUT_KEPT;
    session->cut[at / 64] &= ~(UINT64_C(1) << at % 64);
}

/* Client: so many frames may still come for streams that we have ended. */
static inline void http2_closed_expect_frames(struct http2_session *session, unsigned frames) {
    if (session->late < HTTP2_LATE_MOST)
        session->late += frames;
}

/* We have ended a stream on which so many bytes may be under way, or refused it. On all streams
 * together there are no more than the window of the connection lets through. A client ends what it
 * sends once, with those bytes or behind them. */
static inline void http2_closed_expect(struct http2_session *session, uint32_t bytes) {
    session->late_bytes += bytes;
    if (session->late_bytes > session->window)
        session->late_bytes = session->window;
    if (session->side == HTTP2_CLIENT)
        http2_closed_expect_frames(session, HTTP2_LATE_FRAMES);
    else if (session->late < HTTP2_CUT_KEPT)
        session->late++;
}

/* Has the other side, or have we, never opened a stream of this id? */
bool http2_closed_is_unopened(const struct http2_session *session, uint32_t id);
/* A frame has come that makes sense for an open stream only. False: the connection is over. */
bool http2_closed_take(struct http2_session *session, uint32_t id);
/* Likewise DATA. */
void http2_closed_take_data(struct http2_session *session, const struct http2_frame *frame);
/* What a frame for a stream that we have ended costs. False: the connection is over. */
bool http2_closed_spend(struct http2_session *session, unsigned units);

#endif
