#include "origin/http1/call.h"

#include "base/assert.h"
#include "origin/http1/http1.h"

/* The connection of a call: taken, used for one request, and given back. */

static void origin_http1_on_ready(struct connection *connection) {
    struct origin_call *call;
    CAST_OBJ(call, connection->event.owner, ORIGIN_CALL_MAGIC);
    struct origin_http1 *http1 = origin_http1_of(call);
    if (connection->writable && !sender_is_done(&http1->sender))
        origin_http1_send(call);
    if (http1->connection != connection || !connection->readable)
        return;
    if (call->state == ORIGIN_WAITING)
        origin_http1_receive(call);
    else if (call->state == ORIGIN_ANSWERED)
        source_wake(&call->body);
}

static struct origin_http1 *origin_http1_init(struct origin_call *call) {
    struct origin_http1 *http1 = (struct origin_http1 *)(void *)call->room;
    memset(http1, 0, sizeof *http1);
    http1->magic = ORIGIN_HTTP1_MAGIC;
    return http1;
}

/* A pooled connection may lead to an address that the name does not have any more, or that was
 * judged for another client. */
static bool pooled_is_permitted(const struct origin_call *call,
                                const struct connection *connection) {
    return call->request.permit == NULL ||
           call->request.permit(call->request.permit_arg, connection->remote);
}

static bool origin_http1_reuse(struct origin_call *call) {
    const struct origin_request *request = &call->request;
    struct pool *pool = call->connections->pool;
    struct connection *connection = pool_take(pool, request->pool_key, origin_http1_on_ready, call);
    if (connection == NULL)
        return false;
    if (!pooled_is_permitted(call, connection)) {
        pool_give(pool, request->pool_key, &connection, request->idle_timeout, request->max_idle);
        return false;
    }
    call->address = *connection->remote;
    call->reused = true;
    origin_http1_init(call)->connection = connection;
    return true;
}

static void origin_http1_use(struct origin_call *call, struct connection **connectionp) {
    struct origin_http1 *http1 = origin_http1_init(call);
    http1->connection = *connectionp;
    *connectionp = NULL;
    connection_set_owner(http1->connection, origin_http1_on_ready, call);
}

/* The head as text: it is written once, also for a request that is repeated. */
static struct slice origin_http1_head(struct origin_call *call) {
    struct origin_request *request = &call->request;
    if (request->head.length == 0)
        request->head = http_head_text(request->fields, http_head_write_request, request->arena);
    return request->head;
}

static void origin_http1_begin(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    sender_init(&http1->sender, call->net, call->request.body, call->request.chunked);
    http1->sender.head = origin_http1_head(call);
    origin_http1_send(call);
    /* The event for bytes that came with a new connection went to the dial. */
    if (call->state == ORIGIN_WAITING && http1->connection != NULL && http1->connection->readable)
        origin_http1_receive(call);
}

static void origin_http1_forget_request(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    if (!feed_is_done(&http1->sender.feed))
        http1->deaf = true;
    feed_release(&http1->sender.feed);
}

static bool origin_http1_has_unread(const struct origin_call *call) {
    const struct origin_http1 *http1 = origin_http1_of((struct origin_call *)call);
    return http1->connection != NULL && http1->connection->readable;
}

static uint64_t origin_http1_unanswered(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    if (http1->connection == NULL)
        return 0;
    if (!http1->kept_alive)
        connection_keep_alive(http1->connection);
    http1->kept_alive = true;
    return connection_unanswered(http1->connection);
}

static struct duplex *origin_http1_take_tunnel(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    return connection_duplex_new(&http1->connection, &http1->in);
}

static void origin_http1_drop(struct origin_call *call) {
    struct origin_http1 *http1 = origin_http1_of(call);
    connection_close(&http1->connection);
    net_buffer_give(call->net, &http1->in);
    sender_stop(&http1->sender);
}

static void origin_http1_lose_host(struct origin_call *call) {
    pool_close_key(call->connections->pool, call->request.pool_key);
    origin_call_fail(call, ORIGIN_BROKE_OFF, ORIGIN_LOST_HOST);
}

const char *origin_http1_error(struct origin_call *call) {
    const char *error = connection_error(origin_http1_of(call)->connection);
    return call->request.security != NULL ? origin_call_keep_error(call, error) : error;
}

const struct origin_call_class origin_http1_class = {
    .name = "HTTP/1.1",
    .version = "1.1",
    .reuse = origin_http1_reuse,
    .use = origin_http1_use,
    .begin = origin_http1_begin,
    .send = origin_http1_send,
    .forget_request = origin_http1_forget_request,
    .has_unread = origin_http1_has_unread,
    .unanswered = origin_http1_unanswered,
    .finish = origin_http1_leave,
    .take_waiting = origin_http1_take_waiting,
    .take_tunnel = origin_http1_take_tunnel,
    .drop = origin_http1_drop,
    .lose_host = origin_http1_lose_host,
};
