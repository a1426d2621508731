/*
 * The route of a transaction: to whom its request goes. The server that its URL names; in reverse
 * mode what the map says, one origin or a group; or a parent proxy.
 *
 *     struct route *route = route_find(transaction);       NULL: no map is for this URL
 *     if (route->group != NULL) ... take a slot ...
 *     route_aim(transaction, &aim);                        with the slot's server, if there is one
 *
 * Threads: the worker's; memory of the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_ROUTE_H
#define RETORT_TRANSACTION_ROUTE_H

#include "net/reach.h"
#include "origin/group.h"
#include "origin/host.h"

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

/* What a request is sent to and with. */
struct aim {
    struct slice host;
    uint16_t port;
    struct slice target;
    struct slice host_header;
};

static inline bool route_goes_to_parent(const struct route *route) {
    return route->by_parent && route->group != NULL;
}

/* No server of the group is to be asked: the request goes to what its URL names. */
static inline void route_go_directly(struct route *route) {
    route->group = NULL;
}

struct route *route_find(struct transaction *transaction);
/* What may be connected to for the request: the operator's word goes for maps and parents, a
 * client's only as far as its listener lets it. */
enum reach route_reach(const struct transaction *transaction);
/* Why a parent is not asked for what a forward client names: a place out of the client's reach.
 * NULL: it may be asked. Names are the parent's to resolve, and its to refuse. */
const char *route_denial(const struct transaction *transaction);
/* With a map: does the target stay below what the map shows, however the server reads it? */
bool route_stays_below_map(const struct transaction *transaction);
void route_aim(struct transaction *transaction, struct aim *aim);
/* The number that a consistent hash goes by; 0 where there is none. */
uint64_t route_hash(struct transaction *transaction);

#endif
