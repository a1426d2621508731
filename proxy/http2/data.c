#include "http2/data.h"

#include "http2/closed.h"
#include "http2/fault.h"
#include "http2/frame.h"

/* The bytes count for the windows even if nobody wants them (RFC 9113 §6.9). */
static struct http2_stream *stream_of_data(struct http2_session *session,
                                           const struct http2_frame *frame) {
    struct http2_stream *stream = http2_stream_known(session, frame->stream);
    if (stream == NULL) {
        http2_closed_take_data(session, frame);
        return NULL;
    }
    struct http2_fault fault = http2_no_fault();
    if (stream->they_ended)
        fault = http2_stream_fault(HTTP2_STREAM_CLOSED, NULL);
    else if (!stream->head_seen)
        fault = http2_stream_fault(HTTP2_PROTOCOL_ERROR, NULL);
    else if (frame->length > stream->window)
        fault = http2_stream_fault(HTTP2_FLOW_CONTROL_ERROR, NULL);
    else
        stream->window -= frame->length;
    http2_fault_end(session, frame->stream, fault);
    return fault.error == HTTP2_NO_ERROR ? stream : NULL;
}

/* Padding and what is dropped need not wait to be read. */
static void data_unread(struct http2_session *session, struct http2_stream *stream,
                        uint32_t bytes) {
    if (bytes == 0)
        return;
    if (stream != NULL)
        http2_stream_credit(stream, bytes);
    else
        http2_session_credit(session, bytes);
}

static void data_done(struct http2_session *session) {
    struct http2_stream *stream = session->data_stream;
    session->data_stream = NULL;
    session->in_data = false;
    if (stream != NULL && session->data.flags & HTTP2_END_STREAM)
        http2_stream_note_their_end(stream);
}

void http2_data_begin(struct http2_session *session, const struct http2_frame *frame,
                      uint32_t padding) {
    if (frame->length > session->window) {
        http2_session_fail(session, HTTP2_FLOW_CONTROL_ERROR,
                           "more data than the connection's window");
        return;
    }
    session->window -= frame->length;
    http2_session_tell_window(session);
    struct http2_stream *stream = stream_of_data(session, frame);
    if (session->phase != HTTP2_OPEN)
        return;
    bool empty = frame->length == padding && !(frame->flags & HTTP2_END_STREAM);
    if (empty && !http2_session_spend(session, HTTP2_COST_FRAME))
        return;
    uint32_t bytes = frame->length - padding;
    if (stream != NULL && stream->expected >= 0 &&
        bytes > (uint64_t)stream->expected - stream->received) {
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
        stream = NULL;
    }
    session->data = *frame;
    session->in_data = true;
    session->data_stream = stream;
    session->data_left = bytes;
    session->data_padding = padding > 0 ? padding - 1 : 0;
    data_unread(session, stream, padding);
    if (session->data_left == 0 && session->data_padding == 0)
        data_done(session);
}

void http2_data_take(struct http2_session *session, struct slice *bytes) {
    struct http2_stream *stream = session->data_stream;
    size_t length = bytes->length < session->data_left ? bytes->length : session->data_left;
    if (length > 0 && stream == NULL) {
        data_unread(session, NULL, (uint32_t)length);
    } else if (length > 0 && !spool_append(&stream->in, bytes->base, length)) {
        http2_stream_break(stream, HTTP2_INTERNAL_ERROR); /* there is no memory */
        data_unread(session, NULL, (uint32_t)length);
    } else if (length > 0) {
        stream->received += length;
        session->class->on_body(stream);
    }
    session->data_left -= (uint32_t)length;
    *bytes = slice_make(bytes->base + length, bytes->length - length);
    size_t skip = bytes->length < session->data_padding ? bytes->length : session->data_padding;
    session->data_padding -= (uint32_t)skip;
    *bytes = slice_make(bytes->base + skip, bytes->length - skip);
    if (session->data_left == 0 && session->data_padding == 0)
        data_done(session);
}
