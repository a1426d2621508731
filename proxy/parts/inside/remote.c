#include "inside/remote.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "inside/call.h"
#include "service/clean_head.h"

#include <stdlib.h>

static struct inside_remote *remote_of(void *state) {
    struct inside_remote *remote;
    CAST_OBJ(remote, state, INSIDE_REMOTE_MAGIC);
    return remote;
}

static struct adapter_account *remote_account_of(const struct inside_remote *remote) {
    return &remote->call->service->base.account;
}

/* The call has its turn. While the reader of the body takes its time, the service is not late. */
static void remote_wake(struct inside_remote *remote) {
    struct inside_call *call = remote->call;
    if (call->driver.mode == DRIVER_OVER)
        return;
    if (call->base.verdict != ADAPTER_PENDING)
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    loop_defer(call->net->loop, &call->task);
}

static void remote_fail(struct inside_remote *remote, uint64_t *count, const char *error) {
    if (remote->error != NULL)
        return;
    remote->error = error;
    remote->error_count = count;
    remote_wake(remote);
}

/* Sending */

static bool remote_send(struct inside_remote *remote, enum frame_type type, uint64_t number,
                        const void *bytes, size_t length) {
    const struct frame frame = {.type = type,
                                .length = (uint32_t)length,
                                .slot = remote->slot,
                                .serial = remote->serial,
                                .number = number};
    remote->needed = false;
    if (!inside_link_send(remote->link, &frame, bytes, &remote->blocked))
        return false;
    remote->unanswered++;
    return true;
}

static bool send_opening(struct inside_remote *remote) {
    while (remote->opening != NULL) {
        size_t left = remote->opening_length - remote->opening_sent;
        size_t piece = left < FRAME_PAYLOAD ? left : FRAME_PAYLOAD;
        if (!remote_send(remote, FRAME_OPEN, remote->opening_length,
                         remote->opening + remote->opening_sent, piece))
            return false;
        remote->opened = true;
        remote->opening_sent += piece;
        if (piece < left)
            continue;
        free(remote->opening);
        remote->opening = NULL;
    }
    return true;
}

/* The call has not pushed its bytes: they are the first that it keeps. */
static bool send_preview(struct inside_remote *remote) {
    size_t length = remote->preview_length;
    if (!remote->preview_due)
        return true;
    if (length > 0 && remote->sent == 0) {
        if (!remote_send(remote, FRAME_BODY, 0, remote->call->driver.in.base, length))
            return false;
        remote->sent = length;
    }
    if (!remote_send(remote, FRAME_PREVIEW, remote->preview_whole, NULL, 0))
        return false;
    remote->preview_due = false;
    remote->asked = true;
    return true;
}

static bool remote_send_flag(struct inside_remote *remote, bool *due, enum frame_type type) {
    if (*due)
        *due = !remote_send(remote, type, 0, NULL, 0);
    return !*due;
}

static bool send_credit(struct inside_remote *remote) {
    if (remote->owed == 0)
        return true;
    uint64_t count = remote->owed;
    if (!remote_send(remote, FRAME_CREDIT, count, NULL, 0))
        return false;
    remote->credit += count;
    remote->owed = 0;
    return true;
}

/* False: something is left, and waits for room. */
static bool send_due(struct inside_remote *remote) {
    return remote->link != NULL && !remote->ended && send_opening(remote) && send_preview(remote) &&
           remote_send_flag(remote, &remote->idle_due, FRAME_IDLE) &&
           remote_send_flag(remote, &remote->end_due, FRAME_END) &&
           remote_send_flag(remote, &remote->stop_due, FRAME_STOP);
}

void inside_remote_has_room(struct list_link *blocked) {
    struct inside_remote *remote = CONTAINER_OF(blocked, struct inside_remote, blocked);
    CHECK_OBJ(remote, INSIDE_REMOTE_MAGIC);
    send_due(remote);
    remote_wake(remote); /* it may have more of the body */
}

/* The functions of a service */

static struct inside_call *remote_call_of(struct service_exchange *exchange) {
    return CONTAINER_OF(exchange, struct inside_call, driver.exchange);
}

static bool is_writable(const struct http_head *head, bool response) {
    return head->field_count <= HTTP_FIELDS_MAX && clean_head(head, NULL, response);
}

