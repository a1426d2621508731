#include "icap/call.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"

#include <stdio.h>

static void icap_call_on_ready(struct connection *connection);
static void seek_connection(struct icap_call *call);

static const struct service_settings *settings_of(const struct icap_call *call) {
    return call->service->base.settings;
}

void icap_call_settle(struct icap_call *call, enum adapter_verdict verdict) {
    call->base.result.has_body = verdict != ADAPTER_UNMODIFIED && call->parts.has_body;
    adapter_call_settle(&call->base, verdict);
    icap_call_watch(call, false);
}

/* The timer runs while the service has to answer, and not while the origin or the client delays
 * the body. */
void icap_call_watch(struct icap_call *call, bool waiting) {
    const struct service_settings *settings = settings_of(call);
    uint64_t patience = settings->timeout;
    if (call->step == ICAP_STEP_SERVICE)
        patience = settings->queue_timeout;
    else if (call->step == ICAP_STEP_ANSWER && settings->first_byte_timeout > 0)
        patience = settings->first_byte_timeout;
    if (waiting)
        loop_timer_after(call->net->loop, &call->timer, patience);
    else
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
}

void icap_call_leave_connection(struct icap_call *call, bool reusable) {
    struct icap_endpoint *endpoint = call->endpoint;
    bool renewed = false;
    list_remove(&call->link);
    call->endpoint = NULL;
    if (endpoint != NULL && call->shifts != icap_health_shifts(endpoint->health))
        reusable = false; /* the connection leads to a server that has been replaced */
    if (call->connection != NULL) {
        call->net->counters.icap_connections_open--;
        renewed = reusable && icap_endpoint_renew_over(endpoint, &call->connection);
        if (!renewed)
            icap_endpoint_take_back(endpoint, &call->connection, reusable);
    }
    if (endpoint != NULL && !renewed)
        icap_service_leave(call->service, endpoint);
}

static bool may_try_again(const struct icap_call *call) {
    return call->base.verdict == ADAPTER_PENDING && !call->final && !call->base.virgin.failed &&
           virgin_body_is_whole(&call->base.virgin);
}

/* A pooled connection may have been closed while it was idle. This does not count as a failure
 * of the service. */
static bool icap_call_may_repeat(const struct icap_call *call, enum icap_failure failure) {
    return may_try_again(call) && call->step == ICAP_STEP_ANSWER && !call->repeated &&
           ((call->reused && !call->heard) || failure == ICAP_FAILURE_PATIENCE);
}

static void start_over(struct icap_call *call) {
    net_buffer_give(call->net, &call->in);
    virgin_body_restart(&call->base.virgin);
    free(call->adapted_bytes);
    call->adapted_bytes = NULL;
    call->base.result.head_text = slice_make("", 0);
    call->parts_known = call->base.result.partial = false;
    call->first_there = call->original = false;
    call->passed_on = call->skip_left = 0;
    call->interims = 0;
    call->base.result.lifetime = 0;
    stated_length_forget(&call->base.stated);
}

static void repeat(struct icap_call *call) {
    call->repeated = true;
    call->net->counters.icap_retries++;
    call->service->base.account.retries++;
    call->net->counters.icap_connections_open--;
    connection_close(&call->connection);
    start_over(call);
    seek_connection(call);
}

static bool may_switch(const struct icap_call *call, enum icap_failure failure) {
    return may_try_again(call) && call->endpoint != NULL && call->except == NULL &&
           call->service->endpoint_count > 1 && failure != ICAP_FAILURE_REFUSED;
}

static void switch_endpoint(struct icap_call *call, enum icap_failure failure, const char *error) {
    struct icap_endpoint *endpoint = call->endpoint;
    call->service->base.account.switches++;
    call->except = endpoint;
    call->base.error = error;
    icap_call_leave_connection(call, false);
    icap_service_failed(call->service, endpoint, call->turn, failure, error);
    start_over(call);
    call->repeated = false;
    call->step = ICAP_STEP_SERVICE;
    icap_call_watch(call, true);
    loop_defer(call->net->loop, &call->task);
}

const char *icap_call_connection_error(struct icap_call *call) {
    snprintf(call->said, sizeof call->said, "%s", connection_error(call->connection));
    return call->said;
}

void icap_call_fail(struct icap_call *call, enum icap_failure failure, const char *error) {
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    task_cancel(&call->send_task);
    sender_stop(&call->sender);
    if (icap_call_may_repeat(call, failure)) {
        repeat(call);
        return;
    }
    if (may_switch(call, failure)) {
        switch_endpoint(call, failure, error);
        return;
    }
    struct icap_endpoint *endpoint = call->endpoint;
    if (call->base.virgin.failed) {
        failure = ICAP_FAILURE_BODY;
        error = "the body that it was to adapt broke off";
    }
    call->base.error = error;
    call->step = ICAP_STEP_OVER;
    icap_call_leave_connection(call, false);
    net_buffer_give(call->net, &call->in);
    icap_call_watch(call, false);
    icap_service_failed(call->service, endpoint, call->turn, failure, error);
    if (call->base.verdict == ADAPTER_PENDING) {
        icap_call_settle(call, ADAPTER_FAILED);
        return;
    }
    call->body_failed = call->base.broken = true;
    source_wake(&call->body);
}

