#include "http2/origin/call.h"

#include "base/assert.h"
#include "http/trailer.h"
#include "http2/fields.h"
#include "http2/hpack_encode.h"
#include "http2/origin/http2.h"
#include "http2/session.h"

#include <stdio.h>

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

/* The response is complete: the stream ends. */
static void origin_http2_leave(struct origin_call *call) {
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

/* Sends a request: its head in the stream's first turn, then its body as fast as the source gives
 * it and the windows of the origin take it. */

static struct slice send_scheme(const struct origin_call *call) {
    return call->request.security != NULL ? SLICE("https") : SLICE("http");
}

/* "TE: trailers" is the one field of a connection that may be sent (RFC 9113 §8.2.2). It is written
 * as hpack_encode.h writes others: the length of the name, the name, and the same of the value. */
static char *put_te(char *at, const struct http_head *fields) {
    static const char te[] = "\020\002te\010trailers";
    return http_head_has(fields, HTTP_TE) ? slice_put(at, slice_make(te, sizeof te - 1)) : at;
}

/* The block lives as long as the call. */
static struct slice write_block(const struct origin_call *call, bool is_first) {
    const struct http_head *fields = call->request.fields;
    struct slice authority = http_head_value(fields, HTTP_HOST);
    size_t room = 64 + hpack_fields_room(fields) + HPACK_ROOM(fields->method.length) +
                  HPACK_ROOM(authority.length) + HPACK_ROOM(fields->target.length) +
                  HPACK_ROOM(sizeof "https");
    char *block = arena_alloc(call->request.arena, room), *at = block;
    if (is_first)
        at = hpack_put_no_table(at);
    at = hpack_put_method(at, fields->method);
    at = hpack_put_scheme(at, send_scheme(call));
    if (authority.length > 0)
        at = hpack_put_authority(at, authority);
    at = hpack_put_path(at, fields->target);
    at = hpack_put_fields(at, fields);
    at = put_te(at, fields);
    ASSERT((size_t)(at - block) <= room);
    return slice_make(block, (size_t)(at - block));
}

static void send_head(struct origin_http2 *http2) {
    struct http2_session *session = http2->stream.session;
    bool is_first = !session->size_update_sent;
    session->size_update_sent = true;
    http2->head_sent = true;
    http2_stream_put_head(&http2->stream, write_block(http2->call, is_first), http2->body_sent);
}

/* The origin's time runs from the last byte of the request. */
static void note_sent(struct origin_call *call) {
    if (call->state == ORIGIN_WAITING)
        origin_call_await(call, call->request.first_byte_timeout);
}

/* A body that ended early is never completed. */
static void origin_http2_broke_off(struct origin_http2 *http2) {
    origin_call_fail(http2->call, ORIGIN_NO_REQUEST,
                     "the request's body could not be read to its end");
}

static void send_bytes(struct origin_http2 *http2, char *bytes, size_t length, bool ended) {
    struct iovec piece = {bytes, length};
    http2->body_sent = ended;
    http2_stream_put_data(&http2->stream, &piece, length > 0, length, ended);
    note_sent(http2->call);
}

/* The head has announced a length, if the source has one. */
static bool is_too_much(const struct origin_http2 *http2, const struct source *source) {
    return source->length >= 0 && http2->taken > (uint64_t)source->length;
}

/* Sends one piece of the body. True: there may be more. */
static bool send_piece(struct origin_http2 *http2, struct net_buffer *buffer, size_t room) {
    struct origin_call *call = http2->call;
    struct source *source = call->request.body;
    size_t got;
    switch (source_read(source, buffer->data, room, &got)) {
    case SOURCE_DATA: break;
    case SOURCE_WAIT:
        if (call->state == ORIGIN_WAITING)
            origin_call_pause(call); /* it waits for us */
        return false;
    case SOURCE_END:
        if (source->length >= 0 && http2->taken != (uint64_t)source->length)
            origin_http2_broke_off(http2);
        else
            send_bytes(http2, buffer->data, 0, true);
        return false;
    default: origin_http2_broke_off(http2); return false;
    }
    call->body_begun = true;
    http2->taken += got;
    if (is_too_much(http2, source)) {
        origin_http2_broke_off(http2);
        return false;
    }
    bool is_last = source->length >= 0 && http2->taken == (uint64_t)source->length;
    send_bytes(http2, buffer->data, got, is_last);
    return !is_last;
}

static bool send_body(struct origin_http2 *http2) {
    struct net_context *net = http2->call->net;
    size_t room = http2_stream_room(&http2->stream);
    if (room == 0)
        return false;
    struct net_buffer *buffer = net_buffer_take_large(net);
    if (buffer == NULL)
        buffer = net_buffer_take(net);
    bool more = send_piece(http2, buffer, room < buffer->capacity ? room : buffer->capacity);
    net_buffer_give(net, &buffer);
    return more;
}

bool origin_http2_on_turn(struct http2_stream *stream) {
    struct origin_call *call = origin_http2_call(stream);
    struct origin_http2 *http2 = origin_http2_of(call);
    if (!http2->head_sent) {
        send_head(http2);
        return !http2->body_sent;
    }
    if (http2->body_sent || http2->deaf || call->request.body == NULL)
        return false;
    return send_body(http2);
}

/* Receives a response: its head, the body by its reader, trailers, and the end. */

/* The stream is at fault, and the answer is of no use. */
static void origin_http2_refuse(struct origin_call *call, const char *error) {
    http2_stream_reset(&origin_http2_of(call)->stream, HTTP2_PROTOCOL_ERROR);
    call->net->counters.origin_http2_stream_errors++;
    origin_call_fail(call, ORIGIN_BAD, error);
}

static enum source_status origin_http2_body_read(struct source *source, char *buffer,
                                                 size_t capacity, size_t *got) {
    struct origin_call *call = CONTAINER_OF(source, struct origin_call, body);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    *got = 0;
    if (call->body_ended)
        return SOURCE_END;
    if (call->body_failed)
        return SOURCE_FAILED;
    enum source_status status =
        http2_stream_read(&origin_http2_of(call)->stream, buffer, capacity, got);
    switch (status) {
    case SOURCE_DATA: origin_call_pause(call); break;
    case SOURCE_WAIT: origin_call_await(call, call->request.read_timeout); break;
    case SOURCE_END:
        call->body_ended = true;
        origin_http2_leave(call);
        break;
    case SOURCE_FAILED: origin_call_fail(call, ORIGIN_BROKE_OFF, "its response broke off"); break;
    }
    return status;
}

static void origin_http2_body_close(struct source *source) {
    struct origin_call *call = CONTAINER_OF(source, struct origin_call, body);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    call->body_open = false;
    if (call->body_ended)
        return;
    call->body_failed = true;
    origin_http2_leave(call);
}

static const struct source_class body_class = {"response body", origin_http2_body_read,
                                               origin_http2_body_close, NULL};

/* "a response to a HEAD request", 204 and 304 have no content, whatever their length says (RFC 9110
 * §6.4.1). */
static bool has_no_content(const struct origin_call *call) {
    unsigned status = call->response->status;
    return call->request.method == HTTP_METHOD_HEAD || status == 204 || status == 304;
}

/* The head's bytes are good until the next head: they move to the arena. */
static void origin_http2_keep_head(struct origin_call *call) {
    struct http_head *response = call->response;
    response->reason = slice_from(http_reason(response->status)); /* HTTP/2 has none */
    char *bytes = arena_alloc(call->request.arena, http_head_size(response));
    http_head_copy(response, response, bytes);
}

static bool origin_http2_take_response(struct origin_call *call,
                                       const struct http2_meaning *meaning, bool ended) {
    struct origin_http2 *http2 = origin_http2_of(call);
    bool empty = has_no_content(call);
    int64_t length = empty ? 0 : meaning->content_length;
    if (!http2_stream_expect(&http2->stream, length) || (ended && length > 0)) {
        origin_http2_refuse(call, "its response is shorter than its Content-Length");
        return false;
    }
    http2->stream.head_seen = true;
    origin_http2_keep_head(call);
    call->no_body = empty || ended;
    call->may_have_trailers = !call->no_body;
    source_init(&call->body, &body_class, call->net->loop, length);
    origin_call_answer(call);
    return true;
}

bool origin_http2_on_head(struct http2_stream *stream, struct hpack_list *list, bool ended) {
    struct origin_call *call = origin_http2_call(stream);
    struct http2_meaning meaning;
    if (!call->heard)
        origin_call_note_heard(call);
    switch (http2_fields_to_response(list, call->response, &meaning)) {
    case HTTP2_FIELDS_GOOD: break;
    case HTTP2_FIELDS_TOO_LARGE:
        http2_stream_reset(stream, HTTP2_CANCEL);
        origin_call_refuse_head(call);
        return false;
    default: origin_http2_refuse(call, meaning.error); return false;
    }
    if (call->response->status >= 200)
        return origin_http2_take_response(call, &meaning, ended);
    return origin_call_take_interim(call);
}

/* Writes the fields as lines, which may then pass as those of HTTP/1.1 may. */
static void origin_http2_keep_trailers(struct origin_call *call, const struct http_head *head) {
    char *space = call->request.trailer_space, *at = space;
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        size_t length = field->name.length + field->value.length + 4;
        if (length + 2 > CHUNKED_TRAILERS_MAX - (size_t)(at - space))
            return; /* too many: all are left out, as with HTTP/1.1 */
        at = slice_put(at, field->name);
        at = slice_put(at, SLICE(": "));
        at = slice_put(at, field->value);
        at = slice_put(at, SLICE("\r\n"));
    }
    at = slice_put(at, SLICE("\r\n"));
    call->trailers = slice_make(space, trailer_filter(space, (size_t)(at - space)));
}

