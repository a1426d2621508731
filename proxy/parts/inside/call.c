#include "inside/call.h"

#include "base/log.h"
#include "http/framing.h"
#include "inside/remote.h"
#include "service/clean_head.h"
#include "service/driver.h"

static const struct service_settings *settings_of_call(const struct inside_call *call) {
    return call->service->base.settings;
}

static struct adapter_account *account_of(struct inside_call *call) {
    return &call->service->base.account;
}

static void stop_timer(struct inside_call *call) {
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
}

void inside_call_give_place(struct inside_call *call) {
    inside_turn_leave(&call->service->queue, &call->turn);
    if (call->link != NULL && call->driver.state != NULL)
        inside_remote_let_go(call);
}

/* The end of the verdict */

static void inside_call_settle(struct inside_call *call, enum adapter_verdict verdict) {
    const struct service_exchange *exchange = &call->driver.exchange;
    struct adapter_result *result = &call->base.result;
    if (call->instance != NULL)
        result->tag = inside_service_tag(call->service, call->generation, call->fingerprint);
    if (exchange->failed)
        result->unable =
            xstrdup(exchange->failed_because != NULL ? exchange->failed_because : "failed");
    if (exchange->point == SERVICE_REQUEST && !exchange->failed && !exchange->opt_out)
        result->lifetime = (int64_t)exchange->lifetime;
    result->client_fields = call->service->client_fields;
    call->body.length = call->base.stated.exact;
    stop_timer(call);
    if (call->driver.mode >= DRIVER_PASSED)
        inside_call_give_place(call);
    adapter_call_settle(&call->base, verdict);
}

void inside_call_fail(struct inside_call *call, uint64_t *count, const char *error) {
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    driver_watch_stop(&call->watch);
    if (call->base.virgin.failed) {
        count = &account_of(call)->error_body;
        error = "the body that it was to adapt broke off";
    } else {
        call->net->counters.icap_failures++;
    }
    (*count)++;
    call->base.error = error;
    call->driver.mode = DRIVER_OVER;
    call->driver.failure = DRIVER_NO_FAILURE; /* it is said */
    stop_timer(call);
    inside_call_give_place(call);
    if (call->base.verdict == ADAPTER_PENDING) {
        inside_call_settle(call, ADAPTER_FAILED);
        return;
    }
    call->base.broken = true;
    source_wake(&call->body);
}

static void fail_by_bug(struct inside_call *call, const char *error) {
    inside_call_fail(call, &account_of(call)->error_protocol, error);
}

void inside_call_fail_by_service(struct inside_call *call) {
    struct adapter_account *account = account_of(call);
    enum driver_failure failure = call->driver.failure;
    bool gives_up = failure == DRIVER_STUCK || failure == DRIVER_ABORTED;
    if (failure != DRIVER_NO_FAILURE)
        inside_call_fail(call,
                         gives_up                      ? &account->error_server
                         : failure == DRIVER_BROKE_OFF ? &account->error_body
                                                       : &account->error_protocol,
                         driver_failure_text(failure));
}

/* Verdicts */

static const char other_length[] = "the head states another length than the body has";

static bool makes_body(const struct inside_call *call) {
    return call->driver.exchange.has_body && !call->driver.exchange.keeps_body;
}

/* The length of the original, if it is known. */
static void state_original(struct inside_call *call) {
    int64_t length = call->base.virgin.first.length;
    if (length >= 0)
        stated_length_set(&call->base.stated, (uint64_t)length);
}

static bool length_is_kept(const struct inside_call *call) {
    const struct http_head *head = call->driver.exchange.head;
    struct slice now = http_head_value(head, HTTP_CONTENT_LENGTH);
    if (now.base == NULL || slice_equal(now, http_head_value(call->before, HTTP_CONTENT_LENGTH)))
        return true;
    int64_t states = stated_length_of_head(head, call->method);
    return call->driver.exchange.has_body ? states == call->base.stated.before : states <= 0;
}

/* Of a head that is sound. False: the body that goes with it has another length. */
static bool state_length(struct inside_call *call) {
    if (!makes_body(call)) {
        state_original(call);
        return length_is_kept(call);
    }
    if (call->driver.exchange.body_length != SERVICE_LENGTH_UNKNOWN)
        stated_length_set(&call->base.stated, call->driver.exchange.body_length);
    return true;
}

