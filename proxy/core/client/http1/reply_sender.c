#include "client/http1/reply_sender.h"

#include "base/assert.h"
#include "client/http1/exchange.h"
#include "client/http1/outbox.h"

/*
 * The chunks of a reply whose length is not known when it begins (RFC 9112 §7.1).
 */

/* The end of the body has been sent. */
static inline bool http1_chunks_are_out(const struct http1_exchange *exchange) {
    return exchange->end_framed && exchange->chunk_left == 0 && exchange->last_chunk.length == 0;
}

static void chunks_append(struct http1_exchange *exchange, struct slice text) {
    ASSERT(exchange->frame_end + text.length <= sizeof exchange->frame);
    memcpy(exchange->frame + exchange->frame_end, text.base, text.length);
    exchange->frame_end += (unsigned)text.length;
}

static bool has_trailers(const struct http1_exchange *exchange) {
    return exchange->trailers != NULL && exchange->trailers->length > 0;
}

/* True: the end of the body is ready to be sent. If trailers go with it, what stands before it must
 * be sent first. */
static bool frame_end(struct http1_exchange *exchange) {
    struct slice last = exchange->first_chunk ? SLICE("0\r\n") : SLICE("\r\n0\r\n");
    if (!has_trailers(exchange)) {
        chunks_append(exchange, last);
    } else if (exchange->frame_end > 0 || exchange->parts[0].length > 0 ||
               exchange->parts[1].length > 0) {
        return false;
    } else {
        exchange->parts[0] = last;
        exchange->parts[1] = *exchange->trailers;
    }
    chunks_append(exchange, SLICE("\r\n"));
    return true;
}

/* If the body ends with these bytes, its end leaves with them. */
static void join_end(struct http1_exchange *exchange, size_t bytes) {
    const struct body_reader *reader = &exchange->reader;
    if (has_trailers(exchange) || body_length(reader->body) - reader->position > bytes)
        return;
    exchange->last_chunk = SLICE("\r\n0\r\n\r\n");
    exchange->end_framed = true;
}

/* Frames one chunk. It holds all bytes that wait to be read when it begins. */
/* Begins the next chunk, or the end, when the one before is out. */
static void http1_chunks_frame(struct http1_exchange *exchange) {
    char head[CHUNKED_HEAD_MAX];
    struct iovec pieces[HTTP1_PIECES];
    size_t bytes;
    if (exchange->chunk_left > 0 || exchange->end_framed)
        return;
    /* The state is read before the bytes. If the body ends in between, the next round sees it. */
    enum body_state state = body_state(exchange->reader.body);
    if (exchange->frame_begin == exchange->frame_end)
        exchange->frame_begin = exchange->frame_end = 0;
    if (sizeof exchange->frame - exchange->frame_end < CHUNKED_HEAD_MAX + 8)
        return;
    body_reader_pieces(&exchange->reader, pieces, HTTP1_PIECES - 3, &bytes);
    if (bytes > 0) {
        if (!exchange->first_chunk)
            chunks_append(exchange, SLICE("\r\n"));
        chunks_append(exchange, slice_make(head, chunked_write_head(head, bytes)));
        exchange->first_chunk = false;
        exchange->chunk_left = bytes;
        if (state == BODY_COMPLETE)
            join_end(exchange, bytes);
    } else if (state == BODY_COMPLETE && body_reader_at_end(&exchange->reader)) {
        exchange->end_framed = frame_end(exchange);
    }
}

/* Adds what is left of the chunk, and the end if it follows; returns the new count. */
static int http1_chunks_gather(struct http1_exchange *exchange, struct iovec *pieces, int count) {
    size_t bytes;
    uint64_t left = exchange->chunk_left;
    int body = count;
    if (left > 0)
        body += body_reader_pieces(&exchange->reader, pieces + count, HTTP1_PIECES - count, &bytes);
    for (; count < body && left > 0; count++) {
        if (pieces[count].iov_len > left)
            pieces[count].iov_len = (size_t)left;
        left -= pieces[count].iov_len;
    }
    if (left == 0 && exchange->last_chunk.length > 0)
        pieces[count++] =
            (struct iovec){(void *)exchange->last_chunk.base, exchange->last_chunk.length};
    return count;
}

static void http1_chunks_consume(struct http1_exchange *exchange, size_t sent) {
    size_t piece = sent > exchange->chunk_left ? (size_t)exchange->chunk_left : sent;
    if (piece > 0)
        body_reader_advance(&exchange->reader, piece);
    exchange->chunk_left -= piece;
    exchange->last_chunk.base += sent - piece;
    exchange->last_chunk.length -= sent - piece;
}

void http1_reply_sender_on_body(struct task *task) {
    struct http1_exchange *exchange = CONTAINER_OF(task, struct http1_exchange, reader_task);
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    if (exchange->base.state == EXCHANGE_SENDING)
        http1_reply_sender_send(exchange);
}

