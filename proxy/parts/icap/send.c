#include "adapt/recording.h"
#include "base/assert.h"
#include "http/trace_context.h"
#include "icap/call.h"
#include "icap/service.h"

/* Sending: the ICAP head, the HTTP heads in it, and the virgin body, chunked. */

/* TURNS: pieces sent in a row. */
enum { ICAP_HEAD_MAX = 5120, TURNS = 8 };

/* A head that is being written. An overflow is noticed at the end. */
struct writer {
    char *at, *end;
    bool full;
};

static void icap_send_put(struct writer *writer, struct slice text) {
    if (text.length > (size_t)(writer->end - writer->at)) {
        writer->full = true;
        return;
    }
    if (text.length > 0)
        memcpy(writer->at, text.base, text.length);
    writer->at += text.length;
}

static void icap_send_put_number(struct writer *writer, uint64_t number) {
    char digits[SLICE_DIGITS];
    icap_send_put(writer, slice_of_number(digits, number));
}

static void put_field(struct writer *writer, struct slice name, struct slice value) {
    icap_send_put(writer, name);
    icap_send_put(writer, SLICE(": "));
    icap_send_put(writer, value);
    icap_send_put(writer, SLICE("\r\n"));
}

static bool is_reqmod(const struct icap_call *call) {
    return call->request.response_head.length == 0;
}

/* Returns true when a 204 may come after the whole body was sent. This requires that the service
 * supports 204 and that the body can still be produced, which is uncertain for a body of unknown
 * length. */
static bool can_offer_204(const struct icap_call *call) {
    int64_t length = call->base.virgin.first.length;
    const struct spill_file_limits *limits = &call->base.virgin.kept.limits;
    if (!call->endpoint->known.options.allow_204)
        return false;
    return !call->base.has_body || length < 0 || (uint64_t)length <= limits->memory + limits->file;
}

static bool wants_preview(const struct icap_call *call, size_t *size) {
    const struct icap_options *options = &call->endpoint->known.options;
    if (!call->base.has_body || !options->preview_given ||
        call->service->base.settings->preview == 0 ||
        icap_options_transfer(options, call->request.path) == ICAP_TRANSFER_COMPLETE)
        return false;
    *size = options->preview;
    if (*size > call->service->base.settings->preview)
        *size = call->service->base.settings->preview;
    if (*size > call->base.virgin.kept.limits.memory)
        *size = call->base.virgin.kept.limits.memory;
    return true;
}

/* Fields that the service asks for, or is configured to get. */
static void put_client(struct icap_call *call, struct writer *writer) {
    size_t room = (size_t)(writer->end - writer->at);
    call->base.result.client_fields = icap_client_fields_at(call->endpoint);
    size_t length = client_fields_write(call->base.result.client_fields, &call->request.client,
                                        writer->at, room);
    if (length <= room)
        writer->at += length;
    else
        writer->full = true;
}

static void put_encapsulated(const struct icap_call *call, struct writer *writer) {
    size_t request = call->request.request_head.length;
    size_t response = call->request.response_head.length;
    icap_send_put(writer, SLICE("Encapsulated: req-hdr=0, "));
    if (!is_reqmod(call)) {
        icap_send_put(writer, SLICE("res-hdr="));
        icap_send_put_number(writer, request);
        icap_send_put(writer, SLICE(", "));
    }
    icap_send_put(writer, !call->base.has_body ? SLICE("null-body=")
                          : is_reqmod(call)    ? SLICE("req-body=")
                                               : SLICE("res-body="));
    icap_send_put_number(writer, request + response);
    icap_send_put(writer, SLICE("\r\n\r\n"));
}

static void limit_feed(struct icap_call *call, size_t size) {
    feed_set_limit(&call->sender.feed, size, SLICE("0\r\n\r\n"), SLICE("0; ieof\r\n\r\n"));
}

static void put_preview(struct icap_call *call, struct writer *writer) {
    size_t size;
    call->previewing = wants_preview(call, &size);
    if (!call->previewing)
        return;
    icap_send_put(writer, SLICE("Preview: "));
    icap_send_put_number(writer, size);
    icap_send_put(writer, SLICE("\r\n"));
    limit_feed(call, size);
}

static void put_allow(struct icap_call *call, struct writer *writer) {
    call->may_204 = can_offer_204(call);
    call->may_206 = call->previewing && call->endpoint->known.options.allow_206;
    if (call->may_206)
        icap_send_put(writer,
                      call->may_204 ? SLICE("Allow: 204, 206\r\n") : SLICE("Allow: 206\r\n"));
    else if (call->may_204)
        icap_send_put(writer, SLICE("Allow: 204\r\n"));
}

