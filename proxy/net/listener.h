/*
 * A listener: one worker's own socket on a listen address (SO_REUSEPORT), so that the kernel
 * spreads connections over the workers and no two of them share an accept queue.
 *
 *     struct listener *listener = listener_open(net, &listen_settings, on_accept, worker, error);
 *     ...
 *     listener_close(&listener);
 *
 * on_accept gets the new descriptor (non-blocking, close-on-exec) and owns it. Connections come
 * with the first bytes that the client has sent; one that says nothing comes a second later
 * (TCP_DEFER_ACCEPT).
 */
#ifndef RETORT_NET_LISTENER_H
#define RETORT_NET_LISTENER_H

#include "net/address.h"
#include "net/context.h"

enum { LISTENER_ERROR = 256 };

struct listener;

typedef void listener_accept_fn(struct listener *listener, int fd, const struct address *client,
                                void *arg);

struct listener *listener_open(struct net_context *net, const struct address *address,
                               listener_accept_fn *on_accept, void *arg,
                               char error[LISTENER_ERROR]);
void listener_close(struct listener **listenerp);
/* Could one listen there? Opens a socket and closes it again. */
bool listener_probe(const struct address *address, char error[LISTENER_ERROR]);
const struct address *listener_address(const struct listener *listener);

#endif
