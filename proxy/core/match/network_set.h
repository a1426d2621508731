/*
 * A set of networks, as large as a list in a file: a question costs a binary search.
 *
 *     struct network_set *set = network_set_new();
 *     network_set_add(set, &network);
 *     network_set_seal(set);                              once, before the first question
 *     if (network_set_has(set, &address)) ...
 *     network_set_free(&set);
 *
 * Networks become ranges of addresses; those that overlap or touch become one. An IPv4 address that
 * is mapped into IPv6 counts as the IPv4 address.
 *
 * Threads: read-only once sealed.
 */
#ifndef RETORT_MATCH_NETWORK_SET_H
#define RETORT_MATCH_NETWORK_SET_H

#include "net/address.h"

struct network_set;

struct network_set *network_set_new(void);
void network_set_free(struct network_set **setp);
void network_set_add(struct network_set *set, const struct network *network);
void network_set_seal(struct network_set *set);
bool network_set_has(const struct network_set *set, const struct address *address);

#endif
