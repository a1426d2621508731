/*
 * A listener: a socket at a listen address. Each worker has its own socket (SO_REUSEPORT), so that
 * the kernel spreads connections over the workers and no two workers share an accept queue. Only
 * where another process opened fewer sockets than there are workers, some workers share one; a
 * connection then wakes one of them (EPOLLEXCLUSIVE).
 *
 *     struct listener *listener = listener_open(net, &address, -1, on_accept, worker, error);
 *     ...
 *     listener_close(&listener);
 *
 * on_accept gets the new descriptor (non-blocking, close-on-exec) and owns it. A connection is
 * accepted when the client's first bytes have arrived, or one second later if the client sends
 * nothing (TCP_DEFER_ACCEPT).
 */
#ifndef RETORT_NET_LISTENER_H
#define RETORT_NET_LISTENER_H

#include "net/address.h"
#include "net/context.h"

enum { LISTENER_ERROR = 320 };
/* A connection without a byte is accepted this many milliseconds late. */
enum { LISTENER_DEFERS = 1000 };

struct listener;

typedef void listener_accept_fn(struct listener *listener, int fd, const struct address *client,
                                void *arg);

/* `claimed`: from listener_claim, owned from here on; -1: there is none. */
struct listener *listener_open(struct net_context *net, const struct address *address, int claimed,
                               listener_accept_fn *on_accept, void *arg,
                               char error[LISTENER_ERROR]);
void listener_close(struct listener **listenerp);
/* Accepts what waits. The kernel wakes one of the processes that share a socket: when that one has
 * ended instead of accepting, the connection waits for the next one that comes. */
void listener_look_again(struct listener *listener);
/* Opens a listening socket for the first listener of this process at the address. Returns -1 and a
 * sentence in `error` when that fails. `alone`: fails when another process listens at the address,
 * even if it shares the address. Afterwards another process of this user can listen there too, but
 * only without `alone`. */
int listener_claim(const struct address *address, bool alone, char error[LISTENER_ERROR]);
/* Prepares a listening socket that another process opened, as listener_claim prepares its own. */
void listener_adopt(int fd);
/* A further descriptor of the listener's socket, which belongs to the caller. -1: there are no
 * descriptors left. */
int listener_copy(const struct listener *listener);
/* May this user listen at the address, if nobody else does? Opens a socket and closes it again. */
bool listener_possible(const struct address *address, char error[LISTENER_ERROR]);
/* Makes the listener take connections to addresses of other machines too, which the firewall hands
 * to it (TPROXY), or no longer. False and a sentence in `error`: this user may not do that. */
bool listener_take_foreign(struct listener *listener, bool on, char error[LISTENER_ERROR]);
const struct address *listener_address(const struct listener *listener);

#endif
