/*
 * ACCESS: finds out who the client is and where the request would go, and lets the access sections
 * decide (transaction/access.h).
 *
 *     if (access_passes(transaction)) ...                  no step is needed
 *     return access_deny(transaction, &decision);          in place of: return STEP_LOOKUP
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_ACCESS_H
#define RETORT_TRANSACTION_STEPS_ACCESS_H

#include "access/rules.h"
#include "transaction/step.h"

struct transaction;

/* The usual case, which needs no step of its own: what the request says is enough, and the first
 * section that matches allows it. False: the step has to decide. */
bool access_passes(struct transaction *transaction);
/* Makes the page for a request that is not let in. */
enum step access_deny(struct transaction *transaction, const struct access_decision *decision);

#endif
