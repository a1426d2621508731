#include "origin/http2/call.h"

#include "base/assert.h"
#include "origin/http2/http2.h"

/* The stream of a call: opened, and ended. */

static struct origin_http2_host *origin_http2_host_of(const struct origin_call *call) {
    struct origin_http2_host *host;
    CAST_OBJ(host, call->connections->http2_worker, ORIGIN_HTTP2_HOST_MAGIC);
    return host;
}

static void origin_http2_open(struct origin_call *call, struct origin_carrier *carrier) {
    struct origin_http2 *http2 = (struct origin_http2 *)(void *)call->room;
    memset(http2, 0, sizeof *http2);
    http2->magic = ORIGIN_HTTP2_MAGIC;
    http2->call = call;
    http2->carrier = carrier;
    http2->body_sent = call->request.body == NULL;
    http2_stream_init(&http2->stream);
    call->address = *carrier->session.socket->remote;
    call->net->counters.origin_http2_requests++;
}

static bool origin_http2_reuse(struct origin_call *call) {
    struct origin_carrier *carrier = origin_carrier_find(call);
    if (carrier == NULL)
        return false;
    call->reused = carrier->session.next_out > 1 || origin_carrier_is_known(carrier);
    origin_http2_open(call, carrier);
    return true;
}

static void origin_http2_use(struct origin_call *call, struct connection **connectionp) {
    struct origin_carrier *carrier =
        origin_carrier_new(origin_http2_host_of(call), call->site, connectionp);
    origin_http2_open(call, carrier);
}

static void origin_http2_begin(struct origin_call *call) {
    struct origin_http2 *http2 = origin_http2_of(call);
    http2_session_open(&http2->carrier->session, &http2->stream);
}

static void origin_http2_send(struct origin_call *call) {
    struct origin_http2 *http2 = origin_http2_of(call);
    if (!http2->body_sent && !http2->deaf && !http2_stream_is_over(&http2->stream))
        http2_stream_want(&http2->stream);
}

static void origin_http2_forget_request(struct origin_call *call) {
    struct origin_http2 *http2 = origin_http2_of(call);
    http2->deaf = !http2->body_sent;
}

static bool origin_http2_has_unread(const struct origin_call *call) {
    const struct http2_stream *stream =
        &origin_http2_of((struct origin_call *)(uintptr_t)call)->stream;
    return stream->in.length > 0 || stream->they_ended;
}

static uint64_t origin_http2_unanswered(struct origin_call *call) {
    const struct origin_carrier *carrier = origin_http2_carrier(call);
    return carrier == NULL || carrier->session.socket == NULL
               ? 0
               : connection_unanswered(carrier->session.socket);
}

static void origin_http2_drop(struct origin_call *call) {
    struct origin_http2 *http2 = origin_http2_of(call);
    if (http2->stream.magic != 0)
        http2_stream_close(&http2->stream);
}

void origin_http2_leave(struct origin_call *call) {
    origin_http2_drop(call);
    origin_call_let_go(call);
}

static void origin_http2_finish(struct origin_call *call) {
    call->body_ended = true;
    origin_http2_leave(call);
}

/* The other streams are lost as well: their calls fail, or find another connection. So may this one, if
 * its head waited behind them. */
static void origin_http2_lose_host(struct origin_call *call) {
    struct origin_carrier *carrier = origin_http2_carrier(call);
    call->unprocessed = carrier != NULL && !origin_http2_of(call)->head_sent;
    origin_call_fail(call, ORIGIN_BROKE_OFF, ORIGIN_LOST_HOST);
    if (carrier != NULL)
        origin_carrier_lose(carrier);
}

static void origin_http2_keep(struct origin_site *site, struct connection **connectionp) {
    struct origin_http2_host *host;
    CAST_OBJ(host, site->connections->http2_worker, ORIGIN_HTTP2_HOST_MAGIC);
    origin_carrier_new(host, site, connectionp);
}

const struct origin_call_class origin_http2_class = {
    .name = "HTTP/2.0",
    .version = "2.0",
    .reuse = origin_http2_reuse,
    .use = origin_http2_use,
    .may_open = origin_carrier_may_open,
    .begin = origin_http2_begin,
    .send = origin_http2_send,
    .forget_request = origin_http2_forget_request,
    .has_unread = origin_http2_has_unread,
    .unanswered = origin_http2_unanswered,
    .finish = origin_http2_finish,
    .drop = origin_http2_drop,
    .lose_host = origin_http2_lose_host,
    .keep = origin_http2_keep,
    .close_idle = origin_carriers_close_idle,
    .open_worker = origin_http2_open_worker,
    .close_worker = origin_http2_close_worker,
};
