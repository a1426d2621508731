#include "base/assert.h"
#include "http/framing.h"
#include "icap/call.h"

#include <errno.h>

/* Receiving: the ICAP head, the HTTP head in it, the adapted body. */

enum { ICAP_HEAD_MAX = 16384, HTTP_HEADS_MAX = 128 * 1024 };

/* Everything that was to be sent has been; the connection may serve again. */
static bool sent_all(const struct icap_call *call) {
    return call->head_left.length == 0 && feed_is_done(&call->feed) && call->keep_connection;
}

/* 100: the service wants what follows the preview. */
static void go_on(struct icap_call *call) {
    if (!call->previewing) {
        icap_call_fail(call, false, "it said 100 where no preview was sent");
        return;
    }
    call->previewing = false;
    if (call->feed.ended)
        return; /* a 100 after ieof: there is nothing to go on with */
    feed_lift_limit(&call->feed);
    if (!call->may_204)
        virgin_stop_keeping(&call->virgin);
    icap_call_send(call);
}

static void unmodified(struct icap_call *call) {
    bool within_preview = call->previewing;
    if (!virgin_is_whole(&call->virgin) || (!within_preview && !call->may_204)) {
        icap_call_fail(call, false, "it said 204 where that was not offered");
        return;
    }
    bool idle = net_buffer_bytes(call->in).length == 0 && call->head_left.length == 0 &&
                feed_is_done(&call->feed) && call->keep_connection;
    call->step = ICAP_STEP_OVER;
    task_cancel(&call->send_task);
    feed_release(&call->feed);
    net_buffer_give(call->net, &call->in);
    icap_call_leave_connection(call, idle);
    icap_service_succeeded(call->service);
    icap_call_settle(call, ICAP_UNMODIFIED);
}

/* What the head says of its length is not used, but a head that contradicts itself is not trusted.
 */
static bool sound_framing(const struct icap_call *call, bool response) {
    struct framing framing;
    return response ? framing_of_response(&framing, call->adapted, HTTP_METHOD_GET)
                    : framing_of_request(&framing, call->adapted);
}

/* The HTTP head that came back, parsed from a copy that stays. */
static bool take_head(struct icap_call *call, struct slice bytes) {
    bool response = call->parts.has_response;
    size_t at = response ? call->parts.response_at : 0;
    if (!response && !call->parts.has_request) {
        call->head_given = false;
        return true;
    }
    size_t length = call->parts.body_at - at;
    call->adapted_bytes = xmalloc(length);
    memcpy(call->adapted_bytes, bytes.base + at, length);
    ssize_t used = response
                       ? http_head_parse_response(call->adapted, call->adapted_bytes, length, 0)
                       : http_head_parse_request(call->adapted, call->adapted_bytes, length, 0);
    call->head_given = true;
    if (response && call->adapted->status < 200)
        return false; /* a client would take what follows for another response */
    return used > 0 && (size_t)used == length && sound_framing(call, response);
}

static bool fits_method(const struct icap_call *call) {
    bool reqmod = call->response_head.length == 0;
    const struct icap_encapsulated *parts = &call->parts;
    if (reqmod && parts->has_response)
        return !parts->body_is_request;
    if (reqmod)
        return !parts->has_body || parts->body_is_request || !parts->has_request;
    return !parts->body_is_request && (parts->has_response || parts->has_body);
}

static void modified(struct icap_call *call) {
    struct slice bytes = net_buffer_bytes(call->in);
    if (!fits_method(call) || !take_head(call, bytes)) {
        icap_call_fail(call, false, "the message in its answer can't be parsed");
        return;
    }
    bool satisfied = call->response_head.length == 0 && call->parts.has_response;
    call->in->begin += call->parts.body_at;
    if (!call->partial)
        virgin_stop_keeping(&call->virgin);
    icap_service_succeeded(call->service);
    if (call->parts.has_body) {
        icap_call_body_init(call);
        call->step = ICAP_STEP_BODY;
    } else {
        bool reusable = sent_all(call) && net_buffer_bytes(call->in).length == 0;
        call->step = ICAP_STEP_OVER;
        net_buffer_give(call->net, &call->in);
        icap_call_leave_connection(call, reusable);
    }
    if (call->previewing) /* the preview was enough: nothing more is wanted */
        call->previewing = false;
    icap_call_settle(call, satisfied ? ICAP_SATISFIED : ICAP_MODIFIED);
}

