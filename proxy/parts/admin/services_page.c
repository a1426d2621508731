#include "admin/services_page.h"

#include "admin/metric_text.h"
#include "base/log.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static uint64_t services_page_number_of(const struct adapter_account *account,
                                        const struct adapter_account_description *description) {
    uint64_t value;
    memcpy(&value, (const char *)account + description->at, sizeof value);
    return value;
}

static const struct times *times_of(const struct adapter_account *account,
                                    const struct adapter_account_description *description) {
    return (const struct times *)((const char *)account + description->at);
}

static json_t *times_to_json(const struct times *times) {
    double mean = times->count > 0 ? (double)times->sum / (double)times->count : 0;
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "count", (json_int_t)times->count, "mean",
                     mean / 1e6, "p50", (double)times_quantile(times, 0.5) / 1e6, "p90",
                     (double)times_quantile(times, 0.9) / 1e6, "p99",
                     (double)times_quantile(times, 0.99) / 1e6);
}

/* A service can say anything about itself, and this is shown in terminals. Characters other than
 * visible ASCII and blanks are shown as "?". */
static json_t *services_page_text_to_json(const char *text) {
    char shown[SERVICE_REPORT_NOTICE];
    size_t length = 0;
    for (; text[length] != '\0' && length < sizeof shown; length++)
        shown[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    return json_stringn(shown, length);
}

/* Seconds; null: it is not tried again by itself. */
static json_t *retry_to_json(uint64_t retry_at, uint64_t now) {
    uint64_t wait = retry_at > now ? retry_at - now : 0;
    return retry_at == TIMER_NEVER ? json_null() : json_real((double)wait / 1000);
}

/* Writes why an endpoint is down, and when it is checked next. */
static void add_trouble(json_t *json, const struct service_endpoint_report *endpoint,
                        uint64_t now) {
    if (endpoint->state != SERVICE_DOWN && endpoint->state != SERVICE_TRIAL)
        return;
    json_object_set_new(json, "error", services_page_text_to_json(endpoint->error));
    if (endpoint->state == SERVICE_DOWN)
        json_object_set_new(json, "retry_in", retry_to_json(endpoint->retry_at, now));
}

static json_t *endpoint_to_json(const struct admin_service *service, unsigned index, uint64_t now) {
    const struct service_endpoint_report *endpoint = &service->report.endpoints[index];
    json_t *json =
        json_pack("{s:s, s:s, s:i}", "uri", service->settings->uri_texts[index], "state",
                  service_state_name(endpoint->state), "connections", (int)endpoint->connections);
    if (endpoint->state != SERVICE_UNKNOWN)
        json_object_set_new(json, "since", json_integer((json_int_t)endpoint->since));
    add_trouble(json, endpoint, now);
    if (endpoint->notice[0] != '\0')
        json_object_set_new(json, "notice", services_page_text_to_json(endpoint->notice));
    return json;
}

static json_t *endpoints_to_json(const struct admin_service *service, uint64_t now) {
    json_t *array = json_array();
    for (unsigned i = 0; i < service->settings->endpoint_count; i++)
        json_array_append_new(array, endpoint_to_json(service, i, now));
    return array;
}

static json_t *runners_to_json(const struct service_report *report, uint64_t now) {
    json_t *array = json_array();
    for (unsigned i = 0; i < report->runner_count; i++) {
        const struct service_runner_report *runner = &report->runners[i];
        json_t *json = json_pack("{s:s, s:I}", "state",
                                 service_state_name(runner->up ? SERVICE_UP : SERVICE_DOWN),
                                 "since", (json_int_t)runner->since);
        if (runner->pid > 0)
            json_object_set_new(json, "pid", json_integer(runner->pid));
        if (report->runs == SERVICE_RUNS_PROCESS)
            json_object_set_new(json, "starts", json_integer((json_int_t)runner->starts));
        json_object_set_new(json, "hangs", json_integer((json_int_t)runner->hangs));
        if (!runner->up) {
            json_object_set_new(json, "error", services_page_text_to_json(runner->error));
            json_object_set_new(json, "retry_in", retry_to_json(runner->retry_at, now));
        }
        json_array_append_new(array, json);
    }
    return array;
}

static json_t *own_counts_to_json(const struct service_report *report) {
    json_t *counts = json_object();
    for (unsigned i = 0; i < report->own_count; i++)
        json_object_set_new(counts, report->own[i].name,
                            json_integer((json_int_t)report->own[i].count));
    return counts;
}

static json_t *content_to_json(const struct content_report *report) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "operations",
                     (json_int_t)report->started, "refused", (json_int_t)report->refused, "failed",
                     (json_int_t)report->failed, "fetches", (json_int_t)report->fetched,
                     "injected_bytes", (json_int_t)report->injected_bytes, "read_bytes",
                     (json_int_t)report->read_bytes, "open", (json_int_t)report->open, "held_bytes",
                     (json_int_t)report->held_bytes);
}