/* The same of an answer. */
static bool state_answer(struct inside_call *call) {
    const struct service_exchange *exchange = &call->driver.exchange;
    int64_t length = stated_length_of_head(exchange->answer, call->method);
    if (exchange->body_length != SERVICE_LENGTH_UNKNOWN) {
        if (exchange->body_length > INT64_MAX ||
            (length >= 0 && (uint64_t)length != exchange->body_length))
            return false;
        length = (int64_t)exchange->body_length;
    }
    if (length >= 0)
        stated_length_set(&call->base.stated, (uint64_t)length);
    return true;
}

static bool call_may_take(struct inside_call *call, const char *error) {
    if (error != NULL)
        fail_by_bug(call, error);
    call->base.result.head_given = error == NULL;
    return error == NULL;
}

/* The answer lives until `end` only. */
static bool call_take_answer(struct inside_call *call) {
    const struct http_head *answer = call->driver.exchange.answer;
    if (!call_may_take(call, inside_head_error(answer, NULL, true, call->method)))
        return false;
    http_head_assign(call->base.adapted, answer);
    return true;
}

/* Takes the head that the service changed, unless nobody could use it. Its values are in the arena,
 * or literals. */
static bool call_take_head(struct inside_call *call) {
    struct http_head *head = call->driver.exchange.head;
    bool response = call->driver.exchange.point == SERVICE_RESPONSE;
    if (!call_may_take(call, inside_head_error(head, call->before, response, call->method)))
        return false;
    call->base.adapted = head;
    call->base.result.head_lasts = true;
    return true;
}

static void call_made(struct inside_call *call) {
    bool answered = call->driver.exchange.answer != NULL;
    call->base.result.has_body =
        answered ? call->driver.mode != DRIVER_COMPLETE : call->base.has_body;
    inside_call_settle(call, answered ? ADAPTER_SATISFIED : ADAPTER_MODIFIED);
}

/* The verdict waits for the first bytes, so that the message can go on without the service if that
 * fails. Nobody would wait for the end of a body that is to have no bytes. */
static void await_first(struct inside_call *call) {
    size_t got;
    call->decided = true;
    if (call->first == NULL)
        call->first = net_buffer_take(call->net);
    enum source_status status =
        inside_body_pull(call, call->first->data, call->first->capacity, &got);
    call->first->begin = 0;
    call->first->end = got;
    if (status == SOURCE_WAIT || call->driver.mode == DRIVER_OVER)
        return;
    call->decided = false;
    if (call->base.stated.exact == 0 && got > 0)
        fail_by_bug(call, stated_length_too_long);
    else
        call_made(call);
}

static void call_answered(struct inside_call *call) {
    if (!call_take_answer(call))
        return;
    if (!state_answer(call)) {
        fail_by_bug(call, other_length);
        return;
    }
    inside_body_drop(call);
    source_set_waker(&call->base.virgin.first, NULL);
    if (call->base.stated.exact == 0 && call->driver.mode != DRIVER_COMPLETE)
        await_first(call);
    else
        call_made(call);
}

static void call_adapts_body(struct inside_call *call) {
    if (!settings_of_call(call)->bypass)
        virgin_body_stop_keeping(&call->base.virgin);
    if (call->hold || call->base.stated.exact == 0)
        await_first(call);
    else
        call_made(call);
}

/* The service leaves the body alone and has a part of it, which nobody else has. */
static bool body_is_lost(const struct inside_call *call) {
    return call->driver.exchange.keeps_body && call->driver.pushed &&
           !virgin_body_is_whole(&call->base.virgin);
}

static void call_adapted(struct inside_call *call) {
    if (call->driver.exchange.answer != NULL) {
        call_answered(call);
        return;
    }
    if (body_is_lost(call)) {
        fail_by_bug(call, "the service set keeps_body after it had taken a part of the body, and "
                          "the body is larger than keep and keep_on_disk");
        return;
    }
    if (!call_take_head(call))
        return;
    if (!state_length(call)) {
        fail_by_bug(call, other_length);
        return;
    }
    if (makes_body(call))
        call_adapts_body(call);
    else
        call_made(call);
}

/* What the service has of the body comes back from the copy, or else from the service. */
static void call_skipped(struct inside_call *call) {
    if (virgin_body_is_whole(&call->base.virgin) || !call->base.has_body) {
        call->driver.mode = DRIVER_OVER;
        driver_watch_stop(&call->watch);
        inside_body_drop(call);
        inside_call_settle(call, ADAPTER_UNMODIFIED);
        return;
    }
    state_original(call);
    call_made(call);
}

static void call_follow_verdict(struct inside_call *call) {
    const struct driver *driver = &call->driver;
    if (driver->mode == DRIVER_OVER)
        inside_call_fail_by_service(call);
    else if (driver->mode == DRIVER_HELD)
        return;
    else if (driver->verdict == SERVICE_SKIP)
        call_skipped(call);
    else
        call_adapted(call);
}