static const char *refusal(unsigned status) {
    switch (status) {
    case 206: return "it said 206 where that was not offered";
    case 404: return "it said 404: there is no such service";
    case 405: return "it said 405: it does not do this method";
    case 408: return "it said 408: it ran out of patience";
    case 503: return "it said 503: it is overloaded";
    default: return status >= 500 ? "it failed (5xx)" : "it refused (an unexpected status)";
    }
}

static void judge(struct icap_call *call, const struct http_head *head) {
    struct slice encapsulated = http_head_value(head, HTTP_ENCAPSULATED);
    icap_service_see_istag(call->service, http_head_value(head, HTTP_ISTAG));
    call->keep_connection = !http_head_has_token(head, HTTP_CONNECTION, SLICE("close"));
    switch (head->status) {
    case 100: go_on(call); return;
    case 204: unmodified(call); return;
    case 200: break;
    case 206:
        call->partial = call->may_206 && call->previewing && virgin_is_whole(&call->virgin);
        if (call->partial)
            break;
        /* fall through */
    default: icap_call_fail(call, false, refusal(head->status)); return;
    }
    if (encapsulated.base == NULL ||
        !icap_encapsulated_parse(&call->parts, encapsulated, HTTP_HEADS_MAX)) {
        icap_call_fail(call, false, "the Encapsulated header of its answer is wrong");
        return;
    }
    call->parts_known = true;
}

/* True: something was parsed, look again. */
static bool parse(struct icap_call *call) {
    struct slice bytes = net_buffer_bytes(call->in);
    if (call->parts_known) {
        if (bytes.length < call->parts.body_at)
            return false;
        modified(call);
        return true;
    }
    if (bytes.length == 0)
        return false;
    struct http_head head;
    ssize_t used = http_head_parse_icap_response(&head, bytes.base, bytes.length, 0);
    if (used < 0 || (used == 0 && bytes.length > ICAP_HEAD_MAX)) {
        icap_call_fail(call, false, "its answer is not ICAP");
        return true;
    }
    if (used == 0)
        return false;
    call->in->begin += (size_t)used;
    judge(call, &head);
    return true;
}

void icap_call_receive(struct icap_call *call) {
    size_t got;
    while (call->step == ICAP_STEP_ANSWER) {
        if (call->in == NULL)
            call->in = net_buffer_take(call->net);
        if (!net_buffer_make_room(call->net, &call->in, HTTP_HEADS_MAX + ICAP_HEAD_MAX)) {
            icap_call_fail(call, false, "the heads in its answer are too large");
            return;
        }
        switch (connection_read(call->connection, call->in->data + call->in->end,
                                call->in->capacity - call->in->end, &got)) {
        case IO_DONE: break;
        case IO_WAIT: return;
        case IO_END: icap_call_fail(call, false, "it closed the connection"); return;
        case IO_FAILED: icap_call_fail(call, false, strerrordesc_np(errno)); return;
        }
        call->heard = true;
        call->in->end += got;
        while (call->step == ICAP_STEP_ANSWER && call->in != NULL && parse(call))
            ;
        if (call->connection == NULL || !call->connection->readable)
            return;
    }
}

static enum source_status ended(struct icap_call *call) {
    bool reusable = sent_all(call) && net_buffer_bytes(call->in).length == 0;
    call->body_ended = true;
    call->step = ICAP_STEP_OVER;
    icap_call_watch(call, false);
    task_cancel(&call->send_task);
    feed_release(&call->feed);
    net_buffer_give(call->net, &call->in);
    icap_call_leave_connection(call, reusable);
    return SOURCE_END;
}

static enum source_status broke_off(struct icap_call *call, const char *error) {
    icap_call_fail(call, false, error);
    return SOURCE_FAILED;
}

