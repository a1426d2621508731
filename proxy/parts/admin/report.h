/*
 * The state of the whole proxy at one moment: the sum of what its workers report, and what they
 * share. The pages of the admin plane are written from it.
 *
 *     struct admin_report report;
 *     admin_report_begin(&report, settings, services);
 *     admin_report_add(&report, &worker_report);           for each worker that has answered
 *     admin_report_add_shared(&report, cache, second_level, verdicts);
 *     ... a page is written ...
 *     admin_report_release(&report);
 *
 * Threads: a value. Units: milliseconds.
 */
#ifndef RETORT_ADMIN_REPORT_H
#define RETORT_ADMIN_REPORT_H

#include "adapt/shared_service.h"
#include "adapt/verdicts.h"
#include "cache/second_level.h"
#include "worker_report.h"

/* One service of the settings, in their order. */
struct admin_service {
    const struct service_settings *settings; /* of the settings of the same report */
    struct service_report report;
};

struct admin_report {
    struct counters counters;
    struct durations durations;
    struct request_counts requests;
    struct settings *settings; /* referenced */
    const char *state;         /* "running", "draining" */
    uint64_t uptime;           /* milliseconds */
    uint64_t now;              /* the loops' clock */
    const char *under_way;     /* a change of settings; NULL: none is */
    uint64_t under_way_for;
    unsigned workers_silent; /* workers that did not answer in time */
    uint64_t cache_bytes, cache_objects, cache_limit, cache_evictions, cache_variants_dropped;
    uint64_t memory_returns; /* memory_shares_returns */
    struct verdicts_statistics verdicts;
    const struct second_level_number *second_level_numbers; /* NULL: there is none */
    uint64_t second_level[SECOND_LEVEL_NUMBERS];
    struct admin_service *services;
    size_t service_count;
};

/* The services of the settings, with the health of their endpoints. Takes a reference. `state`,
 * `uptime` and `under_way` are the caller's to fill. */
void admin_report_begin(struct admin_report *report, struct settings *settings,
                        struct shared_services *services);
/* A worker that is about to reload has other services: only its counters are added. */
void admin_report_add(struct admin_report *report, const struct worker_report *worker);
/* second_level NULL: there is none. */
void admin_report_add_shared(struct admin_report *report, struct cache *cache,
                             struct second_level *second_level, struct verdicts *verdicts);
void admin_report_release(struct admin_report *report);

#endif