/* The facts of the message; NULL: they can't be written down. */
static char *write_opening(const struct service_exchange *exchange, size_t *length) {
    bool response = exchange->point == SERVICE_RESPONSE;
    if (!is_writable(exchange->head, response) || !is_writable(exchange->request, false))
        return NULL;
    const struct facts_message facts = {
        .point = exchange->point,
        .has_body = exchange->has_body,
        .of_service = exchange->of_service,
        .request_version = exchange->request->version,
        .version = exchange->head->version,
        .request = response
                       ? http_head_text(exchange->request, http_head_write_request, exchange->arena)
                       : SLICE(""),
        .head = http_head_text(exchange->head,
                               response ? http_head_write_response : http_head_write_request,
                               exchange->arena),
        .client_ip = exchange->client_ip,
        .client_user = exchange->client_user,
        .arguments = exchange->arguments,
        .transaction_id = exchange->transaction_id,
    };
    return facts_of_message(&facts, length);
}

static void *remote_begin(void *service, struct service_exchange *exchange) {
    struct inside_call *call = remote_call_of(exchange);
    struct inside_remote *remote;
    (void)service;
    ALLOC_OBJ(remote, INSIDE_REMOTE_MAGIC);
    remote->call = call;
    remote->link = call->link;
    remote->credit = FRAME_WINDOW;
    remote->idle_at = UINT64_MAX;
    list_init(&remote->blocked);
    spool_init(&remote->body);
    remote->slot = inside_link_take(remote->link, remote);
    remote->serial = remote->link->slots[remote->slot].serial;
    remote->opening = write_opening(exchange, &remote->opening_length);
    if (remote->opening == NULL)
        remote_fail(remote, &remote_account_of(remote)->error_protocol,
                    "the head of the message is too long to be handed to its runner");
    else
        send_due(remote);
    return remote;
}

static enum service_verdict remote_preview(void *state, struct slice body, bool complete) {
    struct inside_remote *remote = remote_of(state);
    ASSERT(body.length <= FRAME_PAYLOAD);
    if (remote->decided)
        return SERVICE_HOLD; /* it is not interested, and `verdict` says so */
    remote->preview_due = true;
    remote->preview_whole = complete;
    remote->preview_length = body.length;
    send_due(remote);
    return SERVICE_HOLD;
}

/* Does the runner take more of the body? */
static bool may_push(const struct inside_remote *remote) {
    bool wants = remote->held ? !remote->decided || remote->applied : remote->applied;
    return wants && !remote->passed && !remote->ended;
}

static size_t remote_push(void *state, struct slice body) {
    struct inside_remote *remote = remote_of(state);
    size_t pushed = remote->preview_length;
    if (!may_push(remote) || !send_due(remote))
        return 0;
    ASSERT(pushed <= body.length);
    remote->preview_length = 0;
    while (pushed < body.length) {
        size_t piece = body.length - pushed, room = link_room(&remote->link->link);
        uint64_t window = FRAME_WINDOW - (remote->sent - remote->taken);
        piece = piece < FRAME_PAYLOAD ? piece : FRAME_PAYLOAD;
        piece = piece < window ? piece : (size_t)window;
        piece = room > 0 && piece > room ? room : piece;
        if (piece == 0 || !remote_send(remote, FRAME_BODY, 0, body.base + pushed, piece))
            break;
        remote->sent += piece;
        pushed += piece;
    }
    return pushed;
}

static void remote_finish(void *state) {
    struct inside_remote *remote = remote_of(state);
    remote->finished = remote->end_due = true;
    send_due(remote);
}

/* The runner has the bytes of the preview, and the call does not need them any more. */
static void forget_preview(struct inside_remote *remote) {
    struct driver *driver = &remote->call->driver;
    driver->pushed |= remote->preview_length > 0;
    driver_drop(driver, remote->preview_length);
    remote->preview_length = 0;
}

static void apply_head(struct inside_remote *remote) {
    struct service_exchange *exchange = &remote->call->driver.exchange;
    if (remote->verdict.answers)
        exchange->answer = remote->head;
    else
        http_head_assign(exchange->head, remote->head);
}

static enum service_verdict remote_verdict(void *state) {
    struct inside_remote *remote = remote_of(state);
    struct service_exchange *exchange = &remote->call->driver.exchange;
    const struct facts_verdict *verdict = &remote->verdict;
    if (!remote->decided)
        return SERVICE_HOLD;
    remote->applied = true;
    exchange->failed = verdict->failed != 0;
    exchange->failed_because = verdict->because.length > 0 ? verdict->because.base : NULL;
    exchange->opt_out |= verdict->opt_out != 0;
    exchange->lifetime = verdict->lifetime;
    exchange->body_length = verdict->body_length;
    exchange->keeps_body = verdict->keeps_body != 0;
    if (verdict->skip)
        return SERVICE_SKIP;
    apply_head(remote);
    if (exchange->answer == NULL && !exchange->keeps_body)
        forget_preview(remote);
    return SERVICE_ADAPT;
}

