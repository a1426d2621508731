#include "http2/origin/carrier.h"

#include "base/assert.h"
#include "http2/frame.h"
#include "http2/origin/call.h"
#include "http2/settings.h"

/* FIRST_STREAMS: what is opened before an origin has ever said how many it takes: "It is recommended that
 * this value be no smaller than 100" (RFC 9113 §6.5.2). SETTINGS_TIME: milliseconds for its first
 * frame, for the acknowledgement of our settings, and for the rest of a frame that has begun. */
enum { FIRST_STREAMS = 100, SETTINGS_TIME = 10000 };

static struct origin_carrier *carrier_of(struct http2_session *session) {
    struct origin_carrier *carrier = CONTAINER_OF(session, struct origin_carrier, session);
    CHECK_OBJ(carrier, ORIGIN_CARRIER_MAGIC);
    return carrier;
}

static void carrier_note_goaway(struct origin_carrier *carrier) {
    bool leaving = carrier->session.peer.leaving;
    carrier->host->net->counters.origin_http2_goaways += leaving && !carrier->told_to_leave;
    carrier->told_to_leave = leaving;
}

static void carrier_on_change(struct http2_session *session) {
    struct origin_carrier *carrier = carrier_of(session);
    if (session->peer.known)
        carrier->site->streams = session->peer.streams;
    if (session->closing && !list_empty(&carrier->link))
        list_remove(&carrier->link);
    carrier_note_goaway(carrier);
    origin_site_wake(carrier->site);
}

static void carrier_free(struct origin_carrier *carrier) {
    carrier_note_goaway(carrier);
    http2_session_release(&carrier->session);
    carrier->host->net->counters.origin_http2_connections_open--;
    if (!list_empty(&carrier->link))
        list_remove(&carrier->link);
    list_remove(&carrier->all);
    origin_site_wake(carrier->site);
    origin_site_leave(&carrier->site);
    FREE_OBJ(carrier);
}

static void carrier_on_lost(struct http2_session *session) {
    carrier_free(carrier_of(session));
}

/* Only the calls have deadlines. */
static void carrier_on_deadline(struct http2_stream *stream) {
    (void)stream;
}

static const struct http2_session_class carrier_class = {
    .name = "origin",
    .on_head = origin_http2_on_head,
    .on_trailers = origin_http2_on_trailers,
    .on_body = origin_http2_on_body,
    .on_turn = origin_http2_on_turn,
    .on_over = origin_http2_on_over,
    .on_deadline = carrier_on_deadline,
    .on_change = carrier_on_change,
    .on_lost = carrier_on_lost,
};

static uint32_t carrier_window(const struct settings *settings) {
    const struct http2_settings *mine = http2_settings_of(settings);
    uint64_t all = 2 * (uint64_t)mine->origin.window * mine->origin.streams;
    return all < HTTP2_WINDOW_MOST ? (uint32_t)all : HTTP2_WINDOW_MOST;
}

static struct http2_limits carrier_limits(const struct settings *settings) {
    const struct http2_settings *mine = http2_settings_of(settings);
    return (struct http2_limits){
        .stream_window = (uint32_t)mine->origin.window,
        .window = carrier_window(settings),
        .frame = HTTP2_FRAME_SIZE_DEFAULT,
        .max_head = settings->origin.max_head,
        .budget = mine->origin.budget,
        .head_timeout = SETTINGS_TIME,
        .send_timeout = settings->origin.first_byte_timeout,
        .idle_timeout = settings->origin.max_idle == 0 ? 0 : settings->origin.idle_timeout,
    };
}

static struct http2_counts carrier_counts(struct counters *counters) {
    return (struct http2_counts){
        .bytes_in = &counters->origin_bytes_in,
        .bytes_out = &counters->origin_bytes_out,
        .resets_in = &counters->origin_http2_resets_received,
        .resets_out = &counters->origin_http2_resets_sent,
        .refused = &counters->origin_http2_refused,
        .stream_errors = &counters->origin_http2_stream_errors,
        .protocol_errors = &counters->origin_http2_protocol_errors,
        .flow_control_errors = &counters->origin_http2_protocol_errors,
        .compression_errors = &counters->origin_http2_protocol_errors,
        .calmed = &counters->origin_http2_calmed,
    };
}

