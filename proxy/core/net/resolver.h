/*
 * The resolver: it finds the addresses of names, and remembers them.
 *
 *     resolver_query_init(&dial->query);
 *     if (resolver_lookup(resolver, host, &dial->query, on_resolved)) ...   query.result is set
 *     resolver_cancel(&dial->query);            any time: no callback is called then
 *
 *     static void on_resolved(struct resolver_query *query)   count 0: query->result.error says why
 *
 * IP literals in any spelling, and localhost, are answered at once, and so are names of
 * origin.hosts_file. Other names are asked for at the name servers, IPv6 and IPv4 at the same time
 * (net/dns_channel.h). A query with `on_some` learns of the family that is answered first.
 *
 * - Addresses are kept for their time to live, at least RESOLVER_TTL_MIN and at most dns_ttl_max.
 *   In the last tenth of it, the next query has the name asked for again in the background.
 * - That a name does not exist, or has no address, is kept as RFC 2308 says, at most
 *   dns_negative_ttl_max. Other failures are kept for RESOLVER_TTL_MIN.
 * - While name servers fail, addresses serve for dns_stale beyond their time (RFC 8767).
 * - Names that resolver_keep was given stay in memory and are asked for before they expire.
 * - Search domains complete names of the configuration (query.configured) only, unless
 *   dns_search_clients: otherwise a client could spell a host in a way that rules do not know. Names
 *   that come from DNS are complete (query.complete).
 * - Queries for one name share a look-up. A client (query.client) may have dns_client_lookups of
 *   them under way. Of dns_names that are remembered, the one that was used longest ago makes way.
 *
 * Threads: one resolver per worker.
 */
#ifndef RETORT_NET_RESOLVER_H
#define RETORT_NET_RESOLVER_H

#include "net/address.h"
#include "net/context.h"

enum {
    RESOLVER_ADDRESSES = 16,
    RESOLVER_NAME_MAX = 255,
    RESOLVER_TTL_MIN = 1000, /* milliseconds */
};

struct resolution {
    unsigned count;
    const char *error; /* static text; NULL when count > 0 */
    bool refused;      /* nobody was asked: there are too many look-ups, or it can't be a name */
    bool ordered; /* a service has said the order (net/name_review.h): nothing else changes it */
    struct address addresses[RESOLVER_ADDRESSES]; /* port 0 */
};

/* The caller sets what follows the result before the call, or leaves it as resolver_query_init
 * does. */
struct resolver_query {
    struct list_link link;
    void (*on_resolved)(struct resolver_query *query);
    /* The addresses of one family are in query->result, and the other family is still asked for;
     * NULL: on_resolved is enough. */
    void (*on_some)(struct resolver_query *query);
    const struct address *client; /* who asks, read by resolver_lookup only; NULL: the proxy */
    bool configured;              /* the operator's configuration has this name */
    bool complete;                /* search domains never complete it, whatever the settings say */
    struct resolution result;
};

struct resolver *resolver_new(struct net_context *net);
void resolver_free(struct resolver **resolverp);
/* net->configured has changed: names are asked for in the new way, and what is remembered is
 * forgotten where that makes a difference. */
void resolver_settings_changed(struct resolver *resolver);

static inline void resolver_query_init(struct resolver_query *query) {
    list_init(&query->link);
    query->on_some = NULL;
    query->client = NULL;
    query->result.refused = query->result.ordered = false;
    query->configured = query->complete = false;
}

/* Fills in *result when `host` needs no name server: it is an IP address or localhost. False: it is
 * another name. */
bool resolver_knows(const struct resolver *resolver, struct slice host, struct resolution *result);
/* True: query->result is set now, and no callback will be called. */
bool resolver_lookup(struct resolver *resolver, struct slice host, struct resolver_query *query,
                     void (*on_resolved)(struct resolver_query *query));

static inline void resolver_cancel(struct resolver_query *query) {
    list_remove(&query->link);
}

/* Looks a name of the configuration up, and keeps it until resolver_keep_none. */
void resolver_keep(struct resolver *resolver, struct slice host);
void resolver_keep_none(struct resolver *resolver);
/* Forgets what is remembered of the name; an empty name: of all. Queries under way go on. Returns
 * how many names that were. */
unsigned resolver_forget(struct resolver *resolver, struct slice name);

#endif
