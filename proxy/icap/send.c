#include "base/assert.h"
#include "icap/call.h"

#include <stdio.h>
#include <strings.h>

/* Sending: the ICAP head, the HTTP heads in it, and the virgin body, chunked. */

enum { ICAP_HEAD_MAX = 4096, EXTRA_MAX = 2048 };

static bool is_reqmod(const struct icap_call *call) {
    return call->request.response_head.length == 0;
}

/* May a verdict of 204 come after the whole body was sent? Only if the service knows that verdict,
 * and we can still produce the body: one of unknown length may turn out too long for that. */
static bool can_offer_204(const struct icap_call *call) {
    int64_t length = call->virgin.first.length;
    const struct kept_limits *limits = &call->virgin.kept.limits;
    if (!call->endpoint->options.allow_204)
        return false;
    return !call->has_body || length < 0 || (uint64_t)length <= limits->memory + limits->file;
}

static bool wants_preview(const struct icap_call *call, size_t *size) {
    const struct icap_options *options = &call->endpoint->options;
    if (!call->has_body || !options->preview_given ||
        icap_options_transfer(options, call->request.path) == ICAP_TRANSFER_COMPLETE)
        return false;
    *size = options->preview;
    if (*size > call->service->settings->preview)
        *size = call->service->settings->preview;
    if (*size > call->virgin.kept.limits.memory)
        *size = call->virgin.kept.limits.memory;
    return true;
}

static bool includes(const struct icap_service_settings *settings, const char *name) {
    for (char **each = settings->include; each != NULL && *each != NULL; each++)
        if (strcasecmp(*each, name) == 0)
            return true;
    return false;
}

static size_t add_field(char *out, size_t length, const char *name, struct slice value) {
    size_t room = EXTRA_MAX - length;
    int more = snprintf(out + length, room, "%s: %.*s\r\n", name, SLICE_PRINT(value));
    return more > 0 && (size_t)more < room ? length + (size_t)more : length;
}

/* What the service asks for, or is configured to get (see settings: include). */
static void write_extra(const struct icap_call *call, char out[EXTRA_MAX]) {
    const struct icap_service_settings *settings = call->service->settings;
    const struct icap_options *options = &call->endpoint->options;
    const struct icap_request *request = &call->request;
    char port[8];
    size_t length = 0;
    out[0] = '\0';
    if (request->client_ip.length > 0 && (options->client_ip || includes(settings, "X-Client-IP")))
        length = add_field(out, length, "X-Client-IP", request->client_ip);
    if (request->client_port > 0 && (options->client_port || includes(settings, "X-Client-Port"))) {
        snprintf(port, sizeof port, "%u", request->client_port);
        length = add_field(out, length, "X-Client-Port", slice_from(port));
    }
    if (request->server_ip.length > 0 && (options->server_ip || includes(settings, "X-Server-IP")))
        length = add_field(out, length, "X-Server-IP", request->server_ip);
    if (settings->proxy_credentials && request->proxy_authorization.length > 0)
        length = add_field(out, length, "Proxy-Authorization", request->proxy_authorization);
    if (settings->proxy_credentials && request->proxy_authenticate.length > 0)
        add_field(out, length, "Proxy-Authenticate", request->proxy_authenticate);
}

static int write_encapsulated(const struct icap_call *call, char *out, size_t capacity) {
    size_t request = call->request.request_head.length,
           response = call->request.response_head.length;
    const char *body = !call->has_body ? "null-body" : is_reqmod(call) ? "req-body" : "res-body";
    if (is_reqmod(call))
        return snprintf(out, capacity, "Encapsulated: req-hdr=0, %s=%zu\r\n\r\n", body, request);
    return snprintf(out, capacity, "Encapsulated: req-hdr=0, res-hdr=%zu, %s=%zu\r\n\r\n", request,
                    body, request + response);
}

static void begin_preview(struct icap_call *call, char out[40]) {
    size_t size;
    out[0] = '\0';
    call->previewing = wants_preview(call, &size);
    if (!call->previewing)
        return;
    snprintf(out, 40, "Preview: %zu\r\n", size);
    feed_set_limit(&call->feed, size, SLICE("0\r\n\r\n"), SLICE("0; ieof\r\n\r\n"));
}

static const char *allow(struct icap_call *call) {
    call->may_204 = can_offer_204(call);
    call->may_206 = call->previewing && call->endpoint->options.allow_206;
    if (call->may_206)
        return call->may_204 ? "Allow: 204, 206\r\n" : "Allow: 206\r\n";
    return call->may_204 ? "Allow: 204\r\n" : "";
}

static int write_icap_head(struct icap_call *call, char *out) {
    const struct icap_endpoint *endpoint = call->endpoint;
    const struct url *uri = endpoint->uri;
    char preview[40], extra[EXTRA_MAX], credentials[ICAP_CREDENTIALS_FIELD];
    begin_preview(call, preview);
    write_extra(call, extra);
    int length = snprintf(out, ICAP_HEAD_MAX,
                          "%s %s ICAP/1.0\r\n"
                          "Host: %s%.*s%s:%u\r\n"
                          "User-Agent: Retort\r\n"
                          "%s%s%s%s"
                          "X-Transaction-ID: %.*s\r\n",
                          is_reqmod(call) ? "REQMOD" : "RESPMOD", endpoint->uri_text,
                          uri->host_is_ipv6 ? "[" : "", SLICE_PRINT(uri->host),
                          uri->host_is_ipv6 ? "]" : "", uri->port, allow(call), preview,
                          icap_credentials_write(call->service->settings->credentials, credentials),
                          extra, SLICE_PRINT(call->request.transaction_id));
    if (length < ICAP_HEAD_MAX)
        length += write_encapsulated(call, out + length, ICAP_HEAD_MAX - (size_t)length);
    return length;
}

bool icap_call_write_head(struct icap_call *call) {
    size_t heads = call->request.request_head.length + call->request.response_head.length;
    feed_release(&call->feed);
    feed_init(&call->feed, call->net, call->has_body ? &call->virgin.first : NULL, true);
    if (call->head == NULL)
        call->head = xmalloc(ICAP_HEAD_MAX + heads);
    int length = write_icap_head(call, call->head);
    if (length >= ICAP_HEAD_MAX)
        return false;
    char *at = call->head + length;
    memcpy(at, call->request.request_head.base, call->request.request_head.length);
    at += call->request.request_head.length;
    if (call->request.response_head.length > 0)
        memcpy(at, call->request.response_head.base, call->request.response_head.length);
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
    call->service->account.bytes_out += sent;
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
            call->final = true; /* another connection would not mend it */
            icap_call_fail(call, ICAP_FAILURE_BODY, "the body that it was to adapt broke off");
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
