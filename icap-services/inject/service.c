/*
 * inject: inserts a text into each HTML page, at the end of its head or where else it is wanted.
 * What text, a helper process says, by the client's address; it is asked as soon as the response's
 * head is known, and the page is passed on while its answer is under way. If the place is reached
 * first, the page waits there up to a deadline, and then goes on without the text.
 *
 * Since the text is for one client, the response says so to caches (Cache-Control: private), unless
 * the operator has set Scope to shared.
 */
#include "base/assert.h"
#include "base/spool.h"
#include "inject/policy.h"
#include "inject/scanner.h"
#include "inject/text_cache.h"
#include "service/adapted_head.h"
#include "service/arguments.h"
#include "service/helper_client.h"
#include "service/url_pattern.h"

#include <poll.h>
#include <stdio.h>
#include <strings.h>

enum inject_scope { INJECT_SCOPE_CLIENT, INJECT_SCOPE_SHARED };
enum inject_csp { INJECT_CSP_REFUSE, INJECT_CSP_NONCE, INJECT_CSP_INSERT };
enum inject_counter {
    INJECT_INSERTED,
    INJECT_NO_PLACE,
    INJECT_LATE,
    INJECT_HELPER_FAILED,
    INJECT_POLICY,
};

struct inject_settings {
    char *helperd, *pool;
    uint64_t deadline, scan_limit, scope, position, cache_ttl, csp;
    bool send_url;
    struct service_list types;
};

struct inject_service {
    unsigned magic;
#define INJECT_SERVICE_MAGIC 0x696e5376u
    const struct inject_settings *settings;
    struct text_cache *cache;
};

/* How far the page has got. */
enum inject_stage {
    INJECT_SCANNING,
    INJECT_WAITING,   /* at the place, without the text */
    INJECT_INSERTING, /* the text goes out */
    INJECT_DRAINING,  /* what was buffered behind the place goes out, then no further interest */
};

struct inject_exchange {
    unsigned magic;
#define INJECT_EXCHANGE_MAGIC 0x696e6a65u
    const struct inject_settings *settings;
    struct text_cache *cache;
    struct service_exchange *exchange;
    uint64_t cache_ttl, csp;
    bool send_url;
    struct slice about;     /* what the helper is asked */
    struct helper_job *job; /* NULL: the answer was in the cache */
    struct slice answer;    /* in the exchange's arena or the job */
    enum policy_verdict policy;
    struct slice nonce;
    struct scanner scanner;
    enum inject_stage stage;
    struct spool body; /* bytes of the page not given out yet */
    uint64_t scanned;
    size_t until_place; /* of the bytes in `body`, once the place is known */
    struct spool text;
    bool finished;
};

enum { INJECT_BUFFER = 64 * 1024 };

