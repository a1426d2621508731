#include "transaction/tunnel.h"

#include "base/assert.h"

/* Pieces in a row that go one way before others get their turn. */
enum { TURNS = 16 };

static void tunnel_finish(struct tunnel *tunnel) {
    tunnel->over = true;
    loop_defer(tunnel->net->loop, tunnel->waker);
}

static void break_off(struct tunnel *tunnel) {
    connection_abort(&tunnel->sides[0]);
    connection_abort(&tunnel->sides[1]);
    tunnel_finish(tunnel);
}

static bool holds_bytes(const struct tunnel_way *way) {
    return way->buffer != NULL && way->buffer->begin < way->buffer->end;
}

/* Writes what the way holds. False: it has to wait, or the tunnel is broken. */
static bool tunnel_push(struct tunnel *tunnel, int from) {
    struct tunnel_way *way = &tunnel->ways[from];
    struct connection *to = tunnel->sides[!from];
    size_t sent;
    while (holds_bytes(way)) {
        struct slice bytes = net_buffer_bytes(way->buffer);
        struct iovec piece = {(void *)bytes.base, bytes.length};
        switch (connection_write(to, &piece, 1, &sent)) {
        case IO_DONE:
            way->buffer->begin += sent;
            tunnel->bytes[from] += sent;
            tunnel->net->counters.tunnel_bytes += sent;
            break;
        case IO_WAIT: return false;
        default: break_off(tunnel); return false;
        }
    }
    net_buffer_give(tunnel->net, &way->buffer);
    return true;
}

/* Reads into the empty buffer. False: nothing now, or the way has ended. */
static bool tunnel_pull(struct tunnel *tunnel, int from) {
    struct tunnel_way *way = &tunnel->ways[from];
    size_t got;
    if (!tunnel->sides[from]->readable)
        return false;
    way->buffer = net_buffer_take(tunnel->net);
    switch (connection_read(tunnel->sides[from], way->buffer->data, way->buffer->capacity, &got)) {
    case IO_DONE: way->buffer->end = got; return true;
    case IO_WAIT: break;
    case IO_END:
        way->ended = true;
        connection_shutdown(tunnel->sides[!from]);
        break;
    case IO_FAILED: break_off(tunnel); break;
    }
    net_buffer_give(tunnel->net, &way->buffer);
    return false;
}

static void relay(struct tunnel *tunnel, int from) {
    for (unsigned turns = 0; turns < TURNS; turns++)
        if (tunnel->over || tunnel->ways[from].ended || !tunnel_push(tunnel, from) ||
            !tunnel_pull(tunnel, from))
            return;
    loop_defer(tunnel->net->loop, &tunnel->task);
}

static void relay_both(struct tunnel *tunnel) {
    loop_timer_after(tunnel->net->loop, &tunnel->timer, tunnel->idle_timeout);
    relay(tunnel, 0);
    relay(tunnel, 1);
    if (!tunnel->over && tunnel->ways[0].ended && tunnel->ways[1].ended)
        tunnel_finish(tunnel);
}

static void tunnel_on_task(struct task *task) {
    struct tunnel *tunnel = CONTAINER_OF(task, struct tunnel, task);
    CHECK_OBJ(tunnel, TUNNEL_MAGIC);
    if (!tunnel->over)
        relay_both(tunnel);
}

static void tunnel_on_ready(struct connection *connection) {
    struct tunnel *tunnel;
    CAST_OBJ(tunnel, connection->event.owner, TUNNEL_MAGIC);
    if (tunnel->over)
        return;
    relay_both(tunnel);
}

static void tunnel_on_timeout(struct timer *timer) {
    struct tunnel *tunnel = CONTAINER_OF(timer, struct tunnel, timer);
    CHECK_OBJ(tunnel, TUNNEL_MAGIC);
    break_off(tunnel);
}

struct tunnel *tunnel_new(struct net_context *net, struct connection *sides[2],
                          struct net_buffer *leftovers[2], uint64_t idle_timeout,
                          struct task *waker) {
    struct tunnel *tunnel;
    ALLOC_OBJ(tunnel, TUNNEL_MAGIC);
    tunnel->net = net;
    for (int i = 0; i < 2; i++) {
        tunnel->sides[i] = sides[i];
        tunnel->ways[i].buffer = leftovers[i];
    }
    tunnel->idle_timeout = idle_timeout;
    tunnel->waker = waker;
    task_init(&tunnel->task, tunnel_on_task);
    timer_init(&tunnel->timer, tunnel_on_timeout);
    loop_timer_after(net->loop, &tunnel->timer, idle_timeout);
    connection_set_owner(tunnel->sides[0], tunnel_on_ready, tunnel);
    connection_set_owner(tunnel->sides[1], tunnel_on_ready, tunnel);
    net->counters.tunnels++;
    tunnel_on_ready(tunnel->sides[0]);
    return tunnel;
}

void tunnel_free(struct tunnel **tunnelp) {
    struct tunnel *tunnel = *tunnelp;
    *tunnelp = NULL;
    if (tunnel == NULL)
        return;
    CHECK_OBJ(tunnel, TUNNEL_MAGIC);
    timer_cancel(&tunnel->net->loop->timers, &tunnel->timer);
    task_cancel(&tunnel->task);
    for (int i = 0; i < 2; i++) {
        connection_close(&tunnel->sides[i]);
        net_buffer_give(tunnel->net, &tunnel->ways[i].buffer);
    }
    FREE_OBJ(tunnel);
}
