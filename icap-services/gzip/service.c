/*
 * gzip: compresses responses for clients that accept it. The adapted response is what the proxy's
 * cache keeps, so a page is compressed once and served many times.
 *
 * Left alone: anything but a whole 200 to a GET; types that are not listed; bodies that are encoded
 * already or known to be short; Cache-Control: no-transform; and responses whose Vary names
 * Accept-Encoding or is "*", since then the origin chooses the encoding itself. A response that
 * would be compressed for another client gets its Vary all the same, or a cache would take it for
 * the answer to everybody (RFC 9110 §12.5.5).
 */
#include "base/assert.h"
#include "gzip/accept_encoding.h"
#include "gzip/deflater.h"
#include "service/adapted_head.h"

#include <stdio.h>

struct gzip_settings {
    uint64_t level, min_size;
    struct service_list types;
};

struct gzip_exchange {
    unsigned magic;
#define GZIP_EXCHANGE_MAGIC 0x677a6970u
    const struct gzip_settings *settings;
    struct service_exchange *exchange;
    bool accepted; /* the client takes gzip; else only Vary is added */
    struct deflater *deflater;
};

static const struct service_option gzip_options[] = {
    {"Level", SERVICE_OPTION_NUMBER, offsetof(struct gzip_settings, level), "6", 1, 9, NULL,
     "zlib's level: 1 is fast, 9 is small"},
    {"MinSize", SERVICE_OPTION_SIZE, offsetof(struct gzip_settings, min_size), "256", 0,
     UINT64_C(1) << 40, NULL, "bodies known to be shorter are left alone"},
    {"Type", SERVICE_OPTION_LIST, offsetof(struct gzip_settings, types),
     "text/* application/javascript application/x-javascript application/json "
     "application/manifest+json application/xml application/wasm image/svg+xml +json +xml "
     "application/vnd.ms-fontobject font/ttf font/otf image/bmp image/x-icon",
     0, 0, NULL, "content types to compress"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static void *gzip_start(const void *settings, struct service_host *host, char *error,
                        size_t error_size) {
    (void)host;
    (void)error;
    (void)error_size;
    return (void *)settings;
}

static bool vary_conflicts(const struct http_head *head) {
    return http_head_has_token(head, HTTP_VARY, SLICE("*")) ||
           http_head_has_token(head, HTTP_VARY, SLICE("Accept-Encoding"));
}

static bool client_accepts(const struct http_head *request) {
    int best = -1;
    const struct http_field *field = http_head_find(request, HTTP_ACCEPT_ENCODING);
    for (; field != NULL; field = http_head_find_next(request, HTTP_ACCEPT_ENCODING, field)) {
        int quality = accept_encoding_quality(field->value, SLICE("gzip"));
        if (quality > best)
            best = quality;
    }
    return best > 0;
}

static bool is_wanted(const struct gzip_settings *settings,
                      const struct service_exchange *exchange) {
    struct slice type = media_type_of(exchange->head);
    uint64_t length = adapted_head_length(exchange->head);
    /* An event stream must not wait for zlib's window to fill. */
    return adapted_head_allowed(exchange) && adapted_head_is_identity(exchange->head) &&
           !vary_conflicts(exchange->head) && media_type_listed(type, &settings->types) &&
           !slice_equal_nocase(type, SLICE("text/event-stream")) && length >= settings->min_size;
}

static void *gzip_begin(void *service, struct service_exchange *exchange) {
    const struct gzip_settings *settings = service;
    if (!is_wanted(settings, exchange))
        return NULL;
    struct gzip_exchange *gzip;
    ALLOC_OBJ(gzip, GZIP_EXCHANGE_MAGIC);
    gzip->settings = settings;
    gzip->exchange = exchange;
    gzip->accepted = client_accepts(exchange->request);
    return gzip;
}

static enum service_verdict gzip_preview(void *state, struct slice body, bool complete) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    if (complete && body.length < gzip->settings->min_size)
        return SERVICE_SKIP;
    adapted_head_add_vary(gzip->exchange, SLICE("Accept-Encoding"));
    if (!gzip->accepted) {
        gzip->exchange->keeps_body = true;
        return SERVICE_ADAPT;
    }
    gzip->deflater = deflater_create((int)gzip->settings->level);
    if (gzip->deflater == NULL) {
        gzip->exchange->failed = true;
        return SERVICE_SKIP;
    }
    http_head_remove(gzip->exchange->head, HTTP_CONTENT_ENCODING);
    http_head_add(gzip->exchange->head, SLICE("Content-Encoding"), SLICE("gzip"));
    adapted_head_body_changed(gzip->exchange);
    return SERVICE_ADAPT;
}

static size_t gzip_push(void *state, struct slice body) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    return deflater_push(gzip->deflater, body);
}

static void gzip_finish(void *state) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    deflater_finish(gzip->deflater);
}

static enum service_flow gzip_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    *got = deflater_pull(gzip->deflater, out, capacity);
    if (deflater_failed(gzip->deflater)) {
        gzip->exchange->failed = true;
        return SERVICE_ABORT;
    }
    return deflater_done(gzip->deflater) ? SERVICE_DONE : SERVICE_FLOW;
}

static void gzip_end(void *state) {
    struct gzip_exchange *gzip;
    CAST_OBJ(gzip, state, GZIP_EXCHANGE_MAGIC);
    deflater_free(&gzip->deflater);
    FREE_OBJ(gzip);
}

const struct service_ops service_implementation = {
    .version = SERVICE_VERSION,
    .name = "gzip",
    .description = "Retort gzip",
    .points = SERVICE_RESPONSE,
    .preview_size = 1024,
    .settings_size = sizeof(struct gzip_settings),
    .options = gzip_options,
    .start = gzip_start,
    .begin = gzip_begin,
    .preview = gzip_preview,
    .push = gzip_push,
    .finish = gzip_finish,
    .pull = gzip_pull,
    .end = gzip_end,
};
