#include "adapt/services_page.h"
#include "admin/metric_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Metrics. Names of services consist of letters, digits and . _ - and need no escaping. */

/* They have two names: retort_service_... with the label kind, and retort_icap_service_..., which is older and has the
 * same numbers. Each family is printed for both. */
static const struct service_naming {
    const char *prefix; /* "icap_service" */
    bool shows_kind;
} service_namings[] = {
    {"service", true},
    {"icap_service", false},
    {NULL, false},
};

static void print_service_family(FILE *out, const struct service_naming *naming, const char *name,
                                 const char *type, const char *help) {
    fprintf(out, "# HELP retort_%s_%s %s\n# TYPE retort_%s_%s %s\n", naming->prefix, name, help,
            naming->prefix, name, type);
}

static void print_labels(FILE *out, const struct service_naming *naming,
                         const struct service_settings *service) {
    fprintf(out, "service=\"%s\"", service->name);
    if (naming->shows_kind)
        fprintf(out, ",kind=\"%s\"", service_kind_name(service));
}

static void print_sample(FILE *out, const struct service_naming *naming, const char *name,
                         const struct service_settings *service) {
    fprintf(out, "retort_%s_%s{", naming->prefix, name);
    print_labels(out, naming, service);
    fputs("} ", out);
}

static void print_numbers(FILE *out, const struct service_naming *naming,
                          const struct admin_report *report) {
    for (const struct adapter_account_description *d = adapter_account_numbers; d->name != NULL;
         d++) {
        char name[100];
        snprintf(name, sizeof name, "%s_total", d->name);
        print_service_family(out, naming, name, "counter", d->help);
        for (size_t i = 0; i < report->service_count; i++) {
            const struct admin_service *service = &report->services[i];
            print_sample(out, naming, name, service->settings);
            fprintf(out, "%lu\n", (unsigned long)account_number(&service->report.account, d));
        }
    }
}

static void print_times(FILE *out, const struct service_naming *naming,
                        const struct admin_report *report) {
    for (const struct adapter_account_description *d = adapter_account_times; d->name != NULL;
         d++) {
        print_service_family(out, naming, d->name, "histogram", d->help);
        for (size_t i = 0; i < report->service_count; i++) {
            const struct admin_service *service = &report->services[i];
            char metric[100], *labels;
            size_t length;
            FILE *text = open_memstream(&labels, &length);
            if (text == NULL)
                continue;
            print_labels(text, naming, service->settings);
            fclose(text);
            snprintf(metric, sizeof metric, "%s_%s", naming->prefix, d->name);
            metric_text_times(out, metric, labels, account_times(&service->report.account, d),
                              NULL);
            free(labels);
        }
    }
}

static void print_own_counts(FILE *out, const struct admin_report *report) {
    fputs("# HELP retort_service_events_total What services inside the proxy count themselves, by "
          "the names of their counters.\n"
          "# TYPE retort_service_events_total counter\n",
          out);
    for (size_t i = 0; i < report->service_count; i++) {
        const struct admin_service *service = &report->services[i];
        for (unsigned n = 0; n < service->report.own_count; n++) {
            fprintf(out, "retort_service_events_total{service=\"%s\",event=\"",
                    service->settings->name);
            metric_text_label(out, service->report.own[n].name);
            fprintf(out, "\"} %lu\n", (unsigned long)service->report.own[n].count);
        }
    }
}

static const struct content_number {
    const char *name, *kind, *help;
    size_t at;
} content_numbers[] = {
#define NUMBER(name, member, kind, help)                                                           \
    { name, kind, help, offsetof(struct content_report, member) }
    NUMBER("retort_service_content_operations_total", started, "counter",
           "Operations on the content of the cache that "
           "services inside the proxy have begun."),
    NUMBER("retort_service_content_refused_total", refused, "counter",
           "Operations of services on content that a limit or a rule refused."),
    NUMBER("retort_service_content_failed_total", failed, "counter",
           "Operations of services on content that failed."),
    NUMBER("retort_service_content_fetches_total", fetched, "counter",
           "Requests of services that got an answer."),
    NUMBER("retort_service_content_injected_bytes_total", injected_bytes, "counter",
           "Bytes of bodies that services have injected."),
    NUMBER("retort_service_content_read_bytes_total", read_bytes, "counter",
           "Bytes of stored bodies that services have read."),
    NUMBER("retort_service_content_open", open, "gauge",
           "Operations of services on content that are under way or not closed yet."),
    NUMBER("retort_service_content_held_bytes", held_bytes, "gauge", "Bytes that these hold."),
#undef NUMBER
};

