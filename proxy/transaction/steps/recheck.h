/*
 * RECHECK decides again about a request that a service or a rewrite section has changed since
 * ACCESS. It can only refuse what ACCESS has let in: it never asks the client for credentials and
 * never redirects.
 *
 *     return recheck_next(transaction);                    in place of: return STEP_LOOKUP
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_RECHECK_H
#define RETORT_TRANSACTION_STEPS_RECHECK_H

#include "transaction/step.h"

struct transaction;

/* The step that follows when the request is as it will be looked up: RECHECK, or LOOKUP for a
 * request that nobody has changed since it was decided about. */
enum step recheck_next(struct transaction *transaction);

#endif
