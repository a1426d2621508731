#include "inside/call.h"

#include "base/log.h"

#include <stdio.h>

static void inside_call_go_on(struct inside_call *call);

static const struct service_settings *settings_of_call(const struct inside_call *call) {
    return call->service->base.settings;
}

/* The result is of the instance that this call has, whatever a reload has brought meanwhile. */
static void note_version(struct inside_call *call) {
    struct service_tag_sight sight =
        service_tag_see(call->service->base.tag, 0, slice_from(call->instance->version),
                        &call->asked, call->net->loop->now);
    call->base.result.tag = sight.result;
}

static void inside_call_settle(struct inside_call *call, enum adapter_verdict verdict) {
    const struct service_exchange *exchange = &call->exchange;
    struct adapter_result *result = &call->base.result;
    if (call->instance != NULL)
        note_version(call);
    if (exchange->failed)
        result->unable =
            xstrdup(exchange->failed_because != NULL ? exchange->failed_because : "failed");
    if (exchange->point == SERVICE_REQUEST && !exchange->failed)
        result->lifetime = (int64_t)exchange->lifetime;
    result->client_fields = call->service->client_fields;
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    adapter_call_settle(&call->base, verdict);
}

void inside_call_fail(struct inside_call *call, uint64_t *count, const char *error) {
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    inside_call_stop_waiting(call);
    if (call->base.virgin.failed) {
        count = &call->service->base.account.error_body;
        error = "the body that it was to adapt broke off";
    } else {
        call->net->counters.icap_failures++;
    }
    (*count)++;
    call->base.error = error;
    call->mode = INSIDE_OVER;
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    if (call->base.verdict == ADAPTER_PENDING) {
        inside_call_settle(call, ADAPTER_FAILED);
        return;
    }
    call->failed = call->base.broken = true;
    source_wake(&call->body);
}

/* Waiting */

void inside_call_stop_waiting(struct inside_call *call) {
    if (call->watched && call->event.fd >= 0)
        loop_remove(call->net->loop, &call->event);
    call->watched = false;
    timer_set(&call->net->loop->timers, &call->wait_timer, TIMER_NEVER);
}

/* The service has been told that its wait is over. One that goes on waiting for the same, past its own
 * deadline, would do so for ever. */
static void tell_ready(struct inside_call *call) {
    const struct service_wait before = call->exchange.wait;
    inside_call_stop_waiting(call);
    uint64_t began = inside_clock();
    call->instance->ops->ready(call->state);
    inside_clocked(call, "ready", began);
    const struct service_wait *after = &call->exchange.wait;
    call->overdue = after->fd == before.fd && after->deadline == before.deadline &&
                    service_now() >= before.deadline;
    inside_call_go_on(call);
}

static void inside_call_on_event(struct event *event, uint32_t events) {
    struct inside_call *call = CONTAINER_OF(event, struct inside_call, event);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    (void)events;
    tell_ready(call);
}

static void inside_call_on_wait_timer(struct timer *timer) {
    struct inside_call *call = CONTAINER_OF(timer, struct inside_call, wait_timer);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    tell_ready(call);
}

static uint32_t events_of(short events) {
    uint32_t wanted = 0;
    if (events & POLLIN)
        wanted |= EPOLLIN;
    if (events & POLLOUT)
        wanted |= EPOLLOUT;
    return wanted;
}

static bool watch_service(struct inside_call *call) {
    const struct service_wait *wait = &call->exchange.wait;
    if (wait->fd < 0 || call->overdue)
        return false;
    if (call->watched)
        return true;
    call->watched = true;
    /* A descriptor that the loop can't watch is asked about at the deadline. */
    if (!loop_add(call->net->loop, &call->event, wait->fd, events_of(wait->events),
                  inside_call_on_event))
        event_init(&call->event);
    timer_set(&call->net->loop->timers, &call->wait_timer,
              wait->deadline > 0 ? (uint64_t)wait->deadline : 0);
    return true;
}

