/*
 * LIMIT: counts the request against the limit sections that it matches (limits/settings.h).
 *
 *     const struct limit_state *state = limit_state(transaction);      NULL: none matches
 *
 * What it has taken is given back when the client has its reply, or has left. The paces of the
 * exchange (limits/pace.h) shape the reply, the request's body, and what a tunnel carries.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_LIMITS_STEP_H
#define RETORT_LIMITS_STEP_H

#include "limits/pace.h"
#include "limits/settings.h"
#include "transaction/transaction.h"

/* A section that matches, and what the request holds of it. */
struct limit_hold {
    const struct limit_settings *limit;
    struct limit_entry *entry; /* NULL: nothing of it is counted */
};

/* Written by step.c. */
struct limit_state {
    struct limiting base;
    struct limit_hold *holds;
    unsigned count;
    struct shared_pace *paces[PACE_WAYS];  /* NULL: that way is not limited */
    const struct limit_settings *smallest; /* with the least max_response; NULL: none has one */
};

static inline struct limit_state *limit_state(const struct transaction *transaction) {
    return (struct limit_state *)(void *)transaction->limiting;
}

extern const struct step_row limit_step;

#endif
