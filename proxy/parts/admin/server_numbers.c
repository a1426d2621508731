#include "admin/server_numbers.h"

#include "base/assert.h"
#include "net/counters.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

struct server_sample {
    const struct url *at; /* host and port are the label */
    const struct server_report *report;
};

struct server_list {
    struct server_sample *samples;
    size_t count;
};

static const struct server_number {
    const char *name;
    enum counter_kind kind;
    const char *help;
    size_t at;
} server_numbers[] = {
#define SERVER_NUMBER(name, kind, help)                                                            \
    {#name, COUNTER_##kind, help, offsetof(struct server_numbers, name)},
#include "adapt/server_numbers.def"
#undef SERVER_NUMBER
};

static bool same_server(const struct url *one, const struct url *other) {
    return one->port == other->port && slice_equal(one->host, other->host);
}

static void server_add(struct server_list *list, const struct url *at,
                       const struct server_report *report) {
    if (!report->asked)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (same_server(list->samples[i].at, at))
            return;
    list->samples[list->count++] = (struct server_sample){at, report};
}

static struct server_list server_list_of(const struct admin_report *report) {
    struct server_list list = {
        xcalloc(report->service_count * ICAP_ENDPOINTS_MAX + 1, sizeof *list.samples), 0};
    for (size_t i = 0; i < report->service_count; i++) {
        const struct admin_service *service = &report->services[i];
        if (service->settings->endpoints == NULL)
            continue;
        for (unsigned n = 0; n < service->settings->endpoint_count; n++)
            server_add(&list, &service->settings->endpoints[n],
                       &service->report.endpoints[n].server);
    }
    return list;
}

/* Hosts and ports of URLs need no escaping. */
static void server_print(FILE *out, const char *name, const struct url *at, uint64_t value) {
    fprintf(out, "retort_icap_server_%s{server=\"%s%.*s%s:%u\"} %" PRIu64 "\n", name,
            at->host_is_ipv6 ? "[" : "", SLICE_PRINT(at->host), at->host_is_ipv6 ? "]" : "",
            at->port, value);
}

static void server_print_number(FILE *out, const struct server_list *list,
                                const struct server_number *number) {
    char name[64];
    bool total = number->kind == COUNTER_TOTAL;
    snprintf(name, sizeof name, "%s%s", number->name, total ? "_total" : "");
    fprintf(out, "# HELP retort_icap_server_%s %s\n# TYPE retort_icap_server_%s %s\n", name,
            number->help, name, total ? "counter" : "gauge");
    for (size_t i = 0; i < list->count; i++) {
        uint64_t value;
        const struct server_report *report = list->samples[i].report;
        memcpy(&value, (const char *)&report->numbers + number->at, sizeof value);
        if (report->up)
            server_print(out, name, list->samples[i].at, value);
    }
}

static void server_print_states(FILE *out, const struct server_list *list) {
    fputs("# HELP retort_icap_server_up 1 when the info service of the ICAP server answers, 0 when "
          "it does not. A server that has not answered yet has no sample.\n"
          "# TYPE retort_icap_server_up gauge\n",
          out);
    for (size_t i = 0; i < list->count; i++)
        if (list->samples[i].report->answered)
            server_print(out, "up", list->samples[i].at, list->samples[i].report->up);
    fputs("# HELP retort_icap_server_failures_total Questions to the info service of the ICAP "
          "server without an answer, or without one that can be read (icap_service.info).\n"
          "# TYPE retort_icap_server_failures_total counter\n",
          out);
    for (size_t i = 0; i < list->count; i++)
        server_print(out, "failures_total", list->samples[i].at, list->samples[i].report->failures);
}

void server_numbers_print_metrics(FILE *out, const struct admin_report *report) {
    struct server_list list = server_list_of(report);
    if (report->service_count > 0) {
        server_print_states(out, &list);
        for (size_t i = 0; i < sizeof server_numbers / sizeof *server_numbers; i++)
            server_print_number(out, &list, &server_numbers[i]);
    }
    free(list.samples);
}
