#include "origin/http1/call.h"

#include "base/assert.h"
#include "http/trailer.h"

/* The body of a response: read directly into the room of its reader. */

enum { PIECES = 8 };

/* Bytes after a 2xx to a CONNECT, or after a 101, belong to another protocol (RFC 9110 §9.3.6).
 * They must not be taken for the next response. */
static bool opens_tunnel(const struct origin_call *call) {
    unsigned status = call->response->status;
    return status == 101 || (call->request.method == HTTP_METHOD_CONNECT && status < 300);
}

void origin_http1_leave(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    bool spare = origin_http1_waiting(http1) > 0 || opens_tunnel(call);
    bool reusable = !spare && !http1->deaf && sender_is_done(&http1->sender) &&
                    http1->framing.kind != FRAMING_CLOSE && http1->keeps_alive &&
                    !call->request.used_up;
    net_buffer_give(call->net, &http1->in);
    if (reusable)
        pool_give(call->connections->pool, call->request.pool_key, &http1->connection,
                  call->request.idle_timeout, call->request.max_idle);
    else
        connection_close(&http1->connection);
    origin_call_let_go(call);
}

static enum source_status origin_http1_ended(struct origin_call *call) {
    call->body_ended = true;
    origin_http1_leave(call);
    return SOURCE_END;
}

/* Counts read bytes of a body of known length. The data is returned first, and END with the next
 * read. */
static void origin_http1_take_off(struct origin_call *call, size_t count) {
    struct origin_http1 *http1 = origin_http1_of(call);
    http1->body_left -= count;
    if (http1->body_left == 0)
        origin_http1_ended(call);
}

static void origin_http1_take_trailers(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    char *space = http1->chunked.trailers;
    if (space != NULL)
        call->trailers = slice_make(space, trailer_filter(space, http1->chunked.trailer_bytes));
}

static enum source_status origin_http1_broke_off(struct origin_call *call, const char *error) {
    origin_call_fail(call, ORIGIN_BROKE_OFF, error);
    return SOURCE_FAILED;
}

static enum source_status origin_http1_from_socket(struct origin_call *call,
                                                   const struct iovec *pieces, int count,
                                                   size_t *got) {
    struct origin_http1 *http1 = origin_http1_of(call);
    if (http1->connection->readable) {
        enum io_status status =
            count == 1 ? connection_read(http1->connection, pieces->iov_base, pieces->iov_len, got)
                       : connection_read_pieces(http1->connection, pieces, count, got);
        switch (status) {
        case IO_DONE:
            call->net->counters.origin_bytes_in += *got;
            origin_call_pause(call);
            return SOURCE_DATA;
        case IO_END:
            if (http1->framing.kind == FRAMING_CLOSE)
                return origin_http1_ended(call);
            return origin_http1_broke_off(call,
                                          "it closed the connection in the middle of the response");
        case IO_FAILED: return origin_http1_broke_off(call, origin_http1_error(call));
        case IO_WAIT: break;
        }
    }
    origin_call_await(call, call->request.read_timeout);
    return SOURCE_WAIT;
}

/* The room for the rest of the body and one more byte. If the byte stays empty, the socket is
 * empty too. If it is filled, the connection can't be reused. */
static enum source_status origin_http1_read_rest(struct origin_call *call,
                                                 const struct iovec *pieces, int count,
                                                 size_t *got) {
    struct origin_http1 *http1 = origin_http1_of(call);
    struct iovec limited[PIECES + 1];
    uint64_t left = http1->body_left;
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
    enum source_status status = origin_http1_from_socket(call, limited, used, got);
    if (*got > http1->body_left) {
        http1->deaf = true;
        *got = (size_t)http1->body_left;
    }
    return status;
}

static enum source_status read_plain(struct origin_call *call, const struct iovec *pieces,
                                     int count, size_t *got) {
    struct origin_http1 *http1 = origin_http1_of(call);
    enum source_status status = SOURCE_DATA;
    if (origin_http1_waiting(http1) > 0) {
        struct slice bytes = net_buffer_bytes(http1->in);
        size_t most = pieces->iov_len;
        if (http1->framing.kind == FRAMING_LENGTH && most > http1->body_left)
            most = (size_t)http1->body_left;
        *got = bytes.length < most ? bytes.length : most;
        memcpy(pieces->iov_base, bytes.base, *got);
        http1->in->begin += *got;
    } else if (http1->framing.kind == FRAMING_LENGTH) {
        status = origin_http1_read_rest(call, pieces, count, got);
    } else {
        status = origin_http1_from_socket(call, pieces, count, got);
    }
    if (http1->framing.kind == FRAMING_LENGTH && *got > 0)
        origin_http1_take_off(call, *got);
    return status;
}

