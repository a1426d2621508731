/*
 * The connections of a worker to origins, of all protocols: those that wait for the next request,
 * and what carries requests.
 *
 *     struct origin_connections *connections = origin_connections_new(net, &origin_http1_class);
 *     origin_connections_set_limit(connections, max_idle_total);
 *     origin_connections_give(connections, key, &connection, idle_timeout, max_idle);
 *     origin_connections_free(&connections);
 *
 * Calls (origin/call.h) take connections from here and give them back.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_CONNECTIONS_H
#define RETORT_ORIGIN_CONNECTIONS_H

#include "net/pool.h"

struct origin_call_class;

struct origin_connections {
    unsigned magic;
#define ORIGIN_CONNECTIONS_MAGIC 0x0419c099u
    struct net_context *net;
    const struct origin_call_class *http1;
    struct pool *pool; /* idle connections with HTTP/1.1 */
};

struct origin_connections *origin_connections_new(struct net_context *net,
                                                  const struct origin_call_class *http1);
void origin_connections_free(struct origin_connections **connectionsp);
/* The most idle connections of all origins together. */
void origin_connections_set_limit(struct origin_connections *connections, unsigned limit);
/* Keeps a new connection, to which no request was sent yet, for the next call with that key. */
void origin_connections_give(struct origin_connections *connections, struct slice key,
                             struct connection **connectionp, uint64_t idle_timeout,
                             unsigned max_idle);
void origin_connections_close_idle(struct origin_connections *connections);

#endif
