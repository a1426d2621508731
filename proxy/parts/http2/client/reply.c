#include "http2/client/reply.h"

#include "http2/hpack_encode.h"

void http2_reply_on_body(struct task *task) {
    struct http2_exchange *exchange = CONTAINER_OF(task, struct http2_exchange, reader_task);
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    if (exchange->base.state == EXCHANGE_SENDING)
        http2_stream_want(&exchange->stream);
}

static void reply_sent(struct http2_exchange *exchange) {
    exchange->base.state = EXCHANGE_SENT;
    if (exchange->base.waker != NULL)
        loop_defer(exchange->connection->net->loop, exchange->base.waker);
}

/* The head */

static size_t head_room(const struct reply *reply) {
    size_t room = HPACK_STATUS_ROOM + HPACK_NUMBER_ROOM + hpack_text_room(reply->extra.length);
    return room + (reply->head != NULL ? hpack_fields_room(reply->head)
                                       : hpack_text_room(reply->stored.length));
}

static char *put_stored(struct head_blocks *blocks, char *at, struct slice stored) {
    struct slice block = head_blocks_find(blocks, stored);
    if (block.base != NULL)
        return slice_put(at, block);
    char *end = hpack_put_response_text(at, stored);
    head_blocks_keep(blocks, stored, slice_make(at, (size_t)(end - at)));
    return end;
}

static void reply_put_head(struct http2_exchange *exchange, bool ended) {
    const struct reply *reply = &exchange->reply;
    char *block = http2_block(exchange->connection->host, head_room(reply)), *at = block;
    if (reply->head != NULL)
        at = hpack_put_fields(hpack_put_status(at, reply->status), reply->head);
    else
        at = put_stored(&exchange->connection->host->head_blocks, at, reply->stored);
    at = hpack_put_lines(at, reply->extra);
    if (reply->length >= 0 && !reply_has_no_content(reply))
        at = hpack_put_number(at, HTTP_CONTENT_LENGTH, reply->length);
    exchange->head_sent = true;
    http2_exchange_put_block(exchange, block, at, ended);
    exchange->base.head_bytes = exchange->base.bytes_sent;
}

/* The body */

static void read_body(struct http2_exchange *exchange, uint64_t first, uint64_t count, bool part) {
    exchange->has_reader = true;
    body_reader_open(&exchange->reader, exchange->reply.body, &exchange->reader_task,
                     exchange->base.clients->mailbox);
    if (part)
        body_reader_choose(&exchange->reader, first, count);
}

/* Goes on to the next part of a multipart body: what stands before it, and its bytes. */
static void reply_next_part(struct http2_exchange *exchange) {
    struct reply *reply = &exchange->reply;
    if (exchange->has_reader)
        body_reader_close(&exchange->reader);
    exchange->has_reader = false;
    if (reply->part_count == 0) {
        exchange->text = reply->tail;
        exchange->in_parts = false;
        return;
    }
    const struct reply_part *part = reply->parts++;
    reply->part_count--;
    exchange->text = part->head;
    read_body(exchange, part->first, part->count, true);
}

static bool reply_has_trailers(const struct http2_exchange *exchange) {
    const struct slice *trailers = exchange->reply.trailers;
    return trailers != NULL && trailers->length > 0;
}

/* Everything has been put but the end. */
static void reply_put_end(struct http2_exchange *exchange) {
    if (reply_has_trailers(exchange)) {
        struct slice lines = *exchange->reply.trailers;
        char *block = http2_block(exchange->connection->host, hpack_text_room(lines.length) + 1);
        http2_exchange_put_block(exchange, block, hpack_put_lines(block, lines), true);
    } else {
        exchange->base.bytes_sent += HTTP2_FRAME_HEAD;
        http2_stream_put_data(&exchange->stream, NULL, 0, 0, true);
    }
    reply_sent(exchange);
}

