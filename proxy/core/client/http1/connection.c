#include "client/http1/connection.h"

#include "base/assert.h"
#include "base/log.h"
#include "client/http1/exchange.h"
#include "client/http1/outbox.h"
#include "client/http1/reply_sender.h"
#include "client/http1/request_head.h"

#include <errno.h>

/* LINGER_TIME is in milliseconds, LINGER_BYTES in bytes. */
enum { LINGER_TIME = 2000, LINGER_BYTES = 1 << 20 };

void http1_host_init(struct http1_host *host, struct clients *clients) {
    host->clients = clients;
    host->free_exchanges = NULL;
    host->free_exchange_count = 0;
}

void http1_host_release(struct http1_host *host) {
    while (host->free_exchanges != NULL) {
        struct http1_exchange *next = host->free_exchanges->next_free;
        free(host->free_exchanges);
        host->free_exchanges = next;
    }
}

static void http1_connection_free(struct http1_connection *connection) {
    ASSERT(connection->exchange == NULL);
    clients_note_end(&connection->client, connection->socket, NULL);
    connection_close(&connection->socket);
    net_buffer_give(connection->net, &connection->buffer);
    free(connection->held_memory);
    timer_cancel(&connection->net->loop->timers, &connection->timer);
    task_cancel(&connection->turn);
    clients_remove(&connection->client);
    FREE_OBJ(connection);
}

static bool is_served(const struct http1_connection *connection) {
    return connection->exchange != NULL || connection->state == HTTP1_LINGERING;
}

static void http1_connection_on_turn(struct task *task) {
    struct http1_connection *connection = CONTAINER_OF(task, struct http1_connection, turn);
    CHECK_OBJ(connection, HTTP1_CONNECTION_MAGIC);
    if (!is_served(connection))
        http1_connection_serve(connection);
}

/* Reads what the client still sends and drops it. Without this, closing could reset the connection
 * before the client has seen the reply (RFC 9112 §9.6). */
static bool linger_read(struct http1_connection *connection) {
    char scrap[4096];
    size_t got;
    while (connection->socket->readable) {
        enum io_status status = connection_read(connection->socket, scrap, sizeof scrap, &got);
        connection->lingered += got;
        if (status == IO_END || status == IO_FAILED || connection->lingered > LINGER_BYTES) {
            http1_connection_free(connection);
            return false;
        }
        if (status == IO_WAIT)
            break;
    }
    return true;
}

static bool linger_begin(struct http1_connection *connection) {
    connection_shutdown(connection->socket);
    http1_connection_arm(connection, LINGER_TIME);
    connection->lingered = 0;
    return linger_read(connection);
}

void http1_connection_lost(struct http1_connection *connection) {
    connection->finished = true;
    if (connection->exchange == NULL) {
        if (!connection->serving) /* else http1_connection_serve frees it */
            http1_connection_free(connection);
        return;
    }
    struct exchange *exchange = &connection->exchange->base;
    exchange->state = EXCHANGE_ABORTED;
    clients_note_end(&connection->client, connection->socket, NULL);
    connection_cut(&connection->socket);
    http1_connection_disarm(connection);
    if (exchange->waker != NULL)
        loop_defer(connection->net->loop, exchange->waker);
}

void http1_connection_hand_over(struct http1_connection *connection) {
    struct client_connection *client = &connection->client;
    connection->finished = true;
    if (!connection_watch(connection->socket)) {
        log_error("cannot watch a client connection: %s", strerror(errno));
        return;
    }
    clients_adopt(client->clients,
                  &(struct client_arrival){
                      .connection = &connection->socket,
                      .ahead = &connection->buffer,
                      .client = &client->ends.client,
                      .listener = &client->listener,
                      .destination = client->destination,
                      .redirection = client->redirection != NULL ? &client->redirection : NULL,
                      .http2 = true,
                  });
}

static void busy_on_timeout(struct http1_connection *connection) {
    struct http1_exchange *exchange = connection->exchange;
    if (exchange->base.state != EXCHANGE_REQUEST) {
        clients_note_end(&connection->client, connection->socket, "timeout");
        exchange_abort(&exchange->base);
        return;
    }
    connection->net->counters.client_too_slow += exchange->clock.by_rate;
    exchange->base.body_failed = exchange->base.body_timed_out = true;
    source_wake(&exchange->body);
}

