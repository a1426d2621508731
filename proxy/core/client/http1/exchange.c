#include "client/http1/exchange.h"

#include "base/assert.h"
#include "client/http1/outbox.h"
#include "client/http1/reply_sender.h"
#include "client/http1/request_body.h"

/*
 * The beginning of a reply on the wire: its head, with the fields that say where the reply ends and
 * what becomes of the connection.
 */

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

static void http1_reply_start(struct exchange *base, const struct reply *reply) {
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

enum { EXCHANGES_KEPT = 256 };

void http1_exchange_drop(struct http1_exchange *exchange) {
    struct http1_host *host = exchange->connection->host;
    if (host->free_exchange_count >= EXCHANGES_KEPT) {
        free(exchange);
        return;
    }
    exchange->next_free = host->free_exchanges;
    host->free_exchanges = exchange;
    host->free_exchange_count++;
}

bool http1_exchange_send_now(struct http1_exchange *exchange, struct slice head, size_t *sent) {
    struct iovec pieces[] = {{NULL, 0}, {(void *)head.base, head.length}};
    *sent = 0;
    if (exchange->base.state != EXCHANGE_REQUEST || exchange->connection->socket == NULL)
        return false;
    http1_outbox_write(exchange->connection, pieces, 1, false, sent);
    exchange->base.bytes_sent += *sent;
    return *sent == head.length;
}

/* Writes the head and sends it at once, as far as the client takes it. */
static bool send_head_now(struct http1_exchange *exchange, const struct http_head *head,
                          size_t *sent) {
    struct arena arena;
    arena_init(&arena);
    struct slice text = http_head_text(head, http_head_write_response, &arena);
    bool all = http1_exchange_send_now(exchange, text, sent);
    arena_release(&arena);
    return all;
}

static void http1_exchange_abort(struct exchange *base) {
    struct http1_connection *connection = http1_exchange_of(base)->connection;
    if (connection->socket == NULL)
        return;
    http1_outbox_flush(connection);
    clients_note_end(&connection->client, connection->socket, "aborted");
    connection_abort(&connection->socket);
    http1_connection_lost(connection);
}

/* If only a part of the head could be sent, the connection is lost, since what follows would be
 * read as the rest of the head. */
static void http1_exchange_interim(struct exchange *base, const struct http_head *head) {
    struct http1_exchange *exchange = http1_exchange_of(base);
    size_t sent;
    if (base->request.version >= 11 && !send_head_now(exchange, head, &sent) && sent > 0)
        http1_exchange_abort(base);
}

static struct duplex *http1_exchange_open_tunnel(struct exchange *base, struct http_head *head,
                                                 struct slice protocol) {
    struct http1_exchange *exchange = http1_exchange_of(base);
    struct http1_connection *connection = exchange->connection;
    size_t sent;
    if (protocol.length > 0) {
        http_head_set(head, HTTP_CONNECTION, SLICE("Upgrade"));
        http_head_set(head, HTTP_UPGRADE, protocol);
    }
    if (!send_head_now(exchange, head, &sent)) {
        http1_exchange_abort(base);
        return NULL;
    }
    connection->finished = true;
    return connection_duplex_new(&connection->socket, &connection->buffer);
}

/* Decides what happens to the connection after its exchange. */
static void exchange_ended(struct http1_connection *connection, bool reusable, bool body_ended) {
    connection->exchange = NULL;
    connection->state = HTTP1_IDLE;
    if (connection->socket == NULL)
        connection->finished = true;
    else if (!reusable && body_ended && !http1_connection_has_input(connection))
        connection->finished = true;
    else if (!reusable && !connection->finished)
        connection->state = HTTP1_LINGERING;
    if (!connection->serving)
        http1_connection_serve(connection);
}

static void http1_exchange_finish(struct exchange *base) {
    struct http1_exchange *exchange = http1_exchange_of(base);
    struct http1_connection *connection = exchange->connection;
    bool reusable =
        base->state == EXCHANGE_SENT && exchange->keep_alive && http1_request_body_skip(exchange);
    bool body_ended = exchange->body_ended;
    task_cancel(&exchange->reader_task);
    if (exchange->has_reader)
        body_reader_close(&exchange->reader);
    exchange_release(base);
    http1_exchange_drop(exchange);
    exchange_ended(connection, reusable, body_ended);
}

static uint64_t http1_exchange_received(const struct exchange *base) {
    return CONTAINER_OF(base, const struct http1_exchange, base)->clock.got;
}

static const struct exchange_class http1_exchange_class = {
    .name = "HTTP/1",
    .carries_connection = true,
    .body = http1_request_body_take,
    .reply = http1_reply_start,
    .interim = http1_exchange_interim,
    .open_tunnel = http1_exchange_open_tunnel,
    .abort = http1_exchange_abort,
    .finish = http1_exchange_finish,
    .received = http1_exchange_received,
};

void http1_exchange_begin(struct http1_exchange *exchange) {
    struct http1_connection *connection = exchange->connection;
    struct client_connection *client = &connection->client;
    struct clients *clients = client->clients;
    exchange_init(&exchange->base, &http1_exchange_class, clients, &client->ends, client->listen);
    task_init(&exchange->reader_task, http1_reply_sender_on_body);
    connection->exchange = exchange;
    connection->state = HTTP1_BUSY;
    connection->requests++;
    http1_connection_disarm(connection);
    connection->net->counters.client_requests++;
    http1_request_body_init(exchange);
    unsigned most = connection->net->settings->client.max_requests;
    if (clients->draining || client->listen == NULL || (most > 0 && connection->requests >= most))
        exchange->keep_alive = false;
    clients->on_request(&exchange->base, clients->arg);
}
