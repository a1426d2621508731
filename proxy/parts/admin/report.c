#include "admin/report.h"

#include "base/assert.h"
#include "base/clocks.h"

void admin_report_begin(struct admin_report *report, struct settings *settings,
                        struct shared_services *services) {
    *report = (struct admin_report){
        .settings = settings_reference(settings),
        .now = clocks_milliseconds(CLOCK_MONOTONIC),
        .service_count = settings->service_count,
        .services = xcalloc(settings->service_count + 1, sizeof *report->services),
    };
    for (size_t i = 0; i < settings->service_count; i++) {
        report->services[i].settings = &settings->services[i];
        shared_service_report(services->services[i], &report->services[i].report);
    }
}

void admin_report_add(struct admin_report *report, const struct worker_report *worker) {
    counters_add(&report->counters, &worker->counters);
    durations_sum(&report->durations, &worker->durations);
    request_counts_sum(&report->requests, &worker->requests);
    if (worker->settings != report->settings)
        return;
    for (size_t i = 0; i < worker->service_count && i < report->service_count; i++)
        service_report_add(&report->services[i].report, &worker->services[i]);
}

void admin_report_add_shared(struct admin_report *report, struct cache *cache,
                             struct second_level *second_level, struct verdicts *verdicts) {
    struct cache_statistics statistics;
    verdicts_statistics(verdicts, &report->verdicts);
    cache_statistics(cache, &statistics);
    report->cache_bytes = statistics.bytes;
    report->cache_objects = statistics.objects;
    report->cache_limit = statistics.limit;
    report->cache_evictions = statistics.evictions;
    report->cache_variants_dropped = statistics.variants_dropped;
    if (second_level != NULL) {
        report->second_level_numbers = second_level->class->numbers;
        second_level->class->report(second_level, report->second_level);
    }
}

void admin_report_release(struct admin_report *report) {
    request_counts_release(&report->requests);
    free(report->services);
    report->services = NULL;
    settings_release(&report->settings);
}