static uint64_t content_number_of(const struct content_report *report,
                                  const struct content_number *number) {
    uint64_t value;
    memcpy(&value, (const char *)report + number->at, sizeof value);
    return value;
}

static void print_content(FILE *out, const struct admin_report *report) {
    for (size_t n = 0; n < sizeof content_numbers / sizeof *content_numbers; n++) {
        const struct content_number *number = &content_numbers[n];
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", number->name, number->help, number->name,
                number->kind);
        for (size_t i = 0; i < report->service_count; i++) {
            const struct admin_service *service = &report->services[i];
            if (service->settings->kind == SERVICE_INSIDE)
                fprintf(out, "%s{service=\"%s\"} %lu\n", number->name, service->settings->name,
                        (unsigned long)content_number_of(&service->report.content, number));
        }
    }
}

static unsigned runners_up(const struct service_report *report) {
    unsigned up = 0;
    for (unsigned i = 0; i < report->runner_count; i++)
        up += report->runners[i].up;
    return up;
}

static unsigned long runners_starts(const struct service_report *report) {
    unsigned long starts = 0;
    for (unsigned i = 0; i < report->runner_count; i++)
        starts += (unsigned long)report->runners[i].starts;
    return starts;
}

static unsigned long runners_hangs(const struct service_report *report) {
    unsigned long hangs = 0;
    for (unsigned i = 0; i < report->runner_count; i++)
        hangs += (unsigned long)report->runners[i].hangs;
    return hangs;
}

static void print_runners(FILE *out, const struct admin_report *report) {
    fputs("# HELP retort_service_runners Threads or processes that run a service inside the proxy "
          "now "
          "(service.runs).\n"
          "# TYPE retort_service_runners gauge\n",
          out);
    for (size_t i = 0; i < report->service_count; i++)
        if (report->services[i].report.runner_count > 0)
            fprintf(out, "retort_service_runners{service=\"%s\"} %u\n",
                    report->services[i].settings->name, runners_up(&report->services[i].report));
    fputs(
        "# HELP retort_service_process_starts_total Processes that were started for a service "
        "inside "
        "the proxy since its module or its settings changed. More than service.threads: some have "
        "ended.\n"
        "# TYPE retort_service_process_starts_total counter\n",
        out);
    for (size_t i = 0; i < report->service_count; i++)
        if (report->services[i].report.runs == SERVICE_RUNS_PROCESS)
            fprintf(out, "retort_service_process_starts_total{service=\"%s\"} %lu\n",
                    report->services[i].settings->name,
                    runners_starts(&report->services[i].report));
    fputs("# HELP retort_service_hangs_total How often a thread or process of a service inside the "
          "proxy did not answer for service.hang_timeout, since its module or its settings "
          "changed.\n"
          "# TYPE retort_service_hangs_total counter\n",
          out);
    for (size_t i = 0; i < report->service_count; i++)
        if (report->services[i].report.runner_count > 0)
            fprintf(out, "retort_service_hangs_total{service=\"%s\"} %lu\n",
                    report->services[i].settings->name, runners_hangs(&report->services[i].report));
}

/* The time of the last change of any endpoint; 0: no endpoint has been asked. */
static time_t changed_at(const struct admin_service *service) {
    time_t latest = 0;
    for (unsigned i = 0; i < ICAP_ENDPOINTS_MAX; i++) {
        const struct service_endpoint_report *endpoint = &service->report.endpoints[i];
        if (endpoint->state != SERVICE_UNKNOWN && endpoint->since > latest)
            latest = endpoint->since;
    }
    return latest;
}

