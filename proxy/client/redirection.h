/*
 * A redirection: what the kernel says about a connection that reached a transparent listener. The
 * client has opened the connection to a server, and the firewall has handed it to the listener, by
 * REDIRECT (SO_ORIGINAL_DST) or by TPROXY (the socket's own address is the server's).
 *
 *     struct redirection *redirection = redirection_new(net, fd, &listener);
 *     ... when the client's first bytes are there ...
 *     redirection_judge(redirection, net, &client);
 *     if (redirection->kind == REDIRECTION_LOOP) ...
 *
 *     free(redirection);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_CLIENT_REDIRECTION_H
#define RETORT_CLIENT_REDIRECTION_H

#include "net/context.h"
#include "net/resolver.h"

enum redirection_kind {
    REDIRECTION_GOOD,
    REDIRECTION_DIRECT, /* the client has connected to the listener itself */
    REDIRECTION_LOOP,   /* the connection is one that this process has opened */
};

struct redirection {
    struct address destination; /* that the client has connected to */
    enum redirection_kind kind;
    /* The last host for which the destination was found to be one of its addresses. It saves the
     * look-ups for the next requests on the connection. Empty: none was. */
    char proven_host[RESOLVER_NAME_MAX + 1];
};

/* The caller frees it. */
struct redirection *redirection_new(struct net_context *net, int fd,
                                    const struct address *listener);
/* For a connection to `destination` that a load balancer announces (announced.h). */
struct redirection *redirection_announced(struct net_context *net,
                                          const struct address *destination);
/* Finds a connection that this process itself has opened. Call it when bytes have arrived, since
 * the process notes a connection only after the kernel has opened it. */
void redirection_judge(struct redirection *redirection, struct net_context *net,
                       const struct address *client);

#endif