static void arm_timeout(struct inside_call *call) {
    const struct service_settings *settings = settings_of_call(call);
    bool pending = call->base.verdict == ADAPTER_PENDING;
    uint64_t patience = pending && settings->first_byte_timeout > 0 ? settings->first_byte_timeout
                                                                    : settings->timeout;
    if (call->timer.deadline == TIMER_NEVER)
        loop_timer_after(call->net->loop, &call->timer, patience);
}

bool inside_call_wait(struct inside_call *call) {
    if (watch_service(call)) {
        arm_timeout(call);
        return true;
    }
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    if (!call->input_ended)
        return true; /* the body's source wakes the task */
    inside_call_fail(call, &call->service->base.account.error_server,
                     "the service neither goes on nor waits for anything; please report this bug "
                     "of the service");
    return false;
}

/* Input */

/* Reads some of the body. False: nothing has come, and it may be that nothing will. */
static bool read_input(struct inside_call *call) {
    size_t got;
    if (call->input_ended || call->base.virgin.replaying)
        return false;
    if (call->in == NULL)
        call->in = net_buffer_take(call->net);
    if (call->in->begin == call->in->end)
        call->in->begin = call->in->end = 0;
    if (call->in->end == call->in->capacity)
        return false;
    switch (source_read(&call->base.virgin.first, call->in->data + call->in->end,
                        call->in->capacity - call->in->end, &got)) {
    case SOURCE_DATA:
        call->in->end += got;
        call->service->base.account.bytes_out += got;
        call->base.figures.bytes_out += got;
        return true;
    case SOURCE_END: call->input_ended = true; return true;
    case SOURCE_WAIT: return false;
    default:
        inside_call_fail(call, &call->service->base.account.error_body, "its body broke off");
        return false;
    }
}

static size_t waiting_input(const struct inside_call *call) {
    return call->in == NULL ? 0 : call->in->end - call->in->begin;
}

static bool push_input(struct inside_call *call) {
    if (waiting_input(call) == 0)
        return false;
    inside_call_stop_waiting(call);
    uint64_t began = inside_clock();
    size_t took = call->instance->ops->push(call->state, net_buffer_bytes(call->in));
    inside_clocked(call, "push", began);
    ASSERT(took <= waiting_input(call));
    call->in->begin += took;
    if (waiting_input(call) == 0)
        net_buffer_give(call->net, &call->in);
    return took > 0;
}

static bool finish_input(struct inside_call *call) {
    if (!call->input_ended || call->finished || waiting_input(call) > 0)
        return false;
    call->finished = true;
    inside_call_stop_waiting(call);
    uint64_t began = inside_clock();
    call->instance->ops->finish(call->state);
    inside_clocked(call, "finish", began);
    return true;
}

bool inside_call_feed(struct inside_call *call) {
    if (waiting_input(call) == 0)
        read_input(call);
    return call->mode != INSIDE_OVER && (push_input(call) || finish_input(call));
}

/* Verdicts */

/* What the service has put into the head is in place already; the length of the body is not. */
static void state_length(struct inside_call *call) {
    struct service_exchange *exchange = &call->exchange;
    if (!exchange->has_body || exchange->keeps_body)
        return;
    http_head_remove(exchange->head, HTTP_CONTENT_LENGTH);
    if (exchange->body_length != SERVICE_LENGTH_UNKNOWN)
        http_head_add(
            exchange->head, SLICE("Content-Length"),
            arena_printf(exchange->arena, "%llu", (unsigned long long)exchange->body_length));
}

static void call_answered(struct inside_call *call) {
    ASSERT(call->exchange.point == SERVICE_REQUEST);
    http_head_assign(call->base.adapted, call->exchange.answer);
    call->mode = INSIDE_ANSWERED;
    call->complete = call->exchange.body_length == 0;
    call->base.result.head_given = true;
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
    if (call->out == NULL)
        call->out = net_buffer_take(call->net);
    enum source_status status = inside_body_pull(call, call->out->data, call->out->capacity, &got);
    call->out->begin = 0;
    call->out->end = got;
    if (status == SOURCE_WAIT || call->mode == INSIDE_OVER)
        return;
    call->decided = false;
    call_modified(call);
}