/* Prints services that have been asked at least once. */
static void print_health(FILE *out, const struct service_naming *naming,
                         const struct admin_report *report) {
    const struct admin_service *services = report->services;
    print_service_family(out, naming, "up", "gauge",
                         "1 when the service answers, 0 when it is down. A service that has not "
                         "answered yet has no sample: see retort_service_state.");
    for (size_t i = 0; i < report->service_count; i++)
        if (services[i].report.state != SERVICE_UNKNOWN &&
            services[i].report.state != SERVICE_UNLOADED) {
            print_sample(out, naming, "up", services[i].settings);
            fprintf(out, "%d\n", services[i].report.state == SERVICE_UP);
        }
    print_service_family(out, naming, "since_timestamp_seconds", "gauge",
                         "Unix time when an endpoint of the service last came up or went down.");
    for (size_t i = 0; i < report->service_count; i++)
        if (changed_at(&services[i]) > 0) {
            print_sample(out, naming, "since_timestamp_seconds", services[i].settings);
            fprintf(out, "%ld\n", (long)changed_at(&services[i]));
        }
}

static void print_state(FILE *out, const struct service_naming *naming,
                        const struct admin_service *service) {
    for (unsigned state = SERVICE_UNKNOWN; state < SERVICE_STATES; state++) {
        fprintf(out, "retort_%s_state{service=\"%s\"", naming->prefix, service->settings->name);
        if (naming->shows_kind)
            fprintf(out, ",kind=\"%s\"", service_kind_name(service->settings));
        fprintf(out, ",state=\"%s\"} %d\n", service_state_name((enum service_state)state),
                service->report.state == state);
    }
}

/* OpenMetrics calls such metrics a state set; the text format of Prometheus knows gauges only. */
static void print_states(FILE *out, const struct service_naming *naming,
                         const struct admin_report *report) {
    print_service_family(
        out, naming, "state", "gauge",
        "1 for the state that the service is in: unknown (no endpoint has answered "
        "yet), down, trial, up or unloaded (it is disabled).");
    for (size_t i = 0; i < report->service_count; i++)
        print_state(out, naming, &report->services[i]);
}

static void print_services(FILE *out, const struct service_naming *naming,
                           const struct admin_report *report) {
    const struct admin_service *services = report->services;
    print_health(out, naming, report);
    print_states(out, naming, report);
    print_service_family(out, naming, "pending", "gauge",
                         "Transactions that wait for the service.");
    for (size_t i = 0; i < report->service_count; i++) {
        print_sample(out, naming, "pending", services[i].settings);
        fprintf(out, "%u\n", services[i].report.pending);
    }
    print_service_family(out, naming, "connections", "gauge",
                         "Connections to the service now; of one inside the proxy, its messages.");
    for (size_t i = 0; i < report->service_count; i++) {
        print_sample(out, naming, "connections", services[i].settings);
        fprintf(out, "%u\n", services[i].report.connections);
    }
}

static void print_accounts(FILE *out, const struct admin_report *report) {
    for (const struct service_naming *naming = service_namings; naming->prefix != NULL; naming++) {
        print_numbers(out, naming, report);
        print_times(out, naming, report);
    }
    print_runners(out, report);
    print_own_counts(out, report);
    print_content(out, report);
}

/*
 * What ICAP servers count themselves (icap_service.info): one sample for each server, however many
 * services and endpoints have it.
 */

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

static void print_servers(FILE *out, const struct admin_report *report) {
    struct server_list list = server_list_of(report);
    server_print_states(out, &list);
    for (size_t i = 0; i < sizeof server_numbers / sizeof *server_numbers; i++)
        server_print_number(out, &list, &server_numbers[i]);
    free(list.samples);
}

void service_metrics_page_print(FILE *out, const struct admin_report *report) {
    if (report->service_count == 0)
        return;
    for (const struct service_naming *naming = service_namings; naming->prefix != NULL; naming++)
        print_services(out, naming, report);
    print_accounts(out, report);
    print_servers(out, report);
}
