/*
 * GET /services: the ICAP services with their endpoints and their accounts
 * (adapt/adapter_account.h), and the same numbers as metrics.
 *
 *     {"services": [{"name", "point", "state", "istag", "service", "service_id", "connections",
 *                    "pending",
 *                    "endpoints": [{"uri", "state", "connections", "notice"}],
 *                    "account": {"requests": 12, ...},
 *                    "times": {"verdict_seconds": {"count", "mean", "p50", "p90", "p99"}, ...}}]}
 *
 * Quantiles are upper bounds, because times are counted by powers of two. "notice" is present when
 * the OPTIONS of the endpoint have one. "notice", "istag", "service" and "service_id" (Service and
 * Service-ID of the OPTIONS) contain only visible ASCII characters. Threads: those of the admin
 * plane, one at a time.
 */
#ifndef RETORT_ADMIN_SERVICES_PAGE_H
#define RETORT_ADMIN_SERVICES_PAGE_H

#include "admin/page.h"

#include <stdio.h>

/* False: the request is for another page. */
void services_page_bump(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request);
void services_page_write(struct page *page, const struct admin_report *report);
void services_page_print_metrics(FILE *out, const struct admin_report *report);

#endif
