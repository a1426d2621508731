/*
 * What one worker reports to the admin plane: its counters, and each service as it sees it.
 *
 *     struct worker_report report;
 *     if (worker_report_ask(worker, &report, 1000)) ...                 filled in the worker's thread
 *     admin_report_add(&sum, &report);                                  see admin/admin.h
 *     worker_report_release(&report);
 *
 * Threads: a value; it is filled in the worker's thread and read in another one.
 */
#ifndef RETORT_ADMIN_WORKER_REPORT_H
#define RETORT_ADMIN_WORKER_REPORT_H

#include "admin/request_counts.h"
#include "net/counters.h"

struct service_report;
struct settings;
struct transaction_host;
struct worker;

struct worker_report {
    struct counters counters;
    struct durations durations;
    struct request_counts requests;
    struct settings *settings;       /* the snapshot that `services` belongs to; referenced */
    struct service_report *services; /* in the order of settings->services; NULL: nobody knows */
};

/* As worker_ask. */
bool worker_report_ask(struct worker *worker, struct worker_report *report, unsigned patience);
void worker_report_release(struct worker_report *report);

#endif
