#include "client/http2/connection.h"

#include "client/http2/exchange.h"
#include "client/http2/reply.h"
#include "client/http2/request.h"
#include "client/http2/request_body.h"
#include "client/http2/tunnel.h"

void http2_host_init(struct http2_host *host, struct clients *clients) {
    *host = (struct http2_host){.clients = clients};
    http2_workspace_init(&host->workspace, clients->net);
}

void http2_host_release(struct http2_host *host) {
    while (host->free_exchanges != NULL) {
        struct http2_exchange *next = host->free_exchanges->next_free;
        free(host->free_exchanges);
        host->free_exchanges = next;
    }
    free(host->block);
    head_blocks_release(&host->head_blocks);
    http2_workspace_release(&host->workspace);
}

static void http2_connection_free(struct http2_connection *connection) {
    http2_session_release(&connection->session);
    connection->net->counters.client_http2_connections_open--;
    clients_remove(&connection->client);
    FREE_OBJ(connection);
}

void http2_connection_leave(struct http2_connection *connection) {
    CHECK_OBJ(connection, HTTP2_CONNECTION_MAGIC);
    connection->exchanges--;
    if (connection->lost && connection->exchanges == 0)
        http2_connection_free(connection);
}

/* The functions of struct http2_session_class. */

static struct http2_stream *on_open(struct http2_session *session) {
    struct http2_connection *connection = http2_connection_of_session(session);
    struct clients *clients = connection->client.clients;
    unsigned most = connection->net->settings->client.max_requests;
    connection->requests++;
    connection->net->counters.client_http2_streams++;
    if (connection->client.listen == NULL || clients->draining ||
        (most > 0 && connection->requests >= most))
        http2_session_drain(session);
    return clients_lack_memory(clients) ? NULL : &http2_exchange_new(connection)->stream;
}

static bool on_head(struct http2_stream *stream, struct hpack_list *list, bool ended) {
    struct http2_exchange *exchange = http2_exchange_of_stream(stream);
    if (!http2_request_read(exchange, list, ended))
        return false;
    http2_exchange_begin(exchange);
    return true;
}

/* Trailers of requests end here, as those of HTTP/1.1 do; they have to be well-formed. */
static bool on_trailers(struct http2_stream *stream, const struct hpack_list *list) {
    (void)stream;
    return http2_request_check_trailers(list);
}

static void on_body(struct http2_stream *stream) {
    struct http2_exchange *exchange = http2_exchange_of_stream(stream);
    if (exchange->tunnel.magic != 0)
        http2_tunnel_wake(exchange);
    else if (exchange->body_taken)
        http2_request_body_came(exchange);
}

static bool on_turn(struct http2_stream *stream) {
    struct http2_exchange *exchange = http2_exchange_of_stream(stream);
    if (exchange->tunnel.magic != 0) {
        exchange->tunnel_turn = true;
        http2_tunnel_wake(exchange);
        return false;
    }
    return exchange->base.state == EXCHANGE_SENDING && http2_reply_turn(exchange);
}

static void on_over(struct http2_stream *stream, enum http2_error error, bool processed) {
    (void)error, (void)processed;
    http2_exchange_lost(http2_exchange_of_stream(stream));
}

static void on_deadline(struct http2_stream *stream) {
    http2_request_body_is_late(http2_exchange_of_stream(stream));
}

static void on_closing(struct http2_session *session) {
    struct http2_connection *connection = http2_connection_of_session(session);
    clients_note_end(&connection->client, session->socket, NULL);
}

static void on_lost(struct http2_session *session) {
    struct http2_connection *connection = http2_connection_of_session(session);
    connection->lost = true;
    if (connection->exchanges == 0)
        http2_connection_free(connection);
}

static const struct http2_session_class session_class = {
    .name = "HTTP/2 client",
    .on_open = on_open,
    .on_head = on_head,
    .on_trailers = on_trailers,
    .on_body = on_body,
    .on_turn = on_turn,
    .on_over = on_over,
    .on_deadline = on_deadline,
    .on_closing = on_closing,
    .on_lost = on_lost,
};

/* The functions of struct client_connection_class. */

