#include "runner/exchange.h"

#include "base/assert.h"
#include "http/head_parser.h"

#include <stdlib.h>

static void exchange_on_task(struct task *task) {
    runner_exchange_run(CONTAINER_OF(task, struct runner_exchange, task));
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
    event_init(&exchange->event);
    event_init(&exchange->also);
    task_init(&exchange->task, exchange_on_task);
    return exchange;
}

void runner_exchange_free(struct runner_exchange **exchangep) {
    struct runner_exchange *exchange = *exchangep;
    struct loop *loop = &exchange->link->runner->loop;
    CHECK_OBJ(exchange, RUNNER_EXCHANGE_MAGIC);
    *exchangep = NULL;
    runner_exchange_wait_stop(exchange);
    if (exchange->state != NULL)
        exchange->link->runner->ops->end(exchange->state);
    if (exchange->timer.on_timeout != NULL)
        timer_cancel(&loop->timers, &exchange->timer);
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
    struct service_exchange *exchange = &own->exchange;
    bool read = facts_read_message(&facts, &own->opening);
    RUNNER_INSIST(own->link->runner, read);
    bool response = facts.point == SERVICE_RESPONSE;
    if (!parse_heads(own, &facts)) {
        own->mode = RUNNER_OVER;
        own->end_due = true;
        own->end = FRAME_UNREADABLE;
        return;
    }
    own->head.version = facts.version;
    own->request.version = facts.request_version;
    INIT_OBJ(exchange, SERVICE_EXCHANGE_MAGIC);
    exchange->point = response ? SERVICE_RESPONSE : SERVICE_REQUEST;
    exchange->head = &own->head;
    exchange->request = response ? &own->request : &own->head;
    exchange->has_body = facts.has_body != 0;
    exchange->of_service = facts.of_service != 0;
    exchange->client_ip = facts.client_ip;
    exchange->client_user = facts.client_user;
    exchange->arguments = facts.arguments;
    exchange->transaction_id = facts.transaction_id;
    exchange->arena = &own->arena;
    exchange->host = own->link->runner->host;
    exchange->body_length = SERVICE_LENGTH_UNKNOWN;
    service_wait_none(exchange);
    own->input_ended = !exchange->has_body;
    runner_exchange_begin(own);
}

/* The worker sends no more than the window has room for. */
static void exchange_take_body(struct runner_exchange *exchange, const char *bytes, size_t length) {
    if (exchange->mode == RUNNER_OVER || exchange->mode == RUNNER_ANSWERED)
        return;
    if (exchange->in == NULL)
        exchange->in = xmalloc(FRAME_WINDOW);
    if (exchange->in_end + length > FRAME_WINDOW) {
        size_t left = exchange->in_end - exchange->in_begin;
        memmove(exchange->in, exchange->in + exchange->in_begin, left);
        exchange->in_begin = 0;
        exchange->in_end = left;
    }
    RUNNER_INSIST(exchange->link->runner, exchange->in_end + length <= FRAME_WINDOW);
    memcpy(exchange->in + exchange->in_end, bytes, length);
    exchange->in_end += length;
}

static void exchange_take_opening(struct runner_exchange *exchange, const struct frame *frame,
                                  const char *payload) {
    bool fits = bundle_add(&exchange->opening, frame, payload);
    RUNNER_INSIST(exchange->link->runner, fits && exchange->mode == RUNNER_OPENING);
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
        exchange->preview_due = exchange->mode == RUNNER_BEGUN;
        exchange->preview_whole = frame->number != 0;
        break;
    case FRAME_END: exchange->input_ended = true; break;
    case FRAME_IDLE: exchange->idle = true; break;
    case FRAME_CREDIT: exchange->credit += frame->number; break;
    case FRAME_STOP: exchange->stopped = true; break;
    default: RUNNER_INSIST(exchange->link->runner, !"a frame for the other side");
    }
}

void runner_exchange_run(struct runner_exchange *exchange) {
    CHECK_OBJ(exchange, RUNNER_EXCHANGE_MAGIC);
    if (exchange->mode != RUNNER_OPENING)
        runner_exchange_drive(exchange);
}

/* Sending */

bool runner_exchange_send(struct runner_exchange *exchange, enum frame_type type, uint64_t number,
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
        if (!runner_exchange_send(exchange, FRAME_VERDICT, exchange->verdict_length,
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
        *due = !runner_exchange_send(exchange, type, number, NULL, 0);
    return !*due;
}

static bool send_taken(struct runner_exchange *exchange) {
    uint64_t count = exchange->taken - exchange->told_taken;
    if (count > 0 && !runner_exchange_send(exchange, FRAME_TAKEN, count, NULL, 0))
        return false;
    exchange->told_taken = exchange->taken;
    return true;
}

bool runner_exchange_send_due(struct runner_exchange *exchange) {
    return send_taken(exchange) &&
           exchange_send_flag(exchange, &exchange->hold_due, FRAME_HOLD, 0) &&
           send_verdict(exchange) &&
           exchange_send_flag(exchange, &exchange->pass_due, FRAME_PASS, 0) &&
           exchange_send_flag(exchange, &exchange->end_due, FRAME_END,
                              exchange->end | (exchange->exchange.opt_out ? FRAME_OPTED_OUT : 0u));
}