static const struct service_option inject_options[] = {
    {"Helperd", SERVICE_OPTION_TEXT, offsetof(struct inject_settings, helperd),
     "/run/retort/helperd.sock", 0, 0, NULL, "socket of retort-helperd"},
    {"Pool", SERVICE_OPTION_TEXT, offsetof(struct inject_settings, pool), "text", 0, 0, NULL,
     "its pool that answers"},
    {"Deadline", SERVICE_OPTION_DURATION, offsetof(struct inject_settings, deadline), "2s", 1,
     600000, NULL, "how long a page may wait for its text"},
    {"Scope", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, scope), "client", 0, 0,
     "client|shared", "client: the text is for one client and caches must not share the page"},
    {"Position", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, position), "head-end", 0,
     0, "head-end|body-start|body-end", "where the text goes"},
    {"CacheTtl", SERVICE_OPTION_DURATION, offsetof(struct inject_settings, cache_ttl), "0", 0,
     86400000, NULL, "how long an answer of the helper is used again; 0: not at all"},
    {"SendUrl", SERVICE_OPTION_SWITCH, offsetof(struct inject_settings, send_url), "off", 0, 0,
     NULL, "the helper is told the page's URL, and answers are for that page"},
    {"Csp", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, csp), "refuse", 0, 0,
     "refuse|nonce|insert",
     "a text with scripts or styles, in a page whose policy forbids them: leave it out, insert it "
     "with the page's nonce in place of %{nonce}, insert it all the same"},
    {"ScanLimit", SERVICE_OPTION_SIZE, offsetof(struct inject_settings, scan_limit), "1M", 1024,
     UINT64_C(1) << 40, NULL, "how far into a page the end of its head is looked for"},
    {"Type", SERVICE_OPTION_LIST, offsetof(struct inject_settings, types),
     "text/html application/xhtml+xml", 0, 0, NULL, "content types that are pages"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static const char *const inject_counters[] = {"INSERTED",      "NO PLACE FOUND", "HELPER TOO LATE",
                                              "HELPER FAILED", "POLICY FORBIDS", NULL};

static void *inject_start(const void *settings, struct service_host *host, char *error,
                          size_t error_size) {
    struct inject_service *service;
    (void)host;
    (void)error;
    (void)error_size;
    ALLOC_OBJ(service, INJECT_SERVICE_MAGIC);
    service->settings = settings;
    service->cache = text_cache_create();
    return service;
}

static void inject_stop(void *state) {
    struct inject_service *service;
    CAST_OBJ(service, state, INJECT_SERVICE_MAGIC);
    text_cache_free(&service->cache);
    FREE_OBJ(service);
}

/* In UTF-16 and UTF-32 the tags are not these bytes. */
static bool is_ascii_based(struct slice content_type) {
    for (size_t i = 0; i + 4 < content_type.length; i++) {
        struct slice rest = slice_make(content_type.base + i, content_type.length - i);
        if (slice_starts_with_nocase(rest, SLICE("utf-16")) ||
            slice_starts_with_nocase(rest, SLICE("utf-32")))
            return false;
    }
    return true;
}

static void watch_job(struct inject_exchange *inject) {
    service_wait_none(inject->exchange);
    if (inject->job != NULL && !helper_job_finished(inject->job))
        inject->exchange->wait =
            (struct service_wait){.fd = helper_job_fd(inject->job),
                                  .events = POLLIN,
                                  .deadline = helper_job_deadline(inject->job)};
}

static uint64_t choice_argument(struct slice arguments, const char *name, uint64_t otherwise) {
    const struct service_option *option = inject_options;
    struct slice text;
    char error[200];
    uint64_t choices[sizeof(struct inject_settings) / sizeof(uint64_t) + 1];
    while (strcasecmp(option->name, name) != 0)
        option++;
    if (!service_argument(arguments, slice_from(name), &text) ||
        !service_option_set(option, choices, text, error, sizeof error))
        return otherwise;
    return choices[option->offset / sizeof(uint64_t)];
}

/* What the URI says comes before the settings. */
static void read_arguments(struct inject_exchange *inject) {
    struct slice arguments = inject->exchange->arguments, value;
    const struct inject_settings *settings = inject->settings;
    uint64_t place = choice_argument(arguments, "position", settings->position);
    inject->csp = choice_argument(arguments, "csp", settings->csp);
    inject->send_url = settings->send_url || service_argument(arguments, SLICE("url"), &value);
    inject->cache_ttl = settings->cache_ttl;
    if (service_argument(arguments, SLICE("ttl"), &value))
        service_option_duration(value, &inject->cache_ttl);
    scanner_init(&inject->scanner, (enum scanner_place)place);
}

static void *inject_begin(void *service, struct service_exchange *exchange) {
    struct inject_service *owner;
    CAST_OBJ(owner, service, INJECT_SERVICE_MAGIC);
    const struct inject_settings *settings = owner->settings;
    if (!adapted_head_allowed(exchange) || !adapted_head_is_identity(exchange->head) ||
        !media_type_listed(media_type_of(exchange->head), &settings->types) ||
        !is_ascii_based(http_head_value(exchange->head, HTTP_CONTENT_TYPE)))
        return NULL;
    struct inject_exchange *inject;
    ALLOC_OBJ(inject, INJECT_EXCHANGE_MAGIC);
    inject->settings = settings;
    inject->cache = owner->cache;
    inject->exchange = exchange;
    inject->policy = policy_of(exchange->head, &inject->nonce);
    read_arguments(inject);
    spool_init(&inject->body);
    spool_init(&inject->text);
    return inject;
}

static void make_private(struct service_exchange *exchange) {
    struct http_head *head = exchange->head;
    struct slice merged = SLICE("private");
    const struct http_field *field = http_head_find(head, HTTP_CACHE_CONTROL);
    for (; field != NULL; field = http_head_find_next(head, HTTP_CACHE_CONTROL, field)) {
        struct slice rest = field->value, directive;
        while (slice_next_element(&rest, &directive)) {
            if (slice_equal_nocase(directive, SLICE("public")) ||
                slice_equal_nocase(directive, SLICE("private")) ||
                slice_starts_with_nocase(directive, SLICE("s-maxage")))
                continue;
            merged = arena_printf(exchange->arena, "%.*s, %.*s", SLICE_PRINT(merged),
                                  SLICE_PRINT(directive));
        }
    }
    http_head_remove(head, HTTP_CACHE_CONTROL);
    http_head_add(head, SLICE("Cache-Control"), merged);
}

static void count(struct inject_exchange *inject, enum inject_counter counter) {
    inject->exchange->host->count(counter);
}

/* The job has finished without a text to insert. */
static void report_helper(struct inject_exchange *inject) {
    char line[240];
    enum helper_status status = helper_job_status(inject->job);
    if (status == HELPER_UNCHANGED)
        return;
    count(inject, status == HELPER_TIMEOUT ? INJECT_LATE : INJECT_HELPER_FAILED);
    inject->exchange->failed = true;
    snprintf(line, sizeof line, "a page goes without its text: %s", helper_job_error(inject->job));
    inject->exchange->host->log(LOG_LEVEL_WARN, line);
}

/* The address, and the URL and the name on lines of their own. */
static struct slice about(const struct inject_exchange *inject) {
    const struct service_exchange *exchange = inject->exchange;
    struct slice url = SLICE("");
    if (inject->send_url)
        url = exchange_url(exchange);
    if (url.length == 0 && exchange->client_user.length == 0)
        return exchange->client_ip;
    return arena_concat(exchange->arena, exchange->client_ip, SLICE("\n"), url, SLICE("\n"),
                        exchange->client_user);
}

static bool find_in_cache(struct inject_exchange *inject) {
    char room[TEXT_CACHE_TEXT_MAX];
    size_t length;
    if (inject->cache_ttl == 0 ||
        !text_cache_find(inject->cache, inject->about, service_now(), room, &length))
        return false;
    inject->answer = arena_slice(inject->exchange->arena, slice_make(room, length));
    return true;
}

static void ask_helper(struct inject_exchange *inject) {
    const struct inject_settings *settings = inject->settings;
    struct helper_request request = {.socket = settings->helperd,
                                     .pool = slice_from(settings->pool),
                                     .parameters = inject->about,
                                     .body = -1,
                                     .milliseconds = (uint32_t)settings->deadline};
    inject->job = helper_job_start(&request);
}

/* The helper has answered, with a text or without: both are worth keeping. */
static bool take_answer(struct inject_exchange *inject) {
    enum helper_status status = helper_job_status(inject->job);
    if (status != HELPER_DONE && status != HELPER_UNCHANGED) {
        report_helper(inject);
        return false;
    }
    inject->answer = helper_job_parameters(inject->job);
    if (inject->cache_ttl > 0)
        text_cache_store(inject->cache, inject->about, inject->answer,
                         service_now() + (int64_t)inject->cache_ttl);
    return inject->answer.length > 0;
}

/* May the text go into a page with this policy? */
static bool policy_allows(const struct inject_exchange *inject) {
    static const char placeholder[] = "%{nonce}";
    if (inject->policy == POLICY_FREE || inject->csp == INJECT_CSP_INSERT ||
        !policy_concerns(inject->answer))
        return true;
    return inject->csp == INJECT_CSP_NONCE && inject->policy == POLICY_NONCE &&
           memmem(inject->answer.base, inject->answer.length, placeholder,
                  sizeof placeholder - 1) != NULL;
}

/* The answer becomes the text, with the page's nonce in its places. */
static void fill_text(struct inject_exchange *inject) {
    const struct slice placeholder = SLICE("%{nonce}");
    struct slice rest = inject->answer;
    while (rest.length > 0) {
        const char *place = memmem(rest.base, rest.length, placeholder.base, placeholder.length);
        size_t length = place == NULL ? rest.length : (size_t)(place - rest.base);
        spool_append(&inject->text, rest.base, length);
        if (place != NULL && inject->nonce.length > 0)
            spool_append(&inject->text, inject->nonce.base, inject->nonce.length);
        size_t used = place == NULL ? length : length + placeholder.length;
        rest = slice_make(rest.base + used, rest.length - used);
    }
}

static enum service_verdict inject_preview(void *state, struct slice body, bool complete) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    const struct inject_settings *settings = inject->settings;
    if (complete && body.length == 0)
        return SERVICE_SKIP;
    inject->about = about(inject);
    if (!find_in_cache(inject)) {
        ask_helper(inject);
        if (helper_job_finished(inject->job)) { /* nobody there: the page stays as it is */
            report_helper(inject);
            return SERVICE_SKIP;
        }
        watch_job(inject);
    } else if (inject->answer.length == 0)
        return SERVICE_SKIP;
    if (settings->scope == INJECT_SCOPE_CLIENT)
        make_private(inject->exchange);
    adapted_head_body_changed(inject->exchange);
    return SERVICE_ADAPT;
}

