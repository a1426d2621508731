#include "admin/metrics_page.h"

#include "admin/admin.h"
#include "admin/certificates_page.h"
#include "admin/connections.h"
#include "admin/guard.h"
#include "admin/helper_numbers.h"
#include "admin/metric_text.h"
#include "admin/origins_page.h"
#include "admin/part_pages.h"
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
    PAGES_FOR_EACH (number, print_report)
        part_pages_table[number]->print_report(out, report);
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
