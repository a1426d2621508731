/*
 * Reach: which addresses Retort may connect to on behalf of whom. A client of the proxy has no
 * rights on the proxy's own machine, where many programs trust every local connection.
 *
 *     if (!reach_allows(net, REACH_REMOTE, &address)) ...     try the next one, or answer 403
 *
 * Each address is checked just before it is dialled, after names are resolved. So it makes no
 * difference how the address was spelt, by whom, or what the name stood for a moment ago. An IPv6
 * address that contains one of IPv4 (IPv4-mapped, RFC 4291 §2.5.5; NAT64, RFC 6052 and RFC 8215;
 * 6to4, RFC 3056) counts as both.
 *
 * The machine's addresses are read when they are needed, and remembered for one second. So a dial
 * costs a walk through a short list. Threads: the worker's.
 */
#ifndef RETORT_NET_REACH_H
#define RETORT_NET_REACH_H

#include "net/address.h"
#include "net/context.h"

enum reach {
    REACH_REMOTE, /* none that is this machine's, loopback, link-local or for many at once */
    REACH_OTHERS, /* all but what this proxy itself listens on, its admin plane included */
    REACH_ANY,    /* what the operator's configuration names */
};

bool reach_allows(struct net_context *net, enum reach reach, const struct address *address);
/* The same once the system has chosen where the connection is made `from`. An address may be the
 * machine's by a route alone, as those of load balancers are, or for a moment only: then it is made
 * from that address to itself. */
bool reach_allows_from(const struct net_context *net, enum reach reach,
                       const struct address *address, const struct address *from);
/* Why not, for people. */
const char *reach_error(enum reach reach);
/* Reads the machine's addresses now. False: they can't be read; errno tells. */
bool reach_prepare(struct net_context *net);
void reach_release(struct net_context *net);

#endif
