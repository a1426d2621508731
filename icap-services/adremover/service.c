/*
 * adremover: requests for advertisements are rewritten to ask for one blank image, which the proxy
 * itself serves. The page stays as it is, and all replaced advertisements are one cached object.
 *
 * The URL is made of the request line and the Host field, so that it works for explicit proxies,
 * for reverse proxies and for intercepted traffic. Only GET and HEAD are rewritten.
 */
#include "service/service.h"
#include "adremover/filter.h"
#include "adremover/request_kind.h"
#include "base/assert.h"
#include "http/url.h"

#include <stdarg.h>
#include <stdio.h>

enum adremover_counter { ADREMOVER_REPLACED, ADREMOVER_EXCEPTIONS, ADREMOVER_UNDECIDED };

struct adremover_settings {
    struct service_list lists, rules;
    char *blank;
};

struct adremover {
    unsigned magic;
#define ADREMOVER_MAGIC 0x6164726du
    struct filter *filter;
    struct slice blank_url, blank_authority, blank_path;
};

/* One is enough: an exchange of this service has no state, only its verdict. */
static unsigned replaced_exchange;

static const struct service_option adremover_options[] = {
    {"List", SERVICE_OPTION_LIST, offsetof(struct adremover_settings, lists), NULL, 0, 0, NULL,
     "file of rules in EasyList's language, or a hosts file; several may be given"},
    {"Rule", SERVICE_OPTION_LIST, offsetof(struct adremover_settings, rules), NULL, 0, 0, NULL,
     "one rule; several may be given"},
    {"Blank", SERVICE_OPTION_TEXT, offsetof(struct adremover_settings, blank),
     "http://retort.internal/blank.gif", 0, 0, NULL, "what is asked for in place of an ad"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static const char *const adremover_counters[] = {"REPLACED", "EXCEPTIONS", "UNDECIDED", NULL};

/* ---- start -------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void
report(const struct service_host *host, enum log_level level, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    host->log(level, line);
}

static bool set_blank(struct adremover *adremover, const char *text, char *error,
                      size_t error_size) {
    struct url url;
    struct slice blank = slice_from(text);
    if (!url_parse(&url, blank)) {
        snprintf(error, error_size,
                 "Blank wants a URL such as http://retort.internal/blank.gif, "
                 "not \"%s\"",
                 text);
        return false;
    }
    const char *authority = strstr(text, "://") + 3;
    adremover->blank_url = blank;
    adremover->blank_path = url.path_query.length > 0 ? url.path_query : SLICE("/");
    adremover->blank_authority = slice_make(authority, strcspn(authority, "/?#"));
    return true;
}

static void load(struct adremover *adremover, const struct adremover_settings *settings,
                 const struct service_host *host) {
    char error[300];
    for (unsigned i = 0; i < settings->lists.count; i++)
        if (!filter_load(adremover->filter, settings->lists.items[i], error, sizeof error))
            report(host, LOG_LEVEL_ERROR, "list %s; going on without it", error);
    for (unsigned i = 0; i < settings->rules.count; i++)
        filter_add(adremover->filter, slice_from(settings->rules.items[i]), "Rule");
    filter_seal(adremover->filter);
    const struct filter_counts *counts = filter_counts(adremover->filter);
    report(host, LOG_LEVEL_INFO,
           "%u rules (%u hosts, %u exceptions); %u of kinds that are not supported and %u bad ones "
           "passed over%s%s",
           counts->rules, counts->hosts, counts->exceptions, counts->unsupported, counts->bad,
           counts->bad > 0 ? ", the first at " : "", counts->first_bad);
}

static void *adremover_start(const void *settings_pointer, struct service_host *host, char *error,
                             size_t error_size) {
    const struct adremover_settings *settings = settings_pointer;
    struct adremover *adremover;
    ALLOC_OBJ(adremover, ADREMOVER_MAGIC);
    if (!set_blank(adremover, settings->blank, error, error_size)) {
        FREE_OBJ(adremover);
        return NULL;
    }
    adremover->filter = filter_create();
    load(adremover, settings, host);
    uint64_t contents = filter_fingerprint(adremover->filter);
    host->fingerprint = service_fingerprint(host->fingerprint, &contents, sizeof contents);
    return adremover;
}

static void adremover_stop(void *service) {
    struct adremover *adremover;
    CAST_OBJ(adremover, service, ADREMOVER_MAGIC);
    filter_free(&adremover->filter);
    FREE_OBJ(adremover);
}

/* ---- requests ----------------------------------------------------------------------------- */

static bool is_absolute(struct slice target) {
    return target.length > 0 && target.base[0] != '/' && target.base[0] != '*';
}

static struct slice full_url(const struct service_exchange *exchange) {
    const struct http_head *head = exchange->head;
    if (is_absolute(head->target))
        return head->target;
    return arena_printf(exchange->arena, "http://%.*s%.*s",
                        SLICE_PRINT(http_head_value(head, HTTP_HOST)), SLICE_PRINT(head->target));
}

/* So that the request can be answered from the cache, for anybody. */
static void drop_what_hinders_caching(struct http_head *head) {
    static const enum http_name names[] = {
        HTTP_COOKIE,   HTTP_AUTHORIZATION,     HTTP_RANGE,
        HTTP_IF_RANGE, HTTP_IF_MATCH,          HTTP_IF_NONE_MATCH,
        HTTP_REFERER,  HTTP_IF_MODIFIED_SINCE, HTTP_IF_UNMODIFIED_SINCE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        http_head_remove(head, names[i]);
}

static void rewrite(const struct adremover *adremover, struct service_exchange *exchange) {
    struct http_head *head = exchange->head;
    head->target = is_absolute(head->target) ? adremover->blank_url : adremover->blank_path;
    http_head_set(head, HTTP_HOST, adremover->blank_authority);
    drop_what_hinders_caching(head);
    exchange->keeps_body = true;
    exchange->host->count(ADREMOVER_REPLACED);
}

static void *adremover_begin(void *service, struct service_exchange *exchange) {
    struct adremover *adremover;
    struct filter_request request;
    struct url url;
    CAST_OBJ(adremover, service, ADREMOVER_MAGIC);
    const struct http_head *head = exchange->head;
    if (head->method_id != HTTP_METHOD_GET && head->method_id != HTTP_METHOD_HEAD)
        return NULL;
    struct slice text = full_url(exchange);
    if (slice_equal(text, adremover->blank_url) || !url_parse(&url, text) ||
        !filter_request_init(&request, text, request_kind_page(head),
                             request_kind_types(head, url.path_query)))
        return NULL;
    switch (filter_match(adremover->filter, &request)) {
    case FILTER_BLOCK: rewrite(adremover, exchange); return &replaced_exchange;
    case FILTER_EXCEPTION: exchange->host->count(ADREMOVER_EXCEPTIONS); break;
    case FILTER_UNDECIDED: exchange->host->count(ADREMOVER_UNDECIDED); break;
    case FILTER_PASS: break;
    }
    return NULL;
}

static enum service_verdict adremover_preview(void *state, struct slice body, bool complete) {
    ASSERT(state == &replaced_exchange);
    (void)body;
    (void)complete;
    return SERVICE_ADAPT;
}

static void adremover_end(void *state) {
    ASSERT(state == &replaced_exchange);
}

const struct service_ops service_implementation = {
    .version = SERVICE_VERSION,
    .name = "adremover",
    .description = "Retort ad remover",
    .points = SERVICE_REQUEST,
    .settings_size = sizeof(struct adremover_settings),
    .options = adremover_options,
    .counters = adremover_counters,
    .start = adremover_start,
    .stop = adremover_stop,
    .begin = adremover_begin,
    .preview = adremover_preview,
    .end = adremover_end,
};
