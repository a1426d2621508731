#include "http2/input.h"

#include "http2/block.h"
#include "http2/closed.h"
#include "http2/frame.h"
#include "http2/session.h"

/*
 * DATA as it is received (RFC 9113 §6.1, §6.9): its bytes count for the windows, and go to the stream that
 * they are for as they come, without waiting for the rest of the frame.
 */

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

/* `padding` has its own byte in front. */
static void http2_data_begin(struct http2_session *session, const struct http2_frame *frame,
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

/* Takes what there is of the frame that has begun. */
static void http2_data_take(struct http2_session *session, struct slice *bytes) {
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

/* What one connection is read before others get their turn, in bytes. */
enum { INPUT_TURN = 1024 * 1024 };

/* Control */

static void on_rst_stream(struct http2_session *session, const struct http2_frame *frame,
                          struct slice payload) {
    struct http2_stream *stream = http2_stream_known(session, frame->stream);
    uint32_t error = http2_get32(payload.base);
    if (stream == NULL && http2_closed_is_unopened(session, frame->stream)) {
        http2_session_fail(session, HTTP2_PROTOCOL_ERROR,
                           "RST_STREAM for a stream that nobody has opened");
        return;
    }
    (*session->counts.resets_in)++;
    if (stream != NULL) {
        /* "A client MUST NOT treat a RST_STREAM with NO_ERROR behind a whole response as an error"
         * (RFC 9113 §8.1, in other words). */
        stream->failed |= !stream->they_ended;
        http2_stream_forget(stream);
        session->class->on_over(stream, (enum http2_error)error, error != HTTP2_REFUSED_STREAM);
    }
    /* Only a server says so when all is well. */
    if (stream == NULL)
        http2_closed_spend(session, HTTP2_COST_RESET);
    else if (error != HTTP2_NO_ERROR || session->side == HTTP2_SERVER)
        http2_session_spend(session, HTTP2_COST_RESET);
}

/* Grows or shrinks the windows of all streams (RFC 9113 §6.9.2). */
static bool change_windows(struct http2_session *session, uint32_t window) {
    int64_t by = (int64_t)window - session->peer.window;
    if (by == 0)
        return true;
    session->peer.window = window;
    LIST_FOR_EACH (link, &session->streams) {
        struct http2_stream *stream = CONTAINER_OF(link, struct http2_stream, link);
        bool was_shut = stream->send_window <= 0;
        if (stream->send_window + by > HTTP2_WINDOW_MOST)
            return false;
        stream->send_window += by;
        if (was_shut && stream->send_window > 0 && stream->stuck_since != 0) {
            stream->stuck_since = 0;
            http2_stream_want(stream);
        }
    }
    return true;
}

/* False: the setting is not one that this side may have. */
static bool take_setting(struct http2_session *session, struct http2_peer *peer, uint16_t id,
                         uint32_t value) {
    switch (id) {
    case HTTP2_SETTING_ENABLE_PUSH: return session->side == HTTP2_SERVER || value == 0;
    case HTTP2_SETTING_MAX_CONCURRENT_STREAMS: peer->streams = value; return true;
    case HTTP2_SETTING_INITIAL_WINDOW_SIZE: peer->window = value; return true;
    case HTTP2_SETTING_MAX_FRAME_SIZE:
        peer->frame = value < HTTP2_FRAME_SENT ? value : HTTP2_FRAME_SENT;
        return true;
    case HTTP2_SETTING_MAX_HEADER_LIST_SIZE: peer->max_head = value; return true;
    case HTTP2_SETTING_ENABLE_CONNECT_PROTOCOL: /* "MUST NOT send ... 0 after ... 1" (RFC 8441 §3) */
        if (peer->tunnels && value == 0)
            return false;
        peer->tunnels = value == 1;
        return true;
    default: return true;
    }
}

static void on_settings(struct http2_session *session, const struct http2_frame *frame,
                        struct slice payload) {
    char acknowledgement[HTTP2_FRAME_HEAD];
    struct http2_peer peer = session->peer;
    uint16_t id;
    uint32_t value;
    if (!http2_session_spend(session, HTTP2_COST_FRAME))
        return;
    if (frame->flags & HTTP2_ACK) {
        session->acknowledged = true;
        hpack_decoder_acknowledged(&session->decoder);
        return;
    }
    while (http2_frame_next_setting(&payload, &id, &value)) {
        struct http2_fault fault = http2_setting_check(id, value);
        if (fault.error == HTTP2_NO_ERROR && !take_setting(session, &peer, id, value))
            fault = http2_connection_fault(HTTP2_PROTOCOL_ERROR, "a setting that is not allowed");
        if (fault.error != HTTP2_NO_ERROR) {
            http2_fault_end(session, 0, fault);
            return;
        }
    }
    uint32_t window = peer.window;
    peer.window = session->peer.window;
    peer.known = true;
    session->peer = peer;
    if (!change_windows(session, window)) {
        http2_session_fail(session, HTTP2_FLOW_CONTROL_ERROR, "a window larger than 2^31-1");
        return;
    }
    http2_frame_put_settings_ack(acknowledgement);
    http2_outbox_put(session, slice_make(acknowledgement, sizeof acknowledgement));
    http2_session_tell_change(session);
}

static void on_ping(struct http2_session *session, const struct http2_frame *frame,
                    struct slice payload) {
    char answer[HTTP2_FRAME_HEAD + HTTP2_PING_SIZE];
    if (frame->flags & HTTP2_ACK) {
        http2_session_on_pong(session);
        return;
    }
    if (!http2_session_take_answer(session))
        return;
    http2_frame_put_ping(answer, true, payload.base);
    http2_outbox_put(session, slice_make(answer, sizeof answer));
}

static void on_goaway(struct http2_session *session, struct slice payload) {
    uint32_t last, error;
    struct slice text;
    http2_frame_read_goaway(payload, &last, &error, &text);
    http2_session_spend(session, HTTP2_COST_FRAME);
    session->peer.leaving = true;
    enum http2_error refused =
        error == HTTP2_HTTP_1_1_REQUIRED ? HTTP2_HTTP_1_1_REQUIRED : HTTP2_REFUSED_STREAM;
    if (session->side == HTTP2_SERVER) /* we open none; those of the client go on */
        return;
    session->closing = true;
    LIST_FOR_EACH_SAFE (link, next, &session->streams) {
        struct http2_stream *stream = CONTAINER_OF(link, struct http2_stream, link);
        if (stream->id <= last && stream->we_began)
            continue;
        stream->failed |= !stream->they_ended;
        http2_stream_forget(stream);
        session->class->on_over(stream, refused, false);
    }
    http2_session_tell_change(session);
}

static void grow_window(struct http2_session *session, uint32_t increment) {
    if (session->send_window + increment > HTTP2_WINDOW_MOST) {
        http2_session_fail(session, HTTP2_FLOW_CONTROL_ERROR, "a window larger than 2^31-1");
        return;
    }
    bool was_shut = session->send_window <= 0;
    session->send_window += increment;
    if (session->send_window > 0)
        session->starved_since = 0;
    if (was_shut)
        http2_session_tell_change(session);
    while (session->send_window > 0 && !list_empty(&session->starved)) {
        struct http2_stream *stream =
            CONTAINER_OF(list_first(&session->starved), struct http2_stream, turn);
        list_remove(&stream->turn);
        stream->starved = false;
        http2_stream_want(stream);
    }
}

static void grow_stream(struct http2_stream *stream, uint32_t increment) {
    if (stream->send_window + increment > HTTP2_WINDOW_MOST) {
        http2_stream_break(stream, HTTP2_FLOW_CONTROL_ERROR);
        return;
    }
    stream->send_window += increment;
    if (stream->send_window > 0 && stream->stuck_since != 0) {
        stream->stuck_since = 0;
        http2_stream_want(stream);
    }
}

static void on_window_update(struct http2_session *session, const struct http2_frame *frame,
                             struct slice payload) {
    uint32_t increment;
    struct http2_stream *stream =
        frame->stream == 0 ? NULL : http2_stream_known(session, frame->stream);
    if (frame->stream != 0 && stream == NULL && http2_closed_is_unopened(session, frame->stream)) {
        http2_session_fail(session, HTTP2_PROTOCOL_ERROR,
                           "WINDOW_UPDATE for a stream that nobody has opened");
        return;
    }
    if (!http2_session_take_answer(session))
        return;
    struct http2_fault fault = http2_frame_read_window_update(frame, payload.base, &increment);
    if (fault.error != HTTP2_NO_ERROR)
        http2_fault_end(session, frame->stream, fault);
    else if (frame->stream == 0)
        grow_window(session, increment);
    else if (stream != NULL)
        grow_stream(stream, increment);
}

/* Streams have urgencies only (RFC 9218): the tree of RFC 7540 is not kept. */
static void on_priority(struct http2_session *session, const struct http2_frame *frame,
                        struct slice payload) {
    if (http2_session_spend(session, HTTP2_COST_FRAME))
        http2_fault_end(session, frame->stream, http2_frame_read_priority(frame, payload.base));
}

static void on_priority_update(struct http2_session *session, struct slice payload) {
    uint32_t id;
    struct slice value;
    if (!http2_session_spend(session, HTTP2_COST_FRAME))
        return;
    struct http2_fault fault = http2_frame_read_priority_update(payload, &id, &value);
    if (session->side == HTTP2_CLIENT)
        fault = http2_connection_fault(HTTP2_PROTOCOL_ERROR, "PRIORITY_UPDATE from a server");
    if (fault.error != HTTP2_NO_ERROR) {
        http2_fault_end(session, 0, fault);
        return;
    }
    struct http2_stream *stream = http2_stream_known(session, id);
    struct http2_priority priority;
    if (stream == NULL) {
        http2_early_priority_keep(session, id, value);
        return;
    }
    http2_priority_parse(value, &priority);
    http2_stream_update_priority(stream, &priority);
}

/* A whole frame that is not DATA. */
static void take_frame(struct http2_session *session, const struct http2_frame *frame,
                       struct slice payload) {
    switch (frame->type) {
    case HTTP2_HEADERS: http2_block_begin(session, frame, payload); break;
    case HTTP2_CONTINUATION: http2_block_continue(session, frame, payload); break;
    case HTTP2_RST_STREAM: on_rst_stream(session, frame, payload); break;
    case HTTP2_SETTINGS: on_settings(session, frame, payload); break;
    case HTTP2_PING: on_ping(session, frame, payload); break;
    case HTTP2_GOAWAY: on_goaway(session, payload); break;
    case HTTP2_WINDOW_UPDATE: on_window_update(session, frame, payload); break;
    case HTTP2_PRIORITY: on_priority(session, frame, payload); break;
    case HTTP2_PRIORITY_UPDATE: on_priority_update(session, payload); break;
    default: http2_session_spend(session, HTTP2_COST_FRAME); /* "MUST ignore" (RFC 9113 §5.5) */
    }
}

/* Which frames may come now at all? */
static struct http2_fault check_order(const struct http2_session *session,
                                      const struct http2_frame *frame) {
    if (!session->peer.known && (frame->type != HTTP2_SETTINGS || frame->flags & HTTP2_ACK))
        return http2_connection_fault(HTTP2_PROTOCOL_ERROR, "SETTINGS must come first");
    if (session->in_block && frame->type != HTTP2_CONTINUATION)
        return http2_connection_fault(HTTP2_PROTOCOL_ERROR, "a frame inside a head");
    return http2_frame_check(frame, session->limits.frame);
}

/* True: a frame, or a part of DATA, has been handled. */
static bool take_input(struct http2_session *session, struct slice *bytes) {
    struct http2_frame frame;
    if (session->in_data) {
        if (bytes->length == 0)
            return false;
        http2_data_take(session, bytes);
        return true;
    }
    if (bytes->length < HTTP2_FRAME_HEAD)
        return false;
    http2_frame_read(&frame, bytes->base);
    struct http2_fault fault = check_order(session, &frame);
    if (fault.error != HTTP2_NO_ERROR && !fault.of_stream) {
        http2_fault_end(session, 0, fault);
        return false;
    }
    struct slice rest =
        slice_make(bytes->base + HTTP2_FRAME_HEAD, bytes->length - HTTP2_FRAME_HEAD);
    if (frame.type == HTTP2_DATA) {
        bool padded = frame.flags & HTTP2_PADDED && frame.length > 0;
        if (padded && rest.length == 0)
            return false;
        uint32_t padding = padded ? 1u + (unsigned char)*rest.base : 0;
        *bytes = slice_make(rest.base + padded, rest.length - padded);
        if (padding > frame.length || (frame.flags & HTTP2_PADDED && !padded))
            http2_session_fail(session, HTTP2_PROTOCOL_ERROR, "padding longer than its frame");
        else
            http2_data_begin(session, &frame, padding);
        return true;
    }
    if (rest.length < frame.length)
        return false;
    *bytes = slice_make(rest.base + frame.length, rest.length - frame.length);
    if (fault.error != HTTP2_NO_ERROR)
        http2_fault_end(session, frame.stream, fault);
    else
        take_frame(session, &frame, slice_make(rest.base, frame.length));
    return true;
}

static bool take_preface(struct http2_session *session, struct slice *bytes) {
    struct slice preface = HTTP2_PREFACE;
    size_t there = bytes->length < preface.length ? bytes->length : preface.length;
    if (memcmp(bytes->base, preface.base, there) != 0) {
        http2_session_fail(session, HTTP2_PROTOCOL_ERROR,
                           "the connection does not begin as HTTP/2");
        return false;
    }
    if (there < preface.length)
        return false;
    session->preface_seen = true;
    *bytes = slice_make(bytes->base + there, bytes->length - there);
    return true;
}

/* Reading goes on while what we have put is not taken: "Failure to read in a timely manner could lead to
 * a deadlock" (RFC 9113 §5.2.2). But nobody makes us hold answers without end. */
static bool is_clogged(const struct http2_session *session) {
    return http2_session_is_stuck(session) &&
           http2_outbox_length(&session->outbox) >= HTTP2_CLOGGED;
}

/* Handles the frames in the buffer. False: it is the turn of others, or the connection is over. */
static bool take_buffered(struct http2_session *session) {
    while (session->buffer != NULL && session->phase == HTTP2_OPEN) {
        struct slice bytes = net_buffer_bytes(session->buffer);
        if (session->opened_in_turn >= HTTP2_TURN_STREAMS || is_clogged(session))
            return false;
        bool more =
            session->preface_seen ? take_input(session, &bytes) : take_preface(session, &bytes);
        session->buffer->begin = session->buffer->end - bytes.length;
        if (!more)
            return session->phase == HTTP2_OPEN;
        if (!session->in_block)
            session->input_since = 0;
    }
    return session->phase == HTTP2_OPEN;
}

/* Reads once. False: nothing has come. */
static bool input_fill(struct http2_session *session) {
    size_t got;
    struct net_context *net = session->net;
    if (session->buffer == NULL)
        session->buffer = net_buffer_take(net);
    if (session->buffer->begin == session->buffer->end)
        session->buffer->begin = session->buffer->end = 0;
    if (session->buffer->end == session->buffer->capacity &&
        !net_buffer_make_room(net, &session->buffer, 2 * (size_t)session->limits.frame)) {
        http2_session_broke(session);
        return false;
    }
    switch (connection_read(session->socket, session->buffer->data + session->buffer->end,
                            session->buffer->capacity - session->buffer->end, &got)) {
    case IO_DONE:
        session->buffer->end += got;
        *session->counts.bytes_in += got;
        return true;
    case IO_WAIT: return false;
    default: http2_session_broke(session); return false;
    }
}

/* A frame or a head that has begun is to be complete in time; bodies have deadlines of their own. */
static void note_rest(struct http2_session *session) {
    bool rest = session->buffer != NULL && session->buffer->begin < session->buffer->end;
    if (session->buffer != NULL && !rest)
        net_buffer_give(session->net, &session->buffer);
    bool waits = (rest && !session->in_data) || session->in_block || !session->peer.known;
    if (!waits || is_clogged(session)) {
        session->input_since = 0;
    } else if (session->input_since == 0) {
        session->input_since = session->net->loop->now;
        http2_session_wake_at(session, session->input_since + session->limits.head_timeout);
    }
}

void http2_input_read(struct http2_session *session) {
    uint64_t enough = *session->counts.bytes_in + INPUT_TURN;
    session->opened_in_turn = 0;
    while (take_buffered(session)) {
        if (*session->counts.bytes_in >= enough || !session->socket->readable ||
            !input_fill(session))
            break;
    }
    if (*session->counts.bytes_in >= enough || session->opened_in_turn >= HTTP2_TURN_STREAMS)
        loop_defer(session->net->loop, &session->task); /* reads on when others had their turn */
    note_rest(session);
}

void http2_input_release(struct http2_session *session) {
    net_buffer_give(session->net, &session->buffer);
    http2_block_release(session);
    hpack_decoder_release(&session->decoder);
}
