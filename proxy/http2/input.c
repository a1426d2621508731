#include "http2/input.h"

#include "http2/frame.h"
#include "http2/session.h"

#include <stdlib.h>

/* What one connection is read before others get their turn, in bytes. */
enum { INPUT_TURN = 1024 * 1024 };

static void input_wrong(struct http2_session *session, enum http2_error error, const char *text) {
    http2_session_fail(session, error, text);
}

/* A stream that both sides know. A client's is not one before the head of its request has been sent:
 * until then nothing may come for it. */
static struct http2_stream *input_stream(const struct http2_session *session, uint32_t id) {
    struct http2_stream *stream = http2_stream_find(session, id);
    bool known = stream != NULL && (stream->we_began || session->side == HTTP2_SERVER);
    return known ? stream : NULL;
}

/* Has the other side, or have we, never opened a stream of this id? */
static bool is_unopened(const struct http2_session *session, uint32_t id) {
    bool from_client = id % 2 == 1;
    if (session->side == HTTP2_SERVER)
        return !from_client || id > session->last_in;
    if (!from_client || id >= session->next_out)
        return true;
    const struct http2_stream *stream = http2_stream_find(session, id);
    return stream != NULL && !stream->we_began;
}

/* Resets a stream that the session does not know. */
static void refuse_stream(struct http2_session *session, uint32_t id, enum http2_error error) {
    char frame[HTTP2_FRAME_HEAD + 4];
    http2_frame_put_rst_stream(frame, id, error);
    http2_outbox_put(session, slice_make(frame, sizeof frame));
    http2_session_note_cut(session, id);
    (*session->counts.resets_out)++;
    http2_session_spend(session, HTTP2_COST_RESET);
}

/* What was wrong with a frame ends its stream or the connection. "RST_STREAM frames MUST NOT be sent
 * for a stream in the idle state" (RFC 9113 §6.4, in other words): then the connection ends. */
static void input_fault(struct http2_session *session, uint32_t id, struct http2_fault fault) {
    struct http2_stream *stream = input_stream(session, id);
    if (fault.error == HTTP2_NO_ERROR)
        return;
    if (!fault.of_stream || is_unopened(session, id))
        input_wrong(session, fault.error, fault.text);
    else if (stream != NULL)
        http2_stream_break(stream, fault.error);
    else
        refuse_stream(session, id, fault.error);
}

/* Of streams long ago we do not know: that is nobody's fault either. */
static bool was_cut(const struct http2_session *session, uint32_t id) {
    uint32_t newest = session->side == HTTP2_SERVER ? session->last_in : session->next_out;
    unsigned at = (id >> 1) % HTTP2_CUT_KEPT;
    return newest - id >= 2 * HTTP2_CUT_KEPT || (session->cut[at / 64] >> at % 64 & 1);
}

/* A client may end many streams at once, whose frames are under way still: they cost nothing, since
 * otherwise users who leave would end the connection that others share with them. */
static bool spend_for_ended(struct http2_session *session, unsigned units) {
    if (session->late == 0)
        return http2_session_spend(session, units);
    session->late--;
    return true;
}

/* A frame that makes sense for an open stream only. False: the connection is over. */
static bool check_ended(struct http2_session *session, uint32_t id) {
    if (is_unopened(session, id))
        input_wrong(session, HTTP2_PROTOCOL_ERROR, "a frame for a stream that nobody has opened");
    else if (!was_cut(session, id))
        input_wrong(session, HTTP2_STREAM_CLOSED, "a frame for a stream that has ended");
    else
        return true;
    return false;
}

static bool check_closed(struct http2_session *session, uint32_t id) {
    return check_ended(session, id) && spend_for_ended(session, HTTP2_COST_FRAME);
}

/* The same for DATA: those bytes cost nothing that the window of the stream had let through. Empty
 * frames need no window, and on_data counts those that end nothing. */
static void check_closed_data(struct http2_session *session, const struct http2_frame *frame) {
    if (!check_ended(session, frame->stream))
        return;
    if (frame->length == 0 && frame->flags & HTTP2_END_STREAM)
        spend_for_ended(session, HTTP2_COST_FRAME);
    else if (frame->length <= session->late_bytes)
        session->late_bytes -= frame->length;
    else
        http2_session_spend(session, HTTP2_COST_FRAME);
}

