/*
 * What became of the requests of a worker: how many, by listener, protocol, method, result of the
 * cache and class of the status; and how long they took, by result, with the latest transaction of
 * each class of duration as an example (of those that took longer than TIMES_FIRST).
 *
 *     struct request_counts *counts = request_counts_new(host);       the step LOG adds from now on
 *     request_counts_settings_changed(counts);                        after a reload
 *     request_counts_copy(counts, &copy);                             in the worker's thread
 *     request_counts_sum(&all, &copy);                                of all workers
 *     request_counts_release(&copy);
 *
 * A client can't make more of these numbers than the tables have: methods that Retort does not know
 * count as one. A listener that a reload has removed keeps its numbers. Adding writes to the
 * worker's memory only, reads no clock, and takes some hundred instructions.
 *
 * Threads: the worker's; copies are values.
 */
#ifndef RETORT_ADMIN_REQUEST_COUNTS_H
#define RETORT_ADMIN_REQUEST_COUNTS_H

#include "base/times.h"
#include "client/exchange.h"
#include "http/names.h"
#include "http/trace_context.h"
#include "transaction/outcome.h"
#include "transaction/transaction.h"

/* COUNTED_STATUSES: none, 1xx to 5xx. */
enum { COUNTED_PROTOCOLS = 4, COUNTED_STATUSES = 6, COUNTED_RESULTS = RESULT_ERROR + 1 };

struct listener_counts {
    struct listener_counts *next;
    char *name; /* as in struct listen_settings; "" stands for no listener that is known */
    uint64_t requests[COUNTED_PROTOCOLS][HTTP_METHOD_COUNT][COUNTED_RESULTS][COUNTED_STATUSES];
};

/* A transaction that took so long. */
struct request_example {
    uint64_t number; /* transaction->number; 0: there is none */
    uint64_t microseconds;
    uint64_t ended; /* milliseconds since 1970 */
    bool traced;
    unsigned char trace[TRACE_ID]; /* if it is traced */
};

struct result_times {
    struct times times;
    struct request_example examples[TIMES_COUNT];
};

/* Begins as {0}. */
struct request_counts {
    struct request_counter base;
    const struct settings *settings; /* the worker's snapshot that `of` is for; NULL: none */
    struct listener_counts **of;     /* in the order of settings->listens */
    struct listener_counts *listeners;
    struct result_times results[COUNTED_RESULTS];
};

/* Those of the worker, whose host->counter they become. */
struct request_counts *request_counts_new(struct transaction_host *host);
/* `settings` may be released now. */
void request_counts_settings_changed(struct request_counts *counts);
/* `copy` is uninitialised. */
void request_counts_copy(const struct request_counts *counts, struct request_counts *copy);
void request_counts_sum(struct request_counts *sum, const struct request_counts *more);
void request_counts_release(struct request_counts *counts);

/* "HTTP/1.1"; "none" for a connection without requests. */
const char *counted_protocol_name(unsigned protocol);
/* "2xx"; "none" for 0. */
const char *counted_status_name(unsigned status);

#endif