/* The preview */

/* How many bytes more the service wants of it. No more are read: those that it leaves alone would have
 * been copied for nothing. */
static size_t preview_wants(const struct inside_call *call) {
    size_t wanted = call->instance->ops->preview_size, there = call->driver.in.length;
    if (wanted > settings_of_call(call)->preview)
        wanted = settings_of_call(call)->preview;
    if (wanted > NET_BUFFER_SIZE)
        wanted = NET_BUFFER_SIZE;
    return call->driver.in_ended || call->all_there || there >= wanted ? 0 : wanted - there;
}

static void ask_preview(struct inside_call *call) {
    struct driver *driver = &call->driver;
    stop_timer(call);
    driver_preview(driver, driver->in, driver->in_ended || call->all_there);
    call_follow_verdict(call);
}

static void gather_preview(struct inside_call *call) {
    uint64_t pause = settings_of_call(call)->preview_wait;
    while (preview_wants(call) > 0)
        if (!inside_body_fill(call, preview_wants(call)))
            break;
    if (call->driver.mode != DRIVER_PREVIEW)
        inside_call_fail_by_service(call);
    else if (preview_wants(call) == 0)
        ask_preview(call);
    else if (pause > 0 && call->timer.deadline == TIMER_NEVER)
        loop_timer_after(call->net->loop, &call->timer, pause);
    inside_body_give_back(call);
}

/* Between */

static void ask_held(struct inside_call *call) {
    size_t got;
    driver_watch_stop(&call->watch);
    switch (driver_run(&call->driver, NULL, 0, &got)) {
    case DRIVER_TURN: loop_defer(call->net->loop, &call->task); break;
    case DRIVER_RESTS: inside_wait(call); break;
    default: call_follow_verdict(call);
    }
    inside_body_give_back(call);
}

/* A service in a runner may not be interested before the preview is there. False: the call does not go
 * on now. */
static bool remote_goes_on(struct inside_call *call) {
    enum driver_mode mode = call->driver.mode;
    bool pending = mode == DRIVER_PREVIEW || mode == DRIVER_HELD;
    if (!inside_remote_check(call))
        return false;
    if (!pending || !inside_remote_has_verdict(call))
        return true;
    driver_ask_verdict(&call->driver);
    call_follow_verdict(call);
    return false;
}

void inside_call_go_on(struct inside_call *call) {
    if (call->link != NULL && !remote_goes_on(call))
        return;
    if (call->base.verdict != ADAPTER_PENDING) {
        source_wake(&call->body);
        return;
    }
    if (call->decided) {
        await_first(call);
        return;
    }
    if (call->driver.mode == DRIVER_PREVIEW)
        gather_preview(call);
    if (call->driver.mode == DRIVER_HELD)
        ask_held(call);
}

static void inside_call_on_task(struct task *task) {
    struct inside_call *call = CONTAINER_OF(task, struct inside_call, task);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    inside_call_go_on(call);
}

/* The body pauses: the service decides by what has come. */
static void cut_preview(struct inside_call *call) {
    account_of(call)->previews_cut++;
    ask_preview(call);
    if (call->driver.mode == DRIVER_HELD)
        ask_held(call);
}

static void inside_call_on_timeout(struct timer *timer) {
    struct inside_call *call = CONTAINER_OF(timer, struct inside_call, timer);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (call->driver.mode == DRIVER_PREVIEW)
        cut_preview(call);
    else if (call->driver.mode == DRIVER_NEW)
        inside_call_fail(call, &account_of(call)->error_queue,
                         "it had too many messages at a time, and none ended within queue_timeout");
    else
        inside_call_fail(call, &account_of(call)->error_timeout, "it did not answer in time");
}

static void inside_call_on_total_timeout(struct timer *timer) {
    struct inside_call *call = CONTAINER_OF(timer, struct inside_call, total);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (call->driver.mode < DRIVER_PASSED)
        inside_call_fail(call, &account_of(call)->error_timeout,
                         "it took longer than its total_timeout");
}

/* Start and end */

