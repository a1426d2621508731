#include "client/client.h"

#include "base/assert.h"

#include <stdio.h>

enum { PIECES = 16 };

static void response_append(struct exchange *exchange, struct slice text) {
    ASSERT(exchange->frame_end + text.length <= sizeof exchange->frame);
    memcpy(exchange->frame + exchange->frame_end, text.base, text.length);
    exchange->frame_end += (unsigned)text.length;
}

/* The fields that say where the response ends and what becomes of the connection, and the empty
 * line. */
static void frame_head(struct exchange *exchange, const struct reply *reply) {
    bool old_client = exchange->request.version < 11;
    char *at = exchange->frame;
    if (reply->length >= 0 && !reply->no_content) {
        at = slice_put(at, SLICE("Content-Length: "));
        at = slice_put_number(at, reply->length);
        at = slice_put(at, SLICE("\r\n"));
    } else if (!reply->no_content && exchange->has_reader && !old_client) {
        exchange->use_chunked = true;
        at = slice_put(at, SLICE("Transfer-Encoding: chunked\r\n"));
    } else if (!reply->no_content && exchange->has_reader) {
        exchange->keep_alive =
            false; /* HTTP/1.0: the end of the connection is the end of the body */
    }
    if (!exchange->keep_alive)
        at = slice_put(at, SLICE("Connection: close\r\n"));
    else if (old_client)
        at = slice_put(at, SLICE("Connection: keep-alive\r\n"));
    at = slice_put(at, SLICE("\r\n"));
    exchange->frame_end = (unsigned)(at - exchange->frame);
}

void exchange_on_body(struct task *task) {
    struct exchange *exchange = CONTAINER_OF(task, struct exchange, reader_task);
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    if (exchange->state == EXCHANGE_SENDING)
        exchange_send(exchange);
}

static void response_read_body(struct exchange *exchange, struct body *body) {
    exchange->has_reader = true;
    body_reader_open(&exchange->reader, body, &exchange->reader_task,
                     exchange->client->hooks->mailbox);
}

static void response_begin_body(struct exchange *exchange, const struct reply *reply) {
    if (reply->body == NULL || exchange->head_request || reply->no_content)
        return;
    if (reply->part_count > 0) {
        exchange->parts_body = reply->body;
        exchange->next_part = reply->parts;
        exchange->parts_left = reply->part_count;
        exchange->tail = reply->tail;
        return;
    }
    response_read_body(exchange, reply->body);
    if (reply->part)
        body_reader_choose(&exchange->reader, reply->first, (uint64_t)reply->length);
}

/* RFC 9110 §7.8: a client that would change to another protocol may speak that already. Where the
 * answer is no, what it has sent by then is not taken for a request. */
static bool may_have_switched(const struct exchange *exchange) {
    return http_head_has(&exchange->request, HTTP_UPGRADE) && client_has_input(exchange->client);
}

bool exchange_reply(struct exchange *exchange, const struct reply *reply) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    if (exchange->state == EXCHANGE_ABORTED)
        return false;
    ASSERT(exchange->state == EXCHANGE_REQUEST);
    if (exchange->background) {
        exchange->state = EXCHANGE_SENT;
        return true;
    }
    struct client *client = exchange->client;
    exchange->state = EXCHANGE_SENDING;
    exchange->parts[0] = reply->head;
    exchange->parts[1] = reply->extra;
    exchange->first_chunk = true;
    exchange->trailers = reply->trailers;
    if (reply->close || client->hooks->draining ||
        (exchange->body_in_use && !exchange->body_ended) || !exchange_body_skip_rest(exchange) ||
        may_have_switched(exchange))
        exchange->keep_alive = false;
    response_begin_body(exchange, reply);
    frame_head(exchange, reply);
    exchange->heads =
        exchange->bytes_sent + reply->head.length + reply->extra.length + exchange->frame_end;
    exchange_send(exchange);
    return exchange->state == EXCHANGE_SENT;
}

/* Where the body's first piece has room in front of it, the head goes there: one piece is quicker
 * to send than several. Returns how many are left. */