/* The place was not found: the rest is none of our business. */
static void give_up_scanning(struct inject_exchange *inject) {
    count(inject, INJECT_NO_PLACE);
    inject->stage = INJECT_DRAINING;
    service_wait_none(inject->exchange);
}

/* The place is reached: go on if the helper has answered. */
static void try_insert(struct inject_exchange *inject) {
    bool has_text = true;
    if (inject->job != NULL) {
        helper_job_run(inject->job);
        watch_job(inject);
        if (!helper_job_finished(inject->job))
            return;
        has_text = take_answer(inject);
    }
    inject->stage = INJECT_DRAINING;
    if (has_text && !policy_allows(inject))
        count(inject, INJECT_POLICY);
    else if (has_text) {
        fill_text(inject);
        inject->stage = INJECT_INSERTING;
        count(inject, INJECT_INSERTED);
    }
}

static size_t inject_push(void *state, struct slice body) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    size_t room = inject->body.length < INJECT_BUFFER ? INJECT_BUFFER - inject->body.length : 0;
    if (inject->stage != INJECT_SCANNING || room == 0)
        return 0;
    struct slice piece = slice_make(body.base, body.length < room ? body.length : room);
    size_t seen = scanner_scan(&inject->scanner, piece);
    if (!spool_append(&inject->body, piece.base, seen)) {
        inject->exchange->failed = true;
        return 0;
    }
    inject->scanned += seen;
    if (inject->scanner.found) {
        inject->until_place = inject->body.length - inject->scanner.pending;
        inject->stage = INJECT_WAITING;
        try_insert(inject);
    } else if (inject->scanned > inject->settings->scan_limit)
        give_up_scanning(inject);
    return seen;
}

