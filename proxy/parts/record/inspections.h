/*
 * The store of inspected transactions (record/inspected.h). An operator says which of the next
 * transactions are inspected; workers take them up as they begin. The store has fixed bounds: the
 * newest INSPECTIONS_KEPT transactions with INSPECTIONS_MEMORY bytes. What finds no room is left out
 * and counted, after older transactions have made room.
 *
 *     struct inspections *store = inspections_new();                  once
 *     inspections_begin(store, &filter, &wish);                       false: one is under way
 *     struct recorder *recorder = recorder_for(&sink, ...);           with inspections_sink(store)
 *     ... all workers have the recorder ...
 *     inspections_open(store);                                        from now on they are taken
 *
 *     struct inspected *inspected = inspections_take(store, &facts);  a worker; NULL: not this one
 *     ... record/inspected.h ...
 *
 *     inspections_each(store, see, arg);                              the admin plane
 *     inspections_find(store, id, see, arg);
 *     inspections_free(&store);                                       when all workers have ended
 *
 * Exchanges with services arrive by the recorder, whose sink the store is: it wants those of the
 * transactions that it has. The inspection that took a transaction decides whether the secrets in
 * its exchanges are masked, also after the next inspection has begun.
 *
 * Threads: any; a mutex guards it. A transaction that is not inspected takes the mutex only while an
 * inspection is under way. The mutex is held while a list changes or one transaction's struct is
 * copied: expressions are matched, texts copied, answers written and memory given back without it.
 * Memory that a reader still looks at counts no more once its transaction has made room.
 */
#ifndef RETORT_RECORD_INSPECTIONS_H
#define RETORT_RECORD_INSPECTIONS_H

#include "record/inspected.h"
#include "record/recorder.h"

enum { INSPECTIONS_MEMORY = 64 << 20, INSPECTIONS_CLIENT = 64 };

struct inspection_wish {
    uint64_t transactions;           /* that are taken, 1 to INSPECTIONS_KEPT */
    uint64_t seconds;                /* for that long at most */
    char client[INSPECTIONS_CLIENT]; /* the address; empty: any */
    bool masked;
};

/* What a worker knows when a transaction begins. */
struct inspection_facts {
    struct slice id, client, method, url;
};

/* How it stands. */
struct inspections_state {
    bool under_way;
    uint64_t number; /* of the latest inspection; 0: there was none */
    uint64_t left, seconds_left;
    unsigned kept;
    size_t memory;
    uint64_t taken, evicted, left_out; /* since the start */
};

struct inspections *inspections_new(void);
void inspections_free(struct inspections **storep);

/* Takes over the content of the filter, of which host, prefix, regex and sample count. Takes no
 * transaction before inspections_open. */
bool inspections_begin(struct inspections *store, struct record_filter *filter,
                       const struct inspection_wish *wish);
/* Nothing, where the inspection has been stopped meanwhile. */
void inspections_open(struct inspections *store);
void inspections_stop(struct inspections *store);
void inspections_state(struct inspections *store, struct inspections_state *state);
/* No more transactions are taken. */
bool inspections_are_over(struct inspections *store);
struct recorder_sink inspections_sink(struct inspections *store);

struct inspected *inspections_take(struct inspections *store, const struct inspection_facts *facts);

/* `see` gets a copy, without the mutex. The newest first. */
void inspections_each(struct inspections *store,
                      void (*see)(void *arg, const struct inspected *inspected), void *arg);
/* False: there is none. */
bool inspections_find(struct inspections *store, struct slice id,
                      void (*see)(void *arg, const struct inspected *inspected), void *arg);
/* Forgets all transactions that have ended. Returns how many. */
unsigned inspections_clear(struct inspections *store);

/* For inspected.c: */
void inspections_lock(struct inspections *store);
void inspections_unlock(struct inspections *store);
/* Under the mutex: makes room for so many more bytes of `inspected` and counts them. False: there is
 * none, and it is counted. */
bool inspections_reserve(struct inspected *inspected, size_t bytes);
/* Under the mutex: a transaction has ended. */
void inspections_note_end(struct inspections *store);
void inspected_free(struct inspected *inspected);

#endif