static int join_head(struct exchange *exchange, struct iovec *pieces, int head, int count) {
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

/* What is left of the chunk, and the end if it follows. */
static int gather_chunk(struct exchange *exchange, struct iovec *pieces, int count) {
    size_t bytes;
    uint64_t left = exchange->chunk_left;
    int body = count;
    if (left > 0)
        body += body_reader_pieces(&exchange->reader, pieces + count, PIECES - count, &bytes);
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

/* Head, frame and body pieces that can be sent now: 1 + PIECES at most. */
static int response_gather(struct exchange *exchange, struct iovec *pieces) {
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
        return gather_chunk(exchange, pieces, count);
    int body = body_reader_pieces(&exchange->reader, pieces + count, PIECES - count, &bytes);
    return count > 0 && body > 0 ? join_head(exchange, pieces, count, count + body) : count + body;
}

static bool has_trailers(const struct exchange *exchange) {
    return exchange->trailers != NULL && exchange->trailers->length > 0;
}

/* True: the end stands ready. What goes before it must be out if lines are to stand in between. */
static bool frame_end(struct exchange *exchange) {
    struct slice last = exchange->first_chunk ? SLICE("0\r\n") : SLICE("\r\n0\r\n");
    if (!has_trailers(exchange)) {
        response_append(exchange, last);
    } else if (exchange->frame_end > 0 || exchange->parts[0].length > 0 ||
               exchange->parts[1].length > 0) {
        return false;
    } else {
        exchange->parts[0] = last;
        exchange->parts[1] = *exchange->trailers;
    }
    response_append(exchange, SLICE("\r\n"));
    return true;
}

/* With these bytes the body is over: its end leaves with them. */
static void join_end(struct exchange *exchange, size_t bytes) {
    const struct body_reader *reader = &exchange->reader;
    if (has_trailers(exchange) || body_length(reader->body) - reader->position > bytes)
        return;
    exchange->last_chunk = SLICE("\r\n0\r\n\r\n");
    exchange->end_framed = true;
}

/* A chunk is as large as what waits to be read at its beginning. */
static void frame_chunk(struct exchange *exchange) {
    char head[CHUNKED_HEAD_MAX];
    struct iovec pieces[PIECES];
    size_t bytes;
    if (exchange->chunk_left > 0 || exchange->end_framed)
        return;
    /* The state before the bytes: a body that ends in between is then seen in the next round. */
    enum body_state state = body_state(exchange->reader.body);
    if (exchange->frame_begin == exchange->frame_end)
        exchange->frame_begin = exchange->frame_end = 0;
    if (sizeof exchange->frame - exchange->frame_end < CHUNKED_HEAD_MAX + 8)
        return;
    body_reader_pieces(&exchange->reader, pieces, PIECES - 3, &bytes);
    if (bytes > 0) {
        if (!exchange->first_chunk)
            response_append(exchange, SLICE("\r\n"));
        response_append(exchange, slice_make(head, chunked_write_head(head, bytes)));
        exchange->first_chunk = false;
        exchange->chunk_left = bytes;
        if (state == BODY_COMPLETE)
            join_end(exchange, bytes);
    } else if (state == BODY_COMPLETE && body_reader_at_end(&exchange->reader)) {
        exchange->end_framed = frame_end(exchange);
    }
}

/* Takes `sent` bytes off what gather offered. */
static void response_consume(struct exchange *exchange, size_t sent) {
    for (int i = 0; i < 2 && sent > 0; i++) {
        struct slice *part = &exchange->parts[i];
        size_t piece = sent < part->length ? sent : part->length;
        part->base += piece;
        part->length -= piece;
        sent -= piece;
    }
    size_t framed = exchange->frame_end - exchange->frame_begin;
    size_t piece = sent < framed ? sent : framed;
    exchange->frame_begin += (unsigned)piece;
    sent -= piece;
    piece =
        exchange->use_chunked && sent > exchange->chunk_left ? (size_t)exchange->chunk_left : sent;
    if (piece > 0)
        body_reader_advance(&exchange->reader, piece);
    if (!exchange->use_chunked)
        return;
    exchange->chunk_left -= piece;
    exchange->last_chunk.base += sent - piece;
    exchange->last_chunk.length -= sent - piece;
}

static void response_sent_all(struct exchange *exchange) {
    struct client *client = exchange->client;
    exchange->state = EXCHANGE_SENT;
    timer_set(&client->net->loop->timers, &client->timer, TIMER_NEVER);
    if (exchange->waker != NULL)
        loop_defer(client->net->loop, exchange->waker);
}

/* The next piece of a multipart body; false: there is none. */
static bool next_part(struct exchange *exchange) {
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
    response_read_body(exchange, exchange->parts_body);
    body_reader_choose(&exchange->reader, part->first, part->count);
    return true;
}

/* Nothing can be sent right now: is that the end, a failure, or a pause? True: look again. */
static bool at_pause(struct exchange *exchange) {
    struct client *client = exchange->client;
    if ((!exchange->has_reader || body_reader_done(&exchange->reader)) && next_part(exchange))
        return true;
    if (!exchange->has_reader || exchange->end_framed) {
        response_sent_all(exchange);
        return false;
    }
    if (body_reader_done(&exchange->reader)) {
        if (exchange->use_chunked)
            return true; /* to frame the end */
        response_sent_all(exchange);
        return false;
    }
    if (body_reader_failed(&exchange->reader)) {
        exchange_abort(exchange);
        return false;
    }
    timer_set(&client->net->loop->timers, &client->timer, TIMER_NEVER);
    return !body_reader_wait(&exchange->reader);
}

/* What stands in a file goes out from there; *tried false: nothing of it is ready. */
static enum io_status send_from_file(struct exchange *exchange, size_t most, size_t *sent,
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
    struct connection *connection = exchange->client->connection;
    return copy ? connection_copy_file(connection, fd, offset, length, sent)
                : connection_send_file(connection, fd, &offset, length, sent);
}

/* No more than `most` bytes of them. */
static int response_cut_off(struct iovec *pieces, int count, size_t most) {
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len >= most) {
            pieces[i].iov_len = most;
            return i + 1;
        }
        most -= pieces[i].iov_len;
    }
    return count;
}

