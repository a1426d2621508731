/*
 * The route of a transaction: where its request goes. It goes to the server that its URL names, or
 * to a parent proxy, or, in reverse mode, to the origin or the group of origins that the map names.
 *
 *     struct route *route = route_find(transaction);       NULL: no map is for this URL
 *     if (route->group != NULL) ... take a slot ...
 *     route_aim(transaction, &aim);                        with the slot's server, if there is one
 *
 * Threads: the worker's; memory of the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_ROUTE_H
#define RETORT_TRANSACTION_ROUTE_H

#include "net/egress.h"
#include "origin/group.h"
#include "origin/host.h"
#include "origin/security.h"

struct transaction;

struct route {
    const struct map_settings *map;         /* NULL: forward mode */
    struct slice target;                    /* with a map: path and query at its origin */
    const struct origins_settings *origins; /* NULL: one place, which the map or the URL names */
    struct origin_group *group; /* of them, or of a place whose connections are limited */
    struct origin_host *place; /* entered; NULL: connections are not limited, or it has been left */
    bool by_parent;            /* the group's servers are proxies */
    bool may_go_directly;      /* when no server of the group answers */
};

/* The server that a request is sent to, and the target and Host that it is sent with. */
struct aim {
    struct slice host; /* a name or an address */
    uint16_t port;
    struct slice name;                      /* of the server, for https */
    const struct tls_trust_settings *trust; /* https; NULL: http */
    enum origin_protocols protocols;        /* that the connection may come to speak */
    /* The parent that opens a tunnel to an https origin has the host and the port. */
    struct slice tunnel;                           /* "host:port" of the origin; empty: none */
    const struct tls_trust_settings *tunnel_trust; /* of the parent; NULL: no TLS with it */
    struct slice tunnel_name;                      /* of the parent, for https */
    struct slice target;
    struct slice host_header;
};

/* Is a parent asked, for a resource or a tunnel? */
static inline bool route_goes_to_parent(const struct route *route) {
    return route->by_parent && route->group != NULL;
}

/* Is the request one for an https URL that passes a parent? The parent then opens a tunnel to the
 * origin, and sees nothing of the request but host and port. */
bool route_tunnels(const struct transaction *transaction);
/* Does the parent itself get the request? */
static inline bool route_asks_parent(const struct transaction *transaction,
                                     const struct route *route) {
    return route_goes_to_parent(route) && !route_tunnels(transaction);
}

/* No server of the group is asked any more: the request goes to the server that its URL names. */
static inline void route_go_directly(struct route *route) {
    route->group = NULL;
}

struct route *route_find(struct transaction *transaction);
/* The parent section that sends the request of a forward client to another proxy; NULL: none does. */
const struct parent_settings *route_parent(struct transaction *transaction);
/* The addresses that may be connected to for the request. The operator names maps and parents, so
 * these may have any address; a server of a group only those that its settings allow, if DNS names
 * it. A client may name only what its listener allows. Call it with the slot, if there is one. */
enum egress route_egress(const struct transaction *transaction);
/* The addresses that the client may name, without a map and without a parent. */
enum egress route_client_egress(const struct transaction *transaction);
/* The address that connections to the server come from: the client's, where transparent mode keeps
 * it. By REDIRECT it does not: nothing says that the firewall hands the server's answers in, as it
 * must for TPROXY. It lives as long as the transaction. NULL: the system chooses it. */
const struct address *route_source(struct transaction *transaction);
/* Why a parent is not asked for what a forward client names: the client may not reach that place.
 * NULL: the parent may be asked. The parent itself resolves names, and may refuse them. */
const char *route_denial(const struct transaction *transaction);
/* The same before there is a route, for a request that goes to a parent. */
const char *route_parent_denial(const struct transaction *transaction);
/* With a map: does the target stay below what the map shows, however the server reads it? */
bool route_stays_below_map(const struct transaction *transaction);
void route_aim(struct transaction *transaction, struct aim *aim);
/* Lets the aim, which is an origin, be reached through a tunnel of that parent, one of `parents`. */
void route_aim_through(struct transaction *transaction, struct aim *aim,
                       const struct origin_member *parent, const struct origins_settings *parents);
/* The key of the pool for connections to that server. A pooled connection is used only for clients
 * that might have opened it themselves, and one that comes from a client's address only for that
 * client (`spoofs`). `place` is the aim's host and port. */
struct slice route_pool_key(struct transaction *transaction, enum egress egress, struct slice place,
                            const struct aim *aim, bool spoofs);
/* The number that a consistent hash uses for this request; 0: none. */
uint64_t route_hash(struct transaction *transaction);

#endif
