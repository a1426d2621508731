#include "origin/call.h"

#include "base/assert.h"

/* Sending a request: its head, then its body as the source gives it and the socket takes it. */

/* Writes in a row before others get their turn. */
enum { TURNS = 16 };

static int origin_send_gather(struct origin_call *call, struct iovec *pieces) {
    struct slice body = feed_bytes(&call->feed);
    int count = 0;
    if (call->head_left.length > 0)
        pieces[count++] = (struct iovec){(void *)call->head_left.base, call->head_left.length};
    if (body.length > 0)
        pieces[count++] = (struct iovec){(void *)body.base, body.length};
    return count;
}

static void origin_send_consume(struct origin_call *call, size_t sent) {
    size_t head = sent < call->head_left.length ? sent : call->head_left.length;
    call->net->counters.origin_bytes_out += sent;
    call->head_left.base += head;
    call->head_left.length -= head;
    feed_consume(&call->feed, sent - head);
    if (call->state == ORIGIN_WAITING)
        origin_call_await(call, call->request.first_byte_timeout);
}

/* The origin does not listen any more. It may have answered before it closed (RFC 9112 §9.5). */
static void origin_send_write_failed(struct origin_call *call) {
    call->deaf = true;
    call->head_left.length = 0;
    feed_release(&call->feed);
    if (call->state == ORIGIN_WAITING)
        origin_call_receive(call);
}

/* All that there is has been sent. The origin's time runs from the end of the request; it does not
 * pay for a client that pauses. */
static void origin_send_set_clock(struct origin_call *call, enum feed_status status) {
    if (call->state != ORIGIN_WAITING)
        return;
    if (status == FEED_WAIT)
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    else if (call->timer.deadline == TIMER_NEVER)
        origin_call_await(call, call->request.first_byte_timeout);
}

void origin_call_send(struct origin_call *call) {
    struct iovec pieces[2];
    size_t sent;
    for (unsigned turns = 0; call->connection != NULL; turns++) {
        if (turns == TURNS) {
            loop_defer(call->net->loop, &call->send_task);
            return;
        }
        enum feed_status status = feed_fill(&call->feed);
        if (status == FEED_FAILED) {
            /* A body that broke off is never completed: the connection goes instead. */
            connection_abort(&call->connection);
            origin_call_fail(call, ORIGIN_NO_REQUEST, "the request's body broke off");
            return;
        }
        int count = origin_send_gather(call, pieces);
        if (count == 0) {
            origin_send_set_clock(call, status);
            return;
        }
        switch (connection_write(call->connection, pieces, count, &sent)) {
        case IO_DONE: origin_send_consume(call, sent); break;
        case IO_WAIT: return;
        default: origin_send_write_failed(call); return;
        }
    }
}
