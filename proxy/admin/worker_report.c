#include "admin/worker_report.h"

#include "base/assert.h"

static void worker_report_service(struct worker_service_report *report,
                                  const struct icap_service *service) {
    report->connections = icap_service_connections(service);
    report->pending = service->waiting_count;
    adapter_accounts_sum(service->net->ledger, service->settings->name, &report->account);
    for (unsigned i = 0; i < service->endpoint_count; i++) {
        const struct icap_endpoint *endpoint = service->endpoints[i];
        report->endpoint_connections[i] = endpoint->busy;
        if (report->istag[0] == '\0')
            icap_health_show_istag(endpoint->health, report->istag);
        if (report->product[0] == '\0')
            memcpy(report->product, endpoint->known.options.product, sizeof report->product);
    }
}

void worker_report_fill(struct worker_report *report, const struct net_context *net,
                        const struct adapt_set *set) {
    report->counters = net->counters;
    report->settings = settings_reference(set->settings);
    report->service_count = set->service_count;
    report->services = xcalloc(set->service_count + 1, sizeof *report->services);
    for (size_t i = 0; i < set->service_count; i++)
        worker_report_service(&report->services[i], set->services[i]);
}

void worker_report_release(struct worker_report *report) {
    free(report->services);
    report->services = NULL;
    settings_release(&report->settings);
}
