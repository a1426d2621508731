/*
 * The socket store: listening sockets that systemd keeps for this service (FDSTORE=1 of sd_notify(3),
 * FileDescriptorStoreMax= of the unit). Connections wait in their queues when this process crashes
 * or is restarted. The next process gets the sockets as LISTEN_FDS (takeover/inherited.h).
 *
 *     struct socket_store store = {0};
 *     socket_store_add(&store, fds, count);             copies
 *     socket_store_send(&store);                        systemd ignores those that it has
 *
 *     socket_store_remove(&address);                    nobody listens there any more
 *
 * The sockets of one address have one name in the store, so all of them are removed by it. A socket
 * that stays in the store while nobody accepts from it would let clients wait for nothing. Without a
 * service manager, nothing happens.
 *
 * Threads: one at a time for each store.
 */
#ifndef RETORT_TAKEOVER_SOCKET_STORE_H
#define RETORT_TAKEOVER_SOCKET_STORE_H

#include "net/address.h"

struct socket_store {
    int *fds;
    unsigned count;
};

void socket_store_add(struct socket_store *store, const int *fds, unsigned count);
/* Afterwards the store is empty. */
void socket_store_send(struct socket_store *store);
void socket_store_remove(const struct address *address);

#endif
