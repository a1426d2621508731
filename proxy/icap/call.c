#include "icap/call.h"

#include "base/assert.h"

static void on_ready(struct connection *connection);
static void seek_connection(struct icap_call *call);

void icap_call_settle(struct icap_call *call, enum icap_verdict verdict) {
    ASSERT(call->verdict == ICAP_PENDING);
    call->verdict = verdict;
    icap_call_watch(call, false);
    if (call->waker != NULL)
        loop_defer(call->net->loop, call->waker);
}

/* The clock runs while the service has the word; not while the origin or the client has. */
void icap_call_watch(struct icap_call *call, bool waiting) {
    if (waiting)
        loop_timer_after(call->net->loop, &call->timer, call->service->settings->timeout);
    else
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
}

void icap_call_leave_connection(struct icap_call *call, bool reusable) {
    if (call->connection != NULL) {
        call->net->counters.icap_connections_open--;
        if (reusable)
            pool_give(call->service->pool, icap_service_pool_key(call->service), &call->connection,
                      call->service->settings->idle_timeout,
                      call->service->settings->max_connections);
        else
            connection_close(&call->connection);
    }
    if (call->has_place) {
        call->has_place = false;
        icap_service_leave(call->service);
    }
}

/* A connection from the pool may have died while it was idle: that says nothing of the service. */
static bool may_repeat(const struct icap_call *call) {
    return call->step == ICAP_STEP_ANSWER && call->reused && !call->heard && !call->repeated &&
           virgin_is_whole(&call->virgin);
}

static void repeat(struct icap_call *call) {
    call->repeated = true;
    call->net->counters.icap_retries++;
    call->net->counters.icap_connections_open--;
    connection_close(&call->connection);
    net_buffer_give(call->net, &call->in);
    virgin_restart(&call->virgin);
    seek_connection(call);
}

void icap_call_fail(struct icap_call *call, bool unreachable, const char *error) {
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    task_cancel(&call->send_task);
    feed_release(&call->feed);
    if (may_repeat(call) && !call->virgin.failed) {
        repeat(call);
        return;
    }
    bool virgins_fault = call->virgin.failed;
    bool queued = call->step == ICAP_STEP_SERVICE;
    call->error = virgins_fault ? "the body that it was to adapt broke off" : error;
    call->step = ICAP_STEP_OVER;
    icap_call_leave_connection(call, false);
    net_buffer_give(call->net, &call->in);
    icap_call_watch(call, false);
    if (queued) /* that all its connections are busy is no fault of the service */
        call->net->counters.icap_failures++;
    else if (!virgins_fault)
        icap_service_failed(call->service, unreachable, error);
    if (call->verdict == ICAP_PENDING) {
        icap_call_settle(call, ICAP_FAILED);
        return;
    }
    call->body_failed = true;
    source_wake(&call->body);
}

/* Time is up: no second try. */
static void give_up(struct icap_call *call, const char *error) {
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    bool queued = call->step == ICAP_STEP_SERVICE;
    icap_service_stop_waiting(call->service, &call->waiter);
    call->repeated = true;
    icap_call_fail(call, false, queued ? "no connection to it became free in time" : error);
}

static void on_timeout(struct timer *timer) {
    give_up(CONTAINER_OF(timer, struct icap_call, timer), "it did not answer in time");
}

static void on_total_timeout(struct timer *timer) {
    struct icap_call *call = CONTAINER_OF(timer, struct icap_call, total);
    if (call->step != ICAP_STEP_OVER)
        give_up(call, "it took longer than its total_timeout");
}

static bool connected(struct icap_call *call) {
    call->step = ICAP_STEP_ANSWER;
    call->heard = false;
    call->net->counters.icap_transactions++;
    call->net->counters.icap_connections_open++;
    if (!icap_call_write_head(call)) {
        icap_call_fail(call, false, "the heads are too large for it");
        return false;
    }
    return true;
}

static void seek_connection(struct icap_call *call) {
    const struct icap_service_settings *settings = call->service->settings;
    call->reused = false;
    if (!call->repeated)
        call->connection =
            pool_take(call->service->pool, icap_service_pool_key(call->service), on_ready, call);
    if (call->connection == NULL) {
        call->step = ICAP_STEP_CONNECT;
        icap_call_watch(call, false);
        dial_start(&call->dial, call->net, settings->uri.host, settings->uri.port,
                   settings->connect_timeout, &call->task);
        return;
    }
    call->reused = true;
    if (connected(call))
        icap_call_send(call);
}

