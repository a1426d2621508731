#include "origin/http2/call.h"

#include "base/assert.h"
#include "http/trailer.h"
#include "http2/fields.h"
#include "http2/session.h"

#include <stdio.h>

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
    switch (http2_fields_to_trailers(list, &head, &meaning)) {
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
