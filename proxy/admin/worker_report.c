#include "admin/worker_report.h"

#include "base/assert.h"

void worker_report_fill(struct worker_report *report, const struct net_context *net,
                        const struct adapt_set *set) {
    report->counters = net->counters;
    report->settings = settings_reference(set->settings);
    report->service_count = set->service_count;
    report->services = xcalloc(set->service_count + 1, sizeof *report->services);
    for (size_t i = 0; i < set->service_count; i++)
        adapter_report(set->services[i], &report->services[i]);
}

void worker_report_release(struct worker_report *report) {
    free(report->services);
    report->services = NULL;
    settings_release(&report->settings);
}
