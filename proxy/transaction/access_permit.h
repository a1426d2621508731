/*
 * Decides about what is about to leave: to which address, under which name of TLS, and after
 * services behind the cache.
 *
 * Whoever connects lets each address be judged before, because a name may lead elsewhere by then:
 *
 *     target.permit = access_permit(transaction);           NULL: no section asks for the address
 *     target.permit_arg = transaction;
 *
 * Nobody is asked for credentials or redirected then: what would need that is denied.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_ACCESS_PERMIT_H
#define RETORT_TRANSACTION_ACCESS_PERMIT_H

#include "net/dial.h"

struct transaction;

/* Judges an address that the request is about to be sent to; NULL: no section asks for it. Its
 * argument is the transaction. */
dial_permit_fn *access_permit(struct transaction *transaction);
/* Decides about the request that services behind the cache have made for the origin. NULL: it may
 * go there; else a reason for people. */
const char *access_denial(struct transaction *transaction);
/* What becomes of a connection whose TLS asks for `sni`. False: it is denied. */
bool access_allows_name(struct transaction *transaction, struct slice sni);

#endif
