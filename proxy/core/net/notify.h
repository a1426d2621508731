/*
 * Messages to the service manager that has started the process: systemd, or any other one that sets
 * NOTIFY_SOCKET (sd_notify(3)). Without one, nothing is sent.
 *
 *     notify_send("READY=1\nSTATUS=serving with %u workers", count);
 *     unsigned interval = notify_watchdog();           0: nobody waits for signs of life
 *     if (interval > 0) notify_send("WATCHDOG=1");     at least every `interval` milliseconds
 *
 * Threads: any.
 */
#ifndef RETORT_NET_NOTIFY_H
#define RETORT_NET_NOTIFY_H

#include "net/address.h"

#include <stdbool.h>

/* Waits for at most a second when the manager does not read. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with descriptors, at most NOTIFY_FDS, which stay the caller's. */
enum { NOTIFY_FDS = 253 }; /* as many as the kernel passes at once */
/* Is there a manager? */
bool notify_is_heard(void);
/* How often the manager wants a sign of life, in milliseconds: half of WATCHDOG_USEC. 0: never. */
unsigned notify_watchdog(void);

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

struct socket_store {
    int *fds;
    unsigned count;
};

void socket_store_add(struct socket_store *store, const int *fds, unsigned count);
/* Afterwards the store is empty. */
void socket_store_send(struct socket_store *store);
void socket_store_remove(const struct address *address);

#endif
