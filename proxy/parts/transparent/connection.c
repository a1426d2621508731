#include "transparent/connection.h"

#include "base/assert.h"
#include "base/log.h"
#include "client/first_bytes.h"
#include "client/redirection.h"
#include "net/egress.h"
#include "transparent/own_connections.h"
#include "transparent/settings.h"

#include <errno.h>
#include <linux/netfilter_ipv4.h>

/* ---- what the kernel says of a connection ------------------------------------------------------ */

/* linux/netfilter_ipv6/ip6_tables.h has it, and does not go together with netinet/in.h. */
enum { IP6T_SO_ORIGINAL_DST = 80 };

/* False: the kernel tracks no such connection. That is so with TPROXY where nothing else needs the
 * tracking. */
static bool read_original(int fd, sa_family_t family, struct address *original) {
    *original = (struct address){.length = sizeof original->v6};
    if (family == AF_INET)
        return getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &original->any, &original->length) == 0;
    return getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, &original->any, &original->length) == 0;
}

/* Without a redirection, the connection's own address is the listener's, and one of this machine. A
 * connection by TPROXY may be for the same port, but of another machine. */
static bool is_direct(struct net_context *net, const struct address *local,
                      const struct address *destination, const struct address *listener) {
    return address_equal(local, destination) && address_port(local) == address_port(listener) &&
           !egress_allows(net, EGRESS_REMOTE, destination);
}

static void redirection_refuse_direct(struct redirection *redirection) {
    redirection->status = 403;
    redirection->reason =
        "this port is for connections that a firewall redirects to it; clients can "
        "not connect to it themselves";
}

static struct redirection *redirection_new(struct net_context *net, int fd,
                                           const struct address *listener) {
    struct redirection *redirection = xcalloc(1, sizeof *redirection);
    struct address local = {.length = sizeof local.v6};
    if (getsockname(fd, &local.any, &local.length) != 0)
        local = *listener;
    address_unmap(&local);
    if (!read_original(fd, local.any.sa_family, &redirection->destination))
        redirection->destination = local;
    redirection->rewritten = !address_equal(&local, &redirection->destination);
    if (is_direct(net, &local, &redirection->destination, listener))
        redirection_refuse_direct(redirection);
    return redirection;
}

/* A load balancer announces the connection (the part proxy_protocol). */
static struct redirection *redirection_announced(struct net_context *net,
                                                 const struct address *destination) {
    struct redirection *redirection = xcalloc(1, sizeof *redirection);
    redirection->destination = *destination;
    if (!egress_allows(net, EGRESS_OTHERS, destination))
        redirection_refuse_direct(redirection);
    return redirection;
}

/* Finds a connection that this process itself has opened, when bytes have arrived: the process notes a
 * connection only after the kernel has opened it. */
static void redirection_judge(struct redirection *redirection, struct net_context *net,
                              const struct address *client) {
    if (redirection->status != 0 ||
        !own_connections_have(net->own_connections, client, &redirection->destination))
        return;
    redirection->status = 508;
    redirection->reason = "this connection was opened by this proxy and has come back to it: the "
                          "rules that redirect connections must leave those of the proxy alone, by "
                          "transparent.mark or by its user";
}

/* What a load balancer says counts for more than what the kernel says of its connection. */
static struct redirection *transparent_redirection(struct net_context *net,
                                                   const struct client_accepted *accepted) {
    return accepted->destination != NULL ? redirection_announced(net, accepted->destination)
                                         : redirection_new(net, accepted->fd, accepted->listener);
}

/* ---- a connection ------------------------------------------------------------------------------ */

/* The bytes that must be enough to tell a protocol. */
enum { READ_MOST = 4096 };

static const struct transparent_settings *transparent_settings(const struct net_context *net) {
    return net->settings->parts[PART_TRANSPARENT];
}

struct transparent_connection {
    unsigned magic;
#define TRANSPARENT_CONNECTION_MAGIC 0x74a45b00u
    struct net_context *net;
    struct client_connection client;
    struct connection *socket; /* NULL: closed, or handed on */
    struct net_buffer *buffer; /* bytes read; NULL: none */
    struct timer timer;
    bool speaks_tls;                       /* its first bytes do */
    struct transparent_exchange *exchange; /* under way; NULL: none */
};

struct transparent_exchange {
    struct exchange base;
    struct transparent_connection *connection;
    char target[ADDRESS_TEXT];
};

static void transparent_free(struct transparent_connection *connection) {
    ASSERT(connection->exchange == NULL);
    clients_note_end(&connection->client, connection->socket, NULL);
    connection_close(&connection->socket);
    net_buffer_give(connection->net, &connection->buffer);
    timer_cancel(&connection->net->loop->timers, &connection->timer);
    clients_remove(&connection->client);
    FREE_OBJ(connection);
}

