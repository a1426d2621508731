/*
 * TUNNEL: the client and the origin leave HTTP, and bytes flow in both directions. This happens
 * after a CONNECT, for which this step connects to the origin unless a parent proxy has done so, or
 * after an Upgrade that the origin has answered with 101.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_TUNNEL_H
#define RETORT_TRANSACTION_STEPS_TUNNEL_H

#include "net/dial.h"
#include "transaction/relay.h"

/* Written by tunnel.c. */
struct tunnel {
    struct dial *dial;   /* of a CONNECT */
    struct relay *relay; /* owned; NULL: the tunnel is not open yet */
};

struct transaction;

#endif