/* The other side has ended its direction. */
static void they_ended(struct http2_stream *stream) {
    stream->they_ended = true;
    if (stream->expected >= 0 && stream->received != (uint64_t)stream->expected) {
        stream->failed = true;
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR); /* RFC 9113 §8.1.1 */
        return;
    }
    stream->session->class->on_body(stream);
    http2_stream_settle(stream);
}

/* Heads */

/* The other side may say how urgent a stream is before it opens it, and servers should keep the most
 * recent PRIORITY_UPDATE until then (RFC 9218 §7.1). A few are kept, of streams that it may open
 * before others end. */
static void keep_early_priority(struct http2_session *session, uint32_t id, struct slice value) {
    unsigned more = session->limits.streams - session->stream_count;
    if (id % 2 == 0 || id <= session->last_in || (id - session->last_in) / 2 > more)
        return;
    struct http2_early_priority *early = session->early, *end = early + HTTP2_EARLY_PRIORITIES;
    while (early < end && early->id != id)
        early++;
    if (early == end) {
        early = &session->early[session->early_next];
        session->early_next = (session->early_next + 1) % HTTP2_EARLY_PRIORITIES;
    }
    early->id = id;
    http2_priority_parse(value, &early->priority);
    session->has_early = true;
}

static void apply_early_priority(struct http2_session *session, struct http2_stream *stream) {
    session->has_early = false;
    for (unsigned i = 0; i < HTTP2_EARLY_PRIORITIES; i++) {
        struct http2_early_priority *early = &session->early[i];
        if (early->id == stream->id)
            http2_stream_update_priority(stream, &early->priority);
        if (early->id <= stream->id)
            early->id = 0;
        session->has_early |= early->id != 0;
    }
}

static struct http2_stream *open_stream(struct http2_session *session, uint32_t id, bool ended) {
    struct http2_stream *stream = NULL;
    if (session->stream_count < session->limits.streams)
        stream = session->class->on_open(session);
    if (stream == NULL) {
        (*session->counts.refused)++;
        if (!ended)
            http2_session_expect_late(session, session->limits.stream_window);
        refuse_stream(session, id, HTTP2_REFUSED_STREAM);
        return NULL;
    }
    http2_stream_add(session, stream, id);
    stream->head_seen = true;
    stream->they_ended = ended;
    if (session->has_early)
        apply_early_priority(session, stream);
    return stream;
}

/* The list is that of a request. After GOAWAY new streams are ignored with all that belongs to them
 * (RFC 9113 §6.8). */
static void input_request(struct http2_session *session, uint32_t id, struct hpack_list *list,
                          bool ended) {
    session->last_in = id;
    session->opened_in_turn++;
    if (session->closing && !session->draining) {
        http2_session_note_cut(session, id);
        if (!ended)
            http2_session_expect_late(session, session->limits.stream_window);
        http2_session_spend(session, HTTP2_COST_FRAME);
        return;
    }
    session->last_taken = id;
    struct http2_stream *stream = open_stream(session, id, ended);
    if (stream != NULL && !session->class->on_head(stream, list, ended))
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
}

static void input_trailers(struct http2_stream *stream, const struct hpack_list *list, bool ended) {
    if (!ended || !stream->session->class->on_trailers(stream, list))
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
    else
        they_ended(stream);
}

static void input_response(struct http2_stream *stream, struct hpack_list *list, bool ended) {
    struct http2_session *session = stream->session;
    if (!session->class->on_head(stream, list, ended)) {
        if (!http2_stream_is_over(stream))
            http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
        return;
    }
    if (ended && !http2_stream_is_over(stream) && stream->head_seen)
        they_ended(stream);
    else if (ended && !http2_stream_is_over(stream)) /* an interim response ends nothing */
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR);
}

static void input_head(struct http2_session *session, uint32_t id, struct hpack_list *list,
                       bool ended) {
    struct http2_stream *stream = input_stream(session, id);
    if (stream != NULL && stream->they_ended)
        http2_stream_break(stream, HTTP2_STREAM_CLOSED);
    else if (stream != NULL && stream->head_seen)
        input_trailers(stream, list, ended);
    else if (stream != NULL)
        input_response(stream, list, ended);
    else if (session->side == HTTP2_SERVER && id % 2 == 1 && id > session->last_in)
        input_request(session, id, list, ended);
    else
        check_closed(session, id);
}

/* The frame of the head was wrong in a way that concerns its stream only. */
static void refuse_head(struct http2_session *session, uint32_t id) {
    struct http2_stream *stream = input_stream(session, id);
    if (stream != NULL) {
        http2_stream_break(stream, session->block_fault);
        return;
    }
    if (id % 2 == 0 || session->side == HTTP2_CLIENT) {
        check_closed(session, id);
        return;
    }
    if (id > session->last_in)
        session->last_in = id;
    refuse_stream(session, id, session->block_fault);
}

