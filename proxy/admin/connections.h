/*
 * The connections to the admin plane. At most ADMIN_CONNECTIONS_MOST are open. When one more comes,
 * the connection that has been idle for longest is closed. So a program that opens many connections
 * and sends nothing can't keep the operator out.
 *
 *     struct admin_connection *connection = admin_connection_add(&connections, fd);
 *     admin_connection_used(&connections, connection);      a request on it has begun or ended
 *     admin_connection_remove(&connections, &connection);   libmicrohttpd closes it
 *
 * Threads: any. A connection belongs to the thread that libmicrohttpd serves it in. Before
 * admin_connection_remove returns, another thread may shut its socket down, and does nothing else
 * to it.
 */
#ifndef RETORT_ADMIN_CONNECTIONS_H
#define RETORT_ADMIN_CONNECTIONS_H

#include "base/list.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum { ADMIN_CONNECTIONS_MOST = 64 };

struct admin_connections {
    pthread_mutex_t lock;
    struct list_link
        list; /* without those that are kept; the one that has been still for longest first */
    unsigned count;
    time_t warned_at; /* when the log last said that a connection was closed */
};

struct admin_connection;

void admin_connections_init(struct admin_connections *connections);
void admin_connections_release(struct admin_connections *connections);
/* The socket belongs to libmicrohttpd; it is closed by being shut down. */
struct admin_connection *admin_connection_add(struct admin_connections *connections, int fd);
void admin_connection_used(struct admin_connections *connections,
                           struct admin_connection *connection);
/* It is not closed for others, however long it is idle: a consumer of the event stream, of which
 * there is a bound of its own. */
void admin_connection_keep(struct admin_connections *connections,
                           struct admin_connection *connection);
void admin_connection_remove(struct admin_connections *connections,
                             struct admin_connection **connectionp);

#endif
