#include "transaction/pump.h"

#include "base/assert.h"

/* Reads in a row before others get their turn. */
enum { TURNS = 16 };

static void finish(struct pump *pump, enum pump_state state) {
    pump->state = state;
    source_close(&pump->source);
    volume_stream_close(&pump->stream, state == PUMP_COMPLETE);
    body_finish(pump->body, state == PUMP_COMPLETE ? BODY_COMPLETE : BODY_FAILED);
    body_release(&pump->body);
    loop_defer(pump->loop, pump->waker);
}

static bool has_announced_length(const struct pump *pump) {
    const struct body *body = pump->body;
    return body->expected < 0 || (uint64_t)body->expected == body_length(body);
}

/* Room for the next piece; at the announced length one byte of room, to see that no more comes. */
static char *room_for_more(struct pump *pump, char *spare, size_t *room) {
    if (pump->body->expected >= 0 && has_announced_length(pump)) {
        *room = 1;
        return spare;
    }
    return body_room(pump->body, room);
}

static void keep_limit(struct pump *pump) {
    if (pump->overflowed || pump->body->kind == BODY_PASSING ||
        body_length(pump->body) <= pump->limit)
        return;
    pump->overflowed = true;
    body_stop_keeping(pump->body, 0);
}

/* False: wait for the waker, or all is over. */
static bool turn(struct pump *pump) {
    char spare;
    size_t room, got;
    char *at = room_for_more(pump, &spare, &room);
    if (at == NULL && room > 0) {
        finish(pump, PUMP_FAILED); /* out of memory */
        return false;
    }
    if (at == NULL)
        return false;
    switch (source_read(pump->source, at, room, &got)) {
    case SOURCE_DATA:
        if (at == &spare) {
            finish(pump, PUMP_FAILED); /* more than was announced */
            return false;
        }
        if (pump->stream != NULL)
            volume_stream_put(pump->stream, slice_make(at, got));
        body_grow(pump->body, got);
        keep_limit(pump);
        if (!pump->overflowed || !pump->unread)
            return true;
        finish(pump, PUMP_FAILED); /* its window would never be read */
        return false;
    case SOURCE_WAIT: return false;
    case SOURCE_END:
        finish(pump, has_announced_length(pump) ? PUMP_COMPLETE : PUMP_FAILED);
        return false;
    default: finish(pump, PUMP_FAILED); return false;
    }
}

static void on_task(struct task *task) {
    struct pump *pump = CONTAINER_OF(task, struct pump, task);
    for (unsigned i = 0; i < TURNS; i++)
        if (pump->state != PUMP_RUNNING || !turn(pump))
            return;
    loop_defer(pump->loop, &pump->task);
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
    pump->waker = waker;
    task_init(&pump->task, on_task);
    body_set_writer(body, &pump->task);
    source_set_waker(pump->source, &pump->task);
    on_task(&pump->task);
}

void pump_set_unread(struct pump *pump) {
    pump->unread = true;
}

void pump_stop(struct pump *pump) {
    if (pump->state == PUMP_RUNNING) {
        pump->state = PUMP_FAILED;
        source_close(&pump->source);
        volume_stream_close(&pump->stream, false);
        body_finish(pump->body, BODY_FAILED);
        body_release(&pump->body);
    }
    if (pump->state != PUMP_IDLE)
        task_cancel(&pump->task);
    pump->state = PUMP_IDLE;
}