/* Do these bytes bring the body to its end? Its state is read before its bytes are counted. */
static bool is_last(const struct http2_exchange *exchange, enum body_state state, size_t bytes) {
    const struct body_reader *reader = &exchange->reader;
    uint64_t at = reader->position + bytes;
    if (exchange->in_parts || reply_has_trailers(exchange))
        return false;
    return at == reader->end || (state == BODY_COMPLETE && at == body_length(reader->body));
}

static void reply_put_bytes(struct http2_exchange *exchange, const struct iovec *pieces, int count,
                            size_t bytes, bool last) {
    struct pace *pace = exchange->base.paces[PACE_DOWN];
    exchange->base.bytes_sent += bytes + HTTP2_FRAME_HEAD;
    if (pace != NULL)
        pace_used(pace, bytes);
    http2_stream_put_data(&exchange->stream, pieces, count, bytes, last);
    if (last)
        reply_sent(exchange);
}

/* Cuts the pieces to `most` bytes; returns how many pieces are left. */
static int cut_pieces(struct iovec *pieces, int count, size_t most) {
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len >= most) {
            pieces[i].iov_len = most;
            return i + 1;
        }
        most -= pieces[i].iov_len;
    }
    return count;
}

static void reply_put_text(struct http2_exchange *exchange, size_t room) {
    struct slice *text = &exchange->text;
    struct iovec piece = {(void *)(uintptr_t)text->base, text->length < room ? text->length : room};
    *text = slice_make(text->base + piece.iov_len, text->length - piece.iov_len);
    reply_put_bytes(exchange, &piece, 1, piece.iov_len, false);
}

/* Bytes of a file are read into the room of the worker, which is not read from further up. False: the
 * file is damaged. */
static bool reply_put_file(struct http2_exchange *exchange, size_t length, bool *put) {
    struct body_reader *reader = &exchange->reader;
    char *bytes = http2_block(exchange->connection->host, HTTP2_OUTBOX);
    if (!body_copy(reader->body, reader->position, bytes, length))
        return false;
    bool last = is_last(exchange, BODY_COMPLETE, length);
    body_reader_advance(reader, length);
    body_reader_rest(reader);
    reply_put_bytes(exchange, &(struct iovec){bytes, length}, 1, length, last);
    *put = true;
    return true;
}

/* Puts bytes that stand in memory or in a file. *put is false when none wait. */
static bool reply_put_body(struct http2_exchange *exchange, size_t room, bool *put) {
    struct body_reader *reader = &exchange->reader;
    struct iovec pieces[HTTP2_PIECES];
    size_t bytes;
    enum body_state state = body_state(reader->body);
    int count = body_reader_pieces(reader, pieces, HTTP2_PIECES, &bytes);
    *put = count > 0;
    if (count == 0) {
        off_t offset;
        int fd;
        bool copy;
        size_t length =
            body_reader_failed(reader) ? 0 : body_reader_file(reader, &fd, &offset, &copy);
        return length == 0 || reply_put_file(exchange, length < room ? length : room, put);
    }
    if (bytes > room) {
        count = cut_pieces(pieces, count, room);
        bytes = room;
    }
    bool last = is_last(exchange, state, bytes);
    reply_put_bytes(exchange, pieces, count, bytes, last);
    body_reader_advance(reader, bytes);
    return true;
}

static void reply_on_pace(void *arg) {
    struct http2_exchange *exchange = arg;
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    http2_stream_want(&exchange->stream);
}

/* How many of the bytes may be sent by the limits. A byte more than the longest body shows that there
 * is more. 0: nothing now, or the reply was broken off. */
static size_t reply_pace(struct http2_exchange *exchange, size_t room) {
    struct exchange *base = &exchange->base;
    struct pace *pace = base->paces[PACE_DOWN];
    if (pace == NULL || room == 0)
        return room;
    if (pace->most > 0 && exchange->stream.sent > pace->most) {
        base->reply_too_large = true;
        exchange_abort(base);
        return 0;
    }
    if (pace->most > 0 && room > pace->most + 1 - exchange->stream.sent)
        room = (size_t)(pace->most + 1 - exchange->stream.sent);
    pace->on_ready = reply_on_pace;
    pace->arg = exchange;
    return pace_ask(pace, room);
}