void http1_reply_sender_read(struct http1_exchange *exchange, struct body *body) {
    exchange->has_reader = true;
    body_reader_open(&exchange->reader, body, &exchange->reader_task,
                     exchange->base.clients->mailbox);
}

/* If there is room in front of the body's first piece, the head goes there: one piece is quicker to
 * send than several. Returns how many pieces are left. */
static int join_head(struct http1_exchange *exchange, struct iovec *pieces, int head, int count) {
    size_t length = 0;
    for (int i = 0; i < head; i++)
        length += pieces[i].iov_len;
    char *front = body_reader_front(&exchange->reader, length), *at = front;
    if (front == NULL)
        return count;
    for (int i = 0; i < head; i++) {
        memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
        at += pieces[i].iov_len;
    }
    pieces[0] = (struct iovec){front, length + pieces[head].iov_len};
    for (int i = head + 1; i < count; i++)
        pieces[i - head] = pieces[i];
    return count - head;
}

/* Gathers the head, the frame and the body pieces that can be sent now: 1 + HTTP1_PIECES at
 * most. */
static int reply_sender_gather(struct http1_exchange *exchange, struct iovec *pieces) {
    int count = 0;
    size_t bytes;
    for (int i = 0; i < 2; i++)
        if (exchange->parts[i].length > 0)
            pieces[count++] =
                (struct iovec){(void *)exchange->parts[i].base, exchange->parts[i].length};
    if (exchange->frame_begin < exchange->frame_end)
        pieces[count++] = (struct iovec){exchange->frame + exchange->frame_begin,
                                         exchange->frame_end - exchange->frame_begin};
    if (!exchange->has_reader)
        return count;
    if (exchange->use_chunked)
        return http1_chunks_gather(exchange, pieces, count);
    int body = body_reader_pieces(&exchange->reader, pieces + count, HTTP1_PIECES - count, &bytes);
    return count > 0 && body > 0 ? join_head(exchange, pieces, count, count + body) : count + body;
}

/* Takes `sent` bytes off what reply_sender_gather has offered. */
static void reply_sender_consume(struct http1_exchange *exchange, size_t sent) {
    for (int i = 0; i < 2 && sent > 0; i++) {
        struct slice *part = &exchange->parts[i];
        size_t piece = sent < part->length ? sent : part->length;
        if (piece == 0)
            continue; /* the part may be NULL */
        part->base += piece;
        part->length -= piece;
        sent -= piece;
    }
    size_t framed = exchange->frame_end - exchange->frame_begin;
    size_t piece = sent < framed ? sent : framed;
    exchange->frame_begin += (unsigned)piece;
    sent -= piece;
    if (exchange->use_chunked)
        http1_chunks_consume(exchange, sent);
    else if (sent > 0)
        body_reader_advance(&exchange->reader, sent);
}

static void reply_sender_sent_all(struct http1_exchange *exchange) {
    struct http1_connection *connection = exchange->connection;
    exchange->base.state = EXCHANGE_SENT;
    http1_connection_disarm(connection);
    if (exchange->base.waker != NULL)
        loop_defer(connection->net->loop, exchange->base.waker);
}

/* The next piece of a multipart body; false: there is none. */
static bool next_part(struct http1_exchange *exchange) {
    if (exchange->parts_body == NULL)
        return false;
    if (exchange->has_reader)
        body_reader_close(&exchange->reader);
    exchange->has_reader = false;
    if (exchange->parts_left == 0) {
        exchange->parts_body = NULL;
        exchange->parts[0] = exchange->tail;
        return true;
    }
    const struct reply_part *part = exchange->next_part++;
    exchange->parts_left--;
    exchange->parts[0] = part->head;
    http1_reply_sender_read(exchange, exchange->parts_body);
    body_reader_choose(&exchange->reader, part->first, part->count);
    return true;
}

/* Nothing can be sent right now: it may be the end, a failure or a pause. True: look again. */
static bool at_pause(struct http1_exchange *exchange) {
    struct http1_connection *connection = exchange->connection;
    if ((!exchange->has_reader || body_reader_done(&exchange->reader)) && next_part(exchange))
        return true;
    if (!exchange->has_reader || exchange->end_framed) {
        reply_sender_sent_all(exchange);
        return false;
    }
    if (body_reader_done(&exchange->reader)) {
        if (exchange->use_chunked)
            return true; /* to frame the end */
        reply_sender_sent_all(exchange);
        return false;
    }
    if (body_reader_failed(&exchange->reader)) {
        exchange_abort(&exchange->base);
        return false;
    }
    http1_connection_disarm(connection);
    return !body_reader_wait(&exchange->reader);
}

/* A body that stands in a file is sent from there. *tried is false when nothing of the file is
 * ready. */
static enum io_status send_from_file(struct http1_exchange *exchange, size_t most, size_t *sent,
                                     bool *tried) {
    off_t offset;
    int fd;
    bool copy;
    size_t length = exchange->has_reader && !body_reader_failed(&exchange->reader)
                        ? body_reader_file(&exchange->reader, &fd, &offset, &copy)
                        : 0;
    *tried = length > 0;
    if (!*tried)
        return IO_WAIT;
    if (length > most)
        length = most;
    struct connection *connection = exchange->connection->socket;
    return copy ? connection_copy_file(connection, fd, offset, length, sent)
                : connection_send_file(connection, fd, &offset, length, sent);
}

