#include "origin/http1/call.h"

#include "base/assert.h"
#include "http/head_parser.h"

/* Receives the head of a response into the buffer. */

/* HEADROOM: free bytes in the buffer. A body that came with its head is sent from there, and the
 * client's head before it is a little longer than the origin's. */
enum { HEADROOM = 512 };

static void origin_http1_answered(struct origin_call *call) {
    const struct framing *framing = &origin_http1_of(call)->framing;
    origin_http1_of(call)->keeps_alive = framing_keeps_alive(call->response);
    call->no_body =
        framing->kind == FRAMING_NONE || (framing->kind == FRAMING_LENGTH && framing->length == 0);
    call->may_have_trailers = framing->kind == FRAMING_CHUNKED;
    origin_http1_body_init(call);
    origin_call_answer(call);
}

/* The head is complete. Returns false when another one follows. */
static bool origin_http1_take_head(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    const struct http_head *response = call->response;
    if (response->status == 101 && !call->request.upgrade) {
        origin_call_fail(call, ORIGIN_BAD, "it switched protocols without being asked");
    } else if (response->status == 101) {
        http1->framing.kind = FRAMING_NONE;
        origin_http1_answered(call);
    } else if (response->status < 200) {
        return !origin_call_take_interim(call);
    } else if (!framing_of_response(&http1->framing, response, call->request.method)) {
        origin_call_fail(call, ORIGIN_BAD, http1->framing.error);
    } else {
        origin_http1_answered(call);
    }
    return true;
}

/* Returns false when more bytes are needed. */
static bool origin_http1_parse(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    do {
        struct slice bytes = net_buffer_bytes(http1->in);
        ssize_t used =
            http_head_parse_response(call->response, bytes.base, bytes.length, http1->head_checked);
        if (used == 0) {
            http1->head_checked = bytes.length;
            return false;
        }
        http1->head_checked = 0;
        if (used < 0) {
            origin_call_fail(call, ORIGIN_BAD, http_error_text((enum http_error) - used));
            return true;
        }
        if ((size_t)used > call->request.max_head) {
            origin_call_refuse_head(call);
            return true;
        }
        http1->in->begin += (size_t)used;
        if (origin_http1_take_head(call))
            return true;
    } while (origin_http1_waiting(http1) > 0);
    return false;
}

void origin_http1_receive(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    size_t got;
    if (http1->in == NULL) {
        http1->in = net_buffer_take(call->net);
        http1->in->begin = http1->in->end = HEADROOM;
    }
    while (call->state == ORIGIN_WAITING) {
        if (!net_buffer_make_room(call->net, &http1->in, call->request.max_head)) {
            origin_call_refuse_head(call);
            return;
        }
        switch (connection_read(http1->connection, http1->in->data + http1->in->end,
                                http1->in->capacity - http1->in->end, &got)) {
        case IO_DONE:
            if (!call->heard)
                origin_call_note_heard(call);
            http1->in->end += got;
            call->net->counters.origin_bytes_in += got;
            if (origin_http1_parse(call) || !http1->connection->readable)
                return;
            break;
        case IO_WAIT: return;
        case IO_END:
            origin_call_fail(call, ORIGIN_BROKE_OFF, "it closed the connection without answering");
            return;
        case IO_FAILED: origin_call_fail(call, ORIGIN_BROKE_OFF, origin_http1_error(call)); return;
        }
    }
}
