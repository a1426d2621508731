/*
 * RESPMOD_POSTCACHE: services that change responses behind the cache: each client's copy on its way
 * out, wherever it comes from. What is stored stays as it is.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_RESPMOD_POSTCACHE_H
#define RETORT_TRANSACTION_STEPS_RESPMOD_POSTCACHE_H

#include "transaction/postcache.h"
#include "transaction/step.h"

/* To the client, by way of services that change responses behind the cache where there are any. */
enum step respmod_postcache_or_deliver(struct transaction *transaction);
/* May a service behind the cache want the response, whatever it will turn out to be? */
bool respmod_postcache_may_want(struct transaction *transaction);

#endif
