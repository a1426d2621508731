#include "origin/http2/call.h"

#include "base/assert.h"
#include "http2/hpack_encode.h"
#include "http2/session.h"

/* Sends a request: its head in the stream's first turn, then its body as fast as the source gives
 * it and the windows of the origin take it. */

static struct slice send_scheme(const struct origin_call *call) {
    return call->request.security != NULL ? SLICE("https") : SLICE("http");
}

/* "TE: trailers" is the one field of a connection that may be sent (RFC 9113 §8.2.2). It is written
 * as hpack_encode.h writes others: the length of the name, the name, and the same of the value. */
static char *put_te(char *at, const struct http_head *fields) {
    static const char te[] = "\020\002te\010trailers";
    return http_head_has(fields, HTTP_TE) ? slice_put(at, slice_make(te, sizeof te - 1)) : at;
}

/* The block lives as long as the call. */
static struct slice write_block(const struct origin_call *call, bool is_first) {
    const struct http_head *fields = call->request.fields;
    struct slice authority = http_head_value(fields, HTTP_HOST);
    size_t room = 64 + hpack_fields_room(fields) + HPACK_ROOM(fields->method.length) +
                  HPACK_ROOM(authority.length) + HPACK_ROOM(fields->target.length) +
                  HPACK_ROOM(sizeof "https");
    char *block = arena_alloc(call->request.arena, room), *at = block;
    if (is_first)
        at = hpack_put_no_table(at);
    at = hpack_put_method(at, fields->method);
    at = hpack_put_scheme(at, send_scheme(call));
    if (authority.length > 0)
        at = hpack_put_authority(at, authority);
    at = hpack_put_path(at, fields->target);
    at = hpack_put_fields(at, fields);
    at = put_te(at, fields);
    ASSERT((size_t)(at - block) <= room);
    return slice_make(block, (size_t)(at - block));
}

static void send_head(struct origin_http2 *http2) {
    struct http2_session *session = http2->stream.session;
    bool is_first = !session->size_update_sent;
    session->size_update_sent = true;
    http2->head_sent = true;
    http2_stream_put_head(&http2->stream, write_block(http2->call, is_first), http2->body_sent);
}

/* The origin's time runs from the last byte of the request. */
static void note_sent(struct origin_call *call) {
    if (call->state == ORIGIN_WAITING)
        origin_call_await(call, call->request.first_byte_timeout);
}

/* A body that ended early is never completed. */
static void origin_http2_broke_off(struct origin_http2 *http2) {
    origin_call_fail(http2->call, ORIGIN_NO_REQUEST,
                     "the request's body could not be read to its end");
}

static void send_bytes(struct origin_http2 *http2, char *bytes, size_t length, bool ended) {
    struct iovec piece = {bytes, length};
    http2->body_sent = ended;
    http2_stream_put_data(&http2->stream, &piece, length > 0, length, ended);
    note_sent(http2->call);
}

/* The head has announced a length, if the source has one. */
static bool is_too_much(const struct origin_http2 *http2, const struct source *source) {
    return source->length >= 0 && http2->taken > (uint64_t)source->length;
}

/* Sends one piece of the body. True: there may be more. */
static bool send_piece(struct origin_http2 *http2, struct net_buffer *buffer, size_t room) {
    struct origin_call *call = http2->call;
    struct source *source = call->request.body;
    size_t got;
    switch (source_read(source, buffer->data, room, &got)) {
    case SOURCE_DATA: break;
    case SOURCE_WAIT:
        if (call->state == ORIGIN_WAITING)
            origin_call_pause(call); /* it waits for us */
        return false;
    case SOURCE_END:
        if (source->length >= 0 && http2->taken != (uint64_t)source->length)
            origin_http2_broke_off(http2);
        else
            send_bytes(http2, buffer->data, 0, true);
        return false;
    default: origin_http2_broke_off(http2); return false;
    }
    call->body_begun = true;
    http2->taken += got;
    if (is_too_much(http2, source)) {
        origin_http2_broke_off(http2);
        return false;
    }
    bool is_last = source->length >= 0 && http2->taken == (uint64_t)source->length;
    send_bytes(http2, buffer->data, got, is_last);
    return !is_last;
}

static bool send_body(struct origin_http2 *http2) {
    struct net_context *net = http2->call->net;
    size_t room = http2_stream_room(&http2->stream);
    if (room == 0)
        return false;
    struct net_buffer *buffer = net_buffer_take_large(net);
    if (buffer == NULL)
        buffer = net_buffer_take(net);
    bool more = send_piece(http2, buffer, room < buffer->capacity ? room : buffer->capacity);
    net_buffer_give(net, &buffer);
    return more;
}

bool origin_http2_on_turn(struct http2_stream *stream) {
    struct origin_call *call = origin_http2_call(stream);
    struct origin_http2 *http2 = origin_http2_of(call);
    if (!http2->head_sent) {
        send_head(http2);
        return !http2->body_sent;
    }
    if (http2->body_sent || http2->deaf || call->request.body == NULL)
        return false;
    return send_body(http2);
}
