#include "http2/block.h"

#include "http2/closed.h"
#include "http2/frame.h"
#include "http2/session.h"

#include <stdlib.h>

static struct http2_stream *open_stream(struct http2_session *session, uint32_t id, bool ended) {
    struct http2_stream *stream = NULL;
    if (session->stream_count < session->limits.streams)
        stream = session->class->on_open(session);
    if (stream == NULL) {
        (*session->counts.refused)++;
        if (!ended)
            http2_closed_expect(session, session->limits.stream_window);
        http2_fault_refuse(session, id, HTTP2_REFUSED_STREAM);
        return NULL;
    }
    http2_stream_add(session, stream, id);
    stream->head_seen = true;
    stream->they_ended = ended;
    if (session->has_early)
        http2_early_priority_apply(session, stream);
    return stream;
}

/* The list is that of a request. After GOAWAY new streams are ignored with all that belongs to them
 * (RFC 9113 §6.8). */
static void block_take_request(struct http2_session *session, uint32_t id, struct hpack_list *list,
                               bool ended) {
    session->last_in = id;
    session->opened_in_turn++;
    if (session->closing && !session->draining) {
        http2_closed_note(session, id);
        if (!ended)
            http2_closed_expect(session, session->limits.stream_window);
        http2_session_spend(session, HTTP2_COST_FRAME);
        return;
    }
    session->last_taken = id;
    struct http2_stream *stream = open_stream(session, id, ended);
    if (stream != NULL && !session->class->on_head(stream, list, ended))
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
}

static void block_take_trailers(struct http2_stream *stream, const struct hpack_list *list,
                                bool ended) {
    if (!ended || !stream->session->class->on_trailers(stream, list))
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
    else
        http2_stream_note_their_end(stream);
}

static void block_take_response(struct http2_stream *stream, struct hpack_list *list, bool ended) {
    struct http2_session *session = stream->session;
    if (!session->class->on_head(stream, list, ended)) {
        if (!http2_stream_is_over(stream))
            http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
        return;
    }
    if (ended && !http2_stream_is_over(stream) && stream->head_seen)
        http2_stream_note_their_end(stream);
    else if (ended && !http2_stream_is_over(stream)) /* an interim response ends nothing */
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
}

static void block_take_head(struct http2_session *session, uint32_t id, struct hpack_list *list,
                            bool ended) {
    struct http2_stream *stream = http2_stream_known(session, id);
    if (stream != NULL && stream->they_ended)
        http2_stream_break(stream, HTTP2_STREAM_CLOSED);
    else if (stream != NULL && stream->head_seen)
        block_take_trailers(stream, list, ended);
    else if (stream != NULL)
        block_take_response(stream, list, ended);
    else if (session->side == HTTP2_SERVER && id % 2 == 1 && id > session->last_in)
        block_take_request(session, id, list, ended);
    else
        http2_closed_take(session, id);
}

/* The frame of the head was wrong in a way that concerns its stream only. */
static void block_refuse(struct http2_session *session, uint32_t id) {
    struct http2_stream *stream = http2_stream_known(session, id);
    if (stream != NULL) {
        http2_stream_break(stream, session->block_fault);
        return;
    }
    if (id % 2 == 0 || session->side == HTTP2_CLIENT) {
        http2_closed_take(session, id);
        return;
    }
    if (id > session->last_in)
        session->last_in = id;
    http2_fault_refuse(session, id, session->block_fault);
}

/* A whole head: all is decoded, also what is dropped, because later heads depend on it (RFC 7541
 * §2.2). */
static void block_decode(struct http2_session *session, struct slice block) {
    struct http2_frame head = session->block_of;
    struct hpack_list *list = http2_workspace_list(session->workspace, session->limits.max_head);
    session->in_block = false;
    session->continuations = 0;
    session->input_since = 0;
    switch (hpack_decode(&session->decoder, block, list)) {
    case HPACK_GOOD:
        if (session->block_fault == HTTP2_NO_ERROR)
            block_take_head(session, head.stream, list, head.flags & HTTP2_END_STREAM);
        else
            block_refuse(session, head.stream);
        break;
    case HPACK_BAD:
        http2_session_fail(session, HTTP2_COMPRESSION_ERROR, "a head that can't be decoded");
        break;
    case HPACK_TOO_MUCH:
        http2_session_fail(session, HTTP2_ENHANCE_YOUR_CALM, "a head that is far too large");
    }
}

/* A head that is too large has to be decoded as well, or all who share the connection would suffer:
 * so twice `max_head` may come, in frames of the size that everybody may send. */
static unsigned block_frames_most(const struct http2_session *session) {
    size_t frames = 2 * session->limits.max_head / HTTP2_FRAME_SIZE_DEFAULT;
    return frames > HTTP2_CONTINUATIONS_LEAST ? (unsigned)frames : HTTP2_CONTINUATIONS_LEAST;
}

/* While memory is short, only heads come that may be good. */
static size_t block_most(const struct http2_session *session) {
    size_t max_head = session->limits.max_head;
    return session->net->pressure == NET_FULL ? max_head : 2 * max_head + HTTP2_FRAME_SIZE_DEFAULT;
}

static void block_keep(struct http2_session *session, struct slice fragment) {
    if (session->block_length + fragment.length > block_most(session)) {
        http2_session_fail(session, HTTP2_ENHANCE_YOUR_CALM, "a head that is far too large");
        return;
    }
    net_context_hold(session->net, fragment.length);
    session->block = xrealloc(session->block, session->block_length + fragment.length + 1);
    memcpy(session->block + session->block_length, fragment.base, fragment.length);
    session->block_length += fragment.length;
}

void http2_block_release(struct http2_session *session) {
    net_context_drop(session->net, session->block_length);
    free(session->block);
    session->block = NULL;
    session->block_length = 0;
}

void http2_block_begin(struct http2_session *session, const struct http2_frame *frame,
                       struct slice payload) {
    struct http2_fault fault = http2_frame_strip_padding(frame, &payload);
    if (fault.error != HTTP2_NO_ERROR && !fault.of_stream) {
        http2_fault_end(session, 0, fault);
        return;
    }
    /* A fault of the stream is treated when the head has been decoded. */
    session->block_of = *frame;
    session->block_fault = fault.error;
    if (frame->flags & HTTP2_END_HEADERS) {
        block_decode(session, payload);
    } else {
        session->in_block = true;
        block_keep(session, payload);
    }
}

void http2_block_continue(struct http2_session *session, const struct http2_frame *frame,
                          struct slice payload) {
    if (!session->in_block || frame->stream != session->block_of.stream) {
        http2_session_fail(session, HTTP2_PROTOCOL_ERROR, "CONTINUATION without HEADERS");
        return;
    }
    if (++session->continuations > block_frames_most(session)) {
        http2_session_fail(session, HTTP2_ENHANCE_YOUR_CALM, "a head of too many frames");
        return;
    }
    block_keep(session, payload);
    if (session->phase != HTTP2_OPEN || !(frame->flags & HTTP2_END_HEADERS))
        return;
    block_decode(session, slice_make(session->block, session->block_length));
    http2_block_release(session);
}
