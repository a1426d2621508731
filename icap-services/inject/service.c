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
#include "inject/page_kind.h"
#include "inject/policies.h"
#include "inject/scanner.h"
#include "inject/tag.h"
#include "inject/text_cache.h"
#include "service/adapted_head.h"
#include "service/arguments.h"
#include "service/helper_client.h"
#include "service/url_pattern.h"

#include <poll.h>
#include <stdio.h>
#include <strings.h>

enum inject_scope { INJECT_SCOPE_CLIENT, INJECT_SCOPE_SHARED };
enum inject_csp { INJECT_CSP_REFUSE, INJECT_CSP_NONCE, INJECT_CSP_HASH, INJECT_CSP_INSERT };
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
    INJECT_WAITING,   /* at the place, or at a policy, without the text */
    INJECT_INSERTING, /* the text goes out, or what stands in place of a policy */
    INJECT_DRAINING,  /* what was buffered behind the place goes out, then no further interest */
};

enum { INJECT_BUFFER = 64 * 1024 };

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
    bool is_taken, is_answered;
    struct slice text; /* the answer with the page's nonce in its places; empty: none is there */
    struct snippet snippet;
    struct policies policies; /* of the head, then of the page */
    struct scanner scanner;
    enum inject_stage stage;
    struct spool body; /* bytes of the page not given out yet */
    uint64_t scanned;
    size_t until_place; /* of the bytes in `body`, once the place is known */
    struct slice meta;  /* the policy at which the page waits; empty: it is at the place */
    size_t replaced;    /* bytes behind the place in whose stead `out` goes */
    struct spool out;
    bool finished;
    bool began;  /* the head is out */
    bool broken; /* and caches would take for whole what comes behind it */
};