/* The time that a head of which so much is there may take, in milliseconds. */
static uint64_t head_time(const struct http1_connection *connection) {
    const struct settings *settings = connection->net->settings;
    uint64_t most = settings->client.header_timeout;
    if (settings->client.min_rate == 0)
        return most;
    size_t there = connection->buffer->end - connection->buffer->begin;
    uint64_t slowest = client_slowest_time(settings, there);
    return slowest < most ? slowest : most;
}

static bool head_is_too_slow(const struct http1_connection *connection) {
    return head_time(connection) < connection->net->settings->client.header_timeout;
}

static void http1_connection_on_timeout(struct timer *timer) {
    struct http1_connection *connection = CONTAINER_OF(timer, struct http1_connection, timer);
    CHECK_OBJ(connection, HTTP1_CONNECTION_MAGIC);
    switch (connection->state) {
    case HTTP1_HEAD:
        connection->net->counters.client_timeouts++;
        connection->net->counters.client_too_slow += head_is_too_slow(connection);
        /* fall through */
    case HTTP1_IDLE:
    case HTTP1_SILENT:
    case HTTP1_LINGERING:
        clients_note_end(&connection->client, connection->socket, "timeout");
        http1_connection_free(connection);
        return;
    case HTTP1_BUSY: connection->net->counters.client_timeouts++; busy_on_timeout(connection);
    }
}

static void wait_for_request(struct http1_connection *connection) {
    const struct settings *settings = connection->net->settings;
    bool empty = connection->buffer == NULL || connection->buffer->begin == connection->buffer->end;
    if (empty) {
        net_buffer_give(connection->net, &connection->buffer);
        connection->head_checked = 0;
    }
    if (!empty) {
        if (connection->state != HTTP1_HEAD)
            connection->head_since = connection->net->loop->now;
        connection->state = HTTP1_HEAD;
        timer_set(&connection->net->loop->timers, &connection->timer,
                  connection->head_since + head_time(connection));
    } else if (empty && connection->requests > 0) {
        connection->state = HTTP1_IDLE;
        http1_connection_arm(connection, settings->client.idle_timeout);
    }
}

static void serve_requests(struct http1_connection *connection) {
    const struct counters *counters = &connection->net->counters;
    unsigned last = connection->requests + HTTP1_TURN_REQUESTS;
    uint64_t enough = counters->client_bytes_out + HTTP1_TURN_BYTES;
    while (!connection->finished && !is_served(connection) && connection->held_memory == NULL) {
        if (connection->requests == last || counters->client_bytes_out >= enough) {
            loop_defer(connection->net->loop, &connection->turn);
            break;
        }
        if (!http1_request_head_read(connection)) {
            wait_for_request(connection);
            break;
        }
    }
}

bool http1_connection_serve(struct http1_connection *connection) {
    if (connection->held_memory != NULL)
        http1_outbox_flush(connection);
    connection->serving = true;
    serve_requests(connection);
    connection->serving = false;
    enum io_status flushed = http1_outbox_flush(connection);
    if (connection->exchange != NULL)
        return true; /* it writes what is left before its own */
    if (flushed == IO_WAIT) {
        http1_connection_arm(connection, connection->net->settings->client.send_timeout);
        return true;
    }
    if (connection->finished || flushed == IO_FAILED) {
        http1_connection_free(connection);
        return false;
    }
    return connection->state != HTTP1_LINGERING || linger_begin(connection);
}

static void busy_on_ready(struct http1_connection *connection) {
    struct connection *socket = connection->socket;
    struct http1_exchange *exchange = connection->exchange;
    if (socket->broken) { /* nobody is there for the reply: do not wait for it */
        http1_connection_lost(connection);
        return;
    }
    if (socket->readable)
        source_wake(&exchange->body);
    if (socket->writable && exchange->base.state == EXCHANGE_SENDING)
        http1_reply_sender_send(exchange);
    else if (socket->writable)
        http1_outbox_flush(connection);
}

/* The first bytes have come, or the client has left. */
static void silent_on_ready(struct http1_connection *connection) {
    if (!connection->socket->readable && !connection->socket->broken)
        return;
    connection->state = HTTP1_IDLE;
    clients_spoke(&connection->client);
    http1_connection_serve(connection);
}

