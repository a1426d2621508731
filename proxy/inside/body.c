#include "inside/call.h"

/* The body that a service makes: pulled from it, with what it passes on behind. */

static enum source_status body_broke_off(struct inside_call *call, uint64_t *count,
                                         const char *error) {
    if (call->mode != INSIDE_OVER)
        inside_call_fail(call, count, error);
    return SOURCE_FAILED;
}

static enum source_status body_misstated(struct inside_call *call, const char *error) {
    return body_broke_off(call, &call->service->base.account.error_protocol, error);
}

/* Takes bytes out of a buffer, which is given back when it is empty. */
static size_t body_take_waiting(struct inside_call *call, struct net_buffer **buffer, char *out,
                                size_t capacity) {
    if (*buffer == NULL)
        return 0;
    struct slice waiting = net_buffer_bytes(*buffer);
    size_t count = waiting.length < capacity ? waiting.length : capacity;
    memcpy(out, waiting.base, count);
    (*buffer)->begin += count;
    if ((*buffer)->begin == (*buffer)->end)
        net_buffer_give(call->net, buffer);
    return count;
}

/* The rest of the body, which the service does not want. */
static enum source_status read_passed(struct inside_call *call, char *buffer, size_t capacity,
                                      size_t *got) {
    *got = body_take_waiting(call, &call->in, buffer, capacity);
    if (*got > 0)
        return SOURCE_DATA;
    if (call->input_ended)
        return SOURCE_END;
    enum source_status status = source_read(&call->base.virgin.first, buffer, capacity, got);
    call->input_ended = status == SOURCE_END;
    if (status == SOURCE_FAILED)
        return body_broke_off(call, &call->service->base.account.error_body, "its body broke off");
    return status;
}

static enum service_flow pull_service(struct inside_call *call, char *buffer, size_t capacity,
                                      size_t *got) {
    inside_wait_stop(call);
    uint64_t began = inside_clock();
    enum service_flow flow = call->instance->ops->pull(call->state, buffer, capacity, got);
    inside_clocked(call, "pull", began);
    if (*got > capacity || flow < SERVICE_FLOW || flow > SERVICE_ABORT) {
        *got = 0;
        inside_call_fail(call, &call->service->base.account.error_protocol,
                         "the service gave more than there was room for, or an unknown answer; "
                         "please report this bug of the service");
        return SERVICE_ABORT;
    }
    if (*got > 0)
        inside_wait_moved(call);
    call->service->base.account.bytes_in += *got;
    call->base.figures.bytes_in += *got;
    return flow;
}

/* Takes what the service gives now. SOURCE_WAIT: nothing. */
static enum source_status take_pulled(struct inside_call *call, char *buffer, size_t capacity,
                                      size_t *got) {
    switch (pull_service(call, buffer, capacity, got)) {
    case SERVICE_DONE:
        call->complete = true;
        inside_call_give_place(call);
        break;
    case SERVICE_PASS:
        if (call->mode == INSIDE_ANSWERED)
            return body_misstated(call,
                                  "the service passed on the body of a request as its own answer");
        call->mode = INSIDE_PASSED;
        inside_call_give_place(call);
        break;
    case SERVICE_ABORT:
        return body_broke_off(call, &call->service->base.account.error_server,
                              "the service can't complete the body");
    case SERVICE_FLOW: break;
    }
    if (*got > 0)
        return SOURCE_DATA;
    if (call->complete)
        return SOURCE_END;
    return call->mode == INSIDE_PASSED ? read_passed(call, buffer, capacity, got) : SOURCE_WAIT;
}

/* There is no more input for the moment: the service may give what it keeps back. */
static enum source_status take_idle(struct inside_call *call, char *buffer, size_t capacity,
                                    size_t *got) {
    if (call->instance->ops->idle == NULL || call->input_ended || call->mode != INSIDE_ADAPTED ||
        inside_feed_waiting(call).length > 0)
        return SOURCE_WAIT;
    uint64_t began = inside_clock();
    call->instance->ops->idle(call->state);
    inside_clocked(call, "idle", began);
    return take_pulled(call, buffer, capacity, got);
}

/* A body that comes as fast as it is read, and of which next to nothing is left, would keep the worker
 * from all others: they have their turn. */
static enum source_status body_rest(struct inside_call *call) {
    if (call->base.verdict != ADAPTER_PENDING)
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    call->rests = true;
    loop_defer(call->net->loop, &call->task);
    return SOURCE_WAIT;
}

/* Also a push that takes nothing may make a service give more: what it had inside may have come out
 * in place of it. */