bool origin_http2_on_trailers(struct http2_stream *stream, const struct hpack_list *list) {
    struct origin_call *call = origin_http2_call(stream);
    struct http2_meaning meaning;
    struct http_head head;
    switch (http2_fields_to_trailers(list, true, &head, &meaning)) {
    case HTTP2_FIELDS_GOOD: break;
    case HTTP2_FIELDS_TOO_LARGE: return true;
    default: return false;
    }
    if (call->request.trailer_space != NULL)
        origin_http2_keep_trailers(call, &head);
    return true;
}

void origin_http2_on_body(struct http2_stream *stream) {
    struct origin_call *call = origin_http2_call(stream);
    if (call->state == ORIGIN_ANSWERED && call->body_open)
        source_wake(&call->body);
}

/* What a call fails with, as a sentence about the origin. */
static const char *why_over(struct origin_call *call, const struct origin_carrier *carrier,
                            enum http2_error error, bool processed) {
    char text[160];
    struct slice name = http2_error_name(error);
    if (!origin_carrier_is_known(carrier))
        return call->request.protocols == ORIGIN_HTTP2
                   ? "it does not speak HTTP/2: set http2 = off or auto"
                   : "its HTTP/2 connection broke before the first frame";
    if (error == HTTP2_HTTP_1_1_REQUIRED)
        return "it demands HTTP/1.1 for this request: set http2 = off";
    if (!processed)
        return "it refused the request without processing it (HTTP/2)";
    if (carrier->session.phase != HTTP2_OPEN)
        snprintf(text, sizeof text, "its HTTP/2 connection was lost (%.*s)", SLICE_PRINT(name));
    else
        snprintf(text, sizeof text, "its HTTP/2 stream ended in the middle (%.*s)",
                 SLICE_PRINT(name));
    return origin_call_keep_error(call, text);
}

void origin_http2_on_over(struct http2_stream *stream, enum http2_error error, bool processed) {
    struct origin_call *call = origin_http2_call(stream);
    struct origin_http2 *http2 = origin_http2_of(call);
    struct origin_carrier *carrier = http2->carrier;
    if (call->state == ORIGIN_ANSWERED && stream->they_ended && !stream->failed) {
        http2->deaf = true; /* the response is whole: it is read to its end */
        return;
    }
    call->wants_http1 = error == HTTP2_HTTP_1_1_REQUIRED;
    if (call->wants_http1)
        call->net->counters.origin_http2_http1_demanded++;
    if (!processed || call->wants_http1)
        call->unprocessed = true;
    call->sent_on = !processed && carrier->session.peer.leaving;
    call->net->counters.origin_http2_refused += !processed;
    origin_call_fail(call, ORIGIN_BROKE_OFF, why_over(call, carrier, error, processed));
}
