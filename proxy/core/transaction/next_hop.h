/*
 * The next hop of a request: the server that the connection for it leads to, and what that
 * connection needs: TLS, a tunnel through a parent, and the key under which the pool keeps it.
 *
 *     struct origin_request request = {...};
 *     next_hop_set(transaction, &aim, &request);
 *     origin_call_start(call, net, pool, &request, response, task);
 *
 * Threads: the worker's; memory of the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_NEXT_HOP_H
#define RETORT_TRANSACTION_NEXT_HOP_H

#include "origin/call.h"
#include "transaction/route.h"

/* Sets what the request says of its connection. Returns "host:port", for the log. */
struct slice next_hop_set(struct transaction *transaction, const struct aim *aim,
                          struct origin_request *request);

/* For an aim that is reached through a tunnel of one of `parents`: says how to open it. Returns the
 * place of the origin, as far as keys are concerned: another one behind each parent. */
struct slice next_hop_tunnel(struct transaction *transaction, const struct aim *aim,
                             const struct origins_settings *parents, struct dial_proxy *proxy);

/* The header of the PROXY protocol that begins connections to servers of `origins`; empty: none.
 * `origins` may be NULL. Memory of the transaction's arena. */
struct slice next_hop_preface(struct transaction *transaction,
                              const struct origins_settings *origins);

#endif
