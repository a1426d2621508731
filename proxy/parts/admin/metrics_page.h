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

void metrics_page_make(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request);

#endif
