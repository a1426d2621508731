#include "inside/call.h"

/* The body: on its way to the service, and what comes from it, with what it passes on behind. */

/* To the service */

/* Is there room for more? */
static bool body_make_room(struct inside_call *call) {
    struct slice *in = &call->driver.in;
    if (call->in == NULL)
        call->in = net_buffer_take(call->net);
    if (in->length == 0)
        in->base = call->in->data;
    return in->base + in->length < call->in->data + call->in->capacity;
}

static void body_has_read(struct inside_call *call, size_t got) {
    int64_t length = call->base.virgin.first.length;
    call->driver.in.length += got;
    call->read += got;
    call->service->base.account.bytes_out += got;
    call->base.figures.bytes_out += got;
    if (length >= 0 && call->read == (uint64_t)length)
        call->all_there = true;
}

bool inside_body_fill(struct inside_call *call, size_t most) {
    struct driver *driver = &call->driver;
    size_t got;
    if (driver->in_ended || !body_make_room(call))
        return false;
    char *end = (char *)driver->in.base + driver->in.length;
    size_t room = (size_t)(call->in->data + call->in->capacity - end);
    switch (source_read(&call->base.virgin.first, end, most < room ? most : room, &got)) {
    case SOURCE_DATA: body_has_read(call, got); return true;
    case SOURCE_END: driver->in_ended = true; return true;
    case SOURCE_WAIT: break;
    case SOURCE_FAILED: driver_fail(driver, DRIVER_BROKE_OFF); break;
    }
    return false;
}

/* From the service */

static enum source_status body_failed(struct inside_call *call) {
    inside_call_fail_by_service(call);
    return SOURCE_FAILED;
}

static size_t body_take_first(struct inside_call *call, char *out, size_t capacity) {
    if (call->first == NULL)
        return 0;
    struct slice waiting = net_buffer_bytes(call->first);
    size_t count = waiting.length < capacity ? waiting.length : capacity;
    memcpy(out, waiting.base, count);
    call->first->begin += count;
    if (count == waiting.length)
        net_buffer_give(call->net, &call->first);
    return count;
}

/* The rest of the body, which the service does not want: read into its place, once what waits for the
 * service is used up. */
static enum source_status read_passed(struct inside_call *call, char *buffer, size_t capacity,
                                      size_t *got) {
    struct driver *driver = &call->driver;
    if (driver->in_ended)
        return SOURCE_END;
    enum source_status status = source_read(&call->base.virgin.first, buffer, capacity, got);
    driver->in_ended = status == SOURCE_END;
    if (status != SOURCE_FAILED)
        return status;
    driver_fail(driver, DRIVER_BROKE_OFF);
    return body_failed(call);
}

/* A body that comes as fast as it is read, and of which next to nothing is left, would keep the worker
 * from all others: they have their turn. */
static enum source_status body_rest(struct inside_call *call) {
    if (call->base.verdict != ADAPTER_PENDING)
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    loop_defer(call->net->loop, &call->task);
    return SOURCE_WAIT;
}

/* There is no more input for the moment: the service may give what it keeps back. */
static bool body_is_idle(const struct driver *driver) {
    return driver->ops->idle != NULL && !driver->in_ended && driver->mode == DRIVER_ADAPTED &&
           driver->in.length == 0;
}

static void body_has_given(struct inside_call *call, uint64_t count) {
    call->service->base.account.bytes_in += count;
    call->base.figures.bytes_in += count;
}

static enum driver_status body_run(struct inside_call *call, char *buffer, size_t capacity,
                                   size_t *got) {
    struct driver *driver = &call->driver;
    uint64_t given = driver->given;
    driver_watch_stop(&call->watch);
    enum driver_status status = driver_run(driver, buffer, capacity, got);
    if (status == DRIVER_RESTS && body_is_idle(driver)) {
        driver_idle(driver);
        status = driver_pull(driver, buffer, capacity, got);
    }
    inside_body_give_back(call);
    if (driver->given > given)
        body_has_given(call, driver->given - given);
    if (driver->mode >= DRIVER_PASSED)
        inside_call_give_place(call);
    return status;
}

enum source_status inside_body_pull(struct inside_call *call, char *buffer, size_t capacity,
                                    size_t *got) {
    const struct driver *driver = &call->driver;
    *got = 0;
    if (driver->mode == DRIVER_COMPLETE)
        return SOURCE_END;
    if (driver->mode == DRIVER_PASSED && driver->in.length == 0)
        return read_passed(call, buffer, capacity, got);
    switch (body_run(call, buffer, capacity, got)) {
    case DRIVER_GAVE: return SOURCE_DATA;
    case DRIVER_ENDED: return SOURCE_END;
    case DRIVER_TURN: return body_rest(call);
    case DRIVER_RESTS:
        if (driver->mode == DRIVER_PASSED)
            return read_passed(call, buffer, capacity, got);
        return inside_wait(call) ? SOURCE_WAIT : SOURCE_FAILED;
    default: return body_failed(call);
    }
}

/* What was pulled before the verdict comes first. */
static enum source_status read_from_first(void *arg, char *buffer, size_t capacity, size_t *got) {
    struct inside_call *call;
    CAST_OBJ(call, arg, INSIDE_CALL_MAGIC);
    *got = body_take_first(call, buffer, capacity);
    return *got > 0 ? SOURCE_DATA : inside_body_pull(call, buffer, capacity, got);
}

static enum source_status inside_body_read(struct source *source, char *buffer, size_t capacity,
                                           size_t *got) {
    struct inside_call *call = CONTAINER_OF(source, struct inside_call, body);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    *got = 0;
    if (call->driver.mode == DRIVER_OVER)
        return SOURCE_FAILED;
    struct stated_length *stated = &call->base.stated;
    enum source_status status =
        stated_length_read(stated, read_from_first, call, buffer, capacity, got);
    if (stated->error != NULL) {
        inside_call_fail(call, &call->service->base.account.error_protocol, stated->error);
        return SOURCE_FAILED;
    }
    if (status == SOURCE_DATA)
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    if (status == SOURCE_END && !call->base.body_ended) {
        call->base.body_ended = true;
        call->driver.mode = DRIVER_COMPLETE;
        adapter_call_has_all(&call->base);
    }
    return status;
}

static void inside_body_close(struct source *source) {
    struct inside_call *call = CONTAINER_OF(source, struct inside_call, body);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    driver_watch_stop(&call->watch);
    call->driver.mode = DRIVER_OVER;
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
    if (call->driver.mode == DRIVER_PASSED && call->driver.exchange.keeps_body &&
        virgin_body_is_whole(&call->base.virgin)) {
        inside_body_drop(call);
        call->driver.mode = DRIVER_COMPLETE;
        return virgin_body_hand_on(&call->base.virgin);
    }
    return &call->body;
}
