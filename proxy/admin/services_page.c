#include "admin/services_page.h"

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

static const struct adapter_times *times_of(const struct adapter_account *account,
                                            const struct adapter_account_description *description) {
    return (const struct adapter_times *)((const char *)account + description->at);
}

static json_t *times_to_json(const struct adapter_times *times) {
    double mean = times->count > 0 ? (double)times->sum / (double)times->count : 0;
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "count", (json_int_t)times->count, "mean",
                     mean / 1e6, "p50", (double)adapter_times_quantile(times, 0.5) / 1e6, "p90",
                     (double)adapter_times_quantile(times, 0.9) / 1e6, "p99",
                     (double)adapter_times_quantile(times, 0.99) / 1e6);
}

/* A service can say anything about itself, and this is shown in terminals. Characters other than
 * visible ASCII and blanks are shown as "?". */
static json_t *services_page_text_to_json(const char *text) {
    char shown[ICAP_NOTICE];
    size_t length = 0;
    for (; text[length] != '\0' && length < sizeof shown; length++)
        shown[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    return json_stringn(shown, length);
}

/* Writes why an endpoint is down, and when it is checked next. */
static void add_trouble(json_t *endpoint, const struct icap_health_view *health, uint64_t now) {
    uint64_t wait = health->retry_at > now ? health->retry_at - now : 0;
    if (health->state != ICAP_STATE_DOWN && health->state != ICAP_STATE_TRIAL)
        return;
    json_object_set_new(endpoint, "error", services_page_text_to_json(health->error));
    if (health->state == ICAP_STATE_DOWN)
        json_object_set_new(endpoint, "retry_in", json_real((double)wait / 1000));
}

static json_t *endpoint_to_json(const struct admin_icap_service *service, unsigned index,
                                uint64_t now) {
    const struct icap_health_view *health = &service->health[index];
    const char *notice = health->options.notice.text;
    json_t *endpoint = json_pack("{s:s, s:s, s:i}", "uri", service->settings->uri_texts[index],
                                 "state", icap_state_name(health->state), "connections",
                                 (int)service->endpoint_connections[index]);
    if (health->state != ICAP_STATE_UNKNOWN)
        json_object_set_new(endpoint, "since", json_integer((json_int_t)health->since));
    add_trouble(endpoint, health, now);
    if (notice[0] != '\0')
        json_object_set_new(endpoint, "notice", services_page_text_to_json(notice));
    return endpoint;
}

static json_t *endpoints_to_json(const struct admin_icap_service *service, uint64_t now) {
    json_t *array = json_array();
    for (unsigned i = 0; i < service->settings->endpoint_count; i++)
        json_array_append_new(array, endpoint_to_json(service, i, now));
    return array;
}

/* Returns the value of the first endpoint that states it. */
static const char *service_id(const struct admin_icap_service *service) {
    for (unsigned i = 0; i < service->settings->endpoint_count; i++)
        if (service->health[i].options.service[0] != '\0')
            return service->health[i].options.service;
    return "";
}

static json_t *service_to_json(const struct admin_icap_service *service, uint64_t now) {
    json_t *numbers = json_object(), *times = json_object();
    for (const struct adapter_account_description *d = adapter_account_numbers; d->name != NULL;
         d++)
        json_object_set_new(
            numbers, d->name,
            json_integer((json_int_t)services_page_number_of(&service->account, d)));
    for (const struct adapter_account_description *d = adapter_account_times; d->name != NULL; d++)
        json_object_set_new(times, d->name, times_to_json(times_of(&service->account, d)));
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o}", "name", service->name,
                  "point", adapt_point_name(service->settings->point), "state", service->state,
                  "istag", services_page_text_to_json(service->istag), "service",
                  services_page_text_to_json(service->product), "service_id",
                  services_page_text_to_json(service_id(service)), "connections",
                  (int)service->connections, "pending", (int)service->pending, "endpoints",
                  endpoints_to_json(service, now), "account", numbers, "times", times);
    if (service->unadapted_since > 0)
        json_object_set_new(json, "unadapted",
                            json_pack("{s:I, s:I}", "messages", (json_int_t)service->unadapted,
                                      "since", (json_int_t)service->unadapted_since));
    return json;
}

void services_page_write(struct page *page, const struct admin_report *report) {
    json_t *array = json_array();
    for (size_t i = 0; i < report->icap_service_count; i++)
        json_array_append_new(array, service_to_json(&report->icap_services[i], report->now));
    page_json(page, 200, json_pack("{s:o}", "services", array));
}

bool services_page_bump(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request) {
    const char *name = page_argument(request, "name");
    bool kept = true;
    if (strcmp(request->path, "/services/bump") != 0)
        return false;
    if (strcmp(request->method, "POST") != 0) {
        page->allow = "POST";
        page_error(page, 405, "this page changes something: use POST");
    } else if (name == NULL) {
        page_error(page, 400, "the argument name= is missing: it is the name of a service");
    } else if (calls->bump == NULL || !calls->bump(calls->context, name, &kept)) {
        page_error(page, 404, "there is no icap_service with this name; see /services");
    } else {
        log_info("icap service %s: all its results were marked outdated through the admin plane",
                 name);
        if (kept)
            page_json(page, 200, json_pack("{s:s}", "bumped", name));
        else
            page_not_kept(page);
    }
    return true;
}

static void print_times(FILE *out, const char *service, const char *name,
                        const struct adapter_times *times) {
    uint64_t passed = 0;
    for (unsigned i = 0; i + 1 < ADAPTER_TIMES; i++) {
        passed += times->below[i];
        fprintf(out, "retort_icap_service_%s_bucket{service=\"%s\",le=\"%g\"} %lu\n", name, service,
                (double)((uint64_t)ADAPTER_TIMES_FIRST << i) / 1e6, (unsigned long)passed);
    }
    fprintf(out,
            "retort_icap_service_%s_bucket{service=\"%s\",le=\"+Inf\"} %lu\n"
            "retort_icap_service_%s_sum{service=\"%s\"} %.6f\n"
            "retort_icap_service_%s_count{service=\"%s\"} %lu\n",
            name, service, (unsigned long)times->count, name, service, (double)times->sum / 1e6,
            name, service, (unsigned long)times->count);
}

void services_page_print_metrics(FILE *out, const struct admin_report *report) {
    const struct admin_icap_service *services = report->icap_services;
    if (report->icap_service_count == 0)
        return;
    for (const struct adapter_account_description *d = adapter_account_numbers; d->name != NULL;
         d++) {
        fprintf(out,
                "# HELP retort_icap_service_%s_total %s\n"
                "# TYPE retort_icap_service_%s_total counter\n",
                d->name, d->help, d->name);
        for (size_t i = 0; i < report->icap_service_count; i++)
            fprintf(out, "retort_icap_service_%s_total{service=\"%s\"} %lu\n", d->name,
                    services[i].name,
                    (unsigned long)services_page_number_of(&services[i].account, d));
    }
    for (const struct adapter_account_description *d = adapter_account_times; d->name != NULL;
         d++) {
        fprintf(out,
                "# HELP retort_icap_service_%s %s\n"
                "# TYPE retort_icap_service_%s histogram\n",
                d->name, d->help, d->name);
        for (size_t i = 0; i < report->icap_service_count; i++)
            print_times(out, services[i].name, d->name, times_of(&services[i].account, d));
    }
}
