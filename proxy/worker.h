/*
 * A worker: one thread with its loop, its listeners and its transactions. Workers share the cache,
 * and how the servers of origin groups are; nothing else; everybody reaches them by messages.
 *
 *     struct worker *worker = worker_new(settings, &shared, index, claims, error);
 *     worker_start(worker);
 *     worker_reload(worker, settings, origins, services, &claims);    from any thread
 *     if (worker_ask(worker, &report, 1000)) ...                    admin/worker_report.h
 *     worker_drain(worker);
 *     worker_join(&worker);
 *
 * Threads: as above; worker_new and worker_join from the main thread.
 */
#ifndef RETORT_WORKER_H
#define RETORT_WORKER_H

#include "admin/worker_report.h"
#include "cache/shared_fetch.h"
#include "cache/store.h"
#include "claims.h"
#include "client/clients.h"
#include "origin/host.h"
#include "settings/settings.h"

struct worker;

/* What all workers work on. */
struct worker_shared {
    struct client_total *clients;
    struct memory_shares *memory; /* one for each worker */
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
    struct shared_fetches *shared_fetches;
    struct origin_hosts *origin_hosts;
    struct waiting_downloads *waiting_downloads;
    struct verdicts *verdicts;
    struct origin_groups *origins;    /* of the settings; referenced by whoever keeps them */
    struct shared_services *services; /* likewise */
    struct address admin_address;     /* length 0: there is no admin plane */
};

/* Its listeners take the claims that there are; NULL: none. */
struct worker *worker_new(struct settings *settings, const struct worker_shared *shared,
                          unsigned index, struct claims *claims, char error[SETTINGS_ERROR]);
bool worker_start(struct worker *worker);
/* *claimsp becomes the worker's, and NULL. */
void worker_reload(struct worker *worker, struct settings *settings, struct origin_groups *origins,
                   struct shared_services *services, struct claims **claimsp);
/* Opens the access logs again, which may have been renamed. */
void worker_reopen_logs(struct worker *worker);
/* From here on its ICAP exchanges are recorded. */
void worker_record(struct worker *worker, struct recorder *recorder);
/* Its report. False: the worker did not answer within so many milliseconds. An answer means that
 * all messages which were posted before have been delivered. */
bool worker_ask(struct worker *worker, struct worker_report *report, unsigned patience);
/* Stops accepting and ends when nothing is left to do, or after settings->drain_timeout. */
void worker_drain(struct worker *worker);
/* Ends at once. */
void worker_stop(struct worker *worker);
/* Waits for the thread's end; messages are still taken in, and dropped. */
void worker_wait(struct worker *worker);
void worker_join(struct worker **workerp);

#endif