static void icap_send_put_trace(struct writer *writer, const struct trace_fields *trace) {
    put_field(writer, SLICE("traceparent"), trace->parent);
    if (trace->state.length > 0)
        put_field(writer, SLICE("tracestate"), trace->state);
}

static void put_icap_head(struct icap_call *call, struct writer *writer) {
    icap_send_put(writer, is_reqmod(call) ? SLICE("REQMOD ") : SLICE("RESPMOD "));
    icap_send_put(writer,
                  slice_from(call->endpoint->head)); /* the rest of the line, Host and so on */
    put_preview(call, writer);
    put_allow(call, writer);
    put_client(call, writer);
    put_field(writer, SLICE("X-Transaction-ID"), call->request.transaction_id);
    if (call->request.trace != NULL)
        icap_send_put_trace(writer, call->request.trace);
    put_encapsulated(call, writer);
}

bool icap_call_write_head(struct icap_call *call) {
    const struct icap_request *request = &call->request;
    size_t size = ICAP_HEAD_MAX + request->request_head.length + request->response_head.length;
    sender_stop(&call->sender);
    sender_init(&call->sender, call->net, call->base.has_body ? &call->base.virgin.first : NULL,
                true);
    call->preview_waits = false;
    if (call->head == NULL)
        call->head = xmalloc(size);
    struct writer writer = {call->head, call->head + size, false};
    put_icap_head(call, &writer);
    if (call->base.recording != NULL)
        call->base.recording->class->asked(
            call->base.recording, call->endpoint->uri_text,
            slice_make(call->head, (size_t)(writer.at - call->head)));
    icap_send_put(&writer, request->request_head);
    icap_send_put(&writer, request->response_head);
    call->sender.head = slice_make(call->head, (size_t)(writer.at - call->head));
    return !writer.full;
}

static void icap_send_count(struct icap_call *call, uint64_t sent) {
    call->service->base.account.bytes_out += sent;
    call->base.figures.bytes_out += sent;
}

/* All received bytes of the body were sent, and the preview is not full. */
static bool awaits_preview(const struct icap_call *call) {
    return call->step == ICAP_STEP_ANSWER && call->previewing && sender_is_starved(&call->sender);
}

/* Its time runs from the first pause, even if more bytes arrive later. */
static bool wait_for_preview(struct icap_call *call) {
    uint64_t wait = call->service->base.settings->preview_wait;
    bool waited = call->preview_waits;
    call->preview_waits = wait > 0 && awaits_preview(call);
    if (call->preview_waits && !waited)
        loop_timer_after(call->net->loop, &call->timer, wait);
    return call->preview_waits;
}

/* RFC 3507 4.5: a preview is up to so many bytes. */
bool icap_call_cut_preview(struct icap_call *call) {
    if (!call->preview_waits || !awaits_preview(call))
        return false;
    call->preview_waits = false;
    call->service->base.account.previews_cut++;
    limit_feed(call, 0);
    icap_call_send(call);
    return true;
}

/* When nothing can be sent, the timer depends on who has to act next. */
static void icap_send_set_clock(struct icap_call *call, bool starved) {
    if (wait_for_preview(call))
        return;
    if (call->step == ICAP_STEP_ANSWER || (call->step == ICAP_STEP_BODY && call->awaited))
        icap_call_watch(call, !starved);
}

/* A write that fails ends the sending; an answer may have come before. */
static void icap_send_write_failed(struct icap_call *call) {
    sender_stop(&call->sender);
    call->keep_connection = false;
    if (call->step == ICAP_STEP_ANSWER)
        icap_call_receive(call);
}

static void icap_send_broke_off(struct icap_call *call) {
    connection_abort(&call->connection);
    call->net->counters.icap_connections_open--;
    call->final = true; /* another connection would not help */
    icap_call_fail(call, ICAP_FAILURE_BODY, "the body that it was to adapt broke off");
}

void icap_call_send(struct icap_call *call) {
    uint64_t sent;
    if (call->connection == NULL)
        return;
    enum sender_status status = sender_write(&call->sender, call->connection, TURNS, &sent);
    icap_send_count(call, sent);
    switch (status) {
    case SENDER_DONE:
    case SENDER_BLOCKED: icap_send_set_clock(call, false); break;
    case SENDER_STARVED: icap_send_set_clock(call, true); break;
    /* An answer that may have begun is handled first. */
    case SENDER_MORE: loop_defer(call->net->loop, &call->send_task); break;
    case SENDER_BROKEN: icap_send_broke_off(call); break;
    case SENDER_LOST: icap_send_write_failed(call); break;
    }
}