/* The service has to answer and stays silent. */
static bool is_in_doubt(const struct icap_call *call) {
    if (call->step == ICAP_STEP_CONNECT)
        return icap_endpoint_is_lost(call->endpoint);
    return call->step == ICAP_STEP_ANSWER ||
           (call->step == ICAP_STEP_BODY &&
            (call->awaited || call->base.verdict == ADAPTER_PENDING));
}

void icap_call_look(struct icap_call *call) {
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    if (!is_in_doubt(call) ||
        (call->connection != NULL &&
         !icap_look_finds_lost(call->endpoint, call->connection, call->heard_at, &call->doubts)))
        return;
    task_cancel(&call->task);
    dial_cancel(&call->dial);
    if (call->connection != NULL) {
        call->net->counters.icap_connections_open--;
        icap_lost_connections_add(&call->endpoint->lost_connections, &call->connection);
    }
    call->repeated = true; /* a new connection would lead to the same host */
    icap_call_fail(call, ICAP_FAILURE_LOST, ICAP_HOST_IS_SILENT);
}

/* Ends the call after a timeout. */
static void icap_call_give_up(struct icap_call *call, const char *error) {
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    bool queued = call->step == ICAP_STEP_SERVICE;
    icap_service_stop_waiting(call->service, &call->waiter);
    task_cancel(&call->task);
    call->repeated = true;
    icap_call_fail(call, queued ? ICAP_FAILURE_QUEUE : ICAP_FAILURE_TIMEOUT,
                   queued ? "no connection to it became free in time, or it did not answer OPTIONS"
                          : error);
}

static void icap_call_on_timeout(struct timer *timer) {
    struct icap_call *call = CONTAINER_OF(timer, struct icap_call, timer);
    if (!icap_call_cut_preview(call))
        icap_call_give_up(call, "it did not answer in time");
}

static void icap_call_on_total_timeout(struct timer *timer) {
    struct icap_call *call = CONTAINER_OF(timer, struct icap_call, total);
    call->final = true;
    if (call->step != ICAP_STEP_OVER)
        icap_call_give_up(call, "it took longer than its total_timeout");
}

/* The answer counts as made now or later, so a bump after this moment makes it outdated. */
static void note_asking(struct icap_call *call) {
    const struct service_tag *tag = call->service->base.tag;
    call->asked.era = service_tag_moment(tag, call->endpoint->index).era;
    call->shifts = icap_health_shifts(call->endpoint->health);
}

static bool icap_call_connected(struct icap_call *call) {
    call->step = ICAP_STEP_ANSWER;
    call->heard = false;
    call->heard_at = call->net->loop->now;
    call->doubts = 0;
    note_asking(call);
    call->net->counters.icap_transactions++;
    call->net->counters.icap_connections_open++;
    call->service->base.account.requests++;
    if (!icap_call_write_head(call)) {
        call->final = true;
        icap_call_fail(call, ICAP_FAILURE_REFUSED,
                       "the heads of the message are too large for an ICAP request");
        return false;
    }
    return true;
}

static void seek_connection(struct icap_call *call) {
    struct icap_endpoint *endpoint = call->endpoint;
    call->reused = false;
    log_debug("%.*s asks the service %s at %s", SLICE_PRINT(call->request.transaction_id),
              settings_of(call)->name, endpoint->uri_text);
    /* Bytes that a server sends after an answer must not become the answer to another message. */
    if (!call->repeated)
        call->connection =
            pool_take_quiet(endpoint->pool, icap_endpoint_key(endpoint), icap_call_on_ready, call);
    if (call->connection == NULL) {
        call->step = ICAP_STEP_CONNECT;
        icap_call_watch(call, false);
        const struct dial_target target =
            icap_endpoint_target(endpoint, settings_of(call)->connect_timeout);
        dial_start(&call->dial, call->net, &target, &call->task);
        return;
    }
    call->reused = true;
    if (icap_call_connected(call))
        icap_call_send(call);
}

/* No endpoint can be used. */
static void icap_call_refuse(struct icap_call *call, enum icap_failure failure, const char *error) {
    call->final = true;
    icap_call_fail(call, failure, call->except != NULL ? call->base.error : error);
}

