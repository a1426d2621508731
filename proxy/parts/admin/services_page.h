/*
 * GET /services: the ICAP services with their endpoints and their accounts
 * (adapt/adapter_account.h), and the same numbers as metrics.
 *
 *     {"services": [{"name", "kind", "point", "state", "istag", "service", "service_id", "connections",
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

/* Metrics of services have two names: retort_service_... with the label kind, and
 * retort_icap_service_..., which is older and has the same numbers. Each family is printed for both:
 *
 *     for (const struct service_naming *naming = service_namings; naming->prefix != NULL; naming++)
 *         ... services_page_family(out, naming, "up", "gauge", help);
 *         ... services_page_sample(out, naming, "up", service);      then the value and "\n"
 */
struct service_naming {
    const char *prefix; /* "icap_service" */
    bool shows_kind;
};
extern const struct service_naming service_namings[]; /* ends with a NULL prefix */

void services_page_family(FILE *out, const struct service_naming *naming, const char *name,
                          const char *type, const char *help);
void services_page_sample(FILE *out, const struct service_naming *naming, const char *name,
                          const struct service_settings *service);
/* "icap" or "inside" */
const char *services_page_kind(const struct service_settings *service);

#endif
