/*
 * The connections from clients of one worker, whatever protocol they speak: how many there are, who
 * makes way when memory is short, and what becomes of them at a reload and at the end.
 *
 *     clients_init(&clients, net, mailbox, total, on_request, worker);
 *     if (clients_lack_memory(&clients) || !client_total_add(total, max_connections))
 *         close(fd);
 *     else
 *         http1_accept(&http1, &accepted);                   which calls clients_add
 *     ...
 *     clients_settings_changed(&clients);                    net->settings is another snapshot
 *     clients_drain(&clients);                               each connection ends with its requests
 *     clients_abort(&clients);
 *     clients_release(&clients);
 *
 * Each protocol's connection contains a struct client_connection with a table of what is to be done
 * with it from here. One connection may carry several requests at a time.
 *
 * Threads: the worker's, but for struct client_total.
 */
#ifndef RETORT_CLIENT_CLIENTS_H
#define RETORT_CLIENT_CLIENTS_H

#include "base/reserve.h"
#include "client/exchange.h"
#include "client/intercepted.h"

#include <stdalign.h>
#include <stdatomic.h>

/* How many connections there are of all workers together, which client.max_connections bounds. It
 * stands alone in its line of memory: only who accepts and closes connections touches it. */
struct client_total {
    alignas(64) _Atomic unsigned count;
    _Atomic unsigned handshakes;    /* of TLS, bounded by client.max_handshakes */
    struct ticket_keys *tickets;    /* of all listeners with TLS; NULL: no tickets */
    struct client_counter *counter; /* NULL: no client is counted by itself */
};

struct client_connection;
struct limit_entry;

/* Who counts the connections of each client, of all workers together. What it keeps for a connection is in `counted`,
 * `half_open` and `ends.holds` of that. For example, where a connection is accepted:
 *
 *     if (!clients_count(connection)) ...                    the client has its share: close it
 *
 * Threads: the connection's worker. */
struct client_counter {
    /* See clients_count and clients_count_half_open. */
    bool (*count)(struct client_counter *counter, struct client_connection *connection);
    bool (*count_half_open)(struct client_counter *counter, struct client_connection *connection);
    /* A connection that goes on as another one: it was let in before, and what held it counts itself off. */
    void (*count_again)(struct client_counter *counter, struct client_connection *connection);
    /* The connection is half-open no more. */
    void (*spoke)(struct client_counter *counter, struct client_connection *connection);
    /* The connection is closed. */
    void (*forget)(struct client_counter *counter, struct client_connection *connection);
};

struct client_connection_class {
    const char *name;
    /* Ends when its requests have been answered; at once if there are none. */
    void (*drain)(struct client_connection *connection);
    /* Breaks the connection; the transactions of its requests learn that their client is gone. */
    void (*abort)(struct client_connection *connection);
    /* How many requests it has carried; NULL: none. */
    uint64_t (*requests)(const struct client_connection *connection);
    /* The exchange that has sent the fewest bytes of its body a second; NULL: none sends a body. */
    struct exchange *(*slowest)(struct client_connection *connection);
};

/* A connection whose first bytes are the client's. */
struct client_accepted {
    int fd;
    const struct address *client;
    const struct address *listener;    /* where it was accepted */
    const struct address *destination; /* that the client meant, as a load balancer says; NULL: the
                                          listener's address, or what the kernel knows */
};

/* How a connection ended, for who wants to know (clients.on_closed). */
struct client_end {
    uint64_t bytes_in, bytes_out;
    const char
        *reason; /* "client", "proxy", "timeout", "aborted", "tunnel" or "handshake"; NULL: it
                           has not ended, or goes on as another struct client_connection */
};

/* A client's connection that is there already: accepted, maybe secured, and with bytes that were
 * read from it. */
struct client_arrival {
    struct connection **connection;    /* taken */
    struct net_buffer **ahead;         /* taken; NULL or a pointer to NULL: no bytes were read */
    const struct address *client;      /* the client's address */
    const struct address *listener;    /* where the connection was accepted */
    const struct address *destination; /* that the client meant; NULL: the listener's address */
    struct redirection **redirection;  /* taken, with its destination; NULL: not redirected */
    struct intercepted *intercepted;   /* referenced by the connection; NULL: not intercepted */
    bool rewritten;                    /* the ends of the intercepted connection are so */
    bool http2; /* `ahead` begins with the preface of HTTP/2; with TLS the handshake says what is
                   spoken (tls_facts.protocol) */
};

struct client_connection {
    struct clients *clients;
    const struct listen_settings *listen; /* of clients->listen_set; NULL: a reload removed it */
    struct exchange_ends ends;
    const struct client_connection_class *class;
    struct list_link link;
    struct address listener;                 /* where the connection was accepted */
    struct address *destination;             /* owned; NULL: the client meant the listener */
    struct redirection *redirection;         /* owned; NULL: the listener is not transparent */
    struct limit_entry *counted, *half_open; /* for its client; NULL: not counted */
    uint64_t since;                          /* nanoseconds of the loop's clock */
    struct client_end end;
};

