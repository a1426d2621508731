#include "admin/page.h"

#include "admin/certificates_page.h"
#include "admin/guard.h"
#include "admin/limits_page.h"
#include "admin/origins_page.h"
#include "admin/services_page.h"
#include "base/assert.h"
#include "base/log.h"
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void page_no_memory(struct page *page) {
    page->status = 503;
    page->content_type = "application/json";
    page->text = xstrdup("{\"error\": \"out of memory: try again later\"}");
    page->length = strlen(page->text);
}

bool page_end_text(struct page *page, FILE *out) {
    if (out != NULL && fclose(out) == 0)
        return true;
    if (out != NULL)
        free(page->text);
    page_no_memory(page);
    return false;
}

void page_json(struct page *page, unsigned status, json_t *json) {
    page->status = status;
    page->content_type = "application/json";
    page->text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(10) | JSON_ENSURE_ASCII);
    if (page->text == NULL)
        page_no_memory(page);
    page->length = strlen(page->text);
    json_decref(json);
}

/* A reason may contain bytes that are not UTF-8, which JSON can not contain. */
static json_t *error_object(const char *reason) {
    json_t *json = json_object();
    if (json_object_set_new(json, "error", json_string(reason)) != 0)
        json_object_set_new(json, "error", json_string("see the error log"));
    return json;
}

void page_error(struct page *page, unsigned status, const char *reason) {
    page_json(page, status, error_object(reason));
}

void page_not_kept(struct page *page) {
    page_error(page, 500,
               "the change is in force now, but a disk could not store it, so a restart would undo "
               "it: see the error log, and repeat the request");
}

static void take_report(const struct admin_calls *calls, struct admin_report *report) {
    *report = (struct admin_report){0};
    calls->report(calls->context, report);
}

static uint64_t counter_value(const struct counters *counters, size_t which) {
    uint64_t value;
    memcpy(&value, (const char *)counters + which * sizeof value, sizeof value);
    return value;
}

static json_t *counters_to_json(const struct counters *counters) {
    json_t *json = json_object();
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        json_object_set_new(json, counter_descriptions[i].name,
                            json_integer((json_int_t)counter_value(counters, i)));
    return json;
}

static json_t *services_to_json(const struct admin_report *report) {
    json_t *array = json_array();
    for (size_t i = 0; i < report->service_count; i++) {
        const struct admin_service *service = &report->services[i];
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:i, s:i}", "name", service->settings->name,
                                        "state", service_state_name(service->report.state),
                                        "connections", (int)service->report.connections, "pending",
                                        (int)service->report.pending));
    }
    return array;
}

