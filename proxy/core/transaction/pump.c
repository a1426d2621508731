#include "transaction/pump.h"

#include "base/assert.h"

/* The number of reads before other work gets its turn, and the pause before a stream that is
 * behind is asked again. The writing thread can not notify us, and writes only a fraction of the
 * waiting bytes in a millisecond. */
enum { TURNS = 16, BEHIND_MS = 1 };

static void pump_finish(struct pump *pump, enum pump_state state) {
    pump->state = state;
    timer_cancel(&pump->loop->timers, &pump->timer);
    source_close(&pump->source);
    second_level_stream_close(&pump->stream, state == PUMP_COMPLETE);
    body_finish(pump->body, state == PUMP_COMPLETE ? BODY_COMPLETE : BODY_FAILED);
    body_release(&pump->body);
    loop_defer(pump->loop, pump->waker);
}

static bool has_announced_length(const struct pump *pump) {
    const struct body *body = pump->body;
    return body->expected < 0 || (uint64_t)body->expected == body_length(body);
}

/* Returns room for the next bytes. At the announced length it is one byte, to detect a body that
 * is too long. */
static int room_for_more(struct pump *pump, char *spare, struct iovec *pieces, bool *exhausted) {
    *exhausted = false;
    if (pump->body->expected >= 0 && has_announced_length(pump)) {
        *pieces = (struct iovec){spare, 1};
        return 1;
    }
    return body_rooms(pump->body, pieces, pump->rooms, exhausted);
}

static size_t sum_of(const struct iovec *pieces, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += pieces[i].iov_len;
    return sum;
}

static void put_on_disk(struct pump *pump, const struct iovec *pieces, size_t got) {
    for (; got > 0; pieces++) {
        size_t piece = got < pieces->iov_len ? got : pieces->iov_len;
        second_level_stream_put(pump->stream, slice_make(pieces->iov_base, piece));
        got -= piece;
    }
}

static void pump_keep_limit(struct pump *pump) {
    if (pump->overflowed || pump->body->kind == BODY_PASSING ||
        body_length(pump->body) <= pump->limit)
        return;
    pump->overflowed = true;
    body_stop_keeping(pump->body, 0);
}

/* Adds the read bytes to the body. Returns false when the body has no readers. */
static bool pump_take(struct pump *pump, const struct iovec *pieces, int count, size_t got) {
    if (pump->stream != NULL)
        put_on_disk(pump, pieces, got);
    body_grow(pump->body, got);
    if (got < sum_of(pieces, count))
        pump->rooms = 1;
    else if (pump->rooms < BODY_ROOMS)
        pump->rooms *= 2;
    pump_keep_limit(pump);
    return !pump->overflowed || !pump->unread;
}

/* Returns false when it has to wait for the waker, or when the body has ended. */
static bool pump_turn(struct pump *pump) {
    char spare;
    size_t got;
    bool exhausted;
    struct iovec pieces[BODY_ROOMS];
    int count = room_for_more(pump, &spare, pieces, &exhausted);
    if (exhausted)
        pump_finish(pump, PUMP_FAILED); /* out of memory */
    if (count == 0)
        return false;
    switch (source_read_pieces(pump->source, pieces, count, &got)) {
    case SOURCE_DATA:
        if (pieces->iov_base != &spare && pump_take(pump, pieces, count, got))
            return true;
        pump_finish(pump, PUMP_FAILED); /* more than was announced, or beyond the limit without a
                                         * reader */
        return false;
    case SOURCE_WAIT: return false;
    case SOURCE_END:
        pump_finish(pump, has_announced_length(pump) ? PUMP_COMPLETE : PUMP_FAILED);
        return false;
    default: pump_finish(pump, PUMP_FAILED); return false;
    }
}

static bool waits_for_stream(struct pump *pump) {
    if (pump->stream == NULL || !second_level_stream_is_behind(pump->stream, pump->loop->now))
        return false;
    loop_timer_after(pump->loop, &pump->timer, BEHIND_MS);
    return true;
}

static void pump_on_task(struct task *task) {
    struct pump *pump = CONTAINER_OF(task, struct pump, task);
    for (unsigned i = 0; i < TURNS; i++)
        if (pump->state != PUMP_RUNNING || waits_for_stream(pump) || !pump_turn(pump))
            return;
    loop_defer(pump->loop, &pump->task);
}

static void pump_on_timer(struct timer *timer) {
    pump_on_task(&CONTAINER_OF(timer, struct pump, timer)->task);
}

void pump_start(struct pump *pump, struct loop *loop, struct source **sourcep, struct body *body,
                uint64_t limit, struct task *waker) {
    pump->state = PUMP_RUNNING;
    pump->loop = loop;
    pump->source = *sourcep;
    *sourcep = NULL;
    pump->body = body_reference(body);
    pump->limit = limit;
    pump->overflowed = pump->unread = false;
    pump->rooms = body_length(body) > NET_BUFFER_SIZE / 2 ? 2 : 1; /* the body arrives without a
                                                                    * pause */
    pump->waker = waker;
    task_init(&pump->task, pump_on_task);
    timer_init(&pump->timer, pump_on_timer);
    body_set_writer(body, &pump->task);
    source_set_waker(pump->source, &pump->task);
    pump_on_task(&pump->task);
}

void pump_set_unread(struct pump *pump) {
    pump->unread = true;
}

void pump_stop(struct pump *pump) {
    if (pump->state == PUMP_RUNNING) {
        pump->state = PUMP_FAILED;
        timer_cancel(&pump->loop->timers, &pump->timer);
        source_close(&pump->source);
        second_level_stream_close(&pump->stream, false);
        body_finish(pump->body, BODY_FAILED);
        body_release(&pump->body);
    }
    if (pump->state != PUMP_IDLE)
        task_cancel(&pump->task);
    pump->state = PUMP_IDLE;
}
