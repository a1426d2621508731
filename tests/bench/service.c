/*
 * bench: a service that does one of the things that services do, and nothing else, so that its cost is that of its place: inside
 * the proxy, in a thread, in a process, or at an ICAP server. It is loaded by the cases of suite/cases/table5.py.
 *
 *     service s { module = ".../bench.so"  settings = { Work = "header" } }
 *     icap_service s { uri = "icap://127.0.0.1:1344/bench?work=header" }
 *
 *     see        looks for a field in the heads, and leaves the message alone
 *     header     adds the field X-Bench
 *     read       reads the whole body before its verdict, as a virus scanner does, and leaves the message alone
 *     rewrite    makes another body of the same length: the lowest bit of each byte is the other one
 */
#include "service/service.h"
#include "base/assert.h"
#include "base/spool.h"
#include "service/adapted_head.h"
#include "service/arguments.h"

enum { BENCH_ROOM = 64 * 1024 };

enum bench_work { BENCH_SEE, BENCH_HEADER, BENCH_READ, BENCH_REWRITE, BENCH_WORKS };
static const char *const bench_works[BENCH_WORKS] = {"see", "header", "read", "rewrite"};

struct bench_settings {
    uint64_t work;
};

static const struct service_option bench_options[] = {
    {"Work", SERVICE_OPTION_CHOICE, offsetof(struct bench_settings, work), "see", 0, 0,
     "see|header|read|rewrite", "what it does"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

enum { BENCH_FOUND, BENCH_SUMS };
static const char *const bench_counters[] = {[BENCH_FOUND] = "FOUND", [BENCH_SUMS] = "SUMS", NULL};

struct bench {
    unsigned magic;
#define BENCH_MAGIC 0x62656e63u
    enum bench_work work;
    struct service_exchange *exchange;
    struct spool body;
    uint64_t sum;
    bool finished;
};

static void *bench_start(const void *settings, struct service_host *host, char *error,
                         size_t error_size) {
    (void)host;
    (void)error;
    (void)error_size;
    return (void *)settings;
}

static enum bench_work work_of(const struct bench_settings *settings, struct slice arguments) {
    struct slice name;
    if (arguments.length > 0 && service_argument(arguments, SLICE("work"), &name))
        for (unsigned work = 0; work < BENCH_WORKS; work++)
            if (slice_equal(name, slice_from(bench_works[work])))
                return (enum bench_work)work;
    return (enum bench_work)settings->work;
}

/* What a service has to look at before it can tell. */
static bool finds_field(const struct service_exchange *exchange) {
    return http_head_find_text(exchange->head, SLICE("X-Wanted")) != NULL ||
           http_head_find_text(exchange->request, SLICE("X-Wanted")) != NULL;
}

static void *bench_begin(void *service, struct service_exchange *exchange) {
    enum bench_work work = work_of(service, exchange->arguments);
    if (work == BENCH_SEE && finds_field(exchange))
        service_count(exchange->host, BENCH_FOUND);
    if (work == BENCH_SEE)
        return NULL;
    struct bench *bench = arena_alloc(exchange->arena, sizeof *bench);
    *bench = (struct bench){.magic = BENCH_MAGIC, .work = work, .exchange = exchange};
    spool_init(&bench->body);
    return bench;
}

static enum service_verdict bench_preview(void *state, struct slice body, bool complete) {
    struct bench *bench;
    CAST_OBJ(bench, state, BENCH_MAGIC);
    struct service_exchange *exchange = bench->exchange;
    (void)body;
    (void)complete;
    if (bench->work == BENCH_READ)
        return SERVICE_HOLD;
    if (bench->work == BENCH_REWRITE) {
        exchange->body_length = adapted_head_length(exchange->head);
        return SERVICE_ADAPT;
    }
    exchange->keeps_body = true;
    http_head_add(exchange->head, SLICE("X-Bench"), SLICE("1"));
    return SERVICE_ADAPT;
}

/* Of all bytes, by words: what it takes is to be small beside what the place takes. */
static uint64_t bench_sum(const char *bytes, size_t length) {
    uint64_t sum = 0, word;
    for (; length >= sizeof word; length -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        sum += word;
    }
    for (; length > 0; length--)
        sum += (unsigned char)*bytes++;
    return sum;
}

/* A body that is only read is kept all the same: a host that has no copy asks for it. */
static size_t bench_push(void *state, struct slice body) {
    struct bench *bench;
    CAST_OBJ(bench, state, BENCH_MAGIC);
    size_t length = body.length;
    if (bench->work == BENCH_REWRITE) {
        size_t room = bench->body.length < BENCH_ROOM ? BENCH_ROOM - bench->body.length : 0;
        length = length < room ? length : room;
    }
    bench->sum += bench_sum(body.base, length);
    return spool_append(&bench->body, body.base, length) ? length : 0;
}

static void bench_finish(void *state) {
    struct bench *bench;
    CAST_OBJ(bench, state, BENCH_MAGIC);
    bench->finished = true;
}

static enum service_verdict bench_verdict(void *state) {
    struct bench *bench;
    CAST_OBJ(bench, state, BENCH_MAGIC);
    if (!bench->finished)
        return SERVICE_HOLD;
    if (bench->sum % 2 == 0)
        service_count(bench->exchange->host, BENCH_SUMS);
    return SERVICE_SKIP;
}

static void bench_rewrite(char *bytes, size_t length) {
    const uint64_t lowest = UINT64_C(0x0101010101010101);
    uint64_t word;
    for (; length >= sizeof word; length -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        word ^= lowest;
        memcpy(bytes, &word, sizeof word);
    }
    for (; length > 0; length--)
        *bytes++ ^= 1;
}

static enum service_flow bench_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct bench *bench;
    CAST_OBJ(bench, state, BENCH_MAGIC);
    *got = spool_read(&bench->body, out, capacity);
    if (bench->work == BENCH_REWRITE)
        bench_rewrite(out, *got);
    return bench->finished && bench->body.length == 0 ? SERVICE_DONE : SERVICE_FLOW;
}

static void bench_end(void *state) {
    struct bench *bench;
    CAST_OBJ(bench, state, BENCH_MAGIC);
    spool_release(&bench->body);
    bench->magic = 0;
}

SERVICE_DEFINE(bench) = {
    .version = SERVICE_VERSION,
    .name = "bench",
    .description = "does one thing at a time",
    .points = SERVICE_RESPONSE,
    .preview_size = 0,
    .settings_size = sizeof(struct bench_settings),
    .options = bench_options,
    .counters = bench_counters,
    .start = bench_start,
    .begin = bench_begin,
    .preview = bench_preview,
    .push = bench_push,
    .finish = bench_finish,
    .verdict = bench_verdict,
    .pull = bench_pull,
    .end = bench_end,
};