/* The socket is of no more use: the transaction ends it all, or there is none. */
static void transparent_lost(struct transparent_connection *connection) {
    if (connection->exchange == NULL) {
        transparent_free(connection);
        return;
    }
    clients_note_end(&connection->client, connection->socket, NULL);
    connection_close(&connection->socket);
    struct exchange *exchange = &connection->exchange->base;
    if (exchange->state != EXCHANGE_REQUEST)
        return;
    exchange->state = EXCHANGE_ABORTED;
    if (exchange->waker != NULL)
        loop_defer(connection->net->loop, exchange->waker);
}

/* The functions of struct exchange_class. */

static struct transparent_connection *transparent_of(struct exchange *exchange) {
    struct transparent_connection *connection =
        CONTAINER_OF(exchange, struct transparent_exchange, base)->connection;
    CHECK_OBJ(connection, TRANSPARENT_CONNECTION_MAGIC);
    return connection;
}

/* What a client of TLS is told: access_denied, or internal_error. The rest of its first bytes is
 * read away, because closing would otherwise reset the connection before it has seen the alert. */
static void send_alert(struct transparent_connection *connection, unsigned status) {
    enum { READS = 4 };
    char alert[] = {0x15, 3, 3, 0, 2, 2, status == 403 ? 49 : 80}, scrap[4096];
    struct iovec piece = {alert, sizeof alert};
    size_t count;
    connection_write(connection->socket, &piece, 1, &count);
    for (int i = 0; i < READS && connection->socket->readable; i++)
        if (connection_read(connection->socket, scrap, sizeof scrap, &count) != IO_DONE)
            break;
}

static void transparent_reply(struct exchange *exchange, const struct reply *reply) {
    struct transparent_connection *connection = transparent_of(exchange);
    if (connection->speaks_tls)
        send_alert(connection, reply->status);
    clients_note_end(&connection->client, connection->socket, NULL);
    connection_close(&connection->socket);
    exchange->state = EXCHANGE_SENT;
}

static void transparent_interim(struct exchange *exchange, const struct http_head *head) {
    (void)exchange;
    (void)head;
}

static struct duplex *transparent_open_tunnel(struct exchange *exchange, struct http_head *head,
                                              struct slice protocol) {
    struct transparent_connection *connection = transparent_of(exchange);
    (void)head;
    (void)protocol;
    return connection_duplex_new(&connection->socket, &connection->buffer);
}

static void transparent_exchange_abort(struct exchange *exchange) {
    struct transparent_connection *connection = transparent_of(exchange);
    if (connection->socket == NULL)
        return;
    clients_note_end(&connection->client, connection->socket, "aborted");
    connection_abort(&connection->socket);
    transparent_lost(connection);
}

static void transparent_finish(struct exchange *exchange) {
    struct transparent_connection *connection = transparent_of(exchange);
    exchange_release(exchange);
    free(connection->exchange);
    connection->exchange = NULL;
    transparent_free(connection);
}

static const struct exchange_class transparent_exchange_class = {
    .name = "transparent",
    .carries_connection = true,
    .reply = transparent_reply,
    .interim = transparent_interim,
    .open_tunnel = transparent_open_tunnel,
    .abort = transparent_exchange_abort,
    .finish = transparent_finish,
};

/* Starts the exchange that stands for the connection. */
static void begin_exchange(struct transparent_connection *connection) {
    struct transparent_exchange *own = xcalloc(1, sizeof *own);
    struct exchange *exchange = &own->base;
    struct http_head *request = &exchange->request;
    struct clients *clients = connection->client.clients;
    own->connection = connection;
    connection->exchange = own;
    timer_cancel(&connection->net->loop->timers, &connection->timer);
    request->method_id = HTTP_METHOD_CONNECT;
    request->method = http_method_text(HTTP_METHOD_CONNECT);
    request->version = 11;
    request->target =
        slice_make(own->target, address_format(connection->client.ends.destination, own->target));
    exchange_init(exchange, &transparent_exchange_class, clients, &connection->client.ends,
                  connection->client.listen);
    exchange->is_connection = true;
    exchange->version = SLICE("1.1");
    exchange->scheme = &url_schemes[URL_HTTP];
    clients->on_request(exchange, clients->arg);
}

static void hand_to_http(struct transparent_connection *connection) {
    clients_adopt(connection->client.clients, &(struct client_arrival){
                                                  .connection = &connection->socket,
                                                  .ahead = &connection->buffer,
                                                  .client = &connection->client.ends.client,
                                                  .listener = &connection->client.listener,
                                                  .redirection = &connection->client.redirection,
                                              });
    transparent_free(connection);
}

static void go_on(struct transparent_connection *connection, bool as_http) {
    struct redirection *redirection = connection->client.redirection;
    struct counters *counters = &connection->net->counters;
    redirection_judge(redirection, connection->net, &connection->client.ends.client);
    counters->transparent_direct += redirection->status == 403;
    counters->transparent_loops += redirection->status == 508;
    if (as_http)
        hand_to_http(connection);
    else
        begin_exchange(connection);
}

