/*
 * Somebody who reviews the addresses of names before they are used: services that have `resolved`
 * (adapt/named_addresses.h). Inside net/ but for the struct.
 *
 *     net->reviewer = &worker->reviewer;                        NULL: nobody does
 *
 *     if (!name_review(net, entry->name, &ips, &error)) ...     none is left; error says who did it
 *
 * Addresses can be put into another order and be left out. None can be added: reach and access rules
 * are checked behind this all the same, where an address is dialled.
 *
 * Threads: the worker's. Errors: a static text, which lives as long as the process.
 */
#ifndef RETORT_NET_NAME_REVIEW_H
#define RETORT_NET_NAME_REVIEW_H

#include "base/slice.h"

#include <sys/socket.h>

struct name_ips;
struct net_context;

struct name_reviewer {
    /* Moves the addresses that shall be used to the front, and returns how many they are; *by: the
     * name of who left out the last one. */
    size_t (*review)(struct name_reviewer *reviewer, struct slice name,
                     struct sockaddr_storage *addresses, size_t count, const char **by);
};

/* Sets ips->ordered and their order. Without a reviewer nothing changes. */
bool name_review(const struct net_context *net, const char *name, struct name_ips *ips,
                 const char **error);

#endif
