#include "client/http1/request_head.h"

#include "client/first_bytes.h"
#include "client/http1/exchange.h"
#include "client/http1/outbox.h"
#include "http/head_parser.h"

static const char head_too_large[] =
    "the request head is larger than client.max_head or listen.max_head";

/* The largest head and URL that the listener takes. */
static size_t http1_max_head(const struct http1_connection *connection) {
    const struct listen_settings *listen = connection->client.listen;
    return listen != NULL ? listen->max_head : connection->net->settings->client.max_head;
}

static size_t http1_max_url(const struct http1_connection *connection) {
    const struct listen_settings *listen = connection->client.listen;
    return listen != NULL ? listen->max_url : SIZE_MAX;
}

static const struct url_scheme *http1_scheme(const struct http1_connection *connection) {
    return &url_schemes[connection->client.ends.tls != NULL ? URL_HTTPS : URL_HTTP];
}

/* A request that can't be parsed goes the same way as any other, so that it is answered and
 * logged. */
static void begin_unreadable(struct http1_connection *connection, unsigned status,
                             const char *text) {
    struct http1_exchange *exchange = http1_exchange_new(connection);
    http_head_init(&exchange->base.request);
    exchange->base.version = SLICE("1.1");
    exchange->base.scheme = http1_scheme(connection);
    exchange->base.error_status = status;
    exchange->base.error_text = text;
    connection->net->counters.client_bad_requests++;
    http1_exchange_begin(exchange);
}

/* RFC 9112 §3.2: a request of HTTP/1.1 or later has exactly one Host. */
static bool read_host(struct exchange *exchange) {
    const struct http_head *request = &exchange->request;
    const struct http_field *field = http_head_find(request, HTTP_HOST);
    if (field == NULL)
        return request->version < 11;
    exchange->authority = field->value;
    return http_head_find_next(request, HTTP_HOST, field) == NULL;
}

static void refuse(struct http1_exchange *exchange, unsigned status, const char *text) {
    exchange->base.error_status = status;
    exchange->base.error_text = text;
    exchange->framing.kind = FRAMING_NONE;
    exchange->keep_alive = false;
    exchange->connection->net->counters.client_bad_requests++;
}

/* Reads the fields that HTTP/1.0 does not have. TE and Upgrade count only if Connection names them:
 * otherwise a proxy before us may have left them over. */
static void read_wishes(struct http1_exchange *exchange) {
    const struct http_head *request = &exchange->base.request;
    if (request->version < 11)
        return;
    if (http_head_has(request, HTTP_EXPECT)) {
        struct slice expect = http_head_value(request, HTTP_EXPECT);
        exchange->base.expects_unknown = !slice_equal_nocase(expect, SLICE("100-continue"));
    }
    if (http_head_has(request, HTTP_UPGRADE) &&
        http_head_has_token(request, HTTP_CONNECTION, SLICE("upgrade")))
        exchange->base.upgrade = http_head_value(request, HTTP_UPGRADE);
    if (http_head_has(request, HTTP_TE))
        exchange->base.takes_trailers = http_head_has_token(request, HTTP_TE, SLICE("trailers")) &&
                                        http_head_has_token(request, HTTP_CONNECTION, SLICE("te"));
}

static void begin_readable(struct http1_exchange *exchange) {
    struct http_head *request = &exchange->base.request;
    /* RFC 9110 §9.3.6: a CONNECT leads out of HTTP. If it is refused, what stands behind it was
     * meant for the tunnel and is no request. */
    exchange->keep_alive =
        framing_keeps_alive(request) && request->method_id != HTTP_METHOD_CONNECT;
    exchange->base.is_head = request->method_id == HTTP_METHOD_HEAD;
    exchange->base.version = request->version < 11 ? SLICE("1.0") : SLICE("1.1");
    exchange->base.scheme = http1_scheme(exchange->connection);
    if (request->target.length > http1_max_url(exchange->connection))
        refuse(exchange, 414, "the URL is longer than listen.max_url");
    else if (!framing_of_request(&exchange->framing, request))
        refuse(exchange, exchange->framing.status, exchange->framing.error);
    else if (!read_host(&exchange->base))
        refuse(exchange, 400, "the request needs exactly one Host header");
    read_wishes(exchange);
    http1_exchange_begin(exchange);
}