/* `kind` is not FIRST_BYTES_MORE. */
static void decide(struct transparent_connection *connection, enum first_bytes kind) {
    bool refuses = transparent_settings(connection->net)->other == TRANSPARENT_OTHER_REFUSE;
    connection->speaks_tls = kind == FIRST_BYTES_TLS;
    clients_spoke(&connection->client);
    go_on(connection, kind == FIRST_BYTES_HTTP || (kind == FIRST_BYTES_OTHER && refuses));
}

/* Reads what is there. False: the connection is lost, and gone. */
static bool read_first(struct transparent_connection *connection) {
    size_t got;
    if (connection->buffer == NULL)
        connection->buffer = net_buffer_take(connection->net);
    struct net_buffer *buffer = connection->buffer;
    enum io_status status = connection_read(connection->socket, buffer->data + buffer->end,
                                            buffer->capacity - buffer->end, &got);
    buffer->end += got;
    connection->net->counters.client_bytes_in += got;
    if (status != IO_END && status != IO_FAILED)
        return true;
    transparent_lost(connection);
    return false;
}

/* False: the connection waits no more. It may be gone. */
static bool await_first_bytes(struct transparent_connection *connection) {
    while (connection->socket->readable) {
        if (!read_first(connection))
            return false;
        struct slice bytes = net_buffer_bytes(connection->buffer);
        enum first_bytes kind = first_bytes_judge(bytes);
        if (kind == FIRST_BYTES_MORE && bytes.length < READ_MOST)
            continue;
        decide(connection, kind == FIRST_BYTES_MORE ? FIRST_BYTES_OTHER : kind);
        return false;
    }
    if (connection->buffer != NULL && connection->buffer->end == 0)
        net_buffer_give(connection->net, &connection->buffer);
    return true;
}

static void transparent_on_ready(struct connection *socket) {
    struct transparent_connection *connection;
    CAST_OBJ(connection, socket->event.owner, TRANSPARENT_CONNECTION_MAGIC);
    if (socket->broken)
        transparent_lost(connection);
    else if (connection->exchange == NULL)
        await_first_bytes(connection);
}

/* A client that has begun with something that may still become a request gets the time that HTTP
 * gives it. */
static void transparent_on_timeout(struct timer *timer) {
    struct transparent_connection *connection =
        CONTAINER_OF(timer, struct transparent_connection, timer);
    CHECK_OBJ(connection, TRANSPARENT_CONNECTION_MAGIC);
    if (connection->buffer != NULL) {
        go_on(connection, true);
        return;
    }
    connection->net->counters.transparent_silent++;
    if (transparent_settings(connection->net)->silent == TRANSPARENT_SILENT_TUNNEL)
        go_on(connection, false);
    else
        transparent_free(connection);
}

/* The functions of struct client_connection_class. */

static struct transparent_connection *transparent_connection_of(struct client_connection *client) {
    struct transparent_connection *connection =
        CONTAINER_OF(client, struct transparent_connection, client);
    CHECK_OBJ(connection, TRANSPARENT_CONNECTION_MAGIC);
    return connection;
}

static void transparent_drain(struct client_connection *client) {
    struct transparent_connection *connection = transparent_connection_of(client);
    if (connection->exchange == NULL)
        transparent_free(connection);
}

static void transparent_abort(struct client_connection *client) {
    struct transparent_connection *connection = transparent_connection_of(client);
    clients_note_end(client, connection->socket, "aborted");
    if (connection->socket != NULL)
        connection_abort(&connection->socket);
    transparent_lost(connection);
}

static struct exchange *transparent_slowest(struct client_connection *client) {
    (void)client;
    return NULL;
}

static const struct client_connection_class transparent_connection_class = {
    .name = "transparent",
    .drain = transparent_drain,
    .abort = transparent_abort,
    .slowest = transparent_slowest,
};

static void transparent_begin(struct transparent_connection *connection) {
    if (!connection_watch(connection->socket)) {
        log_error("cannot watch a client connection: %s", strerror(errno));
        transparent_free(connection);
        return;
    }
    await_first_bytes(connection);
}

void transparent_accept(struct clients *clients, const struct client_accepted *accepted) {
    struct net_context *net = clients->net;
    struct transparent_connection *connection;
    struct address client = *accepted->client;
    int fd = accepted->fd;
    ALLOC_OBJ(connection, TRANSPARENT_CONNECTION_MAGIC);
    connection->net = net;
    address_unmap(&client);
    timer_init(&connection->timer, transparent_on_timeout);
    clients_add(clients, &connection->client, &transparent_connection_class, &client,
                accepted->listener);
    struct redirection *redirection = transparent_redirection(net, accepted);
    clients_redirected(&connection->client, &redirection);
    net->counters.transparent_connections++;
    connection->socket = connection_adopt(net, &fd, transparent_on_ready, connection);
    loop_timer_after(net->loop, &connection->timer, transparent_settings(net)->silent_after);
    if (clients_count(&connection->client) && clients_count_half_open(&connection->client))
        transparent_begin(connection);
    else
        transparent_free(connection);
}