/* After SKIP the first reader asks for what the service was given. */
static void give_credit(struct inside_remote *remote, size_t read) {
    remote->owed += read;
    bool begins = remote->verdict.skip && remote->credit == 0 && remote->owed == 0 &&
                  remote->body.length == 0 && !remote->ended;
    if (begins)
        remote->owed = FRAME_WINDOW;
    if (remote->link != NULL && !remote->ended &&
        (remote->owed >= FRAME_WINDOW / 4 || remote->body.length == 0))
        send_credit(remote);
}

static enum service_flow remote_flow(const struct inside_remote *remote) {
    if (!remote->ended || remote->body.length > 0)
        return SERVICE_FLOW;
    if (remote->end != DRIVER_NO_FAILURE) {
        inside_remote_check(remote->call); /* what the runner said is better than ABORT */
        return SERVICE_ABORT;
    }
    return remote->passed ? SERVICE_PASS : SERVICE_DONE;
}

static enum service_flow remote_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct inside_remote *remote = remote_of(state);
    *got = spool_read(&remote->body, out, capacity);
    give_credit(remote, *got);
    return remote_flow(remote);
}

static void remote_idle(void *state) {
    struct inside_remote *remote = remote_of(state);
    if (remote->idle_at == remote->sent)
        return;
    remote->idle_at = remote->sent;
    remote->idle_due = true;
    send_due(remote);
}

static void remote_ready(void *state) {
    (void)state;
}

/* Bytes of frames that may still come when nobody waits for them any more; one without any counts as
 * one. */
static uint64_t may_follow(const struct inside_remote *remote) {
    enum { HOLD_PASS_END = 3 };
    uint64_t verdict = remote->decided ? 0 : FRAME_TEXT_MAX;
    return remote->credit + (remote->sent - remote->taken) + remote->unanswered + verdict +
           HOLD_PASS_END;
}

static void let_go(struct inside_remote *remote) {
    struct inside_link *link = remote->link;
    list_remove(&remote->blocked);
    remote->link = NULL;
    if (link != NULL)
        inside_link_give(link, remote->slot, remote->opened, may_follow(remote));
}

static void remote_end(void *state) {
    struct inside_remote *remote = remote_of(state);
    let_go(remote);
    free(remote->opening);
    bundle_release(&remote->bundle);
    spool_release(&remote->body);
    FREE_OBJ(remote);
}

void inside_remote_functions(struct service_ops *ops) {
    ops->begin = remote_begin;
    ops->preview = remote_preview;
    ops->push = remote_push;
    ops->finish = remote_finish;
    ops->verdict = remote_verdict;
    ops->pull = remote_pull;
    ops->idle = remote_idle;
    ops->ready = remote_ready;
    ops->end = remote_end;
}

/* For the call */

bool inside_remote_find(struct inside_call *call) {
    struct adapter_account *account = &call->service->base.account;
    enum inside_link_refusal refusal;
    call->link = inside_runner_links_choose(call->service->runner_links, &refusal);
    if (call->link != NULL && call->instance->runners->processes)
        call->fingerprint = call->link->run->fingerprint;
    if (call->link != NULL)
        return true;
    if (refusal == INSIDE_LINK_DOWN)
        inside_call_fail(call, &account->error_down, "no process of it is running now");
    else
        inside_call_fail(call, &account->error_queue,
                         "all its runners have as many messages as they can take");
    return false;
}

bool inside_remote_check(struct inside_call *call) {
    const struct inside_remote *remote = remote_of(call->driver.state);
    if (remote->error == NULL || call->driver.mode == DRIVER_OVER)
        return true;
    inside_call_fail(call, remote->error_count, remote->error);
    return false;
}

void inside_remote_let_go(struct inside_call *call) {
    let_go(remote_of(call->driver.state));
}

bool inside_remote_has_verdict(const struct inside_call *call) {
    return remote_of(call->driver.state)->decided;
}

static bool inside_remote_must_go_on(const struct inside_call *call) {
    const struct inside_remote *remote = remote_of(call->driver.state);
    bool starved = remote->needed && !remote->finished && call->driver.in.length == 0;
    return !starved;
}

/* What comes from the runner */

