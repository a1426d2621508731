/*
 * Transparent mode: connections that clients have opened to servers, and that the firewall has
 * handed to a listener of the proxy. HTTP and TLS come on one port, and the first bytes tell which.
 *
 *     transparent_accept(&clients, &accepted);
 *
 * Requests of HTTP are read by the protocol that clients_adopt leads to; each has the server's
 * address in exchange->ends->redirection. For a connection with TLS, clients->on_request is called
 * with an exchange that stands for the connection itself (exchange->is_connection): a CONNECT to
 * the server's address. Its open_tunnel gives the connection with the bytes that were read. Its
 * reply only ends the connection, with an alert of TLS (RFC 8446 §6.2), since the client asked
 * nobody.
 *
 *     WAITING: the first bytes are awaited             timer: transparent.silent_after
 *     BUSY: an exchange is under way                   timer: none
 *
 * Threads: the worker's. Ownership: each connection its own, until it is closed or handed on and no
 * exchange is left.
 */
#ifndef RETORT_TRANSPARENT_CONNECTION_H
#define RETORT_TRANSPARENT_CONNECTION_H

#include "client/clients.h"
#include "transaction/step.h"

extern const struct step_row destination_step;

/* Takes the descriptor of a connection that is counted in clients->total. */
void transparent_accept(struct clients *clients, const struct client_accepted *accepted);

#endif
