#include "part.h"

#include "adapt/adapt_worker.h"
#include "base/assert.h"
#include "record/record.h"
#include "server.h"

/* The part record: what it does in the server and in a worker. */

/* ---- the server -------------------------------------------------------------------------------- */

static void record_open(struct server *server) {
    struct records *records = xcalloc(1, sizeof *records);
    records->server = server;
    pthread_mutex_init(&records->lock, NULL);
    records->inspections = inspections_new();
    server->parts[PART_RECORD] = records;
}

static void record_close(struct server *server) {
    struct records *records = server->parts[PART_RECORD];
    server->parts[PART_RECORD] = NULL;
    if (records == NULL)
        return;
    for (unsigned i = 0; i < RECORDING_KINDS; i++)
        recorder_release(&records->latest[i]);
    inspections_free(&records->inspections);
    pthread_mutex_destroy(&records->lock);
    free(records);
}

struct record_order {
    enum recording_kind kind;
    struct recorder *recorder; /* referenced */
};

/* In the worker's thread. */
static void on_record(struct transaction_host *host, void *arg) {
    struct record_order *order = arg;
    recording_set_recorder(&adapt_worker_of(host)->adapters, order->kind, order->recorder);
    transaction_host_watch(host); /* it may be that of an inspection */
    free(order);
}

void recording_use(struct records *records, enum recording_kind kind, struct recorder *recorder) {
    struct server *server = records->server;
    pthread_mutex_lock(&records->lock);
    struct recorder *old = records->latest[kind];
    records->latest[kind] = recorder_reference(recorder);
    pthread_mutex_unlock(&records->lock);
    recorder_release(&old);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct record_order *order = xcalloc(1, sizeof *order);
        *order = (struct record_order){kind, recorder_reference(recorder)};
        worker_post(server->workers[i], on_record, order);
    }
    server_await_workers(server);
}

struct recorder *recording_latest(struct records *records, enum recording_kind kind) {
    pthread_mutex_lock(&records->lock);
    struct recorder *latest = records->latest[kind];
    if (latest != NULL)
        recorder_reference(latest);
    pthread_mutex_unlock(&records->lock);
    return latest;
}

/* ---- a worker ---------------------------------------------------------------------------------- */

static void record_join(struct transaction_host *host, void *state) {
    const struct records *records = state;
    struct record_worker *worker = xcalloc(1, sizeof *worker);
    worker->inspections = records->inspections;
    host->parts[PART_RECORD] = worker;
    adapt_worker_of(host)->adapters.recorders = worker;
    inspect_join(worker, host);
}

static void record_leave(struct transaction_host *host) {
    struct record_worker *worker = host->parts[PART_RECORD];
    host->parts[PART_RECORD] = NULL;
    if (worker == NULL)
        return;
    for (unsigned i = 0; i < RECORDING_KINDS; i++)
        recorder_release(&worker->recorders[i]);
    free(worker);
}

const struct part part_record = {
    .process = {.open = record_open, .close = record_close},
    .worker = {.join = record_join, .leave = record_leave},
};