/* Behind a head, in the same packets. */
static bool file_follows(struct exchange *exchange) {
    off_t offset;
    int fd;
    bool copy;
    return exchange->has_reader && exchange->reader.body->kind == BODY_BACKED &&
           !exchange->use_chunked && exchange->parts_body == NULL &&
           !body_reader_failed(&exchange->reader) &&
           body_reader_file(&exchange->reader, &fd, &offset, &copy) > 0;
}

static enum io_status send_some(struct exchange *exchange, size_t most, size_t *sent, bool *tried) {
    struct client *client = exchange->client;
    struct iovec pieces[2 + PIECES];
    int count = response_cut_off(pieces + 1, response_gather(exchange, pieces + 1), most);
    *sent = 0;
    *tried = count > 0 || client->held.length > 0;
    if (count == 0) {
        enum io_status status = client_flush(client);
        return status != IO_DONE ? status : send_from_file(exchange, most, sent, tried);
    }
    if (client_hold(client, pieces + 1, count, sent))
        return IO_DONE;
    return client_write(client, pieces, count, file_follows(exchange), sent);
}

/* Until the client has taken some, or others have been served. */
static void await_progress(struct exchange *exchange) {
    struct client *client = exchange->client;
    if (exchange->has_reader)
        body_reader_rest(&exchange->reader);
    loop_timer_after(client->net->loop, &client->timer, client->net->settings->client.send_timeout);
}

/* Of most responses nothing is left behind the first write. */
static bool is_over(const struct exchange *exchange) {
    if (!exchange->has_reader || exchange->parts_body != NULL ||
        exchange->frame_begin < exchange->frame_end)
        return false;
    return exchange->use_chunked ? exchange->end_framed && exchange->chunk_left == 0 &&
                                       exchange->last_chunk.length == 0
                                 : body_reader_done(&exchange->reader);
}

void exchange_send(struct exchange *exchange) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    struct client *client = exchange->client;
    size_t left = TURN_BYTES, sent;
    bool tried;
    while (left > 0) {
        if (exchange->use_chunked)
            frame_chunk(exchange);
        enum io_status status = send_some(exchange, left, &sent, &tried);
        if (!tried) {
            if (at_pause(exchange))
                continue;
            return;
        }
        switch (status) {
        case IO_DONE:
            client->net->counters.client_bytes_out += sent;
            exchange->bytes_sent += sent;
            response_consume(exchange, sent);
            if (is_over(exchange)) {
                response_sent_all(exchange);
                return;
            }
            left -= sent;
            break;
        case IO_WAIT: await_progress(exchange); return;
        default: client_lost(client); return;
        }
    }
    await_progress(exchange);
    loop_defer(client->net->loop, &exchange->reader_task);
}

/* False: not all of it went out. */
static bool send_now(struct exchange *exchange, struct slice bytes, size_t *sent) {
    struct iovec pieces[] = {{NULL, 0}, {(void *)bytes.base, bytes.length}};
    *sent = 0;
    if (exchange->state != EXCHANGE_REQUEST || exchange->client->connection == NULL)
        return false;
    client_write(exchange->client, pieces, 1, false, sent);
    exchange->bytes_sent += *sent;
    return *sent == bytes.length;
}

bool exchange_interim(struct exchange *exchange, struct slice bytes) {
    size_t sent;
    if (send_now(exchange, bytes, &sent))
        return true;
    if (exchange->state == EXCHANGE_REQUEST)
        exchange_abort(exchange); /* half a head would corrupt the stream */
    return false;
}

void exchange_hint(struct exchange *exchange, struct slice bytes) {
    size_t sent;
    if (exchange->request.version >= 11 && !send_now(exchange, bytes, &sent) && sent > 0)
        exchange_abort(exchange);
}
