/*
 * adremover: answers requests for advertisements with something neutral of the same kind. The page
 * stays as it is. The service has two ways. It rewrites the request, so that it asks for one object
 * that all advertisements of a kind share; the proxy itself serves this object. Or it answers the
 * request at once, which needs nothing of the proxy. It also takes parameters for tracking off
 * URLs, if the lists name them.
 *
 * The URL is made of the request line and the Host field, so that the service works with explicit
 * proxies, reverse proxies and intercepted traffic. Only GET and HEAD can be rewritten.
 */
#include "service/service.h"
#include "adremover/filter.h"
#include "adremover/replacement.h"
#include "adremover/request.h"
#include "adremover/skipped.h"
#include "base/assert.h"
#include "build.h"
#include "service/arguments.h"

#include <stdio.h>

enum adremover_counter {
    ADREMOVER_REPLACED,
    ADREMOVER_EXCEPTIONS,
    ADREMOVER_UNDECIDED,
    ADREMOVER_STRIPPED
};

enum adremover_way { ADREMOVER_REWRITE, ADREMOVER_ANSWER };

struct adremover_settings {
    struct service_list lists, rules;
    char *blank, *neutral, *picture;
    uint64_t way;
    uint64_t remember; /* milliseconds */
};

/* A URL to ask for, with the parts that go into a request line and into Host. */
struct place {
    struct slice url, authority, path;
};

struct adremover {
    unsigned magic;
#define ADREMOVER_MAGIC 0x6164726du
    struct filter *filter;
    struct place blank, neutral; /* `neutral` ends with "/" */
    enum adremover_way way;
    uint64_t lifetime; /* seconds */
    bool incomplete;   /* a list could not be read */
    struct own_picture picture;
};

/* One exchange in which something is changed. */
struct adremover_exchange {
    unsigned magic;
#define ADREMOVER_EXCHANGE_MAGIC 0x61647278u
    struct slice left; /* of the answer's body */
};

