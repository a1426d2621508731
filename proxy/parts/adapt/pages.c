#include "adapt/adapt_worker.h"
#include "adapt/services_page.h"
#include "adapt/settings.h"
#include "adapt/shared_service.h"
#include "admin/metric_text.h"
#include "admin/page.h"
#include "admin/part_pages.h"
#include "base/log.h"
#include "cache/second_level.h"
#include "server.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *times_to_json(const struct times *times) {
    double mean = times->count > 0 ? (double)times->sum / (double)times->count : 0;
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "count", (json_int_t)times->count, "mean",
                     mean / 1e6, "p50", (double)times_quantile(times, 0.5) / 1e6, "p90",
                     (double)times_quantile(times, 0.9) / 1e6, "p99",
                     (double)times_quantile(times, 0.99) / 1e6);
}

/* A service can say anything about itself, and this is shown in terminals. Characters other than
 * visible ASCII and blanks are shown as "?". */
static json_t *shown_to_json(const char *text) {
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
    json_object_set_new(json, "error", shown_to_json(endpoint->error));
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
        json_object_set_new(json, "notice", shown_to_json(endpoint->notice));
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
            json_object_set_new(json, "error", shown_to_json(runner->error));
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
                            json_integer((json_int_t)account_number(&report->account, d)));
    for (const struct adapter_account_description *d = adapter_account_times; d->name != NULL; d++)
        json_object_set_new(times, d->name, times_to_json(account_times(&report->account, d)));
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o}", "name",
        service->settings->name, "kind", service_kind_name(service->settings), "point",
        adapt_point_name(service->settings->point), "state", service_state_name(report->state),
        "istag", shown_to_json(report->version), "service", shown_to_json(report->product),
        "service_id", shown_to_json(report->id), "connections", (int)report->connections, "pending",
        (int)report->pending, "endpoints", endpoints_to_json(service, now), "account", numbers,
        "times", times);
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

static void show_services(struct page *page, const struct admin_report *report) {
    json_t *array = json_array();
    for (size_t i = 0; i < report->service_count; i++)
        json_array_append_new(array, service_to_json(&report->services[i], report->now));
    page_json(page, 200, json_pack("{s:o}", "services", array));
}

/* False: there is no such service. *kept: a restart does not undo it. */
static bool bump_service(struct server *server, const char *name, bool *kept) {
    pthread_mutex_lock(&server->applying); /* also so that the disk gets bumps in their order */
    struct shared_service *service =
        shared_services_find(shared_services_of(server->settings), name);
    if (service != NULL)
        *kept = second_level_keep_generation(server->second_level, service->tag->base,
                                             service_tag_bump(service->tag));
    pthread_mutex_unlock(&server->applying);
    return service != NULL;
}

static void bump(struct page *page, struct adapt_process *process,
                 const struct page_request *request) {
    const char *name = page_argument(request, "name");
    bool kept = true;
    if (process == NULL || !bump_service(process->server, name, &kept)) {
        page_error(page, 404, "there is no icap_service with this name; see /services");
    } else {
        log_info("service %s: all its results were marked outdated through the admin plane", name);
        if (kept)
            page_json(page, 200, json_pack("{s:s}", "bumped", name));
        else
            page_not_kept(page);
    }
}

static void adapt_answer(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request) {
    struct admin_report report = {0};
    if (strcmp(request->path, "/services") != 0) {
        bump(page, calls->parts != NULL ? calls->parts[PART_ADAPT] : NULL, request);
        return;
    }
    calls->report(calls->context, &report);
    show_services(page, &report);
    admin_report_release(&report);
}

static void adapt_print_sizes(FILE *out, void *state) {
    const struct adapt_process *process = state;
    struct verdicts_statistics verdicts;
    if (process == NULL)
        return;
    verdicts_statistics(process->verdicts, &verdicts);
    metric_text_number(out, "verdicts", COUNTER_GAUGE,
                       "Stored verdicts of ICAP services on requests.", (double)verdicts.count);
    metric_text_number(out, "verdict_bytes", COUNTER_GAUGE,
                       "Bytes of memory that stored verdicts take.", (double)verdicts.bytes);
    metric_text_number(out, "verdict_limit_bytes", COUNTER_GAUGE,
                       "Bytes that stored verdicts may take at most (verdict_space).",
                       (double)verdicts.limit);
}

/* With the health of their endpoints. */
static void adapt_begin_report(struct admin_report *report) {
    const struct settings *settings = report->settings;
    report->service_count = settings->service_count;
    report->services = xcalloc(settings->service_count + 1, sizeof *report->services);
    for (size_t i = 0; i < settings->service_count; i++) {
        report->services[i].settings = &settings->services[i];
        shared_service_report(shared_services_of(settings)->services[i],
                              &report->services[i].report);
    }
}

static void adapt_add_report(struct admin_report *report, const struct worker_report *worker) {
    for (size_t i = 0; i < report->service_count; i++)
        service_report_add(&report->services[i].report, &worker->services[i]);
}

static json_t *adapt_to_json(const struct admin_report *report) {
    json_t *array = json_array();
    for (size_t i = 0; i < report->service_count; i++) {
        const struct admin_service *service = &report->services[i];
        json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:i, s:i}", "name",
                                               service->settings->name, "kind",
                                               service_kind_name(service->settings), "state",
                                               service_state_name(service->report.state),
                                               "connections", (int)service->report.connections,
                                               "pending", (int)service->report.pending));
    }
    return array;
}

const struct part_pages adapt_pages = {
    .answer = adapt_answer,
    .print_sizes = adapt_print_sizes,
    .begin_report = adapt_begin_report,
    .add_report = adapt_add_report,
    .print_report = service_metrics_page_print,
    .services_to_json = adapt_to_json,
};
