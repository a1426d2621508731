#include "base/assert.h"
#include "icap/call.h"

/* The adapted body as it is read from the connection: the chunks, and behind them the virgin body
 * if the service says so. */

static enum source_status adapted_body_ended(struct icap_call *call) {
    adapter_call_has_all(&call->base);
    bool reusable = icap_call_sent_all(call) && net_buffer_bytes(call->in).length == 0;
    call->base.body_ended = true;
    call->step = ICAP_STEP_OVER;
    icap_call_watch(call, false);
    task_cancel(&call->send_task);
    sender_stop(&call->sender);
    net_buffer_give(call->net, &call->in);
    icap_call_leave_connection(call, reusable);
    return SOURCE_END;
}

static enum source_status adapted_body_broke_off(struct icap_call *call, enum icap_failure failure,
                                                 const char *error) {
    icap_call_fail(call, failure, error);
    return SOURCE_FAILED;
}

/* If one read has filled the buffer, more follows: takes a larger buffer. */
static void adapted_body_make_roomy(struct icap_call *call) {
    if (call->in->end < NET_BUFFER_SIZE || call->in->capacity > NET_BUFFER_SIZE)
        return;
    struct net_buffer *large = net_buffer_take_large(call->net);
    if (large == NULL)
        return;
    net_buffer_give(call->net, &call->in);
    call->in = large;
}

/* How many bytes to wait for. Servers write 4 KB at a time. A large body may be read in larger
 * pieces; with a small body, waiting would cost more than it saves. */
static size_t adapted_body_still_to_come(const struct icap_call *call) {
    enum { LARGE = 32 * 1024, BODY_END = sizeof "\r\n0\r\n\r\n" - 1 };
    uint64_t stated = call->base.stated.least;
    if (stated < LARGE || call->passed_on >= stated || call->base.result.partial)
        return 1;
    return stated - call->passed_on + BODY_END;
}

/* Waits for many bytes once after each read that brought something. If nothing has come by then, it
 * waits for one byte. */
static void adapted_body_linger(struct icap_call *call, bool tried) {
    if (!call->lingered)
        connection_await(call->connection, adapted_body_still_to_come(call));
    else if (tried)
        connection_await(call->connection, 1);
    call->lingered = true;
}

/* Reads more coded bytes into the buffer. */
static enum source_status adapted_body_refill(struct icap_call *call) {
    size_t got;
    adapted_body_make_roomy(call);
    call->in->begin = call->in->end = 0;
    bool tried = call->connection->readable;
    if (tried) {
        switch (connection_read(call->connection, call->in->data, call->in->capacity, &got)) {
        case IO_DONE:
            call->in->end = got;
            icap_call_count_in(call, got);
            call->awaited = call->lingered = false;
            icap_call_watch(call, false);
            return SOURCE_DATA;
        case IO_END:
            return adapted_body_broke_off(call, ICAP_FAILURE_CLOSED,
                                          "it closed the connection in the middle of a body");
        case IO_FAILED:
            return adapted_body_broke_off(call, ICAP_FAILURE_CLOSED,
                                          icap_call_connection_error(call));
        case IO_WAIT: break;
        }
    }
    adapted_body_linger(call, tried);
    /* The service may wait for more of the virgin body, which the origin has not sent yet. */
    bool starved = sender_is_starved(&call->sender);
    call->awaited = true;
    icap_call_watch(call, !starved);
    return SOURCE_WAIT;
}

/* The last chunk of a 206 says where the virgin body takes over. */
static bool adapted_body_finish(struct icap_call *call) {
    if (call->chunked.has_original && !call->base.result.partial) {
        adapted_body_broke_off(call, ICAP_FAILURE_PROTOCOL,
                               "its last chunk refers to the original body outside a 206");
        return false;
    }
    if (call->chunked.has_original && !icap_call_has_original(call))
        return false;
    call->original = call->chunked.has_original;
    call->skip_left = call->chunked.original;
    adapted_body_ended(call);
    if (call->original) {
        icap_call_count_saved(call, call->skip_left);
        call->base.body_ended = false;
        virgin_body_replay(&call->base.virgin);
    } else if (call->base.result.partial) {
        virgin_body_stop_keeping(&call->base.virgin);
    }
    return true;
}

static enum source_status adapted_body_read_original(struct icap_call *call, char *buffer,
                                                     size_t capacity, size_t *got) {
    source_set_waker(&call->base.virgin.replay, call->body.waker);
    for (;;) {
        size_t most = capacity;
        if (call->skip_left > 0 && most > call->skip_left)
            most = (size_t)call->skip_left;
        enum source_status status = source_read(&call->base.virgin.replay, buffer, most, got);
        if (status == SOURCE_END && call->skip_left > 0) {
            icap_service_failed(call->service, NULL, 0, ICAP_FAILURE_PROTOCOL,
                                "it asked for more of the body than there is");
            call->base.error = "it asked for more of the body than there is";
            call->body_failed = true;
            return SOURCE_FAILED;
        }
        if (status != SOURCE_DATA || call->skip_left == 0)
            return status;
        call->skip_left -= *got;
        *got = 0;
    }
}

