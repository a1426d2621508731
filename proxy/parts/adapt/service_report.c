#include "adapt/service_report.h"

#include <string.h>

const char *service_state_name(enum service_state state) {
    static const char *const names[] = {
        [SERVICE_UNKNOWN] = "unknown", [SERVICE_DOWN] = "down",         [SERVICE_TRIAL] = "trial",
        [SERVICE_UP] = "up",           [SERVICE_UNLOADED] = "unloaded",
    };
    return names[state];
}

void service_report_add(struct service_report *report, const struct service_report *seen) {
    report->connections += seen->connections;
    report->pending += seen->pending;
    adapter_account_add(&report->account, &seen->account);
    if (report->version[0] == '\0')
        memcpy(report->version, seen->version, sizeof report->version);
    if (report->product[0] == '\0')
        memcpy(report->product, seen->product, sizeof report->product);
    for (unsigned i = 0; i < ICAP_ENDPOINTS_MAX; i++)
        report->endpoints[i].connections += seen->endpoints[i].connections;
}