static void call_adapted(struct inside_call *call) {
    call->base.result.head_given = true;
    if (call->exchange.answer != NULL) {
        call_answered(call);
        return;
    }
    state_length(call);
    if (!call->base.has_body || call->exchange.keeps_body) {
        call->mode = INSIDE_PASSED;
        call_modified(call);
        return;
    }
    call->mode = INSIDE_ADAPTED;
    if (call->hold)
        await_first(call);
    else
        call_modified(call);
}

/* What the service has of the body comes back from the copy, or else from the service. */
static void call_skipped(struct inside_call *call) {
    if (virgin_body_is_whole(&call->base.virgin) || !call->base.has_body) {
        call->mode = INSIDE_OVER;
        inside_call_stop_waiting(call);
        net_buffer_give(call->net, &call->in);
        inside_call_settle(call, ADAPTER_UNMODIFIED);
        return;
    }
    call->mode = INSIDE_ADAPTED;
    call_modified(call);
}

static void take_verdict(struct inside_call *call, enum service_verdict verdict) {
    switch (verdict) {
    case SERVICE_SKIP: call_skipped(call); break;
    case SERVICE_ADAPT: call_adapted(call); break;
    case SERVICE_HOLD: call->mode = INSIDE_HELD;
    }
}

/* Has the preview all that the service wants of it? */
static bool preview_is_full(const struct inside_call *call) {
    size_t wanted = call->instance->ops->preview_size;
    if (wanted > settings_of_call(call)->preview)
        wanted = settings_of_call(call)->preview;
    return call->input_ended || waiting_input(call) >= wanted ||
           waiting_input(call) == NET_BUFFER_SIZE;
}

static void ask_preview(struct inside_call *call) {
    struct slice bytes = call->in == NULL ? SLICE("") : net_buffer_bytes(call->in);
    bool complete = call->input_ended;
    uint64_t began = inside_clock();
    enum service_verdict verdict = call->instance->ops->preview(call->state, bytes, complete);
    inside_clocked(call, "preview", began);
    take_verdict(call, verdict);
}

static void gather_preview(struct inside_call *call) {
    while (!preview_is_full(call))
        if (!read_input(call))
            break;
    if (call->mode != INSIDE_PREVIEW)
        return;
    if (preview_is_full(call))
        ask_preview(call);
    else if (settings_of_call(call)->preview_wait > 0 && call->timer.deadline == TIMER_NEVER)
        loop_timer_after(call->net->loop, &call->timer, settings_of_call(call)->preview_wait);
}

static void ask_held(struct inside_call *call) {
    enum { TURNS = 16 };
    for (unsigned turns = 0; call->mode == INSIDE_HELD; turns++) {
        if (turns == TURNS) {
            loop_defer(call->net->loop, &call->task);
            return;
        }
        bool moved = inside_call_feed(call);
        if (call->mode != INSIDE_HELD)
            return;
        uint64_t began = inside_clock();
        enum service_verdict verdict = call->instance->ops->verdict(call->state);
        inside_clocked(call, "verdict", began);
        take_verdict(call, verdict);
        if (call->mode == INSIDE_HELD && !moved) {
            inside_call_wait(call);
            return;
        }
    }
}

static void inside_call_go_on(struct inside_call *call) {
    if (call->base.verdict != ADAPTER_PENDING) {
        source_wake(&call->body);
        return;
    }
    if (call->mode == INSIDE_PREVIEW)
        gather_preview(call);
    if (call->mode == INSIDE_HELD)
        ask_held(call);
    else if (call->decided)
        await_first(call);
}

static void inside_call_on_task(struct task *task) {
    struct inside_call *call = CONTAINER_OF(task, struct inside_call, task);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    inside_call_go_on(call);
}

static void inside_call_on_timeout(struct timer *timer) {
    struct inside_call *call = CONTAINER_OF(timer, struct inside_call, timer);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (call->mode == INSIDE_PREVIEW) { /* the body pauses: the service has what has come */
        call->service->base.account.previews_cut++;
        ask_preview(call);
        if (call->mode == INSIDE_HELD)
            ask_held(call);
        return;
    }
    inside_call_fail(call, &call->service->base.account.error_timeout, "it did not answer in time");
}

