#include "http2/closed.h"

#include "http2/frame.h"

bool http2_closed_is_unopened(const struct http2_session *session, uint32_t id) {
    bool from_client = id % 2 == 1;
    if (session->side == HTTP2_SERVER)
        return !from_client || id > session->last_in;
    if (!from_client || id >= session->next_out)
        return true;
    const struct http2_stream *stream = http2_stream_find(session, id);
    return stream != NULL && !stream->we_began;
}

/* Of streams long ago we do not know: that is nobody's fault either. */
static bool was_cut(const struct http2_session *session, uint32_t id) {
    uint32_t newest = session->side == HTTP2_SERVER ? session->last_in : session->next_out;
    unsigned at = (id >> 1) % HTTP2_CUT_KEPT;
    return newest - id >= 2 * HTTP2_CUT_KEPT || (session->cut[at / 64] >> at % 64 & 1);
}

/* Frames that may be under way still cost nothing. Otherwise users who leave would end the connection to
 * an origin that others share with them, and answers that come before their uploads have ended would
 * end the connection of a good client. */
bool http2_closed_spend(struct http2_session *session, unsigned units) {
    if (session->late == 0)
        return http2_session_spend(session, units);
    session->late--;
    return true;
}

/* A frame that makes sense for an open stream only. False: the connection is over. */
static bool check_ended(struct http2_session *session, uint32_t id) {
    if (http2_closed_is_unopened(session, id))
        http2_session_fail(session, HTTP2_PROTOCOL_ERROR,
                           "a frame for a stream that nobody has opened");
    else if (!was_cut(session, id))
        http2_session_fail(session, HTTP2_STREAM_CLOSED, "a frame for a stream that has ended");
    else
        return true;
    return false;
}

bool http2_closed_take(struct http2_session *session, uint32_t id) {
    return check_ended(session, id) && http2_closed_spend(session, HTTP2_COST_FRAME);
}

/* Bytes cost nothing that the window of the stream had let through. Empty frames need no window, and
 * http2_data_begin counts those that end nothing. */
void http2_closed_take_data(struct http2_session *session, const struct http2_frame *frame) {
    if (!check_ended(session, frame->stream))
        return;
    if (frame->length == 0 && frame->flags & HTTP2_END_STREAM)
        http2_closed_spend(session, HTTP2_COST_FRAME);
    else if (frame->length <= session->late_bytes)
        session->late_bytes -= frame->length;
    else
        http2_session_spend(session, HTTP2_COST_FRAME);
}
