/*
 * A worker as its own two files see it: worker.c makes it and runs it, worker_orders.c has what other
 * threads want of it (worker.h).
 *
 *     CHECK_OBJ(worker, WORKER_MAGIC);
 *     worker_take_settings(worker, &news);                a reload
 *     worker_begin_drain(worker);                         no new connections, and an end some time
 *
 * Threads: the worker's.
 */
#ifndef RETORT_WORKER_INTERNAL_H
#define RETORT_WORKER_INTERNAL_H

#include "worker.h"

#include "base/threads.h"
#include "transaction/transaction.h"

struct worker_protocols;

struct worker {
    unsigned magic;
#define WORKER_MAGIC 0x304ce400u
    struct thread thread;
    unsigned index;
    struct loop loop;
    struct mailbox mailbox;
    struct net_context net;
    struct settings *settings;
    struct clients clients;
    struct worker_protocols *protocols; /* worker.c's */
    struct transaction_host host;
    struct origin_lookups *lookups; /* NULL: another worker does them */
    struct listener **listeners;
    size_t listener_count;
    struct timer drain_timer;
    struct timer retire_timer;      /* closes idle connections */
    struct timer certificate_timer; /* of the first worker: warns once a day */
    bool draining, stopped;
    uint64_t complains_again; /* before this time, exhausted memory is not logged again */
};

/* What a reload brings; the worker takes its references, and `claims` are the listeners that it may
 * open; NULL: another worker has them. */
struct worker_news {
    struct settings *settings; /* used */
    struct origin_groups *origins;
    struct claims *claims;
};

/* Takes the settings; the others stay the caller's. */
void worker_take_settings(struct worker *worker, const struct worker_news *news);
void worker_open_logs_again(struct worker *worker);
void worker_begin_drain(struct worker *worker);
/* See part.h. False: it is not. */
bool worker_is_held(struct worker *worker, uint64_t *milliseconds, char reason[WORKER_REASON]);

#endif
