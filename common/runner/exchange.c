#include "runner/exchange.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "service/clean_head.h"

#include <stdlib.h>

/* Sending */

static bool exchange_send(struct runner_exchange *exchange, enum frame_type type, uint64_t number,
                          const void *bytes, size_t length) {
    const struct frame frame = {.type = type,
                                .length = (uint32_t)length,
                                .slot = exchange->slot,
                                .serial = exchange->serial,
                                .number = number};
    if (link_send(&exchange->link->link, &frame, bytes))
        return true;
    if (list_empty(&exchange->blocked))
        list_append(&exchange->link->blocked, &exchange->blocked);
    return false;
}

static bool send_verdict(struct runner_exchange *exchange) {
    while (exchange->verdict != NULL) {
        size_t left = exchange->verdict_length - exchange->verdict_sent;
        size_t piece = left < FRAME_PAYLOAD ? left : FRAME_PAYLOAD;
        if (!exchange_send(exchange, FRAME_VERDICT, exchange->verdict_length,
                           exchange->verdict + exchange->verdict_sent, piece))
            return false;
        exchange->verdict_sent += piece;
        if (piece < left)
            continue;
        free(exchange->verdict);
        exchange->verdict = NULL;
    }
    return true;
}

static bool exchange_send_flag(struct runner_exchange *exchange, bool *due, enum frame_type type,
                               uint64_t number) {
    if (*due)
        *due = !exchange_send(exchange, type, number, NULL, 0);
    return !*due;
}

static bool send_taken(struct runner_exchange *exchange) {
    uint64_t count = exchange->driver.taken - exchange->told_taken;
    if (count > 0 && !exchange_send(exchange, FRAME_TAKEN, count, NULL, 0))
        return false;
    exchange->told_taken = exchange->driver.taken;
    return true;
}

static bool exchange_send_due(struct runner_exchange *exchange) {
    const struct driver *driver = &exchange->driver;
    return send_taken(exchange) &&
           exchange_send_flag(exchange, &exchange->hold_due, FRAME_HOLD, 0) &&
           send_verdict(exchange) &&
           exchange_send_flag(exchange, &exchange->pass_due, FRAME_PASS, 0) &&
           exchange_send_flag(exchange, &exchange->end_due, FRAME_END,
                              driver->failure | (driver->exchange.opt_out ? FRAME_OPTED_OUT : 0u));
}

/* A driver's answers, as frames. */

static bool drive_end(struct runner_exchange *exchange) {
    exchange->driver.mode = DRIVER_OVER;
    exchange->end_due = true;
    return false;
}

/* False: the head can't be sent. */
static bool write_verdict(struct runner_exchange *own, bool skip) {
    const struct service_exchange *exchange = &own->driver.exchange;
    bool answers = !skip && exchange->answer != NULL;
    bool response = answers || exchange->point == SERVICE_RESPONSE;
    const struct http_head *head = answers ? exchange->answer : exchange->head;
    struct facts_verdict facts = {
        .skip = skip,
        .keeps_body = !skip && exchange->keeps_body,
        .answers = answers,
        .failed = exchange->failed,
        .opt_out = exchange->opt_out,
        .body_length = exchange->body_length,
        .lifetime = exchange->lifetime,
        .version = head->version,
        .because =
            exchange->failed_because != NULL ? slice_from(exchange->failed_because) : SLICE(""),
    };
    if (!skip && (!clean_head(head, NULL, response) || (response && head->status < 100))) {
        driver_fail(&own->driver, DRIVER_MISMADE);
        return false;
    }
    if (!skip && head->field_count > HTTP_FIELDS_MAX) {
        driver_fail(&own->driver, DRIVER_TOO_LONG);
        return false;
    }
    if (!skip)
        facts.head = http_head_text(
            head, response ? http_head_write_response : http_head_write_request, &own->arena);
    own->verdict = facts_of_verdict(&facts, &own->verdict_length);
    if (own->verdict == NULL)
        driver_fail(&own->driver, DRIVER_TOO_LONG);
    return own->verdict != NULL;
}

/* The worker takes the bytes out of its copy, or asks for those that it has sent: the service has them,
 * or they wait here. */
static void skipped(struct runner_exchange *exchange, bool held) {
    exchange->credit = 0;
    exchange->pass_due = held && !exchange->driver.pushed;
    if (!held)
        exchange->driver.mode = DRIVER_OVER;
}

/* The verdict is there. A body that passes does so at the worker. */
static bool drive_follow(struct runner_exchange *exchange, bool held) {
    struct driver *driver = &exchange->driver;
    bool skip = driver->verdict == SERVICE_SKIP;
    if (driver->failure != DRIVER_NO_FAILURE)
        return drive_end(exchange);
    if (driver->mode == DRIVER_HELD) {
        exchange->hold_due = true;
        return true;
    }
    if (!write_verdict(exchange, skip))
        return drive_end(exchange);
    if (skip)
        skipped(exchange, held);
    else if (driver->mode == DRIVER_PASSED || driver->mode == DRIVER_COMPLETE)
        driver->mode = DRIVER_OVER;
    return true;
}

