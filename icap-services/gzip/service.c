/*
 * gzip: compresses responses for clients that accept it, with gzip, brotli or zstd. The adapted
 * response is what the proxy's cache keeps, so a page is compressed once and served many times.
 *
 * These responses stay as they are: anything but a whole 200 to a GET; types and URLs that the
 * settings exclude; bodies that are encoded already, known to be short, or do not shrink; those
 * with Cache-Control: no-transform; and those whose Vary is "*". A response that would be
 * compressed for another client still gets its Vary. Otherwise a cache would take it for the answer
 * to everybody (RFC 9110 §12.5.5). If an origin names Accept-Encoding in Vary but sends an
 * uncompressed body, the service compresses it: an origin that does not want this says
 * no-transform.
 */
#include "base/assert.h"
#include "build.h"
#include "gzip/accept_encoding.h"
#include "gzip/encoder.h"
#include "gzip/sample.h"
#include "service/adapted_head.h"
#include "service/arguments.h"
#include "service/url_pattern.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gzip_settings {
    uint64_t levels[CODING_COUNT];
    uint64_t min_size, min_gain, flush_every;
    struct service_list encodings, types, skip_urls;
};

/* The settings, and the codings in the order in which the operator prefers them. */
struct gzip_service {
    unsigned magic;
#define GZIP_SERVICE_MAGIC 0x677a5376u
    const struct gzip_settings *settings;
    enum coding order[CODING_COUNT];
    unsigned coding_count;
    struct spare_encoders *spare;
    int never; /* a descriptor that is never ready: who names it waits for the deadline */
};

struct gzip_exchange {
    unsigned magic;
#define GZIP_EXCHANGE_MAGIC 0x677a6970u
    const struct gzip_settings *settings;
    struct spare_encoders *spare;
    int never;
    struct service_exchange *exchange;
    enum coding coding; /* CODING_COUNT: the client takes none; only Vary is added */
    struct encoder *encoder;
    uint64_t credit; /* milliseconds of flushes that may be spent */
    int64_t credited;
};

/* The number of flushes that may follow one another without a pause, and the milliseconds that the next
 * one is waited for at most: hosts limit how long a service waits. */
enum { FLUSHES_AT_ONCE = 4, FLUSH_WAIT_MOST = 100 };

