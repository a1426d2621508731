/*
 * Shares of clients: how many look-ups of names each client has under way. Inside net/.
 *
 *     struct table shares;
 *     table_init(&shares);
 *     if (!lookup_share_take(&shares, client, most, &share)) ...   it has as many as it may
 *     lookup_share_give(&shares, &share);                          the look-up is over
 *
 * An IPv6 client is its network of 64 bits. The proxy itself and clients of Unix sockets have no
 * share; `share` is NULL then.
 *
 * Threads: the resolver's.
 */
#ifndef RETORT_NET_LOOKUP_SHARE_H
#define RETORT_NET_LOOKUP_SHARE_H

#include "base/table.h"
#include "net/address.h"

struct lookup_share;

/* False: the client has as many look-ups under way as it may. */
bool lookup_share_take(struct table *shares, const struct address *client, unsigned most,
                       struct lookup_share **share);
void lookup_share_give(struct table *shares, struct lookup_share **sharep);

#endif
