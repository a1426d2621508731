/*
 * gray: makes images gray. The service collects the image, gives it to a helper process through
 * retort-helperd, and sends what comes back. If anything goes wrong on the way, it sends the
 * original. It takes an image when the content type is listed and the first bytes are those of an
 * image.
 */
#include "base/assert.h"
#include "build.h"
#include "gray/image_type.h"
#include "gray/picture_cost.h"
#include "service/adapted_head.h"
#include "service/helper_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum gray_counter {
    GRAY_UNCHANGED,
    GRAY_REFUSED,
    GRAY_HELPER_FAILED,
    GRAY_TIMEOUT,
    GRAY_TOO_LARGE,
};

struct gray_settings {
    char *helperd, *pool, *arguments;
    uint64_t deadline, max_size, min_size, max_pixels;
    struct service_list types;
    bool sniff;
};

struct gray_exchange {
    unsigned magic;
#define GRAY_EXCHANGE_MAGIC 0x67726179u
    const struct gray_settings *settings;
    struct service_exchange *exchange;
    enum service_verdict verdict;
    int original; /* memfd of what was pushed */
    uint64_t size;
    bool sniffed; /* the origin told no type */
    bool checked, finished;
    bool passing; /* decided against it before its end: no further interest */
    struct helper_job *job;
    int source;         /* what pull reads: `original` or the job's result */
    uint64_t at, until; /* of `source` */
};

