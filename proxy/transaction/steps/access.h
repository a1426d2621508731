/*
 * ACCESS: finds out who the client is and where the request would go, and lets the access sections
 * decide (transaction/access.h).
 *
 *     return access_deny(transaction, &decision);          in place of: return STEP_LOOKUP
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_ACCESS_H
#define RETORT_TRANSACTION_STEPS_ACCESS_H

#include "access/rules.h"
#include "transaction/step.h"

struct transaction;

/* Makes the page for a request that is not let in. */
enum step access_deny(struct transaction *transaction, const struct access_decision *decision);

#endif
