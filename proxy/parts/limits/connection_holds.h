/*
 * What a client's connection holds of limits: the entries (limits/limit_table.h) that count it
 * until it is closed, each once. A connection may carry requests of many users. In each section it
 * counts for CONNECTION_HOLDS_MAX of them at a time: one more takes the place of the user for whom
 * it has counted longest.
 *
 *     struct connection_hold *holds = NULL;
 *     if (!connection_holds_take(&holds, limits, &key, &demand, now, &verdict)) ...   over the limit
 *     connection_holds_release(&holds, limits);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_LIMITS_CONNECTION_HOLDS_H
#define RETORT_LIMITS_CONNECTION_HOLDS_H

#include "limits/limits.h"

struct connection_hold;

enum { CONNECTION_HOLDS_MAX = 8 }; /* of one section */

/* True as well: the connection is counted under the key already. */
bool connection_holds_take(struct connection_hold **holdsp, struct limits *limits,
                           const struct limit_key *key, const struct limit_demand *demand,
                           uint64_t now, struct limit_verdict *verdict);
void connection_holds_release(struct connection_hold **holdsp, struct limits *limits);

#endif
