#include "client/clients.h"

#include "client/identity.h"
#include "client/redirection.h"
#include "net/connection.h"

#include <stdint.h>

struct tcp_bytes {
    uint64_t in, out;
};

/* The C library's struct tcp_info ends before the numbers of bytes. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

static struct tcp_bytes tcp_bytes_of(int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans)
        return (struct tcp_bytes){0};
    return (struct tcp_bytes){
        .in = info.tcpi_bytes_received,
        .out = info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes,
    };
}

/* Both in nanoseconds. A reply that is younger than SHED_AFTER is not slow yet. SHED_PAUSE lies
 * between two replies that are broken off. */
#define SHED_AFTER UINT64_C(2000000000)
#define SHED_PAUSE UINT64_C(20000000)

void clients_init(struct clients *clients, struct net_context *net, struct mailbox *mailbox,
                  struct client_total *total,
                  void (*on_request)(struct exchange *exchange, void *arg), void *arg) {
    *clients = (struct clients){
        .net = net,
        .mailbox = mailbox,
        .on_request = on_request,
        .arg = arg,
        .listen_set = listen_set_new(net->settings, total->tickets),
        .total = total,
    };
    list_init(&clients->connections);
    list_init(&clients->handshakes);
}

void clients_release(struct clients *clients) {
    listen_set_release(&clients->listen_set);
}

bool client_total_add(struct client_total *total, unsigned most) {
    if (atomic_fetch_add_explicit(&total->count, 1, memory_order_relaxed) < most)
        return true;
    atomic_fetch_sub_explicit(&total->count, 1, memory_order_relaxed);
    return false;
}

void clients_add(struct clients *clients, struct client_connection *connection,
                 const struct client_connection_class *class, const struct address *address,
                 const struct address *listener) {
    connection->clients = clients;
    connection->class = class;
    connection->listener = *listener;
    connection->since = clients->net->loop->now_nanoseconds;
    connection->ends.client = *address;
    connection->ends.destination = &connection->listener;
    connection->listen = listen_set_find(clients->listen_set, listener);
    list_append(&clients->connections, &connection->link);
    clients->connection_count++;
    clients->net->counters.client_connections++;
    clients->net->counters.client_connections_open++;
}

void clients_set_destination(struct client_connection *connection,
                             const struct address *destination) {
    if (destination == NULL)
        return;
    connection->destination = xmalloc(sizeof *connection->destination);
    *connection->destination = *destination;
    connection->ends.destination = connection->destination;
}

bool clients_count(struct client_connection *connection) {
    struct client_counter *counter = connection->clients->total->counter;
    bool taken = counter == NULL || counter->count(counter, connection);
    connection->clients->net->counters.client_share_rejected += !taken;
    return taken;
}

bool clients_count_half_open(struct client_connection *connection) {
    struct client_counter *counter = connection->clients->total->counter;
    bool taken = counter == NULL || counter->count_half_open(counter, connection);
    connection->clients->net->counters.client_half_open_rejected += !taken;
    return taken;
}

void clients_spoke(struct client_connection *connection) {
    struct client_counter *counter = connection->clients->total->counter;
    if (connection->half_open != NULL)
        counter->spoke(counter, connection);
}

static void clients_forget(struct client_connection *connection) {
    struct client_counter *counter = connection->clients->total->counter;
    if (connection->counted != NULL || connection->ends.holds != NULL)
        counter->forget(counter, connection);
}

void clients_redirected(struct client_connection *connection, struct redirection **redirectionp) {
    connection->redirection = *redirectionp;
    *redirectionp = NULL;
    connection->ends.redirection = connection->redirection;
    connection->ends.rewritten = connection->redirection->rewritten;
    connection->ends.destination = &connection->redirection->destination;
}

