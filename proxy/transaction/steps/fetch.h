/*
 * FETCH: asks the origin.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_FETCH_H
#define RETORT_TRANSACTION_STEPS_FETCH_H

#include "origin/call.h"
#include "origin/place.h"
#include "origin/seat.h"
#include "transaction/route.h"

struct fetch {
    bool ranges_removed;
    bool completing; /* asks for the rest of a stored part for a client that wants the whole */
    struct route *route;
    struct origin_place *place; /* if it is asked by its URL, and connections are limited */
    struct origin_seat *seat;   /* at a server of the route's group */
    struct origin_call *call;
    uint64_t deadline;        /* for all that the origin does, in the loop's time */
    uint64_t asked_at;        /* of the loop's clock */
    struct slice origin_name; /* "host:port", for the log */
};

#endif
