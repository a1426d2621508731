#include "fleet/wire.h"

#include "base/assert.h"
#include "net/dial.h"
#include "net/resolver.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

/* LOOK: milliseconds; so often a wait looks whether it is to end. */
enum { LOOK = 100, PIECE = 16384 };

struct wire {
    unsigned magic;
#define WIRE_MAGIC 0x313e0f1eu
    struct loop loop;
    struct net_context net;
    struct tls_trust *trust;
    struct tls_client *client;
    struct connection *connection;
    struct task woken;
    struct timer look;
    redisReader *reader;
    size_t fed, elements; /* bytes and elements of the answer that is not whole yet */
    char *out;
    size_t out_length, out_room;
    struct wire_target target;
};

/* ---- answers ----------------------------------------------------------------------------------- */

/* hiredis reads, and calls these: memory is taken for what has come, not for what is announced. */

void reply_free(struct reply **replyp) {
    struct reply *reply = *replyp;
    *replyp = NULL;
    if (reply == NULL)
        return;
    for (size_t i = 0; i < reply->count; i++)
        reply_free(&reply->elements[i]);
    free(reply->elements);
    free((char *)reply->text.base);
    free(reply);
}

static void reply_free_object(void *object) {
    struct reply *reply = object;
    reply_free(&reply);
}

/* Puts it into the list that it is an element of. NULL: the answer is too long. */
static void *reply_add(const redisReadTask *task, struct reply *reply) {
    struct wire *wire = task->privdata;
    struct reply *list = task->parent != NULL ? task->parent->obj : NULL;
    if (++wire->elements > WIRE_ELEMENTS_MAX) {
        reply_free(&reply);
        return NULL;
    }
    if (list != NULL) {
        if ((list->count & (list->count - 1)) == 0)
            list->elements = xrealloc(list->elements, (list->count == 0 ? 1 : 2 * list->count) *
                                                          sizeof(struct reply *));
        list->elements[list->count++] = reply;
    }
    return reply;
}

static struct reply *reply_new(enum reply_type type) {
    struct reply *reply = xcalloc(1, sizeof *reply);
    reply->type = type;
    return reply;
}

static void *reply_create_text(const redisReadTask *task, char *text, size_t length) {
    struct reply *reply = reply_new(task->type == REDIS_REPLY_ERROR ? REPLY_ERROR : REPLY_TEXT);
    reply->text = slice_make(slice_dup(slice_make(text, length)), length);
    return reply_add(task, reply);
}

#if defined HIREDIS_MAJOR && HIREDIS_MAJOR >= 1
typedef size_t reply_count;
#else
typedef int reply_count;
#endif

static void *reply_create_list(const redisReadTask *task, reply_count count) {
    unsigned depth = 0;
    for (const redisReadTask *above = task; above != NULL; above = above->parent)
        depth++;
    if (depth > WIRE_DEPTH_MAX || (uint64_t)count > WIRE_ELEMENTS_MAX)
        return NULL;
    return reply_add(task, reply_new(REPLY_LIST));
}

static void *reply_create_number(const redisReadTask *task, long long number) {
    struct reply *reply = reply_new(REPLY_NUMBER);
    reply->number = number;
    return reply_add(task, reply);
}

static void *reply_create_nothing(const redisReadTask *task) {
    return reply_add(task, reply_new(REPLY_NOTHING));
}

#if defined HIREDIS_MAJOR && HIREDIS_MAJOR >= 1
/* Types of RESP3, which nobody has asked for. */
static void *reply_refuse_double(const redisReadTask *task, double value, char *text,
                                 size_t length) {
    (void)task, (void)value, (void)text, (void)length;
    return NULL;
}

static void *reply_refuse_bool(const redisReadTask *task, int value) {
    (void)task, (void)value;
    return NULL;
}
#endif

