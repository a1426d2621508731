/*
 * The set of own connections (net/own_connections.h), in which transparent mode looks for loops.
 *
 *     if (own_connections_have(set, &client, &destination)) ...       a loop
 *
 * Threads: any; each part of the table has a lock of its own.
 */
#ifndef RETORT_TRANSPARENT_OWN_CONNECTIONS_H
#define RETORT_TRANSPARENT_OWN_CONNECTIONS_H

#include "net/own_connections.h"

struct own_connections *own_connections_new(void);
void own_connections_free(struct own_connections **basep);
/* Is there a connection of this process from `from` to `to`? */
bool own_connections_have(struct own_connections *base, const struct address *from,
                          const struct address *to);

#endif
