/*
 * The connections of a worker to origins, of all protocols: those that wait for the next request,
 * those that carry many at a time, and what each origin speaks.
 *
 *     connections = origin_pool_new(net, &origin_http1_class, &origin_http2_class);
 *     origin_pool_set_limit(connections, max_idle_total);
 *     origin_pool_give(connections, key, ORIGIN_AGREED, &connection, idle_timeout, max_idle);
 *     origin_pool_free(&connections);
 *
 * Calls (origin/call.h) take connections from here and give them back.
 *
 * A *site* is what a key of the pool leads to, if it may speak a protocol that lets many calls share
 * a connection. A site remembers what its last connection spoke. While nothing is known of it, or
 * while it shares connections, one call at a time opens one (the opener), and the others wait: a
 * hundred first requests do not open a hundred connections.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_ORIGIN_POOL_H
#define RETORT_ORIGIN_ORIGIN_POOL_H

#include "base/table.h"
#include "net/pool.h"
#include "origin/security.h"

struct origin_call;
struct origin_call_class;

enum { ORIGIN_SITES_KEPT = 1024 };

struct origin_pool {
    unsigned magic;
#define ORIGIN_POOL_MAGIC 0x0419c099u
    struct net_context *net;
    const struct origin_call_class *http1, *http2;
    void *http2_worker; /* what HTTP/2 keeps for the worker */
    struct pool *pool;  /* idle connections with HTTP/1.1 */
    struct table sites;
    struct list_link unused; /* sites that nobody uses: the one used last is the last */
    unsigned unused_count;
};

struct origin_site {
    struct table_entry entry;
    unsigned magic;
#define ORIGIN_SITE_MAGIC 0x0419b1aeu
    struct origin_pool *connections;
    unsigned users;            /* calls and connections */
    struct list_link link;     /* of `unused`, while there are none */
    bool known, shares;        /* its last connection was one that calls share */
    unsigned streams;          /* calls at a time that its last connection allowed; 0: not known */
    struct list_link carriers; /* such connections that take calls; of the protocol */
    struct origin_call *opener;
    struct list_link waiting; /* calls, in the order in which they came */
    struct task task;         /* lets those that wait try again */
    char bytes[];
};

/* `http2` NULL: this retort does not speak it. */
struct origin_pool *origin_pool_new(struct net_context *net, const struct origin_call_class *http1,
                                    const struct origin_call_class *http2);
void origin_pool_free(struct origin_pool **connectionsp);
/* The most idle connections with HTTP/1.1 of all origins together. */
void origin_pool_set_limit(struct origin_pool *connections, unsigned limit);
/* Keeps a new connection, to which no request was sent yet, for the next call with that key, which
 * may come to speak these protocols. */
void origin_pool_give(struct origin_pool *connections, struct slice key,
                      enum origin_protocols protocols, struct connection **connectionp,
                      uint64_t idle_timeout, unsigned max_idle);
void origin_pool_close_idle(struct origin_pool *connections);

/* Inside origin/. */
/* The protocol of a new connection: what TLS has agreed on, or what is known beforehand. A server
 * that chooses what it was not offered does not get it. */
const struct origin_call_class *origin_pool_class(const struct origin_pool *connections,
                                                  const struct connection *connection,
                                                  enum origin_protocols protocols);
/* Counts a user, who leaves it with origin_site_leave. */
struct origin_site *origin_site_take(struct origin_pool *connections, struct slice key);
void origin_site_leave(struct origin_site **sitep);
/* The calls that wait may try again: there is more room, or the opener is done. */
void origin_site_wake(struct origin_site *site);

#endif
