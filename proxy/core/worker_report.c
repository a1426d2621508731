#include "worker_report.h"

#include "adapt/set.h"
#include "base/assert.h"
#include "transaction/transaction.h"

void worker_report_fill(struct worker_report *report, const struct transaction_host *host) {
    const struct adapt_set *set = host->adapt;
    report->counters = host->net->counters;
    report->durations = host->net->durations;
    request_counts_copy(host->request_counts, &report->requests);
    report->settings = settings_reference(set->settings);
    report->service_count = set->service_count;
    report->services = xcalloc(set->service_count + 1, sizeof *report->services);
    for (size_t i = 0; i < set->service_count; i++)
        adapter_report(set->services[i], &report->services[i]);
}

void worker_report_release(struct worker_report *report) {
    request_counts_release(&report->requests);
    free(report->services);
    report->services = NULL;
    settings_release(&report->settings);
}
