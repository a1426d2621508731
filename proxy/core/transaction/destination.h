/*
 * The destination of a request: in transparent mode a client has connected to an address, and its request of
 * clear-text HTTP names a host, which the step DESTINATION compares. Only if the address is one of the host's, by DNS, is the response
 * that of the host. Otherwise any client could put a page of its own into the cache under any name.
 *
 *     if (destination_is_redirected(exchange)) ...                  the client has chosen the server itself
 *     if (destination_is_unproven(transaction)) ...                 neither looked up nor stored
 *     const struct address *place = destination_of(transaction, &url);
 *     if (place != NULL) ...                                        connect there
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_DESTINATION_H
#define RETORT_TRANSACTION_DESTINATION_H

#include "client/exchange.h"
#include "http/url.h"

struct transaction;

/* Written by ../../parts/transparent/destination.c. */
struct destination {
    struct slice host; /* that the request names, and the port */
    uint16_t port;
    bool proven; /* the address that the client has connected to is one of the host's */
};

/* Is this a request of clear-text HTTP in transparent mode? */
static inline bool destination_is_redirected(const struct exchange *exchange) {
    return exchange->ends->redirection != NULL && !exchange->is_connection;
}
/* Does the host of the request not have the address that the client has connected to, by DNS or, in
 * an intercepted connection, by a verified certificate? False as well if a service has put another
 * host into the request. */
bool destination_is_unproven(const struct transaction *transaction);
/* The address that the client has connected to, if that is where this URL is to be fetched. NULL:
 * the URL's own host is. */
const struct address *destination_of(const struct transaction *transaction, const struct url *url);

#endif