static enum source_status pull_or_feed(struct inside_call *call, char *buffer, size_t capacity,
                                       size_t *got) {
    bool fed = true;
    call->rests = false;
    for (unsigned turns = 0;; turns++) {
        enum source_status status = take_pulled(call, buffer, capacity, got);
        if (status != SOURCE_WAIT || !fed || call->mode != INSIDE_ADAPTED)
            return status;
        if (turns == INSIDE_TURNS)
            return body_rest(call);
        fed = inside_feed(call);
        if (call->mode == INSIDE_OVER)
            return SOURCE_FAILED;
        if (!fed && inside_feed_waiting(call).length == 0)
            return SOURCE_WAIT;
    }
}

enum source_status inside_body_pull(struct inside_call *call, char *buffer, size_t capacity,
                                    size_t *got) {
    *got = 0;
    if (call->mode == INSIDE_OVER)
        return SOURCE_FAILED;
    if (call->complete)
        return SOURCE_END;
    if (call->mode == INSIDE_PASSED)
        return read_passed(call, buffer, capacity, got);
    enum source_status status = pull_or_feed(call, buffer, capacity, got);
    if (status == SOURCE_WAIT && !call->rests)
        status = take_idle(call, buffer, capacity, got);
    if (status != SOURCE_WAIT || call->mode == INSIDE_PASSED || call->rests)
        return status;
    return inside_wait(call) ? SOURCE_WAIT : SOURCE_FAILED;
}

/* What was pulled before the verdict comes first. */
static enum source_status read_from_first(struct inside_call *call, char *buffer, size_t capacity,
                                          size_t *got) {
    *got = body_take_waiting(call, &call->first, buffer, capacity);
    return *got > 0 ? SOURCE_DATA : inside_body_pull(call, buffer, capacity, got);
}

/* Gives the last byte only when it is known that nothing follows it. */
static enum source_status read_last(struct inside_call *call, char *buffer, size_t *got) {
    char spare;
    enum source_status status;
    if (!call->last_there && call->given < (uint64_t)call->body.length) {
        status = read_from_first(call, &call->last, 1, got);
        *got = 0;
        if (status == SOURCE_END)
            return body_misstated(call, "its body is shorter than the length that it stated");
        if (status != SOURCE_DATA)
            return status;
        call->last_there = true;
    }
    status = read_from_first(call, &spare, 1, got);
    *got = 0;
    if (status == SOURCE_DATA)
        return body_misstated(call, "its body is longer than the length that it stated");
    if (status != SOURCE_END || !call->last_there)
        return status;
    call->last_there = false;
    call->given++;
    *buffer = call->last;
    *got = 1;
    return SOURCE_DATA;
}

static enum source_status read_stated(struct inside_call *call, char *buffer, size_t capacity,
                                      size_t *got) {
    uint64_t left = (uint64_t)call->body.length - call->given;
    if (left <= 1)
        return read_last(call, buffer, got);
    enum source_status status =
        read_from_first(call, buffer, capacity < left - 1 ? capacity : (size_t)(left - 1), got);
    call->given += *got;
    return status == SOURCE_END
               ? body_misstated(call, "its body is shorter than the length that it stated")
               : status;
}

static enum source_status inside_body_read(struct source *source, char *buffer, size_t capacity,
                                           size_t *got) {
    struct inside_call *call = CONTAINER_OF(source, struct inside_call, body);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    *got = 0;
    if (call->mode == INSIDE_OVER)
        return SOURCE_FAILED;
    enum source_status status = source->length < 0 ? read_from_first(call, buffer, capacity, got)
                                                   : read_stated(call, buffer, capacity, got);
    if (status == SOURCE_DATA)
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    if (status == SOURCE_END && !call->base.body_ended) {
        call->base.body_ended = call->complete = true;
        adapter_call_has_all(&call->base);
    }
    return status;
}

static void inside_body_close(struct source *source) {
    struct inside_call *call = CONTAINER_OF(source, struct inside_call, body);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    inside_wait_stop(call);
    call->mode = INSIDE_OVER;
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    task_cancel(&call->task);
    inside_call_give_place(call);
}

static const struct source_class inside_body_class = {"adapted body", inside_body_read,
                                                      inside_body_close, NULL};

void inside_body_init(struct inside_call *call) {
    source_init(&call->body, &inside_body_class, call->net->loop, -1);
}

/* A body that the service left alone is the original itself. */
struct source *inside_call_body(struct inside_call *call) {
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (call->mode == INSIDE_PASSED && call->exchange.keeps_body &&
        virgin_body_is_whole(&call->base.virgin)) {
        net_buffer_give(call->net, &call->in);
        call->complete = true;
        return virgin_body_hand_on(&call->base.virgin);
    }
    return &call->body;
}