static enum source_status origin_http1_read_chunked(struct origin_call *call, char *to,
                                                    size_t capacity, size_t *got) {
    struct origin_http1 *http1 = origin_http1_of(call);
    for (;;) {
        struct slice input = net_buffer_bytes(http1->in);
        if (input.length > 0) {
            enum chunked_status status = chunked_decode(&http1->chunked, &input, to, capacity, got);
            http1->in->begin = http1->in->end - input.length;
            if (status == CHUNKED_BAD)
                return origin_http1_broke_off(call, "its chunked coding is broken");
            if (status == CHUNKED_END) {
                origin_http1_take_trailers(call);
                origin_http1_ended(call);
            }
            if (*got > 0)
                return SOURCE_DATA;
            if (status == CHUNKED_END)
                return SOURCE_END;
        }
        http1->in->begin = http1->in->end = 0;
        size_t more = 0;
        struct iovec room = {http1->in->data, http1->in->capacity};
        enum source_status status = origin_http1_from_socket(call, &room, 1, &more);
        if (status != SOURCE_DATA)
            return status;
        http1->in->end = more;
    }
}

static enum source_status body_read_pieces(struct source *source, const struct iovec *pieces,
                                           int count, size_t *got) {
    struct origin_call *call = CONTAINER_OF(source, struct origin_call, body);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    struct origin_http1 *http1 = origin_http1_of(call);
    *got = 0;
    if (call->body_ended)
        return SOURCE_END;
    if (call->body_failed)
        return SOURCE_FAILED;
    return http1->framing.kind == FRAMING_CHUNKED
               ? origin_http1_read_chunked(call, pieces->iov_base, pieces->iov_len, got)
               : read_plain(call, pieces, count, got);
}

static enum source_status origin_http1_body_read(struct source *source, char *buffer,
                                                 size_t capacity, size_t *got) {
    struct iovec piece = {buffer, capacity};
    return body_read_pieces(source, &piece, 1, got);
}

static void origin_http1_body_close(struct source *source) {
    struct origin_call *call = CONTAINER_OF(source, struct origin_call, body);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    struct origin_http1 *http1 = origin_http1_of(call);
    call->body_open = false;
    if (call->body_ended)
        return;
    /* Unread bytes are still arriving, so the next request can't use the connection. */
    call->body_failed = true;
    connection_close(&http1->connection);
    net_buffer_give(call->net, &http1->in);
    origin_call_let_go(call);
}

/* While body bytes that came with the head are in the buffer, all bytes read before them are
 * there too. */
static bool body_unread(struct source *source, uint64_t count) {
    struct origin_call *call = CONTAINER_OF(source, struct origin_call, body);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    struct origin_http1 *http1 = origin_http1_of(call);
    if (http1->framing.kind == FRAMING_CHUNKED || origin_http1_waiting(http1) == 0 ||
        count > http1->in->begin - http1->body_at)
        return false;
    http1->in->begin -= (size_t)count;
    if (http1->framing.kind == FRAMING_LENGTH)
        http1->body_left += count;
    return true;
}

static const struct source_class body_class = {"response body", origin_http1_body_read,
                                               origin_http1_body_close, body_read_pieces};

/* "remove any header or trailer field(s) from the message with the same name" (RFC 9110 §7.6.1): where
 * Connection names fields, all trailers are left out, since a recipient may always do so. */
static char *trailer_space(const struct origin_call *call) {
    return http_head_names_fields(call->response) ? NULL : call->request.trailer_space;
}

void origin_http1_body_init(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    const struct framing *framing = &http1->framing;
    int64_t length = framing->kind == FRAMING_LENGTH ? (int64_t)framing->length : -1;
    source_init(&call->body, &body_class, call->net->loop, length);
    call->body.unread = body_unread;
    http1->body_left = framing->length;
    http1->body_at = http1->in->begin;
    if (framing->kind != FRAMING_CHUNKED)
        return;
    chunked_init(&http1->chunked);
    chunked_keep_trailers(&http1->chunked, trailer_space(call));
}

struct net_buffer *origin_http1_take_waiting(struct origin_call *call) {
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    struct origin_http1 *http1 = origin_http1_of(call);
    struct net_buffer *buffer = http1->in;
    size_t count = origin_http1_waiting(http1);
    bool plain = http1->framing.kind == FRAMING_CLOSE ||
                 (http1->framing.kind == FRAMING_LENGTH && count <= http1->body_left);
    if (!call->body_open || count == 0 || !plain)
        return NULL;
    http1->in = NULL;
    if (http1->framing.kind == FRAMING_LENGTH)
        origin_http1_take_off(call, count);
    return buffer;
}
