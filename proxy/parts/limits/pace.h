/*
 * Makes paces (client/pace.h). Messages that share an entry of the table (limits/limit_table.h) share its bandwidth: each
 * reserves a small piece at a time, in the order in which they ask, whichever worker they belong to.
 *
 *     struct pace_share shares[] = {{entry, 1000000}};    the caller holds the entries
 *     shared_pace_init(&pace, loop, table, PACE_DOWN);
 *     pace.shares = shares, pace.count = 1;
 *     exchange->paces[PACE_DOWN] = &pace.base;
 *     pace_end(&pace.base);                               before the entries are left
 *
 * Threads: the loop's. Units: bytes.
 */
#ifndef RETORT_LIMITS_PACE_H
#define RETORT_LIMITS_PACE_H

#include "client/pace.h"
#include "event/loop.h"
#include "limits/limit_table.h"

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

#endif
