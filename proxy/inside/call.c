#include "inside/call.h"

#include "base/log.h"
#include "inside/head.h"
#include "inside/remote.h"

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
    if (call->link != NULL && call->state != NULL)
        inside_remote_let_go(call);
}

/* The end of the verdict */

static void inside_call_settle(struct inside_call *call, enum adapter_verdict verdict) {
    const struct service_exchange *exchange = &call->exchange;
    struct adapter_result *result = &call->base.result;
    if (call->instance != NULL)
        result->tag = inside_service_tag(call->service, call->generation, call->fingerprint);
    if (exchange->failed)
        result->unable =
            xstrdup(exchange->failed_because != NULL ? exchange->failed_because : "failed");
    if (exchange->point == SERVICE_REQUEST && !exchange->failed && !exchange->opt_out)
        result->lifetime = (int64_t)exchange->lifetime;
    result->client_fields = call->service->client_fields;
    stop_timer(call);
    if (call->mode == INSIDE_OVER || call->mode == INSIDE_PASSED || call->complete)
        inside_call_give_place(call);
    adapter_call_settle(&call->base, verdict);
}

void inside_call_fail(struct inside_call *call, uint64_t *count, const char *error) {
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    inside_wait_stop(call);
    if (call->base.virgin.failed) {
        count = &account_of(call)->error_body;
        error = "the body that it was to adapt broke off";
    } else {
        call->net->counters.icap_failures++;
    }
    (*count)++;
    call->base.error = error;
    call->mode = INSIDE_OVER;
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

/* Verdicts */

/* The body's new length is the service's to say. */
static void state_length(struct inside_call *call) {
    struct service_exchange *exchange = &call->exchange;
    if (!exchange->has_body || exchange->keeps_body)
        return;
    http_head_remove(exchange->head, HTTP_CONTENT_LENGTH);
    call->base.result.length_meant = true;
    if (exchange->body_length != SERVICE_LENGTH_UNKNOWN)
        http_head_add(
            exchange->head, SLICE("Content-Length"),
            arena_printf(exchange->arena, "%llu", (unsigned long long)exchange->body_length));
}

static bool call_may_take(struct inside_call *call, const char *error) {
    if (error != NULL)
        fail_by_bug(call, error);
    call->base.result.head_given = error == NULL;
    return error == NULL;
}

/* The answer lives until `end` only. */
static bool call_take_answer(struct inside_call *call) {
    const struct http_head *answer = call->exchange.answer;
    if (!call_may_take(call, inside_head_error(answer, NULL, true, call->method)))
        return false;
    http_head_assign(call->base.adapted, answer);
    return true;
}

/* Takes the head that the service changed, unless nobody could use it. Its values are in the arena,
 * or literals. */
static bool call_take_head(struct inside_call *call) {
    struct http_head *head = call->exchange.head;
    bool response = call->exchange.point == SERVICE_RESPONSE;
    if (!call_may_take(call, inside_head_error(head, call->before, response, call->method)))
        return false;
    call->base.adapted = head;
    call->base.result.head_lasts = true;
    return true;
}

static void call_answered(struct inside_call *call) {
    if (call->exchange.point != SERVICE_REQUEST) {
        fail_by_bug(call, "the service answered a response; please report this bug of the service");
        return;
    }
    if (!call_take_answer(call))
        return;
    call->mode = INSIDE_ANSWERED;
    call->complete = call->exchange.body_length == 0;
    call->base.result.has_body = !call->complete;
    net_buffer_give(call->net, &call->in);
    source_set_waker(&call->base.virgin.first, NULL);
    inside_call_settle(call, ADAPTER_SATISFIED);
}

static void call_modified(struct inside_call *call) {
    call->base.result.has_body = call->base.has_body;
    inside_call_settle(call, ADAPTER_MODIFIED);
}

/* The verdict waits for the first bytes, so that the message can go on without the service if that
 * fails. */
static void await_first(struct inside_call *call) {
    size_t got;
    call->decided = true;
    if (call->first == NULL)
        call->first = net_buffer_take(call->net);
    enum source_status status =
        inside_body_pull(call, call->first->data, call->first->capacity, &got);
    call->first->begin = 0;
    call->first->end = got;
    if (status == SOURCE_WAIT || call->mode == INSIDE_OVER)
        return;
    call->decided = false;
    call_modified(call);
}

/* Has the service the functions for a body? */
static bool can_adapt_body(const struct inside_call *call) {
    const struct service_ops *ops = call->instance->ops;
    return ops->push != NULL && ops->finish != NULL && ops->pull != NULL;
}

static void call_adapts_body(struct inside_call *call) {
    if (!can_adapt_body(call)) {
        fail_by_bug(call, "the service has no functions push, finish and pull, and did not set "
                          "keeps_body");
        return;
    }
    call->mode = INSIDE_ADAPTED;
    if (!settings_of_call(call)->bypass)
        virgin_body_stop_keeping(&call->base.virgin);
    if (call->hold)
        await_first(call);
    else
        call_modified(call);
}

/* The service leaves the body alone and has a part of it, which nobody else has. */
static bool body_is_lost(const struct inside_call *call) {
    return call->exchange.keeps_body && call->pushed && !virgin_body_is_whole(&call->base.virgin);
}

static void call_adapted(struct inside_call *call) {
    if (call->exchange.answer != NULL) {
        call_answered(call);
        return;
    }
    if (body_is_lost(call)) {
        fail_by_bug(call, "the service set keeps_body after it had taken a part of the body, and "
                          "the body is larger than keep and keep_on_disk");
        return;
    }
    state_length(call);
    if (!call_take_head(call))
        return;
    if (call->base.has_body && !call->exchange.keeps_body) {
        call_adapts_body(call);
        return;
    }
    call->mode = INSIDE_PASSED;
    call_modified(call);
}

/* What the service has of the body comes back from the copy, or else from the service. */
static void call_skipped(struct inside_call *call) {
    if (virgin_body_is_whole(&call->base.virgin) || !call->base.has_body) {
        call->mode = INSIDE_OVER;
        inside_wait_stop(call);
        net_buffer_give(call->net, &call->in);
        inside_call_settle(call, ADAPTER_UNMODIFIED);
        return;
    }
    call->mode = call->pushed ? INSIDE_ADAPTED : INSIDE_PASSED;
    call_modified(call);
}

static void call_held(struct inside_call *call) {
    if (call->instance->ops->verdict == NULL || !can_adapt_body(call))
        fail_by_bug(call, "the service holds the message back and has no function verdict");
    else
        call->mode = INSIDE_HELD;
}

static void inside_call_take_verdict(struct inside_call *call, enum service_verdict verdict) {
    switch (verdict) {
    case SERVICE_SKIP: call_skipped(call); break;
    case SERVICE_ADAPT: call_adapted(call); break;
    case SERVICE_HOLD: call_held(call); break;
    default:
        fail_by_bug(call,
                    "the service gave an unknown verdict; please report this bug of the service");
    }
}

/* The preview */

/* How many bytes more the service wants of it. No more are read: those that it leaves alone would have
 * been copied for nothing. */
static size_t preview_wants(const struct inside_call *call) {
    size_t wanted = call->instance->ops->preview_size, there = inside_feed_waiting(call).length;
    if (wanted > settings_of_call(call)->preview)
        wanted = settings_of_call(call)->preview;
    if (wanted > NET_BUFFER_SIZE)
        wanted = NET_BUFFER_SIZE;
    return call->input_ended || call->all_there || there >= wanted ? 0 : wanted - there;
}

static void ask_preview(struct inside_call *call) {
    bool complete = call->input_ended || call->all_there;
    stop_timer(call);
    uint64_t began = inside_clock();
    enum service_verdict verdict =
        call->instance->ops->preview(call->state, inside_feed_waiting(call), complete);
    inside_clocked(call, "preview", began);
    inside_call_take_verdict(call, verdict);
}

static void gather_preview(struct inside_call *call) {
    uint64_t pause = settings_of_call(call)->preview_wait;
    while (preview_wants(call) > 0)
        if (!inside_feed_read(call, preview_wants(call)))
            break;
    if (call->mode != INSIDE_PREVIEW)
        return;
    if (preview_wants(call) == 0)
        ask_preview(call);
    else if (pause > 0 && call->timer.deadline == TIMER_NEVER)
        loop_timer_after(call->net->loop, &call->timer, pause);
}

/* Between */

static void inside_ask_verdict(struct inside_call *call) {
    inside_wait_stop(call);
    uint64_t began = inside_clock();
    enum service_verdict verdict = call->instance->ops->verdict(call->state);
    inside_clocked(call, "verdict", began);
    inside_call_take_verdict(call, verdict);
}

/* Others have their turn after so many pieces of the body. */
static void ask_held(struct inside_call *call) {
    for (unsigned turns = 0; call->mode == INSIDE_HELD; turns++) {
        if (turns == INSIDE_TURNS) {
            loop_defer(call->net->loop, &call->task);
            return;
        }
        bool moved = inside_feed(call);
        if (call->mode == INSIDE_HELD)
            inside_ask_verdict(call);
        if (call->mode == INSIDE_HELD && !moved) {
            inside_wait(call);
            return;
        }
    }
}

/* A service in a runner may not be interested before the preview is there. False: the call does not go
 * on now. */
static bool remote_goes_on(struct inside_call *call) {
    bool pending = call->mode == INSIDE_PREVIEW || call->mode == INSIDE_HELD;
    if (!inside_remote_check(call))
        return false;
    if (!pending || !inside_remote_has_verdict(call))
        return true;
    inside_ask_verdict(call);
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
    if (call->mode == INSIDE_PREVIEW)
        gather_preview(call);
    if (call->mode == INSIDE_HELD)
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
    if (call->mode == INSIDE_HELD)
        ask_held(call);
}

static void inside_call_on_timeout(struct timer *timer) {
    struct inside_call *call = CONTAINER_OF(timer, struct inside_call, timer);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (call->mode == INSIDE_PREVIEW)
        cut_preview(call);
    else if (call->mode == INSIDE_QUEUED)
        inside_call_fail(call, &account_of(call)->error_queue,
                         "it had too many messages at a time, and none ended within queue_timeout");
    else
        inside_call_fail(call, &account_of(call)->error_timeout, "it did not answer in time");
}

static void inside_call_on_total_timeout(struct timer *timer) {
    struct inside_call *call = CONTAINER_OF(timer, struct inside_call, total);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (call->mode != INSIDE_OVER && call->mode != INSIDE_PASSED && !call->complete)
        inside_call_fail(call, &account_of(call)->error_timeout,
                         "it took longer than its total_timeout");
}

/* Start and end */

/* The head that the service may change is a copy, which lives until `end`. */
static void call_fill_exchange(struct inside_call *call, const struct adapter_request *request) {
    struct service_exchange *exchange = &call->exchange;
    const struct adapt_client *client = &request->client;
    unsigned fields = call->service->client_fields;
    struct slice nothing = SLICE("");
    INIT_OBJ(exchange, SERVICE_EXCHANGE_MAGIC);
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
    exchange->asker = client->asker;
    exchange->of_service = client->of_service;
    exchange->arena = request->arena;
    exchange->host = &call->instance->host;
    exchange->body_length = SERVICE_LENGTH_UNKNOWN;
    service_wait_none(exchange);
}

static void call_begin(struct inside_call *call) {
    uint64_t began = inside_clock();
    call->state = call->instance->ops->begin(call->instance->service, &call->exchange);
    inside_clocked(call, "begin", began);
    if (call->state == NULL)
        call_skipped(call);
    else
        inside_call_go_on(call);
}

static void call_run(struct inside_call *call) {
    const struct service_settings *settings = settings_of_call(call);
    call->mode = INSIDE_PREVIEW;
    if (call->service->desk != NULL && !inside_remote_find(call))
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
    call->mode = INSIDE_QUEUED;
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
    adapter_call_init(&call->base, &service->base, request->body, request->recording, adapted,
                      waker);
    call->generation = service_tag_generation(service->base.tag);
    inside_wait_init(call);
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
    call->input_ended = !call->base.has_body;
    call_fill_exchange(call, request);
    call_take_place(call);
}

static void end_state(struct inside_call *call) {
    if (call->state == NULL)
        return;
    uint64_t began = inside_clock();
    call->instance->ops->end(call->state);
    call->state = NULL;
    inside_clocked(call, "end", began);
}

void inside_call_close(struct inside_call *call) {
    if (call->magic != INSIDE_CALL_MAGIC)
        return;
    call->base.waker = NULL;
    inside_wait_stop(call);
    end_state(call);
    timer_cancel(&call->net->loop->timers, &call->wait_timer);
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