/* A whole head: all is decoded, also what is dropped, because later heads depend on it (RFC 7541
 * §2.2). */
static void input_block(struct http2_session *session, struct slice block) {
    struct http2_frame head = session->block_of;
    struct hpack_list *list = http2_workspace_list(session->workspace, session->limits.max_head);
    session->in_block = false;
    session->continuations = 0;
    session->input_since = 0;
    switch (hpack_decode(&session->decoder, block, list)) {
    case HPACK_GOOD:
        if (session->block_fault == HTTP2_NO_ERROR)
            input_head(session, head.stream, list, head.flags & HTTP2_END_STREAM);
        else
            refuse_head(session, head.stream);
        break;
    case HPACK_BAD:
        input_wrong(session, HTTP2_COMPRESSION_ERROR, "a head that can't be decoded");
        break;
    case HPACK_TOO_MUCH:
        input_wrong(session, HTTP2_ENHANCE_YOUR_CALM, "a head that is far too large");
    }
}

/* A head that is too large has to be decoded as well, or all who share the connection would suffer:
 * so twice `max_head` may come, in frames of the size that everybody may send. */
static unsigned continuations_most(const struct http2_session *session) {
    size_t frames = 2 * session->limits.max_head / HTTP2_FRAME_SIZE_DEFAULT;
    return frames > HTTP2_CONTINUATIONS_LEAST ? (unsigned)frames : HTTP2_CONTINUATIONS_LEAST;
}

/* While memory is short, only heads come that may be good. */
static size_t block_most(const struct http2_session *session) {
    size_t max_head = session->limits.max_head;
    return session->net->pressure == NET_FULL ? max_head : 2 * max_head + HTTP2_FRAME_SIZE_DEFAULT;
}

static void keep_fragment(struct http2_session *session, struct slice fragment) {
    if (session->block_length + fragment.length > block_most(session)) {
        input_wrong(session, HTTP2_ENHANCE_YOUR_CALM, "a head that is far too large");
        return;
    }
    net_context_hold(session->net, fragment.length);
    session->block = xrealloc(session->block, session->block_length + fragment.length + 1);
    memcpy(session->block + session->block_length, fragment.base, fragment.length);
    session->block_length += fragment.length;
}

static void drop_block(struct http2_session *session) {
    net_context_drop(session->net, session->block_length);
    free(session->block);
    session->block = NULL;
    session->block_length = 0;
}

static void on_headers(struct http2_session *session, const struct http2_frame *frame,
                       struct slice payload) {
    struct http2_fault fault = http2_frame_strip_padding(frame, &payload);
    if (fault.error != HTTP2_NO_ERROR && !fault.of_stream) {
        input_fault(session, 0, fault);
        return;
    }
    /* A fault of the stream is treated when the head has been decoded. */
    session->block_of = *frame;
    session->block_fault = fault.error;
    if (frame->flags & HTTP2_END_HEADERS) {
        input_block(session, payload);
    } else {
        session->in_block = true;
        keep_fragment(session, payload);
    }
}

static void on_continuation(struct http2_session *session, const struct http2_frame *frame,
                            struct slice payload) {
    if (!session->in_block || frame->stream != session->block_of.stream) {
        input_wrong(session, HTTP2_PROTOCOL_ERROR, "CONTINUATION without HEADERS");
        return;
    }
    if (++session->continuations > continuations_most(session)) {
        input_wrong(session, HTTP2_ENHANCE_YOUR_CALM, "a head of too many frames");
        return;
    }
    keep_fragment(session, payload);
    if (session->phase != HTTP2_OPEN || !(frame->flags & HTTP2_END_HEADERS))
        return;
    input_block(session, slice_make(session->block, session->block_length));
    drop_block(session);
}

/* DATA */

