/*
 * Own connections: those that this process has opened, of all its workers. In transparent mode the
 * firewall may send one of them back to the process, which would open the next one, without end. A
 * connection that has come back is known by its two addresses, which are the same on both sides.
 *
 *     struct own_connection *own = own_connections_add(set, fd, &to);     right after connect()
 *     if (own_connections_have(set, &client, &destination)) ...       a loop
 *     own_connections_remove(set, &own);                              before the socket is closed
 *
 * Threads: any; each part of the table has a lock of its own.
 */
#ifndef RETORT_NET_OWN_CONNECTIONS_H
#define RETORT_NET_OWN_CONNECTIONS_H

#include "net/address.h"

struct own_connection;
struct own_connections;

struct own_connections *own_connections_new(void);
void own_connections_free(struct own_connections **setp);
/* `to`: where the socket is connected to. NULL: its own address can't be read. */
struct own_connection *own_connections_add(struct own_connections *set, int fd,
                                           const struct address *to);
/* *ownp NULL: does nothing. */
void own_connections_remove(struct own_connections *set, struct own_connection **ownp);
/* Is there a connection of this process from `from` to `to`? */
bool own_connections_have(struct own_connections *set, const struct address *from,
                          const struct address *to);

#endif
