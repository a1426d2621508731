/*
 * GET /metrics: everything that Retort counts and measures, for Prometheus. Clients whose Accept
 * names application/openmetrics-text get OpenMetrics 1.0, which adds to each bucket of
 * retort_request_duration_seconds the id of the latest transaction that it counts (an exemplar);
 * others get the text format of Prometheus, version 0.0.4.
 *
 *     metrics_page_make(&page, &calls, &request);
 *
 * Other pages print metrics of their own in the text format of Prometheus, where a family of
 * counters has the name with "_total"; what OpenMetrics writes differently is changed here.
 *
 * Threads: any of the admin plane.
 */
#ifndef RETORT_ADMIN_METRICS_PAGE_H
#define RETORT_ADMIN_METRICS_PAGE_H

#include "admin/page.h"

#include <stdbool.h>
#include <stddef.h>

void metrics_page_make(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request);

/* Which metric counts what an option refuses (bounds.def), so that no limit works in silence. */
struct bound {
    const char *option; /* "client.memory"; in two rows also something that is no option */
    bool refuses;       /* it is in retort_bound_reached_total */
    size_t counter;     /* then: its index in struct counters */
    const char *metric; /* without "retort_"; NULL: it has none, because of `why` */
    const char *why;
};

/* Ends with a row whose option is NULL. */
extern const struct bound bounds[];

#endif
