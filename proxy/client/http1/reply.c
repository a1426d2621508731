#include "client/http1/reply.h"

#include "client/http1/reply_sender.h"
#include "client/http1/request_body.h"

/* The status line and the field lines, without an empty line. */
static struct slice head_lines(const struct reply *reply) {
    if (reply->head == NULL)
        return reply->stored;
    struct slice text = http_head_text(reply->head, http_head_write_response, reply->arena);
    return slice_make(text.base, text.length - 2);
}

/* Writes the fields that say where the reply ends and whether the connection stays open, and the
 * empty line. */
static void frame_head(struct http1_exchange *exchange, const struct reply *reply,
                       bool has_content) {
    bool old_client = exchange->base.request.version < 11;
    char *at = exchange->frame;
    if (reply->length >= 0 && has_content) {
        at = slice_put(at, SLICE("Content-Length: "));
        at = slice_put_number(at, reply->length);
        at = slice_put(at, SLICE("\r\n"));
    } else if (has_content && exchange->has_reader && !old_client) {
        exchange->use_chunked = true;
        at = slice_put(at, SLICE("Transfer-Encoding: chunked\r\n"));
    } else if (has_content && exchange->has_reader) {
        /* HTTP/1.0: the end of the connection is the end of the body */
        exchange->keep_alive = false;
    }
    if (!exchange->keep_alive)
        at = slice_put(at, SLICE("Connection: close\r\n"));
    else if (old_client)
        at = slice_put(at, SLICE("Connection: keep-alive\r\n"));
    at = slice_put(at, SLICE("\r\n"));
    exchange->frame_end = (unsigned)(at - exchange->frame);
}

static void begin_body(struct http1_exchange *exchange, const struct reply *reply) {
    if (reply->part_count > 0) {
        exchange->parts_body = reply->body;
        exchange->next_part = reply->parts;
        exchange->parts_left = reply->part_count;
        exchange->tail = reply->tail;
        return;
    }
    http1_reply_sender_read(exchange, reply->body);
    if (reply->part)
        body_reader_choose(&exchange->reader, reply->first, (uint64_t)reply->length);
}

/* RFC 9110 §7.8: a client that wants another protocol may already have sent bytes in it. If the
 * answer is no, these bytes are not taken for a request. */
static bool may_have_switched(const struct http1_exchange *exchange) {
    return http_head_has(&exchange->base.request, HTTP_UPGRADE) &&
           http1_connection_has_input(exchange->connection);
}

/* May the connection carry another request? Not if it is unknown where that begins, and not if none
 * is wanted. */
static bool may_go_on(struct http1_exchange *exchange, const struct reply *reply) {
    return !reply->close && !exchange->base.clients->draining &&
           !(exchange->body_in_use && !exchange->body_ended) && http1_request_body_skip(exchange) &&
           !may_have_switched(exchange);
}

void http1_reply_start(struct exchange *base, const struct reply *reply) {
    struct http1_exchange *exchange = http1_exchange_of(base);
    base->state = EXCHANGE_SENDING;
    exchange->parts[0] = head_lines(reply);
    exchange->parts[1] = reply->extra;
    exchange->first_chunk = true;
    exchange->trailers = reply->trailers;
    if (!may_go_on(exchange, reply))
        exchange->keep_alive = false;
    bool has_content = !reply_has_no_content(reply);
    if (has_content && reply->body != NULL && !base->is_head)
        begin_body(exchange, reply);
    frame_head(exchange, reply, has_content);
    base->head_bytes = base->bytes_sent + exchange->parts[0].length + exchange->parts[1].length +
                       exchange->frame_end;
    http1_reply_sender_send(exchange);
}
