/*
 * inject: inserts a text into each HTML page, at the end of its head or at another place that the
 * settings name. A helper process chooses the text by the client's address. It is asked as soon as
 * the response's head is known, and the page is passed on while the helper works. If the page
 * reaches the place before the answer has come, it waits there up to a deadline, and then goes on
 * without the text.
 *
 * Since the text is for one client, the response tells caches so (Cache-Control: private), unless
 * the operator has set Scope to shared.
 */

#include "base/assert.h"
#include "base/spool.h"
#include "base/units.h"
#include "build.h"
#include "http/head.h"
#include "inject/answer.h"
#include "inject/policy.h"
#include "inject/scanner.h"
#include "inject/tag.h"
#include "service/adapted_head.h"
#include "service/arguments.h"

/*
 * Tells what kind of page a response is: a document, which a browser shows; a fragment, which a
 * script asks for and puts into a document; or XML.
 *
 * A browser tells it in Sec-Fetch-Dest, but sends this field only to https and to localhost.
 * Without it, a request comes from a script if it has X-Requested-With, or if its Accept does not
 * name HTML: browsers name HTML whenever they ask for a document, while fetch() and XMLHttpRequest
 * send "*" "/" "*". A request with none of these fields is for a document.
 */

/* The Fetch standard's destinations that are shown as a page. */
static bool is_shown(struct slice destination) {
    static const char *const shown[] = {"document", "iframe", "frame", "embed", "object"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (slice_equal_nocase(destination, slice_from(shown[i])))
            return true;
    return false;
}

static bool names_html(struct slice accept) {
    struct slice element;
    while (slice_next_element(&accept, &element))
        if (slice_starts_with_nocase(element, SLICE("text/html")) ||
            slice_starts_with_nocase(element, SLICE("application/xhtml+xml")))
            return true;
    return false;
}

static bool is_for_document(const struct http_head *request) {
    const struct http_field *destination = http_head_find_text(request, SLICE("Sec-Fetch-Dest"));
    if (destination != NULL)
        return is_shown(destination->value);
    bool has_accept = false, accepts = false;
    for (unsigned i = 0; i < request->field_count; i++)
        if (slice_equal_nocase(request->fields[i].name, SLICE("Accept"))) {
            has_accept = true;
            accepts |= names_html(request->fields[i].value);
        }
    return (accepts || !has_accept) &&
           http_head_find_text(request, SLICE("X-Requested-With")) == NULL;
}

static bool is_xml(struct slice type) {
    static const char ending[] = "xml";
    size_t length = sizeof ending - 1;
    return type.length > length && memchr("+/", type.base[type.length - length - 1], 2) != NULL &&
           slice_equal_nocase(slice_make(type.base + type.length - length, length),
                              slice_from(ending));
}

static enum scanner_page page_kind(const struct http_head *request,
                                   const struct http_head *response) {
    if (is_xml(media_type_of(response)))
        return SCANNER_XML;
    return is_for_document(request) ? SCANNER_DOCUMENT : SCANNER_FRAGMENT;
}

struct inject_service {
    unsigned magic;
#define INJECT_SERVICE_MAGIC 0x696e5376u
    const struct inject_settings *settings;
    struct text_cache *cache;
};

/* The state of the page. */
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
    struct service_exchange *exchange;
    uint64_t csp; /* enum inject_csp */
    bool send_url;
    struct answer answer;
    bool is_answered;
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

/* In UTF-16 and UTF-32 tags have other bytes. */
static bool is_ascii_based(struct slice content_type) {
    return !names(content_type, SLICE("utf-16")) && !names(content_type, SLICE("utf-32"));
}

/* Arguments of the URI come before the settings. */
static void read_arguments(struct inject_exchange *inject) {
    struct slice arguments = inject->exchange->arguments, value;
    const struct inject_settings *settings = inject->settings;
    uint64_t place = inject_settings_choice(arguments, "position", settings->position);
    inject->csp = inject_settings_choice(arguments, "csp", settings->csp);
    inject->send_url = settings->send_url || service_argument(arguments, SLICE("url"), &value);
    inject->answer.ttl = settings->cache_ttl;
    if (service_argument(arguments, SLICE("ttl"), &value))
        units_read_time(value, 1000, &inject->answer.ttl);
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
    inject->exchange = exchange;
    inject->answer =
        (struct answer){.exchange = exchange, .settings = settings, .cache = owner->cache};
    read_arguments(inject);
    policies_note_head(&inject->policies, exchange->head);
    inject->scanner.wants_metas = inject->csp != INJECT_CSP_INSERT;
    spool_init(&inject->body);
    spool_init(&inject->out);
    return inject;
}

static void inject_count(struct inject_exchange *inject, enum inject_counter counter) {
    service_count(inject->exchange->host, counter);
}

/* The answer with the page's nonce in its places. */
static struct slice filled(const struct inject_exchange *inject) {
    static const char placeholder[] = "%{nonce}";
    const size_t length = sizeof placeholder - 1;
    struct arena *arena = inject->exchange->arena;
    struct slice rest = inject->answer.text, text = SLICE(""), nonce = SLICE("");
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

/* Is it known what shall go into the page? This is asked only when the policies of the page are
 * known. */
static bool is_answered(struct inject_exchange *inject) {
    if (inject->is_answered)
        return true;
    if (!answer_has_come(&inject->answer))
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

/* The page stays as it is. The bytes that were kept go out. */
static enum service_verdict inject_pass(struct inject_exchange *inject) {
    inject->stage = INJECT_DRAINING;
    service_wait_none(inject->exchange);
    return SERVICE_SKIP;
}

/* The place was not found. The rest of the page passes unread. */
static void give_up_scanning(struct inject_exchange *inject) {
    inject_count(inject, INJECT_NO_PLACE);
    inject->stage = INJECT_DRAINING;
    service_wait_none(inject->exchange);
}

/* The page has come to the place: inserts the text. */
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

/* The page is over. If it has left the tag out, its end is the place. */
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

/* The page has come to a policy: adds hashes to it if they let the text run. */
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

/* The page waits at the place or at a policy: goes on if the helper has answered. */
static void inject_go_on(struct inject_exchange *inject) {
    if (!is_answered(inject))
        return;
    if (inject->meta.length > 0)
        extend_meta(inject);
    else
        inject_insert(inject);
}

/* The head waits for the text in two cases: if the text may change a policy in the head, and if
 * caches may keep the page. Once the head is out, it can't say any more that the text did not
 * come. */
static enum service_verdict inject_verdict(void *state) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    if (inject->settings->scope != INJECT_SCOPE_CLIENT) {
        if (!answer_has_come(&inject->answer))
            return SERVICE_HOLD;
        if (inject->answer.text.length == 0)
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
        adapted_head_make_private(inject->exchange);
    adapted_head_body_changed(inject->exchange);
    inject->began = true;
    return SERVICE_ADAPT;
}

static enum service_verdict inject_preview(void *state, struct slice body, bool complete) {
    struct inject_exchange *inject;
    CAST_OBJ(inject, state, INJECT_EXCHANGE_MAGIC);
    if (complete && body.length == 0)
        return SERVICE_SKIP;
    if (!answer_ask(&inject->answer, inject->send_url))
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
    if (inject->answer.job != NULL)
        helper_job_run(inject->answer.job);
    if (inject->stage == INJECT_WAITING)
        inject_go_on(inject);
    answer_watch(&inject->answer);
}

/* The text is out. If it was a policy, the scan of the page goes on. */
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
    answer_end(&inject->answer);
    spool_release(&inject->body);
    spool_release(&inject->out);
    FREE_OBJ(inject);
}

SERVICE_DEFINE(inject) = {
    .version = SERVICE_VERSION,
    .name = "inject",
    .description = "Retort inject",
    .build = SERVICES_BUILD,
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
