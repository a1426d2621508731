#include "client/redirection.h"

#include "base/assert.h"
#include "net/own_connections.h"
#include "net/reach.h"

#include <linux/netfilter_ipv4.h>

/* linux/netfilter_ipv6/ip6_tables.h has it, and does not go together with netinet/in.h. */
enum { IP6T_SO_ORIGINAL_DST = 80 };

/* False: the kernel tracks no such connection. That is so with TPROXY where nothing else needs the
 * tracking. */
static bool read_original(int fd, sa_family_t family, struct address *original) {
    *original = (struct address){.length = sizeof original->v6};
    if (family == AF_INET)
        return getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &original->any, &original->length) == 0;
    return getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, &original->any, &original->length) == 0;
}

/* Without a redirection, the connection's own address is the listener's, and one of this machine. A
 * connection by TPROXY may be for the same port, but of another machine. */
static bool is_direct(struct net_context *net, const struct address *local,
                      const struct address *destination, const struct address *listener) {
    return address_equal(local, destination) && address_port(local) == address_port(listener) &&
           !reach_allows(net, REACH_REMOTE, destination);
}

struct redirection *redirection_new(struct net_context *net, int fd,
                                    const struct address *listener) {
    struct redirection *redirection = xcalloc(1, sizeof *redirection);
    struct address local = {.length = sizeof local.v6};
    if (getsockname(fd, &local.any, &local.length) != 0)
        local = *listener;
    address_unmap(&local);
    if (!read_original(fd, local.any.sa_family, &redirection->destination))
        redirection->destination = local;
    redirection->kind = is_direct(net, &local, &redirection->destination, listener)
                            ? REDIRECTION_DIRECT
                            : REDIRECTION_GOOD;
    return redirection;
}

struct redirection *redirection_announced(struct net_context *net,
                                          const struct address *destination) {
    struct redirection *redirection = xcalloc(1, sizeof *redirection);
    redirection->destination = *destination;
    redirection->kind =
        reach_allows(net, REACH_OTHERS, destination) ? REDIRECTION_GOOD : REDIRECTION_DIRECT;
    return redirection;
}

void redirection_judge(struct redirection *redirection, struct net_context *net,
                       const struct address *client) {
    if (redirection->kind == REDIRECTION_GOOD &&
        own_connections_have(net->own_connections, client, &redirection->destination))
        redirection->kind = REDIRECTION_LOOP;
}