static void seek_service(struct icap_call *call) {
    struct icap_service *service = call->service;
    switch (icap_service_take(service, &call->waiter, call->except, &call->endpoint)) {
    case ICAP_SERVICE_UP: break;
    case ICAP_SERVICE_WAIT:
        service->base.account.queued += !call->queued;
        call->queued = true;
        return;
    case ICAP_SERVICE_FULL:
        icap_call_refuse(call, ICAP_FAILURE_QUEUE,
                         "too many messages already wait for a connection to it");
        return;
    case ICAP_SERVICE_DOWN:
        icap_call_refuse(call, ICAP_FAILURE_DOWN, icap_service_error(service));
        return;
    }
    if (call->queued) {
        call->base.figures.queue = clocks_microseconds(CLOCK_MONOTONIC) - call->base.started;
        times_add(&service->base.account.queue, call->base.figures.queue);
    }
    call->turn = call->endpoint->known.turn;
    icap_look_add(call->endpoint, &call->link);
    if (icap_options_transfer(&call->endpoint->known.options, call->request.path) ==
        ICAP_TRANSFER_IGNORE) {
        call->step = ICAP_STEP_OVER;
        icap_call_leave_connection(call, false);
        icap_call_settle(call, ADAPTER_UNMODIFIED);
        return;
    }
    seek_connection(call);
}

static void icap_call_on_dialled(struct icap_call *call) {
    if (call->dial.state == DIAL_FAILED) {
        icap_call_fail(call, call->dial.reached ? ICAP_FAILURE_HANDSHAKE : ICAP_FAILURE_CONNECT,
                       call->dial.error);
        return;
    }
    if (call->dial.state != DIAL_DONE)
        return;
    call->connection = dial_take(&call->dial, icap_call_on_ready, call);
    call->net->counters.icap_connections++;
    connection_keep_alive(call->connection);
    if (icap_call_connected(call))
        icap_call_on_ready(call->connection);
}

static void icap_call_on_task(struct task *task) {
    struct icap_call *call = CONTAINER_OF(task, struct icap_call, task);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    if (call->step == ICAP_STEP_SERVICE)
        seek_service(call);
    else if (call->step == ICAP_STEP_CONNECT)
        icap_call_on_dialled(call);
}

static void on_virgin_news(struct task *task) {
    struct icap_call *call = CONTAINER_OF(task, struct icap_call, send_task);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    if (call->connection != NULL)
        icap_call_send(call);
}

static void icap_call_receive_some(struct icap_call *call) {
    if (call->step == ICAP_STEP_ANSWER)
        icap_call_receive(call);
    else if (call->step == ICAP_STEP_BODY && call->base.verdict == ADAPTER_PENDING)
        icap_call_await_body(call);
    else if (call->step == ICAP_STEP_BODY)
        source_wake(&call->body);
}

/* Received bytes are handled first, because the reader of the answer has waited longer than the
 * service. */
static void icap_call_on_ready(struct connection *connection) {
    struct icap_call *call;
    CAST_OBJ(call, connection->event.owner, ICAP_CALL_MAGIC);
    if (connection->readable)
        icap_call_receive_some(call);
    if (call->connection == connection && connection->writable)
        icap_call_send(call);
}

void icap_call_start(struct icap_call *call, struct icap_service *service,
                     const struct icap_request *request, struct http_head *adapted,
                     struct task *waker) {
    const struct service_settings *settings = service->base.settings;
    memset(call, 0, offsetof(struct icap_call, dial));
    call->dial.magic = 0;
    call->magic = ICAP_CALL_MAGIC;
    call->service = service;
    call->net = service->net;
    list_init(&call->link);
    call->request = *request;
    call->request.virgin = NULL;
    call->request.given = NULL;
    adapter_call_init(&call->base, &service->base, request->given, request->virgin,
                      request->recording, adapted, waker);
    call->asked.generation = service_tag_generation(service->base.tag);
    timer_init(&call->timer, icap_call_on_timeout);
    timer_init(&call->total, icap_call_on_total_timeout);
    if (settings->total_timeout > 0)
        loop_timer_after(call->net->loop, &call->total, settings->total_timeout);
    task_init(&call->task, icap_call_on_task);
    task_init(&call->send_task, on_virgin_news);
    icap_waiter_init(&call->waiter, &call->task);
    source_set_waker(&call->base.virgin.first, &call->send_task);
    icap_call_watch(call, true);
    seek_service(call);
}

struct source *icap_call_adapted_body(struct icap_call *call) {
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    return &call->body;
}

void icap_call_close(struct icap_call *call) {
    if (call->magic != ICAP_CALL_MAGIC)
        return;
    call->base.waker = NULL;
    icap_service_stop_waiting(call->service, &call->waiter);
    task_cancel(&call->task);
    task_cancel(&call->send_task);
    dial_cancel(&call->dial);
    timer_cancel(&call->net->loop->timers, &call->timer);
    timer_cancel(&call->net->loop->timers, &call->total);
    icap_call_leave_connection(call, false);
    net_buffer_give(call->net, &call->in);
    sender_stop(&call->sender);
    adapter_call_release(&call->base);
    free(call->head);
    free(call->adapted_bytes);
    call->magic = 0;
}
