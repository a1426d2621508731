#include "admin/intercept_page.h"

#include "base/clocks.h"
#include "base/log.h"
#include "base/plural.h"
#include "intercept/interception.h"

#include <time.h>

/* What each refusal is compared with. */
struct listing {
    json_t *array;
    unsigned limit; /* refusals after which connections are spliced; 0: never */
    time_t now, lifetime;
};

static void list_refusal(void *arg, const struct refusal_report *report) {
    struct listing *listing = arg;
    time_t age = listing->now - report->last;
    if (age >= listing->lifetime)
        return;
    bool spliced = listing->limit > 0 && report->count >= listing->limit;
    json_array_append_new(listing->array,
                          json_pack("{s:s, s:s, s:i, s:I, s:I, s:b}", "client", report->client,
                                    "host", report->place, "count", (int)report->count, "age",
                                    (json_int_t)age, "left", (json_int_t)(listing->lifetime - age),
                                    "spliced", spliced));
}

static json_t *list_all(struct refusals *refusals, const struct interception_settings *settings,
                        unsigned limit) {
    struct listing listing = {
        .array = json_array(),
        .limit = limit,
        .now = (time_t)(clocks_milliseconds(CLOCK_MONOTONIC_COARSE) / 1000),
        .lifetime = (time_t)(settings->refusal_time / 1000),
    };
    refusals_each(refusals, list_refusal, &listing);
    return listing.array;
}

void intercept_page_make(struct page *page, const struct admin_calls *calls) {
    if (calls->interception == NULL) {
        page_error(page, 404, "there is no interception");
        return;
    }
    struct settings *settings = calls->settings(calls->context);
    const struct interception_settings *options = &settings->interception;
    json_t *json = json_pack(
        "{s:o, s:o}", "refusals",
        list_all(calls->interception->refusals, options, options->refusals), "asking",
        list_all(calls->interception->asks_clients, options, options->client_certificates ? 1 : 0));
    settings_release(&settings);
    page_json(page, 200, json);
}

void intercept_page_clear(struct page *page, const struct admin_calls *calls,
                          const struct page_request *request) {
    if (calls->interception == NULL) {
        page_error(page, 404, "there is no interception");
        return;
    }
    struct slice client = slice_from(page_argument(request, "client"));
    struct slice host = slice_from(page_argument(request, "host"));
    unsigned cleared = refusals_clear(calls->interception->refusals, client, host);
    if (client.length == 0)
        cleared += refusals_clear(calls->interception->asks_clients, client, host);
    log_info("%u %s of interception cleared through the admin plane", cleared,
             plural(cleared, "refusal", "refusals"));
    page_json(page, 200, json_pack("{s:i}", "cleared", (int)cleared));
}