static const struct service_option inject_options[] = {
    {"Helperd", SERVICE_OPTION_TEXT, offsetof(struct inject_settings, helperd),
     "/run/retort/helperd.sock", 0, 0, NULL, "The socket of retort-helperd."},
    {"Pool", SERVICE_OPTION_TEXT, offsetof(struct inject_settings, pool), "text", 0, 0, NULL,
     "The pool of retort-helperd that gives the texts."},
    {"Deadline", SERVICE_OPTION_DURATION, offsetof(struct inject_settings, deadline), "2s", 1,
     600000, NULL, "How long a page may wait for its text."},
    {"Scope", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, scope), "client", 0, 0,
     "client|shared",
     "client: the text is for one client, so caches must not share the page. shared: the text is "
     "for everybody."},
    {"Position", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, position), "head-end", 0,
     0, "head-end|body-start|body-end", "The place in the page where the text is inserted."},
    {"CacheTtl", SERVICE_OPTION_DURATION, offsetof(struct inject_settings, cache_ttl), "0", 0,
     86400000, NULL, "How long an answer of the helper is reused. 0 means never."},
    {"SendUrl", SERVICE_OPTION_SWITCH, offsetof(struct inject_settings, send_url), "off", 0, 0,
     NULL,
     "Whether the helper gets the URL of the page. Its answers then apply to this page only."},
    {"Csp", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, csp), "refuse", 0, 0,
     "refuse|nonce|hash|insert",
     "What happens to a text with scripts or styles when the policy of the page forbids them. "
     "refuse: it is not inserted. nonce: it is inserted with the nonce of the page in place of "
     "%{nonce}. hash: the hashes of its scripts and styles are added to the policy. insert: it is "
     "inserted unchanged."},
    {"ScanLimit", SERVICE_OPTION_SIZE, offsetof(struct inject_settings, scan_limit), "1M", 1024,
     UINT64_C(1) << 40, NULL, "How many bytes of a page are searched for the place."},
    {"Type", SERVICE_OPTION_LIST, offsetof(struct inject_settings, types),
     "text/html application/xhtml+xml", 0, 0, NULL, "Content types that count as pages."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static const char *const inject_counters[] = {"INSERTED",      "NO PLACE FOUND", "HELPER TOO LATE",
                                              "HELPER FAILED", "POLICY FORBIDS", NULL};

static void *inject_start(const void *settings, struct service_host *host, char *error,
                          size_t error_size) {
    struct inject_service *service;
    (void)error;
    (void)error_size;
    ALLOC_OBJ(service, INJECT_SERVICE_MAGIC);
    service->settings = settings;
    service->cache = text_cache_create();
    host->answers_within = service->settings->deadline;
    return service;
}

static void inject_stop(void *state) {
    struct inject_service *service;
    CAST_OBJ(service, state, INJECT_SERVICE_MAGIC);
    text_cache_free(&service->cache);
    FREE_OBJ(service);
}

static bool names(struct slice content_type, struct slice charset) {
    for (size_t i = 0; i + charset.length <= content_type.length; i++)
        if (slice_starts_with_nocase(slice_make(content_type.base + i, content_type.length - i),
                                     charset))
            return true;
    return false;
}

/* In UTF-16 and UTF-32 the tags are not these bytes. */
static bool is_ascii_based(struct slice content_type) {
    return !names(content_type, SLICE("utf-16")) && !names(content_type, SLICE("utf-32"));
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
    scanner_init(&inject->scanner, (enum scanner_place)place,
                 page_kind(inject->exchange->request, inject->exchange->head));
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
    read_arguments(inject);
    policies_note_head(&inject->policies, exchange->head);
    inject->scanner.wants_metas = inject->csp != INJECT_CSP_INSERT;
    spool_init(&inject->body);
    spool_init(&inject->out);
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

static void inject_count(struct inject_exchange *inject, enum inject_counter counter) {
    service_count(inject->exchange->host, counter);
}

/* The job has finished without a text to insert. */
static void report_helper(struct inject_exchange *inject) {
    char line[240];
    enum helper_status status = helper_job_status(inject->job);
    if (status == HELPER_UNCHANGED)
        return;
    inject_count(inject, status == HELPER_TIMEOUT ? INJECT_LATE : INJECT_HELPER_FAILED);
    if (helper_job_outage(inject->job) != NULL)
        service_failed(inject->exchange, helper_job_outage(inject->job));
    snprintf(line, sizeof line, "a page goes without its text: %s", helper_job_error(inject->job));
    service_log(inject->exchange->host, LOG_LEVEL_WARN, line);
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

static void inject_ask_helper(struct inject_exchange *inject) {
    const struct inject_settings *settings = inject->settings;
    struct helper_request request = {.socket = settings->helperd,
                                     .pool = slice_from(settings->pool),
                                     .parameters = inject->about,
                                     .body = -1,
                                     .milliseconds = (uint32_t)settings->deadline,
                                     .client = inject->exchange->client_ip};
    inject->job = helper_job_start(&request);
}

/* The helper has answered, with a text or without: both are worth keeping. */
static void inject_take_answer(struct inject_exchange *inject) {
    enum helper_status status = helper_job_status(inject->job);
    if (status != HELPER_DONE && status != HELPER_UNCHANGED) {
        report_helper(inject);
        return;
    }
    inject->answer = helper_job_parameters(inject->job);
    if (inject->cache_ttl > 0)
        text_cache_store(inject->cache, inject->about, inject->answer,
                         service_now() + (int64_t)inject->cache_ttl);
}

/* The answer with the page's nonce in its places. */
static struct slice filled(const struct inject_exchange *inject) {
    static const char placeholder[] = "%{nonce}";
    const size_t length = sizeof placeholder - 1;
    struct arena *arena = inject->exchange->arena;
    struct slice rest = inject->answer, text = SLICE(""), nonce = SLICE("");
    const char *place;
    if (inject->csp != INJECT_CSP_REFUSE) /* what needs one is left out then */
        nonce = policies_nonce(&inject->policies);
    while ((place = memmem(rest.base, rest.length, placeholder, length)) != NULL) {
        size_t before = (size_t)(place - rest.base);
        text = arena_concat(arena, text, slice_make(rest.base, before), nonce);
        rest = slice_make(place + length, rest.length - before - length);
    }
    return arena_concat(arena, text, rest);
}

/* Has the helper said something, or failed to? */
static bool has_answer(struct inject_exchange *inject) {
    if (inject->job == NULL || inject->is_taken)
        return true;
    helper_job_run(inject->job);
    watch_job(inject);
    if (!helper_job_finished(inject->job))
        return false;
    inject_take_answer(inject);
    inject->is_taken = true;
    return true;
}

/* Is it known what shall go into the page? To be asked where its policies are known. */
static bool is_answered(struct inject_exchange *inject) {
    if (inject->is_answered)
        return true;
    if (!has_answer(inject))
        return false;
    inject->is_answered = true;
    inject->text = filled(inject);
    snippet_read(inject->text, &inject->snippet);
    struct slice type = http_head_value(inject->exchange->head, HTTP_CONTENT_TYPE);
    if (!inject->snippet.is_ascii && !names(type, SLICE("utf-8")))
        for (unsigned i = 0; i < inject->snippet.count; i++)
            inject->snippet.parts[i].hash[0] = 0; /* the browser sees other characters */
    return true;
}

/* May the text go into a page with the policies seen so far? */
static bool may_insert(const struct inject_exchange *inject) {
    bool concerned = inject->snippet.count > 0 || inject->snippet.is_unclear;
    enum policy_verdict most = inject->csp == INJECT_CSP_HASH ? POLICY_EXTENDABLE : POLICY_PERMITS;
    if (!concerned || inject->csp == INJECT_CSP_INSERT)
        return true;
    return policies_allow(&inject->policies, &inject->snippet, most) && !inject->scanner.lost_meta;
}

/* The page stays as it is; what was kept of it goes out. */
static enum service_verdict inject_pass(struct inject_exchange *inject) {
    inject->stage = INJECT_DRAINING;
    service_wait_none(inject->exchange);
    return SERVICE_SKIP;
}

/* The place was not found: the rest is none of our business. */
static void give_up_scanning(struct inject_exchange *inject) {
    inject_count(inject, INJECT_NO_PLACE);
    inject->stage = INJECT_DRAINING;
    service_wait_none(inject->exchange);
}

/* At the place. */
static void inject_insert(struct inject_exchange *inject) {
    inject->stage = INJECT_DRAINING;
    if (inject->text.length == 0)
        return;
    if (!may_insert(inject)) {
        inject_count(inject, INJECT_POLICY);
        return;
    }
    spool_append(&inject->out, inject->text.base, inject->text.length);
    inject->stage = INJECT_INSERTING;
    inject_count(inject, INJECT_INSERTED);
}

/* The page is over: that is the place where it has left the tag out. */
static void end_scanning(struct inject_exchange *inject) {
    if (!scanner_end(&inject->scanner)) {
        give_up_scanning(inject);
        return;
    }
    inject->until_place = inject->body.length;
    inject->stage = INJECT_WAITING;
    if (is_answered(inject))
        inject_insert(inject);
}

/* At a policy of the page: hashes go into it where that lets the text run. */
static void extend_meta(struct inject_exchange *inject) {
    struct arena *arena = inject->exchange->arena;
    struct slice meta = inject->meta, policy = inject->policies.list[inject->policies.count - 1];
    inject->meta = slice_make(NULL, 0);
    inject->stage = INJECT_SCANNING;
    if (inject->text.length > 0 && may_insert(inject) &&
        policy_judge(policy, &inject->snippet) == POLICY_EXTENDABLE) {
        struct slice extended = policy_extend(policy, &inject->snippet, arena);
        struct slice tag = tag_with_policy(meta, extended, arena);
        spool_append(&inject->out, tag.base, tag.length);
        inject->replaced = meta.length;
        inject->stage = INJECT_INSERTING;
    } else if (inject->finished)
        end_scanning(inject);
}

/* At the place or a policy: go on if the helper has answered. */
static void inject_go_on(struct inject_exchange *inject) {
    if (!is_answered(inject))
        return;
    if (inject->meta.length > 0)
        extend_meta(inject);
    else
        inject_insert(inject);
}

/* The head waits for the text where that may have to change a policy in it, and where caches may
 * keep the page: once it is out nobody can be told that the text did not come. */
static enum service_verdict inject_verdict(void *state) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    if (inject->settings->scope != INJECT_SCOPE_CLIENT) {
        if (!has_answer(inject))
            return SERVICE_HOLD;
        if (inject->answer.length == 0)
            return inject_pass(inject);
    }
    if (inject->csp == INJECT_CSP_HASH && inject->policies.count > 0) {
        if (!is_answered(inject))
            return SERVICE_HOLD;
        if (inject->text.length == 0)
            return inject_pass(inject);
        if (!may_insert(inject)) {
            if (inject->stage != INJECT_DRAINING)
                inject_count(inject, INJECT_POLICY);
            return inject_pass(inject);
        }
        policies_extend_head(inject->exchange->head, &inject->snippet, inject->exchange->arena);
    }
    if (inject->stage == INJECT_WAITING)
        inject_go_on(inject);
    if (inject->settings->scope == INJECT_SCOPE_CLIENT)
        make_private(inject->exchange);
    adapted_head_body_changed(inject->exchange);
    inject->began = true;
    return SERVICE_ADAPT;
}

static enum service_verdict inject_preview(void *state, struct slice body, bool complete) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    if (complete && body.length == 0)
        return SERVICE_SKIP;
    inject->about = about(inject);
    if (!find_in_cache(inject)) {
        inject_ask_helper(inject);
        if (helper_job_finished(inject->job)) { /* nobody there: the page stays as it is */
            report_helper(inject);
            return SERVICE_SKIP;
        }
        watch_job(inject);
    } else if (inject->answer.length == 0)
        return SERVICE_SKIP;
    return inject_verdict(inject);
}

static void wait_here(struct inject_exchange *inject) {
    inject->until_place = inject->body.length - inject->scanner.pending;
    inject->scanner.pending = 0;
    inject->stage = INJECT_WAITING;
    inject_go_on(inject);
}

/* The scanner has stopped behind a <meta>. */
static void on_meta(struct inject_exchange *inject) {
    struct arena *arena = inject->exchange->arena;
    struct slice policy;
    if (!tag_policy(inject->scanner.meta, arena, &policy))
        return;
    unsigned known = inject->policies.count;
    policies_note(&inject->policies, policy);
    if (inject->csp != INJECT_CSP_HASH || inject->policies.count == known)
        return;
    inject->meta = arena_slice(arena, inject->scanner.meta);
    wait_here(inject);
}

static void inject_scan(struct inject_exchange *inject, struct slice piece, size_t *seen) {
    size_t length =
        scanner_scan(&inject->scanner, slice_make(piece.base + *seen, piece.length - *seen));
    if (!spool_append(&inject->body, piece.base + *seen, length)) {
        service_failed(inject->exchange, "memory");
        inject->broken = inject->began && inject->settings->scope != INJECT_SCOPE_CLIENT;
        inject_pass(inject);
        return;
    }
    *seen += length;
    inject->scanned += length;
    if (inject->scanner.found)
        wait_here(inject);
    else if (inject->scanner.meta.length > 0)
        on_meta(inject);
    else if (inject->scanner.hopeless || inject->scanned > inject->settings->scan_limit)
        give_up_scanning(inject);
}

static size_t inject_push(void *state, struct slice body) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    size_t room = inject->body.length < INJECT_BUFFER ? INJECT_BUFFER - inject->body.length : 0;
    struct slice piece = slice_make(body.base, body.length < room ? body.length : room);
    size_t seen = 0;
    while (inject->stage == INJECT_SCANNING && seen < piece.length)
        inject_scan(inject, piece, &seen);
    return seen;
}