/* The head that the service may change is a copy, which lives until `end`. */
static void call_fill_exchange(struct inside_call *call, const struct adapter_request *request) {
    struct service_exchange *exchange = &call->driver.exchange;
    const struct adapt_client *client = &request->client;
    unsigned fields = call->service->client_fields;
    struct slice nothing = SLICE("");
    exchange->point = request->response == NULL ? SERVICE_REQUEST : SERVICE_RESPONSE;
    call->before = request->response != NULL ? request->response : request->request;
    exchange->head = arena_alloc(request->arena, sizeof *exchange->head);
    http_head_assign(exchange->head, call->before);
    exchange->request = request->response != NULL ? request->request : exchange->head;
    exchange->has_body = call->base.has_body;
    exchange->client_ip = fields & CLIENT_FIELD_IP ? client->ip : nothing;
    exchange->client_user = fields & CLIENT_FIELD_USERNAME ? client->user : nothing;
    exchange->arguments = call->service->arguments;
    exchange->transaction_id = request->transaction_id;
    exchange->requester = client->requester;
    exchange->of_service = client->of_service;
}

static void call_begin(struct inside_call *call) {
    driver_begin(&call->driver, call->instance->service);
    if (call->driver.state == NULL)
        call_skipped(call);
    else
        inside_call_go_on(call);
}

static void call_run(struct inside_call *call) {
    const struct service_settings *settings = settings_of_call(call);
    if (call->service->runner_links != NULL && !inside_remote_find(call))
        return;
    if (settings->total_timeout > 0 && call->base.has_body)
        loop_timer_after(call->net->loop, &call->total, settings->total_timeout);
    source_set_waker(&call->base.virgin.first, &call->task);
    call_begin(call);
}

static void call_on_place(struct task *task) {
    struct inside_call *call = CONTAINER_OF(task, struct inside_call, turn_task);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (inside_turn_take(&call->service->queue, &call->turn) != INSIDE_TURN_TAKEN)
        return;
    stop_timer(call);
    call->base.figures.queue = clocks_microseconds(CLOCK_MONOTONIC) - call->base.started;
    times_add(&account_of(call)->queue, call->base.figures.queue);
    call_run(call);
}

/* At once where there is a place. */
static void call_take_place(struct inside_call *call) {
    switch (inside_turn_take(&call->service->queue, &call->turn)) {
    case INSIDE_TURN_TAKEN: call_run(call); return;
    case INSIDE_TURN_FULL:
        inside_call_fail(call, &account_of(call)->error_queue,
                         "too many messages already wait for a place at it");
        return;
    case INSIDE_TURN_WAITS: break;
    }
    account_of(call)->queued++;
    loop_timer_after(call->net->loop, &call->timer, settings_of_call(call)->queue_timeout);
}

void inside_call_start(struct inside_call *call, struct inside_service *service,
                       const struct adapter_request *request, struct http_head *adapted,
                       struct task *waker) {
    memset(call, 0, sizeof *call);
    call->magic = INSIDE_CALL_MAGIC;
    call->service = service;
    call->net = service->net;
    call->hold = request->hold;
    call->opt_outs = request->opt_outs;
    call->method = request->request->method_id;
    service->calls++;
    adapter_call_init(&call->base, &service->base,
                      request->response == NULL ? request->request : request->response,
                      request->body, request->recording, adapted, waker);
    call->generation = service_tag_generation(service->base.tag);
    driver_watch_init(&call->watch, &call->driver, call->net->loop, inside_wait_on_over);
    timer_init(&call->timer, inside_call_on_timeout);
    timer_init(&call->total, inside_call_on_total_timeout);
    task_init(&call->task, inside_call_on_task);
    task_init(&call->turn_task, call_on_place);
    inside_turn_init(&call->turn, &call->turn_task);
    inside_body_init(call);
    service->base.account.requests++;
    call->net->counters.icap_transactions++;
    if (service->shared->instance == NULL) {
        inside_call_fail(call, &service->base.account.error_down, service->shared->error);
        return;
    }
    call->instance = inside_instance_reference(service->shared->instance);
    call->fingerprint = atomic_load(&call->instance->fingerprint);
    driver_init(&call->driver, call->instance->ops, &inside_call_hooks, request->arena,
                &call->instance->host);
    call->driver.in_ended = !call->base.has_body;
    call_fill_exchange(call, request);
    call_take_place(call);
}

void inside_call_close(struct inside_call *call) {
    if (call->magic != INSIDE_CALL_MAGIC)
        return;
    call->base.waker = NULL;
    driver_watch_release(&call->watch);
    if (call->instance != NULL)
        driver_end(&call->driver);
    timer_cancel(&call->net->loop->timers, &call->timer);
    timer_cancel(&call->net->loop->timers, &call->total);
    task_cancel(&call->task);
    inside_call_give_place(call);
    task_cancel(&call->turn_task);
    net_buffer_give(call->net, &call->in);
    net_buffer_give(call->net, &call->first);
    adapter_call_release(&call->base);
    inside_instance_release(&call->instance);
    call->service->calls--;
    call->magic = 0;
}

