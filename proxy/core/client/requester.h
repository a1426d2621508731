/*
 * An requester: who a request is from, for requests that a service makes for the same client
 * (content/fetch.h). A transaction writes it for its services (adapt/client_fields.h), which pass it
 * on without a look.
 *
 *     const struct requester *requester = requester_of(exchange, identity, &transaction->arena);
 *
 * Threads: the worker's. Memory: the arena's. The identity lives as long as the transaction.
 */
#ifndef RETORT_CLIENT_REQUESTER_H
#define RETORT_CLIENT_REQUESTER_H

#include "client/exchange.h"

struct requester {
    struct clients *clients;
    struct address client, listener;
    struct identity *identity; /* NULL: nobody is proved */
    bool of_service;           /* the request is a service's own */
};

static inline const struct requester *requester_of(const struct exchange *exchange,
                                                   struct identity *identity, struct arena *arena) {
    if (exchange->listen == NULL)
        return NULL;
    struct requester *requester = arena_alloc(arena, sizeof *requester);
    *requester = (struct requester){
        .clients = exchange->clients,
        .client = *exchange_client(exchange),
        .listener = exchange->listen->address,
        .identity = identity,
        .of_service = exchange->of_service,
    };
    return requester;
}

#endif
