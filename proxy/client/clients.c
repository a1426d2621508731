#include "client/clients.h"

#include "client/connection_holds.h"
#include "client/redirection.h"
#include "net/connection.h"
#include "net/tcp_bytes.h"

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

static bool clients_list_has(const struct network *networks, size_t count,
                             const struct address *client) {
    for (size_t i = 0; i < count; i++)
        if (network_contains(&networks[i], client))
            return true;
    return false;
}

/* A proxy in front has many clients. */
static bool is_uncounted(const struct client_connection *connection) {
    const struct settings *settings = connection->clients->net->settings;
    const struct listen_settings *listen = connection->listen;
    const struct address *client = &connection->ends.client;
    size_t count = settings->client.uncounted_count;
    return count == 0 || clients_list_has(settings->client.uncounted, count, client) ||
           (listen != NULL &&
            clients_list_has(listen->trusted_proxies, listen->trusted_proxy_count, client));
}

/* Counts the connection under the section; at most `most`, or any number for 0. */
static struct limit_entry *count_for_client(struct client_connection *connection,
                                            struct limit_section *section, unsigned most) {
    const struct settings *settings = connection->clients->net->settings;
    const struct limit_demand demand = {.most_active = most};
    struct limit_verdict verdict;
    char name[LIMIT_NAME];
    const struct limit_key key = {
        section, limit_name_of_client(&connection->ends.client, settings->client.ipv4_prefix,
                                      settings->client.ipv6_prefix, name)};
    struct limit_entry *entry =
        limit_table_take(connection->clients->total->limits->table, &key, &demand,
                         connection->clients->net->loop->now_nanoseconds, &verdict);
    if (entry == NULL)
        limit_section_refused(section, verdict.reason == LIMIT_TABLE_FULL
                                           ? LIMIT_COUNT_TABLE
                                           : LIMIT_COUNT_CONNECTIONS);
    return entry;
}

bool clients_count(struct client_connection *connection) {
    struct clients *clients = connection->clients;
    struct limits *limits = clients->total->limits;
    if (limits == NULL || is_uncounted(connection))
        return true;
    connection->counted = count_for_client(
        connection, limits->connections, clients->net->settings->client.max_connections_per_client);
    clients->net->counters.client_share_rejected += connection->counted == NULL;
    return connection->counted != NULL;
}

bool clients_count_half_open(struct client_connection *connection) {
    struct clients *clients = connection->clients;
    if (connection->counted == NULL)
        return true;
    connection->half_open = count_for_client(connection, clients->total->limits->half_open,
                                             clients->net->settings->client.max_half_open);
    clients->net->counters.client_half_open_rejected += connection->half_open == NULL;
    return connection->half_open != NULL;
}

void clients_spoke(struct client_connection *connection) {
    if (connection->half_open != NULL)
        limit_table_leave(connection->clients->total->limits->table, &connection->half_open);
}

/* A connection that goes on as another one is counted again, though there is no room: it was let in
 * before, and what held it counts itself off. */
static void count_arrival(struct client_connection *connection) {
    struct limits *limits = connection->clients->total->limits;
    if (limits != NULL && !is_uncounted(connection))
        connection->counted = count_for_client(connection, limits->connections, 0);
}

void clients_redirected(struct client_connection *connection, struct redirection **redirectionp) {
    connection->redirection = *redirectionp;
    *redirectionp = NULL;
    connection->ends.redirection = connection->redirection;
    connection->ends.destination = &connection->redirection->destination;
}

void clients_note_arrival(struct client_connection *connection,
                          const struct client_arrival *arrival) {
    struct clients *clients = connection->clients;
    atomic_fetch_add_explicit(&clients->total->count, 1, memory_order_relaxed);
    clients->net->counters.client_connections--; /* it was counted when it was accepted */
    count_arrival(connection);
    clients_set_destination(connection, arrival->destination);
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
        clients->on_closed(connection, clients->arg);
    list_remove(&connection->link);
    clients->connection_count--;
    atomic_fetch_sub_explicit(&clients->total->count, 1, memory_order_relaxed);
    clients->net->counters.client_connections_open--;
    clients_spoke(connection);
    if (connection->counted != NULL)
        limit_table_leave(clients->total->limits->table, &connection->counted);
    if (connection->ends.holds != NULL)
        connection_holds_release(&connection->ends.holds, clients->total->limits);
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
