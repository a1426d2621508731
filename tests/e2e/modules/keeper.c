/*
 * keeper: does with the content of the cache what a request says in its fields, and answers the request with what came of it. For
 * the end-to-end tests of service/content.h (test_service_content.py).
 *
 *     service keeper { module = ".../keeper.so"  point = reqmod_precache }
 *
 *     X-Do: query | fetch | validate | expire | delete | pin | unpin | inject | pieces | read | parts | leave | flood
 *     X-Url, X-Variant, X-Seconds, X-Head ("|" stands for CRLF), X-Fields (likewise), X-Body, X-Count and X-Size (pieces),
 *     X-Length, X-For-Client (whose fetch it is), X-Close (closes it at once)
 *
 * leave: lets go of the exchange and not of the operation. flood: as many operations at once.
 */
#include "base/assert.h"
#include "base/spool.h"
#include "service/content.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEEPER_MOST = 512, KEEPER_PATIENCE = 30000 };

/* Operations that nobody waits for; stop closes them, unless they were to be forgotten. */
struct keeper_service {
    pthread_mutex_t lock;
    struct service_content *left[KEEPER_MOST];
    unsigned count;
    bool forgets;
};

struct keeper {
    unsigned magic;
#define KEEPER_MAGIC 0x6b656570u
    struct keeper_service *service;
    struct service_exchange *exchange;
    struct service_content *operations[KEEPER_MOST];
    unsigned count;
    struct http_head answer;
    struct spool body;
    uint64_t read;
    uint32_t sum; /* of what was read */
    bool answered;
};

struct keeper_settings {
    bool forgets;
};