/* Cuts the pieces to `most` bytes. */
static int reply_sender_cut_off(struct iovec *pieces, int count, size_t most) {
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len >= most) {
            pieces[i].iov_len = most;
            return i + 1;
        }
        most -= pieces[i].iov_len;
    }
    return count;
}

/* Does a file follow that leaves in the same packets as the head? */
static bool file_follows(struct http1_exchange *exchange) {
    off_t offset;
    int fd;
    bool copy;
    return exchange->has_reader && exchange->reader.body->kind == BODY_BACKED &&
           !exchange->use_chunked && exchange->parts_body == NULL &&
           !body_reader_failed(&exchange->reader) &&
           body_reader_file(&exchange->reader, &fd, &offset, &copy) > 0;
}

static enum io_status send_some(struct http1_exchange *exchange, size_t most, size_t *sent,
                                bool *tried) {
    struct http1_connection *connection = exchange->connection;
    struct iovec pieces[2 + HTTP1_PIECES];
    int count = reply_sender_cut_off(pieces + 1, reply_sender_gather(exchange, pieces + 1), most);
    *sent = 0;
    *tried = count > 0 || connection->held.length > 0;
    if (count == 0) {
        enum io_status status = http1_outbox_flush(connection);
        return status != IO_DONE ? status : send_from_file(exchange, most, sent, tried);
    }
    if (http1_outbox_is_worth_it(connection) &&
        http1_outbox_hold(connection, pieces + 1, count, sent))
        return IO_DONE;
    return http1_outbox_write(connection, pieces, count, file_follows(exchange), sent);
}

/* Waits until the client has taken some bytes, or until others have been served. */
static void await_progress(struct http1_exchange *exchange) {
    struct http1_connection *connection = exchange->connection;
    if (exchange->has_reader)
        body_reader_rest(&exchange->reader);
    http1_connection_arm(connection, connection->net->settings->client.send_timeout);
}

/* Is the whole reply sent? For most replies it is after the first write. */
static bool is_over(const struct http1_exchange *exchange) {
    if (!exchange->has_reader || exchange->parts_body != NULL ||
        exchange->frame_begin < exchange->frame_end)
        return false;
    return exchange->use_chunked ? http1_chunks_are_out(exchange)
                                 : body_reader_done(&exchange->reader);
}

static void on_pace(void *arg) {
    struct http1_exchange *exchange = arg;
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    loop_defer(exchange->connection->net->loop, &exchange->reader_task);
}

/* How much may be sent in this turn. A byte more than the longest body shows that there is more. 0:
 * nothing now. */
static size_t paced_turn(struct http1_exchange *exchange) {
    struct exchange *base = &exchange->base;
    struct pace *pace = base->paces[PACE_DOWN];
    uint64_t turn = HTTP1_TURN_BYTES;
    if (pace->most > 0 && exchange->has_reader) {
        uint64_t end = base->head_bytes + pace->most;
        if (base->bytes_sent > end) {
            base->reply_too_large = true;
            exchange_abort(base);
            return 0;
        }
        if (end + 1 - base->bytes_sent < turn)
            turn = end + 1 - base->bytes_sent;
    }
    pace->on_ready = on_pace;
    pace->arg = exchange;
    size_t now = pace_ask(pace, (size_t)turn);
    if (now == 0) { /* the client is not to blame */
        http1_connection_disarm(exchange->connection);
        if (exchange->has_reader)
            body_reader_rest(&exchange->reader);
    }
    return now;
}

void http1_reply_sender_send(struct http1_exchange *exchange) {
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    struct http1_connection *connection = exchange->connection;
    struct pace *pace = exchange->base.paces[PACE_DOWN];
    size_t left = pace == NULL ? HTTP1_TURN_BYTES : paced_turn(exchange), sent;
    bool tried;
    if (left == 0)
        return;
    while (left > 0) {
        if (exchange->use_chunked)
            http1_chunks_frame(exchange);
        enum io_status status = send_some(exchange, left, &sent, &tried);
        if (!tried) {
            if (at_pause(exchange))
                continue;
            return;
        }
        switch (status) {
        case IO_DONE:
            connection->net->counters.client_bytes_out += sent;
            exchange->base.bytes_sent += sent;
            if (pace != NULL)
                pace_used(pace, sent);
            reply_sender_consume(exchange, sent);
            if (is_over(exchange)) {
                reply_sender_sent_all(exchange);
                return;
            }
            left -= sent;
            break;
        case IO_WAIT: await_progress(exchange); return;
        default: http1_connection_lost(connection); return;
        }
    }
    await_progress(exchange);
    loop_defer(connection->net->loop, &exchange->reader_task);
}
