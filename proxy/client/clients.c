#include "client/clients.h"

#include "client/redirection.h"

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
    connection->ends.client = *address;
    connection->ends.destination = &connection->listener;
    connection->listen = listen_set_find(clients->listen_set, listener);
    list_append(&clients->connections, &connection->link);
    clients->connection_count++;
    clients->net->counters.client_connections++;
    clients->net->counters.client_connections_open++;
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
    if (arrival->destination != NULL) {
        connection->destination = xmalloc(sizeof *connection->destination);
        *connection->destination = *arrival->destination;
        connection->ends.destination = connection->destination;
    }
    if (arrival->redirection != NULL)
        clients_redirected(connection, arrival->redirection);
    connection->ends.tls = tls_facts_reference(connection_tls_facts(*arrival->connection));
    if (arrival->intercepted != NULL)
        connection->ends.intercepted = intercepted_reference(arrival->intercepted);
}

void clients_remove(struct client_connection *connection) {
    struct clients *clients = connection->clients;
    list_remove(&connection->link);
    clients->connection_count--;
    atomic_fetch_sub_explicit(&clients->total->count, 1, memory_order_relaxed);
    clients->net->counters.client_connections_open--;
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
