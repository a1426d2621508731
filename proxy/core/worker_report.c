#include "worker_report.h"

#include "base/assert.h"
#include "transaction/transaction.h"

void worker_report_fill(struct worker_report *report, const struct transaction_host *host) {
    report->counters = host->net->counters;
    report->durations = host->net->durations;
    request_counts_copy(host->request_counts, &report->requests);
    report->settings = settings_reference(host->snapshot->settings);
    report->services = NULL;
    PARTS_FOR_EACH (number, worker.report)
        part_table[number]->worker.report(host, report);
}

void worker_report_release(struct worker_report *report) {
    request_counts_release(&report->requests);
    free(report->services);
    report->services = NULL;
    settings_release(&report->settings);
}
