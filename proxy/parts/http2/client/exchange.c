#include "http2/client/exchange.h"

#include "http2/client/reply.h"
#include "http2/client/request_body.h"
#include "http2/client/tunnel.h"
#include "http2/hpack_encode.h"

enum { HTTP2_EXCHANGES_KEPT = 256 };

struct http2_exchange *http2_exchange_new(struct http2_connection *connection) {
    struct http2_host *host = connection->host;
    struct http2_exchange *exchange = host->free_exchanges;
    if (exchange != NULL) {
        host->free_exchanges = exchange->next_free;
        host->free_exchange_count--;
    } else {
        exchange = xmalloc(sizeof *exchange);
    }
    /* All but the head, which its parser initialises, and what only some use. */
    enum { CLEARED = offsetof(struct http2_exchange, base.state) };
    memset((char *)exchange + CLEARED, 0, offsetof(struct http2_exchange, reader) - CLEARED);
    exchange->connection = connection;
    http2_stream_init(&exchange->stream);
    connection->exchanges++;
    connection->net->counters.client_http2_streams_open++;
    return exchange;
}

void http2_exchange_leave(struct http2_exchange *exchange) {
    struct http2_connection *connection = exchange->connection;
    struct http2_host *host = connection->host;
    if ((exchange->begun && !exchange->finished) || exchange->tunnel.magic != 0)
        return;
    http2_stream_close(&exchange->stream);
    connection->net->counters.client_http2_streams_open--;
    if (host->free_exchange_count < HTTP2_EXCHANGES_KEPT) {
        exchange->next_free = host->free_exchanges;
        host->free_exchanges = exchange;
        host->free_exchange_count++;
    } else {
        free(exchange);
    }
    http2_connection_leave(connection);
}

void http2_exchange_lost(struct http2_exchange *exchange) {
    struct exchange *base = &exchange->base;
    if (exchange->tunnel.magic != 0)
        http2_tunnel_wake(exchange);
    if (!exchange->begun) {
        http2_exchange_leave(exchange);
        return;
    }
    if (exchange->finished || base->state == EXCHANGE_SENT || base->state == EXCHANGE_ABORTED)
        return;
    base->state = EXCHANGE_ABORTED;
    if (exchange->body_taken)
        source_wake(&exchange->body);
    if (base->waker != NULL)
        loop_defer(exchange->connection->net->loop, base->waker);
}

char *http2_block(struct http2_host *host, size_t room) {
    if (host->block_room < room) {
        free(host->block);
        host->block = xmalloc(room);
        host->block_room = room;
    }
    return host->block;
}

/* The client's table would be of no use to our encoder, and says so: the client may have asked for a
 * smaller one (RFC 7541 §4.2). */
static char *say_no_table(struct http2_session *session, char *block, char *end) {
    if (session == NULL || session->size_update_sent)
        return end;
    session->size_update_sent = true;
    memmove(block + 1, block, (size_t)(end - block));
    hpack_put_no_table(block);
    return end + 1;
}

void http2_exchange_put_block(struct http2_exchange *exchange, char *block, char *end, bool ended) {
    end = say_no_table(exchange->stream.session, block, end);
    exchange->base.bytes_sent += HTTP2_FRAME_HEAD + (size_t)(end - block);
    http2_stream_put_head(&exchange->stream, slice_make(block, (size_t)(end - block)), ended);
}

static void http2_exchange_abort(struct exchange *base) {
    struct http2_exchange *exchange = http2_exchange_of(base);
    http2_stream_reset(&exchange->stream, HTTP2_INTERNAL_ERROR);
    http2_exchange_lost(exchange);
}

/* Fields about the connection are not for HTTP/2, and the encoder leaves them out. */
static void http2_exchange_interim(struct exchange *base, const struct http_head *head) {
    struct http2_exchange *exchange = http2_exchange_of(base);
    if (!http2_stream_is_flowing(&exchange->stream))
        return;
    char *block =
        http2_block(exchange->connection->host, HPACK_STATUS_ROOM + hpack_fields_room(head));
    char *end = hpack_put_fields(hpack_put_status(block, head->status), head);
    http2_exchange_put_block(exchange, block, end, false);
}

static void http2_exchange_finish(struct exchange *base) {
    struct http2_exchange *exchange = http2_exchange_of(base);
    task_cancel(&exchange->reader_task);
    if (exchange->has_reader)
        body_reader_close(&exchange->reader);
    exchange->has_reader = false;
    exchange->finished = true;
    exchange_release(base);
    http2_exchange_leave(exchange);
}

static uint64_t http2_exchange_received(const struct exchange *base) {
    return CONTAINER_OF(base, const struct http2_exchange, base)->clock.got;
}

static const struct exchange_class http2_exchange_class = {
    .name = "HTTP/2",
    .body = http2_request_body_take,
    .reply = http2_reply_start,
    .interim = http2_exchange_interim,
    .open_tunnel = http2_tunnel_open,
    .abort = http2_exchange_abort,
    .finish = http2_exchange_finish,
    .received = http2_exchange_received,
};

void http2_exchange_begin(struct http2_exchange *exchange) {
    struct http2_connection *connection = exchange->connection;
    struct client_connection *client = &connection->client;
    struct clients *clients = client->clients;
    exchange_init(&exchange->base, &http2_exchange_class, clients, &client->ends, client->listen);
    task_init(&exchange->reader_task, http2_reply_on_body);
    http2_request_body_init(exchange);
    exchange->begun = true;
    connection->net->counters.client_requests++;
    clients->on_request(&exchange->base, clients->arg);
}