static bool remote_take_text(struct inside_remote *remote, struct slice text) {
    struct arena *arena = remote->call->driver.exchange.arena;
    bool response =
        remote->verdict.answers || remote->call->driver.exchange.point == SERVICE_RESPONSE;
    struct slice copy = arena_slice(arena, text);
    remote->head = arena_alloc(arena, sizeof *remote->head);
    ssize_t used = response ? http_head_parse_response(remote->head, copy.base, copy.length, 0)
                            : http_head_parse_request(remote->head, copy.base, copy.length, 0);
    if (used <= 0 || (size_t)used != copy.length)
        return false;
    unsigned version = remote->verdict.version;
    if (version == 10 || version == 11 || version == 20)
        remote->head->version = version;
    return true;
}

/* A word for logs and heads. */
static bool is_reason(struct slice because) {
    enum { REASON_MAX = 64 };
    for (size_t i = 0; i < because.length; i++)
        if (because.base[i] < ' ' || because.base[i] > '~')
            return false;
    return because.length <= REASON_MAX;
}

static bool remote_take_verdict(struct inside_remote *remote) {
    enum { LIFETIME_MAX = 366 * 24 * 3600 };
    struct facts_verdict *verdict = &remote->verdict;
    bool stated = verdict->body_length != SERVICE_LENGTH_UNKNOWN;
    if (!facts_read_verdict(verdict, &remote->bundle) || !is_reason(verdict->because))
        return false;
    stated = verdict->body_length != SERVICE_LENGTH_UNKNOWN;
    if (stated && verdict->body_length > INT64_MAX)
        return false;
    /* before the preview a service can say no more than that it is not interested */
    if (verdict->skip ? verdict->head.length > 0
                      : !remote->asked || !remote_take_text(remote, verdict->head))
        return false;
    if (verdict->lifetime > LIFETIME_MAX)
        verdict->lifetime = LIFETIME_MAX;
    verdict->because = arena_slice(remote->call->driver.exchange.arena, verdict->because);
    bundle_release(&remote->bundle);
    remote->decided = true;
    if (!verdict->skip)
        return true;
    remote->credit = 0;
    remote->preview_due = false; /* its bytes go another way from now on */
    remote->preview_length = 0;
    return true;
}

static bool take_verdict_piece(struct inside_remote *remote, const struct frame *frame,
                               const char *payload) {
    if (remote->decided || remote->ended || !bundle_add(&remote->bundle, frame, payload))
        return false;
    return !bundle_is_whole(&remote->bundle) || remote_take_verdict(remote);
}

static bool remote_take_body(struct inside_remote *remote, const struct frame *frame,
                             const char *payload) {
    if (!remote->decided || remote->ended || frame->length == 0 || frame->length > remote->credit)
        return false;
    remote->credit -= frame->length;
    if (!spool_append(&remote->body, payload, frame->length))
        remote_fail(remote, &remote_account_of(remote)->error_server,
                    "there is no memory for its body");
    return true;
}

static bool take_taken(struct inside_remote *remote, const struct frame *frame) {
    if (frame->number == 0 || frame->number > remote->sent - remote->taken)
        return false;
    remote->taken += frame->number;
    return true;
}

/* It may have been sent before the runner saw what was sent last. */
static bool take_need(struct inside_remote *remote, const struct frame *frame) {
    if (frame->number != remote->taken || remote->unanswered == 0)
        return false;
    remote->unanswered--;
    remote->needed = remote->taken == remote->sent && !remote->idle_due && remote->opening == NULL;
    return true;
}

static bool take_pass(struct inside_remote *remote) {
    if (!remote->decided || remote->verdict.answers || remote->passed || remote->ended)
        return false;
    remote->passed = true;
    remote->stop_due = !remote->finished;
    send_due(remote);
    return true;
}

static bool remote_take_end(struct inside_remote *remote, const struct frame *frame) {
    uint64_t end = frame->number & ~(uint64_t)FRAME_OPTED_OUT;
    if (remote->ended || end >= DRIVER_FAILURES)
        return false;
    remote->end = (enum driver_failure)end;
    remote->call->driver.exchange.opt_out |= end != frame->number;
    bool fails = remote->end != DRIVER_NO_FAILURE && remote->end != DRIVER_ABORTED;
    if (!fails && !remote->decided)
        return false;
    remote->ended = true;
    if (fails)
        remote_fail(remote,
                    remote->end == DRIVER_STUCK ? &remote_account_of(remote)->error_server
                                                : &remote_account_of(remote)->error_protocol,
                    driver_failure_text(remote->end));
    let_go(remote);
    return true;
}

