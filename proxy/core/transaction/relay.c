#include "transaction/relay.h"

#include "base/assert.h"

/* The number of pieces in one direction before other work gets its turn. */
enum { TURNS = 16 };
/* How long a client may go on sending to an origin that is gone; milliseconds. */
enum { LINGER_TIME = 30000 };

static void relay_finish(struct relay *relay) {
    relay->over = true;
    loop_defer(relay->net->loop, relay->waker);
}

static void break_off(struct relay *relay) {
    duplex_abort(relay->sides[0]);
    duplex_abort(relay->sides[1]);
    relay_finish(relay);
}

/* The origin is lost behind the end of its direction. What it sent may still be on its way to the
 * client: a reset, or a close while bytes of the client are unread, would destroy it. */
static void lose_origin(struct relay *relay) {
    struct loop *loop = relay->net->loop;
    relay->origin_gone = true;
    duplex_abort(relay->sides[1]);
    loop_timer_after(loop, &relay->timer,
                     relay->idle_timeout < LINGER_TIME ? relay->idle_timeout : LINGER_TIME);
    loop_defer(loop, &relay->task);
}

/* What the origin has sent is still to be read. */
static void stop_writing(struct relay *relay) {
    relay->origin_deaf = true;
    loop_defer(relay->net->loop, &relay->task);
}

/* A write of that direction has failed. */
static void push_failed(struct relay *relay, int from) {
    if (from == 0 && relay->ways[1].ended)
        lose_origin(relay);
    else if (from == 0 && relay->local)
        stop_writing(relay);
    else
        break_off(relay);
}

static bool holds_bytes(const struct relay_way *way) {
    return way->buffer != NULL && way->buffer->begin < way->buffer->end;
}

/* Writes the buffered bytes of one direction. Returns false when it has to wait, or when the
 * tunnel is broken. */
static bool relay_push(struct relay *relay, int from) {
    struct relay_way *way = &relay->ways[from];
    bool drop = from == 0 && (relay->origin_gone || relay->origin_deaf);
    size_t sent;
    while (holds_bytes(way) && !drop) {
        switch (duplex_write(relay->sides[!from], net_buffer_bytes(way->buffer), &sent)) {
        case IO_DONE:
            way->buffer->begin += sent;
            relay->bytes[from] += sent;
            relay->net->counters.tunnel_bytes += sent;
            break;
        case IO_WAIT: return false;
        default: push_failed(relay, from); return false;
        }
    }
    net_buffer_give(relay->net, &way->buffer);
    return true;
}

/* A read of that direction has failed. */
static void pull_failed(struct relay *relay, int from) {
    if (from == 0 || !relay->local) {
        break_off(relay);
        return;
    }
    relay->ways[1].ended = true;
    duplex_finish(relay->sides[0]);
    lose_origin(relay);
}

/* Reads into the empty buffer. Returns false when there is nothing now, or when the direction
 * has ended. */
static bool relay_pull(struct relay *relay, int from) {
    struct relay_way *way = &relay->ways[from];
    struct pace *pace = relay->origin_gone ? NULL : relay->paces[from];
    size_t got, room;
    way->buffer = net_buffer_take(relay->net);
    room = pace == NULL ? way->buffer->capacity : pace_ask(pace, way->buffer->capacity);
    if (room == 0) {
        net_buffer_give(relay->net, &way->buffer);
        return false;
    }
    switch (duplex_read(relay->sides[from], way->buffer->data, room, &got)) {
    case IO_DONE:
        way->buffer->end = got;
        if (pace != NULL)
            pace_used(pace, got);
        return true;
    case IO_WAIT: break;
    case IO_END:
        way->ended = true;
        duplex_finish(relay->sides[!from]);
        break;
    case IO_FAILED: pull_failed(relay, from); break;
    }
    net_buffer_give(relay->net, &way->buffer);
    return false;
}

static void relay_one_way(struct relay *relay, int from) {
    for (unsigned turns = 0; turns < TURNS; turns++)
        if (relay->over || relay->ways[from].ended || !relay_push(relay, from) ||
            !relay_pull(relay, from))
            return;
    loop_defer(relay->net->loop, &relay->task);
}

/* No read says that a side is lost if its direction has ended, or waits because the other side takes
 * nothing. What an origin sent before it was lost is still the client's. */
static void look_for_loss(struct relay *relay) {
    if (duplex_is_lost(relay->sides[0]))
        break_off(relay);
    else if (relay->ways[1].ended && !relay->origin_gone && duplex_is_lost(relay->sides[1]))
        lose_origin(relay);
}

/* The origin's direction comes first: a write that fails would hide whether the origin has ended it. */
static void relay_both(struct relay *relay) {
    if (!relay->origin_gone)
        loop_timer_after(relay->net->loop, &relay->timer, relay->idle_timeout);
    relay_one_way(relay, 1);
    relay_one_way(relay, 0);
    if (relay->over)
        return;
    if (relay->ways[0].ended && relay->ways[1].ended)
        relay_finish(relay);
    else
        look_for_loss(relay);
}

static void relay_on_task(struct task *task) {
    struct relay *relay = CONTAINER_OF(task, struct relay, task);
    CHECK_OBJ(relay, RELAY_MAGIC);
    if (!relay->over)
        relay_both(relay);
}

static void relay_on_timeout(struct timer *timer) {
    struct relay *relay = CONTAINER_OF(timer, struct relay, timer);
    CHECK_OBJ(relay, RELAY_MAGIC);
    if (relay->origin_gone)
        relay_finish(relay);
    else
        break_off(relay);
}

static void relay_on_pace(void *arg) {
    struct relay *relay;
    CAST_OBJ(relay, arg, RELAY_MAGIC);
    loop_defer(relay->net->loop, &relay->task);
}

struct relay *relay_new(struct net_context *net, struct duplex *const sides[2],
                        struct net_buffer *ahead, struct pace *const paces[2],
                        uint64_t idle_timeout, bool local, struct task *waker) {
    struct relay *relay;
    ALLOC_OBJ(relay, RELAY_MAGIC);
    relay->net = net;
    relay->idle_timeout = idle_timeout;
    relay->local = local;
    relay->waker = waker;
    relay->ways[0].buffer = ahead;
    task_init(&relay->task, relay_on_task);
    timer_init(&relay->timer, relay_on_timeout);
    loop_timer_after(net->loop, &relay->timer, idle_timeout);
    for (int i = 0; i < 2; i++) {
        relay->paces[i] = paces[i];
        if (paces[i] != NULL) {
            paces[i]->on_ready = relay_on_pace;
            paces[i]->arg = relay;
        }
        relay->sides[i] = sides[i];
        sides[i]->waker = &relay->task;
    }
    net->counters.tunnels++;
    relay_both(relay);
    return relay;
}

void relay_free(struct relay **relayp) {
    struct relay *relay = *relayp;
    *relayp = NULL;
    if (relay == NULL)
        return;
    CHECK_OBJ(relay, RELAY_MAGIC);
    timer_cancel(&relay->net->loop->timers, &relay->timer);
    task_cancel(&relay->task);
    for (int i = 0; i < 2; i++) {
        if (relay->paces[i] != NULL)
            pace_end(relay->paces[i]);
        duplex_close(&relay->sides[i]);
        net_buffer_give(relay->net, &relay->ways[i].buffer);
    }
    FREE_OBJ(relay);
}
