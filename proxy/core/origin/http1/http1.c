#include "origin/http1/http1.h"

#include "base/assert.h"
#include "http/chunked.h"
#include "http/framing.h"
#include "http/head_parser.h"
#include "http/trailer.h"
#include "net/sender.h"
#include "origin/call.h"

/* What HTTP/1.1 keeps of a call, in the call's room. */
struct origin_http1 {
    unsigned magic;
#define ORIGIN_HTTP1_MAGIC 0x04191001u
    bool kept_alive;  /* connection_keep_alive */
    bool deaf;        /* a write failed: the connection may still be read, not used again */
    bool keeps_alive; /* the origin does, by its head as it came */
    struct connection *connection;
    struct sender sender;
    struct net_buffer *in;
    size_t head_checked;
    struct framing framing;
    uint64_t body_left;
    size_t body_at; /* where in `in` it began */
    struct chunked_decoder chunked;
};

_Static_assert(sizeof(struct origin_http1) <= ORIGIN_CALL_ROOM, "a call has room for it");

static inline struct origin_http1 *origin_http1_of(struct origin_call *call) {
    struct origin_http1 *http1 = (struct origin_http1 *)(void *)call->room;
    CHECK_OBJ(http1, ORIGIN_HTTP1_MAGIC);
    return http1;
}

/* Bytes that have come and are not read yet. */
static inline size_t origin_http1_waiting(const struct origin_http1 *http1) {
    return http1->in == NULL ? 0 : net_buffer_bytes(http1->in).length;
}

/* Why the last read or write failed. */
static const char *origin_http1_error(struct origin_call *call) {
    const char *error = connection_error(origin_http1_of(call)->connection);
    return call->request.security != NULL ? origin_call_keep_error(call, error) : error;
}

/* ---- the body of a response ------------------------------------------------------------------ */

/* The body of a response: read directly into the room of its reader. */

enum { PIECES = 8 };

/* Bytes after a 2xx to a CONNECT, or after a 101, belong to another protocol (RFC 9110 §9.3.6).
 * They must not be taken for the next response. */
static bool opens_tunnel(const struct origin_call *call) {
    unsigned status = call->response->status;
    return status == 101 || (call->request.method == HTTP_METHOD_CONNECT && status < 300);
}