static void inside_call_on_total_timeout(struct timer *timer) {
    struct inside_call *call = CONTAINER_OF(timer, struct inside_call, total);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (call->mode != INSIDE_OVER && !call->complete)
        inside_call_fail(call, &call->service->base.account.error_timeout,
                         "it took longer than its total_timeout");
}

/* Start and end */

/* The service changes the head that the caller gave for the adapted one, which begins as the
 * original. */
static void fill_exchange_of(struct inside_call *call, const struct adapter_request *request) {
    struct service_exchange *exchange = &call->exchange;
    const struct adapt_client *client = &request->client;
    unsigned fields = call->service->client_fields;
    struct slice nothing = SLICE("");
    INIT_OBJ(exchange, SERVICE_EXCHANGE_MAGIC);
    exchange->point = request->response == NULL ? SERVICE_REQUEST : SERVICE_RESPONSE;
    http_head_assign(call->base.adapted,
                     request->response != NULL ? request->response : request->request);
    exchange->request = request->response != NULL ? request->request : call->base.adapted;
    exchange->head = call->base.adapted;
    exchange->has_body = call->base.has_body;
    exchange->client_ip = fields & CLIENT_FIELD_IP ? client->ip : nothing;
    exchange->client_user = fields & CLIENT_FIELD_USERNAME ? client->user : nothing;
    exchange->arguments = nothing;
    exchange->arena = request->arena;
    exchange->host = &call->instance->host;
    exchange->body_length = SERVICE_LENGTH_UNKNOWN;
    service_wait_none(exchange);
}

static void begin_call(struct inside_call *call) {
    uint64_t began = inside_clock();
    call->state = call->instance->ops->begin(call->instance->service, &call->exchange);
    inside_clocked(call, "begin", began);
    if (call->state == NULL)
        call_skipped(call);
    else
        inside_call_go_on(call);
}

void inside_call_start(struct inside_call *call, struct inside_service *service,
                       const struct adapter_request *request, struct http_head *adapted,
                       struct task *waker) {
    const struct service_settings *settings = service->base.settings;
    memset(call, 0, sizeof *call);
    call->magic = INSIDE_CALL_MAGIC;
    call->service = service;
    call->net = service->net;
    call->hold = request->hold;
    service->calls++;
    adapter_call_init(&call->base, &service->base, request->body, adapted, waker);
    call->asked = service_tag_moment(service->base.tag, 0);
    event_init(&call->event);
    timer_init(&call->wait_timer, inside_call_on_wait_timer);
    timer_init(&call->timer, inside_call_on_timeout);
    timer_init(&call->total, inside_call_on_total_timeout);
    task_init(&call->task, inside_call_on_task);
    inside_body_init(call);
    service->base.account.requests++;
    call->net->counters.icap_transactions++;
    if (service->shared->instance == NULL) {
        inside_call_fail(call, &service->base.account.error_down, service->shared->error);
        return;
    }
    call->instance = inside_instance_reference(service->shared->instance);
    call->input_ended = !call->base.has_body;
    if (settings->total_timeout > 0)
        loop_timer_after(call->net->loop, &call->total, settings->total_timeout);
    source_set_waker(&call->base.virgin.first, &call->task);
    fill_exchange_of(call, request);
    begin_call(call);
}

void inside_call_close(struct inside_call *call) {
    if (call->magic != INSIDE_CALL_MAGIC)
        return;
    call->base.waker = NULL;
    inside_call_stop_waiting(call);
    if (call->state != NULL)
        call->instance->ops->end(call->state);
    timer_cancel(&call->net->loop->timers, &call->wait_timer);
    timer_cancel(&call->net->loop->timers, &call->timer);
    timer_cancel(&call->net->loop->timers, &call->total);
    task_cancel(&call->task);
    net_buffer_give(call->net, &call->in);
    net_buffer_give(call->net, &call->out);
    adapter_call_release(&call->base);
    inside_instance_release(&call->instance);
    call->service->calls--;
    call->magic = 0;
}
