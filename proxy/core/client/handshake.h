/*
 * The time between the accept of a connection to a listener with certificates and its first request:
 * the TLS handshake. HTTP takes the connection over when it is complete, and needs to know nothing
 * of it.
 *
 *     struct tls_server *server = listen_set_server(clients->listen_set, listen);
 *     handshake_accept(clients, &accepted, server);
 *
 * - client.handshake_timeout runs from the accept, whatever the client sends. The kernel gives us a
 *   silent connection a second late (TCP_DEFER_ACCEPT), which is taken off.
 * - client.max_handshakes bounds how many there are in all workers. When there are more, the client
 *   that has been waited for longest makes way.
 * - A client that begins with a letter speaks HTTP without TLS: HTTP gets the connection in clear
 *   text, and the step RECEIVE answers with a page that says so.
 * - After a failure the connection stays for a moment, so that the client can read the alert.
 *
 * Threads: the worker's. Ownership: its own, until the connection is handed over or closed.
 */
#ifndef RETORT_CLIENT_HANDSHAKE_H
#define RETORT_CLIENT_HANDSHAKE_H

#include "client/clients.h"
#include "tls/server.h"

/* Takes the descriptor of a connection that is counted in clients->total. */
void handshake_accept(struct clients *clients, const struct client_accepted *accepted,
                      struct tls_server *server);

#endif
