/*
 * The order in which the addresses of a host are tried (RFC 8305 §4).
 *
 *     address_order(addresses, count, AF_INET6, net->slow_addresses, now);
 *
 * The families take turns, so that a family which leads nowhere costs one attempt only. Within a
 * family the name server's order stays. IPv6 addresses of little use from outside (RFC 6724 §2.1:
 * unique local, site-local, 6to4, Teredo) come behind all others, and behind these come addresses
 * that lately did not answer.
 *
 * Slow addresses are remembered in a small table of a worker: an address is in it when another one
 * of the same host had to be tried because it did not answer or refused. One that answers again
 * leaves the table. It decides only the order; no address is left out.
 *
 *     slow_addresses_note(&net->slow_addresses, &address, now + SLOW_ADDRESS_FOR);
 *     slow_addresses_forget(net->slow_addresses, &address);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_NET_ADDRESS_ORDER_H
#define RETORT_NET_ADDRESS_ORDER_H

#include "net/address.h"

enum {
    ADDRESS_ORDER_MAX = 16,
    SLOW_ADDRESS_FOR = 600 * 1000, /* milliseconds, as RFC 6555 §4.2 has it */
    SLOW_ADDRESSES = 256
};

struct slow_addresses; /* NULL: there are none yet */

/* Orders at most ADDRESS_ORDER_MAX addresses. `first` is AF_INET or AF_INET6: the family that
 * begins. */
void address_order(struct address *addresses, unsigned count, sa_family_t first,
                   const struct slow_addresses *slow, uint64_t now);

/* Makes the table when there is none. */
void slow_addresses_note(struct slow_addresses **slowp, const struct address *address,
                         uint64_t until);
void slow_addresses_forget(struct slow_addresses *slow, const struct address *address);
bool slow_addresses_have(const struct slow_addresses *slow, const struct address *address,
                         uint64_t now);
void slow_addresses_free(struct slow_addresses **slowp);

#endif