struct clients {
    struct net_context *net;
    struct mailbox *mailbox;
    void (*on_request)(struct exchange *exchange, void *arg);
    /* Serves requests on a connection that is there already; see clients_adopt. */
    void (*adopt)(struct clients *clients, const struct client_arrival *arrival);
    /* Serves a connection of which no byte has been read, or a PROXY header only. It is counted in
     * `total`. */
    void (*accept)(struct clients *clients, const struct client_accepted *accepted);
    /* A connection has ended: it is called where clients_note_end was. NULL: nobody wants to know. */
    void (*on_closed)(struct client_connection *connection, void *on_closed_arg);
    void *on_closed_arg;
    void *arg;
    struct listen_set *listen_set; /* of net->settings */
    bool draining;                 /* no connection takes a further request */
    struct list_link connections;
    struct list_link handshakes; /* of TLS, which are connections too; see handshake.h */
    unsigned connection_count;
    struct client_total *total;              /* connections of all workers */
    uint64_t sheds_again;                    /* nanoseconds of the loop's clock */
    uint64_t proxy_protocol_complains_again; /* milliseconds; of the part proxy_protocol */
};

/* net->settings is set. */
void clients_init(struct clients *clients, struct net_context *net, struct mailbox *mailbox,
                  struct client_total *total,
                  void (*on_request)(struct exchange *exchange, void *arg), void *arg);
void clients_release(struct clients *clients);
/* net->settings has become another snapshot: later requests go by that. */
void clients_settings_changed(struct clients *clients);
void clients_drain(struct clients *clients);
/* Each connection ends with its next response; idle ones stay open until then. */
void clients_close_with_next(struct clients *clients);
void clients_abort(struct clients *clients);
/* Serves HTTP requests on a connection that is there already: the inside of an intercepted
 * connection, or one whose first bytes were read to tell HTTP from TLS. The connection is counted
 * in clients->total once more: what held it before counts itself off. Requests are read when the
 * caller has returned to the loop. */
static inline void clients_adopt(struct clients *clients, const struct client_arrival *arrival) {
    clients->adopt(clients, arrival);
}
/* As clients_lack_memory, where memory is short. */
bool clients_refuse_more(struct clients *clients);
/* Memory is exhausted, or connections hold as much as they may, so that nothing new is to begin. In
 * the latter case the replies to slow readers are broken off, one after the other. */
static inline bool clients_lack_memory(struct clients *clients) {
    bool enough = !reserve_is_low() && clients->net->pressure != NET_FULL;
    return !enough && clients_refuse_more(clients);
}

/* For protocols: sets what each exchange has. `exchange->request` stays as it is; all behind it has
 * been cleared. */
static inline void exchange_init(struct exchange *exchange, const struct exchange_class *class,
                                 struct clients *clients, struct exchange_ends *ends,
                                 const struct listen_settings *listen) {
    exchange->magic = EXCHANGE_MAGIC;
    exchange->class = class;
    exchange->clients = clients;
    exchange->ends = ends;
    exchange->listen_set = listen_set_reference(clients->listen_set);
    exchange->listen = listen;
    exchange->started = clients->net->loop->now_nanoseconds;
}

/* Counts a connection. False: there are `most` already. clients_remove counts it off. */
bool client_total_add(struct client_total *total, unsigned most);
/* For protocols. The connection has been counted in clients->total. */
void clients_add(struct clients *clients, struct client_connection *connection,
                 const struct client_connection_class *class, const struct address *address,
                 const struct address *listener);
void clients_remove(struct client_connection *connection);
/* For protocols, before a socket is closed and where the reason is known: the first call counts.
 * `socket` may be NULL, then nothing is noted. `reason` NULL: the client, if it has closed its
 * direction, or else the proxy. */
void clients_note_end(struct client_connection *connection, const struct connection *socket,
                      const char *reason);
/* The connection was a tunnel, which is over, of so many bytes. */
void clients_note_tunnel(const struct exchange *exchange, uint64_t bytes_in, uint64_t bytes_out);
/* Copies the destination, if there is one: it is not the listener's address. */
void clients_set_destination(struct client_connection *connection,
                             const struct address *destination);
/* For protocols, right after clients_add: counts the connection for its client. False: the client
 * has its share (client.max_connections_per_client), and the connection is to be closed. */
bool clients_count(struct client_connection *connection);
/* Counts the connection as half-open: the client has sent nothing, or its TLS handshake is not
 * complete. False: it has too many of these (client.max_half_open), and the connection is to be
 * closed. */
bool clients_count_half_open(struct client_connection *connection);
/* The connection is half-open no more. */
void clients_spoke(struct client_connection *connection);
/* The connection was redirected: its destination is that of the redirection, which is taken. */
void clients_redirected(struct client_connection *connection, struct redirection **redirectionp);
/* For protocols, right after clients_add: counts the arrival in clients->total, and notes what other
 * connections do not have. */
void clients_note_arrival(struct client_connection *connection,
                          const struct client_arrival *arrival);

#endif
