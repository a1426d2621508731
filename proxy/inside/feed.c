#include "inside/call.h"

/* The body on its way to the service. */

struct slice inside_feed_waiting(const struct inside_call *call) {
    return call->in == NULL ? slice_make("", 0) : net_buffer_bytes(call->in);
}

/* Is there room for more? */
static bool feed_make_room(struct inside_call *call) {
    if (call->in == NULL)
        call->in = net_buffer_take(call->net);
    if (call->in->begin == call->in->end)
        call->in->begin = call->in->end = 0;
    return call->in->end < call->in->capacity;
}

static void feed_count(struct inside_call *call, size_t got) {
    int64_t length = call->base.virgin.first.length;
    call->in->end += got;
    call->read += got;
    call->service->base.account.bytes_out += got;
    call->base.figures.bytes_out += got;
    if (length >= 0 && call->read == (uint64_t)length)
        call->all_there = true;
}

bool inside_feed_read(struct inside_call *call, size_t most) {
    size_t got;
    if (call->input_ended || !feed_make_room(call))
        return false;
    if (most > call->in->capacity - call->in->end)
        most = call->in->capacity - call->in->end;
    switch (source_read(&call->base.virgin.first, call->in->data + call->in->end, most, &got)) {
    case SOURCE_DATA: feed_count(call, got); return true;
    case SOURCE_END: call->input_ended = true; break;
    case SOURCE_WAIT: break;
    case SOURCE_FAILED:
        inside_call_fail(call, &call->service->base.account.error_body, "its body broke off");
        return false;
    }
    if (inside_feed_waiting(call).length == 0)
        net_buffer_give(call->net, &call->in);
    return call->input_ended;
}

void inside_feed_drop(struct inside_call *call, size_t length) {
    ASSERT(length <= inside_feed_waiting(call).length);
    call->pushed |= length > 0;
    call->in->begin += length;
    if (call->in->begin == call->in->end)
        net_buffer_give(call->net, &call->in);
}

static bool feed_push(struct inside_call *call) {
    struct slice waiting = inside_feed_waiting(call);
    if (waiting.length == 0)
        return false;
    inside_wait_stop(call);
    uint64_t began = inside_clock();
    size_t took = call->instance->ops->push(call->state, waiting);
    inside_clocked(call, "push", began);
    if (took > waiting.length) {
        inside_call_fail(call, &call->service->base.account.error_protocol,
                         "the service took more of the body than there was; please report this bug "
                         "of the service");
        return false;
    }
    inside_feed_drop(call, took);
    if (took > 0)
        inside_wait_moved(call);
    return took > 0;
}

static bool feed_end_input(struct inside_call *call) {
    if (!call->input_ended || call->finished || inside_feed_waiting(call).length > 0)
        return false;
    call->finished = true;
    inside_wait_stop(call);
    uint64_t began = inside_clock();
    call->instance->ops->finish(call->state);
    inside_clocked(call, "finish", began);
    return true;
}

/* What is there goes to the service in one piece. */
static void feed_fill(struct inside_call *call) {
    while (inside_feed_read(call, NET_BUFFER_SIZE))
        ;
}

bool inside_feed(struct inside_call *call) {
    feed_fill(call);
    bool moved = call->mode != INSIDE_OVER && feed_push(call);
    return (call->mode != INSIDE_OVER && feed_end_input(call)) || moved;
}
