#include "admin/metrics_page.h"

#include "admin/admin.h"
#include "admin/certificates_page.h"
#include "admin/connections.h"
#include "admin/guard.h"
#include "admin/helper_numbers.h"
#include "admin/metric_text.h"
#include "admin/origins_page.h"
#include "admin/part_pages.h"
#include "admin/services_page.h"
#include "admin/trust_page.h"
#include "base/assert.h"
#include "base/slice.h"
#include "net/counters.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void server_numbers_print_metrics(FILE *out, const struct admin_report *report) {
    struct server_list list = server_list_of(report);
    if (report->service_count > 0) {
        server_print_states(out, &list);
        for (size_t i = 0; i < sizeof server_numbers / sizeof *server_numbers; i++)
            server_print_number(out, &list, &server_numbers[i]);
    }
    free(list.samples);
}

const struct bound bounds[] = {
#define REFUSES(option, name)                                                                      \
    {option, true, offsetof(struct counters, name) / sizeof(uint64_t), #name "_total", NULL},
#define COUNTED(option, metric) {option, false, 0, metric, NULL},
#define UNCOUNTED(option, why)  {option, false, 0, NULL, why},
#include "admin/bounds.def"
#undef REFUSES
#undef COUNTED
#undef UNCOUNTED
    {NULL, false, 0, NULL, NULL},
};

/* proc(5): the second number of statm is in pages. */
static double resident_bytes(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL && fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void print_gauges(FILE *out, const struct admin_calls *calls,
                         const struct admin_report *report) {
    const struct {
        const char *name;
        enum counter_kind kind;
        const char *help;
        double value;
    } own[] = {
        {"uptime_seconds", COUNTER_GAUGE, "Seconds since the proxy started.",
         (double)report->uptime / 1000.0},
        {"workers", COUNTER_GAUGE, "Threads that serve clients.", report->settings->workers},
        {"workers_silent", COUNTER_GAUGE,
         "Workers that did not answer in time, so the other numbers do not include them.",
         report->workers_silent},
        {"memory_resident_bytes", COUNTER_GAUGE,
         "Bytes of memory that the process has from the system, without those of helpers.",
         resident_bytes()},
        {"memory_returns", COUNTER_TOTAL,
         "Times that memory was given back to the system because connections held 16 MB less than "
         "before.",
         (double)report->memory_returns},
        {"cache_bytes", COUNTER_GAUGE, "Bytes that the cache holds.", (double)report->cache_bytes},
        {"cache_limit_bytes", COUNTER_GAUGE,
         "Bytes that the cache may hold at most (cache.memory).", (double)report->cache_limit},
        {"cache_evictions", COUNTER_TOTAL,
         "Objects that made room for others in memory (cache.memory).",
         (double)report->cache_evictions},
        {"cache_variants_dropped", COUNTER_TOTAL,
         "Variants that made room for newer ones of the same URL (cache.max_variants).",
         (double)report->cache_variants_dropped},
        {"cache_objects", COUNTER_GAUGE, "Objects in the cache.", (double)report->cache_objects},
        {"verdicts", COUNTER_GAUGE, "Stored verdicts of ICAP services on requests.",
         (double)report->verdicts.count},
        {"verdict_bytes", COUNTER_GAUGE, "Bytes of memory that stored verdicts take.",
         (double)report->verdicts.bytes},
        {"verdict_limit_bytes", COUNTER_GAUGE,
         "Bytes that stored verdicts may take at most (verdict_space).",
         (double)report->verdicts.limit},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        metric_text_number(out, own[i].name, own[i].kind, own[i].help, own[i].value);
    PAGES_FOR_EACH (number, print_sizes)
        if (calls->parts != NULL)
            part_pages_table[number]->print_sizes(out, calls->parts[number]);
    const struct second_level_number *number = report->second_level_numbers;
    for (unsigned i = 0; number != NULL && number[i].name != NULL; i++)
        metric_text_number(out, number[i].name, number[i].kind, number[i].help,
                           (double)report->second_level[i]);
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
    services_page_family(out, naming, "up", "gauge",
                         "1 when the service answers, 0 when it is down. A service that has not "
                         "answered yet has no sample: see retort_service_state.");
    for (size_t i = 0; i < report->service_count; i++)
        if (services[i].report.state != SERVICE_UNKNOWN &&
            services[i].report.state != SERVICE_UNLOADED) {
            services_page_sample(out, naming, "up", services[i].settings);
            fprintf(out, "%d\n", services[i].report.state == SERVICE_UP);
        }
    services_page_family(out, naming, "since_timestamp_seconds", "gauge",
                         "Unix time when an endpoint of the service last came up or went down.");
    for (size_t i = 0; i < report->service_count; i++)
        if (changed_at(&services[i]) > 0) {
            services_page_sample(out, naming, "since_timestamp_seconds", services[i].settings);
            fprintf(out, "%ld\n", (long)changed_at(&services[i]));
        }
}

static void print_state(FILE *out, const struct service_naming *naming,
                        const struct admin_service *service) {
    for (unsigned state = SERVICE_UNKNOWN; state < SERVICE_STATES; state++) {
        fprintf(out, "retort_%s_state{service=\"%s\"", naming->prefix, service->settings->name);
        if (naming->shows_kind)
            fprintf(out, ",kind=\"%s\"", services_page_kind(service->settings));
        fprintf(out, ",state=\"%s\"} %d\n", service_state_name((enum service_state)state),
                service->report.state == state);
    }
}

/* OpenMetrics calls such metrics a state set; the text format of Prometheus knows gauges only. */
static void print_states(FILE *out, const struct service_naming *naming,
                         const struct admin_report *report) {
    services_page_family(
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
    services_page_family(out, naming, "pending", "gauge",
                         "Transactions that wait for the service.");
    for (size_t i = 0; i < report->service_count; i++) {
        services_page_sample(out, naming, "pending", services[i].settings);
        fprintf(out, "%u\n", services[i].report.pending);
    }
    services_page_family(out, naming, "connections", "gauge",
                         "Connections to the service now; of one inside the proxy, its messages.");
    for (size_t i = 0; i < report->service_count; i++) {
        services_page_sample(out, naming, "connections", services[i].settings);
        fprintf(out, "%u\n", services[i].report.connections);
    }
}

static void print_all_services(FILE *out, const struct admin_report *report) {
    for (const struct service_naming *naming = service_namings;
         report->service_count > 0 && naming->prefix != NULL; naming++)
        print_services(out, naming, report);
}

static struct slice method_name(unsigned method) {
    return method == HTTP_METHOD_OTHER ? SLICE("other")
                                       : http_method_text((enum http_method)method);
}

static void print_request_counts(FILE *out, const struct listener_counts *listener) {
    const uint64_t *at = &listener->requests[0][0][0][0];
    for (unsigned protocol = 0; protocol < COUNTED_PROTOCOLS; protocol++)
        for (unsigned method = 0; method < HTTP_METHOD_COUNT; method++)
            for (unsigned result = 0; result < COUNTED_RESULTS; result++)
                for (unsigned status = 0; status < COUNTED_STATUSES; status++, at++) {
                    if (*at == 0)
                        continue;
                    fputs("retort_requests_total{listener=\"", out);
                    metric_text_label(out, listener->name);
                    fprintf(out,
                            "\",protocol=\"%s\",method=\"%.*s\",result=\"%.*s\",status=\"%s\"} "
                            "%" PRIu64 "\n",
                            counted_protocol_name(protocol), SLICE_PRINT(method_name(method)),
                            SLICE_PRINT(cache_result_name((enum cache_result)result)),
                            counted_status_name(status), *at);
                }
}

static void print_requests(FILE *out, const struct request_counts *counts, bool exemplars) {
    fputs("# HELP retort_requests_total Requests that have ended, by listener, protocol, method, "
          "result of the cache and class of the status. Methods that Retort does not know count as "
          "other. The status is none when the client left before there was one.\n"
          "# TYPE retort_requests_total counter\n",
          out);
    for (const struct listener_counts *one = counts->listeners; one != NULL; one = one->next)
        print_request_counts(out, one);
    fputs("# HELP retort_request_duration_seconds Time from the head of a request until the last "
          "byte of the response was handed to the kernel, by result of the cache.\n"
          "# TYPE retort_request_duration_seconds histogram\n",
          out);
    for (unsigned result = 0; result < COUNTED_RESULTS; result++) {
        const struct result_times *times = &counts->results[result];
        char labels[64];
        snprintf(labels, sizeof labels, "result=\"%.*s\"",
                 SLICE_PRINT(cache_result_name((enum cache_result)result)));
        if (times->times.count > 0)
            metric_text_times(out, "request_duration_seconds", labels, &times->times,
                              exemplars ? times->examples : NULL);
    }
}

static void print_durations(FILE *out, const struct durations *durations) {
    const struct times *times = (const struct times *)durations;
    for (size_t i = 0; i < DURATION_COUNT; i++) {
        const struct duration_description *d = &duration_descriptions[i];
        fprintf(out, "# HELP retort_%s %s\n# TYPE retort_%s histogram\n", d->name, d->help,
                d->name);
        metric_text_times(out, d->name, "", &times[i], NULL);
    }
}

static void print_bounds(FILE *out, const struct counters *counters) {
    fputs("# HELP retort_bound_reached_total What each option that bounds something has refused or "
          "broken off. Each is also a counter of its own.\n"
          "# TYPE retort_bound_reached_total counter\n",
          out);
    for (const struct bound *bound = bounds; bound->option != NULL; bound++)
        if (bound->refuses)
            fprintf(out, "retort_bound_reached_total{option=\"%s\"} %" PRIu64 "\n", bound->option,
                    counters_value(counters, bound->counter));
}

static void print_metrics(FILE *out, const struct admin_calls *calls,
                          const struct admin_report *report, bool open_metrics) {
    for (size_t i = 0; i < COUNTER_COUNT; i++) {
        const struct counter_description *d = &counter_descriptions[i];
        metric_text_number(out, d->name, d->kind, d->help,
                           (double)counters_value(&report->counters, i));
    }
    print_bounds(out, &report->counters);
    print_requests(out, &report->requests, open_metrics);
    print_durations(out, &report->durations);
    print_gauges(out, calls, report);
    print_all_services(out, report);
    services_page_print_metrics(out, report);
    server_numbers_print_metrics(out, report);
    origins_page_print_metrics(out, calls);
    certificates_page_print_metrics(out, report);
    trust_page_print_metrics(out, report);
    PAGES_FOR_EACH (number, print_metrics)
        if (calls->parts != NULL)
            part_pages_table[number]->print_metrics(out, calls->parts[number]);
    admin_guard_print_metrics(out, calls->guard);
    helper_numbers_print_metrics(calls->helpers, out, report->settings);
    admin_connections_print_metrics(out, calls->connections);
}

/* In whatever order of preference: who knows OpenMetrics at all asks for it first. */
static bool takes_open_metrics(const struct page_request *request) {
    return request->accept != NULL &&
           strcasestr(request->accept, "application/openmetrics-text") != NULL;
}

static void make_metrics(struct page *page, const struct admin_calls *calls, bool open_metrics) {
    struct admin_report report = {0};
    calls->report(calls->context, &report);
    FILE *out = open_memstream(&page->text, &page->length);
    if (out != NULL)
        print_metrics(out, calls, &report, open_metrics);
    admin_report_release(&report);
    if (!page_end_text(page, out))
        return;
    if (open_metrics)
        metric_text_to_open(&page->text, &page->length);
    page->status = 200;
    page->content_type = open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                      : "text/plain; version=0.0.4; charset=utf-8";
}

void metrics_page_make(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request) {
    make_metrics(page, calls, takes_open_metrics(request));
}
