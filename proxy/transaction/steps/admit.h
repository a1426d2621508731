/*
 * ADMIT: decides whether the request has a form that this listener serves. The access sections,
 * which say who may do what, stand in ACCESS (access.h); the limits in LIMIT.
 *
 *     return admit_next(transaction, STEP_LIMIT);           the last line of the step LIMIT
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_ADMIT_H
#define RETORT_TRANSACTION_STEPS_ADMIT_H

#include "transaction/step.h"

/* The request has passed `done`, which is ADMIT, ACCESS or LIMIT. Returns the first step behind it
 * that this request needs. */
enum step admit_next(struct transaction *transaction, enum step done);

#endif
