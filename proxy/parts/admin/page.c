#include "admin/page.h"

#include "admin/cache_call.h"
#include "admin/certificates_page.h"
#include "admin/part_pages.h"
#include "admin/trust_page.h"
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

struct page page_begin(const char *accept) {
    enum { A_DAY = 24 * 60 * 60 };
    static const char text[] = "text/plain";
    struct page page = {.shown.wanted = false};
    if (accept == NULL || strncmp(accept, text, sizeof text - 1) != 0)
        return page;
    const char *zone = strstr(accept, "zone=");
    page.shown.wanted = true;
    page.shown.style.colours = strstr(accept, "colours=yes") != NULL;
    long seconds = zone == NULL ? 0 : strtol(zone + strlen("zone="), NULL, 10);
    page.shown.style.zone = seconds < -A_DAY || seconds > A_DAY ? 0 : seconds;
    return page;
}

/* False: it is to be JSON. */
static bool page_as_text(struct page *page, unsigned status, json_t *json) {
    const struct call *call = page->shown.call;
    const char *form = call == NULL ? NULL : call->form;
    bool formed = status == 200 || (status == 409 && form != NULL && call->form_of_refusal);
    if (!page->shown.wanted || (form == NULL && formed))
        return false;
    FILE *out = open_memstream(&page->text, &page->length);
    json_t *copy = json_deep_copy(json); /* the audit log has parts of it as they are */
    page->status = status;
    page->content_type = "text/plain; charset=utf-8";
    if (out != NULL && formed)
        answer_text_write(out, form, &page->shown.style, copy);
    else if (out != NULL)
        answer_text_refuse(out, copy);
    json_decref(copy);
    json_decref(json);
    page_end_text(page, out);
    return true;
}

static void page_json_formed(struct page *page, unsigned status, json_t *json, size_t form) {
    page->error = status < 400 ? NULL : json_incref(json_object_get(json, "error"));
    if (page_as_text(page, status, json))
        return;
    page->status = status;
    page->content_type = "application/json";
    page->text = json_dumps(json, form | JSON_REAL_PRECISION(10) | JSON_ENSURE_ASCII);
    if (page->text == NULL)
        page_no_memory(page);
    page->length = strlen(page->text);
    json_decref(json);
}

void page_json(struct page *page, unsigned status, json_t *json) {
    page_json_formed(page, status, json, JSON_INDENT(2));
}

void page_json_dense(struct page *page, json_t *json) {
    page_json_formed(page, 200, json, JSON_COMPACT);
}

/* A reason may contain bytes that are not UTF-8, which JSON can not contain. */
void page_error(struct page *page, unsigned status, const char *reason) {
    page_json(page, status, json_pack("{s:o}", "error", cache_call_text(slice_from(reason))));
}

void page_busy(struct page *page, const char *reason) {
    page_error(page, 503, reason);
    page->repeat = true;
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

static json_t *counters_to_json(const struct counters *counters) {
    json_t *json = json_object();
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        json_object_set_new(json, counter_descriptions[i].name,
                            json_integer((json_int_t)counters_value(counters, i)));
    return json;
}

static json_t *services_to_json(const struct admin_report *report) {
    PAGES_FOR_EACH (number, services_to_json)
        return part_pages_table[number]->services_to_json(report);
    return json_array();
}

static json_t *disk_to_json(const struct admin_report *report) {
    const struct second_level_number *number = report->second_level_numbers;
    if (number == NULL)
        return json_null();
    json_t *json = json_object();
    for (unsigned i = 0; number[i].name != NULL; i++)
        json_object_set_new(json, number[i].name,
                            json_integer((json_int_t)report->second_level[i]));
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
    if (report.under_way != NULL)
        json_object_set_new(json, "under_way",
                            json_pack("{s:s, s:f}", "what", report.under_way, "seconds",
                                      (double)report.under_way_for / 1000));
    json_object_set_new(json, "certificates", certificates_page_to_json(&report));
    json_object_set_new(json, "trust", trust_page_to_json(&report));
    page_json(page, 200, json);
    admin_report_release(&report);
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