static const struct service_option adremover_options[] = {
    {"List", SERVICE_OPTION_LIST, offsetof(struct adremover_settings, lists), NULL, 0, 0, NULL,
     "A file of rules in EasyList's syntax, a hosts file, or a directory of such files. The option "
     "may be given several times."},
    {"Rule", SERVICE_OPTION_LIST, offsetof(struct adremover_settings, rules), NULL, 0, 0, NULL,
     "One rule. The option may be given several times."},
    {"Target", SERVICE_OPTION_CHOICE, offsetof(struct adremover_settings, way), "rewrite", 0, 0,
     "rewrite|answer",
     "rewrite: the request is changed to a neutral URL. answer: the service answers the request "
     "itself."},
    {"Blank", SERVICE_OPTION_TEXT, offsetof(struct adremover_settings, blank),
     "http://retort.internal/blank.gif", 0, 0, NULL,
     "The URL that replaces the URL of a picture with Target rewrite."},
    {"Neutral", SERVICE_OPTION_TEXT, offsetof(struct adremover_settings, neutral),
     "http://retort.internal/", 0, 0, NULL,
     "The prefix of URLs for empty.js, empty.css and similar files with Target rewrite."},
    {"Picture", SERVICE_OPTION_TEXT, offsetof(struct adremover_settings, picture), "", 0, 0, NULL,
     "A picture file that replaces pictures with Target answer."},
    {"Remember", SERVICE_OPTION_DURATION, offsetof(struct adremover_settings, remember), "0", 0,
     24 * 60 * 60 * 1000, NULL,
     "How long the proxy may reuse a verdict for equal requests. 0 means that it asks about each "
     "request."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static const char *const adremover_counters[] = {"REPLACED", "EXCEPTIONS", "UNDECIDED", "STRIPPED",
                                                 NULL};

/* ---- start -------------------------------------------------------------------------------- */

static bool adremover_set_place(struct place *place, const char *name, const char *text,
                                bool folder, char *error, size_t error_size) {
    struct url url;
    place->url = slice_from(text);
    bool good = url_parse(&url, place->url) && (!folder || text[place->url.length - 1] == '/');
    if (!good) {
        snprintf(error, error_size, "%s wants a URL such as http://retort.internal/%s, not \"%s\"",
                 name, folder ? "" : "blank.gif", text);
        return false;
    }
    const char *authority = strstr(text, "://") + 3;
    place->path = url.path_query.length > 0 ? url.path_query : SLICE("/");
    place->authority = slice_make(authority, strcspn(authority, "/?#"));
    return true;
}

static void adremover_report(const struct filter_counts *counts, unsigned unread,
                             struct service_host *host) {
    char line[512];
    snprintf(line, sizeof line,
             "%u rules (%u hosts, %u exceptions, %u regular expressions), %u element hiding rules"
             "%s%s",
             counts->rules, counts->hosts, counts->exceptions, counts->regexes, counts->cosmetic,
             counts->bad > 0 ? "; the first bad rule stands at " : "", counts->first_bad);
    service_log(host, LOG_LEVEL_INFO, line);
    skipped_text(counts, unread, host->notice, sizeof host->notice);
    if (host->notice[0] != '\0')
        service_log(host, LOG_LEVEL_INFO, host->notice);
}

static void adremover_load(struct adremover *adremover, const struct adremover_settings *settings,
                           struct service_host *host) {
    char error[300], line[400];
    unsigned unread = 0;
    adremover->filter = filter_create();
    for (unsigned i = 0; i < settings->lists.count; i++) {
        if (filter_load(adremover->filter, settings->lists.items[i], error, sizeof error))
            continue;
        snprintf(line, sizeof line, "list %s; going on without it", error);
        service_log(host, LOG_LEVEL_ERROR, line);
        unread++;
        adremover->incomplete = true;
    }
    for (unsigned i = 0; i < settings->rules.count; i++)
        filter_add(adremover->filter, slice_from(settings->rules.items[i]), "Rule");
    filter_seal(adremover->filter);
    adremover_report(filter_counts(adremover->filter), unread, host);
}

static void mix_contents(const struct adremover *adremover, struct service_host *host) {
    uint64_t contents = filter_fingerprint(adremover->filter);
    struct slice picture = adremover->picture.body;
    host->fingerprint = service_fingerprint(host->fingerprint, &contents, sizeof contents);
    host->fingerprint = service_fingerprint(host->fingerprint, picture.base, picture.length);
}

static void *adremover_start(const void *settings_pointer, struct service_host *host, char *error,
                             size_t error_size) {
    const struct adremover_settings *settings = settings_pointer;
    struct adremover *adremover;
    ALLOC_OBJ(adremover, ADREMOVER_MAGIC);
    adremover->way = (enum adremover_way)settings->way;
    adremover->lifetime = settings->remember / 1000;
    if (!adremover_set_place(&adremover->blank, "Blank", settings->blank, false, error,
                             error_size) ||
        !adremover_set_place(&adremover->neutral, "Neutral", settings->neutral, true, error,
                             error_size) ||
        !own_picture_load(&adremover->picture, settings->picture, error, error_size)) {
        FREE_OBJ(adremover);
        return NULL;
    }
    adremover_load(adremover, settings, host);
    mix_contents(adremover, host);
    return adremover;
}

static void adremover_stop(void *service) {
    struct adremover *adremover;
    CAST_OBJ(adremover, service, ADREMOVER_MAGIC);
    filter_free(&adremover->filter);
    own_picture_release(&adremover->picture);
    FREE_OBJ(adremover);
}

/* ---- the URL ------------------------------------------------------------------------------ */

static bool is_absolute(struct slice target) {
    return target.length > 0 && target.base[0] != '/' && target.base[0] != '*';
}

static struct slice full_url(const struct service_exchange *exchange) {
    const struct http_head *head = exchange->head;
    if (is_absolute(head->target))
        return head->target;
    return arena_concat(exchange->arena, SLICE("http://"), http_head_value(head, HTTP_HOST),
                        head->target);
}

static bool read_request(struct filter_request *request, const struct service_exchange *exchange) {
    const struct http_head *head = exchange->head;
    if (!filter_request_init(request, full_url(exchange)))
        return false;
    request->types = request_kind_types(head, request->parsed.path_query);
    request->method = request_kind_method(head);
    request->party = request_kind_party(head);
    filter_request_set_page(request, request_kind_page(head));
    return true;
}

/* ---- what is done with it ----------------------------------------------------------------- */

/* Removes the fields that would keep the request from being answered from the cache. */
static void drop_what_hinders_caching(struct http_head *head) {
    static const enum http_name names[] = {
        HTTP_COOKIE,   HTTP_AUTHORIZATION,     HTTP_RANGE,
        HTTP_IF_RANGE, HTTP_IF_MATCH,          HTTP_IF_NONE_MATCH,
        HTTP_REFERER,  HTTP_IF_MODIFIED_SINCE, HTTP_IF_UNMODIFIED_SINCE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        http_head_remove(head, names[i]);
}

static void adremover_rewrite(const struct adremover *adremover, struct service_exchange *exchange,
                              const struct neutral *neutral, bool named) {
    struct http_head *head = exchange->head;
    bool blank = replacement_is_picture(neutral) && !named;
    const struct place *place = blank ? &adremover->blank : &adremover->neutral;
    struct slice target = is_absolute(head->target) ? place->url : place->path;
    head->target = blank ? target : arena_concat(exchange->arena, target, neutral->name);
    http_head_set(head, HTTP_HOST, place->authority);
    drop_what_hinders_caching(head);
    exchange->keeps_body = true;
}

/* Answers at once; no other server is asked. The answer depends on the lists of this moment, so it
 * may not be stored. */
static void adremover_answer(const struct adremover *adremover, struct service_exchange *exchange,
                             struct slice type, struct slice body,
                             struct adremover_exchange *state) {
    struct http_head *head = arena_alloc(exchange->arena, sizeof *head);
    bool is_head = exchange->head->method_id == HTTP_METHOD_HEAD;
    http_head_init(head);
    head->version = 11;
    head->status = 200;
    head->reason = SLICE("OK");
    http_head_add(head, SLICE("Content-Type"), type);
    http_head_add(head, SLICE("Content-Length"), arena_printf(exchange->arena, "%zu", body.length));
    http_head_add(head, SLICE("Cache-Control"), SLICE("no-store"));
    exchange->answer = head;
    exchange->body_length = is_head ? 0 : body.length;
    state->left = is_head ? SLICE("") : body;
}

static struct adremover_exchange *adremover_changed(struct service_exchange *exchange) {
    struct adremover_exchange *state = arena_alloc(exchange->arena, sizeof *state);
    INIT_OBJ(state, ADREMOVER_EXCHANGE_MAGIC);
    return state;
}

static bool only_asks(enum http_method method) {
    return method == HTTP_METHOD_GET || method == HTTP_METHOD_HEAD;
}

/* The way to answer: that of the URI by which the client calls the service, or that of the
 * settings. A request with a body can't become a request for something else. */
static enum adremover_way way_of(const struct adremover *adremover,
                                 const struct service_exchange *exchange) {
    struct slice target;
    if (!only_asks(exchange->head->method_id))
        return ADREMOVER_ANSWER;
    if (!service_argument(exchange->arguments, SLICE("target"), &target))
        return adremover->way;
    return slice_equal_nocase(target, SLICE("answer")) ? ADREMOVER_ANSWER : ADREMOVER_REWRITE;
}

static void *replace(const struct adremover *adremover, struct service_exchange *exchange,
                     const struct filter_request *request, const struct filter_answer *verdict) {
    struct adremover_exchange *state = adremover_changed(exchange);
    const struct neutral *neutral = replacement_of(request->types, verdict->resource);
    bool named = verdict->resource.length > 0 && neutral_find(verdict->resource) != NULL;
    const struct own_picture *picture = &adremover->picture;
    service_count(exchange->host, ADREMOVER_REPLACED);
    if (way_of(adremover, exchange) == ADREMOVER_REWRITE)
        adremover_rewrite(adremover, exchange, neutral, named);
    else if (picture->body.length > 0 && replacement_is_picture(neutral) && !named)
        adremover_answer(adremover, exchange, picture->type, picture->body, state);
    else
        adremover_answer(adremover, exchange, neutral->type, neutral->body, state);
    return state;
}

static void *adremover_strip(const struct adremover *adremover, struct service_exchange *exchange,
                             struct filter_request *request) {
    struct slice url = request->url, rule;
    if (memchr(url.base, '?', url.length) == NULL)
        return NULL;
    char *out = arena_alloc(exchange->arena, url.length);
    size_t length = filter_strip(adremover->filter, request, out, url.length, &rule);
    if (length == 0)
        return NULL;
    size_t path = (size_t)(request->parsed.path_query.base - url.base);
    bool absolute = is_absolute(exchange->head->target);
    /* In "http://host?x" no path is left. */
    exchange->head->target = absolute         ? slice_make(out, length)
                             : path == length ? SLICE("/")
                                              : slice_make(out + path, length - path);
    exchange->keeps_body = true;
    service_count(exchange->host, ADREMOVER_STRIPPED);
    return adremover_changed(exchange);
}

/* ---- the service's calls ------------------------------------------------------------------ */

static void *adremover_begin(void *service, struct service_exchange *exchange) {
    struct adremover *adremover;
    struct filter_request request;
    struct filter_answer verdict;
    CAST_OBJ(adremover, service, ADREMOVER_MAGIC);
    enum http_method method = exchange->head->method_id;
    if (method == HTTP_METHOD_CONNECT || method == HTTP_METHOD_TRACE)
        return NULL;
    if (!read_request(&request, exchange) || slice_equal(request.url, adremover->blank.url) ||
        slice_starts_with(request.url, adremover->neutral.url))
        return NULL;
    if (adremover->incomplete)
        service_failed(exchange, "lists");
    else if (only_asks(method)) /* by URL and head alone; the ISTag tells of new lists */
        exchange->lifetime = adremover->lifetime;
    switch (filter_match(adremover->filter, &request, &verdict)) {
    case FILTER_BLOCK: return replace(adremover, exchange, &request, &verdict);
    case FILTER_EXCEPTION: service_count(exchange->host, ADREMOVER_EXCEPTIONS); break;
    case FILTER_UNDECIDED: service_count(exchange->host, ADREMOVER_UNDECIDED); break;
    case FILTER_PASS: break;
    }
    return only_asks(method) ? adremover_strip(adremover, exchange, &request) : NULL;
}

static enum service_verdict adremover_preview(void *state, struct slice body, bool complete) {
    struct adremover_exchange *exchange;
    CAST_OBJ(exchange, state, ADREMOVER_EXCHANGE_MAGIC);
    (void)body;
    (void)complete;
    return SERVICE_ADAPT;
}

static enum service_flow adremover_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct adremover_exchange *exchange;
    CAST_OBJ(exchange, state, ADREMOVER_EXCHANGE_MAGIC);
    *got = exchange->left.length < capacity ? exchange->left.length : capacity;
    memcpy(out, exchange->left.base, *got);
    exchange->left.base += *got;
    exchange->left.length -= *got;
    return exchange->left.length == 0 ? SERVICE_DONE : SERVICE_FLOW;
}

static void adremover_end(void *state) {
    struct adremover_exchange *exchange;
    CAST_OBJ(exchange, state, ADREMOVER_EXCHANGE_MAGIC);
}

SERVICE_DEFINE(adremover) = {
    .version = SERVICE_VERSION,
    .name = "adremover",
    .description = "Retort ad remover",
    .build = SERVICES_BUILD,
    .points = SERVICE_REQUEST,
    .settings_size = sizeof(struct adremover_settings),
    .options = adremover_options,
    .counters = adremover_counters,
    .start = adremover_start,
    .stop = adremover_stop,
    .begin = adremover_begin,
    .preview = adremover_preview,
    .pull = adremover_pull,
    .end = adremover_end,
};