static enum source_status adapted_body_decode(struct icap_call *call, char *buffer, size_t capacity,
                                              size_t *got) {
    *got = 0;
    if (call->base.body_ended)
        return SOURCE_END;
    if (call->body_failed)
        return SOURCE_FAILED;
    if (call->original)
        return adapted_body_read_original(call, buffer, capacity, got);
    for (;;) {
        struct slice input = net_buffer_bytes(call->in);
        if (input.length > 0) {
            enum chunked_status status =
                chunked_decode(&call->chunked, &input, buffer, capacity, got);
            call->in->begin = call->in->end - input.length;
            if (status == CHUNKED_BAD)
                return adapted_body_broke_off(call, ICAP_FAILURE_PROTOCOL,
                                              "its chunked coding is broken");
            if (status == CHUNKED_END && !adapted_body_finish(call))
                return SOURCE_FAILED;
            call->passed_on += *got;
            if (*got > 0)
                return SOURCE_DATA;
            if (status == CHUNKED_END && call->base.verdict == ADAPTER_PENDING)
                return SOURCE_END; /* of what the verdict waits for */
            if (status == CHUNKED_END)
                return call->original ? adapted_body_read_original(call, buffer, capacity, got)
                                      : SOURCE_END;
        }
        enum source_status status = adapted_body_refill(call);
        if (status != SOURCE_DATA)
            return status;
    }
}

/* Returns the byte that the verdict waited for, and more if more has come. */
static enum source_status adapted_body_read_from_first(void *arg, char *buffer, size_t capacity,
                                                       size_t *got) {
    struct icap_call *call;
    CAST_OBJ(call, arg, ICAP_CALL_MAGIC);
    if (!call->first_there)
        return adapted_body_decode(call, buffer, capacity, got);
    call->first_there = false;
    *buffer = call->first;
    *got = 0;
    if (capacity > 1)
        adapted_body_decode(call, buffer + 1, capacity - 1, got);
    (*got)++;
    return SOURCE_DATA;
}

static enum source_status adapted_body_read(struct source *source, char *buffer, size_t capacity,
                                            size_t *got) {
    struct icap_call *call = CONTAINER_OF(source, struct icap_call, body);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    struct stated_length *stated = &call->base.stated;
    enum source_status status =
        stated_length_read(stated, adapted_body_read_from_first, call, buffer, capacity, got);
    if (stated->error != NULL && !call->body_failed)
        adapted_body_broke_off(call, ICAP_FAILURE_PROTOCOL, stated->error);
    return status;
}

/* Is it known that bytes of the original come behind what the service has sent? */
static bool original_follows(const struct icap_call *call) {
    int64_t length = call->base.virgin.first.length;
    return call->original && length > 0 && (uint64_t)length > call->skip_left;
}

/* The verdict counts from the first byte of the body on, or with its end. Where the head states a
 * body of no bytes, its reader would not wait for either. */
void icap_call_await_body(struct icap_call *call) {
    size_t got;
    bool none = call->base.stated.exact == 0;
    switch (adapted_body_decode(call, &call->first, 1, &got)) {
    case SOURCE_WAIT:
    case SOURCE_FAILED: return;
    case SOURCE_DATA: call->first_there = true; break;
    case SOURCE_END: break;
    }
    if (none && (call->first_there || original_follows(call))) {
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL, stated_length_too_long);
        return;
    }
    if (none && call->original)
        call->body.length = -1; /* what follows of the original is not known yet */
    icap_call_settle(call, call->outcome);
}

static void adapted_body_close(struct source *source) {
    struct icap_call *call = CONTAINER_OF(source, struct icap_call, body);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    if (call->base.body_ended || call->body_failed)
        return;
    call->body_failed = true;
    call->step = ICAP_STEP_OVER;
    icap_call_watch(call, false);
    task_cancel(&call->send_task);
    sender_stop(&call->sender);
    icap_call_leave_connection(call, false);
    net_buffer_give(call->net, &call->in);
}

static const struct source_class adapted_body_class = {"adapted body", adapted_body_read,
                                                       adapted_body_close, NULL};

void icap_call_body_init(struct icap_call *call) {
    source_init(&call->body, &adapted_body_class, call->net->loop, call->base.stated.exact);
    chunked_init(&call->chunked);
    chunked_of_response(&call->chunked, NULL);
}