static const struct service_option keeper_options[] = {{"Forgets", SERVICE_OPTION_SWITCH,
                                                        offsetof(struct keeper_settings, forgets),
                                                        "off", 0, 0, NULL, "stop closes nothing"},
                                                       {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static void *keeper_start(const void *settings, struct service_host *host, char *error,
                          size_t error_size) {
    const struct keeper_settings *own = settings;
    (void)error, (void)error_size;
    struct service_content *early = service_content_query(host, SLICE("http://a.example/"), 0);
    ASSERT(early == NULL); /* there is no cache in start */
    struct keeper_service *service = xcalloc(1, sizeof *service);
    pthread_mutex_init(&service->lock, NULL);
    service->forgets = own->forgets;
    return service;
}

static void keeper_stop(void *arg) {
    struct keeper_service *service = arg;
    for (unsigned i = 0; i < service->count && !service->forgets; i++)
        service_content_close(&service->left[i]);
    pthread_mutex_destroy(&service->lock);
    free(service);
}

static struct slice field(const struct keeper *keeper, const char *name) {
    const struct http_field *found =
        http_head_find_text(keeper->exchange->request, slice_from(name));
    return found == NULL ? SLICE("") : found->value;
}

static uint64_t number(const struct keeper *keeper, const char *name, uint64_t otherwise) {
    uint64_t value;
    return slice_to_uint64(field(keeper, name), &value) ? value : otherwise;
}

/* With a CRLF for each "|". */
static struct slice lines(const struct keeper *keeper, const char *name) {
    struct slice text = field(keeper, name);
    char *out = arena_alloc(keeper->exchange->arena, 2 * text.length + 1), *at = out;
    for (size_t i = 0; i < text.length; i++) {
        if (text.base[i] == '|')
            *at++ = '\r';
        *at++ = text.base[i] == '|' ? '\n' : text.base[i];
    }
    return slice_make(out, (size_t)(at - out));
}

static void *keeper_begin(void *service, struct service_exchange *exchange) {
    struct keeper *keeper;
    ALLOC_OBJ(keeper, KEEPER_MAGIC);
    keeper->service = service;
    keeper->exchange = exchange;
    spool_init(&keeper->body);
    if (field(keeper, "X-Do").length > 0)
        return keeper;
    if (exchange->of_service) {
        http_head_add(exchange->head, SLICE("X-Of-Service"), SLICE("yes"));
        exchange->keeps_body = true;
        return keeper;
    }
    FREE_OBJ(keeper);
    return NULL;
}

static void say(struct keeper *keeper, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct keeper *keeper, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    spool_append(&keeper->body, text,
                 (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static struct service_content *pieces(struct keeper *keeper, struct slice url) {
    char piece[4096];
    uint64_t count = number(keeper, "X-Count", 1), size = number(keeper, "X-Size", sizeof piece);
    struct service_content *operation = service_content_inject_start(
        keeper->exchange->host, url, (int64_t)number(keeper, "X-Seconds", 60),
        lines(keeper, "X-Head"), number(keeper, "X-Length", SERVICE_LENGTH_UNKNOWN));
    for (uint64_t i = 0; operation != NULL && i < count; i++) {
        memset(piece, 'a' + (int)(i % 26), sizeof piece);
        if (service_content_inject_body(operation, slice_make(piece, size)) < size)
            break;
    }
    if (operation != NULL && field(keeper, "X-Undone").length == 0)
        service_content_inject_done(operation);
    return operation;
}

static struct service_content *start(struct keeper *keeper) {
    const struct service_host *host = keeper->exchange->host;
    struct slice what = field(keeper, "X-Do"), url = field(keeper, "X-Url");
    unsigned variant = (unsigned)number(keeper, "X-Variant", 0);
    int64_t seconds = (int64_t)number(keeper, "X-Seconds", 60);
    const struct service_exchange *exchange =
        field(keeper, "X-For-Client").length > 0 ? keeper->exchange : NULL;
    if (slice_equal(what, SLICE("query")) || slice_equal(what, SLICE("flood")))
        return service_content_query(host, url, variant);
    if (slice_equal(what, SLICE("fetch")) || slice_equal(what, SLICE("leave")))
        return service_content_fetch(host, url, lines(keeper, "X-Fields"), exchange);
    if (slice_equal(what, SLICE("validate")))
        return service_content_validate(host, url, lines(keeper, "X-Fields"), exchange);
    if (slice_equal(what, SLICE("expire")))
        return service_content_expire(host, url, seconds);
    if (slice_equal(what, SLICE("delete")))
        return service_content_delete(host, url);
    if (slice_equal(what, SLICE("pin")) || slice_equal(what, SLICE("unpin")))
        return service_content_pin(host, url, slice_equal(what, SLICE("pin")));
    if (slice_equal(what, SLICE("inject")))
        return service_content_inject(host, url,
                                      slice_equal(field(keeper, "X-Seconds"), SLICE("head"))
                                          ? SERVICE_CONTENT_BY_HEAD
                                          : seconds,
                                      lines(keeper, "X-Head"), field(keeper, "X-Body"));
    if (slice_equal(what, SLICE("pieces")))
        return pieces(keeper, url);
    if (slice_equal(what, SLICE("read")))
        return service_content_read(host, url, variant, number(keeper, "X-Length", UINT64_MAX));
    return service_content_read_start(host, url, variant);
}

static void tell(struct keeper *keeper, const struct service_content_answer *answer) {
    static const char *const statuses[] = {"done", "not stored", "refused", "failed"};
    say(keeper,
        "status: %s\nwhy: %s\nurl: %.*s\nobjects: %llu\nhttp: %u\nresult: %.*s\nstate: %.*s\n"
        "size: %llu\nage: %lld\nfresh_for: %lld\nhits: %llu\npinned: %d\non_disk: %d\n",
        statuses[answer->status], answer->why, SLICE_PRINT(answer->url),
        (unsigned long long)answer->objects, answer->http_status, SLICE_PRINT(answer->result),
        SLICE_PRINT(answer->state), (unsigned long long)answer->size, (long long)answer->age,
        (long long)answer->fresh_for, (unsigned long long)answer->hits, answer->pinned,
        answer->on_disk);
    if (answer->head.length > 0)
        say(keeper, "line: %.*s\n", (int)strcspn(answer->head.base, "\r\n"), answer->head.base);
    if (answer->body.length > 0 && answer->body.length < 1000)
        say(keeper, "body: %.*s\n", SLICE_PRINT(answer->body));
}

static enum service_verdict answered(struct keeper *keeper) {
    struct service_exchange *exchange = keeper->exchange;
    http_head_init(&keeper->answer);
    keeper->answer.version = 11;
    keeper->answer.status = 200;
    keeper->answer.reason = SLICE("OK");
    http_head_add(&keeper->answer, SLICE("Content-Type"), SLICE("text/plain"));
    http_head_add(&keeper->answer, SLICE("Cache-Control"), SLICE("no-store"));
    exchange->answer = &keeper->answer;
    exchange->body_length = keeper->body.length;
    keeper->answered = true;
    return SERVICE_ADAPT;
}

static enum service_verdict waits(struct keeper *keeper, struct service_content *operation) {
    struct service_wait *wait = &keeper->exchange->wait;
    if (wait->fd < 0)
        *wait = (struct service_wait){.fd = service_content_descriptor(operation),
                                      .events = POLLIN,
                                      .deadline = service_now() + KEEPER_PATIENCE};
    return SERVICE_HOLD;
}

/* The whole object in parts; false: it waits. */
static bool read_parts(struct keeper *keeper, struct service_content *operation) {
    char part[10000];
    size_t got;
    enum service_content_flow flow;
    while ((flow = service_content_read_part(operation, part, sizeof part, &got)) ==
           SERVICE_CONTENT_BYTES) {
        keeper->read += got;
        for (size_t i = 0; i < got; i++)
            keeper->sum = keeper->sum * 31 + (unsigned char)part[i];
    }
    if (flow == SERVICE_CONTENT_WAIT)
        return false;
    say(keeper, "read: %llu\nsum: %u\nflow: %s\n", (unsigned long long)keeper->read, keeper->sum,
        flow == SERVICE_CONTENT_END ? "end" : "broken");
    return true;
}

static enum service_verdict look(struct keeper *keeper) {
    for (unsigned i = 0; i < keeper->count; i++)
        if (service_content_answer(keeper->operations[i]) == NULL) {
            keeper->exchange->wait.fd = -1;
            return waits(keeper, keeper->operations[i]);
        }
    struct service_content *first = keeper->operations[0];
    if (slice_equal(field(keeper, "X-Do"), SLICE("parts")) && !read_parts(keeper, first))
        return waits(keeper, first);
    tell(keeper, service_content_answer(first));
    return answered(keeper);
}

/* So many at once, of which some are refused. */
static enum service_verdict flood(struct keeper *keeper) {
    uint64_t wanted = number(keeper, "X-Count", 1);
    for (uint64_t i = 0; i < wanted && keeper->count < KEEPER_MOST; i++) {
        struct service_content *operation = start(keeper);
        if (operation != NULL)
            keeper->operations[keeper->count++] = operation;
    }
    say(keeper, "begun: %u\n", keeper->count);
    return keeper->count == 0 ? answered(keeper) : look(keeper);
}

static enum service_verdict leave(struct keeper *keeper, struct service_content *operation) {
    struct keeper_service *service = keeper->service;
    pthread_mutex_lock(&service->lock);
    ASSERT(service->count < KEEPER_MOST);
    service->left[service->count++] = operation;
    pthread_mutex_unlock(&service->lock);
    say(keeper, "left\n");
    return answered(keeper);
}

static enum service_verdict keeper_preview(void *state, struct slice body, bool complete) {
    struct keeper *keeper;
    CAST_OBJ(keeper, state, KEEPER_MAGIC);
    (void)body, (void)complete;
    if (keeper->exchange->keeps_body)
        return SERVICE_ADAPT;
    if (slice_equal(field(keeper, "X-Do"), SLICE("flood")))
        return flood(keeper);
    struct service_content *operation = start(keeper);
    if (operation == NULL) {
        say(keeper, "status: none\n");
        return answered(keeper);
    }
    if (slice_equal(field(keeper, "X-Do"), SLICE("leave")))
        return leave(keeper, operation);
    if (field(keeper, "X-Close").length > 0) {
        service_content_close(&operation);
        say(keeper, "closed\n");
        return answered(keeper);
    }
    keeper->operations[keeper->count++] = operation;
    return look(keeper);
}

static size_t keeper_push(void *state, struct slice body) {
    (void)state;
    return body.length;
}

static void keeper_finish(void *state) {
    (void)state;
}

static enum service_verdict keeper_verdict(void *state) {
    struct keeper *keeper;
    CAST_OBJ(keeper, state, KEEPER_MAGIC);
    return look(keeper);
}

static void keeper_ready(void *state) {
    struct keeper *keeper;
    CAST_OBJ(keeper, state, KEEPER_MAGIC);
    service_wait_none(keeper->exchange);
}

static enum service_flow keeper_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct keeper *keeper;
    CAST_OBJ(keeper, state, KEEPER_MAGIC);
    *got = spool_read(&keeper->body, out, capacity);
    return keeper->body.length == 0 ? SERVICE_DONE : SERVICE_FLOW;
}

static void keeper_end(void *state) {
    struct keeper *keeper;
    CAST_OBJ(keeper, state, KEEPER_MAGIC);
    for (unsigned i = 0; i < keeper->count; i++)
        service_content_close(&keeper->operations[i]);
    spool_release(&keeper->body);
    FREE_OBJ(keeper);
}

SERVICE_DEFINE(keeper) = {
    .version = SERVICE_VERSION,
    .name = "keeper",
    .description = "does with the content of the cache what a request says",
    .points = SERVICE_REQUEST,
    .settings_size = sizeof(struct keeper_settings),
    .options = keeper_options,
    .start = keeper_start,
    .stop = keeper_stop,
    .begin = keeper_begin,
    .preview = keeper_preview,
    .push = keeper_push,
    .finish = keeper_finish,
    .verdict = keeper_verdict,
    .pull = keeper_pull,
    .ready = keeper_ready,
    .end = keeper_end,
};
