#include "origin/call.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "http/trailer.h"

/* Receives a response: the head into the buffer, the body directly to its reader. */

/* HEADROOM: free bytes in the buffer. A body that came with its head is sent from there, and the
 * client's head before it is a little longer than the origin's. */
enum { INTERIM_MAX = 100, PIECES = 8, HEADROOM = 512 };

static void head_is_too_large(struct origin_call *call) {
    call->net->counters.origin_heads_too_large++;
    origin_call_fail(call, ORIGIN_BAD, "its response head is larger than origin.max_head");
}

static void origin_receive_answered(struct origin_call *call) {
    call->state = ORIGIN_ANSWERED;
    call->keeps_alive = framing_keeps_alive(call->response);
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    if (call->request.slot != NULL)
        origin_slot_answered(call->request.slot, call->response->status);
    origin_call_body_init(call);
    if (call->waker != NULL)
        loop_defer(call->net->loop, call->waker);
}

/* Returns false when more bytes are needed. */
static bool origin_receive_parse(struct origin_call *call) {
    struct slice bytes = net_buffer_bytes(call->in);
    ssize_t used =
        http_head_parse_response(call->response, bytes.base, bytes.length, call->head_checked);
    if (used == 0) {
        call->head_checked = bytes.length;
        return false;
    }
    call->head_checked = 0;
    if (used < 0) {
        origin_call_fail(call, ORIGIN_BAD, http_error_text((enum http_error) - used));
        return true;
    }
    if ((size_t)used > call->request.max_head) {
        head_is_too_large(call);
        return true;
    }
    call->in->begin += (size_t)used;
    if (call->response->status == 101 && !call->request.upgrade) {
        origin_call_fail(call, ORIGIN_BAD, "it switched protocols without being asked");
        return true;
    }
    if (call->response->status == 101) {
        call->framing.kind = FRAMING_NONE;
        origin_receive_answered(call);
        return true;
    }
    if (call->response->status < 200 && ++call->interim > INTERIM_MAX) {
        origin_call_fail(call, ORIGIN_BAD, "it sent too many interim (1xx) responses");
        return true;
    }
    if (call->response->status < 200 && call->response->status != 100 &&
        call->request.on_interim != NULL)
        call->request.on_interim(call->request.interim_arg, call->response);
    if (call->response->status < 200)
        return net_buffer_bytes(call->in).length == 0 ? false : origin_receive_parse(call);
    if (!framing_of_response(&call->framing, call->response, call->request.method)) {
        origin_call_fail(call, ORIGIN_BAD, call->framing.error);
        return true;
    }
    origin_receive_answered(call);
    return true;
}

static void note_first_byte(struct origin_call *call) {
    call->heard = true;
    times_add(&call->net->durations.origin_first_byte_seconds,
              (call->net->loop->now_nanoseconds - call->started) / 1000);
}

void origin_call_receive(struct origin_call *call) {
    size_t got;
    if (call->in == NULL) {
        call->in = net_buffer_take(call->net);
        call->in->begin = call->in->end = HEADROOM;
    }
    while (call->state == ORIGIN_WAITING) {
        if (!net_buffer_make_room(call->net, &call->in, call->request.max_head)) {
            head_is_too_large(call);
            return;
        }
        switch (connection_read(call->connection, call->in->data + call->in->end,
                                call->in->capacity - call->in->end, &got)) {
        case IO_DONE:
            if (!call->heard)
                note_first_byte(call);
            call->in->end += got;
            call->net->counters.origin_bytes_in += got;
            if (origin_receive_parse(call) || !call->connection->readable)
                return;
            break;
        case IO_WAIT: return;
        case IO_END:
            origin_call_fail(call, ORIGIN_BROKE_OFF, "it closed the connection without answering");
            return;
        case IO_FAILED: origin_call_fail(call, ORIGIN_BROKE_OFF, origin_call_error(call)); return;
        }
    }
}

/* Bytes that came with the head and have not been read. */
static size_t waiting(const struct origin_call *call) {
    return call->in == NULL ? 0 : net_buffer_bytes(call->in).length;
}

/* Bytes after a 2xx to a CONNECT, or after a 101, belong to another protocol (RFC 9110 §9.3.6).
 * They must not be taken for the next response. */
static bool opens_tunnel(const struct origin_call *call) {
    unsigned status = call->response->status;
    return status == 101 || (call->request.method == HTTP_METHOD_CONNECT && status < 300);
}

