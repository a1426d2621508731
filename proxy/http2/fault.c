#include "http2/fault.h"

#include "http2/closed.h"
#include "http2/frame.h"

void http2_fault_refuse(struct http2_session *session, uint32_t id, enum http2_error error) {
    char frame[HTTP2_FRAME_HEAD + 4];
    http2_frame_put_rst_stream(frame, id, error);
    http2_outbox_put(session, slice_make(frame, sizeof frame));
    http2_closed_note(session, id);
    (*session->counts.resets_out)++;
    http2_session_spend(session, HTTP2_COST_RESET);
}

/* "RST_STREAM frames MUST NOT be sent for a stream in the idle state" (RFC 9113 §6.4, in other words):
 * then the connection ends. */
void http2_fault_end(struct http2_session *session, uint32_t id, struct http2_fault fault) {
    struct http2_stream *stream = http2_stream_known(session, id);
    if (fault.error == HTTP2_NO_ERROR)
        return;
    if (!fault.of_stream || http2_closed_is_unopened(session, id))
        http2_session_fail(session, fault.error, fault.text);
    else if (stream != NULL)
        http2_stream_break(stream, fault.error);
    else
        http2_fault_refuse(session, id, fault.error);
}