static void exchange_begin(struct runner_exchange *exchange) {
    driver_begin(&exchange->driver, exchange->link->runner->service);
    if (exchange->driver.state == NULL)
        drive_follow(exchange, false);
}

static bool drive_ask_preview(struct runner_exchange *exchange) {
    if (!exchange->preview_due)
        return false;
    exchange->preview_due = false;
    driver_preview(&exchange->driver, exchange->driver.in, exchange->preview_whole);
    return drive_follow(exchange, false);
}

/* How much the reader has room for. */
static size_t out_room(struct runner_exchange *exchange) {
    size_t room = link_room(&exchange->link->link);
    if (room == 0 && list_empty(&exchange->blocked))
        list_append(&exchange->link->blocked, &exchange->blocked);
    return exchange->credit < room ? (size_t)exchange->credit : room;
}

static void drive_send_body(struct runner_exchange *exchange, const char *bytes, size_t length) {
    if (length == 0)
        return;
    bool sent = exchange_send(exchange, FRAME_BODY, 0, bytes, length);
    RUNNER_INSIST(exchange->link->runner, sent); /* out_room */
    exchange->credit -= length;
}

/* Nothing moves. */
static bool drive_rest(struct runner_exchange *exchange) {
    struct driver *driver = &exchange->driver;
    if (driver->mode == DRIVER_PASSED)
        return false;
    switch (driver_rest(driver)) {
    case DRIVER_WAITS: driver_watch_start(&exchange->watch); break;
    case DRIVER_WANTS:
        if (!exchange->needed && exchange_send_due(exchange))
            exchange->needed = exchange_send(exchange, FRAME_NEED, driver->taken, NULL, 0);
        break;
    case DRIVER_HANGS: return drive_end(exchange);
    }
    return false;
}

static enum driver_status drive_run(struct runner_exchange *exchange, size_t room) {
    char bytes[FRAME_PAYLOAD];
    size_t got;
    struct driver *driver = &exchange->driver;
    bool adapted = driver->mode == DRIVER_ADAPTED;
    enum driver_status status = driver_run(driver, bytes, room, &got);
    if (status == DRIVER_RESTS && exchange->idle && driver->mode == DRIVER_ADAPTED &&
        !driver->in_ended && driver->in.length == 0 && driver->ops->idle != NULL) {
        exchange->idle = false;
        driver_idle(driver);
        status = driver_pull(driver, bytes, room, &got);
    }
    drive_send_body(exchange, bytes, got);
    exchange->pass_due |= adapted && driver->mode == DRIVER_PASSED;
    return status;
}

/* False: it does not go on now. */
static bool drive_once(struct runner_exchange *exchange) {
    const struct driver *driver = &exchange->driver;
    if (!exchange_send_due(exchange) || driver->mode == DRIVER_OVER)
        return false;
    if (driver->mode == DRIVER_PREVIEW)
        return drive_ask_preview(exchange);
    if (driver->mode == DRIVER_COMPLETE)
        return drive_end(exchange);
    size_t room = driver->mode == DRIVER_HELD ? FRAME_PAYLOAD : out_room(exchange);
    if (room == 0)
        return false; /* the reader takes its time */
    switch (drive_run(exchange, room)) {
    case DRIVER_DECIDED: return drive_follow(exchange, true);
    case DRIVER_RESTS: return drive_rest(exchange);
    case DRIVER_ENDED:
    case DRIVER_FAILED: return drive_end(exchange);
    default: return true;
    }
}

/* Others have their turn after so many pieces of the body. */
static void exchange_drive(struct runner_exchange *exchange) {
    enum { TURNS = 8 };
    CHECK_OBJ(exchange, RUNNER_EXCHANGE_MAGIC);
    driver_watch_stop(&exchange->watch);
    for (unsigned turns = 0; drive_once(exchange); turns++)
        if (turns == TURNS) {
            loop_defer(&exchange->link->runner->loop, &exchange->task);
            return;
        }
    exchange_send_due(exchange);
}

static void exchange_on_wait(struct driver_watch *watch) {
    struct runner_exchange *exchange = CONTAINER_OF(watch, struct runner_exchange, watch);
    driver_ready(&exchange->driver);
    exchange_drive(exchange);
}

static void exchange_run(struct runner_exchange *exchange) {
    CHECK_OBJ(exchange, RUNNER_EXCHANGE_MAGIC);
    if (exchange->driver.mode != DRIVER_NEW)
        exchange_drive(exchange);
}

static void exchange_on_task(struct task *task) {
    exchange_run(CONTAINER_OF(task, struct runner_exchange, task));
}

