/*
 * The connections to the admin plane. At most ADMIN_CONNECTIONS_MOST are open. When one more comes,
 * another one is closed: first those of which no request was admitted, and of these the one that has
 * been idle for longest of the client that has most of them. So a program that opens many
 * connections and sends nothing, or never finishes a handshake, can't keep the operator out. A
 * client is an IPv4 address, a network of IPv6 with 64 bits, or all who use the Unix socket.
 *
 *     struct admin_connection *connection = admin_connection_add(&connections, fd);
 *     admin_connection_used(&connections, connection);      a request on it has begun or ended
 *     admin_connection_admit(&connections, connection);     the guard has admitted its request
 *     admin_connection_asks(&connections, connection);      a request on it has begun
 *     admin_connection_answered(&connections, connection);  it has ended
 *     admin_connection_leave(&connections, &connection);    libmicrohttpd closes it
 *
 * With TLS (admin/terminator.h) libmicrohttpd has the clear end of a connection, and finds out by
 * it whose it is:
 *
 *     admin_connection_serve(&connections, connection, clear, tls, &shown);
 *     struct admin_connection *connection = admin_connection_take(&connections, clear);
 *
 * An answer that is long is sent in blocks. Its reader takes one within ADMIN_CONNECTION_PATIENCE, or
 * the sweep closes its connection, because an object stays in memory for it:
 *
 *     admin_connection_block(&connections, connection, now);     it wants the next block
 *     admin_connections_sweep(&connections, now);                from time to time
 *
 * Threads: any. A connection is closed by being shut down, from any thread, so it has a descriptor
 * of its own. It lives until all who had it from admin_connection_add or _take have left.
 */
#ifndef RETORT_ADMIN_CONNECTIONS_H
#define RETORT_ADMIN_CONNECTIONS_H

#include "admin/admin_tls.h"
#include "base/list.h"
#include "net/address.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum {
    ADMIN_CONNECTIONS_MOST = 64,
    ADMIN_CONNECTION_LEAST = 64 << 10, /* bytes of a block */
    ADMIN_CONNECTION_PATIENCE = 300,   /* seconds */
};

/* How a TLS handshake ended. */
enum admin_handshake {
    ADMIN_HANDSHAKE_DONE,
    ADMIN_HANDSHAKE_LATE,        /* the client took too long, or went away */
    ADMIN_HANDSHAKE_CERTIFICATE, /* the client's certificate is missing or not good */
    ADMIN_HANDSHAKE_CLEAR_TEXT,  /* the client does not speak TLS */
    ADMIN_HANDSHAKE_OTHER,       /* nothing in common; or the client refused our certificate */
    ADMIN_HANDSHAKES
};

struct admin_connections {
    pthread_mutex_t lock;
    struct list_link
        list; /* without those that are kept; the one that has been still for longest first */
    unsigned count;
    time_t warned_at;        /* when the log last said that a connection was closed */
    _Atomic uint64_t closed; /* for others */
    _Atomic uint64_t handshakes[ADMIN_HANDSHAKES]; /* of connections that have ended */
    _Atomic time_t refused_at; /* when the log last said that a certificate was refused */
};

struct admin_connection;

void admin_connections_init(struct admin_connections *connections);
void admin_connections_release(struct admin_connections *connections);
/* `fd`: the client's socket, which stays the caller's. */
struct admin_connection *admin_connection_add(struct admin_connections *connections, int fd);
/* libmicrohttpd gets this clear end of the connection, whose handshake was made under `tls`, with
 * this certificate, which it takes (NULL: none). */
void admin_connection_serve(struct admin_connections *connections,
                            struct admin_connection *connection, int clear, struct admin_tls *tls,
                            struct shown_certificate **shownp);
/* Does libmicrohttpd have the clear end, as far as is known? */
bool admin_connection_is_served(struct admin_connections *connections,
                                const struct admin_connection *connection);
/* The connection of a clear end. NULL: it has gone meanwhile. */
struct admin_connection *admin_connection_take(struct admin_connections *connections, int clear);
/* The client's address, or "unix". */
const char *admin_connection_from(const struct admin_connection *connection);
/* NULL: the client has shown none, or does not speak TLS. */
const struct shown_certificate *admin_connection_shown(const struct admin_connection *connection);
/* What the handshake was made under; NULL: clear text. */
const struct admin_tls *admin_connection_tls(const struct admin_connection *connection);
/* What admin_connection_add or _take has returned for this connection, which MHD_OPTION_NOTIFY_CONNECTION
 * has kept. */
struct admin_connection *admin_connection_of(struct MHD_Connection *connection);
void admin_connection_used(struct admin_connections *connections,
                           struct admin_connection *connection);
/* Counts as use. `now`: milliseconds of the monotonic clock. */
void admin_connection_block(struct admin_connections *connections,
                            struct admin_connection *connection, uint64_t now);
void admin_connections_sweep(struct admin_connections *connections, uint64_t now);
void admin_connection_admit(struct admin_connections *connections,
                            struct admin_connection *connection);
/* The first line of a request has come. Is it the first one? */
bool admin_connection_asks(struct admin_connections *connections,
                           struct admin_connection *connection);
void admin_connection_answered(struct admin_connections *connections,
                               struct admin_connection *connection);
/* Has each had an answer to all that it has asked, and is all that has come on it read? */
bool admin_connections_have_answers(struct admin_connections *connections);
/* It is not closed for others, however long it is idle: a consumer of the event stream, of which
 * there is a bound of its own. */
void admin_connection_keep(struct admin_connections *connections,
                           struct admin_connection *connection);
void admin_connection_leave(struct admin_connections *connections,
                            struct admin_connection **connectionp);
/* Counts the handshake of a connection that has ended. `reason`: why the client's certificate was
 * refused. */
void admin_connection_note(struct admin_connections *connections,
                           const struct admin_connection *connection, enum admin_handshake end,
                           const char *reason);
/* `connections` may be NULL: nothing is printed. */
void admin_connections_print_metrics(FILE *out, const struct admin_connections *connections);

#endif