void clients_note_arrival(struct client_connection *connection,
                          const struct client_arrival *arrival) {
    struct clients *clients = connection->clients;
    atomic_fetch_add_explicit(&clients->total->count, 1, memory_order_relaxed);
    clients->net->counters.client_connections--; /* it was counted when it was accepted */
    if (clients->total->counter != NULL)
        clients->total->counter->count_again(clients->total->counter, connection);
    clients_set_destination(connection, arrival->destination);
    connection->ends.rewritten = arrival->rewritten;
    if (arrival->redirection != NULL)
        clients_redirected(connection, arrival->redirection);
    connection->ends.tls = tls_facts_reference(connection_tls_facts(*arrival->connection));
    if (arrival->intercepted != NULL)
        connection->ends.intercepted = intercepted_reference(arrival->intercepted);
}

/* The client may have closed its direction, and nobody has had to look. */
static bool has_left(const struct connection *socket) {
    char byte;
    return socket->hangup || socket->broken ||
           recv(socket->event.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void clients_note_end(struct client_connection *connection, const struct connection *socket,
                      const char *reason) {
    if (connection->clients->on_closed == NULL || socket == NULL || connection->end.reason != NULL)
        return;
    struct tcp_bytes bytes = tcp_bytes_of(socket->event.fd);
    if (reason == NULL)
        reason = has_left(socket) ? "client" : "proxy";
    connection->end = (struct client_end){bytes.in, bytes.out, reason};
}

void clients_note_tunnel(const struct exchange *exchange, uint64_t bytes_in, uint64_t bytes_out) {
    struct client_connection *connection =
        CONTAINER_OF(exchange->ends, struct client_connection, ends);
    if (exchange->class->carries_connection && connection->clients->on_closed != NULL)
        connection->end = (struct client_end){bytes_in, bytes_out, "tunnel"};
}

void clients_remove(struct client_connection *connection) {
    struct clients *clients = connection->clients;
    if (connection->end.reason != NULL && clients->on_closed != NULL)
        clients->on_closed(connection, clients->on_closed_arg);
    list_remove(&connection->link);
    clients->connection_count--;
    atomic_fetch_sub_explicit(&clients->total->count, 1, memory_order_relaxed);
    clients->net->counters.client_connections_open--;
    clients_forget(connection);
    intercepted_release(&connection->ends.intercepted);
    tls_facts_release(&connection->ends.tls);
    free(connection->destination);
    connection->destination = NULL;
    free(connection->redirection);
    connection->redirection = NULL;
}

void clients_settings_changed(struct clients *clients) {
    listen_set_release(&clients->listen_set);
    clients->listen_set = listen_set_new(clients->net->settings, clients->total->tickets);
    LIST_FOR_EACH (link, &clients->connections) {
        struct client_connection *connection = CONTAINER_OF(link, struct client_connection, link);
        connection->listen = listen_set_find(clients->listen_set, &connection->listener);
    }
}

void clients_close_with_next(struct clients *clients) {
    clients->draining = true;
}

void clients_drain(struct clients *clients) {
    clients->draining = true;
    LIST_FOR_EACH_SAFE (link, next, &clients->connections) {
        struct client_connection *connection = CONTAINER_OF(link, struct client_connection, link);
        connection->class->drain(connection);
    }
}

void clients_abort(struct clients *clients) {
    LIST_FOR_EACH_SAFE (link, next, &clients->connections) {
        struct client_connection *connection = CONTAINER_OF(link, struct client_connection, link);
        connection->class->abort(connection);
    }
}

/* Of the exchanges that had time enough, the one whose client has taken least for its time; NULL:
 * there is none. */
static struct exchange *clients_slowest(const struct clients *clients, uint64_t now) {
    struct exchange *chosen = NULL;
    double least = 0;
    LIST_FOR_EACH (link, &clients->connections) {
        struct client_connection *connection = CONTAINER_OF(link, struct client_connection, link);
        struct exchange *exchange = connection->class->slowest(connection);
        if (exchange == NULL || now - exchange->started < SHED_AFTER)
            continue;
        double rate = (double)exchange->bytes_sent / (double)(now - exchange->started);
        if (chosen == NULL || rate < least) {
            chosen = exchange;
            least = rate;
        }
    }
    return chosen;
}

/* Breaks off one exchange at a time, since what an exchange held comes free only when it has
 * ended. */
static void clients_shed(struct clients *clients) {
    uint64_t now = clients->net->loop->now_nanoseconds;
    if (now < clients->sheds_again)
        return;
    clients->sheds_again = now + SHED_PAUSE;
    struct exchange *exchange = clients_slowest(clients, now);
    if (exchange == NULL)
        return;
    clients->net->counters.client_memory_shed++;
    exchange_abort(exchange);
}

bool clients_refuse_more(struct clients *clients) {
    struct net_context *net = clients->net;
    if (reserve_is_low()) {
        reserve_refill(); /* others may have freed theirs */
        if (reserve_is_low()) {
            net->counters.memory_refused++;
            return true;
        }
    }
    if (net->pressure != NET_FULL)
        return false;
    net->counters.client_memory_refused++;
    clients_shed(clients);
    return true;
}

/* The exchange for which no client waits. Its request has no body, and its reply goes nowhere. */
struct background_exchange {
    struct exchange base;
    struct exchange_ends ends;
    struct address destination;
    struct exchange_behind behind;
    struct redirection redirection;
    char *request_bytes; /* what base.request points to; owned */
    char *told;          /* base.told; owned */
};

static void background_reply(struct exchange *exchange, const struct reply *reply) {
    (void)reply;
    exchange->state = EXCHANGE_SENT;
}

static void background_interim(struct exchange *exchange, const struct http_head *head) {
    (void)exchange;
    (void)head;
}

static struct duplex *background_open_tunnel(struct exchange *exchange, struct http_head *head,
                                             struct slice protocol) {
    (void)head;
    (void)protocol;
    exchange_abort(exchange);
    return NULL;
}

static void background_abort(struct exchange *exchange) {
    exchange->state = EXCHANGE_ABORTED;
}

static void background_finish(struct exchange *exchange) {
    struct background_exchange *own = CONTAINER_OF(exchange, struct background_exchange, base);
    exchange_release(exchange);
    intercepted_release(&own->ends.intercepted);
    identity_release(&own->base.identity);
    tls_facts_release(&own->ends.tls);
    free(own->request_bytes);
    free(own->told);
    free(own);
}

static const struct exchange_class background_class = {
    .name = "background",
    .reply = background_reply,
    .interim = background_interim,
    .open_tunnel = background_open_tunnel,
    .abort = background_abort,
    .finish = background_finish,
};

static void background_copy_request(struct background_exchange *own, const struct http_head *head) {
    struct http_head *request = &own->base.request;
    own->request_bytes = xmalloc(http_head_size(head));
    http_head_copy(request, head, own->request_bytes);
    http_head_remove(request, HTTP_RANGE); /* what is stored is whole */
    http_head_remove(request, HTTP_IF_RANGE);
    own->base.owned = true;
}

/* The settings of the listener are the current ones: the new transaction holds the current
 * snapshot, even if `exchange` has lived through reloads. */
bool exchange_repeat_in_background(const struct exchange *exchange, struct slice told) {
    struct clients *clients = exchange->clients;
    const struct listen_settings *listen =
        listen_set_find(clients->listen_set, &exchange->listen->address);
    if (listen == NULL)
        return false;
    struct background_exchange *own = xcalloc(1, sizeof *own);
    own->ends = *exchange->ends;
    own->destination = *exchange->ends->destination;
    own->ends.destination = &own->destination;
    if (own->ends.redirection != NULL) {
        own->redirection = *own->ends.redirection;
        own->ends.redirection = &own->redirection;
    }
    own->ends.tls = tls_facts_reference(own->ends.tls);
    if (own->ends.intercepted != NULL)
        intercepted_reference(own->ends.intercepted);
    exchange_init(&own->base, &background_class, clients, &own->ends, listen);
    if (exchange->behind != NULL)
        exchange_set_client(&own->base, &exchange->behind->address, &own->behind);
    background_copy_request(own, &exchange->request);
    own->base.background = true;
    own->base.told = own->told = slice_dup(told);
    if (exchange->identity != NULL)
        own->base.identity = identity_reference(exchange->identity);
    own->base.version = exchange->version;
    own->base.scheme = exchange->scheme;
    own->base.authority = http_head_value(&own->base.request, HTTP_HOST);
    clients->on_request(&own->base, clients->arg);
    return true;
}
