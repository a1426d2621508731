/*
 * What services are told of who asks: what they make of a message for one user is for nobody else
 * (transaction/disclosed_identity.h).
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_TOLD_H
#define RETORT_ADAPT_TOLD_H

#include <stdbool.h>

struct adapt_chain;
struct adapter;
struct transaction;

/* Have services that know who asks changed the message? `by_who`: which are asked depends on it. */
bool told_who_asks(struct transaction *transaction, const struct adapt_chain *chain, bool by_who);
/* Is the service told who asks, and is that known? Then its result is for nobody else. */
bool told_tells_service(struct transaction *transaction, const struct adapter *service);

#endif
