/*
 * The address that a stored response came from. While access sections depend on the addresses of
 * hosts, a stored response is used only for clients that may reach that address. Otherwise somebody
 * who decides what a name stands for could read what a client with more rights has fetched: the name
 * leads to a denied address while that client asks, and to a harmless one for the next request.
 *
 *     provenance.source = stored_source_of_response(transaction);         when it is stored
 *     if (!stored_source_is_permitted(transaction, object)) ...       it is nothing to the client
 *
 * Not known, and so not judged, are the sources of what came through a parent or a reverse map, and
 * of what was stored while no access section depended on addresses.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STORED_SOURCE_H
#define RETORT_TRANSACTION_STORED_SOURCE_H

#include "cache/object.h"

struct transaction;

/* That of the response that has just come from an origin. */
struct object_source stored_source_of_response(const struct transaction *transaction);
/* Did both the response that has just come and the stored one come from the same address? */
bool stored_source_is_same(const struct transaction *transaction, const struct object *object);
bool stored_source_is_permitted(struct transaction *transaction, const struct object *object);

#endif