static void inject_finish(void *state) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    inject->finished = true;
    if (inject->stage == INJECT_SCANNING)
        end_scanning(inject);
}

static void inject_ready(void *state) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    if (inject->job != NULL)
        helper_job_run(inject->job);
    if (inject->stage == INJECT_WAITING)
        inject_go_on(inject);
    watch_job(inject);
}

/* The text is out: of a policy, there is more of the page to come. */
static void after_insertion(struct inject_exchange *inject) {
    bool was_policy = inject->replaced > 0;
    char byte;
    for (; inject->replaced > 0; inject->replaced--)
        spool_read(&inject->body, &byte, 1);
    inject->stage = was_policy ? INJECT_SCANNING : INJECT_DRAINING;
    if (was_policy && inject->finished)
        end_scanning(inject);
}

static size_t inject_take(struct spool *spool, size_t limit, char **out, size_t *capacity) {
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
    if (inject->broken)
        return SERVICE_ABORT;
    if (inject->stage == INJECT_SCANNING)
        inject_take(&inject->body, inject->body.length - inject->scanner.pending, &out, &room);
    if (inject->stage == INJECT_WAITING || inject->stage == INJECT_INSERTING)
        inject->until_place -= inject_take(&inject->body, inject->until_place, &out, &room);
    while (inject->stage == INJECT_INSERTING && inject->until_place == 0 && room > 0) {
        inject_take(&inject->out, inject->out.length, &out, &room);
        if (inject->out.length == 0)
            after_insertion(inject);
    }
    if (inject->stage == INJECT_DRAINING)
        inject_take(&inject->body, inject->body.length, &out, &room);
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
    spool_release(&inject->out);
    FREE_OBJ(inject);
}

SERVICE_DEFINE(inject) = {
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
    .verdict = inject_verdict,
    .pull = inject_pull,
    .ready = inject_ready,
    .end = inject_end,
};