static redisReplyObjectFunctions reply_functions = {
    .createString = reply_create_text,
    .createArray = reply_create_list,
    .createInteger = reply_create_number,
    .createNil = reply_create_nothing,
#if defined HIREDIS_MAJOR && HIREDIS_MAJOR >= 1
    .createDouble = reply_refuse_double,
    .createBool = reply_refuse_bool,
#endif
    .freeObject = reply_free_object,
};

/* ---- the connection ---------------------------------------------------------------------------- */

static void wire_on_look(struct timer *timer) {
    struct wire *wire = CONTAINER_OF(timer, struct wire, look);
    loop_timer_after(&wire->loop, &wire->look, LOOK);
}

static void wire_on_woken(struct task *task) {
    (void)task; /* who waits looks again */
}

static void wire_on_ready(struct connection *connection) {
    (void)connection;
}

/* Waits for something to happen. False: it is time to stop, or too late. */
static bool wait_a_little(struct wire *wire, uint64_t until, char error[FLEET_ERROR]) {
    if (atomic_load(wire->target.stop)) {
        snprintf(error, FLEET_ERROR, "the process ends");
        return false;
    }
    if (wire->loop.now >= until) {
        snprintf(error, FLEET_ERROR, "%.*s:%u does not answer in time",
                 SLICE_PRINT(wire->target.host), wire->target.port);
        return false;
    }
    loop_run_once(&wire->loop);
    return true;
}

static uint64_t until_of(struct wire *wire, uint64_t patience) {
    loop_update_time(&wire->loop);
    return wire->loop.now + wire->target.timeout + patience;
}

static bool wire_dial(struct wire *wire, char error[FLEET_ERROR]) {
    struct dial dial;
    uint64_t until = until_of(wire, wire->target.timeout);
    if (wire->target.trust != NULL) {
        wire->trust = tls_trust_new(wire->target.trust);
        wire->client = tls_client_of(wire->trust, wire->target.host, NULL);
    }
    const struct dial_target target = {
        .host = wire->target.host,
        .port = wire->target.port,
        .egress = EGRESS_ANY,
        .timeout = wire->target.timeout,
        .tls = wire->client,
    };
    dial_start(&dial, &wire->net, &target, &wire->woken);
    bool waits = true;
    while (waits && dial.state != DIAL_DONE && dial.state != DIAL_FAILED)
        waits = wait_a_little(wire, until, error);
    if (dial.state == DIAL_DONE)
        wire->connection = dial_take(&dial, wire_on_ready, wire);
    else if (dial.state == DIAL_FAILED)
        snprintf(error, FLEET_ERROR, "%.*s:%u: %s", SLICE_PRINT(wire->target.host),
                 wire->target.port, dial.error);
    dial_cancel(&dial);
    return wire->connection != NULL;
}

struct wire *wire_open(const struct wire_target *target, char error[FLEET_ERROR]) {
    struct wire *wire;
    ALLOC_OBJ(wire, WIRE_MAGIC);
    wire->target = *target;
    wire->target.host = slice_from(slice_dup(target->host));
    if (!loop_init(&wire->loop)) {
        snprintf(error, FLEET_ERROR, "cannot create an event loop");
        free((char *)wire->target.host.base);
        FREE_OBJ(wire);
        return NULL;
    }
    net_context_init(&wire->net, &wire->loop);
    task_init(&wire->woken, wire_on_woken);
    timer_init(&wire->look, wire_on_look);
    loop_timer_after(&wire->loop, &wire->look, LOOK);
    wire->reader = redisReaderCreateWithFunctions(&reply_functions);
    if (wire->reader != NULL)
        wire->reader->privdata = wire;
    wire->net.resolver = resolver_new(&wire->net);
    if (wire->net.resolver == NULL || wire->reader == NULL || !wire_dial(wire, error)) {
        if (wire->net.resolver == NULL)
            snprintf(error, FLEET_ERROR, "cannot look up names");
        wire_close(&wire);
    }
    return wire;
}

