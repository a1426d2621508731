/*
 * Own connections: those that this process has opened, of all its workers. In transparent mode the
 * firewall may send one of them back to the process, which would open the next one, without end. A
 * connection that has come back is known by its two addresses, which are the same on both sides.
 *
 *     struct own_connection *own = set->add(set, fd, &to);       right behind connect()
 *     set->remove(set, &own);                                    before the socket is closed
 *
 * Threads: any.
 */
#ifndef RETORT_NET_OWN_CONNECTIONS_H
#define RETORT_NET_OWN_CONNECTIONS_H

#include "net/address.h"

struct own_connection;

/* The part transparent has it (transparent/own_connections.h). */
struct own_connections {
    /* `to`: where the socket is connected to. NULL: its own address can't be read. */
    struct own_connection *(*add)(struct own_connections *set, int fd, const struct address *to);
    void (*remove)(struct own_connections *set, struct own_connection **ownp);
};

#endif