struct runner_exchange *runner_exchange_new(struct runner_link *link, uint32_t slot,
                                            uint32_t serial) {
    struct runner_exchange *exchange;
    ALLOC_OBJ(exchange, RUNNER_EXCHANGE_MAGIC);
    exchange->link = link;
    exchange->slot = slot;
    exchange->serial = serial;
    exchange->credit = FRAME_WINDOW;
    arena_init(&exchange->arena);
    list_init(&exchange->blocked);
    task_init(&exchange->task, exchange_on_task);
    driver_init(&exchange->driver, link->runner->ops, NULL, &exchange->arena, link->runner->host);
    driver_watch_init(&exchange->watch, &exchange->driver, &link->runner->loop, exchange_on_wait);
    return exchange;
}

void runner_exchange_free(struct runner_exchange **exchangep) {
    struct runner_exchange *exchange = *exchangep;
    CHECK_OBJ(exchange, RUNNER_EXCHANGE_MAGIC);
    *exchangep = NULL;
    driver_watch_release(&exchange->watch);
    driver_end(&exchange->driver);
    task_cancel(&exchange->task);
    list_remove(&exchange->blocked);
    bundle_release(&exchange->opening);
    arena_release(&exchange->arena);
    free(exchange->verdict);
    free(exchange->in);
    FREE_OBJ(exchange);
}

/* The frames */

static bool parse_request(struct http_head *head, struct slice text) {
    return http_head_parse_request(head, text.base, text.length, 0) == (ssize_t)text.length;
}

static bool parse_response(struct http_head *head, struct slice text) {
    return http_head_parse_response(head, text.base, text.length, 0) == (ssize_t)text.length;
}

static bool parse_heads(struct runner_exchange *own, const struct facts_message *facts) {
    if (facts->point != SERVICE_RESPONSE)
        return parse_request(&own->head, facts->head);
    return parse_request(&own->request, facts->request) && parse_response(&own->head, facts->head);
}

static void exchange_open(struct runner_exchange *own) {
    struct facts_message facts;
    struct service_exchange *exchange = &own->driver.exchange;
    bool read = facts_read_message(&facts, &own->opening);
    RUNNER_INSIST(own->link->runner, read);
    bool response = facts.point == SERVICE_RESPONSE;
    if (!parse_heads(own, &facts)) {
        driver_fail(&own->driver, DRIVER_UNREADABLE);
        own->end_due = true;
        return;
    }
    own->head.version = facts.version;
    own->request.version = facts.request_version;
    exchange->point = response ? SERVICE_RESPONSE : SERVICE_REQUEST;
    exchange->head = &own->head;
    exchange->request = response ? &own->request : &own->head;
    exchange->has_body = facts.has_body != 0;
    exchange->of_service = facts.of_service != 0;
    exchange->client_ip = facts.client_ip;
    exchange->client_user = facts.client_user;
    exchange->arguments = facts.arguments;
    exchange->transaction_id = facts.transaction_id;
    own->driver.in_ended = !exchange->has_body;
    exchange_begin(own);
}

/* The worker sends no more than the window has room for. */
static void exchange_take_body(struct runner_exchange *exchange, const char *bytes, size_t length) {
    struct slice *in = &exchange->driver.in;
    enum driver_mode mode = exchange->driver.mode;
    if (mode == DRIVER_OVER || mode == DRIVER_COMPLETE || mode == DRIVER_ANSWERED)
        return;
    if (exchange->in == NULL)
        exchange->in = xmalloc(FRAME_WINDOW);
    if (in->length == 0)
        in->base = exchange->in;
    if ((size_t)(in->base - exchange->in) + in->length + length > FRAME_WINDOW) {
        memmove(exchange->in, in->base, in->length);
        in->base = exchange->in;
    }
    RUNNER_INSIST(exchange->link->runner,
                  (size_t)(in->base - exchange->in) + in->length + length <= FRAME_WINDOW);
    memcpy((char *)in->base + in->length, bytes, length);
    in->length += length;
}

static void exchange_take_opening(struct runner_exchange *exchange, const struct frame *frame,
                                  const char *payload) {
    bool fits = bundle_add(&exchange->opening, frame, payload);
    RUNNER_INSIST(exchange->link->runner, fits && exchange->driver.mode == DRIVER_NEW);
    if (bundle_is_whole(&exchange->opening))
        exchange_open(exchange);
}

void runner_exchange_take(struct runner_exchange *exchange, const struct frame *frame,
                          const char *payload) {
    CHECK_OBJ(exchange, RUNNER_EXCHANGE_MAGIC);
    exchange->needed = false;
    switch (frame->type) {
    case FRAME_OPEN: exchange_take_opening(exchange, frame, payload); break;
    case FRAME_BODY:
        exchange->idle = false;
        exchange_take_body(exchange, payload, frame->length);
        break;
    case FRAME_PREVIEW:
        exchange->preview_due = exchange->driver.mode == DRIVER_PREVIEW;
        exchange->preview_whole = frame->number != 0;
        break;
    case FRAME_END:
    case FRAME_STOP: exchange->driver.in_ended = true; break;
    case FRAME_IDLE: exchange->idle = true; break;
    case FRAME_CREDIT: exchange->credit += frame->number; break;
    default: RUNNER_INSIST(exchange->link->runner, !"a frame for the other side");
    }
}
