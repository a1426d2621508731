/*
 * What the part keeps of the two ways to record: a recording, whose client fetches its exchanges, and the inspection of
 * transactions, whose store keeps theirs. Both may run at once; a message that both want is recorded for each.
 *
 *     recording_use(records, RECORDING_TRANSACTIONS, recorder);        the workers have it when this returns
 *     recorder = recording_latest(records, RECORDING_EXCHANGES);     referenced; NULL: there was none
 *
 * Threads: each function says whose.
 */
#ifndef RETORT_RECORD_RECORD_H
#define RETORT_RECORD_RECORD_H

#include "adapt/recording.h"
#include "record/inspections.h"
#include "transaction/watcher.h"

#include <pthread.h>

enum recording_kind { RECORDING_EXCHANGES, RECORDING_TRANSACTIONS, RECORDING_KINDS };

struct admin_calls;
struct page;
struct page_request;
struct server;
struct transaction_host;

/* Of the process. */
struct records {
    struct server *server;
    pthread_mutex_t lock;
    struct recorder *latest[RECORDING_KINDS]; /* referenced; NULL: there was none */
    struct inspections *inspections;
};

/* Of a worker. */
struct record_worker {
    struct step_watcher watcher; /* of the inspection */
    struct inspections *inspections;
    unsigned inspected; /* transactions under way that are inspected */
    struct recorder
        *recorders[RECORDING_KINDS]; /* of those under way, referenced; NULL: there is none */
};

/* Any thread: all exchanges that begin after the return are recorded. */
void recording_use(struct records *records, enum recording_kind kind, struct recorder *recorder);
struct recorder *recording_latest(struct records *records, enum recording_kind kind);

/* The worker's thread. `adapters->recorders` is a struct record_worker. */
extern const struct recording_class recording_class;
void recording_set_recorder(struct adapter_host *adapters, enum recording_kind kind,
                            struct recorder *recorder);

/* The worker's thread. */
void inspect_join(struct record_worker *worker, struct transaction_host *host);

/* Threads of the admin plane: the pages of the inspection. */
void inspect_page_answer(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request);
void inspect_page_print_metrics(FILE *out, void *arg);

#endif