/* More coded bytes into the buffer. */
static enum source_status refill(struct icap_call *call) {
    size_t got;
    call->in->begin = call->in->end = 0;
    if (call->connection->readable) {
        switch (connection_read(call->connection, call->in->data, call->in->capacity, &got)) {
        case IO_DONE:
            call->in->end = got;
            call->awaited = false;
            icap_call_watch(call, false);
            return SOURCE_DATA;
        case IO_END: return broke_off(call, "it closed the connection in the middle of a body");
        case IO_FAILED: return broke_off(call, strerrordesc_np(errno));
        case IO_WAIT: break;
        }
    }
    /* It may be waiting for more of the virgin body, which the origin has not sent yet. */
    bool starved = !feed_is_done(&call->feed) && feed_bytes(&call->feed).length == 0;
    call->awaited = true;
    icap_call_watch(call, !starved);
    return SOURCE_WAIT;
}

/* The last chunk of a 206 says where the virgin body takes over. */
static bool finish_body(struct icap_call *call) {
    if (call->chunked.has_original && !call->partial) {
        broke_off(call, "its last chunk refers to the original body outside a 206");
        return false;
    }
    call->original = call->chunked.has_original;
    call->skip_left = call->chunked.original;
    ended(call);
    if (call->original) {
        call->body_ended = false;
        virgin_replay(&call->virgin);
    }
    return true;
}

static enum source_status read_original(struct icap_call *call, char *buffer, size_t capacity,
                                        size_t *got) {
    source_set_waker(&call->virgin.replay, call->body.waker);
    for (;;) {
        size_t most = capacity;
        if (call->skip_left > 0 && most > call->skip_left)
            most = (size_t)call->skip_left;
        enum source_status status = source_read(&call->virgin.replay, buffer, most, got);
        if (status == SOURCE_END && call->skip_left > 0) {
            icap_service_failed(call->service, false, "it wanted more of the body than there is");
            return SOURCE_FAILED;
        }
        if (status != SOURCE_DATA || call->skip_left == 0)
            return status;
        call->skip_left -= *got;
        *got = 0;
    }
}

static enum source_status body_read(struct source *source, char *buffer, size_t capacity,
                                    size_t *got) {
    struct icap_call *call = CONTAINER_OF(source, struct icap_call, body);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    *got = 0;
    if (call->body_ended)
        return SOURCE_END;
    if (call->body_failed)
        return SOURCE_FAILED;
    if (call->original)
        return read_original(call, buffer, capacity, got);
    for (;;) {
        struct slice input = net_buffer_bytes(call->in);
        if (input.length > 0) {
            enum chunked_status status =
                chunked_decode(&call->chunked, &input, buffer, capacity, got);
            call->in->begin = call->in->end - input.length;
            if (status == CHUNKED_BAD)
                return broke_off(call, "its chunked coding is broken");
            if (status == CHUNKED_END && !finish_body(call))
                return SOURCE_FAILED;
            if (*got > 0)
                return SOURCE_DATA;
            if (status == CHUNKED_END)
                return call->original ? read_original(call, buffer, capacity, got) : SOURCE_END;
        }
        enum source_status status = refill(call);
        if (status != SOURCE_DATA)
            return status;
    }
}

static void body_close(struct source *source) {
    struct icap_call *call = CONTAINER_OF(source, struct icap_call, body);
    CHECK_OBJ(call, ICAP_CALL_MAGIC);
    if (call->body_ended || call->body_failed)
        return;
    call->body_failed = true;
    call->step = ICAP_STEP_OVER;
    icap_call_watch(call, false);
    task_cancel(&call->send_task);
    feed_release(&call->feed);
    icap_call_leave_connection(call, false);
    net_buffer_give(call->net, &call->in);
}

static const struct source_class body_class = {"adapted body", body_read, body_close, NULL};

void icap_call_body_init(struct icap_call *call) {
    source_init(&call->body, &body_class, call->net->loop, -1);
    chunked_init(&call->chunked);
}