void wire_close(struct wire **wirep) {
    struct wire *wire = *wirep;
    *wirep = NULL;
    if (wire == NULL)
        return;
    CHECK_OBJ(wire, WIRE_MAGIC);
    if (wire->connection != NULL)
        connection_close(&wire->connection);
    tls_client_release(&wire->client);
    tls_trust_release(&wire->trust);
    if (wire->net.resolver != NULL)
        resolver_free(&wire->net.resolver);
    if (wire->reader != NULL)
        redisReaderFree(wire->reader);
    timer_cancel(&wire->loop.timers, &wire->look);
    task_cancel(&wire->woken);
    net_context_release(&wire->net);
    loop_release(&wire->loop);
    free(wire->out);
    free((char *)wire->target.host.base);
    FREE_OBJ(wire);
}

/* ---- commands ---------------------------------------------------------------------------------- */

static void wire_add(struct wire *wire, const char *bytes, size_t length) {
    if (wire->out_length + length > wire->out_room) {
        wire->out_room = 2 * (wire->out_length + length);
        wire->out = xrealloc(wire->out, wire->out_room);
    }
    memcpy(wire->out + wire->out_length, bytes, length);
    wire->out_length += length;
}

void wire_put(struct wire *wire, size_t count, const struct slice *words) {
    char head[32];
    CHECK_OBJ(wire, WIRE_MAGIC);
    wire_add(wire, head, (size_t)snprintf(head, sizeof head, "*%zu\r\n", count));
    for (size_t i = 0; i < count; i++) {
        wire_add(wire, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", words[i].length));
        wire_add(wire, words[i].base, words[i].length);
        wire_add(wire, "\r\n", 2);
    }
}

static bool wire_fail(struct wire *wire, const char *what, char error[FLEET_ERROR]) {
    snprintf(error, FLEET_ERROR, "%.*s:%u: %s", SLICE_PRINT(wire->target.host), wire->target.port,
             what);
    return false;
}

static bool wire_flush(struct wire *wire, uint64_t until, char error[FLEET_ERROR]) {
    size_t put, at = 0;
    while (at < wire->out_length) {
        const struct iovec piece = {wire->out + at, wire->out_length - at};
        switch (connection_write(wire->connection, &piece, 1, &put)) {
        case IO_DONE: at += put; break;
        case IO_WAIT:
            if (!wait_a_little(wire, until, error))
                return false;
            break;
        default: return wire_fail(wire, connection_error(wire->connection), error);
        }
    }
    wire->out_length = 0;
    return true;
}

/* Feeds the reader with what has come, or waits. */
static bool wire_feed(struct wire *wire, uint64_t until, char error[FLEET_ERROR]) {
    char piece[PIECE];
    size_t got;
    switch (connection_read(wire->connection, piece, sizeof piece, &got)) {
    case IO_DONE:
        wire->fed += got;
        if (wire->fed > WIRE_ANSWER_MAX)
            return wire_fail(wire, "its answer is too long", error);
        if (redisReaderFeed(wire->reader, piece, got) != REDIS_OK)
            return wire_fail(wire, wire->reader->errstr, error);
        return true;
    case IO_WAIT: return wait_a_little(wire, until, error);
    case IO_END: return wire_fail(wire, "it has closed the connection", error);
    default: return wire_fail(wire, connection_error(wire->connection), error);
    }
}

struct reply *wire_take_within(struct wire *wire, uint64_t patience, char error[FLEET_ERROR]) {
    void *reply = NULL;
    CHECK_OBJ(wire, WIRE_MAGIC);
    uint64_t until = until_of(wire, patience);
    if (!wire_flush(wire, until, error))
        return NULL;
    for (;;) {
        if (redisReaderGetReply(wire->reader, &reply) != REDIS_OK) {
            wire_fail(wire, wire->reader->errstr, error);
            return NULL;
        }
        if (reply != NULL) {
            wire->fed = wire->elements = 0;
            return reply;
        }
        if (!wire_feed(wire, until, error))
            return NULL;
    }
}

struct reply *wire_take(struct wire *wire, char error[FLEET_ERROR]) {
    return wire_take_within(wire, 0, error);
}