static const struct service_option gray_options[] = {
    {"Helperd", SERVICE_OPTION_TEXT, offsetof(struct gray_settings, helperd),
     "/run/retort/helperd.sock", 0, 0, NULL, "The socket of retort-helperd."},
    {"Pool", SERVICE_OPTION_TEXT, offsetof(struct gray_settings, pool), "gray", 0, 0, NULL,
     "The pool of retort-helperd that makes images gray."},
    {"Arguments", SERVICE_OPTION_TEXT, offsetof(struct gray_settings, arguments), "", 0, 0, NULL,
     "Arguments for images whose ICAP URI has none, such as width=320&strip."},
    {"Deadline", SERVICE_OPTION_DURATION, offsetof(struct gray_settings, deadline), "4s", 1, 600000,
     NULL, "How long an image may wait for the helper after its last byte has arrived."},
    {"MaxSize", SERVICE_OPTION_SIZE, offsetof(struct gray_settings, max_size), "16M", 1024,
     UINT64_C(1) << 32, NULL, "Larger images are not changed."},
    {"MaxPixels", SERVICE_OPTION_SIZE, offsetof(struct gray_settings, max_pixels), "100M", 1,
     UINT64_C(1) << 40, NULL, "Images with more pixels in their header are not changed."},
    {"MinSize", SERVICE_OPTION_SIZE, offsetof(struct gray_settings, min_size), "0", 0,
     UINT64_C(1) << 32, NULL, "Images that are known to be smaller are not changed."},
    {"Type", SERVICE_OPTION_LIST, offsetof(struct gray_settings, types),
     "image/jpeg image/jpg image/pjpeg image/gif image/png image/x-png image/webp image/bmp "
     "image/x-ms-bmp image/tiff",
     0, 0, NULL, "Content types that are made gray."},
    {"Sniff", SERVICE_OPTION_SWITCH, offsetof(struct gray_settings, sniff), "on", 0, 0, NULL,
     "Whether a body without a meaningful content type counts as an image when its first bytes "
     "look like one."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static const char *const gray_counters[] = {"UNCHANGED",      "HELPER REFUSED", "HELPER FAILED",
                                            "HELPER TIMEOUT", "TOO LARGE",      NULL};

static void *gray_start(const void *settings, struct service_host *host, char *error,
                        size_t error_size) {
    const struct gray_settings *gray = settings;
    (void)error;
    (void)error_size;
    host->answers_within = gray->deadline;
    return (void *)settings;
}

/* These types say as little as none: browsers look at the bytes then (MIME Sniffing, 5.1 and 7). */
static bool tells_nothing(struct slice type) {
    static const struct slice types[] = {{"application/octet-stream", 24},
                                         {"binary/octet-stream", 19},
                                         {"application/unknown", 19},
                                         {"unknown/unknown", 15},
                                         {"*/*", 3}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (slice_equal_nocase(type, types[i]))
            return true;
    return type.length == 0;
}

/* The bytes decide only if the origin allows it, and if the response is not to be stored as a
 * file. */
static bool may_sniff(const struct gray_settings *settings, const struct http_head *head) {
    const struct http_field *options = http_head_find_text(head, SLICE("X-Content-Type-Options"));
    const struct http_field *place = http_head_find_text(head, SLICE("Content-Disposition"));
    return settings->sniff && tells_nothing(media_type_of(head)) &&
           (options == NULL || !slice_starts_with_nocase(options->value, SLICE("nosniff"))) &&
           (place == NULL || !slice_starts_with_nocase(place->value, SLICE("attachment")));
}

static void *gray_begin(void *service, struct service_exchange *exchange) {
    const struct gray_settings *settings = service;
    uint64_t length = adapted_head_length(exchange->head);
    bool listed = media_type_listed(media_type_of(exchange->head), &settings->types);
    if (!adapted_head_allowed(exchange) || !adapted_head_is_identity(exchange->head) ||
        (!listed && !may_sniff(settings, exchange->head)) || length < settings->min_size)
        return NULL;
    if (length != SERVICE_LENGTH_UNKNOWN && length > settings->max_size) {
        if (listed)
            service_count(exchange->host, GRAY_TOO_LARGE);
        return NULL;
    }
    struct gray_exchange *gray;
    ALLOC_OBJ(gray, GRAY_EXCHANGE_MAGIC);
    gray->settings = settings;
    gray->exchange = exchange;
    gray->original = -1;
    gray->sniffed = !listed;
    gray->verdict = SERVICE_HOLD;
    return gray;
}

/* The content type says image: do the bytes too? Another one of the known kinds will do, since the
 * helper looks only at the bytes. */
static void check_bytes(struct gray_exchange *gray, struct slice start, bool complete) {
    enum image_type type = gray->sniffed ? image_type_sniffed(start) : image_type_of_bytes(start);
    /* The operator has a recipe for this type. */
    if (!gray->sniffed &&
        image_type_of_media(media_type_of(gray->exchange->head)) == IMAGE_UNKNOWN) {
        gray->checked = true;
        return;
    }
    if (type == IMAGE_TOO_SHORT && !complete)
        return;
    gray->checked = true;
    bool wanted =
        !gray->sniffed || media_type_listed(image_type_media(type), &gray->settings->types);
    if (type == IMAGE_UNKNOWN || type == IMAGE_TOO_SHORT || !wanted)
        gray->verdict = SERVICE_SKIP;
}

/* The parameters for the helper: what is wanted of the image. */
static struct slice parameters_of(const struct gray_exchange *gray) {
    struct slice type = media_type_of(gray->exchange->head);
    return arena_printf(gray->exchange->arena, "%.*s&%s&type=%.*s",
                        SLICE_PRINT(gray->exchange->arguments), gray->settings->arguments,
                        SLICE_PRINT(type));
}

static struct picture_cost gray_cost_of(const struct gray_exchange *gray, struct slice bytes) {
    struct picture_options options = {0};
    picture_options_read(&options, parameters_of(gray));
    return picture_cost_of(bytes, &options);
}

static enum service_verdict gray_preview(void *state, struct slice body, bool complete) {
    struct gray_exchange *gray;
    CAST_OBJ(gray, state, GRAY_EXCHANGE_MAGIC);
    check_bytes(gray, body, complete);
    if (gray->verdict == SERVICE_SKIP)
        return SERVICE_SKIP;
    if (gray_cost_of(gray, body).pixels > gray->settings->max_pixels) {
        service_count(gray->exchange->host, GRAY_TOO_LARGE);
        return SERVICE_SKIP;
    }
    gray->original = helper_body_create("image");
    if (gray->original < 0) {
        service_failed(gray->exchange, "memory");
        return SERVICE_SKIP;
    }
    return SERVICE_HOLD;
}

/* Gives the original back, from its beginning. */
static void gray_give_up(struct gray_exchange *gray, enum gray_counter counter) {
    service_count(gray->exchange->host, counter);
    gray->verdict = SERVICE_SKIP;
    gray->source = gray->original;
    gray->at = 0;
    gray->until = gray->size;
    service_wait_none(gray->exchange);
}

/* Counts and logs a failure. `outage` is NULL when the image is at fault. */
static void gray_fail(struct gray_exchange *gray, enum gray_counter counter, const char *outage,
                      const char *why) {
    char line[240];
    snprintf(line, sizeof line, "an image of %llu bytes passes unchanged: %s",
             (unsigned long long)gray->size, why);
    service_log(gray->exchange->host, LOG_LEVEL_WARN, line);
    if (outage != NULL)
        service_failed(gray->exchange, outage);
    gray_give_up(gray, counter);
}

static size_t gray_push(void *state, struct slice body) {
    struct gray_exchange *gray;
    CAST_OBJ(gray, state, GRAY_EXCHANGE_MAGIC);
    if (gray->passing)
        return 0; /* once what is inside has gone out, the host passes the rest on itself */
    if (gray->size + body.length > gray->settings->max_size) {
        gray->passing = true;
        gray_give_up(gray, GRAY_TOO_LARGE);
        return 0;
    }
    if (!helper_body_write(gray->original, body.base, body.length)) {
        gray->passing = true;
        ftruncate(gray->original, (off_t)gray->size);
        gray_fail(gray, GRAY_REFUSED, "memory", strerror(errno));
        return 0;
    }
    gray->size += body.length;
    if (!gray->checked) {
        char start[IMAGE_SIGNATURE];
        ssize_t length = pread(gray->original, start, sizeof start, 0);
        check_bytes(gray, slice_make(start, length > 0 ? (size_t)length : 0), false);
        if (gray->verdict == SERVICE_SKIP) {
            gray->passing = true;
            gray->source = gray->original;
            gray->until = gray->size;
        }
    }
    return body.length;
}

static void gray_take_result(struct gray_exchange *gray) {
    struct service_exchange *exchange = gray->exchange;
    enum helper_status status = helper_job_status(gray->job);
    uint64_t length;
    int body = helper_job_body(gray->job, &length);
    if (status == HELPER_DONE && (body < 0 || length == 0))
        gray_fail(gray, GRAY_HELPER_FAILED, "failed", "the helper's result is no image");
    else if (status == HELPER_DONE) {
        gray->verdict = SERVICE_ADAPT;
        gray->source = body;
        gray->until = exchange->body_length = length;
        adapted_head_body_changed(exchange);
        service_wait_none(exchange);
    } else if (status == HELPER_UNCHANGED)
        gray_give_up(gray, GRAY_UNCHANGED);
    else
        gray_fail(gray,
                  status == HELPER_REFUSED   ? GRAY_REFUSED
                  : status == HELPER_TIMEOUT ? GRAY_TIMEOUT
                                             : GRAY_HELPER_FAILED,
                  helper_job_outage(gray->job), helper_job_error(gray->job));
}

static void gray_ready(void *state) {
    struct gray_exchange *gray;
    CAST_OBJ(gray, state, GRAY_EXCHANGE_MAGIC);
    helper_job_run(gray->job);
    if (helper_job_finished(gray->job))
        gray_take_result(gray);
}

/* The cost by all headers. If the image can't be mapped, the helper judges it. */
static struct picture_cost cost_of_original(const struct gray_exchange *gray) {
    struct picture_cost cost = {0, gray->size};
    void *bytes = MAP_FAILED;
    if (gray->size > 0)
        bytes = mmap(NULL, gray->size, PROT_READ, MAP_PRIVATE, gray->original, 0);
    if (bytes != MAP_FAILED) {
        cost = gray_cost_of(gray, slice_make(bytes, gray->size));
        munmap(bytes, gray->size);
    }
    return cost;
}

static void gray_ask_helper(struct gray_exchange *gray, uint64_t cost) {
    struct helper_request request = {.socket = gray->settings->helperd,
                                     .parameters = parameters_of(gray),
                                     .pool = slice_from(gray->settings->pool),
                                     .body = gray->original,
                                     .body_length = gray->size,
                                     .milliseconds = (uint32_t)gray->settings->deadline,
                                     .client = gray->exchange->client_ip,
                                     .cost = cost};
    gray->job = helper_job_start(&request);
    if (helper_job_finished(gray->job))
        gray_take_result(gray);
    else
        gray->exchange->wait = (struct service_wait){.fd = helper_job_fd(gray->job),
                                                     .events = POLLIN,
                                                     .deadline = helper_job_deadline(gray->job)};
}

static void gray_finish(void *state) {
    struct gray_exchange *gray;
    CAST_OBJ(gray, state, GRAY_EXCHANGE_MAGIC);
    gray->finished = true;
    if (gray->verdict != SERVICE_HOLD)
        return;
    if (!gray->checked) {
        gray_give_up(gray, GRAY_UNCHANGED);
        return;
    }
    if (!helper_body_seal(gray->original)) {
        gray_fail(gray, GRAY_REFUSED, "memory", strerror(errno));
        return;
    }
    struct picture_cost cost = cost_of_original(gray);
    if (cost.pixels > gray->settings->max_pixels)
        gray_give_up(gray, GRAY_TOO_LARGE);
    else
        gray_ask_helper(gray, cost.work);
}

static enum service_verdict gray_verdict(void *state) {
    struct gray_exchange *gray;
    CAST_OBJ(gray, state, GRAY_EXCHANGE_MAGIC);
    return gray->verdict;
}

static enum service_flow gray_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct gray_exchange *gray;
    CAST_OBJ(gray, state, GRAY_EXCHANGE_MAGIC);
    uint64_t left = gray->until - gray->at;
    size_t wanted = left < capacity ? (size_t)left : capacity;
    *got = 0;
    if (wanted > 0) {
        ssize_t length = pread(gray->source, out, wanted, (off_t)gray->at);
        if (length <= 0)
            return SERVICE_ABORT;
        *got = (size_t)length;
        gray->at += (uint64_t)length;
    }
    if (gray->at < gray->until)
        return SERVICE_FLOW;
    return gray->finished ? SERVICE_DONE : gray->passing ? SERVICE_PASS : SERVICE_FLOW;
}

static void gray_end(void *state) {
    struct gray_exchange *gray;
    CAST_OBJ(gray, state, GRAY_EXCHANGE_MAGIC);
    helper_job_end(&gray->job);
    if (gray->original >= 0)
        close(gray->original);
    FREE_OBJ(gray);
}

SERVICE_DEFINE(gray) = {
    .version = SERVICE_VERSION,
    .name = "gray",
    .description = "Retort gray",
    .build = SERVICES_BUILD,
    .points = SERVICE_RESPONSE,
    .wants_client_ip = true,
    .preview_size = 1024,
    .settings_size = sizeof(struct gray_settings),
    .options = gray_options,
    .counters = gray_counters,
    .start = gray_start,
    .begin = gray_begin,
    .preview = gray_preview,
    .push = gray_push,
    .finish = gray_finish,
    .verdict = gray_verdict,
    .pull = gray_pull,
    .ready = gray_ready,
    .end = gray_end,
};
