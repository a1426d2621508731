/*
 * What services need of a worker, and what they get of it outside of messages: the addresses of names, and connections that
 * have ended.
 *
 *     struct adapt_worker *worker = adapt_worker_of(host);
 *     worker->set ...                                      the services of the present settings
 *
 * Threads: the worker's, but for adapt_worker_is_held and adapt_worker_forsake. The functions: see part.h.
 */
#ifndef RETORT_ADAPT_ADAPT_WORKER_H
#define RETORT_ADAPT_ADAPT_WORKER_H

#include "adapt/named_addresses.h"
#include "adapt/verdicts.h"
#include "transaction/transaction.h"
#include "transaction/watcher.h"

struct server;
struct warm_up;
struct service_report;

/* What the part keeps for the process. */
struct adapt_process {
    struct server *server;
    struct verdicts *verdicts;
};

/* And for a worker. */
struct adapt_worker {
    struct adapter_host adapters; /* lent to adapters */
    struct adapt_set *set;        /* of the present settings */
    struct named_addresses names;
    struct warm_up *asking;   /* NULL: all have been asked, or another worker does it */
    struct entry_watcher log; /* service_log.h */
};

static inline struct adapt_worker *adapt_worker_of(const struct transaction_host *host) {
    return host->parts[PART_ADAPT];
}

void *adapt_worker_take(struct transaction_host *host, const struct settings *settings);
/* Asks services no more whether they are there. */
void adapt_worker_drain(struct transaction_host *host);
void adapt_worker_drop(struct transaction_host *host, void *taken);
struct service_report *adapt_worker_report(const struct transaction_host *host);
bool adapt_worker_is_held(struct transaction_host *host, uint64_t *milliseconds, char *reason);
void adapt_worker_forsake(struct transaction_host *host);

#endif