/* Has all been put but the end? */
static bool reply_is_put(const struct http2_exchange *exchange) {
    return exchange->text.length == 0 && !exchange->in_parts &&
           (!exchange->has_reader || body_reader_done(&exchange->reader));
}

/* Nothing may be put now. The end needs no window, so it is waited for as well. True: look again. */
static bool reply_waits_for_end(struct http2_exchange *exchange) {
    struct body_reader *reader = &exchange->reader;
    if (!exchange->has_reader || exchange->text.length > 0 || !body_reader_at_end(reader) ||
        body_reader_failed(reader))
        return false;
    return !body_reader_wait(reader);
}

/* Is a part of the body behind us? The next one begins whether or not anything may be put now. */
static bool reply_is_between_parts(const struct http2_exchange *exchange) {
    return exchange->in_parts && exchange->text.length == 0 &&
           (!exchange->has_reader || body_reader_done(&exchange->reader));
}

/* Nothing waits to be put: it may be a failure or a pause. True: look again. */
static bool reply_at_pause(struct http2_exchange *exchange) {
    struct body_reader *reader = &exchange->reader;
    if (reply_is_put(exchange) || reply_is_between_parts(exchange))
        return true;
    if (body_reader_failed(reader)) {
        exchange_abort(&exchange->base);
        return false;
    }
    return !body_reader_wait(reader);
}

bool http2_reply_turn(struct http2_exchange *exchange) {
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    if (!exchange->head_sent) {
        bool ended = !exchange->has_reader && !exchange->in_parts && !reply_has_trailers(exchange);
        reply_put_head(exchange, ended);
        if (ended)
            reply_sent(exchange);
        if (ended || !http2_stream_is_flowing(&exchange->stream))
            return !ended;
    }
    for (bool put = false; !put;) {
        if (reply_is_between_parts(exchange))
            reply_next_part(exchange);
        if (reply_is_put(exchange)) {
            reply_put_end(exchange);
            return false;
        }
        size_t room = reply_pace(exchange, http2_stream_room(&exchange->stream));
        if (room == 0 && reply_waits_for_end(exchange))
            continue;
        if (room == 0)
            return false;
        if (exchange->text.length > 0) {
            reply_put_text(exchange, room);
            put = true;
        } else if (exchange->has_reader && !reply_put_body(exchange, room, &put)) {
            exchange_abort(&exchange->base);
            return false;
        }
        if (!put && !reply_at_pause(exchange))
            return false;
    }
    return exchange->base.state == EXCHANGE_SENDING;
}

void http2_reply_start(struct exchange *base, const struct reply *reply) {
    struct http2_exchange *exchange = http2_exchange_of(base);
    struct http2_stream *stream = &exchange->stream;
    /* "Any 2xx (Successful) response indicates that the sender ... will switch to tunnel mode" (RFC
     * 9110 §9.3.6, of CONNECT): a client would take a page for bytes of its protocol. */
    if (base->upgrade.length > 0 && reply->status < 300) {
        http2_stream_reset(stream, HTTP2_CONNECT_ERROR);
        http2_exchange_lost(exchange);
        return;
    }
    base->state = EXCHANGE_SENDING;
    exchange->reply = *reply;
    /* A reply of a head alone ends with it: gRPC takes its status from no other one. */
    bool is_empty = reply->length == 0 && reply->trailers == NULL;
    bool has_body =
        reply->body != NULL && !is_empty && !reply_has_no_content(reply) && !base->is_head;
    if (!has_body)
        exchange->reply.trailers = NULL;
    exchange->in_parts = has_body && reply->part_count > 0;
    if (has_body && !exchange->in_parts)
        read_body(exchange, reply->first, (uint64_t)reply->length, reply->part);
    bool more = true;
    if (http2_stream_may_put(stream, head_room(reply) + HTTP2_SMALL))
        more = http2_reply_turn(exchange);
    if (more && base->state == EXCHANGE_SENDING)
        http2_stream_want(stream);
}
