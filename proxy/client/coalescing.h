/*
 * Which names a client may ask for on one connection. A client of HTTP/2 may use a connection for
 * every name that its certificate is for (RFC 9113 §9.1.1). When it goes beyond that, the server
 * answers with 421 (RFC 9110 §15.5.20), and the client opens another connection.
 *
 *     if (!coalescing_allows(&client->ends, client->listen, authority)) ...              421
 *
 * This is for reverse listeners with certificates. A forward proxy is asked for all names, and the
 * step RECEIVE looks at intercepted connections itself.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_CLIENT_COALESCING_H
#define RETORT_CLIENT_COALESCING_H

#include "client/exchange.h"

/* The authority is the request's ":authority" or Host. True as well if it is none: that is for
 * others to refuse. */
bool coalescing_allows(const struct exchange_ends *ends, const struct listen_settings *listen,
                       struct slice authority);

#endif
