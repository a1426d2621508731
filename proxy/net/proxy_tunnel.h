/*
 * A tunnel through another proxy: a CONNECT on a connection to that proxy (RFC 9110 §9.3.6), after
 * which the connection leads to the server. net/dial.h uses it.
 *
 *     struct proxy_tunnel *tunnel = proxy_tunnel_new(SLICE("CONNECT www.example.com:443 ..."));
 *     while ((status = proxy_tunnel_continue(tunnel, connection)) == IO_WAIT) ... wait
 *     if (status == IO_FAILED) ... proxy_tunnel_error(tunnel)
 *     proxy_tunnel_restart(tunnel);             for another connection
 *     proxy_tunnel_free(&tunnel);
 *
 * Threads: the connection's.
 */
#ifndef RETORT_NET_PROXY_TUNNEL_H
#define RETORT_NET_PROXY_TUNNEL_H

#include "net/connection.h"

struct proxy_tunnel;

/* `head` is the whole CONNECT request; it is copied. */
struct proxy_tunnel *proxy_tunnel_new(struct slice head);
void proxy_tunnel_free(struct proxy_tunnel **tunnelp);
void proxy_tunnel_restart(struct proxy_tunnel *tunnel);
/* Sends the request and reads the answer. IO_DONE: the tunnel is open. IO_WAIT: call again when the
 * connection is readable or writable. */
enum io_status proxy_tunnel_continue(struct proxy_tunnel *tunnel, struct connection *connection);
/* Says why the tunnel failed. It lives as long as the tunnel. */
const char *proxy_tunnel_error(const struct proxy_tunnel *tunnel);
/* The status of the proxy's answer; 0: none has come. */
unsigned proxy_tunnel_status(const struct proxy_tunnel *tunnel);

#endif