/* There is no memory for more. The answer is constant, so it needs no memory. */
static void refuse_for_memory(struct http1_connection *connection) {
    static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "Content-Length: 0\r\n"
                               "Cache-Control: no-store\r\n"
                               "Retry-After: 1\r\n"
                               "Connection: close\r\n\r\n";
    struct iovec pieces[] = {{NULL, 0}, {(void *)(uintptr_t)busy, sizeof busy - 1}};
    size_t put;
    http1_outbox_write(connection, pieces, 1, false, &put);
    connection->state = HTTP1_LINGERING;
}

static void begin_too_large(struct http1_connection *connection) {
    connection->net->counters.client_heads_too_large++;
    begin_unreadable(connection, 431, head_too_large);
}

/* RFC 9113 §3.3: with TLS, the handshake says whether HTTP/2 is spoken. */
static bool may_become_http2(const struct http1_connection *connection) {
    return connection->requests == 0 && connection->client.ends.tls == NULL &&
           listen_offers_http2(connection->client.listen) &&
           connection->client.listen->tls.set == NULL;
}

/* Three words without a slash: neither a version of HTTP nor a path is among them. */
static bool is_no_request(struct slice bytes) {
    const char *end = memchr(bytes.base, '\r', bytes.length);
    unsigned blanks = 0;
    for (const char *at = bytes.base; end != NULL && at < end; at++) {
        if (*at == '/')
            return false;
        blanks += *at == ' ';
    }
    return blanks == 2;
}

/* The bytes are not a head of HTTP/1. True: what they begin is HTTP/2, or nothing that could read an
 * answer: "Clients and servers MUST treat an invalid connection preface as a connection error" (RFC
 * 9113 §3.4). */
static bool leave_http1(struct http1_connection *connection, struct slice bytes) {
    if (first_bytes_preface(bytes) == HTTP2_PREFACE_WHOLE) {
        http1_connection_hand_over(connection);
        return true;
    }
    if (!is_no_request(bytes))
        return false;
    connection->net->counters.client_bad_requests++;
    connection->finished = true;
    return true;
}

/* True: the buffer held a whole head and an exchange has begun, or there is no memory for one, or
 * the connection goes on without HTTP/1. */
static bool parse_head(struct http1_connection *connection) {
    struct slice bytes = net_buffer_bytes(connection->buffer);
    if (bytes.length == 0)
        return false;
    if (clients_lack_memory(connection->client.clients)) {
        refuse_for_memory(connection);
        return true;
    }
    size_t most = http1_max_head(connection);
    struct http1_exchange *exchange = http1_exchange_new(connection);
    ssize_t used = http_head_parse_request(&exchange->base.request, bytes.base, bytes.length,
                                           connection->head_checked);
    connection->head_checked = used == 0 ? bytes.length : 0;
    if (used > 0 && (size_t)used <= most) {
        connection->buffer->begin += (size_t)used;
        begin_readable(exchange);
        return true;
    }
    http1_exchange_drop(exchange);
    if (used == 0 && bytes.length < most)
        return false;
    if (used < 0 && may_become_http2(connection)) {
        if (first_bytes_preface(bytes) == HTTP2_PREFACE_PART)
            return false;
        if (leave_http1(connection, bytes))
            return true;
    }
    if (used < 0)
        begin_unreadable(connection, http_error_status((enum http_error) - used),
                         http_error_text((enum http_error) - used));
    else
        begin_too_large(connection);
    return true;
}

/* Reads once into the buffer. False: an exchange has begun for a head that is too large, or the
 * connection is lost. */
static bool fill_buffer(struct http1_connection *connection) {
    size_t got;
    struct net_context *net = connection->net;
    struct net_buffer **buffer = &connection->buffer;
    if (*buffer == NULL)
        *buffer = net_buffer_take(net);
    if (!net_buffer_make_room(net, buffer, http1_max_head(connection))) {
        begin_too_large(connection);
        return false;
    }
    switch (connection_read(connection->socket, (*buffer)->data + (*buffer)->end,
                            (*buffer)->capacity - (*buffer)->end, &got)) {
    case IO_DONE:
        (*buffer)->end += got;
        net->counters.client_bytes_in += got;
        return true;
    case IO_WAIT: return true;
    default: http1_connection_lost(connection); return false;
    }
}

bool http1_request_head_read(struct http1_connection *connection) {
    for (;;) {
        if (connection->buffer != NULL && parse_head(connection))
            return true;
        if (!connection->socket->readable)
            return false;
        if (!fill_buffer(connection))
            return true;
    }
}