static void http1_connection_on_ready(struct connection *socket) {
    struct http1_connection *connection;
    CAST_OBJ(connection, socket->event.owner, HTTP1_CONNECTION_MAGIC);
    if (connection->state == HTTP1_BUSY)
        busy_on_ready(connection);
    else if (connection->state == HTTP1_SILENT)
        silent_on_ready(connection);
    else if (connection->state == HTTP1_LINGERING && connection->held_memory == NULL)
        linger_read(connection);
    else if (connection->held_memory == NULL || socket->writable)
        http1_connection_serve(connection);
}

/* The functions of struct client_connection_class. */

static struct http1_connection *http1_connection_of(struct client_connection *client) {
    struct http1_connection *connection = CONTAINER_OF(client, struct http1_connection, client);
    CHECK_OBJ(connection, HTTP1_CONNECTION_MAGIC);
    return connection;
}

static void http1_connection_drain(struct client_connection *client) {
    struct http1_connection *connection = http1_connection_of(client);
    if (connection->state <= HTTP1_SILENT && !http1_connection_has_input(connection) &&
        connection->held.length == 0)
        http1_connection_free(connection);
    else if (connection->exchange != NULL)
        connection->exchange->keep_alive = false;
}

static void http1_connection_abort(struct client_connection *client) {
    struct http1_connection *connection = http1_connection_of(client);
    clients_note_end(client, connection->socket, "aborted");
    connection_abort(&connection->socket);
    http1_connection_lost(connection);
}

static uint64_t http1_connection_requests(const struct client_connection *client) {
    return CONTAINER_OF(client, const struct http1_connection, client)->requests;
}

static struct exchange *http1_connection_slowest(struct client_connection *client) {
    struct http1_exchange *exchange = http1_connection_of(client)->exchange;
    bool sends =
        exchange != NULL && exchange->base.state == EXCHANGE_SENDING && exchange->has_reader;
    return sends ? &exchange->base : NULL;
}

static const struct client_connection_class http1_connection_class = {
    .name = "HTTP/1",
    .drain = http1_connection_drain,
    .abort = http1_connection_abort,
    .requests = http1_connection_requests,
    .slowest = http1_connection_slowest,
};

/* Mostly the first request is there by now. If the connection is closed behind the reply, it need
 * not be watched. */
static void http1_connection_begin(struct http1_connection *connection) {
    if (!http1_connection_serve(connection) || connection->socket == NULL)
        return;
    if (connection->state == HTTP1_IDLE && connection->requests == 0) {
        connection->state = HTTP1_SILENT;
        if (!clients_count_half_open(&connection->client)) {
            http1_connection_free(connection);
            return;
        }
    }
    if (connection_watch(connection->socket))
        return;
    log_error("cannot watch a client connection: %s", strerror(errno));
    http1_connection_lost(connection);
}

/* The socket is adopted by the caller. */
static struct http1_connection *http1_connection_new(struct http1_host *host,
                                                     const struct address *address,
                                                     const struct address *listener) {
    struct clients *clients = host->clients;
    struct http1_connection *connection;
    ALLOC_OBJ(connection, HTTP1_CONNECTION_MAGIC);
    connection->net = clients->net;
    connection->host = host;
    timer_init(&connection->timer, http1_connection_on_timeout);
    task_init(&connection->turn, http1_connection_on_turn);
    clients_add(clients, &connection->client, &http1_connection_class, address, listener);
    http1_connection_arm(connection, clients->net->settings->client.idle_timeout);
    return connection;
}

void http1_accept(struct http1_host *host, const struct client_accepted *accepted) {
    struct http1_connection *connection =
        http1_connection_new(host, accepted->client, accepted->listener);
    int fd = accepted->fd;
    clients_set_destination(&connection->client, accepted->destination);
    connection->socket =
        connection_adopt(connection->net, &fd, http1_connection_on_ready, connection);
    if (clients_count(&connection->client))
        http1_connection_begin(connection);
    else
        http1_connection_free(connection);
}

/* The requests wait for the next turn of the loop, because the caller may be a step of another
 * transaction. */
void http1_adopt(struct http1_host *host, const struct client_arrival *arrival) {
    struct http1_connection *connection =
        http1_connection_new(host, arrival->client, arrival->listener);
    clients_note_arrival(&connection->client, arrival);
    connection->socket = *arrival->connection;
    *arrival->connection = NULL;
    if (arrival->ahead != NULL) {
        connection->buffer = *arrival->ahead;
        *arrival->ahead = NULL;
    }
    connection->socket->readable = connection->socket->writable = true;
    connection_set_owner(connection->socket, http1_connection_on_ready, connection);
    loop_defer(connection->net->loop, &connection->turn);
}
