/*
 * Reach: which addresses Retort may connect to for a client. A client of the proxy has no
 * rights on the proxy's own machine, where many programs trust every local connection.
 *
 *     if (!egress_allows(net, EGRESS_REMOTE, &address)) ...     try the next one, or answer 403
 *
 * Each address is checked just before it is dialled, after names are resolved. So it makes no
 * difference how the address was spelt, or to what the name resolved a moment ago. An IPv6 address
 * that contains an IPv4 address (IPv4-mapped, RFC 4291 §2.5.5; NAT64, RFC 6052 and RFC 8215; 6to4,
 * RFC 3056) counts as both.
 *
 * The machine's addresses are read when they are needed, and remembered for one second. So a check
 * costs one pass over a short list. Threads: the worker's thread only.
 */
#ifndef RETORT_NET_EGRESS_H
#define RETORT_NET_EGRESS_H

#include "net/address.h"
#include "net/context.h"

enum egress {
    EGRESS_REMOTE, /* no address of this machine; no loopback, link-local, multicast or broadcast; no
                     address at which a cloud tells its machines their secrets */
    EGRESS_OTHERS, /* all but the addresses this proxy listens on, its admin plane included */
    EGRESS_ANY,    /* all; for hosts that the operator's configuration names */
    EGRESS_PUBLIC, /* as EGRESS_REMOTE, without private networks (RFC 1918, RFC 4193, RFC 6598); for
                     addresses that a stranger chose */
    EGRESS_FOUND,  /* as EGRESS_REMOTE; for servers that DNS names for the operator (SRV records) */
    EGRESS_FOUND_LOCAL, /* as EGRESS_OTHERS; likewise, where the operator allows it */
};

/* Has DNS named the host, for a name of the operator's? */
static inline bool egress_is_found(enum egress egress) {
    return egress == EGRESS_FOUND || egress == EGRESS_FOUND_LOCAL;
}
/* Is the host the operator's choice, or that of a name of his, and not the client's? */
static inline bool egress_is_operators(enum egress egress) {
    return egress == EGRESS_ANY || egress_is_found(egress);
}
/* What the keys of connections end with, so that one made under a reach serves under no other. */
const char *egress_mark(enum egress egress);

bool egress_allows(struct net_context *net, enum egress egress, const struct address *address);
/* Checks again when the system has chosen the local address `from`. An address may belong to the
 * machine by a route alone, as with load balancers, or for a moment only. Then the system connects
 * from that address to itself. */
bool egress_allows_from(const struct net_context *net, enum egress egress,
                        const struct address *address, const struct address *from);
/* A sentence for people that says why an address is not allowed. */
const char *egress_error(enum egress egress);
/* Reads the machine's addresses now. False: they can't be read; errno says why. */
bool egress_prepare(struct net_context *net);
/* Can they be read? errno as above. */
bool egress_possible(void);
void egress_release(struct net_context *net);

#endif
