/*
 * What one worker reports to the admin plane: its counters, and each service as it sees it.
 *
 *     struct worker_report report = {0};
 *     worker_report_fill(&report, &worker->host);                       in the worker's thread
 *     admin_report_add(&sum, &report);                                  see admin/admin.h
 *     worker_report_release(&report);
 *
 * Threads: a value; it is filled in the worker's thread and read in another one.
 */
#ifndef RETORT_WORKER_REPORT_H
#define RETORT_WORKER_REPORT_H

#include "net/counters.h"
#include "transaction/request_counts.h"

struct service_report;
struct settings;
struct transaction_host;

struct worker_report {
    struct counters counters;
    struct durations durations;
    struct request_counts requests;
    struct settings *settings;       /* the snapshot that `services` belongs to; referenced */
    struct service_report *services; /* in the order of settings->services; NULL: nobody knows */
};

void worker_report_fill(struct worker_report *report, const struct transaction_host *host);
void worker_report_release(struct worker_report *report);

#endif
