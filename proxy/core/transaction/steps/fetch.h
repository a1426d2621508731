/*
 * FETCH: asks the origin.
 *
 *     fetch_name_origin(transaction, SLICE("retort.internal"));     somebody else answers
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_FETCH_H
#define RETORT_TRANSACTION_STEPS_FETCH_H

#include "origin/call.h"
#include "origin/host.h"
#include "origin/slot.h"
#include "transaction/route.h"

/* Written by fetch.c. */
struct fetch {
    bool ranges_removed;
    bool trailers;   /* the origin was asked for them, and the client takes them */
    bool completing; /* asks for the rest of a stored part for a client that wants the whole */
    struct route *route;
    struct origin_slot *slot; /* at a server of the route's group */
    struct origin_call *call;
    struct url
        server; /* with a map to a group: the member that is asked; text of the transaction */
    uint64_t deadline;        /* for all that the origin does, in the loop's time */
    uint64_t asked_at;        /* of the loop's clock */
    struct slice origin_name; /* "host:port", for the log */
    struct slice version;     /* of HTTP that the origin has answered with, "1.1"; empty: not yet */
};

struct transaction;

/* Sets the name, for the log, of the server that is asked or that answers in place of an origin. */
void fetch_name_origin(struct transaction *transaction, struct slice name);
/* Says why the request failed, or why the origin's response broke off in the middle of its body; NULL: neither. */
const char *fetch_error(const struct transaction *transaction);

#endif
