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
#ifndef RETORT_ADAPT_SERVICES_PAGE_H
#define RETORT_ADAPT_SERVICES_PAGE_H

#include "adapt/service_report.h"
#include "admin/admin.h"

#include <stdio.h>
#include <string.h>

/* One service of the settings, in their order. */
struct admin_service {
    const struct service_settings *settings; /* of the settings of the same report */
    struct service_report report;
};

/* An element of the account. */
static inline uint64_t account_number(const struct adapter_account *account,
                                      const struct adapter_account_description *description) {
    uint64_t value;
    memcpy(&value, (const char *)account + description->at, sizeof value);
    return value;
}
static inline const struct times *
account_times(const struct adapter_account *account,
              const struct adapter_account_description *description) {
    return (const struct times *)((const char *)account + description->at);
}
/* "icap" or "inside" */
static inline const char *service_kind_name(const struct service_settings *service) {
    return service->kind == SERVICE_INSIDE ? "inside" : "icap";
}

/* Their metrics. */
void service_metrics_page_print(FILE *out, const struct admin_report *report);

#endif