static void origin_http1_leave(struct origin_call *call) {
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

static void origin_http1_body_init(struct origin_call *call) {
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
    chunked_of_response(&http1->chunked, trailer_space(call));
}

static struct net_buffer *origin_http1_take_waiting(struct origin_call *call) {
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

/* ---- the head of a response, received into the buffer ---------------------------------------- */

/* HEADROOM: free bytes in the buffer. A body that came with its head is sent from there, and the
 * client's head before it is a little longer than the origin's. */
enum { HEADROOM = 512 };

static void origin_http1_answered(struct origin_call *call) {
    const struct framing *framing = &origin_http1_of(call)->framing;
    origin_http1_of(call)->keeps_alive = framing_keeps_alive(call->response);
    call->no_body =
        framing->kind == FRAMING_NONE || (framing->kind == FRAMING_LENGTH && framing->length == 0);
    call->may_have_trailers = framing->kind == FRAMING_CHUNKED;
    origin_http1_body_init(call);
    origin_call_answer(call);
}

/* "A server that sends a 101 (Switching Protocols) response MUST generate an Upgrade header field to
 * indicate the new protocol(s)"; it "MUST NOT switch to a protocol that was not indicated by the
 * client" (RFC 9110 §7.8). */
static bool switches_as_offered(const struct origin_call *call) {
    const struct http_field *field = http_head_find(call->response, HTTP_UPGRADE);
    unsigned named = 0;
    for (; field != NULL; field = http_head_find_next(call->response, HTTP_UPGRADE, field)) {
        struct slice rest = field->value, protocol;
        for (; slice_next_element(&rest, &protocol); named++)
            if (!slice_equal_nocase(protocol, call->request.upgrade))
                return false;
    }
    return named > 0;
}

/* The head is complete. Returns false when another one follows. */
static bool origin_http1_take_head(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    const struct http_head *response = call->response;
    if (response->status == 101 && call->request.upgrade.length == 0) {
        origin_call_fail(call, ORIGIN_BAD, "it switched protocols without being asked");
    } else if (response->status == 101 && !switches_as_offered(call)) {
        origin_call_fail(call, ORIGIN_BAD, "it switched to a protocol that was not offered to it");
    } else if (response->status == 101) {
        http1->framing.kind = FRAMING_NONE;
        origin_http1_answered(call);
    } else if (response->status < 200) {
        return !origin_call_take_interim(call);
    } else if (!framing_of_response(&http1->framing, response, call->request.method)) {
        origin_call_fail(call, ORIGIN_BAD, http1->framing.error);
    } else {
        origin_http1_answered(call);
    }
    return true;
}

/* Returns false when more bytes are needed. */
static bool origin_http1_parse(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    do {
        struct slice bytes = net_buffer_bytes(http1->in);
        ssize_t used =
            http_head_parse_response(call->response, bytes.base, bytes.length, http1->head_checked);
        if (used == 0) {
            http1->head_checked = bytes.length;
            return false;
        }
        http1->head_checked = 0;
        if (used < 0) {
            origin_call_fail(call, ORIGIN_BAD, http_error_text((enum http_error) - used));
            return true;
        }
        if ((size_t)used > call->request.max_head) {
            origin_call_refuse_head(call);
            return true;
        }
        http1->in->begin += (size_t)used;
        if (origin_http1_take_head(call))
            return true;
    } while (origin_http1_waiting(http1) > 0);
    return false;
}

static void origin_http1_receive(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    size_t got;
    if (http1->in == NULL) {
        http1->in = net_buffer_take(call->net);
        http1->in->begin = http1->in->end = HEADROOM;
    }
    while (call->state == ORIGIN_WAITING) {
        if (!net_buffer_make_room(call->net, &http1->in, call->request.max_head)) {
            origin_call_refuse_head(call);
            return;
        }
        switch (connection_read(http1->connection, http1->in->data + http1->in->end,
                                http1->in->capacity - http1->in->end, &got)) {
        case IO_DONE:
            if (!call->heard)
                origin_call_note_heard(call);
            http1->in->end += got;
            call->net->counters.origin_bytes_in += got;
            if (origin_http1_parse(call) || !http1->connection->readable)
                return;
            break;
        case IO_WAIT: return;
        case IO_END:
            origin_call_fail(call, ORIGIN_BROKE_OFF, "it closed the connection without answering");
            return;
        case IO_FAILED: origin_call_fail(call, ORIGIN_BROKE_OFF, origin_http1_error(call)); return;
        }
    }
}

/* ---- the request: its head, then its body as fast as the source gives it --------------------- */

/* The number of writes before other work gets its turn. */
enum { TURNS = 16 };

/* The origin does not read any more. It may have answered before it closed (RFC 9112 §9.5). */
static void origin_send_write_failed(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    http1->deaf = true;
    sender_stop(&http1->sender);
    if (call->state == ORIGIN_WAITING)
        origin_http1_receive(call);
}

/* The source has no more bytes now. The origin's timeout does not run while a client pauses. */
static void origin_send_starved(struct origin_call *call) {
    if (call->state == ORIGIN_WAITING)
        origin_call_pause(call);
}

/* The origin's timeout runs from the last byte of the request. */
static void origin_send_finished(struct origin_call *call) {
    if (call->state == ORIGIN_WAITING && call->timer.deadline == TIMER_NEVER)
        origin_call_await(call, call->request.first_byte_timeout);
}

/* A body that ended early is never completed; the connection is closed instead. */
static void origin_send_broke_off(struct origin_call *call) {
    connection_abort(&origin_http1_of(call)->connection);
    origin_call_fail(call, ORIGIN_NO_REQUEST, "the request's body could not be read to its end");
}

static void origin_send_count(struct origin_call *call, uint64_t sent) {
    call->net->counters.origin_bytes_out += sent;
    if (sent > 0 && call->state == ORIGIN_WAITING)
        origin_call_await(call, call->request.first_byte_timeout);
}

static void origin_http1_send(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    uint64_t sent;
    if (http1->connection == NULL)
        return;
    enum sender_status status = sender_write(&http1->sender, http1->connection, TURNS, &sent);
    call->body_begun = http1->sender.feed.started;
    origin_send_count(call, sent);
    switch (status) {
    case SENDER_DONE: origin_send_finished(call); break;
    case SENDER_STARVED: origin_send_starved(call); break;
    case SENDER_BLOCKED: break;
    case SENDER_MORE: loop_defer(call->net->loop, &call->send_task); break;
    case SENDER_BROKEN: origin_send_broke_off(call); break;
    case SENDER_LOST: origin_send_write_failed(call); break;
    }
}

/* ---- the connection: taken, used for one request, and given back ----------------------------- */

static void origin_http1_on_ready(struct connection *connection) {
    struct origin_call *call;
    CAST_OBJ(call, connection->event.owner, ORIGIN_CALL_MAGIC);
    struct origin_http1 *http1 = origin_http1_of(call);
    if (connection->writable && !sender_is_done(&http1->sender))
        origin_http1_send(call);
    if (http1->connection != connection || !connection->readable)
        return;
    if (call->state == ORIGIN_WAITING)
        origin_http1_receive(call);
    else if (call->state == ORIGIN_ANSWERED)
        source_wake(&call->body);
}

static struct origin_http1 *origin_http1_init(struct origin_call *call) {
    struct origin_http1 *http1 = (struct origin_http1 *)(void *)call->room;
    memset(http1, 0, sizeof *http1);
    http1->magic = ORIGIN_HTTP1_MAGIC;
    return http1;
}

/* A pooled connection may lead to an address that the name does not have any more, or that was
 * judged for another client. */
static bool pooled_is_permitted(const struct origin_call *call,
                                const struct connection *connection) {
    return call->request.permit == NULL ||
           call->request.permit(call->request.permit_arg, connection->remote);
}

static bool origin_http1_reuse(struct origin_call *call) {
    const struct origin_request *request = &call->request;
    struct pool *pool = call->connections->pool;
    struct connection *connection = pool_take(pool, request->pool_key, origin_http1_on_ready, call);
    if (connection == NULL)
        return false;
    if (!pooled_is_permitted(call, connection)) {
        pool_give(pool, request->pool_key, &connection, request->idle_timeout, request->max_idle);
        return false;
    }
    call->address = *connection->remote;
    call->reused = true;
    origin_http1_init(call)->connection = connection;
    return true;
}

static void origin_http1_use(struct origin_call *call, struct connection **connectionp) {
    struct origin_http1 *http1 = origin_http1_init(call);
    http1->connection = *connectionp;
    *connectionp = NULL;
    connection_set_owner(http1->connection, origin_http1_on_ready, call);
}

/* The head as text: it is written once, also for a request that is repeated. */
static struct slice origin_http1_head(struct origin_call *call) {
    struct origin_request *request = &call->request;
    if (request->head.length == 0)
        request->head = http_head_text(request->fields, http_head_write_request, request->arena);
    return request->head;
}

static void origin_http1_begin(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    sender_init(&http1->sender, call->net, call->request.body, call->request.chunked);
    http1->sender.head = origin_http1_head(call);
    origin_http1_send(call);
    /* The event for bytes that came with a new connection went to the dial. */
    if (call->state == ORIGIN_WAITING && http1->connection != NULL && http1->connection->readable)
        origin_http1_receive(call);
}

static void origin_http1_forget_request(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    if (!feed_is_done(&http1->sender.feed))
        http1->deaf = true;
    feed_release(&http1->sender.feed);
}

static bool origin_http1_has_unread(const struct origin_call *call) {
    const struct origin_http1 *http1 = origin_http1_of((struct origin_call *)call);
    return http1->connection != NULL && http1->connection->readable;
}

static uint64_t origin_http1_unanswered(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    if (http1->connection == NULL)
        return 0;
    if (!http1->kept_alive)
        connection_keep_alive(http1->connection);
    http1->kept_alive = true;
    return connection_unanswered(http1->connection);
}

static struct duplex *origin_http1_take_tunnel(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    return connection_duplex_new(&http1->connection, &http1->in);
}

static void origin_http1_drop(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    connection_close(&http1->connection);
    net_buffer_give(call->net, &http1->in);
    sender_stop(&http1->sender);
}

static void origin_http1_lose_host(struct origin_call *call) {
    pool_close_key(call->connections->pool, call->request.pool_key);
    origin_call_fail(call, ORIGIN_BROKE_OFF, ORIGIN_LOST_HOST);
}

const struct origin_call_class origin_http1_class = {
    .name = "HTTP/1.1",
    .version = "1.1",
    .reuse = origin_http1_reuse,
    .use = origin_http1_use,
    .begin = origin_http1_begin,
    .send = origin_http1_send,
    .forget_request = origin_http1_forget_request,
    .has_unread = origin_http1_has_unread,
    .unanswered = origin_http1_unanswered,
    .finish = origin_http1_leave,
    .take_waiting = origin_http1_take_waiting,
    .take_tunnel = origin_http1_take_tunnel,
    .drop = origin_http1_drop,
    .lose_host = origin_http1_lose_host,
};
