/*
 * A pace: how fast the bytes of one message may flow, and how many there may be. Messages that
 * share an entry of the table (limits/limit_table.h) share its bandwidth: each reserves a small
 * piece at a time, in the order in which they ask, whichever worker they belong to.
 *
 *     struct pace_share shares[] = {{entry, 1000000}};    the caller holds the entries
 *     pace_init(&pace, loop, table, LIMIT_DOWN);
 *     pace.shares = shares, pace.count = 1;
 *     pace.on_ready = http1_reply_sender_on_pace, pace.arg = exchange;
 *     size_t now = pace_ask(&pace, wanted);             0: on_ready is called when it is time
 *     pace_used(&pace, written);                        at most `now`
 *     pace_end(&pace);                                  before the entries are left
 *
 * Threads: the loop's. Units: bytes.
 */
#ifndef RETORT_LIMITS_PACE_H
#define RETORT_LIMITS_PACE_H

#include "event/loop.h"
#include "limits/limit_table.h"

/* An entry that bounds the message, and its bytes a second. */
struct pace_share {
    struct limit_entry *entry;
    uint64_t rate;
};

struct pace {
    unsigned magic;
#define PACE_MAGIC 0x9ace0000u
    struct loop *loop;
    struct limit_table *table;
    enum limit_way way;
    uint64_t most;               /* bytes of the body; 0: any number */
    void (*on_ready)(void *arg); /* bytes may flow again */
    void *arg;
    uint64_t granted;  /* bytes that are reserved */
    uint64_t ready_at; /* when they may flow, nanoseconds */
    struct timer timer;
    unsigned count;
    struct pace_share *shares; /* the caller's */
};

void pace_init(struct pace *pace, struct loop *loop, struct limit_table *table, enum limit_way way);
/* How many of the wanted bytes may flow now. */
size_t pace_ask(struct pace *pace, size_t wanted);
void pace_used(struct pace *pace, size_t bytes);
/* Gives back what was reserved; on_ready is not called any more. It may be called again. */
void pace_end(struct pace *pace);

#endif