static const struct service_option gzip_options[] = {
    {"Encodings", SERVICE_OPTION_LIST, offsetof(struct gzip_settings, encodings), "br zstd gzip", 0,
     0, NULL,
     "The encodings to use. When a client likes several equally, the first one in this list is "
     "used."},
    {"Level", SERVICE_OPTION_NUMBER, offsetof(struct gzip_settings, levels[CODING_GZIP]), "6", 1, 9,
     NULL, "The level of zlib: 1 is fast, 9 compresses best."},
    {"BrotliLevel", SERVICE_OPTION_NUMBER, offsetof(struct gzip_settings, levels[CODING_BROTLI]),
     "5", 0, 11, NULL, "The quality of brotli: 0 is fast, 11 compresses best and is very slow."},
    {"ZstdLevel", SERVICE_OPTION_NUMBER, offsetof(struct gzip_settings, levels[CODING_ZSTD]), "6",
     1, 19, NULL, "The level of zstd: 1 is fast, 19 compresses best and is very slow."},
    {"MinSize", SERVICE_OPTION_SIZE, offsetof(struct gzip_settings, min_size), "256", 0,
     UINT64_C(1) << 40, NULL, "Bodies that are known to be shorter are not compressed."},
    {"MinGain", SERVICE_OPTION_NUMBER, offsetof(struct gzip_settings, min_gain), "5", 0, 99, NULL,
     "Bodies whose beginning shrinks by fewer percent are not compressed. 0 compresses all "
     "bodies."},
    {"FlushEvery", SERVICE_OPTION_DURATION, offsetof(struct gzip_settings, flush_every), "20ms", 0,
     3600000, NULL, "How often, on average, compressed data is flushed when the sender pauses."},
    {"Type", SERVICE_OPTION_LIST, offsetof(struct gzip_settings, types),
     "text/* application/javascript application/x-javascript application/json "
     "application/manifest+json application/xml application/wasm image/svg+xml +json +xml "
     "application/vnd.ms-fontobject font/ttf font/otf image/bmp image/x-icon",
     0, 0, NULL, "Content types that are compressed."},
    {"SkipUrl", SERVICE_OPTION_LIST, offsetof(struct gzip_settings, skip_urls), NULL, 0, 0, NULL,
     "Patterns of URLs that are not compressed. * stands for any bytes."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static bool read_order(struct gzip_service *gzip, char *error, size_t error_size) {
    const struct service_list *names = &gzip->settings->encodings;
    for (unsigned i = 0; i < names->count; i++) {
        enum coding coding = coding_named(slice_from(names->items[i]));
        if (coding == CODING_COUNT || gzip->coding_count == CODING_COUNT) {
            snprintf(error, error_size, "Encodings: use some of br, zstd, gzip, not \"%.40s\"",
                     names->items[i]);
            return false;
        }
        gzip->order[gzip->coding_count++] = coding;
    }
    return true;
}

static void *gzip_start(const void *settings, struct service_host *host, char *error,
                        size_t error_size) {
    struct gzip_service *gzip;
    (void)host;
    ALLOC_OBJ(gzip, GZIP_SERVICE_MAGIC);
    gzip->settings = settings;
    if (read_order(gzip, error, error_size)) {
        gzip->spare = spare_encoders_new();
        gzip->never = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    } else {
        FREE_OBJ(gzip);
    }
    return gzip;
}

static void gzip_stop(void *service) {
    struct gzip_service *gzip;
    CAST_OBJ(gzip, service, GZIP_SERVICE_MAGIC);
    if (gzip->never >= 0)
        close(gzip->never);
    spare_encoders_free(&gzip->spare);
    FREE_OBJ(gzip);
}

/* How well the client likes a coding. Old clients say "*" and mean gzip. */
static int liking(const struct http_head *request, enum coding coding) {
    struct slice name = codec_of(coding)->name;
    int best = -1;
    const struct http_field *field = http_head_find(request, HTTP_ACCEPT_ENCODING);
    for (; field != NULL; field = http_head_find_next(request, HTTP_ACCEPT_ENCODING, field)) {
        int quality = coding == CODING_GZIP ? accept_encoding_quality(field->value, name)
                                            : accept_encoding_named(field->value, name);
        if (quality > best)
            best = quality;
    }
    return best;
}

static enum coding gzip_choose(const struct gzip_service *gzip, const struct http_head *request) {
    enum coding chosen = CODING_COUNT;
    int best = 0;
    for (unsigned i = 0; i < gzip->coding_count; i++) {
        int quality = liking(request, gzip->order[i]);
        if (quality <= best)
            continue;
        best = quality;
        chosen = gzip->order[i];
    }
    return chosen;
}

static bool gzip_is_wanted(const struct gzip_settings *settings,
                           const struct service_exchange *exchange) {
    struct slice type = media_type_of(exchange->head);
    uint64_t length = adapted_head_length(exchange->head);
    /* A reader of an event stream must not wait for anything. */
    return adapted_head_allowed(exchange) && adapted_head_is_identity(exchange->head) &&
           !http_head_has_token(exchange->head, HTTP_VARY, SLICE("*")) &&
           media_type_listed(type, &settings->types) &&
           !slice_equal_nocase(type, SLICE("text/event-stream")) && length >= settings->min_size &&
           (settings->skip_urls.count == 0 ||
            !url_listed(exchange_url(exchange), &settings->skip_urls));
}

static void *gzip_begin(void *service, struct service_exchange *exchange) {
    const struct gzip_service *owner;
    CAST_OBJ(owner, service, GZIP_SERVICE_MAGIC);
    if (!gzip_is_wanted(owner->settings, exchange))
        return NULL;
    struct gzip_exchange *gzip = arena_alloc(exchange->arena, sizeof *gzip);
    INIT_OBJ(gzip, GZIP_EXCHANGE_MAGIC);
    gzip->settings = owner->settings;
    gzip->spare = owner->spare;
    gzip->never = owner->never;
    gzip->exchange = exchange;
    gzip->coding = gzip_choose(owner, exchange->request);
    gzip->credit = FLUSHES_AT_ONCE * owner->settings->flush_every;
    gzip->credited = service_now();
    return gzip;
}

static bool is_worth_it(const struct gzip_settings *settings, struct slice body, bool complete) {
    enum { ENOUGH_TO_TELL = 512 };
    if (complete && body.length < settings->min_size)
        return false;
    if (settings->min_gain == 0 || (!complete && body.length < ENOUGH_TO_TELL))
        return true;
    if (body.length > SAMPLE_MAX)
        body.length = SAMPLE_MAX;
    return sample_gains(body, (unsigned)settings->min_gain);
}

/* The level. The URI may name another one than the settings: "gzip?br=11". */
static int level_of(const struct gzip_exchange *gzip) {
    static const uint64_t lows[CODING_COUNT] = {1, 0, 1}, highs[CODING_COUNT] = {9, 11, 19};
    uint64_t level = gzip->settings->levels[gzip->coding];
    service_argument_number(gzip->exchange->arguments, codec_of(gzip->coding)->name,
                            lows[gzip->coding], highs[gzip->coding], &level);
    return (int)level;
}

static enum service_verdict gzip_preview(void *state, struct slice body, bool complete) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    struct http_head *head = gzip->exchange->head;
    if (!is_worth_it(gzip->settings, body, complete))
        return SERVICE_SKIP;
    bool varied = http_head_has_token(head, HTTP_VARY, SLICE("Accept-Encoding"));
    adapted_head_add_vary(gzip->exchange, SLICE("Accept-Encoding"));
    if (gzip->coding == CODING_COUNT && varied)
        return SERVICE_SKIP;
    if (gzip->coding == CODING_COUNT) {
        gzip->exchange->keeps_body = true;
        return SERVICE_ADAPT;
    }
    gzip->encoder =
        encoder_create(gzip->spare, gzip->coding, level_of(gzip), adapted_head_length(head));
    if (gzip->encoder == NULL) {
        service_failed(gzip->exchange, "memory");
        return SERVICE_SKIP;
    }
    http_head_remove(head, HTTP_CONTENT_ENCODING);
    http_head_add(head, SLICE("Content-Encoding"), codec_of(gzip->coding)->name);
    adapted_head_body_changed(gzip->exchange);
    return SERVICE_ADAPT;
}

static size_t gzip_push(void *state, struct slice body) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    service_wait_none(gzip->exchange);
    return encoder_push(gzip->encoder, body);
}

