/*
 * A connection that a load balancer announces: it begins with a header of the PROXY protocol, which
 * says who the client is (net/proxy_header.h). Nothing else happens before the header is there.
 *
 *     proxy_protocol_accept(clients, &accepted, listen);
 *
 * On a listener with listen.proxy_protocol the header is not optional, because a client that could
 * choose whether to send one could choose its address. So a connection from an address that is not
 * listed there is closed at once, and one without a good header is closed when that is certain, or
 * after client.header_timeout. When the header is read, to its last byte and no further, the
 * connection goes the way of any other through clients->accept, as the connection of the client
 * that the header names: to TLS, to transparent mode, or to HTTP.
 *
 * Threads: the worker's. Ownership: its own, until the connection is handed over or closed.
 */
#ifndef RETORT_CLIENT_PROXY_PROTOCOL_H
#define RETORT_CLIENT_PROXY_PROTOCOL_H

#include "client/clients.h"

/* Takes the descriptor of a connection that is counted in clients->total. */
void proxy_protocol_accept(struct clients *clients, const struct client_accepted *accepted,
                           const struct listen_settings *listen);

#endif
