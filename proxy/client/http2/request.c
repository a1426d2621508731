#include "client/http2/request.h"

#include "base/log.h"
#include "client/coalescing.h"
#include "http2/fields.h"

#include <sys/random.h>

static const struct url_scheme *scheme_of(const struct http2_connection *connection) {
    return &url_schemes[connection->client.ends.tls != NULL ? URL_HTTPS : URL_HTTP];
}

static void refuse_request(struct http2_exchange *exchange, unsigned status, const char *text) {
    exchange->base.error_status = status;
    exchange->base.error_text = text;
    exchange->connection->net->counters.client_bad_requests++;
}

static void refuse_too_large(struct http2_exchange *exchange) {
    exchange->connection->net->counters.client_heads_too_large++;
    http_head_init(&exchange->base.request);
    refuse_request(exchange, 431,
                   "the request head is larger than client.max_head or listen.max_head, or has too "
                   "many fields");
}

/* What a listener of that mode takes (client/exchange.h). Inside an intercepted connection the
 * requests are for its server. */
static bool takes_absolute(const struct http2_connection *connection) {
    const struct listen_settings *listen = connection->client.listen;
    return listen != NULL && listen->mode == LISTEN_FORWARD &&
           connection->client.ends.intercepted == NULL;
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* HTTP/1.1 needs a nonce of 16 bytes in base64 (RFC 6455 §4.1), which HTTP/2 does not have (RFC 8441
 * §5). */
static void add_websocket_key(struct http2_exchange *exchange) {
    char *at = exchange->websocket_key;
    unsigned char nonce[18] = {0};
    if (getrandom(nonce, 16, 0) != 16)
        return;
    for (unsigned i = 0; i < 18; i += 3) {
        unsigned bits = (unsigned)nonce[i] << 16 | (unsigned)nonce[i + 1] << 8 | nonce[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *at++ = base64_digits[bits >> shift & 63];
    }
    memcpy(exchange->websocket_key + 22, "==", 2);
    http_head_add(&exchange->base.request, SLICE("Sec-WebSocket-Key"),
                  slice_make(exchange->websocket_key, sizeof exchange->websocket_key));
}

static void read_meaning(struct http2_exchange *exchange, const struct http2_meaning *meaning,
                         bool ended) {
    struct exchange *base = &exchange->base;
    const struct http_head *request = &base->request;
    base->authority = meaning->authority;
    base->upgrade = meaning->protocol;
    base->takes_trailers = meaning->takes_trailers;
    base->is_head = request->method_id == HTTP_METHOD_HEAD;
    bool tunnel = request->method_id == HTTP_METHOD_CONNECT || meaning->protocol.length > 0;
    if (!ended && !tunnel)
        base->body_length = meaning->content_length;
    if (http_head_has(request, HTTP_EXPECT)) {
        struct slice expect = http_head_value(request, HTTP_EXPECT);
        exchange->expects_continue = slice_equal_nocase(expect, SLICE("100-continue"));
        base->expects_unknown = !exchange->expects_continue;
    }
    struct slice priority = http_head_value(request, HTTP_PRIORITY);
    if (priority.base != NULL)
        http2_stream_set_priority(&exchange->stream, priority);
    if (slice_equal_nocase(meaning->protocol, SLICE("websocket")))
        add_websocket_key(exchange);
}

/* A forward proxy looks at the scheme when it has the whole URL. */
static bool is_web(struct slice scheme) {
    return scheme.length == 0 || slice_equal_nocase(scheme, SLICE("https")) ||
           slice_equal_nocase(scheme, SLICE("http"));
}

static void check_url(struct http2_exchange *exchange, const struct http2_meaning *meaning) {
    const struct client_connection *client = &exchange->connection->client;
    struct exchange *base = &exchange->base;
    if (client->listen != NULL && base->request.target.length > client->listen->max_url) {
        refuse_request(exchange, 414, "the URL is longer than listen.max_url");
    } else if (meaning->protocol.length > 0 &&
               !slice_equal_nocase(meaning->protocol, SLICE("websocket"))) {
        refuse_request(exchange, 501, "the only protocol that a CONNECT may name is websocket");
    } else if (!takes_absolute(exchange->connection) && !is_web(meaning->scheme)) {
        refuse_request(exchange, 400, "the scheme of the request is neither http nor https");
    } else if (!coalescing_allows(&client->ends, client->listen, base->authority)) {
        exchange->connection->net->counters.client_misdirected++;
        base->error_status = 421;
        base->error_text = "the certificate of this connection is for other names: open a new "
                           "connection for this request";
    }
}

bool http2_request_read(struct http2_exchange *exchange, struct hpack_list *list, bool ended) {
    struct http2_connection *connection = exchange->connection;
    struct exchange *base = &exchange->base;
    struct http2_meaning meaning;
    base->version = SLICE("2.0");
    base->scheme = scheme_of(connection);
    switch (http2_fields_to_request(list, true, &base->request, &meaning)) {
    case HTTP2_FIELDS_MALFORMED:
        connection->net->counters.client_bad_requests++;
        log_debug("HTTP/2: a malformed request: %s", meaning.error);
        return false;
    case HTTP2_FIELDS_TOO_LARGE: refuse_too_large(exchange); return true;
    case HTTP2_FIELDS_GOOD: break;
    }
    if (!http2_stream_expect(&exchange->stream, meaning.content_length)) {
        connection->net->counters.client_bad_requests++;
        return false;
    }
    read_meaning(exchange, &meaning, ended);
    check_url(exchange, &meaning);
    if (takes_absolute(connection) && !http2_request_make_absolute(list, &base->request, &meaning))
        refuse_too_large(exchange);
    return true;
}

bool http2_request_check_trailers(const struct hpack_list *list) {
    struct http_head trailers;
    struct http2_meaning meaning;
    return http2_fields_to_trailers(list, &trailers, &meaning) == HTTP2_FIELDS_GOOD;
}
