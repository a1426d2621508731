/*
 * The resolver: it finds the addresses of names, through c-ares on the worker's loop, and remembers
 * them for their time to live.
 *
 *     resolver_query_init(&dial->query);
 *     if (resolver_lookup(resolver, host, &dial->query, on_resolved)) ...   query.result is set
 *     resolver_cancel(&dial->query);            any time: the callback is not called then
 *
 *     static void on_resolved(struct resolver_query *query)   count 0: query->result.error says why
 *
 * IP literals in any spelling, and localhost, are answered at once. /etc/hosts and
 * /etc/resolv.conf are used. Queries for the same name share one look-up. A failure is remembered
 * for one second.
 *
 * Threads: one resolver per worker.
 */
#ifndef RETORT_NET_RESOLVER_H
#define RETORT_NET_RESOLVER_H

#include "net/address.h"
#include "net/context.h"

enum { RESOLVER_ADDRESSES = 8, RESOLVER_NAME_MAX = 255 };

struct resolution {
    unsigned count;
    struct address addresses[RESOLVER_ADDRESSES]; /* port 0 */
    const char *error;                            /* static text; NULL when count > 0 */
};

struct resolver_query {
    struct list_link link;
    struct resolution result;
    void (*on_resolved)(struct resolver_query *query);
};

struct resolver *resolver_new(struct net_context *net);
void resolver_free(struct resolver **resolverp);

static inline void resolver_query_init(struct resolver_query *query) {
    list_init(&query->link);
}

/* Fills in *result when `host` needs no look-up: it is an IP address or localhost. False: it is
 * another name. */
bool resolver_knows(const struct resolver *resolver, struct slice host, struct resolution *result);
/* True: query->result is set now, and the callback will not be called. */
bool resolver_lookup(struct resolver *resolver, struct slice host, struct resolver_query *query,
                     void (*on_resolved)(struct resolver_query *query));

static inline void resolver_cancel(struct resolver_query *query) {
    list_remove(&query->link);
}

#endif
