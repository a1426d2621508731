/*
 * The connections to the admin plane. At most ADMIN_CONNECTIONS_MOST are open. When one more comes,
 * another one is closed: first those of which no request was admitted, and of these the one that has
 * been idle for longest of the client that has most of them. So a program that opens many
 * connections and sends nothing, or never finishes a handshake, can't keep the operator out. A
 * client is an IPv4 address, a network of IPv6 with 64 bits, or all who use the Unix socket.
 *
 *     struct admin_connection *connection = admin_connection_add(&connections, fd, &tls_session);
 *     admin_connection_used(&connections, connection);      a request on it has begun or ended
 *     admin_connection_admit(&connections, connection);     the guard has admitted its request
 *     admin_connection_remove(&connections, &connection);   libmicrohttpd closes it
 *
 * An answer that is long is sent in blocks. Its reader takes one within ADMIN_CONNECTION_PATIENCE, or
 * the sweep closes its connection, because an object stays in memory for it:
 *
 *     admin_connection_block(&connections, connection, now);     it wants the next block
 *     admin_connections_sweep(&connections, now);                from time to time
 *
 * Threads: any. A connection belongs to the thread that libmicrohttpd serves it in. Before
 * admin_connection_remove returns, another thread may shut its socket down, and does nothing else
 * to it.
 */
#ifndef RETORT_ADMIN_CONNECTIONS_H
#define RETORT_ADMIN_CONNECTIONS_H

#include "base/list.h"
#include "tls/mhd_tls.h"

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

struct admin_connections {
    pthread_mutex_t lock;
    struct list_link
        list; /* without those that are kept; the one that has been still for longest first */
    unsigned count;
    time_t warned_at;        /* when the log last said that a connection was closed */
    _Atomic uint64_t closed; /* for others */
    _Atomic uint64_t handshakes[MHD_TLS_ENDS]; /* of connections that have ended */
    _Atomic time_t refused_at; /* when the log last said that a certificate was refused */
};

struct admin_connection;

void admin_connections_init(struct admin_connections *connections);
void admin_connections_release(struct admin_connections *connections);
/* The socket belongs to libmicrohttpd; it is closed by being shut down. Takes the session; NULL:
 * the connection is clear text. */
struct admin_connection *admin_connection_add(struct admin_connections *connections, int fd,
                                              struct mhd_tls_session **tls);
/* NULL: clear text. The session lives as long as the connection. */
const struct mhd_tls_session *admin_connection_tls(const struct admin_connection *connection);
/* What admin_connection_add has returned for this connection, which MHD_OPTION_NOTIFY_CONNECTION
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
/* It is not closed for others, however long it is idle: a consumer of the event stream, of which
 * there is a bound of its own. */
void admin_connection_keep(struct admin_connections *connections,
                           struct admin_connection *connection);
void admin_connection_remove(struct admin_connections *connections,
                             struct admin_connection **connectionp);
/* `connections` may be NULL: nothing is printed. */
void admin_connections_print_metrics(FILE *out, const struct admin_connections *connections);

#endif
