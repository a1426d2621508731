/*
 * The limbo: connections to a host that is lost. Closed now, they would stay open at the far side,
 * since nothing arrives there, and each might hold a thread of the ICAP server long after its
 * return. They are kept until the host is back, and then end at both sides.
 *
 *     icap_limbo_init(&limbo);
 *     icap_limbo_add(&limbo, &connection);
 *     icap_limbo_end(&limbo);               with a reset each
 *
 * Threads: the loop's.
 */
#ifndef RETORT_ICAP_LIMBO_H
#define RETORT_ICAP_LIMBO_H

#include "base/list.h"
#include "net/connection.h"

struct icap_limbo {
    struct list_link connections;
};

void icap_limbo_init(struct icap_limbo *limbo);
void icap_limbo_add(struct icap_limbo *limbo, struct connection **connection);
void icap_limbo_end(struct icap_limbo *limbo);

#endif
