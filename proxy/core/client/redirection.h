/*
 * A redirection: what the kernel says about a connection that reached a transparent listener. The
 * client has opened the connection to a server, and the firewall has handed it to the listener, by
 * REDIRECT (SO_ORIGINAL_DST) or by TPROXY (the socket's own address is the server's).
 *
 *     const struct redirection *redirection = exchange->ends->redirection;     made by the part transparent
 *     if (redirection != NULL && redirection->status != 0) ...                 no request may come this way
 *
 * Threads: the worker's.
 */
#ifndef RETORT_CLIENT_REDIRECTION_H
#define RETORT_CLIENT_REDIRECTION_H

#include "net/resolver.h"

struct redirection {
    struct address destination; /* that the client has connected to */
    unsigned status;            /* not 0: requests get this answer, and `reason` */
    const char *reason;
    bool rewritten; /* by REDIRECT: the firewall has changed the destination of the packets */
    /* The last host for which the destination was found to be one of its addresses. It saves the
     * look-ups for the next requests on the connection. Empty: none was. */
    char proven_host[RESOLVER_NAME_MAX + 1];
};

#endif