/* Which calls of a service held their worker up. To read the fine clock before and after each call
 * would cost a service more than to be called. So the coarse clock is read, which moves every few
 * milliseconds: a call within one of its ticks was quick. Where it has moved, and the call may have
 * been slow, the thread reads the fine clock for a second. Before that a call counts by the
 * middle of what it may have taken. No call began before the loop's turn, so a coarse clock that is late
 * makes no call look slow. */

enum { WATCHFUL_FOR = 1000000 }; /* microseconds */

_Thread_local bool inside_watchful;
static _Thread_local uint64_t watchful_until;

uint64_t inside_clock_fine(void) {
    return clocks_microseconds(CLOCK_MONOTONIC);
}

/* Microseconds by which the coarse clock may be late. */
static uint64_t coarse_tick(void) {
    struct timespec tick;
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return (uint64_t)tick.tv_sec * 1000000 + (uint64_t)tick.tv_nsec / 1000;
}

static void tell_slow(struct inside_call *call, const char *what, uint64_t took) {
    call->service->base.account.slow++;
    inside_instance_tell_slow(call->instance, what, took);
}

void inside_clock_moved(struct inside_call *call, const char *what, uint64_t began) {
    uint64_t turn = call->net->loop->now_nanoseconds / 1000, now = inside_clock_fine();
    uint64_t most = now - (began > turn ? began : turn);
    bool exact = inside_watchful;
    inside_watchful = most > INSIDE_SLOW || now < watchful_until;
    if (most <= INSIDE_SLOW)
        return;
    watchful_until = now + WATCHFUL_FOR;
    uint64_t took = exact ? most : most - coarse_tick() / 2;
    if (took > INSIDE_SLOW)
        tell_slow(call, what, took);
}

/* Around each call of a function of the service. */

static struct inside_call *slow_call_of(struct driver *driver) {
    return CONTAINER_OF(driver, struct inside_call, driver);
}

static void slow_before(struct driver *driver, enum driver_call what) {
    struct inside_call *call = slow_call_of(driver);
    call->entered = inside_clock();
    foreign_call_enter(&call->service->base.host->foreign, call->instance->kept_name,
                       driver_call_names[what], call->entered);
}

static void slow_after(struct driver *driver, enum driver_call what) {
    struct inside_call *call = slow_call_of(driver);
    foreign_call_leave(&call->service->base.host->foreign);
    if (__builtin_expect(driver->exchange.opt_out, 0) && call->opt_outs != NULL)
        adapt_opt_out_note(call->opt_outs, call->service->base.module, driver->exchange.arena);
    if (__builtin_expect(inside_watchful || inside_clock() != call->entered, 0))
        inside_clock_moved(call, driver_call_names[what], call->entered);
}

static void fill(struct driver *driver) {
    while (inside_body_fill(slow_call_of(driver), NET_BUFFER_SIZE))
        ;
}

const struct driver_hooks inside_call_hooks = {slow_before, slow_after, fill};

/* Others parse what is written of it, such as who takes it out of the memory of verdicts, and the fields
 * of the proxy itself need room behind it: those that frame the body as well. */
static bool head_fits(const struct http_head *head) {
    return head->field_count <= HTTP_FIELDS_MAX && http_head_size(head) <= INSIDE_HEAD_MAX;
}

/* RFC 9112 §6.3: the method, HEAD or CONNECT, decides whether the response has a body. The client
 * goes by the method that it has sent. */
static bool head_decides_framing(enum http_method method) {
    return method == HTTP_METHOD_HEAD || method == HTTP_METHOD_CONNECT;
}

static bool changes_framing(const struct http_head *head, enum http_method before) {
    enum http_method after = http_method_lookup(head->method);
    return after != before && (head_decides_framing(before) || head_decides_framing(after));
}

const char *inside_head_error(const struct http_head *head, const struct http_head *before,
                              bool response, enum http_method method) {
    struct framing framing;
    if (!clean_head(head, before, response))
        return driver_failure_text(DRIVER_MISMADE);
    if (!head_fits(head))
        return driver_failure_text(DRIVER_TOO_LONG);
    if (response && head->status < 200)
        return "the service made a response that a client would not take for the final one";
    if (!response && changes_framing(head, method))
        return "it changed the method from or to HEAD or CONNECT: the client would take the wrong "
               "bytes for its response";
    bool sound = response ? framing_of_response(&framing, head, HTTP_METHOD_GET)
                          : framing_of_request(&framing, head);
    return sound ? NULL : "the service made a head that contradicts itself about the body";
}