static bool take_hold(struct inside_remote *remote) {
    if (!remote->asked || remote->held || remote->decided)
        return false;
    remote->held = true;
    return true;
}

bool inside_remote_take(struct inside_remote *remote, const struct frame *frame,
                        const char *payload) {
    CHECK_OBJ(remote, INSIDE_REMOTE_MAGIC);
    bool good = false;
    if (frame->length > 0 && frame->type != FRAME_BODY && frame->type != FRAME_VERDICT)
        return false;
    switch (frame->type) {
    case FRAME_HOLD: good = take_hold(remote); break;
    case FRAME_VERDICT: good = take_verdict_piece(remote, frame, payload); break;
    case FRAME_BODY: good = remote_take_body(remote, frame, payload); break;
    case FRAME_TAKEN: good = take_taken(remote, frame); break;
    case FRAME_NEED: good = take_need(remote, frame); break;
    case FRAME_PASS: good = take_pass(remote); break;
    case FRAME_END: good = remote_take_end(remote, frame); break;
    default: break;
    }
    if (good)
        remote_wake(remote);
    return good;
}

/* Has the runner said all that the call needs? The call may not have heard the verdict yet. */
static bool has_said_all(const struct inside_remote *remote) {
    const struct inside_call *call = remote->call;
    const struct facts_verdict *verdict = &remote->verdict;
    if (!remote->decided || remote->applied)
        return false;
    if (verdict->skip)
        return !call->driver.pushed || virgin_body_is_whole(&call->base.virgin);
    if (verdict->answers)
        return verdict->body_length == 0;
    return verdict->keeps_body || !call->base.has_body;
}

void inside_remote_lost(struct inside_remote *remote, enum remote_failure failure) {
    CHECK_OBJ(remote, INSIDE_REMOTE_MAGIC);
    struct adapter_account *account = remote_account_of(remote);
    list_remove(&remote->blocked);
    remote->link = NULL;
    if (has_said_all(remote)) {
        remote->ended = true;
        remote->end = DRIVER_ABORTED;
        return;
    }
    if (failure == REMOTE_LIED)
        remote_fail(remote, &account->error_protocol,
                    "its process wrote what no runner writes, and was ended");
    else
        remote_fail(remote, &account->error_closed, "its process ended");
}

/* What a service waits for, and how long it may. */

/* While the reader of the body takes its time, the service is not late. */
void inside_wait_on_over(struct driver_watch *watch) {
    struct inside_call *call = CONTAINER_OF(watch, struct inside_call, watch);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    uint64_t now = inside_clock();
    call->waited += now > call->began_waiting ? now - call->began_waiting : 0;
    if (call->base.verdict != ADAPTER_PENDING)
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    driver_ready(&call->driver);
    inside_call_go_on(call);
}

/* A runner watches itself for its services. */
static enum driver_rest wait_rest(struct inside_call *call) {
    if (call->link != NULL && inside_remote_must_go_on(call))
        return DRIVER_WAITS;
    enum driver_rest rest = driver_rest(&call->driver);
    if (rest == DRIVER_WAITS && !call->watch.watches) {
        call->began_waiting = inside_clock();
        driver_watch_start(&call->watch);
    }
    return rest;
}

static uint64_t wait_patience(const struct inside_call *call) {
    const struct service_settings *settings = call->service->base.settings;
    bool pending = call->base.verdict == ADAPTER_PENDING;
    return pending && settings->first_byte_timeout > 0 ? settings->first_byte_timeout
                                                       : settings->timeout;
}

/* One that is ready again and again, and does nothing, has no more time than one that is silent. */
static bool limit_service(struct inside_call *call) {
    uint64_t moved = call->driver.taken + call->driver.given;
    if (moved != call->moved)
        call->waited = 0;
    call->moved = moved;
    uint64_t patience = wait_patience(call), waited = call->waited / 1000;
    if (waited >= patience) {
        inside_call_fail(call, &call->service->base.account.error_timeout,
                         "it did not answer in time");
        return false;
    }
    if (call->timer.deadline == TIMER_NEVER)
        loop_timer_after(call->net->loop, &call->timer, patience - waited);
    return true;
}

bool inside_wait(struct inside_call *call) {
    enum driver_rest rest = wait_rest(call);
    if (rest == DRIVER_WAITS)
        return limit_service(call);
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    if (rest == DRIVER_HANGS)
        inside_call_fail_by_service(call);
    return rest == DRIVER_WANTS; /* the source of the body wakes the task */
}