/* The numbers of the disk in /status and /metrics. */
static const struct disk_number {
    const char *name, *help;
    size_t at; /* offset in struct volume_statistics */
    enum counter_kind kind;
} disk_numbers[] = {
#define NUMBER(name, member, kind, help)                                                           \
    { name, help, offsetof(struct volume_statistics, member), COUNTER_##kind }
    NUMBER("disk_objects", objects, GAUGE, "Objects on disk."),
    NUMBER("disk_capacity_bytes", capacity, GAUGE, "Bytes that the volumes have for records."),
    NUMBER("disk_index_bytes", index_bytes, GAUGE,
           "Bytes of memory that the index of the disk takes."),
    NUMBER("disk_writes", writes, TOTAL, "Records written to disk."),
    NUMBER("disk_bytes_written", bytes_written, TOTAL, "Bytes written to disk."),
    NUMBER("disk_writes_dropped", dropped, TOTAL,
           "Objects that were not written because disk.write_queue was full or a write failed."),
    NUMBER("disk_errors", errors, TOTAL, "Reads and writes that failed."),
    NUMBER("disk_corrupt", corrupt, TOTAL, "Damaged records found on disk."),
    NUMBER("disk_segments_reclaimed", reclaimed, TOTAL,
           "Segments whose objects were removed to make room for newer ones."),
    NUMBER("disk_rewritten", rewritten, TOTAL,
           "Objects written again because they were in use when their segment was removed."),
#undef NUMBER
};

static uint64_t disk_number(const struct volume_statistics *disk, const struct disk_number *which) {
    uint64_t number;
    memcpy(&number, (const char *)disk + which->at, sizeof number);
    return number;
}

static json_t *disk_to_json(const struct admin_report *report) {
    if (!report->has_disk)
        return json_null();
    json_t *json = json_object();
    for (size_t i = 0; i < sizeof disk_numbers / sizeof disk_numbers[0]; i++)
        json_object_set_new(json, disk_numbers[i].name,
                            json_integer((json_int_t)disk_number(&report->disk, &disk_numbers[i])));
    return json;
}

void page_status(struct page *page, const struct admin_calls *calls) {
    struct admin_report report;
    take_report(calls, &report);
    json_t *cache =
        json_pack("{s:I, s:I, s:I}", "bytes", (json_int_t)report.cache_bytes, "limit",
                  (json_int_t)report.cache_limit, "objects", (json_int_t)report.cache_objects);
    json_t *json = json_pack(
        "{s:s, s:i, s:f, s:s, s:i, s:i, s:s, s:o, s:o, s:o, s:o}", "version", PACKAGE_VERSION,
        "pid", (int)getpid(), "uptime", (double)report.uptime / 1000, "state", report.state,
        "workers", (int)report.settings->workers, "workers_silent", (int)report.workers_silent,
        "file", report.settings->path, "cache", cache, "disk", disk_to_json(&report),
        "icap_services", services_to_json(&report), "counters", counters_to_json(&report.counters));
    json_object_set_new(json, "certificates", certificates_page_to_json(&report));
    page_json(page, 200, json);
    admin_report_release(&report);
}

static void print_metric(FILE *out, const char *name, enum counter_kind kind, const char *help,
                         double value) {
    bool total = kind == COUNTER_TOTAL;
    const char *suffix = total ? "_total" : "";
    fprintf(out, "# HELP retort_%s%s %s\n", name, suffix, help);
    fprintf(out, "# TYPE retort_%s%s %s\n", name, suffix, total ? "counter" : "gauge");
    fprintf(out, "retort_%s%s %.15g\n", name, suffix, value);
}

static void print_interception(FILE *out, const struct admin_report *report) {
    const struct leaf_cache_statistics *leaves = &report->leaves;
    print_metric(out, "intercept_leaves", COUNTER_GAUGE,
                 "Certificates for intercepted connections that are in memory.",
                 (double)leaves->count);
    print_metric(out, "intercept_leaves_found", COUNTER_TOTAL,
                 "Intercepted connections whose certificate was in memory.", (double)leaves->found);
    print_metric(out, "intercept_leaves_minted", COUNTER_TOTAL,
                 "Certificates that were made for intercepted connections.",
                 (double)leaves->minted);
    print_metric(out, "intercept_leaves_evicted", COUNTER_TOTAL,
                 "Certificates that were removed because interception.leaf_cache was reached.",
                 (double)leaves->evicted);
    print_metric(out, "intercept_leaves_failed", COUNTER_TOTAL,
                 "Certificates that could not be made, because the name is no host name or the "
                 "authority has expired.",
                 (double)leaves->failed);
    print_metric(out, "intercept_identities", COUNTER_GAUGE,
                 "Servers of intercepted connections that are remembered as verified or failed.",
                 (double)report->identities);
    print_metric(out, "intercept_identities_evicted", COUNTER_TOTAL,
                 "Servers that were forgotten because interception.identity_entries was reached.",
                 (double)report->server_identities_evicted);
}

static void print_gauges(FILE *out, const struct admin_report *report) {
    print_metric(out, "uptime_seconds", COUNTER_GAUGE, "Seconds since the proxy started.",
                 (double)report->uptime / 1000);
    print_metric(out, "workers", COUNTER_GAUGE, "Threads that serve clients.",
                 report->settings->workers);
    print_metric(out, "workers_silent", COUNTER_GAUGE,
                 "Workers that did not answer in time, so the other numbers do not include them.",
                 report->workers_silent);
    print_metric(out, "cache_bytes", COUNTER_GAUGE, "Bytes that the cache holds.",
                 (double)report->cache_bytes);
    print_metric(out, "cache_limit_bytes", COUNTER_GAUGE,
                 "Bytes that the cache may hold at most (cache.memory).",
                 (double)report->cache_limit);
    print_metric(out, "cache_objects", COUNTER_GAUGE, "Objects in the cache.",
                 (double)report->cache_objects);
    print_metric(out, "verdicts", COUNTER_GAUGE, "Stored verdicts of ICAP services on requests.",
                 (double)report->verdicts.count);
    print_metric(out, "verdict_bytes", COUNTER_GAUGE, "Bytes of memory that stored verdicts take.",
                 (double)report->verdicts.bytes);
    print_metric(out, "verdict_limit_bytes", COUNTER_GAUGE,
                 "Bytes that stored verdicts may take at most (verdict_space).",
                 (double)report->verdicts.limit);
    print_interception(out, report);
    if (report->has_disk)
        for (size_t i = 0; i < sizeof disk_numbers / sizeof disk_numbers[0]; i++)
            print_metric(out, disk_numbers[i].name, disk_numbers[i].kind, disk_numbers[i].help,
                         (double)disk_number(&report->disk, &disk_numbers[i]));
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
static void print_health(FILE *out, const struct admin_report *report) {
    const struct admin_service *services = report->services;
    fputs("# HELP retort_icap_service_up 1 when the service answers, 0 when it is down. A service "
          "without any message so far has no sample.\n"
          "# TYPE retort_icap_service_up gauge\n",
          out);
    for (size_t i = 0; i < report->service_count; i++)
        if (services[i].report.state != SERVICE_UNKNOWN)
            fprintf(out, "retort_icap_service_up{service=\"%s\"} %d\n", services[i].settings->name,
                    services[i].report.state == SERVICE_UP);
    fputs("# HELP retort_icap_service_since_timestamp_seconds Unix time when an endpoint of the "
          "service last came up or went down.\n"
          "# TYPE retort_icap_service_since_timestamp_seconds gauge\n",
          out);
    for (size_t i = 0; i < report->service_count; i++)
        if (changed_at(&services[i]) > 0)
            fprintf(out, "retort_icap_service_since_timestamp_seconds{service=\"%s\"} %ld\n",
                    services[i].settings->name, (long)changed_at(&services[i]));
}

/* Names of services consist of letters, digits and . _ - and need no escaping. */
static void print_services(FILE *out, const struct admin_report *report) {
    const struct admin_service *services = report->services;
    if (report->service_count == 0)
        return;
    print_health(out, report);
    fputs("# HELP retort_icap_service_pending Transactions that wait for the service.\n"
          "# TYPE retort_icap_service_pending gauge\n",
          out);
    for (size_t i = 0; i < report->service_count; i++)
        fprintf(out, "retort_icap_service_pending{service=\"%s\"} %u\n", services[i].settings->name,
                services[i].report.pending);
    fputs("# HELP retort_icap_service_connections Connections to the service now.\n"
          "# TYPE retort_icap_service_connections gauge\n",
          out);
    for (size_t i = 0; i < report->service_count; i++)
        fprintf(out, "retort_icap_service_connections{service=\"%s\"} %u\n",
                services[i].settings->name, services[i].report.connections);
}

void page_metrics(struct page *page, const struct admin_calls *calls) {
    struct admin_report report;
    take_report(calls, &report);
    FILE *out = open_memstream(&page->text, &page->length);
    if (out == NULL) {
        page_no_memory(page);
        admin_report_release(&report);
        return;
    }
    for (size_t i = 0; i < COUNTER_COUNT; i++) {
        const struct counter_description *d = &counter_descriptions[i];
        print_metric(out, d->name, d->kind, d->help, (double)counter_value(&report.counters, i));
    }
    print_gauges(out, &report);
    print_services(out, &report);
    services_page_print_metrics(out, &report);
    origins_page_print_metrics(out, calls);
    certificates_page_print_metrics(out, &report);
    limits_page_print_metrics(out, calls);
    admin_guard_print_metrics(out, calls->guard);
    if (page_end_text(page, out)) {
        page->status = 200;
        page->content_type = "text/plain; version=0.0.4; charset=utf-8";
    }
    admin_report_release(&report);
}

void page_services(struct page *page, const struct admin_calls *calls) {
    struct admin_report report;
    take_report(calls, &report);
    services_page_write(page, &report);
    admin_report_release(&report);
}

void page_settings(struct page *page, const struct admin_calls *calls) {
    struct admin_report report;
    take_report(calls, &report);
    page->status = 200;
    page->content_type = "application/json";
    page->text = settings_to_json(report.settings);
    page->length = strlen(page->text);
    admin_report_release(&report);
}

/* As page_error, for a reason of several lines: each is an element of a list as well. */
static void page_errors(struct page *page, unsigned status, const char *reason) {
    struct slice rest = slice_from(reason), line;
    json_t *json = error_object(reason), *lines = json_array();
    while (slice_next_line(&rest, &line))
        json_array_append_new(lines, json_stringn(line.base, line.length));
    json_object_set_new(json, "errors", lines);
    page_json(page, status, json);
}

/* The proxy logs the outcome, as after a signal. */
void page_reload(struct page *page, const struct admin_calls *calls) {
    char error[SETTINGS_ERROR] = "";
    struct findings left = {0};
    log_info("reload requested through the admin plane");
    if (!calls->reload(calls->context, error, &left)) {
        page_errors(page, 409, error);
        return;
    }
    json_t *not_applied = json_array();
    for (unsigned i = 0; i < left.count; i++)
        json_array_append_new(not_applied, json_string(left.text[i]));
    page_json(page, 200, json_pack("{s:b, s:o}", "reloaded", 1, "not_applied", not_applied));
}

void page_drain(struct page *page, const struct admin_calls *calls) {
    log_info("drain requested through the admin plane");
    calls->drain(calls->context);
    page_json(page, 200, json_pack("{s:b}", "draining", 1));
}

const char *page_argument(const struct page_request *request, const char *name) {
    return request->argument == NULL ? NULL : request->argument(request->arg, name);
}

void page_each_argument(const struct page_request *request, page_see_argument *see, void *arg) {
    if (request->arguments != NULL)
        request->arguments(request->arg, see, arg);
}
