#include "origin/http1/call.h"

#include "base/assert.h"

/* Sends a request: its head, then its body as fast as the source gives it and the socket takes
 * it. */

/* The number of writes before other work gets its turn. */
enum { TURNS = 16 };

/* The origin does not read any more. It may have answered before it closed (RFC 9112 §9.5). */
static void origin_send_write_failed(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    http1->deaf = true;
    sender_stop(&http1->sender);
    if (call->state == ORIGIN_WAITING)
        origin_http1_receive(call);
}

/* The source has no more bytes now. The origin's timeout does not run while a client pauses. */
static void origin_send_starved(struct origin_call *call) {
    if (call->state == ORIGIN_WAITING)
        origin_call_pause(call);
}

/* The origin's timeout runs from the last byte of the request. */
static void origin_send_finished(struct origin_call *call) {
    if (call->state == ORIGIN_WAITING && call->timer.deadline == TIMER_NEVER)
        origin_call_await(call, call->request.first_byte_timeout);
}

/* A body that ended early is never completed; the connection is closed instead. */
static void origin_send_broke_off(struct origin_call *call) {
    connection_abort(&origin_http1_of(call)->connection);
    origin_call_fail(call, ORIGIN_NO_REQUEST, "the request's body could not be read to its end");
}

static void origin_send_count(struct origin_call *call, uint64_t sent) {
    call->net->counters.origin_bytes_out += sent;
    if (sent > 0 && call->state == ORIGIN_WAITING)
        origin_call_await(call, call->request.first_byte_timeout);
}

void origin_http1_send(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    uint64_t sent;
    if (http1->connection == NULL)
        return;
    enum sender_status status = sender_write(&http1->sender, http1->connection, TURNS, &sent);
    call->body_begun = http1->sender.feed.started;
    origin_send_count(call, sent);
    switch (status) {
    case SENDER_DONE: origin_send_finished(call); break;
    case SENDER_STARVED: origin_send_starved(call); break;
    case SENDER_BLOCKED: break;
    case SENDER_MORE: loop_defer(call->net->loop, &call->send_task); break;
    case SENDER_BROKEN: origin_send_broke_off(call); break;
    case SENDER_LOST: origin_send_write_failed(call); break;
    }
}
