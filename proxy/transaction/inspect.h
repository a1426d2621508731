/*
 * What a transaction leaves in the store of inspected transactions (record/inspections.h), if an
 * operator wants it: its steps, its heads, the services that it was shown to, and its outcome.
 *
 *     inspect_step(transaction, next);          behind each step, where transaction->watched
 *     inspect_end(transaction);                 before it is released; where transaction->inspecting is set
 *
 * Called by the loop that drives the steps (transaction.c), and by nobody else. host->watched is set
 * when an inspection begins, and cleared here when none is under way; a transaction costs nothing
 * for this while it is not set.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_INSPECT_H
#define RETORT_TRANSACTION_INSPECT_H

#include "transaction/step.h"

#include <stdbool.h>

struct transaction;
struct transaction_host;

void inspect_step(struct transaction *transaction, enum step next);
void inspect_end(struct transaction *transaction);
/* Is somebody interested in steps: is an inspection under way, or has it transactions here? */
bool inspect_is_wanted(const struct transaction_host *host);

#endif