/* The bytes count for the windows even if nobody wants them (RFC 9113 §6.9). */
static struct http2_stream *stream_of_data(struct http2_session *session,
                                           const struct http2_frame *frame) {
    struct http2_stream *stream = input_stream(session, frame->stream);
    if (stream == NULL) {
        check_closed_data(session, frame);
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
    input_fault(session, frame->stream, fault);
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
        they_ended(stream);
}

/* `padding` has its own byte in front. */
static void on_data(struct http2_session *session, const struct http2_frame *frame,
                    uint32_t padding) {
    if (frame->length > session->window) {
        input_wrong(session, HTTP2_FLOW_CONTROL_ERROR, "more data than the connection's window");
        return;
    }
    session->window -= frame->length;
    http2_session_tell_window(session);
    if (session->window == 0 && session->shut_since == 0)
        session->shut_since = session->net->loop->now_nanoseconds;
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

/* The bytes of a DATA frame, as they come. */
static void input_data(struct http2_session *session, struct slice *bytes) {
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

/* Control */

static void on_rst_stream(struct http2_session *session, const struct http2_frame *frame,
                          struct slice payload) {
    struct http2_stream *stream = input_stream(session, frame->stream);
    uint32_t error = http2_get32(payload.base);
    if (stream == NULL && is_unopened(session, frame->stream)) {
        input_wrong(session, HTTP2_PROTOCOL_ERROR,
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
        spend_for_ended(session, HTTP2_COST_RESET);
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
            input_fault(session, 0, fault);
            return;
        }
    }
    uint32_t window = peer.window;
    peer.window = session->peer.window;
    peer.known = true;
    session->peer = peer;
    if (!change_windows(session, window)) {
        input_wrong(session, HTTP2_FLOW_CONTROL_ERROR, "a window larger than 2^31-1");
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
        input_wrong(session, HTTP2_FLOW_CONTROL_ERROR, "a window larger than 2^31-1");
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
    struct http2_stream *stream = frame->stream == 0 ? NULL : input_stream(session, frame->stream);
    if (frame->stream != 0 && stream == NULL && is_unopened(session, frame->stream)) {
        input_wrong(session, HTTP2_PROTOCOL_ERROR,
                    "WINDOW_UPDATE for a stream that nobody has opened");
        return;
    }
    if (!http2_session_take_answer(session))
        return;
    struct http2_fault fault = http2_frame_read_window_update(frame, payload.base, &increment);
    if (fault.error != HTTP2_NO_ERROR)
        input_fault(session, frame->stream, fault);
    else if (frame->stream == 0)
        grow_window(session, increment);
    else if (stream != NULL)
        grow_stream(stream, increment);
}

/* Streams have urgencies only (RFC 9218): the tree of RFC 7540 is not kept. */
static void on_priority(struct http2_session *session, const struct http2_frame *frame,
                        struct slice payload) {
    if (http2_session_spend(session, HTTP2_COST_FRAME))
        input_fault(session, frame->stream, http2_frame_read_priority(frame, payload.base));
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
        input_fault(session, 0, fault);
        return;
    }
    struct http2_stream *stream = input_stream(session, id);
    struct http2_priority priority;
    if (stream == NULL) {
        keep_early_priority(session, id, value);
        return;
    }
    http2_priority_parse(value, &priority);
    http2_stream_update_priority(stream, &priority);
}

/* A whole frame that is not DATA. */
static void take_frame(struct http2_session *session, const struct http2_frame *frame,
                       struct slice payload) {
    switch (frame->type) {
    case HTTP2_HEADERS: on_headers(session, frame, payload); break;
    case HTTP2_CONTINUATION: on_continuation(session, frame, payload); break;
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
        input_data(session, bytes);
        return true;
    }
    if (bytes->length < HTTP2_FRAME_HEAD)
        return false;
    http2_frame_read(&frame, bytes->base);
    struct http2_fault fault = check_order(session, &frame);
    if (fault.error != HTTP2_NO_ERROR && !fault.of_stream) {
        input_fault(session, 0, fault);
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
            input_wrong(session, HTTP2_PROTOCOL_ERROR, "padding longer than its frame");
        else
            on_data(session, &frame, padding);
        return true;
    }
    if (rest.length < frame.length)
        return false;
    *bytes = slice_make(rest.base + frame.length, rest.length - frame.length);
    if (fault.error != HTTP2_NO_ERROR)
        input_fault(session, frame.stream, fault);
    else
        take_frame(session, &frame, slice_make(rest.base, frame.length));
    return true;
}

static bool take_preface(struct http2_session *session, struct slice *bytes) {
    struct slice preface = HTTP2_PREFACE;
    size_t there = bytes->length < preface.length ? bytes->length : preface.length;
    if (memcmp(bytes->base, preface.base, there) != 0) {
        input_wrong(session, HTTP2_PROTOCOL_ERROR, "the connection does not begin as HTTP/2");
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
    drop_block(session);
    hpack_decoder_release(&session->decoder);
}