/* The response is complete. Returns true when the connection may be used again. */
static void leave_connection(struct origin_call *call) {
    bool spare = waiting(call) > 0 || opens_tunnel(call);
    bool reusable = !spare && !call->deaf && sender_is_done(&call->sender) &&
                    call->framing.kind != FRAMING_CLOSE && call->keeps_alive &&
                    !call->request.used_up;
    net_buffer_give(call->net, &call->in);
    if (reusable)
        pool_give(call->pool, call->request.pool_key, &call->connection, call->request.idle_timeout,
                  call->request.max_idle);
    else
        connection_close(&call->connection);
    origin_call_let_go(call);
}

static enum source_status origin_receive_ended(struct origin_call *call) {
    call->body_ended = true;
    leave_connection(call);
    return SOURCE_END;
}

/* Counts read bytes of a body of known length. The data is returned first, and END with the next
 * read. */
static void origin_receive_take_off(struct origin_call *call, size_t count) {
    call->body_left -= count;
    if (call->body_left == 0)
        origin_receive_ended(call);
}

static void take_trailers(struct origin_call *call) {
    char *space = call->request.trailer_space;
    if (space != NULL)
        call->trailers = slice_make(space, trailer_filter(space, call->chunked.trailer_bytes));
}

static enum source_status origin_receive_broke_off(struct origin_call *call, const char *error) {
    origin_call_fail(call, ORIGIN_BROKE_OFF, error);
    return SOURCE_FAILED;
}

static enum source_status origin_receive_from_socket(struct origin_call *call,
                                                     const struct iovec *pieces, int count,
                                                     size_t *got) {
    if (call->connection->readable) {
        enum io_status status =
            count == 1 ? connection_read(call->connection, pieces->iov_base, pieces->iov_len, got)
                       : connection_read_pieces(call->connection, pieces, count, got);
        switch (status) {
        case IO_DONE:
            call->net->counters.origin_bytes_in += *got;
            timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
            return SOURCE_DATA;
        case IO_END:
            if (call->framing.kind == FRAMING_CLOSE)
                return origin_receive_ended(call);
            return origin_receive_broke_off(
                call, "it closed the connection in the middle of the response");
        case IO_FAILED: return origin_receive_broke_off(call, origin_call_error(call));
        case IO_WAIT: break;
        }
    }
    origin_call_await(call, call->request.read_timeout);
    return SOURCE_WAIT;
}

/* The room for the rest of the body and one more byte. If the byte stays empty, the socket is
 * empty too. If it is filled, the connection can't be reused. */
static enum source_status origin_receive_read_rest(struct origin_call *call,
                                                   const struct iovec *pieces, int count,
                                                   size_t *got) {
    struct iovec limited[PIECES + 1];
    uint64_t left = call->body_left;
    char more;
    int used = 0;
    for (; used < count && used < PIECES && left > 0; used++) {
        limited[used] = pieces[used];
        if (limited[used].iov_len > left)
            limited[used].iov_len = (size_t)left;
        left -= limited[used].iov_len;
    }
    if (left == 0)
        limited[used++] = (struct iovec){&more, 1};
    enum source_status status = origin_receive_from_socket(call, limited, used, got);
    if (*got > call->body_left) {
        call->deaf = true;
        *got = (size_t)call->body_left;
    }
    return status;
}

static enum source_status read_plain(struct origin_call *call, const struct iovec *pieces,
                                     int count, size_t *got) {
    enum source_status status = SOURCE_DATA;
    if (waiting(call) > 0) {
        struct slice bytes = net_buffer_bytes(call->in);
        size_t most = pieces->iov_len;
        if (call->framing.kind == FRAMING_LENGTH && most > call->body_left)
            most = (size_t)call->body_left;
        *got = bytes.length < most ? bytes.length : most;
        memcpy(pieces->iov_base, bytes.base, *got);
        call->in->begin += *got;
    } else if (call->framing.kind == FRAMING_LENGTH) {
        status = origin_receive_read_rest(call, pieces, count, got);
    } else {
        status = origin_receive_from_socket(call, pieces, count, got);
    }
    if (call->framing.kind == FRAMING_LENGTH && *got > 0)
        origin_receive_take_off(call, *got);
    return status;
}

