/*
 * REQMOD: services that change requests, or answer them, before the cache is asked.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_REQMOD_H
#define RETORT_TRANSACTION_STEPS_REQMOD_H

#include "transaction/step.h"

#include <stdbool.h>

/* Is the request for a service that changes requests? */
bool reqmod_is_wanted(struct transaction *transaction);

#endif
