/*
 * The state of the whole proxy at one moment: the sum of what its workers report, and what they
 * share. The pages of the admin plane are written from it.
 *
 *     struct admin_report report;
 *     admin_report_begin(&report, settings, quotas);
 *     admin_report_add(&report, &worker_report);           for each worker that has answered
 *     admin_report_add_shared(&report, cache, disk, verdicts);
 *     ... a page is written ...
 *     admin_report_release(&report);
 *
 * Threads: a value. Units: milliseconds.
 */
#ifndef RETORT_ADMIN_REPORT_H
#define RETORT_ADMIN_REPORT_H

#include "adapt/verdicts.h"
#include "admin/worker_report.h"
#include "disk/disk.h"

/* State of one ICAP service, as the workers see it. */
struct admin_icap_service {
    const char *name;     /* lives as long as the settings reference of the same answer */
    const char *state;    /* "unknown", "up", "down" */
    unsigned connections; /* open now */
    unsigned pending;     /* transactions waiting for OPTIONS or a connection */
    const struct icap_service_settings *settings; /* of that reference too */
    char istag[ICAP_TAG], product[ICAP_TAG];      /* empty: not known */
    struct icap_health_view health[ICAP_ENDPOINTS_MAX];
    unsigned endpoint_connections[ICAP_ENDPOINTS_MAX];
    struct adapter_account account; /* since the start */
    uint64_t unadapted;             /* messages that passed it so, since `unadapted_since` */
    int64_t unadapted_since;        /* seconds since 1970; 0: none do now */
};

struct admin_report {
    struct counters counters;
    struct settings *settings; /* referenced */
    const char *state;         /* "running", "draining" */
    uint64_t uptime;           /* milliseconds */
    uint64_t now;              /* the loops' clock */
    unsigned workers_silent;   /* workers that did not answer in time */
    uint64_t cache_bytes, cache_objects, cache_limit;
    struct verdicts_statistics verdicts;
    bool has_disk;
    struct volume_statistics disk;
    struct admin_icap_service *icap_services;
    size_t icap_service_count;
};

/* The services of the settings, with the health of their endpoints. Takes a reference. `state` and
 * `uptime` are the caller's to fill. */
void admin_report_begin(struct admin_report *report, struct settings *settings,
                        struct icap_quotas *quotas);
/* A worker that is about to reload has other services: only its counters are added. */
void admin_report_add(struct admin_report *report, const struct worker_report *worker);
/* disk NULL: there is none. */
void admin_report_add_shared(struct admin_report *report, struct cache *cache, struct disk *disk,
                             struct verdicts *verdicts);
void admin_report_release(struct admin_report *report);

#endif
