#include "base/assert.h"
#include "icap/call.h"

#include <stdio.h>

/* Sending: the ICAP head, the HTTP heads in it, and the virgin body, chunked. */

enum { ICAP_HEAD_MAX = 4096 };

static bool is_reqmod(const struct icap_call *call) {
    return call->response_head.length == 0;
}

/* May a verdict of 204 come after the whole body was sent? Only if we can still produce it. */
static bool can_offer_204(const struct icap_call *call) {
    if (!call->has_body)
        return true;
    int64_t length = call->virgin.first.length;
    return length >= 0 && (uint64_t)length <= call->virgin.limit;
}

static bool wants_preview(const struct icap_call *call, size_t *size) {
    const struct icap_options *options = &call->service->options;
    if (!call->has_body || !options->preview_given ||
        icap_options_transfer(options, call->path) == ICAP_TRANSFER_COMPLETE)
        return false;
    *size = options->preview;
    if (*size > call->service->settings->preview)
        *size = call->service->settings->preview;
    if (*size > call->virgin.limit)
        *size = call->virgin.limit;
    return true;
}

static int write_encapsulated(const struct icap_call *call, char *out, size_t capacity) {
    size_t request = call->request_head.length, response = call->response_head.length;
    const char *body = !call->has_body ? "null-body" : is_reqmod(call) ? "req-body" : "res-body";
    if (is_reqmod(call))
        return snprintf(out, capacity, "Encapsulated: req-hdr=0, %s=%zu\r\n\r\n", body, request);
    return snprintf(out, capacity, "Encapsulated: req-hdr=0, res-hdr=%zu, %s=%zu\r\n\r\n", request,
                    body, request + response);
}

static int write_icap_head(struct icap_call *call, char *out) {
    const struct icap_service_settings *settings = call->service->settings;
    char preview[40] = "";
    size_t size;
    call->previewing = wants_preview(call, &size);
    call->may_204 = can_offer_204(call);
    if (call->previewing) {
        snprintf(preview, sizeof preview, "Preview: %zu\r\n", size);
        feed_set_limit(&call->feed, size, SLICE("0\r\n\r\n"), SLICE("0; ieof\r\n\r\n"));
    }
    call->may_206 = call->previewing && call->service->options.allow_206;
    const char *allow = call->may_206   ? call->may_204 ? "Allow: 204, 206\r\n" : "Allow: 206\r\n"
                        : call->may_204 ? "Allow: 204\r\n"
                                        : "";
    bool v6 = settings->uri.host_is_ipv6;
    int length = snprintf(out, ICAP_HEAD_MAX,
                          "%s %s ICAP/1.0\r\n"
                          "Host: %s%.*s%s:%u\r\n"
                          "User-Agent: Retort\r\n"
                          "%s%s"
                          "X-Client-IP: %.*s\r\n"
                          "X-Transaction-ID: %.*s\r\n",
                          is_reqmod(call) ? "REQMOD" : "RESPMOD", settings->uri_text, v6 ? "[" : "",
                          SLICE_PRINT(settings->uri.host), v6 ? "]" : "", settings->uri.port,
                          allow, preview,
                          SLICE_PRINT(call->client_ip), SLICE_PRINT(call->transaction_id));
    if (length < ICAP_HEAD_MAX)
        length += write_encapsulated(call, out + length, ICAP_HEAD_MAX - (size_t)length);
    return length;
}

bool icap_call_write_head(struct icap_call *call) {
    size_t heads = call->request_head.length + call->response_head.length;
    feed_release(&call->feed);
    feed_init(&call->feed, call->net, call->has_body ? &call->virgin.first : NULL, true);
    if (call->head == NULL)
        call->head = xmalloc(ICAP_HEAD_MAX + heads);
    int length = write_icap_head(call, call->head);
    if (length >= ICAP_HEAD_MAX)
        return false;
    char *at = call->head + length;
    memcpy(at, call->request_head.base, call->request_head.length);
    at += call->request_head.length;
    if (call->response_head.length > 0)
        memcpy(at, call->response_head.base, call->response_head.length);
    call->head_length = (size_t)length + heads;
    call->head_left = slice_make(call->head, call->head_length);
    return true;
}

static int gather(struct icap_call *call, struct iovec *pieces) {
    struct slice body = feed_bytes(&call->feed);
    int count = 0;
    if (call->head_left.length > 0)
        pieces[count++] = (struct iovec){(void *)call->head_left.base, call->head_left.length};
    if (body.length > 0)
        pieces[count++] = (struct iovec){(void *)body.base, body.length};
    return count;
}

static void consume(struct icap_call *call, size_t sent) {
    size_t head = sent < call->head_left.length ? sent : call->head_left.length;
    call->head_left.base += head;
    call->head_left.length -= head;
    feed_consume(&call->feed, sent - head);
}

/* Whose turn is it when nothing can be sent? The timer follows that. */
static void set_clock(struct icap_call *call, enum feed_status status) {
    if (call->step == ICAP_STEP_ANSWER || (call->step == ICAP_STEP_BODY && call->awaited))
        icap_call_watch(call, status != FEED_WAIT);
}

/* A write that fails ends the sending; an answer may have come before. */
static void write_failed(struct icap_call *call) {
    feed_release(&call->feed);
    call->head_left.length = 0;
    call->keep_connection = false;
    if (call->step == ICAP_STEP_ANSWER)
        icap_call_receive(call);
}

void icap_call_send(struct icap_call *call) {
    struct iovec pieces[2];
    size_t sent;
    while (call->connection != NULL) {
        enum feed_status status = feed_fill(&call->feed);
        if (status == FEED_FAILED) {
            connection_abort(&call->connection);
            call->net->counters.icap_connections_open--;
            call->repeated = true; /* another connection would not mend it */
            icap_call_fail(call, false, "the body that it was to adapt broke off");
            return;
        }
        int count = gather(call, pieces);
        if (count == 0) {
            set_clock(call, status);
            return;
        }
        switch (connection_write(call->connection, pieces, count, &sent)) {
        case IO_DONE: consume(call, sent); break;
        case IO_WAIT: set_clock(call, FEED_READY); return;
        default: write_failed(call); return;
        }
    }
}