static void inject_finish(void *state) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    inject->finished = true;
    if (inject->stage == INJECT_SCANNING)
        give_up_scanning(inject);
}

static void inject_ready(void *state) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    if (inject->job != NULL)
        helper_job_run(inject->job);
    if (inject->stage == INJECT_WAITING)
        try_insert(inject);
    watch_job(inject);
}

static size_t take(struct spool *spool, size_t limit, char **out, size_t *capacity) {
    size_t length = limit < *capacity ? limit : *capacity;
    size_t got = spool_read(spool, *out, length);
    *out += got;
    *capacity -= got;
    return got;
}

static enum service_flow inject_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    size_t room = capacity;
    if (inject->stage == INJECT_SCANNING)
        take(&inject->body, inject->body.length - inject->scanner.pending, &out, &room);
    if (inject->stage == INJECT_WAITING || inject->stage == INJECT_INSERTING)
        inject->until_place -= take(&inject->body, inject->until_place, &out, &room);
    if (inject->stage == INJECT_INSERTING && inject->until_place == 0) {
        take(&inject->text, inject->text.length, &out, &room);
        if (inject->text.length == 0)
            inject->stage = INJECT_DRAINING;
    }
    if (inject->stage == INJECT_DRAINING)
        take(&inject->body, inject->body.length, &out, &room);
    *got = capacity - room;
    if (inject->stage != INJECT_DRAINING || inject->body.length > 0)
        return SERVICE_FLOW;
    return inject->finished ? SERVICE_DONE : SERVICE_PASS;
}

static void inject_end(void *state) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    helper_job_end(&inject->job);
    spool_release(&inject->body);
    spool_release(&inject->text);
    FREE_OBJ(inject);
}

const struct service_ops service_implementation = {
    .version = SERVICE_VERSION,
    .name = "inject",
    .description = "Retort inject",
    .points = SERVICE_RESPONSE,
    .wants_client_ip = true,
    .preview_size = 1024,
    .settings_size = sizeof(struct inject_settings),
    .options = inject_options,
    .counters = inject_counters,
    .start = inject_start,
    .stop = inject_stop,
    .begin = inject_begin,
    .preview = inject_preview,
    .push = inject_push,
    .finish = inject_finish,
    .pull = inject_pull,
    .ready = inject_ready,
    .end = inject_end,
};
