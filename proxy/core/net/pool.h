/*
 * Idle connections, kept for the next request to the same place.
 *
 *     struct connection *c = pool_take(pool, key, on_ready, owner);     NULL: dial
 *     pool_give(pool, key, &c, idle_timeout, max_idle);                 after a complete response
 *
 * A key is text: "http://host:port". The newest connection is given out first, so that connections
 * which are not needed expire. A connection that becomes readable while it is idle is closed at
 * once: the other side has closed it, or has sent bytes that nobody asked for. If a connection dies
 * at the moment it is taken, the caller has to retry.
 *
 * Threads: one pool per worker and kind of server.
 */
#ifndef RETORT_NET_POOL_H
#define RETORT_NET_POOL_H

#include "net/connection.h"

struct pool;

struct pool *pool_new(struct net_context *net, uint64_t *idle_gauge);
void pool_free(struct pool **poolp);
struct connection *pool_take(struct pool *pool, struct slice key, connection_ready_fn *on_ready,
                             void *owner);
void pool_give(struct pool *pool, struct slice key, struct connection **connectionp,
               uint64_t idle_timeout, unsigned max_idle);
/* Like pool_take, but returns only a connection on which no byte and no end have arrived. It
 * prefers one that the loop has already checked since the connection became idle. */
struct connection *pool_take_quiet(struct pool *pool, struct slice key,
                                   connection_ready_fn *on_ready, void *owner);
/* The most idle connections of all keys together. Another one closes one of them. Without this call
 * there is no limit. */
void pool_set_limit(struct pool *pool, unsigned limit);
/* May the connection be reused? False: it has ended, or bytes arrived that nobody asked for. */
bool pool_would_take(struct connection *connection);
/* Closes the idle connections of one key. */
void pool_close_key(struct pool *pool, struct slice key);
void pool_close_idle(struct pool *pool);
/* Calls the function for each idle connection of one key; it closes none. */
void pool_visit(struct pool *pool, struct slice key,
                void (*visit)(struct connection *connection, void *arg), void *arg);
/* The number of idle connections of all keys. */
unsigned pool_count(const struct pool *pool);

#endif
