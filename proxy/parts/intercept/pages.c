#include "admin/metric_text.h"
#include "admin/page.h"
#include "admin/part_pages.h"
#include "admin/trust_page.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/plural.h"
#include "intercept/intercept.h"
#include "tls/authority.h"

#include <time.h>

/* The part intercept in the admin plane. */

static void intercept_print_sizes(FILE *out, void *state) {
    const struct interception *interception = state;
    struct leaf_cache_statistics leaves;
    leaf_cache_statistics(interception->leaves, &leaves);
    metric_text_number(out, "intercept_leaves", COUNTER_GAUGE,
                       "Certificates for intercepted connections that are in memory.",
                       (double)leaves.count);
    metric_text_number(out, "intercept_leaves_found", COUNTER_TOTAL,
                       "Intercepted connections whose certificate was in memory.",
                       (double)leaves.found);
    metric_text_number(out, "intercept_leaves_minted", COUNTER_TOTAL,
                       "Certificates that were made for intercepted connections.",
                       (double)leaves.minted);
    metric_text_number(
        out, "intercept_leaves_evicted", COUNTER_TOTAL,
        "Certificates that were removed because interception.leaf_cache was reached.",
        (double)leaves.evicted);
    metric_text_number(
        out, "intercept_leaves_failed", COUNTER_TOTAL,
        "Certificates that could not be made, because the name is no host name or the "
        "authority has expired.",
        (double)leaves.failed);
    metric_text_number(
        out, "intercept_identities", COUNTER_GAUGE,
        "Servers of intercepted connections that are remembered as verified or failed.",
        (double)server_identities_count(interception->identities));
    metric_text_number(
        out, "intercept_identities_evicted", COUNTER_TOTAL,
        "Servers that were forgotten because interception.identity_entries was reached.",
        (double)server_identities_evicted(interception->identities));
}

static void intercept_see_trust(const struct trust_rows *rows, const struct settings *settings) {
    struct validity validity = VALIDITY_OF_NOTHING;
    const struct interception_settings *mine = interception_settings_of(settings);
    if (mine->authority == NULL)
        return;
    validity_add_certificate(&validity, mine->authority->certificate);
    validity_add_certificates(&validity, mine->authority->chain);
    trust_see(rows, "authority", "authority", mine->authority_certificate, &validity);
}

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

static void show_refusals(struct page *page, const struct admin_calls *calls,
                          const struct interception *interception) {
    struct settings *settings = calls->settings(calls->context);
    const struct interception_settings *options = interception_settings_of(settings);
    json_t *json = json_pack(
        "{s:o, s:o}", "refusals", list_all(interception->refusals, options, options->refusals),
        "asking",
        list_all(interception->asks_clients, options, options->client_certificates ? 1 : 0));
    settings_release(&settings);
    page_json(page, 200, json);
}

static void clear_refusals(struct page *page, const struct page_request *request,
                           const struct interception *interception) {
    struct slice client = slice_from(page_argument(request, "client"));
    struct slice host = slice_from(page_argument(request, "host"));
    unsigned cleared = refusals_clear(interception->refusals, client, host);
    if (client.length == 0)
        cleared += refusals_clear(interception->asks_clients, client, host);
    log_info("%u %s of interception cleared through the admin plane", cleared,
             plural(cleared, "refusal", "refusals"));
    page_json(page, 200, json_pack("{s:i}", "cleared", (int)cleared));
}

/*     GET  /intercept                        {"refusals": [...], "asking": [...]}
 *     POST /intercept/clear?client=&host=    {"cleared": N}; without arguments: all of them
 *
 * "refusals" are clients that refused our certificate for a server; "asking" are servers that ask
 * for client certificates. */
static void intercept_make_page(struct page *page, const struct admin_calls *calls,
                                const struct page_request *request) {
    const struct interception *interception = calls->parts[PART_INTERCEPT];
    if (strcmp(request->path, "/intercept") == 0)
        show_refusals(page, calls, interception);
    else
        clear_refusals(page, request, interception);
}

const struct part_pages intercept_pages = {
    .answer = intercept_make_page,
    .print_sizes = intercept_print_sizes,
    .see_trust = intercept_see_trust,
};