static enum source_status origin_receive_read_chunked(struct origin_call *call, char *to,
                                                      size_t capacity, size_t *got) {
    for (;;) {
        struct slice input = net_buffer_bytes(call->in);
        if (input.length > 0) {
            enum chunked_status status = chunked_decode(&call->chunked, &input, to, capacity, got);
            call->in->begin = call->in->end - input.length;
            if (status == CHUNKED_BAD)
                return origin_receive_broke_off(call, "its chunked coding is broken");
            if (status == CHUNKED_END) {
                take_trailers(call);
                origin_receive_ended(call);
            }
            if (*got > 0)
                return SOURCE_DATA;
            if (status == CHUNKED_END)
                return SOURCE_END;
        }
        call->in->begin = call->in->end = 0;
        size_t more = 0;
        struct iovec room = {call->in->data, call->in->capacity};
        enum source_status status = origin_receive_from_socket(call, &room, 1, &more);
        if (status != SOURCE_DATA)
            return status;
        call->in->end = more;
    }
}

static enum source_status body_read_pieces(struct source *source, const struct iovec *pieces,
                                           int count, size_t *got) {
    struct origin_call *call = CONTAINER_OF(source, struct origin_call, body);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    *got = 0;
    if (call->body_ended)
        return SOURCE_END;
    if (call->body_failed)
        return SOURCE_FAILED;
    return call->framing.kind == FRAMING_CHUNKED
               ? origin_receive_read_chunked(call, pieces->iov_base, pieces->iov_len, got)
               : read_plain(call, pieces, count, got);
}

static enum source_status origin_receive_body_read(struct source *source, char *buffer,
                                                   size_t capacity, size_t *got) {
    struct iovec piece = {buffer, capacity};
    return body_read_pieces(source, &piece, 1, got);
}

static void origin_receive_body_close(struct source *source) {
    struct origin_call *call = CONTAINER_OF(source, struct origin_call, body);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    call->body_open = false;
    if (call->body_ended)
        return;
    /* Unread bytes are still arriving, so the next request can't use the connection. */
    call->body_failed = true;
    connection_close(&call->connection);
    net_buffer_give(call->net, &call->in);
    origin_call_let_go(call);
}

/* While body bytes that came with the head are in the buffer, all bytes read before them are
 * there too. */
static bool body_unread(struct source *source, uint64_t count) {
    struct origin_call *call = CONTAINER_OF(source, struct origin_call, body);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    if (call->framing.kind == FRAMING_CHUNKED || waiting(call) == 0 ||
        count > call->in->begin - call->body_at)
        return false;
    call->in->begin -= (size_t)count;
    if (call->framing.kind == FRAMING_LENGTH)
        call->body_left += count;
    return true;
}

static const struct source_class body_class = {"response body", origin_receive_body_read,
                                               origin_receive_body_close, body_read_pieces};

void origin_call_body_init(struct origin_call *call) {
    const struct framing *framing = &call->framing;
    int64_t length = framing->kind == FRAMING_LENGTH ? (int64_t)framing->length : -1;
    source_init(&call->body, &body_class, call->net->loop, length);
    call->body.unread = body_unread;
    call->body_left = framing->length;
    call->body_at = call->in->begin;
    if (framing->kind == FRAMING_CHUNKED)
        chunked_init(&call->chunked);
    chunked_keep_trailers(&call->chunked, call->request.trailer_space);
}

struct source *origin_call_body(struct origin_call *call) {
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    ASSERT(call->state == ORIGIN_ANSWERED && !call->body_open);
    bool empty = call->framing.kind == FRAMING_NONE ||
                 (call->framing.kind == FRAMING_LENGTH && call->framing.length == 0);
    if (empty) {
        if (!call->body_ended && !call->body_failed)
            origin_receive_ended(call);
        return NULL;
    }
    call->body_open = true;
    return &call->body;
}

struct net_buffer *origin_call_take_waiting(struct origin_call *call) {
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    struct net_buffer *buffer = call->in;
    size_t count = waiting(call);
    bool plain = call->framing.kind == FRAMING_CLOSE ||
                 (call->framing.kind == FRAMING_LENGTH && count <= call->body_left);
    if (!call->body_open || count == 0 || !plain)
        return NULL;
    call->in = NULL;
    if (call->framing.kind == FRAMING_LENGTH)
        origin_receive_take_off(call, count);
    return buffer;
}
