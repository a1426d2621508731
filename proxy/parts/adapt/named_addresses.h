/*
 * The addresses of names as services want them: who has `resolved` (service.h) puts the addresses
 * that DNS gave for a name into another order, or leaves some out.
 *
 *     struct named_addresses names;
 *     named_addresses_use(&names, net, set);         the set of the worker; after each reload
 *     named_addresses_use(&names, net, NULL);        nobody any more
 *
 * The services are asked in the order of the configuration, each about what the one before has left.
 * Names that were resolved before stay as they are until their time is over; only when services that
 * want to hear of names come or go is all forgotten.
 *
 * Threads: the worker's. Ownership: the set outlives its use.
 */
#ifndef RETORT_ADAPT_NAMED_ADDRESSES_H
#define RETORT_ADAPT_NAMED_ADDRESSES_H

#include "adapt/set.h"
#include "net/name_review.h"

struct named_addresses {
    struct name_reviewer reviewer;
    const struct adapt_set *set; /* NULL: nobody wants to hear of names */
};

void named_addresses_use(struct named_addresses *names, struct net_context *net,
                         const struct adapt_set *set);

#endif