struct origin_carrier *origin_carrier_new(struct origin_http2_host *host, struct origin_site *site,
                                          struct connection **connectionp) {
    struct net_context *net = host->net;
    const struct http2_limits limits = carrier_limits(net->settings);
    const struct http2_counts counts = carrier_counts(&net->counters);
    struct origin_carrier *carrier;
    ALLOC_OBJ(carrier, ORIGIN_CARRIER_MAGIC);
    carrier->host = host;
    carrier->site = site;
    site->users++;
    /* http2_streams, or fewer if no window can be that large: what nobody reads must not shut it. */
    carrier->most = limits.window / 2 / limits.stream_window;
    list_append(&site->carriers, &carrier->link);
    list_append(&host->carriers, &carrier->all);
    net->counters.origin_http2_connections++;
    net->counters.origin_http2_connections_open++;
    http2_session_init(&carrier->session, host->workspace, &carrier_class, HTTP2_CLIENT, &limits,
                       &counts);
    connection_keep_alive(*connectionp);
    http2_session_start(&carrier->session, connectionp, NULL);
    return carrier;
}

static bool carrier_has_room(const struct origin_carrier *carrier) {
    const struct http2_session *session = &carrier->session;
    unsigned first = carrier->site->streams == 0 ? FIRST_STREAMS : carrier->site->streams;
    unsigned most = carrier->most;
    if (!session->peer.known && most > first)
        most = first;
    return session->stream_count < most && http2_session_has_room(session);
}

/* A connection may lead to an address that was judged for another client. */
static bool carrier_is_permitted(const struct origin_carrier *carrier,
                                 const struct origin_call *call) {
    const struct connection *socket = carrier->session.socket;
    return socket != NULL && (call->request.permit == NULL ||
                              call->request.permit(call->request.permit_arg, socket->remote));
}

/* Another upload, which the origin does not read, keeps bodies waiting there. */
static bool carrier_is_jammed(const struct origin_carrier *carrier,
                              const struct origin_call *call) {
    return call->request.body != NULL && carrier->session.send_window <= 0;
}

struct origin_carrier *origin_carrier_find(const struct origin_call *call) {
    LIST_FOR_EACH (link, &call->site->carriers) {
        struct origin_carrier *carrier = CONTAINER_OF(link, struct origin_carrier, link);
        if (carrier_has_room(carrier) && !carrier_is_jammed(carrier, call) &&
            carrier_is_permitted(carrier, call))
            return carrier;
    }
    return NULL;
}

bool origin_carrier_may_open(const struct origin_call *call) {
    unsigned count = 0;
    LIST_FOR_EACH (link, &call->site->carriers)
        count += carrier_is_permitted(CONTAINER_OF(link, struct origin_carrier, link), call);
    return count < http2_settings_of(call->net->settings)->origin.connections;
}

bool origin_carrier_is_known(const struct origin_carrier *carrier) {
    return carrier->session.peer.known;
}

void origin_carrier_lose(struct origin_carrier *carrier) {
    CHECK_OBJ(carrier, ORIGIN_CARRIER_MAGIC);
    http2_session_abort(&carrier->session);
}

void origin_carriers_close_idle(struct origin_site *site) {
    LIST_FOR_EACH_SAFE (link, next, &site->carriers) {
        struct origin_carrier *carrier = CONTAINER_OF(link, struct origin_carrier, link);
        if (carrier->session.stream_count == 0)
            http2_session_drain(&carrier->session);
    }
}

void *origin_http2_open_worker(struct net_context *net) {
    struct origin_http2_host *host;
    ALLOC_OBJ(host, ORIGIN_HTTP2_HOST_MAGIC);
    host->net = net;
    host->workspace = xcalloc(1, sizeof *host->workspace);
    http2_workspace_init(host->workspace, net);
    list_init(&host->carriers);
    return host;
}

void origin_http2_close_worker(void *own) {
    struct origin_http2_host *host;
    CAST_OBJ(host, own, ORIGIN_HTTP2_HOST_MAGIC);
    LIST_FOR_EACH_SAFE (link, next, &host->carriers)
        carrier_free(CONTAINER_OF(link, struct origin_carrier, all));
    http2_workspace_release(host->workspace);
    free(host->workspace);
    FREE_OBJ(host);
}
