#include "patience/trickle.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/reserve.h"
#include "cache/name.h"

#include <xxhash.h>

enum { URL_SHOWN = 200 };

static const char other_body[] = "its result begins with other bytes";

static void reset(struct trickle *trickle) {
    XXH3_64bits_reset_withSecret(trickle->state, cache_secret()->bytes, CACHE_SECRET);
}

static void on_portion(struct timer *timer) {
    struct trickle *trickle = CONTAINER_OF(timer, struct trickle, timer);
    CHECK_OBJ(trickle, TRICKLE_MAGIC);
    trickle->portion = trickle->settings->trickle_bytes;
    loop_timer_after(trickle->net->loop, timer, trickle->settings->trickle_every);
    source_wake(&trickle->source);
}

/* Half of the received bytes, less those already sent. */
static uint64_t allowance(const struct trickle *trickle) {
    uint64_t half = adapter_call_kept(trickle->call) / 2;
    uint64_t left = half > trickle->given ? half - trickle->given : 0;
    return left < trickle->portion ? left : trickle->portion;
}

static enum source_status read_portion(struct trickle *trickle, char *buffer, size_t capacity,
                                       size_t *got) {
    uint64_t most = allowance(trickle);
    if (most < capacity)
        capacity = (size_t)most;
    *got = capacity == 0 ? 0 : adapter_call_peek(trickle->call, &trickle->cursor, buffer, capacity);
    if (*got == 0)
        return SOURCE_WAIT;
    XXH3_64bits_update(trickle->state, buffer, *got);
    trickle->given += *got;
    trickle->portion -= *got;
    trickle->net->counters.adapt_trickled_bytes += *got;
    return SOURCE_DATA;
}

static enum source_status cut(struct trickle *trickle, const char *reason) {
    trickle_cut(trickle, reason);
    return SOURCE_FAILED;
}

/* The bytes that the client already has. The result must begin with them. */
static enum source_status trickle_compare(struct trickle *trickle, char *buffer, size_t capacity) {
    while (trickle->compared < trickle->given) {
        uint64_t left = trickle->given - trickle->compared;
        size_t got, most = left < capacity ? (size_t)left : capacity;
        enum source_status status = source_read(trickle->rest, buffer, most, &got);
        if (status == SOURCE_END)
            return cut(trickle, other_body);
        if (status != SOURCE_DATA)
            return status;
        XXH3_64bits_update(trickle->state, buffer, got);
        trickle->compared += got;
        if (trickle->compared == trickle->given &&
            XXH3_64bits_digest(trickle->state) != trickle->hash)
            return cut(trickle, other_body);
    }
    return SOURCE_DATA;
}

static enum source_status trickle_read_rest(struct trickle *trickle, char *buffer, size_t capacity,
                                            size_t *got) {
    if (trickle->rest == NULL)
        return trickle->given == 0 ? SOURCE_END : cut(trickle, other_body);
    source_set_waker(trickle->rest, trickle->source.waker);
    enum source_status status = trickle_compare(trickle, buffer, capacity);
    return status == SOURCE_DATA ? source_read(trickle->rest, buffer, capacity, got) : status;
}

static enum source_status trickle_read(struct source *source, char *buffer, size_t capacity,
                                       size_t *got) {
    struct trickle *trickle = CONTAINER_OF(source, struct trickle, source);
    CHECK_OBJ(trickle, TRICKLE_MAGIC);
    *got = 0;
    if (trickle->failed)
        return SOURCE_FAILED;
    return trickle->decided ? trickle_read_rest(trickle, buffer, capacity, got)
                            : read_portion(trickle, buffer, capacity, got);
}

static void source_closed(struct source *source) {
    struct trickle *trickle = CONTAINER_OF(source, struct trickle, source);
    CHECK_OBJ(trickle, TRICKLE_MAGIC);
    trickle->closed = true;
    timer_cancel(&trickle->net->loop->timers, &trickle->timer);
    source_close(&trickle->rest);
}

static const struct source_class trickled_body_class = {"trickled body", trickle_read,
                                                        source_closed, NULL};

void trickle_start(struct trickle *trickle, struct adapter_call *call,
                   const struct service_settings *settings, struct slice url,
                   struct net_context *net) {
    INIT_OBJ(trickle, TRICKLE_MAGIC);
    trickle->call = call;
    trickle->settings = settings;
    trickle->net = net;
    trickle->url = url;
    while ((trickle->state = XXH3_createState()) == NULL)
        reserve_spend(sizeof *trickle);
    reset(trickle);
    timer_init(&trickle->timer, on_portion);
    source_init(&trickle->source, &trickled_body_class, net->loop, -1);
    net->counters.adapt_trickled++;
    on_portion(&trickle->timer);
}

struct source *trickle_body(struct trickle *trickle) {
    CHECK_OBJ(trickle, TRICKLE_MAGIC);
    return &trickle->source;
}

static void trickle_decide(struct trickle *trickle) {
    ASSERT(!trickle->decided);
    trickle->decided = true;
    timer_cancel(&trickle->net->loop->timers, &trickle->timer);
}

void trickle_go_on(struct trickle *trickle, struct source **rest) {
    CHECK_OBJ(trickle, TRICKLE_MAGIC);
    trickle_decide(trickle);
    trickle->rest = *rest;
    *rest = NULL;
    trickle->hash = XXH3_64bits_digest(trickle->state);
    reset(trickle);
    if (trickle->closed)
        source_close(&trickle->rest);
    source_wake(&trickle->source);
}

void trickle_cut(struct trickle *trickle, const char *reason) {
    CHECK_OBJ(trickle, TRICKLE_MAGIC);
    struct slice url = trickle->url;
    if (url.length > URL_SHOWN)
        url.length = URL_SHOWN;
    if (!trickle->decided)
        trickle_decide(trickle);
    trickle->failed = true;
    if (trickle->closed)
        return;
    trickle->net->counters.adapt_trickle_cut++;
    log_warn("service %s: %.*s: %s, and the client already has a part of the body, so its "
             "connection is cut",
             trickle->settings->name, SLICE_PRINT(url), reason);
    source_wake(&trickle->source);
}

void trickle_close(struct trickle *trickle) {
    CHECK_OBJ(trickle, TRICKLE_MAGIC);
    timer_cancel(&trickle->net->loop->timers, &trickle->timer);
    source_close(&trickle->rest);
    XXH3_freeState(trickle->state);
    trickle->magic = 0;
}