static json_t *service_to_json(const struct admin_service *service, uint64_t now) {
    const struct service_report *report = &service->report;
    json_t *numbers = json_object(), *times = json_object();
    for (const struct adapter_account_description *d = adapter_account_numbers; d->name != NULL;
         d++)
        json_object_set_new(numbers, d->name,
                            json_integer((json_int_t)services_page_number_of(&report->account, d)));
    for (const struct adapter_account_description *d = adapter_account_times; d->name != NULL; d++)
        json_object_set_new(times, d->name, times_to_json(times_of(&report->account, d)));
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o}", "name",
                             service->settings->name, "kind", services_page_kind(service->settings),
                             "point", adapt_point_name(service->settings->point), "state",
                             service_state_name(report->state), "istag",
                             services_page_text_to_json(report->version), "service",
                             services_page_text_to_json(report->product), "service_id",
                             services_page_text_to_json(report->id), "connections",
                             (int)report->connections, "pending", (int)report->pending, "endpoints",
                             endpoints_to_json(service, now), "account", numbers, "times", times);
    if (report->runner_count > 0)
        json_object_set_new(json, report->runs == SERVICE_RUNS_PROCESS ? "processes" : "threads",
                            runners_to_json(report, now));
    if (report->own_count > 0)
        json_object_set_new(json, "counts", own_counts_to_json(report));
    if (report->content.started + report->content.refused > 0)
        json_object_set_new(json, "content", content_to_json(&report->content));
    if (report->bypassed_since > 0)
        json_object_set_new(json, "unadapted",
                            json_pack("{s:I, s:I}", "messages", (json_int_t)report->bypassed,
                                      "since", (json_int_t)report->bypassed_since));
    return json;
}

void services_page_write(struct page *page, const struct admin_report *report) {
    json_t *array = json_array();
    for (size_t i = 0; i < report->service_count; i++)
        json_array_append_new(array, service_to_json(&report->services[i], report->now));
    page_json(page, 200, json_pack("{s:o}", "services", array));
}

void services_page_bump(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request) {
    const char *name = page_argument(request, "name");
    bool kept = true;
    if (calls->bump == NULL || !calls->bump(calls->context, name, &kept)) {
        page_error(page, 404, "there is no icap_service with this name; see /services");
    } else {
        log_info("service %s: all its results were marked outdated through the admin plane", name);
        if (kept)
            page_json(page, 200, json_pack("{s:s}", "bumped", name));
        else
            page_not_kept(page);
    }
}

/* Metrics. Names of services consist of letters, digits and . _ - and need no escaping. */

const struct service_naming service_namings[] = {
    {"service", true},
    {"icap_service", false},
    {NULL, false},
};

const char *services_page_kind(const struct service_settings *service) {
    return service->kind == SERVICE_INSIDE ? "inside" : "icap";
}

void services_page_family(FILE *out, const struct service_naming *naming, const char *name,
                          const char *type, const char *help) {
    fprintf(out, "# HELP retort_%s_%s %s\n# TYPE retort_%s_%s %s\n", naming->prefix, name, help,
            naming->prefix, name, type);
}

static void print_labels(FILE *out, const struct service_naming *naming,
                         const struct service_settings *service) {
    fprintf(out, "service=\"%s\"", service->name);
    if (naming->shows_kind)
        fprintf(out, ",kind=\"%s\"", services_page_kind(service));
}

void services_page_sample(FILE *out, const struct service_naming *naming, const char *name,
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
        services_page_family(out, naming, name, "counter", d->help);
        for (size_t i = 0; i < report->service_count; i++) {
            const struct admin_service *service = &report->services[i];
            services_page_sample(out, naming, name, service->settings);
            fprintf(out, "%lu\n",
                    (unsigned long)services_page_number_of(&service->report.account, d));
        }
    }
}

static void print_times(FILE *out, const struct service_naming *naming,
                        const struct admin_report *report) {
    for (const struct adapter_account_description *d = adapter_account_times; d->name != NULL;
         d++) {
        services_page_family(out, naming, d->name, "histogram", d->help);
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
            metric_text_times(out, metric, labels, times_of(&service->report.account, d), NULL);
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

void services_page_print_metrics(FILE *out, const struct admin_report *report) {
    if (report->service_count == 0)
        return;
    for (const struct service_naming *naming = service_namings; naming->prefix != NULL; naming++) {
        print_numbers(out, naming, report);
        print_times(out, naming, report);
    }
    print_runners(out, report);
    print_own_counts(out, report);
    print_content(out, report);
}