static void seek_service(struct icap_call *call) {
    struct icap_service *service = call->service;
    switch (icap_service_ready(service, &call->waiter)) {
    case ICAP_SERVICE_UP: call->has_place = true; break;
    case ICAP_SERVICE_WAIT: return;
    case ICAP_SERVICE_DOWN:
        call->step = ICAP_STEP_OVER;
        call->error = icap_service_error(service);
        icap_call_settle(call, ICAP_FAILED);
        return;
    }
    if (icap_options_transfer(&service->options, call->path) == ICAP_TRANSFER_IGNORE) {
        icap_call_leave_connection(call, false);
        call->step = ICAP_STEP_OVER;
        icap_call_settle(call, ICAP_UNMODIFIED);
        return;
    }
    seek_connection(call);
}

static void on_dialled(struct icap_call *call) {
    if (call->dial.state == DIAL_FAILED) {
        icap_call_fail(call, true, call->dial.error);
        return;
    }
    if (call->dial.state != DIAL_DONE)
        return;
    call->connection = dial_take(&call->dial, on_ready, call);
    call->net->counters.icap_connections++;
    if (connected(call))
        on_ready(call->connection);
}

static void on_task(struct task *task) {
    struct icap_call *call = CONTAINER_OF(task, struct icap_call, task);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    if (call->step == ICAP_STEP_SERVICE)
        seek_service(call);
    else if (call->step == ICAP_STEP_CONNECT)
        on_dialled(call);
}

static void on_virgin_news(struct task *task) {
    struct icap_call *call = CONTAINER_OF(task, struct icap_call, send_task);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    if (call->connection != NULL)
        icap_call_send(call);
}

static void on_ready(struct connection *connection) {
    struct icap_call *call;
    CAST_OBJ(call, connection->owner, ICAP_CALL_MAGIC);
    if (connection->writable)
        icap_call_send(call);
    if (call->connection != connection || !connection->readable)
        return;
    if (call->step == ICAP_STEP_ANSWER)
        icap_call_receive(call);
    else if (call->step == ICAP_STEP_BODY)
        source_wake(&call->body);
}

void icap_call_start(struct icap_call *call, struct icap_service *service,
                     const struct icap_request *request, struct http_head *adapted,
                     struct task *waker) {
    INIT_OBJ(call, ICAP_CALL_MAGIC);
    call->service = service;
    call->net = service->net;
    call->waker = waker;
    call->adapted = adapted;
    call->request_head = request->request_head;
    call->response_head = request->response_head;
    call->path = request->path;
    call->client_ip = request->client_ip;
    call->transaction_id = request->transaction_id;
    call->has_body = *request->virgin != NULL;
    timer_init(&call->timer, on_timeout);
    timer_init(&call->total, on_total_timeout);
    if (service->settings->total_timeout > 0)
        loop_timer_after(call->net->loop, &call->total, service->settings->total_timeout);
    task_init(&call->task, on_task);
    task_init(&call->send_task, on_virgin_news);
    icap_waiter_init(&call->waiter, &call->task);
    virgin_init(&call->virgin, call->net->loop, request->virgin, service->settings->keep);
    source_set_waker(&call->virgin.first, &call->send_task);
    icap_call_watch(call, true);
    seek_service(call);
}

struct source *icap_call_body(struct icap_call *call) {
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    if (call->verdict == ICAP_UNMODIFIED)
        return call->has_body ? virgin_replay(&call->virgin) : NULL;
    return call->parts.has_body ? &call->body : NULL;
}

bool icap_call_recover(struct icap_call *call, struct source **body) {
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    ASSERT(call->verdict == ICAP_FAILED);
    *body = NULL;
    if (!virgin_is_whole(&call->virgin) || call->virgin.failed)
        return false;
    if (call->has_body)
        *body = virgin_replay(&call->virgin);
    return true;
}

void icap_call_close(struct icap_call *call) {
    if (call->magic != ICAP_CALL_MAGIC)
        return;
    call->waker = NULL;
    icap_service_stop_waiting(call->service, &call->waiter);
    task_cancel(&call->task);
    task_cancel(&call->send_task);
    dial_cancel(&call->dial);
    timer_cancel(&call->net->loop->timers, &call->timer);
    timer_cancel(&call->net->loop->timers, &call->total);
    icap_call_leave_connection(call, false);
    net_buffer_give(call->net, &call->in);
    feed_release(&call->feed);
    virgin_release(&call->virgin);
    free(call->head);
    free(call->adapted_bytes);
    call->magic = 0;
}