static struct http2_connection *http2_connection_of(struct client_connection *client) {
    struct http2_connection *connection = CONTAINER_OF(client, struct http2_connection, client);
    CHECK_OBJ(connection, HTTP2_CONNECTION_MAGIC);
    return connection;
}

static void http2_connection_drain(struct client_connection *client) {
    http2_session_drain(&http2_connection_of(client)->session);
}

static void http2_connection_abort(struct client_connection *client) {
    clients_note_end(client, http2_connection_of(client)->session.socket, "aborted");
    http2_session_abort(&http2_connection_of(client)->session);
}

static uint64_t http2_connection_requests(const struct client_connection *client) {
    return CONTAINER_OF(client, const struct http2_connection, client)->requests;
}

static double rate_of(const struct exchange *exchange, uint64_t now) {
    return (double)exchange->bytes_sent / (double)(now - exchange->started + 1);
}

static struct exchange *http2_connection_slowest(struct client_connection *client) {
    struct http2_connection *connection = http2_connection_of(client);
    uint64_t now = connection->net->loop->now_nanoseconds;
    struct exchange *slowest = NULL;
    LIST_FOR_EACH (link, &connection->session.streams) {
        struct http2_exchange *exchange =
            http2_exchange_of_stream(CONTAINER_OF(link, struct http2_stream, link));
        struct exchange *base = &exchange->base;
        if (base->state == EXCHANGE_SENDING && exchange->has_reader &&
            (slowest == NULL || rate_of(base, now) < rate_of(slowest, now)))
            slowest = base;
    }
    return slowest;
}

static const struct client_connection_class connection_class = {
    .name = "HTTP/2",
    .drain = http2_connection_drain,
    .abort = http2_connection_abort,
    .requests = http2_connection_requests,
    .slowest = http2_connection_slowest,
};

static struct http2_limits http2_limits_of(const struct settings *settings,
                                           const struct listen_settings *listen) {
    return (struct http2_limits){
        .streams = settings->client.http2_streams,
        .stream_window = (uint32_t)settings->client.http2_window,
        .window = (uint32_t)settings->client.http2_connection_window,
        .frame = (uint32_t)settings->client.http2_frame_size,
        .max_head = listen != NULL ? listen->max_head : settings->client.max_head,
        .budget = settings->client.http2_budget,
        .tunnels = true,
        .head_timeout = settings->client.header_timeout,
        .send_timeout = settings->client.send_timeout,
        .idle_timeout = settings->client.idle_timeout,
    };
}

static struct http2_counts http2_counts_of(struct counters *counters) {
    return (struct http2_counts){
        .bytes_in = &counters->client_bytes_in,
        .bytes_out = &counters->client_bytes_out,
        .resets_in = &counters->client_http2_resets_received,
        .resets_out = &counters->client_http2_resets_sent,
        .refused = &counters->client_http2_streams_refused,
        .stream_errors = &counters->client_http2_stream_errors,
        .protocol_errors = &counters->client_http2_protocol_errors,
        .flow_control_errors = &counters->client_http2_flow_control_errors,
        .compression_errors = &counters->client_http2_compression_errors,
        .calmed = &counters->client_http2_calmed,
    };
}

void http2_adopt(struct http2_host *host, const struct client_arrival *arrival) {
    struct clients *clients = host->clients;
    struct net_context *net = clients->net;
    struct http2_connection *connection;
    ALLOC_OBJ(connection, HTTP2_CONNECTION_MAGIC);
    connection->host = host;
    connection->net = net;
    clients_add(clients, &connection->client, &connection_class, arrival->client,
                arrival->listener);
    clients_note_arrival(&connection->client, arrival);
    net->counters.client_http2_connections++;
    net->counters.client_http2_connections_open++;
    struct http2_limits limits = http2_limits_of(net->settings, connection->client.listen);
    struct http2_counts counts = http2_counts_of(&net->counters);
    http2_session_init(&connection->session, &host->workspace, &session_class, HTTP2_SERVER,
                       &limits, &counts);
    http2_session_start(&connection->session, arrival->connection, arrival->ahead);
}
