#include "admin/report.h"

#include "base/assert.h"
#include "base/clocks.h"

/* As good as its best endpoint. */
static void admin_report_health(struct admin_icap_service *service, struct icap_quota *quota) {
    enum icap_state best = ICAP_STATE_UNKNOWN;
    for (unsigned i = 0; i < quota->endpoint_count; i++) {
        icap_health_read(quota->health[i], &service->health[i]);
        if (service->health[i].state > best)
            best = service->health[i].state;
    }
    service->state = icap_state_name(best);
    service->unadapted_since = atomic_load(&quota->bypasses->since);
    service->unadapted = bypasses_count(quota->bypasses);
}

void admin_report_begin(struct admin_report *report, struct settings *settings,
                        struct icap_quotas *quotas) {
    *report = (struct admin_report){
        .settings = settings_reference(settings),
        .now = clocks_milliseconds(CLOCK_MONOTONIC),
        .icap_service_count = settings->icap_service_count,
        .icap_services = xcalloc(settings->icap_service_count + 1, sizeof *report->icap_services),
    };
    for (size_t i = 0; i < settings->icap_service_count; i++) {
        struct admin_icap_service *service = &report->icap_services[i];
        service->name = settings->icap_services[i].name;
        service->settings = &settings->icap_services[i];
        admin_report_health(service, &quotas->services[i]);
    }
}

static void admin_report_add_service(struct admin_icap_service *service,
                                     const struct worker_service_report *seen) {
    service->connections += seen->connections;
    service->pending += seen->pending;
    adapter_account_add(&service->account, &seen->account);
    if (service->istag[0] == '\0')
        memcpy(service->istag, seen->istag, sizeof service->istag);
    if (service->product[0] == '\0')
        memcpy(service->product, seen->product, sizeof service->product);
    for (unsigned i = 0; i < service->settings->endpoint_count; i++)
        service->endpoint_connections[i] += seen->endpoint_connections[i];
}

void admin_report_add(struct admin_report *report, const struct worker_report *worker) {
    counters_add(&report->counters, &worker->counters);
    if (worker->settings != report->settings)
        return;
    for (size_t i = 0; i < worker->service_count && i < report->icap_service_count; i++)
        admin_report_add_service(&report->icap_services[i], &worker->services[i]);
}

void admin_report_add_shared(struct admin_report *report, struct cache *cache, struct disk *disk,
                             struct verdicts *verdicts) {
    struct cache_statistics statistics;
    verdicts_statistics(verdicts, &report->verdicts);
    cache_statistics(cache, &statistics);
    report->cache_bytes = statistics.bytes;
    report->cache_objects = statistics.objects;
    report->cache_limit = statistics.limit;
    report->has_disk = disk != NULL;
    disk_statistics(disk, &report->disk);
}

void admin_report_release(struct admin_report *report) {
    free(report->icap_services);
    report->icap_services = NULL;
    settings_release(&report->settings);
}
