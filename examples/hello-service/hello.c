/*
 * hello: a whole adaptation service, as small as one can be. It greets whoever reads plain text:
 *
 *     Hello, world!
 *     (here the text as the origin sent it)
 *
 *     hello.Greeting TEXT     in c-icap's configuration: another greeting
 *     ?name=WHO               behind the URI of the service: who is greeted
 *
 * README.md says how to build and run it; docs/SERVICES.md, "A service of your own", explains it
 * step by step.
 */
#include "base/assert.h"
#include "base/spool.h"
#include "service/adapted_head.h"
#include "service/arguments.h"
#include "service/service.h"

#include <stdio.h>

enum { BUFFER = 64 * 1024 }; /* bytes of an exchange that wait inside, at most */

/* What the operator can say. `hello_options` fills it before start is called. */
struct hello_settings {
    char *greeting;
    struct service_list types;
};

static const struct service_option hello_options[] = {
    {"Greeting", SERVICE_OPTION_TEXT, offsetof(struct hello_settings, greeting), "Hello", 0, 0,
     NULL, "what stands before the name"},
    {"Type", SERVICE_OPTION_LIST, offsetof(struct hello_settings, types), "text/plain", 0, 0, NULL,
     "content types of texts that get a greeting"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

enum { HELLO_GREETED };
static const char *const hello_counters[] = {[HELLO_GREETED] = "GREETED", NULL};

/* One response on its way through. */
struct hello {
    unsigned magic;
#define HELLO_MAGIC 0x68656c6cu
    struct service_exchange *exchange;
    struct slice greeting; /* what of it has not gone out yet */
    struct spool body;
    bool finished;
};

/* Here are no lists to load and nothing to connect to: the settings are all there is. Two versions
 * of the code make two results, so the version is a part of what caches are told (ICAP: ISTag). */
static void *hello_start(const void *settings, struct service_host *host, char *error,
                         size_t error_size) {
    static const char version[] = "hello 1";
    const struct hello_settings *own = settings;
    if (own->greeting == NULL || own->greeting[0] == 0) {
        snprintf(error, error_size, "hello.Greeting: say something, or leave the line out");
        return NULL;
    }
    host->fingerprint = service_fingerprint(host->fingerprint, version, sizeof version);
    return (void *)settings;
}

/* "Hello, world!" and the end of the line, in memory that lives as long as the exchange. */
static struct slice make_greeting(struct service_exchange *exchange, const char *greeting) {
    struct slice name = SLICE("world");
    service_argument(exchange->arguments, SLICE("name"), &name);
    return arena_concat(exchange->arena, slice_from(greeting), SLICE(", "), name, SLICE("!\n"));
}

/* The heads are known. NULL: the response passes as it is, and this service sees no more of it. */
static void *hello_begin(void *service, struct service_exchange *exchange) {
    const struct hello_settings *settings = service;
    if (!adapted_head_allowed(exchange) || !adapted_head_is_identity(exchange->head) ||
        !media_type_listed(media_type_of(exchange->head), &settings->types))
        return NULL;
    struct hello *hello;
    ALLOC_OBJ(hello, HELLO_MAGIC);
    hello->exchange = exchange;
    hello->greeting = make_greeting(exchange, settings->greeting);
    spool_init(&hello->body);
    return hello;
}

/* The first bytes: the last moment to let the response pass, and to change its head. */
static enum service_verdict hello_preview(void *state, struct slice body, bool complete) {
    struct hello *hello;
    CAST_OBJ(hello, state, HELLO_MAGIC);
    struct service_exchange *exchange = hello->exchange;
    if (complete && body.length == 0)
        return SERVICE_SKIP; /* nobody reads an empty text */
    uint64_t length = adapted_head_length(exchange->head);
    if (length != SERVICE_LENGTH_UNKNOWN)
        exchange->body_length = length + hello->greeting.length;
    adapted_head_body_changed(exchange);
    service_count(exchange->host, HELLO_GREETED);
    return SERVICE_ADAPT;
}

/* Takes what there is room for; the rest is offered again after the next pull. */
static size_t hello_push(void *state, struct slice body) {
    struct hello *hello;
    CAST_OBJ(hello, state, HELLO_MAGIC);
    size_t room = hello->body.length < BUFFER ? BUFFER - hello->body.length : 0;
    size_t length = body.length < room ? body.length : room;
    return spool_append(&hello->body, body.base, length) ? length : 0;
}

static void hello_finish(void *state) {
    struct hello *hello;
    CAST_OBJ(hello, state, HELLO_MAGIC);
    hello->finished = true;
}

static enum service_flow hello_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct hello *hello;
    CAST_OBJ(hello, state, HELLO_MAGIC);
    struct slice *greeting = &hello->greeting;
    size_t length = greeting->length < capacity ? greeting->length : capacity;
    memcpy(out, greeting->base, length);
    *greeting = slice_make(greeting->base + length, greeting->length - length);
    *got = length + spool_read(&hello->body, out + length, capacity - length);
    if (greeting->length > 0 || hello->body.length > 0)
        return SERVICE_FLOW;
    /* The greeting is out, so the rest is none of our business. */
    return hello->finished ? SERVICE_DONE : SERVICE_PASS;
}

/* Always called, also when the sender or the reader died on the way. */
static void hello_end(void *state) {
    struct hello *hello;
    CAST_OBJ(hello, state, HELLO_MAGIC);
    spool_release(&hello->body);
    FREE_OBJ(hello);
}

SERVICE_DEFINE(hello) = {
    .version = SERVICE_VERSION,
    .name = "hello",
    .description = "greets whoever reads plain text",
    .build = SERVICE_BUILD,
    .points = SERVICE_RESPONSE,
    .preview_size = 1024,
    .settings_size = sizeof(struct hello_settings),
    .options = hello_options,
    .counters = hello_counters,
    .start = hello_start,
    .begin = hello_begin,
    .preview = hello_preview,
    .push = hello_push,
    .finish = hello_finish,
    .pull = hello_pull,
    .end = hello_end,
};
