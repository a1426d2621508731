/*
 * LIMIT: counts the request against the limit sections that it matches (limits/settings.h).
 *
 *     const struct limit_state *state = limit_state(transaction);      NULL: none matches
 *
 * What it has taken is given back when the client has its reply, or has left. The paces of the
 * exchange shape the reply, the request's body, and what a tunnel carries.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_LIMITS_STEP_H
#define RETORT_LIMITS_STEP_H

#include "client/pace.h"
#include "event/loop.h"
#include "limits/limit_table.h"
#include "limits/settings.h"
#include "transaction/transaction.h"

/*
 * Paces (client/pace.h). Messages that share an entry of the table (limits/limit_table.h) share its
 * bandwidth: each reserves a small piece at a time, in the order in which they ask, whichever worker they
 * belong to.
 *
 *     shared_pace_init(&pace, loop, table, PACE_DOWN);
 *     pace.shares = shares, pace.count = 1;               the caller holds the entries
 *     exchange->paces[PACE_DOWN] = &pace.base;
 *     pace_end(&pace.base);                               before the entries are left
 */

/* An entry that bounds the message, and its bytes a second. */
struct pace_share {
    struct limit_entry *entry;
    uint64_t rate;
};

struct shared_pace {
    unsigned magic;
#define SHARED_PACE_MAGIC 0x9ace0000u
    struct pace base;
    struct loop *loop;
    struct limit_table *table;
    enum pace_way way;
    uint64_t granted;  /* bytes that are reserved */
    uint64_t ready_at; /* when they may flow, nanoseconds */
    struct timer timer;
    unsigned count;
    struct pace_share *shares; /* the caller's */
};

void shared_pace_init(struct shared_pace *pace, struct loop *loop, struct limit_table *table,
                      enum pace_way way);

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