/* The next flush comes when there is credit for it, unless more of the body comes before. Without a
 * descriptor to name, it comes with more of the body. */
static void await_credit(struct gzip_exchange *gzip, int64_t now, uint64_t missing) {
    if (gzip->never >= 0 && missing <= FLUSH_WAIT_MOST)
        gzip->exchange->wait = (struct service_wait){
            .fd = gzip->never, .events = POLLIN, .deadline = now + (int64_t)missing};
}

/* A pause: somebody may wait for what is inside. A sender of many small pieces in quick succession
 * runs out of credit, so that compression does not suffer. */
static void gzip_idle(void *state) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    uint64_t price = gzip->settings->flush_every, most = FLUSHES_AT_ONCE * price;
    int64_t now = service_now();
    gzip->credit += (uint64_t)(now - gzip->credited);
    gzip->credited = now;
    if (gzip->credit > most)
        gzip->credit = most;
    service_wait_none(gzip->exchange);
    if (encoder_held(gzip->encoder) == 0)
        return;
    if (gzip->credit < price) {
        await_credit(gzip, now, price - gzip->credit);
        return;
    }
    gzip->credit -= price;
    encoder_flush(gzip->encoder);
}

static void gzip_finish(void *state) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    service_wait_none(gzip->exchange);
    encoder_finish(gzip->encoder);
}

static enum service_flow gzip_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    *got = encoder_pull(gzip->encoder, out, capacity);
    if (encoder_failed(gzip->encoder)) {
        service_failed(gzip->exchange, "memory");
        return SERVICE_ABORT;
    }
    return encoder_done(gzip->encoder) ? SERVICE_DONE : SERVICE_FLOW;
}

static void gzip_end(void *state) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    encoder_free(&gzip->encoder);
    gzip->magic = 0; /* its memory goes with the exchange */
}

SERVICE_DEFINE(gzip) = {
    .version = SERVICE_VERSION,
    .name = "gzip",
    .description = "Retort gzip",
    .build = SERVICES_BUILD,
    .points = SERVICE_RESPONSE,
    .preview_size = SAMPLE_MAX,
    .settings_size = sizeof(struct gzip_settings),
    .options = gzip_options,
    .start = gzip_start,
    .stop = gzip_stop,
    .begin = gzip_begin,
    .preview = gzip_preview,
    .push = gzip_push,
    .finish = gzip_finish,
    .pull = gzip_pull,
    .idle = gzip_idle,
    .ready = gzip_idle, /* the sender pauses still */
    .end = gzip_end,
};
